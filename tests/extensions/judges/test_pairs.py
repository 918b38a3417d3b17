"""`harness judge`: a judge chooses between the answers of two runs, in both orders."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.api import Request
from harness.api.errors import DataError, RequestError
from harness.cli import main
from harness.config.project import find
from harness.engines.mock import Mock
from harness.extensions.judges.judge_plans import plan_of
from harness.extensions.judges.judge_runs import prefer
from harness.extensions.judges.pairs import PairSide
from harness.runtime.options import Options
from harness.runtime.runner import BudgetReachedError
from harness.tables import Table

SPEC = {
    "name": "essays",
    "task": "open_questions",
    "protocol": "single",
    "prompts": "qa/standard",
    "metrics": ["calls"],
}


def side(folder: Path, model: Mock, **more: Any) -> PairSide:
    run = harness.evaluate({**SPEC, **more}, model, output_path=folder)
    return PairSide(model.model, run.folder, plan_of(run, run.spec, find()), {})


def chooser(better: str) -> Mock:
    """A judge that prefers answers with the word `better`, wherever they stand; else it calls it a tie."""

    def choose(request: Request) -> str:
        prompt = request.thread.messages[-1]["content"]
        first, second = (re.findall(rf"answer {x} begins -----\n(.*)\n-----", prompt)[0] for x in "AB")
        return f"Better: {'tie' if (better in first) == (better in second) else 'A' if better in first else 'B'}"

    return Mock(model="chooser", function=choose)


def cells(table: Table) -> dict[str, Any]:
    return {column.names[0]: cell.value for column, cell in zip(table.columns, table.rows[0].cells, strict=True)}


def test_the_better_side_wins_wherever_it_stands(tmp_path: Path) -> None:
    one = side(tmp_path / "a", Mock(model="a", function=lambda r: f"plain {r.id}"))
    two = side(tmp_path / "b", Mock(model="b", function=lambda r: ("good" if "explain" in r.id else "plain") + "!"))
    table, trust = prefer(one, two, chooser("good"))
    row = cells(table)
    assert (row["Pairs"], row["a better"], row["b better"], row["Ties"]) == (24, 0, 6, 18)
    assert row["Preference for b"] == pytest.approx((6 + 9) / 24)
    assert row["p"] == pytest.approx(2 / 2**6)
    assert cells(trust)["First answer preferred"] == 0.5 and cells(trust)["Orders decide alone"] == 0
    assert cells(trust)["Calls"] == 48
    backwards = cells(prefer(two, one, chooser("good"))[0])
    assert (backwards["b better"], backwards["Preference for a"]) == (6, pytest.approx(1 - 15 / 24))


def test_a_judge_that_goes_by_the_order_finds_nothing_and_is_shown_to(tmp_path: Path) -> None:
    one, two = side(tmp_path / "a", Mock(model="a", text="x")), side(tmp_path / "b", Mock(model="b", text="y"))
    table, trust = prefer(one, two, Mock(model="first", text='{"better": "A"}'))
    assert (cells(table)["Ties"], cells(table)["Preference for b"], cells(table)["p"]) == (24, 0.5, None)
    assert "24 of the 24 ties are pairs in which the order alone decided." in table.notes
    assert (cells(trust)["First answer preferred"], cells(trust)["Orders decide alone"]) == (1, 1)


def test_what_a_judge_leaves_open_is_no_verdict(tmp_path: Path) -> None:
    one, two = side(tmp_path / "a", Mock(model="a", text="x")), side(tmp_path / "b", Mock(model="b", text="y"))

    def choose(request: Request) -> str:
        prompt = "".join(message["content"] for message in request.thread.messages)
        if "bread" in prompt and "A begins -----\nx" in prompt:  # in one of the two orders
            return "I cannot say."
        if "mountain" in prompt:
            raise RequestError("refused")
        return "Better: B" if "B begins -----\ny" in prompt else "Better: A"

    table, trust = prefer(one, two, Mock(model="shy", function=choose), options=Options(max_error_rate=1.0))
    assert (cells(table)["No verdict"], cells(table)["Pairs"], cells(table)["b better"]) == (2, 22, 22)
    assert cells(trust)["Without a choice"] == 3


@pytest.mark.slow
def test_equal_and_missing_answers_need_no_judge(tmp_path: Path) -> None:
    def answer(request: Request) -> str:
        return "" if "explain-1" in request.id else "same"

    one, two = (
        side(tmp_path / "a", Mock(model="a", function=answer)),
        side(tmp_path / "b", Mock(model="b", text="same")),
    )
    table, trust = prefer(one, two, chooser("never asked"))
    assert (cells(table)["b better"], cells(table)["Ties"], cells(trust)["Calls"]) == (1, 23, 0)
    assert any("23 of the 23 ties are equal answers" in note for note in table.notes)
    assert any("In 1 pairs one side gave no answer" in note for note in table.notes)


def test_the_same_call_goes_on_and_nothing_names_the_sides(tmp_path: Path) -> None:
    prompts: list[str] = []

    def choose(request: Request) -> str:
        prompts.append("".join(message["content"] for message in request.thread.messages))
        return "tie"

    one, two = side(tmp_path / "a", Mock(model="acme", text="x")), side(tmp_path / "b", Mock(model="zeta", text="y"))
    rater = Mock(model="fair", function=choose)
    with pytest.raises(BudgetReachedError):
        prefer(one, two, rater, options=Options(max_calls=20))
    assert len(prompts) == 20
    assert cells(prefer(one, two, rater)[0])["Ties"] == 24 and len(prompts) == 48
    assert not any(name in prompt for prompt in prompts for name in ("acme", "zeta", "explain-1"))


def test_two_parts_of_one_run_by_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = tmp_path / "essays.yaml"
    act = {"use": "expression", "act": "question if '${style}' == 'long' else 'Short.'"}
    spec.write_text(json.dumps({**SPEC, "baseline": act, "matrix": {"style": ["long", "short"]}, "limit": 3}))
    folder = str(tmp_path / "run")
    assert main(["eval", "--spec", str(spec), "--output_path", folder, "--quiet"]) == 0
    judge = ["judge", folder, "--judge", "mock", "--judge_args", "text='Better: A'", "--quiet"]
    assert main([*judge, "--label", "style", "long", "short"]) == 0
    output = capsys.readouterr().out
    assert "short against long, judged in pairs" in output and "3 of the 3 ties" in output
    assert main(judge) == 2 and "nothing to choose between" in capsys.readouterr().err
    assert main([*judge, "--label", "style", "long", "tall"]) == 2
    assert "have no episode in common" in capsys.readouterr().err
    assert main(["judge", folder, folder]) == 2 and "no judge is given" in capsys.readouterr().err


def test_other_questions_are_no_pairs(tmp_path: Path) -> None:
    one = side(tmp_path / "a", Mock(model="a", text="x"), task={"use": "arithmetic", "size": 4})
    two = side(tmp_path / "b", Mock(model="b", text="y"), task={"use": "arithmetic", "size": 4, "terms": 5})
    table, _ = prefer(one, two, chooser("x"))
    assert cells(table)["Pairs"] == 0 and "4 pairs are left out: their questions are not the same." in table.notes
    other = side(tmp_path / "c", Mock(model="c", text="y"))
    with pytest.raises(DataError, match="no episode in common"):
        prefer(one, other, chooser("x"))
