"""The four tasks: who is imitated, what is paid, and what is kept for evaluation."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from harness.api import Place, Policy, Turn
from harness.config.building import make, parts_of
from harness.config.plan import case_digest
from harness.config.project import Project, find
from harness.extensions.training import EnvTask, PendingTurn, TrainingEnv

HERE = Path(__file__).resolve().parent
TASKS = ("ring", "maximum", "dilemma", "table")
TRAINING_SEED, EVALUATION_SEED = 1, 3
"""Of the generators of cases."""
TRAINING_CASES = {"ring": 64, "maximum": 64, "dilemma": 8, "table": 16}
"""How many are drawn; of a dilemma, for each partner. Tasks with few different cases keep some for evaluation."""

_SEEN = "[view.own, view.left, view.right]"
_ORDER = f"'{{0}}' if '{{0}}' in {_SEEN} else '{{1}}' if '{{1}}' in {_SEEN} else '{{2}}'"
_MAJORITY = "view.left if view.left == view.right else view.own"
TEACHERS = {
    "ring": [_ORDER.format("RED", "BLUE", "GREEN"), _ORDER.format("GREEN", "RED", "BLUE"), _MAJORITY, "view.own"],
    "maximum": [
        "view.own",
        "max([view.own, view.left])",
        "max([view.own, view.said, view.left, view.right])",
        "choice(options)",
    ],
    "dilemma": ["view.other[-1] if view.other else 'SHARE'", "'SHARE'", "'KEEP'"],
    "table": [
        "'LEFT' if view.left == 'FREE' else 'RIGHT' if view.right == 'FREE' else 'WAIT'",
        "'RIGHT' if view.right == 'FREE' else 'LEFT' if view.left == 'FREE' else 'WAIT'",
        "'RELEASE' if 'OWN' in [view.left, view.right] else 'LEFT' if view.left == 'FREE' else 'WAIT'",
        "'WAIT'",
    ],
}
"""Task → the policies that are imitated: each agent of each episode follows one of them."""

_REFERENCES = {
    "ring": "view.own",
    "maximum": "view.own if view.said == 'N0' else view.said",
    "dilemma": "view.other[-1] if view.other else 'SHARE'",
    "table": "'WAIT'",
}
"""Task → the reference of credit: who keeps its color, repeats itself, repeats its partner's move, waits."""


_BEST = {
    "ring": TEACHERS["ring"][0],
    "maximum": TEACHERS["maximum"][2],
    "table": "'RIGHT' if view.seat == 'FIRST' and view.right == 'FREE' "
    "else 'LEFT' if view.seat == 'OTHER' and view.left == 'FREE' "
    "else 'LEFT' if view.left == 'FREE' and view.right == 'OWN' "
    "else 'RIGHT' if view.right == 'FREE' and view.left == 'OWN' "
    "else 'RELEASE' if [view.seat, view.left, view.right] in [['FIRST', 'OWN', 'TAKEN'], ['OTHER', 'TAKEN', 'OWN']] "
    "else 'WAIT'",
    "repeats": "'KEEP' if view.left == 1 else 'SHARE'",
}


def ceiling(task: str, turn: PendingTurn) -> str:
    """What marks the ceiling of a task; in the dilemma it knows the partner's kind."""
    if task != "dilemma":
        return _BEST[task]
    repeats = turn.episode.split("/")[0].removeprefix("partner=") in ("repeats", "grim", "wary")
    return _BEST["repeats"] if repeats else "'KEEP'"


def scripted(act: Callable[[PendingTurn], str]) -> Callable[[list[PendingTurn]], list[str]]:
    """Writes what policies do. `act`: a turn → the expression of the policy that plays it."""
    at = Place("tasks.py")

    @functools.cache
    def policy(expression: str) -> Policy:
        reference = {"use": "expression", "act": expression}
        made: Policy = make(*parts_of("policies", reference, project(), lambda *_: at), lambda *_: at)
        return made

    def reply(turn: PendingTurn) -> str:
        asked = Turn(turn.agent, turn.turn, turn.observation, turn.reply, turn.context)
        return turn.reply.written(policy(act(turn)).choose(asked, random.Random(turn.seed)))

    return lambda turns: [reply(turn) for turn in turns]


def rewards(task: str, kind: str) -> dict[str, Any]:
    """`rewards:` of a spec: the outcome of the team or of each agent, or the credit of each turn."""
    kinds: dict[str, dict[str, Any]] = {
        "team": {"team": "joint" if task == "dilemma" else "score"},
        "agent": {"agent": "returns"},
        "credit": {"turn": {"use": "credit", "by": {"use": "expression", "act": _REFERENCES[task]}, "of": "score"}},
    }
    return kinds[kind]


def _partner(name: str, act: str) -> tuple[str, list[str]]:
    return "dilemma", [f'matrix.partner=[{{name: {name}, act: "{act}", best: noop}}]']


TRANSFER: dict[str, tuple[str, list[str]]] = {
    "ring of 6": ("ring", ["matrix.size=[{name: 6, agents: 6, rounds: 4}]"]),
    "maximum of 6": ("maximum", ["matrix.size=[{name: 6, agents: 6, rounds: 4}]"]),
    "table of 4": ("table", ["matrix.size=[{name: 4, agents: 4}]"]),
    "table of 5": ("table", ["matrix.size=[{name: 5, agents: 5}]"]),
    "ring with a majority voter": (
        "ring",
        [f'matrix.partner=[{{name: majority, seats: [Agent-2], act: "{_MAJORITY}"}}]'],
    ),
    "maximum with a stubborn partner": (
        "maximum",
        ["matrix.partner=[{name: stubborn, seats: [Agent-2], act: view.own}]"],
    ),
    "table with a left-first partner": (
        "table",
        [f'matrix.partner=[{{name: left first, seats: [Agent-1], act: "{TEACHERS["table"][0]}"}}]'],
    ),
    "dilemma with a grim partner": _partner("grim", "'KEEP' if 'KEEP' in view.other else 'SHARE'"),
    "dilemma with a wary partner": _partner("wary", "view.other[-1] if view.other else 'KEEP'"),
    "dilemma with one who alternates": _partner("alternates", "'KEEP' if view.left % 2 else 'SHARE'"),
}
"""Sizes and partners that no training episode has: name → its task and what changes in its spec."""


def project() -> Project:
    return find(HERE)


def environment(
    task: str, kind: str = "team", seed: int = TRAINING_SEED, cases: int = 0, overrides: Iterable[str] = ()
) -> TrainingEnv:
    """The episodes of a task, with one kind of reward."""
    cases = cases or TRAINING_CASES[task]
    spec = {"extends": task, "name": task, "rewards": rewards(task, kind)}
    return TrainingEnv(
        spec, project=project(), seed=seed, limit=cases, overrides=[f"task.instances={cases}", *overrides]
    )


def teachers(task: str) -> tuple[dict[str, Any], list[str]]:
    """A spec in which scripted policies play the training cases of a task, and the agents that follow them.

    Each agent follows one of `TEACHERS`: the first condition gives them out in their order, each other one further.
    """
    with environment(task) as env:
        agents = list(env.learners(env.tasks[0]))
    acts, names = TEACHERS[task], [agent.replace("-", "_") for agent in agents]
    given = [{name: acts[(at + turn) % len(acts)] for at, name in enumerate(names)} for turn in range(len(acts))]
    groups = {
        agent: {"policy": {"use": "expression", "act": f"${{teachers.{name}}}"}, "agents": [agent]}
        for agent, name in zip(agents, names, strict=True)
    }
    spec = {
        "extends": task,
        "name": f"{task}_teachers",
        "seed": TRAINING_SEED,
        "task": {"instances": TRAINING_CASES[task]},
        "matrix": {"teachers": [{"name": str(at), **acts} for at, acts in enumerate(given)]},
        "agents": groups,
    }
    return spec, agents


def held_out(task: str, cases: int = 96, overrides: Iterable[str] = ()) -> tuple[TrainingEnv, list[EnvTask]]:
    """Episodes of another seed of the generator, without those whose case is one of the training cases, by digest."""
    with environment(task) as training:
        known = {case_digest(one.case) for one in training.tasks}
    env = environment(task, seed=EVALUATION_SEED, cases=cases, overrides=overrides)
    found: dict[tuple[str, str], EnvTask] = {}
    for one in env.tasks:
        if (digest := case_digest(one.case)) not in known:
            found.setdefault((one.condition.id, digest), one)
    return env, list(found.values())
