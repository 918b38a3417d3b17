"""Judges of finished episodes: runs of their own in the folder of the run that they judge, and what becomes of them."""

from .asking import ask, waiting
from .cases import prepare
from .pairs import PairSide, pair_lines, pair_tables, pairs_plan, verdicts_of
from .plans import CASES, FOLDER, Judging, judgings
from .verdicts import annotate, in_words, spent_in, unchanged, with_verdicts

__all__ = [
    "CASES",
    "FOLDER",
    "Judging",
    "PairSide",
    "annotate",
    "ask",
    "in_words",
    "judgings",
    "pair_lines",
    "pair_tables",
    "pairs_plan",
    "prepare",
    "spent_in",
    "unchanged",
    "verdicts_of",
    "waiting",
    "with_verdicts",
]
