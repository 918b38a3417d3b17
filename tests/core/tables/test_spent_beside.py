"""What a run paid for beside the episodes of its numbers: judges, and episodes that were under way at its end."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.api import Completion, Request
from harness.api.plugin import derive_seed
from harness.engines.mock import Mock
from harness.runtime.runner import BudgetReachedError
from tests.helpers.commands import invoke

PRICES = {"m": {"input": 1000.0, "output": 2000.0}, "j": {"input": 100.0, "output": 100.0}}


def answering(text: str, name: str) -> Mock:
    return Mock(model=name, function=lambda request: Completion(text, "stop", input_tokens=10, output_tokens=1))


def costs(run: harness.Run) -> tuple[dict[str, float | None], tuple[str, ...]]:
    table = run.tables[-1]
    assert table.title == "Cost"
    at = [column.metric for column in table.columns].index("usd")
    return {str(row.names[0]): row.cells[at].value for row in table.rows}, table.notes


def test_episodes_that_a_rule_does_not_count_were_paid_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All that the engine answered is in the table of costs and on boards."""
    asked: list[Request] = []

    async def answer(request: Request) -> Completion:
        asked.append(request)
        for _ in range(derive_seed(request.id) % 29):  # some end later than others
            await asyncio.sleep(0)
        return Completion("42", "stop", input_tokens=10, output_tokens=1)

    run = harness.evaluate(
        "arithmetic", Mock(model="m", function=answer), until="headline ±10%", output_path=tmp_path / "run",
        overrides=[f"prices={json.dumps(PRICES)}", "matrix.terms=[2]"], max_concurrency=256,
    )  # fmt: skip
    assert run.meta["stopped"]["not_counted"]
    usd, notes = costs(run)
    assert [*usd] == ["m", "m, episodes that count in no number"]
    assert sum(filter(None, usd.values())) == pytest.approx(len(asked) * 0.012)
    assert notes[0] == f"{len(asked) * 0.012:,.2f} USD in all."
    assert costs(harness.load_run(run.folder)) == (usd, notes)
    code, out, _ = invoke(capsys, "leaderboard", str(run.folder))
    assert code == 0 and f"{len(asked) * 0.012:,.2f} USD for" in " ".join(out.split())
    assert "for episodes that count in no number" in " ".join(out.split())
    whole = harness.evaluate(
        "arithmetic", Mock(model="m", function=answer), output_path=tmp_path / "run",
        overrides=[f"prices={json.dumps(PRICES)}", "matrix.terms=[2]"],
    )  # fmt: skip
    assert costs(whole)[0] == {"m": pytest.approx(len(asked) * 0.012)}


def judged(folder: Path, **options: Any) -> harness.Run:
    judge = answering('{"rating": 7}', "j")
    spec = {
        "name": "essays", "task": "open_questions", "protocol": "single", "prompts": "qa/standard",
        "metrics": [{"use": "judge", "name": "helpful"}, {"use": "judge", "name": "unrated", "of": "missing"}],
        "limit": 4, "prices": PRICES,
    }  # fmt: skip
    return harness.evaluate(spec, answering("So.", "m"), judge=judge, output_path=folder, **options)


def test_a_judge_has_a_row_of_its_own(tmp_path: Path) -> None:
    """A call of the model costs 12 thousandths of a USD, one of the judge 1.1."""
    run = judged(tmp_path / "run")
    usd, notes = costs(run)
    assert usd == {"m": pytest.approx(0.048), "j, judge of helpful": pytest.approx(0.0044)}
    assert notes[:2] == (
        "0.052 USD in all.",
        "Prices in USD per million tokens: m 1000 in, 2000 out; j 100 in, 100 out.",
    )
    assert costs(harness.load_run(run.folder)) == (usd, notes)
    assert costs(judged(tmp_path / "run")) == (usd, notes), "where nothing is left to do"


def test_a_budget_of_money_is_for_models_and_judges_together(tmp_path: Path) -> None:
    with pytest.raises(BudgetReachedError, match=r"judge of 'helpful'.*max_cost 0.05 .*2 of 4"):
        judged(tmp_path / "run", max_cost=0.05, max_concurrency=1)
    assert judged(tmp_path / "run", max_cost=0.06).meta["status"] == "finished"


def test_replies_from_the_cache_are_said(tmp_path: Path) -> None:
    """As those of `--reuse` are: nobody paid for them now."""
    for folder in ("a", "b"):
        run = harness.evaluate(
            "arithmetic", answering("42", "m"), limit=2, output_path=tmp_path / folder, use_cache=tmp_path / "cache",
            overrides=["matrix.terms=[2]", "protocol.parse_retries=0", f"prices={json.dumps(PRICES)}"],
        )  # fmt: skip
        said = "2 replies of m are from the cache (--use_cache): costs are what they once were."
        assert (said in run.tables[-1].notes) == (folder == "b")
