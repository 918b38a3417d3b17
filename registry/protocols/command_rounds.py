"""Rounds of fenced commands, executed one agent after another (MAS-Bench, Appendix F, Algorithms 2 and 3)."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from harness.api import Action, Case, Channel, Facts, Move, Outcome, Play, Range, Task, Turn, plugin
from harness.extensions.networks.calls import Verb
from harness.extensions.panels.two_pass import TwoPassProtocol
from harness.replies.reading import read

from ..channels._board import Board, Call, RefusedError, longest_body
from ._calls import CallForms, named_groups, offers_tools
from ._commands import UNKNOWN, Commands, usage, written

WAIT, SUBMIT = "wait", "submit_result"
FAILED = "Environment could not process that step"
"""What an agent reads after its model call failed (Appendix F.3, μ_err)."""
NOTHING = "No commands detected in last reply."
"""What an agent reads after a reply without a command (Appendix F.3, μ_noCmd)."""


@plugin
class CommandRounds(TwoPassProtocol):
    """Agents give fenced commands round by round until each has submitted its result.

    In a round all agents that have not submitted reply at once. Then the replies are executed one after another, in
    order of agents, and each reply's commands in order of writing, on the live state of the channel. So a later agent
    can receive what an earlier one sent in the same round, and sees it in its next turn. The first valid result is
    final; later commands of the same reply are still executed.

    Turns: `round`. The observation has `results` (a list of {"call", "ok", "text"} for the last commands), `inbox`
    (what the channel delivers by itself; MAS-Bench's channels deliver nothing), `round` (from 1) and `rounds_left`
    (this one included). The context is the task's, with `actions` (`name` and `usage` of each command), `channel` (its
    `kind`, and more), `max_rounds` and `max_actions`; in a second pass also `previous`.

    Attributes:
        channel: executes the commands: mas/broadcasting, mas/p2p or mas/shared_kv.
        max_rounds: R_max, in each phase.
        max_actions: commands executed per reply. The paper sets no bound; this one stops floods.
        parse_retries: how often to ask again for a reply without any command; then the round is lost.
        calls: "text", as in the paper: models write commands in fences. "tools": they are offered the commands as
            tools, and each result is the answer to its call; then the context also has `tools`, which is true.
            `{GROUP: tools}` offers tools to a group of the spec's `agents:` alone, such as one whose engine has them.
    """

    channel: Channel
    max_rounds: Annotated[int, Range(ge=1)] = 100
    max_actions: Annotated[int, Range(ge=1)] = 1000
    parse_retries: Annotated[int, Range(ge=0)] = 0
    calls: CallForms = "text"

    needs_channel = Board
    facts = (
        "rounds", "max_rounds", "messages", "characters", "refused", "submitted", "knew", "sent", "received", "known",
        "met", "reads", "communication", "stale", *TwoPassProtocol.facts,
    )  # fmt: skip

    @property
    def agent_groups(self) -> tuple[str, ...]:
        """The groups of agents that `calls` names."""
        return named_groups(self.calls)

    def shape(self, task: Task, case: Case) -> tuple[str, ...]:
        """All agents act in every round, whatever the task is."""
        return case.agents

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
        return Outcome(answers={agent: bench.answers.get(agent) for agent in agents}, facts=bench.facts())


class _Bench:
    """One phase: the channel, and the agents' submissions."""

    def __init__(self, rules: CommandRounds, task: Task, case: Case, rng: random.Random) -> None:
        board = rules.channel.open(case, rng)
        assert isinstance(board, Board)
        self.rules, self.task, self.case, self.board = rules, task, case, board
        self.board.handlers = {WAIT: lambda agent, call: "acknowledged", SUBMIT: self.submit}
        self.verbs = (*board.verbs, Verb(WAIT), Verb(SUBMIT, (), "answer"))
        self.names = {verb.name for verb in self.verbs}
        longest = longest_body(case)
        text, tools = (Commands(self.verbs, rules.max_actions, WAIT, longest, as_tools) for as_tools in (False, True))
        self.forms = {agent: tools if offers_tools(rules.calls, case, agent) else text for agent in case.agents}
        actions = [{"name": verb.name, "usage": usage(verb)} for verb in self.verbs]
        shared = {"actions": actions, "channel": board.description, "max_rounds": rules.max_rounds}
        shared |= {"max_actions": rules.max_actions}
        self.contexts = {
            agent: {**task.context(case, agent), **shared, **({"tools": True} if form.as_tools else {})}
            for agent, form in self.forms.items()
        }
        self.last_results: dict[str, list[Facts]] = {}
        self.answers: dict[str, Action] = {}
        self.submitted: dict[str, int] = {}
        self.knew: dict[str, str] = {}
        self.stale: dict[str, list[str]] = {}
        self.returned: dict[str, int] = {}  # characters of results that the agent sees if it gets another turn
        self.refused = self.rounds = self.communication = 0

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

    def facts(self) -> dict[str, Any]:
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
            "communication": self.communication + self.board.announced_characters,
            "stale": self.stale if self.board.has_keys else None,
            **self.board.facts(),
        }

    def _as_printed(self, result: Mapping[str, Any]) -> Facts:
        """Return a result in the words of Table 5 and Appendix F.4."""
        text = result["text"]
        if not result["ok"] and result["call"] in self.names:
            text = f"{result['call']} -> {text}"
        elif result["text"] == f"error: {UNKNOWN}":
            text = f"Unknown command: {result['call']}"
        return {**result, "text": text}
