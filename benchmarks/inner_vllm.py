"""What a call of an agent program's model costs on top of vLLM in this process: CPU time, a random tiny model.

    python benchmarks/inner_vllm.py

A program makes the same call many times a turn, eight at once. It asks vLLM itself; or the run's door (limits, gate,
journal); or, as agents do, the door by HTTP (chat completions), from another process. All three in turns, in one
process with one engine; the first pass is not measured.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import field
from pathlib import Path

from endpoints import request as http_request
from endpoints import send
from vllm_engine import ARGUMENTS, ENVIRONMENT

from harness.api import CallsModels, Completion, Engine, InnerRequest, Request, Thread, TurnId, plugin
from harness.api.inner_calls import InnerDoor
from harness.config import resolve
from harness.config.project import builtin
from harness.config.spec import parse
from harness.evaluation.stages import execute
from harness.extensions.endpoints.server import EndpointServer
from harness.runtime.options import Options

MAX_MS = 0.5
CALLS, PASSES, AT_ONCE = 400, 5, 8
WAYS = ("vLLM itself", "through the run", "through the run, by HTTP")
CHAT = [{"role": "user", "content": "Neighbor 1: I choose red. Neighbor 2: I choose green. Which color? " * 3}]
SAMPLING = {"temperature": 0.7, "max_tokens": 4}


@plugin
class Asker(CallsModels):
    """Makes its calls in each of the ways, one after another, and notes the CPU time of each.

    Args:
        inner: vLLM.
    """

    inner: Engine = field(repr=False)

    def __post_init__(self) -> None:
        self.seconds: dict[str, list[float]] = defaultdict(list)

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
        server = EndpointServer()
        await server.start()
        body = {"messages": CHAT, **SAMPLING}
        sent = http_request(server.open(seat, turn.agent), "/chat/completions", body, seat.name)

        async def itself() -> None:
            thread = Thread()
            thread.add("user", CHAT[0]["content"])
            for n in range(CALLS // AT_ONCE):
                await self.inner.complete(Request(f"{request.id}/{n}", thread, SAMPLING, n))

        async def through() -> None:
            for _ in range(CALLS // AT_ONCE):
                await seat.complete(InnerRequest("chat", seat.name, CHAT, sampling=SAMPLING))

        for number in range(PASSES + 1):
            for way in WAYS:
                began = time.process_time()
                if way == WAYS[2]:
                    await send(server, sent, CALLS)
                else:
                    await asyncio.gather(*((itself if way == WAYS[0] else through)() for _ in range(AT_ONCE)))
                if number:
                    self.seconds[way].append(time.process_time() - began)
        await server.close()
        return Completion("The answer is 7.")


def main() -> None:
    os.environ.update({name: os.environ.get(name, value) for name, value in ENVIRONMENT.items()})
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from harness.extensions.vllm.vllm import VLLM
    from tests.helpers.tiny_model import make

    with tempfile.TemporaryDirectory() as folder:
        vllm = VLLM(pretrained=str(make(Path(folder) / "model")), **ARGUMENTS)
        engine = Asker(inner=vllm)
        spec = {"name": "asked", "task": {"use": "arithmetic", "size": 1}, "protocol": "single", "tables": []}
        execute(resolve.plan(parse(spec, builtin()), builtin(), engine), Options(output_path=Path(folder) / "run"))
    medians = {way: statistics.median(engine.seconds[way]) / CALLS * 1000 for way in WAYS}
    print(f"{'':26}ms of CPU a call, of {CALLS}, median of {PASSES}")
    for way, ms in medians.items():
        print(f"{way:26}{ms:.3f}")
    endpoint, both = (medians[WAYS[2]] - medians[way] for way in (WAYS[1], WAYS[0]))
    print(f"the endpoint adds {endpoint:.3f} ms, the run and the endpoint {both:.3f} ms")
    if endpoint > MAX_MS:
        raise SystemExit(f"an endpoint of more than {MAX_MS} ms")


if __name__ == "__main__":
    main()
