"""Choosing where a run is played, and what a worker process does; no cluster is needed for either."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import pytest

import harness
from harness import storage
from harness.api.errors import (
    BudgetSpentError,
    ContextLengthError,
    EngineFatalError,
    RequestError,
    SetupError,
    SpecError,
    StorageError,
    UserError,
)
from harness.cli import main
from harness.config.plan import Plan
from harness.engines.mock import Mock
from harness.extensions.ray import worker_locks
from harness.extensions.ray._worker import Worker, WorkerUpdate
from harness.runtime.executors import Local, choose_executor
from harness.runtime.options import Options
from harness.storage import locks
from tests.extensions.ray.workers import NOTHING, Dice, Slow, assigned, plan, with_worker
from tests.helpers.disk import full_disk
from tests.helpers.toy import TOY

ROOT = Path(__file__).parents[2]


# --------------------------------------------------------------------------------------------- choosing


def test_this_process_unless_an_option_says_otherwise() -> None:
    assert isinstance(choose_executor(plan(), Options()), Local)
    assert isinstance(
        choose_executor(plan("executor={use: ray, workers: 2}"), Options(executor={"use": "local"})), Local
    )


def test_a_spec_or_a_command_says_where() -> None:
    result: Any = choose_executor(plan("executor={use: ray, workers: 4, num_gpus: 0.5}"), Options())
    assert (result.workers, result.num_gpus, result.num_cpus) == (4, 0.5, 1)
    result = choose_executor(plan(), Options(executor={"use": "ray", "workers": 3, "resources": {"tpu": 1}}))
    assert (result.workers, result.resources) == (3, {"tpu": 1})


@pytest.mark.parametrize(
    ("executor", "says"),
    [
        ("rai", "there is no executor 'rai'(.|\n)*Did you mean ray"),
        ("ray", "executor 'ray': (.|\n)*workers"),
        ("{use: ray, workers: 0}", "'workers' must be ≥ 1, found 0"),
        ("{use: ray, workers: 2, num_gpu: 1}", "Did you mean num_gpus"),
        ("{use: ray, workers: 2, start_timeout: 0}", "start_timeout"),
        ("{use: ray, workers: 2, resources: {x: -1}}", "'x' must be ≥ 0, found -1"),
        ("{use: local, workers: 2}", "workers"),
    ],
)
def test_what_is_wrong_is_reported_with_its_place(tmp_path: Path, executor: str, says: str) -> None:
    with pytest.raises(SpecError, match=says) as caught:
        harness.evaluate("toy", overrides=[f"executor={executor}"], project=TOY, output_path=tmp_path / "r")
    assert "overrides=['executor=" in str(caught.value)
    assert not (tmp_path / "r").exists()


def test_the_command_lines_own_mistakes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "--spec", "agentsnet_quick", "--executor_args", "workers=2"]) == 2
    assert "--executor_args without --executor" in capsys.readouterr().err


@pytest.mark.parametrize("executor", [{"workers": 2}, {"use": 5}, {}, [], 5, ["ray"], True])
def test_what_is_no_executor_at_all(tmp_path: Path, executor: Any) -> None:
    with pytest.raises(SpecError, match=r"executor: an executor is a name, or a mapping(.|\n)*Available: local, ray"):
        harness.evaluate("toy", executor=executor, project=TOY, output_path=tmp_path / "r")
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(
    ("changes", "options", "says"),
    [
        (("dedupe_calls=true",), Options(), "only one process can know of"),
        (("executor.address=ray://head:10001",), Options(), "a Ray client is not on the cluster"),
    ],
)
def test_what_several_processes_cannot_do_is_refused(changes: tuple[str, ...], options: Options, says: str) -> None:
    result = plan("executor={use: ray, workers: 2}", *changes)
    with pytest.raises(SetupError, match=says):
        choose_executor(result, options).check(result, options)


def test_where_it_is_played_is_no_part_of_what_is_measured() -> None:
    assert plan("executor={use: ray, workers: 4}").digest == plan().digest


def test_a_run_that_says_ray_goes_on_without_it(tmp_path: Path) -> None:
    def run(*overrides: str, **more: Any) -> harness.Run:
        return harness.evaluate("toy", overrides=overrides, project=TOY, output_path=tmp_path / "r", **more)

    first = run("executor={use: ray, workers: 4}", executor="local")
    assert run(resume=True).scores == first.scores


@pytest.mark.slow
def test_without_ray_the_package_is_named(tmp_path: Path) -> None:
    program = f"""
import sys
sys.modules["ray"] = None  # as where it is not installed
sys.argv = "harness eval --spec toy --executor ray --executor_args workers=2 --output_path {tmp_path}/r".split()
from harness.cli import main
sys.exit(main())
"""
    environment = {"PYTHONPATH": str(ROOT.parent)}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=TOY.root, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 2 and "mas-eval-harness[ray]" in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "r").exists()


# ------------------------------------------------------------------------------------------ one worker


async def nothing(worker: Worker, made: Plan) -> None:
    raise AssertionError("it should not have started")


def test_a_worker_plays_what_it_is_given_into_its_own_journal(tmp_path: Path) -> None:
    async def act(worker: Worker, made: Plan) -> list[str]:
        await worker.add(assigned(made)[:3], NOTHING)
        report: list[str] = []
        while len(report) < 3:
            news = await worker.updates()
            assert news.failure is None
            report += [score.id for score in news.scores]
        assert worker_locks.path_of(tmp_path, 7).exists()
        return report

    report = with_worker(tmp_path, Dice(), act)
    assert sorted(report) == [f"agents=2/c{i}/0" for i in range(3)]
    assert set(storage.JournalState(*storage.journals(tmp_path)).ends) == set(report)
    assert [path.name for path in storage.journals(tmp_path)] == ["journal-7.jsonl"]


def test_a_dead_engine_is_reported_as_a_value(tmp_path: Path) -> None:
    async def act(worker: Worker, made: Plan) -> Any:
        await worker.add(assigned(made), NOTHING)
        while True:
            failure = (await worker.updates()).failure
            if failure is not None:
                return failure, (await worker.updates()).failure

    first, again = with_worker(tmp_path, Dice(fatal_after=3), act)
    assert isinstance(first, EngineFatalError) and again is first
    assert not worker_locks.path_of(tmp_path, 7).exists() or locks.holder(worker_locks.path_of(tmp_path, 7)) is None


class Failing(Mock):
    """Fails at everything but the first requests, or is gone. (A worker has its own copy of an engine, of no class.)"""

    fatal = False
    well = 0

    async def complete(self, request: Any) -> Any:
        await asyncio.sleep(0)
        if Failing.well:
            Failing.well -= 1
            return await super().complete(request)
        raise EngineFatalError("gone") if self.fatal else RequestError("refused")


@pytest.mark.parametrize("end", ["nothing is left", "another worker's engine is gone", "it answers again"])
def test_failures_are_confirmed_once_the_engine_answers(tmp_path: Path, end: str) -> None:
    """A worker's hand is empty often; others may still be playing, and this one's engine may be dying."""

    def ends() -> set[str]:
        return set(storage.JournalState(*storage.journals(tmp_path)).ends)

    async def act(worker: Worker, made: Plan) -> tuple[list[str], set[str], set[str], Any]:
        doubted: list[str] = []
        Failing.well = 1  # else it would be given up for dead
        for arguments in (assigned(made)[:2], assigned(made)[2:3]):
            await worker.add(arguments, NOTHING)
            expected = len(doubted) + len(arguments)
            while len(doubted) < expected:
                news = await worker.updates()
                assert news.failure is None and news.scores == []
                doubted += news.paused
        before = ends()
        scores: set[str] = set()
        if end == "it answers again":
            Failing.well = 1000
            await worker.add(assigned(made)[3:4], NOTHING)
            while len(scores) < 4:
                scores |= {score.id for score in (await worker.updates()).scores}
        Failing.well = 0
        news = await worker.end(end if "gone" in end else None)
        return doubted, before, scores | {score.id for score in news.scores}, news.failure

    doubted, before, report, failure = with_worker(tmp_path, Failing(text="a"), act)
    assert len(set(doubted)) == len(doubted) == 3 and before == set()
    assert ends() == report and report >= (set(doubted) if "again" in end else set())
    assert isinstance(failure, EngineFatalError) == (end == "nothing is left") and (failure is None or not report)


class Full(Mock):
    """Refuses everything."""

    async def complete(self, request: Any) -> Any:
        raise ContextLengthError("too long")


@pytest.mark.parametrize("known", [(), ("model",)])
def test_refusals_are_results_at_once_where_the_model_has_answered_elsewhere(
    tmp_path: Path, known: tuple[str, ...]
) -> None:
    """Else a worker whose first requests are refused would leave them to be asked again when the run stops."""

    async def act(worker: Worker, made: Plan) -> WorkerUpdate:
        await worker.add(assigned(made)[:1], NOTHING)
        news: WorkerUpdate = await worker.updates()
        return news

    news = with_worker(tmp_path, Full(text="a"), act, live_models=known)
    assert (len(news.scores), len(news.paused)) == ((1, 0) if known else (0, 1))


class Deaf(Mock):
    """Refuses everything, then fails at everything."""

    refusals: ClassVar[int] = 0

    async def complete(self, request: Any) -> Any:
        Deaf.refusals -= 1
        raise ContextLengthError("too long") if Deaf.refusals >= 0 else RequestError("no answer")


@pytest.mark.parametrize("told", ["add", "end"])
def test_refusals_are_results_once_another_worker_has_had_an_answer(tmp_path: Path, told: str) -> None:
    """Also where the budget is spent, which would leave them to be asked again otherwise."""

    async def act(worker: Worker, made: Plan) -> tuple[list[str], WorkerUpdate]:
        await worker.add(assigned(made)[:1], (900, 0))
        paused = (await worker.updates()).paused
        spent = BudgetSpentError("max_calls", 1000)
        if told == "add":
            await worker.add([], spent, ["model", "another"])
            return paused, await worker.updates()
        return paused, await worker.end(spent, live_models=["model"])

    paused, news = with_worker(tmp_path, Full(text="a"), act, options=Options(max_concurrency=2, max_calls=1000))
    assert [score.id for score in news.scores] == paused and len(paused) == 1 and news.failure is None
    assert set(storage.JournalState(*storage.journals(tmp_path)).ends) == set(paused)


def test_a_disk_that_fails_just_then_is_a_failure_and_no_traceback(tmp_path: Path) -> None:
    async def act(worker: Worker, made: Plan) -> WorkerUpdate:
        await worker.add(assigned(made)[:1], NOTHING)
        await worker.updates()
        with full_disk(1), pytest.raises(StorageError):
            worker._episodes.journal.append({"k": "asked", "asked": [0, 0]})
            worker._episodes.journal.flush()
        await worker.add([], NOTHING, ["model"])
        news: WorkerUpdate = await worker.updates()
        return news

    assert isinstance(with_worker(tmp_path, Full(text="a"), act).failure, StorageError)


def test_a_worker_that_is_refused_everything_goes_on_if_others_are_answered(tmp_path: Path) -> None:
    """Refusals of all its first requests stop no run whose model has answered elsewhere; failures still do."""

    async def act(worker: Worker, made: Plan) -> tuple[list[int], Any]:
        Deaf.refusals = len(assigned(made)) * 100
        await worker.add(assigned(made)[:1], NOTHING)
        counts = [len((await worker.updates()).paused)]
        await worker.add(assigned(made)[1:7], NOTHING, ["model"])
        scores: set[str] = set()
        while len(scores) < 7:
            scores |= {score.id for score in (await worker.updates()).scores}
        Deaf.refusals = 0
        await worker.add(assigned(made)[7:], NOTHING, ["model"])
        news = await worker.updates()
        while not news.paused:
            news = await worker.updates()
        return [*counts, len(scores), len(news.paused)], (await worker.end()).failure

    counts, failure = with_worker(tmp_path, Deaf(text="a"), act)
    assert counts == [1, 7, 1] and isinstance(failure, EngineFatalError)


def test_answers_under_way_are_recorded_when_the_run_stops(tmp_path: Path) -> None:
    async def act(worker: Worker, made: Plan) -> int:
        Slow.asked.clear()
        Slow.let = asyncio.Event()
        await worker.add(assigned(made), NOTHING)
        while len(Slow.asked) < 2:
            await asyncio.sleep(0)
        ending = asyncio.ensure_future(worker.end("another worker's engine is gone"))
        for _ in range(10):
            await asyncio.sleep(0)
        assert not ending.done()
        Slow.let.set()
        await ending
        return len(Slow.asked)

    requests = with_worker(tmp_path, Slow(text="a"), act)
    lines = [line for _, line in storage.lines(tmp_path / "journal-7.jsonl")]
    assert 2 <= requests <= 4, "nothing new is asked"
    assert sum(len(line.get("calls", ())) for line in lines) == requests


def test_a_worker_without_anything_to_do_ends_at_once(tmp_path: Path) -> None:
    async def act(worker: Worker, made: Plan) -> Any:
        return await worker.end("why ever")

    assert with_worker(tmp_path, Dice(), act) == WorkerUpdate(reports={"model": {}})
    assert asyncio.run(Worker().end()) == WorkerUpdate()


def test_a_dead_engine_does_not_wait_for_those_who_wait_for_episodes(tmp_path: Path) -> None:
    async def act(worker: Worker, made: Plan) -> Any:
        await worker.add(assigned(made)[:1], NOTHING)  # of two that could be played at once
        return (await worker.updates()).failure

    engine = Failing(text="a")
    engine.fatal = True
    assert isinstance(with_worker(tmp_path, engine, act), EngineFatalError)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"version": "0.0"}, "has harness .*, not 0.0(.|\n)*same installation"),
        ({"digest": "x"}, "has other prompts"),
        (
            {"code": {"play": {}, "task": {"registry/tasks/pick.py": "0"}, "metrics": {}}},
            "has other code: .*registry/tasks/pick.py",
        ),
        ({"folder": Path("/nowhere/at/all")}, "does not see /nowhere/at/all(.|\n)*share"),
    ],
)
def test_a_machine_that_is_not_like_the_others_is_found_out(tmp_path: Path, changes: Any, says: str) -> None:
    failure = with_worker(tmp_path, Dice(), nothing, **changes)
    assert isinstance(failure, SetupError)
    with pytest.raises(SetupError, match=says):
        raise failure


def test_a_worker_that_another_process_is_already(tmp_path: Path) -> None:
    lock = locks.Lock(tmp_path, ".lock-7")
    failure = with_worker(tmp_path, Dice(), nothing)
    lock.release()
    assert isinstance(failure, StorageError) and str(failure) == f"another process is worker 7 of {tmp_path}"


def test_a_lock_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / ".lock-7").mkdir()
    failure = with_worker(tmp_path, Dice(), nothing)
    assert isinstance(failure, StorageError) and str(failure) == f"cannot write to {tmp_path}: Is a directory"


def test_a_project_that_is_not_there_too(tmp_path: Path) -> None:
    async def work(here: str, root: str) -> UserError | EngineFatalError | None:
        return await Worker().start(0, here, root, b"")

    for here, root in (("/nowhere", str(TOY.root)), (str(Path.cwd()), str(TOY.root))):
        failure = asyncio.run(work(here, root))
        assert isinstance(failure, SetupError), failure


def test_an_engine_that_cannot_start(tmp_path: Path) -> None:
    failure = with_worker(tmp_path, Dice(broken_start=True), nothing)
    assert isinstance(failure, SetupError) and "Buy some" in str(failure)


def test_a_worker_reports_what_became_of_its_first_turns(tmp_path: Path) -> None:
    async def act(worker: Worker, made: Plan) -> WorkerUpdate:
        await worker.add(assigned(made), NOTHING)
        left = len(assigned(made))
        while left:
            left -= len((await worker.updates()).scores)
        return await worker.end()

    news = with_worker(tmp_path, Mock(text="gibberish"), act)
    counts = news.counts["model"]
    assert counts.asked == counts.answered == counts.complete > 0 == counts.parsed
    assert {reply.text for reply in counts.unread} == {"gibberish"}
