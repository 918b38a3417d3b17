"""Who tells whom what: the plans of the perfect teams. Message and round counts are in docs/benchmarks/silo_bench.md.

A plan is stepped once a round by its agent, which has taken in by then what it was shown. It acts as soon as it knows
what it needs, whatever the channel's latency. A shard is sent as it is; a message or file is
{"shards": {number: shard}}, {"answers": {number: answer}}, or {"answer": …} where all have the same.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ._agent import Call, problem, submit, written

if TYPE_CHECKING:
    from .oracle import Oracle


class Plan:
    """One agent's part in a plan."""

    def __init__(self, agent: Oracle) -> None:
        self.agent = agent
        self.sent = False

    @abstractmethod
    def step(self, number: int) -> Iterable[Call]:
        """The calls of this round."""
        raise NotImplementedError

    # ---------------------------------------------------------------------------------- for all

    @property
    def complete(self) -> bool:
        """Whether all shards are known."""
        return len(self.agent.shards) == self.agent.n

    def once(self, calls: Iterable[Call]) -> list[Call]:
        """These calls, the first time they are asked for."""
        if self.sent:
            return []
        self.sent = True
        return list(calls)

    def own(self) -> str:
        """A message with the own shard."""
        return written(shards={self.agent.id: self.agent.shards[self.agent.id]})

    def all_known(self) -> str:
        """A message with every shard that is known."""
        return written(shards=self.agent.shards)

    def answers_for(self, agents: Sequence[int], answers: Sequence[str]) -> str:
        """A message with these agents' answers."""
        if not self.agent.segmented:
            return written(answer=answers[0])
        return written(answers={i: answers[i] for i in agents})

    def mine(self) -> str:
        """The own answer, from all shards."""
        return self.agent.solve()[self.agent.id]

    def told(self) -> list[Call]:
        """Submit the answer that another agent has sent, if it has."""
        answer = self.agent.answers.get(self.agent.id)
        return [] if answer is None else [submit(answer)]


def tell(receiver: int, content: str) -> Call:
    return {"call": "send_message", "target_id": str(receiver), "content": content}


class Alone(Plan):
    """One agent, or none that can speak: submits what it has."""

    def step(self, number: int) -> Iterable[Call]:
        return [submit(self.agent.local())]


class Star(Plan):
    """All tell agent 0; it tells all, each its own answer."""

    def step(self, number: int) -> Iterable[Call]:
        me = self.agent
        if me.id:
            return self.told() or self.once([tell(0, self.own())])
        if not self.complete:
            return []
        answers = me.solve()
        return [*(tell(i, self.answers_for([i], answers)) for i in range(1, me.n)), submit(answers[0])]


class Tree(Plan):
    """Shards go up a binary heap, answers come down."""

    def __init__(self, agent: Oracle) -> None:
        super().__init__(agent)
        self.below = {child: self._under(child) for child in self._children(agent.id)}

    def _children(self, i: int) -> list[int]:
        return [child for child in (2 * i + 1, 2 * i + 2) if child < self.agent.n]

    def _under(self, i: int) -> list[int]:
        found, left = [i], self._children(i)
        while left:
            found += left
            left = [below for child in left for below in self._children(child)]
        return found

    def step(self, number: int) -> Iterable[Call]:
        me = self.agent
        if not all(child in me.shards for child in self.below):
            return []
        if me.id == 0:
            answers = me.solve()
            return [*(tell(c, self.answers_for(ids, answers)) for c, ids in self.below.items()), submit(answers[0])]
        if me.id in me.answers:
            answer = me.answers[me.id]
            if not me.segmented:
                return [*(tell(child, written(answer=answer)) for child in self.below), submit(answer)]
            parts = {child: {i: me.answers[i] for i in ids} for child, ids in self.below.items()}
            return [*(tell(child, written(answers=part)) for child, part in parts.items()), submit(answer)]
        return self.once([tell((me.id - 1) // 2, self.all_known())])


class Dissemination(Plan):
    """In step t each agent sends i + 2^t all that it knows."""

    def __init__(self, agent: Oracle) -> None:
        super().__init__(agent)
        self.steps = 0

    def step(self, number: int) -> Iterable[Call]:
        me = self.agent
        if self.complete:
            return [submit(self.mine())]
        reach = 1 << self.steps  # after t steps the 2^t agents up to this one are known
        if all((me.id - back) % me.n in me.shards for back in range(reach)):
            self.steps += 1
            return [tell((me.id + reach) % me.n, self.all_known())]
        return []


class Everybody(Plan):
    """Each agent informs each other."""

    def step(self, number: int) -> Iterable[Call]:
        me, own = self.agent, self.own()
        if self.complete:
            return [submit(self.mine())]
        return self.once(tell(i, own) for i in range(me.n) if i != me.id)


class Chain(Plan):
    """Agent i waits for all before it, then tells i + 1 all of it."""

    def step(self, number: int) -> Iterable[Call]:
        me = self.agent
        if any(i not in me.shards for i in range(me.id)):
            return []
        last = me.solve({i: me.shards[i] for i in range(me.id + 1)})[me.id]
        return [*([tell(me.id + 1, self.all_known())] if me.id < me.n - 1 else []), submit(last)]


class Halo(Plan):
    """Neighbors tell each other; what is further away never comes near."""

    def step(self, number: int) -> Iterable[Call]:
        me = self.agent
        around = [i for i in (me.id - 1, me.id + 1) if 0 <= i < me.n]
        if not all(i in me.shards for i in around):
            return self.once(tell(i, self.own()) for i in around)
        near = sorted([me.id, *around])
        return [submit(me.solve({i: me.shards[i] for i in near})[near.index(me.id)])]


class Flag(Plan):
    """Who has a match tells all. Silence proves nothing: without a match this plan has no end."""

    def step(self, number: int) -> Iterable[Call]:
        me = self.agent
        if self.told():
            return self.told()
        answer = me.local()
        if answer != problem(me.context["module"]).written(True):
            return []
        return [*(tell(i, written(answer=answer)) for i in range(me.n) if i != me.id), submit(answer)]


class BroadcastAll(Plan):
    """Each agent informs all others at once."""

    def step(self, number: int) -> Iterable[Call]:
        if self.complete:
            return [submit(self.mine())]
        return self.once([{"call": "broadcast_message", "content": self.own()}])


class BroadcastStar(Plan):
    """All but agent 0 say their shards; it says the answer, or all answers."""

    def step(self, number: int) -> Iterable[Call]:
        me = self.agent
        if me.id:
            return self.told() or self.once([{"call": "broadcast_message", "content": self.own()}])
        if not self.complete:
            return []
        answers = me.solve()
        content = self.answers_for(range(me.n), answers)
        return [{"call": "broadcast_message", "content": content}, submit(answers[0])]


def write(path: str, content: str) -> Call:
    return {"call": "write_file", "path": path, "content": content}


def read(path: str) -> Call:
    return {"call": "read_file", "path": path}


class Files(Plan):
    """Each agent writes a file of its own and reads all others."""

    def step(self, number: int) -> Iterable[Call]:
        me = self.agent
        if self.complete:
            return [submit(self.mine())]
        if not self.sent:
            return self.once([write(f"shard_{me.id}", self.own())])
        return [read(f"shard_{i}") for i in range(me.n) if i not in me.shards]


class FilesStar(Plan):
    """Each agent writes a file; agent 0 reads all and writes the answers, which the others read."""

    def step(self, number: int) -> Iterable[Call]:
        me = self.agent
        if me.id:
            if self.sent:
                return self.told() or ([read("answer")] if number >= 4 else [])
            return self.once([write(f"shard_{me.id}", self.own())])
        if not self.complete:
            return [read(f"shard_{i}") for i in range(1, me.n) if i not in me.shards] if number > 1 else []
        answers = me.solve()
        return [write("answer", self.answers_for(range(me.n), answers)), submit(answers[0])]


PLANS: dict[str, dict[str, type[Plan]]] = {
    "mailbox": {
        "star": Star, "tree": Tree, "dissemination": Dissemination, "all": Everybody, "chain": Chain, "halo": Halo,
        "flag": Flag,
    },
    "broadcast": {"star": BroadcastStar, "all": BroadcastAll},
    "store": {"star": FilesStar, "all": Files},
}  # fmt: skip
"""Channel → plan → what carries it out."""
