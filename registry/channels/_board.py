"""The bases of channels with named calls: mailbox, broadcast, store (SILO-Bench, Appendix A)."""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from harness.api import Case, Channel, Facts, Move, Range
from harness.extensions.networks.calls import Verb
from harness.extensions.panels.peers import peer_text

from ._courier import CarriedChannel

Call = Mapping[str, Any]
MAX_CHARS = 200_000
"""The default limit of a message or file, in characters."""
MAX_PATH = 200
_NUMBER = re.compile(r"(?:agent)?[ _-]?(\d{1,9})", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True)
class Message:
    """One message, or one version of a file.

    Attributes:
        knowledge: the agents whose data the writer could know, as bits by agent number.
        lost: receivers that the message never reaches.
        view: the message as all readers see it, prepared once.
    """

    sender: str
    text: str
    round: int
    knowledge: int
    lost: frozenset[str] = frozenset()
    view: Facts = field(init=False)

    def __post_init__(self) -> None:
        view = {"from": self.sender, "round": self.round, "text": peer_text(self.text)}
        object.__setattr__(self, "view", view)


class Board(CarriedChannel):
    """Executes named calls of agents, during one episode.

    A move's action is a list of calls, as the reply form of named calls reads them. `commit` executes them in order,
    move by move. The results are in the agent's own `observation`, under `results`; others see no effect before
    `next_round`. A refused call has a result that says why, and no effect.

    The channel also counts who sends how much to whom, and tracks whose data each agent can know (SILO-Bench, Section
    3.3 and Appendix G.2). An agent knows its own data. When it sees a message, it also knows what the writer knew when
    writing it.

    Attributes:
        verbs: the available calls.
        topology: who can send messages to whom; None: all to all.
        has_keys: whether the channel keeps values under keys, so that a value that was read can become `stale`.
        round: the number of the current round, from 1.
        knowledge: agent → the agents whose data it could know at its latest decision, as bits by agent number.
        contacts: agent → the agents from which it has received something directly, as bits.
        sent: sender → receiver → [messages, characters]; the receiver "*" stands for all others.
        received: agent → [messages or files of others that it received, their characters]; a message counts once.
        handlers: call → function of the protocol that answers it.
        announced_characters: characters that the channel has sent by itself, in `on_submit`.
    """

    kind: ClassVar[str]
    has_keys: ClassVar[bool] = False
    verbs: tuple[Verb, ...] = ()

    def __init__(self, case: Case, max_chars: int = MAX_CHARS) -> None:
        self.agents, self.max_chars, self.round = case.agents, max_chars, 1
        self.topology = case.topology
        self.number = {agent: i for i, agent in enumerate(case.agents)}
        self._digits = {m[0]: agent for agent in case.agents if (m := re.search(r"\d+$", agent))}
        self.knowledge = {agent: 1 << i for agent, i in self.number.items()}
        self.contacts = dict.fromkeys(case.agents, 0)
        self.sent: dict[str, dict[str, list[int]]] = {}
        self.received = {agent: [0, 0] for agent in case.agents}
        self.handlers: dict[str, Callable[[str, Call], str]] = {}
        self.announced_characters = 0
        self._results: dict[str, list[Facts]] = {}
        self._new_messages: list[Message] = []
        self._repeated_messages: list[Message] = []

    def observation(self, agent: str) -> Facts:
        """Return `inbox` and `results`.

        `inbox` has the messages that the channel has delivered by itself since the agent's last decision, a list of
        {"from", "round", "text"}. `results` has those of its last calls, a list of {"call", "ok", "text"}, with the
        "path" of a file.
        """
        return {"inbox": [message.view for message in self.incoming(agent)], "results": self._results.get(agent, [])}

    def commit(self, moves: Sequence[Move]) -> None:
        """Execute the calls of these moves. An action of None has no calls."""
        for move in moves:
            agent = move.agent
            messages = self.incoming(agent)
            self.mark_seen(agent)
            self._add_knowledge(agent, messages)
            self._new_messages, self._repeated_messages = [], []
            self._results[agent] = [self._result(agent, call) for call in move.action or ()]
            self._add_knowledge(agent, self._new_messages)
            self._add_knowledge(agent, self._repeated_messages, again=True)

    def next_round(self) -> None:
        """Start the next round, in which the changes of this one become visible."""
        self.round += 1
        self.deliver()

    def knowledge_of(self, agent: str) -> int:
        """Return the agent's knowledge at a decision now: `knowledge`, and that of incoming messages."""
        knowledge = self.knowledge[agent]
        for message in self.incoming(agent):
            knowledge |= message.knowledge
        return knowledge

    def find_agent(self, name: str) -> str | None:
        """Return the agent that a text names, by its name in any case or by its number; else None."""
        name = name.strip().strip("\"'").strip()
        if name in self.number:
            return name
        number = _NUMBER.fullmatch(name)
        bare = number and (name[0].isalnum() or name[0] == "_")  # no agent has the number -1
        return self._digits.get(str(int(number[1]))) if number and bare else None

    def others(self, agent: str) -> Sequence[str]:
        """The agents to which this one can send messages: its neighbors, or all others."""
        return self.topology[agent] if self.topology is not None else [one for one in self.agents if one != agent]

    def receiver(self, agent: str, name: str) -> str:
        """Return the agent that a call names. Raises `RefusedError` if this agent cannot send messages to it."""
        receiver = self.find_agent(name)
        if receiver is None:
            raise RefusedError(f"there is no agent {name!r:.80}; there are {self.agents[0]} to {self.agents[-1]}")
        if receiver == agent:
            raise RefusedError("a message to yourself is not sent; you know its content already")
        if self.topology is not None and receiver not in self.topology[agent]:
            neighbors = ", ".join(self.topology[agent]) or "none"
            raise RefusedError(f"you cannot send messages to {receiver}; your neighbors are: {neighbors}")
        return receiver

    def facts(self) -> Facts:
        """Return facts for metrics: `sent`, `received`, and as hexadecimal bits `known` and `met` (contacts)."""
        return {
            "sent": self.sent,
            "received": self.received,
            "known": {agent: f"{bits:x}" for agent, bits in self.knowledge.items()},
            "met": {agent: f"{bits:x}" for agent, bits in self.contacts.items()},
        }

    @property
    def description(self) -> Facts:
        """What all agents know of the channel: `kind`, and for some channels `inbox`, `reach` or `reads`."""
        return {"kind": self.kind}

    # --------------------------------------------------------------------------- for each channel

    @abstractmethod
    def execute(self, agent: str, call: Call) -> str:
        """Execute one call and return its result. Raises `RefusedError` with the reason."""

    def incoming(self, agent: str) -> Sequence[Message]:
        """The messages that the agent sees at its next decision without a call."""
        return ()

    def mark_seen(self, agent: str) -> None:
        """Note that the agent has seen its incoming messages."""

    def deliver(self) -> None:
        """Deliver what is due, at the start of a round."""

    def on_submit(self, agent: str, text: str) -> str:
        """React to an agent's submission. Returns a description of the reaction; "" for none, the default."""
        return ""

    def stale(self, agent: str) -> list[str] | None:
        """Keys whose values have changed since the agent read them; None if the channel has no keys."""
        return None

    def note(self, sender: str, receiver: str, text: str) -> None:
        """Count a message."""
        entry = self.sent.setdefault(sender, {}).setdefault(receiver, [0, 0])
        entry[0] += 1
        entry[1] += len(text)

    def mark_read(self, messages: Sequence[Message], old: int = 0) -> None:
        """Note that the acting agent has fetched these messages. It knows them from its next decision on.

        Args:
            old: how many of them, the first ones, it had seen before as incoming messages.
        """
        self._repeated_messages.extend(messages[:old])
        self._new_messages.extend(messages[old:])

    def check_length(self, text: str, what: str) -> str:
        """Return the text. Raises `RefusedError` if it is too long."""
        if len(text) > self.max_chars:
            raise RefusedError(f"the {what} has {len(text):,} characters; at most {self.max_chars:,} are allowed")
        return text

    def message_text(self, call: Call) -> str:
        """Return the text of a call that sends a message. Raises `RefusedError` if it is too long, or empty."""
        text = self.check_length(call["content"], "message")
        if not text.strip():
            raise RefusedError("the message is empty; nothing was sent")
        return text

    def _result(self, agent: str, call: Call) -> Facts:
        name = str(call.get("call", ""))
        if "skipped" in call:
            return {
                "call": name,
                "ok": False,
                "text": f"error: {call['skipped']} more calls in this reply were skipped",
            }
        if "error" in call:
            return {"call": name, "ok": False, "text": f"error: {call['error']}"}
        try:
            result = {"call": name, "ok": True, "text": self.handlers.get(name, self.execute)(agent, call)}
            return {**result, "path": call["path"]} if "path" in call else result
        except RefusedError as error:
            return {"call": name, "ok": False, "text": f"error: {error}"}

    def _add_knowledge(self, agent: str, messages: Sequence[Message], again: bool = False) -> None:
        if not messages:
            return
        knowledge, contacts = self.knowledge[agent], self.contacts[agent]
        for message in messages:
            knowledge |= message.knowledge
            contacts |= 1 << self.number[message.sender]
        self.knowledge[agent], self.contacts[agent] = knowledge, contacts
        if not again:
            self.received[agent][0] += len(messages)
            self.received[agent][1] += sum(len(message.text) for message in messages)


@dataclass(kw_only=True)
class BoardChannel(Channel):
    """A channel that opens a board.

    Attributes:
        max_chars: longer messages, values and contents of files are refused.
    """

    max_chars: Annotated[int, Range(ge=1)] = MAX_CHARS

    opens = Board


@dataclass(kw_only=True)
class InboxChannel(BoardChannel):
    """A channel of messages that arrive in the next round.

    Attributes:
        inbox: "push": agents also see new messages at the start of a round. "pull": only `receive_messages` shows them.
        reach: in a task with a network, messages go to "neighbors" only, or to "all".
    """

    inbox: Literal["push", "pull"] = "push"
    reach: Literal["neighbors", "all"] = "neighbors"


class InboxBoard(Board):
    """A board of such a channel. Agents have cursors: what they were shown, and what they have received by a call."""

    def __init__(self, case: Case, channel: InboxChannel) -> None:
        super().__init__(case, channel.max_chars)
        if channel.reach == "all":
            self.topology = None
        self._push = channel.inbox == "push"
        self._seen = dict.fromkeys(case.agents, 0)
        self._read = dict.fromkeys(case.agents, 0)

    @property
    def description(self) -> Facts:
        """`inbox`: push or pull. `reach`: all, or in a network neighbors."""
        reach = "all" if self.topology is None else "neighbors"
        return {"kind": self.kind, "inbox": "push" if self._push else "pull", "reach": reach}


class RefusedError(Exception):
    """A call that cannot be executed; its text says why."""


def longest_body(case: Case) -> int:
    """Return the most characters that constrained decoding allows for a message or an answer.

    It is twice the input of the whole group, at least 200. So every right answer fits, and a message with all data. It
    is a power of two, because an engine compiles a grammar for each bound.
    """
    whole = sum(len(json.dumps(private, ensure_ascii=False, default=str)) for private in case.private.values())
    return 1 << (max(200, 2 * whole) - 1).bit_length()


def path_of(text: str) -> str:
    """Return a text as the name of a file or key. Raises `RefusedError` for names that are too long or unprintable."""
    path = text.strip().strip("\"'").strip()
    if not path or len(path) > MAX_PATH or not path.isprintable():
        raise RefusedError(f"a path has 1 to {MAX_PATH} printable characters, found {path!r:.60}")
    return path


def as_lines(messages: Sequence[Message]) -> str:
    """Return messages as the result of a call, one per line."""
    if not messages:
        return "no new messages"
    return "\n".join(f"[round {message.round}] {message.sender}: {message.view['text']}" for message in messages)
