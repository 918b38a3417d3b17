"""A stand-in for the package xllamacpp: a server with llama.cpp's addresses, whose model says one sentence.

It answers `ANSWERS` requests (an environment variable; without it all) and then dies.
"""

import json
import os
import signal
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

_left = [int(os.environ.get("ANSWERS", 1_000_000))]


class CommonParams:
    def __init__(self) -> None:
        self.model, self.cpuparams, self.cpuparams_batch = SimpleNamespace(), SimpleNamespace(), SimpleNamespace()
        self.model_alias: set[str] = set()


class Server:
    def __init__(self, parameters: Any) -> None:
        if not Path(parameters.model.path).read_bytes().startswith(b"GGUF"):
            raise RuntimeError("invalid magic characters")
        (name,) = parameters.model_alias

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                if self.path == "/v1/models":
                    self._send({"data": [{"id": name, "owned_by": "llamacpp"}]})
                else:
                    slots = {"total_slots": parameters.n_parallel, "chat_template_caps": {"supports_tools": False}}
                    self._send({**slots, "default_generation_settings": {"n_ctx": parameters.n_ctx}})

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                if not _left[0]:
                    os.kill(os.getpid(), signal.SIGKILL)
                _left[0] -= 1
                message = {"role": "assistant", "content": "The answer is 4."}
                usage = {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}
                self._send({"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage})

            def log_message(self, *_: Any) -> None: ...

            def _send(self, answer: dict[str, Any]) -> None:
                data = json.dumps(answer).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.listening_address = f"http://127.0.0.1:{server.server_port}"
