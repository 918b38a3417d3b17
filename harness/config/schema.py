"""A spec as its YAML has it: what `validate` checks first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, NotRequired, Required, TypedDict

from harness.api import Range
from harness.api.errors import ValuePath
from harness.config.keys import SpecKey
from harness.plugins.manifests import offers
from harness.plugins.parameters import (
    OPEN,
    PLUGIN,
    Keywords,
    Plugin,
    Schema,
    json_schema,
    json_shape,
    schema_problems,
)
from harness.tables import HeadlineEntry, TableEntry
from harness.tables.spec import entry_problems

_Number = float | str  # or the ${variable} that the matrix turns into one; `resolve` checks what comes of it
_Flag = bool | Annotated[str, Keywords(pattern=r"^\$\{[^{}]+\}$"), "true, false or the ${variable} of a matrix"]
_Name = Keywords(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$(?!\n)")  # in Python, $ also precedes a last newline
_Filled = Keywords(minItems=1)
_Prompts = Annotated[str, Keywords({PLUGIN: "prompts"})]
_Policy = Annotated[Plugin, Keywords({PLUGIN: "policies"})]


class MetricEntry(TypedDict):
    """A metric with parameters, which are beside these keys."""

    use: str
    name: NotRequired[Annotated[str, "what tables and result rows call it"]]


class GroupEntry(TypedDict, total=False):
    """A group of agents that play alike."""

    model: Annotated[str, "`model` (the one under test) or a name under `models:`"]
    policy: Annotated[_Policy, "plays these agents instead of a model"]
    share: Annotated[_Number, "⌊share · agents⌋ agents, drawn from the seed"]
    count: Annotated[_Number, "how many agents, drawn from the seed"]
    agents: Annotated[
        list[str] | str, "these agents by name; or the ${variable} that the matrix turns into such a list"
    ]
    prompts: Annotated[_Prompts, "the group's own prompt set"]
    baseline: Annotated[_Policy, "the policy that plays here when no --model is given"]
    scored: Annotated[_Flag, "false: answers of these agents do not count"]
    generation_kwargs: dict[str, Any]


class GroupSize(TypedDict, total=False):
    """Which agents a group has, once the matrix's values are inserted: one of the first three."""

    share: Annotated[float, Range(ge=0, le=1)]
    count: Annotated[int, Range(ge=0)]
    agents: Annotated[list[str], Keywords(uniqueItems=True)]
    scored: bool


class SpecEntry(TypedDict, total=False):
    """A spec."""

    name: Required[Annotated[str, _Name, "ASCII letters, digits, '_', '.' and '-': it names the run's folder"]]
    task: Required[Annotated[Plugin, Keywords({PLUGIN: "tasks"}), "what is to be solved"]]
    protocol: Required[Annotated[Plugin, Keywords({PLUGIN: "protocols"}), "who acts when and who sees what"]]
    prompts: Annotated[_Prompts, "the prompt set; by default what the task proposes for the protocol, if it does"]
    metrics: Annotated[
        list[Annotated[str | Annotated[MetricEntry, OPEN], Keywords({PLUGIN: "metrics"})]],
        _Filled,
        "what is measured: names, or {use: tokens, kind: input, name: tokens_input}; by default the task's own",
    ]
    description: Annotated[str, "what it is for; the first line stands in lists"]
    extends: Annotated[str, "a spec whose keys this one takes over unless it says otherwise"]
    agents: Annotated[
        dict[str, str | GroupEntry], "who plays which agents: `default`, and further groups by share, count or name"
    ]
    models: Annotated[
        dict[str, Annotated[Plugin, Keywords({PLUGIN: "engines"})]],
        "further models by name: an engine and its arguments",
    ]
    matrix: Annotated[
        dict[str, Annotated[list[Any], _Filled]],
        "swept values; ${name} inserts one. A value may be a mapping with a `name`: ${size.key}",
    ]
    baseline: Annotated[_Policy, "the policy that plays when no --model is given"]
    generation_kwargs: Annotated[dict[str, Any], "sampling: temperature, max_tokens, top_p, stop, …"]
    structured_output: Annotated[_Flag, "decode within the reply's form (recorded in results)"]
    dedupe_calls: Annotated[bool, "ask identical calls of different conditions once, and bill each as if alone"]
    executor: Annotated[Plugin, "where episodes are played: local, which is this process, or what an extension adds"]
    seed: Annotated[int, Range(ge=0, le=10**18 - 1), "all that is drawn comes from it; 0 by default"]
    repeats: Annotated[int, Range(ge=1, le=1_000_000), "how often each case is played"]
    limit: Annotated[int, Range(ge=1, le=10**18 - 1), "at most so many cases a condition"]
    cluster: Annotated[
        str | Annotated[list[str], Keywords(minItems=1, uniqueItems=True)],
        "which episodes are one observation, in every table that does not say it itself: case, episode, or labels",
    ]
    headline: Annotated[HeadlineEntry, "the one number that stands for the benchmark, by which runs are ranked"]
    tables: Annotated[list[TableEntry], "what is printed"]


SPEC: Final[Schema] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "harness spec",
    **json_schema(SpecEntry),
}
"""JSON Schema of a spec, without what extensions add."""


def key_shape(name: str) -> Schema:
    """JSON Schema of the value of a key of specs; {} for an unknown key."""
    offered = offers("keys").get(name)
    if offered is None:
        return SPEC["properties"].get(name) or {}
    try:
        return json_shape(offered.load_class(SpecKey).entry) or {}
    except (AttributeError, TypeError) as error:
        raise offered.mistake(f"its `entry` is not an annotation that YAML can write: {error}") from error


def spec_problems(data: Mapping[str, Any]) -> Iterator[tuple[ValuePath, str]]:
    """What is wrong with a spec's keys and types, as `parameters.problems` says it; asks the extensions it needs."""
    properties = {**SPEC["properties"], **{name: key_shape(name) if name in data else {} for name in offers("keys")}}
    tables = data.get("tables")
    if isinstance(tables, list):
        properties["tables"] = {"type": "array", "items": {}}
    yield from schema_problems(data, {**SPEC, "properties": properties})
    for i, entry in enumerate(tables if isinstance(tables, list) else ()):
        yield from (((("tables", i, *path)), what) for path, what in entry_problems(entry))


def metric_name(entry: str | Mapping[str, Any]) -> str:
    """What tables call an entry of `metrics:`."""
    return entry if isinstance(entry, str) else str(entry.get("name", entry["use"]))
