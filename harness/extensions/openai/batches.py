"""Batches of a provider, at half its price (`batch=true`): requests go up in a file, and answers come down in others.

A batch is written down before each step that may cost something, so that a process that is killed at any point finds
it again: which requests it has, before their file goes up; the id of the file, before the batch is created; then the
id of the batch. One without an id may have been created all the same: it is looked for in the provider's list, by its
file and by its own name in the metadata. A request that is asked again after a resume gets the answer of the batch
that has it.

`BatchServer.post` gives what the provider answers to a request, so that all else of the engine is as without batches.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import re
import secrets
import sys
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict

from harness.api import Engine, Facts, Range
from harness.api.errors import EngineFatalError, RefusedError, SetupError, StorageError
from harness.extensions.openai.batch_calls import CREATED, Batch, BatchCalls, HaltedError, Limits
from harness.extensions.openai.pace import Pace
from harness.extensions.openai.replicas import Asked, Replica
from harness.extensions.openai.wire import GarbledError
from harness.storage import Journal, lines

_VOID = {"failed", "not created"}
"""Ends of batches that answer nothing."""
# OpenAI: code `token_limit_exceeded`, "Enqueued token limit reached for gpt-4o in organization …".
_FULL = re.compile(r"token_limit_exceeded|enqueued token", re.IGNORECASE)
_log = logging.getLogger(__name__)


class BatchOptions(TypedDict, total=False):
    """What `batch` may say in place of true."""

    poll: Annotated[float, Range(ge=0), "seconds between two questions how far a batch is (30)"]
    requests: Annotated[int, Range(ge=1), "the most requests of a batch (50,000)"]
    bytes: Annotated[int, Range(ge=1000), "the most bytes of its file (200,000,000)"]


class Batching(Engine):
    """What the engine `openai` has for batches."""

    batch: bool | BatchOptions
    base_url: str | list[str] | None
    timeout: float
    max_retries: int
    backoff: float
    max_backoff: float
    extra_body: dict[str, Any]

    _when_all_wait: Callable[[Callable[[], None]], None] | None = None
    _kept_in: Path | None = None
    _batches: BatchServer | None = None

    def check_batch(self) -> None:
        """Raises `SetupError` for what no batch can do."""
        if not self.collects:
            return
        if isinstance(self.base_url, list):
            hint = "Name one address, or leave batch out."
            raise SetupError("batch: a batch goes to one provider, and base_url names several servers", hint=hint)
        if self.extra_body.get("stream"):
            hint = "Leave stream out of extra_body."
            raise SetupError("batch: answers in a file cannot be streamed, and extra_body says stream", hint=hint)

    @property
    def collects(self) -> bool:
        return self.batch is not False

    def collect(self, when_all_wait: Callable[[Callable[[], None]], None], path: Path) -> None:
        self._when_all_wait, self._kept_in = when_all_wait, path

    @property
    def waiting_for(self) -> str:
        return self._batches.waiting_for if self._batches is not None else ""

    def batch_server(self, name: str, client: Any, line: Callable[[Exception], str]) -> BatchServer:
        """The provider. `line`: an error in words, without secrets."""
        given: BatchOptions = {} if isinstance(self.batch, bool) else self.batch
        if (when_all_wait := self._when_all_wait) is None:  # there is no run
            from harness.engines.waves import Waves

            when_all_wait = Waves().when_all_wait
        limits = Limits(
            given.get("poll", 30.0),
            given.get("requests", 50_000),
            given.get("bytes", 200_000_000),
            self.timeout,
            self.max_retries,
            self.backoff,
            self.max_backoff,
        )
        self._batches = BatchServer(name, client, limits, when_all_wait, self._kept_in, line)
        return self._batches


@dataclass
class _Collected:
    """A request that is in no batch yet: its endpoint, its line, and who waits."""

    path: str
    line: bytes
    answer: asyncio.Future[object]


class _AgainError(Exception):
    """The batch was not carried out: the request belongs into another one."""


class _AtOnce(Pace):
    """Lets every request go at once: into the next batch."""

    async def turn(self, ended: asyncio.Future[Exception], longest: float) -> float:
        return asyncio.get_running_loop().time()


class BatchServer(Replica):
    """A provider that is asked in batches.

    Args:
        name, client: as for `Replica`.
        limits: how it is asked.
        when_all_wait: as for `Engine.collect`.
        kept_in: where batches are written down; None: nowhere.
        line: an error in words.
    """

    def __init__(
        self,
        name: str,
        client: Any,
        limits: Limits,
        when_all_wait: Callable[[Callable[[], None]], None],
        kept_in: Path | None,
        line: Callable[[Exception], str],
    ) -> None:
        super().__init__(name, client, sys.maxsize)
        self.pace, self._limits, self._when_all_wait = _AtOnce(), limits, when_all_wait
        self._calls = BatchCalls(name, client, limits, line, self.counts)
        self._collected: dict[str, _Collected] = {}
        self._queue: deque[Batch] = deque()
        self._under_way: set[Batch] = set()
        self._known: defaultdict[str, deque[Batch]] = defaultdict(deque)  # request → earlier batches that have it
        self._room, self._full = sys.maxsize, 0  # bytes that may be under way at once
        self._kept_in, self._record = kept_in, None if kept_in is None else Journal(kept_in)

    # ------------------------------------------------------------------------------ one request

    async def post(self, path: str, body: Any, timeout: float, asked: Asked = ("", {})) -> object:
        """The JSON that answers a request, from the next batch, or from one of an earlier process that has it. Raises
        what the client would raise, and `HaltedError`."""
        key = _key(path, *asked)
        while True:
            if self._calls.ended.done():
                raise HaltedError
            if earlier := self._known.get(key):
                batch = earlier.popleft()
                answer = batch.answer_to(key)
                if batch.task is None:
                    self._begin(batch)
            else:
                answer = self._collect(key, path, body)
            try:
                return await answer
            except _AgainError:
                continue

    def _collect(self, key: str, path: str, body: Any) -> asyncio.Future[object]:
        while key in self._collected:  # where there is no run two requests may be one
            key += "+"
        line = {"custom_id": key, "method": "POST", "url": f"/v1{path}", "body": body}
        text = json.dumps(line, ensure_ascii=False, allow_nan=False)
        for character in "\x85\u2028\u2029":  # they end a line for some
            text = text.replace(character, f"\\u{ord(character):04x}")
        data = text.encode() + b"\n"
        if len(data) > self._limits.bytes:
            raise RefusedError(f"the request has {len(data):,} bytes, and a batch {self._limits.bytes:,} at most")
        answer: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._collected[key] = _Collected(path, data, answer)
        self._when_all_wait(self._send)
        return answer

    def _send(self) -> None:
        """Make batches of what is collected."""
        collected, self._collected = self._collected, {}
        apart: defaultdict[str, dict[str, _Collected]] = defaultdict(dict)
        for key, one in collected.items():
            if not one.answer.done():
                apart[one.path][key] = one
        for path, requests in apart.items():
            for part in self._parts(requests):
                data = b"".join(one.line for one in part.values())
                batch = Batch(secrets.token_hex(12), path, tuple(part), len(data), time.time(), data=data)
                batch.waiting = {key: one.answer for key, one in part.items()}
                self._queue.append(batch)
        self._start()

    def _parts(self, requests: Mapping[str, _Collected]) -> Iterable[dict[str, _Collected]]:
        """The requests, as many at a time as a batch may have."""
        part, size, most = dict[str, _Collected](), 0, min(self._limits.bytes, self._room)
        for key, one in requests.items():
            if part and (len(part) >= self._limits.requests or size + len(one.line) > most):
                yield part
                part, size = {}, 0
            part[key] = one
            size += len(one.line)
        if part:
            yield part

    def _start(self) -> None:
        """Begin batches, as many as there is room for."""
        while self._queue:
            size = sum(batch.size for batch in self._under_way)
            if self._under_way and size + self._queue[0].size > self._room:
                return
            self._begin(self._queue.popleft())

    def _begin(self, batch: Batch) -> None:
        self._under_way.add(batch)
        batch.task = asyncio.create_task(self._live(batch))

    # ------------------------------------------------------------------------------ the life of a batch

    async def _live(self, batch: Batch) -> None:
        """Create a batch, wait for its end, and give its answers to those who wait."""
        try:
            if not batch.id:
                await self._create(batch)
            seen = batch.end
            said = await self._calls.state(batch)
            batch.end = said["status"]
            _log.info("%s: %s", batch.id, batch.state)
            if batch.end == "failed":
                await self._sort_out(batch, said)
                return
            batch.lacking = _lacking(batch, self.name, is_new=not seen)
            answers = await self._calls.answers(batch, said)
            self._note(batch, end=batch.end)
            self._room, self._full = min(sys.maxsize, self._room + self._room // 10), 0
            batch.answers = answers
            batch.deliver()
        except HaltedError:
            batch.fail(HaltedError)
        except Exception as error:
            final = EngineFatalError(str(error)) if isinstance(error, StorageError) else error
            batch.fail(lambda: final)
        finally:
            self._under_way.discard(batch)
            self._start()

    async def _create(self, batch: Batch) -> None:
        """Send the file and create the batch."""
        self._note(batch, path=batch.path, ids=batch.ids, bytes=batch.size, at=batch.since, url=self.name)
        batch.file = await self._calls.upload(batch.name, batch.data)
        self._note(batch, file=batch.file)
        batch.id = await self._calls.create(batch)
        self._note(batch, id=batch.id)
        batch.data, batch.state = b"", CREATED
        self.counts["batches"] += 1
        _log.info("%s: %s requests sent", batch.id, f"{len(batch.ids):,}")

    async def _sort_out(self, batch: Batch, said: Mapping[str, Any]) -> None:
        """The provider has carried out nothing of a batch: ask again, without the requests that it refuses."""
        errors = said.get("errors")
        data = errors.get("data") if isinstance(errors, dict) else None
        entries = [one for one in data or () if isinstance(one, dict)]
        self._note(batch, end=batch.end)
        text = "; ".join(str(one.get("message") or one.get("code")) for one in entries[:3])[:1000] or "no reason given"
        if any(_FULL.search(f"{one.get('code')} {one.get('message')}") for one in entries):
            await self._make_room(batch, text)
        else:
            refused = {one["line"]: str(one.get("message"))[:1000] for one in entries if type(one.get("line")) is int}
            why = {key: refused[number] for number, key in enumerate(batch.ids, 1) if number in refused}
            if not why:
                raise EngineFatalError(f"{self.name} carries out nothing of {batch.id}: {text}")
            batch.answers = {key: RefusedError(f"{self.name} refuses the request: {one}") for key, one in why.items()}
        batch.answers, batch.lacking = batch.answers or {}, _AgainError
        batch.deliver()

    async def _make_room(self, batch: Batch, text: str) -> None:
        """The provider has no room for as many tokens as are under way: leave it to the others, or halve the batch."""
        self.counts["rate_limited"] += 1
        if others := sum(one.size for one in self._under_way if one is not batch):
            self._room = others
        elif len(batch.ids) > 1:
            self._room = batch.size // 2
        else:  # others use it up
            self._full += 1
            if self._full > self._limits.retries:
                raise EngineFatalError(f"{self.name} takes no batch: {text}")
            await asyncio.wait({self._calls.ended}, timeout=self._limits.poll)
        _log.warning("%s: %s Smaller batches follow, one after another.", batch.id, text)

    # ------------------------------------------------------------------------------ over processes

    def _note(self, batch: Batch, **facts: Any) -> None:
        """Write down what is known of a batch; returns when that outlives the process. Raises `StorageError`."""
        if self._record is not None:
            self._record.append({"name": batch.name, **facts})
            self._record.flush()

    async def begin(self, ended: asyncio.Future[Exception]) -> None:
        """Find the batches of earlier processes. `ended`: is done when the run is to end."""
        self._calls.ended = ended
        ended.add_done_callback(self._halt)
        batches = self._recorded()
        if lost := [batch for batch in batches if not batch.id]:
            found = await self._calls.find(lost)
            for batch in lost:
                if batch in found:
                    batch.id = found[batch]
                    self._note(batch, id=batch.id)
                    continue
                if batch.file:  # a creation that is still on its way then fails
                    await self._calls.forget(batch.file)
                self._note(batch, end="not created")
        there = [batch for batch in batches if batch.id]
        for batch in there:
            for key in batch.ids:
                self._known[key].append(batch)
        if names := [batch.id for batch in there if not batch.end]:
            _log.info("batches that an earlier process has sent: %s", _named(names))

    def _recorded(self) -> list[Batch]:
        """Batches of this provider that may have answers, in their order. Raises `DataError`."""
        batches: dict[str, Batch] = {}
        elsewhere = set()
        for _, line in lines(self._kept_in) if self._kept_in is not None else ():
            name = line["name"]
            if "ids" in line:
                batches[name] = Batch(name, line["path"], tuple(line["ids"]), line["bytes"], line["at"])
                elsewhere |= {name} if line["url"] != self.name else set()
            batch = batches[name]
            batch.file, batch.id, batch.end = (line.get(part, getattr(batch, part)) for part in ("file", "id", "end"))
        if left := [one.id or name for name, one in batches.items() if name in elsewhere and not one.end]:
            _log.warning("batches of another address than %s are not waited for: %s", self.name, _named(left))
        return [one for name, one in batches.items() if name not in elsewhere and one.end not in _VOID]

    def _halt(self, ended: object) -> None:
        """Wait for nothing any more."""
        for one in self._collected.values():
            if not one.answer.done():
                one.answer.set_exception(HaltedError())
        for batch in (*self._queue, *self._under_way):
            batch.fail(HaltedError)
        self._collected.clear()
        self._queue.clear()

    async def close(self) -> None:
        """Leave batches that are under way to a later process."""
        if self._kept_in is not None and (left := [batch for batch in self._under_way if batch.id]):
            count = f"{sum(len(batch.ids) for batch in left):,}"
            text = "%s requests stay with the provider (%s): the same command takes their answers"
            _log.warning(text, count, _named([batch.id for batch in left]))
        tasks = [batch.task for batch in self._under_way if batch.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await super().close()
        if self._record is not None:
            self._record.close()

    @property
    def waiting_for(self) -> str:
        """How far the batches are."""
        return _named([f"{batch.id or 'a new batch'}: {batch.state or CREATED}" for batch in self._under_way])

    def report(self) -> Facts:
        return {**super().report(), "batches": self.counts["batches"]}


def _named(names: list[str]) -> str:
    """The first of them, and how many more there are."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")


def _key(path: str, request: str, body: Mapping[str, Any]) -> str:
    """The `custom_id` of a request: the same whenever the run is repeated, however the body is then written."""
    text = json.dumps([path, request, body], sort_keys=True, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _lacking(batch: Batch, where: str, is_new: bool) -> Callable[[], Exception]:
    """The error of a request without an answer in a batch that has ended. `is_new`: no process saw the end before."""
    name = batch.id
    if batch.end == "expired":
        return lambda: GarbledError(f"{name} expired before it came to this request")
    if batch.end != "cancelled":
        return lambda: GarbledError(f"{name} has no answer to this request")
    if not is_new:
        return _AgainError
    return lambda: EngineFatalError(f"{name} was cancelled at {where}: the same command asks what is left again")
