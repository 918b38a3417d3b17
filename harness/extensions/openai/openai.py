"""Any server with OpenAI's chat API."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, field
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from harness.api import CallsTools, Completion, ContinuesText, Facts, Range, Request, plugin
from harness.api.errors import ContextLengthError, EngineError, EngineFatalError, RefusedError, RequestError, SetupError
from harness.engines.chat_tokens import count_tokens
from harness.engines.sampling import normalize
from harness.engines.tool_calls import REMEDY, offered, takes_no_tools
from harness.extensions.openai.batch_calls import HaltedError
from harness.extensions.openai.batches import Batching, BatchOptions
from harness.extensions.openai.card import Card, CardCheck, read_card
from harness.extensions.openai.clients import check_installed, connect, read_key
from harness.extensions.openai.constraints import as_held, constrained
from harness.extensions.openai.dialect import NEW, OLD, Dialect, advice
from harness.extensions.openai.prompt_logprobs import ScoringServer
from harness.extensions.openai.refusals import has_died, in_one_line, is_limit, overflows, refusal, tokens_left
from harness.extensions.openai.replicas import KEY, AskAnotherError, Replica, Replicas, SendsKey, endpoints, public
from harness.extensions.openai.returned import Sends
from harness.extensions.openai.scoring import ServerScoring
from harness.extensions.openai.served import Served
from harness.extensions.openai.start_checks import check
from harness.extensions.openai.tokens import TokenFields
from harness.extensions.openai.waits import retry_after
from harness.extensions.openai.wire import GarbledError, read_completion, read_text, unwritable
from harness.storage.redaction import secrets_of, without_secrets

T = TypeVar("T")
CHAT, TEXT = "/chat/completions", "/completions"
MAX_TOKENS = 256
"""The length of a raw continuation that has no max_tokens, as in lm-eval; servers would stop after 16."""


@plugin
class OpenAI(Batching, CallsTools, ContinuesText, ServerScoring, SendsKey):
    """Any OpenAI-compatible server: vLLM serve, SGLang, llama.cpp, Ollama, a provider.

    Conversations go to `/v1/chat/completions`; texts to continue, and texts to score, to `/v1/completions`.

    Args:
        model: the model's name at the server.
        base_url: e.g. `http://localhost:8000/v1`; several servers of the same model: a list; None: OpenAI's own (or
            `OPENAI_BASE_URL`).
        api_key_env: the environment variable with the key; servers without keys need none.
        timeout: seconds for one attempt, from when the server has last answered a request that was sent before it.
        max_retries: attempts after the first, on 5xx, timeouts, broken connections, responses that are unreadable or a
            provider's failure.
        backoff: seconds before the first retry; doubles each time, with jitter.
        max_backoff: the longest wait in seconds, also for a server's Retry-After.
        max_connections: the most requests in flight at once, at each server.
        system: `merge` puts the system message before the first message of the user, for models whose chat template has
            no system role; `role` sends it as it is.
        empty_reply: what stands for an empty reply of the model in its conversation, at servers that refuse those.
        structured: how constraints are sent: `openai` as `response_format` (JSON schemas only), `vllm` as
            `structured_outputs`, `llama.cpp` as `json_schema` and `grammar` (both JSON, choice, regex, grammar), `none`
            not at all.
        send_seed: False for servers that refuse `seed`.
        send_reasoning: which thoughts go back to the server: `tools` those of replies that call tools, `always` all,
            `never` none.
        tokenizer: the model's tokenizer, a name on the hub or a folder (package transformers): counts the tokens of
            texts that pass between agents, which no server does, and encodes texts to score exactly as lm-eval does.
        max_length: tokens that the model takes, for texts to score with a tokenizer; None: what the server lists.
        extra_body: sent with every request as it is.
        deterministic: ask for the same replies again: seeds are sent, and llama.cpp's server (`structured`) gets one
            request at a time and reuses no prompt. At its end a run asks a sample again and records whether that held.
        card: a file of `harness probe`: what the server can do, known before the first request.
        batch: true sends the requests of all open episodes together, in batches of the provider (`/v1/batches`); or a
            mapping with `poll`, `requests` and `bytes`.
        return_token_ids: completions have the token ids of their prompt and their reply, from vLLM's server and
            llama.cpp's; others end the run before it begins.
        return_logprobs: and the log-probability of each token of the reply, at temperature 1 unless the server was
            started to give others.
    """

    model: str = ""  # a default, because a field without one cannot stand for the interface's property
    base_url: str | list[str] | None = None
    api_key_env: str = KEY
    timeout: Annotated[float, Range(gt=0)] = 600.0
    max_retries: Annotated[int, Range(ge=0)] = 6
    backoff: Annotated[float, Range(ge=0)] = 0.5
    max_backoff: Annotated[float, Range(ge=0)] = 60.0
    max_connections: Annotated[int, Range(ge=1, le=1000)] = 256
    system: Literal["role", "merge"] = "role"
    empty_reply: str = "(no reply)"
    structured: Literal["openai", "vllm", "llama.cpp", "none"] = "openai"
    send_seed: bool = True
    send_reasoning: Sends = "tools"
    tokenizer: str | None = None
    max_length: Annotated[int, Range(ge=2)] | None = None
    extra_body: dict[str, Any] = field(default_factory=dict)
    deterministic: bool = False
    card: str | None = None
    batch: bool | BatchOptions = False
    return_token_ids: bool = False
    return_logprobs: bool = False

    queues_unseen: ClassVar[bool] = True
    replica: ClassVar[type[Replica]] = Replica
    location: ClassVar[frozenset[str]] = frozenset({"base_url"})
    incidental: ClassVar[frozenset[str]] = frozenset(
        {
            "api_key_env",
            "timeout",
            "max_retries",
            "backoff",
            "max_backoff",
            "max_connections",
            "tokenizer",
            "card",
            "batch",
            "return_token_ids",
            "return_logprobs",
        }
    )

    def __post_init__(self) -> None:
        if not self.model:
            raise SetupError(
                "the engine openai needs model=…", hint="Name it as the server does; GET /v1/models lists."
            )
        if self.deterministic and not self.send_seed:
            raise SetupError("deterministic=true needs seeds, and send_seed=false sends none", hint="Leave one out.")
        if self.deterministic and self.structured == "llama.cpp":
            self.max_connections, self.extra_body = 1, {"cache_prompt": False, **self.extra_body}
        self.base_url = endpoints(self.base_url)
        self.check_batch()
        self._replicas = Replicas(())
        self._key, self._requests, self._is_open, self._took_tools = "", 0, False, False
        self._scores = ScoringServer(self.tokenizer, self.max_length, self.extra_body.get("chat_template_kwargs"))
        self._card: Card | None = read_card(self.card) if self.card else None
        # OpenAI's reasoning models know only the newer word.
        word, thoughts = NEW if self.base_url is None else OLD, self.send_reasoning != "never"
        self._dialect = Dialect(self.system, self.empty_reply, word, thoughts=thoughts)
        self._dialect.read(self._card)
        self._served, self._tokens = Served(), TokenFields(self.return_token_ids, self.return_logprobs)
        self._ended: asyncio.Future[Exception] | None = None  # why the engine sends no more requests

    # ------------------------------------------------------------------------------ life

    def check(self) -> None:
        """Raises `SetupError` without the package, and without a key where only one can do."""
        check_installed()
        self._check_key()

    async def start(self) -> None:
        """Create the client and check that the server is available; of several, at least one.

        Raises:
            SetupError: no `openai` package, no key, no server, a refused key, or a model that the server does not have.
        """
        if self.tokenizer:
            count_tokens(self.tokenizer, "a wrong name shows now, not in the middle of a run")
        self._ended = asyncio.get_running_loop().create_future()
        try:
            self._replicas = Replicas(self._connect())
            problems = await asyncio.gather(*map(self._probe, self._replicas.all))
            if self._replicas.all_unhealthy:
                raise next(filter(None, reversed(problems)))
            if self._batches is not None:
                await self._batches.begin(self._ended)
        except BaseException:
            await self.close()
            raise
        self._is_open = True

    def count_tokens(self, text: str) -> int | None:
        """By `tokenizer`; None without one."""
        return count_tokens(self.tokenizer, text) if self.tokenizer else None

    @property
    def width(self) -> int | None:
        return self._replicas.width

    @property
    def tools_problem(self) -> str | None:
        """What the card says of tools."""
        return self._card.lacks("tools", "tools") if self._card else None

    @property
    def template_renders_tools(self) -> bool | None:
        """Whether the model's chat template does, by the word of llama.cpp's server; None: not known, or not started.
        Where it does not, older versions of the server wrote tools into the prompt by themselves."""
        return next((replica.renders_tools for replica in self._replicas.all), None)

    @property
    def request_check(self) -> CardCheck | None:
        """What the card says of requests."""
        return CardCheck(self._card, self.system, self.structured, bool(self.tokenizer)) if self._card else None

    def constraint_problem(self, constraint: Mapping[str, Any]) -> str | None:
        try:
            constrained(constraint, self.structured)
        except SetupError as error:
            return f"{error.message}. {error.hint}"
        return None

    def stop_retrying(self, reason: Exception) -> None:
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(reason)

    async def close(self) -> None:
        self._is_open = False
        for replica in self._replicas.all:
            await replica.close()

    def report(self) -> Facts:
        """Requests, retries and failures; with several servers also those of each."""
        return {"requests": self._requests, **self._replicas.report(), **self._served.report()}

    def describe(self) -> Facts:
        """The fields; of an address only what holds no secret (no user, password or query)."""
        facts = dict(super().describe())
        if url := self.base_url:
            facts["base_url"] = [*map(public, url)] if isinstance(url, list) else public(str(url))
        facts["extra_body"] = without_secrets(self.extra_body)
        return {**facts, "card": self._card and asdict(self._card)}

    def _connect(self) -> list[Replica]:
        urls = self.base_url if isinstance(self.base_url, list) else [self.base_url]
        names = [public(url) if url else "the provider" for url in urls]
        made = zip(names, connect(urls, self._check_key, self.timeout), strict=True)
        if self.collects:
            return [self.batch_server(name, client, self._line) for name, client in made]
        return [self.replica(name, client, self.max_connections) for name, client in made]

    def _check_key(self) -> str:
        self._key = read_key(self.api_key_env, bool(self.base_url))
        return self._key

    async def _probe(self, replica: Replica) -> SetupError | None:
        """Find out whether a server can answer; returns why not. Raises what a person has to mend."""
        tokens = self._tokens if self._tokens.wanted else None
        return await check(replica, self.model, self.timeout, self.api_key_env, self._line, self._card, tokens)

    # ------------------------------------------------------------------------------ one request

    async def complete(self, request: Request) -> Completion:
        """Send a request, and retry while a retry may help.

        Raises:
            ContextLengthError, RefusedError, RequestError, EngineFatalError: as for `Engine`.
            SetupError: a sampling parameter or a constraint that cannot be sent.
        """
        body = self._body(request)
        self._requests += 1
        if not request.thread.chat:
            return await self._note(
                request, body, await self._answer(request, TEXT, body, self._tokens.reader(read_text))
            )
        formal = bool(request.constraint) and self.structured != "none"
        verbatim = formal or request.thread.verbatim or bool(request.prefill)
        sends = "never" if request.prefill else self.send_reasoning
        read = partial(
            read_completion, constrained=verbatim, with_tools=bool(request.tools), sends=sends, model=self.model
        )
        try:
            return await self._note(request, body, await self._answer(request, CHAT, body, self._tokens.reader(read)))
        except RefusedError as error:
            if not request.prefill:
                raise
            why = "the request begins the reply (prefill) with continue_final_message, which vLLM and SGLang know"
            raise RefusedError(f"{error}; {why}") from error

    async def _note(self, request: Request, body: Mapping[str, Any], answer: Completion) -> Completion:
        """The answer, cut at the stops that were not sent to the server."""
        self._served.check_prompt(request.thread, answer)
        if self._tokens.names_prompts_apart:
            server, sent = self._replicas.choose(request.thread), self._dialect.write(body, None)
            answer = await self._tokens.with_prompt(server, sent, answer, self._line)
        return as_held(self._dialect.cut(answer, body), request.constraint, self.structured)

    async def _answer(self, request: Request, path: str, body: dict[str, Any], read: Callable[[Any, float], T]) -> T:
        """What `read` makes of a server's answer and of the seconds that it took."""
        if not self._is_open:
            raise EngineFatalError("the engine is not started, or closed")
        tried: set[Replica] = set()
        while True:
            replica = self._replicas.choose(request.thread, tried)
            tried.add(replica)
            replica.counts["requests"] += 1
            replica.load += 1
            try:
                async with replica.slots:
                    return await self._ask(replica, request, path, body, read, tried)
            except AskAnotherError:
                continue
            finally:
                replica.load -= 1

    async def _ask(
        self,
        replica: Replica,
        request: Request,
        path: str,
        body: dict[str, Any],
        read: Callable[[Any, float], T],
        tried: set[Replica],
    ) -> T:
        """The answer of one server. Raises `AskAnotherError` if one that was not `tried` may have it."""
        assert self._ended is not None
        attempt, most = 0, replica.most_tokens(self.model, body) if path == CHAT else None
        while True:
            sent_at = await replica.pace.turn(self._ended, self.max_backoff)
            if self._ended.done():
                raise self._ended.result().with_traceback(None)
            sent = self._dialect.write(body, most)
            try:
                start = time.perf_counter()
                data = await replica.post(path, sent, self.timeout, (request.id, body))
                answer = read(data, time.perf_counter() - start)
                replica.mark_healthy()
                self._served.count(data)
                self._took_tools = self._took_tools or "tools" in body
                return answer
            except HaltedError:  # as above
                continue
            except Exception as error:
                if is_limit(error):
                    await self._wait_for_rate(replica, error, sent_at)
                    continue
                if (left := tokens_left(error, sent, path == CHAT)) is not None:
                    most = left.tokens
                    replica.limits.setdefault(self.model, left.window or 0)
                    continue
                if self._dialect.learn(error, sent):
                    continue
                final = self._refusal(replica, path, error, "tools" in body, request.by_program) or unwritable(body)
                if final is None:
                    final = await self._give_up(replica, error, attempt >= self.max_retries, tried)
                if final is not None:
                    replica.counts["failures"] += 1
                    if isinstance(final, EngineFatalError):
                        self.stop_retrying(final)
                    raise final from error
                replica.counts["retries"] += 1
                delay = self.backoff * 2.0 ** min(attempt, 60) * random.uniform(0.5, 1)
                if hasattr(error, "response"):
                    delay = max(delay, retry_after(error.response.headers))
                attempt += 1
                await asyncio.wait({self._ended}, timeout=0 if self.collects else min(delay, self.max_backoff))

    async def _wait_for_rate(self, replica: Replica, error: Exception, sent_at: float) -> None:
        """A server limits the rate: slow down for all, and try again for as long as it answers others. Raises
        `EngineFatalError` where it has refused everything for so long that no retry would have been left."""
        replica.counts["rate_limited"] += 1
        replica.pace.limited(error, sent_at, self.backoff, self.max_backoff)
        if replica.pace.refuses_all(self.max_retries, self.max_retries * self.max_backoff):
            replica.counts["failures"] += 1
            why = f"limits the rate and answered none of the last {replica.pace.refusals:,} tries"
            final = EngineFatalError(f"{replica.name} {why}: {self._line(error)}")
            self.stop_retrying(final)
            raise final from error

    def _body(self, request: Request) -> dict[str, Any]:
        thread, words = request.thread, normalize(request.sampling)
        body: dict[str, Any]
        if not thread.chat:
            text = thread.text + request.prefill
            body = {"model": self.model, "prompt": text, "max_tokens": MAX_TOKENS, **words}
        elif request.prefill:
            messages = [*thread.messages, {"role": "assistant", "content": request.prefill}]
            going_on = {"continue_final_message": True, "add_generation_prompt": False}  # vLLM's and SGLang's words
            body = {"model": self.model, "messages": messages, **words, **going_on}
        else:
            body = {"model": self.model, "messages": thread.messages, **words}
        if self.send_seed:
            body["seed"] = request.seed & 0x7FFFFFFF  # some servers seed with 32 signed bits
        if request.constraint:
            body |= constrained(request.constraint, self.structured)
        if request.tools:
            body["tools"] = offered(request.tools)
        body |= self._tokens.body(thread.chat)
        body.update(self.extra_body)
        return body

    # ------------------------------------------------------------------------------ what goes wrong

    def _refusal(
        self, replica: Replica, path: str, error: Exception, with_tools: bool = False, by_program: bool = False
    ) -> EngineError | None:
        """The error to raise at once; None if another try, or another server, may help."""
        import openai

        if isinstance(error, EngineError):  # the answer's reader has the last word
            return error
        text = self._line(error)
        lacks = RefusedError if by_program else EngineFatalError  # what a spec asks for, it asks for again
        if isinstance(error, openai.APIStatusError):
            status = error.status_code
            kind = refusal(error)
            if with_tools and not self._took_tools and takes_no_tools(error, kind):
                return lacks(f"{replica.name} takes no tools for {self.model}: {text}; {REMEDY}")
            if kind is ContextLengthError and replica.window:
                text = f"{text}; {replica.name} has {replica.window}"
            if hint := advice(error):
                text = f"{text}; {hint}"
            if kind is not EngineFatalError:
                return None if kind is None else kind(text)
            if status == 404 and path == TEXT:
                hint = "texts without chat template, and log-likelihoods, need it; conversations do not"
                return lacks(f"{replica.name} has no /v1/completions for {self.model}: {text}; {hint}")
            if status == 404:
                listed = ", ".join(replica.listed[:30])
                models = f"; when the run began it listed: {listed}" if replica.listed else ""
                why = f"no model {self.model!r} at {replica.name}, or base_url is wrong (it ends in /v1)"
                return EngineFatalError(f"{why}: {text}{models}")
            key = f"{replica.name} refuses the key in {self.api_key_env}"
            return EngineFatalError(f"{key if status in (401, 403) else 'the account has no credit left'}: {text}")
        # All else is not an answer of the model: the connection broke, or what came is not HTTP, JSON or a completion.
        return ContextLengthError(text) if isinstance(error, GarbledError) and overflows(error) else None

    async def _give_up(self, replica: Replica, error: Exception, last: bool, tried: set[Replica]) -> EngineError | None:
        """The error to raise instead of trying again; None if another try may help.

        Raises:
            AskAnotherError: the server is unhealthy, or it was the `last` try and no other server was tried yet.
        """
        import openai

        is_lost = isinstance(error, openai.APIConnectionError | TimeoutError)
        outage = error if has_died(error) or (is_lost and replica.unhealthy is not None) else None
        if outage is None and (last or (is_lost and len(self._replicas.all) > 1)):
            try:
                await replica.probe(self.timeout)  # else the connection broke, or this one request took too long
            except Exception as failure:
                outage = failure
        helpless = outage is not None or (last and len(tried) == 1)
        if helpless and await self._replicas.another(tried, self.timeout):
            replica.consecutive_failures += 1
            if outage is not None or replica.consecutive_failures > 1:  # once may be the request's fault
                replica.mark_unhealthy(self._line(outage or error))
            raise AskAnotherError from error
        why = self._line(error)
        if has_died(error):
            why = f"the model at {replica.name} has died: {why}"
        elif last:
            why = f"still failing after {self.max_retries + 1} tries: {why}"
        else:
            return None
        if outage is not None:
            replica.mark_unhealthy(self._line(outage))
            if self._replicas.all_unhealthy:
                servers = "the server is gone" if len(self._replicas.all) == 1 else "all servers are gone"
                return EngineFatalError(why if has_died(error) else f"{servers} ({self._line(outage)}); {why}")
        return RequestError(why)

    def _line(self, error: Exception) -> str:
        """The error in a line, with its cause and without keys."""
        return in_one_line(error, {self._key, *secrets_of({"base_url": self.base_url, "extra_body": self.extra_body})})
