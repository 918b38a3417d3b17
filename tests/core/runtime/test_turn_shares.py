"""A run says once why replies are not read, and `stop_unless` ends it; its results stay what they are."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import harness
from harness.api import CallsTools, Completion, Engine, Move, Request, plugin
from harness.api.errors import SetupError
from harness.engines.mock import Mock
from harness.runtime.runner import RunStoppedError
from harness.runtime.turn_shares import FIRST, TurnCounts, TurnShares
from tests.helpers.commands import invoke

CHANGES = ("matrix.condition=[sim3nc]", "repeats=3", "protocol.parse_retries=0")
"""Three episodes of 24 turns."""
LOOP = "the left fork is on the left and " * 20


def dpbench(folder: Path, model: Engine, **options: Any) -> harness.Run:
    return harness.evaluate("dpbench_quick", model, overrides=CHANGES, output_path=folder, **options)


def garbage(request: Request) -> Completion:
    return Completion("I will\neat.", finish_reason="stop", input_tokens=9, output_tokens=3)


def good(request: Request) -> Completion:
    return Completion("ACTION: WAIT", finish_reason="stop")


def cut_off(request: Request) -> Completion:
    return Completion("First, let me think about the " + request.id, finish_reason="length", output_tokens=128)


def looping(request: Request) -> Completion:
    return Completion(LOOP, finish_reason="length", output_tokens=128)


def thinking(request: Request) -> Completion:
    return Completion("", reasoning="Well, then …", finish_reason="length", output_tokens=128)


@plugin
class Holds(Engine, CallsTools):
    """Keeps to no form unless it is asked to, and then to the first choice."""

    @property
    def model(self) -> str:
        return "holds"

    async def complete(self, request: Request) -> Completion:
        return Completion("?" if request.constraint is None else "ACTION: WAIT", finish_reason="stop")


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "harness.runtime.reply_advice"]


# ------------------------------------------------------------------------------------- counting


MOVES = {
    "parsed": Move("a", "act", 1, calls=(Completion("x", finish_reason="stop"),)),
    "unread": Move("a", "act", None, "why", "parse", (Completion("x", finish_reason="length"),)),
    "failed": Move("a", "act", None, "down", "request"),
    "limit": Move("a", "act", None, "limit", "limit"),
}


@given(st.data())
def test_the_turns_that_began_first_are_counted_whatever_ends_first(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(sorted(MOVES)), min_size=1, max_size=130))
    order = data.draw(st.permutations(range(len(kinds))))
    reports: list[TurnCounts] = []
    shares = TurnShares(lambda model, counts: reports.append(counts))
    for number in range(len(kinds)):
        shares.begin("m", str(number), "a")
    for number in order:
        shares.end(str(number), "c", MOVES[kinds[number]])
        if reports:  # at any moment: the first 20, 40, 80, … turns, all of them and no others
            whole = [size for size in (FIRST, 2 * FIRST, 4 * FIRST) if _counts(kinds[:size]) == _numbers(reports[-1])]
            assert whole and max(whole) <= len(kinds)
    assert bool(reports) == (len(kinds) >= FIRST)
    shares.report_all()
    assert reports and len(reports[-1].unread) <= 20
    if len(kinds) < FIRST:
        assert _numbers(reports[-1]) == _counts(kinds)


def _counts(kinds: list[str]) -> tuple[int, ...]:
    asked = len(kinds) - kinds.count("limit")
    return asked, asked - kinds.count("failed"), kinds.count("parsed"), kinds.count("parsed")


def _numbers(counts: TurnCounts) -> tuple[int, ...]:
    return counts.asked, counts.answered, counts.parsed, counts.complete


def test_a_part_of_a_turn_is_not_its_end() -> None:
    reports: list[TurnCounts] = []
    shares = TurnShares(lambda model, counts: reports.append(counts))
    shares.begin("m", "e", "a")
    shares.end("e", "c", Move("a", "act", None, None, "unfinished", (Completion("x"),)))
    shares.report_all()
    assert not reports
    shares.end("e", "c", MOVES["parsed"])
    shares.report_all()
    assert [_numbers(counts) for counts in reports] == [(1, 1, 1, 1)]


# ------------------------------------------------------------------------------------- what is said


def test_a_run_says_once_what_is_wrong(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run = dpbench(tmp_path / "run", Mock(model="m", function=garbage))
    first, shape, last = said(caplog)
    assert re.fullmatch("m: 0 % of its first [248]0 turns were parsed", first)
    assert shape == "  20 of 20 unread replies: no valid answer was found after 'ACTION:'; for example: I will eat."
    assert last.startswith("  The run goes on.") and not run.failed


def test_good_runs_and_few_turns(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    dpbench(tmp_path / "good", Mock(function=good))
    assert not said(caplog), "nothing is wrong"
    harness.evaluate("arithmetic", Mock(text="?"), limit=2, output_path=tmp_path / "two")
    assert said(caplog)[0] == "mock: 0 % of its first 6 turns were parsed", "fewer than 20 are judged at the end"


@pytest.mark.parametrize(
    ("function", "shape", "help_"),
    [
        (cut_off, "cut off at max_tokens before the answer", "--gen_kwargs max_tokens=512 (128 now)"),
        (thinking, "thoughts, and no answer before max_tokens", "--gen_kwargs max_tokens=512 (128 now)"),
        (looping, "repeats itself until max_tokens", None),
        (garbage, "no valid answer was found after 'ACTION:'", None),
    ],
)
def test_it_says_only_what_may_help(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, function: Any, shape: str, help_: str | None
) -> None:
    dpbench(tmp_path / "run", Mock(model="m", function=function))
    lines = said(caplog)
    assert shape in lines[1] and all(len(line) < 400 and "\n" not in line for line in lines)
    helps = [line for line in lines if "what may help" in line]
    assert helps == ([f"  what may help: {help_}"] if help_ else [])


def test_decoding_within_the_form_is_proposed_where_the_engine_can(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    dpbench(tmp_path / "free", Holds())
    assert any("--set structured_output=true" in line for line in said(caplog))
    caplog.clear()
    changes = (*CHANGES, "structured_output=true")
    harness.evaluate("dpbench_quick", Holds(), overrides=changes, output_path=tmp_path / "held")
    assert not said(caplog), "it helps"


def test_a_reply_cannot_forge_a_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    dpbench(tmp_path / "run", Mock(text="\x1b[2J\n\rerror: \u202e" + "x" * 5_000))
    assert all(line.isprintable() and len(line) < 400 for line in said(caplog))


# ------------------------------------------------------------------------------------- stop_unless


def test_it_ends_the_run_which_resumes_to_the_same_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words: tuple[str, ...] = ("eval", "--spec", "dpbench_quick", "--model", "mock", "--model_args", "text=no")
    words += tuple(word for change in CHANGES for word in ("--set", change))
    code, _, err = invoke(capsys, *words, "--output_path", str(tmp_path / "a"), "--stop_unless", "parsed=20%")
    assert code == 1 and re.search(r"mock: 0 % of the first \d+ turns were parsed, fewer than 20 %", err)
    assert "Traceback" not in err and "The run goes on" not in err
    meta = json.loads((tmp_path / "a" / "run.json").read_text())
    assert meta["status"] == "stopped" and meta["stopped"]["episodes"] < meta["stopped"]["of"] == 3
    for name in "ab":
        code, _, err = invoke(capsys, *words, "--output_path", str(tmp_path / name))
        assert code == 0, err
    resumed, whole = ((tmp_path / name / "scores.jsonl").read_text() for name in "ab")
    assert resumed == whole


def test_a_model_that_is_read_runs_to_its_end(tmp_path: Path) -> None:
    run = dpbench(tmp_path / "run", Mock(function=good), stop_unless={"parsed": 1, "answered": 1, "complete": 1})
    assert run.meta["status"] == "finished"
    with pytest.raises(RunStoppedError, match=r"fewer than 50 % .stop_unless='complete=50%'"):
        dpbench(tmp_path / "cut", Mock(function=cut_off), stop_unless={"complete": 0.5})


def test_nothing_is_stopped_where_nothing_is_left(tmp_path: Path) -> None:
    one = ["matrix.terms=[2]", "protocol.parse_retries=0"]
    options: Any = {"limit": 20, "overrides": one, "stop_unless": {"parsed": 0.5}}
    run = harness.evaluate("arithmetic", Mock(text="?"), output_path=tmp_path / "run", **options)
    assert run.meta["status"] == "finished" and len(run.scores) == 20


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("parsed=20%", {"parsed": 0.2}),
        ("parsed=0.2, complete=70 %", {"parsed": 0.2, "complete": 0.7}),
        ("answered=1", {"answered": 1.0}),
        *((wrong, None) for wrong in ("parsed", "parsed=20", "parsed=101%", "read=20%", "truncated=3%", "parsed=", "")),
        ("parsed=1%,parsed=2%", None),
    ],
)
def test_shares_on_the_command_line(text: str, found: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ("eval", "--spec", "arithmetic", "--limit", "1", "--output_path", str(tmp_path / "run"))
    code, _, err = invoke(capsys, *words, "--quiet", "--stop_unless", text)
    assert code == (2 if found is None else 0), err
    if found is None:
        assert "--stop_unless: takes parsed, answered, complete" in err and "Traceback" not in err
    assert ("complete=70%" in err) == (text.startswith("truncated"))


@pytest.mark.parametrize("wrong", [{"read": 0.5}, {"parsed": 2}, {"parsed": "20%"}, {"parsed": True}, 0.5])
def test_wrong_shares_in_python(wrong: Any, tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="stop_unless"):
        harness.evaluate("arithmetic", output_path=tmp_path / "run", stop_unless=wrong)


def test_warnings_are_shown_by_a_quiet_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("eval", "--spec", "arithmetic", "--limit", "3", "--model", "mock", "--model_args", "text=no")
    code, _, err = invoke(capsys, *words, "--quiet", "--output_path", str(tmp_path / "run"))
    assert code == 0 and "mock: 0 % of its first 9 turns were parsed" in err
