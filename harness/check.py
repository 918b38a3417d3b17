"""What is known about a plan before it runs: how large it is, and whether it fits together. No engine is asked.

It fits if its templates render for every group and its groups find their agents.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jinja2 import meta, nodes

from harness.api import Case, Turn
from harness.config.plan import Condition, Plan
from harness.config.project import Project
from harness.config.prompts import SUFFIX, PromptSet
from harness.errors import Place, PromptError, SpecError, UserError, near
from harness.runtime.players import starts_over
from harness.runtime.steps import Drive, drive
from harness.storage.plugin_errors import describe

__all__ = ["Drive", "Figures", "TemplateReading", "drive", "examine", "misassigned", "unknown"]

MISFIT = 3
"""Problems with a prompt set that are one: it belongs to another kind of task."""
Template = tuple[str, Mapping[str, Any]]
"""A template's name, and its variables."""


@dataclass(frozen=True)
class Figures:
    """How large a plan is. An extension that estimates more (`[reports] estimate`) returns a subclass.

    Attributes:
        conditions, episodes: exact, those of conditions that are not known yet too.
    """

    conditions: int
    episodes: int

    @classmethod
    def of(cls, plan: Plan) -> Figures:
        """Those of a plan."""
        return Figures(plan.in_all(len(plan.conditions)), plan.in_all(sum(1 for _ in plan.episodes())))

    @property
    def effort(self) -> str:
        """What precedes the scores: ", after 12 model calls or more"."""
        return ""

    def calls_in_words(self, plan: Plan) -> Sequence[str]:
        """Lines on the model calls that it takes."""
        return ()

    def tokens_in_words(self, plan: Plan) -> Sequence[str]:
        """Lines on the tokens that it takes."""
        return ()


def examine(plan: Plan) -> list[SpecError]:
    """Play every condition's example case with idle agents, and render every template for every group.

    Finds template variables that no turn provides (also in branches that are not taken), missing templates, and
    protocols and tasks that fail on their own example. Returns all problems, each once.
    """
    problems: dict[str, SpecError] = {}
    keys: set[tuple[Any, ...]] = set()
    done: dict[tuple[Any, ...], bool] = {}
    for condition in plan.conditions:
        try:
            example = condition.task.example()
            # Sweeping a size changes no prompt: what every agent knows and may answer, but for its numbers,
            # distinguishes conditions.
            form = repr(
                [(condition.task.context(example, s), condition.task.reply(example, s)) for s in example.agents]
            )
            form = re.sub(r"\d+", "0", form)
        except Exception as error:
            problem = SpecError(f"{condition.id}: {describe(error)}", place=plan.spec.place("task"))
            problems.setdefault(str(error), problem)
            continue
        key = (type(condition.task), form, id(condition.protocol), *(g.prompts.name for g in condition.groups))
        if key not in keys:
            keys.add(key)
            for problem in _examine(condition, example, plan, done):
                problems.setdefault(str(problem), problem)
    return list(problems.values())


def _examine(condition: Condition, example: Case, plan: Plan, done: dict[tuple[Any, ...], bool]) -> Iterable[SpecError]:
    place = plan.spec.place("task")
    try:
        names = [group.name for group in condition.groups]
        # Every group gets an agent, whatever the shares: each of its templates must render.
        agents = condition.protocol.possible_agents(example)
        roles = {agent: names[i % len(names)] for i, agent in enumerate(agents)}
        case = replace(example, roles={s: r for s, r in roles.items() if r != "default"})
        played = drive(condition.protocol, condition.task, case)
        grade = condition.task.grade(case, played.outcome)
        lacking = sorted(set(condition.task.grades) - set(grade))
        if lacking:
            raise RuntimeError(f"{type(condition.task).__name__}.grade gives no {', '.join(lacking)}")
    except Exception as error:
        yield SpecError(f"condition {condition.id}: {describe(error)}", place=place)
        return
    contexts_seen: dict[str, Mapping[str, Any]] = {}
    found: dict[str, list[SpecError]] = {}
    needed: dict[str, list[Template]] = {}
    for turn in played.turns():
        prompts = condition.group_of(case, turn.agent).prompts
        before = contexts_seen.get(turn.agent)
        new = before is not turn.context
        contexts_seen[turn.agent] = turn.context
        templates = _templates(turn, new and prompts.history is None and "system" in prompts.files)
        needed.setdefault(prompts.name, []).extend(templates)
        found.setdefault(prompts.name, []).extend(_render(prompts, templates, done))
        found[prompts.name].extend(_begun(prompts, turn, new, done))
        if starts_over(turn, before) and before is not None:
            yield from _unchanged(prompts, before, turn)
    for name, problems in found.items():
        others = _fitting(plan.project, needed[name]) if len(problems) >= MISFIT else []
        if others:
            about = f"prompt set {name!r}"
            first = ", ".join(problem.message.removeprefix(f"{about}: ") for problem in problems[:MISFIT])
            message = f"{about} does not fit this task and protocol: {first}, … ({len(problems)} problems)"
            yield SpecError(message, place=plan.spec.place("prompts"), hint=f"Sets that fit: {', '.join(others)}.")
        else:
            yield from problems


def _templates(turn: Turn, system: bool) -> list[Template]:
    """The templates that a turn needs, with their variables."""
    variables = {**turn.context, **turn.observation}
    templates: list[Template] = [("system", turn.context)] if system else []
    undescribed = (one for one in turn.reply.tools if "description" not in one)
    templates += [("tool", {**turn.context, "tool": tool["name"]}) for tool in undescribed]
    templates.append((turn.name, variables))
    if turn.parse_retries:
        templates.append(("retry", {**variables, "error": "…"}))
    return templates


def _fitting(project: Project, templates: Sequence[Template]) -> list[str]:
    """The prompt sets that can render the templates."""
    distinct = {(name, *values): (name, values) for name, values in reversed(templates)}.values()
    names = []
    for name in sorted(project.files("prompts")):
        try:
            prompts = project.prompts(name)
            facts = {prompts.history, prompts.prefill} - {None}
            if not any(facts - set(values) or unknown(prompts, template, set(values)) for template, values in distinct):
                for template, values in distinct:
                    prompts.render(template, values)
                names.append(name)
        except UserError:
            continue
    return names


def _unchanged(prompts: PromptSet, before: Mapping[str, Any], turn: Turn) -> Iterable[SpecError]:
    """A second run that is asked as the first one was."""

    def texts(context: Mapping[str, Any]) -> list[str]:
        opening = [message["content"] for message in prompts.opening(context)]
        return [*opening, prompts.render(turn.name, {**context, **turn.observation})]

    if texts(before) == texts(turn.context):
        lacking = sorted(turn.context.keys() - before.keys())
        message = f"prompt set {prompts.name!r} asks the second run as the first: it never shows {', '.join(lacking)}"
        yield SpecError(message, place=Place(str(prompts.folders[0])), hint="See docs/how-to/camoc.md.")


def _begun(prompts: PromptSet, turn: Turn, new: bool, done: dict[tuple[Any, ...], bool]) -> Iterable[SpecError]:
    """What is wrong with the facts with which conversations and replies begin; each set is looked at once."""
    for fact, needed in ((prompts.history, new), (prompts.prefill, True)):
        if fact is None or not needed or (prompts.name, fact) in done:
            continue
        done[prompts.name, fact] = True
        try:
            if fact == prompts.history:
                prompts.opening(turn.context)
            else:
                prompts.beginning({**turn.context, **turn.observation})
        except PromptError as error:
            yield SpecError(error.message, place=error.place, hint=error.hint)


def _render(
    prompts: PromptSet, templates: Iterable[Template], done: dict[tuple[Any, ...], bool]
) -> Iterable[SpecError]:
    """Render templates; `done`: what was read before, and whether it may be rendered."""
    for template, values in templates:
        try:
            key = (prompts.name, template, *values)
            if key not in done:
                done[key] = False
                lacking = unknown(prompts, template, set(values))
                done[key] = not lacking
                for name, at in lacking:
                    message = f"prompt set {prompts.name!r}: undefined variable {name!r}"
                    yield SpecError(message, place=at, hint=near(name, values))
            if done[key]:  # rendering would only find one of them again
                prompts.render(template, values)
        except PromptError as error:
            yield SpecError(error.message, place=error.place, hint=error.hint)


@dataclass(frozen=True)
class TemplateReading:
    """What a template's source says: free variables with their places, names that it sets, templates it includes."""

    variables: Mapping[str, Place]
    assigned: frozenset[str]
    includes: tuple[str, ...]

    @classmethod
    def of(cls, prompts: PromptSet, template: str) -> TemplateReading:
        """That of a template of a set. Raises `PromptError`."""
        tree, file = prompts.parsed(template), str(prompts.files[template])
        names = list(tree.find_all(nodes.Name))
        # Who asks whether a name is defined allows for its absence, in what it includes too.
        tested = [test.node for test in tree.find_all(nodes.Test) if test.name == "defined"]
        optional = {node.name for node in tested if isinstance(node, nodes.Name)}
        free = meta.find_undeclared_variables(tree) - optional
        return cls(
            {n.name: Place(file, n.lineno, 1) for n in names if n.name in free},
            frozenset(n.name for n in names if n.ctx == "store") | optional,
            tuple(name.removesuffix(SUFFIX) for name in meta.find_referenced_templates(tree) if name),
        )


def unknown(prompts: PromptSet, template: str, names: set[str], via: tuple[str, ...] = ()) -> list[tuple[str, Place]]:
    """Variables that a template, or what it includes, reads and that are not among `names`, with their places: also in
    branches that are not taken. Raises `PromptError` for a template that does not compile or is not there."""
    reading = TemplateReading.of(prompts, template)
    found = [(name, place) for name, place in reading.variables.items() if name not in names]
    for included in reading.includes:
        if included in prompts.files and included not in via:
            found += unknown(prompts, included, names | reading.assigned, (*via, template))
    return found


def misassigned(plan: Plan) -> Iterator[SpecError]:
    """Yield why groups (`agents:`) find no agents: each group once.

    Where the protocol has its own agents, the task's example says who plays. Where cases do, an example may be smaller
    than they are: the first case decides.
    """
    seen: set[str] = set()
    for condition in plan.conditions:
        problem = _problem(condition, plan) if len(condition.groups) > 1 else None
        if problem is not None and str(problem.place) not in seen:
            seen.add(str(problem.place))
            yield problem


def _problem(condition: Condition, plan: Plan) -> SpecError | None:
    try:
        example = condition.task.example()
        try:
            condition.assign_groups(example, plan.seed)
        except SpecError as error:
            if condition.protocol.possible_agents(example) != example.agents:
                return error
            first = next(iter(condition.task.cases(1, plan.seed)))
        else:
            return None
    except Exception:  # what a plugin does wrong, and data that is not here, are for `examine` and for the run
        return None
    try:
        condition.assign_groups(first, plan.seed)
    except SpecError as error:
        return error
    return None
