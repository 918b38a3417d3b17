"""`--trace`: hears a run and has its spans sent. It only passes on what it hears; the sender's thread does the rest."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from harness.api import Facts, Move
from harness.config.plan import Plan
from harness.runtime.listeners import HeardEpisode, RunListener
from harness.runtime.players import ModelPlayer
from harness.storage.inner_calls import InnerCall
from harness.tables import EpisodeScore

from .content import MAX_CHARS
from .episode_spans import EpisodeSpans, PlayedTurn
from .export_form import facts_of, numbers_of
from .seat_facts import Players, SeatFacts
from .sender import Sender
from .span import RunSpans, Span

_SIZE: Final = 1000
"""Characters of what spans say of a call or a turn, about, without content."""


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
        self._has_played, self._latest = False, 0

    def run_began(self, plan: Plan, folder: Path, meta: Facts) -> None:
        self.ids, self.players = RunSpans(meta), Players(meta, plan)
        self.sender = self._sender(self.endpoint, self.ids)

    def episode_began(self, episode: HeardEpisode) -> None:
        self._has_played = True
        seats = self.players.seats(episode.seats)
        self.sender.put(partial(self._began, episode, seats, time.time_ns()), _SIZE, needed=True)

    def move(self, episode: HeardEpisode, round_number: int, index: int, move: Move) -> None:
        now, size = time.time_ns(), _SIZE * (1 + len(move.calls))
        turn = PlayedTurn(round_number, index, move, now)
        if self.content and isinstance(player := episode.players[move.agent], ModelPlayer):
            messages = player.thread.messages  # it only grows
            turn = PlayedTurn(round_number, index, move, now, messages, len(messages))
        size += sum(len(call.text) + len(call.reasoning or "") for call in move.calls)  # they are kept until then
        self.sender.put(partial(self._moved, episode.id, turn), size)

    def inner_call(self, episode: HeardEpisode, call: InnerCall) -> None:
        self.sender.put(partial(self._called, episode.id, call), _SIZE + (MAX_CHARS if self.content else 0))

    def episode_ended(self, episode: HeardEpisode, score: EpisodeScore) -> None:
        self.sender.put(partial(self._ended, episode, score, time.time_ns()), _SIZE, needed=True)

    def run_ended(self, finished: bool) -> Iterable[str]:
        if finished and self._has_played:
            self.sender.put(partial(self._finished, time.time_ns()), _SIZE, needed=True)
        self.sender.close()
        if self.sender.lost:
            count = f"{self.sender.lost:,} spans or more did not reach {self.endpoint}, {self.sender.sent:,} did"
            yield f"--trace: {count}; `harness export RUN --to otel` has them all: trace {self.ids.trace}"

    # ------------------------------------------------------------------------------ in the sender's thread

    def _began(self, episode: HeardEpisode, seats: Mapping[str, SeatFacts], now: int) -> Iterable[Span]:
        own = EpisodeSpans(self.ids, episode.id, self.players, seats, now=now, content=self.content)
        for (_, index), move in episode.recorded.items():
            own.turn(PlayedTurn(0, index, move))  # sent before the run was resumed
        self._open[episode.id] = own
        return ()

    def _moved(self, episode: str, turn: PlayedTurn) -> Iterable[Span]:
        return self._open[episode].turn(turn)

    def _called(self, episode: str, call: InnerCall) -> Iterable[Span]:
        return self._open[episode].inner(call)

    def _ended(self, episode: HeardEpisode, score: EpisodeScore, now: int) -> Iterable[Span]:
        own = self._open.pop(episode.id)
        facts = facts_of(episode.condition.id, episode.case, episode.repeat, score.labels)
        spans = own.end(facts | numbers_of(score.numbers), score.error, now)
        self._latest = max(self._latest, spans[-1].end)
        return spans

    def _finished(self, now: int) -> Iterable[Span]:
        return [self.ids.own(max(now, self._latest))]
