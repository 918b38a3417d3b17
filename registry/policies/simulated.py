"""A panel of declared skill, to study protocols without any model."""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from typing import Annotated, Any

from harness.api import Action, Case, InformedPolicy, PluginError, Range, Reply, Turn, derive_seed, near, plugin
from harness.engines.likelihoods import likelihoods_of
from harness.extensions.panels.answer_with_confidence import AnswerWithConfidence
from harness.extensions.panels.ballots import CandidateBallot
from harness.extensions.yaml_tasks.contract import contract_of
from harness.replies import Choice

from ._skill import Copying, Skill, copyings, skills

Share = Annotated[float, Range(ge=0, le=1)]
HELPERS = ("Coordinator", "Aggregator", "Meta", "Summarizer", "Moderator", "Recruiter", "Judge")
"""The default names of agents that protocols add to their panel."""


@plugin
class Simulated(InformedPolicy):
    """Knows the right answer; answers with declared accuracy, confidence, malformed rate and correlation.

    Results carry the mark of informed policies. An agent's first answer depends only on the run's seed, the case, the
    repeat and the agent, so every protocol meets the same panel. An agent answers independently whenever a turn shows
    nothing of others. In a turn whose observation has `leading` it starts from its last answer (or from an independent
    one if it has none), and switches to `leading` with probability `conformity`.

    Where the options of a question are scored, its answer has its confidence as probability (at least 0.01 above an
    even share, at most 0.99), and the others share the rest; the answer is its last one if it gave one.

    On a ballot with its last answer it prefers that, then the answers that it would draw next, if they stand there.

    It plays data sets of questions: cases whose target has `answers`. It does nothing in other tasks, in turns that ask
    for anything but an answer, and where the form refuses made-up wrong answers.

    Attributes:
        label: a name for tables.
        accuracy: P(right) of readable answers. This and the following values hold for agents without an entry in
            `agents`.
        malformed: P(readable, but not in the requested form).
        malformed_accuracy: P(right | malformed); None: the same as for all answers.
        confidence_right, confidence_wrong: mean stated confidence of right and of wrong answers.
        spread: a confidence is uniform within this distance of its mean, rounded to hundredths.
        unstated: P(no confidence is stated).
        unreadable: P(the reply is unreadable), independent of being right.
        conformity: P(adopts the leading answer).
        steady: P(repeats its first answer when asked again without seeing others); else it draws another one. This is
            also the correlation of being right between a first and a later answer; between later ones it is the square.
        agents: agent → values that differ, e.g. {Agent-0: {accuracy: 0.9}}.
        correlated: pairs of agents. The second one copies the first, so that being right has this correlation, e.g.
            [{agents: [Agent-1, Agent-2], correlation: 0.8}]; see `Copying` in `_skill.py`.
        wrong: the number of wrong answers if the form has no finite options; else all other options are wrong answers.
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
        self._last_answer: Action = None
        self._known: tuple[Action, Sequence[Action]] = (None, ())

    def check(self, agents: Collection[str]) -> None:
        """Raise `PluginError` if `agents` or `correlated` names an agent that does not play.

        Coordinators and the like are always allowed, so that part of a spec can run alone.
        """
        agents = {*agents, *HELPERS}
        references: list[tuple[tuple[str | int, ...], str]] = [(("agents", agent), agent) for agent in self.agents]
        references += [(("correlated", i), agent) for i, pair in enumerate(self.correlated) for agent in pair["agents"]]
        for at, agent in references:
            if agent not in agents:
                raise PluginError(f"{at[0]} names {agent!r}, which does not play", hint=near(agent, agents), at=at)

    def inform(self, agent: str, case: Case, seed: int) -> None:
        """Start an episode."""
        self._agent, self._case, self._seed, self._turns, self._last_answer = agent, case, seed, 0, None

    def choose(self, turn: Turn, rng: random.Random) -> Action:
        """Return an answer with its confidence. `rng` is not used, so that every protocol meets the same panel."""
        scored = likelihoods_of(turn.reply)
        if self._case is not None and scored is not None:
            return self._likelihoods([text.text for text in scored.continuations])
        if self._case is not None and isinstance(turn.reply, Choice | CandidateBallot):
            return self._ballot(turn)
        if self._case is None or not isinstance(turn.reply, AnswerWithConfidence):
            return turn.reply.noop
        reply = turn.reply.inner
        right, wrong = candidates(reply, self._case, self.wrong)
        if not right or not wrong:
            return turn.reply.noop
        self._known = right[0], wrong
        skill = self._skills.get(self._agent, self._default)
        unreadable, malformed, unstated, level, conforms = self._manner(self._turns)
        if self._last_answer is None or "leading" not in turn.observation:
            index = self._draw_answer(self._agent, self._turns, len(wrong))
            self._last_answer = right[0] if index is None else wrong[index]
        leading = turn.observation.get("leading")
        if leading is not None and conforms < skill.conformity and reply.allows(leading):
            self._last_answer = leading
        self._turns += 1
        if unreadable < skill.unreadable:
            return turn.reply.noop
        is_right = self._last_answer in right
        stated = turn.reply.style != "none" and unstated >= skill.unstated
        answer, contract = self._last_answer, contract_of(reply)
        if contract is not None:
            answer = contract.compose(answer, {"confidence": skill.confidence(is_right, level)})
        return {
            "answer": answer,
            "confidence": skill.confidence(is_right, level) if stated else None,
            "malformed": malformed < skill.malformed_if(is_right),
        }

    def _ballot(self, turn: Turn) -> Action:
        """A ballot: its last answer, then up to three that it draws now. Empty if its answer is not a candidate."""
        listed = turn.observation.get("candidates", ())
        labels = {str(one["answer"]): one["label"] for one in listed}
        right, wrong = self._known
        own = [one["label"] for one in listed if one["own"]] or [labels.get(str(self._last_answer))]
        if own == [None] or not wrong:
            return turn.reply.noop
        drawn = (self._draw_answer(self._agent, self._turns + i, len(wrong)) for i in range(3))
        answers = (str(right if index is None else wrong[index]) for index in drawn)
        preferred = list(dict.fromkeys([*own, *(labels[answer] for answer in answers if answer in labels)]))
        return turn.reply.of(preferred) if isinstance(turn.reply, CandidateBallot) else preferred[0]

    def _manner(self, turn: int) -> list[float]:
        """Chance in five respects, the same for a turn whatever is asked in it."""
        luck = random.Random(derive_seed(self._seed, "manner", self._agent, turn))
        return [luck.random() for _ in range(5)]

    def _likelihoods(self, texts: Sequence[str]) -> Action:
        """Return log-likelihoods of the options of the question.

        The answer, the last one if there was one, has the confidence that the agent would state; the others share the
        rest. Texts that are not options of the question give the no-op.
        """
        target = self._case.target if self._case is not None else None
        answers = target.get("answers", ()) if isinstance(target, Mapping) else ()
        options = target.get("options", texts) if isinstance(target, Mapping) else texts
        right = [i for i, option in enumerate(options) if option in answers]
        wrong = [i for i in range(len(options)) if i not in right]
        if not right or not wrong or len(options) != len(texts):
            return None
        if self._last_answer in options:
            choice = options.index(self._last_answer)
        else:
            index = self._draw_answer(self._agent, self._turns, len(wrong))
            choice = right[0] if index is None else wrong[index]
            self._turns += 1
        skill = self._skills.get(self._agent, self._default)
        level = self._manner(self._turns - 1)[3]
        share = min(max(skill.confidence(choice in right, level), 1 / len(options) + 0.01), 0.99)
        rest = math.log((1 - share) / (len(options) - 1))
        return [[math.log(share) if i == choice else rest, False] for i in range(len(options))]

    def _draw_answer(self, agent: str, number: int, wrong: int) -> int | None:
        """Draw an agent's independent answer number `number`: the index of a wrong one, or None for the right one."""
        luck = random.Random(derive_seed(self._seed, "answer", agent, number))
        copies, is_right, tempted, which, again = (luck.random() for _ in range(5))
        if number and again < self._skills.get(agent, self._default).steady:
            return self._draw_answer(agent, 0, wrong)
        copying = self._copying.get(agent)
        if copying is not None and copies < copying.share:
            return self._draw_answer(copying.source, number, wrong)
        accuracy = copying.accuracy if copying is not None else self._skills.get(agent, self._default).accuracy
        if is_right < accuracy:
            return None
        if tempted < self.trap:
            return derive_seed(self._seed, "trap") % wrong
        return int(which * wrong)


def candidates(reply: Reply, case: Case, count: int) -> tuple[list[Action], list[Action]]:
    """Return (right answers to a case, wrong ones): the other options, or `count` made-up ones.

    Both are empty if the case has no answer key.
    """
    contract, target = contract_of(reply), case.target
    reply = reply if contract is None else contract.act
    texts: Sequence[Any] = target.get("answers", ()) if isinstance(target, Mapping) else ()
    right = [action for text in texts if (action := _action(reply, str(text))) is not None]
    if not right:
        return [], []
    if reply.options is not None:
        return right, [option for option in reply.options if option not in right]
    first, indices = right[0], range(1, count + len(right) + 1)
    if isinstance(first, int | float) and not isinstance(first, bool):
        numbers = [first + i * (abs(first) + 1) for i in indices]  # too far away for any tolerance
        return right, [number for number in numbers if number not in right][:count]
    invented = [f"wrong {i}" for i in indices] if isinstance(first, str) else []
    return right, [text for text in invented if text not in right and reply.allows(text)][:count]


def _action(reply: Reply, text: str) -> Action:
    """Return a right answer as an action: as the form reads it, else unchanged if the form allows it."""
    parsed = reply.parse(text)
    if parsed.error is None:
        return parsed.action
    return text if reply.options is None and reply.allows(text) else None
