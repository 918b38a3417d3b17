"""A panel of declared skill: what a protocol makes of its members' answers, without any model."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from typing import Annotated, Any

from harness.api import Action, Case, Range, Reply, Turn, derive_seed, plugin
from harness.authoring.informed import InformedPolicy
from harness.errors import PluginError, near
from harness.replies import AnswerWithConfidence

from ._skill import Copying, Skill, copyings, skills

Share = Annotated[float, Range(ge=0, le=1)]
HELPERS = ("Coordinator", "Aggregator", "Meta", "Summariser")
"""What methods call the agents besides their panel, unless a spec says otherwise."""


@plugin
class Simulated(InformedPolicy):
    """Knows the right answer; answers with declared accuracy, confidence, malformed rate and correlation; marked.

    An agent's first answer depends on the run's seed, the case, the repeat and the agent, and on nothing else: whatever
    the protocol, it meets the same panel. An agent answers by itself whenever a turn shows it nothing of others. A turn
    whose observation has `leading` finds it with the answer it gave last (if it has given none, with one of its
    own), and it
    gives that up for `leading` with probability `conformity`.

    It knows data sets of questions: cases whose target has `answers`. Elsewhere, in turns that ask for something else
    than an answer, and where it knows of no wrong one (a form that refuses made-up answers), it stays idle.

    Attributes:
        label: what is simulated, for tables.
        accuracy: P(right), of answers that can be read. This and the following hold for every agent that `agents` does
            not name.
        malformed: P(readable, but not in the form asked for).
        malformed_accuracy: P(right | malformed); None: as all answers.
        confidence_right, confidence_wrong: mean of the stated confidence where the answer is right, and where not.
        spread: a confidence is uniform within so much of its mean, in hundredths.
        unstated: P(no confidence is stated).
        unreadable: P(nothing can be read), whether or not the agent would have been right.
        conformity: P(adopts the leading answer it is shown).
        steady: P(gives its first answer again where it is asked anew and shown nothing); else it draws another one. The
            correlation of being right between a first and a later answer is as much, and its square between later ones.
        agents: agent → what is different there, e.g. {Agent-0: {accuracy: 0.9}}.
        correlated: pairs of which the second agent copies the first so that being right has this correlation between
            them, e.g. [{agents: [Agent-1, Agent-2], correlation: 0.8}]; see `Copying` in `_skill.py`.
        wrong: how many wrong answers there are where the form has no finite options; else all options but the right.
        trap: P(a wrong answer is the tempting one, the same for all agents); else all wrong ones are equally likely.
    """

    label: str = ""
    accuracy: Share = 0.7
    malformed: Share = 0.0
    malformed_accuracy: Share | None = None
    confidence_right: Share = 0.8
    confidence_wrong: Share = 0.65
    spread: Annotated[float, Range(ge=0, le=0.5)] = 0.2
    unstated: Share = 0.0
    unreadable: Share = 0.0
    conformity: Share = 0.3
    steady: Share = 0.7
    agents: dict[str, dict[str, float | None]] = field(default_factory=dict)
    correlated: list[dict[str, Any]] = field(default_factory=list)
    wrong: Annotated[int, Range(ge=1, le=1000)] = 3
    trap: Share = 0.0

    def __post_init__(self) -> None:
        self._default = Skill(
            self.accuracy,
            self.malformed,
            self.malformed_accuracy,
            self.confidence_right,
            self.confidence_wrong,
            self.spread,
            self.unstated,
            self.unreadable,
            self.conformity,
            self.steady,
        )
        self._skills: Mapping[str, Skill] = skills(self._default, self.agents)
        self._copying: Mapping[str, Copying] = copyings(self.correlated, self._skills, self._default)
        self._case: Case | None = None
        self._agent, self._seed, self._turns = "", 0, 0
        self._mind: Action = None

    def check(self, agents: Collection[str]) -> None:
        """Raises `PluginError` where `agents` or `correlated` names an agent that does not play.

        Coordinators and the like may be named where no method that plays has one: a part of a spec plays as the whole.
        """
        agents = {*agents, *HELPERS}
        named: list[tuple[tuple[str | int, ...], str]] = [(("agents", agent), agent) for agent in self.agents]
        named += [(("correlated", i), agent) for i, pair in enumerate(self.correlated) for agent in pair["agents"]]
        for at, agent in named:
            if agent not in agents:
                raise PluginError(f"{at[0]} names {agent!r}, who does not play", hint=near(agent, agents), at=at)

    def inform(self, agent: str, case: Case, seed: int) -> None:
        """Keep what is told; nothing has been answered yet."""
        self._agent, self._case, self._seed, self._turns, self._mind = agent, case, seed, 0, None

    def choose(self, turn: Turn, rng: random.Random) -> Action:
        """An answer with its confidence; `rng` is not used, so that every protocol meets the same panel."""
        if self._case is None or not isinstance(turn.reply, AnswerWithConfidence):
            return turn.reply.noop
        reply = turn.reply.inner
        right, wrong = candidates(reply, self._case, self.wrong)
        if not right or not wrong:
            return turn.reply.noop
        skill = self._skills.get(self._agent, self._default)
        luck = random.Random(derive_seed(self._seed, "manner", self._agent, self._turns))
        unreadable, malformed, unstated, sure, conforms = (luck.random() for _ in range(5))
        if self._mind is None or "leading" not in turn.observation:
            index = self._drawn(self._agent, self._turns, len(wrong))
            self._mind = right[0] if index is None else wrong[index]
        leading = turn.observation.get("leading")
        if leading is not None and conforms < skill.conformity and reply.allows(leading):
            self._mind = leading
        self._turns += 1
        if unreadable < skill.unreadable:
            return turn.reply.noop
        is_right = self._mind in right
        stated = turn.reply.style != "none" and unstated >= skill.unstated
        return {
            "answer": self._mind,
            "confidence": skill.sure(is_right, sure) if stated else None,
            "malformed": malformed < skill.malformed_if(is_right),
        }

    def _drawn(self, agent: str, number: int, wrong: int) -> int | None:
        """The `number`-th answer that an agent comes to by itself: the place of a wrong one, None for the right one."""
        luck = random.Random(derive_seed(self._seed, "answer", agent, number))
        copies, is_right, tempted, which, again = (luck.random() for _ in range(5))
        if number and again < self._skills.get(agent, self._default).steady:
            return self._drawn(agent, 0, wrong)
        copying = self._copying.get(agent)
        if copying is not None and copies < copying.share:
            return self._drawn(copying.source, number, wrong)
        accuracy = copying.accuracy if copying is not None else self._skills.get(agent, self._default).accuracy
        if is_right < accuracy:
            return None
        if tempted < self.trap:
            return derive_seed(self._seed, "trap") % wrong
        return int(which * wrong)


def candidates(reply: Reply, case: Case, count: int) -> tuple[list[Action], list[Action]]:
    """The right answers to a case, and the wrong ones that a simulated agent may give: the other options, or `count`
    made-up ones. Both empty where the case does not say what is right."""
    target = case.target
    texts: Sequence[Any] = target.get("answers", ()) if isinstance(target, Mapping) else ()
    right = [action for text in texts if (action := _action(reply, str(text))) is not None]
    if not right:
        return [], []
    if reply.options is not None:
        return right, [option for option in reply.options if option not in right]
    first, made = right[0], range(1, count + len(right) + 1)
    if isinstance(first, int | float) and not isinstance(first, bool):
        numbers = [first + i * (abs(first) + 1) for i in made]  # too far away for any tolerance
        return right, [number for number in numbers if number not in right][:count]
    invented = [f"wrong {i}" for i in made] if isinstance(first, str) else []
    return right, [text for text in invented if text not in right and reply.allows(text)][:count]


def _action(reply: Reply, text: str) -> Action:
    """A right answer as an action: as the form reads it, else (behind a marker of its own) as it stands."""
    parsed = reply.parse(text)
    if parsed.error is None:
        return parsed.action
    return text if reply.options is None and reply.allows(text) else None
