"""`key+:` adds to a list of the spec that is extended: `metrics+:`, `tables+:`, and `size+:` below other keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from harness.api.errors import KEY, Place, SpecError, ValuePath
from harness.config.schema import SPEC, key_shape, metric_name
from harness.plugins.parameters import Schema

ADDS: Final[Mapping[str, str]] = {"metrics+": "metrics", "tables+": "tables"}
"""Keys of a spec → the lists that they add to, also where there is none. All others add only where there is a list."""

Places = dict[ValuePath, Place]


def add(
    data: dict[str, Any], base: Mapping[str, Any] | None, places: Places, here: Place, path: ValuePath = ()
) -> None:
    """Put whole lists in the place of what `data` adds, and the places of their entries beside those of the base.

    An entry of the same name (of a metric), title (of a table) or `name:` takes the other one's place; where it has a
    `key+` itself, it changes the other one. Others come last.

    Args:
        data: what a file or an option says; `key+` in it becomes `key`.
        base: what it extends; None if it extends nothing.
        places: of the base and, above these, of `data`.
        here: where to look where `places` does not say it.
        path: where `data` is in the spec.

    Raises:
        SpecError: if there is no list to add to, or what is there is none.
    """
    for adding in [key for key in data if isinstance(key, str) and key.endswith("+") and key != "+"]:
        key = adding[:-1]
        existing, place = (base or {}).get(key), places.get((*path, adding, KEY), places.get((*path, adding), here))
        may_be_list = _may_be_list(path, key)
        if isinstance(existing, str) and may_be_list:
            existing = listed(existing)
        if not isinstance(existing, list) and (path or adding not in ADDS):
            if not base and path and isinstance(path[-1], int):
                continue  # an entry that is not there: who adds it says so
            if existing is None and may_be_list:
                raise SpecError(f"there is no list {key!r} to add to: write `{key}:`", place=place)
            if may_be_list is not None or isinstance(existing, str):
                message = f"{adding!r}: only lists may be added to, and {key!r} is no list"
                raise SpecError(message, place=place, hint=f"Write `{key}:`.")
            continue  # a key of that name; what knows the keys says so if there is none
        if key in data:
            raise SpecError(f"{key!r} replaces the list that {adding!r} adds to; give one", place=place)
        if not isinstance(existing, list):
            message = f"{adding!r} adds to the {key} of the spec that is extended: there are none here"
            hint = f"Write `{key}:`." if base is None else f"That spec leaves out {key}; write `{key}:`."
            raise SpecError(message, place=place, hint=hint)
        own = data.pop(adding)
        data[key] = _sum(existing, own, places, place, path, adding)
        for below in [one for one in places if one[: len(path) + 1] == (*path, adding)]:
            del places[below]
    for key, value in data.items():
        there = (base or {}).get(key)
        if isinstance(value, dict) and there is None and _shape((*path, key)):
            there = {}
        if not (isinstance(value, dict) and isinstance(there, dict)):
            continue
        if value.get("use", there.get("use")) == there.get("use"):  # of another plugin nothing is inherited
            add(value, there, places, here, (*path, key))


def _shape(path: ValuePath) -> Schema:
    """JSON Schema of what is at `path` in a spec, as far as specs say it; {} elsewhere, as in parameters."""
    shape: Schema = key_shape(str(path[0])) if path else SPEC
    for step in path[1:]:
        more = shape.get("additionalProperties")
        below = shape.get("items") if isinstance(step, int) else shape.get("properties", {}).get(step, more)
        shape = below if isinstance(below, dict) else {}
    return shape


def _may_be_list(path: ValuePath, key: str) -> bool | None:
    """Whether specs say that `key` of the mapping at `path` may be a list; None if they do not know it."""
    if not path and key in ADDS.values():
        return True
    shape = _shape((*path, key))
    if not path or key in _shape(path).get("properties", {}) or shape.get("type") == "array":
        return any(one.get("type") == "array" for one in [shape, *shape.get("anyOf", ())]) if shape else None
    return None


def listed(value: Any) -> Any:
    """What a list says, or a text that stands for a list of it alone, as in `metrics: solved`."""
    return [value] if isinstance(value, str) else value


def _sum(existing: list[Any], own: Any, places: Places, place: Place, path: ValuePath, adding: str) -> list[Any]:
    """The whole list. `place`: of the key `adding`, which is at `path`."""
    key = adding[:-1]
    merged, names = [*existing], {_name(key, entry): i for i, entry in enumerate(existing)}
    for i, entry in enumerate(own if isinstance(own, list) else [own]):
        source = (*path, adding, i) if isinstance(own, list) else (*path, adding)
        at = names.setdefault(_name(key, entry), len(merged))
        target, changes = (*path, key, at), isinstance(entry, dict) and any(str(one).endswith("+") for one in entry)
        if not changes or at == len(merged):
            for old in [one for one in places if one[: len(target)] == target]:
                del places[old]
        moved = {(*target, *one[len(source) :]): p for one, p in places.items() if one[: len(source)] == source}
        places.update(moved or {target: place})
        if changes:
            before = merged[at] if at < len(merged) else {}
            add(entry, before, places, place, target)
            _refuse_rest(entry, key, places, target, place)
            entry = {**before, **entry}
        merged[at : at + 1] = [entry]
    return merged


def _refuse_rest(entry: Mapping[str, Any], key: str, places: Places, target: ValuePath, place: Place) -> None:
    for left in (one for one in entry if isinstance(one, str) and one.endswith("+")):
        where = places.get((*target, left, KEY), places.get((*target, left), place))
        message = f"{left!r} adds to the {left[:-1]} of an entry of {key} that is extended: there are none here"
        raise SpecError(message, place=where, hint=f"Write `{left[:-1]}:`, or the name or title of an entry with it.")


def _name(key: str, entry: Any) -> str:
    """What an entry is called; one that is none is called like no other."""
    if key == "tables":
        return str(entry["title"]) if isinstance(entry, Mapping) and "title" in entry else f"\0{id(entry)}"
    if key != "metrics":
        return str(entry["name"]) if isinstance(entry, Mapping) and "name" in entry else f"\0{id(entry)}"
    named = isinstance(entry, str) or (isinstance(entry, Mapping) and "use" in entry)
    return metric_name(entry) if named else f"\0{id(entry)}"
