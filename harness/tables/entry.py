"""The keys that every entry of `tables:` may have; further kinds of tables add keys (`harness.tables.kinds`)."""

from __future__ import annotations

from typing import Annotated, Literal, Required, TypedDict

from harness.api import Range
from harness.plugins.parameters import Keywords

from .table import ErrorStyle, Figure, Unit

Means = Literal["mean_of_conditions", "pooled"]

Name = Annotated[str, Keywords(minLength=1)]
Names = Name | Annotated[list[Name], Keywords(minItems=1, uniqueItems=True)]
LabelValue = str | float | bool
LabelValues = LabelValue | Annotated[list[LabelValue], Keywords(minItems=1)]
_Pair = Annotated[list[Name], Keywords(minItems=2, maxItems=2)]
_ErrorWord = Literal["sem", "std", "interval", "wilson", "t"]
_Decimals = Annotated[int, Range(ge=0, le=10)]


class TableEntry(TypedDict, total=False):
    """One entry of a spec's `tables:` in YAML."""

    title: Required[Annotated[Name, "a text: the table's heading"]]
    rows: Annotated[Names, "a label or a list of distinct labels: what makes a row; optional in some kinds of tables"]
    metrics: Annotated[Names, "a metric or a list of distinct metrics: what stands in a cell"]
    columns: Annotated[Names, "a label or a list of distinct labels: what makes a column"]
    ratio: Annotated[
        dict[str, _Pair],
        "a mapping of new names, to be used in `metrics`, to two metrics: the first's sum over the second's",
    ]
    relative_drop: Annotated[
        dict[str, _Pair],
        "a mapping of new names, to be used in `metrics`, to two metrics: what is lost from the first to the second, "
        "1 − mean of the second / mean of the first",
    ]
    kind: Annotated[str, "what other kind of table it is, of those that extensions add; without it a plain one"]
    where: Annotated[
        dict[str, LabelValues], "a mapping of labels to the value, or list of values, that episodes must have"
    ]
    aggregate: Annotated[Means, "mean_of_conditions or pooled: how a cell is averaged"]
    overall: Annotated[Means | None, "mean_of_conditions, pooled or null: a last column"]
    overall_title: Annotated[Name, "a text: the heading of the last column"]
    uncertainty: Annotated[
        _ErrorWord | dict[str, _ErrorWord] | None,
        "sem (standard error), std (population standard deviation), interval (95 %), a mapping of metrics to these, or "
        "null: the uncertainty shown; wilson and t are other words for interval",
    ]
    cluster: Annotated[
        Names,
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
    published: Annotated[Names, "the id, or a list of ids, of published tables to compare with"]
    paper: Annotated[Names, "the table's number in a paper, or a list of them, such as AgentsNet Figure 4"]
    labels: Annotated[dict[str, str], "a mapping of labels, values or metrics to the text shown for them"]
    order: Annotated[
        dict[str, list[LabelValue]], "a mapping of labels to lists of values: those come first, in that order"
    ]
    hide_empty: Annotated[bool, "true or false: leave out columns in which no row has a number"]
    note: Annotated[str | None, "a text under the table"]
    figure: Annotated[
        bool | Figure | None,
        "bar (or true), line, stacked: figure data in tidy rows instead of a table; stacked are the values of a "
        "column label, each with its share of their mean, or several metrics, which add up; heat: a table, drawn too",
    ]
