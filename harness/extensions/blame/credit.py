"""What each agent adds to its team's number: metrics that are measured by playing episodes without it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, ClassVar

from harness import storage
from harness.api import CorpusMetric, Episode, Metric, Range, derive_seed
from harness.api.errors import BudgetSpentError, SpecError, near
from harness.config.building import Reference, policy_name
from harness.config.plan import Plan
from harness.config.project import Project
from harness.evaluation.post_run import Play, PostRun
from harness.evaluation.rescore import rescored
from harness.evaluation.run import Run
from harness.extensions.replay.base_run import BaseRun
from harness.extensions.replay.reference import engines_of, reference_of, try_policy
from harness.extensions.replay.simulation import Simulation
from harness.plugins.parameters import PLUGIN, Keywords, Plugin
from harness.runtime.options import Options
from harness.runtime.session import session
from harness.tables import EpisodeScore, HeadlineSpec, TableSpec
from harness.tables.notes import clusters_in_words
from harness.tables.scores import cluster_of
from harness.tables.stats import clustered, t_quantile

from .blame_tables import of_episodes
from .blame_verdict import Search, shares
from .shares import Share

FILE = "credit.json"
"""In the folder of a run: key → episode → [its number, agent → credit, or None where that is not known]."""

_log = logging.getLogger(__name__)
_MAX_SHOWN = 20
_MAX_FILE_BYTES = 256 << 20  # bytes of the file

Credits = dict[str, list[Any]]


@dataclass(kw_only=True)
class CreditMetric(Metric):
    """What an agent, or a group of agents, adds to the episode's number: its Shapley value.

    The episode is played again with policy `by` in the place of agents, in all combinations: what an agent adds to a
    combination, averaged over all orders in which agents can join. The credits of all agents sum to the difference
    between the episode's number and that of `by` in all seats. With a floor it is what they are better than that; with
    a ceiling it is what they lost. In the unit of the number, whichever way is better.

    Attributes:
        of: the metric; None: the headline's.
        by: the policy; None: the floor of the headline.
        agent: whose credit; None: of all agents.
        group: of all agents of this group under `agents:`.
        permutations: orders of agents that it is drawn from, where more than six of them deviate from `by`.
        max_calls: how often models may be asked what they would have said, in all episodes together; 0: an episode in
            which that would be needed has no credit.
    """

    measured_by: ClassVar[str | None] = "replay"

    of: str | None = None
    by: Annotated[Plugin, Keywords({PLUGIN: "policies"})] | None = None
    agent: str | None = None
    group: str | None = None
    permutations: Annotated[int, Range(ge=2, le=100_000)] = 32
    max_calls: Annotated[int, Range(ge=0)] = 0

    def measure(self, episode: Episode) -> None:
        """None: the number is there once all episodes are played."""
        return

    def sum(self, credits: Mapping[str, float], roles: Mapping[str, str]) -> float | None:
        """The credit of those that are meant; None where the episode has none of them."""
        own = [
            value
            for agent, value in credits.items()
            if self.agent in (None, agent) and self.group in (None, roles.get(agent, "default"))
        ]
        return sum(own) if own else None


class Crediting(PostRun):
    """Plays the episodes of a run without some of its agents, for its metrics `credit`."""

    @classmethod
    def from_arguments(cls, project: Project, arguments: Mapping[str, Any]) -> Crediting:
        """It has no parameters."""
        return cls()

    @classmethod
    def again(cls, run: Run) -> Run:
        """With the credits of episodes whose number is still the one that was explained."""
        return _with_credits(run, _read(run.folder))

    @classmethod
    def lines(cls, run: Run) -> Iterable[str]:
        """Each agent's mean credit, and how many episodes have no credit, and why."""
        found = _read(run.folder)
        for name, metric in _metrics(run.metrics).items():
            known, of = found.get(_key(metric, run.headline), {}), _of(metric, run.headline)
            lacking = [score for score in run.scores if score.error is None and score.number(name) is None]
            for why, count in Counter(_why_none(metric, known, score, of, run) for score in lacking).items():
                yield f"{name}: {count} of {len(run.scores)} episodes have none ({why})"
            if metric.agent is None and metric.group is None:
                yield from _by_agent(name, known, [s for s in run.scores if _holds(known, s, of)], run.headline.table)

    @classmethod
    def score(cls, folder: str, options: Any) -> Run:
        """The run, graded again."""
        return rescored(folder)

    def plans(self, plan: Plan) -> list[tuple[Plan, int, str]]:
        """No plan of its own: the same episodes are played in memory. Raises as `check`."""
        _check(plan)
        return []

    def check(self, plan: Plan, cases: Mapping[str, str], options: Options) -> None:
        """Refuse a metric of a number that there is not, of nobody, or by a policy that is not there or cannot play."""
        _check(plan)

    def is_waiting(self, run: Run) -> bool:
        """Whether an episode was not looked at yet."""
        found = _read(run.folder)
        played = [score for score in run.scores if score.error is None]
        return any(
            not _holds(found.get(_key(metric, run.headline), {}), score, _of(metric, run.headline))
            for metric in _metrics(run.metrics).values()
            for score in played
        )

    def run(self, done: Run, plan: Plan, options: Options, play: Play, began: float) -> Run:
        """Play what is not known yet, and give the run its numbers."""
        if not self.is_waiting(done):
            return _with_credits(done, _read(done.folder))
        found = _read(done.folder)
        parent = BaseRun.open(done.folder, plan.project)
        for metric in _metrics(done.metrics).values():
            key, of = _key(metric, done.headline), _of(metric, done.headline)
            known = found.setdefault(key, {})
            names = [s.id for s in done.scores if s.error is None and not _holds(known, s, of)]
            if names:
                parent.read(names)
                with session() as one:
                    one.run(_credited(parent, names, metric, plan, options, known))
                storage.write_atomically(done.folder / FILE, json.dumps(found) + "\n")
        return _with_credits(done, found)


def _check(plan: Plan) -> None:
    """Raise `SpecError` as `Crediting.check`."""
    headline = HeadlineSpec.of(plan.spec.data, plan.metrics)
    for name, metric in _metrics(plan.metrics).items():
        place = plan.spec.place("metrics", [*plan.metrics].index(name))
        of = metric.of or headline.metric
        numbers = [
            key for key, one in plan.metrics.items() if not isinstance(one, CorpusMetric) and one.measured_by is None
        ]
        if of not in numbers:
            raise SpecError(f"{name} explains {of!r}, no number of an episode", place=place, hint=near(of, numbers))
        if metric.by is None and headline.floor is None:
            hint = "Say which policy replaces agents: by: POLICY."
            raise SpecError(f"{name}: the headline names no floor", place=place, hint=hint)
        groups = {group.name for condition in plan.conditions for group in condition.groups}
        if metric.group is not None and metric.group not in groups:
            raise SpecError(f"{name}: there is no group {metric.group!r}", place=place, hint=near(metric.group, groups))
        try_policy(plan, plan.conditions, reference_of(plan, _by(metric, headline), place), place)


async def _credited(
    parent: BaseRun, names: Sequence[str], metric: CreditMetric, plan: Plan, options: Options, found: Credits
) -> None:
    """Add the episodes' credits to `found`; without those that a model would have to be asked for."""
    headline = HeadlineSpec.of(plan.spec.data, plan.metrics)
    of, by = _of(metric, headline), _by(metric, headline)
    reference = reference_of(parent.plan, by, plan.spec.place("metrics"))
    kept = engines_of(parent, plan.engines if metric.max_calls else {}, metric.max_calls)
    scores = {score.id: score for score in parent.run.scores}
    async with contextlib.AsyncExitStack() as stack:
        for engine in kept.values():
            stack.push_async_callback(engine.close)
        spent = False
        for number, name in enumerate(names):
            if number * 10 // len(names) > (number - 1) * 10 // len(names):
                _log.info(f"credits: {number:,} of {of_episodes(len(names))} played again")
            rehearsal = Simulation(parent, name, reference, of, kept, options.sandbox)
            search = Search(permutations=metric.permutations, seed=derive_seed(parent.plan.seed, "credit", name))
            own: Mapping[str, Share] | None = None
            if not spent:
                try:
                    own = await shares(rehearsal, search)
                except BudgetSpentError:
                    spent = True
            value = scores[name].number(of)
            found[name] = [value, None if own is None else {agent: _plain(-one.value) for agent, one in own.items()}]


def _plain(value: Fraction) -> float:
    return float(value) + 0.0  # no −0.0


def _metrics(metrics: Mapping[str, Metric]) -> dict[str, CreditMetric]:
    return {name: metric for name, metric in metrics.items() if isinstance(metric, CreditMetric)}


def _of(metric: CreditMetric, headline: HeadlineSpec) -> str:
    return metric.of or headline.metric


def _by(metric: CreditMetric, headline: HeadlineSpec) -> Reference:
    by = metric.by if metric.by is not None else headline.floor
    assert by is not None
    return by


def _key(metric: CreditMetric, headline: HeadlineSpec) -> str:
    """Metrics that differ in whose credit they are share what is played."""
    by = _by(metric, headline)
    facts = json.dumps([by, metric.permutations, metric.max_calls], sort_keys=True, default=str)
    return f"{_of(metric, headline)} by {policy_name(by)} {hashlib.sha256(facts.encode()).hexdigest()[:8]}"


def _read(folder: Path) -> dict[str, Credits]:
    """What is known; what is damaged counts as unknown. Raises `DataError` where it is no file, or huge."""
    raw = storage.read_own(folder / FILE, _MAX_FILE_BYTES)
    try:
        found = json.loads(raw or b"{}")
    except (ValueError, RecursionError):
        found = None
    return found if isinstance(found, dict) and all(isinstance(one, dict) for one in found.values()) else {}


def _holds(known: Credits, score: EpisodeScore, of: str) -> bool:
    """Whether what is known of an episode explains the number that it has."""
    entry = known.get(score.id)
    return isinstance(entry, list) and len(entry) == 2 and entry[0] == score.number(of) and _are_credits(entry[1])


def _why_none(metric: CreditMetric, known: Credits, score: EpisodeScore, of: str, run: Run) -> str:
    if not _holds(known, score, of):
        return "not measured yet: the same eval command measures them"
    if known[score.id][1] is not None:
        return "no such agent in them"
    if run.meta.get("policies_only"):
        return "they fail, or have no number, without some of their agents"
    return "a model would have to be asked: give it max_calls" if metric.max_calls == 0 else "max_calls"


def _by_agent(name: str, known: Credits, scores: Sequence[EpisodeScore], table: TableSpec) -> Iterator[str]:
    """A line for each agent, those of the highest credit first: its mean, and a 95 % t interval over what is one
    observation for the headline's table."""
    credits: dict[str, list[tuple[Hashable, float]]] = {}
    for score in scores:
        for agent, value in (known[score.id][1] or {}).items():
            credits.setdefault(agent, []).append((cluster_of(score, table.cluster), value))
    means = {agent: clustered([own]) for agent, own in credits.items()}
    ordered = sorted(means.items(), key=lambda item: -(item[1].value or 0.0))
    width = max((len(agent) for agent, _ in ordered), default=0)
    has_interval = False
    for agent, own in ordered[:_MAX_SHOWN]:
        spread = ""
        mean = own.value or 0.0
        if own.stderr is not None and any(value for _, value in credits[agent]):
            has_interval, half = True, t_quantile(own.df) * own.stderr
            spread = f"  [{mean - half:.3f}, {mean + half:.3f}]"
        observations = len({cluster for cluster, _ in credits[agent]})
        of = f" of {observations:,} observation{'s' * (observations != 1)}" if observations < own.n else ""
        yield f"{name} of {agent.ljust(width)}  {mean:7.3f}{spread}  {of_episodes(own.n)}{of}"
    if has_interval:
        what = "every episode" if "episode" in table.cluster else clusters_in_words(table, scores).rstrip(",")
        yield f"{name}: in brackets the 95 % t interval of an agent's mean; one observation: {what}"
    if len(ordered) > _MAX_SHOWN:
        yield f"{name}: {len(ordered) - _MAX_SHOWN} more agents, in {FILE}"


def _are_credits(found: object) -> bool:
    """Whether it is what `_credited` writes: JSON of other programs may have NaN, infinity or text in it."""
    if found is None:
        return True
    return isinstance(found, dict) and all(type(one) is float and math.isfinite(one) for one in found.values())


def _with_credits(run: Run, found: Mapping[str, Credits]) -> Run:
    from harness.config import resolve  # the roles of agents are in cases, which only a plan has
    from harness.config.plan import episode_id, survey
    from harness.engines.mock import Mock

    metrics = _metrics(run.metrics)
    roles: dict[str, Mapping[str, str]] = {}
    if any(metric.group is not None for metric in metrics.values()):
        plan = resolve.plan(run.spec, run.project, Mock()) if run.project is not None else None
        roles = {episode_id(*job): job[1].roles for job in survey(plan).episodes} if plan is not None else {}
    scores = []
    for score in run.scores:
        numbers = dict(score.numbers)
        for name, metric in metrics.items():
            known = found.get(_key(metric, run.headline), {})
            credits = known[score.id][1] if _holds(known, score, _of(metric, run.headline)) else None
            own = metric.sum(credits, roles.get(score.id, {})) if isinstance(credits, dict) else None
            numbers[name] = own if score.error is None else None
        scores.append(replace(score, numbers=numbers))
    return replace(run, scores=scores)
