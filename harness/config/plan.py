"""A plan: everything a run needs, as objects. `harness.config.resolve` makes it, `harness.runtime.runner` plays it."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import math
import random
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

from harness import api
from harness.api import Engine
from harness.api.errors import DataError, Place, PluginError, SpecError, near
from harness.config.keys import SpecKey
from harness.config.project import Project
from harness.config.prompts import PromptSet
from harness.config.schema import metric_name
from harness.config.spec import Spec
from harness.tables import SIMULATED_NAME

if TYPE_CHECKING:
    from harness.config.limits import EpisodeLimits


def simulated(label: str) -> str:
    """What tables call players that use the ground truth.

    >>> simulated("weak experts"), simulated("")
    ('simulated (weak experts)', 'simulated')
    """
    return f"{SIMULATED_NAME} ({label})" if label else SIMULATED_NAME


@dataclass(frozen=True)
class Group:
    """Agents that play alike: which model (by name) or which policy plays them, with which prompts.

    `agents` names them, or gives their names for a case.
    """

    name: str
    prompts: PromptSet
    model: str | None = None
    policy: Callable[[], api.Policy] | None = None
    sampling: Mapping[str, Any] = field(default_factory=dict)
    share: float | None = None
    count: int | None = None
    agents: tuple[str, ...] | Callable[[api.Case], Sequence[str]] | None = None
    scored: bool = True
    place: Place | None = None

    @functools.cached_property
    def ground_truth_label(self) -> str | None:
        """What tables call players here that use the ground truth; None if no player does."""
        player = self.policy() if self.policy is not None else None
        return simulated(getattr(player, "label", "")) if player is not None and player.uses_ground_truth else None

    def make_policy(self, agent: str, case: api.Case, seed: int) -> api.Policy:
        """A policy of the group, as it is when a case begins; `seed` is for policies that know the case."""
        if self.policy is None:
            raise TypeError(f"a model plays group {self.name!r}")
        player = self.policy()
        if player.uses_ground_truth:
            player.inform(agent, case, seed)
        return player


@dataclass(frozen=True)
class Condition:
    """One cell of the matrix, ready to play. The first group is `default`: the agents in no other.

    Attributes:
        base: the id of the condition that this one is a seating of; it has the same cases, and the same chance of the
            protocol, as all seatings of it.
        games: how many episodes it has; None for as many as the spec's cases and repeats make.
        drawn: how many of these are to be played, if results of others say how many: every case once, then again. None
            for all. The rest is no part of the plan yet.
    """

    id: str
    labels: Mapping[str, Any]
    task: api.Task
    protocol: api.Protocol
    groups: tuple[Group, ...]
    structured_output: bool = False
    limits: EpisodeLimits | None = None
    base: str | None = None
    games: int | None = None
    drawn: int | None = None

    @property
    def origin(self) -> str:
        """The id by which cases and the protocol's chance are drawn."""
        return self.id if self.base is None else self.base

    @property
    def uses_ground_truth(self) -> bool:
        """Whether a player here uses the ground truth: the right answer of its case."""
        return any(group.ground_truth_label for group in self.groups)

    def group_of(self, case: api.Case, agent: str) -> Group:
        """The group that an agent of `case`, with its groups assigned, belongs to."""
        name = case.roles.get(agent, "default")
        return next(group for group in self.groups if group.name == name)

    def assign_groups(self, case: api.Case, seed: int) -> api.Case:
        """`case` with its agents assigned to groups: the same ones for a seed, whatever the problem or protocol.

        Raises `SpecError` when a group wants agents that are not there or not free.
        """
        agents = self.protocol.possible_agents(case)
        free = list(agents)
        roles: dict[str, str] = {}
        unscored: set[str] = set()
        rng = random.Random(api.derive_seed(seed, "seats", case.id))
        for group in self.groups[1:]:
            if group.agents is not None:
                members = list(group.agents(case) if callable(group.agents) else group.agents)
            else:
                # To a computer 0.58 · 50 is 28.999999999999996; to the writer of the spec it is 29.
                share = math.floor((group.share or 0) * len(agents) + 1e-9)
                count = group.count if group.count is not None else share
                if count > len(free):
                    message = f"group {group.name!r} wants {count} agents; {len(free)} are free in case {case.id!r}"
                    raise SpecError(message, place=group.place)
                members = rng.sample(free, count)
            missing = [agent for agent in members if agent not in free]
            if missing:
                message = f"group {group.name!r}: no free agent {missing[0]!r} in case {case.id!r}"
                raise SpecError(message, place=group.place, hint=near(missing[0], free))
            free = [agent for agent in free if agent not in members]
            roles |= dict.fromkeys(members, group.name)
            unscored |= set() if group.scored else set(members)
        return replace(case, roles=roles, unscored=frozenset(unscored))


Job = tuple[Condition, api.Case, int]
"""An episode: its condition, its case with the groups assigned, and which repeat of the case it is, from 0."""


@dataclass(frozen=True)
class Plan:
    """Everything a run needs. `engines` maps the names that groups use to ready-made, unstarted engines.

    Attributes:
        model: the label of the model under test, in every table.
        digest: equal for runs that measured the same thing (their numbers compare).
        sampling: generation_kwargs of the spec.
        dedupe_calls: whether identical calls of different conditions are asked once.
        executor: where the spec wants it to run.
        declared: those of `engines` that the spec names; the command line chose the others.
        keys: those of extensions that the spec has.
        elsewhere: agents that players may name though they do not play here: those of the run that this plan prepares.
        inner: name of an engine whose programs call a model of the run → name of the one that answers them.
    """

    spec: Spec
    project: Project
    conditions: tuple[Condition, ...]
    metrics: Mapping[str, api.Metric]
    engines: Mapping[str, Engine]
    model: str
    digest: str
    seed: int
    repeats: int
    limit: int | None
    sampling: Mapping[str, Any]
    dedupe_calls: bool = False
    executor: str | Mapping[str, Any] = "local"
    declared: frozenset[str] = frozenset()
    keys: tuple[SpecKey, ...] = ()
    elsewhere: frozenset[str] = frozenset()
    inner: Mapping[str, str] = field(default_factory=dict)

    @property
    def seated_models(self) -> set[str]:
        """Names of the models that play an agent, or a contestant; of the model under test "model"."""
        groups = (group.model for condition in self.conditions for group in condition.groups)
        return {name for name in groups if name is not None}.union(*(key.models() or () for key in self.keys))

    def entry(self, name: str) -> str:
        """The entry under `models:` that says what an engine is: of an inner engine without one, that of its agent."""
        owners = [outer for outer, inner in self.inner.items() if inner == name]
        return name if not owners or name in self.spec.get("models", {}) else owners[0]

    def inputs(self) -> list[str]:
        """What tasks have read from the user's own files (`Task.inputs`), each line once."""
        lines = (line for condition in self.conditions for line in condition.task.inputs(self.seed))
        return list(dict.fromkeys(lines))

    def episodes(self, earlier: Iterable[Job] = ()) -> Iterator[Job]:
        """Every episode in its one order: conditions, cases, repeats. Conditions with the same task share its cases.

        Args:
            earlier: episodes of this plan when it had fewer conditions; their cases are not made again.

        Raises `SpecError` if a group finds no agents, `PluginError` where a task gives something else than cases.
        """
        made: dict[tuple[object, int | None], Iterable[tuple[api.Case, int]]] = dict(_cases_by_origin(earlier))
        sharing = Counter((id(condition.task), condition.games) for condition in self.conditions)
        for condition in self.conditions:
            key = id(condition.task), condition.games
            cases = made.get((condition.origin, condition.games)) or made.get(key) or self.all_cases(condition)
            if sharing[key] > 1 and key not in made:
                cases = made[key] = list(cases)
            if condition.drawn is not None:
                cases = _first(condition.drawn, list(cases))
            for case, repeats in cases:
                if not isinstance(case, api.Case):
                    raise PluginError(f"{type(condition.task).__name__}.cases gives {case!r:.80}, no Case")
                assigned = condition.assign_groups(case, self.seed)
                for repeat in range(repeats):
                    yield condition, assigned, repeat

    def _of_task(self, condition: Condition, limit: int | None) -> Iterator[api.Case]:
        try:
            yield from condition.task.cases(limit, self.seed)
        except DataError as error:
            if error.place is not None and error.place.line:
                raise
            message = f"{error.place}: {error.message}" if error.place else error.message
            raise DataError(message, place=self.spec.place("task"), hint=error.hint) from error

    def cases(self, condition: Condition) -> Iterator[tuple[api.Case, int]]:
        """The cases of a condition, each with how often it is played. Raises as `all_cases`."""
        cases = self.all_cases(condition)
        return cases if condition.drawn is None else iter(_first(condition.drawn, list(cases)))

    def all_cases(self, condition: Condition) -> Iterator[tuple[api.Case, int]]:
        """The same with those that are not drawn yet.

        Raises `DataError` with the place of the spec's task, if it is about no line of a file of its own.
        """
        games = condition.games
        if games is None:
            yield from ((case, self.repeats) for case in self._of_task(condition, self.limit))
            return
        games = games if self.limit is None else min(games, self.limit)
        cases = list(itertools.islice(self._of_task(condition, games), games))
        yield from ((case, games // len(cases) + (i < games % len(cases))) for i, case in enumerate(cases))

    def in_all(self, count: int) -> int:
        """The number of episodes that a plan has once it has all conditions, if it has `count` of them now."""
        for key in self.keys:
            count = key.total(self, count)
        return count


def _first(count: int, cases: Sequence[tuple[api.Case, int]]) -> list[tuple[api.Case, int]]:
    """So many episodes of these cases, each with how often it is played: every case once, then again."""
    taken, least = [0] * len(cases), 0
    while count and any(repeats > least for _, repeats in cases):
        for i, (_, repeats) in enumerate(cases):
            if count and repeats > least:
                taken[i] += 1
                count -= 1
        least += 1
    return [(case, repeats) for (case, _), repeats in zip(cases, taken, strict=True) if repeats]


def _cases_by_origin(episodes: Iterable[Job]) -> Iterator[tuple[tuple[str, int | None], list[tuple[api.Case, int]]]]:
    """((origin, games), the cases of these episodes, each with how often it is played)."""
    cases: dict[tuple[str, int | None], dict[str, tuple[api.Case, int]]] = {}
    whole = (job for job in episodes if job[0].drawn is None)
    for condition, case, repeat in whole:  # those of several seatings are the same
        cases.setdefault((condition.origin, condition.games), {})[case.id] = case, repeat + 1
    return ((key, [*of.values()]) for key, of in cases.items())


def prepare(plan: Plan) -> dict[str, str]:
    """Let the plan's protocols read what they need. Returns and raises as `Protocol.prepare`."""
    kinds = dict.fromkeys(type(condition.protocol) for condition in plan.conditions)
    return {name: digest for kind in kinds for name, digest in kind.prepare(plan).items()}


QUESTIONS, ANSWERS = "questions", "right answers"


@dataclass(frozen=True)
class Survey:
    """The result of one look at all cases.

    Attributes:
        episodes: the episodes, in plan order; their cases are made once, here.
        labels: those that scores will have.
        cases: `QUESTIONS` and `ANSWERS`: SHA-256 over what all cases ask, and over what their answers are
            graded by. Data files and tasks' code decide both.
    """

    episodes: Sequence[Job] = ()
    labels: Set[str] = frozenset()
    cases: Mapping[str, str] = field(default_factory=dict)


def survey(plan: Plan) -> Survey:
    """Look at every case once, before anything is played.

    Raises:
        SpecError, PluginError: as `Plan.episodes`; also when there is nothing to play, or two episodes would share
            an id and so be counted as one, or players name agents that do not exist.
    """
    ids: set[str] = set()
    episodes = []
    agents: dict[str, set[str]] = {condition.id: set() for condition in plan.conditions if condition.uses_ground_truth}
    labels = {"model"}
    digests = {QUESTIONS: hashlib.sha256(), ANSWERS: hashlib.sha256()}
    looked_at: dict[str, str] = {}  # origin → the first condition of it
    for condition, case, repeat in plan.episodes():
        name = episode_id(condition, case, repeat)
        if name in ids:
            message = f"{type(condition.task).__name__} gives two cases with the id {case.id!r} in {condition.id!r}"
            raise PluginError(message, place=plan.spec.place("task"), hint="A case's id is unique in its condition.")
        ids.add(name)
        episodes.append((condition, case, repeat))
        labels.update(condition.labels, case.labels)
        origin = condition.origin
        first = origin not in looked_at
        if looked_at.setdefault(origin, condition.id) == condition.id and repeat == 0:  # seatings have the same cases
            whole = condition.drawn is not None  # how many are drawn is no matter of the cases
            asked = (one for one, _ in plan.all_cases(condition)) if whole and first else () if whole else (case,)
            for one in asked:
                at = episode_id(condition, one, 0) if condition.base is None else f"{origin}/{one.id}"
                for what, facts in _facts(one).items():
                    digests[what].update(_as_text((at, *facts)))
        if condition.id in agents:
            agents[condition.id].update(condition.protocol.possible_agents(case))
    if not ids:
        message = "there is nothing to play: no task gives a single case"
        raise SpecError(message, place=plan.spec.place("task"))
    _check_players(plan, agents)
    return Survey(episodes, labels, {what: digest.hexdigest() for what, digest in digests.items()})


def _facts(case: api.Case) -> dict[str, tuple[object, ...]]:
    """What a case asks, and what its answers are graded by."""
    sampling = (case.sampling,) if case.sampling else ()
    asked = (case.agents, case.public, case.private, case.topology, *sampling)
    return {QUESTIONS: asked, ANSWERS: (case.target, case.labels, case.unscored)}


def case_digest(case: api.Case) -> str:
    """Equal for cases that ask the same and have the same answers: 16 hexadecimal digits."""
    return hashlib.sha256(b"".join(map(_as_text, _facts(case).values()))).hexdigest()[:16]


def problem_digest(task: api.Task, case: api.Case) -> str:
    """Equal for cases that ask the same of the same kind of task and have the same answer, whatever their ids, labels
    and groups are: what training and evaluation must not share. Names of agents count, as agents act by them."""
    digest = case_digest(replace(case, labels={}, roles={}, unscored=frozenset()))
    return f"{type(task).__name__} {digest}"


def _as_text(facts: object) -> bytes:
    """Facts as JSON, the same in every process; for a value that JSON cannot hold, the name of its type."""
    try:
        return json.dumps(facts, default=_plain).encode()
    except (TypeError, ValueError, RecursionError):  # keys that are not text, circles
        return b""


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Set):
        return sorted(json.dumps(item, default=_plain) for item in value)
    if is_dataclass(value) and not isinstance(value, type):
        return [type(value).__name__, *(getattr(value, part.name) for part in fields(value))]
    return type(value).__name__


def _check_players(plan: Plan, agents: Mapping[str, Collection[str]]) -> None:
    """Let players check the agents that their parameters name; `agents`: condition → who plays."""
    declared: dict[str, tuple[api.Policy, str, set[str]]] = {}
    for condition in plan.conditions:
        for group in condition.groups:
            player = group.policy() if group.policy is not None else None
            if player is not None and player.uses_ground_truth:
                # One declaration may serve several methods, of which only some have the agent it names.
                _, _, names = declared.setdefault(repr(player), (player, group.name, set(plan.elsewhere)))
                names.update(agents[condition.id])
    for player, name, names in declared.values():
        try:
            player.check(names)
        except PluginError as error:
            body = plan.spec.get("agents", {}).get(name)
            own = [key for key in ("policy", "baseline") if isinstance(body, Mapping) and key in body]
            where = ("agents", name, own[0]) if own else ("baseline",)
            place = error.place or plan.spec.place(*where, *error.at)
            raise PluginError(error.message, place=place, hint=error.hint) from None


def without_later_metrics(spec: Spec, metrics: Mapping[str, api.Metric], engines: Container[str]) -> Spec:
    """The spec without metrics that are measured later and the models that do not play: they make no other run.

    `engines`: names of the models that play.
    """
    later = {name: metric for name, metric in metrics.items() if metric.measured_by is not None}
    if not later:
        return spec
    models = {name: model for name, model in spec.get("models", {}).items() if name in engines}
    data = {key: value for key, value in spec.data.items() if key != "models"} | ({"models": models} if models else {})
    return replace(spec, data={**data, "metrics": [e for e in data["metrics"] if metric_name(e) not in later]})


def episode_id(condition: Condition, case: api.Case, repeat: int) -> str:
    """The id under which an episode is journaled."""
    return f"{condition.id}/{case.id}/{repeat}"


def protocol_seed(plan: Plan, condition: Condition, case: api.Case, repeat: int) -> int:
    """The seed of a protocol's own chance in an episode."""
    return api.derive_seed(api.derive_seed(plan.seed, f"{condition.origin}/{case.id}/{repeat}"), "protocol")


def agent_seed(plan: Plan, condition: Condition, case: api.Case, repeat: int, agent: str) -> int:
    """The seed of an agent's player in an episode.

    With `dedupe_calls` an agent draws the same for a case in every condition.
    """
    episode = episode_id(condition, case, repeat)
    shared = ("shared", case.id, repeat) if plan.dedupe_calls else (episode,)
    return api.derive_seed(api.derive_seed(plan.seed, *shared), agent)
