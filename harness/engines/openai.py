"""Any server that speaks OpenAI's chat API."""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
from collections import Counter
from dataclasses import field
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import urlsplit, urlunsplit

from harness.api import Completion, Engine, Facts, Range, Request, plugin
from harness.engines._tokens import count_tokens
from harness.engines._wire import GarbledError, overflows, read_completion, retry_after, retry_delay
from harness.engines.sampling import normalise
from harness.errors import ContextLengthError, EngineError, EngineFatalError, RequestError, SetupError
from harness.redaction import without_secrets

_PROBE = 20.0  # seconds for a look at the server's model list


@plugin
class OpenAI(Engine):
    """Any OpenAI-compatible chat server: vLLM serve, SGLang, llama.cpp, Ollama, a provider.

    Args:
        model: the name the server knows the model by.
        base_url: e.g. `http://localhost:8000/v1`; None: OpenAI's own (or `OPENAI_BASE_URL`).
        api_key_env: the environment variable that holds the key; servers without keys need none.
        timeout: seconds for one try.
        max_retries: tries after the first, on 429, 5xx, timeouts, broken connections and unreadable replies.
        backoff: seconds before the first retry; doubles each time, with jitter.
        max_backoff: the longest wait in seconds, also for a server's Retry-After.
        max_connections: the most requests in flight at once.
        structured: how constraints travel: `openai` as `response_format` (JSON schemas only), `vllm` as
            `structured_outputs` (JSON, choice, regex, grammar), `none` not at all.
        send_seed: False for servers that refuse `seed`.
        tokenizer: the model's tokenizer, a name on the hub or a folder (package transformers): counts the tokens that
            cross from agent to agent, which no server does.
        extra_body: sent with every request as it is.
    """

    model: str = ""  # a default, because a field without one cannot stand for the interface's property
    base_url: str | None = None
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
        if self.base_url is not None:  # people paste the whole address of the endpoint
            self.base_url = self.base_url.rstrip("/").removesuffix("/chat/completions")
        self._client: Any = None
        self._flying = asyncio.Semaphore(self.max_connections)
        self._key = ""
        self._listed: list[str] = []
        self._counts: Counter[str] = Counter()

    # ------------------------------------------------------------------------------ life

    async def start(self) -> None:
        """Make the client and see that the server is there.

        Raises:
            SetupError: no `openai` package, no key, no server, or a refused key.
        """
        if self.tokenizer:
            count_tokens(self.tokenizer, "a wrong name shows now, not in the middle of a run")
        self._client = self._connect()
        try:
            self._listed = await self._models()
            if not self._listed and self.base_url and await self._lists_below("/v1/models"):
                raise SetupError(f"base_url={self.base_url} lacks /v1", hint=f"Say base_url={self.base_url}/v1")
        except SetupError:
            await self.close()
            raise
        except Exception as error:
            await self.close()
            raise self._unreachable(error) from error

    def count_tokens(self, text: str) -> int | None:
        """By `tokenizer`; None without one."""
        return count_tokens(self.tokenizer, text) if self.tokenizer else None

    async def close(self) -> None:
        if self._client is not None:
            client, self._client = self._client, None
            await client.close()

    def report(self) -> Facts:
        return {name: self._counts[name] for name in ("requests", "retries", "failures")}

    def describe(self) -> Facts:
        """The fields; of the address only what holds no secret (no user, password or query)."""
        facts = dict(super().describe())
        if self.base_url:
            parts = urlsplit(self.base_url)
            facts["base_url"] = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
        facts["extra_body"] = without_secrets(self.extra_body)
        return facts

    def _connect(self) -> Any:
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
        try:  # a fifth of the CPU time per request of the default transport
            http = openai.DefaultAioHttpClient(timeout=self.timeout)
        except (AttributeError, RuntimeError):  # an older package, or one without its aiohttp extra
            http = openai.DefaultAsyncHttpxClient(timeout=self.timeout)
        # Retries are ours: they also cover garbled replies, and tests can make them take no time.
        return openai.AsyncOpenAI(
            api_key=self._key or "none", base_url=self.base_url, timeout=self.timeout, max_retries=0, http_client=http
        )

    async def _models(self, path: str = "/models") -> list[str]:
        """The names the server lists; empty where it has no such list."""
        import openai

        try:
            data = await self._client.get(path, cast_to=object, options={"timeout": min(_PROBE, self.timeout)})
        except openai.APIStatusError as error:
            if error.status_code in (404, 405, 429, 501):  # it answers, only not this
                return []
            raise
        rows = data.get("data") if isinstance(data, dict) else None
        return [r["id"] for r in rows or [] if isinstance(r, dict) and isinstance(r.get("id"), str)]

    async def _lists_below(self, path: str) -> bool:
        try:
            return bool(await self._models(path))
        except Exception:
            return False

    def _unreachable(self, error: Exception) -> SetupError:
        where = self.describe().get("base_url") or "the provider"
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
        """Ask, and ask again while that may help.

        Raises:
            ContextLengthError, RequestError, EngineFatalError: as `Engine` says.
            SetupError: a generation word or a constraint that cannot be sent.
        """
        if self._client is None:
            raise EngineFatalError("the engine is not started, or closed")
        body = self._body(request)
        held = bool(request.constraint) and self.structured != "none"
        self._counts["requests"] += 1
        async with self._flying:
            for attempt in range(self.max_retries + 1):
                try:
                    began = time.perf_counter()
                    data = await self._client.post("/chat/completions", cast_to=object, body=body)
                    return read_completion(data, time.perf_counter() - began, held)
                except Exception as error:
                    final = self._final(error)
                    if final is None and attempt == self.max_retries:
                        final = await self._gave_up(error)
                    if final is not None:
                        self._counts["failures"] += 1
                        raise final from error
                    asked = retry_after(error.response.headers) if hasattr(error, "response") else None
                    self._counts["retries"] += 1
                    await asyncio.sleep(retry_delay(attempt, asked, self.backoff, self.max_backoff, random.random))
        raise AssertionError("unreachable: the last attempt returns or raises")

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

    def _final(self, error: Exception) -> EngineError | None:
        """The error to raise at once, or None where another try may help."""
        import openai

        if isinstance(error, GarbledError) and overflows(200, str(error)):
            return ContextLengthError(self._say(error))
        if isinstance(error, openai.APIConnectionError | GarbledError | json.JSONDecodeError):
            return None
        if not isinstance(error, openai.APIStatusError):
            return RequestError(self._say(error))
        said, status = self._say(error), error.status_code
        if overflows(status, f"{said} {error.body}"):
            return ContextLengthError(said)
        if status in (401, 403):
            return EngineFatalError(f"the server refuses the key in {self.api_key_env}: {said}")
        if status == 404:
            known = f" The server lists: {', '.join(self._listed[:30])}." if self._listed else ""
            return EngineFatalError(f"no model {self.model!r}, or base_url is wrong (it ends in /v1): {said}{known}")
        if status == 429 and "insufficient_quota" in f"{error.body}":
            return EngineFatalError(f"the account has no credit left: {said}")
        return None if status in (408, 409, 429) or status >= 500 else RequestError(said)

    async def _gave_up(self, error: Exception) -> EngineError:
        """After the last try: is it this request that fails, or is the server gone?"""
        said = f"still failing after {self.max_retries + 1} tries: {self._say(error)}"
        try:
            await self._models()
        except Exception as gone:
            return EngineFatalError(f"the server is gone ({self._say(gone)}); {said}")
        return RequestError(said)

    def _say(self, error: Exception) -> str:
        """The error in a line, with its cause and without the key."""
        text = f"{type(error).__name__}: {error}"
        if error.__cause__ is not None and not hasattr(error, "status_code"):
            # The transport's own words: the package calls a refused connection a timeout.
            text = f"{str(error.__cause__) or type(error.__cause__).__name__} ({type(error).__name__})"
        if self._key:
            text = text.replace(self._key, "…")
        return " ".join(text.split())[:500]
