"""Self-refinement: one agent answers, criticizes its own answer and rewrites it, until its critique approves."""

from __future__ import annotations

import itertools
import random
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from harness.api import Case, Facts, Move, Play, PluginError, Range, Task, Turn, near, plugin
from harness.extensions.panels.answer_with_confidence import AnswerWithConfidence, Style
from harness.extensions.panels.panels import Opinion, Panel, ballot
from harness.extensions.panels.peers import peer_text

from ._feedback import OTHERWISE, AnswerAfterCritique, Feedback, split_reply

Past = list[dict[str, str]]
"""Earlier answers, each with its feedback."""


@dataclass(frozen=True, slots=True)
class Step:
    """A critique and its result: the span of its stop signal, the rewritten answer, or a failed call."""

    feedback: str = ""
    span: Sequence[int] | None = None
    rewrite: Opinion | None = None
    failed: bool = False


Critique = Generator[list[Turn], list[Move], Step]


@plugin
class SelfRefine(Panel):
    """One agent answers, criticizes its answer and rewrites it, until the critique approves or the cap is reached.

    Self-Refine (Madaan et al., 2023). No other agent takes part. Every turn is a new conversation that shows the
    question and the agent's own earlier texts. The fact `history` has y_0 … y_t; the last one is the answer.

    Turns: `answer`; "split": `feedback` (observation: `current`, `signal`, `leading`) and `refine` (observation:
    `past`, pairs of answer and feedback, and `leading`); "fused": `refine_fused` (observation: `past`, `current`,
    `signal`, `leading`).

    Attributes:
        mode: whether critique and rewrite are two calls ("split") or one ("fused").
        cap: the maximal number of critiques.
        solver: the agent of the panel that works; None: the first. The others do nothing.
        signal: the words with which a critique's verdict must begin to stop.
        on_stop: for "fused", where the reply that stops has an answer too: whether the "approved" text counts, or the
            "rewrite" that came with the approval.
        past: whether a rewrite sees "all" earlier pairs of answer and feedback, or the "last" one.
        invalid: the answer if the last text is unreadable: "none", or the last readable one ("previous").
    """

    agents: Annotated[int, Range(ge=1, le=1000)] | None = 1
    confidence: Style = "none"
    mode: Literal["split", "fused"] = "split"
    cap: Annotated[int, Range(ge=0, le=1000)] = 4
    solver: str | None = None
    signal: str = "approved"
    on_stop: Literal["approved", "rewrite"] = "approved"
    past: Literal["all", "last"] = "all"
    invalid: Literal["none", "previous"] = "none"

    roles = ("solver",)
    facts = (*Panel.facts, "critiques", "stop", "changed")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.signal.strip() or "\n" in self.signal or len(self.signal) > 200:
            raise PluginError("signal must be a few words on one line", at=("signal",))
        if self.signal.strip().casefold() == OTHERWISE:
            message = f"signal is {self.signal!r}, the verdict of a critique that does not stop"
            raise PluginError(message, hint="Choose another word, such as approved.", at=("signal",))

    def members(self, case: Case) -> tuple[str, ...]:
        """The solver alone. Raises `PluginError` if the panel has no such agent."""
        panel = super().members(case)
        solver = panel[0] if self.solver is None else self.solver
        if solver not in panel:
            raise PluginError(f"there is no agent {solver!r} to solve", hint=near(solver, panel), at=("solver",))
        return (solver,)

    def play(self, task: Task, case: Case, agents: Sequence[str], rng: random.Random) -> Play:
        """Yield one turn at a time."""
        [solver] = self.members(case)
        [move] = yield [self.ask(task, case, solver)]
        history = [self.read(task, case, move)]
        critique = self._split if self.mode == "split" else self._fused
        past: Past = []
        critiques, step = 0, Step(failed=_failed(move))
        while critiques < self.cap and step.span is None and not step.failed:
            step = yield from critique(task, case, history[-1], past)
            critiques += 1
            past.append(_pair(history[-1], step.feedback))
            if step.rewrite is not None and (step.span is None or self._accepts(step.rewrite)):
                history.append(step.rewrite)
        final = history[-1].answer
        if final is None and self.invalid == "previous":
            final = next((opinion.answer for opinion in reversed(history) if opinion.answer is not None), None)
        return self.outcome(
            [[opinion] for opinion in history],
            final,
            exit="stop" if step.span is not None else "error" if step.failed else "cap",
            critiques=critiques,
            stop=_stop_fact(critiques, step),
            changed=sum(a.candidate != b.candidate for a, b in itertools.pairwise(history)),
        )

    def _split(self, task: Task, case: Case, current: Opinion, past: Past) -> Critique:
        """A critique and, unless it approves, a rewrite that sees it."""
        observation = {"current": current.peer_text, "signal": self.signal}
        turn = self._turn(task, case, current, "feedback", observation)
        [move] = yield [replace(turn, reply=Feedback(self.signal))]
        critique: Facts = move.action or Feedback(self.signal).noop
        feedback, span = critique["feedback"], critique["span"]
        if span is not None or _failed(move):
            return Step(feedback, span, failed=_failed(move))
        pairs = self._visible([*past, _pair(current, feedback)])
        [move] = yield [self._turn(task, case, current, "refine", {"past": pairs})]
        return self._step(feedback, None, self.read(task, case, move), move)

    def _fused(self, task: Task, case: Case, current: Opinion, past: Past) -> Critique:
        """A critique and a rewrite in one reply: the critique to its verdict line, then the rewrite."""
        observation = {"past": self._visible(past), "current": current.peer_text, "signal": self.signal}
        turn = self._turn(task, case, current, "refine_fused", observation)
        form = AnswerAfterCritique(ballot(task, case, case.agents[0]), self.signal)
        [move] = yield [replace(turn, reply=AnswerWithConfidence(form, self.confidence))]
        rewrite = self.read(task, case, move)
        feedback, span, answer = split_reply(rewrite.text, self.signal)
        return self._step(feedback, span, replace(rewrite, text=answer), move)

    def _step(self, feedback: str, span: Sequence[int] | None, rewrite: Opinion, move: Move) -> Step:
        """The result of a call. A failed call has no rewrite, so the previous text stays the last one."""
        failed = _failed(move)
        return Step(feedback, span, None if failed else rewrite, failed)

    def _accepts(self, rewrite: Opinion) -> bool:
        """Whether an answer that came with an approval replaces the approved one."""
        return self.on_stop == "rewrite" and rewrite.answer is not None

    def _visible(self, past: Past) -> Past:
        """The part of the past that a rewrite sees. A copy, because the past grows."""
        return [*past] if self.past == "all" else past[-1:]

    def _turn(self, task: Task, case: Case, current: Opinion, name: str, observation: dict[str, Any]) -> Turn:
        return self.ask(task, case, current.agent, name, {**observation, "leading": current.answer}, fresh=True)


def _pair(current: Opinion, feedback: str) -> dict[str, str]:
    """An answer and its feedback, as the agent sees them again."""
    return {"answer": current.peer_text, "feedback": peer_text(feedback, block=True)}


def _failed(move: Move) -> bool:
    """Return whether the engine gave no reply at all."""
    return move.error_kind not in (None, "parse")


def _stop_fact(critiques: int, step: Step) -> Facts | None:
    """Return the number of the critique that stopped, from 1, and the signal's span in it; None if none stopped."""
    return None if step.span is None else {"critique": critiques, "span": list(step.span)}
