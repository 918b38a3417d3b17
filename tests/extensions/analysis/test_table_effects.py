"""Tables of effects: by hand, in designs with gaps, what has no number and why, what is refused, how it is shown."""

from __future__ import annotations

import csv
import io
import itertools
import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy
import pytest
import scipy.stats

from harness.api import Episode, Metric
from harness.api.errors import SpecError
from harness.extensions.analysis.effects_model import fit
from harness.extensions.charts.page_html import page
from harness.report import FORMATS, render
from harness.tables import EpisodeScore, Table, TableSpec, build, check


class Mean(Metric):
    def measure(self, episode: Episode) -> float | None:
        return None


METRICS: dict[str, Metric] = {"score": Mean(), "tokens": Mean()}
ENTRY = {"title": "T", "effects": ["hears", "style"], "metrics": "score"}
Cell = tuple[int, str, str]
FULL: list[Cell] = list(itertools.product(range(4), ("all", "ring", "star"), ("free", "short")))
# question → hears → (free, short)
NUMBERS = {
    0: {"all": (5, 3), "ring": (4, 4), "star": (1, 2)},
    1: {"all": (6, 5), "ring": (2, 1), "star": (2, 0)},
    2: {"all": (9, 5), "ring": (7, 6), "star": (6, 6)},
    3: {"all": (2, 1), "ring": (1, 0), "star": (0, 1)},
}


def number(cell: Cell) -> float:
    question, hears, style = cell
    return float(NUMBERS[question][hears][style == "short"])


def episodes(cells: Iterable[Cell] = FULL, value: Callable[[Cell], float | None] = number, **more: Any) -> list[Any]:
    return [
        EpisodeScore(
            f"{hears}-{style}/q{question}/{i}",
            f"{hears}-{style}",
            {"model": "m", "hears": hears, "style": style, "question": question, **more},
            {"score": value((question, hears, style)), "tokens": 100.0 * i},
        )
        for i, (question, hears, style) in enumerate(cells)
    ]


def made(scores: Sequence[EpisodeScore], **entry: Any) -> Table:
    return build(TableSpec.parse({**ENTRY, **entry}), scores, METRICS)


def values(table: Table) -> dict[tuple[Any, ...], dict[str, float | None]]:
    """(Factor, level) → statistic → number; blank cells are left out."""
    names = [column.key["statistic"] for column in table.columns]
    return {
        (row.key["factor"], row.key["level"]): {
            name: cell.value for name, cell in zip(names, row.cells, strict=True) if not cell.blank
        }
        for row in table.rows
    }


# ------------------------------------------------------------------------------------------- values


def test_a_full_design_has_the_means_and_squares_of_an_analysis_of_variance() -> None:
    shown = values(made(episodes()))
    numbers = {cell: number(cell) for cell in FULL}
    grand = statistics.fmean(numbers.values())
    total = sum((x - grand) ** 2 for x in numbers.values())
    for place, label in ((1, "hears"), (2, "style")):
        groups: dict[str, list[float]] = {}
        for cell, x in numbers.items():
            groups.setdefault(str(cell[place]), []).append(x)
        for level, group in groups.items():
            mean = statistics.fmean(group)
            expected = {"n": len(group), "mean": mean, "difference": mean - grand}
            assert shown[label, level] == pytest.approx(expected)
        squares = sum(len(group) * (statistics.fmean(group) - grand) ** 2 for group in groups.values())
        assert shown[label, None]["share"] == pytest.approx(squares / total)
    assert shown["grand mean", None] == pytest.approx({"n": 24, "mean": grand})
    assert shown["hears", "all"]["mean"] == 4.5  # 36 / 8


def test_its_tests_are_those_of_the_effects_that_each_question_has() -> None:
    table = made(episodes())
    shown = values(table)
    by_style = [statistics.fmean(free - short for free, short in NUMBERS[question].values()) for question in NUMBERS]
    student = scipy.stats.ttest_1samp(by_style, 0).statistic ** 2
    style = shown["style", None]
    assert (style["f"], style["df"], style["df_error"]) == (pytest.approx(student), 1, 3)
    assert style["p"] == pytest.approx(scipy.stats.f.sf(student, 1, 3))
    # The analysis of variance of repeated measures by hand, with the correction of Greenhouse and Geisser.
    own = numpy.array([[statistics.fmean(pair) for pair in NUMBERS[question].values()] for question in NUMBERS])
    own -= own.mean(axis=1, keepdims=True)
    mean, spread = own.mean(axis=0), numpy.cov(own.T)
    between, within = 4 * (mean**2).sum() / 2, ((own - mean) ** 2).sum() / (2 * 3)
    epsilon = spread.trace() ** 2 / (2 * (spread**2).sum())
    hears = shown["hears", None]
    assert hears["f"] == pytest.approx(between / within)
    assert (hears["df"], hears["df_error"]) == (pytest.approx(2 * epsilon), pytest.approx(2 * epsilon * 3))
    assert hears["p"] == pytest.approx(scipy.stats.f.sf(between / within, 2 * epsilon, 6 * epsilon))
    half = scipy.stats.t.ppf(0.975, 3) * math.sqrt(spread[0, 0] / 4)
    [cell] = [row.cells[2] for row in table.rows if row.key["level"] == "all"]
    assert (cell.low, cell.high) == pytest.approx((mean[0] - half, mean[0] + half))
    smaller, larger = sorted([style["p"], hears["p"]])
    assert sorted([style["p_holm"], hears["p_holm"]]) == pytest.approx([2 * smaller, max(2 * smaller, larger)])


@pytest.mark.parametrize(("cases", "sizes", "repeats"), [(2, (2,), 1), (5, (4,), 2), (4, (3, 2), 1), (6, (2, 4), 3)])
@pytest.mark.parametrize("seed", range(3))
def test_designs_of_repeated_measures_have_the_tests_of_statsmodels(
    cases: int, sizes: tuple[int, ...], repeats: int, seed: int
) -> None:
    """AnovaRM, for every factor and pair; degrees of freedom apart, which it does not correct."""
    import pandas
    from statsmodels.stats.anova import AnovaRM  # half a second, which other files need not wait for

    lots = numpy.random.default_rng(seed)
    rows = [*itertools.product(range(cases), *map(range, sizes), range(repeats))]
    factors = [list(column) for column in zip(*(row[1:-1] for row in rows), strict=True)]
    numbers = [float(lots.normal() + row[0] * (1 + 0.3 * row[1])) for row in rows]
    names = ["a", "b"][: len(sizes)]
    frame = pandas.DataFrame({"y": numbers, "case": [row[0] for row in rows], **dict(zip(names, factors, strict=True))})
    expected = AnovaRM(frame, "y", "case", within=names, aggregate_func="mean").fit().anova_table
    found = fit(numbers, factors, frame["case"].tolist(), pairs=len(sizes) > 1)
    terms = [*found.terms, *found.pairs]
    assert [term.statistic for term in terms] == pytest.approx(list(expected["F Value"]))
    for term, most, error in zip(terms, expected["Num DF"], expected["Den DF"], strict=True):
        assert term.df is not None and term.df[0] <= most + 1e-9
        assert term.df[1] == pytest.approx(term.df[0] * error / most)  # both by the same factor (Greenhouse, Geisser)
        if most == 1:
            assert term.df == (1, error) and term.pvalue == pytest.approx(scipy.stats.f.sf(term.statistic, 1, error))
    if sizes == (2,):
        [[one, other]] = [[[x for x, a in zip(numbers, factors[0], strict=True) if a == level] for level in (0, 1)]]
        ends = scipy.stats.ttest_rel(one, other).confidence_interval(0.95)
        assert found.terms[0].levels[0].interval == pytest.approx((ends.low / 2, ends.high / 2))


@pytest.mark.parametrize(("levels", "each"), [(2, 2), (2, 9), (4, 5)])
def test_values_with_cases_of_their_own_have_the_tests_of_scipy(levels: int, each: int) -> None:
    lots = numpy.random.default_rng(levels)
    groups = [lots.normal(size=each) for _ in range(levels)]
    numbers, factor = numpy.concatenate(groups), [level for level in range(levels) for _ in range(each)]
    [term] = fit(numbers.tolist(), [factor], range(levels * each)).terms
    assert term.statistic == pytest.approx(scipy.stats.f_oneway(*groups).statistic)
    assert term.df is not None and term.df[0] <= levels - 1 and term.df[1] <= levels * (each - 1)
    if levels == 2:
        ends = scipy.stats.ttest_ind(*groups).confidence_interval(0.95)
        assert term.levels[0].interval == pytest.approx((ends.low / 2, ends.high / 2))


def test_gaps_are_filled_by_the_model_and_not_by_the_means_of_what_there_is() -> None:
    level = {"all": 3.0, "ring": 0.0, "star": -3.0, "free": 1.0, "short": -1.0}
    cells = [cell for cell in FULL if cell[1:] != ("all", "short") and cell[:2] != (2, "star")]
    shown = made(episodes(cells, lambda cell: 10 + level[cell[1]] + level[cell[2]]))
    numbers = values(shown)
    assert {name[1]: round(x["difference"], 9) for name, x in numbers.items() if "difference" in x} == level
    assert numbers["hears", "all"]["mean"] == pytest.approx(13)  # its plain mean is 14
    assert numbers["grand mean", None]["mean"] == pytest.approx(10)
    assert "1 of 6 combinations of values have no number: the model fills the gaps." in shown.notes


def test_several_models_and_metrics_have_effects_of_their_own() -> None:
    both = [*episodes(), *episodes(model="other")]
    table = made(both, metrics=["score", "tokens"])
    assert table.row_labels == ("model", "metric", "factor", "level")
    assert len(table.rows) == 4 * 8
    as_factor = made(both, effects=["hears", "model"])
    assert as_factor.row_labels == ("factor", "level")
    assert values(as_factor)["model", "other"]["difference"] == pytest.approx(0)


def test_rows_split_the_episodes_and_order_and_labels_say_how_levels_stand() -> None:
    table = made(episodes(), effects="hears", rows="style", order={"hears": ["star"]}, labels={"star": "Star"})
    assert [row.names for row in table.rows[:3]] == [
        ("free", "hears", ""),
        ("free", "hears", "Star"),
        ("free", "hears", "all"),
    ]
    assert values(made(episodes(), effects="hears", where={"style": "free"}))["hears", "all"]["mean"] == 5.5  # 22 / 4


def test_pairs_of_factors_are_tested_if_wanted() -> None:
    crossed = {("all", "free"): 1.0, ("ring", "free"): 0.0, ("all", "short"): 0.0, ("ring", "short"): 1.0}
    cells = [cell for cell in FULL if cell[1] != "star"]
    table = made(
        episodes(cells, lambda cell: crossed[cell[1:]] + 0.1 * cell[0] * (cell[1:] == ("all", "free"))),
        interactions=True,
    )
    shown = values(table)
    pair = shown["hears × style", None]
    assert pair["share"] > 0.8 and pair["p"] < 0.01 and pair["df"] == 1
    assert shown["hears", None]["share"] < 0.05


# ------------------------------------------------------------------------------- what has no number


@pytest.mark.parametrize(
    ("scores", "entry", "note"),
    [
        (episodes([c for c in FULL if c[2] == "free"]), {}, "style: one value only."),
        (episodes([c for c in FULL if (c[1] == "all") == (c[2] == "free")]), {}, "hears, style: the values go along"),
        (episodes([c for c in FULL if c[0] == 0]), {}, "hears, style: too few observations for intervals"),
        (episodes(value=lambda cell: 0.5), {}, "hears, style: the effect is the same in every observation"),
        (episodes(value=lambda cell: float(cell[1] == "all")), {}, "hears, style: the effect is the same"),
        (episodes([c for c in FULL if c[1] != "all" or c[0] == 1]), {}, "hears: too few observations for intervals"),
    ],
)  # fmt: skip
def test_what_has_no_test_says_why(scores: list[EpisodeScore], entry: dict[str, Any], note: str) -> None:
    table = made(scores, **entry)
    assert any(line.startswith(note) for line in table.notes), table.notes
    untested = note.split(":")[0].split(", ")
    shown = values(table)
    assert [(shown[label, None]["p"], shown[label, None]["f"]) for label in untested] == [(None, None)] * len(untested)
    for form in FORMATS:
        assert "nan" not in render(table, form)


def test_levels_that_always_agree_cost_the_test_a_degree_of_freedom() -> None:
    same = made(episodes(value=lambda cell: number((cell[0], "all" if cell[1] == "ring" else cell[1], cell[2]))))
    assert values(same)["hears", None]["df"] == 1


def test_failed_episodes_and_missing_levels_are_counted_and_not_averaged() -> None:
    table = made(episodes(value=lambda cell: None if cell[1] == "star" else number(cell)))
    assert values(table)["hears", "star"] == {"n": 0, "mean": None, "difference": None}
    assert values(table)["hears", None]["df"] == 1
    assert "hears star: no episode has a number." in table.notes
    assert "score: not reported in 8 of 24 episodes." in table.notes
    assert made([]).notes == ("There are no episodes to show.",)


def test_what_counts_as_one_observation() -> None:
    alone = made(episodes(), cluster="episode")
    assert values(alone)["style", None]["df_error"] == 24 - 4
    by_label = made(episodes(), cluster="question")
    assert values(by_label) == values(made(episodes()))
    assert (
        "Standard errors and tests treat episodes with equal question as one observation (clustered, 4 of them)."
        in by_label.notes
    )


# ------------------------------------------------------------------------------------------ mistakes


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"effects": ["haers"]}, "effects: unknown label 'haers'. Did you mean hears?"),
        ({"effects": []}, "'effects' must not be empty"),
        ({"effects": ["hears", "metric"]}, "effects: use metrics: to choose metrics"),
        ({"rows": "hears"}, "effects: 'hears' is in rows, and a row has one value of it"),
        ({"where": {"hears": "all"}}, "effects: where leaves hears one value: there is nothing to compare"),
        ({"columns": "question"}, "effects: columns cannot stand beside it: its columns are statistics"),
        ({"uncertainty": "sem"}, "effects: uncertainty cannot stand beside it"),
        ({"aggregate": "mean_of_conditions"}, "effects: it is made of episodes"),
        ({"effects": "hears", "interactions": True}, "interactions: effects needs two labels or more"),
        ({"ratio": {"x": ["score", "tokens"]}, "metrics": "x"}, "effects: 'x' is a ratio, which episodes have no"),
        ({"compare": {"label": "model", "base": "a", "with": "b"}, "rows": "question"}, "compare: effects is another"),
        ({"effects": ["question"]}, "effects: question has 61 values, and 60 are the most"),
    ],
)  # fmt: skip
def test_mistakes_are_found_before_a_run(entry: dict[str, Any], problem: str) -> None:
    labels = {"hears": ["all", "ring"], "style": ["free", "short"], "question": list(range(61))}
    assert any(line.startswith(problem) for line in check({**ENTRY, **entry}, labels, METRICS))


def test_a_table_without_rows_is_one_of_effects() -> None:
    assert check({"title": "T", "metrics": "score"}, {}, METRICS) == ["missing required key 'rows'"]
    assert check(ENTRY, {"hears": ["all", "ring"], "style": []}, METRICS) == []


def test_a_label_of_too_many_values_is_refused() -> None:
    many = [(question, "all", "free") for question in range(61)]
    with pytest.raises(SpecError, match="question has 61 values"):
        made(episodes(many, lambda cell: 1.0), effects="question")


# -------------------------------------------------------------------------------------------- forms


def test_every_form_shows_it() -> None:
    table = made(episodes(), digits=1, interactions=True)
    lines = render(table).splitlines()
    assert lines[2].split() == [
        *("factor", "level", "n", "mean", "difference", "share", "of", "variance"),
        *("F", "df", "df", "(error)", "p", "p", "(Holm)"),
    ]
    assert "all" in lines[5] and "[" in lines[5] and "–" not in lines[5]
    rows = list(csv.DictReader(io.StringIO(render(table, "csv"))))
    assert [row["statistic"] for row in rows if row["level"] == "ring"] == ["n", "mean", "difference"]
    assert "blank" not in rows[0]
    assert "hears × style" in page("Page", [table])


class Share(Mean):
    bounds = (0, 1)


def test_no_interval_ends_beyond_what_is_possible() -> None:
    two = episodes([c for c in FULL if c[0] < 2], lambda cell: 0.9 * (cell[0] == (cell[1] == "all")))
    table = build(TableSpec.parse(ENTRY), two, {**METRICS, "score": Share()})
    free = build(TableSpec.parse(ENTRY), two, METRICS)
    [bounded, unbounded] = [
        next(row.cells[2] for row in one.rows if row.key["level"] == "all") for one in (table, free)
    ]
    assert unbounded.high > 1 and (bounded.low, bounded.high) == (-1, 1)


def test_notes_say_of_which_model_they_are_and_use_the_names_that_readers_see() -> None:
    flat = episodes(value=lambda cell: 0.5, model="other")
    table = made([*episodes(), *flat], labels={"hears": "Hearing", "other": "Other"})
    assert "Other: Hearing, style: the effect is the same in every observation, so there is no test." in table.notes
