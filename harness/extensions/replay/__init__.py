"""Finished episodes played again with one thing changed: `harness replay`, `harness blame`.

From Python: `replayed(run, episode, change={…})`, `blamed(run, by)`.
"""

from .again import replayed
from .blame import blamed

__all__ = ["blamed", "replayed"]
