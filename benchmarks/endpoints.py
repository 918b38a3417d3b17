"""What a call of an agent program's model costs beside the model: CPU time of the process that serves it.

    python benchmarks/endpoints.py

The model is a function that returns one reply. Another process sends the requests of a short chat over connections that
stay open, eight at a time, by plain sockets, so that its own work is small.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time

from harness.api import Completion, InnerRequest
from harness.extensions.endpoints.server import Access, EndpointServer

MAX_MS = 0.5
WARM_UP = 200
_CLIENT = """
import socket, sys, threading
port, calls = int(sys.argv[1]), int(sys.argv[2])
request = sys.stdin.buffer.read()
def work(calls):
    with socket.create_connection(("127.0.0.1", port)) as link:
        for _ in range(calls):
            link.sendall(request)
            reply = b""
            while b"\\r\\n\\r\\n" not in reply:
                reply += link.recv(65536)
            head, _, body = reply.partition(b"\\r\\n\\r\\n")
            assert b" 200 " in head.partition(b"\\r\\n")[0], reply
            size = int(head.lower().partition(b"content-length:")[2].partition(b"\\r\\n")[0])
            while len(body) < size:
                body += link.recv(65536)
threads = [threading.Thread(target=work, args=(calls // 8,)) for _ in range(8)]
for one in threads: one.start()
for one in threads: one.join()
"""


class Ready:
    """A model that has its reply ready."""

    name = "ready"
    reply = Completion("I choose blue. " * 10, finish_reason="stop", input_tokens=200, output_tokens=40)

    async def complete(self, ask: InnerRequest) -> Completion:
        return self.reply


CHAT = [
    {"role": "system", "content": "You are an agent in a network. Choose a color other than your neighbors'. " * 5},
    {"role": "user", "content": "Neighbor 1: I choose red. Neighbor 2: I choose green. Which color? " * 3},
]
TOOLS = [
    {
        "name": f"tool{n}",
        "description": "Look something up. " * 10,
        "parameters": {
            "type": "object",
            "properties": {f"p{i}": {"type": "string", "description": "A parameter. " * 5} for i in range(5)},
            "required": ["p0"],
        },
    }
    for n in range(20)
]
BODIES = {
    "/chat/completions": {"messages": CHAT, "temperature": 0.7, "max_tokens": 200},
    "/responses": {"input": CHAT, "max_output_tokens": 200},
    "/messages": {"system": CHAT[0]["content"], "messages": CHAT[1:], "max_tokens": 200},
    "/completions": {"prompt": CHAT[0]["content"], "max_tokens": 200},
}


def request(access: Access, path: str, body: dict[str, object], model: str = Ready.name) -> bytes:
    """A request as OpenAI's client sends it."""
    data = json.dumps({"model": model, **body}).encode()
    head = [
        f"POST /{access.base_url.split('/', 3)[3]}{path} HTTP/1.1",
        "Host: 127.0.0.1",
        "Accept-Encoding: gzip, deflate",
        "Connection: keep-alive",
        "Accept: application/json",
        "Content-Type: application/json",
        "User-Agent: OpenAI/Python 3.57.0",
        *(f"X-Stainless-{name}: x" for name in ("Lang", "Package-Version", "OS", "Arch", "Runtime", "Async")),
        f"Authorization: Bearer {access.api_key}",
        f"Content-Length: {len(data)}",
    ]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + data


async def send(server: EndpointServer, request: bytes, calls: int) -> None:
    """Send a request so often, eight at a time, from another process."""
    command = (sys.executable, "-c", _CLIENT, str(server.port), str(calls))
    client = await asyncio.create_subprocess_exec(*command, stdin=subprocess.PIPE)
    await client.communicate(request)
    if client.returncode:
        raise SystemExit("a call failed")


async def cost(server: EndpointServer, sent: bytes, calls: int) -> float:
    """Milliseconds of CPU time of this process a call."""
    await send(server, sent, WARM_UP)
    began = time.process_time()
    await send(server, sent, calls)
    return (time.process_time() - began) / calls * 1000


async def main(calls: int = 1000) -> None:
    server = EndpointServer()
    await server.start()
    access = server.open(Ready(), "benchmark")
    print(f"{'':34}ms of CPU a call, of {calls}")
    worst = 0.0
    for path, body in BODIES.items():
        for stream in (False, True):
            ms = await cost(server, request(access, path, {**body, "stream": stream}), calls)
            worst = max(worst, ms)
            print(f"{path + (', streamed' if stream else ''):34}{ms:.3f}")
    tools = [{"type": "function", "function": tool} for tool in TOOLS]
    sent = request(access, "/chat/completions", {"messages": CHAT, "tools": tools})
    print(f"{f'/chat/completions, 20 tools, {len(sent) >> 10} KiB':34}{await cost(server, sent, calls):.3f}")
    await server.close()
    if worst > MAX_MS:
        raise SystemExit(f"more than {MAX_MS} ms")


if __name__ == "__main__":
    asyncio.run(main())
