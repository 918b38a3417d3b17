"""The steps of a run, in order (`STAGES`; `harness plan --explain` prints them), and `execute`, which takes them."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from harness import storage
from harness.api import Replays
from harness.api.errors import DataError, SetupError, SpecError, StorageError, raise_all
from harness.api.run_files import META, RESULTS, SCORES, TABLES_MD
from harness.config.permissions import check_execution
from harness.config.plan import Plan, Survey, prepare, survey
from harness.engines.usage import Spent
from harness.evaluation import post_run
from harness.evaluation.post_run import PostRun
from harness.evaluation.run import Run
from harness.plugins import approvals
from harness.plugins.lookup import loadable_classes
from harness.report.spending import with_spending
from harness.runtime import run_json
from harness.runtime.abilities import lacking
from harness.runtime.executors import Executor, choose_executor
from harness.runtime.options import Options
from harness.runtime.runner import RunStoppedError, work_of
from harness.runtime.runner import run as play_all
from harness.runtime.session import session
from harness.runtime.stopping import StoppingRule
from harness.storage.locks import LOCK, Lock, holder
from harness.tables import EpisodeScore, TableSpec, check_headline
from harness.tables import check as check_table

if TYPE_CHECKING:
    from harness.runtime.listeners import RunListener

OnScore = Callable[[EpisodeScore | None, int], None]
"""Called with every finished episode and the number there will be; once with None before the first."""
Asked = Mapping[str, "PostRun | StoppingRule | RunListener"]
"""What the caller asks for beside the run, by name."""
OnMore = Callable[[str], OnScore | None]
"""Called with what is played after the episodes; returns what is called with the scores of that."""


# --------------------------------------------------------------------------------------------- stages


@dataclass(frozen=True, kw_only=True)
class OpenRun:
    """A run in progress: its input, and what its stages have added so far.

    Attributes:
        plan: what to play.
        options: how.
        folder: where its results are written.
        on_score: as in `evaluate`.
        on_more: makes an `on_score` for what is played after the episodes.
        rule: may end the run before its plan does.
        listeners: hear what is played; each by its name.
        after: what follows once the episodes are scored.
        spent: what other runs have used of the budget.
        began: when it began, by `time.monotonic`.
        executor: where episodes are played (from `approve`).
        survey: all cases, and digests of them (from `look_at_cases`).
        meta: run.json (from `open_folder`).
        scores: one for each episode, in plan order (from `play`).
        done: the results (from `follow`).
    """

    plan: Plan
    options: Options
    folder: Path
    on_score: OnScore = lambda score, total: None
    on_more: OnMore = lambda name: None
    rule: StoppingRule | None = None
    listeners: Mapping[str, RunListener] = field(default_factory=dict)
    after: tuple[PostRun, ...] = ()
    spent: Spent = field(default_factory=Spent)
    began: float = field(default_factory=time.monotonic)
    executor: Executor | None = None
    survey: Survey = field(default_factory=Survey)
    meta: dict[str, Any] = field(default_factory=dict)
    scores: tuple[EpisodeScore, ...] = ()
    done: Run | None = None

    @property
    def run(self) -> Run:
        """The results, once the stage has run."""
        assert self.done is not None
        return self.done


def approve(run: OpenRun, held: contextlib.ExitStack) -> OpenRun:
    """Check that all that would run or be sent is approved; choose an executor."""
    check_execution(run.plan, run.options.allow_code_execution, run.options.sandbox)
    executor = choose_executor(run.plan, run.options)
    if run.listeners and not executor.is_heard:
        message = f"--{next(iter(run.listeners))}: what the workers of this executor play is not heard in this process"
        raise SetupError(message, hint="Leave --executor out (or `executor:` of the spec): this process can play too.")
    executor.check(run.plan, run.options)
    return replace(run, executor=executor)


def look_at_cases(run: OpenRun, held: contextlib.ExitStack) -> OpenRun:
    """Make every case, once, and give every episode its id."""
    return replace(run, survey=survey(run.plan))


def check(run: OpenRun, held: contextlib.ExitStack) -> OpenRun:
    """Check before anything is written that engines can start and do what the plan needs, and that all tables can be
    made."""
    raise_all(wrong_tables(run.plan, run.survey.labels))
    raise_all(lacking(run.plan, run.survey.episodes))
    _refuse_idle_models(run.plan)
    if not (run.folder / META).exists():  # a run that has begun may need its engines no more
        for engine in run.plan.engines.values():
            engine.check()
        if run.options.use_cache is not None and run.plan.engines:
            from harness.engines.cache import check_path  # what only a cache needs

            check_path(run.options.use_cache)
    if any(engine.collects for engine in run.plan.engines.values()):
        from harness.engines.waves import check as check_collecting

        check_collecting(run.plan.engines.values(), run.options)
    for one in run.after:
        one.check(run.plan, run.survey.cases, run.options)
    if run.rule is not None:
        _begin(run.rule, run)
    if run.options.reuse is not None:
        from harness.engines import recorded_calls

        recorded_calls.check(run.options.reuse, run.folder)
    if any(isinstance(engine, Replays) for engine in run.plan.engines.values()):
        from harness.runtime.resume_checks import check_replay  # what only a replay needs

        check_replay(run.plan)
    return run


def _begin(rule: StoppingRule, run: OpenRun) -> None:
    """Let the rule look at what is to be played. Raises `SpecError`, `SetupError` where it could not end the run."""
    plan, count = run.plan, len(run.survey.episodes)
    if any(engine.collects for engine in plan.engines.values()):
        raise SetupError("no rule can end a run whose engine collects all requests in one batch", hint=_NO_RULE)
    if run.after:
        raise SetupError("no rule can end a run that others rate once it is played", hint=_NO_RULE)
    if plan.in_all(count) > count or any(key.seats_agents for key in plan.keys):
        names = ", ".join(key.name for key in plan.keys)
        raise SetupError(f"no rule can end a run whose conditions or pairings {names} chooses", hint=_NO_RULE)
    if rule.in_rounds and run.executor is not None and not run.executor.takes_rounds:
        message = "each round of the rule would start the executor's workers anew"
        raise SetupError(message, hint="Leave --executor out (or `executor:` of the spec): this process plays rounds.")
    rule.begin(plan, run.survey.episodes)


_NO_RULE: Final = "Play the whole run: leave the rule out."


def open_folder(run: OpenRun, held: contextlib.ExitStack) -> OpenRun:
    """Lock the run's folder, and write run.json and spec.yaml or check those of the run to be resumed."""
    plan, options, folder = run.plan, run.options, run.folder
    if (
        folder / approvals.MARKER
    ).is_file():  # the folder of a run is not the user's own: its plugins would need approval
        raise DataError(f"{folder} is a project, not a folder for a run", hint="Choose another --output_path.")
    adopted = prepare(plan)
    if not folder.exists():
        run_json.refuse_new(folder, options)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = Lock(folder)
    except OSError as error:
        message = f"cannot write results to {folder}: {error.strerror or error}"
        raise DataError(message, hint="Choose another --output_path.") from None
    held.callback(lock.release)
    if workers := [*folder.glob(f"{LOCK}-*")]:  # the locks that workers of an earlier run have left
        for cls in loadable_classes("executors", Executor).values():
            cls.clear(folder)
        if any(holder(worker) is not None for worker in workers):
            raise StorageError(f"workers of an earlier run still write into {folder}", hint="End them first.")
    total = plan.in_all(len(run.survey.episodes))
    keys = {key.name: one for key in plan.keys if (one := key.planned(plan, run.survey.episodes))}
    meta = run_json.describe(plan, folder, adopted, run.survey.cases, total) | {"keys": keys}
    if (folder / META).is_file():
        from harness.runtime.resume_checks import resumed  # what only a folder with a run needs

        if (earlier := resumed(plan, folder, meta, options)) is not None:
            return replace(run, meta=earlier)
    return replace(run, meta=run_json.begin(plan, folder, meta, options))


def play(run: OpenRun, held: contextlib.ExitStack) -> OpenRun:
    """Play, journal and score every episode that the journal does not yet hold."""
    executor, folder, meta = run.executor, run.folder, dict(run.meta)
    assert executor is not None
    options, total = run.options, run.plan.in_all(len(run.survey.episodes))
    on_score = lambda score: run.on_score(score, total)  # noqa: E731
    work = None
    try:
        work = work_of(run.plan, run.survey.episodes, folder, options, on_score, run.spent)
        work.begin(run.rule, was_finished=meta.get("status") == "finished")
        if run.listeners:
            from harness.runtime.listeners import Listeners  # what only a run needs that is heard

            work.listeners = Listeners(run.listeners)
            held.callback(work.listeners.run_ended)
            work.listeners.run_began(work.plan, folder, meta)
        with session() as one:
            try:
                one.run(play_all(work, executor.play))
            except RunStoppedError:
                if not work.interrupted:
                    raise
            if work.interrupted:  # the first Ctrl-C has ended it in good order
                raise KeyboardInterrupt
        plan, scores, enough = work.plan, work.scores, work.is_enough
        if meta.pop("rescore", False) or "graded_again" in meta:  # the journal has the numbers of other code
            from harness.runtime.rescoring import rescore

            kept = {score.id for score in scores}
            scores = [score for score in rescore(plan, folder, options.sandbox) if score.id in kept]
    except BaseException as end:  # Ctrl-C too
        reports, done = (work.reports, work.done.values()) if work is not None else ({}, ())
        meta["model"] = next((score.model for score in done), meta["model"])
        now = run_json.ended(run_json.reported(meta, reports, executor.report()), "stopped", folder, run.began)
        if isinstance(end, RunStoppedError):
            now["stopped"] = end.stopped
        with contextlib.suppress(StorageError):  # the reason for the end matters more
            storage.write_atomically(folder / META, run_json.as_json(now))
        raise
    meta["model"] = next((score.model for score in scores), meta["model"])  # an engine may learn it when it starts
    if work.listeners is not None:
        work.listeners.finished = True
    meta = with_spending(run_json.reported(meta, work.reports, executor.report()), {}, _NOT_COUNTED)
    if enough and run.rule is not None:
        counted = {score.id for score in scores}
        other = {"not_counted": sorted(work.done.keys() - counted)}
        meta["stopped"] = {**run.rule.record(), "episodes": len(scores), "of": total, **other}
        from harness.runtime.usage_so_far import usage_but_of  # what only a run needs that a rule ends

        paid = usage_but_of(counted, storage.JournalState(*storage.journals(folder)), meta, work.plan)
        meta = with_spending(meta, {_NOT_COUNTED: paid} if paid else {}, _NOT_COUNTED)
    return replace(run, plan=replace(plan, model=str(meta["model"])), meta=meta, scores=tuple(scores))


_NOT_COUNTED: Final = "episodes that count in no number"
"""What was spent on those that were under way when a rule ended the run."""


def follow(run: OpenRun, held: contextlib.ExitStack) -> OpenRun:
    """Let extensions add to a run whose episodes are scored."""
    plan = run.plan
    done = run.done or Run(run.folder, run.meta, plan.spec, list(run.scores), plan.metrics, plan.project)
    if any(one.is_waiting(done) for one in run.after):
        done = finish(done, run.began)  # the episodes can be read even if what follows fails

    def another(name: str, plan: Plan, how: Options, spent: Spent) -> Run:
        return execute(plan, replace(how, stop_unless=None), run.on_more(name), spent=spent)

    for one in run.after:
        done = one.run(done, plan, run.options, another, run.began)
    return replace(run, done=done)


def write_results(run: OpenRun, held: contextlib.ExitStack) -> OpenRun:
    """Write scores, rows and tables beside the journal."""
    return replace(run, done=finish(run.run, run.began))


STAGES = (approve, look_at_cases, check, open_folder, play, follow, write_results)
"""The steps of a run. Each takes the result of the one before it; the stack holds what is released at the end."""


@session()
def follow_up(run: OpenRun) -> Run:
    """The last stages, for a finished run whose folder the caller has locked. Raises as `PostRun.run`."""
    with contextlib.ExitStack() as held:
        return write_results(follow(run, held), held).run


@session()
def execute(
    plan: Plan,
    options: Options,
    on_score: OnScore | None = None,
    *,
    asked_for: Asked | None = MappingProxyType({}),
    on_more: OnMore | None = None,
    spent: Spent | None = None,
) -> Run:
    """Play a plan, run the extensions that its metrics need, and write all results into `options.output_path`.

    `asked_for`: what is to follow, by name of `[post_run]`; it adds to what the metrics need and has precedence. None:
    nothing follows. A `StoppingRule` among it may end the run, and a `RunListener` hears it. All else is as in
    `OpenRun`. Raises as `evaluate`.
    """
    folder = options.output_path or run_json.default_folder(plan, options.overwrite)
    asked = asked_for or {}
    later = {name: one for name, one in asked.items() if isinstance(one, PostRun)}
    run = OpenRun(
        plan=plan,
        options=options,
        folder=folder,
        on_score=on_score or (lambda score, total: None),
        on_more=on_more or (lambda name: None),
        after=tuple(() if asked_for is None else post_run.following(plan.metrics, later)),
        spent=spent or Spent(),
        rule=next((one for one in asked.values() if isinstance(one, StoppingRule)), None),
        listeners={name: one for name, one in asked.items() if not isinstance(one, PostRun | StoppingRule)},
    )
    with contextlib.ExitStack() as held:
        for stage in STAGES:
            run = stage(run, held)
        return run.run


def _refuse_idle_models(plan: Plan) -> None:
    """Raise `SpecError` for a model that plays no agent."""
    if plan.engines.keys() - plan.seated_models - {*plan.inner.values()}:
        message = f"a model was given and no agent uses it: {plan.model}"
        key = next((key for key in plan.keys if key.seats_agents), None)
        takes = key.takes_model if key else "let a group under agents: have `model: model`"
        place = plan.spec.place(key.name if key else "agents")
        raise SpecError(message, place=place, hint=f"Leave --model out, or {takes}.")


def wrong_tables(plan: Plan, labels: Collection[str] | Mapping[str, Sequence[Any]]) -> list[SpecError]:
    """What is wrong with the tables and the headline of a plan's spec, each with its place.

    `labels`: those that its scores will have, if possible with their values.
    """
    wrong: list[SpecError] = []
    for i, entry in enumerate(plan.spec.tables):
        place = plan.spec.place("tables", i)
        # A table of the spec that this one extends may be about conditions that this one leaves out.
        among = labels if place.file == str(plan.spec.file) else dict.fromkeys(labels, ())
        for problem in check_table(entry, among, plan.metrics):
            wrong.append(SpecError(problem, place=place, hint=None if wrong else plan.spec.advice))
    if not wrong:  # then every entry can be read
        for i, table in enumerate(map(TableSpec.parse, plan.spec.tables)):
            unfilled = table.kind.check_plan(table, plan) if table.kind is not None else ()
            wrong += [SpecError(what, place=plan.spec.place("tables", i), hint=hint) for what, hint in unfilled]
    if headline := plan.spec.get("headline"):
        place = plan.spec.place("headline", "where" if "where" in headline else "metric")
        problems = check_headline(headline, labels, plan.metrics)
        wrong += [SpecError(f"headline: {problem}", place=place) for problem in problems]
    return wrong


def finish(done: Run, began: float) -> Run:
    """Write scores, rows and tables beside the journal; `began` as in `run_json.ended`."""
    from harness.report import render, tables_json

    for name, metric in done.metrics.items():
        metric.recall(name, done.meta)
    status = "stopped" if "stopped" in done.meta else "finished"
    done = replace(done, meta=run_json.ended(done.meta, status, done.folder, began))
    lines = "".join(json.dumps(score.to_json(), default=str) + "\n" for score in done.scores)
    storage.write_atomically(done.folder / SCORES, lines)
    storage.write_atomically(done.folder / RESULTS, run_json.as_json(done.rows))
    tables = done.tables
    text = "\n\n".join(render(table, "markdown") for table in tables)
    storage.write_atomically(done.folder / TABLES_MD, text + "\n")
    tables_json.write(done.folder, tables_json.results(tables, done.headline, done.scores))
    storage.write_atomically(done.folder / META, run_json.as_json(done.meta))
    return done
