"""Helpers that SILO-Bench's metrics use to read an episode: facts of `action_rounds`, grades of a sharded task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from harness.api import Episode

from .._numbers import grade

Among = Literal["all", "alone", "teams", "solved", "failed", "led", "unled"]
"""The episodes that count: "alone" with a single agent that has the whole input, "teams" the others; "solved" with
every answer right, "failed" the others; "led" with an emergent leader, "unled" the others. Other episodes have no
number."""
LEADS = 1.5
"""An agent that receives more than this times the mean is a leader (Appendix G.3)."""


def facts(episode: Episode) -> Mapping[str, Any] | None:
    """Return the protocol's facts; None for an episode of another protocol, or without an outcome."""
    run_facts = episode.outcome.facts if episode.outcome else {}
    return run_facts if "sent" in run_facts and "received" in run_facts else None


def belongs(episode: Episode, among: Among) -> bool:
    """Return whether the episode counts."""
    if among == "all":
        return True
    if among in ("alone", "teams"):
        return bool(episode.labels.get("alone")) == (among == "alone")
    if among in ("solved", "failed"):
        success = grade(episode, "success")
        return success is not None and (success == 1) == (among == "solved")
    has_leader = leader(episode)
    return has_leader is not None and has_leader == (among == "led")


def leader(episode: Episode) -> bool | None:
    """Return whether an agent received more than 1.5 times the mean number of messages, or read that many files."""
    run_facts = facts(episode)
    if run_facts is None:
        return None
    counts = [count for count, _ in run_facts["received"].values()]
    return bool(counts) and max(counts) > LEADS * sum(counts) / len(counts)


def sent_texts(episode: Episode) -> Iterator[tuple[int, str, str]]:
    """Yield (batch, agent, text) of every message or file in the last phase, refused ones included.

    In `action_rounds` `wait` and `submit_result` end a round, so later calls of the reply are left out.
    """
    run_facts = facts(episode) or {}
    start, is_commands = run_facts.get("final_from") or 0, "communication" in run_facts
    for number, batch in enumerate(episode.batches[start:]):
        for move in batch:
            for call in move.action if isinstance(move.action, list) else ():
                if not isinstance(call, Mapping) or "error" in call:
                    continue
                if call.get("call") in ("wait", "submit_result") and not is_commands:
                    break
                if call.get("content"):
                    yield number, move.agent, str(call["content"])


def reached_pairs(run_facts: Mapping[str, Any]) -> Iterable[int]:
    """Return how many receivers the messages reached; their sum counts messages between pairs (Section 3.3, D)."""
    n = len(run_facts["received"])
    if run_facts["reads"] is not None:  # shared files: successful reads by others
        return [sum(readers.values()) for readers in run_facts["reads"].values()]
    return [
        count * (n - 1 if receiver == "*" else 1)
        for receivers in run_facts["sent"].values()
        for receiver, (count, _) in receivers.items()
    ]
