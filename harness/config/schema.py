"""The published JSON Schema of a spec: what `validate` checks first and editors complete."""

from __future__ import annotations

from typing import Any

from harness.config.limits import JSON_SCHEMA as LIMITS
from harness.config.params import REFERENCE
from harness.tables import JSON_SCHEMA as TABLE
from harness.tables import PRICES_SCHEMA as PRICES

_TEXT = {"type": "string"}
_FREE: dict[str, Any] = {}
# A number, or the ${variable} that the matrix turns into one; `resolve` checks what comes of it.
_NUMBER = {"type": ["number", "string"]}
_METRIC = {
    "anyOf": [
        _TEXT,
        {
            "type": "object",
            "required": ["use"],
            "properties": {
                "use": _TEXT,
                "name": {"type": "string", "description": "what tables and result rows call it"},
            },
        },
    ]
}
_GROUP = {
    "type": "object",
    "properties": {
        "model": {"type": "string", "description": "`model` (the one under test) or a name under `models:`"},
        "policy": REFERENCE,
        "share": {**_NUMBER, "description": "⌊share · seats⌋ seats, drawn from the seed"},
        "count": {**_NUMBER, "description": "how many seats, drawn from the seed"},
        "seats": {
            "type": ["array", "string"],
            "items": _TEXT,
            "description": "these seats by name; or the ${variable} that the matrix turns into such a list",
        },
        "prompts": {"type": "string", "description": "the group's own prompt set"},
        "baseline": {**REFERENCE, "description": "who sits here when no --model is given"},
        "scored": {"type": "boolean", "description": "false: answers of these seats do not count"},
        "generation_kwargs": {"type": "object"},
    },
    "additionalProperties": False,
}
SPEC: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "harness spec",
    "type": "object",
    "required": ["name", "task", "protocol", "prompts", "metrics"],
    "properties": {
        "name": {
            "type": "string",
            "pattern": r"^[A-Za-z0-9][A-Za-z0-9_.-]*$(?!\n)",  # in Python, $ also stands before a last newline
            "description": "ASCII letters, digits, '_', '.' and '-': it names the run's folder",
        },
        "description": _TEXT,
        "extends": {"type": "string", "description": "a spec whose keys this one takes over unless it says otherwise"},
        "task": {**REFERENCE, "description": "what is to be solved"},
        "protocol": {**REFERENCE, "description": "who acts when and who sees what"},
        "prompts": {"type": "string", "description": "the prompt set"},
        "seats": {
            "type": "object",
            "description": "who sits where: `default`, and further groups by share, count or name",
            "properties": {"default": {"anyOf": [_TEXT, _GROUP]}},
            "additionalProperties": _GROUP,
        },
        "models": {
            "type": "object",
            "description": "further models by name: an engine and its arguments",
            "additionalProperties": REFERENCE,
        },
        "matrix": {
            "type": "object",
            "description": "swept values; ${name} inserts one. A value may be a mapping with a `name`: ${size.key}",
            "additionalProperties": {"type": "array", "minItems": 1, "items": _FREE},
        },
        "baseline": {**REFERENCE, "description": "the policy that sits when no --model is given"},
        "generation_kwargs": {"type": "object", "description": "sampling: temperature, max_tokens, top_p, stop, …"},
        "constrained": {"type": "boolean", "description": "decode within the reply's form (recorded in results)"},
        "fit": {
            "type": "object",
            "description": "what `harness fit` estimates parameters on: changes to the task, and how many rows",
            "properties": {
                "task": {
                    "type": ["object", "string"],
                    "description": "parameters of the task that are others there, or the ${variable} that holds them",
                },
                "limit": {**_NUMBER, "description": "at most so many rows"},
            },
            "additionalProperties": False,
        },
        "limits": LIMITS,
        "share_calls": {
            "type": "boolean",
            "description": "ask identical calls of different conditions once, and bill each as if alone",
        },
        "executor": {**REFERENCE, "description": "where episodes are played: local (this process) or ray"},
        "seed": {"type": "integer", "minimum": 0, "maximum": 10**18 - 1},
        "repeats": {
            "type": "integer",
            "minimum": 1,
            "maximum": 1_000_000,
            "description": "how often each case is played",
        },
        "limit": {
            "type": "integer",
            "minimum": 1,
            "maximum": 10**18 - 1,
            "description": "at most so many cases a condition",
        },
        "metrics": {"type": "array", "minItems": 1, "items": _METRIC},
        "tables": {"type": "array", "items": TABLE},
        "prices": PRICES,
    },
    "additionalProperties": False,
}
