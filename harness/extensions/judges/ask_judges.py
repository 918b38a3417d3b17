"""Lets judges rate what they have not rated yet: each in an ordinary run, in a folder of the run that it judges."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from harness import storage
from harness.api import Facts
from harness.api.run_files import SCORES
from harness.config.plan import Plan
from harness.engines.usage import Budget, Spent
from harness.evaluation.post_run import Play
from harness.runtime.options import Options
from harness.runtime.runner import RunStoppedError

from .judge_cases import judged_lines, prepare
from .judge_plans import CASES, FOLDER, Judging
from .judge_verdicts import records


def waiting(asked: Sequence[Judging], run: Path) -> bool:
    """Whether one of the judges has not rated all there is to rate in the folder of a run."""
    return not all((run / judging.folder / SCORES).is_file() for judging in asked)


def ask(
    asked: Sequence[Judging], plan: Plan, run: Path, options: Options, execute: Play, began: float
) -> dict[str, Facts]:
    """Ask the judges, one after another; those that are done are not asked again.

    Args:
        asked: the judges.
        plan: what they judge.
        run: the folder with its finished episodes.
        options: how the run is played; its budget is for the judges too.
        execute: plays a judge's plan.
        began: when the run began, by `time.monotonic`.

    Returns:
        metric → what run.json says about its judge.

    Raises:
        RunStoppedError: an engine or the disk gave up, or the budget is spent; the same command resumes the run.
    """
    recorded: dict[str, Facts] = {}
    for judging in asked:
        folder = run / judging.folder
        if waiting([judging], run) and prepare(folder / CASES, judged_lines(plan, run, judging.metric)):
            how = replace(options, output_path=folder, resume=None, executor="local")
            spent = _spent(run, folder, began) if options.budget != Budget() else Spent()
            try:
                execute(f"judge of {judging.name}", judging.located(run), how, spent)
            except RunStoppedError as error:
                rated, of = error.stopped.get("episodes"), error.stopped.get("of")
                far = ""
                if isinstance(rated, int) and isinstance(of, int):
                    far = f" has rated {rated:,} of {of:,} answers (ratings missing: {of - rated:,})"
                error.message = f"the judge of {judging.name!r}{far}: {error.message}"
                raise
        recorded |= records(judging, run)
    return recorded


def _spent(run: Path, own: Path, began: float) -> Spent:
    """What the run and its other judges used of the budget; a judge's own journal is counted when it plays."""
    others = (path for path in run.glob(f"{FOLDER}/*/{storage.JOURNAL}") if path.parent != own)
    state = storage.JournalState(*storage.journals(run), *others, only=())
    return Spent(state.calls, state.tokens, time.monotonic() - began, state.micros)
