"""What a spec leaves out: prompts, metrics and tables, as its task proposes them."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from harness.config import schema
from harness.config._insertion import VARIABLE
from harness.config.keys import SpecKey, keys_of
from harness.config.project import Project
from harness.config.schema import metric_name
from harness.errors import SpecError, raise_all
from harness.manifests import usable

if TYPE_CHECKING:
    from harness.config.spec import Spec

FOR_METRICS: Final = ("headline", "tables", "baseline", "generation_kwargs")
"""What a task proposes together with metrics."""


def complete(spec: Spec, project: Project) -> Spec:
    """Add to `spec` what it leaves out, and return it; nothing where it is complete.

    Loads plugins only where prompts or metrics lack. Raises `SpecError` for a task that proposes nothing.
    """
    data = spec.data
    _propose(spec, project)
    if "headline" in data and _metrics_are_others(spec):
        _adapt_headline(data, _metrics(spec))
    if "tables" not in data:
        data["tables"] = [*(table for key in keys_of(spec) for table in key.tables()), _plain_table(spec)]
    return spec


def _propose(spec: Spec, project: Project) -> None:
    """Add the prompt set and the metrics that the task proposes, if the spec has none; with metrics also tables and
    parameters of the protocol.

    Only such specs load plugins here: those of their first condition. Raises `SpecError` for a task without proposals.
    """
    data = spec.data
    lacking = [key for key in ("prompts", "metrics") if key not in data]
    if not lacking:
        return
    from harness.config import building

    variant = spec.variants()[0]
    name, _ = building.split(variant.data["protocol"])
    protocol = project.load("protocols", name, spec.place("protocol"))
    at = functools.partial(spec.place_in, variant, "task")
    task = building.make(*building.parts_of("tasks", variant.data["task"], project, at), at)
    proposals = {**task.spec_defaults(protocol)}
    if missing := [key for key in lacking if key not in proposals]:
        keys = f"missing required key{'s' * (len(missing) > 1)} {', '.join(map(repr, missing))}"
        what = building.split(variant.data["task"])[0]
        raise SpecError(f"{keys}: task {what!r} proposes none", place=spec.place())
    wanted = ("metrics", *FOR_METRICS, "description") if "metrics" in lacking else ("description",)
    for key in ("prompts", *wanted):
        if key in proposals and key not in data:
            data[key] = proposals[key]
            spec.places[(key,)] = spec.place("task")
    if "tables" in wanted and data.get("tables") is proposals.get("tables") is not None:
        data["tables"] = [_swept(table, spec) for table in proposals["tables"]]
    for key in keys_of(spec, variant.data) if "metrics" in lacking else ():
        key.propose(task)
    own = {"use": data["protocol"]} if isinstance(data["protocol"], str) else data["protocol"]
    if "metrics" in lacking and "protocol" in proposals and VARIABLE.search(own["use"]) is None:
        data["protocol"] = {**proposals["protocol"], **own}
    raise_all(SpecError(f"proposed by the task: {what}", place=at()) for _, what in schema.spec_problems(data))


def _swept(table: Mapping[str, Any], spec: Spec) -> dict[str, Any]:
    """A table that a task proposes, with the spec's name as title where it has none, and a row for each condition."""
    rows = [table["rows"]] if isinstance(table["rows"], str) else [*table["rows"]]
    return {"title": spec.name, **table, "rows": rows + [name for name in spec.swept if name not in rows]}


def _metrics_are_others(spec: Spec) -> bool:
    """Whether metrics were replaced after the headline was written: by an option, or by a spec that extends another."""
    cell, metrics = spec.place("headline", "cell").file, spec.place("metrics").file
    order = [2 if file.startswith("--") else int(file == spec.file) for file in (cell, metrics)]
    return order[0] < order[1] or (cell != metrics and order == [0, 0])


def _adapt_headline(data: dict[str, Any], metrics: Sequence[str]) -> None:
    """Leave out of the headline of a spec that was extended or given other metrics what is about metrics it lacks."""
    headline = data.pop("headline")
    if headline["cell"] in metrics:
        beside = [name for name in headline.get("beside", ()) if name in metrics]
        data["headline"] = {**headline, **({"beside": beside} if "beside" in headline else {})}


def _plain_table(spec: Spec) -> dict[str, Any]:
    """The table of a spec that declares none: a row for each model and condition, a column for each metric."""
    hidden = {name for key in usable("keys", SpecKey).values() for name in key.without_numbers}
    return {
        "title": spec.name,
        "rows": ["model", *spec.swept],
        "columns": "metric",
        "cell": [name for name in dict.fromkeys(_metrics(spec)) if name not in hidden],
        "aggregate": "pooled",
        "error": "sem",
    }


def _metrics(spec: Spec) -> list[str]:
    """What the spec calls its metrics."""
    return [metric_name(entry) for entry in spec.get("metrics")]
