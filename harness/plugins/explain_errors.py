"""What is wrong with plain data, in words: mistakes that `parameters` has found. Loaded for messages alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

from harness.api.errors import KEY, ValuePath, near
from harness.api.printable import cut
from harness.plugins.missing_extensions import bringer
from harness.plugins.renamed import VALUES, new_key, new_word


def explain_errors(error: Any) -> Iterator[tuple[ValuePath, str]]:
    """An error of jsonschema as (where, what), deepest causes only."""
    path: ValuePath = tuple(error.absolute_path)
    name = _name(path)
    value, rule, expected = error.instance, error.validator, error.validator_value
    if "propertyNames" in error.schema_path:
        must = near(str(value), map(str, expected)) if rule == "enum" else f"It must be {error.schema['description']}."
        yield (*path, value, KEY), f"{name} has no key {value!r}. {must}"
    elif rule == "additionalProperties":
        keys = error.schema.get("properties", {})
        for key in value:
            if key not in keys:
                advice = new_key(str(key), keys) or bringer(str(key), "keys", "tables", "table_keys")
                advice = advice or near(str(key), keys)
                yield (*path, key, KEY), f"unknown key {key!r}. {advice}"
    elif rule == "required":
        missing = [repr(key) for key in expected if key not in value]
        keys = f"missing required key{'s' * (len(missing) > 1)} {', '.join(missing)}"
        yield path, keys if name == "this" else f"{name}: {keys}"
    elif rule == "enum":
        words = [*map(str, expected)]
        yield path, f"{name} is {value!r}. {new_word(str(value), words, VALUES) or near(str(value), words)}"
    elif rule == "anyOf":
        # Speak of the branch that fits the value's type best; list what is possible when none does.
        deeper = [e for e in error.context if e.validator not in ("type", "enum") or len(e.absolute_path) > len(path)]
        if deeper:
            yield from explain_errors(min(deeper, key=lambda e: (e.schema_path[0], [*map(str, e.absolute_path)])))
            return
        words = [str(v) for e in error.context if e.validator == "enum" for v in e.validator_value]
        kinds = [*words, *(_kinds(e.validator_value) for e in error.context if e.validator == "type")]
        hint = f". {near(value, words)}".split(" Available")[0] if words and isinstance(value, str) else ""
        types = [t for e in error.context if e.validator == "type" for t in _listed(e.validator_value)]
        found = f"{_kind(value)}{hint or _in_quotes(value, types)}"
        yield path, f"{name} must be {' or '.join(dict.fromkeys(kinds))}, found {found}"
    elif rule == "pattern":
        yield path, f"{name} is {_short(value)}; it must be {error.schema.get('description', f'like {expected}')}"
    elif rule in _MUST:
        yield path, f"{name} must {_MUST[rule].format(expected)}, found {value}"
    elif rule == "type":
        yield path, f"{name} must be {_kinds(expected)}, found {_kind(value)}{_in_quotes(value, _listed(expected))}"
    elif rule in ("minItems", "minLength", "minProperties") and expected == 1:
        yield path, f"{name} must not be empty"
    elif rule == "uniqueItems":
        repeated = next(item for i, item in enumerate(value) if item in value[:i])
        yield path, f"{name} has {repeated!r} twice"
    elif rule in ("minItems", "maxItems"):
        word = "least" if rule == "minItems" else "most"
        yield path, f"{name} must have at {word} {expected} entries, found {len(value)}"
    else:
        yield path, f"{name}: {error.message}"


_MUST: Final = {
    "minimum": "be ≥ {}",
    "maximum": "be ≤ {}",
    "exclusiveMinimum": "be > {}",
    "exclusiveMaximum": "be < {}",
}
_KINDS: Final = {
    "object": "a mapping",
    "array": "a list",
    "string": "text",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "null": "empty",
}


def _name(path: ValuePath) -> str:
    if not path:
        return "this"
    return f"'{path[-1]}'" if isinstance(path[-1], str) else f"entry {path[-1]} of {_name(path[:-1])}"


def _kinds(names: str | Sequence[str]) -> str:
    return " or ".join(_KINDS[name] for name in _listed(names))


def _listed(names: str | Sequence[str]) -> Sequence[str]:
    return [names] if isinstance(names, str) else names


def _in_quotes(value: Any, types: Sequence[str]) -> str:
    """The hint that quotes make a value one of these JSON types, or an expression; nothing where they do not."""
    if {*types} == {"string", "number", "boolean"} and isinstance(value, list | dict):
        return f'. As an expression it is text: "{_short(value)}"'
    if "string" in types and isinstance(value, bool | int | float):
        shown = str(value).lower() if isinstance(value, bool) else value
        return f""". In quotes it is text: "{shown}", in a shell '"{shown}"'"""
    return ""


def _kind(value: Any) -> str:
    kinds = {dict: "a mapping", list: "a list", str: "text", bool: "the truth value"}
    if isinstance(value, float) and math.isinf(value):
        return f"the infinite number {'-' if value < 0 else ''}.inf"
    return "nothing" if value is None else f"{kinds.get(type(value), 'the number')} {_short(value)}"


def _short(value: Any) -> str:
    return cut(repr(value), 60)


def in_words(error: BaseException) -> str:
    """What an expression or a template of a user raised, without Python's words for it.

    >>> in_words(KeyError("color")), in_words(ZeroDivisionError("division by zero"))
    ("there is no 'color'", 'division by zero')
    """
    if isinstance(error, KeyError):
        return f"there is no {error}"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return str(error) or type(error).__name__
