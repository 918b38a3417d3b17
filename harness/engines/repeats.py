"""Whether an engine repeats itself: a sample of a run's requests is asked again when all episodes are played."""

from __future__ import annotations

import asyncio
import heapq
import logging
import zlib
from dataclasses import replace
from typing import Any

from harness.api import Completion, Facts, Request, Thread
from harness.api.errors import EngineError
from harness.engines.gate import Gate, Shared, Wrapper

SAMPLE = 16
_SHOWN, _CHARACTERS = 3, 300
"""How many different replies a report shows, and how much of each."""
_log = logging.getLogger(__name__)


class Repeats(Wrapper):
    """Keeps a sample of a gate's requests with their answers. Which ones are in it depends on their ids alone, not on
    their order.

    Args:
        gate: asks the engine.
        size: how many at most.
    """

    def __init__(self, gate: Gate, size: int = SAMPLE) -> None:
        super().__init__(gate)
        self.gate, self.size = gate, size
        self._kept: list[tuple[int, str, Request, Completion]] = []  # a heap, of which the next to go is the first
        self._report: Facts = {}

    def report(self) -> Facts:
        """The gate's; once the sample was asked again, that of before, and with `asked_again` what came of it."""
        return self._report or self.gate.report()

    async def complete(self, request: Request) -> Completion:
        """Ask the gate, and take the request into the sample if it belongs there."""
        messages = len(request.thread.messages)
        answer = await request.send(self.gate)
        self._take(request, messages, answer)
        return answer

    def _take(self, request: Request, messages: int, answer: Completion) -> None:
        rank = -zlib.crc32(request.id.encode())
        if len(self._kept) == self.size and rank <= self._kept[0][0]:
            return
        thread = Thread(request.thread.age, request.thread.chat, request.thread.verbatim)
        thread.messages = request.thread.messages[:messages]
        entry = (rank, request.id, replace(request, thread=thread), answer)
        (heapq.heappush if len(self._kept) < self.size else heapq.heapreplace)(self._kept, entry)

    async def ask_again(self) -> None:
        """Ask all of them again, as many at once as the engine takes, and compare. Nothing else counts or logs these
        calls. `asked_again` of the report has `asked`, how many; `equal`, how many answers were the same; and if there
        were any, `failed`, how many got none, and `different`, some of those that were not the same.
        """
        gate = self.gate
        if not self._kept or gate.broken is not None:
            return
        report = gate.report()
        apart = Gate(gate.inner, gate.most_in_flight, 1.0, shared=Shared())
        apart.rate = gate.rate

        async def again(request: Request) -> Completion | EngineError:
            try:
                return await apart.complete(request)
            except EngineError as error:
                return error

        kept = sorted(self._kept, key=lambda entry: entry[1])
        if gate.switcher is not None:
            await gate.switcher.enter(gate)
        try:
            answers = await asyncio.gather(*(again(request) for _, _, request, _ in kept))
        finally:
            if gate.switcher is not None:
                gate.switcher.leave()
        failed = sum(isinstance(answer, EngineError) for answer in answers)
        different = [
            {"request": name, "first": _shown(first), "again": _shown(second)}
            for (_, name, _, first), second in zip(kept, answers, strict=True)
            if isinstance(second, Completion) and said(first) != said(second)
        ]
        equal = len(kept) - failed - len(different)
        facts: dict[str, Any] = {"asked": len(kept), "equal": equal}
        facts |= ({"failed": failed} if failed else {}) | ({"different": different[:_SHOWN]} if different else {})
        self._report = {**report, "asked_again": facts}
        text = "deterministic: %s: %d requests asked again, %d of the replies are the same as before"
        _log.log(logging.INFO if equal == len(kept) else logging.WARNING, text, gate.model, len(kept), equal)


def said(answer: Completion) -> tuple[Any, ...]:
    """What of an answer has to be the same again: all but counts and times."""
    return answer.text, answer.reasoning, answer.tool_calls, answer.likelihoods


def _shown(answer: Completion) -> str:
    return next((str(part) for part in said(answer) if part), "")[:_CHARACTERS]
