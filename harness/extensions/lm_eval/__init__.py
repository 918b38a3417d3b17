"""lm-eval's tasks (the package `lm_eval`): finding them, loading them, asking and grading as the package does.

Nothing here imports `lm_eval` before it is needed: its import takes more than a second.
"""

from .loading import LoadedTasks, load, needed
from .single_task import SingleTask
from .task_index import TaskEntry, entries

__all__ = ["LoadedTasks", "SingleTask", "TaskEntry", "entries", "load", "needed"]
