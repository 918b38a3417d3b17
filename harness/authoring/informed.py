"""Informed policies: they know the right answer, in order to simulate agents of a declared skill.

No other player ever sees a case's `target`. A run with an informed policy measures only the protocol around it.
`harness.config.plan` finds out which agents they play, and every score, table and run record is marked.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection

from harness.api import Case, Policy, Task, derive_seed
from harness.authoring.questions import QuestionTask

WORD = "simulated"
"""The word in a model's name that marks informed policies."""


class InformedPolicy(Policy):
    """An informed policy. The harness calls `inform` with the case, target included, right after it creates the policy.

    Checks of plugins do not call it; then the policy must do nothing. `label` describes the simulation in a few words,
    for tables; "" adds nothing.
    """

    label: str = ""

    @abstractmethod
    def inform(self, agent: str, case: Case, seed: int) -> None:
        """Receive the case. Called before the first `choose`, and again when a second run of the case begins.

        Args:
            agent: the agent that this policy plays.
            case: the question, with its right answer.
            seed: the same for all agents and all conditions that play this case in this repeat.
        """

    def check(self, agents: Collection[str]) -> None:
        """Check parameters that name agents. Called before any episode, with all agents of all conditions that such a
        policy plays.

        Raises:
            PluginError: for a parameter that names no agent.
        """


def seed_of(seed: int, task: Task, case: Case, repeat: int) -> int:
    """The seed for the informed policies of a case. It does not depend on the condition, so all methods face the same
    panel.

    It depends on the question: rows of two splits may have the same ids, and a panel that is calibrated on one of them
    must not know how it will do on the other.
    """
    question = task.question_of(case).text if isinstance(task, QuestionTask) else ""
    return derive_seed(seed, "simulated", case.id, question, repeat)


def model_name(label: str) -> str:
    """Return the name of simulated players in tables.

    >>> named("weak experts"), named("")
    ('simulated (weak experts)', 'simulated')
    """
    return f"{WORD} ({label})" if label else WORD
