"""Episodes of a finished run, played again as a run of their own."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import os
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness import storage
from harness.api import Completion, Engine
from harness.api.errors import BudgetSpentError, DataError, Place, SpecError, near
from harness.api.run_files import META
from harness.config import resolve
from harness.config.building import Reference
from harness.config.plan import Plan, episode_id, survey
from harness.config.project import Project
from harness.config.spec import Spec
from harness.engines.usage import Usage
from harness.evaluation.run import Run
from harness.evaluation.stages import STAGES, OnScore, OpenRun, look_at_cases, open_folder
from harness.plugins import approvals
from harness.runtime import run_json
from harness.runtime.options import Options
from harness.runtime.run_schema import read_meta
from harness.runtime.runner import BudgetReachedError
from harness.runtime.session import session
from harness.runtime.steps import Recorded, by_turn
from harness.storage import finished_episodes
from harness.storage.locks import Lock
from harness.storage.redaction import without_secrets

from .base_run import BaseRun
from .changes import Change, by_agent, changed, dropped, turn_at
from .recorded_engine import NOT_ASKED, NOT_ASKED_HINT, Memory, RecordedEngine, RecordedProgram, calls_models
from .reference import reference_of, try_policy
from .replay_key import MODEL
from .takeover import first_differing


@dataclass(frozen=True)
class ReplayRequest:
    """What is to be played again, and how it is to differ.

    Attributes:
        episodes: ids; none: all that the run has played to their end.
        change: turn → the text of its reply.
        drop: turns whose message is not sent, each alone or with one receiver.
        swap: agent → `model`, or the policy that plays it.
        since: no reply from this turn on is kept.
        sample: what is asked again is drawn by other seeds, of this number.
        one_model: the given model answers in place of the models that the spec names, too; without one, nobody does.
        hold: turns whose move stays the recorded one where `swap` has another player for its agent.
    """

    episodes: Sequence[str] = ()
    change: Mapping[int, str] = field(default_factory=dict)
    drop: Sequence[tuple[int, str | None]] = ()
    swap: Mapping[str, Reference] = field(default_factory=dict)
    since: int | None = None
    sample: int | None = None
    one_model: bool = False
    hold: Sequence[int] = ()


@dataclass(frozen=True)
class ReplayCount:
    """Counts of the turns of a run that was played again.

    Attributes:
        kept, changed, asked: replies of models that come from the recorded run, from the change, from a new request.
        chosen, otherwise: moves of policies, and how many of them differ from those of the recorded run.
    """

    kept: int = 0
    changed: int = 0
    asked: int = 0
    chosen: int = 0
    otherwise: int = 0

    def __str__(self) -> str:
        models = f"{self.kept} replies kept, {self.changed} changed, {self.asked} asked again"
        parts = [models] if self.kept or self.changed or self.asked else []
        if self.chosen:
            parts.append(f"policies made {self.chosen} moves, {self.otherwise} of them other ones than before")
        return "; ".join(parts)


def replayed(
    run: Run | Path | str,
    episode: str | Sequence[str] = (),
    *,
    change: Mapping[int, str] | None = None,
    drop: Sequence[int | tuple[int, str]] = (),
    swap: Mapping[str, Reference] | None = None,
    since: int | None = None,
    sample: int | None = None,
    model: Engine | None = None,
    options: Options | None = None,
    on_score: OnScore | None = None,
    project: Project | None = None,
) -> Run:
    """Play episodes of a finished run again with one change; what the change does not affect stays the same.

    A reply is kept if its prompt is exactly the recorded one; a policy chooses again, from the same seed. The result
    is a run of its own, which the same call resumes.

    Args:
        run: the run, or its folder.
        episode: which episodes; all by default.
        change: turn (its place in the episode, over all agents) → the text of its reply.
        drop: turns whose message is not sent; (turn, receiver) drops that to one agent.
        swap: agent → "model", or a policy as a spec names it.
        since: send all prompts again from this turn on, whether they differ or not.
        sample: the number of a sample: prompts that are sent again get other seeds for each number.
        model: answers the prompts that differ from the recorded ones; without a model, such a turn stops the run.
        options: how to run; `output_path` is `RUN-replay-DIGEST` by default.
        on_score, project: as in `harness.evaluate`.

    Raises:
        DataError: no such run, episode, turn, message or agent; a reply that its form does not allow; a run whose code,
            prompts or cases have changed.
        RunStoppedError: as in `harness.evaluate`.
    """
    folder = run.folder if isinstance(run, Run) else run
    parent = BaseRun.open(folder, project or (run.project if isinstance(run, Run) else None))
    drops = [one if isinstance(one, tuple) else (one, None) for one in drop]
    names = (episode,) if isinstance(episode, str) else tuple(episode)
    wanted = ReplayRequest(names, dict(change or {}), drops, dict(swap or {}), since, sample)
    return play_again(parent, wanted, model, options or Options(), on_score)


@session()
def play_again(
    parent: BaseRun, wanted: ReplayRequest, model: Engine | None, options: Options, on_score: OnScore | None = None
) -> Run:
    """As `replayed`."""
    names = list(wanted.episodes) or [score.id for score in parent.run.scores if score.error is None]
    parent.read(names)
    changes = _changes(parent, names, wanted)
    spec = _spec(parent, names, wanted, changes, options.output_path)
    folder = options.output_path or _folder(parent, spec, model, wanted.one_model)
    spec.data["replay"]["run"] = os.path.relpath(parent.run.folder.resolve(), folder.resolve())
    plan = _plan(parent, spec, wanted, changes, model, replace(options, output_path=folder))
    kept = all(isinstance(one, RecordedEngine) and one.inner is None for one in plan.engines.values())
    options = replace(
        options,
        output_path=folder,
        max_calls=None,  # recorded replies pass the gate too: `RecordedEngine` counts those that are asked
        max_error_rate=1.0 if kept else options.max_error_rate,  # what failed then is what is kept
    )
    run = OpenRun(plan=plan, options=options, folder=folder, on_score=on_score or (lambda score, total: None))
    with contextlib.ExitStack() as held, approvals.allowing(options.allow_code_execution):
        for stage in STAGES:
            if stage is open_folder:
                _give_model(plan, folder)
            try:
                run = stage(run, held)
            except BudgetReachedError as error:
                raise _without_kept(error, plan) from None
            if stage is look_at_cases:  # a case has all its repeats, of which some may be wanted
                chosen = [job for job in run.survey.episodes if episode_id(*job) in {*names}]
                run = replace(run, survey=replace(run.survey, episodes=chosen))
        return run.run


@session()
def taken_over(parent: BaseRun, wanted: ReplayRequest, policy: Reference) -> ReplayRequest:
    """The same with a policy for each agent of a model, from the first turn on whose prompt comes to differ.

    Args:
        parent: the run.
        wanted: changes of one episode.
        policy: the policy.

    Raises:
        DataError: as in `replayed`; the policy cannot play there, or would have to hold a turn that failed.
    """
    [name] = wanted.episodes
    parent.read([name])
    changes = _changes(parent, [name], wanted)
    spec = _spec(parent, [name], wanted, changes, None)
    plan = _plan(parent, spec, replace(wanted, one_model=True), changes, None, Options(output_path=parent.run.folder))
    job = next(job for job in survey(plan).episodes if episode_id(*job) == name)
    make = reference_of(parent.plan, policy, Place("--swap"))
    with session() as one:
        since = one.run(first_differing(plan, job, name, make))
    hold = []
    given = {change.played.number for change in changes[name]}
    for turn in parent.played(name):
        if turn.index >= since.get(turn.turn.agent, 0) or turn.number in given:
            continue
        if turn.move.error_kind is not None:
            what = f"turn {turn.number} of {turn.turn.agent} failed, which a policy that plays on for it cannot repeat"
            raise DataError(what, hint="Let a model or the stand-in answer.")
        hold.append(turn.number)
    return replace(wanted, swap={**wanted.swap, **dict.fromkeys(since, policy)}, hold=hold)


def _give_model(plan: Plan, folder: Path) -> None:
    """Let a run that stopped since no model was there go on with one: what it has recorded was asked of none.

    Without this it would be refused as one of another engine. Raises `DataError`.
    """
    if not (folder / META).is_file():
        return
    meta, now = read_meta(folder / META), run_json.identity(plan)
    before = meta["identity"]
    own, wanted = before.get("engine"), now["engine"]
    is_kept = isinstance(own, Mapping) and own.get("engine") in (RecordedEngine.__name__, RecordedProgram.__name__)
    if meta.get("status") == "finished" or not is_kept or "asks" in own or wanted is None or "asks" not in wanted:
        return
    lock = Lock(folder)
    try:
        identity = {**before, "engine": wanted, "model": now["model"]}
        facts = {
            "engine_types": {name: type(one).__name__ for name, one in plan.engines.items()},
            "engine_args": {name: without_secrets(one.describe()) for name, one in plan.engines.items()},
            "model": plan.model,
        }
        storage.write_atomically(folder / META, run_json.as_json({**meta, **facts, "identity": identity}))
    finally:
        lock.release()


def _without_kept(error: BudgetReachedError, plan: Plan) -> BudgetReachedError:
    """The same, with the calls that a model was asked: kept replies pass the gate too, and are none."""
    engines = [one for one in plan.engines.values() if isinstance(one, RecordedEngine)]
    asked = max(one.before for one in engines) + sum(one.asked for one in engines)
    usage, said = Usage(asked, error.stopped["asked"]["tokens"]), error.stopped
    usage.micros = round(error.stopped["asked"].get("usd", 0) * 1e6)
    return BudgetReachedError(BudgetSpentError(said["by"], said["at"]), usage, said["episodes"], said["of"])


def _changes(parent: BaseRun, names: Sequence[str], wanted: ReplayRequest) -> dict[str, list[Change]]:
    """Episode → its changed turns. Raises `DataError`."""
    found: dict[str, list[Change]] = {}
    if wanted.since is not None or wanted.change or wanted.drop:
        if len(names) > 1:
            hint = "Name it: --episode E. Without a turn, --swap changes all episodes."
            raise DataError(f"a turn is one of a single episode; {len(names)} are chosen", hint=hint)
        turns = parent.played(names[0])
        if wanted.since is not None:
            turn_at(turns, wanted.since, "--from")
        found[names[0]] = [changed(turns, number, text) for number, text in wanted.change.items()]
        found[names[0]] += [dropped(turns, *one) for one in wanted.drop]
        found[names[0]] += [Change(turns[number], turns[number].move.action, None) for number in wanted.hold]
        numbers = [one.played.number for one in found[names[0]]]
        if twice := next((number for number in numbers if numbers.count(number) > 1), None):
            raise DataError(f"turn {twice} is changed twice", hint="Say in one --change what it is to be.")
    return found


def _spec(
    parent: BaseRun,
    names: Sequence[str],
    wanted: ReplayRequest,
    changes: Mapping[str, Sequence[Change]],
    folder: Path | None,
) -> Spec:
    """The spec of the run, with what is changed under `replay:`."""
    before = parent.run.spec
    if "replay" in before.data:
        message = f"{parent.run.folder} is itself a replay"
        raise DataError(message, hint="Play the run that it comes from again, with both changes.")
    data = copy.deepcopy(before.data)
    entry: dict[str, Any] = {"run": "", "moves": parent.digest(names), "episodes": [*names]}
    entry |= {key: value for key, value in (("since", wanted.since), ("sample", wanted.sample)) if value is not None}
    if made := [one.entry(parent, name) for name, own in changes.items() for one in own]:
        entry["changes"] = made
    for agent, player in wanted.swap.items():
        for name in names:
            condition, case, _ = parent.jobs[name]
            by_agent(condition.protocol.possible_agents(case), agent)
        group = MODEL
        if player != MODEL:
            group = f"in place of {agent}"
            data["agents"] = {**(data.get("agents") or {}), group: {"policy": player, "agents": []}}
            use = player if isinstance(player, str) else str(player.get("use"))
            known = parent.project.files("policies")
            if use not in known:
                raise DataError(f"there is no policy {use!r}", place=Place("--swap"), hint=near(use, [*known, MODEL]))
            policy = reference_of(parent.plan, player, Place("--swap"))
            try_policy(parent.plan, [parent.jobs[name][0] for name in names], policy, Place("--swap"))
        entry.setdefault("swaps", {})[agent] = group
    data["replay"] = entry
    return replace(before, data=data, places={})


def _folder(parent: BaseRun, spec: Spec, model: Engine | None, one_model: bool) -> Path:
    """`RUN-replay-DIGEST`: the same command finds its run again."""
    facts = [spec.data["replay"], spec.data.get("agents"), None if model is None else model.model]
    facts += [one_model] if one_model else []
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()[:8]
    return parent.run.folder.with_name(f"{parent.run.folder.name}-replay-{digest}")


def _plan(
    parent: BaseRun,
    spec: Spec,
    wanted: ReplayRequest,
    changes: Mapping[str, Sequence[Change]],
    model: Engine | None,
    options: Options,
) -> Plan:
    """The plan, whose engines keep what is recorded."""
    said: dict[str, Completion] = {}
    for name, own in changes.items():
        for one in own:
            if one.completion is not None:
                said[f"{name}/{one.played.turn.agent}/{one.played.index}/0"] = one.completion
    memory = Memory(parent, wanted.since)
    label = parent.plan.model
    policies = bool(parent.run.meta.get("policies_only"))
    asks = MODEL in wanted.swap.values()
    if model is not None and policies and not asks:
        raise SpecError("a model was given and no agent uses it", place=Place("--model"), hint="--swap AGENT=model")
    if model is not None and model.model not in label.split(" + "):
        label = f"{label} + {model.model}"

    if calls_models(model):
        raise SpecError(NOT_ASKED, place=Place("--model"), hint=NOT_ASKED_HINT)

    def engine_of(inner: Engine | None, name: str, answers: str | Engine | None = None) -> RecordedEngine:
        own = memory, inner, name, said, wanted.sample, options.max_calls
        if answers is None:
            return RecordedEngine(*own)
        program = RecordedProgram(*own)
        program.answers = answers
        return program

    stated = (parent.run.meta.get("inner") or {}).get(MODEL) or {}
    answers: str | Engine | None = stated.get("engine")
    if answers is not None and answers not in spec.get("models", {}):
        answers = engine_of(None, str(stated.get("model")))
    plan = resolve.plan(spec, parent.project, None if policies else engine_of(model, label, answers))
    engines = {
        name: engine
        if isinstance(engine, RecordedEngine)
        else engine_of(model if wanted.one_model else engine, engine.model, plan.inner.get(name))
        for name, engine in plan.engines.items()
    }
    used = {group.model for condition in plan.conditions for group in condition.groups}
    used |= {*plan.inner.values()}
    if MODEL not in used and (model is None or wanted.one_model):  # all agents have models that the spec names
        engines.pop(MODEL, None)
    if policies and asks:
        engines[MODEL] = engine_of(model, "no model" if model is None else model.model)
    plan = replace(plan, model=label, engines=engines)
    assert options.output_path is not None
    if options.max_calls is not None and not options.overwrite:  # earlier processes of this run have made calls
        before = _counted(memory, plan, options.output_path, said).asked
        for engine in engines.values():
            engine.before = before
    return plan


def _counted(memory: Memory, plan: Plan, folder: Path, said: Container[str]) -> ReplayCount:
    """What became of the replies of models, by the journal of the run that plays again: no process is needed to say it,
    so that nothing is lost where one was killed."""
    files = [file for file in storage.journals(folder) if file.is_file()]
    moves: dict[str, Recorded] = dict(storage.JournalState(*files).moves)
    moves |= {end["e"]: by_turn(batches) for end, batches in finished_episodes.batches(*files)} if files else {}
    jobs = {episode_id(*job): job for job in survey(plan).episodes}
    with session() as one:
        counts = one.run(memory.count(plan, jobs, moves, said))
    return ReplayCount(**counts)


def count(parent: BaseRun, done: Run) -> ReplayCount:
    """What became of all turns of a run that was played again."""
    again = BaseRun.open(done.folder, parent.project)
    names = [score.id for score in done.scores if score.error is None]
    again.read(names)
    parent.read(names)
    chosen = otherwise = 0
    for name in again.batches:
        before = {(one.turn.agent, one.index): one.move for one in parent.played(name)}
        for one in again.played(name):
            if not one.move.calls and one.move.error_kind is None:
                chosen += 1
                earlier = before.get((one.turn.agent, one.index))
                otherwise += earlier is None or earlier.action != one.move.action
    entry = done.spec.data["replay"]
    said = {
        f"{change['episode']}/{change['agent']}/{change['turn']}/0"
        for change in entry.get("changes") or ()
        if "text" in json.loads(change["move"])
    }
    counts = _counted(Memory(parent, entry.get("since")), again.plan, done.folder, said)
    return replace(counts, chosen=chosen, otherwise=otherwise)
