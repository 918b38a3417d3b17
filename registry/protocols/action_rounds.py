"""Rounds of simultaneous named calls on a channel (SILO-Bench, Section 3.4, Appendices A and C.2)."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from harness.api import Action, Case, Channel, Facts, Move, Outcome, Play, Range, Task, Turn, plugin
from harness.extensions.networks.calls import Calls, Verb
from harness.extensions.panels.two_pass import TwoPassProtocol
from harness.replies.reading import read

from ..channels._board import Board, longest_body
from ._calls import CallForms, named_groups, offers_tools

WAIT, SUBMIT = "wait", "submit_result"


@plugin
class ActionRounds(TwoPassProtocol):
    """Agents make calls round by round until each has submitted its answer.

    In a round every agent that has not submitted acts on the state at the end of the previous round. Then the calls are
    executed, in order of agents and within a reply in order of writing. `wait` and `submit_result` end the agent's
    round; later calls of the reply are skipped, and the agent's next `results` say so. The first readable answer is
    final, and its agent gets no further turn.

    Turns: `plan` (the planning round, if there is one) and `round`. Every observation has the channel's `inbox` and
    `results` (of the last calls, including a refused `submit_result`), `round` (from 1) and `rounds_left` (this one
    included). The context is the task's, with `actions` (`name` and `usage` of each call), `channel` (its `kind`, and
    more), `max_rounds`, `max_actions` (per reply) and `calls_per_round`.

    Attributes:
        channel: executes the calls: mailbox, broadcast, store or silence.
        max_rounds: R_max; an agent that has not submitted by then has no answer.
        calls_per_round: replies of an agent within a round. It sees the results of its own calls in between; calls of
            others become visible in the next round.
        max_actions: calls executed per reply; None for N + 8.
        planning: start with one more round in which `submit_result` is refused (Appendix H).
        parse_retries: how often to ask again for a reply without any call; then the round is lost.
        calls: "text", as in the paper: models write calls as elements. "tools": they are offered the calls as tools,
            and each result is the answer to its call; then the context also has `tools`, which is true.
            `{GROUP: tools}` offers tools to a group of the spec's `agents:` alone, such as one whose engine has them.
    """

    channel: Channel
    max_rounds: Annotated[int, Range(ge=1)] = 100
    calls_per_round: Annotated[int, Range(ge=1)] = 1
    max_actions: Annotated[int, Range(ge=1)] | None = None
    planning: bool = False
    parse_retries: Annotated[int, Range(ge=0)] = 0
    calls: CallForms = "text"

    needs_channel = Board
    facts = (
        "rounds", "max_rounds", "messages", "characters", "refused", "submitted", "knew", "sent", "received", "known",
        "met", "reads", *TwoPassProtocol.facts,
    )  # fmt: skip

    @property
    def agent_groups(self) -> tuple[str, ...]:
        """The groups of agents that `calls` names."""
        return named_groups(self.calls)

    def shape(self, task: Task, case: Case) -> tuple[str, ...]:
        """All agents act in every round, whatever the task is."""
        return case.agents

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


class _Game:
    """One episode: the channel, and the agents' submissions."""

    def __init__(self, rules: ActionRounds, task: Task, case: Case, rng: random.Random) -> None:
        board = rules.channel.open(case, rng)
        assert isinstance(board, Board)
        self.rules, self.task, self.case, self.board = rules, task, case, board
        verbs = (*board.verbs, Verb(WAIT), Verb(SUBMIT, (), "answer"))
        limit = rules.max_actions or len(case.agents) + 8
        text, tools = (Calls(verbs, limit, WAIT, longest_body(case), as_tools) for as_tools in (False, True))
        self.forms = {agent: tools if offers_tools(rules.calls, case, agent) else text for agent in case.agents}
        actions = [{"name": verb.name, "usage": verb.usage} for verb in verbs]
        shared = {"actions": actions, "channel": board.description, "max_rounds": rules.max_rounds}
        shared |= {"max_actions": limit, "calls_per_round": rules.calls_per_round}
        self.contexts = {
            agent: {**task.context(case, agent), **shared, **({"tools": True} if form.as_tools else {})}
            for agent, form in self.forms.items()
        }
        self.notes: dict[str, list[Facts]] = {}
        self.ended: dict[str, bool] = {}  # whether the agent's last reply ended its round
        self.answers: dict[str, Action] = {}
        self.submitted: dict[str, int] = {}
        self.knew: dict[str, str] = {}
        self.refused = self.rounds = 0

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
            calls.append(replace(move, action=before))
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

    def facts(self) -> Facts:
        """Return the facts that the protocol declares."""
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
