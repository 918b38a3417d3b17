"""Transcripts and tables, made in a process of its own.

Both load the project's plugins, and a spec from somewhere else may make them work forever or fill the memory. So they
work in a child with bounded time and memory: what takes too long ends the child, and the viewer continues.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from harness import storage
from harness.api.errors import DataError, UserError
from harness.config.project import find
from harness.storage import finished_episodes
from harness.transcripts.findings import findings
from harness.transcripts.moves import from_journal
from harness.transcripts.view_api import Transcript

from ._recording import Recording
from ._transcripts import as_json, dumped, found_json, part_of

SECONDS = 30.0
"""What a transcript may take; the first one of a run resolves its whole spec."""
TABLE_SECONDS = 300.0
_MAX_MEMORY_BYTES = 8 << 30  # bytes of addresses, far above what a plan with its libraries takes
_RUNS, _TRANSCRIPTS = 3, 4  # that the child keeps


class TooSlowError(Exception):
    """A job took longer than it may; its process has been ended."""


class Reader:
    """A child process that does one job at a time. It starts with the first job, and again after one that failed.

    Args:
        project: the root of the project whose plugins it uses.
        follows: whether it starts again, too, when a plugin or a prompt has changed: Python imports a file once.
    """

    def __init__(self, project: Path, *, follows: bool = True) -> None:
        self._project, self._follows = project, follows
        self._lock = threading.Lock()
        self._is_closed = False
        self._child: tuple[multiprocessing.process.BaseProcess, Connection] | None = None
        self._loaded = 0  # the project's state when the child started

    def warm(self) -> None:
        """Start the child, which imports what it needs."""
        with contextlib.suppress(DataError, TooSlowError):  # the first job says what is wrong
            self.do("nothing")

    def do(self, job: str, *arguments: Any, seconds: float = SECONDS) -> Any:
        """What a method of `_Jobs` gives.

        Raises:
            DataError: with the mistake that the job met.
            TooSlowError: it took longer than `seconds`, beside what a child takes to start.
        """
        with self._lock:
            if self._follows and self._loaded != (now := self.project_state()):
                self._end()
                self._loaded = now
            if self._child is None:
                self._start()
                self._ask("nothing", (), SECONDS)
            done, result = self._ask(job, arguments, seconds)
        if not done:
            raise DataError(result)
        return result

    def project_state(self) -> int:
        """What changes when a plugin or a prompt of the project or of its parents does."""
        there: list[tuple[str, int, int]] = []
        with contextlib.suppress(UserError, OSError):  # the child says what is wrong with the project
            for project in find(self._project).lineage():
                for folder in (project.root / name for name in ("registry", "metrics", "prompts")):
                    for path, folders, names in os.walk(folder):
                        folders[:] = [name for name in folders if name != "__pycache__"]
                        stats = [(file, os.lstat(file)) for file in (f"{path}/{name}" for name in names)]
                        there += [(file, stat.st_mtime_ns, stat.st_size) for file, stat in stats]
        return hash(tuple(there))

    def close(self) -> None:
        """End the child, whatever it is doing, and start no other."""
        self._is_closed = True
        if (child := self._child) is not None:
            with contextlib.suppress(ValueError):  # it has ended meanwhile
                child[0].kill()  # a job that waits for it fails, and lets go of the lock
        with self._lock:
            self._end()

    def _start(self) -> None:
        if self._is_closed:
            raise DataError("the viewer is ending")
        spawn = multiprocessing.get_context("spawn")
        ours, theirs = spawn.Pipe()
        child = spawn.Process(target=_work, args=(theirs, self._project), name="harness view", daemon=True)
        child.start()
        theirs.close()
        self._child = child, ours

    def _ask(self, job: str, arguments: tuple[Any, ...], seconds: float) -> tuple[bool, Any]:
        """(whether the job was done, what it gave or the mistake). Raises as `do`."""
        assert self._child is not None
        connection = self._child[1]
        try:
            connection.send((job, arguments))
            if not connection.poll(seconds):
                self._end()
                raise TooSlowError(f"it took longer than {seconds:.0f} s")
            done, result = connection.recv()
        except (EOFError, OSError):
            self._end()
            raise DataError("the process that reads episodes died; ask again") from None
        return done, result

    def _end(self) -> None:
        if self._child is not None:
            child, connection = self._child
            self._child = None
            connection.close()
            child.kill()
            child.join()
            with contextlib.suppress(ValueError):  # another thread, or the end of the process, has just reaped it
                child.close()


# --------------------------------------------------------------------------------------------- in the child


class _Jobs:
    def __init__(self, project: Path) -> None:
        self._project = find(project)
        self._runs: OrderedDict[tuple[Path, str], Any] = OrderedDict()
        self._read: OrderedDict[tuple[Any, ...], tuple[Transcript, list[dict[str, Any]]]] = OrderedDict()
        self._views: Any = None
        self._specs: Any = None  # of the runs of a site, which are many of a few specs

    def nothing(self) -> None:
        from harness.transcripts import reader  # noqa: F401 - what the first job needs

    def results(self, folder: str) -> str:
        """The run's results as `harness.report.tables_json` has them, as JSON."""
        from harness.evaluation.load_run import load_run
        from harness.report.tables_json import results

        run = load_run(folder, self._project)
        return dumped(results(run.tables, run.headline, run.scores))

    def leaderboard(self, root: Path) -> str:
        """As `_board_jobs.leaderboard`, as JSON."""
        from ._board_jobs import leaderboard

        return dumped(leaderboard(self._project, root))

    def comparison(self, one: Path, other: Path, parts: tuple[str, str, str] | None) -> str:
        """As `_board_jobs.comparison`, as JSON."""
        from ._board_jobs import comparison

        return dumped(comparison(self._project, one, other, parts))

    def episode(self, recording: Recording, more: dict[str, Any]) -> bytes:
        """A transcript as JSON; `more` has further entries."""
        transcript, scenes = self._transcript(recording)
        found = [found_json(one) for one in findings(recording.folder, transcript)]  # maybe newer than the transcript
        return dumped({**as_json(transcript, scenes), "findings": found, **more}).encode()

    def stored(self, folder: Path, episodes: list[str]) -> list[str]:
        """Episodes of a finished run as JSON, read from its journal without an index."""
        from harness.runtime.run_specs import RunSpecs
        from harness.transcripts.reader import Transcripts

        self._specs = self._specs or RunSpecs(self._project)
        reader, done = Transcripts(folder, self._project, self._specs), list[str]()
        for end, batches in finished_episodes.batches(*storage.journals(folder), episodes={*episodes}):
            transcript, scenes = self._with_scenes(reader.read(end["e"], batches, end, inner=False), reader.plan)
            found = [found_json(one) for one in transcript.findings]
            done.append(dumped({**as_json(transcript, scenes), "findings": found}))
        return done

    def form(self, folder: Path, episode: str, turn: int) -> dict[str, Any]:
        """What may take the place of a turn's reply; as the extension that plays on says it."""
        from harness.extensions.replay import what_if

        return what_if.form(self._project, folder, episode, turn)

    def play(self, folder: Path, asked: dict[str, Any], model: dict[str, Any] | None, limit: int | None) -> Any:
        """Play an episode on from a turn with another reply."""
        from harness.extensions.replay import what_if

        return what_if.play(self._project, folder, **asked, model=model, max_calls=limit)

    def text(self, recording: Recording, turn: int, part: str) -> str | None:
        """One text of a transcript, whole; None if there is none."""
        turns = self._transcript(recording)[0].turns
        return part_of(turns[turn], part) if 0 <= turn < len(turns) else None

    def _transcript(self, recording: Recording) -> tuple[Transcript, list[dict[str, Any]]]:
        if recording.state not in self._read:
            batches, end, problem = recording.read()
            if problem is not None:  # with a move missing the others cannot be played again
                self._read[recording.state] = from_journal(recording.episode, batches, end, problem), []
            else:
                reader = self._reader_of(recording)
                self._read[recording.state] = self._with_scenes(
                    reader.read(recording.episode, batches, end, inner=False), reader.plan
                )
            if len(self._read) > _TRANSCRIPTS:
                self._read.popitem(last=False)
        return self._read[recording.state]

    def _reader_of(self, recording: Recording) -> Any:
        from harness.transcripts.reader import Transcripts

        key = recording.folder, recording.stamp
        if key not in self._runs:
            self._runs[key] = Transcripts(recording.folder, self._project)
            if len(self._runs) > _RUNS:
                self._runs.popitem(last=False)
        return self._runs[key]

    def _with_scenes(self, transcript: Transcript, plan: Any) -> tuple[Transcript, list[dict[str, Any]]]:
        """The transcript, which says so where its view failed, and its scenes."""
        from .views import Views, as_json

        self._views = self._views or Views(self._project)
        conditions = () if plan is None else plan.conditions
        played = next((c for c in conditions if c.id == transcript.condition), None)
        scenes, note = self._views.scenes(transcript, played and played.task, played and played.protocol)
        problem = "; ".join(filter(None, (transcript.problem, note))) or None
        return replace(transcript, problem=problem), as_json(scenes)


def _work(connection: Connection, project: Path) -> None:
    """The child: does jobs until the viewer closes the connection."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the viewer, which ends this process
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):  # what plugins print is no one's to read, and not cleaned for a terminal
        os.dup2(nowhere, stream)
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MAX_MEMORY_BYTES, resource.getrlimit(resource.RLIMIT_AS)[1]))
    jobs: _Jobs | None = None
    with contextlib.suppress(EOFError, OSError, KeyboardInterrupt):
        while True:
            name, arguments = connection.recv()
            try:
                jobs = jobs or _Jobs(project)
                do: Callable[..., Any] = getattr(jobs, name)
                connection.send((True, do(*arguments)))
            except UserError as error:
                connection.send((False, str(error)))
            except (Exception, SystemExit) as error:  # of a plugin
                connection.send((False, f"{type(error).__name__}: {error}"[:1000]))
