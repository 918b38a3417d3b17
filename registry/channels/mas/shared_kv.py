"""MAS-Bench's shared key-value store (Appendix E.4, Table 5)."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from typing import Annotated

from harness.api import Case, Channel, Range, plugin
from harness.authoring.peers import peer_text
from harness.replies import Verb

from .._board import MAX_CHARS, Board, Call, Letter, RefusedError, path_of

PREVIEW = 120
_JOINER = re.compile(r"\|(?=\s*id=)", re.IGNORECASE)


@plugin
class SharedKV(Channel):
    """MAS-Bench: keys with values that all agents can list, read, write and delete; a submission leaves a marker.

    Changes are there at once, within a round too: the last writer wins. A key is a name and nothing else; no file of
    the machine is ever touched.

    Attributes:
        max_chars: a longer value is refused.
    """

    max_chars: Annotated[int, Range(ge=1)] = MAX_CHARS

    opens = Board

    def open(self, case: Case, rng: random.Random) -> Board:
        """No keys."""
        return OpenSharedKV(case, self.max_chars)


@dataclass(frozen=True, slots=True)
class Row:
    """The value of a key: its number, and its last writer's letter (in the round of which it was updated)."""

    id: int
    letter: Letter


class OpenSharedKV(Board):
    """The rows, and what each agent has seen of them."""

    kind = "shared_kv"
    keeps_keys = True
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
        self._before: dict[str, tuple[str | None, str | None]] = {}  # changed key → value and last writer a round ago
        self._changed_by: dict[str, str] = {}
        self._seen: dict[str, dict[str, str]] = {}  # agent → key → the value that its decisions rest on
        self._reading: dict[str, dict[str, str]] = {}  # the same for what was read in this round
        self._due: dict[int, list[tuple[str, str, Letter | None]]] = {}
        self.reads: dict[str, dict[str, int]] = {}

    def do(self, agent: str, call: Call) -> str:
        """list_files, read_file, write_file or delete_file."""
        if call["call"] == "list_files":
            prefix = call.get("prefix", "").strip("\"'")
            return " | ".join(_line(*one) for one in self._rows.items() if one[0].startswith(prefix)) or "no files"
        path = path_of(call["path"])
        if call["call"] == "write_file":
            text = self.checked(call["content"], "content")
            self.note(agent, "*", text)
            self._change(agent, path, text)
            return f"wrote {path} len={len(text)} preview={peer_text(text[:PREVIEW])}"
        row = self._rows.get(path)
        if row is None:
            raise RefusedError(f"there is no file {path!r}")
        if call["call"] == "delete_file":
            self._change(agent, path, None)
            return f"removed {path}"
        self._reading.setdefault(agent, {})[path] = row.letter.text
        if row.letter.sender != agent:
            self.learn((row.letter,))
            readers = self.reads.setdefault(row.letter.sender, {})
            readers[agent] = readers.get(agent, 0) + 1
        return f"content={row.letter.shown['text']}"

    def submitted(self, agent: str, text: str) -> str:
        """A marker tells who reads it that the agent is offline, and what it submitted."""
        path = f"{agent}_submission.txt"
        self._change(agent, path, text)
        self.announced += len(text)
        return f"wrote_file={path}"

    def stale(self, agent: str) -> list[str]:
        """Keys whose value another agent had changed or deleted, by the end of the last round, since this one read it
        (Section 5.3, stale K-V reads)."""
        found = []
        for path, text in self._seen.get(agent, {}).items():
            if path in self._before:
                value, writer = self._before[path]
            else:
                row = self._rows.get(path)
                value, writer = row.letter.text if row else None, self._changed_by.get(path)
            if value != text and writer != agent:
                found.append(path)
        return found

    def deliver(self) -> None:
        """What was read and changed in the last round is what decisions rest on now."""
        for change in self._due.pop(self.round, []):
            self._apply(*change)
        for agent, texts in self._reading.items():
            self._seen.setdefault(agent, {}).update(texts)
        self._reading, self._before = {}, {}

    def facts(self) -> dict[str, object]:
        """The accounts, and `reads`: writer → reader → how often it read what the writer had written last."""
        return {**super().facts(), "reads": self.reads}

    def _change(self, agent: str, path: str, text: str | None) -> None:
        """A new value, or None to delete the key; it may come late or never where the channel is made unreliable."""
        letter = None if text is None else Letter(agent, text, self.round, self.known[agent])
        if self.courier.lost((path,)):
            return
        for late in self.courier.delays():
            if late:
                self._due.setdefault(self.round + late, []).append((agent, path, letter))
            else:
                self._apply(agent, path, letter)

    def _apply(self, agent: str, path: str, letter: Letter | None) -> None:
        row = self._rows.get(path)
        self._before.setdefault(path, (row.letter.text if row else None, self._changed_by.get(path)))
        self._changed_by[path] = agent
        if letter is None:
            self._rows.pop(path, None)
        elif row:
            self._rows[path] = Row(row.id, letter)
        else:
            self._rows[path] = Row(self._next, letter)
            self._next += 1


def _line(path: str, row: Row) -> str:
    """A row of the list; what would begin another one within a key is escaped."""
    key = _JOINER.sub(r"\\|", path)
    return f"id={row.id} path={key} len={len(row.letter.text)} updated=round {row.letter.round}"
