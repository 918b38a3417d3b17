"""The vocabulary: what authors of plugins import.

One module each for the values of an episode (`episode`) and the interfaces of tasks, protocols, policies, metrics,
forms of replies and engines; `errors` has the exceptions, `printable` cleans text that a terminal or page shows. All of
it imports the standard library only. Begin with `Protocol`: it yields batches of turns and receives their moves.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .engine import Ability, CallsTools, ContinuesText, Engine, Replays, Request, StaysUp, Thread
    from .episode import Case, Completion, Episode, Move, Outcome, Turn
    from .metric import CorpusMetric, Metric, Parts, RatioMetric, linearised
    from .plugin import UNBOUNDED, Bounds, Range, as_text, derive_seed, plugin
    from .policy import InformedPolicy, Policy
    from .protocol import Channel, OpenChannel, Play, Protocol
    from .reply import Action, Facts, Parsed, Reply, ReplyField
    from .task import Grading, Statistic, Task

__all__ = [
    "UNBOUNDED",
    "Ability",
    "Action",
    "Bounds",
    "CallsTools",
    "Case",
    "Channel",
    "Completion",
    "ContinuesText",
    "CorpusMetric",
    "Engine",
    "Episode",
    "Facts",
    "Grading",
    "InformedPolicy",
    "Metric",
    "Move",
    "OpenChannel",
    "Outcome",
    "Parsed",
    "Parts",
    "Play",
    "Policy",
    "Protocol",
    "Range",
    "RatioMetric",
    "Replays",
    "Reply",
    "ReplyField",
    "Request",
    "Statistic",
    "StaysUp",
    "Task",
    "Thread",
    "Turn",
    "as_text",
    "derive_seed",
    "linearised",
    "plugin",
]


def __getattr__(name: str) -> Any:
    """Load the interfaces with the first name that is asked for: `errors` alone is what `harness --help` needs."""
    if name in __all__:
        for module in ("plugin", "reply", "episode", "task", "protocol", "policy", "metric", "engine"):
            globals().update(
                {key: value for key, value in vars(import_module(f".{module}", __name__)).items() if key in __all__}
            )
        return globals()[name]
    raise AttributeError(f"module 'harness.api' has no attribute {name!r}")
