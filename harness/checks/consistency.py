"""Whether a plan fits together, before it runs: its templates render for every group, its metrics measure an episode,
and its groups find their agents. No engine is asked.
"""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harness.api import Case, Move, Outcome, Turn
from harness.api.errors import Place, PromptError, SpecError, UserError, near
from harness.checks.templates import unknown
from harness.checks.trial_episodes import trial_episode, unmeasured
from harness.config.plan import Condition, Plan
from harness.config.project import Project
from harness.config.prompts import PromptSet
from harness.runtime.abilities import unconstrained
from harness.runtime.policy_players import starts_over
from harness.runtime.scoring import as_grade
from harness.runtime.steps import Steps
from harness.storage.plugin_errors import describe, plugin_frames

MISFIT = 3
"""Problems with a prompt set that are one: it belongs to another kind of task."""
Template = tuple[str, Mapping[str, Any]]
"""A template's name, and its variables."""
SAMPLED = 40
"""Agents whose facts and forms of reply tell conditions apart; of more, so many are looked at, evenly spread."""
RENDERED = 400
"""Turns of one name whose prompts are rendered for a prompt set: agents and rounds beyond them are as those before."""
SECONDS = 10.0
"""CPU time in which one example is played; a longer one is neither played to its end nor graded."""


def check_plans(plan: Plan, later: Iterable[Plan]) -> list[SpecError]:
    """What is wrong with a spec's plan and with those that follow it; if nothing is, with its groups."""
    problems = [problem for one in (plan, *later) for problem in check_plan(one)]
    return problems or [*misassigned(plan), *unconstrained(plan)]


def check_plan(plan: Plan) -> list[SpecError]:
    """Play every condition's example case with idle agents, render every template for every group, and measure.

    Finds template variables that no turn provides (also in branches that are not taken), missing templates, protocols
    and tasks that fail on their own example, and metrics that fail the episode. Returns all problems, each once.
    """
    problems: dict[str, SpecError] = {}
    failures: dict[str, _Failure] = {}
    keys: dict[tuple[Any, ...], _Failure | None] = {}
    done: dict[tuple[Any, ...], bool] = {}
    failed = set[str]()
    for condition in plan.conditions:
        try:
            example = condition.task.example()
            # Sweeping a size changes no prompt: what every agent knows and may answer, but for its numbers,
            # distinguishes conditions.
            agents = example.agents[:: max(1, len(example.agents) // SAMPLED)]
            form = repr([(condition.task.context(example, s), condition.task.reply(example, s)) for s in agents])
            form = re.sub(r"\d+", "0", form)
        except Exception as error:
            _failure(error, condition, plan, failures).conditions.append(condition.id)
            continue
        key = (type(condition.task), form, id(condition.protocol), *(g.prompts.name for g in condition.groups))
        if key not in keys:
            keys[key] = None
            try:
                for problem in _examine(condition, example, plan, done, failed):
                    problems.setdefault(str(problem), problem)
            except _ExampleError as failure:
                keys[key] = _failure(failure.cause, condition, plan, failures)
        if (known := keys[key]) is not None:
            known.conditions.append(condition.id)
    return [*(failure.problem(len(plan.conditions)) for failure in failures.values()), *problems.values()]


class _ExampleError(Exception):
    """A condition's example cannot be played or graded."""

    def __init__(self, cause: Exception) -> None:
        super().__init__()
        self.cause = cause


@dataclass
class _Failure:
    """What fails the examples of conditions, which are named by their ids."""

    what: str
    place: Place
    hint: str | None = None
    conditions: list[str] = field(default_factory=list)

    def problem(self, of: int) -> SpecError:
        """It in one line; `of`: how many conditions there are."""
        if of == 1:
            return SpecError(self.what, place=self.place, hint=self.hint)
        where = f"condition {self.conditions[0]}"
        if (count := len(self.conditions)) > 1:
            all_of = count == of
            where = f"in all {of:,} conditions" if all_of else f"in {count:,} of {of:,} conditions, first in {where}"
        return SpecError(f"{where}: {self.what}", place=self.place, hint=self.hint)


def _failure(error: Exception, condition: Condition, plan: Plan, known: dict[str, _Failure]) -> _Failure:
    """The failure that an exception belongs to: that of its line, where it is a mistake in the spec's own text.

    It is where the protocol stands if the protocol raised it, else where the task does.
    """
    if isinstance(error, UserError) and error.place is not None and error.place.file in plan.spec.documents():
        return known.setdefault(str(error.place), _Failure(error.message, error.place, error.hint))
    named = (("protocol", condition.protocol), ("task", condition.task))
    modules = {cls.__module__: key for key, plugin in named for cls in type(plugin).__mro__}
    raising = (modules.get(str(frame.f_globals.get("__name__"))) for frame, _ in reversed(plugin_frames(error)))
    what, key = describe(error), next(filter(None, raising), "task")
    return known.setdefault(f"{key}: {what}", _Failure(what, plan.spec.place(key)))


def _examine(
    condition: Condition, example: Case, plan: Plan, done: dict[tuple[Any, ...], bool], failed: set[str]
) -> Iterable[SpecError]:
    """What is wrong with a condition. Raises `_ExampleError`."""
    try:
        names = [group.name for group in condition.groups]
        # Every group gets an agent, whatever the shares: each of its templates must render.
        agents = condition.protocol.possible_agents(example)
        roles = {agent: names[i % len(names)] for i, agent in enumerate(agents)}
        case = replace(example, roles={s: r for s, r in roles.items() if r != "default"})
        turns, batches, outcome = _played(condition, case)
        episode = None
        if outcome is not None:
            grade = as_grade(condition.task, condition.task.grade(case, outcome))
            episode = replace(trial_episode(plan, condition, case, batches, outcome), grade=grade)
    except Exception as error:
        raise _ExampleError(error) from error
    if episode is not None:
        yield from unmeasured(plan, episode, failed)
    contexts_seen: dict[str, Mapping[str, Any]] = {}
    found: dict[str, list[SpecError]] = {}
    needed: dict[str, list[Template]] = {}
    for turn in turns:
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
        lacks = any(problem.place is None for problem in problems)  # a template
        others = _fitting(plan.project, needed[name]) if lacks or len(problems) >= MISFIT else []
        place = _place_of(plan, name)
        if others and len(problems) >= MISFIT:
            about = f"prompt set {name!r}"
            first = ", ".join(problem.message.removeprefix(f"{about}: ") for problem in problems[:MISFIT])
            message = f"{about} does not fit this task and protocol: {first}, … ({len(problems)} problems)"
            yield SpecError(message, place=place, hint=f"Sets that fit: {', '.join(others)}.")
            continue
        for problem in problems:
            hint = " ".join(filter(None, (problem.hint, f"Sets that fit: {', '.join(others) or 'none'}.")))
            yield problem if problem.place is not None else SpecError(problem.message, place=place, hint=hint)


def _played(condition: Condition, case: Case) -> tuple[list[Turn], list[list[Move]], Outcome | None]:
    """The turns of idle agents that are looked at, all their moves, and the outcome; None where the game takes too long
    for it."""
    late, turns, counts = time.process_time() + SECONDS, list[Turn](), Counter[tuple[str, str, int]]()
    batches = list[list[Move]]()
    contexts: dict[str, tuple[Mapping[str, Any], int]] = {}  # of each agent, and which it is: a second run has another
    with Steps(condition.protocol, condition.task, case, random.Random(0)) as game:
        while (batch := game.batch) is not None:
            for turn in batch:
                before, number = contexts.get(turn.agent, (turn.context, 0))
                number += turn.context is not before
                contexts[turn.agent] = turn.context, number
                kind = condition.group_of(case, turn.agent).name, turn.name, number
                counts[kind] += 1
                if counts[kind] <= RENDERED:
                    turns.append(turn)
            if time.process_time() > late:
                return turns, batches, None
            batches.append([Move(turn.agent, turn.name, turn.reply.noop) for turn in batch])
            game.send(batches[-1])
        return turns, batches, game.result()


def _place_of(plan: Plan, prompts: str) -> Place:
    """Where the spec names a prompt set: at a group's, or its own."""
    groups = plan.spec.get("agents", {}).items()
    own = (name for name, group in groups if isinstance(group, Mapping) and group.get("prompts") == prompts)
    return plan.spec.place(*(("agents", name, "prompts") if (name := next(own, None)) is not None else ("prompts",)))


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

    try:
        is_same = texts(before) == texts(turn.context)
    except PromptError:  # the template shows what only the second run has
        return
    if is_same:
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
    except Exception:  # what a plugin does wrong, and data that is not here, are for `check_plan` and for the run
        return None
    try:
        condition.assign_groups(first, plan.seed)
    except SpecError as error:
        return error
    return None
