"""Rounds in which all act at once by named calls on a channel (SILO-Bench, Section 3.4, Appendices A and C.2)."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from harness.api import Action, Case, Channel, Facts, Move, Outcome, Play, Range, Task, Turn, plugin
from harness.authoring.two_pass import TwoPassProtocol
from harness.replies import Calls, Verb
from harness.replies.reading import read

from ..channels._board import Board, longest_body

WAIT, SUBMIT = "wait", "submit_result"


@plugin
class ActionRounds(TwoPassProtocol):
    """Agents make calls round by round until each has submitted its answer.

    In a round every agent that has not submitted decides on the state at the end of the round before; then the calls
    are carried out, in order of agents and of writing. `wait` and `submit_result` end the agent's round; later calls
    are not carried out, and the agent's next `results` say so. The first readable answer is final, and its agent is
    not asked again.

    Turns: `plan` (the planning round, if there is one) and `round`. Every observation has the channel's `inbox` and
    `results`
    (of the last calls, among them a refused `submit_result`), `round` (from 1), `rounds_left` (this one included) and
    `max_rounds`. The context is the task's, `actions` (the `name` of each call and its `usage`: how it is written),
    `channel` (its `kind`, and more), `max_rounds`, `max_actions` (a reply) and `calls_per_round`.

    Attributes:
        channel: what the calls act on: mailbox, broadcast, store or silence.
        max_rounds: R_max; who has not submitted by then has no answer.
        calls_per_round: how many replies an agent gives within a round, seeing the results of its own calls in between;
            those of others become visible in the next round.
        max_actions: calls carried out of one reply; None for N + 8.
        planning: begin with one more round in which `submit_result` is refused (Appendix H).
        parse_retries: how often a reply without any call is asked for again; then the round is lost.
    """

    channel: Channel
    max_rounds: Annotated[int, Range(ge=1)] = 100
    calls_per_round: Annotated[int, Range(ge=1)] = 1
    max_actions: Annotated[int, Range(ge=1)] | None = None
    planning: bool = False
    parse_retries: Annotated[int, Range(ge=0)] = 0

    needs_channel = Board
    facts = (
        "rounds", "max_rounds", "messages", "characters", "refused", "submitted", "knew", "sent", "received", "known",
        "met", "reads", *TwoPassProtocol.facts,
    )  # fmt: skip

    def shape(self, task: Task, case: Case) -> tuple[str, ...]:
        """All agents act in every round, whatever the task is."""
        return case.agents

    def one_pass(self, task: Task, case: Case, agents: Sequence[str], rng: random.Random) -> Play:
        """Yields one batch a round (`calls_per_round` at most), with a turn for every agent that is still active."""
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


class _Game:
    """One episode: the channel, and who has submitted what and when."""

    def __init__(self, rules: ActionRounds, task: Task, case: Case, rng: random.Random) -> None:
        board = rules.channel.open(case, rng)
        assert isinstance(board, Board)
        self.rules, self.task, self.case, self.board = rules, task, case, board
        verbs = (*board.verbs, Verb(WAIT), Verb(SUBMIT, (), "answer"))
        self.form = Calls(verbs, rules.max_actions or len(case.agents) + 8, WAIT, longest_body(case))
        actions = [{"name": verb.name, "usage": verb.usage} for verb in self.form.verbs]
        told = {"actions": actions, "channel": board.told, "max_rounds": rules.max_rounds}
        told |= {"max_actions": self.form.limit, "calls_per_round": rules.calls_per_round}
        self.contexts = {agent: {**task.context(case, agent), **told} for agent in case.agents}
        self.notes: dict[str, list[Facts]] = {}
        self.answers: dict[str, Action] = {}
        self.submitted: dict[str, int] = {}
        self.knew: dict[str, str] = {}
        self.refused = self.rounds = 0

    def turn(self, agent: str) -> Turn:
        """What the agent is asked."""
        seen, number = self.board.observation(agent), self.board.round
        observation = {
            "inbox": seen["inbox"],
            "results": [*seen["results"], *self.notes.get(agent, ())],
            "round": number,
            "rounds_left": self.rules.max_rounds - number + 1,
        }
        return Turn(
            agent, "round" if number else "plan", observation, self.form, self.contexts[agent], self.rules.parse_retries
        )

    def carry_out(self, moves: Sequence[Move]) -> set[str]:
        """Let all calls happen; gives the agents whose round has ended."""
        ended, calls = set(), []
        for move in moves:
            before, ending, left = _split(move.action)
            calls.append(replace(move, action=before))
            self.notes[move.agent] = [] if move.action is not None else [_error("", _why(move))]
            if ending is not None:
                ended.add(move.agent)
                if ending["call"] == SUBMIT:
                    self.submit(move.agent, ending["answer"])
                if left:
                    self.notes[move.agent].append(_error(ending["call"], _not_done(left)))
        self.board.commit(calls)
        for move in moves:
            results = self.board.observation(move.agent)["results"]
            self.refused += sum(not result["ok"] for result in results) + len(self.notes[move.agent])
        return ended

    def submit(self, agent: str, text: str) -> None:
        """The first answer that can be read is final."""
        parsed = read(self.task.reply(self.case, agent), text)
        number = self.board.round
        if number == 0:
            self.notes[agent].append(_error(SUBMIT, "this round is for planning; submit later"))
        elif parsed.error is not None:
            self.notes[agent].append(_error(SUBMIT, parsed.error))
        else:
            self.answers[agent], self.submitted[agent] = parsed.action, number
            self.knew[agent] = f"{self.board.knows(agent):x}"

    def facts(self) -> Facts:
        """What the protocol declares."""
        sent = [entry for receivers in self.board.sent.values() for entry in receivers.values()]
        return {
            "rounds": self.rounds,
            "max_rounds": self.rules.max_rounds,
            "messages": sum(count for count, _ in sent),
            "characters": sum(length for _, length in sent),
            "refused": self.refused,
            "submitted": self.submitted,
            "knew": self.knew,
            "reads": None,
            **self.board.facts(),
        }


def _split(action: Action) -> tuple[list[Mapping[str, Any]], Mapping[str, Any] | None, int]:
    """The calls for the channel, the one that ends the round, and how many behind it are not carried out."""
    calls = action or []
    for i, call in enumerate(calls):
        if call.get("call") in (WAIT, SUBMIT) and "error" not in call:
            return calls[:i], call, sum(after.get("skipped", after["call"] != WAIT) for after in calls[i + 1 :])
    return calls, None, 0


def _not_done(count: int) -> str:
    behind = "1 call behind it was" if count == 1 else f"{count} calls behind it were"
    return f"this ended your round; {behind} not carried out"


def _error(call: str, why: str) -> Facts:
    return {"call": call, "ok": False, "text": f"error: {why}"}


def _why(move: Move) -> str:
    return f"{move.error or 'the request failed'}; nothing was done"
