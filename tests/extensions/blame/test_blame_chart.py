"""The chart `blame` by kind of failure: what was wrong with the move that decides an episode."""

import json
from pathlib import Path

import pytest

from harness.api import Completion, Move, Request
from harness.api.errors import DataError
from harness.engines.mock import Mock
from harness.evaluation.load_run import load_run
from harness.extensions.blame.blame import blamed
from harness.extensions.blame.blame_chart import kind_of
from harness.extensions.blame.blame_command import as_json
from harness.extensions.blame.findings import keep
from harness.extensions.charts import ChartOptions, chart
from harness.extensions.charts.plot_command import material
from tests.helpers.toy import TOY, run

AGENTS = frozenset({"S0", "S1"})


@pytest.mark.parametrize(
    ("move", "kind"),
    [
        (Move("S0", "say", "a"), "action"),
        (Move("S0", "say", None), "no action"),
        (Move("S0", "say", {"S1": "hello"}), "message"),
        (Move("S0", "say", {"S2": "hello"}), "action"),
        (Move("S0", "say", {"message": "hello", "answer": 1}), "message"),
        (Move("S0", "say", None, error="?", error_kind="parse"), "unreadable reply"),
        (Move("S0", "say", None, "?", "parse", (Completion("?", finish_reason="length"),)), "cut-off reply"),
        (Move("S0", "say", None, error="?", error_kind="limit"), "limit reached"),
        (Move("S0", "say", None, error="?", error_kind="timeout"), "engine error"),
    ],
)
def test_a_move_is_wrong_in_one_way(move: Move, kind: str) -> None:
    assert kind_of(move, AGENTS) == kind


def reply(request: Request) -> Completion:
    """All say a; in the last round of two cases one says something else, unreadable or cut off."""
    case, agent, turn = request.id.split("/")[1], *request.id.split("/")[-3:-1]
    wrong = {"c0": Completion("?"), "c1": Completion("?", finish_reason="length"), "c2": Completion("b")}
    return wrong.get(case, Completion("a")) if (agent, turn) == ("S0", "2") else Completion("a")


def test_the_chart_counts_kinds_of_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(TOY.root)
    headline = {"metric": "agreed", "ceiling": {"use": "coin", "bias": 1.0}}
    played = run(tmp_path / "run", Mock(function=reply), overrides=("agents=null", f"headline={json.dumps(headline)}"))
    keep(played.folder, as_json(blamed(played)))
    read = material([load_run(tmp_path / "run")])
    drawn = chart("blame", read, ChartOptions(by="failure"))
    assert drawn.columns == ("kind of failure", "episodes")
    assert dict(drawn.rows) == {"unreadable reply": 2, "cut-off reply": 2, "action": 2}
    assert "by what was wrong with the first such move" in drawn.about
    with pytest.raises(DataError, match="round, agent, group, model, turn, failure, found 'failures'"):
        chart("blame", read, ChartOptions(by="failures"))
