"""A plugin's dataclass fields as JSON Schema, and teaching messages for what does not fit.

One mechanism serves `validate`, `harness schema` (editors complete it) and every plugin's parameters.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import types
import typing
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from harness import api
from harness.config.yamls import KEY
from harness.errors import near

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
LISTS: dict[Any, type] = {
    list: list, Sequence: list, Collection: list, Iterable: list,
    tuple: tuple, set: set, frozenset: frozenset, Set: frozenset,
}  # fmt: skip
"""Annotations that YAML writes as a list → what is built of it."""
SETS = (set, frozenset, Set)
MAPPINGS = (dict, Mapping)
_WHOLE: Schema = {"pattern": r"^-?(0|[1-9][0-9]{0,17})$", "description": "a whole number"}
_BOUNDS = {"ge": "minimum", "le": "maximum", "gt": "exclusiveMinimum", "lt": "exclusiveMaximum"}


@functools.cache
def fields(cls: type) -> dict[str, tuple[Any, dataclasses.Field[Any]]]:
    """The fields YAML may set: name → (annotation, field)."""
    hints = typing.get_type_hints(cls, include_extras=True)
    return {f.name: (hints[f.name], f) for f in dataclasses.fields(cls) if f.init and not f.name.startswith("_")}


def unusable(cls: type) -> Iterator[tuple[str, str]]:
    """The fields whose values no YAML can write and that say so only when a run is on: (name, why)."""
    for name, (hint, _) in fields(cls).items():
        if why := _impossible(hint):
            yield name, why


def _impossible(hint: Any) -> str | None:
    origin, args = get_origin(hint), get_args(hint)
    if origin in SETS and args and not _hashable(args[0]):
        return f"{_spelled(hint)}: a set holds texts, numbers, and tuples or frozensets of them"
    if origin in MAPPINGS and args and _key_shape(args[0]) is None:
        return f"{_spelled(hint)}: the keys of a mapping are texts or whole numbers"
    parts = () if origin is Literal else args[:1] if origin is Annotated else args
    return next((why for part in parts if (why := _impossible(part))), None)


def _hashable(hint: Any) -> bool:
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _hashable(args[0])
    if origin in (Union, types.UnionType, tuple, frozenset):
        return all(part is ... or _hashable(part) for part in args)
    return origin is Literal or hint in (int, float, str, bool, type(None), Any)


def _spelled(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint).replace("typing.", "")


def built(cls: type, arguments: Mapping[str, Any], refer: Callable[[str, Any, Path], Any]) -> dict[str, Any]:
    """The arguments of a plugin, from what YAML has written and `faults` has passed; `refer` as in `build`."""
    known = fields(cls)
    return {name: build(known[name][0], value, refer, (name,)) for name, value in arguments.items()}


def build(hint: Any, value: Any, refer: Callable[[str, Any, Path], Any], path: Path = ()) -> Any:
    """What a field of this annotation gets for a value that YAML has written and `problems` has passed.

    Args:
        hint: the annotation; containers may hold containers.
        value: plain data.
        refer: makes a plugin: (kind, reference, where in `value` it stands).
        path: where `value` stands in the field's value.
    """
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return build(args[0], value, refer, path)
    if origin in (Union, types.UnionType):
        return build(_branch(args, value), value, refer, path)
    if isinstance(hint, type) and hint in REFERENCES:
        return refer(REFERENCES[hint], value, path)
    kind = origin or hint
    if isinstance(value, list) and kind in LISTS:
        fixed = kind is tuple and args and args[-1] is not ...
        each = args if fixed else itertools.repeat(args[0] if args else Any)
        built = [build(part, item, refer, (*path, i)) for i, (part, item) in enumerate(zip(each, value, strict=False))]
        return built if LISTS[kind] is list else LISTS[kind](built)
    if isinstance(value, dict) and kind in MAPPINGS and args:
        keyed = int if _key_shape(args[0]) == _WHOLE else str
        return {keyed(key): build(args[1], item, refer, (*path, key)) for key, item in value.items()}
    return value


def _branch(hints: Sequence[Any], value: Any) -> Any:
    """The first of these annotations that the value fits."""
    for hint in hints:
        shape = _shape(hint)
        if shape is not None and _validator()(shape).is_valid(value):
            return hint
    return Any


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
        return {"anyOf": shapes} if any(shape != {"type": "null"} for shape in shapes) else None
    if origin is tuple and args[-1:] != (...,):
        parts = [_shape(arg) for arg in args]
        if None in parts:
            return None
        return {"type": "array", "prefixItems": parts, "minItems": len(args), "maxItems": len(args)}
    if (origin or hint) in LISTS:
        items = _shape(args[0]) if args else {}
        if (origin or hint) in SETS and items == {}:
            items = {"type": ["string", "number", "boolean", "null"]}
        return None if items is None else {"type": "array", "items": items}
    if (origin or hint) in MAPPINGS:
        values = _shape(args[1]) if args else {}
        keys = _key_shape(args[0]) if args else {}
        if values is None or keys is None:
            return None
        return {"type": "object", "additionalProperties": values, **({"propertyNames": keys} if keys else {})}
    return None


def _key_shape(hint: Any) -> Schema | None:
    """What a mapping's keys, which YAML gives as texts, must look like; None for keys that they cannot be."""
    if get_origin(hint) is Annotated:
        return _key_shape(get_args(hint)[0])
    if get_origin(hint) is Literal:
        return {"enum": list(get_args(hint))} if all(isinstance(key, str) for key in get_args(hint)) else None
    return {str: {}, Any: {}, int: _WHOLE}.get(hint)


def _bounded(shape: Schema | None, notes: Sequence[Any]) -> Schema | None:
    for note in notes:
        if shape is not None and isinstance(note, api.Range):
            bounds = {_BOUNDS[k]: getattr(note, k) for k in _BOUNDS if getattr(note, k) is not None}
            shape = {**shape, **bounds}
        elif shape is not None and isinstance(note, str):
            shape = {**shape, "description": note}
    return shape


def faults(cls: type, arguments: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """What is wrong with a plugin's parameters, as `problems` says it."""
    shape = schema(cls)
    for name in arguments.keys() & fields(cls).keys() - shape["properties"].keys():
        yield (name, KEY), f"{name!r} is {_spelled(fields(cls)[name][0])}, which YAML cannot write: set it in Python"
    known = {name: value for name, value in arguments.items() if name in shape["properties"] or name not in fields(cls)}
    yield from problems(known, shape)


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
    if "propertyNames" in error.schema_path:
        must = near(str(found), map(str, value)) if rule == "enum" else f"It must be {error.schema['description']}."
        yield (*path, found, KEY), f"{name} has no key {found!r}. {must}"
    elif rule == "additionalProperties" and isinstance(found, dict):
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
