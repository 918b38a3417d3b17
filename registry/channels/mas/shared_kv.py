"""MAS-Bench's shared key-value store (Appendix E.4, Table 5)."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

from harness.api import Case, plugin
from harness.extensions.networks.calls import Verb

from .._board import Board, BoardChannel, Call, Message, RefusedError, path_of

PREVIEW = 120
_JOINER = re.compile(r"\|(?=\s*id=)", re.IGNORECASE)


@plugin
class SharedKV(BoardChannel):
    """MAS-Bench's shared store: all agents list, read, write and delete keys; a submission leaves a marker.

    Changes take effect at once, even within a round: the last writer wins. Values are stored and read verbatim
    (Appendix E.4, Table 5): a reader sees every character that was written. Keys are names in memory; no file of the
    machine is ever touched.
    """

    def open(self, case: Case, rng: random.Random) -> Board:
        """Return a store without keys."""
        return OpenSharedKV(case, self.max_chars)


@dataclass(frozen=True, slots=True)
class Row:
    """The value of a key: its number, and the message of its last writer."""

    id: int
    message: Message


class OpenSharedKV(Board):
    """The rows, and the values that each agent has read."""

    kind = "shared_kv"
    has_keys = True
    verbs = (
        Verb("list_files", (), None, ("prefix",)),
        Verb("read_file", ("path",)),
        Verb("write_file", ("path",), "content", line=True),
        Verb("delete_file", ("path",)),
    )

    def __init__(self, case: Case, max_chars: int) -> None:
        super().__init__(case, max_chars)
        self._rows: dict[str, Row] = {}
        self._next = 0
        self._previous: dict[str, tuple[str | None, str | None]] = {}  # changed key → value and last writer a round ago
        self._changed_by: dict[str, str] = {}
        self._seen: dict[str, dict[str, str]] = {}  # agent → key → the value on which it bases its decisions
        self._reading: dict[str, dict[str, str]] = {}  # the same for values read in this round
        self._due: dict[int, list[tuple[str, str, Message | None]]] = {}
        self.reads: dict[str, dict[str, int]] = {}

    def execute(self, agent: str, call: Call) -> str:
        """Execute list_files, read_file, write_file or delete_file."""
        if call["call"] == "list_files":
            prefix = call.get("prefix", "").strip("\"'")
            return " | ".join(_line(*item) for item in self._rows.items() if item[0].startswith(prefix)) or "no files"
        path = path_of(call["path"])
        if call["call"] == "write_file":
            text = self.check_length(call["content"], "content")
            self.note(agent, "*", text)
            self._change(agent, path, text)
            return f"wrote {path} len={len(text)} preview={text[:PREVIEW]}"
        row = self._rows.get(path)
        if row is None:
            raise RefusedError(f"there is no file {path!r}")
        if call["call"] == "delete_file":
            self._change(agent, path, None)
            return f"removed {path}"
        self._reading.setdefault(agent, {})[path] = row.message.text
        if row.message.sender != agent:
            self.mark_read((row.message,))
            readers = self.reads.setdefault(row.message.sender, {})
            readers[agent] = readers.get(agent, 0) + 1
        return f"content={row.message.text}"  # verbatim (Table 5)

    def on_submit(self, agent: str, text: str) -> str:
        """Write a marker with the submission, by which others see that the agent is offline."""
        path = f"{agent}_submission.txt"
        self._change(agent, path, text)
        self.announced_characters += len(text)
        return f"wrote_file={path}"

    def stale(self, agent: str) -> list[str]:
        """Keys that another agent changed or deleted before this round, since this one read them.

        Section 5.3, stale K-V reads.
        """
        keys = []
        for path, text in self._seen.get(agent, {}).items():
            if path in self._previous:
                value, writer = self._previous[path]
            else:
                row = self._rows.get(path)
                value, writer = row.message.text if row else None, self._changed_by.get(path)
            if value != text and writer != agent:
                keys.append(path)
        return keys

    def deliver(self) -> None:
        """Apply delayed changes, and take over the values read in the last round."""
        for change in self._due.pop(self.round, []):
            self._apply(*change)
        for agent, texts in self._reading.items():
            self._seen.setdefault(agent, {}).update(texts)
        self._reading, self._previous = {}, {}

    def facts(self) -> dict[str, object]:
        """Return the facts of all channels, and `reads`: writer → reader → number of reads of the writer's values."""
        return {**super().facts(), "reads": self.reads}

    def _change(self, agent: str, path: str, text: str | None) -> None:
        """Set a value, or delete the key (None). An unreliable channel may delay or lose the change."""
        message = None if text is None else Message(agent, text, self.round, self.knowledge[agent])
        if self.courier.lost((path,)):
            return
        for late in self.courier.delays():
            if late:
                self._due.setdefault(self.round + late, []).append((agent, path, message))
            else:
                self._apply(agent, path, message)

    def _apply(self, agent: str, path: str, message: Message | None) -> None:
        row = self._rows.get(path)
        self._previous.setdefault(path, (row.message.text if row else None, self._changed_by.get(path)))
        self._changed_by[path] = agent
        if message is None:
            self._rows.pop(path, None)
        elif row:
            self._rows[path] = Row(row.id, message)
        else:
            self._rows[path] = Row(self._next, message)
            self._next += 1


def _line(path: str, row: Row) -> str:
    """Return a row of the list, with joiners in the key escaped."""
    key = _JOINER.sub(r"\\|", path)
    return f"id={row.id} path={key} len={len(row.message.text)} updated=round {row.message.round}"
