"""JSON Schema for editors: a spec with the parameters of every plugin, in a form whose messages name one place.

`harness.plugins.parameters` describes values as plugins get them. A file that somebody writes is wider: values may be
swept (`${…}`), null takes away what an extended spec has, and what that one has need not be said again. Choices become
`if`/`then`/`else`, so that a mistake is reported for the alternative that was meant, not for all of them.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from harness.api.errors import PluginError, UserError
from harness.config.additions import ADDS
from harness.config.keys import SpecKey
from harness.config.listings import ListLine
from harness.config.project import Project
from harness.config.schema import SPEC, MetricEntry, key_shape
from harness.config.spec import ALIASES
from harness.plugins import parameters
from harness.plugins.lookup import loadable_classes
from harness.plugins.manifests import offers
from harness.plugins.parameters import PLUGIN, Schema, json_schema
from harness.tables.kinds import whole_entry_type

_SWEPT: Final[Schema] = {"$ref": "#/$defs/swept"}
_LATER: Final[Schema] = {"$ref": "#/$defs/later"}
_NULL: Final[Schema] = {"type": "null"}
_TEXT: Final[Schema] = {"type": "string"}
_ABOUT: Final = ("title", "description", "default")
_UNSAID: Final[Schema] = {"doNotSuggest": True}
"""Editors accept the key and do not offer it."""
_FOR_ALL_TYPES: Final = {"enum", "anyOf", "if", "$ref", "allOf"}
"""Keywords that hold for values of every type; all others hold for values of one type and say nothing about others."""
_TYPES: Final = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


def spec_schema(project: Project) -> Schema:
    """JSON Schema (draft 2020-12) of the project's spec files."""
    named = [kind for kind in offers("kinds") if kind in parameters.REFERENCES.values()]
    listed = {kind: [entry for entry in project.listing(kind) if entry.problem is None] for kind in named}
    bodies = {kind: {entry.name: _body(project, kind, entry.name) for entry in listed[kind]} for kind in named}
    spec = whole_schema()
    properties = {name: _File(sweeps=False).value(shape) for name, shape in spec["properties"].items()}
    adding = {
        name: {**properties[key], "description": f"entries for the {key} of the spec that this one extends"}
        for name, key in ADDS.items()
    }
    changing = _File(sweeps=False).value(spec["properties"]["tables"]["items"])
    adding["tables+"] = _with_items(adding["tables+"], changing)  # an entry may say only what it changes
    properties |= {alias: {**properties[key], **_UNSAID} for alias, key in ALIASES.items()}
    return {
        **{key: value for key, value in spec.items() if key != "required"},
        "properties": properties | adding,
        "if": {"not": _either("extends")},
        "then": {"allOf": [*map(_either, spec["required"]), *(_needed(spec) or {})["allOf"]]},
        "$defs": {
            "swept": {"type": "string", "pattern": r"\$\{"},
            "later": {"type": ["string", "null"], "pattern": r"\$\{"},
            "prompts": _name(_names(project.listing("prompts"))),
            "needed": {kind: {"required": ["use"], **_by_use(bodies[kind], _needed)} for kind in named},
            **{kind: _reference(kind, listed[kind], bodies[kind]) for kind in named},
        },
    }


def whole_schema() -> Schema:
    """JSON Schema of a spec with what all extensions add."""
    tables = {**SPEC["properties"]["tables"], "items": json_schema(whole_entry_type())}
    keys: dict[str, Schema] = {}
    for name in loadable_classes("keys", SpecKey):
        with contextlib.suppress(PluginError):  # its users get the error
            keys[name] = key_shape(name)
    return {**SPEC, "properties": {**SPEC["properties"], **keys, "tables": tables}}


def schema_text(project: Project) -> str:
    """`spec_schema` as JSON, a line a key: that shows what changed, and indentation would double it."""
    return json.dumps(spec_schema(project), indent=0)


def _either(key: str) -> Schema:
    """The key is there, or another word for it."""
    forms = [{"required": [name]} for name in (key, *(alias for alias, meant in ALIASES.items() if meant == key))]
    return {"anyOf": forms} if len(forms) > 1 else forms[0]


def _body(project: Project, kind: str, name: str) -> Schema:
    """The parameters of a plugin, and what a spec says beside them; of one that cannot be loaded, anything."""
    try:
        plugin: Any = project.load(kind, name)
    except UserError:  # `validate` says what is wrong with it
        return {"properties": {}}
    body = parameters.json_schema(plugin)
    beside = parameters.json_schema(MetricEntry)["properties"] if kind == "metrics" else {}
    return {**body, "properties": {**beside, **body["properties"]}}


def _reference(kind: str, listed: Sequence[ListLine], bodies: Mapping[str, Schema]) -> Schema:
    """A plugin of this kind: its name, or a mapping with `use` and the parameters of that one."""
    names = _names(listed)

    def known(body: Schema) -> Schema:
        shapes = {name: _File(sweeps=True).value(shape) for name, shape in body["properties"].items()}
        return {"properties": {**shapes, "use": {}}, "additionalProperties": body.get("additionalProperties", True)}

    return {
        "title": offers("kinds")[kind].value["singular"],
        "if": {"type": "object"},
        "then": {"if": _uses(_SWEPT), "else": {"properties": {"use": names}, **_by_use(bodies, known)}},
        "else": _name(names),
        **_offer(names),
    }


def _names(listed: Sequence[ListLine]) -> Schema:
    return {"enum": [entry.name for entry in listed], "enumDescriptions": [entry.description for entry in listed]}


def _name(names: Schema) -> Schema:
    return {"if": _LATER, "else": names, **_offer(names)}


def _offer(names: Schema) -> Schema:
    """What editors offer here, which rules nothing out; they look below `anyOf`, not below `else`."""
    return {"anyOf": [names, {}] if names else [{}]}


def _uses(name: Schema) -> Schema:
    return {"required": ["use"], "properties": {"use": name}}


def _by_use(bodies: Mapping[str, Schema], part: Callable[[Schema], Schema | None]) -> Schema:
    """What holds for a mapping by the plugin that it uses."""
    parts = {name: part(body) for name, body in bodies.items()}
    rules = [
        {"if": _uses({"const": name}), "then": {"title": name, **then}}
        for name, then in parts.items()
        if then is not None
    ]
    return {"allOf": rules} if rules else {}


def _needed(shape: Schema) -> Schema | None:
    """What must be there in a spec that extends none; None if nothing must."""
    if shape.get(PLUGIN) in offers("kinds"):
        return {"$ref": f"#/$defs/needed/{shape[PLUGIN]}"}
    mappings = [branch for branch in shape.get("anyOf", [shape]) if branch.get("type") == "object"]
    if len(mappings) != 1:
        return None
    [mapping] = mappings
    below = {
        name: need for name, value in mapping.get("properties", {}).items() if (need := _needed(value)) is not None
    }
    more = mapping.get("additionalProperties")
    others = _needed(more) if isinstance(more, dict) else None
    need = {
        **({"required": mapping["required"]} if mapping.get("required") else {}),
        # Not beside `required`: editors would offer to write these keys, without their values.
        **({"allOf": [{"properties": below}]} if below else {}),
        **({"additionalProperties": others} if others is not None else {}),
    }
    return need or None


@dataclass(frozen=True)
class _File:
    """Shapes of values as a file may have them.

    Attributes:
        sweeps: whether a text with `${…}` may stand for any of them.
        whole: whether they are in a list, of which specs that extend others take over all or nothing.
    """

    sweeps: bool
    whole: bool = False

    def value(self, shape: Schema) -> Schema:
        """What may stand where `shape` describes the value."""
        about = {key: shape[key] for key in _ABOUT if shape.get(key) is not None}
        if PLUGIN in shape:
            refers = {"$ref": f"#/$defs/{shape[PLUGIN]}"}
            need = {"$ref": f"#/$defs/needed/{shape[PLUGIN]}"}
            return {**about, **({"allOf": [refers, need]} if self.whole else refers)}
        branches = [branch for branch in shape.get("anyOf", [shape]) if self.whole or branch != _NULL]
        alone = sum(branch.get("type") == "object" for branch in branches) == 1
        inner = _one_of([self._opened(branch, alone) for branch in branches])
        inner = {key: value for key, value in inner.items() if key not in about}
        wider = [_NULL, None, _LATER, _SWEPT][2 * self.sweeps + self.whole]
        if wider is None or inner.keys() <= {"$ref"}:
            return {**about, **inner}
        if inner == _TEXT:
            return {**about, "type": "string" if self.whole else ["string", "null"]}
        words = _words(inner)
        return {**about, "if": wider, "else": inner, **_offer({"enum": words} if words else {})}

    def _opened(self, shape: Schema, alone: bool) -> Schema:
        """One alternative. `alone`: no other is a mapping as well, so that what it needs can be said elsewhere."""
        if PLUGIN in shape or "anyOf" in shape:
            return self.value(shape)
        opened = dict(shape) if self.whole or not alone else {k: v for k, v in shape.items() if k != "required"}
        listed = _File(self.sweeps, whole=True)
        if "properties" in shape:
            opened["properties"] = {name: self.value(value) for name, value in shape["properties"].items()}
            if not self.whole:
                lists = {name: value for name, value in opened["properties"].items() if _may_be_list(value)}
                opened["properties"] |= {f"{name}+": {**value, **_UNSAID} for name, value in lists.items()}
        if isinstance(shape.get("additionalProperties"), dict):
            opened["additionalProperties"] = self.value(shape["additionalProperties"])
        if "items" in shape:
            opened["items"] = listed.value(shape["items"])
        if "prefixItems" in shape:
            opened["prefixItems"] = [*map(listed.value, shape["prefixItems"])]
        return opened


def _may_be_list(shape: Any) -> bool:
    if isinstance(shape, dict):
        types = shape.get("type", ())
        return "array" in ([types] if isinstance(types, str) else types) or any(
            _may_be_list(shape.get(key)) for key in ("then", "else", "anyOf")
        )
    return isinstance(shape, list) and any(map(_may_be_list, shape))


def _with_items(shape: Any, items: Schema) -> Any:
    """The shape with other entries in its lists."""
    if not isinstance(shape, dict):
        return shape
    if "items" in shape:
        return {**shape, "items": items}
    return {key: _with_items(value, items) if key in ("then", "else") else value for key, value in shape.items()}


def _one_of(branches: Sequence[Schema]) -> Schema:
    """One of these alternatives, told apart by the type of the value; mappings by a key that only one of them needs."""
    if len(branches) == 1:
        return branches[0]
    mappings = [branch for branch in branches if branch.get("type") == "object"]
    others = [branch for branch in branches if branch.get("type") != "object"]
    branches = [*others, _mapping(mappings)] if mappings else others
    types = [_types(branch) for branch in branches]
    if sum(map(len, types)) > len(frozenset().union(*types)) or not all(types):
        return {"anyOf": [*branches]}
    flat: Schema = {"type": []}
    chain: list[tuple[frozenset[str], Schema]] = []
    for branch, names in zip(branches, types, strict=True):
        if _FOR_ALL_TYPES & branch.keys():
            chain.append((names, branch))
        else:
            flat = {**branch, **flat, "type": [*flat["type"], *sorted(names)]}
    result = flat if flat["type"] else chain.pop()[1]
    for names, branch in chain:
        result = {"if": {"type": sorted(names)}, "then": branch, "else": result}
    return result


def _mapping(branches: Sequence[Schema]) -> Schema:
    if len(branches) == 1:
        return branches[0]
    keys = []
    for branch in branches:
        others = {key for other in branches if other is not branch for key in other.get("properties", ())}
        keys += [key for key in branch.get("required", ()) if key not in others][:1]
    if len(keys) < len(branches):
        return {"type": "object", "anyOf": [*branches]}
    choices = {key: branch["properties"][key] for key, branch in zip(keys, branches, strict=True)}
    result: Schema = {"properties": choices, "additionalProperties": False, "minProperties": 1}
    for key, branch in zip(keys, branches, strict=True):
        result = {"if": {"required": [key]}, "then": branch, "else": result}
    return {"type": "object", **result}


def _types(shape: Schema) -> frozenset[str]:
    """The JSON types of the values that fit, integers among numbers; empty if that is not clear."""
    if "enum" in shape:
        return frozenset(_TYPES[type(value)] for value in shape["enum"])
    names = shape.get("type", ())
    return frozenset([names] if isinstance(names, str) else names) | ({"integer"} if "number" in names else set())


def _words(shape: Schema) -> list[Any]:
    """The values that an editor may offer."""
    words = [*shape.get("enum", ()), *([True, False] if "boolean" in _types(shape) else [])]
    below = [shape[key] for key in ("then", "else") if key in shape] + shape.get("anyOf", [])
    return [*words, *(word for one in below for word in _words(one))]
