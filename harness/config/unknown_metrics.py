"""A metric that there is not, in words: what the task and the protocol offer. Loaded where a spec names one."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import NoReturn

from harness.api.errors import Place, PluginError, UserError, near
from harness.config.missing_names import new_name
from harness.config.plan import Condition
from harness.config.project import Project
from harness.plugins.missing_extensions import bringer


def refuse(project: Project, name: str, conditions: Sequence[Condition], place: Place) -> NoReturn:
    """Raise `PluginError` for what is no metric: a grade or fact, which a metric can measure, or any other name."""
    raise PluginError(f"there is no metric {name!r}", place=place, hint=_hint(project, name, conditions))


def _hint(project: Project, name: str, conditions: Sequence[Condition]) -> str:
    if (renamed := new_name(name)) is not None:
        return renamed
    for condition in conditions:
        for use, word, numbers in (
            ("grade", "a grade of this task", condition.task.grades),
            ("fact", "a fact of this protocol", condition.protocol.facts_with(condition.task)),
        ):
            if name in numbers and project.file("metrics", use) is not None:
                return f"{name!r} is {word}: write {{use: {use}, of: {name}, name: {name}}}."
    if (advice := bringer(name, "metrics")) is not None:
        return advice
    close = near(name, project.files("metrics")).partition("Available:")[0]
    fit = ", ".join(_fitting(project, conditions)) or "none"
    return f"{close}This task's own: {fit}. `harness list metrics` lists all."


def _fitting(project: Project, conditions: Sequence[Condition]) -> list[str]:
    """The metrics of what the tasks grade and the protocols count, those with the name of a grade first."""
    grades = {grade for condition in conditions for grade in condition.task.grades}
    inputs = grades | {grade for condition in conditions for grade in condition.task.optional_grades}
    inputs |= {fact for condition in conditions for fact in condition.protocol.facts_with(condition.task)}
    fitting = []
    for name in project.files("metrics"):
        with contextlib.suppress(UserError):  # of a package that is not here
            needs = project.load("metrics", name).needs
            if isinstance(needs, tuple) and needs and inputs.issuperset(needs):
                fitting.append(name)
    return sorted(fitting, key=lambda name: (name not in grades, name))
