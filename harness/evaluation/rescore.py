"""A finished run graded and measured again from its journal, with no model."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from harness.api.errors import SetupError
from harness.config import resolve
from harness.config.permissions import check_execution
from harness.config.plan import survey
from harness.config.project import Project, find
from harness.evaluation import post_run
from harness.evaluation.run import Run
from harness.evaluation.stages import finish
from harness.plugins import approvals


def rescored(
    folder: Path | str, project: Project | None = None, *, allow_code_execution: bool = False, sandbox: str = "process"
) -> Run:
    """Grade and measure a finished run again from its journal, with no model. Arguments as in `evaluate`."""
    from harness.engines.mock import Mock
    from harness.evaluation.load_run import load_unscored
    from harness.runtime.rescoring import rescore
    from harness.runtime.resume_checks import graded_again
    from harness.runtime.run_schema import check_journals, ended_by_rule
    from harness.runtime.used_extensions import advice, missing_extensions
    from harness.runtime.verification import same_readers

    project = project or find()
    before = load_unscored(folder, project)  # the scores may be what is damaged
    folder = before.folder
    if missing := missing_extensions(before.meta):
        raise SetupError(f"{folder} cannot be graded again: {advice(missing)}")
    check_journals(before.meta, folder)
    with approvals.allowing(allow_code_execution):
        plan = replace(resolve.plan(before.spec, project, Mock()), model=str(before.meta["model"]))
        plan = replace(plan, metrics={**before.metrics, **plan.metrics})
    check_execution(plan, allow_code_execution, sandbox, playing=False)
    meta = graded_again(before.meta, plan, survey(plan).cases, folder, texts_read=same_readers(plan, folder))
    left_out = {*(ended_by_rule(meta) or {}).get("not_counted", ())}
    scores = [score for score in rescore(plan, folder, sandbox) if score.id not in left_out]
    done = replace(before, meta=meta, scores=scores)
    for cls in post_run.of_run(done):
        done = cls.again(done)
    return finish(done, time.monotonic())
