"""What an engine is: requests in, completions out. The vocabulary of engine authors; standard library only.

An engine needs four names: `Engine`, `Request` and its `Thread`, and `harness.api.Completion`. One that also scores
texts needs `ComputesLikelihoods` and `LikelihoodRequest`.
"""

from __future__ import annotations

import hashlib
import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, ClassVar

from harness.api import Completion, Facts, Reply
from harness.approvals import NeededApproval, NeedsApproval


class Thread:
    """One agent's conversation, append-only.

    `memo` is room for an engine to keep what it derived from the messages so far (token ids, a running hash), so that
    no call costs work proportional to the history. Threads with a lower `age` are older; if an engine cannot answer
    all at once, they come first.

    Where `chat` is false the thread is a plain text: the contents of its messages, one after another, with no chat
    template. The model continues it. Only engines that are `ContinuesText` get such threads.

    Where `verbatim` is true, as in every plain text, a reply counts as the model wrote it: its special tokens are part
    of it, and nothing in it is reasoning. Engines that do not see special tokens leave it.
    """

    __slots__ = ("age", "chat", "memo", "messages", "verbatim")
    _opened = itertools.count()

    def __init__(self, age: int | None = None, chat: bool = True, verbatim: bool = False) -> None:
        self.messages: list[dict[str, Any]] = []
        self.memo: dict[str, Any] = {}
        self.age = next(self._opened) if age is None else age
        self.chat, self.verbatim = chat, verbatim or not chat

    @property
    def text(self) -> str:
        """The contents of all messages, one after another: what a thread without chat asks a model to continue."""
        return "".join(message["content"] for message in self.messages)

    def add(self, role: str, content: str, **more: Any) -> None:
        """Append one message.

        `role` is system, user or assistant; in a conversation with tools also tool. `more` is then what OpenAI's chat
        API has beside the content: an assistant's `tool_calls`, a tool's `tool_call_id`.
        """
        self.messages.append({"role": role, "content": content, **more})


@dataclass(frozen=True, slots=True)
class Request:
    """One model call.

    Attributes:
        id: episode, agent, turn and attempt; unique in a run, and the same whenever the run is repeated.
        thread: the conversation. The engine answers its last message and does not change the messages.
        sampling: `generation_kwargs` of the spec: temperature, top_p, top_k, min_p, max_tokens, stop, … .
        seed: derived for this call alone.
        constraint: as returned by `Reply.constraint`, or None for free text.
        prefill: the text with which the model's message begins; the completion is what follows it. Only engines that
            are `ContinuesText` get one.
        tools: functions that the model may call, each {"name", "description", "parameters"}, of which the last is the
            JSON schema of its arguments. Only engines that are `CallsTools` get any.
        reply: the form in which the completion will be read, for engines that help to keep it (`AsksPeople`). A model
            knows of it what the prompt says.
    """

    id: str
    thread: Thread
    sampling: Facts
    seed: int
    constraint: Mapping[str, Any] | None = None
    prefill: str = ""
    tools: tuple[Facts, ...] = ()
    reply: Reply | None = None


@dataclass(frozen=True, slots=True)
class Continuation:
    """A text whose log-likelihood is asked for.

    Attributes:
        text: the text.
        context: what comes before it. None: the conversation in which it is asked, as the prompt set renders it. A
            text: just this, with no chat template. Messages, each {"role", "content"}: these, in the model's chat
            template; where the last one is the assistant's, `text` continues it.
    """

    text: str
    context: str | tuple[Mapping[str, str], ...] | None = None


@dataclass(frozen=True, slots=True)
class LikelihoodRequest:
    """One question about the log-likelihood of texts.

    Attributes:
        id: as of a `Request`.
        thread: the conversation before texts without a context of their own. The engine does not change it.
        continuations: the texts.
        rolling: each text stands for itself, without any context, and is scored in windows as long as the model takes.
        prefill: the text with which the model's message begins, behind `thread`.
    """

    id: str
    thread: Thread
    continuations: tuple[Continuation, ...]
    rolling: bool = False
    prefill: str = ""


class Engine(ABC):
    """Turns requests into completions. It owns its client, retries and rate limits, and knows nothing of agents.

    An engine needs `model` and `complete`, and usually `start` and `close`; the other methods have defaults. A second
    base class declares what a run must know of it before it begins: `AsksPeople`, `CallsTools`, `ComputesLikelihoods`,
    `ContinuesText`, `Replays`, `RunsPrograms`, `StaysUp`; `harness.approvals.NeedsApproval` that it sends keys to
    addresses which a spec may give.

    Attributes:
        incidental: fields that never change a completion: timeouts, pool sizes.
        location: fields that say where the engine is: a run may continue elsewhere, a response cache may not.

    Raises:
        ContextLengthError, RefusedError, RequestError: for one request.
        EngineFatalError: if the engine is unusable from now on.
        SetupError: from `start`, if it cannot begin.
    """

    incidental: ClassVar[frozenset[str]] = frozenset()
    location: ClassVar[frozenset[str]] = frozenset()

    @property
    @abstractmethod
    def model(self) -> str:
        """The model's name in tables."""

    async def start(self) -> None:
        """Load or connect. Called before the first request, and after `close` or `sleep` before the next one."""

    @abstractmethod
    async def complete(self, request: Request) -> Completion:
        """Answer one request. Called many times concurrently."""

    async def close(self) -> None:
        """Release everything. Called once after a `start`, even if that failed."""

    async def sleep(self) -> bool:
        """Release accelerator memory until the next `start`, which is then quick. False: it cannot, close it."""
        return False

    def stop_retrying(self, reason: Exception) -> None:
        """The run is about to end: raise `reason` instead of retrying a failed request. Requests in flight continue."""

    def count_tokens(self, text: str) -> int | None:
        """Return the number of the text's tokens for this model; None if the engine does not know."""
        return None

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
        """Return what of `describe` can change an answer; `location`: whether the fields count that say where it is."""
        free = self.incidental if location else self.incidental | self.location
        return {key: value for key, value in self.describe().items() if key not in free}


class AsksPeople:
    """An engine whose answers a person writes, in the terminal of this process.

    Its run plays one episode at a time, in this process. Its `model` is `human`, or `human (…)`, and is part of what
    tables call the run, whatever else plays.
    """


def is_person(model: str) -> bool:
    """Whether an engine's name in tables is that of a person.

    >>> is_person("human"), is_person("human (Ann)"), is_person("humanoid-7b")
    (True, True, False)
    """
    return model == "human" or model.startswith("human (")


class CallsTools:
    """An engine whose model can be offered functions (`Request.tools`).

    What it calls is `Completion.tool_calls`. One without this base class is offered none.
    """

    @property
    def tools_problem(self) -> str | None:
        """Why this engine, with its present fields, cannot offer functions; None if it can."""
        return None


class ComputesLikelihoods(ABC):
    """An engine that also says how likely given texts are."""

    @abstractmethod
    async def loglikelihood(self, request: LikelihoodRequest) -> Completion:
        """Score texts. Called many times concurrently; raises as `Engine.complete`.

        The completion has no text. Its `likelihoods` are one `[sum, is_greedy]` for each continuation, in order: the
        sum of the natural logarithms of the probabilities of the text's tokens, and whether each of these tokens is
        the most likely one. `input_tokens` counts the tokens of all texts and of what precedes each.
        """


class ContinuesText:
    """An engine that continues a text: a thread without chat (`Thread.chat`), or a reply that has begun
    (`Request.prefill`). One without this base class gets neither."""


class Replays(ABC):
    """An engine that answers from a recorded run. What failed there is a result, and is no reason to stop."""

    @property
    @abstractmethod
    def recorded(self) -> Path:
        """Where the recording is: a run's folder, or a file."""


class RunsPrograms(NeedsApproval):
    """An engine that runs programs on this machine: those of models, or the user's own.

    A foreign spec that declares one under `models:` runs only once that is approved (`harness.approvals`); one whose
    models write the programs only with `--allow_code_execution`. To give it on the command line (`--model`), or from
    Python, is consent.

    Attributes:
        confined: whether all of them run behind a fence, which this machine must then offer. They are programs of
            models then.
    """

    confined: ClassVar[bool] = False

    @property
    @abstractmethod
    def programs(self) -> str | None:
        """What it runs, in words that follow "runs"; None if it runs nothing."""

    def files(self) -> Sequence[Path]:
        """The files of these programs that a person may change: a run does not go on with other ones."""
        return ()

    def approvals(self) -> Iterable[NeededApproval]:
        """Its programs, by its fields and their files."""
        if self.programs is None:
            return
        what = f"{getattr(self, 'model', type(self).__name__)}, a model of the spec, runs {self.programs}"
        if self.confined:
            yield NeededApproval(what, "")
            return
        own = dict[str, Any]()
        if is_dataclass(self):
            own = {f.name: getattr(self, f.name) for f in fields(self) if f.init}
        code = [hashlib.sha256(file.read_bytes()).hexdigest() for file in self.files()]
        yield NeededApproval.declared(what, {"engine": type(self).__name__, "fields": own, "files": code})


class StaysUp:
    """An engine that takes long to start, and stays up while a command plays several runs.

    `start` is called for each of them, and finds the engine up from the second on: then it only begins to count again
    what it reports. `close` is called after the last, or where another engine is needed. An engine with the same
    parameters is the same engine.
    """
