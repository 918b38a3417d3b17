"""Calls that other runs have made, by what was asked: `--reuse FOLDER`.

    engine = Recorded(Gate(engine), RecordedCalls(Path("results"), own=folder))

A matrix that grows by a row, `repeats` from 1 to 5, another player in a pool: what is asked in the same words, of the
same engine, with the same sampling and seed has been answered, and is not asked again. Everything else of a run is
computed as ever: prompts are rendered, replies are read, episodes are graded.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import zlib
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from harness import storage
from harness.api import Completion, Engine, Facts, Request
from harness.api.errors import DataError
from harness.api.printable import clean_name
from harness.api.run_files import META
from harness.engines.cache import as_asked
from harness.engines.call_keys import EngineKeys
from harness.engines.gate import Wrapper
from harness.storage import PromptIds, completion_of
from harness.storage.files import json_object, no_pipe
from harness.storage.token_ids import SHARED

_log = logging.getLogger(__name__)
_KEPT = 1024
"""Lines whose ids are kept."""


class RecordedCalls:
    """What the runs below a folder have asked and heard.

    Where several runs have asked the same, the one that began first is taken: what a run finds does not depend on the
    order in which folders are listed.

    Args:
        folder: a run's folder, or one with runs below it; links are not followed.
        own: the folder of the present run, which is left out.
    """

    def __init__(self, folder: Path, own: Path) -> None:
        self._journals: list[tuple[Path, str]] = []  # each with the name of its run
        self._calls: dict[bytes, tuple[int, int, int]] = {}  # digest → journal, offset of the line, CRC-32 of the text
        self._differing = 0
        self._before: dict[tuple[int, int], int] = {}  # journal, offset → offset of the line that a prompt repeats
        self._bases: OrderedDict[tuple[int, int], PromptIds] = OrderedDict()  # those of lines that were read last
        unknown = sum([self._read(name, run) for _, name, run in sorted(_runs(folder, own.resolve()))])
        if unknown:
            _log.warning("--reuse: %d calls in %s do not say what was asked, and are not used", unknown, folder)
        if self._differing:
            text = "--reuse: two runs have heard different answers to %d calls; those of the earlier run are used"
            _log.warning(text, self._differing)

    def _read(self, name: str, run: Path) -> int:
        """Take the calls of a run; returns how many do not say what was asked."""
        unknown = 0
        for path in filter(Path.is_file, storage.journals(run)):
            self._journals.append((path, name))
            last: dict[Any, int] = {}  # episode, agent → offset of the last move with ids
            try:
                for offset, line in storage.lines(path):
                    self._note_ids(offset, line, last)
                    for call in _calls(line):
                        digest = call.get("request_digest")
                        if isinstance(digest, str) and _DIGEST.fullmatch(digest):
                            answer = zlib.crc32(json.dumps([call.get(key) for key in _ANSWER]).encode())
                            place = len(self._journals) - 1, offset, answer
                            known = self._calls.setdefault(bytes.fromhex(digest), place)
                            self._differing += known[2] != answer
                        else:
                            unknown += 1
            except DataError as error:  # what stands before the damage counts
                _log.warning("--reuse: %s; what follows it is not used", " ".join(clean_name(str(error)).split()))
        return unknown

    def _note_ids(self, offset: int, line: Mapping[str, Any], last: dict[Any, int]) -> None:
        """Remember which line the ids of this one follow."""
        first = next((call for call in _calls(line) if "prompt_token_ids" in call), None)
        if first is not None:
            agent = line.get("e"), line.get("s")
            if SHARED in first and agent in last:
                self._before[len(self._journals) - 1, offset] = last[agent]
            if line.get("k") == "move":
                last[agent] = offset

    def find(self, digest: str, with_ids: bool = False) -> Completion | None:
        """The answer to the call with this digest, with the run that it comes from; None if there is none. `with_ids`:
        with the ids of its prompt."""
        place = self._calls.get(bytes.fromhex(digest))
        if place is None:
            return None
        path, run = self._journals[place[0]]
        try:
            with open(path, "rb", opener=no_pipe) as file:
                file.seek(place[1])
                line = json_object(file.readline(), path)
            calls = _calls(line)
            if with_ids:
                self._restore(place[0], place[1], calls)
            call = next(call for call in calls if call.get("request_digest") == digest)
            return completion_of({"reused_from": run, **call, "began": None})
        except (OSError, DataError, StopIteration, TypeError, ValueError):  # somebody changes it just now
            return None

    def _restore(self, journal: int, offset: int, calls: list[dict[str, Any]]) -> None:
        """Give the prompts of a line's calls their whole ids. Those of the line before are kept for a while: a
        conversation's calls are looked for one after another."""
        chain, at = [(offset, calls)], self._before.get((journal, offset))
        with open(self._journals[journal][0], "rb", opener=no_pipe) as file:
            while at is not None and (journal, at) not in self._bases:
                file.seek(at)
                chain.append((at, _calls(json_object(file.readline(), self._journals[journal][0]))))
                at = self._before.get((journal, at))
        prompts = self._bases.get((journal, -1 if at is None else at), PromptIds())
        for place, each in reversed(chain):
            prompts = prompts.copy()
            prompts.restore(None, each)
            self._bases[journal, place] = prompts
        while len(self._bases) > _KEPT:
            self._bases.popitem(last=False)


class Recorded(Wrapper):
    """Answers what other runs have asked from their journals, and lets the rest through.

    Attributes:
        hits: how many calls were answered so.
    """

    def __init__(self, inner: Engine, calls: RecordedCalls) -> None:
        super().__init__(inner)
        self.calls, self.hits = calls, 0
        self._runs: Counter[str] = Counter()
        self._keys = EngineKeys(self.engine, location=False)

    async def complete(self, request: Request) -> Completion:
        with_ids = self.engine.return_token_ids or self.engine.return_logprobs
        answer = as_asked(self.engine, self.calls.find(self._keys.digest(request), with_ids))
        if answer is None:
            return await request.send(self.inner)
        self.hits += 1
        self._runs[answer.reused_from or ""] += 1
        await asyncio.sleep(0)  # it never waits; let others, and Ctrl-C, in
        return answer

    def report(self) -> Facts:
        return {**super().report(), "calls_reused": dict(self._runs)}


_DIGEST = re.compile("[0-9a-f]{32}")
_ANSWER = ("text", "tool_calls", "likelihoods")


def check(folder: Path, own: Path) -> None:
    """Raise `DataError` unless there is a run in `folder` that is not in `own`."""
    if next(_runs(folder, own.resolve()), None) is None:
        what = "there is no other run in it" if folder.is_dir() else "there is no such folder"
        raise DataError(f"--reuse {folder}: {what}", hint="Name a run's folder, or one with runs below it.")


def _runs(folder: Path, own: Path) -> Iterator[tuple[str, str, Path]]:
    """(when it began, its name below `folder`, its folder) of each run but `own`."""
    for place, folders, files in os.walk(folder):
        folders.sort()
        path = Path(place)
        if META not in files or path.resolve() == own:
            continue
        try:
            began = storage.read_json(path / META).get("start")
        except DataError:  # its journals may be whole
            began = None
        below = path.relative_to(folder).as_posix()
        yield str(began or ""), clean_name(path.resolve().name if below == "." else below), path


def _calls(line: Mapping[str, Any]) -> list[dict[str, Any]]:
    calls = [line.get("call")] if line.get("k") == "inner" else line.get("calls")
    return [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
