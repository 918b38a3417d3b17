"""harness: declarative evaluation of groups of language models.

    import harness

    run = harness.evaluate("agentsnet", model="vllm", model_args={"pretrained": …})
    run = harness.load_run("results/agentsnet-…")   # the same, read back from its folder

Authors of plugins import from `harness.api`. Importing this package imports nothing else.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.api.errors import HarnessError, UserError
    from harness.api.version import __version__
    from harness.evaluation.evaluate import evaluate
    from harness.evaluation.load_run import load_run
    from harness.evaluation.run import Run
    from harness.runtime.runner import BudgetReachedError, RunStoppedError
    from harness.tables import EpisodeScore, Table
    from harness.transcripts.view_api import Transcript

__all__ = [
    "BudgetReachedError",
    "EpisodeScore",
    "HarnessError",
    "Run",
    "RunStoppedError",
    "Table",
    "Transcript",
    "UserError",
    "__version__",
    "evaluate",
    "load_run",
]
_MODULES = {
    "BudgetReachedError": "runtime.runner",
    "EpisodeScore": "tables",
    "HarnessError": "api.errors",
    "Run": "evaluation.run",
    "RunStoppedError": "runtime.runner",
    "Table": "tables",
    "Transcript": "transcripts.view_api",
    "UserError": "api.errors",
    "__version__": "api.version",
    "evaluate": "evaluation.evaluate",
    "load_run": "evaluation.load_run",
}
"""Name → where it is defined; the imports above say the same to type checkers."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"harness.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'harness' has no attribute {name!r}")
