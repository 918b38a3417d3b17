"""Solved examples before a question, with lm-eval's keys."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from harness.api.errors import DataError, Place, PluginError, near

from .parameter_checks import FewshotConfig

Doc = Mapping[str, Any]
Choose = Callable[[int, Doc, str], Sequence[str]]
"""(seed, row, its question) → the examples before it, as text."""


def chooser(
    count: int,
    config: FewshotConfig,
    split: str | None,
    docs: Callable[[str], Iterable[tuple[Place, dict[str, Any]]]],
    shot: Callable[[dict[str, Any]], tuple[str, str]],
) -> Choose:
    """Return the function that chooses the examples before a question, never the question itself.

    Args:
        count: `num_fewshot`.
        config: `fewshot_config`: sampler, samples, same.
        split: the split with the rows, unless `config` has `samples`.
        docs: the rows of a split.
        shot: row → (its question, the whole example as it precedes another question).

    Raises:
        PluginError: if there is no source of rows.
        DataError: if there are too few rows; also raised by the returned function.
    """
    if not count:
        return lambda seed, doc, asked: ()
    sampler, same, samples = config.get("sampler", "default"), config.get("same"), config.get("samples")
    if samples is None and split is None:
        hint = "Set fewshot_split, training_split or validation_split, or fewshot_config: {samples: […]}."
        raise PluginError("num_fewshot needs rows to take examples from", hint=hint, at=("num_fewshot",))
    rows = ((Place("fewshot_config"), dict(row)) for row in samples) if samples is not None else docs(str(split))
    # One more of the first rows is enough, in case one of them is the question.
    row_limit = count + 1 if sampler == "first_n" and same is None else None
    groups: dict[Any, list[tuple[str, str]]] = {}
    for _, doc in itertools.islice(rows, row_limit):
        groups.setdefault(_group_key(doc, same), []).append(shot(doc))

    def choose(seed: int, doc: Mapping[str, Any], asked: str) -> Sequence[str]:
        group = groups.get(_group_key(doc, same), [])
        size = min(count + 1, len(group))
        places = range(size) if sampler == "first_n" else random.Random(seed).sample(range(len(group)), size)
        itself = " ".join(asked.split())
        examples = [group[i][1] for i in places if " ".join(group[i][0].split()) != itself][:count]
        if len(examples) < count:
            where = "fewshot_config" if samples is not None else split
            which = f" with the {same} {doc.get(str(same))!r}" if same else ""
            raise DataError(f"{count} examples are needed, but {where} has only {len(examples)} others{which}")
        return examples

    return choose


def _group_key(doc: Mapping[str, Any], column: Any) -> str:
    """Return the value in which examples and question must agree; "" without such a column."""
    if column is None:
        return ""
    if column not in doc:
        message = f"fewshot_config: same names the column {column!r}, which the data does not have"
        raise PluginError(message, hint=near(str(column), map(str, doc)), at=("fewshot_config",))
    return str(doc[column])
