"""The perfect teams of MAS-Bench: known numbers of messages and rounds, the right answer everywhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from harness.api import Range, Turn, plugin
from harness.errors import PluginError

from ..silo._agent import Call, submit, written
from ._agent import Commander

RECEIVE: Call = {"call": "receive_messages"}
PLANS = {"broadcasting": ("all",), "p2p": ("star", "chain"), "shared_kv": ("all",)}


@plugin
class Oracle(Commander):
    """Any task of MAS-Bench: follows a plan that brings every agent the right answer in the fewest rounds.

    Attributes:
        plan: "best" is "all" if a broadcast reaches all at once, else "star". "all": each informs each other.
            "star": agent `hub` gathers and tells. "chain": each tells the next what came before (prefix_sum on p2p).
        hub: the agent in the middle of a star; None for the last one.
    """

    plan: Literal["best", "all", "star", "chain"] = "best"
    hub: Annotated[int, Range(ge=0)] | None = 0

    def start(self) -> None:
        """Choose what the channel allows.

        Raises:
            PluginError: if there is no such plan for the channel or the task, or no such hub.
        """
        kind = self.context["channel"]["kind"]
        plans = PLANS.get(kind, ())
        plan = self.plan if self.plan != "best" else plans[0] if plans else ""
        if self.n > 1 and plan not in plans:
            raise PluginError(f"there is no plan {self.plan} for {kind}", hint=f"There are: {', '.join(plans)}.")
        if plan == "chain" and self.context["problem"] != "prefix_sum":
            raise PluginError(f"there is no plan chain for {self.context['problem']}", hint="It is for prefix_sum.")
        self._hub = self.n - 1 if self.hub is None else self.hub
        if self._hub >= self.n:
            raise PluginError(f"hub is {self.hub}, and there are agents 0 to {self.n - 1}")
        made = {"broadcasting": self._broadcast, "shared_kv": self._files}.get(kind, self._star)
        self._steps = self._chain() if plan == "chain" else made()

    def act(self, turn: Turn) -> list[Call]:
        """What the plan says for this round."""
        if self.n == 1:
            return [submit(self.solve()[0])]
        return next(self._steps, [])

    @property
    def _own(self) -> str:
        return written(shards={self.id: self.shards[self.id]})

    def _when_complete(self) -> Iterator[list[Call]]:
        """Receive until everything is known."""
        while len(self.shards) < self.n:
            yield [RECEIVE]

    def _broadcast(self) -> Iterator[list[Call]]:
        yield [{"call": "broadcast_message", "content": self._own}]
        yield from self._when_complete()
        yield [submit(self.solve()[self.id])]

    def _files(self) -> Iterator[list[Call]]:
        yield [{"call": "write_file", "path": f"list_{self.id}", "content": self._own}]
        while lacking := [
            i for i in range(self.n) if i not in self.shards
        ]:  # at once, if all write and nothing is lost
            yield [{"call": "read_file", "path": f"list_{i}"} for i in lacking]
        yield [submit(self.solve()[self.id])]

    def _star(self) -> Iterator[list[Call]]:
        if self.id == self._hub:
            yield [RECEIVE]
            yield from self._when_complete()
            answers = self.solve()
            others = [i for i in range(self.n) if i != self.id]
            told = [_send(i, written(answers={i: answers[i]})) for i in others]
            yield [*told, submit(answers[self.id])]
            return
        yield [_send(self._hub, self._own)]
        while self.id not in self.answers:
            yield [RECEIVE]
        yield [submit(self.answers[self.id])]

    def _chain(self) -> Iterator[list[Call]]:
        while len(self.shards) <= self.id:
            yield [RECEIVE]
        onward = [_send(self.id + 1, written(shards=self.shards))] if self.id + 1 < self.n else []
        yield [*onward, submit(self.solve()[self.id])]


def _send(target: int, text: str) -> Call:
    return {"call": "send_message", "target_id": str(target), "content": text}
