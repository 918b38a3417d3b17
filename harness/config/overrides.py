"""`--set path=value`: one value of a spec is another one."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from harness.api.errors import Place, SpecError, ValuePath, near
from harness.config import schema, yamls
from harness.config.spec import ALIASES, fill_in
from harness.plugins.manifests import offers


def assign(data: dict[str, Any], places: dict[ValuePath, Place], assignment: str) -> None:
    """Carry out `path=value` in a spec's data, and note where that was said. Raises `SpecError`."""
    place = Place(f"--set {assignment}")
    path, equals, text = assignment.partition("=")
    keys = [key.strip() for key in path.split(".")]
    if keys[0] == "prices":  # what follows is one model's name, whatever dots it has
        keys = [key.strip() for key in path.split(".", 1)]
    keys[0] = ALIASES.get(keys[0], keys[0])
    if not equals or not all(keys):
        raise SpecError("expected path=value, e.g. --set task.instances=1", place=place)
    if keys[0] == "extends":
        hint = "Give the other spec as --spec, or write a spec of your own that extends it."
        raise SpecError("what a spec extends cannot be set", place=place, hint=hint)
    try:
        value = yamls.parse(text, str(place)).data
    except SpecError as error:
        raise SpecError(f"the value cannot be read: {error.message}", place=place) from None
    if len(keys) == 1 and _adds(keys[0], data, places, (), value, place):
        return
    here: Any = data
    steps: list[Hashable] = []
    for i, key in enumerate(keys[:-1]):
        step = _step(here, key, keys[:i], place)
        if isinstance(here, dict):
            if isinstance(here.get(key), str) and key in ("task", "protocol", "baseline"):
                here[key] = {"use": here[key]}  # a bare name takes parameters
            if key not in here and i == 0 and schema.key_shape(key).get("type") == "object":
                here[key] = {}  # a mapping that the spec may have and does not
            if not isinstance(here.get(key), dict | list):
                from harness.plugins.missing_extensions import bringer
                from harness.plugins.renamed import new_key

                mappings = [str(k) for k, v in here.items() if isinstance(v, dict | list)]
                advice = new_key(key, [*schema.SPEC["properties"], *offers("keys")]) if i == 0 else None
                advice = advice or (bringer(key, "keys") if i == 0 else None) or near(key, mappings)
                raise SpecError(f"{'.'.join(keys[: i + 1])!r} is not a mapping. {advice}", place=place)
        steps.append(step)
        here = here[step]
    if isinstance(here, dict) and _adds(keys[-1], here, places, tuple(steps), value, place):
        return
    steps.append(_step(here, keys[-1], keys[:-1], place))
    if keys[0] == "matrix":
        change = {keys[1]: value} if len(keys) == 2 else value
        fill_in(change, data.get("matrix"), lambda *_: place)
        value = change[keys[1]] if len(keys) == 2 else change
    here[steps[-1]] = value
    for below in [path for path in places if path[: len(steps)] == tuple(steps)]:
        del places[below]  # what stood there is gone
    places[tuple(steps)] = place


def _adds(
    key: str, here: dict[str, Any], places: dict[ValuePath, Place], path: ValuePath, value: Any, place: Place
) -> bool:
    """Whether `key` adds to a list of `here`, which is at `path`; then its entries are added."""
    if not key.endswith("+"):
        return False
    from harness.config.additions import add, listed  # what most specs do not need

    added, before = {key: value}, listed(here.get(key[:-1]))
    add(added, here, places, place, path)
    if key in added:
        return False
    if path == ("matrix",):  # a swept value may be named, or inherit from another
        fill_in(added, {key[:-1]: before}, lambda *_: place)
    here |= added
    return True


def _step(here: Any, key: str, way: Sequence[str], place: Place) -> Hashable:
    """The key of `here` that one word of a `--set` path means: an entry's number, counted from 0, in a list."""
    if isinstance(here, dict):
        return key
    what = f"{'.'.join(way)!r}"
    if not isinstance(here, list):
        raise SpecError(f"{what} is not a mapping", place=place)
    if not (key.isascii() and key.isdecimal() and len(key) < 10 and int(key) < len(here)):
        raise SpecError(f"{what} has {len(here)} entries, numbered from 0: there is no {key!r}", place=place)
    return int(key)
