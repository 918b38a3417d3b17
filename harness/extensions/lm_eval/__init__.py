"""lm-eval's tasks (the package `lm_eval`): finding them, loading them, asking and grading as the package does.

Nothing here imports `lm_eval` before it is needed: its import takes more than a second.
"""

from .index import TaskEntry, entries
from .leaf import Leaf
from .loading import LoadedTasks, load, needed

__all__ = ["Leaf", "LoadedTasks", "TaskEntry", "entries", "load", "needed"]
