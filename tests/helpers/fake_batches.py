"""A provider with batches on loopback, as OpenAI documents them, whose model says what `FakeOpenAI` is told.

A batch gets one state further whenever it is asked for. `faults(body)` fails a line of it in place of a request.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.helpers.fake_openai import Body, FakeOpenAI, Fault, chat, completion

ON_THE_WAY = ("validating", "in_progress", "finalizing")


@dataclass
class FakeBatch:
    """A batch: what its object says, and its lines."""

    facts: Body
    lines: list[Body]
    path: list[str]
    outputs: list[Body] = field(default_factory=list)
    errors: list[Body] = field(default_factory=list)


class FakeBatches(FakeOpenAI):
    """See the module.

    Args:
        answer, more: as for `FakeOpenAI`; `bodies` are those of lines that were carried out.
        most: requests of a batch; more make it fail.
        room: bytes of files that may be under way; more make a batch fail.
        expires: which batches (by number, from 0) expire after how many of their requests.
        cancels: the same for batches that someone cancels.
        refuses: lines that make a batch fail when it is validated, by their body.
        creations, uploads, polls, downloads: faults of the next such requests, in place of an answer.
        lost: how many creations are carried out without an answer.
        forgets_metadata: whether batches keep no metadata.
        on: called with each event: "upload", "uploaded", "create", "created", "poll", "download".

    Attributes:
        batches: in their order.
        files: id → content.
        paid: `custom_id` of each line that was answered.
    """

    def __init__(
        self,
        answer: Callable[[Body], str | Body] = lambda body: "hello",
        *,
        most: int = 50_000,
        room: int = 1 << 40,
        expires: dict[int, int] | None = None,
        cancels: dict[int, int] | None = None,
        refuses: Callable[[Body], bool] = lambda body: False,
        creations: Sequence[Fault] = (),
        uploads: Sequence[Fault] = (),
        polls: Sequence[Fault] = (),
        downloads: Sequence[Fault] = (),
        lost: int = 0,
        forgets_metadata: bool = False,
        on: Callable[[str], None] = lambda event: None,
        **more: Any,
    ) -> None:
        super().__init__(answer, **more)
        self.most, self.room, self.expires, self.cancels = most, room, expires or {}, cancels or {}
        self.refuses, self.lost, self.forgets_metadata, self.on = refuses, lost, forgets_metadata, on
        self.faults_of = {"create": [*creations], "upload": [*uploads], "poll": [*polls], "download": [*downloads]}
        self.batches: list[FakeBatch] = []
        self.files: dict[str, bytes] = {}
        self.paid: list[str] = []

    @property
    def sizes(self) -> list[int]:
        """How many requests each batch had."""
        return [len(batch.lines) for batch in self.batches]

    def route(self, router: web.UrlDispatcher) -> None:
        super().route(router)
        router.add_post("/v1/files", self._upload)
        router.add_delete("/v1/files/{id}", self._delete)
        router.add_get("/v1/files/{id}/content", self._download)
        router.add_post("/v1/batches", self._create)
        router.add_get("/v1/batches", self._list_batches)
        router.add_get("/v1/batches/{id}", self._poll)

    async def _fault(self, event: str, request: web.Request) -> web.StreamResponse | None:
        self.on(event)
        if self._refused(request):
            return web.json_response({"error": {"message": "bad key"}}, status=401)
        return await faults.pop(0)(self, request) if (faults := self.faults_of[event]) else None

    async def _upload(self, request: web.Request) -> web.StreamResponse:
        form = await request.post()
        if (fault := await self._fault("upload", request)) is not None:
            return fault
        file = form["file"]
        assert form["purpose"] == "batch" and isinstance(file, web.FileField)
        name = f"file-{len(self.files)}"
        self.files[name] = file.file.read()
        self.on("uploaded")
        facts = {"id": name, "object": "file", "bytes": len(self.files[name]), "filename": file.filename}
        return web.json_response({**facts, "purpose": "batch", "created_at": 1, "status": "processed"})

    async def _delete(self, request: web.Request) -> web.StreamResponse:
        self.files[request.match_info["id"]] = b""
        return web.json_response({"id": request.match_info["id"], "object": "file", "deleted": True})

    async def _create(self, request: web.Request) -> web.StreamResponse:
        wanted = await request.json()
        if (fault := await self._fault("create", request)) is not None:
            return fault
        assert wanted["completion_window"] == "24h"
        lines = [json.loads(line) for line in self.files[wanted["input_file_id"]].splitlines()]
        assert len({line["custom_id"] for line in lines}) == len(lines) > 0
        assert all(line["method"] == "POST" and line["url"] == wanted["endpoint"] for line in lines)
        facts = {
            "id": f"batch_{len(self.batches)}",
            "object": "batch",
            "endpoint": wanted["endpoint"],
            "input_file_id": wanted["input_file_id"],
            "completion_window": "24h",
            "created_at": 10**10 + len(self.batches),
            "status": "validating",
            "metadata": None if self.forgets_metadata else wanted.get("metadata"),
            "request_counts": {"total": 0, "completed": 0, "failed": 0},
        }
        self.batches.append(FakeBatch(facts, lines, [*ON_THE_WAY]))
        self.on("created")
        if self.lost:
            self.lost -= 1
            assert request.transport is not None
            request.transport.abort()
        return web.json_response(facts)

    async def _list_batches(self, request: web.Request) -> web.StreamResponse:
        rows = [batch.facts for batch in reversed(self.batches)]
        names = [row["id"] for row in rows]
        start = names.index(request.query["after"]) + 1 if "after" in request.query else 0
        page = rows[start : start + 2]  # few, so that there are several pages
        return web.json_response({"object": "list", "data": page, "has_more": start + 2 < len(rows)})

    async def _poll(self, request: web.Request) -> web.StreamResponse:
        if (fault := await self._fault("poll", request)) is not None:
            return fault
        number = int(request.match_info["id"].removeprefix("batch_"))
        batch = self.batches[number]
        if batch.path:
            batch.facts["status"] = batch.path.pop(0)
        elif batch.facts["status"] == "finalizing":
            await self._finish(number, batch, request)
        if batch.facts["status"] == "in_progress" and (errors := self._invalid(batch)):
            batch.facts |= {"status": "failed", "errors": {"object": "list", "data": errors}}
            batch.path.clear()
        return web.json_response(batch.facts)

    def _invalid(self, batch: FakeBatch) -> list[Body]:
        others = [one for one in self.batches if one is not batch and one.facts["status"] in ON_THE_WAY]
        size = sum(len(self.files[one.facts["input_file_id"]]) for one in (batch, *others))
        if size > self.room:
            words = "Enqueued token limit reached for fake in organization org-1. Limit: 900 enqueued tokens. Please "
            words += "try again once some in_progress batches have been completed."
            return [{"code": "token_limit_exceeded", "line": None, "message": words, "param": None}]
        if len(batch.lines) > self.most:
            return [{"code": "too_many_requests_in_batch", "line": None, "message": f"at most {self.most} requests"}]
        wrong = [number for number, line in enumerate(batch.lines, 1) if self.refuses(line["body"])]
        return [{"code": "invalid_request", "line": n, "message": "not so", "param": "body"} for n in wrong]

    async def _finish(self, number: int, batch: FakeBatch, request: web.Request) -> None:
        """Carry out the lines; results come in another order."""
        end = self.expires.get(number, self.cancels.get(number))
        for position, line in enumerate(batch.lines):
            made: Body = {"id": f"batch_req_{number}_{position}", "custom_id": line["custom_id"]}
            if end is not None and position >= end:
                code = "batch_expired" if number in self.expires else "batch_cancelled"
                batch.errors.append({**made, "response": None, "error": {"code": code, "message": "not executed"}})
                continue
            status, body = await self._carry_out(line["body"], line["url"], request)
            response = {"status_code": status, "request_id": made["id"], "body": body}
            (batch.outputs if status == 200 else batch.errors).append({**made, "response": response, "error": None})
            if status == 200:
                self.paid.append(line["custom_id"])
        facts = batch.facts
        ends = {**dict.fromkeys(self.expires, "expired"), **dict.fromkeys(self.cancels, "cancelled")}
        facts["status"] = ends.get(number, "completed")
        facts["request_counts"] = {
            "total": len(batch.lines),
            "completed": len(batch.outputs),
            "failed": len(batch.errors),
        }
        for name, lines in (("output_file_id", batch.outputs), ("error_file_id", batch.errors)):
            if lines:
                facts[name] = f"file-{len(self.files)}"
                self.files[facts[name]] = b"".join(json.dumps(line).encode() + b"\n" for line in reversed(lines))

    async def _carry_out(self, body: Body, url: str, request: web.Request) -> tuple[int, Any]:
        """The status and the body that one request gets."""
        self.bodies.append(body)
        fault = self.script.pop(0) if self.script else self.faults(body)
        if fault:
            response = await fault(self, request)
            assert isinstance(response, web.Response) and response.body is not None
            return response.status, json.loads(bytes(response.body))  # type: ignore[arg-type]
        said = self.answer(body)
        if isinstance(said, dict) and "choices" in said:
            return 200, said
        return 200, completion(str(said)) if url == "/v1/completions" else chat(said)

    async def _download(self, request: web.Request) -> web.StreamResponse:
        if (fault := await self._fault("download", request)) is not None:
            return fault
        return web.Response(body=self.files[request.match_info["id"]], content_type="application/octet-stream")
