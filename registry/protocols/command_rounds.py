"""Rounds of fenced commands, executed one agent after another (MAS-Bench, Appendix F, Algorithms 2 and 3)."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from harness.api import Case, Facts, Move, Outcome, Play, Range, Task, Turn, plugin
from harness.replies.parse_guard import read

from ..channels._board import Call, RefusedError
from ._calls import SUBMIT, WAIT, CallGame, CallRounds
from ._commands import UNKNOWN, Commands, usage, written

FAILED = "Environment could not process that step"
"""What an agent reads after its model call failed (Appendix F.3, μ_err)."""
NOTHING = "No commands detected in last reply."
"""What an agent reads after a reply without a command (Appendix F.3, μ_noCmd)."""


@plugin
class CommandRounds(CallRounds):
    """Agents give fenced commands round by round until each has submitted its result.

    In a round all agents that have not submitted reply at once. Then the replies are executed one after another, in
    order of agents, and each reply's commands in order of writing, on the live state of the channel. So a later agent
    can receive what an earlier one sent in the same round, and sees it in its next turn. The first valid result is
    final; later commands of the same reply are still executed.

    The channel is mas/broadcasting, mas/p2p or mas/shared_kv.

    Turns: `round`. The observation has `results` (a list of {"call", "ok", "text"} for the last commands), `inbox`
    (what the channel delivers by itself; MAS-Bench's channels deliver nothing), `round` (from 1) and `rounds_left`
    (this one included). The context is the task's, with `actions` (`name` and `usage` of each command), `channel` (its
    `kind`, and more), `max_rounds` and `max_actions`; in a second pass also `previous`.

    Attributes:
        max_actions: commands executed per reply. The paper sets no bound; this one stops floods.
    """

    max_actions: Annotated[int, Range(ge=1)] = 1000

    facts = (*CallRounds.facts, "communication", "stale")

    def one_pass(self, task: Task, case: Case, agents: Sequence[str], rng: random.Random) -> Play:
        """Yield one batch per round, with a turn for every agent that has not submitted."""
        bench = _Bench(self, task, case, rng)
        for number in range(1, self.max_rounds + 1):
            acting = [agent for agent in agents if agent not in bench.answers]
            if not acting:
                break
            bench.board.round = bench.rounds = number
            moves = yield [bench.turn(agent) for agent in acting]
            bench.carry_out(moves)
            bench.board.next_round()
        communication = bench.communication + bench.board.announced_characters
        facts = bench.facts(communication=communication, stale=bench.stale if bench.board.has_keys else None)
        return Outcome(answers={agent: bench.answers.get(agent) for agent in agents}, facts=facts)


class _Bench(CallGame):
    """One phase."""

    def __init__(self, rules: CommandRounds, task: Task, case: Case, rng: random.Random) -> None:
        super().__init__(rules, task, case, rng, rules.max_actions, Commands, usage)
        self.rules = rules
        self.board.handlers = {WAIT: lambda agent, call: "acknowledged", SUBMIT: self.submit}
        self.names = {verb.name for verb in self.verbs}
        self.last_results: dict[str, list[Facts]] = {}
        self.stale: dict[str, list[str]] = {}
        self.returned: dict[str, int] = {}  # characters of results that the agent sees if it gets another turn
        self.communication = 0

    def turn(self, agent: str) -> Turn:
        """Return the agent's next turn. Results count as communication only once an agent sees them."""
        self.communication += self.returned.pop(agent, 0)
        observation = {
            "inbox": self.board.observation(agent)["inbox"],
            "results": self.last_results.get(agent, []),
            "round": self.board.round,
            "rounds_left": self.rules.max_rounds - self.board.round + 1,
        }
        form = self.forms[agent]
        results = tuple(result["text"] for result in observation["results"]) if form.as_tools else ()
        return Turn(
            agent, "round", observation, form, self.contexts[agent], self.rules.parse_retries, call_results=results
        )

    def carry_out(self, moves: Sequence[Move]) -> None:
        """Execute all commands, agent by agent."""
        self.board.commit(moves)
        for move in moves:
            results = self.board.observation(move.agent)["results"]
            if move.action is None:
                results = [{"call": "", "ok": False, "text": NOTHING if move.error_kind == "parse" else FAILED}]
            self.last_results[move.agent] = [self._as_printed(result) for result in results]
            self.refused += sum(not result["ok"] for result in results)
            for call, result in zip(move.action or (), results, strict=False):
                if call["call"] in self.names and call["call"] not in (WAIT, SUBMIT) and "error" not in call:
                    self.communication += len(written(call, self.verbs))
                    self.returned[move.agent] = self.returned.get(move.agent, 0) + len(result["text"])

    def submit(self, agent: str, call: Call) -> str:
        """Take a result and return the answer to it. Raises `RefusedError` if it is unreadable or not the first."""
        if agent in self.answers:
            raise RefusedError("your result is recorded already and final")
        parsed = read(self.task.reply(self.case, agent), str(call["answer"]).strip())
        if parsed.error is not None:
            raise RefusedError(parsed.error)
        text = parsed.action if isinstance(parsed.action, str) else json.dumps(parsed.action)
        self.answers[agent], self.submitted[agent] = parsed.action, self.board.round
        self.knew[agent] = f"{self.board.knowledge[agent]:x}"
        stale = self.board.stale(agent)
        if stale is not None:
            self.stale[agent] = stale
        announced = self.board.on_submit(agent, text)
        return f"recorded {text}" + (f" | {announced}" if announced else "")

    def _as_printed(self, result: Mapping[str, Any]) -> Facts:
        """Return a result in the words of Table 5 and Appendix F.4."""
        text = result["text"]
        if not result["ok"] and result["call"] in self.names:
            text = f"{result['call']} -> {text}"
        elif result["text"] == f"error: {UNKNOWN}":
            text = f"Unknown command: {result['call']}"
        return {**result, "text": text}
