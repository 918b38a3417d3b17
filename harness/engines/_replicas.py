"""Servers of one model side by side: which of them is asked, and which is left out."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Container, Sequence
from itertools import count
from typing import Any

from harness.api import Facts, Thread

PROBE = 20.0  # seconds for a look at a server's model list
_numbers = count()
_AGAIN = 30.0  # seconds after which one request tries a server that was gone


class Replica:
    """One server: its client, its load, its record.

    Args:
        name: its address without secrets.
        client: the `openai` package's client for it.
        slots: the most requests in flight there.
    """

    def __init__(self, name: str, client: Any, slots: int) -> None:
        self.name, self.client = name, client
        self.slots = asyncio.Semaphore(slots)
        self.load = 0  # requests in flight there, or waiting for a slot
        self.gone: str | None = None  # why it is left out
        self.since = 0.0
        self.misses = 0  # requests in a row for which another one had to be asked, though it is there
        self.listed: list[str] = []
        self.counts: Counter[str] = Counter()

    async def models(self, timeout: float, path: str = "/models") -> list[str]:
        """The names the server lists; empty where it has no such list. Raises what the client raises."""
        import openai

        try:
            data = await self.client.get(path, cast_to=object, options={"timeout": min(PROBE, timeout)})
        except openai.APIStatusError as error:
            if error.status_code in (404, 405, 429, 501):  # it answers, only not this
                return []
            raise
        rows = data.get("data") if isinstance(data, dict) else None
        return [r["id"] for r in rows or [] if isinstance(r, dict) and isinstance(r.get("id"), str)]

    def leave_out(self, reason: str) -> None:
        """Ask others from now on."""
        if self.gone is None:
            self.counts["left_out"] += 1
        self.gone, self.since = reason, time.monotonic()

    def report(self) -> Facts:
        """What became of its requests; `left_out` counts how often it went away."""
        counts = {name: self.counts[name] for name in ("requests", "retries", "failures", "left_out")}
        return {"base_url": self.name, **counts, **({"gone": self.gone} if self.gone else {})}


class Replicas:
    """The servers of a model. A conversation stays where it is, since that server holds its prefix in its cache; a new
    one goes where least is in flight. One that is gone is left out, but for a request now and then that looks whether
    it is back."""

    def __init__(self, all_of_them: Sequence[Replica]) -> None:
        self.all = tuple(all_of_them)
        self._key = f"replica/{next(_numbers)}"  # its address may be given again

    def choose(self, thread: Thread, tried: Container[Replica] = ()) -> Replica:
        """Who answers this conversation now, who was not `tried`; where all are gone, one of them all the same."""
        kept: Replica | None = thread.memo.get(self._key)
        if kept is not None and kept.gone is None and kept not in tried:
            return kept
        now = time.monotonic()
        left = [one for one in self.all if one not in tried]
        back = [one for one in left if one.gone is not None and now - one.since > _AGAIN]
        live = [one for one in left if one.gone is None]
        if back and live:
            back[0].since = now  # the others wait for what this request finds
            live = back[:1]
        chosen = min(live or left or self.all, key=lambda one: (one.load, one.counts["requests"]))
        thread.memo[self._key] = chosen
        return chosen

    def report(self) -> list[Facts]:
        """Each server's."""
        return [one.report() for one in self.all]

    def another(self, tried: Container[Replica]) -> bool:
        """Whether somebody else is there to ask."""
        return any(one.gone is None for one in self.all if one not in tried)
