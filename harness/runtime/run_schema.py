"""run.json as it is read: what a reader may rely on, whatever a person or a disk has done to the file."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Final, Required, TypedDict

from harness import storage
from harness.api import Range
from harness.api.errors import DataError, Place
from harness.plugins.parameters import OPEN, Schema, json_schema, schema_problems

_Count = Annotated[int, Range(ge=0)]
_Records = dict[str, dict[str, Any]]


class IdentityRecord(TypedDict, total=False):
    """What may not change between a run and its resumption."""

    spec: dict[str, Any]
    prompts: dict[str, Any]


class RunRecord(TypedDict, total=False):
    """run.json; docs/reference/results.md says what its keys mean."""

    run: Required[str]
    spec: Required[str]
    spec_digest: Required[str]
    model: Required[str]
    identity: Required[Annotated[IdentityRecord, OPEN]]
    code: Required[dict[str, dict[str, str]]]
    status: str
    policies_only: bool
    uses_ground_truth: bool
    structured_output: bool
    generation_kwargs: dict[str, Any]
    sampled_by_agents: bool
    engine_args: dict[str, Any]
    engine_types: dict[str, str]
    inner: _Records
    in_batches: list[str]
    versions: dict[str, Any]
    hardware: dict[str, Any]
    stopped: dict[str, Any]
    judges: _Records
    spent_beside: dict[str, dict[str, dict[str, float]]]
    engines: _Records
    reply_code: str
    extensions: _Records
    graded_again: list[dict[str, Any]]
    earlier: list[dict[str, Any]]
    cases: dict[str, str]
    journals: dict[str, _Count]
    executor: dict[str, Any] | None
    planned: _Count | None
    keys: _Records
    duration: Annotated[float, Range(ge=0, le=1e12)]
    command: list[str]
    start: str
    session_start: str
    end: str | None


_SHAPE: Final[Schema] = {**json_schema(RunRecord), **OPEN}


def why_stopped(meta: Mapping[str, Any]) -> str:
    """Why a run is not finished, as far as its run.json says."""
    end = meta.get("stopped")
    if not isinstance(end, Mapping):
        return "it was interrupted, or is still running"
    return str(end["why"]) if "why" in end else f"{end.get('by')} {end.get('at')} ended it"


def ended_by_rule(meta: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """What run.json says of the end of a run whose episodes were enough (`harness.runtime.stopping`): such a run has
    scores and tables. None for all other runs."""
    end = meta.get("stopped")
    return end if isinstance(end, Mapping) and isinstance(end.get("enough"), str) else None


def check_journals(meta: Mapping[str, Any], folder: Path) -> None:
    """Raises `DataError` if a journal is shorter than it was at the end of the last session."""
    for name, length in meta.get("journals", {}).items():
        path = folder / name
        there = path.stat().st_size if path.exists() else 0
        if there < length:
            message = f"{path} was cut: {there:,} of {length:,} bytes are there"
            hint = "Restore it from a copy. To continue with what is left, delete `journals` from run.json."
            raise DataError(message, hint=hint)


def read_meta(path: Path) -> dict[str, Any]:
    """A run's run.json. Raises `DataError` if it is damaged, or written by another version of this format."""
    meta = storage.read_json(path)
    if meta.get("schema") != storage.SCHEMA:
        message = f"this run has the format {meta.get('schema')!r}, this harness reads {storage.SCHEMA}"
        raise DataError(message, place=Place(str(path)), hint="Use the version of harness that wrote it.")
    if (wrong := _problem(meta)) is not None:
        raise DataError(f"not a run's record: {wrong}", place=Place(str(path)))
    return meta


def _problem(meta: Mapping[str, Any]) -> str | None:
    """What is wrong with a run's record, in words; None if nothing is. Keys that are not known may hold anything."""
    if (first := next(schema_problems(meta, _SHAPE), None)) is not None:
        path, what = first
        return f"{path[0]}: {what}" if len(path) > 1 else what
    if meta.get("duration", 0) != meta.get("duration", 0):
        return "'duration' must be a number, found nan"
    times = ((key, meta.get(key)) for key in ("start", "session_start", "end"))
    strange = [(key, value) for key, value in times if value is not None and not _has_zone(value)]
    return f"'{strange[0][0]}' must be a time with its zone, found {strange[0][1]!r:.60}" if strange else None


def _has_zone(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False
