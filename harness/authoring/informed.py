"""Players that are told the right answer, in order to simulate players of a declared skill.

No other player ever sees a case's `target`. What a told one takes part in is no measurement of anything but of the
protocol around it: `harness.config.plan` finds out where such players sit, and every score, table and run record
says so.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection

from harness.api import Case, Policy, Task, derive_seed
from harness.authoring.questions import QuestionTask

WORD = "simulated"
"""How every model name says that told players sit there."""


class Simulant(Policy):
    """A policy that the harness tells the case, target and all, right after it is made.

    Where nobody tells it (checks of plugins) it must be content with staying idle. `label` says in a few words what is
    simulated, for tables; "" for nothing to add.
    """

    label: str = ""

    @abstractmethod
    def told(self, seat: str, case: Case, seed: int) -> None:
        """Called before the first `choose`, and again where a second run of a case begins.

        Args:
            seat: where it sits.
            case: the question, with its right answer.
            seed: the same for all seats and for all conditions that play this case in this repeat.
        """

    def check(self, seats: Collection[str]) -> None:
        """Called before anything is played, with all seats of all conditions in which such a player sits.

        Raises:
            PluginError: for a parameter that names none of them.
        """


def seed_of(seed: int, task: Task, case: Case, repeat: int) -> int:
    """What players of a case are told as their seed: free of the condition, so that all methods meet the same panel.

    The question is in it: rows of two splits may have the same ids, and a panel that is calibrated on one of them must
    not know how it will fare on the other.
    """
    question = task.question_of(case).text if isinstance(task, QuestionTask) else ""
    return derive_seed(seed, "simulated", case.id, question, repeat)


def named(label: str) -> str:
    """What tables call simulated players.

    >>> named("weak experts"), named("")
    ('simulated (weak experts)', 'simulated')
    """
    return f"{WORD} ({label})" if label else WORD
