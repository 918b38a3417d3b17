"""Labels of a table that are made from another label's values, such as what the names of conditions stand for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from harness.errors import near

from .table import text

Split = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""Label → its value as text → new label → its value."""
Labels = Iterable[str] | Mapping[str, Sequence[Any]]
"""Labels, if possible with the values they take."""


def split_labels(split: Split, labels: Mapping[str, Any]) -> dict[str, Any]:
    """An episode's labels with the new ones."""
    made = dict(labels)
    for label, values in split.items():
        made.update(values.get(text(labels.get(label)), {}))
    return made


def wrong_split(split: Split, labels: Labels, reserved: Collection[str]) -> Iterable[str]:
    """What it says about labels that there are not, and does not say about values that there are."""
    names = {"model", *labels}
    for label, values in split.items():
        if label not in names:
            yield f"split: unknown label {label!r}. {near(label, names)}"
        new = {name for made in values.values() for name in made}
        yield from (f"split: the name {name!r} is taken" for name in sorted(new & {*names, "metric", *reserved}))
        for value in map(text, labels.get(label, ()) if isinstance(labels, Mapping) else ()):
            if lacking := ", ".join(sorted(new - values.get(value, {}).keys())):
                yield f"split: {label} {value} has no {lacking}. {near(value, values)}"


def with_split(split: Split, labels: Labels) -> dict[str, Sequence[Any]]:
    """All labels, each with the values it takes (none where these are not known)."""
    known = {label: labels[label] if isinstance(labels, Mapping) else () for label in labels}
    for label, values in split.items():
        possible = list(map(text, known.get(label, ()))) or [*values]
        for name, value in (item for key in possible for item in values.get(key, {}).items()):
            known[name] = list(dict.fromkeys([*known.get(name, ()), value]))
    return known
