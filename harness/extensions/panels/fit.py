"""`harness calibrate`: the agents answer the calibration rows once, and what they get right becomes frozen parameters.

Every file that the spec's protocols name (`calibration:`) is fitted by an ordinary run of an ordinary spec: the same
agents, a protocol in which agents hear nothing from each other, and the task as the spec's `calibrate:` changes it. It
is journaled and resumed like any other.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from harness import storage
from harness.api import Engine, Move, Task
from harness.api.errors import DataError, PluginError, SpecError
from harness.api.version import __version__
from harness.config import resolve, spec
from harness.config.plan import Plan, episode_id
from harness.config.project import Project
from harness.config.spec import Spec, Variant, over
from harness.evaluation.stages import OnScore, execute
from harness.extensions.panels.calibrated_protocol import (
    SCHEMA,
    CalibratedProtocol,
    CalibrationEpisode,
    fingerprint,
    players,
    wordings,
)
from harness.extensions.panels.questions import is_right, score_of
from harness.runtime.options import Options
from harness.runtime.run_json import identity, plain_folder
from harness.runtime.session import session
from harness.storage import finished_episodes

_OWN = ("prompts", "models", "baseline", "generation_kwargs", "structured_output", "seed", "executor")
"""The keys of a spec that decide how agents answer, besides task, protocol and agents; and where they do."""

MakeModel = Callable[[], Engine | None]


@session()
def fit(
    loaded: Spec,
    project: Project,
    model: MakeModel,
    *,
    options: Options | None = None,
    limit: int | None = None,
    on_score: Callable[[str], OnScore | None] = lambda name: None,
) -> dict[Path, int]:
    """Fit every file of parameters that the spec names.

    Args:
        loaded: the spec whose evaluation will read them.
        model: makes the engine under test, once for every file; None for the spec's baseline.
        options: how to run. `output_path` is where the calibration runs are kept, by default
            `results/<spec>-<model>-fit`; `overwrite` also replaces a file that holds other parameters.
        limit: at most so many questions for each file, where `calibrate:` does not say fewer.
        on_score: name of a file → what is called with every finished episode.

    Returns:
        file → number of questions it was fitted on.

    Raises:
        SpecError: nothing to calibrate, no `calibrate:`, or two conditions that want different things of one file.
        DataError: calibration questions that failed, or a file that may not be overwritten.
    """
    options = options or Options()
    plan = resolve.plan(loaded, project, model())
    agents = frozenset(agent for c in plan.conditions for agent in c.protocol.possible_agents(c.task.example()))
    files: dict[Path, int] = {}
    for name, (condition, derived) in _jobs(loaded, plan).items():
        protocol = plan.conditions[condition].protocol
        assert isinstance(protocol, CalibratedProtocol)
        calibrating = replace(_plan(derived, loaded, project, model, limit), elsewhere=agents)
        # Another panel, other words or rows are another run: nothing has to be thrown away to fit again.
        digest = hashlib.sha256(json.dumps(identity(calibrating), sort_keys=True, default=str).encode()).hexdigest()
        plain = plain_folder(plan)
        folder = options.output_path or plain.with_name(f"{plain.name}-fit")
        where = folder / storage.file_name(f"{derived['name']}-{digest[:8]}")
        execute(calibrating, replace(options, output_path=where), on_score(name))
        played = _played(calibrating, where)
        questions = {one.case.id: fingerprint(one.task, one.case) for one in played}
        answers = [[one.case.id, [[move.agent, move.action] for move in moves(one)]] for one in played]
        templates = sorted({"system", "retry", *(move.turn for one in played for move in moves(one))})
        document = {
            "schema": SCHEMA,
            "harness": __version__,
            "spec": loaded.name,
            "agents": players(plan, plan.conditions[condition]),
            "task": derived["task"],
            "seed": plan.seed,
            "templates": templates,
            "prompts": wordings(plan, plan.conditions[condition], templates),
            "answers": hashlib.sha256(json.dumps(answers, sort_keys=True).encode()).hexdigest(),
            "questions": questions,
            "parameters": protocol.fit(played),
        }
        # Below the project if that is the working directory, else below the working directory.
        file = project.root / name if Path.cwd().is_relative_to(project.root) else Path(name)
        _write(file, json.dumps(document, indent=1, ensure_ascii=False) + "\n", options.overwrite)
        files[file] = len(played)
    return files


def _plan(derived: dict[str, Any], loaded: Spec, project: Project, model: MakeModel, limit: int | None) -> Plan:
    """The plan of a calibration run; its problems are reported at `calibrate:`."""
    if limit is not None:
        derived = {**derived, "limit": min(limit, derived.get("limit", limit))}
    try:
        plan = resolve.plan(spec.parse(derived, project), project, model())
        score_of(plan.conditions[0].task)
    except (SpecError, PluginError) as error:
        raise SpecError(error.message, place=loaded.place("calibrate", "task"), hint=error.hint) from None
    return plan


def _jobs(loaded: Spec, plan: Plan) -> dict[str, tuple[int, dict[str, Any]]]:
    """Name of a file → number of the first condition that reads it, and the spec of its calibration run."""
    jobs: dict[str, tuple[int, dict[str, Any]]] = {}
    # No game of a tournament has such a protocol, and each variant of it has many conditions.
    variants = [] if "tournament" in loaded.data else zip(loaded.variants(), plan.conditions, strict=True)
    for i, (variant, condition) in enumerate(variants):
        protocol = condition.protocol
        if not isinstance(protocol, CalibratedProtocol) or protocol.calibration is None:
            continue
        changes = variant.data.get("calibrate")
        if changes is None:
            hint = "Say on which rows, e.g. calibrate: {task: {test_split: validation}, limit: 100}."
            raise SpecError("there is no calibrate:, which says what parameters are estimated on", hint=hint)
        derived = _derived(loaded, variant, protocol, condition.task, changes, plan)
        earlier = jobs.setdefault(protocol.calibration, (i, derived))[1]
        if earlier != derived:
            key = next(key for key in derived if earlier.get(key) != derived[key])
            raise SpecError(
                f"two conditions read {protocol.calibration} "
                f"and differ in {key}: {earlier.get(key)} and {derived[key]}",
                place=loaded.place("protocol"),
                hint="Give each its own file, with ${…} in its name.",
            )
    if not jobs:
        hint = "A protocol that has parameters to estimate names their file: calibration: results/fitted/NAME.json."
        raise SpecError(
            "no protocol of this spec names a file of parameters", place=loaded.place("protocol"), hint=hint
        )
    return jobs


def _derived(
    loaded: Spec, variant: Variant, protocol: CalibratedProtocol, task: Task, changes: Mapping[str, Any], plan: Plan
) -> dict[str, Any]:
    """The spec of a calibration run."""
    own = {key: variant.data[key] for key in _OWN if key in variant.data}
    task_entry = variant.data["task"]
    task_changes = changes.get("task") or {}
    task_changed = over({"use": task_entry} if isinstance(task_entry, str) else task_entry, task_changes)
    # null takes away; where there is nothing to take away, as where a spec's parent had it, that is not a value either.
    task_changed = {key: value for key, value in task_changed.items() if value is not None or key not in task_changes}
    members = set(protocol.members(task.example()))
    agents = {name: _on_panel(body, members) for name, body in (variant.data.get("agents") or {}).items()}
    assert protocol.calibration is not None
    return {
        "name": f"{loaded.name}-fit-{Path(protocol.calibration).stem}",
        "task": task_changed,
        "protocol": dict(protocol.calibration_protocol()),
        "agents": {name: body for name, body in agents.items() if body is not None},
        "metrics": ["calls", "parse_failures"],
        **own,
        **({"limit": changes["limit"]} if "limit" in changes else {}),
    }


def _on_panel(body: Any, members: set[str]) -> Any:
    """The part of a group of agents that is on the panel; None if none of it does."""
    if not isinstance(body, Mapping) or "agents" not in body:
        return body
    left = [agent for agent in body["agents"] if agent in members]
    return {**body, "agents": left} if left else None


def _played(plan: Plan, folder: Path) -> list[CalibrationEpisode]:
    """What was answered, in plan order."""
    cases = {episode_id(condition, case, repeat): case for condition, case, repeat in plan.episodes()}
    task = plan.conditions[0].task
    played: dict[str, CalibrationEpisode] = {}
    for end, batches in finished_episodes.batches(*storage.journals(folder)):
        if end["error"] is not None:
            message = f"the calibration question {end['case']!r} failed: {end['error']}"
            raise DataError(message, hint="Remove the cause, and fit again.")
        case = cases[end["e"]]
        played[end["e"]] = CalibrationEpisode(task, case, batches, partial(is_right, task, case))
    return [played[name] for name in cases if name in played]


def moves(one: CalibrationEpisode) -> list[Move]:
    """All moves of a calibration question."""
    return [move for batch in one.batches for move in batch]


def _write(file: Path, text: str, overwrite: bool) -> None:
    if file.exists() and not overwrite and file.read_text("utf-8") != text:
        raise DataError(f"{file} holds other parameters", hint="--overwrite replaces them.")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        storage.write_atomically(file, text)
    except OSError as error:
        raise DataError(f"cannot write {file}: {error.strerror or error}") from None
