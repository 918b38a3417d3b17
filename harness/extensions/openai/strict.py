"""JSON Schemas as OpenAI's strict mode takes them, and replies held to those as the form's own schema has them.

Strict mode takes objects whose properties are all required and that have no others, a type everywhere, an object at the
root, and few keywords: platform.openai.com/docs/guides/structured-outputs, Supported schemas. What a schema says beyond
that (the length of a text, a uniqueness) the form checks when it reads the reply.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

ROOT = "answer"
"""The property that holds a reply which is no object."""
MAX_PROPERTIES, MAX_DEPTH, MAX_VALUES, MAX_CHARS = 5000, 10, 1000, 120_000
LARGE_ENUM, MAX_LARGE_CHARS = 250, 15_000
"""Documented limits: properties, levels of objects, values of all enums, characters of names and values; values above
which the texts of one enum may have at most so many characters."""
BOUNDS = frozenset(
    {"pattern", "format", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems",
     "maxItems"}
)  # fmt: skip
"""Keywords that bound a value, of which other servers take fewer than OpenAI."""
_KEPT = BOUNDS | {"type", "enum", "description", "title", "$ref"}
_SCALARS = ("string", "number", "boolean", "null")
_TYPES = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


class _NoneError(Exception):
    """There is no such schema in strict mode."""


def response_format(schema: Mapping[str, Any]) -> dict[str, Any]:
    """What of a request's body holds a reply to a schema; not strictly, if strict mode has no schema for it."""
    try:
        made, strict = _within_limits(_strict(schema)), True
    except _NoneError:
        made, strict = dict(schema), False
    if not _is_object(schema):
        made = {"type": "object", "properties": {ROOT: made}, "required": [ROOT], "additionalProperties": False}
    return {"type": "json_schema", "json_schema": {"name": "reply", "schema": made, "strict": strict}}


def restored(text: str, schema: Mapping[str, Any]) -> str:
    """A reply as the schema itself has it: without the object around what is none, and without nulls that stand for
    properties which may lack. A text that is no such reply as it is."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    found = value
    if not _is_object(schema) and isinstance(value, dict) and value.keys() == {ROOT}:
        found = value[ROOT]
    found = _without_nulls(found, schema)
    return text if found is value else json.dumps(found, ensure_ascii=False)


def without_bounds(body: Mapping[str, Any], names: frozenset[str]) -> dict[str, Any]:
    """A request's body whose schema lacks these `BOUNDS`."""

    def bare(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: bare(v) for k, v in value.items() if k not in names or isinstance(v, dict)}
        return [bare(one) for one in value] if isinstance(value, list) else value

    return {**body, "response_format": bare(body["response_format"])}


def bounds_of(body: Mapping[str, Any]) -> set[str]:
    """The `BOUNDS` in a request's body."""
    made = body.get("response_format", {}).get("json_schema", {}).get("schema", {})
    return {name for part in _parts(made) for name in part if name in BOUNDS}


def _is_object(schema: Mapping[str, Any]) -> bool:
    return schema.get("type", "object") == "object" and not schema.keys() & {"anyOf", "oneOf", "enum", "$ref", "const"}


def _strict(schema: Any) -> dict[str, Any]:
    if schema is True or schema == {}:
        return {"type": [*_SCALARS]}
    if not isinstance(schema, Mapping) or schema.keys() & {"allOf", "not", "if", "patternProperties", "prefixItems"}:
        raise _NoneError
    made = {name: value for name, value in schema.items() if name in _KEPT}
    if "const" in schema:
        made["enum"] = [schema["const"]]
    if "$defs" in schema:
        made["$defs"] = {name: _strict(one) for name, one in schema["$defs"].items()}
    if options := schema.get("anyOf") or schema.get("oneOf"):
        made["anyOf"] = [_strict(one) for one in options]
    elif "enum" in made and "type" not in made:
        made["type"] = _types_of(made["enum"])
    kind = made.get("type", "object" if "properties" in schema else "array" if "items" in schema else None)
    if kind == "object":
        made |= _object(schema)
    elif kind == "array":
        made |= {"type": "array", "items": _strict(schema.get("items", True))}
    elif kind is None and not made.keys() & {"anyOf", "$ref"}:
        made["type"] = [*_SCALARS]
    return made


def _object(schema: Mapping[str, Any]) -> dict[str, Any]:
    properties, others = schema.get("properties"), schema.get("additionalProperties", False)
    if properties is None or others is not False:
        raise _NoneError  # an object of any names
    required = schema.get("required", ())
    made = {name: _strict(one) for name, one in properties.items()}
    nullable = {name: one if name in required else _or_null(one) for name, one in made.items()}
    return {"type": "object", "properties": nullable, "required": [*properties], "additionalProperties": False}


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema that null fits too."""
    if "anyOf" in schema:
        return {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
    if "type" not in schema or schema["type"] in ("object", "array"):
        return {"anyOf": [schema, {"type": "null"}]}
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    more = {"enum": [*schema["enum"], *([] if None in schema["enum"] else [None])]} if "enum" in schema else {}
    return {**schema, "type": [*kinds, *([] if "null" in kinds else ["null"])], **more}


def _types_of(values: list[Any]) -> str | list[str]:
    kinds = [_TYPES[type(one)] for one in values if type(one) in _TYPES]
    if len(kinds) < len(values):
        raise _NoneError
    return kinds[0] if len(set(kinds)) == 1 else [*dict.fromkeys(kinds)]


def _within_limits(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without its enums if these are too large. Raises `_NoneError` if the rest is."""
    if not _fits(schema):
        schema = _without_enums(schema)
        if not _fits(schema):
            raise _NoneError
    return schema


def _fits(schema: dict[str, Any]) -> bool:
    names = [name for part in _parts(schema) for name in part.get("properties", ())]
    enums = [part["enum"] for part in _parts(schema) if "enum" in part]
    chars = [sum(len(one) for one in values if isinstance(one, str)) for values in enums]
    large = any(n > MAX_LARGE_CHARS for n, values in zip(chars, enums, strict=True) if len(values) > LARGE_ENUM)
    return (
        len(names) <= MAX_PROPERTIES and sum(map(len, enums)) <= MAX_VALUES and not large
        and sum(map(len, names)) + sum(chars) <= MAX_CHARS and _depth(schema) <= MAX_DEPTH
    )  # fmt: skip


def _children(schema: Mapping[str, Any]) -> list[Any]:
    own = [schema["items"]] if "items" in schema else []
    named = [*schema.get("properties", {}).values(), *schema.get("$defs", {}).values()]
    return [one for one in (*own, *named, *schema.get("anyOf", ())) if isinstance(one, dict)]


def _parts(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield schema
    for one in _children(schema):
        yield from _parts(one)


def _depth(schema: Mapping[str, Any]) -> int:
    return ("properties" in schema) + max(map(_depth, _children(schema)), default=0)


def _without_enums(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_enums(v) for k, v in value.items() if k != "enum" or isinstance(v, dict)}
    return [_without_enums(one) for one in value] if isinstance(value, list) else value


def _without_nulls(value: Any, schema: Any) -> Any:
    """The value itself where nothing is to be left out."""
    if not isinstance(schema, Mapping):
        return value
    if isinstance(value, list) and "items" in schema:
        items = [_without_nulls(one, schema["items"]) for one in value]
        return items if any(a is not b for a, b in zip(items, value, strict=True)) else value
    properties = schema.get("properties")
    if not isinstance(value, dict) or not isinstance(properties, Mapping):
        return value
    required = schema.get("required", ())
    kept = {
        name: _without_nulls(one, properties.get(name))
        for name, one in value.items()
        if one is not None or name in required or name not in properties or _takes_null(properties[name])
    }
    return value if kept.keys() == value.keys() and all(kept[k] is value[k] for k in kept) else kept


def _takes_null(schema: Any) -> bool:
    if not isinstance(schema, Mapping):
        return schema is True
    kinds = schema.get("type", ())
    return "null" in ([kinds] if isinstance(kinds, str) else kinds) or None in schema.get("enum", ())
