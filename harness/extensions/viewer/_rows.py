"""What an index keeps of one episode, added up line by line."""

from __future__ import annotations

import json
import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from harness.api.episode import tokens_used
from harness.storage.journal import Line, outcome_of
from harness.tables.cost import Prices, total, usd_of
from harness.transcripts.plain import finite

COLUMNS: Final = {
    "n": "INTEGER PRIMARY KEY",
    "id": "TEXT UNIQUE",
    "position": "INTEGER",
    "condition": "TEXT",
    "case": "TEXT",
    "repeat": "INTEGER",
    "labels": "TEXT",
    "numbers": "TEXT",
    "error": "TEXT",
    "finished": "INTEGER",
    "limited": "INTEGER",
    "value": "REAL",
    "moves": "INTEGER",
    "rounds": "INTEGER",
    "calls": "INTEGER",
    "input_tokens": "INTEGER",
    "output_tokens": "INTEGER",
    "parse_failures": "INTEGER",
    "engine_errors": "INTEGER",
    "latency": "REAL",
    "inner_calls": "INTEGER",
    "cost": "REAL",
    "cost_is_whole": "INTEGER",
}
"""Columns of the table `episodes`. `position`: place in the plan once the run is finished, until then
among the episodes as they began. `rounds`: batches of simultaneous turns. `value`: the number
that says how well it went, 1 being solved (`Goal`). `latency`: seconds of all calls. `inner_calls`: those of agents'
programs. `cost`: USD of an episode that has ended, or at least that."""


@dataclass(frozen=True, slots=True)
class Goal:
    """The number from 0 to 1 that says how well an episode went: a metric, and whether 1 is best, or 0."""

    metric: str
    higher_is_better: bool = True


GOALS: Final = ("solved", "success", "score", "correct", "execution", "accuracy")
"""Names of grades and metrics that say so where no goal is known, the first that is there."""
_SEARCHED = 2000  # characters of answers
_TOKENS = ("input_tokens", "output_tokens")
_MAX_INTEGER = 1 << 53
_MAX_TOKENS = 1 << 40  # of one episode: sums over all episodes stay numbers that SQLite knows
_MAX_DEPTH = 50  # objects within objects in labels


class EpisodeRow:
    """One episode: sums over its moves, and its end."""

    __slots__ = ("ending", "inner", "places", "search", "values")

    def __init__(self, n: int, name: str) -> None:
        self.values: dict[str, Any] = dict.fromkeys(COLUMNS)
        counts = ("finished", "limited", "moves", "rounds", "calls", "parse_failures", "engine_errors")
        self.values |= {"n": n, "id": name, "position": n, "labels": "{}", "numbers": "{}"} | dict.fromkeys(counts, 0)
        # An unfinished episode's line has its id only; `condition/case/repeat` is cut where a case has no slash.
        condition, _, rest = name.rpartition("/")[0].rpartition("/")
        repeat = name.rpartition("/")[2]
        is_number = repeat.isdecimal() and len(repeat) < 16
        self.values |= {"condition": condition, "case": rest, "repeat": int(repeat) if is_number else 0}
        self.search = name.casefold()
        self.places = array("Q")
        self.inner: dict[str, dict[str, list[int]]] = {}
        self.ending: int | None = None

    @classmethod
    def read(cls, stored: tuple[Any, ...]) -> EpisodeRow:
        """The inverse of `columns` and `details`, one after the other without the second `n`."""
        row = cls.__new__(cls)
        row.values = dict(zip(COLUMNS, stored, strict=False))
        row.search, places, row.ending, inner = stored[len(COLUMNS) :]
        row.places, row.inner = array("Q", places), json.loads(inner)
        return row

    @property
    def name(self) -> str:
        return str(self.values["id"])

    @property
    def finished(self) -> bool:
        return bool(self.values["finished"])

    def columns(self) -> tuple[Any, ...]:
        return tuple(self.values.values())

    def details(self) -> tuple[Any, ...]:
        return self.values["n"], self.search, self.places.tobytes(), self.ending, json.dumps(self.inner)

    def add_move(self, line: Line, place: int) -> None:
        """Add one move. Raises `KeyError`, `TypeError`, … for a line of a strange shape, and then changes nothing."""
        values, calls, kind = self.values, line.get("calls", ()), line.get("error_kind")
        added = {"moves": values["moves"] + 1, "calls": values["calls"] + len(calls)}
        added["rounds"] = max(values["rounds"], _place(line["b"]) + 1)
        _place(line["p"]), _place(line["i"])
        for call in calls:
            if not isinstance(call["text"], str) or not isinstance(call.get("reasoning"), str | None):
                raise ValueError("what a model replied is not text")
        inner = line.get("inner")
        sums = {name: tokens_used(_amounts(calls, name), inner and _amount(inner, name)) for name in _TOKENS}
        seconds = [amount for amount in _amounts(calls, "latency") if amount is not None]
        for name, amount in {**sums, "latency": sum(seconds) if seconds else None}.items():
            if amount is not None:
                added[name] = min((values[name] or 0) + amount, _MAX_TOKENS)
        if inner is not None:
            added["inner_calls"] = min((values["inner_calls"] or 0) + _place(inner.get("calls", 0)), _MAX_TOKENS)
        if kind == "parse":
            added["parse_failures"] = values["parse_failures"] + 1
        elif kind == "limit":
            added["limited"] = int(values["limited"] or not (inner and inner.get("limited")))
        elif kind is not None:
            added["engine_errors"] = values["engine_errors"] + 1
        values.update(added)
        self.places.append(place)

    def add_inner(self, line: Line, place: int) -> None:
        """Add a line about inner calls. Raises as `add_move`."""
        turns = self.inner.setdefault(str(line["s"]), {})
        turns.setdefault(str(_place(line["i"])), []).append(place)

    def add_end(self, line: Line, place: int, goal: Goal | None, prices: Prices = MappingProxyType({})) -> None:
        """Add the end. Raises as `add_move`."""
        labels, numbers, error, limited, value, cost, is_whole = measured(line, goal, prices)
        outcome, repeat = line.get("outcome") or {}, int(line["repeat"])
        outcome_of(line.get("outcome"))
        added = {"finished": 1, "condition": plain(line["condition"]), "case": plain(line["case"])}
        added |= {
            "repeat": repeat if abs(repeat) < _MAX_INTEGER else 0,
            "labels": labels,
            "numbers": numbers,
            "error": error,
        }
        added |= {"limited": limited or self.values["limited"], "value": value}
        added |= {"cost": cost, "cost_is_whole": is_whole}
        said = json.dumps([outcome.get("answers"), outcome.get("group")], ensure_ascii=False)[:_SEARCHED]
        self.search = plain("\n".join([self.name, labels, error or "", said])).casefold()
        self.values.update(added)
        self.ending = place


def _amounts(calls: Sequence[Mapping[str, Any]], name: str) -> list[Any]:
    return [_amount(call, name) for call in calls]


def _amount(used: Mapping[str, Any], name: str) -> Any:
    """A number of tokens or seconds; None for one that cannot be summed. Raises `TypeError`."""
    amount = used.get(name)
    return amount if amount is not None and 0 <= amount < _MAX_INTEGER else None


def _place(value: Any) -> int:
    """A number that counts rounds or turns. Raises `ValueError`."""
    if not isinstance(value, int) or not 0 <= value < _MAX_INTEGER:
        raise ValueError(f"not the number of a round or turn: {value!r:.80}")
    return value


def measured(
    line: Mapping[str, Any], goal: Goal | None, prices: Prices = MappingProxyType({})
) -> tuple[str, str, str | None, int, float | None, float | None, int | None]:
    """(labels, numbers, error, limited, value, cost, whether that is whole) of an end line, or of a line of
    scores.jsonl, as columns hold them."""
    labels, error = dict(line["labels"]), line["error"]
    # The record of a metric of all episodes ({"record": …}) is not a number of this one.
    numbers = {name: value for name, value in line["numbers"].items() if not isinstance(value, dict)}
    grade = line.get("grade") or {}
    value = None if error is not None else _value({**grade, **numbers}, goal)
    text = None if error is None else plain(str(error))
    labels, numbers = finite(labels, _MAX_DEPTH), finite(numbers, _MAX_DEPTH)
    usage = line.get("usage") or {}
    paid = total(usd_of(counts, prices.get(model)) for model, counts in usage.items())
    cost = (None, None) if paid is None else (paid.value, int(paid.whole))
    return json.dumps(labels), json.dumps(numbers), text, int(bool(line.get("limited"))), value, *cost


def _value(numbers: Mapping[str, Any], goal: Goal | None) -> float | None:
    """The number of the goal, or of the first of `GOALS`, whatever folder its metric is in; 1 is best."""
    if goal is not None:
        value = _number(numbers.get(goal.metric))
        return value if value is None or goal.higher_is_better else 1 - value
    last = {str(name).rpartition("/")[2]: value for name, value in reversed(list(numbers.items()))}
    return next((value for name in GOALS if (value := _number(last.get(name))) is not None), None)


def _number(value: Any) -> float | None:
    """A number of an episode; of parts their quotient."""
    if isinstance(value, list) and len(value) == 2 and value[1]:
        value = value[0] / value[1]
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def row_of(values: Sequence[Any]) -> dict[str, Any]:
    """The columns of an episode as `RunIndex.page` gives them, with `outcome`. Raises `ValueError` or `TypeError`."""
    row = dict(zip(COLUMNS, values, strict=True))
    row["labels"], row["numbers"] = json.loads(row["labels"]), json.loads(row["numbers"])
    row["finished"], row["limited"] = bool(row["finished"]), bool(row["limited"])
    row["cost_is_whole"] = None if row["cost"] is None else bool(row["cost_is_whole"])
    value, is_over = row.pop("value"), row["finished"] and row["error"] is None
    scored = "unscored"
    if value is not None and 0 <= value <= 1:
        scored = "solved" if value == 1 else "partly solved" if value else "unsolved"
    row["outcome"] = scored if is_over else "failed" if row["error"] is not None else "unfinished"
    del row["n"], row["position"]
    return row


def plain(text: str) -> str:
    """The text without lone surrogates, which neither files nor SQLite take."""
    return text.encode("utf-8", "backslashreplace").decode()
