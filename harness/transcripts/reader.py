"""Episodes read back from a journal, with every prompt as the agents saw it.

The journal holds moves, not prompts: a protocol sees moves only, so playing it again with the recorded moves gives the
same turns, and the templates the same texts. Nothing is asked, and no policy chooses.
"""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness import storage
from harness.api import Case, Facts, Move, Outcome
from harness.api.errors import UserError
from harness.api.run_files import META
from harness.config.plan import Condition, Plan, protocol_seed
from harness.config.project import Project, find
from harness.plugins.approvals import NotApprovedError
from harness.runtime.prompt_reader import PromptReader
from harness.runtime.run_schema import read_meta
from harness.runtime.run_specs import RunPlan, RunSpecs
from harness.runtime.seats import seats
from harness.runtime.sources import changed, changed_files
from harness.runtime.steps import Recorded, Steps, by_turn, recorded_move
from harness.runtime.verification import misstated
from harness.storage import finished_episodes
from harness.transcripts.costs import SeatPrice, SeatPrices
from harness.transcripts.findings import findings
from harness.transcripts.moves import from_journal, turns_of
from harness.transcripts.view_api import RecordedTurn, Transcript

if TYPE_CHECKING:
    from harness.storage.inner_calls import InnerCallIndex

_CONDITIONS_IN_MEMORY = 4
_MAX_SURVEYED_EPISODES = 50_000  # episodes of a run whose cases are all looked at: that takes seconds


class Transcripts:
    """Reads the episodes of one run.

    Where the run's plugins, prompts or data have changed since, or cannot be loaded, a transcript says so in `problem`
    and holds what the journal does: moves and replies.

    Attributes:
        meta: the content of run.json.
        plan: what was run; None if the project cannot make it any more.
        problem: what all transcripts of the run must say; None if nothing changed. The first transcript looks at all
            cases of the task, as a run does at its start; what the task asks is compared from then on, in runs of at
            most 50,000 episodes.
    """

    def __init__(self, folder: Path, project: Project | None = None, specs: RunSpecs | None = None) -> None:
        """Raises `DataError` if `folder` holds no run. `specs`: reads the specs of several runs, and each one once."""
        self.folder = folder
        self.meta = read_meta(folder / META)
        self.plan: Plan | None = None
        self.problem: str | None = None
        self._cases: OrderedDict[str, _Cases] = OrderedDict()
        self._is_surveyed = False
        self._not_surveyed: str | None = None  # why its cases could not be looked at
        self._inner: tuple[int, InnerCallIndex] | None = None  # bytes of the journals, and what they hold
        try:
            self._of_spec = (specs or RunSpecs(project or find())).plan(folder, self.meta)
            self.plan = replace(self._of_spec.plan, model=str(self.meta["model"]))
            self.problem = self._changes(self._of_spec, {})
            self.problem = self._changes(self._of_spec, self._of_spec.parameters)
        except UserError as error:
            what = error.line() if isinstance(error, NotApprovedError) else error.message
            why = f"prompts cannot be shown: {what}"
            self.problem = why if self.plan is None else _joined(f"some {why}", self.problem)
        self._prices = SeatPrices(self.meta, self.plan)

    def _changes(self, of_spec: RunPlan, parameters: Mapping[str, str]) -> str | None:
        """In words: what the run used that is not the same now; `parameters`: as in `load_parameters`."""
        files = changed_files(self.meta.get("code") or {}, of_spec.code, ("play", "task"))
        identity = self.meta.get("identity") or {}
        recorded = identity.get("prompts") or {}
        current = {group.prompts.name: group.prompts.digest for c in of_spec.plan.conditions for group in c.groups}
        files |= {f"prompts/{name}" for name in current if recorded.get(name, current[name]) != current[name]}
        fitted = identity.get("calibration") or {}
        files |= {name for name, digest in parameters.items() if fitted.get(name) != digest}
        if not files:
            return None
        return f"changed since the run: {', '.join(sorted(files))}; prompts are shown as they would be now"

    def _survey(self, of_spec: RunPlan) -> None:
        """Once: say whether the task asks what it asked when the run began."""
        if self._is_surveyed:
            return
        self._is_surveyed = True
        then, planned = self.meta.get("cases"), self.meta.get("planned")
        if not isinstance(then, dict) or (isinstance(planned, int) and planned > _MAX_SURVEYED_EPISODES):
            return
        try:
            other = changed(then, of_spec.cases)
        except Exception as error:  # of the task, whose data may be gone
            self._not_surveyed = _why(error)
            return
        if other:
            what = f"the task's {' and '.join(other)} changed since the run"
            self.problem = _joined(f"{what}: prompts and right answers are shown as they would be now", self.problem)

    def read(
        self,
        episode: str,
        batches: Sequence[Sequence[Move]],
        end: Mapping[str, Any] | None = None,
        inner: bool = True,
    ) -> Transcript:
        """The transcript of an episode.

        Args:
            episode: its id.
            batches: its moves in the order of the protocol; the last batch may lack some while the run is going.
            end: its end line; None while it is not finished.
            inner: whether its turns are to have their inner calls.
        """
        if self.plan is not None:
            self._survey(self._of_spec)
        condition, case, repeat = self._locate(episode, end)
        problem, failure = self.problem, self._not_surveyed
        if self.plan is not None and case is None:
            failure = failure or (self._cases[condition.id].failure if condition is not None else None)
            gone = (
                f"the task cannot make its cases: {failure}" if failure else "the spec does not make this case any more"
            )
            problem = _joined(gone, problem)
        elif failure is not None:
            problem = _joined(f"whether the task's questions changed cannot be found out: {failure}", problem)
        recorded = by_turn(batches)
        played: list[RecordedTurn] = []
        short = last = None
        if condition is not None and case is not None and self.plan is not None:
            try:
                replay = _Replay(self.plan, condition, case, repeat, recorded)
                for turn in replay:
                    played.append(turn)
                if end is not None and (why := misstated(replay.outcome, end)) is not None:
                    problem = _joined(f"the journal's outcome is not that of its moves: {why}", problem)
                elif replay.outcome is not None:
                    last = replay.outcome.last
                short = f"the protocol now ends after {len(played)} turns: later ones are without prompts"
            except Exception as error:  # a plugin's bug, which the run met too; or the plugin was changed
                short = f"playing it again failed after {len(played)} turns: {_why(error)}"
                if end is None or not end.get("error"):
                    problem, short = _joined(short, problem), None
        if _moves(played) < sum(map(len, batches)):
            problem = _joined(short, problem)
            played = turns_of(batches, played)
        agents = condition.protocol.possible_agents(case) if condition is not None and case is not None else None
        agents = agents or tuple(dict.fromkeys(turn.agent for turn in played))
        models, policies, seat_prices = self._players(condition, case, agents, played)
        bare = from_journal(episode, batches, end, problem)
        whole = replace(
            bare,
            outcome=replace(bare.outcome, last=last) if bare.outcome is not None else None,
            condition=bare.condition or (condition.id if condition else episode.partition("/")[0]),
            case_id=bare.case_id or (case.id if case else ""),
            repeat=repeat,
            labels=bare.labels or self._labels(condition, case),
            case=case,
            agents=agents,
            roles=bare.roles or dict(case.roles if case else {}),
            models=models,
            policies=policies,
            turns=tuple(self._with_inner(episode, played) if inner else played),
            seat_prices=seat_prices,
        )
        return replace(whole, findings=tuple(findings(self.folder, whole)))

    def _with_inner(self, episode: str, played: Sequence[RecordedTurn]) -> Sequence[RecordedTurn]:
        """The turns with the calls that agent programs made in them. Raises `DataError` for a damaged journal."""
        if all(turn.move is None or turn.move.inner_calls is None for turn in played):
            return played
        from harness.storage.inner_calls import InnerCallIndex, by_turn  # what only such a run needs

        paths = storage.journals(self.folder)
        size = sum(path.stat().st_size for path in paths if path.exists())
        if self._inner is None or self._inner[0] != size:
            self._inner = size, InnerCallIndex(paths)
        calls = by_turn(self._inner[1].of(episode))
        return [replace(turn, inner=calls.get((turn.agent, turn.index), ())) for turn in played]

    def __iter__(self) -> Iterator[Transcript]:
        """All finished episodes, one in memory at a time. Raises `DataError` for a damaged journal."""
        for end, batches in finished_episodes.batches(*storage.journals(self.folder)):
            yield self.read(end["e"], batches, end)

    def find(self, episode: str) -> Transcript | None:
        """A finished episode; None if there is none of this id. Raises `DataError` for a damaged journal."""
        for end, batches in finished_episodes.batches(*storage.journals(self.folder)):
            if end["e"] == episode:
                return self.read(episode, batches, end)
        return None

    def _locate(self, episode: str, end: Mapping[str, Any] | None) -> tuple[Condition | None, Case | None, int]:
        """Condition, case and repeat of an episode, of what the plan still has."""
        conditions = {condition.id: condition for condition in self.plan.conditions} if self.plan is not None else {}
        if end is not None:
            name, case_id, repeat = str(end["condition"]), str(end["case"]), int(end["repeat"])
            condition = conditions.get(name)
            return condition, self._case(condition, case_id), repeat
        head, _, last = episode.rpartition("/")
        repeat = int(last) if last.isdecimal() else 0
        for name, condition in conditions.items():
            if head.startswith(f"{name}/") and (case := self._case(condition, head[len(name) + 1 :])) is not None:
                return condition, case, repeat
        return None, None, repeat

    def _case(self, condition: Condition | None, case: str) -> Case | None:
        if condition is None or self.plan is None:
            return None
        if condition.id not in self._cases:
            self._cases[condition.id] = _Cases(self.plan, condition)
            if len(self._cases) > _CONDITIONS_IN_MEMORY:
                self._cases.popitem(last=False)
        self._cases.move_to_end(condition.id)
        return self._cases[condition.id].find(case)

    def _labels(self, condition: Condition | None, case: Case | None) -> Facts:
        return {**(condition.labels if condition else {}), **(case.labels if case else {}), "model": self.meta["model"]}

    def _players(
        self, condition: Condition | None, case: Case | None, agents: Sequence[str], played: Sequence[RecordedTurn]
    ) -> tuple[dict[str, str], dict[str, str], dict[str, SeatPrice]]:
        """(agent → its model, agent → its policy, agent of a model → what its replies are billed at)."""
        models: dict[str, str] = {}
        policies: dict[str, str] = {}
        if condition is None or case is None or self.plan is None:
            model = str(self.meta["model"])
            asked = {turn.agent for turn in played if turn.move is not None and turn.move.calls}
            models = {agent: model for agent in agents if agent in asked}
            return models, {}, {agent: self._prices.of("model", model) for agent in models}
        seat_prices: dict[str, SeatPrice] = {}
        for agent in agents:
            group = condition.group_of(case, agent)
            if group.policy is not None:
                default = self.meta.get("policies_only") and group.name == "default"
                policies[agent] = self.plan.model if default else type(group.policy()).__name__
                continue
            own = group.model in (None, "model")
            models[agent] = self.plan.model if own else self.plan.engines[str(group.model)].model
            seat_prices[agent] = self._prices.of(group.model or "model", models[agent])
        return models, policies, seat_prices


class _Cases:
    """The cases of a condition, made as far as they are asked for."""

    def __init__(self, plan: Plan, condition: Condition) -> None:
        self._rest = iter(condition.task.cases(plan.limit, plan.seed))
        self._plan, self._condition = plan, condition
        self._known: dict[str, Case] = {}
        self.failure: str | None = None  # why there are no more

    def find(self, name: str) -> Case | None:
        while name not in self._known:
            try:
                case = next(self._rest, None)
                if case is None:
                    return None
                self._known[case.id] = self._condition.assign_groups(case, self._plan.seed)
            except Exception as error:  # the task's data is gone, or its code changed
                self.failure, self._rest = _why(error), iter(())
        return self._known[name]


def _joined(*problems: str | None) -> str | None:
    return "; ".join(filter(None, problems)) or None


def _why(error: Exception) -> str:
    """An error in words."""
    if isinstance(error, UserError):
        return f"{error.place.file}: {error.message}"[:500] if error.place is not None else error.message[:500]
    return f"{type(error).__name__}: {error}"[:500]


def _moves(played: Sequence[RecordedTurn]) -> int:
    return sum(turn.move is not None for turn in played)


class _Replay:
    """Plays the protocol with recorded moves, up to the first round that lacks one; that round is given too.

    Attributes:
        outcome: what the moves lead to; None if they do not end.
    """

    def __init__(self, plan: Plan, condition: Condition, case: Case, repeat: int, recorded: Recorded) -> None:
        self.condition, self.case, self.recorded = condition, case, recorded
        self.seats = seats(plan, condition, case, repeat)
        self.seed = protocol_seed(plan, condition, case, repeat)
        self.outcome: Outcome | None = None

    def __iter__(self) -> Iterator[RecordedTurn]:
        """Every turn in order. Raises what the protocol raises."""
        protocol, task = self.condition.protocol, self.condition.task
        readers = {agent: PromptReader(seat.group.prompts, agent) for agent, seat in self.seats.items()}
        number = round_number = 0
        with Steps(protocol, task, self.case, random.Random(self.seed)) as game:
            while (batch := game.batch) is not None:
                answers: list[Move] = []
                for turn in batch:
                    reader = readers[turn.agent]
                    move = recorded_move(self.recorded, turn, reader.turns)
                    yield reader.read(turn, move, round_number, number)
                    number += 1
                    if move is not None:
                        answers.append(move)
                if len(answers) < len(batch):
                    return
                round_number += bool(batch)  # an empty batch is not a round
                game.send(answers)
            self.outcome = game.outcome
