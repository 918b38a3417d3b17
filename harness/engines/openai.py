"""Any server with OpenAI's chat API."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import time
from dataclasses import field
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import urlsplit, urlunsplit

from harness.api import Completion, CountsTokens, Describes, Engine, Facts, Range, Reports, Request, Retries, plugin
from harness.engines._replicas import PROBE, Replica, Replicas
from harness.engines._tokens import count_tokens
from harness.engines._wire import (
    GarbledError,
    dies,
    flags,
    lacks_model,
    overflows,
    read_completion,
    retry_after,
    retry_delay,
)
from harness.engines.sampling import normalise
from harness.errors import (
    ContextLengthError,
    EngineError,
    EngineFatalError,
    RefusedError,
    RequestError,
    SetupError,
    near,
)
from harness.storage.redaction import redacted, secrets_of, without_secrets


@plugin
class OpenAI(Engine, CountsTokens, Describes, Reports, Retries):
    """Any OpenAI-compatible chat server: vLLM serve, SGLang, llama.cpp, Ollama, a provider.

    Args:
        model: the model's name at the server.
        base_url: e.g. `http://localhost:8000/v1`; several servers of the same model: a list; None: OpenAI's own (or
            `OPENAI_BASE_URL`).
        api_key_env: the environment variable with the key; servers without keys need none.
        timeout: seconds for one attempt.
        max_retries: attempts after the first, on 429, 5xx, timeouts, broken connections and unreadable responses.
        backoff: seconds before the first retry; doubles each time, with jitter.
        max_backoff: the longest wait in seconds, also for a server's Retry-After.
        max_connections: the most requests in flight at once, at each server.
        structured: how constraints are sent: `openai` as `response_format` (JSON schemas only), `vllm` as
            `structured_outputs` (JSON, choice, regex, grammar), `none` not at all.
        send_seed: False for servers that refuse `seed`.
        tokenizer: the model's tokenizer, a name on the hub or a folder (package transformers): counts the tokens of
            texts that pass between agents, which no server does.
        extra_body: sent with every request as it is.
    """

    model: str = ""  # a default, because a field without one cannot stand for the interface's property
    base_url: str | list[str] | None = None
    api_key_env: str = "OPENAI_API_KEY"
    timeout: Annotated[float, Range(gt=0)] = 600.0
    max_retries: Annotated[int, Range(ge=0)] = 6
    backoff: Annotated[float, Range(ge=0)] = 0.5
    max_backoff: Annotated[float, Range(ge=0)] = 60.0
    max_connections: Annotated[int, Range(ge=1, le=1000)] = 256
    structured: Literal["openai", "vllm", "none"] = "openai"
    send_seed: bool = True
    tokenizer: str | None = None
    extra_body: dict[str, Any] = field(default_factory=dict)

    location: ClassVar[frozenset[str]] = frozenset({"base_url"})
    incidental: ClassVar[frozenset[str]] = frozenset(
        {"api_key_env", "timeout", "max_retries", "backoff", "max_backoff", "max_connections", "tokenizer"}
    )

    def __post_init__(self) -> None:
        if not self.model:
            raise SetupError(
                "the engine openai needs model=…", hint="Name it as the server does; GET /v1/models lists."
            )
        # People paste the whole address of the endpoint.
        if isinstance(self.base_url, str):
            self.base_url = _endpoint(self.base_url)
        elif self.base_url is not None:
            self.base_url = [_endpoint(url) for url in self.base_url]
            if not self.base_url or len(set(self.base_url)) < len(self.base_url):
                hint = "Each address is one server; leave base_url out for OpenAI's own."
                found = ", ".join(map(_shown, self.base_url)) or "none"
                raise SetupError(f"base_url must be different addresses, found {found}", hint=hint)
        self._replicas = Replicas(())
        self._key = ""
        self._requests = 0
        self._over: Exception | None = None  # why nothing more can be asked
        self._ended = asyncio.Event()
        self._closed: list[Facts] = []

    # ------------------------------------------------------------------------------ life

    async def start(self) -> None:
        """Create the client and check that the server is available; of several, at least one.

        Raises:
            SetupError: no `openai` package, no key, no server, a refused key, or a model that the server does not have.
        """
        if self.tokenizer:
            count_tokens(self.tokenizer, "a wrong name shows now, not in the middle of a run")
        self._over, self._ended = None, asyncio.Event()
        self._replicas = Replicas(self._connect())
        try:
            failures = await asyncio.gather(*map(self._greet, self._replicas.all))
            if all(replica.gone for replica in self._replicas.all):
                raise next(filter(None, reversed(failures)))
        except SetupError:
            await self.close()
            raise

    def count_tokens(self, text: str) -> int | None:
        """By `tokenizer`; None without one."""
        return count_tokens(self.tokenizer, text) if self.tokenizer else None

    def stop_retrying(self, reason: Exception) -> None:
        self._over = self._over or reason
        self._ended.set()

    async def close(self) -> None:
        replicas, self._replicas = self._replicas, Replicas(())
        self._closed = replicas.report() or self._closed
        for replica in replicas.all:
            await replica.client.close()

    def report(self) -> Facts:
        """Requests, retries and failures; with several servers also those of each."""
        each = self._replicas.report() or self._closed
        sums = {name: sum(one[name] for one in each) for name in ("retries", "failures")}
        return {"requests": self._requests, **sums, **({"replicas": each} if len(each) > 1 else {})}

    def describe(self) -> Facts:
        """The fields; of an address only what holds no secret (no user, password or query)."""
        facts = dict(super().describe())
        if self.base_url:
            many = isinstance(self.base_url, list)
            facts["base_url"] = [_shown(url) for url in self.base_url] if many else _shown(str(self.base_url))
        facts["extra_body"] = without_secrets(self.extra_body)
        return facts

    def _connect(self) -> list[Replica]:
        try:
            import openai
        except ImportError as error:
            raise SetupError(
                f"the engine openai needs the package openai ({error})",
                hint='Install it: pip install "mas-eval-harness[openai]"',
            ) from error
        self._key = os.environ.get(self.api_key_env, "")
        own_address = self.base_url or os.environ.get("OPENAI_BASE_URL")
        if not self._key and not own_address:
            raise SetupError(
                f"no API key: the environment variable {self.api_key_env} is not set",
                hint=f"Set it, name another one with api_key_env=, or point base_url= at your own server.\n"
                f"  export {self.api_key_env}=…",
            )
        urls = self.base_url if isinstance(self.base_url, list) else [self.base_url]
        return [self._client(openai, url) for url in urls]

    def _client(self, openai: Any, url: str | None) -> Replica:
        try:  # a fifth of the CPU time per request of the default transport
            http = openai.DefaultAioHttpClient(timeout=self.timeout)
        except (AttributeError, RuntimeError):  # an older package, or one without its aiohttp extra
            http = openai.DefaultAsyncHttpxClient(timeout=self.timeout)
        # Retries are ours: they also cover garbled replies, and tests can make them take no time.
        client = openai.AsyncOpenAI(
            api_key=self._key or "none", base_url=url, timeout=self.timeout, max_retries=0, http_client=http
        )
        return Replica(_shown(url) if url else "the provider", client, self.max_connections)

    async def _greet(self, replica: Replica) -> SetupError | None:
        """See that a server is there; what is wrong with one that is left out. Raises where a person has to mend it."""
        try:
            replica.listed = await replica.models(self.timeout)
            if not replica.listed and self.base_url and await self._lists_below(replica, "/v1/models"):
                raise SetupError(f"base_url={replica.name} lacks /v1", hint=f"Say base_url={replica.name}/v1")
            if replica.listed and self.model not in replica.listed and await self._is_unknown(replica):
                raise SetupError(f"{replica.name} has no model {self.model!r}", hint=near(self.model, replica.listed))
        except SetupError:
            raise
        except Exception as error:
            if getattr(error, "status_code", None) in (401, 403):
                raise self._unreachable(replica, error) from error
            replica.leave_out(self._say(error))
            return self._unreachable(replica, error)
        return None

    async def _is_unknown(self, replica: Replica) -> bool:
        """Whether a server refuses the model. Not all list every name that they take, so one token is asked for."""
        body = {"model": self.model, "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 1}
        try:
            async with asyncio.timeout(min(PROBE, self.timeout)):
                await replica.client.post("/chat/completions", cast_to=object, body=body)
        except Exception as error:
            said = f"{error} {getattr(error, 'body', '')}"
            status = getattr(error, "status_code", None)
            return status == 404 or (status in (400, 422) and lacks_model(said))
        return False

    async def _lists_below(self, replica: Replica, path: str) -> bool:
        try:
            return bool(await replica.models(self.timeout, path))
        except Exception:
            return False

    def _unreachable(self, replica: Replica, error: Exception) -> SetupError:
        where = replica.name
        status = getattr(error, "status_code", None)
        if status in (401, 403):
            return SetupError(
                f"{where} refuses the key (HTTP {status})",
                hint=f"Put a valid key into the environment variable {self.api_key_env}.",
            )
        return SetupError(
            f"no usable server at {where}: {self._say(error)}",
            hint="Start it first (e.g. `vllm serve <model>`), wait until it is ready, and check base_url=: "
            "it usually ends in /v1.",
        )

    # ------------------------------------------------------------------------------ one request

    async def complete(self, request: Request) -> Completion:
        """Send a request, and retry while a retry may help.

        Raises:
            ContextLengthError, RefusedError, RequestError, EngineFatalError: as for `Engine`.
            SetupError: a sampling parameter or a constraint that cannot be sent.
        """
        if not self._replicas.all:
            raise EngineFatalError("the engine is not started, or closed")
        body = self._body(request)
        held = bool(request.constraint) and self.structured != "none"
        self._requests += 1
        tried: set[Replica] = set()
        while True:
            replica = self._replicas.choose(request.thread, tried)
            tried.add(replica)
            replica.counts["requests"] += 1
            replica.load += 1
            try:
                async with replica.slots:
                    answer = await self._ask(replica, body, held, tried)
            finally:
                replica.load -= 1
            if answer is not None:
                return answer

    async def _ask(self, replica: Replica, body: dict[str, Any], held: bool, tried: set[Replica]) -> Completion | None:
        """What one server answers; None where one is to be asked that was not `tried`."""
        for attempt in range(self.max_retries + 1):
            if self._over is not None:
                raise self._over.with_traceback(None)
            try:
                began = time.perf_counter()
                data = await self._post(replica, body)
                answer = read_completion(data, time.perf_counter() - began, held)
                replica.gone, replica.misses = None, 0
                return answer
            except Exception as error:
                last = attempt == self.max_retries
                if await self._leaves(replica, error, last, tried):
                    return None
                final = self._final(replica, error)
                if final is None and last:
                    final = await self._gave_up(replica, error)
                if final is not None:
                    replica.counts["failures"] += 1
                    if isinstance(final, EngineFatalError):
                        self.stop_retrying(final)
                    raise final from error
                asked = retry_after(error.response.headers) if hasattr(error, "response") else None
                replica.counts["retries"] += 1
                await self._wait(retry_delay(attempt, asked, self.backoff, self.max_backoff, random.random))
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def _wait(self, seconds: float) -> None:
        """Before another try; no longer than there is something to ask."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._ended.wait()

    async def _post(self, replica: Replica, body: dict[str, Any]) -> object:
        """One try. The client's own timeout begins anew with every byte that comes."""
        try:
            async with asyncio.timeout(self.timeout):
                return await replica.client.post("/chat/completions", cast_to=object, body=body)
        except TimeoutError:
            raise TimeoutError(f"no whole answer within {self.timeout:g} s") from None

    async def _leaves(self, replica: Replica, error: Exception, last: bool, tried: set[Replica]) -> bool:
        """Whether another server is to be asked: this one is gone, or went wrong at this request whenever it tried."""
        import openai

        dead = isinstance(error, openai.APIStatusError) and dies(error.status_code, f"{error} {error.body}")
        lost = isinstance(error, openai.APIConnectionError | TimeoutError)
        gone = dead or (lost and replica.gone is not None)
        if lost and not gone:
            try:
                await replica.models(self.timeout)  # else the connection broke, or this one request took too long
            except Exception as failure:
                error, gone = failure, True
        if not gone and (not last or not self._may_pass(error) or len(tried) > 1):
            return False
        if not self._replicas.another(tried) and not await self._back(tried):
            return False
        replica.misses += 1
        if gone or replica.misses > 1:  # a single one may be that request's own fault
            replica.leave_out(self._say(error))
        return True

    async def _back(self, tried: set[Replica]) -> bool:
        """Whether one of those that are left out is there again, and was not tried."""
        for one in self._replicas.all:
            if one not in tried:
                with contextlib.suppress(Exception):
                    await one.models(self.timeout)
                    one.gone = None
        return self._replicas.another(tried)

    def _body(self, request: Request) -> dict[str, Any]:
        body: dict[str, Any] = {"model": self.model, "messages": request.thread.messages, **normalise(request.sampling)}
        if self.base_url is None and "max_tokens" in body:  # OpenAI's reasoning models know only the newer word
            body["max_completion_tokens"] = body.pop("max_tokens")
        if self.send_seed:
            body["seed"] = request.seed & 0x7FFFFFFF  # some servers seed with 32 signed bits
        if request.constraint and self.structured == "vllm":
            body["structured_outputs"] = dict(request.constraint)
        elif request.constraint and self.structured == "openai":
            if "json" not in request.constraint:
                raise SetupError(
                    f"structured=openai constrains JSON replies only; this one needs {', '.join(request.constraint)}",
                    hint="Say structured=vllm for a server that knows structured_outputs (vLLM), or structured=none.",
                )
            schema = {"name": "reply", "schema": request.constraint["json"], "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        body.update(self.extra_body)
        return body

    def _may_pass(self, error: Exception) -> bool:
        """Whether another try may help."""
        import openai

        if isinstance(error, openai.APIStatusError):
            return error.status_code in (408, 409, 429) or error.status_code >= 500
        if isinstance(error, UnicodeEncodeError):  # what we send, not what came
            return False
        # A body may be no JSON, no text, nested too deep, or hold a number of too many digits.
        return isinstance(error, openai.APIConnectionError | TimeoutError | GarbledError | ValueError | RecursionError)

    def _final(self, replica: Replica, error: Exception) -> EngineError | None:
        """The error to raise at once, or None where another try may help."""
        import openai

        said = self._say(error)
        if isinstance(error, GarbledError) and overflows(200, str(error)):
            return ContextLengthError(said)
        if not isinstance(error, openai.APIStatusError):
            return None if self._may_pass(error) else RefusedError(said)
        status = error.status_code
        if overflows(status, f"{said} {error.body}"):
            return ContextLengthError(said)
        if status == 403 and flags(f"{said} {error.body}"):
            return RefusedError(said)
        if status in (401, 403):
            return EngineFatalError(f"{replica.name} refuses the key in {self.api_key_env}: {said}")
        if status == 404:
            known = f" It lists: {', '.join(replica.listed[:30])}." if replica.listed else ""
            wrong = f"no model {self.model!r} at {replica.name}, or base_url is wrong (it ends in /v1)"
            return EngineFatalError(f"{wrong}: {said}{known}")
        if status == 402 or (status == 429 and "insufficient_quota" in f"{error.body}"):
            return EngineFatalError(f"the account has no credit left: {said}")
        if dies(status, f"{said} {error.body}"):
            replica.leave_out(said)
            over = all(one.gone for one in self._replicas.all)
            return (EngineFatalError if over else RequestError)(f"the model at {replica.name} has died: {said}")
        return None if self._may_pass(error) else RefusedError(said)

    async def _gave_up(self, replica: Replica, error: Exception) -> EngineError:
        """After the last try: is it this request that fails, or is the server gone?"""
        said = f"still failing after {self.max_retries + 1} tries: {self._say(error)}"
        try:
            await replica.models(self.timeout)
        except Exception as gone:
            replica.leave_out(self._say(gone))
            if all(one.gone for one in self._replicas.all):
                many = "the server is gone" if len(self._replicas.all) == 1 else "all servers are gone"
                return EngineFatalError(f"{many} ({self._say(gone)}); {said}")
        return RequestError(said)

    def _say(self, error: Exception) -> str:
        """The error in a line, with its cause and without keys."""
        text = f"{type(error).__name__}: {error}"
        if error.__cause__ is not None and not hasattr(error, "status_code") and not isinstance(error, GarbledError):
            # The transport's own words: the package calls a refused connection a timeout.
            text = f"{str(error.__cause__) or type(error.__cause__).__name__} ({type(error).__name__})"
        known = {self._key, *secrets_of({"base_url": self.base_url, "extra_body": self.extra_body})}
        return " ".join(redacted(text[:10_000], known).split())[:500]


def _endpoint(url: Any) -> str:
    if not isinstance(url, str):
        raise SetupError(f"base_url: an address must be text, found {url!r:.40}")
    try:
        _ = urlsplit(url).port
    except ValueError as error:  # a half of [::1], a port that is no number
        raise SetupError(f"base_url: {error}", hint="An address is like http://localhost:8000/v1.") from None
    return url.rstrip("/").removesuffix("/chat/completions")


def _shown(url: str) -> str:
    """An address without what may be secret in it."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
