"""Finished episodes played again with one thing changed: `harness replay`.

From Python: `replayed(run, episode, change={…})`.
"""

from .replay_run import replayed

__all__ = ["replayed"]
