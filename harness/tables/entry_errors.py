"""What is wrong with an entry of `tables:`, in words. Loaded where something is."""

from __future__ import annotations

import functools
import typing
from collections.abc import Iterable, Iterator
from typing import Any

from harness.api.errors import KEY, Place, PluginError, ValuePath, near
from harness.plugins.manifests import offers
from harness.plugins.missing_extensions import bringer
from harness.plugins.parameters import problems
from harness.plugins.renamed import new_key

from .keys import TableKey, all_loaded
from .kinds import TableKind, entry_type, is_key
from .spec import DerivedCell


def explain_errors(
    entry: Any, kind: type[TableKind] | None, mistakes: Iterable[tuple[str, str]]
) -> Iterator[tuple[ValuePath, str]]:
    """What is wrong with the keys and types of an entry, as `parameters.problems` says it; each mistake once.

    Args:
        entry: as it is in YAML.
        kind, mistakes: as `kind_of` gives them.
    """
    known, wrong = entry_type(kind, entry), dict(mistakes)
    yield from (((key,), mistake) for key, mistake in wrong.items())
    if wrong:  # then keys of other kinds are not further mistakes
        own = known.__annotations__
        entry = {key: one for key, one in entry.items() if key not in wrong and (key in own or not owners(str(key)))}
    for path, what in problems(entry, known):
        if path[1:] == (KEY,):
            key = str(path[0])
            if of := owners(key):
                what = f"{key}: it belongs to {', '.join(sorted(of))}"
            elif " comes with " not in what:
                keys = [*known.__annotations__, *keys_of_kinds()]
                what = f"unknown key {key!r}. {_inner(key, known) or new_key(key, keys) or near(key, keys)}"
        yield path, what


def _inner(key: str, known: type) -> str | None:
    """Where a key belongs that the value of another key of the entry has."""
    for name, value in typing.get_type_hints(known).items():
        if typing.is_typeddict(value) and key in typing.get_type_hints(value):
            return f"It belongs inside {name}: `{name}: {{…, {key}: …}}`."
    return None


def wrong_kind(name: Any) -> str:
    """What is wrong with `kind:`, which names no kind of table."""
    offered = offers("tables")
    words = [known for known, offer in offered.items() if not is_key(offer)]
    if not isinstance(name, str):
        found = "nothing" if name is None else repr(name)
        return f"'kind' must be a name, found {found:.60}. {near('', words)} A plain table has no kind."
    if name in offered:
        return f"'kind' is {name!r}, which an entry takes by a key of that name: write {name}: … instead"
    return f"'kind' is {name!r}. {bringer(name, 'tables') or near(name, words)}"


def no_cell(title: str, name: str, derived: DerivedCell, found: object) -> PluginError:
    """What is wrong with a `total` that gives no cell; the place is where the extension defines it."""
    total = derived.total.func if isinstance(derived.total, functools.partial) else derived.total
    code = getattr(total, "__code__", None) or getattr(type(total).__call__, "__code__", None)
    message = f"table {title!r}: `total` of {derived.kind} {name!r} gives {found!r:.80}, not a Cell"
    return PluginError(message, place=Place(code.co_filename, code.co_firstlineno, 1) if code is not None else None)


def owners(key: str) -> list[str]:
    """How an entry selects the kinds, or the keys of extensions, that have this key: "kind: ranks", "compare"."""
    keys = [name for name, one in all_loaded("table_keys", TableKey).items() if key in typing.get_type_hints(one.entry)]
    return keys + [
        name if is_key(offers("tables")[name]) else f"kind: {name}"
        for name, kind in all_loaded("tables", TableKind).items()
        if key in typing.get_type_hints(kind.entry)
    ]


def keys_of_kinds() -> list[str]:
    """The keys by which an entry takes a kind, and those of extensions."""
    return [*offers("table_keys"), *(name for name, offer in offers("tables").items() if is_key(offer))]
