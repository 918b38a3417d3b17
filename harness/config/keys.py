"""Keys of specs that extensions add, by `[keys]` of their manifests: who plays whom, …

    [keys]
    crosses = "key:CrossesKey"
    league = {run = "key:LeagueKey", seats_agents = true, without_numbers = ["league/results"]}

A key is loaded where a spec has it. What concerns other specs stands in the manifest: `seats_agents`, whether the key
says who plays, in place of `agents:`; `without_numbers`, metrics that no plain table shows.

Next: `harness.config.resolve`, which asks them when a spec becomes a plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from harness.api.errors import Place
from harness.plugins.extension import Offer
from harness.plugins.manifests import offers

if TYPE_CHECKING:
    from harness import api
    from harness.config.plan import Condition, Job, Plan
    from harness.config.spec import Spec
    from harness.tables import EpisodeScore


class SpecKey:
    """A key of specs that an extension adds. Every method's default changes nothing.

    Args:
        name: the key.
        value: the value of the key; in a variant with the matrix's values inserted, else as written.
        spec: the spec.

    Attributes:
        entry: the annotation of its value, as `harness.plugins.parameters` reads it.
        labels: names of the labels by which its conditions differ, for the rows of default tables.
        takes_model: advice on how to let the model under test play, for messages.
        unopened: which of its entries name files or folders that playing the spec does not open.
        plays_on: whether the rest is played where the engine of one of several models does not start.
        changes_runs: whether it is part of the experiment; else no run, digest or table depends on it.
    """

    entry: ClassVar[Any]
    labels: ClassVar[tuple[str, ...]] = ()
    takes_model: ClassVar[str] = ""
    unopened: ClassVar[tuple[str, ...]] = ()
    plays_on: ClassVar[bool] = False
    changes_runs: ClassVar[bool] = True

    def __init__(self, name: str, value: Any, spec: Spec) -> None:
        self.name, self.value, self.spec = name, value, spec

    @property
    def seats_agents(self) -> bool:
        """Whether it says who plays; then it replaces `agents:`."""
        return self.name in seating_keys()

    def place(self, *path: Any) -> Place:
        """Where the value at a path below the key was written."""
        return self.spec.place(self.name, *path)

    # ------------------------------------------------------------------ a spec is read

    @classmethod
    def measured(cls, value: Any) -> Any:
        """The part of the value that determines the experiment: without what a run has added to it."""
        return value

    @classmethod
    def compared(cls, spec: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]] | None:
        """What runs must have in common to be shown in one table, given the spec of a run as run.json has it.

        Returns:
            (What must be equal, name → what must be equal where both have something of that name); None for the whole
            spec.
        """
        return None

    def bodies(self) -> Iterable[Any]:
        """The mappings in which it names policies (policy, baseline) and models (model)."""
        return ()

    def propose(self, task: api.Task) -> None:
        """Change `spec.data` if the spec leaves its metrics to the task."""

    def tables(self) -> list[dict[str, Any]]:
        """Entries of `tables:` for a spec that declares none; they come before the plain table."""
        return []

    def table(self, entry: Mapping[str, Any]) -> Mapping[str, Any]:
        """An entry of `tables:`, with what the key adds to it."""
        return entry

    # ------------------------------------------------------------------ a variant is resolved

    def task_arguments(self, task: type[Any], arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """The arguments of the task, given those of the spec."""
        return arguments

    def contestants(self) -> Iterator[tuple[str, Mapping[str, Any], tuple[Any, ...]]]:
        """Who plays, if the key `seats_agents`: (name, keys of a group of agents, path of these below the key)."""
        return iter(())

    def conditions(self, whole: Condition, before: int) -> Iterable[Condition]:
        """The conditions into which a variant expands.

        Args:
            whole: the condition of the variant; its groups are the contestants, if there are any.
            before: how many conditions there are already.
        """
        return (whole,)

    def check_metrics(self, metrics: Mapping[str, api.Metric]) -> Iterable[tuple[str, tuple[Any, ...]]]:
        """What is wrong with the spec's metrics: (message, path below the key)."""
        return ()

    # ------------------------------------------------------------------ a plan is played

    def models(self) -> set[str] | None:
        """Names of the models that play, including those that are in no condition yet; None if the key does not say."""
        return None

    def next(self, plan: Plan, scores: Iterable[EpisodeScore]) -> Spec | None:
        """The spec with more conditions, once all episodes of the plan have these scores; None if there are no more."""
        return None

    def total(self, plan: Plan, count: int) -> int:
        """The number of episodes of the whole plan, if `count` is that of the conditions known so far."""
        return count

    def planned(self, plan: Plan, episodes: Iterable[Job]) -> Mapping[str, Any]:
        """What run.json keeps of these episodes, which are to be played: `so_far` gets it.

        With `cases`, a mapping case → digest, runs that `compared` shows together may have other numbers of cases:
        those that they have in common must be equal.
        """
        return {}

    @classmethod
    def so_far(
        cls, planned: Mapping[str, Any], stopped: Mapping[str, Any], scores: Sequence[EpisodeScore]
    ) -> Iterable[str]:
        """Notes of tables of an unfinished run with these scores: `planned` is as above, `{}` in runs of earlier
        versions, and `stopped` as in run.json (`engines` are those that were down)."""
        return ()

    def summary(self, plan: Plan) -> list[str]:
        """Lines on how much there is to play."""
        return []


def keys_of(spec: Spec, data: Mapping[str, Any] | None = None) -> list[SpecKey]:
    """The keys of extensions that a spec has, or a variant of it with this data."""
    data = spec.data if data is None else data
    return [
        offer.load_class(SpecKey)(name, data[name], spec)
        for name, offer in offers("keys").items()
        if data.get(name) is not None
    ]


def measured(data: Mapping[str, Any]) -> dict[str, Any]:
    """A spec's content without what a run has added to it, which is a result, and without keys that change no run:
    neither is part of the experiment."""
    kept = dict(data)
    for name, offer in offers("keys").items():
        if name not in data:
            continue
        key = offer.load_class(SpecKey)
        if not key.changes_runs:
            del kept[name]
        elif isinstance(data[name], Mapping):
            kept[name] = key.measured(data[name])
    return kept


def seating_keys() -> list[str]:
    """The names of the keys that say who plays."""
    return [name for name, offer in offers("keys").items() if _declared(offer, "seats_agents")]


def metrics_without_numbers() -> set[str]:
    """The metrics that no plain table shows, whether a spec has the key that names them or not."""
    return {name for offer in offers("keys").values() for name in _declared(offer, "without_numbers") or ()}


def _declared(offer: Offer, key: str) -> Any:
    """What a manifest says of a key of specs beside its class."""
    return offer.value.get(key) if isinstance(offer.value, Mapping) else None
