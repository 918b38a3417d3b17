"""What a call of an agent program's model costs in the run: CPU time between the endpoint and the engine.

    python benchmarks/inner_calls.py

That is the limits, the record of earlier calls, the gate, and the line of the journal, which is with the operating
system before the program gets its answer. The program plays in this process and asks without HTTP
(`benchmarks/endpoints.py` measures that); the engine answers at once. Its conversation grows by two messages a call.
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import field
from pathlib import Path
from typing import Any

from harness.api import CallsModels, Completion, Engine, InnerRequest, Request, TurnId, plugin
from harness.api.inner_calls import InnerDoor
from harness.config import resolve
from harness.config.project import builtin
from harness.config.spec import parse
from harness.engines.mock import Mock
from harness.evaluation.stages import execute
from harness.runtime.options import Options

MAX_MS = 0.3
TEXT = "Neighbor 1: I choose red. Neighbor 2: I choose green. Which color? " * 3


@plugin
class Asker(CallsModels):
    """Asks its model so many times a turn.

    Args:
        calls: how many times.
        inner: answers.
    """

    calls: int = 0
    inner: Engine = field(default_factory=Mock, repr=False)

    @property
    def model(self) -> str:
        return "asker"

    @property
    def inner_engine(self) -> Engine:
        return self.inner

    def connect(self, calls: InnerDoor) -> None:
        self.door = calls

    async def complete(self, request: Request) -> Completion:
        turn = TurnId.of(request.id)
        seat = self.door.seat(turn.episode, turn.agent)
        messages: list[dict[str, Any]] = [{"role": "system", "content": TEXT * 3}]
        for n in range(self.calls):
            messages.append({"role": "user", "content": f"{n} {TEXT}"})
            answer = await seat.complete(InnerRequest("chat", "mock", [*messages], sampling={"temperature": 0.7}))
            messages.append({"role": "assistant", "content": answer.text})
        return Completion("The answer is 7.")


def seconds(calls: int, cases: int, width: int) -> float:
    """CPU time of a run of so many turns with so many calls each, `width` turns at a time."""
    engine = Asker(calls=calls, inner=Mock(text="I choose blue. " * 10))
    spec = {"name": "asked", "task": {"use": "arithmetic", "size": cases}, "protocol": "single", "tables": []}
    plan = resolve.plan(parse(spec, builtin()), builtin(), engine)
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        execute(plan, Options(output_path=Path(folder) / "run", max_concurrency=width))
        return time.process_time() - began


def main() -> None:
    worst = 0.0
    print(f"{'':28}ms of CPU a call")
    for calls, cases, width in ((10, 200, 1), (10, 200, 32), (100, 20, 1), (100, 20, 20)):
        ms = (seconds(calls, cases, width) - seconds(0, cases, width)) / (calls * cases) * 1000
        worst = max(worst, ms)
        print(f"{f'{calls} calls a turn, {width} at once':28}{ms:.3f}")
    if worst > MAX_MS:
        raise SystemExit(f"more than {MAX_MS} ms")


if __name__ == "__main__":
    main()
