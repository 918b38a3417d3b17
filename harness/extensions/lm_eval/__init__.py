"""lm-eval's tasks (the package `lm_eval`): finding them, loading them, asking and grading as the package does.

Nothing here imports `lm_eval` before it is needed: its import takes more than a second.
"""

from .index import TaskEntry, entries
from .loading import LoadedTasks, load, needed
from .single_task import SingleTask

__all__ = ["LoadedTasks", "SingleTask", "TaskEntry", "entries", "load", "needed"]
