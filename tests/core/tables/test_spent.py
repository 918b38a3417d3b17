"""What runs cost: by what each model used, at its own price; unknown is said and is never 0."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import harness
from harness.api import Completion, Request
from harness.api.errors import SetupError
from harness.config.user_prices import user_prices
from harness.engines.mock import Mock
from harness.engines.usage import billed
from harness.report import render
from harness.runtime.runner import BudgetReachedError
from harness.tables import EpisodeScore, Table, TableSpec, build
from harness.tables.cost import Price, Usd, priced, usd_an_episode, usd_of, whole_cost
from harness.tables.spent import table
from tests.helpers.commands import invoke

PRICES = {"m": Price(1.0, 2.0, 0.1), "free": Price(0.0, 0.0)}


def score(number: int, **usage: dict[str, float]) -> EpisodeScore:
    return EpisodeScore(f"c/{number}/0", "c", {"model": "m"}, usage=usage)


def rounded(amount: Usd | None) -> Usd | None:
    return amount and Usd(round(amount.value, 9), amount.whole)


def cells(found: Table | None) -> dict[str, dict[str, float | None]]:
    assert found is not None
    names = [str(column.metric) for column in found.columns]
    return {
        str(row.key["model"]): {name: cell.value for name, cell in zip(names, row.cells, strict=True)}
        for row in found.rows
    }


def test_cached_tokens_have_their_own_price_and_models_theirs() -> None:
    scores = [
        score(0, m={"input": 1_000_000, "cached": 400_000, "output": 100_000}),
        score(1, m={"input": 1_000_000}, dear={"input": 5}),
    ]
    found = cells(table(scores, PRICES))
    assert found["m"]["usd"] == pytest.approx(0.6 + 0.04 + 0.2 + 1.0) and found["m"]["usd_episode"] == pytest.approx(
        0.92
    )
    assert found["dear"]["usd"] is None and found["dear"]["input"] == 5
    shown = table(scores, PRICES)
    assert shown is not None and any("none for dear" in note for note in shown.notes)
    assert rounded(usd_an_episode(scores, PRICES)) == Usd(0.92, whole=False), "a part does not pass for all"
    assert rounded(usd_an_episode(scores[:1], PRICES)) == Usd(0.84)


def test_what_is_not_known_is_never_0() -> None:
    assert table([score(0)], PRICES) is None and usd_an_episode([score(0)], PRICES) is None
    silent = score(0, m={"uncounted": 1})
    assert table([silent], PRICES) is None and usd_an_episode([silent], PRICES) is None
    two = table([silent, score(1, free={"output": 7})], PRICES)
    assert cells(two)["m"]["usd"] is None and cells(two)["free"]["usd"] == 0
    assert two is not None and any("m: 1 replies do not say" in note for note in two.notes)
    assert cells(table([score(0, agent={"usd": 0.25})], {}))["agent"]["usd"] == 0.25, "it says so itself"


def test_a_part_of_a_cost_is_a_lower_bound_and_looks_like_one() -> None:
    partly = table([score(0, m={"input": 1_000_000, "uncounted": 2}, agent={"usd": 0.5, "output": 9})], PRICES)
    assert partly is not None
    shown = render(partly, "markdown")
    assert shown.count("≥ 1.00") == 2 and shown.count("≥ 0.50") == 2, shown
    assert "≥: at least; what is unknown is not in the sum." in partly.notes
    line = next(line for line in partly.long() if line["statistic"] == "usd")
    assert (line["value"], line["beyond"]) == (1.0, "least")
    whole = table([score(0, m={"input": 1_000_000})], PRICES)
    assert whole is not None and "≥" not in render(whole, "markdown") and "≥" not in " ".join(whole.notes)


def test_the_sign_of_a_bound_is_explained_only_where_it_stands() -> None:
    found = table([score(0, m={"input": 1_000_000}), score(1, silent={"uncounted": 1})], PRICES)
    assert found is not None and "≥" not in render(found, "markdown") and not any("≥" in note for note in found.notes)
    entry = {"title": "T", "rows": "backend", "metrics": ["paid"], "cost": {"paid": "all"}}
    scores = [replace(one, labels={"backend": "p", "model": "m"}) for one in (score(0, m={"input": 9}), score(1))]
    unknown = replace(score(1, m={"uncounted": 1}), labels={"backend": "q", "model": "m"})
    apart = build(priced(TableSpec.parse(entry), PRICES), [*scores, unknown], {})
    assert "≥" not in " ".join(apart.notes)
    together = build(priced(TableSpec.parse({**entry, "rows": "model"}), PRICES), [*scores, unknown], {})
    assert sum("≥" in note for note in together.notes) == 1


def test_failed_episodes_with_a_cost_hide_no_missing_one() -> None:
    known = [score(i, m={"input": 1_000_000}) for i in range(6)]
    unknown = [score(i, m={"uncounted": 1}) for i in range(6, 8)]
    failed = [replace(score(i, m={"input": 1_000_000}), error="no") for i in range(8, 10)]
    cell = whole_cost(PRICES, [*known, *unknown, *failed], len(failed))
    assert (cell.value, cell.beyond, cell.n, cell.failed, cell.missing) == (8.0, "least", 8, 2, 2)


def test_a_mean_over_episodes_of_unknown_cost_is_a_lower_bound() -> None:
    scores = [score(0, m={"input": 1_000_000}), score(1, m={"uncounted": 1})]
    assert usd_an_episode(scores, PRICES) == Usd(0.5, whole=False)


REPLIES = st.lists(
    st.builds(
        Completion,
        st.just(""),
        input_tokens=st.integers(500, 10**6),
        cached_tokens=st.none() | st.integers(0, 500),
        output_tokens=st.integers(0, 10**6),
        cost=st.none() | st.floats(0, 9),
    ),
    min_size=1,
)


@given(REPLIES, st.booleans())
def test_replies_one_by_one_cost_what_their_sums_cost(replies: list[Completion], in_batch: bool) -> None:
    """A budget counts reply by reply, and tables by the sums of an episode: both come to the same."""
    price, sums, one_by_one = Price(3.0, 15.0, 0.3, batch=0.5), Counter[str](), 0.0
    for answer in replies:
        sums.update(billed(answer, in_batch))
        paid = usd_of(billed(answer, in_batch), price)
        assert paid is not None and paid.whole
        one_by_one += paid.value
    all_of_it = usd_of(sums, price)
    assert all_of_it is not None and all_of_it.whole and all_of_it.value == pytest.approx(one_by_one, abs=1e-9)


@given(st.integers(0, 10**9), st.floats(0, 1), st.integers(0, 10**9), st.floats(0, 1))
def test_a_cache_takes_off_what_it_says(tokens: int, part: float, output: int, discount: float) -> None:
    """Whatever is cached, the cost lies between that of a full cache and that of none."""
    cached = int(tokens * part)
    price = Price(3.0, 15.0, 3.0 * discount)
    cost = sum(price.micros(kind, x) for kind, x in {"input": tokens, "cached": cached, "output": output}.items())
    without = tokens * 3.0 + output * 15.0
    assert without - tokens * 3.0 * (1 - discount) - 1e-3 <= cost <= without + 1e-3
    assert cost == pytest.approx((tokens - cached) * 3.0 + cached * 3.0 * discount + output * 15.0, abs=1e-3)


def reply(request: Request) -> Completion:
    return Completion("42", finish_reason="stop", input_tokens=1_000, output_tokens=100, cached_tokens=400)


def played(folder: Path, *overrides: str, model: str = "m") -> harness.Run:
    one = ["matrix.terms=[2]", "protocol.parse_retries=0", *overrides]
    return harness.evaluate("arithmetic", Mock(model=model, function=reply), overrides=one, limit=2, output_path=folder)


def test_the_users_own_prices_make_columns_and_the_specs_win(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], own_prices: Path
) -> None:
    run = played(tmp_path / "run")
    assert [one.title for one in run.tables].count("Cost") == 1
    assert cells(run.tables[-1])["m"]["usd"] == pytest.approx(2 * (600 * 1 + 400 * 0.1 + 100 * 2) / 1e6)
    line: dict[str, Any] = json.loads((run.folder / "scores.jsonl").read_text().splitlines()[0])
    assert line["usage"] == {"m": {"input": 1_000, "cached": 400, "output": 100}}
    code, out, _ = invoke(capsys, "leaderboard", str(run.folder), "--format", "json")
    board = json.loads(out)[0]
    at = [column["key"]["metric"] for column in board["columns"]].index("usd")
    assert code == 0 and board["rows"][0]["cells"][at]["value"] == pytest.approx(0.00084)
    assert "0.0017 USD for 2 episodes, by what replies say and the known prices" in out
    own = played(tmp_path / "own", "prices.m={input: 10, output: 0}")
    assert cells(own.tables[-1])["m"]["usd"] == pytest.approx(0.02), "the spec's price wins"
    other = played(tmp_path / "other", model="unknown")
    assert "Cost" not in [one.title for one in other.tables]
    code, out, _ = invoke(capsys, "leaderboard", str(other.folder), "--format", "json")
    assert (code == 0 and "not known: no price" in out) or "no price is known" in out
    assert cells(harness.load_run(run.folder).tables[-1]) == cells(run.tables[-1]), "read back from its folder"


def test_scoring_again_keeps_what_was_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], own_prices: Path
) -> None:
    run = played(tmp_path / "run")
    before = (run.folder / "scores.jsonl").read_text()
    assert invoke(capsys, "score", str(run.folder))[0] == 0
    assert (run.folder / "scores.jsonl").read_text() == before


def test_a_budget_of_money_knows_the_cache(tmp_path: Path, own_prices: Path) -> None:
    with pytest.raises(BudgetReachedError, match="max_cost"):
        harness.evaluate(
            "arithmetic", Mock(model="m", function=reply), limit=9, max_cost=0.0008, max_concurrency=1,
            output_path=tmp_path / "run",
        )  # fmt: skip
    asked = (tmp_path / "run" / "journal.jsonl").read_text().count('"finish_reason"')
    assert asked == 1, "840 millionths a call; without the cache it would be 1,200"
    with pytest.raises(BudgetReachedError, match="max_cost"):
        harness.evaluate(
            "arithmetic", Mock(model="m", function=reply), limit=9, max_cost=0.001, max_concurrency=1,
            output_path=tmp_path / "more",
        )  # fmt: skip
    assert (tmp_path / "more" / "journal.jsonl").read_text().count('"finish_reason"') == 2


@pytest.mark.parametrize(
    "line", ["m: 3", "m: {input: 1}", "m: {input: 1, output: -1}", "m: {input: 1, output: 1, x: 1}"]
)
def test_wrong_prices_of_the_user(line: str, own_prices: Path) -> None:
    own_prices.write_text(f"{line}\n")
    with pytest.raises(SetupError, match="the price of m must be"):
        user_prices()


@pytest.fixture
def own_prices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own prices."""
    monkeypatch.setenv("HARNESS_CONFIG_DIR", str(tmp_path / "config"))
    (tmp_path / "config").mkdir()
    file = tmp_path / "config" / "prices.yaml"
    file.write_text("m: {input: 1, cached: 0.1, output: 2}\n")
    return file
