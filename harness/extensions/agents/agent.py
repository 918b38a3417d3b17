"""An agent of your own in a model's place: a Python function or class, a program, a server, or an A2A agent."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal
from urllib.parse import urlsplit

from harness.api import CallsModels, CallsTools, Completion, Engine, Facts, Outcome, Range, Request, plugin
from harness.api.errors import EngineFatalError, RequestError, SetupError
from harness.api.inner_calls import InnerDoor
from harness.api.printable import clean_name
from harness.engines.call_keys import engine_facts
from harness.engines.priority import PriorityGate
from harness.extensions.agents import _acting_fields as acting
from harness.extensions.agents import _agent_calls as calls
from harness.extensions.agents import _agent_environment as environment
from harness.extensions.agents._agent_log import AgentLog
from harness.extensions.agents._prompting import prompting
from harness.extensions.endpoints.keys import without_keys
from harness.extensions.openai.replicas import keys_sent, public
from harness.extensions.seats.packages import require
from harness.plugins.approvals import NeedsApproval
from harness.plugins.manifests import is_installed
from harness.plugins.needed_approval import NeededApproval
from harness.storage.redaction import without_secrets

if TYPE_CHECKING:
    from harness.extensions.agents._acting_agent import ActingAgent
    from harness.extensions.agents._agent_processes import ProgramAgent
    from harness.extensions.agents._agent_server import AgentServer
    from harness.extensions.agents._prompt_program import PromptProgram

    _Form = calls.PythonAgent | ProgramAgent | PromptProgram | ActingAgent | AgentServer

_INSTALLED = ("/usr/bin", "/usr/lib", "/usr/sbin", str(Path(sys.executable).resolve()))
"""What only an administrator changes, and this Python."""
_MAX_FILES = 1_000
"""Files of an agent's package that count."""


@plugin
class Agent(CallsModels, CallsTools, NeedsApproval):
    """An agent of your own: a Python function or class (`call`), a program (`command`), a server (`url`), or an A2A
    agent (`a2a`).

    Args:
        call: `module:name` of a function `(messages) -> text`, or of a class with `reply(message)`. Its module is in
            the working directory, in the project's root, or installed.
        command: a program that answers lines of JSON, and its arguments; a process for each conversation.
        url: where requests are posted as JSON.
        a2a: the address of an agent that speaks A2A; its card is at `/.well-known/agent-card.json` below it, unless
            the address ends in `.json`.
        args: keyword arguments for the function or the class; programs and servers get them with every request.
        label: the name in tables; by default what `call`, `command` or `url` names, or the card of an A2A agent.
        timeout: seconds for a reply.
        concurrency: the most requests at once, and the most processes of a program.
        history: send whole conversations to a program or a server, with every request, instead of what is new.
        max_retries: tries of a server after the first.
        backoff: seconds before the first retry; doubles each time, with jitter.
        api_key_env: the environment variable with the server's key.
        interface: how a program is asked: by `lines` of JSON, or by a `prompt`: it is started for each turn, gets the
            turn's text, and prints its reply. The text is its standard input, or stands in the command for `{prompt}`,
            or in the file whose name stands there for `{prompt_file}`. By `mcp`: it is started once for each seat of an
            episode and plays by itself, through the MCP server of its seat (HARNESS_MCP_URL, HARNESS_MCP_TOKEN; a
            function gets `mcp_url` and `mcp_token`).
        continue_command: with `prompt`: the command in later turns, which goes on with the session of the one before
            in the same folder and gets what is new; without it the command gets the whole conversation in each turn.
        reply: with `prompt`: where the reply is, if not in the standard output: a file in the working folder, and
            behind `#` where in its JSON (a JSON pointer): run.json#/info/submission, #/result.
        home: with `prompt`: the files of a home that each seat gets, path to content, or a folder that has them.
            `{OPENAI_BASE_URL}` and the like stand for the seat's variables.
        confine: with `prompt`: run the program with nothing of this machine in sight but the system and its own
            installation, to read, its home and its model. Needs bubblewrap.
        readable: what else a confined program may read: files and folders.
        inner: the engine that answers the agent's own model calls: a name under `models:` of the spec, `model` for the
            one of the command line, or any engine. The harness serves it at an address that only this seat can use.
            Programs find it in variables (OPENAI_BASE_URL, OPENAI_API_KEY, OPENAI_MODEL, ANTHROPIC_BASE_URL,
            ANTHROPIC_API_KEY, ANTHROPIC_MODEL), functions and classes in parameters (base_url, api_key,
            anthropic_base_url, model), servers in `endpoint` of each request.
        inner_args: the fields of that engine, where `inner` is an engine's name.
        inner_kwargs: sampling of calls that do not say it, as in `generation_kwargs`; `max_tokens` is also the most
            that a call gets, 4,096 if it is not here.
        inner_limits: what a `turn` and a `seat` may use: calls, tokens, cost (USD) and seconds.
        inner_aliases: other names of the model that programs may ask for; "*" for any.
        env: further variables of a program, each with what it says: base_url, api_key, anthropic_base_url or model.
    """

    call: str | None = None
    command: str | list[str] | None = None
    url: str | None = None
    a2a: str | None = None
    args: dict[str, Any] = field(default_factory=dict)
    label: str = ""
    timeout: Annotated[float, Range(gt=0)] = 600.0
    concurrency: Annotated[int, Range(ge=1, le=1000)] = 32
    history: bool = False
    max_retries: Annotated[int, Range(ge=0)] = 2
    backoff: Annotated[float, Range(ge=0)] = 0.5
    api_key_env: str = ""
    interface: Literal["lines", "prompt", "mcp"] = "lines"
    continue_command: str | list[str] | None = None
    reply: str = ""
    home: str | dict[str, Any] | None = None
    confine: bool = False
    readable: list[str] = field(default_factory=list)
    inner: str | dict[str, Any] | None = None
    inner_args: dict[str, Any] = field(default_factory=dict)
    inner_kwargs: dict[str, Any] = field(default_factory=dict)
    inner_limits: dict[str, dict[str, float]] = field(default_factory=dict)
    inner_aliases: list[str] = field(default_factory=list)
    env: dict[str, str] = field(default_factory=dict)

    incidental: ClassVar[frozenset[str]] = frozenset(
        {"timeout", "concurrency", "max_retries", "backoff", "api_key_env"}
    )
    location: ClassVar[frozenset[str]] = frozenset({"url", "a2a"})

    def __post_init__(self) -> None:
        forms = [name for name in ("call", "command", "url", "a2a") if getattr(self, name)]
        if len(forms) != 1:
            what = "none of them" if not forms else " and ".join(forms)
            hint = (
                'Write call=my_agents.planner:reply, command="./my_agent --stdio", url=http://localhost:8000/reply or '
                "a2a=http://localhost:9999."
            )
            raise SetupError(f"the engine agent needs one of call, command, url and a2a, found {what}", hint=hint)
        if self.call:
            _check_call(self.call)
        for name in ("url", "a2a"):
            if getattr(self, name):
                _check_url(getattr(self, name), name)
        environment.check_fields(self)
        self._words = _words(self.command) if self.command else []
        later = _words(self.continue_command) if self.continue_command else []
        self.keeps_questions = self.waits_for_turn = self.interface == "mcp"
        acting.check_fields(self)
        self._prompting = prompting(self, self._words, later)
        self._words += later  # all of them name what it runs
        self._log_path: Path | None = None
        self._log: AgentLog | None = None  # what follows is made by `start`: an engine is sent to workers before it
        self._form: _Form | None = None
        self._card_name = ""
        self._is_open = False
        self._queue: PriorityGate | None = None
        self._doors: environment.SeatDoors | None = None

    # ------------------------------------------------------------------------------ what it is

    @property
    def model(self) -> str:
        if self.label or self._inner is None:
            return self.label or self._card_name or self._name()
        return f"{self._name()} ({self._inner.model})"

    @property
    def inner_engine(self) -> str | Mapping[str, Any] | None:
        return environment.reference_of(self)

    def connect(self, calls: InnerDoor) -> None:
        self._doors = environment.SeatDoors(calls, self.inner_aliases, self.env)

    def files(self) -> Sequence[Path]:
        """The agent's code: its package in your folders or its module; of a command the files that it names, and those
        of a folder `home`."""
        here = Path.cwd()
        if self.call:
            files = calls.files_of(self.call.partition(":")[0], _MAX_FILES)
        else:
            files = [p for word in self._words if (p := _file(here / word)) and p.is_relative_to(here)]
            files += _named_files([self.home]) if isinstance(self.home, str) else []
        return [file for file in files if os.access(file, os.R_OK)]

    def approvals(self) -> Iterable[NeededApproval]:
        """Its program, by the fields of the engine and the content of its files, or the key that its server gets."""
        if address := self.url or self.a2a:
            yield from keys_sent(self.api_key_env, address, "url" if self.url else "a2a")
            return
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.init}
        files = [*dict.fromkeys([*self.files(), *_named_files(self._words)])]
        code = [[str(file), hashlib.sha256(file.read_bytes()).hexdigest()] for file in files]
        called = self.call or shlex.join(map(clean_name, self._words))
        beside = f", args {clean_name(json.dumps(self.args, default=str))}" if self.args else ""
        listed = f" (files: {', '.join(map(str, files))})" if files else ""
        label = f"; it is called {json.dumps(clean_name(self.label), ensure_ascii=False)}" if self.label else ""
        where = "confined" if self.confine else "in no sandbox"
        what = f"{called}{beside}, {where}{listed}{label}"
        facts = {"engine": type(self).__name__, "fields": own, "files": code, "program": self._program()}
        yield NeededApproval.declared(what, facts)

    def _program(self) -> str | None:
        """Where the program of a command is found."""
        return shutil.which(self._words[0]) if self._words else None

    def describe(self) -> Facts:
        """The fields without secrets, and a digest of the agent's code (`files`)."""
        known = dict(environment.described(self, super().describe()))
        facts = {**known, "args": without_secrets(self.args), "home": without_secrets(self.home)}
        if self._inner is not None:
            facts |= {"inner": without_secrets(self.inner), "inner_args": without_secrets(self.inner_args)}
        if address := self.url or self.a2a:
            return {**facts, "url" if self.url else "a2a": public(address)}
        digest = hashlib.sha256()
        for file in self.files():
            digest.update(hashlib.sha256(file.read_bytes()).digest())
        return {**facts, "code": digest.hexdigest()}

    def identity(self, *, location: bool) -> dict[str, Any]:
        """With what the inner engine is: another model makes another agent of the same program."""
        facts = super().identity(location=location)
        if self._inner is None:
            return facts
        own = {key: value for key, value in facts.items() if key not in ("inner", "inner_args")}
        return {**own, "inner": engine_facts(self._inner, location=location)}

    def _name(self) -> str:
        if address := self.url or self.a2a:
            parts = urlsplit(public(address))
            return f"{parts.netloc}{parts.path}".rstrip("/")
        return self.call or next((file.name for file in self.files()), Path(self._words[0]).name)

    # ------------------------------------------------------------------------------ life

    def log_to(self, path: Path) -> None:
        self._log_path = path

    def check(self) -> None:
        """Raises `SetupError` for a module or a program that does not exist."""
        if self.interface == "mcp":
            require("mcp")
        if self.inner is not None:
            environment.check_packages()
        if self.call:
            calls.check(self.call)
        elif self.command:
            from harness.extensions.agents._agent_process import check_program

            check_program(self._words[0])
            if self._prompting is not None:
                self._prompting.check()
        elif self.a2a and not is_installed("a2a"):
            raise SetupError("a2a= needs the package a2a-sdk", hint='Install it: pip install "mas-eval-harness[a2a]"')

    async def start(self) -> None:
        """Find the agent; processes start with the first requests.

        Raises:
            SetupError: there is none, it cannot be imported or run, or its server does not answer.
        """
        if self.inner is not None:
            if self._doors is None:
                hint = "Play a run with it: harness eval."
                raise SetupError("inner= needs a run, whose models its program may call", hint=hint)
            await self._doors.start()
        self._queue = PriorityGate(lambda in_flight: in_flight < self.concurrency)
        try:
            log = self._log = AgentLog(self._log_path)
        except OSError as error:
            raise SetupError(f"{self._log_path} cannot be written: {error.strerror or error}") from None
        log.open()
        log.begin(self.model)
        if self.interface == "mcp":
            self._form = await acting.start(self, self._words, log, self._doors)
        elif self.call:
            self._form = calls.PythonAgent(self.call, self.args, self.timeout, log, self._doors)
        elif self._prompting is not None:
            from harness.extensions.agents._prompt_program import PromptProgram

            run = None if self._log_path is None else f"{self._log_path.resolve()} {json.dumps(self.describe())}"
            doors = () if self._doors is None else (self._doors.of_program,)
            self._form = PromptProgram(self.model, self._prompting, self.timeout, log, run, *doors)
        elif self.command:
            from harness.extensions.agents._agent_processes import ProgramAgent

            self._form = ProgramAgent(
                self.model, self._words, self.args, self.timeout, self.concurrency, self.history, log, self._doors
            )
        else:
            self._form = server = self._server()
            server.args, server.history, server.doors = self.args, self.history, self._doors
            await server.start()
            self._card_name, self.weights = server.called
        self._is_open = True

    def _server(self) -> AgentServer:
        from harness.extensions.agents._agent_server import AgentServer

        cls = AgentServer
        if self.a2a:
            from harness.extensions.agents._agent_a2a import A2AAgent

            cls = A2AAgent
        return cls(
            model=self.model, base_url=self.url or self.a2a, timeout=self.timeout, max_retries=self.max_retries,
            backoff=self.backoff, max_connections=self.concurrency, api_key_env=self.api_key_env,
        )  # fmt: skip

    async def complete(self, request: Request) -> Completion:
        """Ask the agent.

        Raises:
            RequestError: whatever it did wrong; `RefusedError` and others of a server as the engine `openai` does.
            EngineFatalError: the program cannot be started, or the server is gone.
        """
        if self._form is None or self._queue is None or not self._is_open:
            raise EngineFatalError("the engine is not started, or closed")
        try:
            return await self._ask(self._form, self._queue, request)
        except RequestError as error:
            if (text := without_keys(str(error))) == str(error):
                raise
            raise type(error)(text) from None

    async def _ask(self, form: _Form, queue: PriorityGate, request: Request) -> Completion:
        if self.interface == "mcp" or (self.command and self._prompting is None and not self.history):
            return await form.complete(request)  # a process answers one at a time, and they are few
        await queue.enter(request.thread.age)
        try:
            return await form.complete(request)
        finally:
            queue.leave()

    @property
    def tools_problem(self) -> str | None:
        return None if self.interface == "mcp" else "a program that answers with texts calls none (interface=mcp does)"

    def end_episode(self, episode: str, outcome: Outcome | None) -> None:
        if self.interface == "mcp" and self._form is not None:
            form: Any = self._form
            form.end_episode(episode, outcome)

    def stop_retrying(self, reason: Exception) -> None:
        if isinstance(self._form, Engine):  # a server, which is asked again
            self._form.stop_retrying(reason)

    async def close(self) -> None:
        """End the agent's processes, and all processes that these have started."""
        self._is_open, self._card_name, self.weights = False, "", None
        if self._form is not None:
            await self._form.close()
        if self._doors is not None:
            await self._doors.close()
        if self._log is not None:
            self._log.close()
            self._log = None

    def report(self) -> Facts:
        """Objects, processes or requests, and what became of them."""
        return self._form.report() if self._form is not None else {}


def _check_call(call: str) -> None:
    module, colon, name = call.partition(":")
    if colon and all(part.isidentifier() for part in (*module.split("."), *name.split("."))):
        return
    hint = "Write module:name, such as my_agents.planner:reply for `def reply(messages)` in my_agents/planner.py."
    raise SetupError(f"call={call!r:.200} names no function", hint=hint, at=("call",))


def _check_url(url: str, field: str) -> None:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        hint = f"Write {field}=http://localhost:8000/{'reply' if field == 'url' else ''}, for example."
        raise SetupError(f"{field}={url!r:.200} is not an address", hint=hint, at=(field,))


def _file(path: Path) -> Path | None:
    """The file under a name, links followed; None if there is none."""
    try:
        return path.resolve() if path.is_file() else None
    except (OSError, ValueError):  # a word of a script, longer than names are
        return None


def _named_files(words: Sequence[str]) -> list[Path]:
    """The files that a command names, wherever they lie: as a word, after `=`, or within a script such as that of
    `sh -c`; of a folder the files in it, as `python FOLDER` runs them. Not what is installed, such as `/bin/sh`.
    """
    found: list[Path] = []
    for word in words:
        with contextlib.suppress(
            ValueError, OSError, RuntimeError
        ):  # no path, and quotes that only the program's own language closes
            parts = [word, word.partition("=")[2], *shlex.split(word.replace(";", " "))]
            for part in filter(None, parts):
                path = Path(part).expanduser().resolve()
                inside = sorted(path.rglob("*"))[:_MAX_FILES] if path.is_dir() and len(path.parts) > 2 else [path]
                found += [file for file in inside if file.is_file() and os.access(file, os.R_OK)]
    return [file for file in found if not any(map(file.is_relative_to, _INSTALLED))]


def _words(command: str | list[str]) -> list[str]:
    try:
        words = shlex.split(command) if isinstance(command, str) else list(command)
    except ValueError as error:  # an open quotation mark
        hint = "Close the quotation marks: they group words, as in a shell."
        raise SetupError(f"command={command!r:.200}: {error}", hint=hint, at=("command",)) from None
    if not words or not words[0]:
        raise SetupError(f"command={command!r:.200} names no program", at=("command",))
    return words
