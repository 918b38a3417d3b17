"""Conformance: whether a plugin keeps its contract, and whether a plan fits together. No model, no engine.

`harness validate` runs `examine`. The `check_*` functions are for the tests of plugin authors: each returns the list of
violations, empty if there are none.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.api import (
    Action,
    Case,
    Channel,
    CorpusMetric,
    Episode,
    Metric,
    Move,
    Outcome,
    Policy,
    Protocol,
    RatioMetric,
    Reply,
    Task,
    Turn,
    derive_seed,
)
from harness.config.plan import Condition, Plan
from harness.config.project import Project
from harness.config.prompts import PromptSet
from harness.errors import Place, PromptError, SpecError, UserError, near
from harness.extensions.worlds import SteppedTask
from harness.runtime.players import PolicyPlayer, starts_over
from harness.runtime.steps import Steps
from harness.storage.plugin_errors import describe

from . import leaks

NASTY = (
    "",
    " ",
    "\x00",
    "{" * 1000,
    '{"a":' * 1000,
    "[" * 1000,
    "\ud800",
    "None",
    "```",
    "###",
    "a" * 10_000,
    "\\n" * 99,
)
MISFIT = 3
"""Problems with a prompt set that are one: it belongs to another kind of task."""
Template = tuple[str, Mapping[str, Any]]
"""A template's name, and its variables."""


@dataclass(frozen=True)
class Drive:
    """One episode driven by hand: batches of (turn, move), and the outcome."""

    batches: list[list[tuple[Turn, Move]]]
    outcome: Outcome

    def turns(self) -> Iterable[Turn]:
        """Every turn in order."""
        return (turn for batch in self.batches for turn, _ in batch)


def drive(
    protocol: Protocol,
    task: Task,
    case: Case,
    answer: Callable[[Turn], Action] = lambda turn: turn.reply.noop,
    seed: int = 0,
) -> Drive:
    """Play one episode with a function for every agent (by default all agents are idle).

    Raises as `harness.runtime.steps.Steps`, and whatever plugins raise.
    """
    batches: list[list[tuple[Turn, Move]]] = []
    with Steps(protocol, task, case, protocol.possible_agents(case), random.Random(seed)) as game:
        while (batch := game.batch) is not None:
            moves = [Move(turn.agent, turn.name, answer(turn)) for turn in batch]
            batches.append(list(zip(batch, moves, strict=True)))
            game.send(moves)
        return Drive(batches, game.result())


# ------------------------------------------------------------------------------------- whole plans


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
    templates += [("tool", {**turn.context, "tool": tool["name"]}) for tool in turn.reply.tools]
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
            if not any(facts - set(values) or prompts.unknown(template, set(values)) for template, values in distinct):
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
                unknown = prompts.unknown(template, set(values))
                done[key] = not unknown
                for name, at in unknown:
                    message = f"prompt set {prompts.name!r}: undefined variable {name!r}"
                    yield SpecError(message, place=at, hint=near(name, values))
            if done[key]:  # rendering would only find one of them again
                prompts.render(template, values)
        except PromptError as error:
            yield SpecError(error.message, place=error.place, hint=error.hint)


# ---------------------------------------------------------------------------------- single plugins


def _plain(value: Any) -> bool:
    """Whether JSON gives it back as it is, but for tuples, which come back as lists."""
    try:
        return bool(json.loads(json.dumps(value)) == _listed(value))
    except (TypeError, ValueError):
        return False


def _listed(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_listed(item) for item in value]
    return {key: _listed(item) for key, item in value.items()} if isinstance(value, dict) else value


def check_task(task: Task, seed: int = 0) -> list[str]:
    """Cases repeat for a seed, agents are unique, facts are JSON, the target stays hidden, grading is total."""
    broken = []
    first, again = list(task.cases(2, seed)), list(task.cases(2, seed))
    if first != again:
        broken.append("cases differ for the same seed")
    broken += leaks.in_context(task, leaks.cases_of(task, seed))
    for case in (task.example(), *first):
        if len(set(case.agents)) != len(case.agents):
            broken.append(f"{case.id}: agents repeat")
        for agent in case.agents[:8]:
            context = task.context(case, agent)
            if not _plain(context):
                broken.append(f"{case.id}: the context of {agent} is not JSON")
            broken += check_reply(task.reply(case, agent))
        junk: list[Any] = [None, "", "no such answer", -1, 1.5, True, [], {}, ["x"], {"a": 1}]
        outcomes = [Outcome(), *(Outcome(dict.fromkeys(case.agents, j), group=j) for j in junk)]
        for outcome in outcomes:
            grades = task.grade(case, outcome)
            if set(grades) != set(task.grades):
                broken.append(f"{case.id}: grade gives {sorted(grades)}, the class declares {sorted(task.grades)}")
            if any(isinstance(v, bool) or not _plain(v) for v in grades.values()):
                broken.append(f"{case.id}: a grade is neither a number nor a JSON value")
    return list(dict.fromkeys(broken))


def check_reply(reply: Reply) -> list[str]:
    """Parsing never raises, reads JSON-able actions, and gives either an action or an error."""
    broken = []
    for text in NASTY:
        parsed = reply.parse(text)
        if not _plain(parsed.action):
            broken.append(f"{type(reply).__name__} parsed {text[:20]!r} into something that is not JSON")
        if not _plain(parsed.fallback_action):
            broken.append(f"{type(reply).__name__} read part of {text[:20]!r} as something that is not JSON")
        if parsed.error is not None and parsed.action is not None:
            broken.append(f"{type(reply).__name__} gave both an action and an error for {text[:20]!r}")
    for text in NASTY if reply.tools else ():
        for arguments in (text, json.dumps({"content": text})):
            made = [{"id": text, "name": name, "arguments": arguments} for name in (text, reply.tools[0]["name"])]
            parsed = reply.parse_calls(made)
            if not _plain(parsed.action) or (parsed.error is not None and parsed.action is not None):
                broken.append(f"{type(reply).__name__} read calls with {text[:20]!r} as no JSON, or as an error too")
    if reply.options is not None and len(set(map(str, reply.options))) != len(reply.options):
        broken.append(f"{type(reply).__name__} has two options that look the same")
    return broken


def check_protocol(protocol: Protocol, task: Task) -> list[str]:
    """Same seed, same batches; it ends; it asks only existing agents; observations are JSON; facts are as declared."""
    case = task.example()
    try:
        one, two = drive(protocol, task, case), drive(protocol, task, case)
    except (RuntimeError, TypeError) as error:  # what `Steps` refuses has no end that could be looked at
        return [describe(error)]
    broken = []
    if one != two:
        broken.append("the same seed gives different batches")
    for turn in one.turns():
        if not _plain({**turn.context, **turn.observation}):
            broken.append(f"the observation of turn {turn.name!r} is not JSON")
    declared = set(protocol.facts_with(task))
    if set(one.outcome.facts) != declared:
        broken.append(f"gives facts {sorted(one.outcome.facts)}, declared are {sorted(declared)}")
    # A protocol must live with agents that fail.
    drive(protocol, task, case, answer=lambda turn: None)
    return list(dict.fromkeys(broken))


def check_world(task: SteppedTask, seed: int = 0, steps: int = 60) -> list[str]:
    """Views are pure and JSON, `step` changes no old state, the same actions give the same game.

    It also accepts agents that do nothing, and its `facts` are as the task declares.
    """
    case = task.example()
    broken = []

    def once(check: bool) -> list[Any]:
        rng, observations = random.Random(seed), []
        world = task.world(case, random.Random(seed))
        for _ in range(steps):
            replies = {agent: world.reply(agent) for agent in case.agents if rng.random() < 0.8}
            legal = {agent: (reply.options or (reply.noop,)) for agent, reply in replies.items() if reply is not None}
            actions = {agent: None if rng.random() < 0.1 else rng.choice(options) for agent, options in legal.items()}
            before = [world.observation(agent) for agent in case.agents]
            observations.append(before)
            following = world.step(actions, rng)
            if check and before != [world.observation(agent) for agent in case.agents]:
                broken.append("a step changes the state it starts from")
            if check and not _plain(before):
                broken.append("an observation is not JSON")
            world = following.break_deadlock() if following.deadlock else following
            if world.over:
                break
        facts = world.facts()
        if set(facts) != set(task.facts):
            broken.append(f"gives facts {sorted(facts)}, the task declares {sorted(task.facts)}")
        if not _plain(facts):
            broken.append("its facts are not JSON")
        return [*observations, facts]

    if once(True) != once(False):
        broken.append("the same actions give another game")
    return list(dict.fromkeys(broken))


def check_channel(channel: Channel, case: Case) -> list[str]:
    """Views are pure and JSON."""
    opened = channel.open(case, random.Random(0))
    broken = []
    for agent in case.agents:
        observation = opened.observation(agent)
        if observation != opened.observation(agent):
            broken.append(f"the observation of {agent} changes by looking")
        if not _plain(observation):
            broken.append(f"the observation of {agent} is not JSON")
    return broken


def check_policy(make: Callable[[], Policy], protocol: Protocol, task: Task, seed: int = 0) -> list[str]:
    """Legal actions only, and the same ones for the same seed."""
    case = task.example()
    broken: list[str] = []

    def once() -> Drive:
        agents = protocol.possible_agents(case)
        players = {agent: PolicyPlayer(make, derive_seed(seed, agent)) for agent in agents}

        def answer(turn: Turn) -> Action:
            try:
                action = players[turn.agent].decide(turn).action
            except ValueError as error:
                broken.append(f"turn {turn.name!r}: {error}")
                return turn.reply.noop
            if not _plain(action):
                broken.append(f"turn {turn.name!r}: {action!r} is not JSON")
            return action

        return drive(protocol, task, case, answer, seed)

    if once() != once():
        broken.append("the same seed gives different moves")
    return list(dict.fromkeys(broken))


def check_metric(metric: Metric) -> list[str]:
    """It returns a number (a `RatioMetric`: two, a `CorpusMetric`: a JSON value) or None for an almost empty episode,
    and aggregates none and one."""
    broken = []
    empty = Episode("e", "c", "x", 0, {}, {}, [], Outcome(), dict.fromkeys(metric.needs))
    ratio = isinstance(metric, RatioMetric)
    value = metric.parts(empty) if isinstance(metric, RatioMetric) else metric.measure(empty)
    if isinstance(metric, CorpusMetric):
        try:
            json.dumps(value)
        except (TypeError, ValueError) as error:
            broken.append(f"keeps {value!r:.80}, which is no JSON value: {error}")
        return broken
    parts = value if ratio and isinstance(value, tuple) and len(value) == 2 else (value,)
    if value is not None and not all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in parts):
        broken.append(f"measures {value!r}")
    for numbers in ([], [1.0], [0.0, 1.0]):
        n = metric.aggregate([(number, 2.0) for number in numbers] if ratio else numbers).n
        if n != len(numbers):
            broken.append(f"aggregates {len(numbers)} numbers into n = {n}")
    return broken
