"""Which moves and agents made episodes fail: `harness blame`. From Python: `blamed(run, by)`."""

from .blame import blamed

__all__ = ["blamed"]
