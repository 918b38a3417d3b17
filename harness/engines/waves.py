"""When engines that collect requests send them: once each open episode waits for an answer of such an engine."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from harness.api import Completion, Engine, Request
from harness.api.errors import SetupError
from harness.engines.gate import Wrapper

_ROUNDS = 8
"""Rounds of the event loop in which nothing may change before a wave counts as complete: an answer takes a round
through each task and future between the engine and its next request."""


class Waves:
    """Finds out when no request can come before one is answered, and has the engines send what they collected: a wave.

    An episode asks nothing new while one of its turns waits, since all turns of a batch end before the next begins. So
    a wave is complete when each task that plays episodes has an episode with a request open at such an engine,
    wherever that is: collected, in an earlier batch, behind the gate's bound, or waiting for an equal request of
    another episode. An episode that is being graded, or that waits for an engine that answers at once, has none, and
    the wave waits for it. No clock is involved.

    Without tasks to watch, as in a script, all requests that are made before the event loop comes to rest are a wave.

    Args:
        engines: the engines of a run, by name: those that collect are told.
        file: gives the path of a file of the run, by its name.
    """

    def __init__(
        self, engines: Mapping[str, Engine] = MappingProxyType({}), file: Callable[[str], Path] = Path
    ) -> None:
        self._players = 0
        self._open: Counter[str] = Counter()  # episode → its open requests
        self._senders: dict[Callable[[], None], None] = {}
        self._changes = 0
        self._settling: asyncio.Task[None] | None = None
        for name, engine in engines.items():
            if engine.collects:
                engine.collect(self.when_all_wait, file(f"batches-{quote(name, safe='')[:100]}.jsonl"))

    def watch(self, tasks: Iterable[asyncio.Task[None]]) -> None:
        """Wait for these tasks, of which each plays one episode after another."""
        for task in tasks:
            self._players += 1
            task.add_done_callback(self._ended)

    def engines(self, engines: Mapping[str, Engine], episode: str) -> dict[str, Engine]:
        """The engines for the players of an episode, by name."""
        return {name: _OfEpisode(one, self, episode) if one.collects else one for name, one in engines.items()}

    def when_all_wait(self, send: Callable[[], None]) -> None:
        """As for `Engine.collect`."""
        self._senders[send] = None
        self._look()

    def opened(self, episode: str) -> None:
        """An episode waits for an answer; `closed` must follow."""
        self._open[episode] += 1
        self._look()

    def closed(self, episode: str) -> None:
        """It has the answer, or there is none."""
        self._open[episode] -= 1
        if not self._open[episode]:
            del self._open[episode]
        self._look()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._players -= 1
        self._look()

    def _look(self) -> None:
        self._changes += 1
        if self._senders and self._settling is None:
            self._settling = asyncio.create_task(self._settle())

    async def _settle(self) -> None:
        seen, rounds = -1, 0
        while rounds < _ROUNDS:
            seen, rounds = self._changes, rounds + 1 if seen == self._changes else 0
            await asyncio.sleep(0)
        self._settling = None
        if len(self._open) >= self._players:
            senders, self._senders = self._senders, {}
            for send in senders:
                send()


def check(engines: Collection[Engine], options: Any) -> None:
    """Raise `SetupError` for what does not go with an engine of a run that collects.

    `options`: a `harness.runtime.options.Options`.
    """
    name = next(engine.model for engine in engines if engine.collects)
    for option in ("rpm", "tpm"):
        if getattr(options, option) is not None:
            message = f"{name} answers in batches, whose size {option} does not bound: it would only take them apart"
            raise SetupError(message, hint=f"Leave --{option} out, or batch of its engine.")
    if options.sequential_engines:
        message = f"{name} answers in batches, and --sequential_engines would let no other engine work for hours"
        raise SetupError(message, hint="Leave --sequential_engines out, or batch of the engine.")
    if person := next((engine.model for engine in engines if engine.asks_people), None):
        message = f"{name} answers in batches, and {person} would wait for hours after each turn"
        raise SetupError(message, hint="Leave batch of the engine out.")


class _OfEpisode(Wrapper):
    """An engine as the players of one episode ask it."""

    def __init__(self, inner: Engine, waves: Waves, episode: str) -> None:
        super().__init__(inner)
        self._waves, self._episode = waves, episode

    def count_tokens(self, text: str) -> int | None:
        return self.inner.count_tokens(text)  # which remembers them for all episodes

    async def complete(self, request: Request) -> Completion:
        self._waves.opened(self._episode)
        try:
            return await request.send(self.inner)
        finally:
            self._waves.closed(self._episode)
