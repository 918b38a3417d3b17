"""A run's folder, read back: `harness.evaluation.run.Run` of a finished run, or of what there is of another one."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from harness import storage
from harness.api.errors import DataError, near
from harness.api.run_files import META, SCORES, SPEC
from harness.config.keys import keys_of
from harness.config.project import Project, find
from harness.evaluation.run import Run
from harness.runtime.run_schema import check_journals, ended_by_rule, read_meta, why_stopped
from harness.runtime.run_specs import RunSpecs
from harness.runtime.used_extensions import advice, missing_extensions
from harness.tables import NOT_RUN, EpisodeScore, load_scores


def load_run(
    folder: Path | str, project: Project | None = None, *, unfinished: bool = False, specs: RunSpecs | None = None
) -> Run:
    """Read a run's folder: `harness.load_run`. Raises `DataError` if it holds none or is damaged.

    Args:
        folder: the run's.
        project: where its plugins are looked up; default: the project around the working directory.
        unfinished: also read an unfinished run, with its finished episodes in the order in which they ended.
            Otherwise such a run is a `DataError`.
        specs: reads the specs of several runs, and each one once; its project counts.
    """
    opened = load_unscored(folder, project, unfinished=unfinished, specs=specs)
    if not (opened.folder / SCORES).is_file():
        return _so_far(opened, specs or RunSpecs(opened.project or find()))
    scores = load_scores(opened.folder / SCORES)
    enough = ended_by_rule(opened.meta)
    planned = opened.meta.get("planned") if enough is None else enough.get("episodes")
    if planned is not None and len(scores) != planned:
        whose = "its plan has" if enough is None else "its rule counted"
        message = f"the run in {opened.folder} has scores of {len(scores)} episodes, and {whose} {planned}"
        hint = f"`harness score {opened.folder}` writes scores.jsonl again, from the journal."
        raise DataError(message, hint=hint)
    return replace(opened, scores=scores)


def load_unscored(
    folder: Path | str, project: Project | None = None, *, unfinished: bool = False, specs: RunSpecs | None = None
) -> Run:
    """Read a run's folder without its scores, which may be damaged. Errors as in `load_run`."""
    folder = run_folder(folder)
    if not (folder / META).is_file():
        raise DataError(f"{folder} holds no run (no run.json)", hint="Give the folder that `harness eval` named.")
    specs = specs or RunSpecs(project or find())
    meta = read_meta(folder / META)
    if not unfinished and not (folder / SCORES).is_file():
        end = meta.get("stopped")
        counted = f" ({end.get('episodes')} of {end.get('of')} episodes)" if isinstance(end, Mapping) else ""
        why = f": {why_stopped(meta)}{counted}" if end else ""
        far = f"`harness report {shlex.quote(str(folder))}` shows what is there."
        hint = f"Give the same eval command again to resume; {far}"
        raise DataError(f"the run in {folder} is not finished{why}", hint=hint)
    if not (folder / SPEC).is_file():
        raise DataError(f"the run in {folder} has lost its {SPEC}", hint="Give the same eval command again.")
    resolved, metrics = specs.read(folder, meta)
    if missing := missing_extensions(meta):
        warnings.warn(f"{folder}: {advice(missing)}. What it added is left out.", stacklevel=2)
    return Run(folder, meta, resolved, [], metrics, specs.project)


def _so_far(run: Run, specs: RunSpecs) -> Run:
    """The run with the episodes that its journals hold. Raises `DataError` for damaged ones."""
    from harness.runtime.usage_so_far import usage_so_far  # what only an unfinished run needs

    check_journals(run.meta, run.folder)
    state = storage.JournalState(*storage.journals(run.folder))
    scores = [EpisodeScore.from_json({"id": name, **end}) for name, end in state.ends.items()]
    usages, left_out = usage_so_far(state, run.meta, lambda: specs.plan(run.folder, run.meta).plan)
    begun = [EpisodeScore(name, "", error=NOT_RUN, usage=usage) for name, usage in usages.items()]
    planned = run.meta.get("planned")
    lacking = f"{planned - len(scores)} of {planned}" if isinstance(planned, int) else "some"
    why = f"{lacking} episodes are missing ({why_stopped(run.meta)})"
    notes = [f"Not finished: {why}. The same eval command goes on."]
    if begun:
        notes.append(f"Costs are also those of {len(begun)} that ha{'s' if len(begun) == 1 else 've'} begun.")
    notes += filter(None, [left_out])
    records, stopped = run.meta.get("keys", {}), run.meta.get("stopped", {})
    for key in keys_of(run.spec):
        notes += key.so_far(records.get(key.name, {}), stopped, scores)
    return replace(run, scores=scores, begun=begun, unfinished=" ".join(notes))


def run_folder(folder: Path | str) -> Path:
    """The folder of a run as a path. Raises `DataError` if there is none, with runs of similar names beside it."""
    path = Path(folder)
    if path.is_dir():
        return path
    if path.is_file():
        raise DataError(f"{path} is a file", hint="Give the folder of the run, which `harness eval` named.")
    try:
        beside = [entry.name for entry in path.parent.iterdir() if entry.is_dir()]
    except OSError:
        beside = []
    hint = "Give the folder that `harness eval` named."
    raise DataError(f"folder not found: {path}", hint=f"{near(path.name, beside)} {hint}" if beside else hint)
