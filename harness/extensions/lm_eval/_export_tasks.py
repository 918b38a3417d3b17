"""What the package's own tasks say in an export to lm-eval: documents, requests, configuration, groups."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from harness.api import Case, Task
from harness.config import resolve
from harness.config.project import find
from harness.evaluation.run import Run
from harness.extensions.lm_eval import SingleTask
from harness.plugins.approvals import NotApprovedError

Json = dict[str, Any]


class OwnTasks:
    """The tasks of lm-eval that a run asked.

    Attributes:
        leaves: task → the task with documents.
        groups: group → the package's object.
    """

    def __init__(self, leaves: Mapping[str, SingleTask], groups: Mapping[str, Any]) -> None:
        self.leaves, self.groups = leaves, groups

    def describe(self, results: Json, rows: Mapping[str, str]) -> None:
        """Complete results: rows of groups, configurations, versions, directions, sizes.

        Args:
            results: as written so far; changed in place.
            rows: key in the results → the task's name. Groups stand only where both are the same: in runs of one
                condition.
        """
        for key, name in rows.items():
            leaf = self.leaves[name]
            leaf.open()
            row = results["results"][key]
            row["alias"] = _plain(leaf.config.task_alias) or row["alias"]
            for cell in [cell for cell in row if "," in cell and not self.has(name, cell.replace("_stderr,", ","))]:
                del row[cell]
            results["configs"][key] = _plain(leaf.task.dump_config())
            results["versions"][key] = leaf.task.VERSION
            results["n-shot"][key] = leaf.config.num_fewshot or 0
            results["higher_is_better"][key] = dict(leaf.task.higher_is_better())
            results["n-samples"][key]["original"] = leaf.size
        if any(key != name for key, name in rows.items()):
            return
        for group in _bottom_up(self.groups):
            results["results"][group.name] = _plain(group.aggregate(results["results"]))
            results["versions"][group.name] = group.version
            results["group_subtasks"][group.name] = list(group.child_names)
            shots = {results["n-shot"][name] for name in group.child_names if name in results["n-shot"]}
            if len(shots) == 1:
                results["n-shot"][group.name] = shots.pop()
            better: dict[str, bool | None] = {}
            for name in group.child_names:
                for metric, higher in results["higher_is_better"].get(name, {}).items():
                    better[metric] = higher if better.get(metric, higher) == higher else None
            if better:
                results["higher_is_better"][group.name] = better
        groups = {g.name: results["results"][g.name] for g in self.groups.values() if g.has_aggregation}
        if groups:
            results["groups"] = groups

    def has(self, name: str, metric: str) -> bool:
        """Whether a task has "METRIC,FILTER" itself; the harness's own metrics (answered, …) are none of lm-eval."""
        measure, _, its_filter = metric.partition(",")
        return measure in self.leaves[name].metrics and its_filter in self.leaves[name].filters

    def sample(self, case: Case, samples: list[Any], its_filter: str) -> Json | None:
        """The parts of a sample that say what was asked and replied; None for a task without this filter.

        Args:
            case: a document.
            samples: the replies: texts, or lists of [log-likelihood, is_greedy].
            its_filter: the filter.
        """
        leaf, number = self.leaves[case.labels["task"]], case.target["document"]
        if its_filter not in leaf.filters:
            return None
        doc = leaf.document(number)
        arguments = _arguments(case)
        if leaf.output_type == "generate_until":
            resps: list[Any] = [[text if isinstance(text, str) else "" for text in samples]]
            filtered: list[Any] = [leaf.filtered(number, resps[0], its_filter)]
        else:
            rolling = case.public.get("rolling", False)
            resps = [[pairs[i][0] if rolling else pairs[i] for pairs in samples] for i in range(len(arguments))]
            filtered = [own[0] for own in resps]  # the package's filters of log-likelihoods take the first
        target = str(leaf.task.doc_to_target(doc))
        return {
            "doc_id": number,
            "doc": _plain(doc),
            "target": target,
            "arguments": {f"gen_args_{i}": {f"arg_{j}": a for j, a in enumerate(of)} for i, of in enumerate(arguments)},
            "resps": _as_text(resps),
            "filtered_resps": _as_text(filtered),
            "doc_text": json.dumps(doc, indent=2, default=_serial, ensure_ascii=False),
            "prompt_text": arguments[0][0],
        }


def own_tasks(run: Run) -> OwnTasks | None:
    """The package's tasks of a run; None for a run of another task, and where they would run what is not approved.

    Raises:
        UserError: the run's plugins, the package or its data are not here.
    """
    from harness.engines.mock import Mock

    project = run.project or find()
    try:
        plan = resolve.plan(run.spec, project, None if run.meta.get("policies_only") else Mock())
    except NotApprovedError:
        return None
    leaves: dict[str, SingleTask] = {}
    groups: dict[str, Any] = {}
    for task in (condition.task for condition in plan.conditions):
        if not _is_of_package(task):
            return None
        leaves |= task.leaves  # type: ignore[attr-defined]
        groups |= task.groups  # type: ignore[attr-defined]
    return OwnTasks(leaves, groups)


def _is_of_package(task: Task) -> bool:
    leaves = getattr(task, "leaves", None)
    return isinstance(leaves, Mapping) and all(isinstance(leaf, SingleTask) for leaf in leaves.values())


def _arguments(case: Case) -> list[tuple[Any, ...]]:
    """What the package's requests of the document were made from; a conversation as JSON, as it has those of
    servers."""
    public = case.public
    if "continuations" not in public:
        return [(_context(public), dict(case.sampling))]
    if public["rolling"]:
        return [(text,) for text, _ in public["continuations"]]
    first = _context(public)
    return [
        (first if own is None else own if isinstance(own, str) else json.dumps(own, ensure_ascii=False), text)
        for text, own in public["continuations"]
    ]


def _context(public: Mapping[str, Any]) -> str:
    if "history" not in public:
        return str(public["question"])
    messages = [*public["history"], {"role": "user", "content": public["question"]}]
    messages += [{"role": "assistant", "content": public["prefill"]}] if public["prefill"] else []
    return json.dumps(messages, ensure_ascii=False)


def _bottom_up(groups: Mapping[str, Any]) -> Iterable[Any]:
    """Every group after those in it."""
    done: dict[str, Any] = {}

    def visit(group: Any) -> None:
        for inner in group.get_all_groups(recursive=False):
            visit(inner)
        done.setdefault(group.name, group)

    for group in groups.values():
        visit(group)
    return done.values()


def _as_text(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_as_text(item) for item in value]
    return str(value)


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value, default=_serial))


def _serial(value: Any) -> Any:
    """As lm-eval writes what JSON cannot: NumPy's numbers as numbers, everything else as its text."""
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        return value.item()
    return list(value) if isinstance(value, set) else str(value)
