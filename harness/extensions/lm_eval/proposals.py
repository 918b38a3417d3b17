"""What a spec with a task of lm-eval may leave out: its metrics, its tables, its headline."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from harness.api import Facts, Protocol
from harness.extensions.panels.panels import Panel

from . import own_examples
from .aggregation import name_of
from .loading import LoadedTasks
from .single_task import SingleTask

SHARES = frozenset(("acc", "acc_norm", "acc_bytes", "acc_mutual_info", "exact_match"))
"""The package's own metrics whose documents' numbers lie between 0 and 1."""
_REPLIES = ("parse_failures", "truncated", "engine_errors")


def proposals(tasks: LoadedTasks, protocol: type[Protocol], task: Mapping[str, Any]) -> Facts:
    """Keys of a spec for these tasks under a protocol.

    Args:
        tasks: the tasks.
        protocol: who acts when.
        task: the arguments `task` and `include_path`, for metrics that need the task's own function.
    """
    leaves = list(tasks.leaves.values())
    metrics = {name: _metric(name, leaf, task) for leaf in leaves for name in _names(leaf)}
    first = leaves[0]
    metric = first.metrics[0]
    cell = f"{metric},{first.filters[0]}"
    headline = {"metric": cell, "title": metric if len(first.filters) == 1 else cell, "digits": 4}
    if not first.higher_is_better(metric):
        headline["better"] = "lower"
    generates = any(leaf.output_type == "generate_until" for leaf in leaves)
    more = [{"use": "grade", "of": "answered", "name": "answered", "bounds": [0, 1]}, *_REPLIES] if generates else []
    title = ", ".join(map(str, task["task"])) if isinstance(task["task"], list) else str(task["task"])
    parts = _parts(tasks)
    tables = [_table(tasks, part, len(parts) > 1) for part in parts]
    if more:
        writing = [leaf.name for leaf in leaves if leaf.output_type == "generate_until"]
        replies = {"title": "Replies", "rows": ["task", "model"], "columns": "metric", "hide_empty": True}
        replies["metrics"] = ["answered", *_REPLIES]
        tables.append({**replies, **({"where": {"task": writing}} if len(writing) < len(leaves) else {})})
    if len(parts) > 1:
        headline["where"] = {
            "task": [name for name in parts[0] if tables[0]["metrics"][0] in _names(tasks.leaves[name])]
        }
    kept: dict[str, Any] = {
        "description": _description(first, title, len(leaves)),
        "metrics": [*metrics.values(), *more],
        "headline": headline,
        "tables": tables,
        "baseline": "random",
    }
    repeats = {leaf.config.repeats or 1 for leaf in leaves}
    parameters = {field.name for field in dataclasses.fields(protocol)}  # type: ignore[arg-type]
    if repeats != {1} and "repeats" in parameters and not issubclass(protocol, Panel):
        kept["protocol"] = {"repeats": max(repeats)}
    return kept


def _parts(tasks: LoadedTasks) -> list[list[str]]:
    """The tasks in as many lists as tables: together are those of one group, and those with the same metrics."""
    whole: list[set[str]] = [{task.task_name for task in group.get_all_tasks()} for group in tasks.groups.values()]
    by_metrics: dict[tuple[str, ...], set[str]] = {}
    for name, leaf in tasks.leaves.items():
        by_metrics.setdefault(tuple(_names(leaf)), set()).add(name)
    parts: list[set[str]] = []
    for together in (*whole, *by_metrics.values()):
        touched = [part for part in parts if part & together]
        parts = [part for part in parts if part not in touched] + [together.union(*touched)]
    order = list(tasks.leaves)
    listed = [sorted(part, key=order.index) for part in parts]
    return sorted(listed, key=lambda part: order.index(part[0]))


def _table(tasks: LoadedTasks, part: Sequence[str], several: bool) -> dict[str, Any]:
    """The table of some tasks, and of the groups that they are in."""
    cells = list(dict.fromkeys(name for leaf in part for name in _names(tasks.leaves[leaf])))
    groups = _groups(tasks, part)
    names = [str(group["title"]).partition(" (")[0] for group in groups] or list(part)
    title = ", ".join(dict.fromkeys(names[:1] if groups else names))
    entry = {"rows": ["task", "model"], "columns": "metric", "metrics": cells, "digits": 4, "uncertainty": "sem"}
    if any(tasks.leaves[leaf].undeclared for leaf in part):
        entry["hide_empty"] = True  # a name in a task's code need not come out of it
    if shown := [one for leaf in part if (one := own_examples.warning(tasks.leaves[leaf])) is not None]:
        entry["note"] = "; ".join(shown)
    some = {"title": title, "where": {"task": list(part)}} if several else {}  # a single table has the spec's name
    return {**entry, **some, **({"groups": groups} if groups else {})}


def _names(leaf: SingleTask) -> list[str]:
    return [f"{metric},{filter}" for filter in leaf.filters for metric in leaf.metrics]


def _metric(name: str, leaf: SingleTask, task: Mapping[str, Any]) -> dict[str, Any]:
    """The entry of a metric. A plain mean is a number of each episode, which tests and intervals can use."""
    metric, _, filter = name.partition(",")
    if leaf.is_mean(metric):
        bounds = {"bounds": [0, 1]} if metric in SHARES and leaf.config.process_results is None else {}
        return {"use": "grade", "of": name, "name": name, **bounds}
    registered = name_of(leaf.aggregation(metric))
    how = {"aggregation": registered} if registered is not None else {k: v for k, v in task.items() if v is not None}
    return {"use": "lm_eval", "metric": metric, "filter": filter, "name": name, **how}


def _groups(tasks: LoadedTasks, part: Sequence[str]) -> list[dict[str, Any]]:
    """A row for each weight that a group of these tasks declares."""
    rows: list[dict[str, Any]] = []
    for group in tasks.groups.values():
        members = [task.task_name for task in group.get_all_tasks()]
        if not set(members) <= set(part):
            continue
        by_weight: dict[bool, list[str]] = {}
        for entry in group.aggregate_metric_list or ():
            every = {name for member in members for name in tasks.leaves[member].filters}
            filters = entry.filter_list if entry.filter_list is not None else sorted(every)
            cells = [f"{entry.metric},{filter}" for filter in filters if filter in every]
            by_weight.setdefault(bool(entry.weight_by_size), []).extend(cells)
        title = str(group.alias or group.name)
        for weighted, cells in by_weight.items():
            only = "" if len(by_weight) == 1 else f" ({'by size' if weighted else 'equal'})"
            known = {name for member in members for name in _names(tasks.leaves[member])}
            cells = [cell for cell in cells if cell in known]
            if cells:
                weight = "size" if weighted else "equal"
                rows.append({"title": f"{title}{only}", "of": members, "weight": weight, "metrics": cells})
    return rows


def _description(leaf: SingleTask, title: str, count: int) -> str:
    version = (leaf.config.metadata or {}).get("version")
    which = f", version {version}" if count == 1 and version is not None else f", {count} tasks" if count > 1 else ""
    return f"lm-eval's {title}{which}."
