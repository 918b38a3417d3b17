"""Judges as what follows a run (`harness.evaluation.post_run`): they rate what was played, each in a run of its own."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from typing import Any

from harness.api import Engine
from harness.api.errors import SpecError, raise_all
from harness.checks.consistency import check_plan
from harness.config.permissions import check_execution
from harness.config.plan import ANSWERS, Plan
from harness.config.project import Project
from harness.engines.mock import Mock
from harness.evaluation.post_run import Play, PostRun
from harness.evaluation.run import Run
from harness.runtime.options import Options

from .ask_judges import ask, waiting
from .judge_options import engine_of
from .judge_plans import Judging, judgings, together
from .judge_records import in_words, unchanged
from .judge_task import JudgedMetric
from .judge_verdicts import missing_in_words, with_verdicts


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
        """Let judges rate a finished run."""
        from .judge_score import judged

        return judged(folder, options)

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
        return replace(done, meta={**done.meta, "judges": recorded}, scores=scores)
