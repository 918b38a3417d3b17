"""Where episodes are played: in this process (`local`), or where an extension plays them.

An executor decides nothing about results: every random draw comes from seeds derived from the run's, so that its
choice is not part of a run's identity, and a run may continue with another executor.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from harness.api import Facts
from harness.api.errors import Place, SpecError, near, raise_all
from harness.config.plan import Plan
from harness.plugins import approvals
from harness.plugins.manifests import offers
from harness.plugins.parameters import faults
from harness.runtime.options import Options
from harness.runtime.runner import Work

__all__ = ["Executor", "Local", "choose_executor"]


class Executor(ABC):
    """Plays the episodes that are left of a run.

    Attributes:
        takes_rounds: whether a rule may order more episodes, many times, once all before them have ended.
        is_heard: whether it tells `Work.listeners` what is played.
    """

    takes_rounds: ClassVar[bool] = False
    is_heard: ClassVar[bool] = False

    def check(self, plan: Plan, options: Options) -> None:
        """Check, before anything starts, whether this run can be played here. Raises `SetupError`."""

    @classmethod
    def clear(cls, folder: Path) -> None:
        """Wait until no worker of an earlier run writes into its folder any more. Raises `StorageError` if one does."""

    @abstractmethod
    async def play(self, work: Work) -> None:
        """Play every episode of `work.jobs()`, giving each score to `work.on_score` as it comes.

        What engines report goes into `work.reports`, even if this raises.

        Raises:
            EngineFatalError, StorageError, BudgetSpentError: the run stops; everything recorded so far is kept.
        """

    def report(self) -> Facts | None:
        """What run.json records about how the run was played; None if nothing."""
        return None


@dataclass(kw_only=True)
class Local(Executor):
    """This process plays everything: enough for one machine, also with several GPUs (`data_parallel_size`)."""

    takes_rounds: ClassVar[bool] = True
    is_heard: ClassVar[bool] = True

    async def play(self, work: Work) -> None:
        from harness.runtime.open_episodes import Episodes  # what only a run needs

        episodes = Episodes(work)
        try:
            await episodes.play_all(work.take, work.extend)
        finally:
            work.reports.update(episodes.reports())


def choose_executor(plan: Plan, options: Options) -> Executor:
    """The executor that the command asks for, else the spec, else this process.

    Raises:
        SpecError: for an unknown name, or a parameter that does not fit.
        NotApprovedError: another person's spec names an address whose code would run here.
    """
    option, known = options.executor, offers("executors")

    def place(*path: str) -> Place:
        if option is None:
            return plan.spec.place("executor", *path)
        return Place("--executor" if path in ((), ("use",)) else "--executor_args")

    reference = option if option is not None else plan.executor
    body: Any = {"use": reference} if isinstance(reference, str) else reference
    if not isinstance(body, Mapping) or not isinstance(body.get("use"), str):
        message = f"an executor is a name, or a mapping that has it under 'use', found {body!r}"
        raise SpecError(message, place=place(), hint=f"Available: {', '.join(sorted(known))}.")
    name, arguments = body["use"], {key: value for key, value in body.items() if key != "use"}
    if name not in known:
        from harness.plugins.missing_extensions import bringer

        hint = bringer(name, "executors") or near(name, known)
        raise SpecError(f"there is no executor {name!r}", place=place("use"), hint=hint)
    cls = known[name].load_class(Executor)
    raise_all(
        SpecError(f"executor {name!r}: {what}", place=place(*map(str, path))) for path, what in faults(cls, arguments)
    )
    executor = cls(**arguments)
    if option is None:
        needed = approvals.foreign(approvals.of(executor), functools.partial(plan.spec.documents, "executor"))
        with approvals.allowing(options.allow_code_execution):
            approvals.require(needed, place())
    return executor
