"""What a spec leaves out: prompts and metrics, which its task may propose, and tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from harness.config.building import Plugins
from harness.config.keys import keys_of, metrics_without_numbers
from harness.config.project import Project
from harness.config.schema import metric_name

if TYPE_CHECKING:
    from harness.config.spec import Spec


def complete(spec: Spec, project: Project, plugins: Plugins | None = None) -> Spec:
    """Add to `spec` what it leaves out, and return it; nothing where it is complete.

    Loads plugins only where prompts or metrics lack; `plugins` keeps them for `resolve.plan`. Raises `SpecError` for a
    task that proposes nothing.
    """
    data = spec.data
    if lacking := [key for key in ("prompts", "metrics") if key not in data]:
        from harness.config.task_proposals import propose  # few specs need it

        propose(spec, plugins or Plugins(project), lacking)
    if "headline" in data and _metrics_are_others(spec):
        _adapt_headline(data, _metrics(spec))
    if "tables" not in data:
        data["tables"] = [*(table for key in keys_of(spec) for table in key.tables()), _plain_table(spec)]
    return spec


def _metrics_are_others(spec: Spec) -> bool:
    """Whether metrics were replaced after the headline was written: by an option, or by a spec that extends another."""
    cell, metrics = spec.place("headline", "metric").file, spec.place("metrics").file
    order = [2 if file.startswith("--") else int(file == spec.file) for file in (cell, metrics)]
    return order[0] < order[1] or (cell != metrics and order == [0, 0])


def _adapt_headline(data: dict[str, Any], metrics: Sequence[str]) -> None:
    """Leave out of the headline of a spec that was extended or given other metrics what is about metrics it lacks."""
    headline = data.pop("headline")
    if headline["metric"] in metrics:
        beside = [name for name in headline.get("also_show", ()) if name in metrics]
        data["headline"] = {**headline, **({"also_show": beside} if "also_show" in headline else {})}


def _plain_table(spec: Spec) -> dict[str, Any]:
    """The table of a spec that declares none: a row for each model and condition, a column for each metric."""
    hidden = metrics_without_numbers()
    return {
        "title": spec.name,
        "rows": ["model", *spec.swept],
        "columns": "metric",
        "metrics": [name for name in dict.fromkeys(_metrics(spec)) if name not in hidden],
        "aggregate": "pooled",
        "uncertainty": "sem",
    }


def _metrics(spec: Spec) -> list[str]:
    """What the spec calls its metrics."""
    return [metric_name(entry) for entry in spec.get("metrics")]
