"""Generated sums and products: a data set of any size, without files."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import field
from typing import Annotated, Any

from harness.api import Place, Range, derive_seed, plugin
from harness.extensions.datasets import DatasetTask
from harness.extensions.datasets.rows import Row


@plugin
class Arithmetic(DatasetTask):
    """Arithmetic: generated expressions whose value is an integer. Works offline, with any number of questions.

    Attributes:
        size: the number of questions.
        terms: numbers per expression.
        digits: digits per number at most.
        operators: the operators between numbers, any of + - *.
    """

    size: Annotated[int, Range(ge=1, le=10_000_000)] = 100
    terms: Annotated[int, Range(ge=2, le=50)] = 3
    digits: Annotated[int, Range(ge=1, le=12)] = 2
    operators: str = "+-*"
    test_split: str | None = "test"
    doc_to_text: str = "What is {{ expression }}?"
    doc_to_target: str | int | None = "value"
    answer: dict[str, Any] | None = field(default_factory=lambda: {"form": "number"})

    def __post_init__(self) -> None:
        if not self.operators or set(self.operators) - set("+-*"):
            raise ValueError(f"operators must be any of + - *, found {self.operators!r}")
        super().__post_init__()

    def rows(self, split: str, seed: int) -> Iterator[tuple[Place, Row]]:
        """Yield generated rows. Each depends only on its number, the split, the seed and the parameters."""
        for number in range(self.size):
            rng = random.Random(derive_seed("arithmetic", self.terms, self.digits, self.operators, split, seed, number))
            value = product = rng.randrange(10**self.digits)
            words, rest = [str(value)], 0
            for _ in range(self.terms - 1):
                operator, x = rng.choice(self.operators), rng.randrange(10**self.digits)
                words += [operator, str(x)]
                if operator == "*":
                    product *= x
                else:
                    rest, product = rest + product, x if operator == "+" else -x
            value = rest + product
            yield Place("arithmetic", number + 1), {"id": number, "expression": " ".join(words), "value": value}

    def example(self) -> Any:
        """The first question."""
        return next(iter(self.cases(1, 0)))
