"""What OpenAI's API refuses of schemas, by its documentation: platform.openai.com/docs/guides/structured-outputs,
Supported schemas, and docs/guides/function-calling."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.helpers.fake_openai import Body, Fault, status

KEYWORDS = {
    "type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "$ref", "$defs",
    "description", "title", "pattern", "format", "multipleOf", "minimum", "maximum", "exclusiveMinimum",
    "exclusiveMaximum", "minItems", "maxItems",
}  # fmt: skip
TYPES = {"string", "number", "boolean", "integer", "object", "array", "null"}


def complaint(schema: Any) -> str | None:
    """What strict mode refuses of a schema; None if it takes it."""
    if schema.get("type") != "object" or "anyOf" in schema:
        return f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{schema.get('type')}\"'."
    found = next(_complaints(schema, ()), None)
    if found is not None:
        return found
    properties, values, chars, depth = _sizes(schema)
    if properties > 5000 or values > 1000 or chars > 120_000 or depth > 10:
        return f"too large: {properties} properties, {values} values, {chars} characters, {depth} levels"
    return None


def _complaints(schema: Any, context: tuple[str, ...]) -> Iterator[str]:
    where = f"In context={context!r}, "
    if not isinstance(schema, Mapping):
        yield f"{where}schema must be an object."
        return
    for name in schema.keys() - KEYWORDS:
        yield f"{where}'{name}' is not permitted."
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if not kinds and not schema.keys() & {"anyOf", "$ref"}:
        yield f"{where}schema must have a 'type' key."
    if not set(kinds) <= TYPES:
        yield f"{where}{kinds!r} is not a type."
    if "object" in kinds:
        properties = schema.get("properties", {})
        if schema.get("additionalProperties") is not False:
            yield f"{where}'additionalProperties' is required to be supplied and to be false."
        if sorted(schema.get("required", ())) != sorted(properties):
            lacks = sorted({*properties} - {*schema.get("required", ())})
            yield (
                f"{where}'required' is required to be supplied and to be an array including every key in properties. "
                f"Missing {lacks}."
            )
        for name, one in properties.items():
            yield from _complaints(one, (*context, "properties", name))
    if "array" in kinds:
        if "items" not in schema:
            yield f"{where}array schema missing items."
        yield from _complaints(schema.get("items", {}), (*context, "items"))
    if "enum" in schema:
        values = schema["enum"]
        if not values or any(isinstance(one, (list, dict)) for one in values):
            yield f"{where}an enum has strings, numbers, booleans or null."
        if len(values) > 250 and sum(len(one) for one in values if isinstance(one, str)) > 15_000:
            yield f"{where}enum with more than 250 values and 15000 characters."
    for one in schema.get("anyOf", ()):
        yield from _complaints(one, (*context, "anyOf"))
    for name, one in schema.get("$defs", {}).items():
        yield from _complaints(one, (*context, "$defs", name))


def _sizes(schema: Mapping[str, Any]) -> tuple[int, int, int, int]:
    """(properties, values of enums, characters of names and values, levels of objects)."""
    names, values = [*schema.get("properties", ())], schema.get("enum", [])
    parts = [*schema.get("properties", {}).values(), *schema.get("anyOf", ()), *schema.get("$defs", {}).values()]
    inner = [_sizes(one) for one in [*parts, *([schema["items"]] if "items" in schema else [])]]
    chars = sum(map(len, names)) + sum(len(one) for one in values if isinstance(one, str))
    return (
        len(names) + sum(one[0] for one in inner),
        len(values) + sum(one[1] for one in inner),
        chars + sum(one[2] for one in inner),
        ("properties" in schema) + max((one[3] for one in inner), default=0),
    )


def tool_complaint(function: Mapping[str, Any]) -> str | None:
    """What is refused of a function that is offered without strict mode."""
    if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", function["name"]):
        return f"Invalid 'tools[0].function.name': {function['name']!r}"
    schema = function.get("parameters", {"type": "object", "properties": {}})
    if schema.get("type") != "object" or "properties" not in schema:
        return "schema must be a JSON Schema of 'type: \"object\"' with properties"
    unlisted = {*schema.get("required", ())} - {*schema["properties"]}
    arrays = [one for one in _values(schema) if isinstance(one, Mapping) and one.get("type") == "array"]
    if unlisted or any("items" not in one for one in arrays):
        return f"array schema missing items, or required without a property: {sorted(unlisted)}"
    return None


def _values(value: Any) -> Iterator[Any]:
    yield value
    for one in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
        yield from _values(one)


def refuse(body: Body) -> Fault | None:
    """The fault of a request whose schemas are refused."""
    made = body.get("response_format", {}).get("json_schema", {})
    found = None
    if made and made.get("strict"):
        found = complaint(made["schema"])
    elif made and made["schema"].get("type") != "object":
        found = "schema must be a JSON Schema of 'type: \"object\"'"
    found = found or next(filter(None, (tool_complaint(one["function"]) for one in body.get("tools", ()))), None)
    return None if found is None else status(400, f"Invalid schema for response_format 'reply': {found}")


def filled(schema: Mapping[str, Any], null: bool) -> Any:
    """A value that fits a schema of strict mode; `null`: with null wherever that fits."""
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if null and ("null" in kinds or {"type": "null"} in schema.get("anyOf", ())):
        return None
    if "anyOf" in schema:
        return filled(schema["anyOf"][0], null)
    if "enum" in schema:
        return schema["enum"][0]
    kind = kinds[0]
    if kind == "object":
        return {name: filled(one, null) for name, one in schema["properties"].items()}
    if kind == "array":
        return [filled(schema["items"], null)] * max(1, schema.get("minItems", 1))
    low = schema.get("minimum", 0)
    return {"string": "seven", "boolean": True, "integer": low or 1, "number": low or 1}[kind]
