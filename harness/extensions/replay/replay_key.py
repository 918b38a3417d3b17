"""The key `replay:` of specs: which episodes of which run are played again, and what is changed.

`harness replay` writes it. It holds all that makes the run another one, so that the same command resumes it and a
comparison shows what differs; what the models said is kept by `recorded_engine.RecordedEngine`.
"""

from __future__ import annotations

import copy
import functools
import json
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, NotRequired, TypedDict

from harness.api import Action, Case, Facts, Policy, Turn
from harness.api.errors import SpecError, near
from harness.config.keys import SpecKey
from harness.config.plan import Condition, Group, Plan

MODEL = "model"
"""How a swap names the model under test."""


class KeepsReplies:
    """An engine that has the recorded replies of a run."""


class ChangeEntry(TypedDict):
    """A move that is another one."""

    episode: str
    agent: str
    turn: Annotated[int, "the agent's own turns before it"]
    chance: Annotated[int, "the seed of this turn, by which a policy's turn is found"]
    move: Annotated[str, "JSON: the `action` in its place, and the `text` or the `calls` with which a model says it"]


class ReplayEntry(TypedDict):
    """Episodes of a finished run that are played again."""

    run: Annotated[str, "the folder of that run, from the folder of this one"]
    moves: Annotated[str, "a digest of the moves recorded there"]
    episodes: list[str]
    since: NotRequired[Annotated[int, "no reply from this turn of the episodes on is kept"]]
    sample: NotRequired[Annotated[int, "replies that are asked for again are drawn by other seeds, of this number"]]
    changes: NotRequired[list[ChangeEntry]]
    swaps: NotRequired[Annotated[dict[str, str], "agent → the group under `agents:` that plays it, or `model`"]]


def as_text(move: Facts) -> str:
    """A move as `ChangeEntry` has it: no `${…}` is in it, which a spec would fill in."""
    return json.dumps(move, sort_keys=True).replace("$", "\\u0024")


class ReplayKey(SpecKey):
    """Conditions are left with the chosen cases, and their agents with the changed policies and moves."""

    entry = ReplayEntry
    unopened = ("run",)

    def conditions(self, whole: Condition, before: int) -> Iterable[Condition]:
        """The condition with the chosen cases alone; nothing where it has none of them."""
        own = [name for name in self.value["episodes"] if name.startswith(f"{whole.id}/")]
        if not own:
            return
        cases = frozenset(name[len(whole.id) + 1 :].rpartition("/")[0] for name in own)
        task = copy.copy(whole.task)
        task.cases = functools.partial(_chosen, whole.task.cases, cases)  # type: ignore[method-assign]
        swaps = dict(self.value.get("swaps") or {})
        seats = {group.name: group for group in whole.groups}
        changes: dict[str, dict[str, dict[int, Action]]] = {}
        for n, change in enumerate(self.value.get("changes") or ()):
            if change["episode"] in own:
                case = change["episode"][len(whole.id) + 1 :].rpartition("/")[0]
                moves = changes.setdefault(case, {}).setdefault(change["agent"], {})
                moves[change["chance"]] = self._action(change["move"], n)
        groups = whole.groups
        if MODEL in swaps.values():
            seats[MODEL] = replace(whole.groups[0], name=MODEL, model=MODEL, policy=None, agents=())
            groups = (*groups, seats[MODEL])
        for agent, name in swaps.items():
            if name not in seats:
                raise SpecError(f"there is no group {name!r}", place=self.place("swaps", agent), hint=near(name, seats))
        seated = {agent: seats[name] for agent, name in swaps.items()}
        kept = {f.name: getattr(whole, f.name) for f in fields(Condition)}
        yield Counterfactual(**{**kept, "task": task, "groups": groups}, swaps=seated, changes=changes)

    def total(self, plan: Plan, count: int) -> int:
        """The count. Raises `SpecError` where models would be asked without their recorded replies: a run by hand."""
        asked = [name for name, engine in plan.engines.items() if not isinstance(engine, KeepsReplies)]
        if asked:
            message = f"{asked[0]} would be asked again: this spec does not contain kept and changed replies of models"
            hint = (
                "`harness replay` on the first run plays it, with the same changes; without `replay:` it is a new run."
            )
            raise SpecError(message, place=self.place(), hint=hint)
        return count

    def _action(self, text: str, number: int) -> Action:
        """The action of a change. Raises `SpecError` if it is not as `as_text` wrote it."""
        try:
            return json.loads(text)["action"]
        except (ValueError, TypeError, KeyError, RecursionError):
            place = self.place("changes", number, "move")
            raise SpecError(f"found {text!r:.80}", place=place, hint='A move is JSON with an "action".') from None


def _chosen(
    cases: Callable[[int | None, int], Iterable[Case]], names: frozenset[str], limit: int | None, seed: int
) -> Iterator[Case]:
    """The cases of these names, made as far as the last of them."""
    left = set(names)
    for case in cases(limit, seed) if left else ():
        if case.id in left:
            yield case
            left.remove(case.id)
            if not left:
                return


@dataclass(frozen=True)
class Counterfactual(Condition):
    """A condition in which some agents are played by others, or make another move than they would.

    Attributes:
        swaps: agent → the group whose player takes its seat; prompts and sampling stay those of its own group.
        changes: case → agent → the chance of a turn → the action there.
    """

    swaps: Mapping[str, Group] = field(default_factory=dict)
    changes: Mapping[str, Mapping[str, Mapping[int, Action]]] = field(default_factory=dict)

    def group_of(self, case: Case, agent: str) -> Group:
        """The agent's group, with the player and the moves that it has here."""
        group = super().group_of(case, agent)
        if (other := self.swaps.get(agent)) is not None:
            group = replace(group, model=other.model, policy=other.policy)
        moves = self.changes.get(case.id, {}).get(agent)
        if not moves or group.policy is None:
            return group
        return Overruling(**{f.name: getattr(group, f.name) for f in fields(Group)}, moves=moves)


@dataclass(frozen=True)
class Overruling(Group):
    """A group whose policy makes some moves that it would not make. `moves`: the chance of a turn → its action."""

    moves: Mapping[int, Action] = field(default_factory=dict)

    def make_policy(self, agent: str, case: Case, seed: int) -> Policy:
        """As in every group; the policy is overruled where the moves say so."""
        return OverruledPolicy(super().make_policy(agent, case, seed), self.moves)


class OverruledPolicy(Policy):
    """A policy that chooses as ever, while other actions take the place of some of its own.

    A turn is found by its chance, which no other turn of the run has: a policy that starts over counts again.
    """

    def __init__(self, inner: Policy, moves: Mapping[int, Action]) -> None:
        self.inner = inner
        self.moves = [(random.Random(chance).getstate(), action) for chance, action in moves.items()]

    def choose(self, turn: Turn, rng: random.Random) -> Action:
        state = rng.getstate()
        action = self.inner.choose(turn, rng)
        return next((other for chance, other in self.moves if chance == state), action)
