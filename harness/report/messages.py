"""Who sent how much to whom: the data of heat maps (SILO-Bench, Figure 7)."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from itertools import chain
from pathlib import Path
from typing import Any

from harness import storage
from harness.authoring.traffic import EVERY_OTHER
from harness.errors import DataError, SetupError, near
from harness.printable import csv_cell


@dataclass(frozen=True, slots=True)
class Traffic:
    """What went from one agent to another in an episode.

    `receiver` is "*" for what all others get. `characters` is None where it is not known: with shared files (the
    sender wrote what the receiver read), and where a coordinator reads a summary. `agents` are the episode's agents in
    order.
    """

    episode: str
    sender: str
    receiver: str
    messages: int
    characters: int | None
    agents: tuple[str, ...] = ()


def messages(folder: Path, condition: str | None = None) -> Iterator[Traffic]:
    """Every pair of agents between whom something went, by episode, of a run.

    From the fact `sent` of the protocol. `condition` leaves out all episodes of other conditions.

    Raises:
        DataError: if a journal cannot be read, or no finished episode has that fact.
    """
    recorded = False
    conditions: dict[str, None] = {}
    for _, line in chain.from_iterable(map(storage.confirmed, storage.journals(folder))):
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
        raise DataError(f"{folder} has no finished episode", hint="Give the command of the run again to go on with it.")
    raise DataError(
        f"{folder} does not record who sent messages to whom",
        hint="In its protocol agents answer alone; your own records the fact `sent` (harness.authoring.traffic).",
    )


def _of(episode: str, facts: Mapping[str, Any]) -> Iterator[Traffic]:
    agents = tuple(facts.get("received") or facts["sent"])
    reads = facts.get("reads")
    if reads is not None:
        for sender, readers in reads.items():
            for reader, count in readers.items():
                yield Traffic(episode, sender, reader, count, None, agents)
        return
    for sender, receivers in facts["sent"].items():
        for receiver, (count, length) in receivers.items():
            yield Traffic(episode, sender, receiver, count, length, agents)


def written(rows: Iterable[Traffic], form: str) -> str:
    """The rows as csv or json."""
    plain = [{key: value for key, value in asdict(row).items() if key != "agents"} for row in rows]
    if form == "json":
        return json.dumps(plain, indent=1)
    out = io.StringIO()
    table = csv.DictWriter(out, [f.name for f in fields(Traffic) if f.name != "agents"], lineterminator="\n")
    table.writeheader()
    table.writerows({key: csv_cell(value) for key, value in row.items()} for row in plain)
    return out.getvalue().rstrip("\n")


def heat_map(rows: Iterable[Traffic], path: Path) -> None:
    """Draw one episode: senders down, receivers across, messages as colour.

    Raises:
        SetupError: if matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        hint = 'Install it with: pip install "mas-eval-harness[plots]"'
        raise SetupError("drawing figures needs matplotlib, which is not installed", hint=hint) from error
    pairs = list(rows)
    agents = {agent: i for i, agent in enumerate(pairs[0].agents)}
    matrix = [[0] * len(agents) for _ in agents]
    for row in pairs:
        sender = agents[row.sender]
        for i in range(len(agents)) if row.receiver == EVERY_OTHER else [agents[row.receiver]]:
            matrix[sender][i] += row.messages if i != sender else 0
    figure = Figure(figsize=(5, 4.5), layout="constrained")
    axis = figure.subplots()
    figure.colorbar(axis.imshow(matrix, cmap="viridis"), ax=axis, label="messages")
    axis.set_xlabel("receiver")
    axis.set_ylabel("sender")
    axis.set_title(pairs[0].episode.replace("$", r"\$"), fontsize="small", wrap=True)
    figure.savefig(path)
