"""What a table's entry may say in YAML."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, Required, TypedDict

from harness.api import Range
from harness.parameters import Keywords

from .groups import RowGroupEntry
from .table import ErrorStyle, Figure, Unit

Means = Literal["mean_of_conditions", "pooled"]
Kind = Literal["rating", "cross_play", "self_play"]
Model = Literal["bradley_terry", "plackett_luce", "elo", "openskill"]
Value = Literal["points", "return"]

_Name = Annotated[str, Keywords(minLength=1)]
_Names = _Name | Annotated[list[_Name], Keywords(minItems=1, uniqueItems=True)]
_Value = str | float | bool
_Values = _Value | Annotated[list[_Value], Keywords(minItems=1)]
_Pair = Annotated[list[_Name], Keywords(minItems=2, maxItems=2)]
_ErrorWord = Literal["sem", "std", "interval", "wilson", "t"]
_Decimals = Annotated[int, Range(ge=0, le=10)]


class CostEntry(TypedDict, total=False):
    """The metrics of a sum of money."""

    input: _Name
    output: _Name


CompareEntry = TypedDict(
    "CompareEntry", {"label": _Name, "base": _Value, "with": _Values, "paired_by": NotRequired[_Names]}
)


class TableEntry(TypedDict, total=False):
    """One entry of a spec's `tables:` in YAML."""

    title: Required[Annotated[_Name, "a text: the table's heading"]]
    rows: Annotated[_Names, "a label or a list of distinct labels: what makes a row; optional with effects, kind"]
    cell: Annotated[_Names, "a metric or a list of distinct metrics: what stands in a cell; of for tables of games"]
    columns: Annotated[_Names, "a label or a list of distinct labels: what makes a column"]
    ratio: Annotated[
        dict[str, _Pair],
        "a mapping of new names, to be used in cell, to two metrics: the sum of the first over the sum of the second",
    ]
    loss: Annotated[
        dict[str, _Pair],
        "a mapping of new names, to be used in cell, to two metrics: what is lost from the first to the second, "
        "1 − mean of the second / mean of the first",
    ]
    cost: Annotated[
        dict[str, Annotated[CostEntry, Keywords(minProperties=1)]],
        "a mapping of new names, to be used in cell, to {input: metric, output: metric}, or one of them: the USD that "
        "so many tokens cost at the spec's prices, over all episodes",
    ]
    compare: Annotated[
        CompareEntry,
        "a mapping with label, base, with (a value or a list of values of the label) and perhaps paired_by (labels): "
        "Welch's t test, and an exact sign-flip test of pairs, instead of columns",
    ]
    effects: Annotated[
        _Names,
        "a label or a list of distinct labels: how much the values of each move the numbers, instead of columns",
    ]
    interactions: Annotated[bool, "true or false: with effects, also a test for each pair of labels"]
    kind: Annotated[
        Kind,
        "rating (how strong contestants are), cross_play (each against each) or self_play (with themselves and with "
        "others): a table of games, instead of columns",
    ]
    of: Annotated[_Name, "with kind, a metric: the results of games, such as games/results"]
    model: Annotated[
        Model,
        "with kind: rating, how ratings come from games; without it bradley_terry, or plackett_luce where some game "
        "has more than two contestants",
    ]
    anchor: Annotated[
        float | _Name,
        "with kind: rating, a number: the mean of all ratings, 1500 unless it says otherwise; or a contestant: its "
        "rating is 0, and others are differences from it",
    ]
    k_factor: Annotated[float, Range(gt=0, le=1_000), "with model: elo, how much a game changes; 16 by default"]
    value: Annotated[Value, "with kind: cross_play, points (the row's share of them, the default) or return"]
    split: Annotated[
        dict[str, dict[str, Annotated[dict[_Name, _Value], Keywords(minProperties=1)]]],
        "a mapping of labels to a mapping of their values to new labels of this table, such as "
        "{condition: {sim5c: {mode: at once, talk: true}}}",
    ]
    where: Annotated[dict[str, _Values], "a mapping of labels to the value, or list of values, that episodes must have"]
    aggregate: Annotated[Means, "mean_of_conditions or pooled: how a cell is averaged"]
    overall: Annotated[Means | None, "mean_of_conditions, pooled or null: a last column"]
    overall_title: Annotated[_Name, "a text: the heading of the last column"]
    error: Annotated[
        _ErrorWord | dict[str, _ErrorWord] | None,
        "sem (standard error), std (population standard deviation), interval (95 %), a mapping of metrics to these, or "
        "null: the uncertainty shown; wilson and t are other words for interval",
    ]
    cluster: Annotated[
        _Names,
        "case or labels, or several: episodes that agree in these are one observation; or episode: every one is; by "
        "default repeats of a case in a condition are one",
    ]
    error_style: Annotated[
        ErrorStyle, "parentheses, as in 0.67 (0.17), or plus_minus, as in 0.67 ± 0.17, for sem and std"
    ]
    digits: Annotated[
        _Decimals | dict[str, _Decimals],
        "a whole number from 0 to 10, or a mapping of metrics to such numbers: the decimals shown",
    ]
    unit: Annotated[
        Unit | dict[str, Unit] | None, "thousands, percent or null, or a mapping of metrics to one of the first two"
    ]
    published: Annotated[_Names, "the id, or a list of ids, of published tables to compare with"]
    paper: Annotated[_Names, "the table's number in a paper, or a list of them, such as AgentsNet Figure 4"]
    labels: Annotated[dict[str, str], "a mapping of labels, values or metrics to the text shown for them"]
    order: Annotated[dict[str, list[_Value]], "a mapping of labels to lists of values: those come first, in that order"]
    groups: Annotated[
        list[RowGroupEntry],
        "a list of {title, of}: rows that are the mean of other rows, set apart from them; weight: size or equal",
    ]
    hide_empty: Annotated[bool, "true or false: leave out columns in which no row has a number"]
    note: Annotated[str | None, "a text under the table"]
    figure: Annotated[
        bool | Figure | None,
        "bar (or true), line, stacked: figure data in tidy rows instead of a table; stacked are the values of a "
        "column label, each with its share of their mean, or several metrics, which add up; heat: a table, drawn too",
    ]
