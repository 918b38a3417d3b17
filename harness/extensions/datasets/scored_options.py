"""Multiple choice by log-likelihood, `scoring: loglikelihood`: options are scored and the most likely one counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from harness.api import Action, Facts
from harness.api.errors import DataError, PluginError, near
from harness.engines.likelihoods import Continuation, Likelihoods, sums
from harness.engines.likelihoods import shares as shares_of

from .forms import Form
from .grading import IGNORED, Measure

Scored = Literal["loglikelihood"]
What = Literal["letter", "text"]
CUE = "\nAnswer:"
"""Ends a question whose options or labels the task lists itself."""


class ScoredOptions:
    """How the options of a question are scored.

    Attributes:
        letters: whether the options' letters are scored, which the question lists; else their texts.
        measures: name → measure of an answer, the score first.

    Raises:
        PluginError: if answers are not options, and as `measures_of`.
    """

    def __init__(self, form: Form, what: What | None, metric_list: Sequence[str | Mapping[str, Any]]) -> None:
        if form.name not in ("letter", "label"):
            message = f"log-likelihoods decide between options; answers of the form {form.name!r} have none"
            raise PluginError(message, hint="Set answer: {form: letter}, or leave scoring out.", at=("scoring",))
        if what == "letter" and not form.letters:
            hint = "Leave continuation out, or set answer: {form: letter}."
            raise PluginError("answers are labels, which have no letters", hint=hint, at=("continuation",))
        self._form, self.letters = form, form.letters and what != "text"
        self.measures = measures_of(metric_list)
        self._by_length = next(iter(self.measures)) == "acc_norm"

    def texts(self, choices: Sequence[str] | None) -> Sequence[str]:
        """The texts that are scored, in the options' order."""
        return self._answers(choices) if self.letters or choices is None else choices

    def reply(self, choices: Sequence[str] | None) -> Likelihoods:
        """One continuation for each option."""
        return Likelihoods(tuple(map(Continuation, self.texts(choices))))

    def target(self, choices: Sequence[str] | None) -> Facts:
        """What measures need: `options`, the answers in order, and `lengths` of their texts in characters.

        Raises:
            DataError: for an option without text.
        """
        texts = self.texts(choices)
        if not all(text.strip() for text in texts):
            hint = "Set continuation: letter, or leave the row out (process_docs: where)."
            raise DataError("an option is empty: it has no log-likelihood", hint=hint)
        return {"options": [*self._answers(choices)], "lengths": [len(text) for text in texts]}

    def answer(self, action: Action, choices: Sequence[str] | None) -> str:
        """The answer that an action prefers, in the sense of the first metric; "" if it prefers none."""
        return _choice(action, self.target(choices), self._by_length) or ""

    def text(self, answer: str, choices: Sequence[str] | None) -> str:
        """The text of an answer."""
        return self.texts(choices)[[*self._answers(choices)].index(answer)]

    def _answers(self, choices: Sequence[str] | None) -> Sequence[str]:
        return self._form.reply(choices).options or ()


def preferred(action: Action, lengths: Sequence[int] | None = None) -> int | None:
    """The place of the most likely option, the first of several; with `lengths` by log-likelihood per character.

    None if the action is not a list of log-likelihoods, or every option is impossible.
    """
    values = sums(action)
    if lengths is not None:
        values = [value / length for value, length in zip(values, lengths, strict=False)]
    best = max(values, default=-math.inf)
    return values.index(best) if best > -math.inf else None


# ---------------------------------------------------------------------------------------- measures


def _choice(action: Action, target: Mapping[str, Any], by_length: bool) -> str | None:
    """The chosen answer as the target spells it."""
    if isinstance(action, str):  # an answer by itself
        return action
    place = preferred(action, target["lengths"] if by_length else None)
    return None if place is None else str(target["options"][place])


def _acc(by_length: bool) -> Callable[[Action, Mapping[str, Any]], float]:
    return lambda action, target: float(_choice(action, target, by_length) in target["answers"])


def _brier(action: Action, target: Mapping[str, Any]) -> float:
    """Σ (pᵢ − yᵢ)² over the options, from 0 to 2 (Brier, 1950). With several right ones y is their likeliest."""
    options, answers = target["options"], target["answers"]
    if isinstance(action, str):
        shares = [float(option == action) for option in options]
    else:
        shares = shares_of(action) or [1 / len(options)] * len(options)
    right = max((share, -i) for i, share in enumerate(shares) if options[i] in answers)
    return sum((share - (i == -right[1])) ** 2 for i, share in enumerate(shares))


MEASURES: dict[str, Callable[[Action, Mapping[str, Any]], float]] = {
    "acc": _acc(False),
    "acc_norm": _acc(True),
    "brier_score": _brier,
}
"""lm-eval's names. `acc_norm` divides a log-likelihood by the option's characters."""


def measures_of(metric_list: Sequence[str | Mapping[str, Any]]) -> dict[str, Measure]:
    """Name → measure; all of them if the list is empty. Raises `PluginError` for other metrics and parameters."""
    names: list[str] = []
    for i, entry in enumerate(metric_list or list(MEASURES)):
        settings: Mapping[str, Any] = {"metric": entry} if isinstance(entry, str) else entry
        name = str(settings.get("metric", ""))
        if name not in MEASURES:
            hint = f"{near(name, MEASURES)} Leave scored out to grade what a model writes."
            raise PluginError(f"there is no metric {name!r} for log-likelihoods", hint=hint, at=("metric_list", i))
        for key in settings.keys() - {"metric", *IGNORED}:
            raise PluginError(f"metric {name}: there is no parameter {key!r}", at=("metric_list", i, key))
        if settings.get("aggregation", "mean") not in ("mean", name):
            message = f"aggregation {settings['aggregation']!r} is not supported"
            raise PluginError(message, hint="Results are means; tables aggregate.", at=("metric_list", i))
        if name in names:
            raise PluginError(f"metric_list has {name!r} twice", at=("metric_list", i))
        names.append(name)
    return {name: Measure(MEASURES[name]) for name in names}
