"""Everybody says how likely each letter is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from harness.api import Case, Facts, Outcome, Reply, Task, plugin
from harness.engines.likelihoods import Continuation, Likelihoods, likelihoods_of
from harness.replies import FreeText, WrappedReply


@plugin
class Weigh(Task):
    """Everybody says how likely each letter is; the likeliest must be the same."""

    grades = ("agreed",)

    wrapped: bool = False
    rolling: bool = False
    written: bool = False
    contexts: Any = None

    def cases(self, limit: int | None, seed: int) -> Iterable[Case]:
        for i in range(4 if limit is None else min(limit, 4)):
            labels = {"number": i}
            yield Case(
                f"c{i}", ("S0", "S1"), {"number": i}, labels=labels, sampling={"until": ["\n"], "max_gen_toks": i + 1}
            )

    def context(self, case: Case, agent: str) -> Facts:
        history = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Q"}]
        history.append({"role": "assistant", "content": "A"})
        return {"name": agent, "number": case.public["number"], "history": history, "beginning": "It is"}

    def reply(self, case: Case, agent: str) -> Reply:
        if self.written:
            return FreeText()
        contexts = self.contexts or [None, None]
        texts = tuple(Continuation(f" {letter}", at) for letter, at in zip("ab", contexts, strict=True))
        form = Likelihoods(texts, self.rolling)
        return WrappedReply(form) if self.wrapped else form

    def grade(self, case: Case, outcome: Outcome) -> Mapping[str, float | None]:
        best = {self._best(case, agent, outcome.answers.get(agent)) for agent in case.agents}
        return {"agreed": float(len(best) == 1 and None not in best)}

    def _best(self, case: Case, agent: str, values: Any) -> int | None:
        form = likelihoods_of(self.reply(case, agent))
        if form is None or not form.allows(values):
            return None
        numbers = [value for value, _ in values]
        return numbers.index(max(numbers))
