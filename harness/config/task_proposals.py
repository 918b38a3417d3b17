"""What a task proposes for keys that its spec leaves out."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, Final, runtime_checkable
from typing import Protocol as Structure

from harness.api import Facts, Protocol
from harness.api.errors import SpecError, raise_all
from harness.config import schema
from harness.config.building import Plugins, split
from harness.config.expansion import VARIABLE
from harness.config.keys import keys_of
from harness.config.spec import Spec

FOR_METRICS: Final = ("headline", "tables", "baseline", "generation_kwargs")
"""What a task proposes together with metrics."""


@runtime_checkable
class ProposesSpec(Structure):
    """A task that proposes what a spec leaves out."""

    def spec_defaults(self, protocol: type[Protocol]) -> Facts:
        """Return defaults for keys that a spec with this task leaves out: prompts, metrics, tables, headline.

        A spec without `prompts` takes the default prompts. A spec without `metrics` takes the default metrics, and also
        the headline, tables, baseline, generation_kwargs and parameters of the protocol that it lacks. The run records
        them as if the spec contained them.
        """


def propose(spec: Spec, plugins: Plugins, lacking: Sequence[str]) -> None:
    """Add the prompt set or the metrics that the spec lacks, as the task of its first condition proposes them; with
    metrics also tables and parameters of the protocol.

    Raises `SpecError` for a task without proposals.
    """
    data = spec.data
    variant = spec.variants()[0]
    name, _ = split(variant.data["protocol"])
    protocol = plugins.project.load("protocols", name, spec.place("protocol"))
    at = functools.partial(spec.place_in, variant, "task")
    task = plugins.get("tasks", variant.data["task"], at)
    proposals = {**task.spec_defaults(protocol)} if isinstance(task, ProposesSpec) else {}
    if missing := [key for key in lacking if key not in proposals]:
        keys = f"missing required key{'s' * (len(missing) > 1)} {', '.join(map(repr, missing))}"
        what = split(variant.data["task"])[0]
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
