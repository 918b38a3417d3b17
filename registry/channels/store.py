"""Shared files, or a key-value store (SILO-Bench's SFS, Appendix A.4)."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal

from harness.api import Case, Facts, plugin
from harness.extensions.networks.calls import Verb

from ._board import Board, BoardChannel, Call, Message, RefusedError, path_of


@plugin
class Store(BoardChannel):
    """SILO-Bench's SFS: all agents list, read, write and delete files; changes are visible in the next round.

    If several agents write to a path in one round, the agent with the highest number wins. Paths are names in memory;
    no file of the machine is ever touched.

    Attributes:
        reads: "ryow": an agent also sees its own writes and deletes of the round; "snapshot": it does not.
    """

    reads: Literal["ryow", "snapshot"] = "ryow"

    def open(self, case: Case, rng: random.Random) -> Board:
        """Return a store without files."""
        return OpenStore(case, self.max_chars, self.reads == "ryow")


@dataclass(frozen=True, slots=True)
class File:
    """One version of a file: the message of its last writer, and the round in which it was created."""

    message: Message
    created: int


class OpenStore(Board):
    """The files at the end of the last round, and each agent's changes in this one."""

    kind = "store"
    verbs = (
        Verb("list_files", (), None, ("prefix",)),
        Verb("read_file", ("path",)),
        Verb("write_file", ("path",), "content", line=True),
        Verb("delete_file", ("path",)),
    )

    def __init__(self, case: Case, max_chars: int, read_own_writes: bool) -> None:
        super().__init__(case, max_chars)
        self._read_own_writes = read_own_writes
        self._files: dict[str, File] = {}
        self._changes: dict[str, dict[str, File | None]] = {}  # agent → path → new version, or None for deleted
        self._due: dict[int, list[tuple[int, str, File | None]]] = {}  # round → (number of the agent, path, file)
        self.reads: dict[str, dict[str, int]] = {}

    @property
    def description(self) -> Facts:
        """`reads`: ryow or snapshot."""
        return {"kind": self.kind, "reads": "ryow" if self._read_own_writes else "snapshot"}

    def execute(self, agent: str, call: Call) -> str:
        """Execute list_files, read_file, write_file or delete_file."""
        if call["call"] == "list_files":
            prefix = call.get("prefix", "")
            paths = sorted(path for path in self._paths(agent) if path.startswith(prefix))
            return "\n".join(paths) if paths else "no files"
        path = path_of(call["path"])
        file = self._version(agent, path)
        if call["call"] == "read_file":
            if file is None:
                raise RefusedError(f"there is no file {path!r}")
            if file.message.sender != agent:
                self.mark_read((file.message,))
                readers = self.reads.setdefault(file.message.sender, {})
                readers[agent] = readers.get(agent, 0) + 1
            return str(file.message.view["text"])
        if call["call"] == "delete_file":
            if file is None:
                raise RefusedError(f"there is no file {path!r}")
            self._change(agent, path, None)
            return f"deleted {path}"
        text = self.check_length(call["content"], "content")
        message = Message(agent, text, self.round, self.knowledge[agent])
        self.note(agent, "*", text)
        self._change(agent, path, File(message, file.created if file else self.round))
        return f"wrote {len(text)} characters to {path}"

    def deliver(self) -> None:
        """Apply due changes, in order of agents and for each agent in order of writing."""
        self._changes = {}
        for _, path, file in sorted(self._due.pop(self.round, []), key=lambda change: change[0]):
            if file is None:
                self._files.pop(path, None)
            else:
                self._files[path] = file

    def facts(self) -> dict[str, object]:
        """Return the facts of all channels, and `reads`: writer → reader → number of reads of the writer's files."""
        return {**super().facts(), "reads": self.reads}

    def _change(self, agent: str, path: str, file: File | None) -> None:
        self._changes.setdefault(agent, {})[path] = file
        if not self.courier.lost((path,)):
            for late in self.courier.delays():
                self._due.setdefault(self.round + 1 + late, []).append((self.number[agent], path, file))

    def _version(self, agent: str, path: str) -> File | None:
        own = self._changes.get(agent, {}) if self._read_own_writes else {}
        return own[path] if path in own else self._files.get(path)

    def _paths(self, agent: str) -> set[str]:
        own = self._changes.get(agent, {}) if self._read_own_writes else {}
        return {*(path for path in self._files if path not in own), *(path for path, file in own.items() if file)}
