"""Rows of inner calls: what agents' programs asked their model, apart from replies; one a call."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from harness.api.printable import utf8
from harness.transcripts.costs import SeatPrice
from harness.transcripts.tidy import Row, TidyColumn, TidyKind
from harness.transcripts.view_api import RecordedTurn, Transcript

if TYPE_CHECKING:
    from harness.storage.inner_calls import InnerCall


def _columns(*columns: tuple[str, TidyKind, str]) -> tuple[TidyColumn, ...]:
    return tuple(TidyColumn(*column) for column in columns)


COLUMNS: Final = _columns(
    ("run", "text", "the run's id"),
    ("episode", "text", "the episode's id"),
    ("turn", "integer", "the turn's place in the episode, from 0"),
    ("agent", "text", "the agent"),
    ("index", "integer", "the agent's own turns before this one"),
    ("attempt", "integer", "which reply of the turn it was made for, from 0"),
    ("number", "integer", "its place among the calls of this attempt, from 0"),
    ("start", "integer", "how often the program had been started for the attempt before"),
    ("model", "text", "the model that answered"),
    ("api", "text", "the API that the program spoke"),
    ("asked_for", "text", "the model that the program named"),
    (
        "earlier_messages",
        "integer",
        "how many messages at the start of the prompt are those of the agent's call before",
    ),
    ("prompt", "json", "the messages after these, as the program sent them; a text where it was to be continued"),
    ("tools", "json", "the functions that were offered"),
    ("sampling", "json", "the settings that the program gave"),
    ("reply", "text", "the answer; None if it failed"),
    ("tool_calls", "json", "its calls of tools, each with id, name and arguments; None without"),
    ("reasoning", "text", "the reasoning before the answer"),
    ("finish_reason", "text", "why the answer ended, as the engine says it"),
    ("input_tokens", "integer", "tokens of the prompt; None if the engine reports none"),
    ("output_tokens", "integer", "tokens of the answer, reasoning included"),
    ("cached_tokens", "integer", "those of the prompt that the engine had in its cache"),
    ("reasoning_tokens", "integer", "those of the answer that were reasoning"),
    ("latency", "number", "seconds that it took"),
    ("cost", "number", "USD; None if unknown"),
    ("seed", "text", "of the call"),
    ("error", "text", "why it failed"),
    ("error_kind", "text", "the kind of failure"),
    ("dropped", "flag", "whether the program, played again after a resume, did not make it again"),
)
_OF_ANSWER: Final = (
    "reasoning",
    "finish_reason",
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "reasoning_tokens",
    "latency",
)


def inner_rows(run: str, transcript: Transcript) -> Iterator[Row]:
    """One row for each inner call of an episode, turn by turn; the keys are those of `COLUMNS`."""
    before: dict[str, Sequence[Mapping[str, Any]]] = {}
    for turn in transcript.turns:
        rate = transcript.seat_prices.get(turn.agent, SeatPrice())
        for call in turn.inner:
            shared = common(before.get(turn.agent, ()), call.request.messages)
            before[turn.agent] = call.request.messages
            yield _row(run, transcript.id, turn, call, rate, shared)


def _row(run: str, episode: str, turn: RecordedTurn, call: InnerCall, rate: SeatPrice, shared: int) -> Row:
    ask, answer = call.request, call.completion
    paid = None if answer is None else rate.of_call(answer)
    values: Row = {
        "run": run,
        "episode": episode,
        "turn": turn.number,
        "agent": call.agent,
        "index": call.index,
        "attempt": call.attempt,
        "number": call.number,
        "start": call.start,
        "model": rate.inner_model or call.model,
        "api": ask.api,
        "asked_for": ask.model,
        "earlier_messages": shared,
        "prompt": ask.text if ask.text is not None else [dict(one) for one in ask.messages[shared:]],
        "tools": [dict(one) for one in ask.tools] or None,
        "sampling": dict(ask.sampling) or None,
        "reply": None if answer is None else answer.text,
        "tool_calls": [dict(one) for one in answer.tool_calls] if answer is not None and answer.tool_calls else None,
        **{name: None if answer is None else getattr(answer, name) for name in _OF_ANSWER},
        "cost": paid and paid.value,
        "seed": str(call.seed),
        "error": call.error,
        "error_kind": call.error_kind,
        "dropped": call.is_dropped,
    }
    return {c.name: utf8(value) if isinstance(value := values[c.name], str) else value for c in COLUMNS}


def common(one: Sequence[Any], other: Sequence[Any]) -> int:
    """How many messages at the beginning of both are the same."""
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
