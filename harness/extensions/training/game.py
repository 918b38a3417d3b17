"""An episode step by step, for trainers that hold the loop themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from harness.api import Completion

from .learner import Generated, Learner, PendingTurn
from .rollout import EnvTask, Epoch, Rollout, RolloutRun

if TYPE_CHECKING:
    from .environment import TrainingEnv


class SteppedRollout:
    """One episode, step by step; `TrainingEnv.start` makes it. Close it, or use it as a context manager.

        with env.start(env.tasks[0]) as game:
            while game.pending:
                game.answer({turn.agent: reply_to(turn.messages) for turn in game.pending})
            game.rollout.rewards

    All agents' turns of one batch are simultaneous: none sees the others' replies of that batch, in whatever order they
    are answered.

    Attributes:
        pending: the turns that wait for the trainer's model now, in the order of play; empty once the episode is over.
    """

    def __init__(
        self,
        env: TrainingEnv,
        task: EnvTask,
        sample: int,
        epoch: Epoch,
        decode: Callable[[Sequence[int]], str] | None = None,
    ) -> None:
        self._env = env
        self._waiting: dict[str, tuple[PendingTurn, asyncio.Future[Generated]]] = {}
        learner = Learner(self._park, env.id_of(task, sample, epoch), env.learners(task), decode=decode)
        self._run = RolloutRun(env, task, sample, epoch, learner, env.meet(task, epoch), self._wake)
        self._changed = asyncio.Event()
        self._task: asyncio.Task[Rollout] | None = None
        self.pending: list[PendingTurn] = []
        env.run(self._begin())

    @property
    def is_over(self) -> bool:
        """Whether the episode has come to its end."""
        return self._task is not None and self._task.done() and not self._task.cancelled()

    @property
    def rollout(self) -> Rollout:
        """The episode, once it is over. Raises `RuntimeError` before, and if it was closed before."""
        if self._task is not None and self._task.cancelled():
            raise RuntimeError(f"the episode {self._run.learner.episode} was closed before its end")
        if self._task is None or not self._task.done():
            agents = ", ".join(turn.agent for turn in self.pending)
            raise RuntimeError(f"the episode {self._run.learner.episode} is not over: it waits for {agents}")
        return self._task.result()

    def answer(self, replies: Mapping[str, str | Completion | None]) -> None:
        """Reply in the place of agents that are `pending`, of all or some of them. None: the request failed.

        Raises `ValueError` for another agent; else as `TrainingEnv.rollout`.
        """
        if unknown := replies.keys() - self._waiting.keys():
            others = ", ".join(turn.agent for turn in self.pending) or "nobody's"
            raise ValueError(f"no turn of {min(unknown)!r} is pending; pending: {others}")
        self._env.run(self._go_on(replies))

    def close(self) -> None:
        """End it where it is."""
        if self._task is not None and not self._task.done():
            self._env.run(self._cancel(self._task))
        self.pending = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def _park(self, messages: Any, tools: Any, sampling: Any, seat: PendingTurn) -> Generated:
        reply: asyncio.Future[Generated] = asyncio.get_running_loop().create_future()
        self._waiting[seat.agent] = seat, reply
        self._wake()
        return await reply

    def _wake(self) -> None:
        self._changed.set()

    async def _begin(self) -> None:
        await self._env.start_engines()
        self._task = asyncio.create_task(self._run.play())
        self._task.add_done_callback(lambda _: self._wake())
        await self._until_idle(self._task)

    async def _go_on(self, replies: Mapping[str, Generated]) -> None:
        assert self._task is not None
        for agent, reply in replies.items():
            self._waiting.pop(agent)[1].set_result(reply)
        await self._until_idle(self._task)

    async def _until_idle(self, task: asyncio.Task[Rollout]) -> None:
        """Wait until every learning agent's turn of the batch waits for a reply or is over, and one waits."""
        self._changed.clear()
        while not task.done() and not (self._waiting and self._waiting.keys() >= set(self._run.waiting)):
            await self._changed.wait()
            self._changed.clear()
        order = [turn.agent for turn in (self._run.learner.game.batch or ())] if self._run.learner.game else []
        self.pending = sorted((seat for seat, _ in self._waiting.values()), key=lambda seat: order.index(seat.agent))
        if task.done():
            self._env.record(task.result())

    @staticmethod
    async def _cancel(task: asyncio.Task[Rollout]) -> None:
        task.cancel()
        await asyncio.wait([task])
