"""Opinions on who made episodes fail, beside what experiments say: how far apart they are."""

from __future__ import annotations

import csv
import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from harness.api.errors import DataError, Place, near
from harness.api.printable import clean_name
from harness.tables import Cell, Column, Row, Table
from harness.tables.table import NumberForm

from .blame_label import BlameLabel
from .blame_tables import Blame
from .who_broke_it.reader_opinions import opinions_of_run

MAX_RATERS = 100
_COLUMNS: Final[dict[str, NumberForm]] = {
    "Decided": "count",
    "Agent right": "plain",
    "Turn right": "plain",
    "Blamed though none is": "count",
}


def read_opinions(path: Path, episodes: Collection[str]) -> list[BlameLabel]:
    """The lines of a CSV or JSON-lines file: `episode`, `agent`, and where there are some `turn` and `rater`; or the
    answers of a run of the task `who_broke_it` about these episodes, by its folder.

    Raises `DataError`, with the place; also for an episode that is none of `episodes`, those of the run, and where
    the file has no line.
    """
    if path.is_dir():
        return opinions_of_run(path, episodes)
    found = []
    columns = "A line has the columns episode and agent, and may have turn and rater."
    for place, row in _rows(path):
        lacking = [name for name in ("episode", "agent") if row.get(name) in (None, "")]
        if lacking:
            raise DataError(f"the line has no {lacking[0]}", place=place, hint=columns)
        if (episode := str(row["episode"])) not in episodes:
            raise DataError(f"the run has no episode {episode!r:.80}", place=place, hint=near(episode, episodes))
        text = str(row.get("turn") if row.get("turn") is not None else "").strip()
        if text and not (text.isascii() and text.isdecimal() and len(text) < 10):
            hint = "Turns are numbered from 0; `harness replay RUN --episode E` lists them."
            raise DataError(f"{text!r:.40} is no turn", place=place, hint=hint)
        rater = clean_name(str(row.get("rater") or "labels"))[:60]
        found.append(BlameLabel(rater, episode, str(row["agent"]), int(text) if text else None))
    if not found:
        raise DataError("the file has no opinions", place=Place(str(path)), hint=columns)
    if len({one.rater for one in found}) > MAX_RATERS:
        raise DataError(f"more than {MAX_RATERS} raters", place=Place(str(path)))
    return found


def _rows(path: Path) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            if path.suffix.lower() == ".csv":
                reader = csv.DictReader(file)
                for row in reader:
                    yield Place(str(path), reader.line_num, 1), {k.strip(): v for k, v in row.items() if k}
                return
            for number, line in enumerate(file, 1):
                if line.strip():
                    place = Place(str(path), number, 1)
                    try:
                        value = json.loads(line)
                    except (ValueError, RecursionError) as error:
                        hint = "A file that does not end in .csv has one JSON object a line."
                        raise DataError(f"the line is no JSON: {error}", place=place, hint=hint) from None
                    if not isinstance(value, dict):
                        raise DataError("the line is no object", place=place)
                    yield place, value
    except (OSError, ValueError, csv.Error) as error:
        raise DataError(f"cannot be read: {error}", place=Place(str(path))) from None


def opinion_table(found: Blame, opinions: list[BlameLabel]) -> Table:
    """A row a rater: of the episodes that a move decides, in how many it names an agent and a turn of such a move.

    A note says how many opinions are on episodes that were not looked at.
    """
    verdicts = {one.episode: one for one in found.verdicts}
    rows: dict[str, list[tuple[bool, bool | None]]] = {}
    others: dict[str, int] = {}
    unseen = 0
    for one in opinions:
        verdict = verdicts.get(one.episode)
        own = rows.setdefault(one.rater, [])
        if verdict is None:
            unseen += 1
            continue
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
            *([f"Opinions on episodes that were not looked at: {unseen}."] if unseen else []),
        ),
    )


def opinions_json(found: Blame, opinions: list[BlameLabel]) -> dict[str, Any]:
    """The numbers of `opinion_table` as plain data."""
    table, looked = opinion_table(found, opinions), {one.episode for one in found.verdicts}
    names = [name.lower().replace(" ", "_") for name in _COLUMNS]
    return {
        "raters": [
            {"rater": row.key["who"], **{name: cell.value for name, cell in zip(names, row.cells, strict=True)}}
            for row in table.rows
        ],
        "not_looked_at": sum(one.episode not in looked for one in opinions),
    }


def _cells(own: list[tuple[bool, bool | None]], others: int) -> tuple[Cell, ...]:
    turns = [turn for _, turn in own if turn is not None]
    agent = sum(right for right, _ in own) / len(own) if own else None
    turn = sum(turns) / len(turns) if turns else None
    return Cell(len(own), n=len(own)), Cell(agent, n=len(own)), Cell(turn, n=len(turns)), Cell(others, n=others)
