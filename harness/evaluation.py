"""`harness.evaluate(spec, model=…) -> Run`: the whole road from Python; the command line is a thin layer over it."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness import approvals, storage
from harness.api import Facts, Metric
from harness.config import resolve
from harness.config.leave import check_execution
from harness.config.plan import ANSWERS, Plan, prepare, survey
from harness.config.project import Project, find
from harness.config.spec import Spec, load, parse
from harness.engine_api import Engine
from harness.engines.budget import Spent
from harness.errors import DataError, SpecError, StorageError, near, raise_all
from harness.executors import await_workers, choose_executor
from harness.results import Run
from harness.runtime import manifest
from harness.runtime.abilities import lacking
from harness.runtime.options import NAMES, Options
from harness.runtime.runner import RunStoppedError, run
from harness.runtime.scoring import rescore
from harness.runtime.session import session
from harness.storage.locks import Lock
from harness.tables import EpisodeScore, TableSpec, check_headline
from harness.tables import check as check_table

if TYPE_CHECKING:
    from harness.extensions.judges import Judging


def _judges() -> Any:
    """The extension, which only runs with judges need."""
    from harness.extensions import judges

    return judges


def _has_judges(metrics: Mapping[str, Metric]) -> bool:
    return any(metric.measured_later for metric in metrics.values())


OnScore = Callable[[EpisodeScore | None, int], None]
"""Called with every finished episode and the number there will be; once with None before the first."""
OnJudge = Callable[[str], OnScore | None]
"""Called with the name of a judge's metric; returns what is called with what the judge has rated."""


def evaluate(
    spec: str | Path | Mapping[str, Any] | Spec,
    model: Engine | str | None = None,
    *,
    model_args: Mapping[str, Any] | None = None,
    overrides: Iterable[str] = (),
    limit: int | None = None,
    seed: int | None = None,
    repeats: int | None = None,
    on_score: OnScore | None = None,
    project: Project | None = None,
    judge: Engine | str | None = None,
    judge_args: Mapping[str, Any] | None = None,
    **options: Any,
) -> Run:
    """Run a spec, or resume an interrupted run, and return its results.

    Args:
        spec: a spec's file or name, its content as a mapping, or a loaded `Spec`.
        model: an engine, the name of one (with `model_args`), or None for the spec's baseline policy.
        model_args: the fields of an engine that is given by name.
        overrides: `path=value` changes to the spec.
        limit: at most this many cases per condition.
        seed: overrides the spec's `seed`.
        repeats: overrides the spec's `repeats`.
        on_score: called with (score, number of episodes in the plan) as episodes finish, first with (None, number).
        project: where names are looked up; default: the project around the working directory.
        judge: an engine, or the name of one (with `judge_args`), that judges in place of those that the spec names.
        judge_args: the fields of a judge that is given by name.
        options: how to run, by the fields of `harness.runtime.options.Options`: `output_path`, `max_calls`, ….

    Raises:
        UserError: or one of its subclasses, for every mistake that you can correct.
        RunStoppedError: an engine is unavailable, or the run reached a budget (`BudgetReachedError`).
        TypeError: an option that does not exist.
    """
    unknown = next((name for name in options if name not in NAMES), None)
    if unknown is not None:
        raise TypeError(f"evaluate() has no option {unknown!r}. {near(unknown, NAMES)}")
    how = Options(**options)
    project = project or find()
    with approvals.allowing(how.allow_code_execution):
        if isinstance(model, str):
            model = resolve.engine({"use": model, **(model_args or {})}, project)
        if isinstance(judge, str):
            judge = resolve.engine({"use": judge, **(judge_args or {})}, project)
        loaded = _loaded(spec, project, overrides, limit=limit, seed=seed, repeats=repeats)
        return execute(resolve.plan(loaded, project, model), how, on_score, judge=judge)


def _loaded(
    spec: str | Path | Mapping[str, Any] | Spec, project: Project, overrides: Iterable[str], **keys: Any
) -> Spec:
    """The spec that `evaluate` is given. Raises `SpecError`."""
    if isinstance(spec, Spec):
        if overrides or any(value is not None for value in keys.values()):
            hint = "Give overrides, limit, seed and repeats to harness.config.spec.load."
            raise SpecError("a loaded Spec is taken as it is", hint=hint)
        return spec
    if isinstance(spec, str | Path):
        return load(str(spec), project, overrides, **keys)
    return parse(spec, project, overrides, **keys)


@session()
def execute(
    plan: Plan,
    options: Options,
    on_score: OnScore | None = None,
    *,
    judge: Engine | None = None,
    on_judge: OnJudge | None = None,
    ask_judges: bool = True,
    spent: Spent | None = None,
) -> Run:
    """Play a plan, let its judges rate what was played, and write all results into `options.output_path`.

    Args:
        plan: what to play.
        options: how.
        on_score: as in `evaluate`.
        judge: judges in place of those that the spec names.
        on_judge: makes an `on_score` for each judge.
        ask_judges: False leaves the numbers of judges missing.
        spent: what was used of the budget elsewhere.

    Raises:
        UserError: as in `evaluate`.
    """
    began = time.monotonic()
    folder = options.output_path or manifest.default_folder(plan, options.overwrite)
    check_execution(plan, options.allow_code_execution, options.sandbox)
    executor = choose_executor(plan, options)
    executor.check(plan, options)
    surveyed = survey(plan)
    _check(plan, surveyed.labels)
    asked = _judges().judgings(plan, judge, surveyed.cases) if ask_judges and _has_judges(plan.metrics) else []
    check_judges((judging.plan for judging in asked), options)
    if judge is not None and not asked:
        hint = "Add one to metrics:, e.g. {use: judge, prompt: judges/helpfulness}; or let `harness score RUN --judge`."
        raise SpecError("a judge was given, and the spec has no metric that asks one", hint=hint)
    manifest.check_replay(plan)
    adopted = prepare(plan)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = Lock(folder)
    except OSError as error:
        message = f"cannot write results to {folder}: {error.strerror or error}"
        raise DataError(message, hint="Choose another --output_path.") from None
    try:
        await_workers(folder)
        total = plan.in_all(len(surveyed.ids))
        meta = manifest.begin(plan, folder, adopted, surveyed.cases, options, total)
        reports: dict[str, Facts] = {}
        notify: OnScore = on_score or (lambda score, total: None)

        def on_episode(score: EpisodeScore | None) -> None:
            notify(score, total)

        def following(played: Plan, scores: Sequence[EpisodeScore]) -> Plan | None:
            nonlocal plan
            if (upcoming := resolve.following(played, scores)) is not None:
                plan = upcoming
                manifest.write_spec(plan, folder)
            return upcoming

        try:
            order, play = surveyed.ids, executor.play
            work = run(plan, order, folder, options, on_episode, reports, play, spent, following, total)
            with session() as one:
                scores = one.run(work)
            if meta.pop("rescore", False) or "graded_again" in meta:  # the journal has the numbers of other code
                scores = rescore(plan, folder, options.sandbox)
        except BaseException as end:  # Ctrl-C too
            now = manifest.ended(manifest.reported(meta, reports, executor.report()), "stopped", folder, began)
            if isinstance(end, RunStoppedError):
                now["stopped"] = end.stopped
            with contextlib.suppress(StorageError):  # the reason for the end matters more
                storage.write_atomically(folder / manifest.META, manifest.as_json(now))
            raise
        meta = manifest.reported(meta, reports, executor.report())
        done = Run(folder, meta, plan.spec, scores, plan.metrics, plan.project)
        return judge_and_finish(done, plan, asked, options, on_judge, began)
    finally:
        lock.release()


def check_judges(plans: Iterable[Plan], options: Options) -> None:
    """Raise `SpecError` for a judge whose prompts do not fit, before anything is played for it, and `SetupError` for
    one that runs programs without leave."""
    for plan in plans:
        check_execution(plan, options.allow_code_execution, options.sandbox)
        from harness.check import examine  # what only runs with judges need

        raise_all(examine(plan))


@session()
def judge_and_finish(
    done: Run, plan: Plan, asked: list[Judging], options: Options, on_judge: OnJudge | None, began: float
) -> Run:
    """Ask the judges what they have not been asked yet, and write the results of a run whose episodes are played.

    `began`: when the run began, by `time.monotonic`; otherwise as `execute`. The caller has locked the run's folder.
    """
    if asked and _judges().waiting(asked, done.folder):
        done = finish(done, began)  # what was played can be read whatever becomes of the judges

    def play(name: str, judges: Plan, how: Options, spent: Spent) -> Run:
        return execute(judges, how, on_judge(name) if on_judge else None, spent=spent)

    if asked:
        recorded = {**done.meta.get("judges", {}), **_judges().ask(asked, plan, done.folder, options, play, began)}
        scores = _judges().with_verdicts(done.scores, done.metrics, recorded, done.folder)
        done = replace(done, meta={**done.meta, "judges": recorded}, scores=scores)
    return finish(done, began)


def _check(plan: Plan, labels: Iterable[str]) -> None:
    """What would only be found out after hours of playing: tables that cannot be made, a model without an agent."""
    raise_all(
        SpecError(problem, place=plan.spec.place("tables", i), hint=plan.spec.advice if number == 0 else None)
        for number, (i, problem) in enumerate(
            (i, problem)
            for i, table in enumerate(plan.spec.tables)
            for problem in check_table(table, labels, plan.metrics)
        )
    )
    raise_all(unfilled(plan))
    headline = plan.spec.get("headline")
    problems = check_headline(headline, labels, plan.metrics) if headline else []
    raise_all(SpecError(f"headline: {problem}", place=plan.spec.place("headline")) for problem in problems)
    raise_all(lacking(plan))
    pooled: set[str] = set()
    if "tournament" in plan.spec.data:
        from harness.extensions.tournaments.tournament import models_of

        pooled = models_of(plan.spec)
    for name in plan.engines.keys() - pooled:
        if not any(group.model == name for condition in plan.conditions for group in condition.groups):
            message = f"a model was given and no agent takes it: {plan.model}"
            hint = "Leave --model out, or let a group under agents: have `model: model`."
            if "tournament" in plan.spec.data:
                hint = "Leave --model out, or put `model` into the tournament's pool."
            key = "tournament" if "tournament" in plan.spec.data else "agents"
            raise SpecError(message, place=plan.spec.place(key), hint=hint)


def unfilled(plan: Plan) -> list[SpecError]:
    """The tables that the plan's conditions cannot fill, each with its place."""
    tables = ((plan.spec.place("tables", i), TableSpec.parse(entry)) for i, entry in enumerate(plan.spec.tables))
    return [
        SpecError(what, place=place, hint=hint)
        for place, table in tables
        if table.kind is not None
        for what, hint in table.kind.check_plan(table, plan)
    ]


def finish(done: Run, began: float) -> Run:
    """Write scores, rows and tables beside the journal; `began` as in `manifest.ended`."""
    from harness.report import render, written

    if _has_judges(done.metrics):
        _judges().annotate(done.metrics, done.meta.get("judges", {}))
    lines = "".join(json.dumps(score.to_json(), default=str) + "\n" for score in done.scores)
    storage.write_atomically(done.folder / "scores.jsonl", lines)
    storage.write_atomically(done.folder / "results.json", manifest.as_json(done.rows))
    tables = done.tables
    text = "\n\n".join(render(table, "markdown") for table in tables)
    storage.write_atomically(done.folder / "tables.md", text + "\n")
    written.write(done.folder, written.results(tables, done.headline, done.scores, done.metrics))
    meta = manifest.ended(done.meta, "finished", done.folder, began)
    storage.write_atomically(done.folder / manifest.META, manifest.as_json(meta))
    return replace(done, meta=meta)


def rescored(
    folder: Path | str, project: Project | None = None, *, allow_code_execution: bool = False, sandbox: str = "process"
) -> Run:
    """Grade and measure a finished run again from its journal, with no model. Arguments as in `evaluate`."""
    from harness.engines.mock import Mock

    project = project or find()
    before = Run.load_unscored(folder, project)  # the scores may be what is damaged
    folder = before.folder
    manifest.check_journals(before.meta, folder)
    with approvals.allowing(allow_code_execution):
        plan = replace(resolve.plan(before.spec, project, Mock()), model=str(before.meta["model"]))
    check_execution(plan, allow_code_execution, sandbox, playing=False)
    meta = manifest.graded_again(before.meta, plan, survey(plan).cases, folder)
    scores = rescore(plan, folder, sandbox)
    if _has_judges(plan.metrics):
        judged = _judges().unchanged(meta.get("judges", {}), meta["cases"].get(ANSWERS))
        scores = _judges().with_verdicts(scores, plan.metrics, judged, folder)
    return finish(replace(before, meta=meta, scores=scores), time.monotonic())
