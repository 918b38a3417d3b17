"""Servers of one model side by side: which of them is asked, which are unhealthy, and which keys they get."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import time
from collections import Counter, deque
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

from harness.api import Facts, Thread
from harness.api.errors import SetupError
from harness.extensions.openai.pace import Pace
from harness.extensions.openai.refusals import lacks_model
from harness.extensions.openai.streams import is_stream, joined
from harness.extensions.openai.wire import ID_HEADER, GarbledError, check_id, web_page
from harness.plugins.approvals import NeedsApproval
from harness.plugins.needed_approval import NeededApproval

PROBE = 20.0  # seconds for a probe of a server
KEY = "OPENAI_API_KEY"
"""The variable of the provider's own key."""
WINDOWS = ("max_model_len", "context_length", "context_window", "max_context_length")
"""Names of a model's context window in lists of models: vLLM's and SGLang's; OpenRouter's and Together's; Groq's;
Mistral's and LM Studio's."""
_HEADERS = ("OPENAI_CUSTOM_HEADERS", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID")
"""Variables that the package `openai` sends with every request, wherever it goes."""
_SUMS = ("retries", "failures", "rate_limited", "batches")
_RETRY_AFTER = 30.0  # seconds after which one request tries an unhealthy server
_numbers = count()
_REMEMBERED = 1024
"""Answers of a server that are remembered, for requests that wait behind them."""
Asked = tuple[str, Mapping[str, Any]]
"""A request, before it is written for a server: its id, and its body."""
_log = logging.getLogger(__name__)


class AskAnotherError(Exception):
    """This server has no answer to a request; another one may."""


class Replica:
    """One server: its client, its load, its record.

    Args:
        name: its address without secrets.
        client: the `openai` package's client for it.
        slots: the most requests in flight there.

    Attributes:
        most: the same.
        load: requests in flight there, or waiting for a slot.
        unhealthy: why it is not asked; None if it is.
        consecutive_failures: requests in a row that another server had to answer, though this one is there.
        listed: the models that it lists.
        limits: model → tokens that it takes, as far as the server says so.
        works_on: how many requests it works on at once, if it says so.
        in_flight: requests that it has.
        pace: how fast it is asked.
        is_llama: whether it is llama.cpp's server.
        renders_tools: whether the chat template of its model has tools, if it says so (llama.cpp's server).
        bounds_replies: whether it leaves as many tokens to a reply as the window has, where none are asked for.
    """

    def __init__(self, name: str, client: Any, slots: int) -> None:
        self.name, self.client = name, client
        self.most, self.slots = slots, asyncio.Semaphore(slots)
        self.load = self.consecutive_failures = 0
        self.unhealthy: str | None = None
        self.since = 0.0  # when it became unhealthy, or was tried last
        self.listed: list[str] = []
        self.limits: dict[str, int] = {}
        self.works_on: int | None = None
        self.in_flight = 0
        self._id = str(uuid4())[:-12]
        self._sent, self._answered = count(), deque[tuple[int, float]](maxlen=_REMEMBERED)
        self.is_llama = self.bounds_replies = False
        self.renders_tools: bool | None = None
        self.pace = Pace()
        self.counts: Counter[str] = Counter()

    async def probe(self, timeout: float) -> list[str]:
        """The models that the server lists; none if it has no such list. Raises what the client raises, and
        `GarbledError` for a web page."""
        import openai

        try:
            async with asyncio.timeout(min(PROBE, timeout)):  # the client's own starts again with every byte
                data = as_json(await self.client.get("/models", cast_to=object))
        except openai.APIStatusError as error:
            if error.status_code in (404, 405, 429, 501):  # it answers, only not this
                return []
            raise
        if (page := web_page(data)) is not None:
            raise GarbledError(page)
        rows = data.get("data") if isinstance(data, dict) else None
        models = [r for r in rows or [] if isinstance(r, dict) and isinstance(r.get("id"), str)]
        self.is_llama = any(row.get("owned_by") == "llamacpp" for row in models)
        limits = {r["id"]: next((r[word] for word in WINDOWS if r.get(word)), None) for r in models}
        self.limits = {name: limit for name, limit in limits.items() if type(limit) is int and limit > 2}
        self.bounds_replies = any("max_model_len" in row for row in models)
        return [r["id"] for r in models]

    async def refuses_model(self, model: str, timeout: float) -> bool:
        """Whether it refuses a model. Not all list every name that they take, so one token is asked for where it lists
        others."""
        if not self.listed or model in self.listed:
            return False
        body = {"model": model, "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}
        try:
            async with asyncio.timeout(min(PROBE, timeout)):
                named = {"headers": self.headers()}
                await self.client.post("/chat/completions", cast_to=object, body=body, options=named)
        except Exception as error:
            return lacks_model(error)
        return False

    async def read_slots(self, timeout: float) -> None:
        """Ask llama.cpp's server how many requests it works on at once (slots) and how many tokens each may have; send
        it no more than these; and whether its model's template has tools. Other servers are not asked, and one that
        does not say it is like them."""
        import openai

        if not self.is_llama:
            return
        address = str(self.client.base_url).rstrip("/").removesuffix("/v1") + "/props"
        data: Any = None
        with contextlib.suppress(openai.OpenAIError, TimeoutError):
            async with asyncio.timeout(min(PROBE, timeout)):
                data = as_json(await self.client.get(address, cast_to=object))
        facts = data if isinstance(data, dict) else {}
        slots, settings = facts.get("total_slots"), facts.get("default_generation_settings")
        tokens = settings.get("n_ctx") if isinstance(settings, dict) else None
        template = facts.get("chat_template_caps")
        self.renders_tools = template.get("supports_tools") if isinstance(template, dict) else None
        if type(slots) is int and slots > 0:
            self.works_on = slots
            self.slots = asyncio.Semaphore(min(slots, self.most))
        if type(tokens) is int and tokens > 2:
            self.limits = dict.fromkeys(self.listed, tokens)
        if facts and self.window:
            _log.info("%s: %s", self.name, self.window)

    @property
    def window(self) -> str:
        """What each request of llama.cpp's server may have, in words; "" where it does not say."""
        tokens = next(iter(self.limits.values()), None)
        if self.works_on is None or tokens is None:
            return ""
        slots = f"{self.works_on:,} slot{'s' * (self.works_on > 1)}"
        return f"{slots} (-np) of {tokens:,} tokens each, prompt and reply together (-c divided by -np)"

    def most_tokens(self, model: str, body: Mapping[str, Any]) -> int | None:
        """The most tokens of a reply to ask for, by the window that it lists: 0 leaves them to the server, as more were
        asked for than any prompt leaves; None: as many as the body says."""
        window, asked = self.limits.get(model), body.get("max_tokens")
        return 0 if self.bounds_replies and window and type(asked) is int and asked >= window else None

    async def post(self, path: str, body: Any, timeout: float, asked: Asked = ("", {})) -> object:
        """The JSON that the server answers. Raises what the client raises, and `TimeoutError`.

        A server works on a few requests at once, and the others wait in their order. So the time runs from when a
        request that was sent before this one was answered last: until then this one may have waited. `asked` is what
        was written for this server as `body`.
        """
        loop = asyncio.get_running_loop()
        number, sent = next(self._sent), loop.time()
        name = self._name(number)
        named = {"headers": {ID_HEADER: name}}
        timer: asyncio.TimerHandle | None = None
        self.in_flight += 1
        try:
            async with asyncio.timeout(None) as clock:

                def check() -> None:
                    nonlocal timer
                    began = max(sent, next((when for other, when in reversed(self._answered) if other < number), sent))
                    if began + timeout > loop.time():
                        timer = loop.call_at(began + timeout, check)
                    else:
                        clock.reschedule(loop.time())

                timer = loop.call_at(sent + timeout, check)
                try:
                    data = as_json(await self.client.post(path, cast_to=object, body=body, options=named))
                finally:
                    timer.cancel()
        except TimeoutError:
            others = f"; it had {self.in_flight:,} requests at once" if self.in_flight > 1 else ""
            advice = ": where it works on few, give a lower --max_concurrency, or a longer timeout=" if others else ""
            raise TimeoutError(f"no whole answer within {timeout:g} s{others}{advice}") from None
        finally:
            self.in_flight -= 1
        while self._answered and self._answered[-1][0] > number:  # whoever waits behind these waits behind this one too
            self._answered.pop()
        self._answered.append((number, loop.time()))
        check_id(name, data.get("id") if isinstance(data, dict) else None)
        return data

    def _name(self, number: int) -> str:
        """The name of a request: a UUID, since some servers refuse all others. Its last twelve digits are the number,
        and what stands before them is the same for all requests to this server."""
        return f"{self._id}{number:012x}"

    def headers(self) -> dict[str, str]:
        """What goes with a request that is not sent by `post`: its name."""
        return {ID_HEADER: self._name(next(self._sent))}

    async def close(self) -> None:
        """Release the connections."""
        await self.client.close()

    def mark_healthy(self) -> None:
        """It answers."""
        self.unhealthy, self.consecutive_failures = None, 0

    def mark_unhealthy(self, reason: str) -> None:
        """Ask the other replicas from now on."""
        if self.unhealthy is None:
            self.counts["outages"] += 1
        self.unhealthy, self.since = reason, time.monotonic()

    def report(self) -> Facts:
        """What became of its requests, how often it became unhealthy, and why it is."""
        counts = {name: self.counts[name] for name in ("requests", "retries", "failures", "outages")}
        counts |= {"rate_limited": limited} if (limited := self.counts["rate_limited"]) else {}
        return {"base_url": self.name, **counts, **({"unhealthy": self.unhealthy} if self.unhealthy else {})}


class Replicas:
    """The servers of a model. A conversation stays where it is, since that server holds its prefix in its cache; a new
    one goes where least is in flight. An unhealthy one is asked nothing, but for a request now and then that finds out
    whether it is back."""

    def __init__(self, servers: Sequence[Replica]) -> None:
        self.all = tuple(servers)
        self._key = f"replica/{next(_numbers)}"  # its address may be given again

    def choose(self, thread: Thread, tried: Container[Replica] = ()) -> Replica:
        """The server for this conversation, of those not `tried`; where all are unhealthy one of them all the same."""
        current: Replica | None = thread.memo.get(self._key)
        if current is not None and current.unhealthy is None and current not in tried:
            return current
        now = time.monotonic()
        untried = [one for one in self.all if one not in tried]
        due = [one for one in untried if one.unhealthy is not None and now - one.since > _RETRY_AFTER]
        healthy = [one for one in untried if one.unhealthy is None]
        if due and healthy:
            due[0].since = now  # the others wait for what this request finds
            healthy = due[:1]
        replica = min(healthy or untried or self.all, key=lambda one: (one.load, one.counts["requests"]))
        thread.memo[self._key] = replica
        return replica

    async def another(self, tried: Container[Replica], timeout: float) -> bool:
        """Whether a server that was not `tried` is there to ask. Where all those are unhealthy, probes them first."""
        untried = [one for one in self.all if one not in tried]
        if untried and all(one.unhealthy for one in untried):
            for one in untried:
                with contextlib.suppress(Exception):
                    await one.probe(timeout)
                    one.unhealthy = None
        return any(one.unhealthy is None for one in untried)

    @property
    def width(self) -> int | None:
        """How many requests all of them work on at once; None where one does not say."""
        each = [one.works_on and min(one.works_on, one.most) for one in self.all]
        return sum(filter(None, each)) if each and None not in each else None

    @property
    def all_unhealthy(self) -> bool:
        return all(one.unhealthy for one in self.all)

    def report(self) -> Facts:
        """Sums; of several servers also what each reports."""
        each = [one.report() for one in self.all]
        sums = {name: sum(one.get(name, 0) for one in each) for name in _SUMS}
        several = {"replicas": each} if len(each) > 1 else {}
        return {**{name: total for name, total in sums.items() if total or name in _SUMS[:2]}, **several}


def as_json(data: Any) -> Any:
    """The JSON of a response that does not say in its header that it is JSON, or is a stream; other data as it is."""
    if isinstance(data, str) and data.lstrip()[:1] in ("{", "["):
        with contextlib.suppress(ValueError, RecursionError):
            return json.loads(data)
    return joined(data) if isinstance(data, str) and is_stream(data) else data


def endpoints(urls: str | list[str] | None) -> str | list[str] | None:
    """The bases of addresses: people paste an endpoint's whole address. Raises `SetupError` for what is none, or is
    there twice."""
    if urls is None or isinstance(urls, str):
        return urls if urls is None else endpoint(urls)
    bases = [endpoint(url) for url in urls]
    if not bases or len(set(bases)) < len(bases):
        hint = "Each address is one server; leave base_url out for OpenAI's own."
        addresses = ", ".join(map(public, bases)) or "none"
        raise SetupError(f"base_url must be different addresses, found {addresses}", hint=hint)
    return bases


def endpoint(url: Any) -> str:
    """The base of an address, also of an endpoint's whole address. Raises `SetupError` if it is not an address."""
    if not isinstance(url, str):
        raise SetupError(f"base_url: an address must be text, found {url!r:.40}")
    try:
        _ = urlsplit(url).port
    except ValueError as error:  # a half of [::1], a port that is not a number
        raise SetupError(f"base_url: {error}", hint="An address is like http://localhost:8000/v1.") from None
    if not url.lower().startswith(("http://", "https://")):
        found = url.rpartition("@")[2]
        raise SetupError(f"base_url: {found!r:.100} has no http:// or https:// before it", hint=f"http://{found:.100}")
    return url.rstrip("/").removesuffix("/completions").removesuffix("/chat")


def public(url: str) -> str:
    """An address without what may be secret in it."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


class SendsKey(NeedsApproval):
    """An engine with `base_url` and `api_key_env`: the key of a variable goes to these addresses."""

    base_url: str | list[str] | None
    api_key_env: str

    def approvals(self) -> Iterable[NeededApproval]:
        """The key and each address, unless both are the provider's own."""
        return keys_sent(self.api_key_env, self.base_url or (), "base_url")


def keys_sent(variable: str, addresses: str | Sequence[str], field: str) -> Iterator[NeededApproval]:
    """What is sent to servers: prompts, the key in `variable` ("" for none), and what the package adds.

    `field`: the parameter that has the addresses; without any the provider's own is asked.
    """
    own = ("api_key_env",) if variable != KEY else ()
    if not addresses and own and variable:
        yield NeededApproval.pair(variable, "the provider's own address", own)
    for address in [addresses] if isinstance(addresses, str) else addresses:
        yield NeededApproval.prompts_to(public(address), (field,))
        for name in filter(None, (variable, *(name for name in _HEADERS if name in os.environ))):
            yield NeededApproval.pair(name, public(address), (field, *(own if name == variable else ())))
