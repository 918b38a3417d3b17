"""What extensions do once a run's episodes are scored (`[post_run]` of their manifests), such as asking others.

    [post_run.reviews]
    run = "after:Reviews"
    parameters = ["reviewer"]                 # of `harness.evaluate`, and options of the command line
    eval = "options:of_eval"                  # adds the options to `harness eval`
    score = "options:of_score"                # adds the options to `harness score`

A metric that gets its numbers in this way names its source (`Metric.measured_by`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from harness.api import Metric
from harness.config.plan import Plan
from harness.config.project import Project
from harness.engines.usage import Spent
from harness.plugins.lookup import find_offer, requested
from harness.plugins.manifests import offers
from harness.runtime.options import Options
from harness.runtime.stopping import StoppingRule, chosen_rule

if TYPE_CHECKING:
    from harness.evaluation.run import Run
    from harness.runtime.listeners import RunListener

Play = Callable[[str, Plan, Options, Spent], object]
"""Plays another plan: (what progress calls it, the plan, how, what is used of the budget). Raises as `execute`."""


class PostRun(ABC):
    """What an extension does after one run. The harness makes it without arguments if its parameters are not set.

    Attributes:
        asks_people: whether it may ask a person something: then progress is lines, as a bar would hide the questions.
    """

    asks_people: bool = False

    @classmethod
    @abstractmethod
    def from_arguments(cls, project: Project, arguments: Mapping[str, Any]) -> PostRun:
        """Make an object from its parameters; those of the command line are texts. Raises `UserError`."""

    @classmethod
    @abstractmethod
    def again(cls, run: Run) -> Run:
        """Add to a run that was graded again those of the earlier numbers that are still valid."""

    @classmethod
    @abstractmethod
    def lines(cls, run: Run) -> Iterable[str]:
        """Notes to print below the tables of a run."""

    @classmethod
    @abstractmethod
    def score(cls, folder: str, options: Any) -> Run:
        """Give a finished run its numbers, as the options of `harness score` say."""

    @abstractmethod
    def plans(self, plan: Plan) -> list[tuple[Plan, int, str]]:
        """The plans that it would play after this one: (plan, calls for each episode of this plan, their purpose).

        Raises `SpecError`.
        """

    @abstractmethod
    def check(self, plan: Plan, cases: Mapping[str, str], options: Options) -> None:
        """Refuse, before anything is played, what cannot be done afterwards. `cases`: as `Survey.cases`.

        Raises:
            SpecError, PluginError, SetupError, NotApprovedError: why.
        """

    @abstractmethod
    def is_waiting(self, run: Run) -> bool:
        """Whether something is left to do for a run whose episodes are scored; called after `check`."""

    @abstractmethod
    def run(self, done: Run, plan: Plan, options: Options, play: Play, began: float) -> Run:
        """Do what is left to do; finished parts are not done again.

        Args:
            done: the run, whose folder is locked; its episodes are scored.
            plan: what was played.
            options: how.
            play: plays another plan.
            began: when the run began, by `time.monotonic`.

        Raises:
            RunStoppedError: an engine or the disk failed, or the budget is used up; the same command resumes the run.
        """


def needed(metrics: Mapping[str, Metric]) -> dict[str, type[PostRun]]:
    """What the metrics need afterwards. Raises `SetupError` if an extension is missing."""
    names = dict.fromkeys(metric.measured_by for metric in metrics.values() if metric.measured_by is not None)
    return {name: find_offer("post_run", name, "what gives a metric its numbers").load_class(PostRun) for name in names}


def of_run(run: Run) -> list[type[PostRun]]:
    """The classes that follow a run: those that its metrics need, and those that run.json has a key of."""
    more = {name: offer for name, offer in offers("post_run").items() if name in run.meta}
    return [*({name: offer.load_class(PostRun) for name, offer in more.items()} | needed(run.metrics)).values()]


def asked_for(project: Project, arguments: Mapping[str, Any]) -> dict[str, PostRun | StoppingRule | RunListener]:
    """What the arguments ask of extensions, by name: what follows the run, who listens, and the rule that may end it.

    Arguments that are not set ask for nothing. Raises `UserError`.
    """
    later = requested("post_run", arguments)
    asked: dict[str, PostRun | StoppingRule | RunListener] = {
        name: offer.load_class(PostRun).from_arguments(project, own) for name, offer, own in later
    }
    asked |= {name: offer.load_function()(own) for name, offer, own in requested("listeners", arguments)}
    return asked if (rule := chosen_rule(arguments)) is None else {**asked, "rule": rule}


def scoring(arguments: Mapping[str, Any]) -> Callable[[str, Any], Run] | None:
    """The class that scores a finished run, if the options of `harness score` ask for more than the journal holds."""
    return next((offer.load_class(PostRun).score for _, offer, _ in requested("post_run", arguments)), None)


def parameters() -> set[str]:
    """The parameters that extensions add to `harness.evaluate`."""
    every = [offer for point in ("post_run", "stopping", "listeners") for offer in offers(point).values()]
    return {name for offer in every for name in offer.value.get("parameters", ())}


def following(metrics: Mapping[str, Metric], asked_for: Mapping[str, PostRun]) -> list[PostRun]:
    """What follows a run with these metrics: everything that they need or the caller asks for."""
    return [*asked_for.values(), *(cls() for name, cls in needed(metrics).items() if name not in asked_for)]
