"""This process plays everything: enough for one machine, also with several GPUs (`data_parallel_size`)."""

from __future__ import annotations

from dataclasses import dataclass

from harness.api import Facts
from harness.config.plan import Job
from harness.runtime.open_episodes import Episodes
from harness.runtime.runner import Work

from . import Executor


@dataclass(kw_only=True)
class Local(Executor):
    """Episodes are played in this process."""

    async def play(self, work: Work) -> dict[str, Facts]:
        episodes = Episodes(work)

        async def take() -> Job | None:
            return work.take()

        try:
            return await episodes.play_all(take, work.extend)
        finally:
            work.reports.update(episodes.reports())
