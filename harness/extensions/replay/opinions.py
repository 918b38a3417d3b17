"""Opinions on who made episodes fail, beside what experiments say: how far apart they are."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness.errors import DataError, Place, near
from harness.printable import clean_name
from harness.tables import Cell, Column, Row, Table
from harness.tables.table import NumberForm

from .blame import Blame

MAX_RATERS = 100
_COLUMNS: Final[dict[str, NumberForm]] = {
    "Decided": "count",
    "Agent right": "plain",
    "Turn right": "plain",
    "Blamed though none is": "count",
}


@dataclass(frozen=True)
class BlameLabel:
    """Whom a rater blames for an episode: an agent, and the number of a turn, or None where it names no turn."""

    rater: str
    episode: str
    agent: str
    turn: int | None


def read_opinions(path: Path) -> list[BlameLabel]:
    """The lines of a CSV or JSON-lines file: `episode`, `agent`, and where there are some `turn` and `rater`.

    Raises `DataError`, with the place.
    """
    found = []
    for place, row in _rows(path):
        lacking = [name for name in ("episode", "agent") if row.get(name) in (None, "")]
        if lacking:
            hint = "A line has the columns episode and agent, and may have turn and rater."
            raise DataError(f"the line has no {lacking[0]}", place=place, hint=hint)
        text = str(row.get("turn") if row.get("turn") is not None else "").strip()
        if text and not (text.isascii() and text.isdecimal() and len(text) < 10):
            hint = "Turns are numbered from 0; `harness replay RUN --episode E` lists them."
            raise DataError(f"{text!r:.40} is no turn", place=place, hint=hint)
        rater = clean_name(str(row.get("rater") or "labels"))[:60]
        found.append(BlameLabel(rater, str(row["episode"]), str(row["agent"]), int(text) if text else None))
    if len({one.rater for one in found}) > MAX_RATERS:
        raise DataError(f"more than {MAX_RATERS} raters", place=Place(str(path)))
    return found


def _rows(path: Path) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            if path.suffix == ".csv":
                reader = csv.DictReader(file)
                for row in reader:
                    yield Place(str(path), reader.line_num, 1), {k.strip(): v for k, v in row.items() if k}
                return
            for number, line in enumerate(file, 1):
                if line.strip():
                    value = json.loads(line)
                    if not isinstance(value, dict):
                        raise DataError("the line is no object", place=Place(str(path), number, 1))
                    yield Place(str(path), number, 1), value
    except (OSError, ValueError, RecursionError, csv.Error) as error:
        raise DataError(f"cannot be read: {error}", place=Place(str(path))) from None


def opinion_table(found: Blame, opinions: list[BlameLabel]) -> Table:
    """A row a rater: of the episodes that a move decides, in how many it names an agent and a turn of such a move.

    Raises `DataError` for an opinion on an episode that was not looked at.
    """
    verdicts = {one.episode: one for one in found.verdicts}
    rows: dict[str, list[tuple[bool, bool | None]]] = {}
    others: dict[str, int] = {}
    for one in opinions:
        verdict = verdicts.get(one.episode)
        if verdict is None:
            hint = near(one.episode, verdicts)
            raise DataError(f"no failed episode {one.episode!r:.80} was looked at", place=Place("--labels"), hint=hint)
        own = rows.setdefault(one.rater, [])
        if verdict.finding != "blamed":
            others[one.rater] = others.get(one.rater, 0) + 1
            continue
        turn = None if one.turn is None else one.turn in {move.number for move in verdict.named}
        own.append((one.agent in verdict.agents, turn))
    return Table(
        "Opinions beside experiments",
        ("who",),
        ("statistic",),
        tuple(Column({"statistic": name.lower()}, (name,), form=form) for name, form in _COLUMNS.items()),
        tuple(Row({"who": rater}, (rater,), _cells(own, others.get(rater, 0))) for rater, own in rows.items()),
        row_names=("Who",),
        notes=(
            "Of the episodes that a move decides: shares in which an opinion names an agent and a turn of such moves. "
            "Last: episodes in which it names an agent and the experiment blames none.",
        ),
    )


def _cells(own: list[tuple[bool, bool | None]], others: int) -> tuple[Cell, ...]:
    turns = [turn for _, turn in own if turn is not None]
    agent = sum(right for right, _ in own) / len(own) if own else None
    turn = sum(turns) / len(turns) if turns else None
    return Cell(len(own), n=len(own)), Cell(agent, n=len(own)), Cell(turn, n=len(turns)), Cell(others, n=others)
