"""Episodes of scripted teams that fail by one planted fault, with the proof that it is to blame, and alone.

A team that solves its task plays an episode in which one agent errs in one turn. The episode counts where the machine
of `harness blame` names that move and no other: replaced alone, it makes the team succeed.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from harness.api import Case, Move, derive_seed
from harness.api.errors import Place, PluginError, UserError
from harness.config import resolve
from harness.config.building import make, parts_of, policy_name
from harness.config.plan import Condition, Plan, episode_id
from harness.config.project import Project, find
from harness.config.spec import Spec, load
from harness.extensions.blame.blame_verdict import BlameVerdict, Search, verdict
from harness.extensions.replay.base_run import BaseTurn, PlayedEpisodes
from harness.extensions.replay.simulation import SimulatedEpisode, Simulation, Substitution
from harness.runtime.seats import Seat
from harness.tables import HeadlineSpec

from .planted_move import Erring
from .surface import given_away

TRIES = 200
"""Drawn faults, of which one should decide its episode."""
PLAUSIBLE = "plausible"
"""The kind of fault that is another move in the same format (`planted_move`)."""
GIVEN_AWAY = 4
"""A plausible fault is left out where a cue of `surface` says its turn among so few: a reader who goes by such a cue is
right about one in five at most."""

_EASY = "[wrong, silent]"

T = TypeVar("T")


@dataclass(frozen=True)
class RecordedEpisode:
    """An episode as a reader is shown it.

    Attributes:
        agents: all, in their order.
        instructions: agent → the messages before its first turn.
        prompts: for each turn what its agent was shown.
        turns: what was played.
    """

    agents: tuple[str, ...]
    instructions: Mapping[str, str]
    prompts: Sequence[str]
    turns: Sequence[BaseTurn]

    @classmethod
    def of(cls, turns: Sequence[BaseTurn], seated: Mapping[str, Seat]) -> RecordedEpisode:
        """The episode of these turns; `seated`: its agents."""
        shown = [seated[one.turn.agent].group.prompts.render(one.turn.name, _variables(one)) for one in turns]
        return cls(tuple(seated), _instructions(turns, seated), shown, turns)


@dataclass(frozen=True)
class BrokenEpisode(RecordedEpisode):
    """An episode that one move made fail.

    Attributes:
        culprit: the number of the decisive turn.
        fault: the kind of fault that was planted there.
        verdict: what the experiment found.
    """

    culprit: int
    fault: str
    verdict: BlameVerdict

    @property
    def agent(self) -> str:
        """The agent of the decisive turn."""
        return self.turns[self.culprit].turn.agent


class BrokenTeams:
    """Draws episodes of one spec's team.

    Args:
        spec: a spec whose headline names a ceiling, the policy of all agents; by its name or its file.
        changes: of it, as `--set` has them.
        faults: the kinds that are planted: `PLAUSIBLE`, or those of the policy `faulty`.
        project: where names are looked up; default: the project around the working directory.

    Raises:
        SpecError, PluginError: there is no fault, or the spec has a mistake, no ceiling, or a task whose grading runs
            programs.
    """

    def __init__(
        self, spec: str, changes: Sequence[str], faults: Sequence[str], project: Project | None = None
    ) -> None:
        if not faults:
            hint = "Name at least one: faults: [plausible]."
            raise PluginError("no fault is planted, and a team without one does not fail", at=("faults",), hint=hint)
        self.faults, self.project = tuple(faults), (project := project or find())
        first = load(spec, project, changes)
        ceiling = (first.data.get("headline") or {}).get("ceiling")
        if ceiling is None:
            hint = "The team plays it, so it has to be a policy that solves the task."
            raise PluginError(f"the headline of {spec} names no ceiling", at=("spec",), hint=hint)
        self.team = ceiling
        data = {**first.data, "agents": {"default": "model"}, "baseline": ceiling}
        self.plan: Plan = resolve.plan(_with(first, data), project, None)
        self.headline = HeadlineSpec.of(first.data, self.plan.metrics)
        if any(condition.task.grading == "executes" for condition in self.plan.conditions):
            raise PluginError(
                f"grading {spec} runs programs", at=("spec",), hint="Take a task that is graded by rules."
            )

    def episode(self, seed: int, number: int) -> BrokenEpisode:
        """The one of this number; it depends on both numbers and on nothing else.

        Raises `PluginError` where no fault out of many decides an episode.
        """
        failed = ""
        for attempt in range(TRIES):
            rng = random.Random(derive_seed("broken team", seed, number, attempt))
            try:
                found = self._drawn(rng)
            except UserError:
                raise
            except Exception as error:  # scripted agents need not be able to read what a faulty one says
                found, failed = None, f"; a policy failed: {type(error).__name__}: {error}"
            if found is not None:
                return found
        listed = ", ".join(self.faults)
        what = f"none of {TRIES} faults ({listed}) decides an episode of {policy_name(self.team)}{failed:.200}"
        hint = "Take a task in which each agent's part is needed."
        if PLAUSIBLE in self.faults:
            hint += (
                f" Plausible faults that the surface of their transcripts gives away do not count; faults: {_EASY} do."
            )
        raise PluginError(what, at=("spec",), hint=hint)

    def _drawn(self, rng: random.Random) -> BrokenEpisode | None:
        """An episode with a fault drawn at random; None where the fault is not what decides it."""
        condition = rng.choice(self.plan.conditions)
        drawn = next(iter(condition.task.cases(1, rng.getrandbits(62))))
        case, repeat = condition.assign_groups(drawn, self.plan.seed), rng.getrandbits(31)
        whole = self._rehearsal(condition, case, repeat)
        before = _now(whole.simulate(Substitution(), watched=False))
        counts = _counts(before)
        agent = rng.choice(sorted(counts))
        at, fault = rng.randrange(counts[agent]), rng.choice(self.faults)
        trial = self._rehearsal(condition, case, repeat)
        moves = [move for batch in before.moves for move in batch]
        trial.seats[agent] = self._with_fault(trial.seats[agent], at, fault, moves, rng.getrandbits(62))
        course = _now(trial.simulate(Substitution(), watched=False))
        if course.value == before.value:
            return None
        trial.parent.batches[trial.episode] = [[*batch] for batch in course.moves]
        found = _now(verdict(trial, Search(lower=self.headline.better == "lower", seed=rng.getrandbits(62))))
        if not found.single or [one.place for one in found.named] != [(agent, at)]:
            return None
        turns = trial.parent.played(trial.episode)
        recorded, culprit = RecordedEpisode.of(turns, trial.seats), found.named[0].number
        if fault == PLAUSIBLE and given_away("\n\n".join(transcript(recorded, False)), culprit, GIVEN_AWAY):
            return None
        return BrokenEpisode(recorded.agents, recorded.instructions, recorded.prompts, turns, culprit, fault, found)

    def _rehearsal(self, condition: Condition, case: Case, repeat: int) -> Simulation:
        name = episode_id(condition, case, repeat)
        record = PlayedEpisodes(plan=self.plan, project=self.project, jobs={name: (condition, case, repeat)})
        reference = condition.groups[0].policy
        assert reference is not None
        return Simulation(record, name, reference, self.headline.metric, {})

    def _with_fault(self, seat: Seat, at: int, fault: str, moves: Sequence[Move], seed: int) -> Seat:
        def place(*path: object) -> Place:
            return self.plan.spec.place("headline", "ceiling", *path)

        if fault == PLAUSIBLE:
            make_policy = seat.group.policy
            assert make_policy is not None
            return replace(seat, group=replace(seat.group, policy=lambda: Erring(make_policy(), at, moves, seed)))
        reference = {"use": "faulty", "of": self.team, "at": at, "fault": fault}
        cls, arguments = parts_of("policies", reference, self.project, place)
        return replace(seat, group=replace(seat.group, policy=functools.partial(make, cls, arguments, place)))


def _with(spec: Spec, data: dict[str, Any]) -> Spec:
    return replace(spec, data=data)


def _counts(course: SimulatedEpisode) -> dict[str, int]:
    """Agent → how many turns it has."""
    counts: dict[str, int] = {}
    for batch in course.moves:
        for move in batch:
            counts[move.agent] = counts.get(move.agent, 0) + 1
    return counts


def _variables(one: BaseTurn) -> dict[str, Any]:
    return {**one.turn.context, **one.turn.observation}


def _instructions(turns: Sequence[BaseTurn], seated: Mapping[str, Seat]) -> dict[str, str]:
    """Agent → the opening of its conversation."""
    instructions: dict[str, str] = {}
    for one in turns:
        agent = one.turn.agent
        if agent not in instructions:
            messages = seated[agent].group.prompts.opening(one.turn.context)
            instructions[agent] = "\n\n".join(message["content"] for message in messages).strip()
    return instructions


def _now(work: Coroutine[Any, Any, T]) -> T:
    """Run what waits for nothing: policies alone play here, so that no event loop is needed."""
    try:
        while True:
            work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result


def transcript(episode: RecordedEpisode, shows: bool) -> Iterator[str]:
    """The episode as a reader is shown it: agents' instructions, and all that they did, turn by turn.

    `shows`: also what each turn showed its agent.
    """
    lines = {agent: text.splitlines() for agent, text in episode.instructions.items()}
    first = next(iter(lines.values()), [])
    common = [line for line in first if all(line in other for other in lines.values())]
    if any(line.strip() for line in common):
        yield "== What all agents were told\n\n" + "\n".join(common).strip()
    for agent, own in lines.items():
        rest = "\n".join(line for line in own if line not in common).strip()
        if rest:
            yield f"== What {agent} was told besides\n\n{rest}"
    done = []
    for one, shown in zip(episode.turns, episode.prompts, strict=True):
        said = (one.move.text or one.turn.reply.written(one.move.action)).strip() or "(nothing)"
        parts = [f"Turn {one.number} (round {one.round}): {one.turn.agent}"]
        parts += [_indented("saw", shown)] if shows else []
        done.append("\n".join([*parts, _indented("did", said)]))
    yield "== What they did\n\n" + "\n".join(done)


def _indented(what: str, text: str) -> str:
    lines = text.strip().splitlines() or [""]
    return "\n".join([f"  {what}: {lines[0]}", *(f"    {line}" for line in lines[1:])])
