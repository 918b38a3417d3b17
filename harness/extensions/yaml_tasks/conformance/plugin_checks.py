"""Whether a plugin keeps its contract. No model, no engine.

Each function is for the tests of plugin authors and returns the list of violations, empty if there are none.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harness.api import (
    Action,
    Case,
    Channel,
    CorpusMetric,
    Episode,
    Metric,
    Outcome,
    Policy,
    Protocol,
    RatioMetric,
    Reply,
    Task,
    Turn,
    derive_seed,
)
from harness.runtime.policy_players import PolicyPlayer
from harness.runtime.steps import Drive, drive
from harness.storage.plugin_errors import describe

from . import leaks

if TYPE_CHECKING:
    from harness.extensions.games.worlds import SteppedTask

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
            broken.append(f"keeps {value!r:.80}, which is not a JSON value: {error}")
        return broken
    parts = value if ratio and isinstance(value, tuple) and len(value) == 2 else (value,)
    if value is not None and not all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in parts):
        broken.append(f"measures {value!r}")
    for numbers in ([], [1.0], [0.0, 1.0]):
        n = metric.aggregate([(number, 2.0) for number in numbers] if ratio else numbers).n
        if n != len(numbers):
            broken.append(f"aggregates {len(numbers)} numbers into n = {n}")
    return broken
