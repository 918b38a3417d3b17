"""Whether all that a run states follows from what its models answered: `verify`.

Levels, each with its reasons:

- claimed: something differs, or cannot be compared. The numbers are what the author says.
- consistent: spec, prompts and code are those that are here; every prompt, rendered again, is the one that was asked;
  every reply, read again, gives the recorded move; every episode, graded again, gives the stated scores. Whoever can
  run this program can invent such a run with invented replies.
- asked again: some of the calls, drawn at random, were asked again: at temperature 0 the same texts came back, above it
  the recorded replies are as likely as what the model says.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal

from harness import __version__, storage
from harness.api import Engine, Move
from harness.api.errors import DataError
from harness.api.run_files import RESULTS, SCORES, TABLES, TABLES_MD
from harness.config import resolve
from harness.config.foreign_data import readings
from harness.config.plan import Plan, prepare, survey
from harness.config.project import Project
from harness.engines.call_keys import engine_facts
from harness.evaluation.load_run import load_unscored
from harness.evaluation.run import Run
from harness.evaluation.stages import execute, finish
from harness.plugins import approvals
from harness.runtime import run_json
from harness.runtime.options import Options
from harness.runtime.run_schema import check_journals, ended_by_rule
from harness.runtime.sources import changed, changed_files, code
from harness.storage import finished_episodes
from harness.tables import EpisodeScore, load_scores

from .ask_again import ask_again
from .data_read import read_by_own_spec
from .ended_run import leave_out_others, not_counted, other_end, rule_of
from .recorded_run import CallCounts, ComparingEngine, ComparingProgram, turn_id
from .suspicions import suspicions

CLAIMED, CONSISTENT, ASKED_AGAIN = "claimed", "consistent", "asked again"
Provider = Literal["process", "bwrap", "weaker"]
_DIGEST: Final = 12
"""Characters of a digest that a line shows."""
_NAMED: Final = 3
"""How many episodes, calls or files a line names."""


@dataclass
class Verification:
    """What a check has found.

    Attributes:
        level: one of the levels above.
        confirmed: what holds, a line each.
        differences: what does not, or cannot be compared: they keep the run at `claimed`.
        remarks: what a reader should know, whatever the level is.
    """

    level: str = CLAIMED
    confirmed: list[str] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def verify(
    folder: Path,
    project: Project,
    *,
    model: Engine | None = None,
    calls: int = 0,
    seed: int = 0,
    sandbox: Provider = "process",
) -> Verification:
    """Check a run. Its spec may read what the project's own spec of its name reads, wherever the run lies.

    Args:
        folder: the run's.
        project: where its plugins are looked up.
        model: answers `calls` of its calls again.
        calls: how many, drawn at random with `seed`.
        seed: whoever checks should choose another one than the author can know.
        sandbox: what confines programs that models wrote.

    Raises:
        DataError: it is no run, it is not finished, a journal is damaged, what ended it cannot be applied again, or
            there is no model to ask again.
        SpecError, PluginError: what its spec needs is not here.
        NotApprovedError: its spec would read other files, or run what is not approved.
    """
    claimed = load_unscored(folder, project)
    allowed, approved = approvals.permissions()
    with approvals.under((allowed, approved | read_by_own_spec(claimed.spec.name, project))):
        # Before any plugin opens a file: what a file says would stand in messages.
        approvals.require(readings(claimed.spec, project), claimed.spec.place())
        return _checked(claimed, project, model, calls, seed, sandbox)


def _checked(
    claimed: Run, project: Project, model: Engine | None, calls: int, seed: int, sandbox: Provider
) -> Verification:
    folder = claimed.folder
    check_journals(claimed.meta, folder)
    end = ended_by_rule(claimed.meta)
    rule = rule_of(end) if end is not None else None
    ends, moves, batches = _journal(folder, not_counted(end))
    verdict = Verification()
    plan, engines = _plan(claimed, project, moves, calls, seed)
    if model is not None and calls and "model" not in engines:
        raise DataError(f"no model under test played {folder}: there is nothing to ask again", hint="Leave --ask out.")
    verdict.differences += _other_inputs(claimed, plan)
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "again"
        options = Options(output_path=path, max_error_rate=1.0, sandbox=sandbox)
        again = execute(plan, options, asked_for=None if rule is None else {"rule": rule})
        new_end = ended_by_rule(again.meta)
        new_ends, _, new_batches = _journal(path, not_counted(new_end))
        # Its notes are of the engines that played; its scores are those of now.
        again = finish(replace(claimed, folder=path, scores=again.scores), time.monotonic())
        verdict.differences += other_end(end, new_end)
        verdict.differences += _other_episodes(claimed, again, ends, new_ends, batches, new_batches)
    counts = [engine.counts for engine in engines.values()]
    if rule is not None:
        leave_out_others(counts, {score.id for score in again.scores})
    verdict.differences += _other_calls(counts, moves)
    if not verdict.differences:
        verdict.level = CONSISTENT
        verdict.confirmed += _confirmed(claimed, counts)
        verdict.remarks += [str(end["enough"])] if end is not None else []
    verdict.remarks += suspicions(claimed.meta, moves.values())
    if model is not None and calls:
        _ask_again(verdict, model, engines["model"], claimed)
    return verdict


def _plan(
    claimed: Run, project: Project, moves: Mapping[str, Move], calls: int, seed: int
) -> tuple[Plan, dict[str, ComparingEngine]]:
    """What the run says that it played, with its record in its engines' place."""
    meta = claimed.meta
    own, label = (meta.get("identity") or {}).get("engine"), str(meta["model"])
    weights = {name: report.get("weights") for name, report in meta.get("engines", {}).items()}
    facts = own if isinstance(own, Mapping) else {}
    given = not meta.get("policies_only") and "model" in (meta.get("engine_args") or {"model": {}})
    first: ComparingEngine | None = None
    if given:
        behind = [one["model"] for one in (meta.get("inner") or {}).values() if one.get("engine") == "model"]
        record = str(behind[0]) if behind else label, facts, moves, calls, seed, weights.get("model")
        inner = _inner_of_model(claimed, moves)
        first = ComparingEngine(*record) if inner is None else ComparingProgram(inner, *record)
    plan = resolve.plan(claimed.spec, project, first)

    engines: dict[str, ComparingEngine] = {}
    for name, engine in sorted(
        plan.engines.items(), key=lambda item: item[0] in plan.inner
    ):  # what answers comes first
        if isinstance(engine, ComparingEngine):
            engines[name] = engine
            continue
        stated = engine_facts(engine, location=False)
        answers = plan.inner.get(name)
        if answers == "model":  # it is a record here, and was described as what it was
            stated["inner"] = facts
        record = engine.model, stated, moves, 0, seed, weights.get(name)
        if answers is None:
            engines[name] = ComparingEngine(*record)
        else:
            engines[name] = ComparingProgram(answers if answers == "model" else engines[answers], *record)
    return replace(plan, engines=engines, model=label), engines


def _inner_of_model(claimed: Run, moves: Mapping[str, Move]) -> str | Engine | None:
    """What answered the programs of the model under test: an entry under `models:`, or an engine of its own; None if
    they called no model of the run."""
    stated = (claimed.meta.get("inner") or {}).get("model")
    if not isinstance(stated, Mapping):
        return None
    name = str(stated.get("engine"))
    return name if name in claimed.spec.get("models", {}) else ComparingEngine(str(stated.get("model")), {}, moves)


def _journal(
    folder: Path, without: Collection[str]
) -> tuple[dict[str, Any], dict[str, Move], dict[str, list[list[Move]]]]:
    """(episode → its end line, turn → its move, episode → its moves batch by batch), but for some episodes. Raises
    `DataError`."""
    ends: dict[str, Any] = {}
    moves: dict[str, Move] = {}
    played: dict[str, list[list[Move]]] = {}
    for end, batches in finished_episodes.batches(*storage.journals(folder)):
        name = end["e"]
        if name in without:
            continue
        ends[name], played[name] = end, batches
        turns: dict[str, int] = {}
        for move in (move for batch in batches for move in batch):
            index = turns.get(move.agent, 0)
            turns[move.agent] = index + 1
            moves[turn_id(name, move.agent, index)] = move
    return ends, moves, played


# ------------------------------------------------------------------------------------ what differs

_STATED: Final = {
    "outcome": "outcome",
    "grade": "grade",
    "numbers": "numbers",
    "labels": "labels",
    "roles": "groups",
    "error": "error",
}
"""Keys of an episode's end, and what lines call them."""


def _other_inputs(claimed: Run, plan: Plan) -> Iterator[str]:
    """Spec, prompts, cases and code, where they are not those that are here."""
    meta = claimed.meta
    then, here = meta.get("identity") or {}, run_json.identity(plan, prepare(plan))
    if then.get("spec") != here["spec"]:
        yield "the spec in run.json is not the one in spec.yaml"
    if meta.get("spec_digest") != plan.digest:
        stated = str(meta.get("spec_digest"))[:_DIGEST]
        yield f"the spec's digest is {stated}, that of its spec.yaml and the prompts here {plan.digest[:_DIGEST]}"
    recorded = then.get("prompts")
    if other := changed(recorded if isinstance(recorded, Mapping) else {}, here["prompts"]):
        yield f"prompts are not those that are here: {_some(other)}"
    if files := sorted(changed_files(meta.get("code") or {}, code(plan), ("play", "task", "metrics"))):
        yield f"code is not the code that is here: {_some(files)}"
    cases = meta.get("cases")
    if isinstance(cases, Mapping) and (other := changed(cases, survey(plan).cases)):
        yield f"the task's {' and '.join(other)} are not those that are here"
    version = (meta.get("versions") or {}).get("harness")
    if version != __version__:
        yield f"it was played with harness {version!s:.20}, and this is {__version__}: verify it with that version"


def _other_episodes(
    claimed: Run,
    again: Run,
    ends: Mapping[str, Any],
    new_ends: Mapping[str, Any],
    batches: Mapping[str, Sequence[Sequence[Move]]],
    new_batches: Mapping[str, Sequence[Sequence[Move]]],
) -> Iterator[str]:
    """Episodes and scores that are not what comes of playing them again."""
    planned = {score.id for score in again.scores}
    if missing := sorted(planned - ends.keys()):
        yield f"{len(missing)} of {len(planned)} episodes are not in the journal: {_some(missing)}"
    if more := sorted(ends.keys() - planned):
        yield f"the journal has {len(more)} episodes that the spec does not make: {_some(more)}"
    both = [name for name in ends if name in new_ends]
    acted = [name for name in both if _actions(batches[name]) != _actions(new_batches[name])]
    if acted:
        yield f"in {len(acted)} episodes the replies, read again, give other moves: {_some(acted)}"
    old = "graded_again" in claimed.meta  # the journal then has the numbers of older code, scores.jsonl those of now
    for key, what in _STATED.items():
        if old and key in ("grade", "numbers", "error"):
            continue
        other = [name for name in both if _text(ends[name].get(key)) != _text(new_ends[name].get(key))]
        if other:
            yield f"{len(other)} episodes have another {what} than their moves lead to: {_some(other)}"
    try:
        stated = {score.id: score for score in load_scores(claimed.folder / SCORES)}
    except DataError as error:
        yield f"scores.jsonl cannot be read: {error.message}"
        stated = {}
    found = {score.id: score for score in again.scores}
    later = {name for name, metric in claimed.metrics.items() if metric.measured_by is not None}
    wrong = [name for name, score in found.items() if name not in stated or not _same_score(stated[name], score, later)]
    if wrong:
        yield f"{len(wrong)} episodes have other scores in scores.jsonl than graded again: {_some(wrong)}"
    if more := sorted(stated.keys() - found.keys()):
        yield f"scores.jsonl has {len(more)} episodes that the spec does not make: {_some(more)}"
    for name in (RESULTS, TABLES, TABLES_MD):
        path, new = claimed.folder / name, again.folder / name
        if not path.is_file():
            yield f"{name} is missing"
        elif not later and not _same_text(path, new):
            yield f"{name} is not what the scores give"


def _other_calls(counts: Sequence[CallCounts], moves: Mapping[str, Move]) -> Iterator[str]:
    """Calls that are not those that the spec makes."""
    other = [name for one in counts for name in one.other]
    if other:
        yield f"{len(other)} calls were asked something else than the spec asks: {_some(other)}"
    missing = [name for one in counts for name in one.missing]
    if missing:
        yield f"{len(missing)} calls have no recorded answer: {_some(missing)}"
    if unknown := sum(one.unknown for one in counts):
        yield f"{unknown} calls do not say what was asked: runs of harness before 0.8.0 cannot be compared"
    recorded = sum(len(move.calls) for move in moves.values())
    used = sum(one.equal + one.unknown + len(one.other) for one in counts)
    if recorded > used and not other and not missing:
        yield f"{recorded - used} recorded replies belong to no call that the spec makes"


def _confirmed(claimed: Run, counts: Sequence[CallCounts]) -> Iterator[str]:
    equal = sum(one.equal for one in counts)
    yield "spec, prompts, cases and code are those that are here"
    if equal:
        yield f"{equal:,} of {equal:,} requests, made again, are those that were asked"
    yield "all episodes, read and graded again, have the stated moves, outcomes and scores; so have the tables"
    if (end := ended_by_rule(claimed.meta)) is not None:
        yield f"{end['by']} {end['at']}, applied again, ends the run after the same {end['episodes']:,} episodes"


# ------------------------------------------------------------------------------------ asking again


def _ask_again(verdict: Verification, model: Engine, recorded: ComparingEngine, claimed: Run) -> None:
    """Ask some of the calls again, and judge by their answers."""
    stated = (claimed.meta.get("identity") or {}).get("engine")
    found = ask_again(model, stated if isinstance(stated, Mapping) else {}, recorded.counts.sample)
    verdict.confirmed += found.holds
    verdict.differences += found.differs
    verdict.remarks += found.notes
    if found.differs:
        verdict.level = CLAIMED
    elif found.enough and verdict.level == CONSISTENT:
        verdict.level = ASKED_AGAIN


# ------------------------------------------------------------------------------------ comparing


def _actions(batches: Sequence[Sequence[Move]]) -> str:
    return _text(
        [[(move.agent, move.turn, move.action, move.error_kind) for move in batch] for batch in batches if batch]
    )


def _same_score(one: EpisodeScore, two: EpisodeScore, later: Collection[str]) -> bool:
    """Whether two scores are equal but for the numbers of metrics that are measured `later`, by judges for example."""
    first, second = one.to_json(), two.to_json()
    if not one.problem:  # an older version wrote the file
        second.pop("problem", None)
    for score in (first, second):
        score["numbers"] = {name: number for name, number in score["numbers"].items() if name not in later}
    return _text(first) == _text(second)


def _same_text(one: Path, two: Path) -> bool:
    try:
        return one.read_bytes() == two.read_bytes()
    except OSError:
        return False


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(f"{name!s:.100}" for name in names[:_NAMED]) + more
