"""harness: declarative evaluation of groups of language models.

From Python: `harness.evaluate("agentsnet", model="vllm", model_args={"pretrained": …})` returns a `Run`.
Importing this package imports nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.7.0"
__all__ = ["Run", "__version__", "evaluate"]

if TYPE_CHECKING:
    from harness.evaluation import evaluate
    from harness.results import Run


def __getattr__(name: str) -> Any:
    if name == "evaluate":
        from harness.evaluation import evaluate

        return evaluate
    if name == "Run":
        from harness.results import Run

        return Run
    raise AttributeError(f"module 'harness' has no attribute {name!r}")
