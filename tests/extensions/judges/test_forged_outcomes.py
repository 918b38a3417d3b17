"""A journal states moves and outcomes; `harness score` plays the moves again, and the outcomes must be theirs."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import evaluate, storage
from harness.api.errors import DataError
from harness.evaluation.load_run import load_run
from harness.evaluation.rescore import rescored
from harness.extensions.judges.judge_runs import judge
from tests.helpers.commands import invoke
from tests.helpers.journals import sealed

Line = dict[str, Any]
SPECS = {
    "agentsnet_quick": ("matrix.problem=[coloring, matching]",),
    "dpbench_quick": ("matrix.condition=[seq3c]", "repeats=2"),
    "silo_quick": ("protocol.max_rounds=4", "matrix.agents=[2]", "matrix.problem=[global_maximum]"),
    "repeated_dilemmas": ("protocol.max_timesteps=6", "matrix.stage=[{inherits: stag hunt}]"),
    "discussion_quick": (
        "matrix.hears=[star]",
        "matrix.drafts=[one]",
        "matrix.style=[{inherits: critical}]",
        "tables=[]",
    ),
    "judged": (),
}


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("honest")
    return evaluate("agentsnet_quick", overrides=SPECS["agentsnet_quick"], output_path=folder / "run").folder


def forged(folder: Path, change: Callable[[list[Line]], list[Line] | None]) -> Path:
    """The run with other lines in its journal, whose checksums and lengths are right."""
    journal = folder / "journal.jsonl"
    lines = [line for _, line in storage.lines(journal)]
    for line in lines:
        line.pop("crc", None)
    journal.write_bytes(sealed(*(change(lines) or lines)))
    meta = json.loads((folder / "run.json").read_text())
    meta["journals"] = {journal.name: journal.stat().st_size}
    (folder / "run.json").write_text(json.dumps(meta))
    return folder


def first(lines: list[Line], kind: str) -> Line:
    return next(line for line in lines if line["k"] == kind)


def another_answer(lines: list[Line]) -> None:
    answers = first(lines, "end")["outcome"]["answers"]
    answers[next(iter(answers))] = "Group 1" if answers[next(iter(answers))] != "Group 1" else "Group 2"


def another_fact(lines: list[Line]) -> None:
    facts = first(lines, "end")["outcome"]["facts"]
    facts[next(iter(facts))] = 77


def one_fact_more(lines: list[Line]) -> None:
    first(lines, "end")["outcome"]["facts"]["proof"] = True


def no_outcome(lines: list[Line]) -> None:
    end = first(lines, "end")
    end["outcome"], end["error"] = None, "ValueError: a bug"


def another_move(lines: list[Line]) -> None:
    """The last action of an agent, which is its answer."""
    end = first(lines, "end")
    moves = [line for line in lines if line["k"] == "move" and line["e"] == end["e"]]
    moves[-1]["a"] = "Group 1" if moves[-1]["a"] != "Group 1" else "Group 2"


def another_turn(lines: list[Line]) -> None:
    first(lines, "move")["t"] = "finish"


def one_move_less(lines: list[Line]) -> list[Line]:
    end = first(lines, "end")
    end["moves"] -= 1
    last = [line for line in lines if line["k"] == "move" and line["e"] == end["e"]][-1]
    return [line for line in lines if line is not last]


def one_move_more(lines: list[Line]) -> list[Line]:
    end = first(lines, "end")
    last = [line for line in lines if line["k"] == "move" and line["e"] == end["e"]][-1]
    end["moves"] += 1
    more = {**last, "b": last["b"] + 1, "p": 0, "i": last["i"] + 1}
    return [more, *lines]


FORGERIES: dict[Callable[[list[Line]], list[Line] | None], str] = {
    another_answer: "its outcome has answers.",
    another_fact: "its outcome has facts.",
    one_fact_more: "its outcome has facts.proof true, its moves lead to null",
    no_outcome: "it failed (ValueError: a bug), and its moves lead to an outcome",
    another_move: "its outcome has answers.",
    another_turn: "playing its moves again failed: RuntimeError: batch 0 has the turns",
    one_move_less: "playing its moves again failed: RuntimeError: batch ",
    one_move_more: "the protocol ends before the last 1 of the recorded moves",
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("change", [pytest.param(change, id=change.__name__) for change in FORGERIES])
def test_an_outcome_that_is_not_that_of_the_moves_is_refused(
    change: Callable[[list[Line]], list[Line] | None], honest: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = forged(Path(shutil.copytree(honest, tmp_path / "forged")), change)
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    episode = json.loads((honest / "scores.jsonl").read_text().splitlines()[0])["id"]
    code, out, err = invoke(capsys, "score", str(folder))
    assert (code, out) == (2, "")
    assert f"in the journal of {folder} the outcome of an episode is not that of the recorded moves:" in err
    assert f"  {episode}: " in err and FORGERIES[change] in err
    assert "The journal was changed after the run" in err
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before, "nothing is written"
    [problem] = {transcript.problem for transcript in load_run(folder).transcripts() if transcript.id == episode}
    assert problem is not None, "and who looks at the episode reads it there"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", SPECS)
def test_an_honest_run_is_graded_again(name: str, tmp_path: Path) -> None:
    run = evaluate(name, overrides=SPECS[name], limit=1, output_path=tmp_path / "run")
    assert rescored(run.folder).scores == run.scores
    assert all(transcript.problem is None for transcript in run.transcripts())


def test_many_are_counted_and_three_are_named(honest: Path, tmp_path: Path) -> None:
    def all_of_them(lines: list[Line]) -> None:
        for line in lines:
            if line["k"] == "end":
                line["outcome"]["group"] = 1

    folder = forged(Path(shutil.copytree(honest, tmp_path / "forged")), all_of_them)
    count = len((honest / "scores.jsonl").read_text().splitlines())
    with pytest.raises(DataError, match=rf"the outcome of {count} episodes .*\n.*\n.*\n.*\n  … and {count - 3} more"):
        rescored(folder)


def test_code_that_changed_since_is_named(honest: Path, tmp_path: Path) -> None:
    """Not every difference is a forgery: a protocol that was changed leads elsewhere with the same moves."""
    folder = forged(Path(shutil.copytree(honest, tmp_path / "run")), another_answer)
    meta = json.loads((folder / "run.json").read_text())
    name = next(iter(meta["code"]["play"]))
    meta["code"]["play"][name] = "0" * 64
    (folder / "run.json").write_text(json.dumps(meta))
    with pytest.raises(DataError, match=f"Changed since the run: {name}.*grade it with the old code"):
        rescored(folder)


def test_a_judge_is_not_shown_what_no_agent_answered(tmp_path: Path) -> None:
    run = evaluate("judged", limit=1, output_path=tmp_path / "run")
    shutil.rmtree(run.folder / "judges")

    def a_better_answer(lines: list[Line]) -> None:
        outcome = first(lines, "end")["outcome"]
        key = "group" if outcome["group"] is not None else next(iter(outcome["answers"]))
        (outcome if key == "group" else outcome["answers"])[key] = "A thorough answer."

    forged(run.folder, a_better_answer)
    with pytest.raises(DataError, match="is not that of the recorded moves"):
        judge(run.folder)
