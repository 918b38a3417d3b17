"""The judged metrics of a plan → plans of their own, in which judges play."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from harness.api import Engine, Metric
from harness.api.errors import Place, PluginError, SpecError
from harness.config import building, resolve
from harness.config.plan import ANSWERS, Plan
from harness.config.project import Project
from harness.config.spec import Spec, parse
from harness.engines.mock import Mock
from harness.evaluation.run import Run
from harness.extensions.judges.judge_task import RATING, JudgedMetric, JudgedTask, judge_names
from harness.runtime.run_json import identity

FOLDER = "judges"
"""The folder of a run in which its judges' runs are."""
CASES = "cases.jsonl"
COUNTED = [{"use": "tokens", "kind": kind, "name": f"{kind}_tokens"} for kind in ("input", "output")]
COUNTED += [{"use": name, "name": name} for name in ("parse_failures", "parse_retries", "engine_errors")]


@dataclass(frozen=True)
class Judging:
    """The run of a judge, or of a panel of judges, that is needed for some metrics.

    Attributes:
        name: that of the first of these metrics.
        metrics: what the metrics are called that read it.
        metric: the first of them; all have the same parameters but `of`.
        plan: what the judges play.
        digest: of all that decides what judges say about an answer.
        right: digest of the right answers, where judges see them.
    """

    name: str
    metrics: tuple[str, ...]
    metric: JudgedMetric
    plan: Plan
    digest: str
    right: str | None = None

    @property
    def judges(self) -> int:
        """How many judges there are."""
        return len(self.plan.conditions[0].task.example().agents)

    @property
    def models(self) -> list[str]:
        """The judges as tables call them."""
        if self.judges == 1:
            return [self.plan.model]
        return [self.plan.engines[model].model for model in self.metric.models]

    @property
    def folder(self) -> str:
        """Where the judges' run is, below the folder of the run that they judge. Another judge has another one."""
        return f"{FOLDER}/{folder_name(self.name)}-{self.digest[:8]}"

    def located(self, run: Path) -> Plan:
        """The plan, for the answers in the folder of a run."""
        for condition in self.plan.conditions:
            assert isinstance(condition.task, JudgedTask)
            condition.task.folder = run / self.folder
        return self.plan


def folder_name(metric: str) -> str:
    """What the folder's name of a metric's judges begins with."""
    return (re.sub(r"[^\w.-]+", "-", metric).strip("-.") or "judge")[:60]


def judgings(
    plan: Plan, judge: Engine | None, cases: Mapping[str, str], leave_out: Container[str] = ()
) -> list[Judging]:
    """What the judged metrics of a plan need, those of equal parameters together.

    Args:
        plan: what is judged.
        judge: judges in place of those that the metrics name.
        cases: digests of what the plan's task asks and holds right (`Survey.cases`).
        leave_out: metrics whose judges are not asked.

    Raises:
        SpecError, PluginError: at the metric that names no judge, or one that cannot be asked.
    """
    return [_judging(plan, names, judge, cases) for names in together(plan.metrics, leave_out)]


def together(metrics: Mapping[str, Metric], leave_out: Container[str] = ()) -> list[list[str]]:
    """The names of judged metrics; those that one judge gives are in one list."""
    shared: dict[str, list[str]] = {}
    for name, metric in metrics.items():
        if isinstance(metric, JudgedMetric) and name not in leave_out:
            settings = {field.name: getattr(metric, field.name) for field in fields(metric) if field.name != "of"}
            shared.setdefault(json.dumps(settings, sort_keys=True), []).append(name)
    return [*shared.values()]


def _judging(plan: Plan, names: list[str], judge: Engine | None, cases: Mapping[str, str]) -> Judging:
    metric = plan.metrics[names[0]]
    assert isinstance(metric, JudgedMetric)
    entries = plan.spec.get("metrics", [])
    number = next(i for i, entry in enumerate(entries) if _name(entry) == names[0])

    def place(*path: Any) -> Place:
        return plan.spec.place("metrics", number, *path)

    try:
        played = _judged_by(plan, names[0], metric, judge, place)
    except (SpecError, PluginError) as error:
        inside = error.place is not None and not error.place.file.startswith("<")
        raise SpecError(error.message, place=error.place if inside else place(), hint=error.hint) from None
    right = cases.get(ANSWERS) if metric.reference else None  # what judges saw must not have changed
    decides = [identity(played), metric.judges, metric.max_chars, right]
    digest = hashlib.sha256(json.dumps(decides, sort_keys=True, default=str).encode()).hexdigest()
    return Judging(names[0], tuple(names), metric, played, digest, right)


def _judged_by(plan: Plan, name: str, metric: JudgedMetric, judge: Engine | None, place: Callable[..., Place]) -> Plan:
    models = plan.spec.get("models", {})
    engine, panel = judge, () if judge else metric.models
    for model in panel:
        if model not in models:
            known = ", ".join(models) or "none"
            hint = (
                f"models: has {known}. Write the judge there, e.g. models: {{{model}: {{use: vllm, pretrained: …}}}}."
            )
            raise SpecError(f"there is no model {model!r} to judge", place=place("model"), hint=hint)
    if len(panel) == 1:
        place_of: Callable[..., Place] = lambda *path: plan.spec.place("models", panel[0], *path)  # noqa: E731
        engine = building.engine(models[panel[0]], plan.project, place_of)
    if engine is None and not panel and metric.baseline is None:
        hint = "Name one (model: NAME, under models:), give --judge, or a policy as baseline: to try the spec out."
        raise SpecError(f"metric {name!r} has no judge", place=place(), hint=hint)
    judges = judge_names(max(1, len(panel)))
    groups: dict[str, Any] = {"default": "model"}
    if len(panel) > 1:
        groups = {"default": {"model": panel[0]}}
        groups |= {
            agent: {"model": model, "agents": [agent]} for model, agent in zip(panel[1:], judges[1:], strict=True)
        }
    data = {
        "name": f"{plan.spec.name}-{name}"[:120].replace("/", "-"),
        "description": f"What judges say of the answers of {plan.spec.name}.",
        "task": {**task_entry(metric), "judges": len(judges)},
        "protocol": {"use": "single", "repeats": metric.repeats, "parse_retries": metric.parse_retries},
        "prompts": metric.prompt,
        "agents": groups,
        "metrics": [
            *({"use": "grade", "of": of, "name": of, "bounds": [*metric.scale]} for of in (RATING, *metric.criteria)),
            {"use": "grade", "of": "missing", "name": "missing"},
            *COUNTED,
        ],
        "generation_kwargs": metric.generation_kwargs,
        "structured_output": metric.structured_output,
        "seed": plan.seed,
    }
    return judge_plan(data, plan, engine, panel, metric.baseline)


def task_entry(metric: JudgedMetric) -> dict[str, Any]:
    """The task of a judge's run."""
    return {"use": "judging", "file": CASES, "scale": [*metric.scale], "criteria": metric.criteria}


def judge_plan(
    data: Mapping[str, Any], judged: Plan, engine: Engine | None, panel: tuple[str, ...], baseline: Any
) -> Plan:
    """The plan of judges: one engine, a panel of the judged spec's models, or a policy. Errors as `resolve.plan`."""
    data = dict(data)
    if prices := judged.spec.get("prices"):  # by which a budget and tables count what the judges cost
        data["prices"] = prices
    if len(panel) > 1:
        data["models"] = {model: judged.spec.get("models", {})[model] for model in panel}
    elif engine is None:
        data["baseline"] = baseline
    spec = parse(data, judged.project)
    for path, place in judged.spec.places.items():  # who wrote what judges may run or send
        if path[:1] == ("models",) and len(path) > 1 and path[1] in panel:
            spec.places["models", path[1] if len(panel) > 1 else "model", *path[2:]] = place
    plan = resolve.plan(spec, judged.project, engine)
    label = " + ".join(plan.engines[model].model for model in panel) if len(panel) > 1 else plan.model
    return replace(plan, model=label, declared=frozenset(plan.engines if panel else ()))


def _name(entry: Any) -> str:
    return str(entry if isinstance(entry, str) else entry.get("name", entry["use"]))


def plan_of(run: Run, spec: Spec, project: Project) -> Plan:
    """The plan of a finished run, with a stand-in for its model: nothing of it is asked."""
    return replace(resolve.plan(spec, project, Mock()), model=str(run.meta["model"]))
