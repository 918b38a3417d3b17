"""Pairs of replies to the same prompt, one better than the other, for preference training."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from harness.api import Facts

from .chat_messages import Message, TrainingConversation
from .texts import as_json

Row = dict[str, Any]


@dataclass(slots=True)
class _Answer:
    """A reply to a prompt.

    Attributes:
        digest: of the reply.
        total, count: of the rewards of the episodes in which it was given.
        offset: where its conversation is in the file.
        place: its place in the conversation.
    """

    digest: bytes
    total: float
    count: int
    offset: int
    place: int

    @property
    def reward(self) -> float:
        return self.total / self.count


@dataclass(frozen=True, slots=True)
class Pair:
    """Two replies of an agent to one prompt.

    Attributes:
        prompt: the messages before.
        better, worse: the replies.
        rewards: of both: the mean over the episodes in which the reply was given.
        facts: what is known of the better reply's conversation.
        tools: what the agent could call.
    """

    prompt: Sequence[Message]
    better: Message
    worse: Message
    rewards: tuple[float, float]
    facts: Row
    tools: Sequence[Facts]


class ReplyPairs:
    """Collects conversations in a file and pairs their replies; in memory are digests and places alone.

    Replies answer the same prompt where agent, condition, case, tools and all messages before them are
    the same. Of several replies to a prompt the best is paired with the worst, the second with the second last, and so
    on while the first has a higher reward.

    Attributes:
        prompts: how many different prompts there were.
        single: how many of them have one reply, however often it was given.
        ties: how many of the others have replies of equal reward alone.
    """

    def __init__(self, folder: Path) -> None:
        self._file = tempfile.TemporaryFile("w+b", dir=folder)  # noqa: SIM115
        self._answers: dict[bytes, list[_Answer]] = {}
        self.single = self.ties = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    @property
    def prompts(self) -> int:
        """How many different prompts there were."""
        return len(self._answers)

    def add(self, conversation: TrainingConversation, facts: Row) -> None:
        """Add a conversation of an episode; `facts`: "reward", "condition", "case_digest" and others. Raises
        `OSError`."""
        offset = self._file.seek(0, 2)
        row = {"messages": conversation.messages, "tools": conversation.tools, "facts": facts}
        self._file.write((as_json(row) + "\n").encode())
        about = [facts["condition"], facts["case_digest"], conversation.agent, conversation.tools]
        so_far = hashlib.sha256(as_json(about).encode())
        for place, message in enumerate(conversation.messages):
            said = as_json(unweighted(message)).encode()
            if message.get("weight") == 1:
                self._count(so_far.digest()[:16], hashlib.sha256(said).digest()[:16], facts["reward"], offset, place)
            so_far.update(said)

    def _count(self, prompt: bytes, reply: bytes, reward: float, offset: int, place: int) -> None:
        answers = self._answers.setdefault(prompt, [])
        known = next((one for one in answers if one.digest == reply), None)
        if known is None:
            answers.append(_Answer(reply, reward, 1, offset, place))
        else:
            known.total += reward
            known.count += 1

    def pairs(self) -> Iterator[Pair]:
        """The pairs, in the order in which their prompts came. Raises `OSError`."""
        self.single = self.ties = 0
        for answers in self._answers.values():
            if len(answers) == 1:
                self.single += 1
                continue
            ranked = sorted(answers, key=lambda one: -one.reward)
            both = [
                (one, other) for one, other in zip(ranked, reversed(ranked), strict=True) if one.reward > other.reward
            ]  # from the middle on the first is no better
            self.ties += not both
            yield from (self._pair(one, other) for one, other in both)

    def _pair(self, better: _Answer, worse: _Answer) -> Pair:
        row, other = self._read(better.offset), self._read(worse.offset)
        prompt = [*map(unweighted, row["messages"][: better.place])]
        replies = unweighted(row["messages"][better.place]), unweighted(other["messages"][worse.place])
        return Pair(prompt, *replies, (better.reward, worse.reward), row["facts"], row["tools"])

    def _read(self, offset: int) -> Row:
        self._file.seek(offset)
        row: Row = json.loads(self._file.readline())
        return row


def unweighted(message: Mapping[str, Any]) -> Message:
    """The message without its weight."""
    return {key: value for key, value in message.items() if key != "weight"}
