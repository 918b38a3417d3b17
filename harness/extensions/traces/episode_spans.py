"""The spans of one episode: the episode, below it its agents, their turns, and what models and tools did in them.

episode …
  invoke_agent Alice
    turn discuss                 attributes of the harness; of a policy nothing else
      chat Qwen3-8B              one for each attempt
        chat …                   what an agent program asked its model meanwhile
      execute_tool send_message
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from harness.api import Completion, Move, derive_seed
from harness.api.printable import cut, utf8
from harness.storage.inner_calls import InnerCall

from . import span as names
from .content import MAX_CHARS, MAX_TOOLS, Message, ReadMessages, as_json, name_of, written
from .seat_facts import Players, SeatFacts
from .span import CLIENT, RunSpans, Span, attributes_of

Times = tuple[int, int, str | None]
"""Start, end, and which of them no clock has measured (`DERIVED`)."""


@dataclass(frozen=True, slots=True)
class PlayedTurn:
    """A turn and what is known about it.

    Attributes:
        round: the batch that it belongs to, from 0.
        index: the agent's own turns before it.
        move: what came of it.
        now: when it was over, in nanoseconds since 1970; None: no clock has said it.
        messages: the conversation at its end, and more where it has grown; () where there is none to show.
        length: how many of them there were at its end.
        skipped: how many messages of the conversation are missing among them, after the system prompt.
        inner: what an agent program asked in it, unless these spans are made apart (`EpisodeSpans.inner`).
    """

    round: int
    index: int
    move: Move
    now: int | None = None
    messages: Sequence[Message] = ()
    length: int = 0
    skipped: int = 0
    inner: Sequence[InnerCall] = ()


class EpisodeSpans:
    """Makes the spans of one episode, turn by turn; those of agents and of the episode itself at its end.

    A call's start is what the journal says (`Completion.began`) and its end is its latency later; a call with inner
    calls lasts as long as they do at least. What has no clock follows from what was before: the episode goes on when
    all turns of the round before are over. Such spans say so (`DERIVED`).

    Args:
        run: gives ids.
        episode: the episode's id.
        players: knows the run's engines.
        seats: agent → who plays it.
        now: when the episode began, or was gone on with, in nanoseconds since 1970; None: no clock has said it.
        content: whether to show what models read and wrote.
    """

    def __init__(
        self,
        run: RunSpans,
        episode: str,
        players: Players,
        seats: Mapping[str, SeatFacts],
        *,
        now: int | None = None,
        content: bool = False,
    ) -> None:
        self.run, self.episode, self.players, self.seats, self.content = run, episode, players, seats, content
        self.id = run.span("episode", episode)
        self.conversation = f"{run.name}/{episode}"
        self._start = now
        self._round, self._clock, self._latest = 0, now or run.start, now or run.start
        self._times: dict[str, Times] = {}  # of agents
        self._inner: dict[tuple[str, int, int], tuple[int, int]] = {}  # agent, index, attempt → of its inner calls

    def turn(self, turn: PlayedTurn) -> list[Span]:
        """The spans of a turn: the turn, its calls, its tools."""
        if turn.round != self._round:
            self._round, self._clock = turn.round, max(self._clock, self._latest)
        move, agent = turn.move, turn.move.agent
        seat = self.seats.get(agent) or SeatFacts()
        id = self.run.span("turn", self.episode, agent, turn.index)
        calls, inner = self._calls(turn, seat, id)
        at = self._clock if turn.now is None else turn.now
        start = min((one.start for one in calls), default=at)
        end = max([turn.now or start, *(one.end for one in calls)])
        derived = None if turn.now is not None else _derived_around(calls)
        facts = {
            names.AGENT_NAME: agent,
            names.CONVERSATION: self.conversation,
            "mas_eval.turn": move.turn,
            "mas_eval.round": turn.round,
            "mas_eval.turn.index": turn.index,
            names.DERIVED: derived,
            names.ERROR: move.error_kind,
        }
        if self.content:
            facts["mas_eval.action"] = None if move.action is None else cut(as_json(move.action), MAX_CHARS)
        own = self._span(f"turn {move.turn}", id, self._agent(agent), (start, end), facts, error=move.error)
        self._latest = max(self._latest, own.end)
        before = self._times.get(agent, (own.start, own.end, derived))
        self._times[agent] = min(before[0], own.start), max(before[1], own.end), _both(before[2], derived)
        return [own, *calls, *inner]

    def inner(self, call: InnerCall, at: int) -> Iterator[Span]:
        """The spans of a call that an agent program made of its model, before those of its turn.

        `at`: when it was, if no clock has said it.
        """
        times = self.asked_meanwhile((call.agent, call.index, call.attempt), call.completion, at)
        model, provider = self.players.engine(call.model)
        asked = call.request
        seat = SeatFacts(model, provider, None, asked.sampling, call.seed, asked.text is None)
        parent = self._call_id(call.agent, call.index, call.attempt)
        id = self.run.span("inner", self.episode, call.agent, call.index, call.attempt, call.number)
        facts = {**self._asked(seat, call.seed), names.AGENT_NAME: call.agent, names.REQUEST_MODEL: asked.model}
        facts |= {"gen_ai.response.model": model, "mas_eval.inner.api": asked.api, "mas_eval.inner.number": call.number}
        facts["mas_eval.inner.dropped"] = call.is_dropped or None
        if self.content:
            shown = ReadMessages([*asked.messages, {"role": "assistant"}], len(asked.messages) + 1, 1)
            facts |= self._read(shown, 0)
        yield from self._call(
            call.completion, facts, (id, parent, self._agent(call.agent)), times, (call.error_kind, call.error)
        )

    def asked_meanwhile(self, attempt: tuple[str, int, int], call: Completion | None, at: int) -> Times:
        """Let (agent, index, attempt) last as long as an inner call, whose spans may have been sent earlier; returns
        when that was."""
        times = start, end, _ = self._clocks(call, at)
        around = self._inner.get(attempt, (start, end))
        self._inner[attempt] = min(around[0], start), max(around[1], end)
        return times

    def end(self, facts: Mapping[str, Any], error: str | None, now: int | None = None) -> list[Span]:
        """The spans of the agents, and that of the episode with these facts."""
        spans = []
        for agent, (start, end, derived) in self._times.items():
            seat = self.seats.get(agent) or SeatFacts()
            own = {
                names.OPERATION: "invoke_agent",
                names.AGENT_NAME: agent,
                names.AGENT_ID: f"{self.conversation}/{agent}",
                names.CONVERSATION: self.conversation,
                names.DERIVED: derived,
                "mas_eval.policy": seat.policy,
            }
            if seat.model is not None:
                own |= {names.PROVIDER: seat.provider, names.REQUEST_MODEL: seat.model}
            spans.append(self._span(f"invoke_agent {agent}", self._agent(agent), self.id, (start, end), own))
        starts = [start for start, _, _ in self._times.values()]
        start = min([*starts, self._start] if self._start is not None else starts, default=self._clock)
        end = max(start, self._latest, now or 0)
        derived = None if now is not None else names.NEITHER
        if now is None and self._times:
            derived = functools.reduce(_both, (one for _, _, one in self._times.values()))
        whole = {names.CONVERSATION: self.conversation, "mas_eval.episode": self.episode, **facts}
        whole |= {names.DERIVED: derived, names.ERROR: None if error is None else "episode"}
        title = f"episode {facts.get('mas_eval.condition') or self.episode}"
        return [*spans, self._span(title, self.id, self.run.root, (start, end), whole, error=error)]

    # ------------------------------------------------------------------------------ inside

    def _agent(self, agent: str) -> str:
        return self.run.span("agent", self.episode, agent)

    def _call_id(self, agent: str, index: int, attempt: int) -> str:
        return self.run.span("call", self.episode, agent, index, attempt)

    def _calls(self, turn: PlayedTurn, seat: SeatFacts, parent: str) -> tuple[list[Span], list[Span]]:
        """The calls of a turn, each attempt with its tools, the request that failed last; and the inner calls."""
        move = turn.move
        attempts = [*move.calls, *([None] if has_failed(move) else [])]
        shown = ReadMessages(turn.messages, turn.length, len(attempts), turn.skipped) if self.content else None
        at = self._clock if turn.now is None else turn.now
        spans, inner = list[Span](), list[Span]()
        for attempt, call in enumerate(attempts):
            place, times = (move.agent, turn.index, attempt), self._clocks(call, at)
            for one in turn.inner:
                if one.attempt == attempt:
                    inner += self.inner(one, self._inner[place][1] if place in self._inner else times[0])
            if (below := self._inner.pop(place, None)) is not None:
                times = _around(times, below)
            seed = None if seat.seed is None else derive_seed(seat.seed, turn.index, attempt)
            facts = {**self._asked(seat, seed), names.AGENT_NAME: move.agent, "mas_eval.attempt": attempt}
            if shown is not None:
                facts |= self._read(shown, attempt)
            if call is not None and move.inner_calls is not None:  # its own are sums of what stands below it
                call = replace(
                    call, cost=None, input_tokens=None, output_tokens=None, cached_tokens=None, reasoning_tokens=None
                )
            error = (move.error_kind, move.error) if call is None else (None, None)
            spans += self._call(call, facts, (self._call_id(*place), parent, parent), times, error)
            at = max(at, times[1]) if turn.now is None else at
        return spans, inner

    def _asked(self, seat: SeatFacts, seed: int | None) -> dict[str, Any]:
        """What is known of a call before it is answered."""
        sampling = {own: seat.sampling.get(name) for name, own in names.SAMPLING.items()}
        if isinstance(stop := sampling[names.SAMPLING["stop"]], str):
            sampling[names.SAMPLING["stop"]] = [stop]
        return {
            names.OPERATION: "chat" if seat.chat else "text_completion",
            names.PROVIDER: seat.provider,
            names.REQUEST_MODEL: seat.model,
            names.CONVERSATION: self.conversation,
            names.SEED: seed,
            **sampling,
        }

    def _read(self, shown: ReadMessages, attempt: int) -> dict[str, Any]:
        read, instructions, left_out = shown.read(attempt)
        facts: dict[str, Any] = {names.INPUT: read, names.INSTRUCTIONS: instructions or None}
        return {**facts, "mas_eval.input.messages.left_out": left_out or None}

    def _clocks(self, call: Completion | None, at: int) -> Times:
        """When a call began and ended; `at`: when it began, if no clock has said it."""
        began, took = (None, None) if call is None else (call.began, call.latency)
        measured = began is not None and math.isfinite(began) and began * 1e9 >= self.run.start
        start = int(began * 1e9) if measured and began is not None else at
        known = took is not None and math.isfinite(took) and 0 <= took < 1e9
        end = start + (int(took * 1e9) if known and took is not None else 0)
        return start, end, None if measured and known else names.NO_END if measured else names.NEITHER

    def _call(
        self,
        call: Completion | None,
        facts: dict[str, Any],
        ids: tuple[str, str, str],
        times: Times,
        error: tuple[str | None, str | None],
    ) -> Iterator[Span]:
        """A call and the tools that it calls.

        `ids`: its own, its parent's, and that of the parent of its tools; `error`: kind and words.
        """
        kind, why = error
        start, end, derived = times
        facts = {**facts, names.ERROR: kind, names.DERIVED: derived}
        if call is not None:
            facts |= {own: getattr(call, name) for name, own in names.USAGE.items()}
            facts[names.FINISH_REASONS] = [name_of(call.finish_reason)] if call.finish_reason else None
            facts |= {"mas_eval.cost": call.cost, "mas_eval.request.digest": call.request_digest}
            facts["mas_eval.reused_from"] = call.reused_from
            if call.likelihoods is not None:
                facts[names.OPERATION] = "text_completion"
            elif self.content:
                facts[names.OUTPUT] = written(call)
        title = f"{facts[names.OPERATION]} {facts[names.REQUEST_MODEL] or ''}".rstrip()
        own = self._span(title, ids[0], ids[1], (start, end), facts, kind=CLIENT, error=why if kind else None)
        yield own
        tools = (call.tool_calls if call is not None else None) or ()
        for i, one in enumerate(itertools.islice(tools, MAX_TOOLS)):
            tool = name_of(one.get("name", ""))
            about = {names.OPERATION: names.TOOL, names.TOOL_NAME: tool, names.TOOL_TYPE: "function"}
            about[names.TOOL_CALL] = name_of(one.get("id", ""))
            about |= {names.CONVERSATION: self.conversation, names.AGENT_NAME: facts[names.AGENT_NAME]}
            more = {names.TOOL_ARGUMENTS: cut(str(one.get("arguments", "")), MAX_CHARS)} if self.content else {}
            id = self.run.span("tool", own.id, i)
            yield self._span(
                f"execute_tool {tool}", id, ids[2], (end, end), {**about, **more, names.DERIVED: names.NEITHER}
            )

    def _span(
        self,
        name: str,
        id: str,
        parent: str | None,
        times: tuple[int, int],
        facts: Mapping[str, Any],
        *,
        kind: int = names.INTERNAL,
        error: str | None = None,
    ) -> Span:
        message = utf8(error)[:1000] if error is not None and self.content else ""
        start, end = times
        return Span(
            utf8(name), id, parent, start, max(start, end), kind, attributes_of(facts), error is not None, message
        )


def has_failed(move: Move) -> bool:
    """Whether the last request of a turn got no reply."""
    return move.error_kind not in (None, "parse") and not move.asked_no_more


def _around(own: Times, below: tuple[int, int]) -> Times:
    """The times of a call with inner calls: those of a resumed turn can begin before it, and those of older runs, in
    which it began when it was asked to wait for its process, can end after it."""
    start, end, derived = own
    if derived == names.NEITHER:
        return *below, derived
    is_moved = {"start": below[0] < start, "end": below[1] > end or derived is not None}
    moved = ", ".join(name for name, is_so in is_moved.items() if is_so)
    return min(start, below[0]), max(end, below[1]), moved or None


def _derived_around(calls: Sequence[Span]) -> str | None:
    """What is derived of a turn with these calls: what is, of the first one's start and the last one's end."""
    chats = [one for one in calls if one.attributes.get(names.OPERATION) != names.TOOL]
    if not chats:
        return names.NEITHER
    first, last = min(chats, key=lambda one: one.start), max(chats, key=lambda one: (one.end, one.start))
    ends = {"start": first, "end": last}
    return ", ".join(name for name, one in ends.items() if name in one.attributes.get(names.DERIVED, "")) or None


def _both(one: str | None, other: str | None) -> str | None:
    """What is derived of a span around two others: less, where a clock has said something about one of them."""
    return min(one or "", other or "") or None
