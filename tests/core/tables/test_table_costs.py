"""What tokens cost: prices in a spec, costs in its tables, in later reports and on leaderboards."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import evaluate
from harness.api import Episode, Metric
from harness.api.errors import SpecError
from harness.cli import main
from harness.config import spec
from harness.evaluation.load_run import load_run
from harness.evaluation.rescore import rescored
from harness.evaluation.run import Run
from harness.extensions.analysis.leaderboard import RunScores, leaderboard
from harness.report import render
from harness.tables import EpisodeScore, Table, TableSpec, build, check
from harness.tables.cost import Price, Prices, priced, read_prices
from tests.helpers.scores import numbers
from tests.helpers.toy import TOY


class Mean(Metric):
    def measure(self, episode: Episode) -> float | None:
        return None


METRICS: dict[str, Metric] = {"tokens_input": Mean(), "tokens_output": Mean(), "tokens_total": Mean()}
COST = {
    "cost": {"input": "tokens_input", "output": "tokens_output"},
    "low": {"input": "tokens_total"},
    "high": {"output": "tokens_total"},
}
ENTRY = {"title": "T", "rows": "backend", "metrics": list(COST), "cost": COST}
PRICES = {"m": Price(0.15, 0.75), "n": Price(0.02, 0.10)}


def episode(tokens_input: float | None, tokens_output: float | None, model: str = "m", **more: Any) -> EpisodeScore:
    names = tokens_input is not None and tokens_output is not None
    total = (tokens_input or 0) + (tokens_output or 0) if names else None
    counts = {"tokens_input": tokens_input, "tokens_output": tokens_output, "tokens_total": total}
    return EpisodeScore("c/0/0", "c", {"model": model, "backend": "p2p", **more}, counts)


def made(scores: Sequence[EpisodeScore], prices: Prices | None = PRICES, **entry: Any) -> Table:
    return build(priced(TableSpec.parse({**ENTRY, **entry}), prices or {}), scores, METRICS)


def grid(table: Table) -> dict[tuple[str, ...], list[float | None]]:
    return {row.names: [cell.value for cell in row.cells] for row in table.rows}


TWO = [episode(1_000_000, 200_000), episode(200_000, 100_000)]


def test_a_cost_is_the_sum_of_tokens_at_the_models_prices() -> None:
    """1.2 M in and 0.3 M out; 1.5 M in all, once all billed as input and once all as output."""
    table = made(TWO)
    assert grid(table) == {("p2p",): [pytest.approx(x) for x in (1.2 * 0.15 + 0.3 * 0.75, 1.5 * 0.15, 1.5 * 0.75)]}
    cell = table.rows[0].cells[0]
    assert (cell.stderr, cell.n, cell.failed, cell.missing) == (None, 2, 0, 0)
    assert table.notes == ("Prices in USD per million tokens: m 0.15 in, 0.75 out.",)
    assert render(table, "markdown").splitlines()[4].split("|")[2:5] == ["   0.41 ", "  0.23 ", "   1.12 "]


def test_a_cost_is_a_total_over_all_conditions_whatever_aggregate_says() -> None:
    scores = [TWO[0], EpisodeScore("d/0/0", "d", TWO[1].labels, TWO[1].numbers)]
    for aggregate in ("pooled", "mean_of_conditions"):
        assert grid(made(scores, aggregate=aggregate)) == grid(made(TWO))


def test_every_model_is_billed_at_its_own_price_and_an_overall_column_adds_up() -> None:
    scores = [*TWO, episode(1_000_000, 1_000_000, model="n")]
    assert list(grid(made(scores))) == [("m", "p2p"), ("n", "p2p")]
    across = made(scores, columns="model", metrics="cost", cost={"cost": COST["cost"]}, overall="pooled")
    assert grid(across) == {("p2p",): [pytest.approx(0.405), pytest.approx(0.12), pytest.approx(0.525)]}
    assert across.notes == ("Prices in USD per million tokens: m 0.15 in, 0.75 out; n 0.02 in, 0.1 out.",)
    part = made(
        scores, {"m": PRICES["m"]}, columns="model", metrics="cost", cost={"cost": COST["cost"]}, overall="pooled"
    )
    assert grid(part) == {("p2p",): [pytest.approx(0.405), None, None]}  # a part of the sum is not the sum


@pytest.mark.parametrize("prices", [None, {}, {"n": PRICES["n"]}])
def test_without_a_price_there_is_no_number_and_a_note_says_what_to_do(prices: Prices | None) -> None:
    table = made(TWO, prices)
    assert grid(table) == {("p2p",): [None] * 3}
    assert table.notes == (
        "No cost without a price, and there is none for m: give it in the spec as prices: {m: {input: …, output: …}}, "
        "in USD per million tokens.",
    )


def test_what_costs_nothing_is_0_and_who_used_no_tokens_needs_no_price() -> None:
    assert grid(made(TWO, {"m": Price(0, 0)})) == {("p2p",): [0, 0, 0]}
    silent = made([episode(None, None)], {})
    assert grid(silent) == {("p2p",): [None] * 3}
    assert silent.notes[0] == "cost leaves out 1 of 1 episodes: no tokens_input or tokens_output."


def test_episodes_without_tokens_are_left_out_and_reported() -> None:
    failed = EpisodeScore("c/9/0", "c", TWO[0].labels, TWO[0].numbers, "boom")
    table = made([*TWO, failed, episode(500, None)], metrics=["cost", "tokens_input"], cost={"cost": COST["cost"]})
    cell = table.rows[0].cells[0]
    assert (cell.value, cell.n, cell.failed, cell.missing) == (pytest.approx(0.405), 2, 1, 1)
    assert "cost leaves out 1 of 3 episodes: no tokens_input or tokens_output." in table.notes
    assert "1 of 4 episodes failed and count in no number: c (1)." in table.notes


@given(st.lists(st.tuples(st.integers(0, 10**7), st.integers(0, 10**7)), min_size=1), st.floats(0, 100))
def test_the_cost_lies_between_all_input_and_all_output(tokens: list[tuple[int, int]], price: float) -> None:
    table = made([episode(a, b) for a, b in tokens], {"m": Price(price, 2 * price)})
    cost, low, high = grid(table)["p2p",]
    assert cost is not None and low is not None and high is not None
    assert low * (1 - 1e-9) <= cost <= high * (1 + 1e-9)


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"cost": {"cost": {"input": "tokens_inptu"}}}, "cost: unknown metric 'tokens_inptu'. Did you mean tokens_in"),
        ({"cost": {"cost": {"inptu": "tokens_input"}}}, "cost: unknown key 'inptu'. Did you mean input"),
        ({"cost": {"cost": {}}}, "cost: 'cost' must not be empty"),
        ({"cost": {"cost": ["tokens_input"]}}, "cost: 'cost' must be all or a mapping, found a list"),
        (
            {"cost": {"cost": {"input": "tokens_input"}, "more": {"input": "tokens_input"}}},
            "cost: metrics does not use",
        ),
        (
            {"cost": {"cost": {"input": "tokens_input"}}, "ratio": {"cost": ["tokens_input", "tokens_total"]}},
            "'cost' is derived twice",
        ),
    ],
)
def test_a_wrong_cost_is_explained(entry: dict[str, Any], problem: str) -> None:
    problems = check({**ENTRY, "metrics": "cost", **entry}, ["backend"], METRICS)
    assert [text[: len(problem)] for text in problems] == [problem]


def test_building_refuses_a_metric_that_is_not_there() -> None:
    with pytest.raises(SpecError, match=r"unknown metric 'tokens'"):
        made(TWO, metrics="cost", cost={"cost": {"input": "tokens"}})


# ------------------------------------------------------------------------------------------- specs

GOOD = "extends: toy\nname: s\n"


def load(tmp_path: Path, text: str, *overrides: str) -> spec.Spec:
    file = tmp_path / "s.yaml"
    file.write_text(text)
    return spec.load(str(file), TOY, overrides)


def test_prices_merge_are_set_by_any_models_name_and_define_no_benchmark(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text(
        GOOD + "prices: {a/b-1.5: {input: 1, output: 2}, c: {input: 3, output: 4}, d: {input: 0, output: 0}}"
    )
    text = "extends: base.yaml\nname: s\nprices: {c: {output: 5}, d: }\n"
    loaded = load(tmp_path, text, "prices.x/y-2.5={input: 0.1, output: 0.2}", "prices.a/b-1.5={input: 7, output: 8}")
    assert read_prices(loaded.get("prices")) == {
        "a/b-1.5": Price(7, 8),
        "c": Price(3, 5),
        "x/y-2.5": Price(0.1, 0.2),
    }
    assert loaded.digest() == load(tmp_path, GOOD).digest()
    assert all("prices" not in variant.data for variant in loaded.variants())
    assert read_prices(load(tmp_path, GOOD, "prices.m={input: 1, output: 2}").get("prices")) == {"m": Price(1, 2)}
    assert read_prices(None) == {}


@pytest.mark.parametrize(
    ("text", "says", "place"),
    [
        ("prices: {m: {inptu: 1, input: 1, output: 1}}", "unknown key 'inptu'. Did you mean input", "s.yaml:3:14"),
        ("prices: {m: {input: 1}}", "'m': missing required key 'output'", "s.yaml:3:13"),
        ("prices: {m: {input: -1, output: 1}}", "'input' must be ≥ 0, found -1", "s.yaml:3:21"),
        ("prices: {m: {input: .inf, output: 1}}", "'input' must be a number, found the infinite", "s.yaml:3:21"),
        ("prices: {m: {input: x, output: 1}}", "'input' must be a number, found text 'x'", "s.yaml:3:21"),
        ("prices: {m: {input: true, output: 1}}", "'input' must be a number, found the truth value", "s.yaml:3:21"),
        ("prices: {m: 3}", "'m' must be a mapping, found the number 3", "s.yaml:3:13"),
        ("prices: [m]", "'prices' must be a mapping, found a list", "s.yaml:3:9"),
        (
            "tables: [{title: t, rows: model, metrics: c, cost: {c: {inputs: agreed}}}]",
            "unknown key 'inputs'. Did you mean input",
            "s.yaml:3:57",
        ),
        (
            "tables: [{title: t, rows: model, metrics: agreed, compare: {label: agents, base: 2, wiht: 3}}]",
            "unknown key 'wiht'. Did you mean with",
            "s.yaml:3:85",
        ),
    ],
)
def test_mistakes_say_where_and_what(tmp_path: Path, text: str, says: str, place: str) -> None:
    with pytest.raises(SpecError) as caught:
        load(tmp_path, GOOD + text)
    assert says in str(caught.value) and place in str(caught.value)


def test_what_is_set_is_named_as_it_was_set(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"--set prices.m.input=3: 'm.input' must be a mapping, found the number 3"):
        load(tmp_path, GOOD, "prices.m.input=3")


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("metrics: c, cost: {c: {input: agred}}", "bad.yaml:3:10: cost: unknown metric 'agred'. Did you mean agreed"),
        ("metrics: agreed, compare: {label: agents, base: 2, with: 4}", "bad.yaml:3:10: compare: agents is never '4'"),
        (
            "metrics: agreed, compare: {label: agent, base: 2, with: 3}",
            "compare: unknown label 'agent'. Did you mean agents",
        ),
        (
            "metrics: agreed, compare: {label: agents, base: 2, with: 3}, uncertainty: sem",
            "compare: uncertainty cannot stand beside",
        ),
    ],
)
def test_validate_finds_it_before_anything_runs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, table: str, says: str
) -> None:
    (tmp_path / "bad.yaml").write_text(f"extends: toy\nname: x\ntables: [{{title: t, rows: model, {table}}}]")
    with contextlib.chdir(TOY.root):
        assert main(["validate", str(tmp_path / "bad.yaml")]) == 2
    assert says in capsys.readouterr().err


# ------------------------------------------------------------------------------------- whole runs

SETS = (
    "tables=[{title: Cost, rows: agents, metrics: usd, cost: {usd: {input: agreed}}},"
    " {title: Tests, rows: model, metrics: agreed, compare: {label: agents, base: 2, with: 3}}]",
)


def run(folder: Path, *overrides: str, model: Any = "dice", name: str = "dice") -> Run:
    return evaluate(
        "toy", model, model_args={"name": name}, overrides=(*SETS, *overrides), output_path=folder, project=TOY
    )


def test_a_price_may_come_after_the_run(tmp_path: Path) -> None:
    first = run(tmp_path / "r")
    assert "there is none for dice" in first.tables[0].notes[-1]
    before = (tmp_path / "r" / "journal.jsonl").read_bytes()
    again = run(tmp_path / "r", "prices.dice={input: 1e+6, output: 0}")
    agreed = {n: sum(numbers([s for s in again.scores if s.labels["agents"] == n], "agreed")) for n in (2, 3)}
    assert grid(again.tables[0]) == {(str(n),): [x] for n, x in agreed.items()} and sum(agreed.values()) > 0
    assert (tmp_path / "r" / "journal.jsonl").read_bytes() == before
    assert again.meta["spec_digest"] == first.meta["spec_digest"]
    assert load_run(tmp_path / "r", TOY).tables == again.tables == rescored(tmp_path / "r", TOY).tables
    assert "Prices in USD per million tokens: dice 1000000 in, 0 out." in (tmp_path / "r" / "tables.md").read_text()
    assert [row["statistic"] for row in again.tables[1].long()][:3] == ["base", "with", "difference"]


def test_reports_and_leaderboards_show_costs_and_tests(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    price = "{input: 1e+6, output: 0}"
    run(tmp_path / "a", f"prices={{dice: {price}, other: {price}}}")
    run(tmp_path / "b", name="other")
    with contextlib.chdir(TOY.root):
        assert main(["report", str(tmp_path / "a"), "--format", "json"]) == 0
        alone = json.loads(capsys.readouterr().out)
        assert main(["leaderboard", str(tmp_path / "a"), str(tmp_path / "b"), "--format", "json"]) == 0
        standings, *both = json.loads(capsys.readouterr().out)
    assert standings["title"] == "toy: standings"
    assert [row["names"] for row in both[0]["rows"]] == [[m, n] for m in ("dice", "other") for n in ("2", "3")]
    assert [row["cells"] for row in both[0]["rows"]][:2] == [row["cells"] for row in alone[0]["rows"]]
    assert all(cell["value"] is not None for row in both[0]["rows"] for cell in row["cells"])
    assert [row["names"] for row in both[1]["rows"]] == [["dice"], ["other"]]


def board(*runs: tuple[str, str, dict[str, Price]], **entry: Any) -> Table:
    table = TableSpec.parse({"title": "T", "rows": "model", "metrics": "low", "cost": {"low": COST["low"]}, **entry})
    entries = [
        RunScores({"run": name, "spec_digest": "d"}, [episode(10**6, 0, model)], [table], METRICS, prices)
        for name, model, prices in runs
    ]
    return leaderboard(entries)[0]


def test_a_leaderboard_bills_a_model_at_one_price_under_all_its_names() -> None:
    one, two = Price(1, 1), Price(2, 2)
    table = board(("r1", "m", {}), ("r2", "m", {"m": one}), ("r3", "n", {"m": two, "n": two}))
    assert grid(table) == {("m (r1)",): [1], ("m (r2)",): [1], ("n",): [2]}
    assert table.notes[-1] == "The runs give different prices: m costs what run r2 says."
    calm = board(("r1", "m", {"m": one, "x": one}), ("r2", "n", {"m": one, "n": two, "x": two}))
    assert grid(calm) == {("m",): [1], ("n",): [2]}
    assert calm.notes == ("Prices in USD per million tokens: m 1 in, 1 out; n 2 in, 2 out.",)
    bare = board(("r1", "m", {"m": one}), ("r2", "n", {"m": two}), metrics="tokens_total", cost={})
    assert bare.notes == ()


def planned(capsys: pytest.CaptureFixture[str], *options: str) -> list[str]:
    """What `harness plan` says of the tokens and of what they cost, line by line."""
    assert main(["plan", "--spec", "arithmetic", "--limit", "1", *options]) == 0
    lines = capsys.readouterr().out.splitlines()
    return [line for line in lines if line.startswith(("model calls", "tokens", "cost"))]


def test_a_plan_multiplies_calls_tokens_and_prices(capsys: pytest.CaptureFixture[str]) -> None:
    prices, again = ("--set", "prices.some/model={input: 500, output: 2000}"), ("--set", "protocol.parse_retries=1")
    calls, tokens, cost = planned(capsys, *prices, *again, "--set", "generation_kwargs.max_tokens=200")
    counts = [int(word.replace(",", "")) for word in tokens.split() if word[0].isdecimal()]
    usd = [float(word[1:].replace(",", "")) for word in cost.split() if word[0] == "$"]
    assert usd[0] == pytest.approx((counts[0] * 500 + counts[1] * 2000) / 1e6, abs=0.01)
    asked, most = (int(word.replace(",", "")) for word in calls.split() if word[0].isdecimal())
    assert most == 2 * asked and usd[1] > 2 * usd[0], "who is asked again reads the reply before, too"
    assert cost.endswith("with every retry (USD per million tokens: 500 in, 2000 out)")
    long = planned(capsys, *prices, "--set", "generation_kwargs.max_tokens=1000")[-1]
    assert "with some/model, about $" in long and " with replies of max_tokens (" in long
    once = planned(capsys, *prices, "--set", "generation_kwargs.max_tokens=200")[-1]
    assert once.count("$") == 1, "no range where there is none"


def test_a_plan_bills_seats_at_the_prices_of_their_models(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = """extends: arithmetic
name: two
models: {big: {use: mock, model: Big}, small: {use: mock, model: Small}}
agents: {default: {model: big}, other: {count: 1, model: small}}
generation_kwargs: {max_tokens: 200}
protocol: {parse_retries: 0}
prices: {Big: {input: 1000, output: 0}}
"""
    (tmp_path / "two.yaml").write_text(text)
    assert main(["plan", "--spec", str(tmp_path / "two.yaml"), "--limit", "1"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("cost")]
    assert lines[0].startswith("cost            about $") and "for the seats of big (" in lines[0]
    assert lines[1:] == ["cost            not known for the seats of small: no price for Small"]
