from __future__ import annotations

import math
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Annotated, Any, Literal

from harness.api import CorpusMetric, Episode, Range, SetupError, Statistic, plugin
from harness.extensions.datasets.batch_metric import BatchMetric
from harness.extensions.datasets.libraries import overlapping

from ._pairs import Pair, grade_name, pairs, statistic

_BOUNDS = {"f1": (0.0, 1.0), "macro_f1": (0.0, 1.0), "mcc": (-1.0, 1.0), "ter": (0.0, math.inf)}


@plugin
class Corpus(CorpusMetric):
    """A number of all answers to a data set's questions together, by lm-eval's names and with its packages.

    Attributes:
        of: "bleu", "chrf", "chrf++", "ter" (sacrebleu, from 0 to 100), "f1" (of the answer `positive`), "macro_f1" or
            "mcc" (scikit-learn).
        filter: the filter behind which answers are read; None: the first.
        positive: the answer whose F1 is taken.
        bootstrap: how often episodes are resampled for the standard error; 0: no standard error.
    """

    of: Literal["bleu", "chrf", "chrf++", "ter", "f1", "macro_f1", "mcc"]
    filter: str | None = None
    positive: str = "1"
    bootstrap: Annotated[int, Range(ge=0, le=100_000)] = 100

    def __post_init__(self) -> None:
        self.needs = (grade_name(self.filter),)
        self.bounds = _BOUNDS.get(self.of, (0, 100))  # type: ignore[misc]
        classes = self.of in ("f1", "macro_f1", "mcc")
        self._overlap = None if classes else BatchMetric(self.of, f"{overlapping.__module__}:overlapping", self.of)
        module = "sklearn" if classes else "sacrebleu"
        if find_spec(module) is None:
            hint = "pip install 'mas-eval-harness[lm-eval]'"
            raise SetupError(f"the metric {self.of} needs the package {module}", hint=hint)

    def measure(self, episode: Episode) -> Any:
        """Each answer beside the right ones."""
        return pairs(episode, self.filter)

    def aggregate(self, numbers: Sequence[Any]) -> Statistic:
        """The number of all pairs, and its bootstrapped standard error."""
        return statistic(numbers, self._classes if self._overlap is None else self._overlap, self.bootstrap)

    def _classes(self, answers: list[Pair]) -> float:
        from sklearn.metrics import f1_score, matthews_corrcoef

        predictions = [prediction for prediction, _ in answers]
        right = [prediction if prediction in answers_ else answers_[0] for prediction, answers_ in answers]
        if self.of == "mcc":
            return float(matthews_corrcoef(right, predictions))
        if self.of == "macro_f1":
            return float(f1_score(right, predictions, average="macro", labels=sorted(set(right)), zero_division=0))
        return float(
            f1_score([x == self.positive for x in right], [x == self.positive for x in predictions], zero_division=0)
        )
