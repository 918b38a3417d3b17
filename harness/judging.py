"""`harness score RUN --judge`: finished runs are judged, also those whose spec asks for no judge."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness import storage
from harness.authoring.judged import JudgedMetric
from harness.config import resolve, yamls
from harness.config.plan import QUESTIONS, Plan, survey
from harness.config.project import Project, find
from harness.config.spec import Spec, metric_name, parse
from harness.engine_api import Engine
from harness.engines.mock import Mock
from harness.errors import DataError, Place, SpecError
from harness.evaluation import OnJudge, Run, judge_and_finish
from harness.judges import judgings
from harness.runtime import manifest
from harness.runtime.options import Options
from harness.runtime.sources import changed
from harness.storage.locks import Lock

METRIC = "judge"
"""What a metric is called that is added to a run's spec, unless it has a name."""


def judge(
    folder: Path | str,
    judge: Engine | None = None,
    metric: Mapping[str, Any] | None = None,
    *,
    options: Options | None = None,
    on_judge: OnJudge | None = None,
    project: Project | None = None,
) -> Run:
    """Let judges rate what they have not rated yet in a finished run. Nothing is played again.

    Args:
        folder: the run's.
        judge: judges in place of those that the spec names.
        metric: parameters of a judged metric, with `name`, that is added to the run's spec, or replaces the one of that
            name there. A spec without a judged metric gets one in any case.
        options: how to run; `output_path` and whether to resume are given.
        on_judge: as in `harness.evaluation.execute`.
        project: where names are looked up; default: the project around the working directory.

    Raises:
        UserError: no such run, questions that changed since, a judge that cannot be asked.
        RunStoppedError: an engine gave up, or a budget is spent; the same call goes on.
    """
    began = time.monotonic()
    project = project or find()
    done = Run.load(folder, project)
    manifest.check_journals(done.meta, done.folder)
    spec = done.spec
    if metric is not None or not any(isinstance(one, JudgedMetric) for one in done.metrics.values()):
        spec = _with_metric(spec, {"use": METRIC, **(metric or {})}, project)
    plan = plan_of(done, spec, project)
    cases = survey(plan).cases
    if QUESTIONS in changed(done.meta.get("cases", cases), cases):
        hint = "Answers are to the questions of then: take the change back."
        raise DataError(f"the task's questions changed since the run in {done.folder}", hint=hint)
    asked = judgings(plan, judge, cases)
    lock = Lock(done.folder)
    try:
        storage.write_atomically(done.folder / manifest.SPEC, yamls.dump(spec.data))
        done = replace(done, spec=spec, metrics=plan.metrics)
        return judge_and_finish(done, plan, asked, options or Options(), on_judge, began)
    finally:
        lock.release()


def plan_of(run: Run, spec: Spec, project: Project) -> Plan:
    """The plan of a finished run, with a stand-in for its model: nothing of it is asked."""
    return replace(resolve.plan(spec, project, Mock()), model=str(run.meta["model"]))


def _with_metric(spec: Spec, entry: dict[str, Any], project: Project) -> Spec:
    """The spec with another metric, and with a table of it. Raises `SpecError`."""
    name = metric_name(entry)
    if any(metric_name(other) == name for other in spec.data["metrics"] if _use(other) != METRIC):
        hint = "Give it a name: --judge_metric name=…"
        raise SpecError(f"the run has another metric called {name!r}", place=Place("--judge_metric"), hint=hint)
    title = f"{name}: what the judge gives"
    table = {"title": title, "rows": ["model", *spec.get("matrix", {})], "columns": "metric", "cell": name}
    table |= {"aggregate": "pooled", "error": "interval"}
    data = {**spec.data, "metrics": [m for m in spec.data["metrics"] if metric_name(m) != name] + [entry]}
    data["tables"] = [t for t in spec.data.get("tables", []) if t.get("title") != title] + [table]
    changed_spec = parse(data, project)
    return replace(changed_spec, file=spec.file)


def _use(entry: Any) -> str:
    return str(entry if isinstance(entry, str) else entry["use"])
