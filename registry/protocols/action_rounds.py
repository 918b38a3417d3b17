"""Rounds of simultaneous named calls on a channel (SILO-Bench, Section 3.4, Appendices A and C.2)."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from harness.api import Action, Case, Facts, Move, Outcome, Play, Range, Task, Turn, plugin
from harness.extensions.networks.calls import Calls
from harness.replies.parse_guard import read

from ._calls import SUBMIT, WAIT, CallGame, CallRounds


@plugin
class ActionRounds(CallRounds):
    """Agents make calls round by round until each has submitted its answer.

    In a round every agent that has not submitted acts on the state at the end of the previous round. Then the calls are
    executed, in order of agents and within a reply in order of writing. `wait` and `submit_result` end the agent's
    round; later calls of the reply are skipped, and the agent's next `results` say so. The first readable answer is
    final, and its agent gets no further turn.

    The channel is a mailbox, broadcast, store or silence.

    Turns: `plan` (the planning round, if there is one) and `round`. Every observation has the channel's `inbox` and
    `results` (of the last calls, including a refused `submit_result`), `round` (from 1) and `rounds_left` (this one
    included). The context is the task's, with `actions` (`name` and `usage` of each call), `channel` (its `kind`, and
    more), `max_rounds`, `max_actions` (per reply) and `calls_per_round`.

    Attributes:
        calls_per_round: replies of an agent within a round. It sees the results of its own calls in between; calls of
            others become visible in the next round.
        max_actions: calls executed per reply; None for N + 8.
        planning: start with one more round in which `submit_result` is refused (Appendix H).
    """

    calls_per_round: Annotated[int, Range(ge=1)] = 1
    max_actions: Annotated[int, Range(ge=1)] | None = None
    planning: bool = False

    def one_pass(self, task: Task, case: Case, agents: Sequence[str], rng: random.Random) -> Play:
        """Yield up to `calls_per_round` batches a round, with a turn for every active agent."""
        game = _Game(self, task, case, rng)
        for number in range(0 if self.planning else 1, self.max_rounds + 1):
            acting = [agent for agent in agents if agent not in game.submitted]
            if not acting:
                break
            game.board.round = number
            for _ in range(self.calls_per_round):
                moves = yield [game.turn(agent) for agent in acting]
                ended = game.carry_out(moves)
                acting = [agent for agent in acting if agent not in ended]
                if not acting:
                    break
            game.rounds = number
            game.board.next_round()
        return Outcome(answers={agent: game.answers.get(agent) for agent in agents}, facts=game.facts())


class _Game(CallGame):
    """One pass."""

    def __init__(self, rules: ActionRounds, task: Task, case: Case, rng: random.Random) -> None:
        limit = rules.max_actions or len(case.agents) + 8
        more = {"calls_per_round": rules.calls_per_round}
        super().__init__(rules, task, case, rng, limit, Calls, lambda verb: verb.usage, **more)
        self.rules = rules
        self.notes: dict[str, list[Facts]] = {}
        self.ended: dict[str, bool] = {}  # whether the agent's last reply ended its round

    def turn(self, agent: str) -> Turn:
        """Return the agent's next turn."""
        channel_view, number, form = self.board.observation(agent), self.board.round, self.forms[agent]
        observation = {
            "inbox": channel_view["inbox"],
            "results": [*channel_view["results"], *self.notes.get(agent, ())],
            "round": number,
            "rounds_left": self.rules.max_rounds - number + 1,
        }
        return Turn(
            agent, "round" if number else "plan", observation, form, self.contexts[agent],
            self.rules.parse_retries, call_results=self.call_results(agent) if form.as_tools else (),
        )  # fmt: skip

    def call_results(self, agent: str) -> tuple[str, ...]:
        """Return the results of the agent's last calls, with that of the one that ended its round."""
        results = [result["text"] for result in self.board.observation(agent)["results"]]
        notes = [note["text"] for note in self.notes.get(agent, ())]
        return (*results, "\n".join(notes) or "your round has ended") if self.ended.get(agent) else tuple(results)

    def carry_out(self, moves: Sequence[Move]) -> set[str]:
        """Execute all calls; return the agents whose round has ended."""
        ended, calls = set(), []
        for move in moves:
            before, ending, skipped = _split(move.action)
            calls.append(move if before is move.action else replace(move, action=before))
            self.ended[move.agent] = ending is not None
            self.notes[move.agent] = [] if move.action is not None else [_error("", _failure_text(move))]
            if ending is not None:
                ended.add(move.agent)
                if ending["call"] == SUBMIT:
                    self.submit(move.agent, ending["answer"])
                if skipped:
                    self.notes[move.agent].append(_error(ending["call"], _skipped_text(skipped)))
        self.board.commit(calls)
        for move in moves:
            results = self.board.observation(move.agent)["results"]
            self.refused += sum(not result["ok"] for result in results) + len(self.notes[move.agent])
        return ended

    def submit(self, agent: str, text: str) -> None:
        """Take an answer: the first readable one is final."""
        parsed = read(self.task.reply(self.case, agent), text)
        number = self.board.round
        if number == 0:
            self.notes[agent].append(_error(SUBMIT, "this round is for planning; submit later"))
        elif parsed.error is not None:
            self.notes[agent].append(_error(SUBMIT, parsed.error))
        else:
            self.answers[agent], self.submitted[agent] = parsed.action, number
            self.knew[agent] = f"{self.board.knowledge_of(agent):x}"


def _split(action: Action) -> tuple[list[Mapping[str, Any]], Mapping[str, Any] | None, int]:
    """Return the calls for the channel, the call that ends the round, and the number of calls skipped after it."""
    calls = action or []
    for i, call in enumerate(calls):
        if call.get("call") in (WAIT, SUBMIT) and "error" not in call:
            return calls[:i], call, sum(after.get("skipped", after["call"] != WAIT) for after in calls[i + 1 :])
    return calls, None, 0


def _skipped_text(count: int) -> str:
    calls = "1 call behind it was" if count == 1 else f"{count} calls behind it were"
    return f"this ended your round; {calls} not carried out"


def _error(call: str, why: str) -> Facts:
    return {"call": call, "ok": False, "text": f"error: {why}"}


def _failure_text(move: Move) -> str:
    return f"{move.error or 'the request failed'}; nothing was done"
