"""Rows that summarize several rows (`groups:` of a table). `harness.tables.group_rows` fills them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Required, TypedDict

from harness.errors import near
from harness.parameters import Keywords

from .table import text

Weight = Literal["size", "equal"]
"""How the rows of a group count: by their observations (micro mean), or all the same (macro mean)."""

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
    cells: Annotated[
        list[_Name], Keywords(minItems=1, uniqueItems=True), "a list of metrics of cell: the others stay empty"
    ]


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Rows that are shown together as one more row.

    Attributes:
        title: the group's name, which stands where the rows have their value of the label.
        members: the label's values, as text, in the order of the entry; those of other groups are in their place.
        weight: how the rows count.
        cells: the metrics that the row shows; empty: all.
    """

    title: str
    members: tuple[str, ...]
    weight: Weight = "size"
    cells: tuple[str, ...] = ()


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
            done.append(RowGroup(title, tuple(members), entry.get("weight", "size"), tuple(entry.get("cells", ()))))
    except ValueError as error:
        mistakes.append(str(error))
    return tuple(done), mistakes


def label_of(rows: Sequence[str]) -> str | None:
    """The row label whose values groups name: the first one that is neither "model" nor "metric"."""
    return next((label for label in rows if label not in ("model", "metric")), None)


def wrong_members(groups: Iterable[RowGroup], label: str, possible: Sequence[str]) -> list[str]:
    """Members that no row can have; nothing where the label's values are unknown."""
    absent = [(group, name) for group in groups for name in group.members if possible and name not in possible]
    return [f"groups: {group.title!r}: {label} is never {name!r}. {near(name, possible)}" for group, name in absent]
