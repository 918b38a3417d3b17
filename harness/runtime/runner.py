"""Plan → scored episodes: what the journal holds is read, and an executor plays what is left (`Work`).

Order of completion never changes a result: every random draw comes from a seed derived from
(run seed, condition, case, repeat, agent, turn, attempt), and scores are returned in plan order.

Next: `harness.executors`, then `harness.runtime.open_episodes`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from harness import storage
from harness.api import Case, Facts, Move
from harness.config.plan import Condition, Plan, episode_id
from harness.engines.budget import Spent, Usage
from harness.errors import BudgetSpentError, EngineFatalError, StorageError, UserError
from harness.runtime.heartbeat import Heartbeat
from harness.runtime.options import Options
from harness.tables import EpisodeScore

Job = tuple[Condition, Case, int]
OnScore = Callable[[EpisodeScore | None], None]
"""Called with None when a run begins, then with every finished episode."""


class RunStoppedError(UserError):
    """The run ended before its plan did; the same command resumes it.

    Attributes:
        stopped: what run.json says of it: `why` in words (or, of a budget, its `by` and `at`), and the `episodes` that
            are finished `of` how many.
    """

    stopped: Facts = MappingProxyType({})


class BudgetReachedError(RunStoppedError):
    """The run ended because its budget is spent: no mistake, and nothing to mend.

    Attributes:
        stopped: beside `by`, `at`, `episodes` and `of` what was `asked` by all processes of the run: calls and tokens.
    """

    def __init__(self, spent: BudgetSpentError, usage: Usage, done: int, total: int) -> None:
        total_usage = {"calls": usage.calls, "tokens": usage.tokens}
        spending = f"{usage.calls} calls count as asked, {usage.tokens} tokens as used"
        self.stopped = {"by": spent.by, "at": spent.at, "episodes": done, "of": total, "asked": total_usage}
        super().__init__(
            f"{spent}: {done} of {total} episodes are finished; {spending}",
            hint="The same command goes on where it stopped"
            + (", for as long again." if spent.by == "max_time" else f", with a higher {spent.by} or without it."),
        )


@dataclass(frozen=True)
class Work:
    """What is left of a run, for an executor to play.

    Attributes:
        plan: what to play.
        folder: an existing run folder, locked by the caller.
        options: how.
        moves: id → what is recorded of the moves of an episode that is not finished.
        done: ids of the finished episodes; grows with every call of `on_score`.
        left: how many episodes that is.
        on_score: to be called once for every episode that is finished.
        usage: what the run used of its budget so far.
        reports: the executor puts in what each engine reports of itself, also where the run stops.
        known: names of the models that have answered in this run before, as far as this process knows.
        following: what there is to play once all of this is finished, such as the next round of a tournament. An
            executor may ask for it, to play it with the same engines; what none asks for comes as work of its own.
    """

    plan: Plan
    folder: Path
    options: Options
    moves: dict[str, dict[tuple[str, int], Move]]
    done: Container[str]
    left: int
    on_score: Callable[[EpisodeScore], None]
    usage: Usage
    reports: dict[str, Facts]
    following: Callable[[], Work | None] = lambda: None
    known: set[str] = field(default_factory=set)

    def jobs(self) -> Iterator[Job]:
        """The episodes left to play, in plan order."""
        return (job for job in self.plan.episodes() if episode_id(*job) not in self.done)

    def may_be_free(self, job: Job) -> bool:
        """Whether an episode may come to its end without anything new being asked."""
        has_answers = self.options.use_cache or self.plan.share_calls or episode_id(*job) in self.moves
        return bool(has_answers) or all(group.policy is not None for group in job[0].groups)


Following = Callable[[Plan, Sequence[EpisodeScore]], Plan | None]
"""Makes a plan with more episodes of a plan whose scores these are; None where there is no more to play."""
Play = Callable[[Work], Awaitable[dict[str, Facts]]]
"""Plays all that is left; returns what each engine reports of itself.

Raises `EngineFatalError`, `StorageError`, `BudgetSpentError`.
"""


async def run(
    plan: Plan,
    order: Sequence[str],
    folder: Path,
    options: Options,
    on_score: OnScore,
    reports: dict[str, Facts],
    play_left: Play,
    spent: Spent | None = None,
    following: Following = lambda plan, scores: None,
    total: int | None = None,
) -> list[EpisodeScore]:
    """Play every episode of the plan that `folder` does not hold yet.

    Args:
        plan: what to play.
        order: the ids of its episodes, as `harness.config.plan.survey` found them.
        folder: an existing run folder, locked by the caller.
        options: how.
        on_score: called once with None, then once for every episode, those that are finished already first.
        reports: what each engine reports of itself is put here; nothing where nothing was left to play.
        play_left: plays what is not finished.
        spent: what was used of the budget elsewhere: by the run that this one judges.
        following: makes a plan with more episodes of one that is finished; they come last in it.
        total: the number of episodes of the last such plan.

    Returns:
        The scores of all episodes, in plan order.

    Raises:
        RunStoppedError: an engine or the disk gave up, or the budget is spent (`BudgetReachedError`); everything
            recorded so far is kept.
    """
    on_score(None)
    progress = storage.JournalState(*storage.journals(folder))
    scores: dict[str, EpisodeScore] = {}
    known: set[str] = set()

    def finished(score: EpisodeScore) -> None:
        scores[score.id] = score
        known.update(score.answered)
        on_score(score)

    for name in filter(progress.ends.__contains__, order):
        finished(EpisodeScore.from_json({"id": name, **progress.ends.pop(name)}))
    usage: Usage | None = None

    def upcoming() -> Work | None:
        """What is left, of the first plan that is not finished."""
        nonlocal plan, order, usage
        while len(scores) == len(order):
            if (more := following(plan, [scores[name] for name in order])) is None:
                return None
            plan, order = more, [episode_id(*episode) for episode in more.episodes()]
            for name in filter(progress.ends.__contains__, order):
                finished(EpisodeScore.from_json({"id": name, **progress.ends.pop(name)}))
        if usage is None:
            used = spent or Spent()
            before = progress.calls + used.calls, progress.tokens + used.tokens
            usage = Usage(options.budget, *before, seconds=used.seconds)
        left = len(order) - len(scores)
        moves = progress.moves
        return Work(plan, folder, options, moves, scores, left, finished, usage, reports, upcoming, known)

    while (work := upcoming()) is not None:
        done = len(scores)
        heartbeat = Heartbeat(f"{plan.spec.name} · {plan.model}", scores, total or len(order), work.usage)
        beating = asyncio.create_task(heartbeat.beat())
        try:
            reports.update(await play_left(work))
        except BudgetSpentError as reached:
            raise BudgetReachedError(reached, work.usage, len(scores), total or len(order)) from None
        except (EngineFatalError, StorageError) as error:
            what, hint = (error.message, error.hint) if isinstance(error, StorageError) else (error, None)
            hint = hint or "Mend the cause, then give the same command again: nothing that is recorded is asked twice."
            done, planned = len(scores), total or len(order)
            message = f"the run stopped after {done} of {planned} episodes: {what}"
            stop = RunStoppedError(message, hint=hint)
            stop.stopped = {"why": str(what), "episodes": done, "of": planned}
            raise stop from error
        finally:
            beating.cancel()
        if len(scores) == done:
            raise RuntimeError(f"{work.left} episodes are left, and the executor played none")
    return [scores[name] for name in order]
