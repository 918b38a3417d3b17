"""The published MAS-Bench figures: whole, consistent where they should be, and at odds where their warnings say so."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from tests.helpers import shipped

FILE = Path(__file__).parents[3] / "results" / "published" / "mas_bench.yaml"
PAPER = {table.id.split("/")[1]: table for table in shipped.published_by("mas_bench").values()}
DEEPSEEK, QWEN, GPT, ALL = "DeepSeek-V3.1", "Qwen3-Next-80B-A3B", "GPT-OSS-120B", "(all three)"
MODELS = [DEEPSEEK, QWEN, GPT]
CONDITIONS = ["Base", "CAMOC", "Abl. submit", "Abl. message"]
BACKENDS = ["Broadcasting", "P2P", "Shared K-V"]
PRICES = {DEEPSEEK: (0.15, 0.75), QWEN: (0.06, 0.60), GPT: (0.02, 0.10)}  # USD per million tokens, Appendix C
GRID = fmean([1, 3, 5, 10, 20]) * fmean([1, 5, 10])  # mean of NK over the grid: 41.6 items


def figures(table: str, metric: str, *labels: str) -> dict[Any, float]:
    """A metric's values by the labels that tell them apart."""
    results = [r for r in PAPER[table].records if r.metric == metric]
    mapping = {tuple(r.labels[x] for x in labels) if len(labels) > 1 else r.labels[labels[0]]: r.value for r in results}
    assert len(mapping) == len(results) > 0
    return mapping


SUCCESS = figures("table1", "mas/success", "model", "condition", "backend")
TE = figures("table1", "te_final", "model", "condition", "backend")


def stated_in(table: str, words: str) -> bool:
    return any(words in warning for warning in PAPER[table].warnings)


# ----------------------------------------------------------------------------------- whole, in range


def test_every_table_is_whole() -> None:
    sizes = {name: len(table.records) for name, table in PAPER.items()}
    assert sizes == {
        "table1": 3 * 4 * 3 * 4,
        "table2": 5 * 3 * 3,
        "table3": 5 * 4,
        "table4": 4 * 7 - 1,  # no tokens a run in the row of totals
        "table6": 3 * 2,
        "table7": 3 * 2,
        "table8": 3,
        "table10": 4 * 2,
        "table11": 4,
    }
    for name, table in PAPER.items():
        assert table.source == f"MAS-Bench, Table {name.removeprefix('table')}"
        assert table.warnings


@pytest.mark.parametrize(
    ("label", "known"),
    [
        ("model", {*MODELS, ALL, "(not named)"}),
        ("condition", {*CONDITIONS, "Base/Abl."}),
        ("backend", set(BACKENDS)),
        ("agents", {1, 3, 5, 10, 20}),
        ("items", {1, 5, 10}),
        ("family", {"asc", "near_asc", "random", "near_desc", "desc"}),
        ("problem", {"maximum", "prefix_sum"}),
    ],
)
def test_labels_and_what_figures_cover_are_spelled_alike_everywhere(label: str, known: set[Any]) -> None:
    records = [r for table in PAPER.values() for r in table.records]
    assert {r.labels[label] for r in records if label in r.labels} | {
        value for table in PAPER.values() for value in table.covers.get(label, ())
    } == known


def test_every_record_has_a_model_and_no_figure_covers_what_tells_it_apart() -> None:
    for name, table in PAPER.items():
        assert all("model" in r.labels and table.covers.keys().isdisjoint(r.labels) for r in table.records), name


def test_shares_are_shares_and_rounds_within_the_limit_of_100() -> None:
    ranges = {"mas/success": (0, 1), "communication_ratio": (0, 0.3), "communication_share": (0, 0.1)}
    ranges |= {"rounds_final": (1, 100)}
    for table in PAPER.values():
        for r in table.records:
            low, high = ranges.get(r.metric, (0, 1e9))
            assert low < r.value <= high, (table.id, r)


def test_table_1_is_what_the_text_says_of_it() -> None:
    rounds = figures("table1", "rounds_final", "model", "condition", "backend")
    communication = figures("table1", "communication_ratio", "model", "condition", "backend")
    assert all(8 <= x < 17 for (_, _, b), x in rounds.items() if b == "Broadcasting")
    assert all(37 < rounds[DEEPSEEK, c, "P2P"] < 39 for c in CONDITIONS)
    assert all(0.22 <= communication[GPT, c, "P2P"] <= 0.23 for c in CONDITIONS)
    assert 0.31 < SUCCESS[QWEN, "CAMOC", "Shared K-V"] - SUCCESS[QWEN, "Base", "Shared K-V"] < 0.34


# ------------------------------------------------------------------------------------ Table 4: costs


def test_costs_follow_from_the_prices() -> None:
    tokens = figures("table4", "tokens_total", "model")
    cost, low, high = (figures("table4", name, "model") for name in ("cost", "cost_low", "cost_high"))
    for model, (input_price, output_price) in PRICES.items():
        millions = tokens[model] / 1e6
        assert low[model] == pytest.approx(millions * input_price, abs=0.005 + 1e-4)
        assert high[model] == pytest.approx(millions * output_price, abs=0.005 + 1e-3)
        assert cost[model] == pytest.approx(millions * (input_price + output_price) / 2, abs=0.005 + 1e-3)
        assert stated_in("table4", f"{model} {input_price:.2f} / {output_price:.2f}")


@pytest.mark.parametrize("metric", ["tokens_total", "tokens_communication", "cost", "cost_low", "cost_high"])
def test_the_row_of_totals_is_the_sum_of_its_models(metric: str) -> None:
    printed = figures("table4", metric, "model")
    assert printed[ALL] == pytest.approx(sum(printed[model] for model in MODELS), abs=0.001)


def test_shares_and_tokens_a_run_are_quotients_of_the_totals() -> None:
    total, part = figures("table4", "tokens_total", "model"), figures("table4", "tokens_communication", "model")
    for model, printed in figures("table4", "communication_share", "model").items():
        assert printed == pytest.approx(part[model] / total[model], abs=0.00005 + 1e-5), model
    for model, printed in figures("table4", "tokens_per_run", "model").items():
        assert printed == pytest.approx(total[model] / 1050, abs=1), model
    assert {r.labels["model"]: r.n for r in PAPER["table4"].records} == {**dict.fromkeys(MODELS, 1050), ALL: 3150}


def test_communication_costs_what_the_text_says() -> None:
    part = figures("table4", "tokens_communication", "model")
    assert sum(part[model] / 1e6 * sum(PRICES[model]) / 2 for model in MODELS) == pytest.approx(3.13, abs=0.005)


# ----------------------------------------------------------------------- Tables 2 and 3 beside Table 1


def fits(share: float, of: int) -> bool:
    """Whether a per cent to one digit is k of so many."""
    return f"{100 * round(share * of) / of:.1f}" == f"{100 * share:.1f}"


def test_table_2_counts_right_agents_not_solved_runs() -> None:
    cells = figures("table2", "mas/success", "agents", "backend", "items")
    runs = {"Broadcasting": 60, "P2P": 60, "Shared K-V": 75}  # batches × 3 models × 5 families
    assert [cell for cell, x in cells.items() if not fits(x, runs[cell[1]] * cell[0])] == []
    assert sum(not fits(x, runs[cell[1]]) for cell, x in cells.items()) > 20
    assert [a for (a, b, _), x in cells.items() if b == "Shared K-V" and not fits(x, 60 * a)] == [
        3,
        3,
        3,
        5,
        10,
        10,
        10,
    ]


def mean_of_table_1(backend: str, conditions: Iterable[str]) -> float:
    return fmean(SUCCESS[model, condition, backend] for model in MODELS for condition in conditions)


def test_table_2_averages_to_table_1_with_base_twice_over_shared_kv() -> None:
    cells = figures("table2", "mas/success", "agents", "backend", "items")
    mean = {b: fmean(x for cell, x in cells.items() if cell[1] == b) for b in BACKENDS}
    for backend in ("Broadcasting", "P2P"):
        assert mean[backend] == pytest.approx(mean_of_table_1(backend, CONDITIONS), abs=0.0005)
    assert mean["Shared K-V"] == pytest.approx(mean_of_table_1("Shared K-V", [*CONDITIONS, "Base"]), abs=0.0005)
    text = f"{100 * mean['Shared K-V']:.1f} %; Table 1 has {100 * mean_of_table_1('Shared K-V', CONDITIONS):.1f} %"
    assert stated_in("table2", text)


def test_table_3_averages_near_table_1_but_not_to_it() -> None:
    mean = fmean(figures("table3", "mas/success", "family").values())
    assert stated_in(
        "table3", f"is {100 * mean:.1f} %, over all of Table 1 it is {100 * fmean(SUCCESS.values()):.1f} %"
    )
    for metric in ("rounds_final", "te_final", "communication_ratio"):
        theirs = fmean(figures("table3", metric, "family").values())
        assert theirs == pytest.approx(
            fmean(figures("table1", metric, "model", "condition", "backend").values()), rel=0.01
        )


# ------------------------------------------------------------------------------- rounds, efficiency, tokens


def test_two_phases_have_the_efficiency_of_one_but_over_shared_kv() -> None:
    ratios = {(m, b): TE[m, "Abl. message", b] / TE[m, "Base", b] for m in MODELS for b in BACKENDS}
    assert all(1 <= ratio < 1.03 for (_, b), ratio in ratios.items() if b != "Shared K-V")
    assert all(ratio < 0.75 for (_, b), ratio in ratios.items() if b == "Shared K-V")


def test_efficiency_is_far_below_what_tokens_and_equation_6_give() -> None:
    from_table_4 = [GRID / tokens * 1e5 for tokens in figures("table4", "tokens_per_run", "model").values()]
    one_agent = [fmean([1, 5, 10]) / tokens * 1e5 for tokens in figures("table8", "tokens_per_run", "backend").values()]
    least = min(*from_table_4, *(te / 5 for te in one_agent))  # one in five runs has one agent
    assert least > 40 > 2 * max(TE.values())
    assert stated_in("table1", f"{min(TE.values()):.1f} to {max(TE.values()):.1f}")


def test_reductions_of_table_7_are_those_that_the_paper_prints() -> None:
    tokens = figures("table7", "tokens_per_right", "model", "condition")
    reduction = {m: f"{100 * (tokens[m, 'CAMOC'] / tokens[m, 'Base'] - 1):.0f}" for m in MODELS}
    assert reduction == {DEEPSEEK: "-54", QWEN: "-49", GPT: "-53"}


def test_table_7_times_success_is_table_6_and_far_more_than_table_4() -> None:
    correct = figures("table7", "tokens_per_right", "model", "condition")
    run = {(m, c): correct[m, c] * SUCCESS[m, c, "Shared K-V"] for m in MODELS for c in ("Base", "CAMOC")}
    assert all(1.02 < run[m, "CAMOC"] / run[m, "Base"] < 1.031 for m in MODELS)
    printed = figures("table6", "tokens_per_run", "backend", "condition")
    for theirs, ours in (("Base/Abl.", "Base"), ("CAMOC", "CAMOC")):
        assert fmean(run[m, ours] for m in MODELS) == pytest.approx(printed["Shared K-V", theirs], rel=0.04)
    assert fmean(printed.values()) > 4 * fmean(figures("table4", "tokens_per_run", "model").values())


@pytest.mark.parametrize(("backend", "low", "high"), [("Shared K-V", 1, 2), ("P2P", -2, -1), ("Broadcasting", -6, -4)])
def test_overheads_of_table_6_are_those_that_the_paper_prints(backend: str, low: float, high: float) -> None:
    tokens = figures("table6", "tokens_per_run", "backend", "condition")
    assert low <= 100 * (tokens[backend, "CAMOC"] / tokens[backend, "Base/Abl."] - 1) <= high
    gains = [TE[m, "CAMOC", b] / TE[m, "Base", b] for m in MODELS for b in ("Broadcasting", "P2P")]
    assert stated_in("table6", f"{min(gains):.1f} to {max(gains):.1f} times")


def test_one_agent_takes_28_percent_more_over_shared_kv() -> None:
    tokens = figures("table8", "tokens_per_run", "backend")
    assert tokens["Shared K-V"] / fmean([tokens["P2P"], tokens["Broadcasting"]]) == pytest.approx(1.28, abs=0.005)
    assert {r.labels["agents"] for r in PAPER["table8"].records} == {1}


# --------------------------------------------------------------------------------- Tables 10 and 11


def test_gains_grow_by_condition_and_sorting_is_not_the_hardest() -> None:
    cells = figures("table10", "mas/success", "condition", "problem")
    for problem in ("maximum", "prefix_sum"):
        row = [cells[condition, problem] for condition in ("Base", "Abl. message", "Abl. submit", "CAMOC")]
        assert row == sorted(row)
    sorting = fmean(SUCCESS[DEEPSEEK, "Base", b] for b in BACKENDS)
    assert sorting > cells["Base", "maximum"] > cells["Base", "prefix_sum"]
    assert stated_in("table10", f"{100 * sorting:.0f} % for Base")


def test_table_11_disagrees_with_table_1_as_its_warning_says() -> None:
    cells = figures("table11", "mas/success", "condition")
    beside = {c: SUCCESS[QWEN, c, "P2P"] for c in CONDITIONS}
    assert all(0.002 < abs(cells[c] - beside[c]) < 0.008 for c in CONDITIONS)
    outputs = [f"{100 * beside[c]:.1f}" for c in ("Base", "Abl. message", "Abl. submit", "CAMOC")]
    assert stated_in("table11", f"{', '.join(outputs[:3])} and {outputs[3]} %")
    assert sorted(cells, key=cells.__getitem__) == ["Abl. submit", "CAMOC", "Abl. message", "Base"]
