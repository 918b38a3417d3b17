"""`relabel:` of tables: labels made of another label's values, such as what the names of conditions stand for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, TypedDict

from harness.api.errors import near
from harness.plugins.parameters import Keywords

from .entry import LabelValue, Name
from .keys import TableKey
from .spec import RESERVED, TableSpec
from .table import text


class RelabelEntry(TypedDict, total=False):
    """The key of a table with labels of its own."""

    relabel: Annotated[
        dict[str, dict[str, Annotated[dict[Name, LabelValue], Keywords(minProperties=1)]]],
        "a mapping of labels to a mapping of their values to new labels of this table, such as "
        "{condition: {sim5c: {mode: at once, talk: true}}}",
    ]


@dataclass(frozen=True, slots=True)
class Relabel(TableKey):
    """New labels; `parts`: label → its value as text → new label → its value."""

    entry: ClassVar[Any] = RelabelEntry
    with_kinds: ClassVar[bool] = True

    parts: Mapping[str, Mapping[str, Mapping[str, Any]]]

    @classmethod
    def read(cls, entry: Mapping[str, Any]) -> Relabel:
        """Read `relabel:`."""
        return cls(entry["relabel"])

    def relabelled(self, labels: Mapping[str, Any]) -> dict[str, Any]:
        """An episode's labels with the new ones."""
        made = dict(labels)
        for label, values in self.parts.items():
            made.update(values.get(text(labels.get(label)), {}))
        return made

    def check(self, table: TableSpec, labels: Mapping[str, Sequence[Any]]) -> list[str]:
        """What it says about labels that there are not, and does not say about values that there are."""
        return [*self._wrong(labels)]

    def _wrong(self, labels: Mapping[str, Sequence[Any]]) -> Iterator[str]:
        names = {"model", *labels}
        for label, values in self.parts.items():
            if label not in names:
                yield f"relabel: unknown label {label!r}. {near(label, names)}"
            new = {name for made in values.values() for name in made}
            yield from (f"relabel: the name {name!r} is taken" for name in sorted(new & {*names, "metric", *RESERVED}))
            for value in map(text, labels.get(label, ())):
                if lacking := ", ".join(sorted(new - values.get(value, {}).keys())):
                    yield f"relabel: {label} {value} has no {lacking}. {near(value, values)}"

    def labels(self, known: Mapping[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
        """All labels, each with the values it takes (none where these are not known)."""
        found = dict(known)
        for label, values in self.parts.items():
            possible = list(map(text, found.get(label, ()))) or [*values]
            for name, value in (item for key in possible for item in values.get(key, {}).items()):
                found[name] = list(dict.fromkeys([*found.get(name, ()), value]))
        return found
