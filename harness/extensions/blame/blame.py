"""Which moves and agents made the episodes of a run fail: `harness blame`.

Next: `verdict`, which finds out for one episode; `blame_tables`, which shows what was found.
"""

from __future__ import annotations

import contextlib
import math
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.api import UNBOUNDED, CorpusMetric, Engine, Facts, Policy, derive_seed
from harness.api.errors import BudgetSpentError, DataError, Place, SpecError, near
from harness.config.building import Reference, policy_name, split
from harness.config.permissions import check_execution
from harness.config.project import Project
from harness.evaluation.run import Run
from harness.extensions.replay.base_run import BaseRun
from harness.extensions.replay.recorded_engine import RecordedEngine
from harness.extensions.replay.reference import engines_of, reference_of, try_policy
from harness.extensions.replay.replay_key import MODEL
from harness.extensions.replay.simulation import Simulation
from harness.plugins import approvals
from harness.runtime.session import session
from harness.tables import EpisodeScore
from harness.tables.headline import Better
from harness.tables.scores import bounds_of

from .blame_tables import AgentPlayer, Blame
from .blame_verdict import BlameVerdict, Search, effort, is_worse, verdict

OnVerdict = Callable[[BlameVerdict | None, int], None]
"""Called with every verdict and how many there will be; once with None before the first."""


@session()
def blamed(
    run: Run | Path | str,
    by: Reference | None = None,
    *,
    episodes: Sequence[str] = (),
    limit: int | None = None,
    metric: str | None = None,
    better: Better | None = None,
    threshold: float | None = None,
    condition: str | None = None,
    moves: int = 200,
    permutations: int = 32,
    messages: bool = False,
    sample: int = 0,
    samples: int = 1,
    model: Engine | None = None,
    max_calls: int | None = None,
    project: Project | None = None,
    allow_code_execution: bool = False,
    sandbox: str = "process",
    on_verdict: OnVerdict | None = None,
) -> Blame:
    """Find out which moves and agents made episodes of a finished run fail, by playing them with other moves.

    Args:
        run: the run, or its folder.
        by: the policy whose moves replace others; by default the `ceiling` of the spec's headline.
        episodes: ids; by default all that failed: their number is not the best there is or, if the metric has no best
            number (bounds on both sides), worse than that of the reference in all seats.
        limit: at most so many of these, drawn from the run's seed.
        condition: only episodes of this one, unless `episodes` names some.
        metric: the metric whose number to explain; by default the headline's.
        better: which way that number is better; by default as the headline or the metric says.
        threshold: those failed whose number is worse than this one.
        moves, permutations, messages: as in `verdict.Search`.
        sample, samples: where another sample of a model is the reference, the number of the first, and how many. If the
            budget ends before the last, those that are complete count.
        model: answers the prompts that differ from those of the run.
        max_calls: of each model; what was found until then is returned. Models that the spec names are asked where
            this or `model` is given.
        project, allow_code_execution, sandbox: as in `harness.evaluate`.
        on_verdict: called as episodes are done.

    Raises:
        SpecError: no such metric or policy, or none is given and the spec names no ceiling; nothing says which way the
            metric is better.
        DataError: as in `replay.replayed`; also where an episode goes otherwise without any change, or has no such
            number.
    """
    with approvals.allowing(allow_code_execution):
        choice = _Choice(tuple(episodes), limit, metric, better, threshold, condition)
        looked = _look(run, by, choice, project, allow_code_execution, sandbox)
        parent, names = looked.parent, looked.names
        search = Search(moves, permutations, messages, looked.lower, derive_seed(parent.plan.seed, "blame"))
        kept = _engines(parent, model, max_calls)
        if looked.reference is None and any(engine.inner is None for engine in kept.values()):
            hint = "Give --model, and --model_args as the run had them; bound the calls with --max_calls."
            raise SpecError(
                "other samples of a model are wanted, and no model is there", place=Place("--reference"), hint=hint
            )
        _check_samples(looked, sample, samples)
        trials = [
            {one: Simulation(parent, one, looked.reference, looked.metric, kept, sandbox, n) for one in names}
            for n in range(sample, sample + samples)
        ]
        with session() as this:
            tell = on_verdict or (lambda verdict, total: None)
            found = this.run(_verdicts(trials, search, kept, tell, looked))
    players = {one: _players(parent, trials[0][one]) for one in names}
    roles = {one: {a: parent.jobs[one][1].roles.get(a, "default") for a in trials[0][one].seats} for one in names}
    order = {one: number for number, one in enumerate(parent.jobs)}  # a sample of them may be in another one
    asked = sum(engine.asked for engine in kept.values())
    blames = list[Blame]()
    for number, (verdicts, passed) in enumerate(found, sample):
        left = len(names) - len(verdicts) - passed
        if looked.most is not None:  # of more candidates no more are looked at than until so many have failed
            left = min(left, looked.most - len(verdicts))
        if not blames or not left:
            shown = verdicts if episodes else sorted(verdicts, key=lambda one: order[one.episode])
            blames.append(
                Blame(
                    parent.run,
                    looked.label,
                    looked.metric,
                    tuple(shown),
                    roles,
                    passed,
                    left,
                    asked,
                    policy={**looked.policy, **({"sample": number} if number else {})},
                    players=players,
                    errors=tuple(score.error for score in parent.run.scores if score.error is not None),
                )
            )
    return replace(blames[0], further=tuple(blames[1:]))


def _players(parent: BaseRun, trial: Simulation) -> dict[str, AgentPlayer]:
    """Agent → who played it: the model's own name, with that of the spec where two have the same."""
    own = {name: parent.plan.model if name == MODEL else engine.model for name, engine in parent.plan.engines.items()}
    named = Counter(own.values())
    found = {}
    for agent, seat in trial.seats.items():
        if seat.group.policy is None:
            model = own.get(seat.model, parent.plan.model)
            found[agent] = AgentPlayer(model if named[model] < 2 else f"{model} ({seat.model})")
        elif parent.run.meta.get("policies_only") and seat.group.name == "default":
            found[agent] = AgentPlayer(parent.plan.model, is_model=False)
        else:
            found[agent] = AgentPlayer(f"policy {type(seat.group.policy()).__name__}", is_model=False)
    return found


def _check_samples(looked: _Scope, sample: int, samples: int) -> None:
    if (samples > 1 or sample) and looked.reference is not None:
        hint = "A policy does the same in each; leave --sample and --samples out, or take --reference model."
        raise SpecError(
            "only another sample of a model differs from sample to sample", place=Place("--reference"), hint=hint
        )


@dataclass(frozen=True)
class _Choice:
    """Which episodes are looked at, and of which number: arguments of `blamed`."""

    episodes: Sequence[str] = ()
    limit: int | None = None
    metric: str | None = None
    better: Better | None = None
    threshold: float | None = None
    condition: str | None = None


@dataclass(frozen=True)
class _Scope:
    """What `blamed` and `planned` work on: the run, the chosen episodes, the reference and the number.

    `is_relative`: only the reference's number says which of these failed; `most` of them are wanted.
    """

    parent: BaseRun
    names: list[str]
    reference: Callable[[], Policy] | None
    label: str
    policy: Facts
    metric: str
    lower: bool
    is_relative: bool
    most: int | None


def _look(
    run: Run | Path | str,
    by: Reference | None,
    choice: _Choice,
    project: Project | None,
    allow_code_execution: bool,
    sandbox: str,
) -> _Scope:
    """Arguments and errors as in `blamed`."""
    folder = run.folder if isinstance(run, Run) else run
    parent = BaseRun.open(folder, project or (run.project if isinstance(run, Run) else None))
    check_execution(parent.plan, allow_code_execution, sandbox, playing=False)
    reference = _reference(parent, by)
    name = choice.metric or parent.run.headline.metric
    if name not in parent.run.metrics or isinstance(parent.run.metrics[name], CorpusMetric):
        numbers = [key for key, one in parent.run.metrics.items() if not isinstance(one, CorpusMetric)]
        raise SpecError(
            f"the run has no number {name!r} of an episode", place=Place("--metric"), hint=near(name, numbers)
        )
    lower = _is_lower(parent.run, name, choice.better)
    metric = parent.run.metrics[name]
    is_bounded = metric.bounds != UNBOUNDED  # that all numbers are 0 or 1 does not say that 1 is the best there is
    bounds = bounds_of(metric, parent.run.scores, name) if is_bounded else UNBOUNDED
    is_relative = not choice.episodes and choice.threshold is None and not all(map(math.isfinite, bounds))
    names = _chosen(parent, choice, name, lower, None if is_relative else bounds[0 if lower else 1])
    if reference is not None:
        try_policy(
            parent.plan, [parent.jobs[one][0] for one in names if one in parent.jobs], reference, _at(parent, by)
        )
    parent.read(names)
    most = choice.limit if is_relative else None
    given = by if by is not None else parent.run.headline.ceiling
    assert given is not None
    label = "another sample" if given == MODEL else policy_name(given)
    use, arguments = split(given)
    policy = {"use": use, **arguments}
    return _Scope(parent, names, reference, label, policy, name, lower, is_relative, most)


def _is_lower(run: Run, name: str, better: Better | None) -> bool:
    """Whether a lower number is better. Raises `SpecError` where nothing says so."""
    if better is None and name == run.headline.metric:
        better = run.headline.better
    if better is None:
        higher = getattr(run.metrics[name], "higher_is_better", None)
        if higher is None:
            hint = "Say so: `harness blame --better higher`, or --better lower."
            raise SpecError(f"nothing says which way {name} is better", place=Place("--metric"), hint=hint)
        better = "higher" if higher else "lower"
    return better == "lower"


@dataclass(frozen=True)
class BlamePlan:
    """How much `blamed` would play.

    Attributes:
        episodes: how many it would look at.
        deviations: moves in them that the reference would not have made.
        replays, most_replays: how often episodes would be played, for all samples: if no agent comes to deviate that
            does not now, and one of the moves saves its episode alone; and at most, if episodes do not become longer by
            other moves.
        calls, most_calls: turns of models in these that may be asked something else than in the run, under the same
            conditions. Those whose prompts stay the same are not asked.
    """

    episodes: int
    deviations: int
    replays: int
    most_replays: int
    calls: int
    most_calls: int


@session()
def planned(
    run: Run | Path | str,
    by: Reference | None = None,
    *,
    episodes: Sequence[str] = (),
    limit: int | None = None,
    metric: str | None = None,
    better: Better | None = None,
    threshold: float | None = None,
    moves: int = 200,
    permutations: int = 32,
    messages: bool = False,
    sample: int = 0,
    samples: int = 1,
    project: Project | None = None,
    allow_code_execution: bool = False,
    sandbox: str = "process",
) -> BlamePlan:
    """How much `blamed` would play; no model is asked. Arguments and errors as in `blamed`."""
    with approvals.allowing(allow_code_execution):
        choice = _Choice(tuple(episodes), limit, metric, better, threshold)
        looked = _look(run, by, choice, project, allow_code_execution, sandbox)
        _check_samples(looked, sample, samples)
        search = Search(moves, permutations, messages, looked.lower)
        kept = _engines(looked.parent, None, None)

        async def count() -> list[tuple[int, int, int, int, int, int]]:
            counts, failed = list[tuple[int, int, int, int, int, int]](), 0
            for one in looked.names:
                rehearsal = Simulation(looked.parent, one, looked.reference, looked.metric, kept, sandbox)
                if looked.is_relative and await is_worse(rehearsal, search) is False:
                    counts.append((0, 0, rehearsal.courses, rehearsal.courses, 0, 0))
                    continue
                counts.append((1, *await effort(rehearsal, search)))
                failed += 1
                if failed == looked.most:
                    break
            return counts

        with session() as this:
            counts = this.run(count())
    looked_at, deviations, *played = (sum(column) for column in zip((0,) * 6, *counts, strict=True))
    return BlamePlan(looked_at, deviations, *(samples * count for count in played))


async def _verdicts(
    samples: Sequence[Mapping[str, Simulation]],
    search: Search,
    kept: Mapping[str, RecordedEngine],
    on_verdict: OnVerdict,
    looked: _Scope,
) -> list[tuple[list[BlameVerdict], int]]:
    """For each sample the verdicts of episodes that failed, and how many others were looked at."""
    results: list[tuple[list[BlameVerdict], int]] = []
    total = sum(map(len, samples))
    on_verdict(None, total)
    try:
        for trials in samples:
            found, passed = list[BlameVerdict](), 0
            results.append((found, passed))
            for rehearsal in trials.values():
                one = await verdict(rehearsal, search)
                if looked.is_relative and one.finding == "no_better":
                    passed += 1
                else:
                    found.append(one)
                results[-1] = found, passed
                on_verdict(one, total)
                if len(found) == looked.most:
                    break
    except BudgetSpentError:
        pass  # what is found stays
    finally:
        async with contextlib.AsyncExitStack() as stack:
            for engine in kept.values():
                stack.push_async_callback(engine.close)
    return results


def _engines(parent: BaseRun, model: Engine | None, max_calls: int | None) -> dict[str, RecordedEngine]:
    """Who answers models' turns: the record, and where a prompt is another one the model, or those of the spec."""
    plan = parent.plan
    asked = model is not None or max_calls is not None  # what the spec names is asked where asking is meant
    declared = {name: plan.engines[name] for name in plan.declared} if asked else {}
    engines = engines_of(parent, declared if model is None else {"model": model, **declared}, max_calls)
    if model is not None and not engines:
        raise SpecError("a model was given and no agent uses it", place=Place("--model"), hint="Leave --model out.")
    return engines


def _chosen(parent: BaseRun, choice: _Choice, metric: str, lower: bool, best: float | None) -> list[str]:
    """The episodes to look at: those named, or those that failed, or a sample of these. Raises `DataError`.

    `best`: the best number there is; None: all may have failed, and come in the order of the sample.
    """
    if choice.episodes:
        names = list(dict.fromkeys(choice.episodes))
        without = {score.id for score in parent.run.scores if score.error is None and score.number(metric) is None}
        if none := next((name for name in names if name in without), None):
            hint = "There is nothing to explain; --metric names another one."
            raise DataError(f"{metric} has no number in episode {none!r}", place=Place("--episode"), hint=hint)
        return names

    def may_have_failed(score: EpisodeScore) -> bool:
        number = score.number(metric)
        if score.error is not None or number is None or choice.condition not in (None, score.condition):
            return False
        if choice.threshold is not None:
            return number > choice.threshold if lower else number < choice.threshold
        return best is None or number != best

    names = [score.id for score in parent.run.headline.selected(parent.run.scores) if may_have_failed(score)]
    if choice.limit is not None and choice.limit < len(names):
        rng = random.Random(derive_seed(parent.plan.seed, "blame", "episodes"))
        if best is None and choice.threshold is None:
            return rng.sample(names, len(names))
        kept = {*rng.sample(names, choice.limit)}
        names = [name for name in names if name in kept]
    return names


def _reference(parent: BaseRun, by: Reference | None) -> Callable[[], Policy] | None:
    if by == MODEL:
        return None
    given = by if by is not None else parent.run.headline.ceiling
    if given is None:
        known = ", ".join(parent.project.files("policies"))
        hint = f"Say which policy is right: --reference POLICY. There are {known}."
        raise SpecError("the spec's headline names no ceiling, whose moves could take the place of others", hint=hint)
    return reference_of(parent.plan, given, _at(parent, by))


def _at(parent: BaseRun, by: Reference | None) -> Place:
    return parent.plan.spec.place("headline", "ceiling") if by is None else Place("--reference")
