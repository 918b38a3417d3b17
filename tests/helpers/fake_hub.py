"""A Hugging Face hub on loopback: creates data sets, takes files as LFS objects or inline, and keeps commits.

with FakeHub(token="hf_x") as hub:
    ...  # HF_ENDPOINT=hub.url
    hub.repos["me/runs"].files["README.md"]
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import yaml


@dataclass
class Repo:
    """A data set: whether it is private, its files, and the messages of its commits."""

    private: bool
    files: dict[str, bytes] = field(default_factory=dict)
    commits: list[str] = field(default_factory=list)


class FakeHub:
    """The server; `fails` maps the end of a path to the status that requests there get."""

    def __init__(self, token: str, fails: dict[str, int] | None = None) -> None:
        self.token, self.fails = token, fails or {}
        self.repos: dict[str, Repo] = {}
        self.objects: dict[str, bytes] = {}
        self.requests: list[str] = []
        hub = self

        class Handler(_Handler):
            server_hub = hub

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    def __enter__(self) -> FakeHub:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_hub: FakeHub

    def do_GET(self) -> None:
        self._handle()

    do_POST = do_PUT = do_HEAD = do_GET  # noqa: N815

    def log_message(self, *args: Any) -> None:
        """Say nothing."""

    def _handle(self) -> None:
        hub = self.server_hub
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path = self.path.partition("?")[0]
        hub.requests.append(f"{self.command} {path}")
        failure = next((status for end, status in hub.fails.items() if path.endswith(end)), None)
        if failure is not None:
            self._answer(failure, {"error": f"no, says {hub.token}"})
        elif self.command == "PUT" and path.startswith("/objects/"):
            hub.objects[path.removeprefix("/objects/")] = body
            self._answer(200, {})
        elif self.headers.get("Authorization") != f"Bearer {hub.token}":
            self._answer(401, {"error": "Invalid username or password."})
        elif path == "/api/validate-yaml":
            front = json.loads(body)["content"].split("---")[1]
            faults = [] if isinstance(yaml.safe_load(front), dict) else [{"message": "no mapping"}]
            self._answer(400 if faults else 200, {"errors": faults, "warnings": []})
        elif path == "/api/repos/create":
            self._create(json.loads(body))
        elif match := re.fullmatch(r"/api/datasets/([^/]+/[^/]+)/preupload/main", path):
            files = [
                {"path": file["path"], "uploadMode": _mode(file["path"]), "shouldIgnore": False}
                for file in json.loads(body)["files"]
            ]
            self._answer(200, {"files": files}) if match[1] in hub.repos else self._answer(404, {})
        elif path.endswith(".git/info/lfs/objects/batch"):
            objects = [
                {**entry, "actions": {"upload": {"href": f"{hub.url}/objects/{entry['oid']}"}}}
                for entry in json.loads(body)["objects"]
            ]
            self._answer(200, {"transfer": "basic", "objects": objects})
        elif match := re.fullmatch(r"/api/datasets/([^/]+/[^/]+)/commit/main", path):
            self._commit(match[1], [json.loads(line) for line in body.splitlines()])
        else:
            self._answer(404, {"error": "not found"})

    def _create(self, wanted: dict[str, Any]) -> None:
        name = f"{wanted.get('organization') or 'me'}/{wanted['name']}"
        address = {"url": f"{self.server_hub.url}/datasets/{name}"}
        if name in self.server_hub.repos:
            self._answer(409, {"error": "You already created this dataset repo", **address})
            return
        private = wanted.get("private", wanted.get("visibility") == "private")
        self.server_hub.repos[name] = Repo(bool(private))
        self._answer(200, address)

    def _commit(self, name: str, lines: list[dict[str, Any]]) -> None:
        repo = self.server_hub.repos[name]
        for line in lines:
            value = line["value"]
            if line["key"] == "header":
                repo.commits.append(value["summary"])
            elif line["key"] == "file":
                repo.files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                data = self.server_hub.objects[value["oid"]]
                assert hashlib.sha256(data).hexdigest() == value["oid"]
                repo.files[value["path"]] = data
        self._answer(200, {"commitOid": "0" * 40, "commitUrl": f"{self.server_hub.url}/datasets/{name}/commit/0"})

    def _answer(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _mode(path: str) -> str:
    return "lfs" if path.endswith(".parquet") else "regular"
