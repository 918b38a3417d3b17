"""A transcript as plain JSON. Long texts are cut, with their length beside them: a page shows 10 MB badly."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from harness.api import Completion, InnerUsage
from harness.engines.likelihoods import likelihoods_of, shares, sums
from harness.tables.cost import Usd
from harness.transcripts.costs import SeatPrice
from harness.transcripts.plain import finite
from harness.transcripts.view_api import Finding, RecordedTurn, Transcript

MAX_TEXT_CHARS: Final = 20_000
"""Characters of one text in a transcript."""
_ALL_TEXT = 8_000_000  # characters of all texts of one transcript; after that, texts are cut to _BRIEF
_BRIEF = 400
_MAX_TURNS = 20_000
_LANE_FACTS = ("deviates", "effect", "effect_of_message")
_CALL_FIELDS = (
    "finish_reason",
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "reasoning_tokens",
    "latency",
)


def as_json(transcript: Transcript, scenes: list[dict[str, Any]]) -> dict[str, Any]:
    """What the page draws; its parts are those of `Transcript` by other names. `scenes` as in `views.as_json`."""
    case, outcome, cutter = transcript.case, transcript.outcome, Cutter()
    private = {} if case is None else {agent: cutter.value(facts) for agent, facts in case.private.items()}
    topology = None if case is None or case.topology is None else {a: list(n) for a, n in case.topology.items()}
    shown = transcript.turns[:_MAX_TURNS]
    return {
        "id": transcript.id,
        "condition": transcript.condition,
        "case": transcript.case_id,
        "repeat": transcript.repeat,
        "labels": dict(transcript.labels),
        "roles": dict(transcript.roles),
        "numbers": dict(transcript.numbers),
        "grade": dict(transcript.grade),
        "error": transcript.error and cutter.text(transcript.error),
        "finished": transcript.finished,
        "problem": transcript.problem,
        "agents": list(transcript.agents),
        "models": {**transcript.policies, **transcript.models},
        "policies": sorted(transcript.policies),
        "topology": topology,
        "public": {} if case is None else cutter.value(case.public),
        "private": private,
        "target": None if case is None else cutter.value(case.target),
        "outcome": outcome
        and {
            "answers": cutter.value(dict(outcome.answers)),
            "group": cutter.value(outcome.group),
            "facts": cutter.value(dict(outcome.facts)),
        },
        "paid": {agent: usd_json(transcript.usd(agent)) for agent in transcript.seat_prices},
        **usd_json(transcript.usd()),
        "turns": [_turn(turn, cutter, transcript.seat_prices.get(turn.agent, SeatPrice())) for turn in shown],
        "turns_in_all": len(transcript.turns),
        "scenes": scenes,
    }


def found_json(found: Finding) -> dict[str, Any]:
    """What was found out about an episode, for its lane."""
    turns = [
        {"turn": number, "words": turn.words, **{name: turn.facts.get(name) for name in _LANE_FACTS}}
        for number, turn in sorted(found.turns.items())[:_MAX_TURNS]
    ]
    return {"name": found.name, "title": found.title, "text": found.text, "turns": turns, "shares": dict(found.shares)}


def usd_json(amount: Usd | None) -> dict[str, Any]:
    """`cost`, in USD, and whether it is all of it."""
    return {"cost": amount and amount.value, "cost_is_whole": None if amount is None else amount.whole}


def _turn(turn: RecordedTurn, cutter: Cutter, price: SeatPrice) -> dict[str, Any]:
    move, cuts = turn.move, dict[str, int]()
    calls = move.calls if move is not None else ()
    return {
        "number": turn.number,
        "round": turn.round,
        "agent": turn.agent,
        "index": turn.index,
        "name": turn.name,
        "fresh": turn.fresh,
        "tools": cut(cutter, "tools", turn.signatures, cuts)["text"],
        "prompt": [
            {"role": role, **cut(cutter, f"prompt.{i}", text, cuts)} for i, (role, text) in enumerate(turn.prompt)
        ],
        "retries": [cut(cutter, f"retry.{i}", text, cuts)["text"] for i, text in enumerate(turn.retries)],
        "answered": move is not None,
        "action": None if move is None else cutter.value(move.action, "action", cuts),
        "error": None if move is None or move.error is None else cut(cutter, "error", move.error, cuts)["text"],
        "error_kind": None if move is None else move.error_kind,
        "scored": _scored(turn, cutter),
        "calls": [_call(i, call, cutter, cuts, price) for i, call in enumerate(calls)],
        "used": {kind: None if move is None else move.used(kind) for kind in ("input_tokens", "output_tokens")},
        "inner": None if move is None or (used := move.inner_calls) is None else _inner(used, price.of_move(move)),
        "cuts": cuts,
    }


def _scored(turn: RecordedTurn, cutter: Cutter) -> list[dict[str, Any]]:
    """The first texts of a scored turn, with their numbers; a share only among several texts."""
    action = turn.move.action if turn.move is not None else None
    values = sums(action)
    form = likelihoods_of(turn.reply) if turn.reply is not None else None
    if form is None or not values or len(values) != len(form.continuations):
        return []
    among = (shares(action) if len(values) > 1 else None) or itertools.repeat(None)
    rows = zip(form.continuations, values, among, action or (), strict=False)
    return [
        {
            "text": cutter.text(one.text[:200]),
            "value": value if math.isfinite(value) else None,
            "share": share,
            "greedy": pair[1],
        }
        for one, value, share, pair in itertools.islice(rows, 100)
    ]


def _inner(used: InnerUsage, paid: Usd | None) -> dict[str, Any]:
    """A line about what an agent's program asked its model: the calls themselves are loaded when they are opened."""
    names = ("calls", "input_tokens", "output_tokens", "cached_tokens", "refused", "failed", "dropped")
    return {**{name: getattr(used, name) for name in names}, **usd_json(paid)}


def _call(i: int, call: Completion, cutter: Cutter, cuts: dict[str, int], price: SeatPrice) -> dict[str, Any]:
    line = cut(cutter, f"call.{i}.text", call.shown, cuts)
    reasoning = None if call.reasoning is None else cut(cutter, f"call.{i}.reasoning", call.reasoning, cuts)["text"]
    fields = {name: getattr(call, name) for name in _CALL_FIELDS}
    return {**line, "reasoning": reasoning, **fields, **usd_json(price.of_call(call))}


def cut(cutter: Cutter, part: str, text: str, cuts: dict[str, int]) -> dict[str, Any]:
    """The text, cut if it is long, and `cut`, its full length; `cuts` has the same for its part."""
    short = cutter.text(text)
    if len(short) == len(text):
        return {"text": text}
    cuts[part] = len(text)
    return {"text": short, "cut": len(text)}


class Cutter:
    """Cuts texts, and more of them the more there were."""

    def __init__(self) -> None:
        self._room = _ALL_TEXT

    def text(self, text: str) -> str:
        short = text[: MAX_TEXT_CHARS if self._room > 0 else _BRIEF]
        self._room -= len(short)
        return short

    def value(self, value: Any, part: str = "", cuts: dict[str, int] | None = None) -> Any:
        """A JSON value; one that is too long as the beginning of its text."""
        if isinstance(value, int | float | None) and (not isinstance(value, float) or math.isfinite(value)):
            return value
        text = value if isinstance(value, str) else dumped(value)
        short = self.text(text)
        if len(short) < len(text):
            if cuts is not None:
                cuts[part] = len(text)
            return short
        return value if isinstance(value, str) else json.loads(text)


def dumped(value: Any) -> str:
    """JSON that browsers read: what is not a finite number is null, what JSON does not know is its text."""
    try:
        return json.dumps(value, allow_nan=False, default=_known)
    except (ValueError, TypeError, RecursionError):
        return json.dumps(finite(value), allow_nan=False)


def _known(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    return list(value) if isinstance(value, tuple | list | Iterator) else str(value)


def part_of(turn: RecordedTurn, part: str) -> str | None:
    """One text of a turn, whole: `prompt.0`, `retry.0`, `call.0.text`, `call.0.reasoning`, `action`, `error`."""
    kind, _, rest = part.partition(".")
    number, _, field = rest.partition(".")
    move = turn.move
    if kind == "action" and move is not None:
        return move.action if isinstance(move.action, str) else json.dumps(move.action, indent=1, ensure_ascii=False)
    if kind == "error" and move is not None:
        return move.error
    if kind == "tools":
        return turn.signatures
    if not number.isdecimal() or len(number) > 9:
        return None
    texts: dict[str, list[str | None]] = {
        "prompt": [text for _, text in turn.prompt],
        "retry": list(turn.retries),
        "call": [{"text": call.shown, "reasoning": call.reasoning}.get(field) for call in move.calls] if move else [],
    }
    there = texts.get(kind, [])
    return there[int(number)] if int(number) < len(there) else None
