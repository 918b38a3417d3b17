"""`metrics+:` and `tables+:`: entries that are added to the list of the spec that is extended."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Final

from harness.api.errors import KEY, Place, SpecError, ValuePath
from harness.config.schema import metric_name

ADDS: Final[Mapping[str, str]] = {"metrics+": "metrics", "tables+": "tables"}
"""Key → the list that it adds to."""


def add(data: dict[str, Any], base: Mapping[str, Any] | None, places: dict[ValuePath, Place], here: Place) -> None:
    """Put whole lists in the place of what `data` adds, and the places of their entries beside those of the base.

    An entry of the same name (of a metric) or title (of a table) takes the other one's place; others come last.

    Args:
        data: what a file or an option says; `key+` in it becomes `key`.
        base: what it extends; None if it extends nothing.
        places: of the base and, above these, of `data`.
        here: where to look where `places` does not say it.

    Raises:
        SpecError: if there is no list to add to.
    """
    for adding, key in ADDS.items():
        if adding not in data:
            continue
        place = places.get((adding, KEY), places.get((adding,), here))
        if key in data:
            raise SpecError(f"{key!r} replaces the list that {adding!r} adds to; give one", place=place)
        if not isinstance(existing := (base or {}).get(key), list):
            message = f"{adding!r} adds to the {key} of the spec that is extended: there are none here"
            hint = f"Write `{key}:`." if base is None else f"That spec leaves out {key}; write `{key}:`."
            raise SpecError(message, place=place, hint=hint)
        own = data.pop(adding)
        single = not isinstance(own, list)
        merged, names = [*existing], {_name(key, entry): i for i, entry in enumerate(existing)}
        for i, entry in enumerate([own] if single else own):
            at = names.setdefault(_name(key, entry), len(merged))
            merged[at : at + 1] = [entry]
            source: tuple[Hashable, ...] = (adding,) if single else (adding, i)
            moved = {(key, at, *path[len(source) :]): p for path, p in places.items() if path[: len(source)] == source}
            for old in [path for path in places if path[:2] == (key, at)]:
                del places[old]
            places.update(moved or {(key, at): place})
        data[key] = merged
        for path in [path for path in places if path[:1] == (adding,)]:
            del places[path]


def _name(key: str, entry: Any) -> str:
    """What an entry is called; one that is none is called like no other."""
    if key == "tables":
        return str(entry["title"]) if isinstance(entry, Mapping) and "title" in entry else f"\0{id(entry)}"
    named = isinstance(entry, str) or (isinstance(entry, Mapping) and "use" in entry)
    return metric_name(entry) if named else f"\0{id(entry)}"
