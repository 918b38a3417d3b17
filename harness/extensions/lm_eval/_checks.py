"""Whether a task can be played here."""

from __future__ import annotations

from harness.api.errors import PluginError, near

from .programs import confined, unsafe
from .single_task import SingleTask


def check(leaf: SingleTask) -> None:
    """Raise `PluginError` for a task that cannot be played here."""
    if leaf.config.process_results is None:
        _check_metrics(leaf)
    if leaf.runs_programs and not confined(leaf.yaml):
        raise unsafe(leaf.name)
    if getattr(leaf.task, "MULTIMODAL", False):
        message = f"task {leaf.name!r} shows pictures or plays sounds; prompts here are text"
        raise PluginError(message, hint="Choose a task of text.", at=("task",))


def _check_metrics(leaf: SingleTask) -> None:
    """Raise `PluginError` for a metric that the package has no function for.

    Of likelihoods it takes the name alone, even if the function would be one of the package `evaluate`.
    """
    from lm_eval.api.registry import METRIC_REGISTRY

    known = {str(name) for name in METRIC_REGISTRY}
    generates = leaf.output_type == "generate_until"
    for name, function in getattr(leaf.task, "_metric_fn_list", {}).items():
        if function is not None or (str(name) in known and not generates):
            continue
        message, hint = f"metric_list names {name!r}, which is not a metric of the package", near(str(name), known)
        if str(name) in known:
            message = f"metric_list takes {name!r} from the package evaluate, whose script is not on this machine"
            hint = f"Load it once with a network: python -c \"import evaluate; evaluate.load('{name}')\"."
        raise PluginError(f"task {leaf.name!r}: {message}", place=leaf.place, hint=hint)
