"""Agents that are Python: a function, or a class with an object for each conversation; each call in its own thread."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import importlib
import inspect
import itertools
import sys
import threading
import time
import traceback
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.api import Completion, Request
from harness.api.errors import EngineError, RequestError, SetupError, near
from harness.api.inner_calls import SeatCalls
from harness.engines.engine_output import one_line
from harness.extensions.agents import _agent_loop
from harness.extensions.agents._agent_environment import SeatDoors
from harness.extensions.agents._agent_log import AgentLog
from harness.extensions.agents.conversations import Conversation, Conversations, read_answer
from harness.plugins.manifests import is_installed

_CONTEXT = ("id", "agent", "episode", "conversation", "seed", "sampling", "constraint")
"""What a function, a constructor or `reply` gets where it has a parameter of that name."""


def roots() -> list[Path]:
    """Where a person's modules are looked for first: the working directory, and the root of the project around it."""
    here = Path.cwd()
    return list(dict.fromkeys([here, *[p for p in (here, *here.parents) if (p / "harness.yaml").is_file()][:1]]))


def files_of(module: str, most: int) -> list[Path]:
    """The user's Python files that make up a module: those of its package. It is not imported.

    None of what is installed, and at most so many.
    """
    for root in roots():
        path, top = root / module.replace(".", "/"), root / module.partition(".")[0]
        if path.with_suffix(".py").is_file() or (path / "__init__.py").is_file():
            if top.is_dir():
                return list(itertools.islice(sorted(top.rglob("*.py")), most))
            return [path.with_suffix(".py")]
    return []


# ---------------------------------------------------------------------------------- finding it


def check(call: str) -> None:
    """Raise `SetupError` if there is no such module; nothing of the person's is imported."""
    _search_roots()
    name = call.partition(":")[0].partition(".")[0]
    if not is_installed(name):
        raise _no_module(call, name)


def _search_roots() -> None:
    """Let Python look for modules where a person's are."""
    for root in reversed(roots()):
        if str(root) not in sys.path:
            sys.path.insert(0, str(root))
    importlib.invalidate_caches()


def _no_module(call: str, missing: str) -> SetupError:
    name, where = call.partition(":")[0], " or ".join(map(str, roots()))
    hint = f"{near(name, _modules(name))} Modules are looked for in {where}, and among installed packages."
    return SetupError(f"call={call}: there is no module {missing!r}", hint=hint)


def load(call: str, log: AgentLog) -> Callable[..., Any]:
    """The function or class that `module:name` names.

    Raises:
        SetupError: there is none, or its module cannot be imported: with the place in the person's file.
    """
    name, _, attribute = call.partition(":")
    _search_roots()
    try:
        with log.diverted():
            module: Any = importlib.import_module(name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if missing is not None and f"{name}.".startswith(f"{missing}."):
            raise _no_module(call, missing) from None
        log.write("".join(traceback.format_exception(error)))
        what = f"call={call}: the module {name} cannot be imported: {in_words(error)}"
        package = f"Install it where harness runs: pip install {missing.partition('.')[0]}" if missing else None
        raise SetupError(what, hint=package) from None
    target = module
    for part in attribute.split("."):
        names = [n for n, value in vars(target).items() if callable(value) and not n.startswith("_")]
        if not hasattr(target, part):
            hint = near(part, names)
            raise SetupError(f"call={call}: {_place(module)} has no {part!r}", hint=hint)
        target = getattr(target, part)
    if not callable(target):
        hint = "Name a function that takes the messages, or a class with `reply(message)`."
        if callable(getattr(type(target), "reply", None)):
            hint = f"Conversations would share this object: name its class, {type(target).__name__}."
        raise SetupError(f"call={call} cannot be called, found {type(target).__name__}", hint=hint)
    if inspect.isclass(target) and not callable(getattr(target, "reply", None)):
        hint = "Give the class `reply(self, message)`, and perhaps `reset(self, messages)`; or name a function."
        raise SetupError(f"call={call}: the class {target.__name__} has no method `reply`", hint=hint)
    agent: Callable[..., Any] = target
    return agent


def _place(module: Any) -> str:
    file = getattr(module, "__file__", None)
    return _relative(file) if file else f"the module {module.__name__}"


def _modules(name: str) -> list[str]:
    """Names of modules that may be meant: those beside the one that is missing."""
    package = name.rpartition(".")[0]
    names = []
    for root in roots():
        for folder, prefix in ((root / package.replace(".", "/"), f"{package}." * bool(package)), (root, "")):
            if folder.is_dir():
                names += [prefix + file.stem for file in folder.glob("*.py") if file.stem != "__init__"]
                names += [prefix + one.parent.name for one in folder.glob("*/__init__.py")]
    return names


def in_words(error: BaseException) -> str:
    """An error of an agent in one line: kind, message, and in brackets the innermost line of the user's code."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:  # clients wrap whatever happens in them
        error = error.exceptions[0]
    try:
        message = str(error)
    except Exception as failure:  # an exception of their own
        message = f"(its message fails: {type(failure).__name__})"
    if isinstance(error, SyntaxError) and error.filename:
        return f"{type(error).__name__}: {error.msg} ({_relative(error.filename)}:{error.lineno})"
    frames = [(f.f_code.co_filename, line) for f, line in traceback.walk_tb(error.__traceback__)]
    own = [frame for frame in frames if _is_own(frame[0])]
    foreign = [frame for frame in frames if not Path(frame[0]).is_relative_to(_ENGINES)]
    place = next((f" ({_relative(file)}:{line})" for file, line in (own or foreign)[-1:]), "")
    return f"{one_line(f'{type(error).__name__}: {message}', 500)}{place}"


_ENGINES = Path(__file__).parent


def _is_own(file: str) -> bool:
    """Whether a file is in the person's folders, and not in an environment's packages there."""
    path = Path(file)
    packages = "site-packages" in path.parts or path.is_relative_to(_ENGINES) or path.is_relative_to(sys.prefix)
    return not packages and any(path.is_relative_to(root) for root in roots())


def _relative(file: str) -> str:
    path = Path(file)
    return next((str(path.relative_to(root)) for root in roots() if path.is_relative_to(root)), path.name)


# ---------------------------------------------------------------------------------- asking it


class PythonAgent:
    """Asks a Python agent.

    Every call runs in a thread of its own, which is left to itself when it does not end in time: nothing can end a
    thread. What is awaitable is awaited in one event loop of all agents, in another thread; so an agent that blocks it
    does not block the harness.

    Args:
        call: `module:name`.
        args: keyword arguments, of the function or of the class.
        timeout: seconds for a reply.
        log: where it prints to.
        doors: to the model that it may call; None: it has none of the run's.
    """

    def __init__(
        self, call: str, args: Mapping[str, Any], timeout: float, log: AgentLog, doors: SeatDoors | None = None
    ) -> None:
        self.target = load(call, log)
        self.call, self.args, self.timeout, self.log = call, dict(args), timeout, log
        self.conversations = Conversations()
        self.counts = {"objects": 0, "replayed": 0, "abandoned": 0}
        self.doors = doors
        _check_args(call, self.target, self.args)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()

    async def complete(self, request: Request) -> Completion:
        """Ask the agent. Raises `RequestError` for whatever goes wrong in it."""
        conversation = self.conversations.of(request)
        messages = [dict(message) for message in request.thread.messages]  # agents may change what they get
        facts = self._facts(request, conversation)
        began = time.perf_counter()
        if inspect.isclass(self.target):
            start = conversation.start(request.thread)
            session, conversation.session = conversation.session, None  # none, should it fail
            seat = None if self.doors is None else self.doors.calls(request)
            replay = _Replay(seat, request.thread.memo.get("turns", {}))
            answer, conversation.session = await self._in_thread(
                self._object, facts, messages, session if start else None, start, replay
            )
            conversation.answered(len(messages), answer.text)
        else:
            answer, _ = await self._in_thread(self._function, facts, messages)
        return answer if answer.latency is not None else replace(answer, latency=time.perf_counter() - began)

    def _facts(self, request: Request, conversation: Conversation) -> dict[str, Any]:
        """What functions, constructors and `reply` may get, by the names of their parameters."""
        facts = {
            "id": request.id,
            "agent": conversation.agent,
            "episode": conversation.episode,
            "conversation": conversation.name,
            "seed": request.seed,
            "sampling": dict(request.sampling),
            "constraint": request.constraint,
            **({} if self.doors is None else self.doors.facts(request)),
        }
        return {name: value for name, value in facts.items() if name not in self.args}

    async def close(self) -> None:
        """Leave the agents' loop; a thread that hangs is left."""
        loop, self._loop = self._loop, None
        if loop is not None:
            _agent_loop.leave(self.log, loop)

    def report(self) -> dict[str, int]:
        return {name: count for name, count in self.counts.items() if count}

    # ------------------------------------------------------------------------------ in the agent's thread

    def _function(self, job: _Job, facts: Mapping[str, Any], messages: list[dict[str, str]]) -> tuple[Any, None]:
        return job.value(self.target(messages, **_accepted(self.target, facts), **self.args)), None

    def _object(
        self,
        job: _Job,
        facts: Mapping[str, Any],
        messages: list[dict[str, str]],
        session: Any,
        start: int,
        replay: _Replay,
    ) -> tuple[Any, Any]:
        """Ask the conversation's object. If it is None, make a new one and give it the conversation so far."""
        is_new = session is None
        if is_new:
            self.counts["objects"] += 1
            session = self.target(**_accepted(self.target, facts), **self.args)
        facts = _accepted(session.reply, facts)
        if is_new:
            start = max((i + 1 for i, message in enumerate(messages) if _is_answer(message)), default=0)
            if _takes_messages(session):
                start = len(messages) - 1
                job.value(session.reset(messages[:start]))
            else:
                if callable(getattr(session, "reset", None)):
                    job.value(session.reset())
                for answer, text in _questions(messages[:start]):
                    self.counts["replayed"] += 1
                    with replay.of(answer):
                        job.value(session.reply(text, **facts))
        return job.value(session.reply(_joined(messages[start:]), **facts)), session

    # ------------------------------------------------------------------------------ threads

    async def _in_thread(self, work: Callable[..., Any], *arguments: Any) -> tuple[Completion, Any]:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Any] = loop.create_future()
        job = _Job(self._agents_loop)

        def deliver(result: Any) -> None:
            if not done.done():
                done.set_result(result)

        def run() -> None:
            result: Any
            try:
                with self.log.diverted():
                    answer, session = work(job, *arguments)
                    result = read_answer(answer), session
            except EngineError as error:
                result = error
            except BaseException as error:  # SystemExit and KeyboardInterrupt of the agent's own too
                if not job.is_abandoned:
                    self.log.write("".join(traceback.format_exception(error)))
                result = RequestError(f"{self.call} fails: {in_words(error)}")
            with contextlib.suppress(RuntimeError):  # the run is over
                loop.call_soon_threadsafe(deliver, result)

        context = contextvars.copy_context()
        threading.Thread(target=context.run, args=(run,), name=self.call, daemon=True).start()
        try:
            async with asyncio.timeout(self.timeout):
                result = await done
        except TimeoutError:
            self.counts["abandoned"] += 1
            why = await self._blocked(job)
            raise RequestError(f"{self.call} gave no reply within {self.timeout:g} s{why}") from None
        finally:
            if not done.done() or done.cancelled():
                job.abandon()
        if isinstance(result, EngineError):
            raise result
        answer: tuple[Completion, Any] = result
        return answer

    async def _blocked(self, job: _Job) -> str:
        """What to say about a call that took too long, where an agent keeps all others from going on."""
        if not job.awaits or self._loop is None or not await _agent_loop.is_blocked(self._loop):
            return ""
        return ": an agent blocks the event loop of all; await what takes long, or write `def` instead of `async def`"

    def _agents_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = _agent_loop.enter(self.log)
            return self._loop


class _Job:
    """One call under way."""

    def __init__(self, loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
        self._loop, self.is_abandoned = loop, False
        self._awaited: Any = None

    def value(self, result: Any) -> Any:
        """What the agent gave; awaited first, where it is awaitable."""
        if not inspect.isawaitable(result):
            return result
        self._awaited = asyncio.run_coroutine_threadsafe(guarded(result), self._loop())
        value, error = self._awaited.result()
        if error is not None:
            raise error
        return value

    @property
    def awaits(self) -> bool:
        """Whether it has given the loop something to await."""
        return self._awaited is not None

    def abandon(self) -> None:
        """Nothing waits for it any more."""
        self.is_abandoned = True
        if self._awaited is not None:
            self._awaited.cancel()


async def guarded(result: Awaitable[Any]) -> tuple[Any, BaseException | None]:
    """What an agent's awaitable gives, or raises: whatever that is, the loop of all goes on."""
    try:
        return await result, None
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # SystemExit would end the loop of all agents
        return None, error


def _is_answer(message: Mapping[str, str]) -> bool:
    """Whether it is the agent's own, and not the empty one that stands for a failure."""
    return message["role"] == "assistant" and bool(message["content"])


def _joined(messages: list[dict[str, str]]) -> str:
    """What an object is sent: the messages that are new to it, as one text."""
    return "\n\n".join(message["content"] for message in messages if message["role"] != "assistant")


class _Replay:
    """Lets the model calls of turns that are played again be answered from their record.

    Args:
        seat: the model; None: it is none of the run's.
        turns: index of an answer among the messages → (index of its turn, attempt).
    """

    def __init__(self, seat: SeatCalls | None, turns: Mapping[int, tuple[int, int]]) -> None:
        self._seat, self._turns = seat, dict(turns)

    @contextlib.contextmanager
    def of(self, answer: int) -> Iterator[None]:
        """Within it the turn is played again whose answer stands at this index."""
        if self._seat is None:
            yield
            return
        turn = self._turns.get(answer)
        self._seat.replaying = own = None if turn is None else (turn[0], turn[1])  # an object of this thread's own
        try:
            yield
        finally:
            if self._seat.replaying is own:  # else this thread was given up, and another one plays
                self._seat.replaying = None


def _questions(messages: list[dict[str, str]]) -> Iterator[tuple[int, str]]:
    """(index of the answer, text) of what an object was sent for a conversation that ends with its own answer.

    What it failed at is part of the next text.
    """
    start = 0
    for i, message in enumerate(messages):
        if _is_answer(message):
            yield i, _joined(messages[start:i])
            start = i + 1


def _takes_messages(session: Any) -> bool:
    """Whether `reset` takes the conversation so far."""
    reset = getattr(session, "reset", None)
    if not callable(reset):
        return False
    try:
        parameters = inspect.signature(reset).parameters.values()
    except (TypeError, ValueError):
        return True
    return any(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL) for p in parameters)


def _accepted(function: Callable[..., Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the facts that the function has parameters for."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # of a builtin
        return {}
    by_name = {name for name, one in parameters.items() if one.kind is not inspect.Parameter.POSITIONAL_ONLY}
    return {name: value for name, value in facts.items() if name in by_name}


def _check_args(call: str, function: Callable[..., Any], args: Mapping[str, Any]) -> None:
    """Raise `SetupError` for args that the function has no parameter for."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return
    open_ended = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    for name in args if not open_ended else ():
        if name not in parameters:
            known = [n for n in list(parameters)[not inspect.isclass(function) :] if n not in _CONTEXT]
            hint = near(name, known) if known else f"Leave args= out, or give the function a parameter {name!r}."
            raise SetupError(f"call={call} has no parameter {name!r}, which args= gives", hint=hint)
