"""The documents of one topic each."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datasets import Dataset


def animals(documents: Dataset) -> Dataset:
    return documents.filter(lambda row: row["topic"] == "animals")


def rivers(documents: Dataset) -> Dataset:
    return documents.filter(lambda row: row["topic"] == "rivers")


def numbers(documents: Dataset) -> Dataset:
    return documents.filter(lambda row: row["topic"] == "numbers")
