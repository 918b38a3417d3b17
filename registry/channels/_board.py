"""What channels share on which agents act by named calls: mailbox, broadcast, store (SILO-Bench, Appendix A)."""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from harness.api import Case, Facts, Move
from harness.authoring.peers import peer_text
from harness.replies import Verb

from ._courier import CarriedChannel

Call = Mapping[str, Any]
MAX_CHARS = 200_000
"""Characters of one message or file, unless a spec says otherwise."""
MAX_PATH = 200


@dataclass(frozen=True, slots=True)
class Letter:
    """One message or file version: who wrote it in which round, and what its writer knew then (bit i: agent i).

    `text` is what was written, `shown` how every reader sees it: prepared once, however many they are.
    """

    sender: str
    text: str
    round: int
    known: int
    lost: frozenset[str] = frozenset()
    shown: Facts = field(init=False)

    def __post_init__(self) -> None:
        shown = {"from": self.sender, "round": self.round, "text": peer_text(self.text)}
        object.__setattr__(self, "shown", shown)


class Board(CarriedChannel):
    """Agents act by named calls, which the channel carries out; one episode.

    A move's action is a list of calls, as `harness.replies.Calls` reads them. `commit` carries them out in order, move
    by move; what comes of them is in the mover's `observation`, under `results`. Others see nothing of it before
    `next_round`. A refused call has a result that says why, changes nothing and counts for nothing.

    It also keeps account: who sent how much to whom, and whose data each agent can know of (SILO-Bench, Section 3.3 and
    Appendix G.2). An agent knows its own data, and what the writer of a message knew when it wrote it, from the
    moment in
    which it is shown the message.

    Attributes:
        verbs: the calls there are.
        keeps_keys: whether it keeps values under keys and can tell which of those read are `stale`.
        round: the number of the current round, from 1.
        known: agent → what it knows of at its latest decision, as bits by agent number.
        met: agent → the agents from which it has itself received something, as bits.
        sent: sender → receiver → [messages, characters]; the receiver "*" stands for all others.
        received: agent → [messages or files of others that it got, their characters]; a message counts once.
        told: what all agents know of the channel: `kind`, and for some `inbox` or `reads`.
        also: calls that the protocol answers, in their place among the others.
        announced: characters that the channel has passed on by itself, in `submitted`.
    """

    kind: ClassVar[str]
    keeps_keys: ClassVar[bool] = False
    verbs: tuple[Verb, ...] = ()

    def __init__(self, case: Case, max_chars: int = MAX_CHARS) -> None:
        self.agents, self.max_chars, self.round = case.agents, max_chars, 1
        self.number = {agent: i for i, agent in enumerate(case.agents)}
        self._digits = {m[0]: agent for agent in case.agents if (m := re.search(r"\d+$", agent))}
        self.known = {agent: 1 << i for agent, i in self.number.items()}
        self.met = dict.fromkeys(case.agents, 0)
        self.sent: dict[str, dict[str, list[int]]] = {}
        self.received = {agent: [0, 0] for agent in case.agents}
        self.also: dict[str, Callable[[str, Call], str]] = {}
        self.announced = 0
        self._results: dict[str, list[Facts]] = {}
        self._learned: list[Letter] = []
        self._known_already: list[Letter] = []

    def observation(self, agent: str) -> Facts:
        """`inbox`: what has come in since the agent's last decision (if the channel shows it unasked): a list of
        {"from", "round", "text"}; `results`: what came of its last calls: a list of {"call", "ok", "text"}, with the
        "path" of a file."""
        return {"inbox": [letter.shown for letter in self.incoming(agent)], "results": self._results.get(agent, [])}

    def commit(self, moves: Sequence[Move]) -> None:
        """Carry out the calls of these moves; an action of None makes none."""
        for move in moves:
            agent = move.agent
            shown = self.incoming(agent)
            self.shown(agent)
            self._learn(agent, shown)
            self._learned, self._known_already = [], []
            self._results[agent] = [self._result(agent, call) for call in move.action or ()]
            self._learn(agent, self._learned)
            self._learn(agent, self._known_already, again=True)

    def next_round(self) -> None:
        """What was done in this round becomes visible."""
        self.round += 1
        self.deliver()

    def knows(self, agent: str) -> int:
        """What the agent would know of at a decision now: `known`, and what it is being shown."""
        known = self.known[agent]
        for letter in self.incoming(agent):
            known |= letter.known
        return known

    def find(self, name: str) -> str | None:
        """The agent that a text names: by its name in any case, or by its number."""
        name = name.strip().strip("\"'").strip()
        if name in self.number:
            return name
        number = re.fullmatch(r"(?:agent)?[ _-]?(\d{1,9})", name, re.IGNORECASE | re.ASCII)
        bare = number and (name[0].isalnum() or name[0] == "_")  # no agent has the number -1
        return self._digits.get(str(int(number[1]))) if number and bare else None

    def facts(self) -> Facts:
        """The accounts, for metrics: `sent`, `received`, and `known` and `met` as hexadecimal bits."""
        return {
            "sent": self.sent,
            "received": self.received,
            "known": {agent: f"{bits:x}" for agent, bits in self.known.items()},
            "met": {agent: f"{bits:x}" for agent, bits in self.met.items()},
        }

    @property
    def told(self) -> Facts:
        """What all agents know of the channel."""
        return {"kind": self.kind}

    # --------------------------------------------------------------------------- for each channel

    @abstractmethod
    def do(self, agent: str, call: Call) -> str:
        """Carry out one call; what comes of it. Raises `RefusedError` with the reason."""

    def incoming(self, agent: str) -> Sequence[Letter]:
        """What the agent is shown unasked at its next decision."""
        return ()

    def shown(self, agent: str) -> None:
        """The agent has seen what `incoming` gave."""

    def deliver(self) -> None:
        """A round has begun."""

    def submitted(self, agent: str, text: str) -> str:
        """The agent has submitted `text`: what the channel does about it by itself, in words; nothing by default."""
        return ""

    def stale(self, agent: str) -> list[str] | None:
        """Keys whose value changed since the agent read it; None where the channel keeps no keys."""
        return None

    def note(self, sender: str, receiver: str, text: str) -> None:
        """Account for what was sent."""
        entry = self.sent.setdefault(sender, {}).setdefault(receiver, [0, 0])
        entry[0] += 1
        entry[1] += len(text)

    def learn(self, letters: Sequence[Letter], old: int = 0) -> None:
        """The agent that is acting has asked for these, the first `old` of which it had been shown unasked before; it
        knows of them from its next decision on."""
        self._known_already.extend(letters[:old])
        self._learned.extend(letters[old:])

    def checked(self, text: str, what: str) -> str:
        """The text, if it is not too long. Raises `RefusedError`."""
        if len(text) > self.max_chars:
            raise RefusedError(f"the {what} has {len(text):,} characters; at most {self.max_chars:,} are allowed")
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
            done = {"call": name, "ok": True, "text": self.also.get(name, self.do)(agent, call)}
            return {**done, "path": call["path"]} if "path" in call else done
        except RefusedError as error:
            return {"call": name, "ok": False, "text": f"error: {error}"}

    def _learn(self, agent: str, letters: Sequence[Letter], again: bool = False) -> None:
        known, met = self.known[agent], self.met[agent]
        for letter in letters:
            known |= letter.known
            met |= 1 << self.number[letter.sender]
        self.known[agent], self.met[agent] = known, met
        if not again:
            self.received[agent][0] += len(letters)
            self.received[agent][1] += sum(len(letter.text) for letter in letters)


class RefusedError(Exception):
    """A call that cannot be carried out; its text tells the caller why."""


def longest_body(case: Case) -> int:
    """How many characters constrained decoding lets a message or an answer have: twice the input of the whole group, at
    least 200. So every right answer fits, and a message that holds all data. A power of two: an engine compiles a
    grammar for each bound.
    """
    whole = sum(len(json.dumps(private, ensure_ascii=False, default=str)) for private in case.private.values())
    return 1 << (max(200, 2 * whole) - 1).bit_length()


def path_of(text: str) -> str:
    """A text as the name of a file or key: a name and nothing else. Raises `RefusedError`."""
    path = text.strip().strip("\"'").strip()
    if not path or len(path) > MAX_PATH or not path.isprintable():
        raise RefusedError(f"a path has 1 to {MAX_PATH} printable characters, found {path!r:.60}")
    return path


def told(letters: Sequence[Letter]) -> str:
    """Messages as the result of a call, one below the other."""
    if not letters:
        return "no new messages"
    return "\n".join(f"[round {letter.round}] {letter.sender}: {letter.shown['text']}" for letter in letters)
