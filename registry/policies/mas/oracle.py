"""Perfect teams for MAS-Bench, with known numbers of messages and rounds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from harness.api import PluginError, Range, Turn, plugin

from ..silo._agent import Call, message, submit
from ._agent import Commander

RECEIVE: Call = {"call": "receive_messages"}
PLANS = {"broadcasting": ("all",), "p2p": ("star", "chain"), "shared_kv": ("all",)}


@plugin
class Oracle(Commander):
    """Any task of MAS-Bench: follows a plan by which every agent submits the right answer in the fewest rounds.

    Attributes:
        plan: "all": every agent informs every other. "star": agent `hub` gathers the data and sends the answers.
            "chain": every agent sends the next one all previous data (prefix_sum on p2p). "best": "all" if the channel
            reaches all agents at once, else "star".
        hub: the number of the agent in the middle of a star; None for the last one.
    """

    plan: Literal["best", "all", "star", "chain"] = "best"
    hub: Annotated[int, Range(ge=0)] | None = 0

    def start(self) -> None:
        """Choose a plan that the channel allows.

        Raises:
            PluginError: if there is no such plan for the channel or the task, or no such hub.
        """
        kind = self.context["channel"]["kind"]
        plans = PLANS.get(kind, ())
        plan = self.plan if self.plan != "best" else plans[0] if plans else ""
        if self.n > 1 and plan not in plans:
            raise PluginError(f"there is no plan {self.plan} for {kind}", hint=f"The plans are: {', '.join(plans)}.")
        if plan == "chain" and self.context["problem"] != "prefix_sum":
            raise PluginError(f"there is no plan chain for {self.context['problem']}", hint="It is for prefix_sum.")
        self._hub = self.n - 1 if self.hub is None else self.hub
        if self._hub >= self.n:
            raise PluginError(f"hub is {self.hub}, and there are agents 0 to {self.n - 1}")
        build = {"broadcasting": self._broadcast, "shared_kv": self._files}.get(kind, self._star)
        self._steps = self._chain() if plan == "chain" else build()

    def act(self, turn: Turn) -> list[Call]:
        """Return the plan's calls for this round."""
        if self.n == 1:
            return [submit(self.solve()[0])]
        return next(self._steps, [])

    @property
    def _own(self) -> str:
        return message(shards={self.id: self.shards[self.id]})

    def _when_complete(self) -> Iterator[list[Call]]:
        """Receive until all shards are known."""
        while len(self.shards) < self.n:
            yield [RECEIVE]

    def _broadcast(self) -> Iterator[list[Call]]:
        yield [{"call": "broadcast_message", "content": self._own}]
        yield from self._when_complete()
        yield [submit(self.solve()[self.id])]

    def _files(self) -> Iterator[list[Call]]:
        yield [{"call": "write_file", "path": f"list_{self.id}", "content": self._own}]
        while missing := [
            i for i in range(self.n) if i not in self.shards
        ]:  # at once, if all write and nothing is lost
            yield [{"call": "read_file", "path": f"list_{i}"} for i in missing]
        yield [submit(self.solve()[self.id])]

    def _star(self) -> Iterator[list[Call]]:
        if self.id == self._hub:
            yield [RECEIVE]
            yield from self._when_complete()
            answers = self.solve()
            others = [i for i in range(self.n) if i != self.id]
            messages = [_send(i, message(answers={i: answers[i]})) for i in others]
            yield [*messages, submit(answers[self.id])]
            return
        yield [_send(self._hub, self._own)]
        while self.id not in self.answers:
            yield [RECEIVE]
        yield [submit(self.answers[self.id])]

    def _chain(self) -> Iterator[list[Call]]:
        while len(self.shards) <= self.id:
            yield [RECEIVE]
        onward = [_send(self.id + 1, message(shards=self.shards))] if self.id + 1 < self.n else []
        yield [*onward, submit(self.solve()[self.id])]


def _send(target: int, text: str) -> Call:
    return {"call": "send_message", "target_id": str(target), "content": text}
