"""The kinds of tables of this extension: `compare:` (tests of differences) and `effects:` (main effects)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, NotRequired, TypedDict

from harness.api import Metric
from harness.tables import EpisodeScore, Table, TableKind, TableSpec, text
from harness.tables.entry import LabelValue, LabelValues, Name, Names
from harness.tables.spec import beside

_BESIDE: Final = {
    "columns": "its columns are statistics; name labels in rows",
    "overall": "its columns are statistics, which have no mean",
    "figure": "tests are shown as a table",
    "hide_empty": "its columns are statistics, the same for every row",
    "published": "published figures are not tested",
    "uncertainty": "the tests say how sure a difference is",
}

_Sides = TypedDict("_Sides", {"label": Name, "base": LabelValue, "with": LabelValues, "paired_by": NotRequired[Names]})


class CompareEntry(TypedDict, total=False):
    """The key of a comparison."""

    compare: Annotated[
        _Sides,
        "a mapping with label, base, with (a value or a list of values of the label) and perhaps paired_by (labels in "
        "which the episodes of a pair agree; else the case): exact sign-flip tests of pairs, instead of columns",
    ]


@dataclass(frozen=True, slots=True)
class Compare(TableKind):
    """Which values of a label are compared with which one, and what makes pairs: labels, or else the case."""

    entry: ClassVar[Any] = CompareEntry
    needs: ClassVar[tuple[str, ...]] = ("compare", "rows", "metrics")

    label: str
    base: str
    others: tuple[str, ...]
    paired_by: tuple[str, ...] = ()

    @classmethod
    def read(cls, entry: Mapping[str, Any]) -> Compare:
        """Read `compare:`."""
        sides = entry["compare"]
        others = tuple(map(text, _listed(sides["with"])))
        return cls(sides["label"], text(sides["base"]), others, tuple(_listed(sides.get("paired_by", ()))))

    def labels(self) -> Iterable[tuple[str, Mapping[str, Sequence[str]]]]:
        """The compared label with its values, and those that make pairs."""
        pairs: dict[str, Sequence[str]] = dict.fromkeys(self.paired_by, ())
        yield "compare", {self.label: (self.base, *self.others), **pairs}

    def placed(self) -> Sequence[str]:
        """The compared label."""
        return (self.label,)

    def problems(self, table: TableSpec) -> list[str]:
        """What makes no sense in a table of differences."""
        label, base, mistakes = self.label, self.base, beside(table, "compare", _BESIDE)
        if label in table.rows:
            mistakes.append(f"compare: rows must not have {label!r}: a row holds both sides of a comparison")
        if "metric" in (label, *self.paired_by):
            mistakes.append("compare: use metrics: to choose metrics, each is compared with itself")
        if label in self.paired_by:
            mistakes.append(f"compare: no pair can agree in {label!r}, which distinguishes its two sides")
        if base in self.others:
            mistakes.append(f"compare: {base!r} is compared with itself")
        mistakes += [f"compare: with has {x!r} twice" for x, n in Counter(self.others).items() if n > 1]
        allowed = table.where.get(label, (base, *self.others))
        mistakes += [f"compare: where leaves out {label} {x!r}" for x in (base, *self.others) if x not in allowed]
        return mistakes

    def build(self, table: TableSpec, scores: Sequence[EpisodeScore], metrics: Mapping[str, Metric]) -> Table:
        """As `compare.compare`."""
        from .compare_table import compare

        return compare(table, self, scores, metrics)


class EffectsEntry(TypedDict, total=False):
    """The keys of a table of effects."""

    effects: Annotated[
        Names,
        "a label or a list of distinct labels: how much the values of each move the numbers, instead of columns",
    ]
    interactions: Annotated[bool, "true or false: with effects, also a test for each pair of labels"]


@dataclass(frozen=True, slots=True)
class Effects(TableKind):
    """The labels whose effects are estimated, and whether those of pairs are tested."""

    entry: ClassVar[Any] = EffectsEntry
    needs: ClassVar[tuple[str, ...]] = ("effects", "metrics")
    reserved: ClassVar[frozenset[str]] = frozenset({"statistic", "factor", "level"})

    factors: tuple[str, ...]
    interactions: bool = False

    @classmethod
    def read(cls, entry: Mapping[str, Any]) -> Effects:
        """Read `effects:` and `interactions:`."""
        return cls(tuple(_listed(entry["effects"])), entry.get("interactions", False))

    def labels(self) -> Iterable[tuple[str, Mapping[str, Sequence[str]]]]:
        """The factors."""
        yield "effects", dict.fromkeys(self.factors, ())

    def problems(self, table: TableSpec) -> list[str]:
        """What makes no sense in a table of effects."""
        mistakes = ["effects: use metrics: to choose metrics, each has effects of its own"] * ("metric" in self.factors)
        mistakes += [
            f"effects: {label!r} is in rows, and a row has one value of it"
            for label in self.factors
            if label in table.rows
        ]
        alone = [label for label in self.factors if len(table.where.get(label, "ab")) == 1]
        mistakes += [f"effects: where leaves {label} one value: there is nothing to compare" for label in alone]
        if self.interactions and len(self.factors) < 2:
            mistakes.append("interactions: effects needs two labels or more, whose pairs are tested")
        return beside(table, "effects", _BESIDE) + mistakes

    def check(self, table: TableSpec, labels: Mapping[str, Sequence[str]], metrics: Iterable[str]) -> list[str]:
        """Labels of too many values: numbers that count, such as those of cases."""
        from .effects_model import many_levels

        return many_levels(self.factors, labels)

    def build(self, table: TableSpec, scores: Sequence[EpisodeScore], metrics: Mapping[str, Metric]) -> Table:
        """As `tables.effects`."""
        from .effects_table import effects

        return effects(table, metrics, scores)


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else [value]
