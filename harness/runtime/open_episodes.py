"""The open episodes of one process: many at once, journaled as they go, scored as they end.

Next: `harness.runtime.episode`, which plays one of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path

from harness import storage
from harness.api import Case, Episode, Facts, Move, Outcome
from harness.authoring.informed import seed_of
from harness.config.plan import Condition, agent_seed, episode_id, protocol_seed
from harness.engine_api import AsksPeople, Engine, RunsPrograms, WritesLog
from harness.engines.cache import Cache
from harness.engines.gate import Gate, Stop
from harness.engines.replay import Replay
from harness.engines.request_log import RequestLog
from harness.engines.sampling import normalise
from harness.engines.switcher import EngineSwitcher
from harness.errors import BudgetSpentError, EngineFatalError, SetupError
from harness.replies.reading import note_bugs
from harness.runtime._garbage import rare_collections
from harness.runtime.episode import STOPS, play
from harness.runtime.players import ModelPlayer, Player, PolicyPlayer
from harness.runtime.runner import Job, Work
from harness.runtime.scoring import grade, labels, score
from harness.storage.plugin_errors import ERRORS, ErrorLog
from harness.tables import EpisodeScore

Take = Callable[[], Awaitable[Job | None]]
"""Gives the next episode to play; None when there will be no more."""


class Episodes:
    """The open episodes of one process and what they share: engines and journal.

    Args:
        work: what the run is. Only episodes that are taken are played.
        worker: number of the process among several; its files are called after it.

    Attributes:
        errors: where to write down what a plugin raised (`ErrorLog.record`), also where it fails no episode.
    """

    def __init__(self, work: Work, worker: int | None = None) -> None:
        self.work, self.plan, self.folder, self.options = work, work.plan, work.folder, work.options
        self.moves, self.on_score, self.usage, self.worker = work.moves, work.on_score, work.usage, worker
        self.engines: dict[str, Gate | Cache] = {}
        self.errors = ErrorLog(self._file(ERRORS))
        self.stop, self.gates = Stop(), dict[str, Gate]()
        self.playing: set[asyncio.Task[None] | None] = set()
        self.spent: BudgetSpentError | None = None
        self.shares = self.plan.share_calls
        self.pending = storage.PendingFailures()
        self._on_end: dict[str, Callable[[], None]] = {}

    async def play_all(self, take: Take, more: Callable[[], Work | None] = lambda: None) -> dict[str, Facts]:
        """Play what `take` gives until it gives no more; returns what each engine reports of itself.

        `take` is first called when all engines are started. Where all that it gave is finished, and `more` gives other
        work, it is called again. Raises as `Play`.
        """
        async with contextlib.AsyncExitStack() as stack:  # everything is closed, also where closing something fails
            await self._start(stack)
            stack.enter_context(rare_collections())
            await self._play_round(take)
            while (work := more()) is not None:
                self.work, self.plan = work, work.plan
                await self._play_round(take)
        return self.reports()

    async def _play_round(self, take: Take) -> None:
        """Play what `take` gives, on engines that are started. Raises as `Play`."""
        # With policies alone more tasks would only hold more episodes open. A person plays one after another.
        people = any(isinstance(engine, AsksPeople) for engine in self.plan.engines.values())
        width = self.options.max_concurrency if self.engines and not people else 1
        tasks = [asyncio.create_task(self._play_jobs(take)) for _ in range(width)]
        try:
            await asyncio.gather(*tasks)
        except (EngineFatalError, SetupError) as error:
            self.stop.end(str(error))
            # Nothing new is asked; what other engines are answering just now is paid for, and is waited for.
            # (With one engine at a time, others would be started for it.)
            if not self.options.one_engine_at_a_time:
                for task in set(tasks) - self.playing:  # they wait for an episode that may never come
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            raise
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if reason := self.spent or self.usage.exhausted:
            raise reason
        self._confirm_failures()

    async def _start(self, stack: contextlib.AsyncExitStack) -> None:
        """Open the files and start the engines; `stack` closes them."""
        self.journal = storage.Journal(self._file(storage.JOURNAL))
        stack.enter_context(contextlib.closing(self.journal))
        if self.journal.resumes:
            self.journal.append({"k": storage.RESUME})
        self.usage.write = self._journal_usage
        self.samples = None
        if self.options.log_samples:
            self.samples = storage.Journal(self._file("samples.jsonl"), lenient=True, seal=False)
            stack.enter_context(contextlib.closing(self.samples))
        stack.callback(self._journal_rest)
        log = None
        if self.options.log_requests and self.plan.engines:
            log = stack.enter_context(contextlib.closing(RequestLog(self._file("requests.jsonl"))))
        if any(isinstance(engine, RunsPrograms) and engine.sandboxed for engine in self.plan.engines.values()):
            from harness.sandbox import using  # what only such runs need

            stack.enter_context(using(self.options.sandbox))
        switcher = EngineSwitcher(self.plan.engines) if self.options.one_engine_at_a_time else None
        for name, engine in self.plan.engines.items():
            if isinstance(engine, WritesLog):
                engine.log_to(self._file("engine.log"))
            self.engines[name] = gated = self._gated(name, engine, log, switcher)
            stack.push_async_callback(gated.close)
            await gated.start()
        if (left := self.usage.time_left()) is not None:
            timer = asyncio.get_running_loop().call_later(left, self.no_more_tries, self.usage.time_over())
            stack.callback(timer.cancel)

    def reports(self) -> dict[str, Facts]:
        """What each engine reports of itself."""
        return {name: engine.report() for name, engine in self.engines.items()}

    def halt(self, why: str) -> None:
        """Ask nothing new; episodes come to their end with the answers that are under way."""
        self.stop.end(why)

    def flush(self) -> None:
        """Hand to the operating system what is recorded of the episodes scored so far. Raises `StorageError`."""
        self.journal.flush()

    def no_more_tries(self, reason: Exception) -> None:
        """End tries that wait: nothing is tried again."""
        self.stop.stop_retrying(reason)

    def _file(self, name: str) -> Path:
        return self.folder / (name if self.worker is None else storage.of_worker(name, self.worker))

    def _gated(
        self, name: str, engine: Engine, log: RequestLog | None, switcher: EngineSwitcher | None
    ) -> Gate | Cache:
        # What failed in a recorded run is its result.
        rate = 1.0 if isinstance(engine, Replay) else self.options.max_error_rate
        width, stop, usage = self.options.max_concurrency, self.stop, self.usage
        gate = self.gates[name] = Gate(engine, width, rate, stop=stop, usage=usage, log=log, switcher=switcher)
        gated: Gate | Cache = gate
        if self.options.use_cache:
            gated = Cache(gated, self.options.use_cache)
        if self.shares:
            gated = Cache(gated, self.folder / "shared.sqlite", share=True)
        return gated

    def _journal_rest(self) -> None:
        """Journal what was asked and has no move: calls that Ctrl-C cut off."""
        if usage := self.usage.unjournaled(ending=True):
            self.journal.append({"k": "asked", "asked": list(usage)})

    def _journal_usage(self, usage: Sequence[int]) -> None:
        """Journal what is about to be asked; returns when that outlives this process. Raises `StorageError`."""
        self.journal.append({"k": "asked", "asked": list(usage)})
        self.journal.flush()

    def record(self, line: storage.Line, on_end: Callable[[], None] | None = None) -> None:
        """Journal a move, or an episode's end; `on_end` is called when that counts (`harness.storage.pending`)."""
        self.journal.append(line)
        if on_end is not None:
            self._on_end[line["e"]] = on_end
        for _, counting in self.pending.add(line):
            if counting["k"] == "end":
                self._on_end.pop(counting["e"])()

    def _confirm_failures(self) -> None:
        """Nothing is left to be asked. Raises `EngineFatalError` where the last requests to an engine all failed."""
        failures = self.pending.failures()
        for name in [line["engine"][0] for line in failures]:
            errors = [line["error"] for line in failures if line["engine"][0] == name]
            raise EngineFatalError(
                f"the last requests to {self.engines[name].model} failed, and nothing was answered since: "
                f"{len(errors)} failures, the last with: {errors[-1]} (max_error_rate 1 would take them as results)"
            )

    async def _play_jobs(self, take: Take) -> None:
        """Play one episode after another."""
        this = asyncio.current_task()
        while True:
            self.stop.check()
            if (job := await take()) is None:
                return
            if self.spent is not None and not self.work.may_be_free(job):
                continue
            self.playing.add(this)
            condition, case, _ = job
            episode = _OpenEpisode(self, *job)
            try:
                self.usage.check_time()
                try:
                    episode.create_players()
                    outcome = await play(
                        condition.protocol,
                        condition.task,
                        case,
                        episode.players,
                        episode.rng,
                        episode.recorded,
                        episode.on_move,
                        episode.batches.append,
                        condition.limits,
                    )
                    json.dumps(storage.outcome_line(outcome))  # one that is not JSON could never be read back
                    episode.outcome = outcome
                except STOPS:
                    raise
                except (Exception, SystemExit) as failure:  # a plugin's bug: this episode is lost, the run is not
                    episode.fail(failure)
                await episode.end()
            except BudgetSpentError as error:  # others go on, and what needs nothing new is played
                self.spent = self.spent or error
                if error.by == "max_time":
                    return
            finally:
                self.playing.discard(this)
            await asyncio.sleep(0)  # episodes of policies never wait; let others and Ctrl-C in


class _OpenEpisode:
    """An episode that is being played: its players, and what becomes of it."""

    def __init__(self, run: Episodes, condition: Condition, case: Case, repeat: int) -> None:
        self.run, self.condition, self.case, self.repeat = run, condition, case, repeat
        self.id = episode_id(condition, case, repeat)
        self.recorded = run.moves.pop(self.id, {})
        self.rng = random.Random(protocol_seed(run.plan, condition, case, repeat))
        self.players: dict[str, Player] = {}
        self.batches: list[list[Move]] = []
        self.outcome: Outcome | None = None
        self.error: str | None = None
        note_bugs(functools.partial(run.errors.record, episode=self.id))

    def create_players(self) -> None:
        """Make the players. Raises what a plugin raises."""
        plan, condition, case = self.run.plan, self.condition, self.case
        for agent in condition.protocol.possible_agents(case):
            self.players[agent] = self._player(agent, agent_seed(plan, condition, case, self.repeat, agent))

    def fail(self, failure: BaseException) -> None:
        """A plugin raised: the episode ends with an error."""
        self.error = self.run.errors.record(failure, "play", self.id)

    async def end(self) -> None:
        """Grade, measure and journal the episode."""
        run, condition, case = self.run, self.condition, self.case
        columns = labels(run.plan, condition, case)
        played = self.id, condition.id, case.id, self.repeat, columns, case.roles, self.batches, self.outcome
        episode = Episode(*played, error=self.error)
        if condition.task.grading != "quick":  # others go on meanwhile
            episode = await asyncio.to_thread(grade, episode, condition, case, run.errors, run.options.sandbox)
        else:
            episode = grade(episode, condition, case, run.errors)
        scored = score(episode, run.plan.metrics, condition.uses_ground_truth, run.errors)
        marks = {"uses_ground_truth": scored.uses_ground_truth, "limited": scored.limited}
        line = storage.end_line(episode, scored.labels, scored.to_json()["numbers"], scored.error, marks)
        run.record(line, lambda: self._count(episode, scored))

    def _count(self, episode: Episode, scored: EpisodeScore) -> None:
        if self.run.samples is not None:
            self.run.samples.append(_sample(episode, self.case, self.players))
        self.run.on_score(scored)

    def on_move(self, batch: int, position: int, index: int, move: Move) -> None:
        run = self.run
        line = storage.move_line(self.id, batch, position, index, move)
        if usage := run.usage.unjournaled():
            line["asked"] = usage
        if run.pending or move.error_kind in storage.PASSING:
            group = self.condition.group_of(self.case, move.agent)
            gate = run.gates[group.model or "model"] if group.policy is None else None
            if gate is not None and not gate.lenient:  # else failures are results like others
                line["engine"] = [group.model or "model", gate.answered]
        run.record(line)

    def _player(self, agent: str, seed: int) -> Player:
        group = self.condition.group_of(self.case, agent)
        if group.policy is not None:
            hint = seed_of(self.run.plan.seed, self.condition.task, self.case, self.repeat)
            return PolicyPlayer(functools.partial(group.make_policy, agent, self.case, hint), seed)
        engine = self.run.engines[group.model or "model"]
        constrained = self.condition.constrained
        sampling = {**normalise(self.case.sampling), **group.sampling} if self.case.sampling else group.sampling
        return ModelPlayer(engine, group.prompts, sampling, constrained, self.id, agent, seed)


def _sample(episode: Episode, case: Case, players: Mapping[str, Player]) -> storage.Line:
    """A line of samples.jsonl: the case without its target, and the conversation of every agent."""
    turns: Counter[str] = Counter()
    moves = []
    for b, batch in enumerate(episode.batches):
        moves.append([storage.move_line(episode.id, b, p, turns[move.agent], move) for p, move in enumerate(batch)])
        turns.update(move.agent for move in batch)
    return {
        "episode": episode.id,
        "labels": dict(episode.labels),
        "case": {"public": dict(case.public), "topology": case.topology, "roles": dict(case.roles)},
        "threads": {agent: p.thread.messages for agent, p in players.items() if isinstance(p, ModelPlayer)},
        "moves": moves,
        "outcome": storage.outcome_line(episode.outcome),
        "grade": dict(episode.grade),
        "error": episode.error,
    }
