"""The communication plans of the perfect teams. docs/benchmarks/silo_bench.md has their message and round counts.

An agent steps its plan once a round, after it has read its messages. The plan acts as soon as the agent knows enough,
whatever the channel's latency. A message or file is {"shards": {number: shard}}, {"answers": {number: answer}}, or
{"answer": …} where all agents have the same answer. Floods also say `by` whom.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence

from ._agent import Agent, Call, message, submit


class Plan:
    """One agent's part in a plan."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.sent = False

    @abstractmethod
    def step(self, number: int) -> Iterable[Call]:
        """Return the calls of this round."""
        raise NotImplementedError

    # ---------------------------------------------------------------------------------- for all

    @property
    def complete(self) -> bool:
        """Whether all shards are known."""
        return len(self.agent.shards) == self.agent.n

    def once(self, calls: Iterable[Call]) -> list[Call]:
        """Return these calls the first time, and then none."""
        if self.sent:
            return []
        self.sent = True
        return list(calls)

    def own_shard(self) -> str:
        """Return a message with the agent's own shard."""
        return message(shards={self.agent.id: self.agent.shards[self.agent.id]})

    def known_shards(self) -> str:
        """Return a message with every known shard."""
        return message(shards=self.agent.shards)

    def answers_for(self, agents: Sequence[int], answers: Sequence[str]) -> str:
        """Return a message with these agents' answers."""
        if not self.agent.segmented:
            return message(answer=answers[0])
        return message(answers={i: answers[i] for i in agents})

    def own_answer(self) -> str:
        """Return the agent's own answer, from all shards."""
        return self.agent.solve()[self.agent.id]

    def received_answer(self) -> list[Call]:
        """Return the call that submits the answer sent by another agent, if there is one."""
        answer = self.agent.answers.get(self.agent.id)
        return [] if answer is None else [submit(answer)]


def send(receiver: int, content: str) -> Call:
    return {"call": "send_message", "target_id": str(receiver), "content": content}


class Alone(Plan):
    """A single agent, or no communication: submit the answer for the own shard."""

    def step(self, number: int) -> Iterable[Call]:
        return [submit(self.agent.local())]


class Star(Plan):
    """All agents send their shard to agent 0, which sends each agent its answer."""

    def step(self, number: int) -> Iterable[Call]:
        me = self.agent
        if me.id:
            return self.received_answer() or self.once([send(0, self.own_shard())])
        if not self.complete:
            return []
        answers = me.solve()
        return [*(send(i, self.answers_for([i], answers)) for i in range(1, me.n)), submit(answers[0])]


class Tree(Plan):
    """Shards go up a binary heap, answers come down."""

    def __init__(self, agent: Agent) -> None:
        super().__init__(agent)
        self.below = {child: self._under(child) for child in self._children(agent.id)}

    def _children(self, i: int) -> list[int]:
        return [child for child in (2 * i + 1, 2 * i + 2) if child < self.agent.n]

    def _under(self, i: int) -> list[int]:
        agents, level = [i], self._children(i)
        while level:
            agents += level
            level = [below for child in level for below in self._children(child)]
        return agents

    def step(self, number: int) -> Iterable[Call]:
        me = self.agent
        if not all(child in me.shards for child in self.below):
            return []
        if me.id == 0:
            answers = me.solve()
            return [*(send(c, self.answers_for(ids, answers)) for c, ids in self.below.items()), submit(answers[0])]
        if me.id in me.answers:
            answer = me.answers[me.id]
            if not me.segmented:
                return [*(send(child, message(answer=answer)) for child in self.below), submit(answer)]
            parts = {child: {i: me.answers[i] for i in ids} for child, ids in self.below.items()}
            return [*(send(child, message(answers=part)) for child, part in parts.items()), submit(answer)]
        return self.once([send((me.id - 1) // 2, self.known_shards())])


class Dissemination(Plan):
    """In step t agent i sends agent i + 2^t all shards it knows."""

    def __init__(self, agent: Agent) -> None:
        super().__init__(agent)
        self.steps = 0

    def step(self, number: int) -> Iterable[Call]:
        me = self.agent
        if self.complete:
            return [submit(self.own_answer())]
        reach = 1 << self.steps  # after t steps the 2^t agents up to this one are known
        if all((me.id - back) % me.n in me.shards for back in range(reach)):
            self.steps += 1
            return [send((me.id + reach) % me.n, self.known_shards())]
        return []


class AllToAll(Plan):
    """Each agent sends its shard to every other."""

    def step(self, number: int) -> Iterable[Call]:
        me, own = self.agent, self.own_shard()
        if self.complete:
            return [submit(self.own_answer())]
        return self.once(send(i, own) for i in range(me.n) if i != me.id)


class Chain(Plan):
    """Agent i waits for the shards of all previous agents, then sends them and its own to agent i + 1."""

    def step(self, number: int) -> Iterable[Call]:
        me = self.agent
        if any(i not in me.shards for i in range(me.id)):
            return []
        last = me.solve({i: me.shards[i] for i in range(me.id + 1)})[me.id]
        return [*([send(me.id + 1, self.known_shards())] if me.id < me.n - 1 else []), submit(last)]


class Halo(Plan):
    """Neighbors exchange shards. Shards further away have no influence."""

    def step(self, number: int) -> Iterable[Call]:
        me = self.agent
        around = [i for i in (me.id - 1, me.id + 1) if 0 <= i < me.n]
        if not all(i in me.shards for i in around):
            return self.once(send(i, self.own_shard()) for i in around)
        near = sorted([me.id, *around])
        return [submit(me.solve({i: me.shards[i] for i in near})[near.index(me.id)])]


class Flag(Plan):
    """An agent with a match sends the answer to all. Without any match this plan does not end."""

    def step(self, number: int) -> Iterable[Call]:
        me = self.agent
        if self.received_answer():
            return self.received_answer()
        answer = me.local()
        if answer != me.task.answer_text(True):
            return []
        return [*(send(i, message(answer=answer)) for i in range(me.n) if i != me.id), submit(answer)]


class BroadcastAll(Plan):
    """Each agent broadcasts its shard."""

    def step(self, number: int) -> Iterable[Call]:
        if self.complete:
            return [submit(self.own_answer())]
        return self.once([{"call": "broadcast_message", "content": self.own_shard()}])


class BroadcastStar(Plan):
    """All other agents broadcast their shard; agent 0 broadcasts the answer, or all answers."""

    def step(self, number: int) -> Iterable[Call]:
        me = self.agent
        if me.id:
            return self.received_answer() or self.once([{"call": "broadcast_message", "content": self.own_shard()}])
        if not self.complete:
            return []
        answers = me.solve()
        content = self.answers_for(range(me.n), answers)
        return [{"call": "broadcast_message", "content": content}, submit(answers[0])]


class Flood(Plan):
    """Each agent passes on to its neighbors what is new to it, once; in the last round it submits what it can.

    On a network that loses nothing all know all after as many rounds as its diameter.
    """

    repeats = False

    def __init__(self, agent: Agent) -> None:
        super().__init__(agent)
        self.passed: set[int] = set()

    def news(self) -> str | None:
        """Return a message with the shards that the neighbors have not been sent, None if there are none."""
        shards = {i: shard for i, shard in self.agent.shards.items() if self.repeats or i not in self.passed}
        self.passed |= {*shards}
        return message(shards=shards, by=self.agent.id) if shards else None

    def step(self, number: int) -> Iterable[Call]:
        text = self.news()
        calls = [] if text is None else self.to_neighbors(text)
        if self.over:
            return [*calls, submit(self.agent.from_known())]
        return calls

    def to_neighbors(self, text: str) -> list[Call]:
        """Return the calls that send a message to all neighbors."""
        return [send(i, text) for i in self.agent.neighbors]

    @property
    def over(self) -> bool:
        """Whether the agent has no more to do here: it knows all, or there is no further round."""
        return self.complete or self.agent.last_round


class Gossip(Flood):
    """Each agent sends all that it knows to its neighbors in every round, until they know all; or to the last round."""

    repeats = True

    @property
    def over(self) -> bool:
        return self.agent.last_round or (self.complete and self.agent.informed >= {*self.agent.neighbors})


class BroadcastFlood(Flood):
    """The same with one broadcast per round."""

    def to_neighbors(self, text: str) -> list[Call]:
        return [{"call": "broadcast_message", "content": text}]


class BroadcastGossip(BroadcastFlood, Gossip):
    """The same with one broadcast per round."""


def write(path: str, content: str) -> Call:
    return {"call": "write_file", "path": path, "content": content}


def read(path: str) -> Call:
    return {"call": "read_file", "path": path}


class Files(Plan):
    """Each agent writes a file of its own and reads all others."""

    def step(self, number: int) -> Iterable[Call]:
        me = self.agent
        if self.complete:
            return [submit(self.own_answer())]
        if not self.sent:
            return self.once([write(f"shard_{me.id}", self.own_shard())])
        return [read(f"shard_{i}") for i in range(me.n) if i not in me.shards]


class FilesFlood(Files):
    """The same; in the last round each submits what it can."""

    def step(self, number: int) -> Iterable[Call]:
        if self.agent.last_round and not self.complete:
            return [submit(self.agent.from_known())]
        return super().step(number)


class FilesStar(Plan):
    """Each agent writes a file; agent 0 reads all and writes the answers, which the others read."""

    def step(self, number: int) -> Iterable[Call]:
        me = self.agent
        if me.id:
            if self.sent:
                return self.received_answer() or ([read("answer")] if number >= 4 else [])
            return self.once([write(f"shard_{me.id}", self.own_shard())])
        if not self.complete:
            return [read(f"shard_{i}") for i in range(1, me.n) if i not in me.shards] if number > 1 else []
        answers = me.solve()
        return [write("answer", self.answers_for(range(me.n), answers)), submit(answers[0])]


PLANS: dict[str, dict[str, type[Plan]]] = {
    "mailbox": {
        "star": Star, "tree": Tree, "dissemination": Dissemination, "all": AllToAll, "chain": Chain, "halo": Halo,
        "flag": Flag, "flood": Flood, "gossip": Gossip,
    },
    "broadcast": {"star": BroadcastStar, "all": BroadcastAll, "flood": BroadcastFlood, "gossip": BroadcastGossip},
    "store": {"star": FilesStar, "all": Files, "flood": FilesFlood, "gossip": FilesFlood},
    "neighbors": {"flood": Flood, "gossip": Gossip},
}  # fmt: skip
"""Channel → name of the plan → its class."""
