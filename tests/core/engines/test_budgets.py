"""What a run may spend: never more is asked, nothing is lost or asked twice, and the same command resumes the run."""

import asyncio
import contextlib
import json
import signal
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import harness
from harness import storage
from harness.api import Completion, Engine, Request, Thread
from harness.api.errors import BudgetSpentError, DataError
from harness.cli import main
from harness.config import project, resolve, spec
from harness.engines.bounded_usage import BoundedUsage
from harness.engines.gate import Gate, Shared
from harness.engines.mock import Mock
from harness.engines.usage import Budget
from harness.evaluation.stages import execute
from harness.runtime.options import Options
from harness.runtime.runner import BudgetReachedError, RunStoppedError
from tests.helpers.fake_openai import FakeOpenAI, status
from tests.helpers.journals import as_killed, sealed
from tests.helpers.toy import TOY, results, run

BUILTIN = project.builtin()
Dice = TOY.load("engines", "dice")


def meta(folder: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((folder / "run.json").read_text())
    return data


def recorded(folder: Path) -> int:
    """Calls that the journal holds: answers, those of turns that are still asked again, and failures."""
    turns: dict[Any, int] = {}
    for _, line in storage.lines(folder / "journal.jsonl"):
        if line["k"] in ("move", "part"):
            failed = line.get("error_kind", "parse") != "parse"
            turns[line["e"], line["s"], line["i"]] = len(line.get("calls", ())) + failed
    return sum(turns.values())


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """The toy run, without a budget: its folder, and the calls it asks."""
    folder, engine = tmp_path_factory.mktemp("whole") / "r", Dice()
    run(folder, engine)
    return folder, engine.asked


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("step", "width"),
    [(7, 3), (7, 1), (7, 256), (30, 3), (1, 3)],
)
def test_never_more_is_asked_and_the_same_command_goes_on(
    tmp_path: Path, whole: tuple[Path, list[str]], width: int, step: int
) -> None:
    folder, requests = tmp_path / "r", []
    for most in range(step, len(whole[1]), step):
        engine = Dice(latency=0.0005)
        with pytest.raises(BudgetReachedError, match=f"max_calls {most} is reached: . of 8 episodes") as caught:
            run(folder, engine, max_concurrency=width, max_calls=most)
        requests += engine.asked
        assert len(requests) == most == recorded(folder), (
            "what was in flight is recorded, also answers to be asked again"
        )
        assert meta(folder)["status"] == "stopped" and meta(folder)["stopped"] == caught.value.stopped
        assert caught.value.stopped["asked"]["calls"] == most and caught.value.stopped["of"] == 8
        assert not (folder / "scores.jsonl").exists(), "tables of a part do not pass for the whole"
    engine = Dice()
    run(folder, engine, max_concurrency=width, max_calls=len(whole[1]))
    assert results(folder) == results(whole[0])
    assert sorted(requests + engine.asked) == sorted(whole[1]), "nothing twice"
    assert meta(folder)["status"] == "finished" and "stopped" not in meta(folder)


def test_a_run_without_rest_is_not_even_started_again(tmp_path: Path) -> None:
    with pytest.raises(BudgetReachedError):
        run(tmp_path / "r", Dice(), max_calls=9)
    before = meta(tmp_path / "r")["stopped"]
    with pytest.raises(BudgetReachedError):
        run(tmp_path / "r", Dice(broken_start=True), max_calls=9)
    assert meta(tmp_path / "r")["stopped"] == before
    with pytest.raises(DataError, match=r"not finished: max_calls 9 ended it \(\d of 8 episodes\)"):
        harness.load_run(tmp_path / "r", TOY)
    with pytest.raises(RunStoppedError, match="the dice are gone"):
        run(tmp_path / "r", Dice(fatal_after=1), max_calls=20)
    assert meta(tmp_path / "r")["status"] == "stopped" and "gone" in meta(tmp_path / "r")["stopped"]["why"]


def test_a_budget_is_no_part_of_what_a_run_is(tmp_path: Path, whole: tuple[Path, list[str]]) -> None:
    bounded = tmp_path / "a" / "r"
    run(bounded, Dice(), max_calls=10**18 - 1, max_tokens_total=10**18 - 1, max_time=10**9)
    assert meta(bounded)["identity"] == meta(whole[0])["identity"] and results(bounded) == results(whole[0])


@pytest.mark.parametrize("width", [1, 6])
def test_tokens_are_those_of_answers_and_what_is_in_flight_comes_on_top(tmp_path: Path, width: int) -> None:
    engine = Dice()  # 11 tokens an answer, none where it fails
    with pytest.raises(BudgetReachedError, match="max_tokens_total 100 is reached") as caught:
        run(tmp_path / "r", engine, max_tokens_total=100, max_concurrency=width)
    used = caught.value.stopped["asked"]["tokens"]
    assert 100 <= used < 100 + 11 * width and used % 11 == 0
    first = len(engine.asked)
    with pytest.raises(BudgetReachedError) as caught:
        run(tmp_path / "r", engine, max_tokens_total=200, max_concurrency=width)
    assert 200 <= caught.value.stopped["asked"]["tokens"] < 200 + 11 * width, "earlier processes count"
    assert len(engine.asked) > first
    run(tmp_path / "r", engine)


def test_tokens_that_no_engine_counts_cannot_be_kept_to(tmp_path: Path) -> None:
    with pytest.raises(RunStoppedError, match="mock does not say how many tokens its calls take: max_tokens_total"):
        run(tmp_path / "r", Mock(text="a"), max_tokens_total=100, max_concurrency=1)
    assert recorded(tmp_path / "r") == 1, "the answer is kept"
    run(tmp_path / "r", Mock(text="a"), max_calls=1000)


def test_time_that_is_over_asks_nothing_new(tmp_path: Path, whole: tuple[Path, list[str]]) -> None:
    engine = Dice(broken_start=True)
    with pytest.raises(BudgetReachedError, match=r"max_time 1e-09 is reached: 0 of 8(.|\n)*for as long again"):
        run(tmp_path / "r", engine, max_time=1e-9)
    assert engine.asked == []
    with pytest.raises(BudgetReachedError):
        run(tmp_path / "policies", max_time=1e-9)
    run(tmp_path / "r", Dice(), max_time=3600)
    assert (tmp_path / "r" / "scores.jsonl").read_bytes() == (whole[0] / "scores.jsonl").read_bytes()


def test_the_clock_is_read_before_every_call() -> None:
    time = iter([100.0, 100.0, 104.9, 105.0])
    usage = BoundedUsage(Budget(max_time=5), now=lambda: next(time))
    engine, request = Gate(Mock(text="a"), shared=Shared(usage=usage)), Request("r", Thread(), {}, 1)

    async def play() -> None:
        await engine.start()
        assert (await engine.complete(request)).text == "a"
        with pytest.raises(BudgetSpentError, match="max_time 5 is reached"):
            await engine.complete(request)

    asyncio.run(play())
    assert (usage.calls, usage.unjournaled(), usage.unjournaled()) == (1, [1, 0], None)


def test_a_journal_shows_at_least_what_was_asked_whenever_the_process_dies(tmp_path: Path) -> None:
    folder, requests = tmp_path / "r", 0

    def answer(request: Request) -> str:
        nonlocal requests
        requests += 1
        assert requests <= storage.JournalState(folder / "journal.jsonl").calls <= 40
        return "a"

    with pytest.raises(BudgetReachedError):
        run(folder, Mock(function=answer), max_calls=40, repeats=4)
    assert requests == storage.JournalState(folder / "journal.jsonl").calls == 40
    with pytest.raises(BudgetReachedError):
        run(folder, Mock(function=answer), max_calls=40, repeats=4)
    assert requests == 40


def test_policies_cost_nothing(tmp_path: Path) -> None:
    assert len(run(tmp_path / "r", max_calls=1, max_tokens_total=1).scores) == 8


def test_ctrl_c_loses_no_count(tmp_path: Path) -> None:
    """Calls that were cut off were asked all the same: they count, though they have no answer."""
    counts: Counter[str] = Counter()
    interrupts = True

    async def answer(request: Request) -> str:
        counts[request.id] += 1
        if interrupts and counts.total() == 12:
            for _ in range(2):  # the first would wait for what is in flight
                signal.raise_signal(signal.SIGINT)
        if interrupts and counts.total() >= 10:
            await asyncio.Event().wait()
        return "?" if request.id.endswith("0") else "a"

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "r", Mock(function=answer), max_calls=20, max_concurrency=3)
    before, interrupts = counts.total(), False
    assert before == 12 and recorded(tmp_path / "r") < 12
    with pytest.raises(BudgetReachedError) as caught:
        run(tmp_path / "r", Mock(function=answer), max_calls=20, max_concurrency=3)
    assert counts.total() == 20 == caught.value.stopped["asked"]["calls"]
    run(tmp_path / "r", Mock(function=answer))
    assert sum(count > 1 for count in counts.values()) <= 3, "only what was in flight is asked again"


def test_failed_calls_count(tmp_path: Path, whole: tuple[Path, list[str]]) -> None:
    failed = sum(line.get("error_kind") == "context_length" for _, line in storage.lines(whole[0] / "journal.jsonl"))
    progress = storage.JournalState(whole[0] / "journal.jsonl")
    assert failed > 0 and progress.calls == len(whole[1]) and progress.tokens == 11 * (len(whole[1]) - failed)


@pytest.mark.parametrize("asked", ["[1]", "3", '["a", "b"]', "null", "{}"])
def test_a_damaged_count_is_reported_with_its_line(tmp_path: Path, asked: str) -> None:
    (tmp_path / "j").write_bytes(sealed({"k": "asked", "asked": [1, 2]}, {"k": "asked", "asked": json.loads(asked)}))
    with pytest.raises(DataError, match="j:2:1: not a line of a journal"):
        storage.JournalState(tmp_path / "j")


# --------------------------------------------------------------- with caches, several engines, two phases

SPEC: dict[str, Any] = {
    "name": "x",
    "task": {"use": "arithmetic", "size": 5, "terms": 2},
    "protocol": "${how.protocol}",
    "prompts": "qa/standard",
    "matrix": {"how": [
        {"name": "alone", "protocol": {"use": "vote", "agents": 3, "invalid": "vote"}},
        {"name": "voted", "protocol": {"use": "vote", "agents": 3}},
        {"name": "again", "protocol": {"use": "vote", "agents": 3, "ties": "none"}},
    ]},
    "metrics": ["score", {"use": "tokens", "name": "tokens"}],
}  # fmt: skip
QA: dict[str, Any] = {**SPEC, "metrics": ["score", "calls"]}


def counted() -> tuple[Mock, Counter[Any]]:
    counts: Counter[Any] = Counter()

    def answer(request: Request) -> Completion:
        counts[request.thread.messages[-1]["content"], request.seed] += 1
        return Completion(f"The answer is {request.seed % 7}", input_tokens=10, output_tokens=5)

    return Mock(function=answer), counts


@pytest.mark.sampled(1)
@pytest.mark.parametrize("width", [1, 2, 256])
def test_a_shared_call_is_asked_and_counted_once(tmp_path: Path, width: int) -> None:
    data = {**QA, "dedupe_calls": True}
    calm, _ = counted()
    expected = harness.evaluate(data, calm, output_path=tmp_path / "calm").scores
    engine, requests = counted()
    for most in (1, 6, 14):
        with pytest.raises(BudgetReachedError):
            harness.evaluate(data, engine, output_path=tmp_path / "r", max_calls=most, max_concurrency=width)
        assert requests.total() == most
    done = harness.evaluate(data, engine, output_path=tmp_path / "r", max_calls=15, max_concurrency=width)
    assert done.scores == expected and set(requests.values()) == {1} and requests.total() == 15
    assert {score.numbers["calls"] for score in done.scores} == {3}, "billed as if alone"


def test_what_a_cache_holds_costs_nothing(tmp_path: Path) -> None:
    engine, requests = counted()
    harness.evaluate(QA, engine, output_path=tmp_path / "a", use_cache=tmp_path / "cache")
    again = harness.evaluate(QA, engine, output_path=tmp_path / "b", use_cache=tmp_path / "cache", max_calls=1)
    assert requests.total() == 45 and len(again.scores) == 15


@pytest.mark.parametrize("width", [1, 256])
def test_a_spent_budget_keeps_nothing_from_ending_that_needs_nothing_new(
    tmp_path: Path, whole: tuple[Path, list[str]], width: int
) -> None:
    folder, calls = tmp_path / "r", len(whole[1])
    run(folder, Dice(), max_calls=calls)
    journal = folder / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(line for line in lines if b'"k":"end"' not in line))  # as kill -9 may leave it
    as_killed(folder)
    for name in ("scores.jsonl", "results.json", "tables.md"):
        (folder / name).unlink()
    run(folder, Dice(broken_start=True), max_calls=calls, max_concurrency=width)
    assert results(folder) == results(whole[0])


@pytest.mark.parametrize("width", [1, 256])
def test_a_spent_budget_leaves_what_a_cache_holds(tmp_path: Path, width: int) -> None:
    requests: list[str] = []

    def answer(request: Request) -> str:
        requests.append(request.id)
        return "a"

    run(tmp_path / "a", Mock(function=answer), use_cache=tmp_path / "cache")
    with pytest.raises(BudgetReachedError):
        run(tmp_path / "r", Mock(function=answer), max_calls=1)
    requests.clear()
    more: dict[str, Any] = {"use_cache": tmp_path / "cache", "max_calls": 1, "max_concurrency": width}
    assert len(run(tmp_path / "r", Mock(function=answer), **more).scores) == 8 and requests == []


@pytest.mark.slow
def test_time_that_is_over_ends_tries_that_wait(tmp_path: Path) -> None:
    import openai  # noqa: F401  the run's time must not pass with importing it

    slow = status(429, "slow down", headers={"Retry-After": "3600"})
    with FakeOpenAI(faults=lambda body: slow) as server:
        fields = {"model": "fake", "base_url": server.url, "max_backoff": 3600.0}
        with pytest.raises(BudgetReachedError, match="max_time 3 is reached: 0 of 8"):
            run(tmp_path / "r", "openai", model_args=fields, max_time=3, max_concurrency=4)
        assert 1 <= len(server.bodies) <= 4
        requests = recorded(tmp_path / "r")
    assert requests == 0


class Big(Engine):
    """One of several models; notes when it is started."""

    def __init__(self, name: str) -> None:
        self.name, self.started, self.asked = name, 0, 0

    @property
    def model(self) -> str:
        return self.name

    async def start(self) -> None:
        self.started += 1

    async def complete(self, request: Request) -> Completion:
        self.asked += 1
        await asyncio.sleep(0)
        return Completion("The answer is 1", input_tokens=1, output_tokens=1)


@pytest.mark.parametrize("sequential_engines", [True, False])
def test_engines_share_a_budget_and_none_is_started_for_nothing(tmp_path: Path, sequential_engines: bool) -> None:
    data = {
        **QA,
        "matrix": {"how": QA["matrix"]["how"][1:2]},
        "models": {"bb": {"use": "mock"}},
        "agents": {"default": "model", "bb": {"model": "bb", "agents": ["Agent-1"]}},
    }
    one, two = Big("a"), Big("bb")
    plan = resolve.plan(spec.parse(data, BUILTIN), BUILTIN, one)
    plan = replace(plan, engines={"model": one, "bb": two})
    with pytest.raises(BudgetReachedError):
        execute(plan, Options(output_path=tmp_path / "r", sequential_engines=sequential_engines, max_calls=10))
    assert one.asked + two.asked == 10
    if sequential_engines:  # two calls of each of five episodes, then nobody may ask the other model
        assert (one.asked, two.asked, two.started) == (10, 0, 0)
    done = execute(plan, Options(output_path=tmp_path / "r", sequential_engines=sequential_engines, max_calls=15))
    assert not done.failed and (one.asked, two.asked) == (10, 5)


@pytest.mark.slow
def test_a_second_phase_goes_on_in_the_middle(tmp_path: Path) -> None:
    data = {
        "name": "x",
        "task": {"use": "agentsnet/consensus", "graphs": "ring", "size": 4, "instances": 2, "source": "seeded"},
        "protocol": {"use": "local_rounds", "rounds": 2, "channel": "neighbors", "parse_retries": 1, "phases": "two"},
        "prompts": "agentsnet/standard",
        "metrics": ["solved", "calls", "parse_retries"],
        "tables": [{"title": "T", "rows": "model", "metrics": "calls"}],
    }
    counts: Counter[str] = Counter()

    def answer(request: Request) -> str:
        counts[request.id] += 1
        return "### Final Answer ### 0" if request.seed % 3 else "?"

    calm, wild = tmp_path / "calm" / "r", tmp_path / "wild" / "r"
    harness.evaluate(data, Mock(function=answer), output_path=calm, project=BUILTIN)
    calls, most, stops = set(counts), 0, 0
    counts.clear()
    while most < len(calls):
        most += 5
        try:
            harness.evaluate(data, Mock(function=answer), output_path=wild, project=BUILTIN, max_calls=most)
        except BudgetReachedError:
            stops += 1
            assert counts.total() == most
    assert stops == (len(calls) - 1) // 5 and results(wild) == results(calm)
    assert set(counts) == calls and set(counts.values()) == {1}


COMMAND = ["eval", "--spec", "toy", "--model", "dice", "--quiet", "--output_path"]


def test_the_command_says_how_far_it_is_and_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(tmp_path / "r")
    with contextlib.chdir(TOY.root):
        assert main([*COMMAND, folder, "--max_calls", "20", "--max_concurrency", "2"]) == 1
        out, err = capsys.readouterr()
        assert out == "" and err.startswith("stopped: max_calls 20 is reached: ") and "20 calls count as asked" in err
        assert "of 8 episodes are finished" in err and "with a higher max_calls or without it" in err
        assert main(["report", folder]) == 0
        out, err = capsys.readouterr()
        assert "of 8 episodes are missing (max_calls 20 ended it)" in err and "Agreement" in out
        assert main([*COMMAND, folder, "--max_calls", "1000"]) == 0
        assert "Agreement" in capsys.readouterr().out


def counting(**said: Any) -> tuple[Mock, list[Request]]:
    """An engine whose replies say this of what they took, and the requests that it was sent."""
    asked: list[Request] = []

    async def answer(request: Request) -> Completion:
        asked.append(request)
        await asyncio.sleep(0)
        return Completion("42", "stop", **said)

    return Mock(model="m", function=answer), asked


SUMS: dict[str, Any] = {"overrides": ["matrix.terms=[2]", "protocol.parse_retries=0"], "max_concurrency": 64}


@pytest.mark.parametrize("limit", [1, 40])
def test_a_budget_of_money_without_a_price_ends_the_run_after_one_call(tmp_path: Path, limit: int) -> None:
    """Also where no other call follows: the run is not as the user asked for it."""
    engine, asked = counting(input_tokens=10, output_tokens=1)
    with pytest.raises(RunStoppedError, match="max_cost cannot be kept: m has no price"):
        harness.evaluate("arithmetic", engine, max_cost=9, limit=limit, output_path=tmp_path / "r", **SUMS)
    assert len(asked) == 1


@pytest.mark.parametrize("width", [1, 40])
def test_a_run_that_finished_no_episode_says_how_to_finish_some(tmp_path: Path, width: int) -> None:
    with pytest.raises(BudgetReachedError) as caught:
        run(tmp_path / "r", Dice(), max_concurrency=width, max_calls=1)
    assert ("max_concurrency 1 it plays one" in str(caught.value)) == (width > 1)


def test_a_budget_of_money_is_kept_where_replies_say_what_they_cost(tmp_path: Path) -> None:
    engine, asked = counting(cost=0.5)
    run = harness.evaluate("arithmetic", engine, max_cost=100, limit=40, output_path=tmp_path / "r", **SUMS)
    assert len(run.scores) == len(asked) == 40


def test_a_budget_of_tokens_that_are_not_counted_ends_the_run_also_at_its_last_call(tmp_path: Path) -> None:
    engine, _ = counting()
    with pytest.raises(RunStoppedError, match="max_tokens_total cannot be kept"):
        harness.evaluate("arithmetic", engine, max_tokens_total=9, limit=1, output_path=tmp_path / "r", **SUMS)


@pytest.mark.parametrize(
    ("budget", "over"),
    [
        ({"max_tokens_total": 20}, "420 tokens over, by 38 replies"),
        ({"max_cost": 1.0}, "19.00 USD over, by 38 replies"),
    ],
)
def test_the_end_says_what_replies_in_flight_used_beyond_it(tmp_path: Path, budget: Any, over: str) -> None:
    engine, asked = counting(input_tokens=10, output_tokens=1, cost=0.5)
    with pytest.raises(BudgetReachedError, match=over):
        harness.evaluate(
            "arithmetic", engine, limit=90, output_path=tmp_path / "r", **budget,
            overrides=[*SUMS["overrides"], "prices={m: {input: 1, output: 1}}"], max_concurrency=40,
        )  # fmt: skip
    assert len(asked) == 40
