"""Judges of finished runs: `harness score RUN --judge` rates one, `harness judge RUN_A RUN_B` compares two."""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness import storage
from harness.api import Engine
from harness.api.errors import DataError, Place, SpecError, UserError, raise_all
from harness.api.run_files import META, SCORES, SPEC
from harness.checks.consistency import check_plan
from harness.config import resolve, yamls
from harness.config.permissions import check_execution
from harness.config.plan import QUESTIONS, Plan, survey
from harness.config.project import Project, find
from harness.config.schema import metric_name
from harness.config.spec import Spec, parse
from harness.engines.mock import Mock
from harness.evaluation.load_run import load_run
from harness.evaluation.run import Run
from harness.evaluation.stages import OnMore, OpenRun, execute, follow_up
from harness.plugins import approvals
from harness.runtime import run_json
from harness.runtime.options import Options
from harness.runtime.run_schema import check_journals, read_meta
from harness.runtime.sources import changed
from harness.storage.locks import Lock
from harness.tables import Table

from .judge_cases import prepare
from .judge_plans import CASES, FOLDER
from .judge_post_run import Judges
from .judge_task import JudgedMetric
from .judge_verdicts import spent_in
from .pairs import PairSide, pair_lines, pair_tables, pairs_plan, verdicts_of

SAMPLING = {"temperature": 0.0, "max_tokens": 1024}
METRIC = "judge"
"""What a metric is called that is added to a run's spec, unless it has a name."""


def judge(
    folder: Path | str,
    judge: Engine | None = None,
    metric: Mapping[str, Any] | None = None,
    *,
    options: Options | None = None,
    on_more: OnMore | None = None,
    project: Project | None = None,
) -> Run:
    """Let judges rate what they have not rated yet in a finished run. Nothing is played again.

    Args:
        folder: the run's.
        judge: judges in place of those that the spec names; those of other metrics than `metric`, if there is one, keep
            what they gave.
        metric: parameters of a judged metric, with `name`, that is added to the run's spec, or replaces the one of that
            name there. A spec without a judged metric gets one in any case.
        options: how to run; `output_path` and whether to resume are given.
        on_more: as in `harness.evaluation.stages.execute`.
        project: where names are looked up; default: the project around the working directory.

    Raises:
        UserError: no such run, questions that changed since, a judge that cannot be asked.
        RunStoppedError: an engine gave up, or a budget is spent; the same call resumes the run.
    """
    began = time.monotonic()
    project = project or find()
    done = load_run(folder, project)
    check_journals(done.meta, done.folder)
    spec = done.spec
    with _mistakes_at("--judge_metric"), approvals.allowing((options or Options()).allow_code_execution):
        if metric is not None or not any(isinstance(one, JudgedMetric) for one in done.metrics.values()):
            spec = _with_metric(spec, {"use": METRIC, **(metric or {})}, project)
        plan = plan_of(done, spec, project)
        judges, cases = Judges(judge, _kept_metrics(plan, done, judge, metric)), survey(plan).cases
        judges.check(plan, cases, options or Options())
    if QUESTIONS in changed(done.meta.get("cases", cases), cases):
        hint = "The answers are to the old questions: undo the change."
        raise DataError(f"the task's questions changed since the run in {done.folder}", hint=hint)
    lock = Lock(done.folder)
    try:
        storage.write_atomically(done.folder / SPEC, yamls.dump(spec.data))
        done = replace(done, spec=spec, metrics=plan.metrics)
        return follow_up(
            OpenRun(
                plan=plan,
                options=options or Options(),
                folder=done.folder,
                on_more=on_more or (lambda name: None),
                after=(judges,),
                began=began,
                done=done,
            )
        )
    finally:
        lock.release()


def prefer(
    one: PairSide,
    two: PairSide,
    judge: Engine,
    *,
    prompt: str = "judges/pairwise",
    reference: bool = False,
    repeats: int = 1,
    parse_retries: int = 2,
    max_chars: int = 20_000,
    sampling: Mapping[str, Any] = SAMPLING,
    options: Options | None = None,
    on_more: OnMore | None = None,
) -> list[Table]:
    """Let a judge choose between the answers of two sides, in both orders. The judge's run is in the folder of `one`.

    Args:
        one, two: the sides.
        judge: the judge.
        prompt: its prompt set.
        reference: whether it sees the right answer.
        repeats: how often it is asked in each order; the more frequent choice counts.
        parse_retries: how often an unreadable reply is asked for again.
        max_chars: characters of a question or an answer that it is shown.
        sampling: generation_kwargs.
        options: how to run; `output_path` and whether to resume are given.
        on_more: as in `harness.evaluation.stages.execute`.

    Raises:
        UserError: no common episode, a judge that cannot be asked.
        RunStoppedError: as `judge`.
    """
    with _mistakes_at("--prompt"):
        plan = pairs_plan(one.plan, judge, prompt, repeats, parse_retries, dict(sampling))
        how = options or Options()
        check_execution(plan, how.allow_code_execution, how.sandbox)
        raise_all(check_plan(plan))
    metas = [read_meta(side.folder / META) for side in (one, two)]
    for meta, side in zip(metas, (one, two), strict=True):
        check_journals(meta, side.folder)
    sides = [[meta["run"], meta.get("start"), dict(side.where)] for meta, side in zip(metas, (one, two), strict=True)]
    decides = [run_json.identity(plan), sides, reference, max_chars]
    digest = hashlib.sha256(json.dumps(decides, sort_keys=True, default=str).encode()).hexdigest()
    folder = one.folder / FOLDER / f"pairs-{digest[:8]}"
    for condition in plan.conditions:
        condition.task.folder = folder  # type: ignore[attr-defined]
    lock = Lock(one.folder)
    try:
        if prepare(folder / CASES, pair_lines(one, two, max_chars, reference)):
            if not (folder / SCORES).is_file():
                how = replace(options or Options(), output_path=folder, resume=None, executor="local")
                execute(plan, how, on_more("judge of pairs") if on_more else None)
        elif not (folder / CASES).stat().st_size:
            (folder / CASES).unlink()
            hint = "Pairs are episodes of the same condition, case and repeat; `--label` pairs two parts of one run."
            raise DataError(f"{one.name} and {two.name} have no episode in common", hint=hint)
    finally:
        lock.release()
    record = {"judge": plan.model, **spent_in(folder)}
    return pair_tables(one, two, verdicts_of(folder, repeats), record)


def _kept_metrics(plan: Plan, run: Run, judge: Engine | None, metric: Mapping[str, Any] | None) -> set[str]:
    """The judged metrics that keep what they have: all but the one that is added, or those that name no judge."""
    judged = {name: one for name, one in plan.metrics.items() if isinstance(one, JudgedMetric)}
    if metric is not None:
        return judged.keys() - {metric_name({"use": METRIC, **metric})}
    if judge is not None:
        return set()
    recorded = run.meta.get("judges", {})
    return {name for name, one in judged.items() if not one.models and one.baseline is None and name in recorded}


@contextlib.contextmanager
def _mistakes_at(option: str) -> Iterator[None]:
    """Place mistakes of a spec without a file at an option."""
    try:
        yield
    except UserError as error:
        if error.place is not None and error.place.file.startswith("<"):
            error.place = Place(option)
        raise


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
    table = {"title": title, "rows": ["model", *spec.swept], "columns": "metric", "metrics": name}
    table |= {"aggregate": "pooled", "uncertainty": "interval"}
    data = {**spec.data, "metrics": [m for m in spec.data["metrics"] if metric_name(m) != name] + [entry]}
    data["tables"] = [t for t in spec.data.get("tables", []) if t.get("title") != title] + [table]
    changed_spec = parse(data, project)
    changed_spec.places.update({path: place for path, place in spec.places.items() if path[:1] == ("models",)})
    return replace(changed_spec, file=spec.file)


def _use(entry: Any) -> str:
    return str(entry if isinstance(entry, str) else entry["use"])
