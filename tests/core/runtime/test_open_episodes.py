"""Many episodes open at once: what they share, what stops them, and what they leave behind."""

import asyncio
import gc
import itertools
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import harness
from harness import storage
from harness.api import Case, Outcome, Request
from harness.api.errors import BudgetSpentError, EngineFatalError, RequestError
from harness.config import resolve, spec
from harness.engines.mock import Mock
from harness.evaluation.stages import execute
from harness.runtime.options import Options
from harness.runtime.runner import BudgetReachedError, RunStoppedError
from tests.helpers.toy import TOY, run

Answer = Callable[[Request], Any]
GROUPS = {"a": "a", "b": "b", "coin": {"policy": "coin"}}


def say(request: Request) -> str:
    return "a"


def die(request: Request) -> str:
    raise EngineFatalError("the engine is gone")


def play(folder: Path, a: Answer, b: Answer, who: tuple[str, ...] = ("a", "b"), **options: Any) -> harness.Run:
    """The toy spec with teams of these models, or of the policy, one after another."""
    matrix = {"agents": [2], "who": [{"name": name, "group": GROUPS[name]} for name in who]}
    data = {"extends": "toy", "matrix": matrix, "agents": {"default": "${who.group}"},
            "models": {name: {"use": "mock"} for name in "ab" if name in who}, "tables": []}  # fmt: skip
    plan = resolve.plan(spec.parse(data, TOY), TOY)
    engines = {name: Mock(model=name, function=of) for name, of in {"a": a, "b": b}.items() if name in who}
    return execute(replace(plan, engines=engines), Options(output_path=folder, **options))


def lines(folder: Path, kind: str = "move") -> list[Any]:
    return [line for _, line in storage.lines(folder / storage.JOURNAL) if line["k"] == kind]


# ------------------------------------------------------------------------------------------ the process


@pytest.fixture
def threshold() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


@pytest.mark.usefixtures("threshold")
@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize(("before", "during"), [(700, 10_000), (0, 0), (1, 10_000), (50_000, 50_000)])
def test_garbage_is_looked_for_rarely_while_episodes_are_open(
    tmp_path: Path, before: int, during: int, fails: bool
) -> None:
    """And afterwards as before."""
    seen = set()

    def answer(request: Request) -> str:
        seen.add(gc.get_threshold())
        return die(request) if fails else "a"

    gc.set_threshold(before, 9, 8)
    try:
        run(tmp_path / "r", Mock(function=answer))
    except RunStoppedError:
        assert fails
    assert seen == {(during, 9, 8)} and gc.get_threshold() == (before, 9, 8)


def test_policies_play_one_episode_after_another_and_models_many_at_once(tmp_path: Path) -> None:
    run(tmp_path / "policies" / "r")
    run(tmp_path / "models" / "r", Mock(function=say))
    run(tmp_path / "narrow" / "r", Mock(function=say), max_concurrency=1)
    counts = {
        name: sum(1 for _ in itertools.groupby(line["e"] for line in lines(tmp_path / name / "r")))
        for name in ("policies", "models", "narrow")
    }
    assert counts["policies"] == counts["narrow"] == 8 < counts["models"]


def test_policies_wait_for_no_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    call_later = asyncio.BaseEventLoop.call_later

    def counted(loop: asyncio.BaseEventLoop, delay: float, *more: Any, **context: Any) -> asyncio.TimerHandle:
        waits.append(delay)
        return call_later(loop, delay, *more, **context)

    monkeypatch.setattr(asyncio.BaseEventLoop, "call_later", counted)
    assert len(run(tmp_path / "r").scores) == 8
    assert len(waits) <= 1, "the line that says how far it is"


def test_logs_are_written_where_they_are_asked_for(tmp_path: Path) -> None:
    """Of requests none, where no engine takes any."""
    logs = {"samples.jsonl", "requests.jsonl"}
    for name, model, options, expected in (
        ("plain", Mock(function=say), {}, set()),
        ("both", Mock(function=say), {"log_samples": True, "log_requests": True}, logs),
        ("policies", None, {"log_samples": True, "log_requests": True}, {"samples.jsonl"}),
    ):
        run(tmp_path / name, model, **options)  # type: ignore[arg-type]
        assert logs & {file.name for file in (tmp_path / name).iterdir()} == expected, name
    assert len((tmp_path / "both" / "samples.jsonl").read_text().splitlines()) == 8


def test_a_process_that_continues_a_journal_says_so_once(tmp_path: Path) -> None:
    calls, dies = itertools.count(), [True]

    def answer(request: Request) -> str:
        return die(request) if dies and next(calls) >= 30 else "a"

    with pytest.raises(RunStoppedError):
        run(tmp_path / "r", Mock(function=answer))
    assert lines(tmp_path / "r", storage.RESUME) == []
    dies.clear()
    run(tmp_path / "r", Mock(function=answer))
    assert len(lines(tmp_path / "r", storage.RESUME)) == 1
    asked = [line["asked"] for line in lines(tmp_path / "r", "asked")]
    assert asked == [[1, 0]], "the call that ended the run has no move"


class Graded(TOY.load("tasks", "pick")):  # type: ignore[misc]
    """Its grades of two episodes wait for each other."""

    grading = "slow"
    both = threading.Barrier(2)

    def grade(self, case: Case, outcome: Outcome) -> dict[str, float | None]:
        self.both.wait(30)
        return {"agreed": float(threading.current_thread() is not threading.main_thread())}


class Quick(TOY.load("tasks", "pick")):  # type: ignore[misc]
    """Its grades are computed where the episodes are played."""

    def grade(self, case: Case, outcome: Outcome) -> dict[str, float | None]:
        return {"agreed": float(asyncio.get_running_loop().is_running())}


@pytest.mark.parametrize("task", [Graded, Quick])
def test_slow_grades_keep_no_other_episode_waiting(tmp_path: Path, task: Any) -> None:
    plan = resolve.plan(spec.load("toy", TOY), TOY, Mock(function=say))
    conditions = tuple(replace(c, task=task(agents=2, cases_made=2)) for c in plan.conditions)
    done = execute(replace(plan, conditions=conditions), Options(output_path=tmp_path / "r", max_concurrency=2))
    assert [(score.error, score.numbers["agreed"]) for score in done.scores] == [(None, 1.0)] * 4


# --------------------------------------------------------------------------------------- what stops them


@pytest.mark.parametrize("who", [("a", "b"), ("b", "a"), ("a", "coin")])
@pytest.mark.parametrize("width", [1, 8])
def test_what_a_dead_engine_takes_no_part_in_is_played(tmp_path: Path, who: tuple[str, ...], width: int) -> None:
    """It is asked no more than is in flight, and the run stops once the rest is played. Then it goes on."""
    requests = Counter[str]()

    def answer(name: str, of: Answer) -> Answer:
        def count(request: Request) -> Any:
            requests[name] += 1
            return of(request)

        return count

    with pytest.raises(RunStoppedError, match=r"after 4 of 8 episodes: .*gone; all episodes without this engine are"):
        play(tmp_path / "r", answer("a", die), answer("b", say), who, max_concurrency=width)
    assert requests["a"] <= 2 * width and requests["b"] == (4 * 2 * 3 if "b" in who else 0)
    ends = storage.JournalState(tmp_path / "r" / storage.JOURNAL).ends
    assert {end["labels"]["who"] for end in ends.values()} == set(who) - {"a"} and len(ends) == 4
    requests.clear()
    assert not play(tmp_path / "r", answer("a", say), answer("b", say), who).failed
    assert requests == {"a": 4 * 2 * 3}, "what was answered is not asked again"


def test_the_reasons_of_all_dead_engines_are_reported(tmp_path: Path) -> None:
    def other(request: Request) -> str:
        raise EngineFatalError("no power")

    with pytest.raises(RunStoppedError, match=r"after 4 of 12 episodes: the engine is gone; no power; all ep"):
        play(tmp_path / "r", die, other, ("a", "coin", "b"), max_concurrency=1)
    state = storage.JournalState(tmp_path / "r" / storage.JOURNAL)
    assert {end["labels"]["who"] for end in state.ends.values()} == {"coin"} and len(state.ends) == 4


def test_engines_that_are_started_in_turn_end_with_the_first_that_is_dead(tmp_path: Path) -> None:
    """No other is started for what is left."""
    requests: list[str] = []

    def answer(request: Request) -> str:
        requests.append(request.id)
        return "a"

    with pytest.raises(RunStoppedError, match="the engine is gone"):
        play(tmp_path / "r", die, answer, max_concurrency=1, sequential_engines=True)
    assert requests == []
    assert not play(tmp_path / "r", say, answer, sequential_engines=True).failed


def test_what_other_engines_are_answering_when_the_run_stops_is_kept(tmp_path: Path) -> None:
    """Both models of a team are asked at once; the one is gone before the other has answered."""
    requests = Counter[str]()

    async def slow(request: Request) -> str:
        requests[request.id] += 1
        for _ in range(50):
            await asyncio.sleep(0)
        return "a"

    data = {"extends": "toy", "matrix": {"agents": [2]}, "models": {name: {"use": "mock"} for name in "ab"},
            "agents": {"default": "a", "b": {"model": "b", "agents": ["S1"]}}, "tables": []}  # fmt: skip
    plan = resolve.plan(spec.parse(data, TOY), TOY)

    def go_on(a: Answer) -> None:
        engines = {"a": Mock(model="a", function=a), "b": Mock(model="b", function=slow)}
        execute(replace(plan, engines=engines), Options(output_path=tmp_path / "r", max_concurrency=2))

    with pytest.raises(RunStoppedError):
        go_on(die)
    go_on(say)
    assert len(requests) == 4 * 3 and set(requests.values()) == {1}


def test_the_last_failures_of_an_engine_stop_the_run_with_the_last_of_them(tmp_path: Path) -> None:
    """They are no results, since it may be down. What another engine has answered counts."""
    failures = itertools.count(1)

    def fail(request: Request) -> str:
        if "/c3/" in request.id:
            raise RequestError(f"failure {next(failures)}")
        return "a"

    says = "requests to a failed, and nothing was answered since: 6 failures, the last with: failure 6 "
    with pytest.raises(RunStoppedError, match=f"after 7 of 8 episodes: the last {says}"):
        play(tmp_path / "r", fail, say, ("b", "a"), max_concurrency=1)
    assert not play(tmp_path / "r", say, die, ("b", "a"), max_concurrency=1).failed


def test_time_that_is_over_ends_what_is_tried_again(tmp_path: Path) -> None:
    class Patient(Mock):
        reasons: list[Exception] = []  # noqa: RUF012

        async def complete(self, request: Request) -> Any:
            while not self.reasons:
                await asyncio.sleep(0)
            raise self.reasons[0]

        def stop_retrying(self, reason: Exception) -> None:
            self.reasons.append(reason)

    engine = Patient()
    with pytest.raises(BudgetReachedError, match=r"max_time 0.05 is reached: 0 of 8"):
        run(tmp_path / "r", engine, max_time=0.05)
    assert [type(reason) for reason in engine.reasons] == [BudgetSpentError]
