"""Keys of specs for training: who learns, whom it meets, and what episodes pay. None of them changes a run.

Next: `declared_rewards` and `league`, which read them where a spec is trained on.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Literal, TypedDict

from harness.api import Range
from harness.config.keys import SpecKey
from harness.plugins.parameters import OPEN, PLUGIN, Keywords, Plugin

_Use = Annotated[str, "`expression`, or a metric: of the spec, or with parameters beside it"]
_Weight = Annotated[float, "what the number is multiplied by"]
_Required = Keywords(required=["use"])


class PayEntry(TypedDict, total=False):
    """A number of an episode, or of an agent, as a reward; a metric's parameters stand beside."""

    use: _Use
    of: Annotated[str | float | bool, "of an expression: its text"]
    weight: _Weight


class TurnEntry(TypedDict, total=False):
    """The reward of each turn."""

    use: Annotated[
        Literal["credit", "shaping"],
        "`credit`: what the move adds to the episode's number, over the reference's move there; `shaping`: what the "
        "number would gain, if the reference played on, by the moves of the turn's batch",
    ]
    by: Annotated[Plugin, Keywords({PLUGIN: "policies"}), "the reference: a policy; by default the headline's floor"]
    of: Annotated[str, "the metric, or `returns`: each agent's own; by default the headline's"]
    draws: Annotated[int, Range(ge=1, le=1000), "how many courses of a reference that draws are averaged (1)"]
    discount: Annotated[float, Range(ge=0, le=1), "shaping: γ of γΦ(next) − Φ(now) (1)"]
    end: Annotated[Literal["value", "zero"], "shaping: the potential at the end: the episode's number (value), or 0"]
    weight: _Weight


_Pay = str | Annotated[PayEntry, OPEN, _Required]


class RewardsEntry(TypedDict, total=False):
    """A spec's `rewards:` in YAML."""

    team: Annotated[_Pay, "paid to every learning agent: a metric, or an expression over the episode"]
    agent: Annotated[_Pay, "paid to each by itself: `returns`, an expression, or a metric of its own moves"]
    turn: Annotated[
        Literal["credit", "shaping"] | Annotated[TurnEntry, _Required], "paid for single turns, by playing on without"
    ]
    format: Annotated[_Pay, "a penalty (weight −1) for each agent: a metric of its own moves, such as parse_failures"]
    length: Annotated[_Pay, "a penalty (weight −1) for each agent: a metric of its own moves, such as tokens"]


class RewardsKey(SpecKey):
    """`rewards:` of a spec. It changes no run: only trainers read it."""

    entry: ClassVar[Any] = Annotated[
        RewardsEntry, "what episodes pay a model that is trained on them; by default the headline's number"
    ]
    changes_runs: ClassVar[bool] = False


class LearnKey(SpecKey):
    """`learn:` of a spec. It changes no run: only trainers read it."""

    entry: ClassVar[Any] = Annotated[
        list[str], Keywords(minItems=1, uniqueItems=True), "the groups under `agents:` that a trainer's model plays"
    ]
    changes_runs: ClassVar[bool] = False


class OpponentEntry(TypedDict, total=False):
    """One of a pool of opponents: a policy, or a frozen model."""

    policy: Annotated[Plugin, Keywords({PLUGIN: "policies"}), "a policy"]
    model: Annotated[str, "a name under `models:`"]
    label: Annotated[str, Keywords(minLength=1), "what rollouts call it; by default the name of its policy or model"]


class OpponentsEntry(TypedDict, total=False):
    """A spec's `opponents:` in YAML."""

    pool: Annotated[
        list[str | OpponentEntry], Keywords(minItems=1), "policies, names under `models:`, or {policy: …, label: …}"
    ]
    by: Annotated[
        Literal["uniform", "recent", "rating"],
        "who is drawn for a group of rollouts: any (uniform), mostly the newest, or mostly those of like strength",
    ]


_KEYS = {
    "pattern": "^(pool|by)$",
    "description": "`pool` or `by`: all groups that do not learn meet one of the pool, opponents: {pool: [random]}",
}


class OpponentsKey(SpecKey):
    """`opponents:` of a spec. It changes no run: only trainers read it."""

    entry: ClassVar[Any] = Annotated[
        OpponentsEntry,
        Keywords(required=["pool"], propertyNames=_KEYS, additionalProperties=True),
        "who plays the groups that do not learn in training, where the model under test would",
    ]
    changes_runs: ClassVar[bool] = False

    def bodies(self) -> Iterable[Any]:
        """The pool."""
        return self.value.get("pool") or ()
