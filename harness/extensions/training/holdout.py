"""Evaluation cases that a training set must not hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from harness.api.errors import DataError, Place
from harness.api.run_files import META
from harness.config import resolve
from harness.config.plan import Plan, prepare, problem_digest
from harness.config.project import Project
from harness.config.spec import Spec, load, parse
from harness.evaluation.load_run import load_unscored
from harness.evaluation.run import Run

from .learner import NoEngine
from .rollout import EnvTask

Evaluation = str | Path | Mapping[str, Any] | Spec | Run
"""What is held out: a spec as `TrainingEnv` takes it, a run, or a run's folder."""
_SHOWN = 5


def refuse_overlap(tasks: Iterable[EnvTask], holdout: Evaluation | Iterable[Evaluation], project: Project) -> None:
    """Raise `DataError` where tasks hold a case of an evaluation: one that asks the same and has the same answer.

    Its id, labels and groups of agents may differ; with other names of agents it is another case. Raises as the
    evaluations' specs do.
    """
    if isinstance(holdout, str | Path | Mapping | Spec | Run):
        holdout = [holdout]
    own: dict[str, str] = {}
    for task in tasks:
        own.setdefault(problem_digest(task.condition.task, task.case), f"{task.condition.id}/{task.case.id}")
    size = len(own)
    for number, given in enumerate(holdout):
        plan, name = _plan(given, project)
        every = ((condition.task, case) for condition in plan.conditions for case, _ in plan.all_cases(condition))
        held = {problem_digest(*one) for one in every}
        if both := [own[digest] for digest in own if digest in held]:
            listed = ", ".join(both[:_SHOWN]) + (f" and {len(both) - _SHOWN} more" if len(both) > _SHOWN else "")
            message = f"{len(both)} of {size} cases to train on are cases of the evaluation {name}: {listed}"
            hint = "Train on others: generated tasks draw them by another seed (seed=1000), AgentsNet's also with "
            hint += "overrides=['task.source=seeded']; data sets have a training split."
            raise DataError(message, place=Place(f"holdout[{number}]"), hint=hint)


def _plan(given: Evaluation, project: Project) -> tuple[Plan, str]:
    """The plan of an evaluation, and what it is called."""
    if isinstance(given, str | Path) and (Path(given) / META).is_file():
        given = load_unscored(given, project, unfinished=True)
    if isinstance(given, Run):
        spec, name = given.spec, str(given.folder)
    elif isinstance(given, str | Path):
        spec, name = load(str(given), project), str(given)
    else:
        spec = given if isinstance(given, Spec) else parse(given, project)
        name = spec.name
    plan = resolve.plan(spec, project, NoEngine())
    prepare(plan)
    return plan, name
