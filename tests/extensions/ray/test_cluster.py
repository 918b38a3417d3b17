"""A real Ray cluster of several worker processes on this machine: what comes out is what one process gives."""

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from harness import storage
from harness.api import Request
from harness.api.errors import EngineFatalError, RequestError, SetupError
from harness.engines.mock import Mock
from harness.evaluation.rescore import rescored
from harness.runtime.runner import RunStoppedError
from harness.storage import finished_episodes
from tests.extensions.ray.clusters import RAY, killing, recorded, run
from tests.extensions.ray.workers import Dice
from tests.helpers.toy import TOY, results

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("cluster")]
ROOT = Path(__file__).parents[2]


@pytest.fixture
def calm(tmp_path: Path) -> Path:
    """The same run in one process, undisturbed."""
    run(tmp_path / "calm" / "r", Dice(), "local")
    return tmp_path / "calm" / "r"


def test_many_workers_give_what_one_process_gives(tmp_path: Path, calm: Path) -> None:
    folder = tmp_path / "many" / "r"
    done = run(folder, Dice(latency=0.01), log_samples=True, log_requests=True)
    assert results(folder) == results(calm)
    assert recorded(folder) == recorded(calm) and set(recorded(folder).values()) == {1}
    meta = done.meta["executor"]
    assert sum(worker["episodes"] for worker in meta["workers"]) == len(done.scores) == 24
    assert meta["lost"] == []
    assert set(done.meta["engines"]["model"]) >= {f"worker {worker['worker']}" for worker in meta["workers"]}
    for kind in ("samples", "requests"):
        lines = [line for file in folder.glob(f"{kind}-*.jsonl") for line in file.read_text().splitlines()]
        assert len(lines) >= 24, kind
    assert not list(folder.glob(".lock-*"))
    rescored(folder, TOY)
    assert results(folder) == results(calm)
    run(tmp_path / "again" / "r", "replay", "local", model_args={"path": str(folder)})
    assert results(tmp_path / "again" / "r") == results(calm)


def test_every_worker_takes_part(tmp_path: Path) -> None:
    """Each waits with its first answer until all have been asked something."""
    there = tmp_path / "there"
    there.mkdir()

    async def answer(request: Request) -> str:
        import asyncio

        (there / str(os.getpid())).touch()
        for _ in range(6000):
            if len(list(there.iterdir())) == 3:
                return "ab"[request.seed % 2]
            await asyncio.sleep(0.01)
        raise RuntimeError("the others have nothing to do")

    run(tmp_path / "one" / "r", Mock(function=lambda request: "ab"[request.seed % 2]), "local")
    done = run(tmp_path / "many" / "r", Mock(function=answer))
    assert results(tmp_path / "many" / "r") == results(tmp_path / "one" / "r")
    meta = done.meta["executor"]["workers"]
    assert {str(worker["process"]) for worker in meta} == {file.name for file in there.iterdir()}
    assert min(worker["episodes"] for worker in meta) >= 1


def test_policies_need_no_engine(tmp_path: Path) -> None:
    run(tmp_path / "one" / "r", executor="local")
    run(tmp_path / "many" / "r")
    assert results(tmp_path / "many" / "r") == results(tmp_path / "one" / "r")


def test_a_workers_death_changes_nothing(tmp_path: Path, calm: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Killed in the middle of its episodes; others go on with them from the moves that it had recorded."""
    folder = tmp_path / "wild" / "r"
    done = run(folder, Dice(latency=0.05), on_score=killing(folder, lambda count: [0] if count >= 4 else []))
    assert results(folder) == results(calm)
    assert len(done.meta["executor"]["lost"]) == 1 and "worker 0" in done.meta["executor"]["lost"][0]
    assert recorded(folder) == recorded(calm), "a recorded move was asked again"
    assert capfd.readouterr().out == ""
    assert not list(folder.glob(".lock-*"))


def test_a_frozen_worker_is_replaced(tmp_path: Path) -> None:
    """Its process is there, and so is its connection; it only answers nothing any more."""
    frozen = tmp_path / "frozen"

    def answer(request: Request) -> str:
        with contextlib.suppress(FileExistsError):
            frozen.open("x").close()
            os.kill(os.getpid(), signal.SIGSTOP)
        return "ab"[request.seed % 2]

    folder = tmp_path / "many" / "r"
    done = run(folder, Mock(function=answer), {**RAY, "ping_timeout": 4})
    run(tmp_path / "one" / "r", Mock(function=answer), "local")
    assert results(folder) == results(tmp_path / "one" / "r")
    assert len(done.meta["executor"]["lost"]) == 1 and not list(folder.glob(".lock-*"))


def test_only_what_is_in_flight_in_a_dying_worker_is_asked_again(tmp_path: Path) -> None:
    """It dies when all that it was answered is on the disk. (Else there is also what came in during the last tenth of a
    second: how many answers those are is a matter of time and nothing else.)"""
    folder, log, lost = tmp_path / "many" / "r", tmp_path / "log", tmp_path / "lost"
    flying: set[str] = set()
    answered: list[str] = []

    def first() -> bool:
        with contextlib.suppress(FileExistsError):
            lost.open("x").close()
            return True
        return False

    def journaled() -> int:
        [mine] = [p for p in folder.glob(".lock-*") if json.loads(p.read_text() or "{}").get("pid") == os.getpid()]
        journal = folder / f"journal-{mine.name.rpartition('-')[2]}.jsonl"
        return sum(len(line.get("calls", ())) for _, line in storage.lines(journal))

    async def answer(request: Request) -> str:
        import asyncio

        with log.open("a") as file:
            file.write(request.id + "\n")
        flying.add(request.id)
        if len(answered) >= 12 and first():
            answered.append("the last")
            while journaled() < len(answered) - 1:
                await asyncio.sleep(0.01)
            lost.write_text("\n".join(flying))
            os.kill(os.getpid(), signal.SIGKILL)
        if "the last" in answered:
            await asyncio.Event().wait()
        await asyncio.sleep(0.001)
        flying.remove(request.id)
        answered.append(request.id)
        return "ab"[request.seed % 2]

    run(tmp_path / "one" / "r", Mock(function=lambda request: "ab"[request.seed % 2]), "local")
    done = run(folder, Mock(function=answer))
    assert results(folder) == results(tmp_path / "one" / "r") and len(done.meta["executor"]["lost"]) == 1
    counts = Counter(log.read_text().split())
    again = {name for name, times in counts.items() if times > 1}
    assert again == set(lost.read_text().split()) and set(counts.values()) <= {1, 2}
    assert 1 <= len(again) <= 4, "max_concurrency"


def test_workers_may_die_again_and_again(tmp_path: Path, calm: Path) -> None:
    folder = tmp_path / "wild" / "r"
    report = killing(folder, lambda count: [0] if count < 8 else [0, 1] if count < 12 else [0, 1, 2, 3])
    done = run(folder, Dice(latency=0.03), on_score=report)
    assert results(folder) == results(calm) and recorded(folder) == recorded(calm)
    assert len(done.meta["executor"]["lost"]) in (3, 4)  # on a busy machine the last may have finished before


def test_without_any_worker_left_the_run_stops_and_goes_on_elsewhere(tmp_path: Path, calm: Path) -> None:
    folder = tmp_path / "wild" / "r"
    report = killing(folder, lambda count: [0, 1, 2] if count >= 5 else [])
    with pytest.raises(RunStoppedError, match=r"every worker was lost 1 times; the last: worker \d"):
        run(folder, Dice(latency=0.03), {**RAY, "max_restarts": 0}, on_score=report)
    before = recorded(folder)
    assert before and max(before.values()) == 1
    run(folder, Dice(), "local", resume=True)
    assert results(folder) == results(calm) and recorded(folder) == recorded(calm)


def test_a_run_goes_on_with_more_workers_than_it_began_with(tmp_path: Path, calm: Path) -> None:
    folder = tmp_path / "wild" / "r"
    with pytest.raises(RunStoppedError, match="the dice are gone"):
        run(folder, Dice(fatal_after=30), "local")
    with pytest.raises(RunStoppedError, match=r"after \d+ of \d+ episodes: the dice are gone(.|\n)*same command again"):
        run(folder, Dice(fatal_after=9))
    assert not list(folder.glob(".lock-*")), "all workers are stopped when one engine is gone"
    data = json.loads((folder / "run.json").read_text())
    played = {f"worker {one['worker']}" for one in data["executor"]["workers"]}
    assert played and played <= set(data["engines"]["model"]), "what their engines report is kept"
    before = {path.name for path in storage.journals(folder)}
    done = run(folder, Dice(), {**RAY, "workers": 4})
    assert results(folder) == results(calm) and recorded(folder) == recorded(calm)
    written = {f"journal-{worker['worker']}.jsonl" for worker in done.meta["executor"]["workers"]}
    assert written.isdisjoint(before), "nobody writes to another process's journal"


def test_no_episode_waits_for_a_worker_that_answers_nothing(tmp_path: Path) -> None:
    """One worker answers nothing until all other episodes are finished, by the other one."""
    slow, log = tmp_path / "slow", tmp_path / "log"

    async def answer(request: Request) -> str:
        import asyncio
        from contextlib import suppress
        from time import monotonic

        with suppress(FileExistsError), slow.open("x") as file:  # one of the two, also when both start at once
            file.write(str(os.getpid()))
        if slow.read_text() == str(os.getpid()):
            until = monotonic() + 600
            while len(set(log.read_text().split() if log.exists() else ())) < 7:
                await asyncio.sleep(0.01)
                if monotonic() > until:
                    raise RuntimeError("the others are not played")
        else:
            with log.open("a") as file:
                file.write(request.id.rsplit("/", 3)[0] + "\n")
        return "a"

    done = run(tmp_path / "r", Mock(function=answer), {**RAY, "workers": 2}, repeats=1, max_concurrency=1)
    assert not done.failed
    assert sorted(worker["episodes"] for worker in done.meta["executor"]["workers"]) == [1, 7]


def test_what_is_the_users_to_mend(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="Buy some"):
        run(tmp_path / "a", Dice(broken_start=True))
    lock = threading.Lock()
    with pytest.raises(SetupError, match="mock cannot be sent to workers"):
        run(tmp_path / "b", Mock(function=lambda request: str(lock.acquire())))
    with pytest.raises(SetupError, match=r"no room within 1 s for a worker, which takes 1 CPU, 8 GPU(.|\n)*4 CPU"):
        run(tmp_path / "e", Dice(), {**RAY, "num_gpus": 8, "start_timeout": 1})


def test_a_dying_engines_failures_are_no_results(tmp_path: Path) -> None:
    """Here as in one process: the run stops, and when the engine is back everything is asked again."""
    dead = tmp_path / "dead"

    def answer(request: Request) -> str:
        if dead.exists():
            raise RequestError("still failing")
        return "a"

    for name, executor in (("one", "local"), ("many", {**RAY, "workers": 1})):
        dead.touch()
        with pytest.raises(RunStoppedError, match="still failing"):
            run(tmp_path / name / "r", Mock(function=answer), executor, max_concurrency=1)
        lines = [
            line for path in storage.journals(tmp_path / name / "r") for _, line in finished_episodes.confirmed(path)
        ]
        assert not [line for line in lines if line["k"] == "end" or line.get("error")], name
        dead.unlink()
        done = run(tmp_path / name / "r", Mock(function=answer), executor, max_concurrency=1)
        assert not done.failed
    assert results(tmp_path / "many" / "r") == results(tmp_path / "one" / "r")


def test_failures_that_stay_are_results_in_any_engine(tmp_path: Path) -> None:
    """Each episode's last request fails, and others are answered before and after it."""

    def answer(request: Request) -> str:
        if "/c1/" in request.id:
            raise RequestError("refused")
        return "a"

    for name, executor in (("one", "local"), ("many", RAY)):
        run(tmp_path / name / "r", Mock(function=answer), executor, max_error_rate=1.0)
    assert results(tmp_path / "many" / "r") == results(tmp_path / "one" / "r")


def test_workers_lost_in_their_last_moments_take_no_episode_with_them(tmp_path: Path) -> None:
    """When all else is played their failures are pending, and die with their engines."""
    folder, ill = tmp_path / "many" / "r", tmp_path / "ill"
    calm = run(tmp_path / "one" / "r", Mock(text="a"), "local")
    ill.touch()
    others = {score.id for score in calm.scores if "/c1/" not in score.id}

    class Dying(Mock):
        async def complete(self, request: Request) -> Any:
            import asyncio

            if "/c1/" in request.id and ill.exists():
                while not others <= set(storage.JournalState(*storage.journals(folder)).ends):
                    await asyncio.sleep(0.01)
                raise RequestError("gone")
            return await super().complete(request)

        async def close(self) -> None:
            if ill.exists():
                os._exit(1)

    with pytest.raises(RunStoppedError, match=r"the run stopped after \d+ of \d+ episodes: .* lost"):
        run(folder, Dying(text="a"), {**RAY, "workers": 2}, max_concurrency=64)  # those that wait keep nobody waiting
    assert not [
        line for path in storage.journals(folder) for _, line in finished_episodes.confirmed(path) if line.get("error")
    ]
    ill.unlink()
    done = run(folder, Dying(text="a"), {**RAY, "workers": 2})
    assert results(folder) == results(tmp_path / "one" / "r") and not done.failed


def test_answers_of_the_others_are_kept_when_one_engine_is_gone(tmp_path: Path) -> None:
    first, log = tmp_path / "first", tmp_path / "log"

    async def answer(request: Request) -> str:
        import asyncio

        try:
            first.open("x").close()
        except FileExistsError:
            with log.open("a") as file:
                file.write(request.id + "\n")
            while not (tmp_path / "gone").exists():
                await asyncio.sleep(0.01)
            await asyncio.sleep(1)  # the driver hears of it before this answer comes
            return "a"
        while not log.exists():
            await asyncio.sleep(0.01)
        (tmp_path / "gone").touch()
        raise EngineFatalError("this one is gone")

    with pytest.raises(RunStoppedError, match="this one is gone"):
        run(tmp_path / "r", Mock(function=answer), {**RAY, "workers": 2})
    lines = [line for path in storage.journals(tmp_path / "r") for _, line in storage.lines(path)]
    assert sum(len(line.get("calls", ())) for line in lines) == len(log.read_text().split()) > 0


@pytest.mark.parametrize("resources", [{"CPU": 1}, {"x": 0.000001}])
def test_what_ray_cannot_count(tmp_path: Path, resources: Any) -> None:
    with pytest.raises(SetupError, match="Ray cannot count num_cpus, num_gpus, resources of a worker: "):
        run(tmp_path / "r", Dice(), {**RAY, "resources": resources})
    assert not (tmp_path / "r").exists()


def test_what_no_machine_has_is_reported_at_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(SetupError, match="no room within 1 s"):
        run(tmp_path / "r", Dice(), {**RAY, "resources": {"x": 1}, "start_timeout": 1})
    assert ["which takes 1 CPU, 1 x" in message and "waiting 1 s" in message for message in caplog.messages] == [True]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("workers=2,resources={x: 1}", "2 workers need 2 x; here are 0"),
        ("workers=2,num_gpus=1000", "2 workers need 2000 GPU; here are"),
        ("workers=2,address=127.0.0.1:1", "no Ray cluster at '127.0.0.1:1': "),
        ("workers=2,address=nowhere.invalid:6379", "no Ray cluster at 'nowhere.invalid:6379': "),
    ],
)
def test_where_nothing_can_come_no_caller_waits(tmp_path: Path, arguments: str, says: str) -> None:
    command = [sys.executable, "-m", "harness", "eval", "--spec", "toy", "--output_path", str(tmp_path / "r")]
    command += ["--executor", "ray", "--executor_args", arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT.parent)}
    done = subprocess.run(command, cwd=TOY.root, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and says in done.stderr and "Traceback" not in done.stderr


def test_a_cache_may_be_shared_on_one_machine(tmp_path: Path) -> None:
    run(tmp_path / "a" / "r", Dice(), use_cache=tmp_path / "cache")
    done = run(tmp_path / "b" / "r", Dice(), use_cache=tmp_path / "cache")
    assert results(tmp_path / "a" / "r") == results(tmp_path / "b" / "r")
    assert sum(text["cache_hits"] for text in done.meta["engines"]["model"].values()) > 0


def test_the_driver_interrupted_then_killed_then_without_ray(tmp_path: Path, calm: Path) -> None:
    """The command line as a person has it, with a cluster of its own each time."""
    folder, log = tmp_path / "wild" / "r", tmp_path / "log"
    command = f"{sys.executable} -m harness eval --spec toy --repeats 3 --max_concurrency 4 --output_path {folder}"
    command += f" --model dice --model_args latency=0.1,log={log}"
    ray = command + " --executor ray --executor_args workers=2"
    environment = {**os.environ, "PYTHONPATH": str(ROOT.parent)}
    for sent, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)):
        process = subprocess.Popen(
            shlex.split(ray), cwd=TOY.root, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert process.stderr is not None
        before = process.stderr.readline()  # what an earlier process finished
        line = process.stderr.readline()
        assert "episodes" in before and "episodes" in line
        process.send_signal(sent)
        out, errors = process.communicate()
        assert process.returncode == code and out == "", errors
        if code > 0:
            reported = set(json.loads((folder / "run.json").read_text())["engines"]["model"])
            assert reported and reported <= {"worker 0", "worker 1"}  # on a busy machine one may not have begun
    last = subprocess.run(shlex.split(command), cwd=TOY.root, env=environment, capture_output=True, text=True)
    assert last.returncode == 0, last.stderr
    assert json.loads((folder / "run.json").read_text())["status"] == "finished"
    assert results(folder) == results(calm) and set(recorded(folder).values()) == {1}


def test_agents_of_ones_own_play_in_workers_and_end_with_them(tmp_path: Path) -> None:
    program = tmp_path / "agent.py"
    program.write_text(
        "import json, os, sys\n"
        "open(sys.argv[1] + str(os.getpid()), 'w').close()\n"
        "for line in sys.stdin:\n"
        "    said = json.loads(line)['messages'][-1]['content']\n"
        "    print(json.dumps({'text': 'I take ' + 'ab'[len(said) % 2]}), flush=True)\n"
    )
    started = tmp_path / "started"
    started.mkdir()
    command = f"{sys.executable} {program} {started}/"
    folders = [tmp_path / name / "r" for name in ("one", "many")]
    for folder, executor in zip(folders, ("local", RAY), strict=True):
        done = run(folder, "agent", executor, model_args={"command": command})
        assert not done.failed
    assert results(folders[0]) == results(folders[1]) and recorded(folders[0]) == recorded(folders[1])
    workers = {int(file.name) for file in started.iterdir()}
    assert len(workers) > 1 and not [process for process in workers if Path(f"/proc/{process}").exists()]
