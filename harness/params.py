"""A plugin's dataclass fields as JSON Schema, and teaching messages for what does not fit.

One mechanism serves `validate`, `harness schema` (editors complete it) and every plugin's parameters.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from harness import api
from harness.errors import near
from harness.yamls import KEY

Schema = dict[str, Any]
Path = tuple[Hashable, ...]

# Which plugin kind a field of an interface type refers to.
REFERENCES: dict[type, str] = {
    api.Task: "tasks",
    api.Protocol: "protocols",
    api.Channel: "channels",
    api.Policy: "policies",
    api.Metric: "metrics",
    api.Engine: "engines",
}
REFERENCE: Schema = {
    "anyOf": [
        {"type": "string"},
        {"type": "object", "required": ["use"], "properties": {"use": {"type": "string"}}},
    ]
}
_PLAIN: dict[Any, Schema] = {
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    Any: {},
}
_BOUNDS = {"ge": "minimum", "le": "maximum", "gt": "exclusiveMinimum", "lt": "exclusiveMaximum"}


@functools.cache
def fields(cls: type) -> dict[str, tuple[Any, dataclasses.Field[Any]]]:
    """The fields YAML may set: name → (annotation, field)."""
    hints = typing.get_type_hints(cls, include_extras=True)
    return {f.name: (hints[f.name], f) for f in dataclasses.fields(cls) if f.init and not f.name.startswith("_")}


def references(cls: type) -> dict[str, str]:
    """The fields that refer to other plugins, alone, optional, in lists or in mappings: name → kind."""
    found = {name: _reference(hint) for name, (hint, _) in fields(cls).items()}
    return {name: kind for name, kind in found.items() if kind is not None}


def _reference(hint: Any) -> str | None:
    if isinstance(hint, type) and hint in REFERENCES:
        return REFERENCES[hint]
    return next((kind for part in get_args(hint) if (kind := _reference(part)) is not None), None)


def containers(cls: type) -> dict[str, type]:
    """The fields whose lists YAML writes and Python wants as something else: name → tuple, set or frozenset."""
    found = {}
    for name, (hint, _) in fields(cls).items():
        for part in (hint, *get_args(hint)):
            kind = get_origin(part) or part
            if kind in (tuple, set, frozenset):
                found[name] = kind
    return found


def schema(cls: type) -> Schema:
    """JSON Schema of a plugin's parameters (without `use`)."""
    properties, required = {}, []
    for name, (hint, field) in fields(cls).items():
        shape = _shape(hint)
        if shape is None:
            continue  # e.g. a function: settable from Python only
        if field.default is not dataclasses.MISSING and _is_json(field.default):
            shape = {**shape, "default": field.default}
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            required.append(name)
        properties[name] = shape
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _is_json(value: Any) -> bool:
    return value is None or isinstance(value, (str, int, float, bool))


def _shape(hint: Any) -> Schema | None:
    if hint in _PLAIN:
        return dict(_PLAIN[hint])
    if isinstance(hint, type) and hint in REFERENCES:
        return dict(REFERENCE)
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _bounded(_shape(args[0]), args[1:])
    if origin is Literal:
        return {"enum": list(args)}
    if origin in (Union, types.UnionType):
        shapes = [s for s in map(_shape, args) if s is not None]
        return {"anyOf": shapes} if shapes else None
    if origin is tuple and args[-1:] != (...,):
        shapes = [_shape(arg) or {} for arg in args]
        return {"type": "array", "prefixItems": shapes, "minItems": len(args), "maxItems": len(args)}
    if origin in (list, tuple, Sequence, frozenset, set) or hint in (list, tuple):
        items = _shape(args[0]) if args else {}
        return {"type": "array", "items": items or {}}
    if origin in (dict, Mapping) or hint in (dict, Mapping):
        values = _shape(args[1]) if args else {}
        return {"type": "object", "additionalProperties": values or {}}
    return None


def _bounded(shape: Schema | None, notes: Sequence[Any]) -> Schema | None:
    for note in notes:
        if shape is not None and isinstance(note, api.Range):
            bounds = {_BOUNDS[k]: getattr(note, k) for k in _BOUNDS if getattr(note, k) is not None}
            shape = {**shape, **bounds}
        elif shape is not None and isinstance(note, str):
            shape = {**shape, "description": note}
    return shape


def problems(value: Any, shape: Schema) -> Iterator[tuple[Path, str]]:
    """What is wrong with `value`, as (where in it, what), deepest causes only."""
    for error in _validator()(shape).iter_errors(value):
        yield from _explain(error)


@functools.cache
def _validator() -> Any:
    """JSON Schema takes 3.0 for an integer; Python, which will slice and count with it, does not."""
    from jsonschema import Draft202012Validator, validators

    checker = Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
    )
    return validators.extend(Draft202012Validator, type_checker=checker)  # type: ignore[no-untyped-call]


def _explain(error: Any) -> Iterator[tuple[Path, str]]:
    path: Path = tuple(error.absolute_path)
    name = _name(path)
    found, rule, value = error.instance, error.validator, error.validator_value
    if rule == "additionalProperties" and isinstance(found, dict):
        known = list(error.schema.get("properties", ()))
        for key in found:
            if key not in known:
                yield (*path, key, KEY), f"unknown key {key!r}. {near(str(key), known)}"
    elif rule == "required":
        missing = [key for key in value if key not in found]
        yield path, f"{name} lacks {', '.join(repr(m) for m in missing)}"
    elif rule == "enum":
        yield path, f"{name} is {found!r}. {near(str(found), map(str, value))}"
    elif rule == "type":
        yield path, f"{name} must be {_words(value)}, found {_kind(found)} {_short(found)}"
    elif rule in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
        sign = {"minimum": "≥", "maximum": "≤", "exclusiveMinimum": ">", "exclusiveMaximum": "<"}[rule]
        yield path, f"{name} must be {sign} {value}, found {found}"
    elif rule in ("anyOf", "oneOf"):
        # Speak of the branch that fits the value's type best; list what is possible when none does.
        flat = [e for e in error.context if e.validator in ("type", "enum") and len(e.absolute_path) == len(path)]
        deeper = [e for e in error.context if e not in flat]
        if deeper:
            yield from _explain(deeper[0])
        else:
            words = [str(v) for e in flat if e.validator == "enum" for v in e.validator_value]
            kinds = [*words, *(_words(e.validator_value) for e in flat if e.validator == "type")]
            hint = f" {near(found, words)}".split(" There are")[0] if isinstance(found, str) else ""
            yield (
                path,
                f"{name} must be {' or '.join(dict.fromkeys(kinds))}, found {_kind(found)} {_short(found)}.{hint}",
            )
    elif rule == "pattern":
        yield path, f"{name} is {_short(found)}; it must be {error.schema.get('description', f'like {value}')}"
    elif rule == "minItems" and value == 1:
        yield path, f"{name} must not be empty"
    elif rule in ("minItems", "maxItems"):
        yield (
            path,
            f"{name} must have at {'least' if rule == 'minItems' else 'most'} {value} entries, found {len(found)}",
        )
    else:
        yield path, f"{name}: {error.message}"


def _name(path: Path) -> str:
    if not path:
        return "this"
    return f"'{path[-1]}'" if isinstance(path[-1], str) else f"entry {path[-1]} of {_name(path[:-1])}"


def _words(kind: Any) -> str:
    kinds = [kind] if isinstance(kind, str) else list(kind)
    words = {"object": "a mapping", "array": "a list", "string": "text", "integer": "an integer"}
    words |= {"number": "a number", "boolean": "true or false", "null": "empty"}
    return " or ".join(words.get(k, k) for k in kinds)


def _kind(value: Any) -> str:
    kinds = {dict: "a mapping", list: "a list", str: "text", bool: "the truth value", type(None): "nothing"}
    return kinds.get(type(value), "the number")


def _short(value: Any) -> str:
    text = "" if value is None else repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
