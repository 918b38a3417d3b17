"""Tasks made from data-set rows: reading rows, templates over their columns, questions, answers and their grades."""

from .task import DatasetTask

__all__ = ["DatasetTask"]
