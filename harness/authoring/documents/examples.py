"""Solved examples before a question, in lm-eval's words: how many, from where, which."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from harness.errors import DataError, Place, PluginError, near

Doc = Mapping[str, Any]
Choose = Callable[[int, Doc, str], Sequence[str]]
"""(seed, row, its question) → the examples as they stand before it."""


def chooser(
    count: int,
    config: Mapping[str, Any],
    split: str | None,
    docs: Callable[[str], Iterable[tuple[Place, dict[str, Any]]]],
    shot: Callable[[dict[str, Any]], tuple[str, str]],
) -> Choose:
    """What gives, for a seed and a question, the examples before it: never the question itself.

    Args:
        wanted: `num_fewshot`.
        config: `fewshot_config`: sampler, samples, same.
        split: where rows come from, if `samples` does not hold them.
        docs: the rows of a split.
        shot: a row's question, and how it stands before another, solved.

    Raises:
        PluginError: for a configuration that cannot be.
        DataError: if there are too few rows, then or when a question is asked.
    """
    if not count:
        return lambda seed, doc, asked: ()
    for key in config.keys() - {"sampler", "samples", "same"}:
        hint = near(key, ["sampler", "samples", "same"])
        raise PluginError(f"fewshot_config has no {key!r}", hint=hint, at=("fewshot_config",))
    sampler, same, samples = config.get("sampler", "default"), config.get("same"), config.get("samples")
    if sampler not in ("default", "first_n"):
        hint = near(str(sampler), ["default", "first_n"])
        raise PluginError(f"there is no sampler {sampler!r}", hint=hint, at=("fewshot_config",))
    if samples is not None and not (isinstance(samples, list) and all(isinstance(row, Mapping) for row in samples)):
        raise PluginError("fewshot_config: samples is a list of rows", at=("fewshot_config",))
    if samples is None and split is None:
        hint = "Give fewshot_split, training_split or validation_split, or fewshot_config: {samples: […]}."
        raise PluginError("num_fewshot needs rows to take examples from", hint=hint, at=("num_fewshot",))
    rows = ((Place("fewshot_config"), dict(row)) for row in samples) if samples is not None else docs(str(split))
    # Of the first rows one more is enough, in case one of them is the question.
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
            raise DataError(f"{count} examples are wanted, and {where} has {len(examples)} others{which}")
        return examples

    return choose


def _group_key(doc: Mapping[str, Any], column: Any) -> str:
    """The value in which examples and question must agree; nothing if there is no such wish."""
    if column is None:
        return ""
    if column not in doc:
        message = f"fewshot_config: same names the column {column!r}, and the data has none"
        raise PluginError(message, hint=near(str(column), map(str, doc)), at=("fewshot_config",))
    return str(doc[column])
