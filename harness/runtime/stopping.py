"""Rules that end a run before its plan does, once its episodes are enough (`[stopping]` of manifests).

    [stopping.until]
    run = "until_rule:from_arguments"         # a function of the parameters that returns the rule
    parameters = ["until"]                    # of `harness.evaluate`, and options of the command line
    eval = "until_options:of_eval"            # adds the options to `harness eval`

No rule is part of what a run is: the same command without it plays the rest, and the result is that of a run that never
had one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

from harness.api import Facts
from harness.api.errors import SetupError
from harness.config.plan import Job, Plan
from harness.plugins.lookup import requested
from harness.tables import EpisodeScore


class StoppingRule(ABC):
    """Decides in which order a run plays its episodes, and when they are enough.

    What it decides must not depend on the order in which episodes end: quick ones are not like slow ones. So it looks
    at the first episodes of its own order, as far as all of them have ended.

    Attributes:
        order: the episodes, in the order in which to begin them (from `begin`): all, or those of a first round. `add`
            may put more at its end, which are begun once all before them have ended.
        in_rounds: whether it waits for all that it has ordered before it orders more: no executor can play that whose
            workers take long to start (`Executor.takes_rounds`).
        reached: why what has been played is enough, in words; None while it is not.
        counted: ids of the episodes that are enough, once they are; others that have ended do not count.
    """

    in_rounds: ClassVar[bool] = False
    order: Sequence[Job] = ()
    reached: str | None = None
    counted: Collection[str] = ()

    @abstractmethod
    def begin(self, plan: Plan, episodes: Sequence[Job]) -> None:
        """Take what is to be played, and set `order`. Raises `SpecError` where the rule cannot decide about it."""

    @abstractmethod
    def add(self, score: EpisodeScore) -> None:
        """Take the score of an episode that has ended: in this session, or before."""

    def is_due(self, episode: str) -> bool:
        """Whether an episode, by its id, is to begin now: not if the run is likely to end without it, by what is known
        so far. It begins all the same where nothing else is left to play."""
        return True

    @abstractmethod
    def record(self) -> Facts:
        """What run.json says of the end under `stopped`: `by` and `at` name the rule, and `enough` is a sentence for
        readers of the run's tables, whose intervals and tests are for numbers of episodes that were fixed before.
        `arguments` are those of `chosen_rule` that ask for the same rule, for whoever checks where the run ended; a
        rule that looks at more than the run has none."""

    def unmet(self) -> str | None:
        """What a run that was played whole has missed, as a sentence; None if that needs no word."""
        return None


def chosen_rule(arguments: Mapping[str, Any]) -> StoppingRule | None:
    """The rule that the arguments ask for; None if they ask for none. Raises `UserError`."""
    asked = requested("stopping", arguments)
    chosen: dict[str, StoppingRule] = {", ".join(own): offer.load_function()(own) for _, offer, own in asked}
    if len(chosen) > 1:
        raise SetupError(f"{' and '.join(chosen)} would each end the run", hint="Give one of them.")
    return next(iter(chosen.values()), None)
