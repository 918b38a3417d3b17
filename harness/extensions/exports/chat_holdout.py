"""Cases that are kept for evaluation: a training set that holds one of them is refused."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

from harness.api import Case
from harness.api.errors import DataError, Place
from harness.api.run_files import META, SPEC
from harness.config import resolve, spec
from harness.config.plan import Condition, Plan, problem_digest, survey
from harness.config.project import Project, find
from harness.engines.mock import Mock
from harness.evaluation.load_run import run_folder
from harness.evaluation.run import Run
from harness.runtime.run_schema import read_meta
from harness.runtime.sources import changed

PLACE: Final = Place("--holdout")
_LISTED: Final = 5
_OTHER: Final = "Train on other cases than those you evaluate on: another seed, split or size."


def refuse_evaluation_cases(
    runs: Sequence[tuple[Run, Plan, Collection[str]]], kept: Sequence[str], project: Project | None
) -> None:
    """Refuse runs of which an episode played what is kept for evaluation.

    Cases are the same that ask the same and have the same answers (`problem_digest`), whatever their ids are.

    Args:
        runs: each with its plan and the ids of the episodes to train on.
        kept: specs, by name or file, and folders of runs.
        project: where the plugins of specs are.

    Raises:
        DataError: with the cases; or it cannot be known which cases a run kept, since its task has changed.
        UserError: as reading a spec raises.
    """
    played: dict[str, str] | None = None
    for name in kept:
        plan, digest = _plan(name, project or find())
        for run, _, _ in runs:
            if run.meta.get("spec_digest") == digest:
                message = f"{run.folder} played what {name} keeps for evaluation: the same spec, word for word"
                raise DataError(message, place=PLACE, hint=_OTHER)
        played = _played(runs) if played is None else played
        evaluated = {problem_digest(condition.task, case): case for condition, case in _cases(plan)}
        if both := {digest: at for digest, at in played.items() if digest in evaluated}:
            words = [f"{at} ({evaluated[digest].id} of {name})" for digest, at in list(both.items())[:_LISTED]] + (
                [f"… ({len(both)} in all)"] if len(both) > _LISTED else []
            )
            message = f"{len(both)} of {len(played)} cases to train on are kept for evaluation: {', '.join(words)}"
            raise DataError(message, place=PLACE, hint=_OTHER)


def _plan(name: str, project: Project) -> tuple[Plan, str]:
    """The plan that a spec or a run stands for, and its digest."""
    if not (Path(name) / META).is_file():
        plan = resolve.plan(spec.load(name, project), project, Mock())
        return plan, plan.digest
    folder = run_folder(name)
    meta = read_meta(folder / META)
    plan = resolve.plan(spec.load(str(folder / SPEC), project), project, Mock())
    if isinstance(then := meta.get("cases"), dict) and (other := changed(then, survey(plan).cases)):
        message = f"which cases {folder} played cannot be known: the task's {' and '.join(other)} changed since"
        raise DataError(message, place=PLACE, hint="Name the spec as it was when you evaluated.")
    return plan, str(meta["spec_digest"])


def _cases(plan: Plan) -> list[tuple[Condition, Case]]:
    """(condition, case) of all that a plan plays."""
    return [(condition, case) for condition, case, repeat in plan.episodes() if repeat == 0]


def _played(runs: Sequence[tuple[Run, Plan, Collection[str]]]) -> dict[str, str]:
    """Digest of a case of the chosen episodes → the first such, as condition/case."""
    digests: dict[str, str] = {}
    for _, plan, episodes in runs:
        wanted = {episode.rpartition("/")[0] for episode in episodes}
        for condition, case in _cases(plan):
            if (at := f"{condition.id}/{case.id}") in wanted:
                digests.setdefault(problem_digest(condition.task, case), at)
    return digests
