"""Judges of finished episodes: runs of their own in the folder of the run that they judge, and what becomes of them."""

from .asking import ask, waiting
from .plans import FOLDER, Judging, judgings
from .verdicts import in_words, with_verdicts

__all__ = ["FOLDER", "Judging", "ask", "in_words", "judgings", "waiting", "with_verdicts"]
