"""One number of all documents' values with its standard error, as lm-eval computes both."""

from __future__ import annotations

import contextlib
import functools
import io
import math
import random
import statistics
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from harness.api import Statistic
from harness.api.errors import Place, PluginError
from harness.extensions.datasets.batch_metric import BATCH_SECONDS, BatchMetric
from harness.extensions.sandbox import clock
from harness.extensions.sandbox.clock import ClockedFunction, UnreadableTextError

BOOTSTRAPS = 100_000
"""Resamples of a bootstrapped standard error, as in the package."""
SLOW = ("bleu", "chrf", "chrf++", "ter")
"""Metrics of which the package draws 100 resamples at most."""
_CHUNK, _BLOCK = 1000, 2_000_000
_OF_PAIRS = ("bleu", "chrf", "chrf++", "ter")
"""Aggregations of (right answer, answer)."""


Aggregation = Callable[[Sequence[Any]], Any]


class OfTexts:
    """An aggregation of values with texts of models, under a clock.

    Args:
        metric: the metric's name.
        name: the package's name of the aggregation; None: the one that a task declares.
        tasks: the tasks, and folders with more of them.
    """

    def __init__(self, metric: str, name: str | None, tasks: tuple[Sequence[str], Sequence[str]] = ((), ())) -> None:
        self._pairs = BatchMetric(metric, f"{__name__}:of_pairs", name) if name in _OF_PAIRS else None
        self._any = ClockedFunction(f"{__name__}:_function", name, metric, *tasks)

    def __call__(self, items: Sequence[Any]) -> tuple[float, Sequence[Any]]:
        """The number, and the items that it aggregates. Raises whatever the aggregation raises."""
        if self._pairs is not None:
            pairs = [(str(answer), [right]) for right, answer in items]
            value = float(self._pairs(pairs))
            return value, [(right, answer) for answer, [right] in self._pairs.readable(pairs)]
        try:
            return float(self._any(items, seconds=BATCH_SECONDS + clock.SECONDS * len(items))), items
        except UnreadableTextError as error:
            raise PluginError(f"it does not finish with {len(items)} values") from error


def of_pairs(name: str) -> Callable[[Sequence[tuple[str, Sequence[Any]]]], float]:
    """An aggregation of (right, answer), in the process of the clock."""
    function = registered(name)
    return lambda pairs: float(function([(right[0], answer) for answer, right in pairs]))


def _function(name: str | None, metric: str, tasks: Sequence[str], folders: Sequence[str]) -> Aggregation:
    return registered(name) if name is not None else declared(metric, tasks, folders)


def declared(metric: str, tasks: Sequence[str], folders: Sequence[str]) -> Aggregation:
    """The aggregation that a task declares for a metric. Raises `PluginError` if there is none."""
    from .loading import load

    leaves = load(tasks, folders).leaves.values()
    leaf = next((leaf for leaf in leaves if metric in leaf.metrics), None)
    if leaf is None:
        raise PluginError(f"{', '.join(tasks)} has no metric {metric!r}", at=("metric",))
    function: Aggregation = leaf.aggregation(metric)
    return function


def has_text(values: Any) -> bool:
    """Whether there is a text in values, as deep as they go."""
    return isinstance(values, str) or (isinstance(values, list | tuple) and any(map(has_text, values)))


def statistic(
    function: Aggregation, values: Sequence[Any], metric: str, iterations: int, of_texts: OfTexts | None = None
) -> Statistic:
    """The aggregated value, its standard error (None if the package says N/A) and the number of documents.

    Args:
        function: the aggregation, such as `lm_eval.api.metrics.f1_score`.
        values: one of each document, in their order.
        metric: its name; of some the package resamples less.
        iterations: resamples of a bootstrap; 0: no standard error.
        of_texts: the same function for values with texts.

    Raises:
        PluginError: the aggregation fails.
    """
    items: Sequence[Any] = [tuple(value) if isinstance(value, list) else value for value in values]
    try:
        with _silent():
            if of_texts is not None and has_text(items):
                value, items = of_texts(items)
            else:
                value = float(function(items))
    except PluginError as error:
        error.message = f"metric {metric!r}: {error.message}"
        raise
    except Exception as error:
        name, last = getattr(function, "__name__", metric), traceback.extract_tb(error.__traceback__)[-1]
        place = Place(last.filename, last.lineno or 1, 1)
        message = f"metric {metric!r}: {name} fails: {type(error).__name__}: {error}"
        raise PluginError(message, place=place) from error
    count = min(iterations, 100) if metric in SLOW else iterations
    stderr = _stderr(function, items, count) if len(items) > 1 and count > 0 else None
    return Statistic(value, stderr if stderr is not None and math.isfinite(stderr) else None, len(items))


def mean(numbers: Sequence[float]) -> Statistic:
    """The package's mean and its standard error, without the package."""
    n = len(numbers)
    return Statistic(sum(numbers) / n, statistics.stdev(numbers) / math.sqrt(n) if n > 1 else None, n)


def _stderr(function: Aggregation, items: Sequence[Any], iterations: int) -> float | None:
    from lm_eval.api.metrics import stderr_for_metric

    own = stderr_for_metric(function, iterations)
    if own is None:
        return None
    with _silent():
        resampled = _resampled(function, items, iterations)
        return float(statistics.stdev(resampled)) if resampled is not None else float(own(items))


def _resampled(function: Aggregation, items: Sequence[Any], iterations: int) -> list[float] | None:
    """The statistic of each resample that the package draws, many at a time; None for functions without such a form.

    The package draws resample after resample in Python, which takes minutes. These are the same resamples: NumPy's
    generator continues the state of Python's.
    """
    from lm_eval.api import metrics

    forms: dict[Any, Callable[[Any], Any]] = {
        metrics.perplexity: _perplexity,
        metrics.median: _median,
        metrics.f1_score: _f1,
        metrics.matthews_corrcoef: _matthews,
    }
    form = forms.get(function)
    if form is None:
        return None
    import numpy

    try:
        table = numpy.asarray(items, dtype=float)
    except (TypeError, ValueError):
        return None
    if form in (_f1, _matthews) and not (table.ndim == 2 and table.shape[1] == 2 and numpy.isin(table, (0, 1)).all()):
        return None
    if form in (_perplexity, _median) and table.ndim != 1:
        return None
    n, chunk, results = len(items), min(_CHUNK, iterations), []
    rows = max(1, _BLOCK // n)
    for seed in range(iterations // chunk):
        state = random.Random(seed).getstate()[1]
        source = numpy.random.RandomState()
        source.set_state(("MT19937", numpy.array(state[:-1], dtype=numpy.uint32), state[-1], 0, 0.0))
        for start in range(0, chunk, rows):
            count = min(rows, chunk - start)
            places = (source.random_sample((count, n)) * (n + 0.0)).astype(numpy.intp)
            results.append(form(table[places]))
    return [float(value) for part in results for value in part]


def _perplexity(drawn: Any) -> Any:
    import numpy

    return numpy.exp(-drawn.mean(axis=1))


def _median(drawn: Any) -> Any:
    import numpy

    middle = drawn.shape[1] // 2
    return numpy.partition(drawn, middle, axis=1)[:, middle]


def _counts(drawn: Any) -> tuple[Any, Any, Any, Any]:
    """Of (gold, predicted) pairs: both 1, gold 1, predicted 1, all."""
    gold, predicted = drawn[..., 0], drawn[..., 1]
    return (gold * predicted).sum(axis=1), gold.sum(axis=1), predicted.sum(axis=1), gold.shape[1]


def _f1(drawn: Any) -> Any:
    import numpy

    both, gold, predicted, _ = _counts(drawn)
    below = gold + predicted
    return numpy.divide(2 * both, below, out=numpy.zeros_like(below), where=below > 0)


def _matthews(drawn: Any) -> Any:
    import numpy

    both, gold, predicted, n = _counts(drawn)
    below = gold * (n - gold) * predicted * (n - predicted)
    return numpy.divide(n * both - gold * predicted, numpy.sqrt(below), out=numpy.zeros_like(below), where=below > 0)


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Keep what aggregations print, and the warnings of resamples without positives, off the terminal."""
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        yield


@functools.cache
def registered(name: str) -> Aggregation:
    """The package's aggregation of a name. Raises `PluginError` with near matches."""
    from harness.api.errors import near

    from . import _package

    _package.version()
    import lm_eval.api.metrics  # noqa: F401  (registers them)
    from lm_eval.api.registry import AGGREGATION_REGISTRY

    known = {str(key): function for key, function in AGGREGATION_REGISTRY.items()}
    if name not in known:
        raise PluginError(f"lm-eval has no aggregation {name!r}", hint=near(name, known), at=("aggregation",))
    function: Aggregation = known[name]
    return function


def name_of(function: Aggregation) -> str | None:
    """The name under which the package registers an aggregation; None for a task's own function."""
    from lm_eval.api.registry import AGGREGATION_REGISTRY

    return next((str(name) for name, known in AGGREGATION_REGISTRY.items() if known is function), None)
