"""Functions of expressions that make many values of many: lists, mappings, graphs."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping
from typing import Any

from harness.extensions.yaml_tasks.step_limits import Supply, counted, room, take

from ._guards import MAX_SIZE, UnfitValueError, charge, nested, ordered, short
from ._guards import _add as plus
from ._registered import function, gone_through

# ----------------------------------------------------------------------------------- of many many


@function
def range_(steps: Supply, *ends: int) -> range:
    """The whole numbers from 0, or from a start, up to an end, which is left out; a third number is the step."""
    numbers = range(*ends)
    room(len(numbers), MAX_SIZE)
    return numbers


@function
def list_(steps: Supply, values: Any = ()) -> list[Any]:
    """The entries as a list; the characters of a text."""
    return list(gone_through(steps, values))


@function
def set_(steps: Supply, values: Any = ()) -> frozenset[Any]:
    """The distinct entries. Going through a set gives them in ascending order."""
    return nested(steps, frozenset(gone_through(steps, values)))


@function
def dict_(steps: Supply, pairs: Any = ()) -> dict[Any, Any]:
    """A mapping of [key, value] pairs; later ones win."""
    return dict(gone_through(steps, pairs))


@function
def merge(steps: Supply, *mappings: Mapping[Any, Any]) -> dict[Any, Any]:
    """One mapping of several; later entries win."""
    merged: dict[Any, Any] = {}
    for mapping in mappings:
        take(steps, len(mapping))
        merged |= mapping
    return merged


@function
def sorted_(steps: Supply, values: Any, key: Any = None, reverse: bool = False) -> list[Any]:
    """The entries in ascending order; `key=lambda x: …` compares by something else. Equal ones keep their order."""
    many = list(gone_through(steps, values))
    keys = many if key is None else [key(one) for one in many]
    charge(steps, keys, len(many).bit_length())
    if key is None:
        return ordered(many, reverse)
    order = sorted(range(len(many)), key=keys.__getitem__, reverse=reverse)
    return [many[i] for i in order]


@function
def reversed_(steps: Supply, values: Any) -> Any:
    """The entries, or the text, from the last to the first."""
    if isinstance(values, str):
        take(steps, len(values))
        return values[::-1]
    return list(gone_through(steps, values))[::-1]


@function
def unique(steps: Supply, values: Any) -> list[Any]:
    """The distinct entries, in the order of their first occurrence."""
    return list(dict.fromkeys(gone_through(steps, values)))


@function
def enumerate_(steps: Supply, values: Any, start: int = 0) -> list[tuple[int, Any]]:
    """Pairs of position and entry."""
    return list(enumerate(gone_through(steps, values), start))


@function
def zip_(steps: Supply, *many: Any) -> list[tuple[Any, ...]]:
    """Entries at the same position of several lists together, as far as the shortest goes."""
    return list(zip(*(gone_through(steps, values) for values in many), strict=False))


@function
def flatten(steps: Supply, values: Any) -> list[Any]:
    """The entries of a list of lists in one list."""
    return [one for inner in gone_through(steps, values) for one in gone_through(steps, inner)]


@function
def chunks(steps: Supply, values: Any, size: int) -> list[Any]:
    """Consecutive pieces of a list or text, each of `size` entries but the last, which may be shorter."""
    if not isinstance(size, int) or size < 1:
        raise UnfitValueError(f"pieces need a size of at least 1, not {short(size)}")
    many = values if isinstance(values, str) else list(gone_through(steps, values))
    take(steps, len(many))
    return [many[i : i + size] for i in range(0, len(many), size)]


@function
def windows(steps: Supply, values: Any, size: int) -> list[Any]:
    """All pieces of `size` neighboring entries of a list or text."""
    if not isinstance(size, int) or size < 1:
        raise UnfitValueError(f"pieces need a size of at least 1, not {short(size)}")
    many = values if isinstance(values, str) else list(gone_through(steps, values))
    number = max(0, len(many) - size + 1)
    room(number * size, MAX_SIZE)
    take(steps, number * (1 + size // 4))
    return [many[i : i + size] for i in range(number)]


@function
def pairs(steps: Supply, values: Any) -> list[tuple[Any, Any]]:
    """All pairs of two entries at different positions, each once."""
    many = list(gone_through(steps, values))
    room(len(many) * len(many), MAX_SIZE)
    return list(counted(steps, itertools.combinations(many, 2)))


@function
def accumulate(steps: Supply, values: Any, function: Any = None) -> list[Any]:
    """The running totals, or what `function(so_far, value)` makes of each value and all before it."""
    add = (lambda so_far, one: plus(steps, so_far, one)) if function is None else function
    return list(itertools.accumulate(gone_through(steps, values), add))


@function
def counts(steps: Supply, values: Any) -> dict[Any, int]:
    """How often each entry occurs, in the order in which they come first."""
    return dict(Counter(gone_through(steps, values)))


@function
def group(steps: Supply, values: Any, key: Any) -> dict[Any, list[Any]]:
    """A mapping of `key(entry)` to the entries that have it."""
    groups: dict[Any, list[Any]] = {}
    for one in gone_through(steps, values):
        groups.setdefault(key(one), []).append(one)
    return groups


@function
def keys(steps: Supply, mapping: Mapping[Any, Any]) -> list[Any]:
    """The keys of a mapping."""
    return list(gone_through(steps, mapping if isinstance(mapping, Mapping) else _no_mapping(mapping)))


@function
def values(steps: Supply, mapping: Mapping[Any, Any]) -> list[Any]:
    """The values of a mapping."""
    return [mapping[key] for key in keys(steps, mapping)]


@function
def items(steps: Supply, mapping: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
    """Pairs of key and value of a mapping."""
    return [(key, mapping[key]) for key in keys(steps, mapping)]


@function
def put(steps: Supply, values: Any, key: Any, value: Any) -> Any:
    """The same mapping, or list, with another entry at a key, or position."""
    take(steps, len(values))
    if isinstance(values, Mapping):
        return {**values, key: value}
    if not isinstance(values, (list, tuple)):
        raise UnfitValueError(f"it takes a mapping or a list, not {values!r:.40}")
    many = list(values)
    many[key] = value
    return many


@function
def get(steps: Supply, mapping: Any, key: Any, default: Any = None) -> Any:
    """The entry of a mapping or list; the default, None, if there is none."""
    try:
        return mapping[key]
    except (KeyError, IndexError, TypeError):
        return default


def _no_mapping(value: Any) -> Any:
    raise UnfitValueError(f"it takes a mapping, not {short(value):.40}")


# ----------------------------------------------------------------------------------------- graphs


def _neighbors(steps: Supply, edges: Any) -> dict[Any, list[Any]]:
    near: dict[Any, list[Any]] = {}
    for edge in gone_through(steps, edges):
        if not isinstance(edge, (list, tuple)) or len(edge) < 2:
            raise UnfitValueError(f"an edge is a list of two nodes, not {short(edge):.40}")
        near.setdefault(edge[0], []).append(edge[1])
        near.setdefault(edge[1], []).append(edge[0])
    return near


def _reached(steps: Supply, near: Mapping[Any, list[Any]], start: Any) -> dict[Any, int]:
    far, ring = {start: 0}, [start]
    for hops in itertools.count(1):
        ring = list(dict.fromkeys(b for a in ring for b in counted(steps, near.get(a, ())) if b not in far))
        if not ring:
            break
        far.update(dict.fromkeys(ring, hops))
    return far


@function
def distances(steps: Supply, edges: Any, start: Any) -> dict[Any, int]:
    """A mapping of every node that paths of edges join to a start to the least number of edges between them."""
    return _reached(steps, _neighbors(steps, edges), start)


@function
def components(steps: Supply, edges: Any, nodes: Any = ()) -> list[list[Any]]:
    """The lists of nodes that paths of edges join; `nodes=` adds those without an edge."""
    near, seen, parts = _neighbors(steps, edges), set[Any](), []
    for node in (*gone_through(steps, nodes), *near):
        if node not in seen:
            parts.append(list(_reached(steps, near, node)))
            seen.update(parts[-1])
    return parts
