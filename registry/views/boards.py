"""How SILO-Bench and MAS-Bench are drawn, and all else that agents do with named calls on a board."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.api import Action, Case, Protocol, Task, plugin
from harness.extensions.networks.sharded import ShardedTask
from harness.extensions.viewer.scenes import agents_at, brief, count, edges_of, places, verdict
from harness.replies.parse_guard import read
from harness.transcripts.view_api import (
    Edge,
    Node,
    RecordedTurn,
    Scene,
    SentMessage,
    Sheet,
    Transcript,
    View,
)

from ..channels._board import Board

_STORE = "shared files"
_MATRIX = 60
_KEY = "→ message, ⇉ broadcast, ↓ inbox, R W D file read, written, deleted, ? list, · wait, ✓ answer, ! unreadable"
_LETTERS = {
    "send_message": "→", "broadcast_message": "⇉", "receive_messages": "↓", "list_agents": "?", "list_files": "?",
    "read_file": "R", "write_file": "W", "delete_file": "D", "wait": "·", "submit_result": "✓",
}  # fmt: skip


@plugin
class Boards(View):
    """Who sent to whom, what each agent did in each round, shared files, and which answers were right.

    A number behind a sign says how often. Rounds are those of the page; a protocol that counts others is quoted.
    """

    def draws(self, task: Task, protocol: Protocol) -> bool:
        """Protocols with a channel of named calls."""
        return issubclass(protocol.needs_channel, Board)

    def scenes(self, transcript: Transcript, task: Task) -> Iterator[Scene]:
        """The agents on a ring or in their network, and sheets that grow."""
        assert transcript.case is not None
        tally = _Tally(transcript, task, transcript.case)
        start = "Every agent has its own part of the input." if isinstance(task, ShardedTask) else "The agents start."
        yield tally.scene(start, ())
        rounds = transcript.rounds
        for number, turns in enumerate(rounds):
            if any(turn.fresh and turn.index for turn in turns):
                tally = _Tally(transcript, task, transcript.case)  # the second pass starts with empty channels
            sent_messages = tally.take(turns)
            own = (turns[0].observation or {}).get("round", number + 1)
            caption = f"Round {number + 1}"
            if own != number + 1:
                caption += f" (round {own} of the protocol)" if own else " (planning)"
            caption += f": {'; '.join(tally.words(sent_messages))}"
            if submitted := [turn.agent for turn in turns if turn.agent in tally.fresh]:
                who = ", ".join(submitted) if len(submitted) <= 4 else count(len(submitted), "agent")
                caption += f"; {who} {'submits' if len(submitted) == 1 else 'submit'}"
            if number == len(rounds) - 1 and transcript.finished:
                caption += f". {verdict(transcript)}".removesuffix(".")
            yield tally.scene(f"{caption}.", sent_messages, turns)


class _Tally:
    """What has happened so far in a pass."""

    def __init__(self, transcript: Transcript, task: Task, case: Case) -> None:
        self.transcript, self.task, self.case, self.agents = transcript, task, case, case.agents
        self.where, self.links = places(transcript), edges_of(transcript)
        self.sent = {agent: dict.fromkeys(self.agents, 0) for agent in self.agents}
        self.rows: dict[str, tuple[str, ...]] = {agent: (agent,) for agent in self.agents}
        self.matrix = {agent: self._sent(agent) for agent in self.agents}
        self.files: dict[str, tuple[str, ...]] = {}
        self.written: dict[str, tuple[str, ...]] = {}
        self.answers: dict[str, Action] = {}
        self.fresh: set[str] = set()
        self.uses: list[Edge] = []
        self.reads: list[str] = []
        self.stores = False
        self.judged = isinstance(case.target, list)  # one right answer per agent; else answers are judged together

    def take(self, turns: Sequence[RecordedTurn]) -> tuple[SentMessage, ...]:
        """Count a round; returns its messages."""
        sent_messages: list[SentMessage] = []
        self.fresh, self.uses, self.reads = set(), [], []
        for turn in turns:
            calls = turn.move.action if turn.move is not None else None
            listed = [call for call in calls if isinstance(call, Mapping)] if isinstance(calls, list) else []
            for call in listed:
                if "error" not in call:
                    self._call(turn, call, sent_messages)
            unread = turn.move is not None and calls is None
            self.rows[turn.agent] += ("!" if unread else _glyphs(listed),)
        self.files |= self.written
        self.written.clear()
        width = max(map(len, self.rows.values()))
        self.rows = {agent: (*row, *("",) * (width - len(row))) for agent, row in self.rows.items()}
        for agent in {message.sender for message in sent_messages}:
            self.matrix[agent] = self._sent(agent)
        return tuple(sent_messages)

    def _call(self, turn: RecordedTurn, call: Mapping[str, Any], sent_messages: list[SentMessage]) -> None:
        name, agent, text = call.get("call"), turn.agent, brief(call.get("content"), 280)
        if name == "broadcast_message":
            channel, topology = (turn.context or {}).get("channel") or {}, self.case.topology or {}
            bounded = channel.get("reach") == "neighbors"
            sent_messages += [SentMessage(agent, one, text) for one in (topology.get(agent, ()) if bounded else ("*",))]
            for other in topology.get(agent, ()) if bounded else self.agents:
                self.sent[agent][other] += other != agent
        elif name == "send_message" and (receiver := self._named(str(call.get("target_id", "")))) is not None:
            sent_messages.append(SentMessage(agent, receiver, text))
            self.sent[agent][receiver] += 1
        elif name in ("read_file", "write_file", "delete_file", "list_files"):
            self.stores = True
            self.uses.append(Edge(*((agent, _STORE) if name == "write_file" else (_STORE, agent)), "held", True))
            path = brief(call.get("path"), 40)
            if name == "read_file":
                self.reads.append(agent)
            elif name == "write_file":
                channel = (turn.context or {}).get("channel") or {}
                files = self.written if "reads" in channel else self.files  # visible from the next round on, or at once
                files[path] = (path, agent, str(turn.round + 1), text[:80])
            elif name == "delete_file":
                self.files.pop(path, None)
        elif name == "submit_result" and agent not in self.answers and self._round(turn) != 0:
            parsed = read(self.task.reply(self.case, agent), str(call.get("answer", "")).strip())
            if parsed.error is None:
                self.answers[agent] = parsed.action
                self.fresh.add(agent)

    def words(self, sent_messages: Sequence[SentMessage]) -> list[str]:
        """What the last round had."""
        reads, readers = self.reads, sorted(set(self.reads))
        said = [count(len(sent_messages), "message")] if sent_messages or not reads else []
        if reads:
            who = f"{readers[0]} reads" if len(readers) == 1 else f"{len(readers)} agents read"
            said.append(f"{who} {count(len(reads), 'file')}")
        return said

    def scene(self, caption: str, sent_messages: tuple[SentMessage, ...], turns: Sequence[RecordedTurn] = ()) -> Scene:
        """The picture now."""
        acting = {turn.agent for turn in turns if turn.move is not None}
        marks = dict.fromkeys(acting, ("active",))
        for i, agent in enumerate(self.agents):
            if agent in self.answers and self.judged:
                marks[agent] = ("right",) if self._right(i, self.answers[agent]) else ("wrong",)
        nodes = list(agents_at(self.where, texts=self.answers, marks=marks))
        if self.stores:
            nodes.append(Node(_STORE, x=0.5, y=0.5, kind="thing", text=str(len(self.files))))
        width = len(next(iter(self.rows.values())))
        sheets = [Sheet("Actions", ("", *map(str, range(1, width))), tuple(self.rows.values()), note=_KEY)]
        if 1 < len(self.agents) <= _MATRIX and any(map(any, (row.values() for row in self.sent.values()))):
            sheets.append(
                Sheet("Messages, by sender and receiver", ("", *self.agents), tuple(self.matrix.values()), True)
            )
        if self.files:
            columns = ("file", "written by", "in round", "content")
            sheets.append(Sheet("Shared files", columns, tuple(list(self.files.values())[-40:])))
        facts = {"submitted": f"{len(self.answers)} of {len(self.agents)}"}
        if self.judged:
            right = sum(self._right(i, self.answers.get(agent)) for i, agent in enumerate(self.agents))
            facts["right"] = str(right)
        return Scene(caption, tuple(nodes), (*self.links, *self.uses), sent_messages, sheets=tuple(sheets), facts=facts)

    def _sent(self, agent: str) -> tuple[str, ...]:
        return agent, *("" if other == agent else str(n) for other, n in self.sent[agent].items())

    def _named(self, text: str) -> str | None:
        """The agent that a call names, by its name or its number."""
        number = re.search(r"(\d{1,9})\D*$", text)
        named = (agent for agent in self.agents if number and agent.endswith(f"-{int(number[1])}"))
        return text if text in self.sent else next(named, None)

    def _round(self, turn: RecordedTurn) -> int:
        return int((turn.observation or {}).get("round", turn.round + 1))

    def _right(self, i: int, answer: Action) -> bool:
        target = self.case.target
        if answer is None or i >= len(target):
            return False
        if isinstance(self.task, ShardedTask):
            return self.task.is_right(self.case, i, answer)
        return self.task.canonical(self.case, answer) == self.task.canonical(self.case, target[i])


def _glyphs(calls: Sequence[Mapping[str, Any]]) -> str:
    """Calls in a few characters: kinds in order, with numbers where there are several."""
    kinds: dict[str, int] = {}
    for call in calls:
        letter = "!" if "error" in call or "skipped" in call else _LETTERS.get(str(call.get("call")), "+")
        kinds[letter] = kinds.get(letter, 0) + 1
    return "".join(letter if n == 1 else f"{letter}{n}" for letter, n in kinds.items())
