"""Plan → scored episodes: `run` reads what the journal has, and an executor plays the rest (`Work`).

Order of completion never changes a result: every random draw comes from a seed derived from
(run seed, condition, case, repeat, agent, turn, attempt), and scores are returned in plan order.

Next: `harness.runtime.executors`, then `harness.runtime.open_episodes`.
"""

from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from harness import storage
from harness.api import Facts, Move
from harness.api.errors import BudgetSpentError, EngineFatalError, StorageError, UserError
from harness.config.plan import Job, Plan, episode_id, problem_digest
from harness.config.resolve import following
from harness.engines.usage import Budget, Spent, Usage
from harness.runtime.options import Options
from harness.runtime.reply_advice import ShareCheck
from harness.runtime.run_json import write_spec
from harness.runtime.stopping import StoppingRule
from harness.runtime.turn_shares import TurnCounts
from harness.tables import EpisodeScore

if TYPE_CHECKING:
    from harness.runtime.listeners import Listeners

BEAT_SECONDS = 30.0
"""Seconds between two lines about a run's progress."""
OnScore = Callable[[EpisodeScore | None], None]
"""Called with None when a run begins, then with every finished episode."""


class RunStoppedError(UserError):
    """The run ended before its plan did; the same command resumes it.

    Attributes:
        stopped: what run.json says about it: `why` in words (or, of a budget, its `by` and `at`), and the `episodes`
            that are finished `of` how many.
    """

    stopped: Facts = MappingProxyType({})


class BudgetReachedError(RunStoppedError):
    """The run ended because its budget is spent: no mistake, and nothing to mend.

    Attributes:
        stopped: beside `by`, `at`, `episodes` and `of` what was `asked` by all processes of the run: calls, tokens, and
            `usd` where costs were bounded.

    Args:
        spent: what is used up.
        usage: what was used.
        done, total: episodes.
        one_by_one: whether no other order would have finished more of them.
    """

    def __init__(
        self, spent: BudgetSpentError, usage: Usage, done: int, total: int, *, one_by_one: bool = True
    ) -> None:
        total_usage: dict[str, float] = {"calls": usage.calls, "tokens": usage.tokens}
        spending = f"{usage.calls} calls count as asked, {usage.tokens} tokens as used"
        if usage.micros:
            from harness.tables.cost import Usd  # what only a budget of money needs

            total_usage["usd"] = usage.micros / 1e6
            spending += f", {Usd(total_usage['usd'])} as spent"
        if over := _over(spent, usage):
            spending += f"; {over} over, by {usage.late:,} repl{'y' if usage.late == 1 else 'ies'} in flight"
        self.stopped = {"by": spent.by, "at": spent.at, "episodes": done, "of": total, "asked": total_usage}
        super().__init__(
            f"{spent}: {done} of {total} episodes are finished; {spending}",
            hint="The same command resumes it where it stopped"
            + (", for as long again." if spent.by == "max_time" else f", with a higher {spent.by} or without it.")
            + (
                ""
                if done or one_by_one
                else " With --max_concurrency 1 it plays one episode after another, and finishes some."
            ),
        )


def _over(spent: BudgetSpentError, usage: Usage) -> str:
    """By how much the replies that were in flight have exceeded a budget of tokens or money; "" for not at all."""
    if not usage.late:
        return ""
    if spent.by == "max_tokens_total" and usage.tokens > spent.at:
        return f"{usage.tokens - spent.at:,.0f} tokens"
    if spent.by == "max_cost" and usage.micros > spent.at * 1e6:
        from harness.tables.cost import Usd  # what only a budget of money needs

        return f"{Usd(usage.micros / 1e6 - spent.at)}"
    return ""


class SharesMissedError(RunStoppedError):
    """The run ended because too few of a model's turns were parsed or answered (`--stop_unless`)."""

    def __init__(self, why: str, done: int, total: int) -> None:
        self.stopped = {"why": why, "episodes": done, "of": total}
        super().__init__(
            f"the run stopped after {done} of {total} episodes: {why}",
            hint="What is recorded is kept: the same command without --stop_unless goes on.",
        )


@dataclass(kw_only=True)
class Work:
    """The rest of a run, for an executor to play. It grows if conditions become known during the run.

    Attributes:
        plan: what to play.
        episodes: all its episodes, in plan order.
        folder: an existing run folder, locked by the caller.
        options: how.
        report_score: called once for every episode that is finished.
        usage: what the run used of its budget so far.
        moves: id → what is recorded of the moves of an episode that is not finished.
        inner: id → what is recorded of the inner calls of an episode that is not finished.
        ends: id → how the journal says that an episode ended that is not in the plan yet.
        done: id → score of the finished episodes.
        reports: engine → its report about itself; the executor adds it, even if the run stops.
        served: name of an engine → the `Engine.weights` that it had when the run began, of those that had any.
        live_models: names of the models that have answered in this run, as far as this process knows.
        broken: names of the models that are asked no more, with the reason.
        interrupted: whether the user ended it, and what was in flight then is finished.
        count_turns: takes what became of the first turns of each model; None: this process checks them (`shares`).
        rule: may end the run once its episodes are enough, and then says which of them count.
        listeners: hear what is played; None: no one does.
        on_over: called where what was played ends the run (`over`), with the reason.
    """

    plan: Plan
    episodes: Sequence[Job]
    folder: Path
    options: Options
    report_score: Callable[[EpisodeScore], None]
    usage: Usage
    moves: dict[str, dict[tuple[str, int], Move]]
    inner: dict[str, list[storage.Line]] = field(default_factory=dict)
    ends: dict[str, dict[str, Any]] = field(default_factory=dict)
    done: dict[str, EpisodeScore] = field(default_factory=dict)
    reports: dict[str, Facts] = field(default_factory=dict)
    served: dict[str, str] = field(default_factory=dict)
    live_models: set[str] = field(default_factory=set)
    broken: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False
    rule: StoppingRule | None = None
    listeners: Listeners | None = None
    on_over: Callable[[str], None] = lambda why: None
    count_turns: Callable[[str, TurnCounts], None] | None = None
    _untaken: Iterator[Job] | None = field(default=None, init=False)
    _was_finished: bool = field(default=False, init=False)  # an earlier session counted all episodes

    def __post_init__(self) -> None:
        self.shares = ShareCheck(self.plan, self.options.stop_unless or {})

    def on_turn_counts(self, model: str, counts: TurnCounts, source: object = None) -> None:
        """Take what became of a model's first turns. `source`: which process counted them."""
        before = self.over
        self.shares.take(source, model, counts)
        self._report_over(before)

    def _report_over(self, before: str | None) -> None:
        if before is None and self.over is not None:
            self.on_over(self.over)

    @property
    def over(self) -> str | None:
        """Why what was played ends the run: too small a share of turns was parsed (`--stop_unless`), or the episodes
        are enough (`rule`). None while it goes on."""
        return self.shares.missed or (None if self.rule is None else self.rule.reached)

    @property
    def is_enough(self) -> bool:
        """Whether the rule ends the run before its plan does: also where the others were under way and have ended."""
        if self.rule is None or self.rule.reached is None or self._was_finished:
            return False
        return len(self.rule.counted) < len(self.episodes)

    @property
    def remaining(self) -> int:
        """How many episodes are not finished."""
        return len(self.episodes) - len(self.done)

    @property
    def scores(self) -> list[EpisodeScore]:
        """Those of all episodes, in plan order, once none is left; of those that count, where the rule ends the run."""
        names = (episode_id(*job) for job in self.episodes)
        counted = self.rule.counted if self.rule is not None and self.is_enough else None
        return [self.done[name] for name in names if counted is None or name in counted]

    @property
    def total(self) -> int:
        """How many episodes there will be."""
        return self.plan.in_all(len(self.episodes))

    def jobs(self) -> Iterator[Job]:
        """The episodes left to play, in plan order or that of the rule."""
        every = self.episodes if self.rule is None else self.rule.order
        return (job for job in every if episode_id(*job) not in self.done)

    async def take(self) -> Job | None:
        """The next episode that is left and not taken yet; None if there is none."""
        if self._untaken is None:
            self._untaken = self.jobs()
        return next(self._untaken, None)

    def on_score(self, score: EpisodeScore) -> None:
        """Record the score of a finished episode. The executor calls this once for each."""
        self.done[score.id] = score
        self.live_models.update(score.answered)
        self.report_score(score)
        if self.rule is not None:
            before = self.over
            self.rule.add(score)
            self._report_over(before)

    def on_recorded(self, job: Job, moves: Mapping[tuple[str, int], Move]) -> None:
        """Note which models have answered in the recorded moves of an episode."""
        condition, case, _ = job
        agents = {agent for (agent, _), move in moves.items() if move.calls}
        self.live_models.update(condition.group_of(case, agent).model or "model" for agent in agents)

    def begin(self, rule: StoppingRule | None = None, *, was_finished: bool = False) -> None:
        """Take what the journal has.

        Args:
            rule: may end the run.
            was_finished: whether the run was finished before, with all its episodes: then no rule ends it. That none
                is left to play does not mean so: the others may have ended while they were under way.
        """
        self.rule, self._was_finished = rule, was_finished
        self.read_journal()
        for job in self.jobs() if self.moves else ():
            self.on_recorded(job, self.moves.get(episode_id(*job), {}))

    def read_journal(self) -> None:
        """Take the finished episodes of the plan from what the journal says."""
        for condition, case, repeat in self.episodes:
            name = episode_id(condition, case, repeat)
            if (end := self.ends.pop(name, None)) is None:
                continue
            score = EpisodeScore.from_json({"id": name, **end})
            if not score.problem:  # an older version wrote it; new episodes beside it name theirs
                score = replace(score, problem=problem_digest(condition.task, case))
            self.on_score(score)

    def extend(self) -> bool:
        """Where nothing is left, add the conditions that are known now, and write them down; returns whether there is
        something to play. The rule's order may have grown too."""
        self._untaken = None
        if self.rule is not None:
            return next(self.jobs(), None) is not None
        while not self.remaining:
            if (more := following(self.plan, self.scores)) is None:
                return False
            self.plan, self.episodes = more, list(more.episodes(self.episodes))
            self.shares.plan = more
            write_spec(more, self.folder)
            self.read_journal()
            self._untaken = None
        return True

    def may_be_free(self, job: Job) -> bool:
        """Whether an episode may end without anything new being asked."""
        has_answers = (
            self.options.use_cache or self.options.reuse or self.plan.dedupe_calls or episode_id(*job) in self.moves
        )
        return bool(has_answers) or all(group.policy is not None for group in job[0].groups)


Play = Callable[[Work], Awaitable[None]]
"""Plays all that is left, and may `extend` it.

Raises `EngineFatalError`, `StorageError`, `BudgetSpentError`.
"""


async def run(work: Work, play: Play) -> None:
    """Play every episode that is left.

    Raises:
        RunStoppedError: an engine or the disk gave up, or the budget is spent (`BudgetReachedError`); everything
            recorded so far is kept.
    """
    while not work.is_enough and work.extend():
        done = len(work.done)
        beating = asyncio.create_task(_beat(work))
        try:
            await play(work)
        except BudgetSpentError as reached:
            one_by_one = work.options.max_concurrency == 1
            counts = len(work.done), work.total
            raise BudgetReachedError(reached, work.usage, *counts, one_by_one=one_by_one) from None
        except (EngineFatalError, StorageError) as error:
            if (missed := work.shares.missed) is not None and str(error) == missed:
                if work.extend():
                    raise SharesMissedError(missed, len(work.done), work.total) from None
                return  # there was nothing left to save
            if work.over is not None and str(error) == work.over:
                return  # it is enough
            what, hint = (error.message, error.hint) if isinstance(error, StorageError) else (error, None)
            hint = hint or "Mend the cause, then give the same command again: nothing that is recorded is asked twice."
            stop = RunStoppedError(
                f"the run stopped after {len(work.done)} of {work.total} episodes: {what}", hint=hint
            )
            stop.stopped = {"why": str(what), "episodes": len(work.done), "of": work.total}
            stop.stopped |= {"engines": dict(work.broken)} if work.broken else {}
            raise stop from error
        finally:
            beating.cancel()
        if len(work.done) == done:
            raise RuntimeError(f"{work.remaining} episodes are left, and the executor played none")


async def _beat(work: Work) -> None:
    """Say now and then how far it is."""
    since = time.monotonic(), copy.copy(work.usage), dict(work.done)
    await asyncio.sleep(BEAT_SECONDS)
    from harness.runtime.heartbeat import Heartbeat  # what only a long run needs
    from harness.runtime.planned_turns import planned_turns

    planned = partial(planned_turns, work.episodes)
    title = f"{work.plan.spec.name} · {work.plan.model}"
    heartbeat = Heartbeat(title, work.done, work.total, work.usage, planned=planned)
    heartbeat.begin(*since)
    heartbeat.waiting_for = lambda: [engine.waiting_for for engine in work.plan.engines.values()]
    await heartbeat.beat(BEAT_SECONDS)


def work_of(
    plan: Plan,
    episodes: Sequence[Job],
    folder: Path,
    options: Options,
    on_score: OnScore,
    spent: Spent,
) -> Work:
    """The episodes of a plan that the journals of a folder do not have; `Work.begin` is to follow.

    Calls `on_score` once with None, then once for every episode, finished ones first. `spent`: what other runs have
    used of the budget.
    """
    on_score(None)
    progress = storage.JournalState(*storage.journals(folder))
    before = progress.calls + spent.calls, progress.tokens + spent.tokens
    micros = progress.micros + spent.micros
    return Work(
        plan=plan,
        episodes=episodes,
        folder=folder,
        options=options,
        report_score=on_score,
        usage=_usage_of(plan, options.budget, *before, spent.seconds, micros),
        moves=progress.moves,
        inner=progress.inner,
        ends=progress.ends,
        served=progress.served,
    )


def _usage_of(plan: Plan, budget: Budget, calls: int, tokens: int, seconds: float, micros: int) -> Usage:
    """What is used of a budget so far."""
    if budget == Budget():
        return Usage(calls, tokens)
    from harness.engines.bounded_usage import BoundedUsage

    usage = BoundedUsage(budget, calls, tokens, seconds=seconds)
    if budget.max_cost is not None:
        from harness.config.user_prices import known_prices

        usage.count_costs(known_prices(plan.spec.get("prices")), micros)
    return usage
