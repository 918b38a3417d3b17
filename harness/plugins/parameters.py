"""What a type annotation lets YAML write: JSON Schema for editors, mistakes in words, and the value it becomes.

The fields of a plugin's dataclass are its parameters. A `TypedDict` describes a mapping that stays plain data, such as
a spec or a table's entry. One mechanism serves `validate`, `harness schema` and every plugin.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import itertools
import math
import re
import types
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple, Self, TypedDict, Union, get_args, get_origin

from harness import api
from harness.api import Engine
from harness.api.errors import KEY, Place, ValuePath

Schema = dict[str, Any]
PLUGIN: Final = "plugin"
"""Beside a shape, it names the kind of plugin that the value refers to."""


class Keywords(Schema):
    """Keywords of JSON Schema beside an annotation: `Annotated[list[str], Keywords(minItems=1)]`."""

    __hash__ = object.__hash__  # type: ignore[assignment]


OPEN: Final = Keywords(additionalProperties=True)
"""`Annotated[SomeTypedDict, OPEN]` may have further keys."""


class ParameterType:
    """Base of a type of parameters that comes from outside: its values know where they are in YAML."""

    schema: ClassVar[Schema]
    """JSON Schema of what YAML may write."""

    @classmethod
    def at(cls, value: Any, place: Place | None) -> Self:
        """The parameter for plain data that fits `schema`. Raises `UserError`."""
        raise NotImplementedError


class _Use(TypedDict):
    use: str


Plugin = str | Annotated[_Use, OPEN]
"""A plugin in YAML: its name, or a mapping that has it under `use` and parameters beside it."""
REFERENCES: Final[dict[Any, str]] = {
    api.Task: "tasks",
    api.Protocol: "protocols",
    api.Channel: "channels",
    api.Policy: "policies",
    api.Metric: "metrics",
    Engine: "engines",
}
"""Type of a field → the kind of plugin that it refers to."""
_PLAIN: Final[dict[Any, Schema]] = {
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    Any: {},
}
_LISTS: Final[dict[Any, type]] = {
    list: list, Sequence: list, Collection: list, Iterable: list,
    tuple: tuple, set: set, frozenset: frozenset, Set: frozenset,
}  # fmt: skip
"""Annotations that YAML writes as a list → what is built of it."""
_SETS = (set, frozenset, Set)
_MAPPINGS = (dict, Mapping)
_UNIONS = (Union, types.UnionType)
_IN_A_SET: Final[Schema] = {"type": ["string", "number", "boolean", "null"]}
_WHOLE: Final[Schema] = {"pattern": r"^-?(0|[1-9][0-9]{0,17})$", "description": "a whole number"}
_BOUNDS: Final = {"ge": "minimum", "le": "maximum", "gt": "exclusiveMinimum", "lt": "exclusiveMaximum"}


class Field(NamedTuple):
    """What YAML may set. `default` is `dataclasses.MISSING` if there is none that JSON can show."""

    hint: Any
    required: bool
    default: Any = dataclasses.MISSING


@functools.cache
def fields(cls: Any) -> dict[str, Field]:
    """The fields of a dataclass or `TypedDict` that YAML may set, by name, without a `_` at its end."""
    hints, missing = typing.get_type_hints(cls, include_extras=True), dataclasses.MISSING
    if typing.is_typeddict(cls):
        required = {name: name in cls.__required_keys__ for name in hints}  # where annotations do not say it themselves
        for name, hint in hints.items():
            if get_origin(hint) in (typing.Required, typing.NotRequired):
                hints[name], required[name] = get_args(hint)[0], get_origin(hint) is typing.Required
        return {name: Field(hint, required[name]) for name, hint in hints.items()}
    result = {}
    for f in dataclasses.fields(cls):
        if f.init and not f.name.startswith("_"):
            default = f.default if f.default is None or isinstance(f.default, (str, int, float)) else missing
            is_required = f.default is missing and f.default_factory is missing
            result[f.name.removesuffix("_")] = Field(hints[f.name], is_required, default)
    return result


def _peeled(hint: Any) -> tuple[Any, Any, tuple[Any, ...], list[Any]]:
    """An annotation without `Annotated`: (itself, its kind, its arguments, the notes)."""
    hint, *notes = (hint.__origin__, *hint.__metadata__) if get_origin(hint) is Annotated else (hint,)
    return hint, get_origin(hint) or hint, get_args(hint), notes


def _is_parameter_type(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, ParameterType)


def _is_fixed(hint: Any) -> bool:
    """Whether an annotation is a tuple of as many entries as it has arguments."""
    return get_origin(hint) is tuple and get_args(hint)[-1:] != (...,)


# ------------------------------------------------------------------------------------- JSON Schema


@functools.lru_cache(maxsize=1024)  # of plugins, entries and kinds of tables
def json_schema(cls: Any) -> Schema:
    """JSON Schema of a plugin's parameters (without `use`), or of a `TypedDict`. Not to be changed: it is kept."""
    shapes = {name: shape for name, field in fields(cls).items() if (shape := json_shape(field.hint)) is not None}
    writable = {name: field for name, field in fields(cls).items() if name in shapes}
    explain_errors = explanations(cls)
    for name, field in writable.items():
        if field.default is not dataclasses.MISSING:
            shapes[name] = {**shapes[name], "default": field.default}
        if name in explain_errors:
            shapes[name] = {**shapes[name], "description": explain_errors[name]}
    required = [name for name, field in writable.items() if field.required]
    return {"type": "object", "properties": shapes, "required": required, "additionalProperties": False}


_ATTRIBUTE: Final = re.compile(r"^    (\w+(?:, \w+)*): (.*(?:\n {8}.*)*)", re.MULTILINE)


def explanations(cls: type) -> dict[str, str]:
    """Parameter → what the docstring of the class, or of one of its bases, says about it under "Attributes:"."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        attributes = inspect.cleandoc(base.__doc__ or "").partition("\nAttributes:\n")[2].partition("\n\n")[0]
        for names, text in _ATTRIBUTE.findall(attributes):
            found |= dict.fromkeys(names.split(", "), " ".join(text.split()))
    return found


def json_shape(hint: Any) -> Schema | None:
    """JSON Schema of an annotation; None for what YAML cannot write, such as a function."""
    hint, kind, args, notes = _peeled(hint)
    shape: Schema | None = None
    if hint in _PLAIN:
        shape = dict(_PLAIN[hint])
    elif _is_parameter_type(hint):
        shape = dict(hint.schema)
    elif hint in REFERENCES:
        shape = {**(json_shape(Plugin) or {}), PLUGIN: REFERENCES[hint]}
    elif typing.is_typeddict(hint):
        shape = dict(json_schema(hint))
    elif kind is Literal:
        shape = {"enum": list(args)}
    elif kind in _UNIONS:
        shapes = [one for one in map(json_shape, args) if one is not None]
        shape = {"anyOf": shapes} if any(one != {"type": "null"} for one in shapes) else None
    elif _is_fixed(hint):
        parts = [json_shape(part) for part in args]
        if None not in parts:
            shape = {"type": "array", "prefixItems": parts, "minItems": len(args), "maxItems": len(args)}
    elif kind in _LISTS:
        items = json_shape(args[0]) if args else {}
        if items is not None and (kind not in _SETS or not args or _hashable(args[0])):
            shape = {"type": "array", "items": items or (_IN_A_SET if kind in _SETS else {})}
    elif kind in _MAPPINGS:
        keys, values = (_key_shape(args[0]), json_shape(args[1])) if args else ({}, {})
        if keys is not None and values is not None:
            shape = {"type": "object", "additionalProperties": values, **({"propertyNames": keys} if keys else {})}
    if shape is None:
        return None
    for note in notes:
        if isinstance(note, api.Range):
            shape |= {word: getattr(note, key) for key, word in _BOUNDS.items() if getattr(note, key) is not None}
            shape |= {"endless": True} if note.endless else {}
        elif isinstance(note, (str, Keywords)):
            shape |= {"description": note} if isinstance(note, str) else note
    return shape


def _key_shape(hint: Any) -> Schema | None:
    """What a mapping's keys, which YAML gives as texts, must look like; None for keys that they cannot be."""
    hint, kind, args, _ = _peeled(hint)
    if kind is Literal:
        return {"enum": list(args)} if all(isinstance(key, str) for key in args) else None
    return {str: {}, Any: {}, int: _WHOLE}.get(hint)


def unusable(cls: type) -> Iterator[tuple[str, str]]:
    """The parameters without default whose values no YAML can write, functions aside: (name, annotation)."""
    for name, field in fields(cls).items():
        if field.required and json_shape(field.hint) is None and _peeled(field.hint)[1] is not Callable:
            yield name, _spelled(field.hint)


def _hashable(hint: Any) -> bool:
    hint, kind, args, _ = _peeled(hint)
    if kind in (*_UNIONS, tuple, frozenset):
        return all(part is ... or _hashable(part) for part in args)
    return kind is Literal or hint in _PLAIN


def _spelled(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint).replace("typing.", "")


# ------------------------------------------------------------------------------------------- values

Refer = Callable[[str | type[ParameterType], Any, ValuePath], Any]
"""Makes a plugin of a kind, or a parameter of such a type: (kind or type, what YAML has, where it is)."""


def built(cls: type, arguments: Mapping[str, Any], refer: Refer) -> dict[str, Any]:
    """The arguments of a plugin, from what YAML has written and `faults` has passed."""
    known, own = fields(cls), {f.name.removesuffix("_"): f.name for f in dataclasses.fields(cls)}
    return {own[name]: build(known[name].hint, value, refer, (name,)) for name, value in arguments.items()}


def build(hint: Any, value: Any, refer: Refer, path: ValuePath = ()) -> Any:
    """What a field of this annotation gets for plain data that has passed `problems`; containers may nest."""
    hint, kind, args, _ = _peeled(hint)
    if kind in _UNIONS:
        return build(_branch(args, value), value, refer, path)
    if _is_parameter_type(hint):
        return refer(hint, value, path)
    if hint in REFERENCES:
        return refer(REFERENCES[hint], value, path)
    if typing.is_typeddict(hint) and isinstance(value, dict):
        known = fields(hint)
        return {
            key: build(known[key].hint, item, refer, (*path, key)) if key in known else item
            for key, item in value.items()
        }
    if isinstance(value, list) and kind in _LISTS:
        each = args if _is_fixed(hint) else itertools.repeat(args[0] if args else Any)
        items = [build(part, item, refer, (*path, i)) for i, (part, item) in enumerate(zip(each, value, strict=False))]
        return items if _LISTS[kind] is list else _LISTS[kind](items)
    if isinstance(value, dict) and kind in _MAPPINGS and args:
        key_of = int if _key_shape(args[0]) == _WHOLE else str
        return {key_of(key): build(args[1], item, refer, (*path, key)) for key, item in value.items()}
    return value


def _branch(hints: Sequence[Any], value: Any) -> Any:
    """The first of these annotations that the value fits."""
    for hint in hints:
        shape = json_shape(hint)
        if shape is not None and _validator()(shape).is_valid(value):
            return hint
    return Any


# ----------------------------------------------------------------------------------------- problems


def faults(cls: type, arguments: Mapping[str, Any]) -> Iterator[tuple[ValuePath, str]]:
    """What is wrong with a plugin's parameters, as `problems` says it."""
    shape = json_schema(cls)
    for name in arguments.keys() & fields(cls).keys() - shape["properties"].keys():
        yield (name, KEY), f"{name!r} is {_spelled(fields(cls)[name].hint)}, which YAML cannot write: set it in Python"
    unset = fields(cls).keys() - shape["properties"].keys()
    yield from schema_problems({name: value for name, value in arguments.items() if name not in unset}, shape)


def problems(value: Any, hint: Any) -> Iterator[tuple[ValuePath, str]]:
    """What is wrong with plain data that is to be `hint`, as (where in it, what), deepest causes only."""
    yield from schema_problems(value, json_shape(hint) or {})


def schema_problems(value: Any, shape: Schema) -> Iterator[tuple[ValuePath, str]]:
    """What is wrong with plain data by a JSON Schema, as `problems` says it."""
    errors = [*_validator()(shape).iter_errors(value)]
    of_other_type = {tuple(error.absolute_path) for error in errors if error.validator == "type"}
    for error in errors:
        if error.validator != "type" and tuple(error.absolute_path) in of_other_type:
            continue  # what is no integer is neither too small
        from harness.plugins.explain_errors import explain_errors

        yield from explain_errors(error)


@functools.cache
def _validator() -> Any:
    """JSON Schema takes 3.0 for an integer; Python, which will slice and count with it, does not. JSON has no infinite
    numbers; YAML has, and `Range(endless=True)` permits them."""
    from jsonschema import Draft202012Validator, ValidationError, validators

    checker = Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
    )
    by_type = Draft202012Validator.VALIDATORS["type"]

    def finite(validator: Any, types: Any, value: Any, shape: Schema) -> Iterator[Any]:
        if isinstance(value, float) and not math.isfinite(value) and not shape.get("endless"):
            yield ValidationError("must be finite")
        else:
            yield from by_type(validator, types, value, shape)

    return validators.extend(Draft202012Validator, {"type": finite}, type_checker=checker)  # type: ignore[no-untyped-call]
