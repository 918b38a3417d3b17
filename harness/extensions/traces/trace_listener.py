"""`--trace`: hears a run and has its spans sent. It only passes on what it hears; the sender's thread does the rest."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from harness.api import Facts, Move
from harness.config.plan import Plan
from harness.runtime.listeners import HeardEpisode, RunListener
from harness.runtime.players import ModelPlayer
from harness.storage import UNFINISHED
from harness.storage.inner_calls import InnerCall
from harness.tables import EpisodeScore

from .episode_spans import EpisodeSpans, PlayedTurn
from .export_form import facts_of, numbers_of
from .kept import SIZE, Earlier, kept_earlier, kept_inner, kept_move, kept_turn
from .seat_facts import Players, SeatFacts
from .sender import Sender
from .span import RunSpans, Span

_SEAT: Final = 250
"""Characters of what spans say of who plays an agent, about."""


class TraceListener(RunListener):
    """Sends the spans of a run while it plays.

    Args:
        endpoint: where to.
        content: whether to show what models read and wrote.
        sender: sends the spans of a run; None: OTLP over HTTP.
    """

    def __init__(
        self, endpoint: str, content: bool = False, sender: Callable[[str, RunSpans], Sender] | None = None
    ) -> None:
        self.endpoint, self.content, self._sender = endpoint, content, sender or Sender
        self._open: dict[str, EpisodeSpans] = {}  # only the sender's thread changes what is in it
        self._dropped: set[str] = set()  # episodes being played whose beginning was not kept
        self._has_played, self._latest = False, 0

    def run_began(self, plan: Plan, folder: Path, meta: Facts) -> None:
        self.ids, self.players = RunSpans(meta), Players(meta, plan)
        self.sender = self._sender(self.endpoint, self.ids)

    def episode_began(self, episode: HeardEpisode) -> None:
        self._has_played = True
        seats = self.players.seats(episode.seats)
        moves = [(index, move) for (_, index), move in episode.recorded.items() if move.error_kind != UNFINISHED]
        turns = [PlayedTurn(0, index, kept_move(move, False)) for index, move in moves]
        inner = kept_earlier(episode.recorded_inner)
        size = SIZE + _SEAT * (len(seats) + len(inner)) + sum(SIZE * (1 + len(turn.move.calls)) for turn in turns)
        if not self.sender.put(partial(self._began, episode.id, seats, turns, inner, time.time_ns()), size):
            self._dropped.add(episode.id)

    def move(self, episode: HeardEpisode, round_number: int, index: int, move: Move) -> None:
        if episode.id in self._dropped:
            self.sender.drop()
            return
        player = episode.players[move.agent]
        messages = player.thread.messages if isinstance(player, ModelPlayer) else ()
        turn, size = kept_turn(PlayedTurn(round_number, index, move, time.time_ns(), messages), self.content)
        self.sender.put(partial(self._moved, episode.id, turn), size)

    def inner_call(self, episode: HeardEpisode, call: InnerCall) -> None:
        if episode.id in self._dropped:
            self.sender.drop()
            return
        kept, size = kept_inner(call, self.content)
        self.sender.put(partial(self._called, kept, time.time_ns()), size)

    def episode_ended(self, episode: HeardEpisode, score: EpisodeScore) -> None:
        if episode.id in self._dropped:
            self._dropped.discard(episode.id)
            self.sender.drop()
            return
        facts = facts_of(episode.condition.id, episode.case, episode.repeat, score.labels) | numbers_of(score.numbers)
        error = None if score.error is None else score.error if self.content else ""
        size = SIZE + sum(len(name) + len(str(value)) for name, value in facts.items()) + len(error or "")
        self.sender.put(partial(self._ended, episode.id, facts, error, time.time_ns()), size, needed=True)

    def run_ended(self, finished: bool) -> Iterable[str]:
        if finished and self._has_played:
            self.sender.put(partial(self._finished, time.time_ns()), SIZE, needed=True)
        self.sender.close()
        if self.sender.lost:
            count = f"{self.sender.lost:,} spans or more did not reach {self.endpoint}, {self.sender.sent:,} did"
            yield f"--trace: {count}; `harness export RUN --to otel` has them all: trace {self.ids.trace}"

    # ------------------------------------------------------------------------------ in the sender's thread

    def _began(
        self, episode: str, seats: Mapping[str, SeatFacts], turns: Iterable[PlayedTurn], inner: Earlier, now: int
    ) -> Iterable[Span]:
        self._open[episode] = own = EpisodeSpans(self.ids, episode, self.players, seats, now=now, content=self.content)
        for attempt, call in inner:  # these were sent before the run was resumed
            own.asked_meanwhile(attempt, call, now)
        for turn in turns:
            own.turn(turn)
        return ()

    def _moved(self, episode: str, turn: PlayedTurn) -> Iterable[Span]:
        return self._open[episode].turn(turn)

    def _called(self, call: InnerCall, now: int) -> Iterable[Span]:
        return self._open[call.episode].inner(call, now)

    def _ended(self, episode: str, facts: Mapping[str, Any], error: str | None, now: int) -> Iterable[Span]:
        spans = self._open.pop(episode).end(facts, error, now)
        self._latest = max(self._latest, spans[-1].end)
        return spans

    def _finished(self, now: int) -> Iterable[Span]:
        return [self.ids.own(max(now, self._latest))]
