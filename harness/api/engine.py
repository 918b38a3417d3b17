"""The interface of engines: requests in, completions out. It imports the standard library and errors only.

An engine needs four names: `Engine`, `Request` and its `Thread`, and `harness.api.Completion`.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from .episode import Completion, Outcome
from .errors import EngineFatalError
from .reply import Facts, Reply

if TYPE_CHECKING:
    from .asked_turn import AskedTurn


class Thread:
    """One agent's conversation, append-only.

    An engine may keep what it derived from the messages so far in `memo` (token ids, a running hash), so that the work
    per call does not grow with the history. Threads with a lower `age` are older; if an engine cannot answer all at
    once, they come first.

    If `chat` is false, the thread is a plain text: the contents of its messages, one after another, with no chat
    template. The model continues it. Only engines that are `ContinuesText` get such threads.

    If `verbatim` is true, as in every plain text, a reply counts exactly as the model wrote it: its special tokens are
    part of it, and nothing in it is reasoning. Engines that do not see special tokens ignore this. Engines that
    `keeps_questions` get those of all the agent's turns so far, also of its earlier conversations in the episode.
    """

    __slots__ = ("age", "chat", "memo", "messages", "questions", "verbatim")
    _opened = itertools.count()

    def __init__(
        self, age: int | None = None, chat: bool = True, verbatim: bool = False, asked: list[AskedTurn] | None = None
    ) -> None:
        self.messages: list[dict[str, Any]] = []
        self.memo: dict[str, Any] = {}
        self.questions = [] if asked is None else asked
        self.age = next(self._opened) if age is None else age
        self.chat, self.verbatim = chat, verbatim or not chat

    @property
    def text(self) -> str:
        """The contents of all messages, one after another: what a thread without chat asks a model to continue."""
        return "".join(message["content"] for message in self.messages)

    def add(self, role: str, content: str, **more: Any) -> None:
        """Append one message.

        `role` is system, user or assistant; in a conversation with tools also tool. `more` is then what OpenAI's chat
        API has besides the content: an assistant's `tool_calls` and `provider_fields`, a tool's `tool_call_id`.
        """
        self.messages.append({"role": role, "content": content, **more})


@dataclass(frozen=True, slots=True)
class Request:
    """One model call. A form with an `ability` of its own has a subclass that says what is asked instead of a text.

    Attributes:
        id: episode, agent, turn and attempt; unique in a run, and the same whenever the run is repeated.
        thread: the conversation. The engine answers its last message and does not change the messages.
        sampling: `generation_kwargs` of the spec: temperature, top_p, top_k, min_p, max_tokens, stop, … .
        seed: derived for this call alone.
        constraint: as returned by `Reply.constraint`, or None for free text.
        prefill: the beginning of the model's message; the completion continues it. Only engines that are
            `ContinuesText` get one.
        tools: functions that the model may call, each {"name", "description", "parameters"}, of which the last is the
            JSON schema of its arguments. Only engines that are `CallsTools` get any.
        reply: the form that parses the completion, for engines that help a person. Models see only the prompt.
        by_program: whether an agent's program chose what is asked (an inner call), and not the spec. What the engine
            does not take of it is a `RefusedError`: the program hears it, and the run goes on.
    """

    id: str
    thread: Thread
    sampling: Facts
    seed: int
    constraint: Mapping[str, Any] | None = None
    prefill: str = ""
    tools: tuple[Facts, ...] = ()
    reply: Reply | None = None
    by_program: ClassVar[bool] = False

    def send(self, engine: Engine) -> Awaitable[Completion]:
        """Ask an engine. Raises `EngineFatalError` if it lacks the ability to answer."""
        if self.tools and not isinstance(engine, CallsTools):
            raise EngineFatalError(f"the engine of {engine.model} offers no tools to its model")
        return engine.complete(self)

    def mock_answer(self, text: str) -> Completion:
        """The answer of the engine `mock`, which says `text` whatever it is asked."""
        return Completion(text)

    @property
    def key(self) -> list[Any]:
        """What decides the answer besides the conversation and the tools, as JSON: of a subclass its own fields."""
        key: list[Any] = [self.sampling, self.constraint, self.seed]
        if type(self) is not Request:
            key += [type(self).__qualname__, *(getattr(self, one.name) for one in fields(self)[len(fields(Request)) :])]
        return key

    @property
    def log_fields(self) -> dict[str, Any]:
        """What a log of requests says of it besides the conversation and the tools."""
        return {"sampling": dict(self.sampling), "seed": self.seed}


class Engine(ABC):
    """Turns requests into completions. It owns its client, retries and rate limits, and knows nothing about agents.

    An engine needs `model` and `complete`, and usually `start` and `close`; the other methods have defaults. Further
    base classes declare what a run must know about an engine before it starts: `CallsTools`, `ContinuesText`,
    `Replays`, `StaysUp`, and each `Ability`; `harness.plugins.approvals.NeedsApproval` declares that it runs programs
    on this machine, or sends keys to addresses from a spec.

    Attributes:
        incidental: fields that never change a completion: timeouts, pool sizes.
        location: fields that say where the engine is. A run may continue at another location; a response cache may not
            be used there.
        asks_people: whether a person, or an agent that connects, answers. Such a run plays one episode at a time, in
            this process, and the engine's `model` is part of the run's name in tables, whatever else plays.
        confined: whether it runs programs of models, which this machine must be able to confine.
        any_request: whether `complete` answers requests of every kind, as a recording does: it has every `Ability`.
        queues_unseen: whether its requests may wait in a queue that it does not see, as at a server. The run's gate
            then finds out how many at once make it faster, unless `width` says it.
        deterministic: whether it is to give the same replies again. A run then asks it a sample of its requests a
            second time at its end, and records whether the replies were the same.
        calls_models: whether its replies come from programs that may call a model of the run (`CallsModels`).
        return_token_ids: whether its completions have `prompt_token_ids` and `token_ids`.
        return_logprobs: whether they have `logprobs` too, and with them the ids.
        keeps_questions: whether its requests come with all that their agent was asked before (`Thread.questions`).
        weights: a name of the weights that it has now, or of the agent that it found; None: those that its fields say.
            Calls are known by it, and a run goes on only with what an engine had once it was started.

    Raises:
        ContextLengthError, RefusedError, RequestError: for one request.
        EngineFatalError: if the engine is unusable from now on.
        SetupError: from `check` and `start`, if it cannot begin.
    """

    incidental: ClassVar[frozenset[str]] = frozenset()
    location: ClassVar[frozenset[str]] = frozenset()
    asks_people: ClassVar[bool] = False
    confined: ClassVar[bool] = False
    any_request: ClassVar[bool] = False
    queues_unseen: ClassVar[bool] = False
    calls_models: ClassVar[bool] = False
    deterministic: bool = False
    return_token_ids: bool = False
    return_logprobs: bool = False
    keeps_questions: bool = False
    weights: str | None = None

    @property
    @abstractmethod
    def model(self) -> str:
        """The model's name in tables. `start` may learn another one, as from the server that it finds."""

    def check(self) -> None:
        """Raise `SetupError` for what can be known before it starts: a package, a key or a file that is missing.

        Called before anything is written for a run that has not begun. It sends nothing, starts no process and imports
        nothing large.
        """

    async def start(self) -> None:
        """Load or connect. Called before the first request, and again before the next request after `close` or
        `sleep`."""

    @abstractmethod
    async def complete(self, request: Request) -> Completion:
        """Answer one request. Called many times concurrently."""

    async def close(self) -> None:
        """Release everything. Called once after a `start`, even if that failed."""

    async def sleep(self) -> bool:
        """Release accelerator memory until the next `start`, which is then quick. Returns False if it cannot; the run
        then closes it."""
        return False

    @property
    def width(self) -> int | None:
        """How many requests it works on at once, known once it is started; None: it does not say. It gets no more."""
        return None

    def constraint_problem(self, constraint: Mapping[str, Any]) -> str | None:
        """Why it cannot hold a reply to this `Request.constraint`; None if it can, or sends none. A run asks before its
        first call."""
        return None

    @property
    def request_check(self) -> Callable[[Request], tuple[str, str] | None] | None:
        """What says of a request (why, what to do) if the engine cannot answer it, as where a prompt is longer than the
        model takes; None: that is not known before it is asked. A run asks it before its first call, with the requests
        of an episode in which no model says anything."""
        return None

    def stop_retrying(self, reason: Exception) -> None:
        """The run is about to end: raise `reason` instead of retrying a failed request. Requests in flight continue."""

    def count_tokens(self, text: str) -> int | None:
        """Return the number of the text's tokens for this model; None if the engine does not know."""
        return None

    @property
    def collects(self) -> bool:
        """Whether it collects requests and sends them together, in batches that take minutes or hours. A run then keeps
        all its episodes open, and does not wait for requests in flight when it is interrupted."""
        return False

    def collect(self, when_all_wait: Callable[[Callable[[], None]], None], path: Path) -> None:
        """Learn from a run, before `start`, when to send what was collected, and where to write down what must outlive
        the process. `when_all_wait(send)` calls `send` once each open episode waits for an engine that collects."""

    @property
    def waiting_for(self) -> str:
        """What it waits for that takes long, for progress; "" where there is nothing to say."""
        return ""

    def files(self) -> Sequence[Path]:
        """The files of a user's own programs that it runs: a run is not resumed with other files."""
        return ()

    def announcement(self, plan: Any, limit: int | None) -> str:
        """What to say before a run if it `asks_people`: how many answers they have to write.

        `plan`: a `harness.config.plan.Plan`; `limit`: of cases, if the command line has one.
        """
        return f"{self.model} answers"

    def show_end(self, episode: str, players: Mapping[str, Any], outcome: Outcome) -> None:
        """Show how an episode has ended; called on an engine that `asks_people`.

        `players`: agent → `harness.runtime.players.Player`.
        """

    def end_episode(self, episode: str, outcome: Outcome | None) -> None:
        """An episode is over, or is not played on in this run: then there is no `outcome`."""

    def log_to(self, path: Path) -> None:
        """Append the output of this engine's processes to this file. A run calls it before `start`."""

    def report(self) -> Facts:
        """Return what the engine measured (cache hits, retries, …); the run records it."""
        return {}

    def describe(self) -> Facts:
        """Return the engine's fields without secrets (`repr=False`), for the run's record and for cache keys."""
        own = {"model": self.model}
        return {f.name: getattr(self, f.name) for f in fields(self) if f.init and f.repr} if is_dataclass(self) else own

    def identity(self, *, location: bool) -> dict[str, Any]:
        """Return the part of `describe` that can change an answer; `location`: whether to include the engine's
        location."""
        free = self.incidental if location else self.incidental | self.location
        facts = {key: value for key, value in self.describe().items() if key not in free}
        return facts if self.weights is None else {**facts, "weights": self.weights}


class CallsTools:
    """An engine whose model can be offered functions (`Request.tools`).

    Its calls are in `Completion.tool_calls`. An engine without this base class gets no functions.
    """

    @property
    def tools_problem(self) -> str | None:
        """Why this engine, with its present fields, cannot offer functions; None if it can."""
        return None


class Ability(ABC):
    """A base class of engines that answer a form which no text answers (`Reply.ability`).

    Attributes:
        need: what is said of turns with such a form, such as "is scored by log-likelihoods".
        lack: what is said of engines without the ability, such as "computes no log-likelihoods".
    """

    need: ClassVar[str]
    lack: ClassVar[str]


class ContinuesText:
    """An engine that continues a text: a thread without chat (`Thread.chat`), or a reply that has begun
    (`Request.prefill`). An engine without this base class gets neither."""


class Replays(ABC):
    """An engine that answers from a recorded run. A recorded failure is a result, so it does not stop the run."""

    @property
    @abstractmethod
    def recorded(self) -> Path:
        """Where the recording is: a run's folder, or a file."""


class StaysUp:
    """An engine that takes long to start and stays up while a command plays several runs.

    `start` is called for each run. From the second run on the engine is already up, so `start` only resets the counts
    for `report`. `close` is called after the last run, or if another engine is needed. Two engines with the same
    parameters are the same engine.
    """
