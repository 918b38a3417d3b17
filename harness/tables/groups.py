"""Rows that summarize several rows (`groups:` of a table): read and checked. Next: `group_rows`, which fills them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Required, TypedDict

from harness.api import Metric
from harness.api.errors import near
from harness.plugins.parameters import Keywords

from .axis import Key
from .group_rows import GroupRows, RowGroup, Weight, label_of
from .keys import TableKey
from .scores import averaged_first, observations
from .spec import TableSpec
from .stats import Stratum
from .table import Row, text

if TYPE_CHECKING:
    from .keys import Behind

_Name = Annotated[str, Keywords(minLength=1)]


class RowGroupEntry(TypedDict, total=False):
    """One entry of a table's `groups:` in YAML."""

    title: Required[Annotated[_Name, "a text: the group's name"]]
    of: Required[
        Annotated[
            list[str | float | bool],
            Keywords(minItems=1, uniqueItems=True),
            "a list of values of the first row label, or of titles of other groups",
        ]
    ]
    weight: Annotated[Weight, "size (rows count by their observations, the default) or equal (all rows count the same)"]
    metrics: Annotated[
        list[_Name], Keywords(minItems=1, uniqueItems=True), "some of the table's metrics: the others stay empty"
    ]


class GroupsEntry(TypedDict, total=False):
    """The key of a table with groups."""

    groups: Annotated[
        list[RowGroupEntry],
        "a list of {title, of}: rows that are the mean of other rows, set apart from them; weight: size or equal",
    ]


@dataclass(frozen=True, slots=True)
class Groups(TableKey):
    """`groups:` of a table.

    Attributes:
        groups: the groups, in the order of their rows.
        mistakes: what is wrong with how they are made of one another.
    """

    entry: ClassVar[Any] = GroupsEntry

    groups: tuple[RowGroup, ...]
    mistakes: tuple[str, ...] = ()
    behind: Behind | None = field(default=None, repr=False, compare=False)

    @classmethod
    def read(cls, entry: Mapping[str, Any]) -> Groups:
        """Read `groups:`."""
        groups, mistakes = parsed(entry["groups"])
        return cls(groups, tuple(mistakes))

    def problems(self, table: TableSpec) -> list[str]:
        """What makes no sense in a table with groups."""
        mistakes = [*self.mistakes]
        for group in self.groups:
            absent = [name for name in group.cells if name not in table.cells]
            mistakes += [f"groups: {group.title!r}: metrics has no {x!r}. {near(x, table.cells)}" for x in absent]
            mistakes += [f"groups: {x!r} has no mean over rows" for x in group.cells if x in table.summed]
        if label_of(table.rows) is None:
            mistakes.append("groups: rows need a label besides model and metric, whose values they name")
        if table.figure:
            mistakes.append("a figure has no groups")
        return mistakes

    def check(self, table: TableSpec, labels: Mapping[str, Sequence[Any]]) -> list[str]:
        """Members that no row can have; nothing where the label's values are unknown."""
        label = label_of(table.rows)
        possible = [*map(text, labels.get(label, ()))] if label is not None else []
        absent = [(group, name) for group in self.groups for name in group.members if possible and name not in possible]
        return [f"groups: {group.title!r}: {label} is never {name!r}. {near(name, possible)}" for group, name in absent]

    def with_episodes(self, behind: Behind) -> Groups:
        """The groups, with access to the episodes behind the rows."""
        return replace(self, behind=behind)

    def more_rows(
        self,
        table: TableSpec,
        rows: Mapping[Key, Row],
        columns: Sequence[tuple[Key | None, str | None]],
        metrics: Mapping[str, Metric],
    ) -> tuple[list[Row], list[str]]:
        """As `group_rows.GroupRows.rows`."""
        bounds = {name: metric.bounds for name, metric in metrics.items()}

        def observed(row: Key, at: int, name: str) -> list[Stratum]:
            if self.behind is None:
                return []
            scores, how = self.behind(row, *columns[at])
            derived = table.derived.get(name)
            parts = [
                observations(g, derived.metrics[0] if derived else name, table.cluster)
                for g in averaged_first(scores, how)
            ]
            return [part for part in parts if part]

        maker = GroupRows(
            self.groups, table.rows, table.labels, table.uncertainty, table.summed, table.cells[0], bounds, observed
        )
        return maker.rows(rows, [metric for _, metric in columns])


def parsed(entries: Sequence[Mapping[str, Any]]) -> tuple[tuple[RowGroup, ...], list[str]]:
    """The groups of a table's entry, with the rows of other groups that `of` names; and what is wrong with them."""
    parts = {entry["title"]: tuple(map(text, entry["of"])) for entry in entries}
    done: list[RowGroup] = []
    mistakes = [] if len(parts) == len(entries) else ["groups: two groups have one title"]

    def rows(name: str, above: tuple[str, ...]) -> Iterable[str]:
        if name not in parts or name == above[-1]:  # a group may have the name of one of its rows
            yield name
        elif name in above:
            raise ValueError(f"groups: {name!r} is part of itself: {' → '.join((*above, name))}")
        else:
            for part in parts[name]:
                yield from rows(part, (*above, name))

    try:
        for entry in entries:
            title = entry["title"]
            members = dict.fromkeys(row for part in parts[title] for row in rows(part, (title,)))
            done.append(RowGroup(title, tuple(members), entry.get("weight", "size"), tuple(entry.get("metrics", ()))))
    except ValueError as error:
        mistakes.append(str(error))
    return tuple(done), mistakes
