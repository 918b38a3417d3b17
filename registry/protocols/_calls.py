"""What protocols share in which agents make calls on a channel, round by round, until each has submitted its answer."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from harness.api import Action, Case, Channel, Facts, Range, Task
from harness.extensions.networks.calls import Calls, Verb
from harness.extensions.panels.two_pass import TwoPassProtocol

from ..channels._board import Board, longest_body

WAIT, SUBMIT = "wait", "submit_result"
CallForm = Literal["text", "tool_calls"]
CallForms = CallForm | dict[str, CallForm]
"""One form for all agents, or group of the spec's `agents:` → its form. Groups without an entry write text."""


@dataclass(kw_only=True)
class CallRounds(TwoPassProtocol):
    """Agents make calls on a channel.

    Attributes:
        channel: executes the calls.
        max_rounds: R_max; an agent that has not submitted by then has no answer. With two phases it holds in each.
        parse_retries: how often to ask again for a reply without any call; then the round is lost.
        reply_via: "text", as in the paper: models write their calls. "tool_calls": they are offered the calls as
            tools, and each result is the answer to its call; then the context also has `tools`, which is true.
            `{GROUP: tool_calls}` offers tools
            to a group of the spec's `agents:` alone, such as one whose engine has them.
    """

    channel: Channel
    max_rounds: Annotated[int, Range(ge=1)] = 100
    parse_retries: Annotated[int, Range(ge=0)] = 0
    reply_via: CallForms = "text"

    needs_channel = Board
    facts = (
        "rounds", "max_rounds", "messages", "characters", "refused", "submitted", "knew", "sent", "received", "known",
        "met", "reads", *TwoPassProtocol.facts,
    )  # fmt: skip

    @property
    def agent_groups(self) -> tuple[str, ...]:
        """The groups of agents that `reply_via` names."""
        return () if isinstance(self.reply_via, str) else tuple(self.reply_via)

    def shape(self, task: Task, case: Case) -> tuple[str, ...]:
        """All agents act in every round, whatever the task is."""
        return case.agents

    def offers_tools(self, case: Case, agent: str) -> bool:
        """Whether an agent of `case` is offered its calls as tools."""
        if isinstance(self.reply_via, str):
            return self.reply_via == "tool_calls"
        return self.reply_via.get(case.roles.get(agent, "default")) == "tool_calls"


class CallGame:
    """One pass: the channel, the agents' forms of replies and contexts, and their submissions.

    Args:
        rules: the protocol.
        task, case, rng: as for `play`.
        limit: calls that are kept of a reply.
        form: the form of replies.
        usage: a call's syntax, for prompts.
        more: further facts that all agents know from the start.
    """

    def __init__(
        self,
        rules: CallRounds,
        task: Task,
        case: Case,
        rng: random.Random,
        limit: int,
        form: type[Calls],
        usage: Callable[[Verb], str],
        **more: Any,
    ) -> None:
        board = rules.channel.open(case, rng)
        assert isinstance(board, Board)
        self.task, self.case, self.board, self.max_rounds = task, case, board, rules.max_rounds
        self.verbs = (*board.verbs, Verb(WAIT), Verb(SUBMIT, (), "answer"))
        longest = longest_body(case)
        self.forms: dict[str, Calls] = {}
        for agent in case.agents:
            answer = task.reply(case, agent)
            fields = answer if len(answer.fields) > 1 else None
            self.forms[agent] = form(self.verbs, limit, WAIT, longest, rules.offers_tools(case, agent), fields, SUBMIT)
        shared = {
            "actions": [{"name": verb.name, "usage": usage(verb)} for verb in self.verbs],
            "channel": board.description,
            "max_rounds": rules.max_rounds,
            "max_actions": limit,
            **more,
        }
        self.contexts: dict[str, Facts] = {
            agent: {**task.context(case, agent), **shared, **({"tools": True} if one.as_tools else {})}
            for agent, one in self.forms.items()
        }
        self.answers: dict[str, Action] = {}
        self.submitted: dict[str, int] = {}
        self.knew: dict[str, str] = {}
        self.refused = self.rounds = 0

    def facts(self, **more: Any) -> dict[str, Any]:
        """Return the facts that all such protocols declare, and `more`."""
        sent = [entry for receivers in self.board.sent.values() for entry in receivers.values()]
        return {
            "rounds": self.rounds,
            "max_rounds": self.max_rounds,
            "messages": sum(count for count, _ in sent),
            "characters": sum(length for _, length in sent),
            "refused": self.refused,
            "submitted": self.submitted,
            "knew": self.knew,
            "reads": None,
            **more,
            **self.board.facts(),
        }
