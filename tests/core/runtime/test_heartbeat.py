"""How far a run is, in a line: also where no episode ends for long, and in a run that is resumed."""

import logging
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import harness
from harness.api import Request
from harness.cli.progress import Progress
from harness.config import resolve
from harness.config.project import builtin
from harness.config.spec import load
from harness.engines.mock import Mock
from harness.engines.usage import Usage
from harness.runtime import heartbeat, runner
from harness.runtime.heartbeat import Heartbeat
from harness.runtime.planned_turns import planned_turns
from harness.tables import EpisodeScore
from tests.helpers.commands import TOY as TOY_FOLDER
from tests.helpers.commands import eval_toy
from tests.helpers.toy import TOY


def finished(name: str, asked: int = 10) -> EpisodeScore:
    return EpisodeScore(name, "c", turns={"model": {"asked": asked, "answered": asked}})


class Run:
    """A run that is played by hand."""

    def __init__(self, total: int, done: int = 0, calls: int = 0, planned: float | None = None) -> None:
        self.now, self.scores = 100.0, {f"{n}": finished(f"{n}") for n in range(done)}
        self.usage = Usage(calls)
        self.heart = Heartbeat("toy · m", self.scores, total, self.usage, lambda: self.now, lambda: planned)

    def after(
        self, seconds: float, calls: int, tokens: int, episodes: int = 0, turns: int | None = None, sent: int = 0
    ) -> str:
        """The line after so many calls that were answered, of which `turns` ended a turn, and `sent` others."""
        self.now += seconds
        self.usage.calls += calls + sent
        self.usage.answers += calls
        self.usage.tokens += 3 * tokens
        self.usage.output_tokens += tokens
        self.usage.turns += calls if turns is None else turns
        for _ in range(episodes):
            name = f"{len(self.scores)}"
            self.scores[name] = finished(name)
        return self.heart.counts()


def test_a_line_has_calls_output_tokens_a_second_and_the_time_left() -> None:
    run = Run(total=135)
    assert run.after(30, 0, 0) == "0 of 0 calls answered"
    assert run.after(30, 300, 6000, sent=7) == "300 of 307 calls answered, 200 output tokens/s"
    assert run.after(60, 300, 6000, 2) == "600 of 607 calls answered, 100 output tokens/s, about 2 min left"
    # 133 episodes of 10 turns, of which 580 are made: 750 at 600 in the 90 seconds since the engine is up.
    assert run.after(30, 0, 30).startswith("600 of 607 calls answered, 1.0 output tokens/s")
    assert run.after(30, 0, 0).startswith("600 of 607 calls answered, about")


def test_the_time_that_an_engine_takes_to_start_is_no_time_of_turns() -> None:
    run = Run(total=10, planned=10)
    for _ in range(15):
        assert "left" not in run.after(30, 0, 0, sent=1)
    assert run.after(30, 50, 0).endswith("about 30 s left")


def test_there_is_an_estimate_before_the_first_episode_ends() -> None:
    assert Run(total=100).after(60, 100, 0) == "100 of 100 calls answered"
    assert Run(total=100, planned=10).after(60, 100, 0) == "100 of 100 calls answered, about 9 min left"


@given(st.integers(1, 6), st.integers(2, 40))
def test_calls_of_one_turn_count_once(tries: int, total: int) -> None:
    """Each turn takes several calls and a second; of an episode's ten turns half are made when others end."""
    run = Run(total=total)
    played = total // 2
    made = 10 * played + 5 * (total - played)
    line = run.after(made, made * tries, 0, played, turns=made)
    left = 5 * (total - played)
    assert line.endswith(f"about {left} s left" if left <= 30 else f"about {round(left / 60)} min left")


def test_open_episodes_that_are_longer_than_others_are_not_over() -> None:
    run = Run(total=16)
    assert run.after(100, 1000, 0, 7).endswith("about 1 s left"), "a turn each, at the least"


def test_what_an_earlier_process_played_counts_and_took_none_of_the_time() -> None:
    run = Run(total=100, done=50, calls=500)
    assert run.after(50, 50, 0) == "50 of 50 calls answered, about 8 min left"
    assert run.after(50, 50, 0, 10) == "100 of 100 calls answered, about 7 min left"


def test_episodes_of_policies_go_by_episodes() -> None:
    run = Run(total=4)
    run.now += 3600
    run.scores["a"] = EpisodeScore("a", "c")
    assert run.heart.counts() == "0 of 0 calls answered, about 3.0 h left"


def test_calls_of_other_processes_are_sent() -> None:
    """Workers report their calls and tokens."""
    run = Run(total=4)
    run.now, run.usage.calls, run.usage.tokens = 110.0, 20, 500
    assert run.heart.counts() == "20 calls sent, 50 tokens/s"


@given(st.integers(0, 50), st.lists(st.tuples(*[st.integers(0, 1000)] * 3, st.integers(0, 5)), max_size=9))
def test_no_count_breaks_the_line(done: int, steps: list[tuple[int, int, int, int]]) -> None:
    run = Run(total=done + 45, done=done, calls=done * 7)
    for seconds, calls, tokens, episodes in steps:
        assert "-" not in run.after(seconds, calls, tokens, episodes)


@pytest.mark.parametrize(("spec", "turns"), [("dpbench_quick", (3, 500)), ("arithmetic", (1, 1))])
def test_a_plan_says_how_many_turns_its_episodes_are_likely_to_have(spec: str, turns: tuple[int, int]) -> None:
    project = builtin()
    plan = resolve.plan(load(spec, project), project, Mock())
    planned = planned_turns([*plan.episodes()])
    assert planned is not None and turns[0] <= planned <= turns[1]
    assert planned_turns([]) is None


def answers(request: Request) -> str:
    return "ab"[request.seed % 2]


def test_a_run_logs_the_line_while_it_plays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(runner, "BEAT_SECONDS", 0.0)
    caplog.set_level(logging.INFO, "harness")
    harness.evaluate("toy", Mock(function=answers, latency=0.001), output_path=tmp_path / "r", project=TOY, repeats=1)
    lines = [record.message for record in caplog.records if record.name == heartbeat.__name__]
    assert lines[0].startswith("toy · mock: 0/8 episodes") and any("left" in line for line in lines)
    lines.clear()
    caplog.clear()
    harness.evaluate("toy", Mock(function=answers, latency=0.001), output_path=tmp_path / "r", project=TOY, repeats=1)
    assert not [record for record in caplog.records if record.name == heartbeat.__name__], "nothing is left to play"


def test_the_command_prints_it_off_a_terminal_and_not_with_quiet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(TOY_FOLDER)
    monkeypatch.setattr(runner, "BEAT_SECONDS", 0.0)
    model = "--model", "dice", "--model_args", "latency=0.001"
    assert " calls answered" in eval_toy(capsys, tmp_path / "r", *model)[2]
    assert " calls" not in eval_toy(capsys, tmp_path / "quiet", *model, "--quiet")[2]


def test_on_a_terminal_the_bar_has_it(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with Progress() as progress:
        progress.begin("toy")(None, 8)
        logging.getLogger("harness.x").info("toy: 0/8 episodes, 3 calls", extra={"counts": "3 calls"})
        shown = capsys.readouterr().err
    assert "3 calls" in shown and "0/8 episodes," not in shown


def test_a_line_says_what_engines_wait_for() -> None:
    waiting = ["", "batch_7: in_progress, 12/40 requests"]
    heart = Heartbeat("toy · m", {}, 3, Usage(), lambda: 1.0)
    heart.waiting_for = lambda: waiting
    assert heart.counts() == "0 of 0 calls answered, batch_7: in_progress, 12/40 requests"
