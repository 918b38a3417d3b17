"""What a spec leaves out: prompts, metrics and tables, as its task proposes them."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from harness.config import schema
from harness.config._insertion import VARIABLE
from harness.config.project import Project
from harness.config.schema import metric_name
from harness.errors import SpecError, raise_all

if TYPE_CHECKING:
    from harness.config.spec import Spec

RESULTS: Final = "games/results"
"""The metric that says who won a game of a tournament."""
MODEL: Final = "model"
"""How specs call the model under test."""
_RETURN: Final = "mean_return"
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
        data["tables"] = [*_game_tables(spec), _plain_table(spec)]
    return spec


def _propose(spec: Spec, project: Project) -> None:
    """Add the prompt set and the metrics that the task proposes, where the spec has none; with metrics go tables, and
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
    if "metrics" in lacking and "tournament" in data and "returns" in task.grades and RESULTS not in _metrics(spec):
        data["metrics"] = [*data["metrics"], RESULTS]
        data.setdefault("cluster", "case")  # its games share the luck
        _rank_by_return(data, variant.data["tournament"]["pool"])
    own = {"use": data["protocol"]} if isinstance(data["protocol"], str) else data["protocol"]
    if "metrics" in lacking and "protocol" in proposals and VARIABLE.search(own["use"]) is None:
        data["protocol"] = {**proposals["protocol"], **own}
    raise_all(SpecError(f"proposed by the task: {what}", place=at()) for _, what in schema.spec_problems(data))


def _rank_by_return(data: dict[str, Any], pool: Iterable[str | Mapping[str, Any]]) -> None:
    """Make what the model under test gets in its games the headline, where it is a contestant.

    A game's score is a mean over all seats: in most games nobody can change it.
    """
    entries: list[Mapping[str, Any]] = [{"model": one} if isinstance(one, str) else one for one in pool]
    own = next((one.get("label", MODEL) for one in entries if one.get("model") == MODEL), None)
    if own is not None and "headline" in data and _RETURN not in map(metric_name, data["metrics"]):
        data["metrics"] = [{"use": "games/mean_return", "name": _RETURN, "group": own}, *data["metrics"]]
        title = "Mean return of the model in its games"
        data["headline"] = {**data["headline"], "cell": _RETURN, "title": title}


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


def _game_tables(spec: Spec) -> list[dict[str, Any]]:
    """Ratings, and who won against whom, of a tournament whose results are measured; none without such games. Also the
    gap, where contestants play themselves too.
    """
    entry = spec.data.get("tournament", {})
    if not entry or entry.get("pairing") == "self_play" or RESULTS not in _metrics(spec):
        return []
    of = {"of": RESULTS}
    ratings = {"title": f"{spec.name}: ratings", "kind": "rating", **of}
    matrix = {"title": f"{spec.name}: row against column", "kind": "cross_play", **of, "figure": "heat"}
    gaps = {"title": f"{spec.name}: with itself and with others", "kind": "self_play", **of}
    return [ratings, matrix, gaps] if entry.get("self_play") else [ratings, matrix]


def _plain_table(spec: Spec) -> dict[str, Any]:
    """The table of a spec that declares none: a row for each model and condition, a column for each metric."""
    return {
        "title": spec.name,
        "rows": ["model", *spec.swept],
        "columns": "metric",
        "cell": [name for name in dict.fromkeys(_metrics(spec)) if name != RESULTS],
        "aggregate": "pooled",
        "error": "sem",
    }


def _metrics(spec: Spec) -> list[str]:
    """What the spec calls its metrics."""
    return [metric_name(entry) for entry in spec.get("metrics")]
