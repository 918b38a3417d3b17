"""Judges as what follows a run (`harness.evaluation.post_run`): they rate what was played, each in a run of its own."""

from __future__ import annotations

import time
from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from harness import storage
from harness.api import Engine
from harness.api.errors import DataError, Place, SpecError, raise_all
from harness.api.run_files import SPEC
from harness.checks.consistency import check_plan
from harness.config import yamls
from harness.config.permissions import check_execution
from harness.config.plan import ANSWERS, QUESTIONS, Plan, survey
from harness.config.project import Project, find
from harness.config.schema import metric_name
from harness.config.spec import Spec, parse
from harness.engines.mock import Mock
from harness.evaluation.load_run import load_run
from harness.evaluation.post_run import Play, PostRun
from harness.evaluation.run import Run
from harness.evaluation.stages import OnMore, OpenRun, follow_up
from harness.plugins import approvals
from harness.report.spending import with_spending
from harness.runtime.options import Options
from harness.runtime.run_schema import check_journals
from harness.runtime.sources import changed
from harness.storage.locks import Lock

from .ask_judges import ask, waiting
from .judge_options import engine_of, mistakes_at
from .judge_plans import Judging, judgings, plan_of, together
from .judge_records import in_words, unchanged
from .judge_task import JudgedMetric
from .judge_verdicts import costs, missing_in_words, with_verdicts

_COST: Final = "judge of "
"""What begins the name of a judge's row of costs."""

METRIC = "judge"
"""What a metric is called that is added to a run's spec, unless it has a name."""


class Judges(PostRun):
    """The judges of one run.

    Args:
        judge: an engine that judges in place of those that the spec names.
        leave_out: metrics whose judges are not asked.
    """

    def __init__(self, judge: Engine | None = None, leave_out: Container[str] = ()) -> None:
        self.judge, self.leave_out = judge, leave_out
        self.asks_people = judge is not None and judge.asks_people
        self._asked: list[Judging] = []

    @classmethod
    def from_arguments(cls, project: Project, arguments: Mapping[str, Any]) -> Judges:
        """With the engine that `judge` is or names."""
        if arguments.get("judge_metric"):
            hint = "Give it to `harness score RUN --judge`, or add the metric to the spec."
            raise SpecError("judge_metric is for finished runs", hint=hint)
        return cls(engine_of(arguments.get("judge"), arguments.get("judge_args"), project))

    @classmethod
    def again(cls, run: Run) -> Run:
        """With the ratings of judges that saw no right answers, or the same ones."""
        judged = unchanged(run.meta.get("judges", {}), run.meta["cases"].get(ANSWERS))
        return replace(run, scores=with_verdicts(run.scores, run.metrics, judged, run.folder))

    @classmethod
    def lines(cls, run: Run) -> Iterable[str]:
        """What judges did, what it took, and what they have not rated yet."""
        judges = {name: one for name, one in run.meta.get("judges", {}).items() if name in run.metrics}
        waiting = together(run.metrics, leave_out=judges)
        return [*in_words(judges, str(run.meta["model"])), *missing_in_words(run.folder, waiting)]

    @classmethod
    def score(cls, folder: str, options: Any) -> Run:
        """Let judges rate a finished run. Raises `KeyboardInterrupt` if they are not all asked."""
        from harness.cli.evaluate import pairs  # what only the command line needs
        from harness.cli.options import ASKING
        from harness.cli.progress import Progress

        if options.judge is None:
            flag = next(name for name in ("judge_args", "judge_metric") if getattr(options, name))
            raise SpecError(f"--{flag} without --judge", hint="--judge alone asks the judges of the run's spec.")
        metric = None if options.judge_metric is None else pairs(options.judge_metric, "--judge_metric")
        engine = engine_of(None if options.judge == "spec" else options.judge, options.judge_args, find())
        how = Options(**{name: getattr(options, name) for name in (*ASKING, "allow_code_execution", "sandbox")})
        with Progress(options.quiet, lines=engine is not None and engine.asks_people) as bars:
            return judge(folder, engine, metric, options=how, on_more=bars.begin)

    def plans(self, plan: Plan) -> list[tuple[Plan, int, str]]:
        """The plans of the judges; a stand-in judges where some metric names none."""
        judged = [metric for metric in plan.metrics.values() if isinstance(metric, JudgedMetric)]
        names_all = all(metric.models or metric.baseline for metric in judged)
        asked = judgings(plan, self.judge or (None if names_all else Mock()), {})
        return [
            (one.plan, one.judges * one.metric.repeats, f"for {', '.join(one.metrics)}, an answer an episode")
            for one in asked
        ]

    def check(self, plan: Plan, cases: Mapping[str, str], options: Options) -> None:
        """Refuse a judge whose prompts do not fit, or that runs programs without permission."""
        self._asked = judgings(plan, self.judge, cases, self.leave_out)
        for judging in self._asked:
            check_execution(judging.plan, options.allow_code_execution, options.sandbox)
            raise_all(check_plan(judging.plan))
            for engine in judging.plan.engines.values():
                engine.check()
        if self.judge is not None and not self._asked:
            metric = "{use: judge, prompt: judges/helpfulness}"
            hint = f"Add one to metrics:, e.g. {metric}; or let `harness score RUN --judge`."
            raise SpecError("a judge was given, and the spec has no metric that asks one", hint=hint)

    def is_waiting(self, run: Run) -> bool:
        """Whether a judge has not rated all there is."""
        return waiting(self._asked, run.folder)

    def run(self, done: Run, plan: Plan, options: Options, play: Play, began: float) -> Run:
        """Ask the judges about the answers that they have not rated yet, and give the run their numbers."""
        recorded = {**done.meta.get("judges", {}), **ask(self._asked, plan, done.folder, options, play, began)}
        scores = with_verdicts(done.scores, done.metrics, recorded, done.folder)
        meta = with_spending(
            done.meta, {f"{_COST}{name}": spent for name, spent in costs(recorded, done.folder).items()}, _COST
        )
        return replace(done, meta={**meta, "judges": recorded}, scores=scores)


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
    with mistakes_at("--judge_metric"), approvals.allowing((options or Options()).allow_code_execution):
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


def _kept_metrics(plan: Plan, run: Run, judge: Engine | None, metric: Mapping[str, Any] | None) -> set[str]:
    """The judged metrics that keep what they have: all but the one that is added, or those that name no judge."""
    judged = {name: one for name, one in plan.metrics.items() if isinstance(one, JudgedMetric)}
    if metric is not None:
        return judged.keys() - {metric_name({"use": METRIC, **metric})}
    if judge is not None:
        return set()
    recorded = run.meta.get("judges", {})
    return {name for name, one in judged.items() if not one.models and one.baseline is None and name in recorded}


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
