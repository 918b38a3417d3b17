"""`harness score RUN --parsers all`: the recorded replies read by other rules, and how far the headline moves."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from harness.api.errors import SpecError, near
from harness.cli.usage import Parser
from harness.config import resolve
from harness.config.plan import Plan
from harness.config.project import Project, find
from harness.engines.mock import Mock
from harness.evaluation.post_run import Play, PostRun
from harness.evaluation.rescore import rescored
from harness.evaluation.run import Run
from harness.evaluation.stages import finish
from harness.plugins import approvals
from harness.runtime.options import Options

from .readers import READERS, Reader, Reading, read_again

KEY = "parsers"
"""Of run.json: reader → what it makes of the run."""


def of_score(command: Parser) -> None:
    """The option of `harness score`."""
    group = command.group("parsers (no model is needed)")
    text = f"read the recorded replies by these rules too: {', '.join(READERS)}, or all"
    group.add_argument("--parsers", metavar="R,…", help=text)


class Readers(PostRun):
    """The replies of a finished run, read by other rules."""

    @classmethod
    def from_arguments(cls, project: Project, arguments: Mapping[str, Any]) -> Readers:
        """Refuse: only finished runs are read again."""
        raise SpecError("readers are for finished runs", hint="Give them to `harness score RUN --parsers all`.")

    @classmethod
    def again(cls, run: Run) -> Run:
        """Without what readers made of it before."""
        return replace(run, meta={name: value for name, value in run.meta.items() if name != KEY})

    @classmethod
    def lines(cls, run: Run) -> Iterator[str]:
        """The headline by each reader, and how far apart they are."""
        found = run.meta.get(KEY, {})
        if not found:
            return
        if not _is_summary(found):  # run.json may be a stranger's
            yield f"run.json says under {KEY!r} what no reader has written; `harness score --parsers all` reads again"
            return
        yield f"{run.headline.title}: the recorded replies, read by other rules"
        yield from (_line(reader, one) for reader, one in found.items())
        values = [one["value"] for one in found.values() if one["value"] is not None]
        if len(values) > 1:
            yield f"spread: {max(values) - min(values):.4f}{_interval(run)}; the errors in the tables leave it out"

    @classmethod
    def score(cls, folder: str, options: Any) -> Run:
        """Grade a finished run again, and read its replies by the rules that `--parsers` names."""
        chosen = _readers(str(options.parsers))
        done = rescored(folder, allow_code_execution=options.allow_code_execution, sandbox=options.sandbox)
        with approvals.allowing(options.allow_code_execution):
            plan = replace(resolve.plan(done.spec, find(), Mock()), model=str(done.meta["model"]))
            found = {reader: _summary(done, read_again(plan, done.folder, reader)) for reader in chosen}
        return finish(replace(done, meta={**done.meta, KEY: found}), time.monotonic())

    def plans(self, plan: Plan) -> list[tuple[Plan, int, str]]:
        """Nothing is played."""
        return []

    def check(self, plan: Plan, cases: Mapping[str, str], options: Options) -> None:
        """Nothing can go wrong beforehand."""

    def is_waiting(self, run: Run) -> bool:
        """Nothing waits."""
        return False

    def run(self, done: Run, plan: Plan, options: Options, play: Play, began: float) -> Run:
        """The run as it is."""
        return done


def _readers(text: str) -> Iterable[Reader]:
    """The rules that an option names. Raises `SpecError` for one that there is not."""
    if text == "all":
        return tuple(READERS)
    names = dict.fromkeys(part.strip() for part in text.split(","))
    for name in names:
        if name not in READERS:
            raise SpecError(f"there is no reader {name!r}", hint=near(name, (*READERS, "all")))
    return tuple(name for name in READERS if name in names)


def _interval(run: Run) -> str:
    """The headline's own error, where it has one."""
    cell = run.headline.cell(run.scores)
    if cell.low is None or cell.high is None:
        return ""
    return f", beside a 95 % interval from {cell.low:.4f} to {cell.high:.4f}"


def _is_summary(found: Any) -> bool:
    return isinstance(found, dict) and all(
        reader in READERS
        and isinstance(one, dict)
        and isinstance(one.get("value", ""), int | float | None)
        and all(type(one.get(key)) is int for key in ("read", "asked", "other_course"))
        and isinstance(one.get("dropped_fields"), dict)
        for reader, one in found.items()
    )


def _summary(run: Run, reading: Reading) -> dict[str, Any]:
    return {
        "value": run.headline.cell(reading.scores).value,
        "read": reading.read,
        "asked": reading.asked,
        "dropped_fields": dict(sorted(reading.dropped_fields.items())),
        "other_course": reading.other_course,
    }


def _line(reader: str, one: Mapping[str, Any]) -> str:
    value = "no number" if one["value"] is None else f"{one['value']:.4f}"
    lost = ", ".join(f"{name} {count}" for name, count in one["dropped_fields"].items())
    course = f", {one['other_course']} episodes take another course" if one["other_course"] else ""
    read = f"{one['read']} of {one['asked']} read, dropped fields: {lost or 'none'}{course}"
    return f"  {reader:10} {value:>10}  {read}  ({READERS[reader]})"  # type: ignore[index]
