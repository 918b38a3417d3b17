"""Grading of answers: the `metric_list` of a task. A measure maps an answer and the target to a number, 0 to 1."""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from harness.api import Action, Case, Outcome
from harness.api.errors import PluginError, SetupError, near
from harness.extensions.panels.questions import panel_grades
from harness.replies.parse_guard import guarded

from .filters import Pipeline
from .libraries import library_metric
from .parameter_checks import check_arguments
from .regular_expression import regular_expression

Grading = Callable[[Action, Mapping[str, Any]], float]
"""(answer, target) → a number. Any one of the target's `answers` is right."""


def _nothing_needed() -> None:
    """Nothing is needed."""


@dataclass(frozen=True, slots=True)
class Measure:
    """How an answer is graded.

    Attributes:
        grade: computes the number.
        plain: text → a normal form, the same for all texts that the measure treats as equal; None if it does not
            compare texts.
        slow: whether it would delay other episodes.
        ready: raises `SetupError` if a package is missing.
        ungraded: whether it has no number.
    """

    grade: Grading
    plain: Callable[[str], str] | None = None
    slow: bool = False
    ready: Callable[[], None] = _nothing_needed
    ungraded: bool = False


_WHOLE = ("bleu", "chrf", "chrf++", "ter", "f1", "macro_f1", "mcc")
"""Metrics of all answers together (`metrics/corpus.py`)."""
IGNORED = ("aggregation", "higher_is_better")
"""lm-eval's keys without effect here: results are means, and tables say what is better."""


def grade(
    case: Case,
    outcome: Outcome,
    measures: Mapping[str, Measure],
    readings: Mapping[str, Pipeline],
    wanted: Sequence[str] = (),
    *,
    prefers: bool = False,
) -> dict[str, Any]:
    """Grade an episode: every measure, `score` (the first of them), and counts of answers.

    The group's answer is graded. If each agent, or each of several samples, counts by itself, the grade is their mean.
    `samples`: the number of answers; `correct`: the number of those that score 1; `answered`: the share of readable
    ones. A missing answer scores 0. `GRADES`: see `panel_grades`. With several filters each measure is called
    METRIC,FILTER, as in lm-eval; `score`, and all that is said of a single answer, is the first filter's. `pairs` has
    each answer that counts beside the right ones, [answer, [right, …]], for metrics of the whole data set.

    Args:
        case: the question.
        outcome: what came of it.
        measures: name → measure.
        readings: see `harness.extensions.datasets.filters.readings`.
        wanted: which `pairs` are.
        prefers: whether answers are log-likelihoods. What a group prefers is known, but none of them are the group's,
            so a panel has the first measure only.
    """
    samples, history = outcome.facts.get("samples"), outcome.facts.get("history")
    replies = list(samples if samples is not None else history[-1] if history else outcome.answers.values())
    every = samples is not None and outcome.group is None
    final = replies if every else [outcome.group]
    choices, cache = case.public["choices"], dict[str, dict[str, float]]()

    def marks(answer: Action) -> dict[str, float]:
        if answer is None:
            return dict.fromkeys(measures, 0.0)
        key = repr(answer)
        if key not in cache:
            cache[key] = {name: mark(name, measure, answer, case.target) for name, measure in measures.items()}
        return cache[key]

    first, reads = next(iter(measures)), next(iter(readings.values()))
    of_group = {first} if prefers and history and len(history[-1]) > 1 else measures.keys()
    of_group = {name for name in of_group if not measures[name].ungraded}
    means, pairs = dict[str, float | None](), dict[str, Any]()
    rights = None if prefers else case.target.get("answers")
    for suffix, pipeline in readings.items():
        read = pipeline.all(final, choices, enough=every)
        of_first = ["pairs"] if pipeline is reads else []
        for name in {f"pairs{suffix}", *of_first} & {*wanted}:
            pairs[name] = [["" if x is None else str(x), rights] for x in read] if rights else None
        graded = [marks(answer) for answer in read]
        for name in measures:
            means[f"{name}{suffix}"] = (
                sum(mark[name] for mark in graded) / len(graded) if graded and name in of_group else None
            )
    answers = [reads.one(reply, choices) for reply in replies]
    return {
        **means,
        **pairs,
        "score": next(iter(means.values())),
        "samples": len(answers),
        "correct": sum(marks(answer)[first] == 1 for answer in answers),
        "answered": sum(answer is not None for answer in answers) / len(answers) if answers else None,
        **panel_grades(outcome, lambda reply: marks(reads.one(reply, choices))[first] == 1),
    }


def measures_of(metric_list: Sequence[str | Mapping[str, Any]]) -> dict[str, Measure]:
    """Return name → measure. Raises `PluginError` for unknown metrics and bad parameters."""
    measures: dict[str, Measure] = {}
    for i, entry in enumerate(metric_list):
        settings = {"metric": entry} if isinstance(entry, str) else dict(entry)
        metric = str(settings.pop("metric", ""))
        name = str(settings.pop("name", metric))
        if name in measures:
            raise PluginError(f"two metrics are called {name!r}; give one a name:", at=("metric_list", i))
        if settings.get("aggregation", "mean") != "mean" and metric not in _WHOLE:
            message = f"aggregation {settings['aggregation']!r} is not supported"
            raise PluginError(message, hint="Results are means; tables aggregate.", at=("metric_list", i))
        settings = {key: value for key, value in settings.items() if key not in IGNORED}
        if metric.startswith("hf:") or settings.get("hf_evaluate") is True:
            settings.pop("hf_evaluate", None)
            path = settings.pop("path", None)
            measures[name] = _library_measure(metric.removeprefix("hf:"), path, settings)
        elif metric in MEASURES:
            try:
                check_arguments(f"metric {metric}", MEASURES[metric], settings, ("metric_list", i))
                measures[name] = MEASURES[metric](**settings)
            except ValueError as error:
                raise PluginError(f"metric {metric}: {error}", at=("metric_list", i)) from None
        else:
            hint = near(metric, [*MEASURES, "hf:NAME"])
            if metric in ("acc_norm", "perplexity", "word_perplexity", "byte_perplexity", "bits_per_byte"):
                hint = "It needs the likelihood of texts, which replies do not have; leave it out."
            elif metric in _WHOLE:
                hint = f"It is one number of all answers: write {{use: corpus, of: {metric}}} under the spec's metrics."
            raise PluginError(f"there is no metric {metric!r} for answers", hint=hint, at=("metric_list", i))
    return measures


def _any(same: Callable[[str, str], bool]) -> Grading:
    return lambda answer, target: float(any(same(str(answer), str(right)) for right in target["answers"]))


def exact_match(
    ignore_case: bool = False,
    ignore_punctuation: bool = False,
    ignore_numbers: bool = False,
    regexes_to_ignore: Sequence[str] = (),
) -> Measure:
    """Compare texts, without ignored parts and without blanks at both ends."""
    patterns = [regular_expression(pattern) for pattern in regexes_to_ignore]
    dropped = (string.punctuation if ignore_punctuation else "") + (string.digits if ignore_numbers else "")
    table = str.maketrans("", "", dropped)

    def plain(text: str) -> str:
        for pattern in patterns:
            try:
                text = pattern.substituted(text, "")
            except TimeoutError:  # the model's text takes too long: leave it as it is
                continue
        return (text.lower() if ignore_case else text).translate(table).strip()

    return Measure(_any(lambda answer, right: plain(answer) == plain(right)), plain)


def math_equal() -> Measure:
    """Compare mathematically, with math-verify."""

    def same(answer: str, right: str) -> bool:
        from .equivalence import math_equal as equal

        return equal(answer, right)

    def ready() -> None:
        if find_spec("math_verify") is None:
            hint = "pip install 'mas-eval-harness[math]', or grade by math_strict."
            raise SetupError("the metric math_equal needs the `math-verify` package", hint=hint)

    return Measure(_any(same), slow=True, ready=ready)


def math_strict() -> Measure:
    """Compare formulas in a normal form, without any calculation."""

    def same(answer: str, right: str) -> bool:
        from .mathematics import math_canonical

        return math_canonical(answer) == math_canonical(right)

    return Measure(_any(same))


def number_equal(tolerance: float = 0.0, relative: float = 0.0) -> Measure:
    """Compare numbers, within an absolute or a relative tolerance."""

    def same(answer: str, right: str) -> bool:
        from .number import Number

        a, b = (Number().parse(text).action for text in (answer, right))
        if not isinstance(a, (int, float)) or not isinstance(b, (int, float)):
            return False
        return a == b or abs(a - b) <= max(tolerance, relative * abs(b))

    return Measure(_any(same))


def ungraded() -> Measure:
    """Give no number: no rule grades these answers, and a judge may (`{use: judge}`). Rows need no right answer."""
    return Measure(lambda answer, target: 0.0, ungraded=True)


MEASURES: dict[str, Callable[..., Measure]] = {
    "acc": exact_match,  # of a letter: what lm-eval calls a multiple-choice task's accuracy
    "exact_match": exact_match,
    "math_equal": math_equal,
    "math_strict": math_strict,
    "number_equal": number_equal,
    "ungraded": ungraded,
}


def _library_measure(name: str, path: str | None, settings: Mapping[str, Any]) -> Measure:
    """A metric of the package `evaluate`, on one answer at a time; the best one where several answers are right."""
    loaded = library_metric(name, path)

    def measure(answer: Action, target: Mapping[str, Any]) -> float:
        rights = target["answers"]
        return max((loaded([(str(answer), [right])], None, settings) for right in rights), default=0.0)

    return Measure(measure, slow=True)


def mark(name: str, measure: Measure, action: Action, target: Mapping[str, Any]) -> float:
    """Grade an answer. An answer that makes the measure raise is wrong, if the right answer does not raise."""
    if not target.get("answers"):
        return measure.grade(action, target)

    def wrong(bug: str) -> float:
        measure.grade(target["answers"][0], target)  # raises too if the measure itself is broken
        return 0.0

    return guarded(f"metric {name}", measure, lambda: measure.grade(action, target), wrong)
