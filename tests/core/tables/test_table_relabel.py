"""`relabel:` in tables: labels made of another label's values, in cells, tests, orders, and mistakes."""

from __future__ import annotations

from typing import Any

import pytest

from harness.api import Episode, Metric
from harness.config import resolve, spec
from harness.config.project import builtin
from harness.tables import EpisodeScore, TableSpec, build, check


class Number(Metric):
    def measure(self, episode: Episode) -> float | None:
        return None


SPLIT: dict[str, dict[str, Any]] = {
    "condition": {name: {"mode": name[:3], "talk": name[3] == "c"} for name in ("simc", "simn", "seqc", "seqn")}
}
ENTRY: dict[str, Any] = {"title": "T", "rows": "mode", "columns": "talk", "metrics": "x", "relabel": SPLIT}
LABELS: dict[str, list[Any]] = {"condition": ["simc", "simn", "seqc", "seqn"], "size": [4]}
SCORES = [
    EpisodeScore(f"{name}/{i}/0", name, {"model": "m", "condition": name, "size": 4}, {"x": float(i + n)})
    for n, name in enumerate(LABELS["condition"])
    for i in range(3)
]


def test_new_labels_make_rows_and_columns() -> None:
    table = build(TableSpec.parse(ENTRY), SCORES, {"x": Number()})
    assert [(row.names, [cell.value for cell in row.cells]) for row in table.rows] == [
        (("sim",), [1.0, 2.0]),
        (("seq",), [3.0, 4.0]),
    ]
    assert [column.names for column in table.columns] == [("talk true",), ("talk false",)]
    assert SCORES[0].labels.keys() == {"model", "condition", "size"}
    only = build(
        TableSpec.parse({**ENTRY, "where": {"talk": True}, "order": {"mode": ["seq"]}}), SCORES, {"x": Number()}
    )
    assert [row.names for row in only.rows] == [("seq",), ("sim",)] and len(only.columns) == 1


def test_new_labels_are_compared() -> None:
    entry = {k: v for k, v in ENTRY.items() if k != "columns"}
    compared = {**entry, "compare": {"label": "talk", "base": False, "with": True}}
    assert check(compared, LABELS, ["x"]) == []
    table = build(TableSpec.parse(compared), SCORES, {"x": Number()})
    assert [row.key["mode"] for row in table.rows] == ["sim", "seq"]


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"relabel": {"conditoin": SPLIT["condition"]}}, "relabel: unknown label 'conditoin'. Did you mean condition?"),
        ({"relabel": {"condition": {"simc": {"mode": "s", "talk": 1}}}}, "relabel: condition simn has no mode, talk."),
        ({"relabel": {"condition": {**SPLIT["condition"], "simn": {"mode": "s"}}}}, "relabel: condition simn has no"),
        ({"relabel": {"condition": {"simc": {"size": 1}}}, "rows": "size", "columns": "model"}, "relabel: the name 's"),
        ({"relabel": {"condition": {"simc": {"n": 1}}}, "rows": "size", "columns": "model"}, "relabel: the name 'n'"),
        ({"relabel": {"condition": {"simc": {}}}}, "relabel: 'simc' must not be empty"),
        ({"relabel": {"condition": {"simc": {"mode": [1]}}}}, "relabel: 'mode' must be text or a number"),
        ({"rows": "mood"}, "rows: unknown label 'mood'. Did you mean mode or model?"),
        ({"where": {"mode": "par"}}, "where: mode is never 'par'."),
        ({"groups": [{"title": "all", "of": ["sim", "par"]}]}, "groups: 'all': mode is never 'par'."),
    ],
)  # fmt: skip
def test_mistakes_are_explained(entry: dict[str, Any], problem: str) -> None:
    found = check({**ENTRY, **entry}, LABELS, ["x"])
    assert any(line.startswith(problem) for line in found), found


def test_a_part_of_the_values_is_enough_where_no_others_are_played() -> None:
    more = {"condition": {**SPLIT["condition"], "parc": {"mode": "par", "talk": True}}}
    assert check({**ENTRY, "relabel": more}, LABELS, ["x"]) == []
    assert check({**ENTRY, "relabel": more}, ["condition"], ["x"]) == []


def test_figure_4_of_dpbench_has_talk_beside_none() -> None:
    loaded = spec.load("dpbench", builtin())
    entry = TableSpec.parse(next(e for e in loaded.tables if e.get("paper") == "DPBench Figure 4"))
    names = [one["name"] for one in loaded.data["matrix"]["condition"]]
    rates = {name: float("5c" in name) for name in names}
    scores = [
        EpisodeScore(f"{n}/k/{i}", n, {"model": "m", "condition": n}, {"dpbench/deadlock_rate": rates[n]})
        for n in names
        for i in range(2)
    ]
    table = build(entry, scores, resolve.metrics(loaded, builtin()))
    assert [(row["x"], row["series"], row["value"]) for row in table.long()] == [
        (f"{size}, {mode}", series, float(size == 5 and series == "with talk"))
        for size in (5, 3)
        for mode in ("simultaneous", "sequential")
        for series in ("without talk", "with talk")
    ]
