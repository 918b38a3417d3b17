"""A run begins in its folder: anew, or where an earlier run may be resumed, graded again, or taken for its replies."""

from __future__ import annotations

import difflib
import itertools
import shlex
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from harness import storage
from harness.api import Replays
from harness.api.errors import DataError
from harness.api.run_files import META, RESULTS, SCORES, SPEC, TABLES, TABLES_MD
from harness.api.version import __version__
from harness.config import yamls
from harness.config.keys import seating_keys
from harness.config.plan import ANSWERS, QUESTIONS, Plan
from harness.plugins.manifests import offers
from harness.runtime.options import Options
from harness.runtime.run_json import as_json, identity, now, write_spec
from harness.runtime.run_schema import check_journals, read_meta
from harness.runtime.sources import changed, code

_ELSEWHERE = "choose another --output_path, or add --overwrite to replace the run"
_PROMPTING_KEYS = (
    "task",
    "protocol",
    "prompts",
    "agents",
    "generation_kwargs",
    "structured_output",
    "dedupe_calls",
    "limits",
    "seed",
)
"""The keys of a spec that decide what a model is asked."""
_RESULTS = (SCORES, RESULTS, TABLES_MD, TABLES)
_OF_RUN = (
    *(META, SPEC, *_RESULTS, "journal*.jsonl", "samples*.jsonl", "requests*.jsonl"),
    *("errors*.jsonl", "shared.sqlite*", "engine*.log", "batches*.jsonl"),
)
"""What a run writes into its folder, as patterns."""


def resumed(plan: Plan, folder: Path, meta: dict[str, Any], options: Options) -> dict[str, Any] | None:
    """run.json of the run in `folder`, which `meta` is about to continue; None once it is gone.

    It goes where `options.overwrite` is set, or where it has recorded nothing. `rescore` is true in it where
    metrics have changed since the run began: all is to be measured again. Raises `DataError` if it is not the same run.
    """
    try:
        return _go_on(plan, folder, meta, options.resume)
    except DataError:
        # A run whose engine never started has lost nothing if the next command corrects it.
        if not options.overwrite and (options.resume or _has_recorded(folder)):
            raise
    # What a run wrote, and what followed it in a folder of its name: that has cases, other runs there have not.
    asked = [file for name in offers("post_run") for file in folder.glob(f"{name}/*/cases.jsonl")]
    written = (one.glob(pattern) for one in (folder, *(file.parent for file in asked)) for pattern in _OF_RUN)
    for path in [*itertools.chain.from_iterable(written), *asked]:
        path.unlink()
    return None


def _go_on(plan: Plan, folder: Path, meta: dict[str, Any], resume: bool | None) -> dict[str, Any]:
    """run.json of the run in `folder`, which `meta` is about to continue. Raises `DataError`."""
    if resume is False:
        hint = "Choose another --output_path, drop --no-resume, or add --overwrite to replace it."
        raise DataError(f"{folder} already contains a run", hint=hint)
    earlier = read_meta(folder / META)
    if earlier["identity"] != meta["identity"]:
        own = [word for word in earlier.get("command") or [""] if word not in ("--overwrite", "--no-resume")]
        again = f", or continue it with its own command: {shlex.join(own)}" if Path(own[0]).name == "harness" else ""
        raise DataError(
            f"{folder} already contains a run with a different configuration:\n"
            f"{_difference(earlier['identity'], meta['identity'])}",
            hint=f"Choose another folder with --output_path, add --overwrite to replace that run{again}.",
        )
    check_journals(earlier, folder)
    finished = earlier.get("status") == "finished"
    rescore = _check_code(earlier, meta, folder, finished)
    # Tables are not part of what was measured: they may have changed, and reports are to show the new ones.
    write_spec(plan, folder)
    if not finished:
        for name in _RESULTS if earlier.pop("stopped", None) else ():  # now it continues: these were of a part
            (folder / name).unlink(missing_ok=True)
        # A session that was killed lasted until it last wrote to its journal.
        killed = max((path.stat().st_mtime for path in storage.journals(folder) if path.exists()), default=0.0)
        earlier["duration"] = _duration(earlier, killed)
        earlier |= {"status": "running", "session_start": meta["session_start"], "end": None}
        if rescore:
            earlier |= {"rescore": True, "code": meta["code"]}
        storage.write_atomically(folder / META, as_json(earlier))
    return {**earlier, "command": meta["command"]}


def _has_recorded(folder: Path) -> bool:
    """Whether a run has recorded anything: by its journals, or by what its run.json says about them."""
    if any(path.stat().st_size for path in storage.journals(folder) if path.exists()):
        return True
    try:
        return any(read_meta(folder / META).get("journals", {}).values())
    except DataError:  # damaged: what was there is not known
        return True


def _check_code(earlier: Mapping[str, Any], meta: Mapping[str, Any], folder: Path, finished: bool) -> bool:
    """Whether what is there has to be measured again, since metrics changed. Raises `DataError` for other changes."""
    if other := changed(earlier.get("cases", meta["cases"]), meta["cases"]):
        score = f"`harness score {shlex.quote(str(folder))}` grades again; or "
        hint = f"{score if finished and other == [ANSWERS] else ''}{_ELSEWHERE}; or undo the change."
        raise DataError(f"the task's {' and '.join(other)} changed since the run in {folder}", hint=hint)
    files_changed = {part: changed(earlier["code"].get(part, {}), files) for part, files in meta["code"].items()}
    if not any(files_changed.values()):
        return False
    files = ", ".join(sorted(set().union(*files_changed.values())))
    if finished and not files_changed["play"]:
        hint = f"`harness score {shlex.quote(str(folder))}` grades again; or {_ELSEWHERE}."
        raise DataError(f"code changed since the run in {folder}: {files}", hint=hint)
    if files_changed["play"] or files_changed["task"]:
        hint = f"What was played stays as it is: {_ELSEWHERE}; or undo the change."
        raise DataError(f"code changed since the run in {folder} began: {files}", hint=hint)
    return True


def _duration(meta: Mapping[str, Any], until: float) -> float:
    """Seconds of all sessions. One without an end in run.json lasted until `until`, a POSIX time."""
    before = float(meta.get("duration", 0.0))
    if "session_start" not in meta:
        return before
    # Never less than nothing, whatever was done to the clock.
    return round(before + max(0.0, until - datetime.fromisoformat(meta["session_start"]).timestamp()), 3)


def graded_again(
    meta: Mapping[str, Any], plan: Plan, cases: Mapping[str, str], folder: Path, texts_read: bool
) -> dict[str, Any]:
    """run.json after `harness score`: the numbers are those of the code and the right answers there are now.

    `texts_read`: whether recorded moves are compared with their texts.

    Raises `DataError` if the questions are no longer those that were asked.
    """
    other = changed(meta.get("cases", cases), cases)
    if QUESTIONS in other:
        hint = "The answers are to the old questions: run it in another folder, or undo the change."
        raise DataError(f"the task's {' and '.join(other)} changed since the run in {folder}", hint=hint)
    current = code(plan)
    again = {part: current[part] for part in ("task", "metrics")}
    files = {name for part, hashes in again.items() for name in changed(meta["code"].get(part, {}), hashes)}
    graded = [
        *meta.get("graded_again", ()),
        {"at": now(), "harness": __version__, "changed": [*sorted(files), *other], "texts_read": texts_read},
    ]
    return {**meta, "code": {**meta["code"], **again}, "cases": dict(cases), "graded_again": graded}


def check_replay(plan: Plan) -> None:
    """Raises `DataError` if a replay would answer other questions than the recorded ones: it goes by calls' ids."""
    engine = plan.engines.get("model")
    if not isinstance(engine, Replays) or not (engine.recorded / META).is_file():
        return
    recorded, current = read_meta(engine.recorded / META)["identity"], identity(plan)
    keys = (*_PROMPTING_KEYS, *seating_keys())
    then = {key: recorded["spec"].get(key) for key in keys} | {"texts": recorded["prompts"]}
    here = {key: current["spec"].get(key) for key in keys}
    # A part of the matrix may need a part of the prompt sets.
    here["texts"] = {name: digest for name, digest in recorded["prompts"].items() if name not in current["prompts"]}
    here["texts"] |= current["prompts"]
    if then != here:
        raise DataError(
            f"the run in {engine.recorded} was asked other questions:\n{_difference(then, here)}",
            hint=f"Its own spec is {engine.recorded / SPEC}; only metrics, tables, limit and matrix may differ.",
        )


def _difference(old: Any, new: Any) -> str:
    before, after = yamls.dump(old).splitlines(), yamls.dump(new).splitlines()
    lines = list(difflib.unified_diff(before, after, "there", "asked for", lineterm="", n=1))
    return "\n".join(lines[:40])
