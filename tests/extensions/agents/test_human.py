"""The engine `human`: prompts on the screen, answers from a keyboard (a pseudo-terminal) or a pipe."""

import contextlib
import fcntl
import io
import json
import os
import re
import select
import subprocess
import sys
import termios
from pathlib import Path
from typing import Any

import pytest

from harness.api.errors import SetupError
from harness.evaluation.load_run import load_run
from harness.extensions.games.game_end import ended
from harness.extensions.games.game_result import winners
from tests.helpers.commands import ROOT, TOY, eval_toy, invoke
from tests.helpers.toy import TOY as PROJECT

ENVIRONMENT = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "TERM": "xterm", "COLUMNS": "80"}
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\r")


def command(folder: Path, *more: str, spec: str | None = None) -> list[str]:
    if spec is not None:
        return [sys.executable, "-m", "harness", "eval", "--spec", spec, "--output_path", str(folder), *more]
    return [sys.executable, "-m", "harness", "eval", "--spec", "toy", "--set", "matrix.agents=[2]", "--limit", "1",
            "--output_path", str(folder), *more]  # fmt: skip


def piped(answers: str, folder: Path, *more: str) -> "subprocess.CompletedProcess[str]":
    """A run whose answers come through a pipe."""
    return subprocess.run(
        command(folder, *more), input=answers, capture_output=True, text=True, cwd=TOY, env=ENVIRONMENT, timeout=60
    )


class Terminal:
    """A run in a pseudo-terminal of its own."""

    def __init__(self, folder: Path, *more: str, spec: str | None = None) -> None:
        self.screen, below = os.openpty()
        self.process = subprocess.Popen(
            command(folder, *more, spec=spec),
            stdin=below,
            stdout=below,
            stderr=below,
            cwd=TOY if spec is None else ROOT,
            env=ENVIRONMENT,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # type: ignore[arg-type,return-value]
        )
        self.settings = termios.tcgetattr(below)
        self.below = below
        self.unread = self.codes = ""

    def until(self, text: str) -> str:
        """What is on the screen up to `text`, without codes that drive it."""
        while text not in self.unread:
            assert select.select([self.screen], [], [], 30)[0], f"{text!r} does not come after {self.unread!r}"
            read = os.read(self.screen, 65536).decode(errors="replace")
            self.codes += read
            self.unread += ESCAPES.sub("", read)
        before, _, self.unread = self.unread.partition(text)
        return before

    def write(self, keys: str) -> None:
        os.write(self.screen, keys.encode())

    def end(self) -> int:
        """The exit code; the terminal is as it was before."""
        code = self.process.wait(30)
        assert termios.tcgetattr(self.below) == self.settings
        os.close(self.below)
        os.close(self.screen)
        return code


def moves(folder: Path) -> list[dict[str, Any]]:
    lines = map(json.loads, (folder / "journal.jsonl").read_text().splitlines())
    return [line for line in lines if line["k"] == "move"]


@pytest.mark.slow
def test_what_is_shown_is_the_prompt_and_only_what_is_new_in_it(tmp_path: Path) -> None:
    done = piped("a\nb\n1\n[2]\na\na\n", tmp_path, "--model", "human")
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("human: at most 6 questions in 1 episode\n")
    questions = done.stderr.split("\n=== ")[1:]
    assert questions[0] == (
        "episode agents=2/c0/0 · S0 · turn 0 · attempt 0 ===\n"
        "--- system\nYou are S0.\n--- user\nRound 0. Say one letter.\n"
        "--- legal moves, by number or as the prompt asks\n[1] a  [2] b\nS0> a\n"
    )
    assert questions[2] == (
        "episode agents=2/c0/0 · S0 · turn 1 · attempt 0 ===\n"
        "--- user\nRound 1. S0 said a. S1 said b. Say one letter.\n"
        "--- legal moves, by number or as the prompt asks\n[1] a  [2] b\nS0> 1\n"
    )
    run = load_run(tmp_path, PROJECT)
    assert [move["calls"][0]["text"] for move in moves(tmp_path)] == ["a", "b", "a", "b", "a", "a"]
    assert all(move["calls"][0]["latency"] >= 0 for move in moves(tmp_path))
    assert {score.model for score in run.scores} == {"human"} and "human" in done.stdout


@pytest.mark.slow
def test_a_wrong_answer_is_explained_and_asked_for_again_as_often_as_needed(tmp_path: Path) -> None:
    done = piped("x\n7\n\ny\na\n" + "b\n" * 5, tmp_path, "--model", "human")
    assert done.returncode == 0
    assert done.stderr.count("That cannot be read: ") == 4
    assert all(len(move["calls"]) == 1 for move in moves(tmp_path))
    report = json.loads((tmp_path / "run.json").read_text())["engines"]["model"]
    assert '"questions": 6' in json.dumps(report) and '"unreadable": 4' in json.dumps(report)


@pytest.mark.slow
def test_without_help_a_person_gets_what_a_model_gets(tmp_path: Path) -> None:
    done = piped("x\n" * 12, tmp_path, "--model", "human", "--model_args", "help=false")
    assert done.returncode == 0
    assert "legal moves" not in done.stderr and "cannot be read" not in done.stderr
    assert "turn 0 · attempt 1 ===\n--- user\n" in done.stderr  # the spec's retry, in its own words
    assert len(moves(tmp_path)[-1]["calls"]) == 2 and moves(tmp_path)[-1]["error_kind"] == "parse"


@pytest.mark.slow
def test_rules_that_were_read_in_this_episode_are_not_shown_again(tmp_path: Path) -> None:
    """A philosopher's turns are conversations of their own, each with the same system message."""
    words = ["--spec", "dpbench_quick", "--model", "human", "--limit", "1", "--output_path", str(tmp_path)]
    agents = "agents={default: {policy: random}, me: {model: model, agents: [P0]}}"
    command = [sys.executable, "-m", "harness", "eval", *words, "--set", agents]
    done = subprocess.run(
        command, input="2\nWAIT\n", capture_output=True, text=True, cwd=ROOT, env=ENVIRONMENT, timeout=60
    )
    hints = "; --set matrix.condition=[…] fewer conditions\n"
    assert re.match(r"human: at most \d+ questions in 20 episodes" + re.escape(hints), done.stderr)
    first, second = done.stderr.split("\n=== ")[1:3]
    assert "--- system\nYou are P0," in first and "[1] GRAB_LEFT   [2] GRAB_RIGHT  [3] RELEASE" in first
    assert "--- system, as before\n--- user\n" in second and "right fork" in second


@pytest.mark.slow
def test_where_the_input_ends_the_run_stops_and_goes_on_later(tmp_path: Path) -> None:
    done = piped("a\nb\n", tmp_path, "--model", "human")
    assert done.returncode != 0 and "Traceback" not in done.stderr
    assert "standard input ended before the answer agents=2/c0/0/S0/1/0" in done.stderr
    assert done.stderr.count("\n=== ") == 3  # the others are not asked any more
    again = piped("a\n" * 4, tmp_path, "--model", "human")
    assert again.returncode == 0 and "turn 0" not in again.stderr
    assert (
        "turn 1 · attempt 0 ===\n--- system\nYou are S0.\n--- user\nRound 0. Say one letter.\n--- assistant\na\n"
        in (again.stderr)
    )


@pytest.mark.slow
def test_two_people_share_a_keyboard_beside_a_policy(tmp_path: Path) -> None:
    models = "models={a: {use: human, name: Ann}, b: {use: human, name: Bo}}"
    agents = "agents={default: {policy: coin}, x: {model: a, agents: [S0]}, y: {model: b, agents: [S1]}}"
    more = ("--set", "matrix.agents=[3]", "--set", models, "--set", agents)
    done = piped("a\n" * 6, tmp_path, *more)
    assert done.returncode == 0, done.stderr
    assert done.stderr.startswith("human (Ann) and human (Bo): at most 6 questions in 1 episode\n")
    assert done.stderr.count("Hand the keyboard to Bo, who plays S1.") == 3
    assert "coin + human (Ann) + human (Bo)" in done.stdout and "S2>" not in done.stderr
    assert "human (Ann), human (Bo): a person played. This measures no model." in done.stdout


@pytest.mark.slow
def test_a_terminal_has_lines_to_edit_answers_of_several_lines_and_control_keys(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "--model", "human")
    assert "Ctrl-C stops" in terminal.until("S0> ")
    terminal.write("xa\x1b[D\x7f\n")  # left, and delete the x
    terminal.until("S1> ")
    terminal.write('"""\nb\n"""\n')
    terminal.until("S0> ")
    terminal.write("\x03")
    terminal.until("stopped; 0 of 1 episodes are in")
    assert terminal.end() == 130
    assert [move["calls"][0]["text"] for move in moves(tmp_path)] == ["a", "b"]

    terminal = Terminal(tmp_path, "--model", "human")
    assert "turn 1" in terminal.until("S0> ")
    terminal.write("\x04")
    terminal.until("To go on:")
    assert terminal.end() == 130

    terminal = Terminal(tmp_path, "--model", "human")
    for agent in ("S0", "S1") * 2:
        shown = terminal.until(f"\n{agent}> ")
        assert "episode/s" not in shown  # no bar is drawn over a question
        terminal.write("a\n")
    terminal.until("results: ")
    assert terminal.end() == 0


@pytest.mark.slow
def test_control_d_stops_also_where_the_keyboard_changes_hands(tmp_path: Path) -> None:
    models = "models={a: {use: human, name: Ann}, b: {use: human, name: Bo}}"
    agents = "agents={default: {model: a}, y: {model: b, agents: [S1]}}"
    terminal = Terminal(tmp_path, "--set", models, "--set", agents)
    terminal.until("Hand the keyboard to Ann, who plays S0.\nEnter when you are there: ")
    terminal.write("\n")
    terminal.until("S0> ")
    terminal.write("a\n")
    terminal.until("Enter when you are there: ")
    assert "\x1b[2J\x1b[3J" in terminal.codes  # the screen, and what can be scrolled back to
    terminal.write("\x04")
    assert "turn" not in terminal.until("stopped; 0 of 1 episodes are in")  # Bo's question is not shown to Ann
    assert terminal.end() == 130

    terminal = Terminal(tmp_path, "--set", models, "--set", agents)  # nor where Ann goes on after a pause
    assert "turn" not in terminal.until("Hand the keyboard to Bo, who plays S1.\nEnter when you are there: ")
    terminal.write("\x04")
    terminal.until("stopped; 0 of 1 episodes are in")
    assert terminal.end() == 130


@pytest.mark.slow
def test_a_hand_over_leaves_nothing_on_the_screen_behind_it_or_under_the_arrow_keys(tmp_path: Path) -> None:
    spec = tmp_path / "duel.yaml"
    spec.write_text(
        "{name: duel, task: {use: openspiel, game: kuhn_poker, instances: 2}, protocol: steps, "
        "models: {ann: {use: human, name: Ann}, bo: {use: human, name: Bo}}, "
        "agents: {default: {model: ann}, second: {model: bo, agents: [Player-1]}}}"
    )
    terminal = Terminal(tmp_path / "run", spec=str(spec))
    terminal.until("Enter when you are there: ")
    terminal.write("\n")
    terminal.until("Player-0> ")
    terminal.write("2\n")
    terminal.until("Enter when you are there: ")
    terminal.write("\n")
    terminal.until("Player-1> ")
    terminal.write("\x1b[A\n")  # the answer before: that of Ann is not there
    terminal.until("That cannot be read: no legal action")
    terminal.until("Player-1> ")
    before = len(terminal.codes)
    terminal.write("1\n")
    over = terminal.until("Enter when all have read this: ")
    assert "\x1b[2J\x1b[3J" in terminal.codes[before:]  # what Bo alone has read
    assert "is over ===\n--- Player-0 sees\n" in over and "--- Player-1 sees\n" in over
    assert "\n--- result\nPlayer-0 has won.\nReturns: Player-0 1, Player-1 -1\n" in over
    before = len(terminal.codes)
    terminal.write("\n")
    assert "turn" not in terminal.until("Hand the keyboard to Ann, who plays Player-0.\nEnter when you are there: ")
    assert "\x1b[2J\x1b[3J" in terminal.codes[before:]
    terminal.write("\x04")
    terminal.until("stopped; 1 of 2 episodes are in")
    assert terminal.end() == 130


@pytest.mark.parametrize(
    "game, answers, seen, result",
    [
        (
            "{use: openspiel, game: tic_tac_toe}",
            ["x(0,0)", "o(1,0)", "x(0,1)", "o(1,1)", "x(0,2)"],
            "--- Player-0 and Player-1 see\nThe moves so far, in order:\n- Player-0: x(0,0)\n- Player-1: o(1,0)\n"
            "- Player-0: x(0,1)\n- Player-1: o(1,1)\n- Player-0: x(0,2)\n\n"
            "What you see now:\n0 x x x\n1 o o .\n2 . . .\n  0 1 2\n",
            "Player-0 has won.\nReturns: Player-0 1, Player-1 -1",
        ),
        (
            "{use: openspiel, game: matrix_pd}",
            ["Cooperate", "Cooperate"],
            "--- Player-0 and Player-1 see\nThe moves so far, in order:\n- Player-0: Cooperate, Player-1: Cooperate\n",
            "All have got the same.\nReturns: Player-0 5, Player-1 5",
        ),
        pytest.param(
            "{use: textarena, env: TicTacToe-v0}",
            ["[0]", "[3]", "[1]", "[4]", "[2]"],
            "--- Player-0 sees\n[Player 0] [2]\n[GAME] Player 0 placed their symbol (O) in cell 2.\n"
            "[GAME] Current Board:\n\n O | O | O \n",
            "Player 0 has won!\nReturns: Player-0 1, Player-1 -1",
            marks=pytest.mark.slow,
        ),
    ],
    ids=["board", "moves", "textarena"],
)
def test_a_game_ends_with_the_last_board_and_who_has_won(
    game: str,
    answers: list[str],
    seen: str,
    result: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if "textarena" in game:
        pytest.importorskip("textarena")
    (tmp_path / "x.yaml").write_text(f"{{name: x, task: {game}, protocol: steps}}")
    words = ["eval", "--spec", str(tmp_path / "x.yaml"), "--limit", "1", "--model", "human", "--output_path"]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(answers) + "\n"))
    code, _, err = invoke(capsys, *words, str(tmp_path / "run"))
    assert code == 0, err
    over = err.partition(" is over ===\n")[2]
    assert seen in over and f"--- result\n{result}\n" in over
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(answers) + "\n"))
    code, _, err = invoke(capsys, *words, str(tmp_path / "as a model"), "--model_args", "help=false")
    assert code == 0 and "is over" not in err


@pytest.mark.parametrize(
    "facts",
    [
        {"end": ["limit"]},
        {"end": {}, "reason": 5},
        {"returns": {"a": 10**400, "b": 1}},
        {"returns": {"a": 1.7e308, "b": 1.7e308, "c": 0}},
        {"returns": {"a": float("nan"), "b": True}},
    ],
)
def test_facts_of_other_protocols_are_no_end_of_a_game(facts: dict[str, Any]) -> None:
    assert ended(facts, ["a"]) == winners(facts.get("returns")) == ""


def test_behind_the_end_of_a_game_the_keyboard_is_handed_over_also_to_whom_had_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All have read the end; what comes next is for one of them alone."""
    (tmp_path / "duel.yaml").write_text(
        "{name: duel, task: {use: openspiel, game: tic_tac_toe, instances: 2}, protocol: steps, "
        "models: {ann: {use: human, name: Ann}, bo: {use: human, name: Bo}}, "
        "agents: {default: {model: ann}, second: {model: bo, agents: [Player-1]}}}"
    )
    answers = ["x(0,0)", "o(1,0)", "x(0,1)", "o(1,1)", "x(0,2)"]  # the first move of a game is that of the last one
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(answers * 2) + "\n"))
    code, _, err = invoke(capsys, "eval", "--spec", str(tmp_path / "duel.yaml"), "--output_path", str(tmp_path / "run"))
    _, first, second = err.split(" is over ===\n")
    assert code == 0 and "Hand the keyboard to Ann, who plays Player-0." in first.partition(" turn ")[0], first
    assert "Hand the keyboard" not in second


@pytest.mark.slow
def test_a_person_judges_a_finished_run_and_goes_on_after_a_pause(tmp_path: Path) -> None:
    def harness(answers: str, *words: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-m", "harness", *words]
        return subprocess.run(
            command, input=answers, capture_output=True, text=True, cwd=ROOT, env=ENVIRONMENT, timeout=60
        )

    assert harness("", "eval", "--spec", "judged", "--limit", "2", "--output_path", str(tmp_path)).returncode == 0
    score = (
        "score",
        str(tmp_path),
        "--judge",
        "human",
        "--judge_metric",
        "use=judge,prompt=judges/helpfulness,name=mine",
    )
    stopped = harness("7\n", *score)
    assert stopped.returncode != 0 and "standard input ended before the answer" in stopped.stderr
    assert "Traceback" not in stopped.stderr
    done = harness('11\n{"rating": 10}\n', *score)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("\n=== ") == 1 and "Rate how helpful the answer is" in done.stderr
    assert "That cannot be read: rating: 11 is not from 1 to 10" in done.stderr
    assert "human rated 2 answers from 1 to 10" in done.stdout + done.stderr
    assert "8.50 [" in done.stdout and "mine: rated by human from 1 to 10" in done.stdout


@pytest.mark.slow
def test_text_of_other_agents_cannot_drive_the_terminal(tmp_path: Path) -> None:
    models = 'models={bad: {use: mock, text: "a\\e[2J\\e]0;x\\a"}}'
    agents = "agents={default: {model: model}, x: {model: bad, agents: [S1]}}"
    done = piped("a\n" * 3, tmp_path, "--model", "human", "--set", models, "--set", agents)
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stderr and "\x07" not in done.stderr


def test_no_terminal_no_run(tmp_path: Path) -> None:
    closed = [sys.executable, "-c", "import os, sys; os.close(0); os.execv(sys.executable, sys.argv[1:])"]
    words = command(tmp_path / "r", "--model", "human")
    done = subprocess.run([*closed, *words], capture_output=True, text=True, cwd=TOY, env=ENVIRONMENT, timeout=60)
    assert (
        done.returncode != 0 and "error: human answers in a terminal, and there is no standard input\n" in done.stderr
    )


def test_ray_has_no_terminal(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    more = ("--model", "human", "--executor", "ray", "--executor_args", "workers=1")
    with contextlib.chdir(TOY):
        code, _, err = eval_toy(capsys, tmp_path, *more)
    assert code == 2 and "error: human answers in a terminal, which workers of a Ray cluster do not have\n" in err


@pytest.mark.parametrize("name", ["a\x1b[2J", " ", "n" * 41])
def test_a_name_is_a_word_that_can_be_shown(name: str) -> None:
    with pytest.raises(SetupError, match="is not a name"):
        PROJECT.load("engines", "human")(name=name)
