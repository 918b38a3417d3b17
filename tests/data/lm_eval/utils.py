"""What the tasks in this folder name with !function."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datasets import Dataset

Row = dict[str, Any]


def keep_long(documents: Dataset) -> Dataset:
    """Documents of five words and more, each with its words in a column of their own."""
    with_words: Dataset = documents.map(lambda row: {"words": row["sentence"].split()})
    return with_words.filter(lambda row: len(row["words"]) >= 5)


def ask_for_word(document: Row) -> str:
    return f"Sentence: {document['sentence']}\nIts longest word is"


def longest_word(document: Row) -> str:
    return str(max(document["words"], key=len))


def letters_in_common(document: Row, results: list[str]) -> Row:
    """Two measures: how many letters of the longest word the reply has, and how long the reply is."""
    target, reply = set(longest_word(document).lower()), results[0].lower()
    return {"letters": len(target & set(reply)) / len(target), "reply_length": float(len(reply))}


def counts(document: Row, results: list[str]) -> Row:
    """Numbers that no metric_list names, in a mapping that another function completes."""
    found = {"words": len(results[0].split())}
    found["blank"] = not results[0]
    found.update(more(results[0]))
    return found


def more(reply: str) -> Row:
    return {"length": len(reply), **({"vowels": sum(map(reply.lower().count, "aeiou"))} if reply else {"vowels": 0})}


def median(values: list[float]) -> float:
    return float(statistics.median(values))


def macro_f1(pairs: list[tuple[int, int]]) -> float:
    """The mean over labels of the harmonic mean of precision and recall."""
    labels = sorted({label for pair in pairs for label in pair})
    values = []
    for label in labels:
        hits = sum(gold == label == said for gold, said in pairs)
        named = sum(gold == label for gold, _ in pairs) + sum(said == label for _, said in pairs)
        values.append(2 * hits / named)
    return sum(values) / len(values)


def gold_and_choice(document: Row, results: list[tuple[float, bool]]) -> Row:
    """The record of the metric macro_f1, and a number beside it."""
    sums = [logprob for logprob, _ in results]
    said = max(range(len(sums)), key=sums.__getitem__)
    return {"macro_f1": (document["label"], said), "margin": max(sums) - min(sums)}
