"""Questions about rules: a program answers them, from what the prompt says alone."""

import sys
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.api import Case, Request
from harness.api.errors import UserError
from harness.config import resolve, spec
from harness.config.project import builtin
from harness.engines.mock import Mock
from harness.extensions.yaml_tasks.conformance import check_task
from tests.extensions.games.test_openspiel import task_of
from tests.helpers.commands import invoke

BUILTIN = builtin()
NONE = {
    "bridge_uncontested_bidding",
    "coin_game",
    "coop_box_pushing",
    "coordinated_mp",
    "kuhn_poker",
    "laser_tag",
}
"""Games without questions: those that take seconds, and those in which all moves are legal and no end shows who won."""


def questions(**parameters: Any) -> tuple[Any, list[Case]]:
    source = {"name": "x", "task": {**parameters, "use": "game_questions"}, "protocol": "single", "baseline": "random"}
    task: Any = resolve.plan(spec.parse(source, BUILTIN), BUILTIN).conditions[0].task
    return task, list(task.cases(None, 1))


def options(case: Case) -> tuple[list[str], str]:
    """The options, and the right one."""
    choices = list(case.public["choices"])
    return choices, choices["ABCDE".index(case.target["answers"][0])]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("game", ["tic_tac_toe", "leduc_poker", "hanabi(players=3)", "matrix_pd"])
def test_questions_come_from_the_seed_and_have_one_right_answer(game: str) -> None:
    task, cases = questions(games=[game], questions=6)
    again = questions(games=[game], questions=6)[1]
    assert [(case.id, case.public, case.target) for case in cases] == [(c.id, c.public, c.target) for c in again]
    assert check_task(task) == [] and len({case.id for case in cases}) == 6
    for case in cases:
        choices, right = options(case)
        assert right in choices and len(set(choices)) == len(choices) >= 2


def test_a_reader_of_the_board_answers_what_is_legal_and_who_has_won() -> None:
    _, cases = questions(games=["tic_tac_toe"], questions=20)
    assert {case.labels["kind"] for case in cases} == {"legal", "result"}
    for case in cases:
        text = case.public["question"]
        board = [line.split()[1:] for line in text.split("What you see now:\n")[1].split("\n")[:3]]
        choices, right = options(case)
        if case.labels["kind"] == "legal":
            free = {f"({row},{column})" for row in range(3) for column in range(3) if board[row][column] == "."}
            own = "x" if "You are Player-0." in text else "o"
            assert [choice for choice in choices if choice[0] == own and choice[1:] in free] == [right]
        else:
            lines = [
                *board,
                *zip(*board, strict=True),
                [board[i][i] for i in range(3)],
                [board[i][2 - i] for i in range(3)],
            ]
            winner = next(("xo".index(line[0]) for line in lines if len({*line}) == 1 and line[0] != "."), None)
            assert right == ("several of them, equally" if winner is None else f"Player-{winner}")


def test_a_game_of_mistakes_is_refused_at_its_place() -> None:
    with pytest.raises(UserError, match="OpenSpiel has no game 'hanaby'"):
        questions(games=["hanaby"])


def test_the_list_marks_games_whose_questions_a_model_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def listed(word: str, folder: str) -> tuple[int, str, str]:
        return invoke(capsys, "list", "tasks", "--openspiel", word, "--understood", str(tmp_path / folder))

    task = {"use": "game_questions", "games": ["nim", "pig"], "questions": 1}
    right = {case.public["question"]: case.target["answers"][0] for case in questions(**task)[1]}

    def reply(request: Request) -> str:
        """Right about nim alone."""
        asked = request.thread.messages[-1]["content"]
        letters = [letter for question, letter in right.items() if "piles" in asked and question.strip() in asked]
        return f"The answer is ({letters[0] if letters else 'Z'})"

    source = {"name": "x", "task": task, "protocol": "single"}
    harness.evaluate(source, model=Mock(function=reply), seed=1, output_path=tmp_path / "run")
    code, out, _ = listed("nim", "run")
    assert code == 0 and out.rstrip().endswith("1 of 1 right")
    assert listed("pig", "run")[1].rstrip().endswith("0 of 1 right    fails")
    assert "right" not in listed("hex", "run")[1]
    source = {"name": "y", "task": "arithmetic", "protocol": "single"}
    harness.evaluate(source, model=Mock(), output_path=tmp_path / "other", limit=1)
    code, _, err = listed("nim", "other")
    assert code == 2 and "is not a run of games_understood" in err


@pytest.mark.slow
def test_all_games_but_few_have_questions(capsys: pytest.CaptureFixture[str]) -> None:
    cases = questions(questions=2)[1]
    listing = sys.modules[type(task_of("tic_tac_toe")).__module__.rpartition(".")[0] + "._openspiel.listing"]
    without = {*listing.playable()} - {str(case.labels["game"]) for case in cases}
    assert without <= NONE
    assert all(len(case.public["question"]) < 20_000 for case in cases)
    code, out, _ = invoke(capsys, "validate", "--spec", "games_understood")
    assert code == 0 and "ok" in out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ("--understood", "x"),
            "--understood goes with --openspiel\n  Give: harness list tasks --openspiel [WORD] --und",
        ),
        (("--textarena", "--understood", "x"), "--understood goes with --openspiel"),
        (("--textarena", "--openspiel"), "--openspiel lists tasks, and --textarena others"),
    ],
)
def test_options_of_a_list_without_it_are_refused(
    options: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = invoke(capsys, "list", "tasks", *options)
    assert code == 2 and said in err and not out
