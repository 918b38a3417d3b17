"""An engine that dies ends what it takes part in, and nothing else: all other episodes are played, and the run can go
on."""

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness import storage
from harness.api import Request
from harness.api.errors import EngineFatalError, RequestError, SetupError
from harness.config import resolve, spec
from harness.config.project import builtin
from harness.engines.mock import Mock
from harness.evaluation.run import Run
from harness.evaluation.stages import execute
from harness.runtime.options import Options
from harness.runtime.runner import RunStoppedError
from tests.extensions.games.test_tournaments import BOLD, RANDOM, data
from tests.helpers.commands import invoke

ALIVE = [{"model": "a"}, {"model": "b"}, BOLD, RANDOM]
GAMES = 4


def bet(request: Request) -> str:
    return "ACTION: BET"


def refuse(request: Request) -> str:
    raise RequestError("connection refused")


def die(request: Request) -> str:
    raise EngineFatalError("CUDA error")


def down(request: Request) -> str:
    """Of an engine that does not start."""
    raise AssertionError("it is asked all the same")


class Down(Mock):
    """An engine whose server is not there."""

    async def start(self) -> None:
        raise SetupError("no server at x", hint="Start it first.")


def after(calls: int, fail: Callable[[Request], str]) -> Callable[[Request], str]:
    """An engine that answers so often, and then fails at everything."""
    asked = Counter[str]()

    def answer(request: Request) -> str:
        asked["calls"] += 1
        return bet(request) if asked["calls"] <= calls else fail(request)

    return answer


def play(folder: Path, pool: Iterable[Any], **engines: Callable[[Request], str]) -> Run:
    """A round robin of these contestants; each engine has a function."""
    written = data(pool=list(pool), games_per_pairing=GAMES) | {"models": {name: {"use": "mock"} for name in engines}}
    plan = resolve.plan(spec.parse(written, builtin()), builtin())
    started = {name: Down if function is down else Mock for name, function in engines.items()}
    plan = replace(
        plan, engines={name: started[name](model=name, function=function) for name, function in engines.items()}
    )
    return execute(plan, Options(output_path=folder, max_concurrency=8))


def finished(folder: Path) -> Counter[frozenset[str]]:
    """Pair of contestants → its finished games."""
    ends = storage.JournalState(*storage.journals(folder)).ends.values()
    return Counter(frozenset(end["labels"]["pairing"].split(" vs ")) for end in ends)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fail", "says"), [(refuse, r"requests to dead all failed"), (die, "CUDA error"), (after(9, refuse), "dead failed")]
)
def test_pairs_without_a_dead_engine_are_played(fail: Callable[[Request], str], says: str, tmp_path: Path) -> None:
    pool = [{"model": "dead"}, *ALIVE]
    with pytest.raises(RunStoppedError, match=says) as stopped:
        play(tmp_path, pool, dead=fail, a=bet, b=bet)
    whole = {pair: count for pair, count in finished(tmp_path).items() if "dead" not in pair}
    assert len(whole) == 6 and len({*whole.values()}) == 1, "six healthy pairs, all their games"
    done, planned = sum(finished(tmp_path).values()), 10 * next(iter(whole.values()))
    assert f"after {done} of {planned} episodes" in str(stopped.value)
    asked = Counter[str]()

    def count(request: Request) -> str:
        asked["healthy"] += 1
        return bet(request)

    run = play(tmp_path, pool, dead=bet, a=count, b=count)
    assert len(run.scores) == planned and not run.failed
    assert 0 < asked["healthy"] <= 2 * 2 * GAMES * 2, "their games with the one that was dead, and no other"
    assert [score.numbers for score in run.scores] == [
        score.numbers for score in play(tmp_path / "calm", pool, dead=bet, a=bet, b=bet).scores
    ]


def test_games_of_policies_are_played_though_the_only_engine_is_dead(tmp_path: Path) -> None:
    with pytest.raises(RunStoppedError, match="requests to dead all failed"):
        play(tmp_path, [{"model": "dead"}, BOLD, RANDOM], dead=refuse)
    assert [*finished(tmp_path)] == [frozenset({"bold", "random"})]


def test_a_contestant_whose_server_is_down_drops_out_and_plays_when_it_is_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool = [{"model": "dead"}, {"model": "a"}, BOLD]
    with pytest.raises(RunStoppedError, match="dead did not start: no server at x"):
        play(tmp_path, pool, dead=down, a=bet)
    each = next(iter(finished(tmp_path).values()))
    assert finished(tmp_path) == {frozenset({"a", "bold"}): each}
    code, out, err = invoke(capsys, "report", str(tmp_path))
    told = " ".join(out.split())
    assert code == 0 and "dead did not start" in err
    assert f"after these games of each: a {each} of {2 * each}, bold {each} of {2 * each}, dead 0 of" in told
    assert f"dead has dropped out, since its engine is down: its {2 * each} unplayed games are void" in told
    run = play(tmp_path, pool, dead=bet, a=bet)
    assert len(run.scores) == 3 * each and not run.failed
    assert "Interim" not in " ".join(note for table in run.tables for note in table.notes)
    with pytest.raises(SetupError, match="no server at x"):
        play(tmp_path / "all", pool, dead=down, a=down)
    assert not finished(tmp_path / "all"), "nothing to play but a mistake to mend"


def test_with_all_engines_dead_the_run_stops_at_once(tmp_path: Path) -> None:
    with pytest.raises(RunStoppedError, match="failed"):
        play(tmp_path, [{"model": "dead"}, {"model": "a"}], dead=refuse, a=refuse)
    assert not finished(tmp_path)


@pytest.mark.slow
def test_a_stopped_run_is_reported_with_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RunStoppedError):
        play(tmp_path, [{"model": "dead"}, *ALIVE], dead=refuse, a=bet, b=bet)
    done = sum(finished(tmp_path).values())
    meta = json.loads((tmp_path / "run.json").read_text("utf-8"))
    assert meta["status"] == "stopped"
    planned = meta["planned"]
    for output in ("text", "markdown", "latex", "csv", "json", "html"):
        code, out, err = invoke(capsys, "report", str(tmp_path), "--format", output)
        assert code == 0, err
        note = f"Not finished: {planned - done} of {planned} episodes are missing"
        assert note in out + err
        assert "requests to dead all failed" in err
    assert not (tmp_path / "scores.jsonl").exists(), "reporting writes nothing into the run"
