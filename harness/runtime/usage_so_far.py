"""What episodes that are not finished have used. Of finished ones the scores say it (`harness.runtime.scoring`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any

from harness.api import Move
from harness.api.errors import UserError
from harness.config.plan import Plan, episode_id
from harness.engines.usage import billed
from harness.storage import JournalState, Line, completion_of
from harness.storage.inner_calls import INNER
from harness.tables import NOT_RUN, EpisodeScore
from harness.tables.cost import spent_by_model

Usage = dict[str, dict[str, float]]
"""As `EpisodeScore.usage`."""


def usage_so_far(
    state: JournalState, meta: Mapping[str, Any], plan: Callable[[], Plan]
) -> tuple[dict[str, Usage], str]:
    """Id → what an episode that is not finished has used, as far as its journal says it, of those that used something;
    and a sentence about replies that are left out, "" if none are: it is not known whose they are.

    Inner calls count one by one, so that those of an open turn do too.

    Args:
        state: what the journals hold.
        meta: the run's record.
        plan: makes the run's plan. It is asked for only where several engines play.
    """
    replied = {name: agents for name, moves in state.moves.items() if (agents := {m.agent for m in _replies(moves)})}
    engines, why = [*meta.get("engine_types", ())], ""
    if replied and len(engines) > 1:
        seats, models, why = _seats(replied, plan)
        models["model"] = meta["model"]
    else:
        only = engines[0] if engines else "model"
        seats = {name: dict.fromkeys(agents, only) for name, agents in replied.items()}
        models = {only: meta["model"]}
    usages = dict[str, Usage]()
    for name in dict.fromkeys((*state.moves, *state.inner)):
        usage = _of_inner_calls(state.inner.get(name, ()), meta)
        for move in _replies(state.moves[name]) if name in seats else ():
            engine = seats[name][move.agent]
            counts = usage.setdefault(models[engine], Counter())
            for call in move.calls:
                counts.update(billed(call, engine in meta.get("in_batches", ())))
        if usage:
            usages[name] = {model: {kind: n for kind, n in counts.items() if n} for model, counts in usage.items()}
    unknown = len(replied.keys() - seats.keys())
    have = "has" if unknown == 1 else "have"
    left_out = f"Costs lack replies of {unknown} that {have} begun, as it is not known which models gave them: {why}."
    return usages, left_out if unknown else ""


def usage_but_of(
    counted: Container[str], state: JournalState, meta: Mapping[str, Any], plan: Plan
) -> dict[str, dict[str, float]]:
    """Model → what its replies are billed by in all episodes but the `counted` ones, ended or not; as
    `spent_by_model`."""
    usages, _ = usage_so_far(state, meta, lambda: plan)
    ended = [EpisodeScore.from_json({"id": name, **end}) for name, end in state.ends.items() if name not in counted]
    begun = [EpisodeScore(name, "", error=NOT_RUN, usage=usage) for name, usage in usages.items()]
    return spent_by_model([*ended, *begun])


def _replies(moves: Mapping[tuple[str, int], Move]) -> Iterable[Move]:
    """The moves whose replies are billed: not those of programs, whose inner calls are."""
    return (move for move in moves.values() if move.calls and move.inner_calls is None)


def _of_inner_calls(inner: Iterable[Line], meta: Mapping[str, Any]) -> dict[str, Counter[str]]:
    behind: dict[str, str] = {one["engine"]: one["model"] for one in (meta.get("inner") or {}).values()}
    usage: dict[str, Counter[str]] = {}
    for line in inner:
        if line["k"] == INNER:
            name = str(line["model"])
            counts = usage.setdefault(behind.get(name, name), Counter())
            counts.update({"inner_calls": 1, **(billed(completion_of(line["call"])) if "call" in line else {})})
    return usage


def _seats(
    episodes: Mapping[str, Iterable[str]], plan: Callable[[], Plan]
) -> tuple[dict[str, Mapping[str, str]], dict[str, str], str]:
    """Episode → agent → name of its engine in the run, as far as the plan says it; name of an engine → its model; and
    why the plan does not say more.

    Cases are made up to the last of these episodes: which agents an engine plays may be drawn for each case.

    Args:
        episodes: id → its agents.
    """
    seats, models = dict[str, Mapping[str, str]](), dict[str, str]()
    try:
        made = plan()
        models |= {name: engine.model for name, engine in made.engines.items()}
        for condition, case, repeat in made.episodes():
            if (agents := episodes.get(name := episode_id(condition, case, repeat))) is not None:
                seats[name] = {agent: condition.group_of(case, agent).model or "model" for agent in agents}
                if len(seats) == len(episodes):
                    return seats, models, ""
    except Exception as error:  # the task's data is gone, or its code changed
        message = error.message if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
        return seats, models, message[:500]
    return seats, models, "the spec does not make their cases any more"
