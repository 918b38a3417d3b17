"""Who sent how much to whom: the data of heat maps (SILO-Bench, Figure 7)."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from itertools import chain
from pathlib import Path
from typing import Any

from harness import storage
from harness.api.errors import DataError, near
from harness.api.printable import csv_cell
from harness.storage import finished_episodes


@dataclass(frozen=True, slots=True)
class MessageCount:
    """What went from one agent to another in an episode.

    `receiver` is "*" for what all others get. `characters` is None if it is not known: with shared files (the
    sender wrote what the receiver read), and where a coordinator reads a summary. `agents` are the episode's agents in
    order.
    """

    episode: str
    sender: str
    receiver: str
    messages: int
    characters: int | None
    agents: tuple[str, ...] = ()


def messages(folder: Path, condition: str | None = None) -> Iterator[MessageCount]:
    """Every pair of agents of a run with a message between them, by episode.

    From the fact `sent` of the protocol. `condition` leaves out all episodes of other conditions.

    Raises:
        DataError: if a journal cannot be read, or no finished episode has that fact.
    """
    recorded = False
    conditions: dict[str, None] = {}
    for _, line in chain.from_iterable(map(finished_episodes.confirmed, storage.journals(folder))):
        if line.get("k") != "end" or line.get("outcome") is None:
            continue
        conditions[str(line.get("condition"))] = None
        if condition not in (None, line.get("condition")):
            continue
        facts = line["outcome"].get("facts", {})
        if isinstance(facts.get("sent"), dict):
            recorded = True
            yield from _of(line["e"], facts)
    if recorded:
        return
    if condition is not None and condition not in conditions:
        hint = near(condition, conditions) if conditions else "The run has no finished episode yet."
        raise DataError(f"{folder} has no finished episode of condition {condition!r}", hint=hint)
    if not conditions:
        raise DataError(f"{folder} has no finished episode", hint="Give the command of the run again to resume it.")
    raise DataError(
        f"{folder} does not record who sent messages to whom",
        hint="In its protocol agents answer alone; your own records the fact `sent` (`panels.traffic`).",
    )


def counted(facts: Mapping[str, Any]) -> tuple[tuple[str, ...], Iterator[tuple[str, str, int, int | None]]]:
    """(the agents in order; sender, receiver, messages, characters) of a protocol's facts, which have `sent`."""
    agents = tuple(facts.get("received") or facts["sent"])
    counts = facts["sent"] if facts.get("reads") is None else facts["reads"]

    def pairs() -> Iterator[tuple[str, str, int, int | None]]:
        for sender, receivers in counts.items():
            for receiver, count in receivers.items():
                number, length = count if isinstance(count, list) else (count, None)  # of what was read only the number
                yield sender, receiver, number, length

    return agents, pairs()


def _of(episode: str, facts: Mapping[str, Any]) -> Iterator[MessageCount]:
    agents, pairs = counted(facts)
    for sender, receiver, number, length in pairs:
        yield MessageCount(episode, sender, receiver, number, length, agents)


def written(rows: Iterable[MessageCount], form: str) -> str:
    """The rows as csv or json."""
    columns = [field.name for field in fields(MessageCount) if field.name != "agents"]
    plain = [{name: getattr(row, name) for name in columns} for row in rows]
    if form == "json":
        return json.dumps(plain, indent=1)
    out = io.StringIO()
    table = csv.DictWriter(out, columns, lineterminator="\n")
    table.writeheader()
    table.writerows({key: csv_cell(value) for key, value in row.items()} for row in plain)
    return out.getvalue().rstrip("\n")
