"""Judges of finished runs: `harness score RUN --judge` rates one, `harness judge RUN_A RUN_B` compares two."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from harness.api import Engine
from harness.api.errors import DataError, raise_all
from harness.api.run_files import META, SCORES
from harness.checks.consistency import check_plan
from harness.config.permissions import check_execution
from harness.evaluation.stages import OnMore, execute
from harness.runtime import run_json
from harness.runtime.options import Options
from harness.runtime.run_schema import check_journals, read_meta
from harness.storage.locks import Lock
from harness.tables import Table

from .judge_cases import prepare
from .judge_options import mistakes_at
from .judge_plans import CASES, FOLDER
from .judge_post_run import judge
from .judge_verdicts import spent_in
from .pairs import PairSide, pair_lines, pair_tables, pairs_plan, verdicts_of

__all__ = ["judge", "prefer"]

SAMPLING = {"temperature": 0.0, "max_tokens": 1024}


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
    with mistakes_at("--prompt"):
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
