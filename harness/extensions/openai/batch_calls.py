"""A provider's files and batches: requests about them, tried again until they are answered, and what comes back."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from harness.api.errors import EngineError, EngineFatalError
from harness.extensions.openai.pace import Pace
from harness.extensions.openai.refusals import is_limit, refusal
from harness.extensions.openai.replicas import as_json
from harness.extensions.openai.wire import GarbledError, count_of

T = TypeVar("T")
MARK = "harness_batch"
"""The key of a batch's metadata that holds the harness's own name for it."""
CREATED = "created"
_ENDED = {"completed", "failed", "expired", "cancelled"}
_UNTRIED = {"batch_expired", "batch_cancelled"}
"""OpenAI's codes of requests that a batch did not come to."""
_LOST = 120
"""How often in a row a provider may not say how far a batch is: an hour, at the default pace."""
_SLACK = 24 * 3600.0
"""Seconds by which clocks may differ: a batch that is older by that than the one looked for is not that one."""
_MOST_PAGES = 200


class HaltedError(Exception):
    """The run is to end: a batch is not waited for."""


@dataclass(frozen=True)
class Limits:
    """How a provider is asked.

    Attributes:
        poll: seconds between two questions how far a batch is.
        requests, bytes: the most of a batch.
        timeout, retries, backoff, max_backoff: of a request about files and batches, as for the engine.
    """

    poll: float
    requests: int
    bytes: int
    timeout: float
    retries: int
    backoff: float
    max_backoff: float


@dataclass(eq=False)
class Batch:
    """A batch, from when its requests are collected.

    Attributes:
        name: the harness's own.
        path: the endpoint of its requests.
        ids: `custom_id` of its requests, in the order of the file.
        size: bytes of the file.
        since: when it was made, in seconds since 1970.
        id, file: the provider's names for it and its file; "" while there is none.
        end: how it ended, as far as an earlier process saw it.
        data: the file, until the batch is created.
        state: what the provider says of it, in words; "" while this process has not asked.
        waiting: `custom_id` → who waits for its answer.
        answers: `custom_id` → answer that was not asked for yet; None until they are there.
        lacking: the error of a request that has none of them.
        task: does what is to be done; None until someone waits.
    """

    name: str
    path: str
    ids: tuple[str, ...]
    size: int
    since: float
    id: str = ""
    file: str = ""
    end: str = ""
    data: bytes = b""
    state: str = ""
    waiting: dict[str, asyncio.Future[object]] = field(default_factory=dict)
    answers: dict[str, object] | None = None
    lacking: Callable[[], Exception] = HaltedError
    task: asyncio.Task[None] | None = None

    def answer_to(self, request: str) -> asyncio.Future[object]:
        """What it answers, or will."""
        answer = self.waiting.setdefault(request, asyncio.get_running_loop().create_future())
        if self.answers is not None:
            self.deliver()
        return answer

    def deliver(self) -> None:
        """Give the answers to those who wait for them."""
        assert self.answers is not None
        waiting, self.waiting = self.waiting, {}
        for request, answer in waiting.items():
            found = self.answers.pop(request, None)
            found = self.lacking() if found is None else found
            if not answer.done() and isinstance(found, Exception):
                answer.set_exception(found)
            elif not answer.done():
                answer.set_result(found)

    def fail(self, error: Callable[[], Exception]) -> None:
        """There will be no answers."""
        self.answers, self.lacking = {}, error
        self.deliver()


class BatchCalls:
    """Requests about files and batches.

    All of them raise `EngineFatalError` where the provider answers none, `HaltedError` where the run is to end, and an
    `APIStatusError` about the key.

    Args:
        name, client: the provider, and its client.
        limits: how it is asked.
        line: an error in words, without secrets.
        counts: where refusals for the rate are counted.

    Attributes:
        ended: is done when the run is to end.
    """

    def __init__(
        self, name: str, client: Any, limits: Limits, line: Callable[[Exception], str], counts: Counter[str]
    ) -> None:
        self.name, self.client, self.limits, self._line, self._counts = name, client, limits, line, counts
        self.ended: asyncio.Future[Exception] = asyncio.get_running_loop().create_future()
        self._pace = Pace()

    async def upload(self, name: str, data: bytes) -> str:
        """Send a file of requests; returns its id."""

        async def send() -> str:
            file = (f"{name}.jsonl", data, "application/jsonl")
            return _id(await self.client.files.create(file=file, purpose="batch"))

        return await self._ask(send)

    async def create(self, batch: Batch) -> str:
        """Create a batch whose file is there; returns its id. One whose creation was not confirmed is looked for before
        it is tried again."""
        body = {
            "input_file_id": batch.file,
            "endpoint": f"/v1{batch.path}",
            "completion_window": "24h",
            "metadata": {MARK: batch.name},
        }

        async def send() -> str:
            return _id(await self.client.post("/batches", cast_to=object, body=body))

        async def look() -> str | None:
            return (await self._list([batch])).get(batch)

        return await self._ask(send, look)

    async def find(self, batches: Collection[Batch]) -> dict[Batch, str]:
        """The ids of those of the batches that the provider has."""
        return await self._ask(lambda: self._list(batches))

    async def forget(self, file: str) -> None:
        """Delete a file, so that no batch of it can begin any more."""
        import openai

        with contextlib.suppress(openai.OpenAIError, TimeoutError):
            async with asyncio.timeout(self.limits.timeout):
                await self.client.files.delete(file)

    async def state(self, batch: Batch) -> dict[str, Any]:
        """What the provider says of a batch, once it has ended."""
        lost = 0
        while True:
            if batch.state:  # else it may have ended already
                await asyncio.wait({self.ended}, timeout=self.limits.poll)
            if self.ended.done():
                raise HaltedError
            try:
                async with asyncio.timeout(self.limits.timeout):
                    said = _object(await self.client.get(f"/batches/{batch.id}", cast_to=object))
            except Exception as error:
                lost += 1
                if not _passes(error) or lost > _LOST:
                    raise self._final(error, f"does not say how far {batch.id} is") from error
                batch.state = "unknown"
                continue
            lost = 0
            said["status"] = str(said.get("status")).lower()[:40].replace("canceled", "cancelled")
            batch.state = said["status"] + _counted(said.get("request_counts"))
            if said["status"] in _ENDED:
                return said

    async def answers(self, batch: Batch, said: Mapping[str, Any]) -> dict[str, object]:
        """`custom_id` → the body of a response, the error that the client would raise in place of it, or None where the
        batch did not come to the request: from the files of outputs and of errors, in whatever order."""
        found, wanted = dict[str, object](), frozenset(batch.ids)

        async def read() -> bool:
            async with self.client.files.with_streaming_response.content(file) as response:
                async for text in response.iter_lines():
                    line = as_json(text)
                    name = line.get("custom_id") if isinstance(line, dict) else None
                    if isinstance(name, str) and name in wanted:
                        found.setdefault(name, _answer(line, self.client, response.http_response))
            return True

        for file in (said.get("output_file_id"), said.get("error_file_id")):
            if isinstance(file, str) and file:
                await self._ask(read)
        return found

    # ------------------------------------------------------------------------------ one request

    async def _ask(self, make: Callable[[], Awaitable[T]], look: Callable[[], Awaitable[T | None]] | None = None) -> T:
        """What `make` returns, once the provider answers. `look` finds what a request has made whose answer was
        lost."""
        limits, attempt = self.limits, 0
        while True:
            sent = await self._pace.turn(self.ended, limits.max_backoff)
            if self.ended.done():
                raise HaltedError
            try:
                async with asyncio.timeout(limits.timeout):
                    answer = await make()
                self._pace.answered()
                return answer
            except Exception as error:
                if is_limit(error):
                    self._counts["rate_limited"] += 1
                    self._pace.limited(error, sent, limits.backoff, limits.max_backoff)
                    if self._pace.refuses_all(limits.retries, limits.retries * limits.max_backoff):
                        raise self._final(error, "limits the rate, and takes no batch") from error
                    continue
                if attempt >= limits.retries or not _passes(error):
                    raise self._final(error, "takes no batch") from error
            attempt += 1
            await asyncio.wait({self.ended}, timeout=min(limits.max_backoff, limits.backoff * 2.0**attempt))
            if look is not None and (found := await self._ask(look)) is not None:
                return found

    async def _list(self, batches: Collection[Batch]) -> dict[Batch, str]:
        """As `find`: the provider lists the newest first."""
        names, files = {one.name: one for one in batches}, {one.file: one for one in batches if one.file}
        oldest = min(one.since for one in batches) - _SLACK
        found: dict[Batch, str] = {}
        query: dict[str, Any] = {"limit": 100}
        for _ in range(_MOST_PAGES):
            page = _object(await self.client.get("/batches", cast_to=object, options={"params": query}))
            rows = [row for row in page.get("data") or () if isinstance(row, dict)]
            for row in rows:
                marks = row.get("metadata")
                mark = marks.get(MARK) if isinstance(marks, dict) else None
                batch = names.get(str(mark)) or files.get(str(row.get("input_file_id")))
                if batch is not None:
                    found[batch] = _id(row)
            made = [row["created_at"] for row in rows if type(row.get("created_at")) in (int, float)]
            is_old = bool(made) and max(made) < oldest
            if not rows or not page.get("has_more") or is_old or len(found) == len(names):
                break
            query["after"] = _id(rows[-1])
        return found

    def _final(self, error: Exception, what: str) -> Exception:
        """What to raise where a request has failed for good."""
        status = getattr(error, "status_code", None)
        if isinstance(error, EngineError | HaltedError) or status in (401, 402, 403):
            return error
        more = "; has it /v1/files and /v1/batches? Without them leave batch out" if status in (404, 405) else ""
        return EngineFatalError(f"{self.name} {what}: {self._line(error)}{more}")


def _object(data: Any) -> dict[str, Any]:
    """A JSON object. Raises `GarbledError`."""
    data = as_json(data)
    if not isinstance(data, dict):
        raise GarbledError(f"the server's response is no JSON object: {str(data)[:200]!r}")
    return data


def _id(data: Any) -> str:
    """The provider's name of a file or batch. Raises `GarbledError`."""
    data = as_json(data)
    name = data.get("id") if isinstance(data, dict) else getattr(data, "id", None)
    if not isinstance(name, str) or not re.fullmatch(r"[\w.:-]{1,200}", name):
        raise GarbledError(f"the server's response names no id: {str(data)[:200]!r}")
    return name


def _counted(counts: Any) -> str:
    """How many requests are done, in words."""
    numbers = [count_of(counts.get(name)) for name in _COUNTS] if isinstance(counts, dict) else []
    done, failed, total = numbers or (None, None, None)
    return "" if done is None or failed is None or total is None else f", {done + failed:,}/{total:,} requests"


_COUNTS = ("completed", "failed", "total")


def _passes(error: Exception) -> bool:
    """Whether another try may help."""
    return is_limit(error) or (not isinstance(error, EngineError | HaltedError) and refusal(error) is None)


def _answer(line: Mapping[str, Any], client: Any, where: Any) -> object:
    """What stands in a line, as in `BatchCalls.answers`. `where`: the response with the file."""
    response, error = line.get("response"), line.get("error")
    if not isinstance(response, dict):
        if isinstance(error, dict) and error.get("code") in _UNTRIED:
            return None
        return GarbledError(f"the batch has no response: {str(error)[:2000]}")
    status, body = response.get("status_code"), as_json(response.get("body"))
    if type(status) is not int or not 400 <= status <= 599:
        return {} if body is None else body
    # The client's own way, so that the error says the same as without a batch.
    answered = type(where)(status, json=body, request=where.request)
    return client._make_status_error_from_response(answered)
