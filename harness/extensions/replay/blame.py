"""Which moves and agents made the episodes of a run fail: `harness blame`.

Next: `verdict`, which finds out for one episode.
"""

from __future__ import annotations

import contextlib
import functools
import math
import random
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from harness import approvals
from harness.api import CorpusMetric, Facts, Policy, derive_seed
from harness.config.building import Reference, make, parts_of, policy_name, split
from harness.config.permissions import check_execution
from harness.config.plan import Condition, Plan
from harness.config.project import Project
from harness.engine_api import Engine
from harness.errors import BudgetSpentError, DataError, Place, SpecError, UserError, near
from harness.printable import clean_name
from harness.results import Run
from harness.runtime.seats import seats
from harness.runtime.session import session
from harness.runtime.steps import Steps
from harness.storage.plugin_errors import describe
from harness.tables import Cell, Column, EpisodeScore, Row, Table
from harness.tables.headline import Better

from .course import Rehearsal
from .kept import Kept, Memory
from .key import MODEL
from .parent import Parent
from .samples import spread
from .verdict import WORDS, BlameVerdict, Search, effort, is_worse, verdict

_NUMBERS = ("Decisive", "Share", "Alone", "Last")
_MOST_NAMED, _MOST_MESSAGES = 5, 20
_PASSED = "{} did not fail: the reference does no better"

OnVerdict = Callable[[BlameVerdict | None, int], None]
"""Called with every verdict and how many there will be; once with None before the first."""


@dataclass(frozen=True)
class Blame:
    """What made the episodes of a run fail.

    Attributes:
        run: the run.
        by: the reference, as tables call it.
        metric: the metric whose number to explain.
        verdicts: one for each episode that was looked at.
        roles: episode → agent → its group.
        passed: how many were looked at and did not fail, by a metric without a best number: with the reference in all
            seats theirs is no better.
        remaining: how many episodes the budget did not allow to look at; with a `limit` at most those that the sample
            lacks.
        asked: how many calls of a model were made, for all samples.
        further: the same of further samples, where another sample of a model is the reference.
        policy: the reference as a spec has it, {"use": …} and its parameters; of another sample of a model than that
            of number 0 also its number, as `sample`.
    """

    run: Run
    by: str
    metric: str
    verdicts: tuple[BlameVerdict, ...]
    roles: dict[str, dict[str, str]]
    passed: int = 0
    remaining: int = 0
    asked: int = 0
    further: tuple[Blame, ...] = ()
    policy: Facts = field(default_factory=dict)

    @property
    def samples(self) -> tuple[Blame, ...]:
        """This one and the further ones."""
        return self, *self.further

    @property
    def tables(self) -> list[Table]:
        """Who and when: by agent, by group where there are several, by round; and what was found how often. Of several
        samples the means, with their standard deviation."""
        sent = any(one.messages for sample in self.samples for one in sample.verdicts)
        if not self.further:
            return [*self._filled(self._tables()), *([_foremost(self._messages())] if sent else [])]
        found = Counter(one.finding for sample in self.samples for one in sample.verdicts)
        notes = (
            f"Means over {len(self.samples)} samples; ±: the standard deviation between them.",
            "; ".join(f"{n} of {found.total()} verdicts: {WORDS[what]}" for what, n in found.most_common()),
        )
        each = zip(*(sample._tables() for sample in self.samples), strict=True)
        tables = self._filled([spread(tables, () if i else notes) for i, tables in enumerate(each)])
        return [*tables, *([_foremost(spread([one._messages() for one in self.samples], ()))] if sent else [])]

    def _filled(self, tables: Sequence[Table]) -> list[Table]:
        """The tables that have rows, with the notes of the first of all; where none has, how often what was found."""
        filled = [table for table in tables if table.rows]
        if filled:
            return [replace(filled[0], notes=tables[0].notes), *filled[1:]]
        found = Counter(WORDS[one.finding] for sample in self.samples for one in sample.verdicts)
        what, notes = "Findings", tables[0].notes[1:]  # the first says what the table does
        if self.further:
            what, notes = f"Findings of {len(self.samples)} samples", ()
        return [replace(_counted("finding", dict(found.most_common()), self._title(what)), notes=notes)]

    def _tables(self) -> list[Table]:
        blamed = [one for one in self.verdicts if one.finding == "blamed"]
        tables = [_shared("agent", _by_agent(blamed), self._title("By agent"), self._notes(blamed))]
        if len({role for roles in self.roles.values() for role in roles.values()}) > 1:
            note = "Decisive: an agent of the group is. Share: the sum of its agents' shares."
            tables.append(_shared("group", self._by_role(blamed), self._title("By group"), [note]))
        rounds = Counter(one.named[0].round for one in blamed)
        first = "By round of the first decisive move"
        tables.append(_counted("round", dict(sorted(rounds.items())), self._title(first)))
        return tables

    @property
    def episodes(self) -> Table:
        """A row per episode: what was found, whose move decided it, and when; of several samples, in how many."""
        if self.further:
            return self._often()
        rows = []
        for one in self.verdicts:
            who = ", ".join(f"{clean_name(d.place[0])} at turn {d.number}" for d in one.named[:_MOST_NAMED])
            who += f", {len(one.named) - _MOST_NAMED} more" if len(one.named) > _MOST_NAMED else ""
            how = "" if not one.named else "any one" if one.single and len(one.named) > 1 else "together"
            how = "alone" if len(one.named) == 1 else how
            last = "" if one.last_chance is None else str(one.last_chance)
            rows.append(Row({"episode": one.episode}, (clean_name(one.episode), one.finding, who, how, last), ()))
        names = ("Episode", "Finding", "Decisive moves", "Save it", "Last chance")
        labels = ("episode", "finding", "moves", "how", "last")
        return Table("Episodes", labels, (), (), tuple(rows), row_names=names)

    def _messages(self) -> Table:
        """A row for each message without which the number is another one."""
        tried = [(one.episode, turn, value) for one in self.verdicts for turn, value in one.messages.items()]
        columns = (Column({"statistic": "effect"}, ("Effect",)),)
        rows = tuple(
            Row({"episode": name, "turn": turn}, (clean_name(name), str(turn)), (Cell(float(value), n=1),))
            for name, turn, value in tried
            if value
        )
        none, unknown = sum(value == 0 for *_, value in tried), sum(value is None for *_, value in tried)
        note = f"Of {len(tried)} messages, {none} change nothing; of {unknown} it is not known."
        names = ("Episode", "Turn")
        title = f"Messages that are not sent: what {self.metric} changes by"
        labels = ("episode", "turn")
        return Table(title, labels, ("statistic",), columns, rows, row_names=names, notes=(note,))

    def _often(self) -> Table:
        verdicts: dict[str, list[BlameVerdict]] = {}
        for sample in self.samples:
            for one in sample.verdicts:
                verdicts.setdefault(one.episode, []).append(one)
        rows = []
        for name, own in verdicts.items():
            counts = Counter(f"{clean_name(d.place[0])} at turn {d.number}" for one in own for d in one.named)
            decided = f"{sum(one.finding == 'blamed' for one in own)} of {len(self.samples)} samples"
            often = ", ".join(f"{move} ({n})" for move, n in counts.most_common(_MOST_NAMED))
            more = f", {len(counts) - _MOST_NAMED} more" if len(counts) > _MOST_NAMED else ""
            rows.append(Row({"episode": name}, (clean_name(name), decided, often + more), ()))
        names = ("Episode", "Decided in", "Decisive moves (in how many samples)")
        return Table("Episodes", ("episode", "finding", "moves"), (), (), tuple(rows), row_names=names)

    def _title(self, what: str) -> str:
        return f"{what}: what {self.metric} lost, and {self.by} would have kept"

    def _notes(self, blamed: Sequence[BlameVerdict]) -> Iterator[str]:
        found = Counter(one.finding for one in self.verdicts)
        yield "; ".join(f"{n} of {len(self.verdicts)} episodes: {WORDS[what]}" for what, n in found.most_common())
        if self.passed:
            yield f"Besides, {_PASSED.format(of_episodes(self.passed))}."
        if any(one.shares for one in blamed):
            what = "what replacing the agent changes where no other, and every other is"
            yield f"Share: Shapley value. Alone, last: {what}."
        if problems := [one.problem for one in self.verdicts if one.problem is not None]:
            of = f"{len(problems)} of {len(self.verdicts)}"
            yield f"Played with other moves, {of} episodes failed, as by: {problems[0]}"
        if any(share.low is not None for one in blamed for share in one.shares.values()):
            yield "Shares of some episodes are sampled; --format json has their intervals."

    def _by_role(self, blamed: Sequence[BlameVerdict]) -> dict[str, list[list[float]]]:
        """Group → for each episode whether it is blamed, and the sum of its agents' shares.

        What replacing a whole group changes is no sum of what replacing its agents does, and was not played.
        """
        found: dict[str, list[list[float]]] = {}
        for one in blamed:
            roles = self.roles[one.episode]
            for role in dict.fromkeys(roles.get(agent, "default") for agent in one.shares):
                members = [agent for agent in one.shares if roles.get(agent, "default") == role]
                total = sum((one.shares[agent].value for agent in members), Fraction(0))
                found.setdefault(role, []).append([float(any(agent in one.agents for agent in members)), float(total)])
        return found


def of_episodes(count: int) -> str:
    """ "1 episode", "2 episodes"."""
    return f"{count:,} episode{'s' * (count != 1)}"


def _numbers(one: BlameVerdict, agent: str) -> list[float]:
    share = one.shares[agent]
    return [float(agent in one.agents), float(share.value), float(share.alone), float(share.last)]


def _by_agent(blamed: Iterable[BlameVerdict]) -> dict[str, list[list[float]]]:
    found: dict[str, list[list[float]]] = {}
    for one in blamed:
        for agent in one.shares:
            found.setdefault(agent, []).append(_numbers(one, agent))
    return found


def _shared(label: str, found: dict[str, list[list[float]]], title: str, notes: Iterable[str]) -> Table:
    width = max((len(row) for own in found.values() for row in own), default=len(_NUMBERS))
    columns = tuple(Column({"statistic": name.lower()}, (name,)) for name in _NUMBERS[:width])
    means = {name: [statistics.fmean(column) for column in zip(*own, strict=True)] for name, own in found.items()}
    rows = [
        Row({label: name}, (clean_name(name),), tuple(Cell(value, n=len(found[name])) for value in own))
        for name, own in sorted(means.items(), key=lambda item: -item[1][0])
        if any(own)
    ]
    if len(rows) < len(means):
        notes = [*notes, f"Not shown, with 0 everywhere: {len(means) - len(rows)}."]
    return Table(
        title, (label,), ("statistic",), columns, tuple(rows), row_names=(label.capitalize(),), notes=tuple(notes)
    )


def _foremost(messages: Table) -> Table:
    """The rows of the greatest effects."""
    rows = sorted(messages.rows, key=lambda row: -abs(row.cells[0].value or 0))
    more = [f"Not shown: {len(rows) - _MOST_MESSAGES} more."] if len(rows) > _MOST_MESSAGES else []
    return replace(messages, rows=tuple(rows[:_MOST_MESSAGES]), notes=(*messages.notes, *more))


def _counted(label: str, counts: Mapping[Any, int], title: str) -> Table:
    columns = (Column({"statistic": "episodes"}, ("Episodes",), form="count"),)
    rows = tuple(Row({label: key}, (str(key),), (Cell(n, n=n),)) for key, n in counts.items())
    return Table(title, (label,), ("statistic",), columns, rows, row_names=(label.capitalize(),))


# ------------------------------------------------------------------------------------------ finding out


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
                "other samples of a model are wanted, and no model is there", place=Place("--by"), hint=hint
            )
        _check_samples(looked, sample, samples)
        trials = [
            {one: Rehearsal(parent, one, looked.reference, looked.metric, kept, sandbox, n) for one in names}
            for n in range(sample, sample + samples)
        ]
        with session() as this:
            tell = on_verdict or (lambda verdict, total: None)
            found = this.run(_verdicts(trials, search, kept, tell, looked))
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
                )
            )
    return replace(blames[0], further=tuple(blames[1:]))


def _check_samples(looked: _Scope, sample: int, samples: int) -> None:
    if (samples > 1 or sample) and looked.reference is not None:
        hint = "A policy does the same in each; leave --sample and --samples out, or take --by model."
        raise SpecError("only another sample of a model differs from sample to sample", place=Place("--by"), hint=hint)


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

    parent: Parent
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
    parent = Parent.open(folder, project or (run.project if isinstance(run, Run) else None))
    check_execution(parent.plan, allow_code_execution, sandbox, playing=False)
    reference = _reference(parent, by)
    name = choice.metric or parent.run.headline.metric
    if name not in parent.run.metrics or isinstance(parent.run.metrics[name], CorpusMetric):
        numbers = [key for key, one in parent.run.metrics.items() if not isinstance(one, CorpusMetric)]
        raise SpecError(
            f"the run has no number {name!r} of an episode", place=Place("--metric"), hint=near(name, numbers)
        )
    lower = _is_lower(parent.run, name, choice.better)
    bounds = parent.run.metrics[name].bounds
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
                rehearsal = Rehearsal(looked.parent, one, looked.reference, looked.metric, kept, sandbox)
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
    samples: Sequence[Mapping[str, Rehearsal]],
    search: Search,
    kept: Mapping[str, Kept],
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


def _engines(parent: Parent, model: Engine | None, max_calls: int | None) -> dict[str, Kept]:
    """Who answers models' turns: the record, and where a prompt is another one the model, or those of the spec."""
    plan = parent.plan
    asked = model is not None or max_calls is not None  # what the spec names is asked where asking is meant
    declared = {name: plan.engines[name] for name in plan.declared} if asked else {}
    engines = engines_of(parent, declared if model is None else {"model": model, **declared}, max_calls)
    if model is not None and not engines:
        raise SpecError("a model was given and no agent uses it", place=Place("--model"), hint="Leave --model out.")
    return engines


def engines_of(parent: Parent, models: Mapping[str, Engine], max_calls: int | None) -> dict[str, Kept]:
    """For each model of the run its recorded replies, and where a prompt is another one that of `models`, if any.

    Args:
        parent: the run.
        models: by the names that groups use; "model" is the one under test, and the same for all that have no other.
        max_calls: of each.
    """
    plan, memory = parent.plan, Memory(parent)
    groups = [group for condition in plan.conditions for group in condition.groups if group.policy is None]
    names = dict.fromkeys(group.model or "model" for group in groups)
    return {name: Kept(memory, models.get(name), plan.model, {}, max_calls=max_calls, once=True) for name in names}


def _chosen(parent: Parent, choice: _Choice, metric: str, lower: bool, best: float | None) -> list[str]:
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


def _reference(parent: Parent, by: Reference | None) -> Callable[[], Policy] | None:
    if by == MODEL:
        return None
    given = by if by is not None else parent.run.headline.ceiling
    if given is None:
        known = ", ".join(parent.project.files("policies"))
        hint = f"Say which policy is right: --by POLICY. There are {known}."
        raise SpecError("the spec's headline names no ceiling, whose moves could take the place of others", hint=hint)
    return reference_of(parent.plan, given, _at(parent, by))


def _at(parent: Parent, by: Reference | None) -> Place:
    return parent.plan.spec.place("headline", "ceiling") if by is None else Place("--by")


def reference_of(plan: Plan, given: Reference, at: Place) -> Callable[[], Policy]:
    """Makes the policy that was named at this place, whose moves take the place of others. Raises `SpecError`."""
    cls, arguments = parts_of("policies", given, plan.project, lambda *path: at)
    return functools.partial(make, cls, arguments, lambda *path: at)


def try_policy(plan: Plan, conditions: Iterable[Condition], policy: Callable[[], Policy], at: Place) -> None:
    """Raise `SpecError` where a policy cannot play these conditions: it says so, or fails in the first turns of an
    example, since not every policy can tell by the task alone."""
    for condition in {id(one): one for one in conditions}.values():
        why, hint = policy().misfit(condition.task), None
        if why is None:
            why, hint = _failure(plan, condition, policy)
        if why is not None:
            raise SpecError(f"this policy cannot play {condition.id}: {why}", place=at, hint=hint)


def _failure(plan: Plan, condition: Condition, policy: Callable[[], Policy]) -> tuple[str | None, str | None]:
    """Why the policy fails in the first turns of the condition's example, and what to do; None if it does not."""
    seated = seats(plan, condition, condition.task.example(), 0)
    with Steps(condition.protocol, condition.task, condition.task.example(), random.Random(0)) as game:
        while game.batch == []:
            game.send([])
        for turn in game.batch or ():
            seat = seated[turn.agent]
            try:
                replace(seat, group=replace(seat.group, model=None, policy=policy)).policy_player().decide(turn)
            except UserError as error:
                return error.message, error.hint
            except Exception as error:
                return describe(error), None
    return None, None
