"""harness: declarative evaluation of groups of language models.

From Python: `harness.evaluate("agentsnet", model="vllm", model_args={"pretrained": …})` returns a `Run`.
Importing this package imports nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.6.0"
__all__ = ["Run", "__version__", "evaluate"]

if TYPE_CHECKING:
    from harness.evaluation.evaluate import evaluate
    from harness.evaluation.run import Run


def __getattr__(name: str) -> Any:
    if name == "evaluate":
        from harness.evaluation.evaluate import evaluate

        return evaluate
    if name == "Run":
        from harness.evaluation.run import Run

        return Run
    raise AttributeError(f"module 'harness' has no attribute {name!r}")
