"""The vocabulary: what authors of plugins import.

One module each for the values of an episode (`episode`) and the interfaces of tasks, protocols, policies, metrics,
forms of replies and engines; `errors` has the exceptions, `printable` cleans text that a terminal or page shows. All of
it imports the standard library only. Authors import names from here (`from harness.api import Metric, DataError`), not
from the modules. Begin with `Protocol`: it yields batches of turns and receives their moves.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .engine import Ability, CallsTools, ContinuesText, Engine, Replays, Request, StaysUp, Thread
    from .episode import Case, Completion, Episode, Move, Outcome, Turn
    from .errors import (
        KEY,
        BudgetSpentError,
        ContextLengthError,
        DataError,
        EngineError,
        EngineFatalError,
        HarnessError,
        LimitReachedError,
        NotPreparedError,
        Place,
        PluginError,
        PromptError,
        RefusedError,
        RequestError,
        SetupError,
        SpecError,
        StorageError,
        UserError,
        near,
    )
    from .inner_calls import CallsModels, InnerRequest, InnerUsage, NoTurnError, TurnId
    from .metric import CorpusMetric, Metric, Parts, RatioMetric, linearize
    from .plugin import UNBOUNDED, Bounds, Range, as_text, derive_seed, plugin
    from .policy import InformedPolicy, Policy, PolicyWrapper
    from .protocol import Channel, OpenChannel, Play, Protocol
    from .reply import Action, Facts, Parsed, Reply, ReplyField
    from .task import Grading, Statistic, Task

__all__ = [
    "KEY",
    "UNBOUNDED",
    "Ability",
    "Action",
    "Bounds",
    "BudgetSpentError",
    "CallsModels",
    "CallsTools",
    "Case",
    "Channel",
    "Completion",
    "ContextLengthError",
    "ContinuesText",
    "CorpusMetric",
    "DataError",
    "Engine",
    "EngineError",
    "EngineFatalError",
    "Episode",
    "Facts",
    "Grading",
    "HarnessError",
    "InformedPolicy",
    "InnerRequest",
    "InnerUsage",
    "LimitReachedError",
    "Metric",
    "Move",
    "NoTurnError",
    "NotPreparedError",
    "OpenChannel",
    "Outcome",
    "Parsed",
    "Parts",
    "Place",
    "Play",
    "PluginError",
    "Policy",
    "PolicyWrapper",
    "PromptError",
    "Protocol",
    "Range",
    "RatioMetric",
    "RefusedError",
    "Replays",
    "Reply",
    "ReplyField",
    "Request",
    "RequestError",
    "SetupError",
    "SpecError",
    "Statistic",
    "StaysUp",
    "StorageError",
    "Task",
    "Thread",
    "Turn",
    "TurnId",
    "UserError",
    "as_text",
    "derive_seed",
    "linearize",
    "near",
    "plugin",
]

_INTERFACES = ("plugin", "reply", "episode", "task", "protocol", "policy", "metric", "engine")
_INNER_CALLS = ("CallsModels", "InnerRequest", "InnerUsage", "NoTurnError", "TurnId")  # what few engines need


def __getattr__(name: str) -> Any:
    """Load the exceptions alone, or the interfaces with them: `harness --help` needs the former only."""
    if name in __all__:
        errors = vars(import_module(".errors", __name__))
        names = () if name in errors else ("inner_calls",) if name in _INNER_CALLS else _INTERFACES
        for found in (errors, *(vars(import_module(f".{module}", __name__)) for module in names)):
            globals().update({key: value for key, value in found.items() if key in __all__})
        return globals()[name]
    raise AttributeError(f"module 'harness.api' has no attribute {name!r}")
