"""The key `tournament:` of specs: who plays whom, in which seats, and what it makes of a spec.

Next: `tournament`, which pairs and seats the contestants.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, NotRequired, TypedDict

from harness.api import Metric, Range, Task
from harness.api.errors import SpecError, near
from harness.config.building import split
from harness.config.keys import SpecKey
from harness.config.schema import metric_name
from harness.extensions.games.game_task import GameTask
from harness.plugins import parameters
from harness.plugins.parameters import PLUGIN, Keywords, Plugin

from .results import RESULTS

if TYPE_CHECKING:
    from harness.config.plan import Condition, Job, Plan
    from harness.config.spec import Spec
    from harness.tables import EpisodeScore

    from .tournament import Tournament

MODEL: Final = "model"
"""How specs call the model under test."""
_RETURN: Final = "mean_return"
_Filled = Keywords(minItems=1)
_Prompts = Annotated[str, Keywords({PLUGIN: "prompts"})]
_Policy = Annotated[Plugin, Keywords({PLUGIN: "policies"})]


class ContestantEntry(TypedDict, total=False):
    """A contestant of a tournament: a model or a policy."""

    model: Annotated[str, "`model` (the one under test) or a name under `models:`"]
    policy: Annotated[_Policy, "plays instead of a model"]
    label: Annotated[str, Keywords(minLength=1), "what tables call it; by default the name of its model or policy"]
    prompts: Annotated[_Prompts, "the contestant's own prompt set"]
    baseline: Annotated[_Policy, "the policy that plays in its place when no --model is given"]
    generation_kwargs: dict[str, Any]


class DrawEntry(TypedDict):
    """A round as a run has drawn it."""

    pairs: list[Annotated[list[str], Keywords(minItems=2, maxItems=2)]]
    bye: NotRequired[Annotated[str, "swiss: who sat out"]]
    cases: NotRequired[Annotated[list[int], "adaptive: how many further cases each pair plays"]]


class TournamentEntry(TypedDict):
    """A tournament: every pairing of contestants is a condition, and so is every way of seating it."""

    pool: Annotated[
        list[str | ContestantEntry],
        _Filled,
        "the contestants: names under `models:`, `model` (the one under test), {model: NAME, label: …}, {policy: NAME}",
    ]
    pairing: NotRequired[
        Annotated[
            Literal["round_robin", "swiss", "adaptive", "self_play"],
            "who meets: all combinations (the default), those with as many points, those whose games say most about "
            "the ranks, or each contestant itself",
        ]
    ]
    self_play: NotRequired[Annotated[bool, "round_robin: each contestant plays itself too"]]
    rotate_seats: NotRequired[
        Annotated[bool, "every pairing plays in all rotations of its seats, the same games (true)"]
    ]
    teams: NotRequired[
        Annotated[
            Literal["game"] | list[Annotated[list[str | int], _Filled]],
            "who wins together, each team played by one contestant: lists of agents, by name or number; "
            "`game`: as the game says",
        ]
    ]
    games_per_pairing: NotRequired[
        Annotated[
            int,
            Range(ge=1, le=1_000_000),
            "games of a pairing in each rotation of seats: the task's cases, played again where it has fewer; "
            "by default each case as often as `repeats` says",
        ]
    ]
    games: NotRequired[
        Annotated[
            int,
            Range(ge=1, le=100_000_000),
            "adaptive: how many games are played in all; by default half as many as in a round robin",
        ]
    ]
    rounds: NotRequired[
        Annotated[
            int,
            Range(ge=1, le=1000),
            "swiss: by default log2 of the contestants, rounded up; adaptive: in how many rounds games are drawn (10)",
        ]
    ]
    results: NotRequired[
        Annotated[
            str, "swiss, adaptive: the metric whose records [[contestant, return], …] say who won (games/results)"
        ]
    ]
    drawn: NotRequired[
        Annotated[dict[str, list[DrawEntry]], "swiss, adaptive: the rounds so far, as a run's spec.yaml has them"]
    ]


class TournamentKey(SpecKey):
    """Every pairing of contestants is a condition, and so is every way of seating it."""

    entry: ClassVar[Any] = Annotated[TournamentEntry, "who plays whom, in which seats; replaces `agents`"]
    labels: ClassVar[tuple[str, ...]] = ("pairing",)
    takes_model: ClassVar[str] = "put `model` into the tournament's pool"
    plays_on: ClassVar[bool] = True

    @classmethod
    def measured(cls, value: Any) -> Any:
        """Without the rounds that a run has drawn."""
        return {key: one for key, one in value.items() if key != "drawn"}

    @classmethod
    def compared(cls, spec: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """The game and how it is played; each contestant with a name of its own, which all but the model under test
        have."""
        from .standings import compared

        return compared(spec)

    def bodies(self) -> Iterable[Any]:
        """The pool."""
        return self.value.get("pool") or ()

    def propose(self, task: Task) -> None:
        """Results of games, and what the model under test gets in them as the headline."""
        data = self.spec.data
        if "returns" in task.grades and RESULTS not in self._metrics():
            data["metrics"] = [*data["metrics"], RESULTS]
            data.setdefault("cluster", "case")  # its games share the luck
            _rank_by_return(data, self.value["pool"])

    def tables(self) -> list[dict[str, Any]]:
        """Ratings, and who won against whom, where results are measured; none without such games. Also the gap, where
        contestants play themselves too. In a matrix those of each of its conditions, and a rating over all."""
        if self.value.get("pairing") == "self_play" or RESULTS not in self._metrics():
            return []
        of, name = {"of": RESULTS}, self.spec.name
        swept = [*self.spec.get("matrix", {})]
        rows = {"rows": swept} if swept else {}
        tables = [{"title": f"{name}: ratings", "kind": "rating", **of, **rows}]
        if swept:
            over = f"over all of {', '.join(swept)}, with equal weights"
            tables.append({"title": f"{name}: ratings {over}", "kind": "rating", **of})
        tables.append({"title": f"{name}: row against column", "kind": "cross_play", **of, **rows, "figure": "heat"})
        if self.value.get("self_play"):
            tables.append({"title": f"{name}: with itself and with others", "kind": "self_play", **of, **rows})
        return tables

    def _metrics(self) -> list[str]:
        return [metric_name(entry) for entry in self.spec.get("metrics", [])]

    def read(self) -> Tournament:
        """The tournament of a variant. Raises `SpecError`."""
        from .tournament import Tournament

        return Tournament.read(self.value, self.place)

    def task_arguments(self, task: Any, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """As many samples as games, if the task has any; in a game without a legal move a contestant loses, whatever a
        random one would have won. Both only where the spec says nothing else."""
        fields, added = parameters.fields(task), {}
        if (games := self.value.get("games_per_pairing")) is not None and "instances" in fields:
            added["instances"] = games
        if getattr(task, "invalid", None) == "random" and issubclass(task, GameTask):
            added["invalid"] = "forfeit"
        return {**added, **arguments}

    def contestants(self) -> Iterator[tuple[str, Mapping[str, Any], tuple[Any, ...]]]:
        """The pool."""
        return ((one.name, one.body, ("pool", one.index)) for one in self.read().contestants)

    def conditions(self, whole: Condition, before: int) -> Iterable[Condition]:
        """The pairings and seatings of the contestants, who are the groups of `whole`."""
        from .teams import teams_of
        from .tournament import check_labels, seats_of

        entry, spec = self.read(), self.spec
        check_labels(whole, spec.place)
        if entry.games is not None and int(spec.get("repeats", 1)) > 1:
            message = "repeats: and games_per_pairing: both say how many games are played"
            raise SpecError(message, place=self.place("games_per_pairing"), hint="Drop one of them.")
        seats = seats_of(whole, split(spec.data["protocol"])[0], functools.partial(spec.place, "protocol"))
        teams = teams_of(entry.teams, whole.task, seats, self.place)
        entry.check(len(teams), before, self.place)
        if entry.rounds is not None and entry.results not in (names := self._metrics()):
            hint = f"Add it to metrics:, or let results: name another that does. {near(entry.results, names)}"
            message = f"pairing: {entry.pairing} draws by the metric {entry.results!r}, which the spec does not have"
            raise SpecError(message, place=self.place("results"), hint=hint)
        groups = {group.name: group for group in whole.groups}
        return entry.conditions(whole, groups, teams, int(spec.get("seed", 0)), spec.get("limit"))

    def check_metrics(self, metrics: Mapping[str, Metric]) -> Iterable[tuple[str, tuple[Any, ...]]]:
        """A metric that does not say who won."""
        name = self.value.get("results")
        if name in metrics and not metrics[name].results_of_contestants:
            yield f"metric {name!r} does not say who won a game, as {RESULTS} does", ("results",)

    def models(self) -> set[str]:
        """The models in the pool, also of contestants that sit out."""
        pools = [variant.data[self.name]["pool"] for variant in self.spec.variants()]
        return {str(one if isinstance(one, str) else one.get("model")) for pool in pools for one in pool}

    def next(self, plan: Plan, scores: Iterable[EpisodeScore]) -> Spec | None:
        """With one more round, where rounds are drawn."""
        from .rounds import rounds, with_next_round

        count, every = rounds(plan)
        return None if count == every else with_next_round(plan, scores)

    def total(self, plan: Plan, count: int) -> int:
        """With all rounds."""
        from .rounds import share_drawn

        drawn, every = share_drawn(plan)
        return count * every // drawn

    def planned(self, plan: Plan, episodes: Iterable[Job]) -> Mapping[str, Any]:
        """`games`: contestant → how many it is to play; `models`: contestant → the model that plays for it."""
        from .standings import planned

        return planned(self.read(), plan, [*episodes])

    @classmethod
    def so_far(
        cls, planned: Mapping[str, Any], stopped: Mapping[str, Any], scores: Sequence[EpisodeScore]
    ) -> Iterable[str]:
        """How many of its games each contestant has played, and who has dropped out."""
        from .standings import interim

        return interim(planned, stopped, scores)

    def summary(self, plan: Plan) -> list[str]:
        """How many pairings, seatings and games there are."""
        from .tournament import summary

        return summary(plan)


def _rank_by_return(data: dict[str, Any], pool: Iterable[str | Mapping[str, Any]]) -> None:
    """Make what the model under test gets in its games the headline, where it is a contestant.

    A game's score is a mean over all seats: in most games no player can change it.
    """
    entries: list[Mapping[str, Any]] = [{"model": one} if isinstance(one, str) else one for one in pool]
    own = next((one.get("label", MODEL) for one in entries if one.get("model") == MODEL), None)
    if own is not None and "headline" in data and _RETURN not in map(metric_name, data["metrics"]):
        data["metrics"] = [{"use": "games/mean_return", "name": _RETURN, "group": own}, *data["metrics"]]
        title = "Mean return of the model in its games"
        data["headline"] = {**data["headline"], "metric": _RETURN, "title": title}
