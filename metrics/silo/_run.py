"""What SILO-Bench's metrics read from an episode: facts of `action_rounds`, grades of a sharded task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from harness.api import Episode

from .._numbers import grade

Among = Literal["all", "alone", "teams", "solved", "failed", "led", "unled"]
"""Which episodes count: those of a single agent with the whole input or all others; with every answer right or not;
with an emergent leader or without. The others have no number."""
LEADS = 1.5
"""Who receives more than this times the mean is a leader (Appendix G.3)."""


def facts(episode: Episode) -> Mapping[str, Any] | None:
    """The protocol's facts; None for an episode of another protocol, or without an outcome."""
    run_facts = episode.outcome.facts if episode.outcome else {}
    return run_facts if "sent" in run_facts and "received" in run_facts else None


def belongs(episode: Episode, among: Among) -> bool:
    """Whether the episode is among those."""
    if among == "all":
        return True
    if among in ("alone", "teams"):
        return bool(episode.labels.get("alone")) == (among == "alone")
    if among in ("solved", "failed"):
        success = grade(episode, "success")
        return success is not None and (success == 1) == (among == "solved")
    leading = leader(episode)
    return leading is not None and leading == (among == "led")


def leader(episode: Episode) -> bool | None:
    """Whether an agent received more than 1.5 times the mean number of messages, or files of others that it read."""
    run_facts = facts(episode)
    if run_facts is None:
        return None
    counts = [count for count, _ in run_facts["received"].values()]
    return bool(counts) and max(counts) > LEADS * sum(counts) / len(counts)


def spoken(episode: Episode) -> Iterator[tuple[int, str, str]]:
    """(batch, agent, text) of every message or file that was to be sent in the run that counts, refused ones too; where
    `wait` and `submit_result` end a round (in all protocols but command_rounds) nothing behind them."""
    run_facts = facts(episode) or {}
    start, goes_on = run_facts.get("final_from") or 0, "communication" in run_facts
    for number, batch in enumerate(episode.batches[start:]):
        for move in batch:
            for call in move.action if isinstance(move.action, list) else ():
                if not isinstance(call, Mapping) or "error" in call:
                    continue
                if call.get("call") in ("wait", "submit_result") and not goes_on:
                    break
                if call.get("content"):
                    yield number, move.agent, str(call["content"])


def pairs(run_facts: Mapping[str, Any]) -> Iterable[int]:
    """How many ordered pairs of agents one sending reached, for every sender (Section 3.3, D)."""
    n = len(run_facts["received"])
    if run_facts["reads"] is not None:  # shared files: successful reads by others
        return [sum(readers.values()) for readers in run_facts["reads"].values()]
    return [
        count * (n - 1 if receiver == "*" else 1)
        for receivers in run_facts["sent"].values()
        for receiver, (count, _) in receivers.items()
    ]
