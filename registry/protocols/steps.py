"""Stepped games, simultaneous or sequential, with or without talk (DPBench, Sections 3.1, 3.3 and C.1)."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Literal

from harness.api import (
    Action,
    Case,
    Channel,
    Facts,
    Move,
    Outcome,
    Play,
    PluginError,
    Protocol,
    Range,
    Reply,
    Task,
    Turn,
    plugin,
)
from harness.extensions.games.worlds import SteppedTask
from harness.extensions.networks import NeighborChannel
from harness.extensions.panels.traffic import Traffic
from harness.replies import Choice, Labelled, Parsing, act_of
from harness.replies.action_with_message import ActionWithMessage, MessageLine
from harness.replies.parse_guard import read


@plugin
class Steps(Protocol):
    """Step a world until it is over, deadlocked, or out of time.

    Turns: `act`, and before it `talk` if there is more than one round of talk. Every observation has the world's
    observation, the channel's `inbox` and `silent` (empty without talk), `timestep` (from 1), `memory` (the agent's
    last observations, each with its action) and `talk_round` (from 1; 0 without talk). The context is the task's with
    `talk_rounds`. An agent whose turn fails does nothing.

    Attributes:
        order: "simultaneous": all agents act on the same state, in one timestep. "sequential": one after another, each
            on the state that the previous ones left; every action is one timestep (Appendix C.1).
        max_timesteps: the limit, in timesteps.
        ends: when sequential order checks for the end: after every "action", as in the paper; or after all agents'
            "turn", as in its released code: then the limit is overshot to a multiple of the agents, and a deadlock that
            an agent resolves within the turn does not count.
        talk_rounds: 0: no messages. 1: a message goes with each action, and others see it at their next decision.
            R > 1: R − 1 rounds of messages precede each action. An agent that talks or acts sees all messages of the
            timestep so far, those of one neighbor joined by " / ". The fact `no_message_line` counts actions beside
            whose reply no message can be read, not even "None".
        channel: delivers each message to all neighbors. `neighbors` shows the messages of the last round; with
            `lifetime: latest` the last one of each neighbor, which suits sequential order.
        memory: how many of its own last observations an agent sees (0: each decision is a new conversation), or
            "thread": one conversation for the whole episode.
        deadlock: "terminal" ends the episode. "non_terminal" counts the deadlock and then breaks it from outside.
            "unreported" ends the episode without counting it, as release 0.2 of DPBench does in sequential order.
        backoff_threshold: an agent that has held something in vain for this many of its turns, including the one in
            which it took it, may be forced to give it up; None: never.
        backoff_probability: the probability of that, at each such turn.
        parse_retries: how often to ask again for an unreadable reply; then the agent does nothing.
        max_chars: longer messages are cut; None for no limit.
        parsing: how replies are parsed; "reference" is DPBench's own code, quirks included.
    """

    order: Literal["simultaneous", "sequential"] = "simultaneous"
    max_timesteps: Annotated[int, Range(ge=1, le=10_000)] = 30
    ends: Literal["action", "turn"] = "action"
    talk_rounds: Annotated[int, Range(ge=0, le=9)] = 0
    channel: Channel | None = None
    memory: Annotated[int, Range(ge=0)] | Literal["thread"] = 0
    deadlock: Literal["terminal", "non_terminal", "unreported"] = "terminal"
    backoff_threshold: Annotated[int, Range(ge=1)] | None = None
    backoff_probability: Annotated[float, Range(ge=0, le=1)] = 0.5
    parse_retries: Annotated[int, Range(ge=0)] = 0
    max_chars: Annotated[int, Range(ge=1)] | None = 1000
    parsing: Parsing = "tolerant"

    needs = SteppedTask
    needs_channel = NeighborChannel
    facts = (
        "timesteps", "rounds", "end", "deadlocks", "messages", "characters", "no_message_line", "sent", "backoffs",
    )  # fmt: skip

    def __post_init__(self) -> None:
        if self.talk_rounds and self.channel is None:
            raise PluginError("talk_rounds needs a channel", hint="For example `channel: neighbors`.")
        if self.talk_rounds > 1 and self.order == "sequential":
            message = f"talk_rounds: {self.talk_rounds} needs simultaneous order; sequential order takes 0 or 1"
            raise PluginError(message)

    def misfit(self, task: Task) -> str | None:
        """Messages of talk and a field `message` would have one label."""
        if self.talk_rounds and "message" in getattr(task, "beside", ()):
            return "its talk is a line MESSAGE, as the field `message` of the task's `reply:`: rename the field"
        return None

    def play(self, task: Task, case: Case, agents: Sequence[str], rng: random.Random) -> Play:
        """Yield the batches of talk and the batch of actions of each timestep."""
        assert isinstance(task, SteppedTask)
        game = _Game(self, task, case, rng)
        while game.end is None:
            for group in [tuple(agents)] if self.order == "simultaneous" else [(agent,) for agent in agents]:
                acting = game.acting(group)
                game.transcripts = {}
                for talk in range(1, self.talk_rounds):
                    game.discuss((yield [game.turn(agent, "talk", game.line, talk) for agent in acting]))
                moves = yield [game.turn(agent, "act", reply, self.talk_rounds) for agent, reply in acting.items()]
                game.step(moves)
                if self.ends == "action" and game.ended():
                    break
            if self.ends == "turn":
                game.ended()
        return Outcome(facts=game.facts(), last=game.last)


class _Game:
    """One episode: its world, its clock, and its counts."""

    def __init__(self, rules: Steps, task: SteppedTask, case: Case, rng: random.Random) -> None:
        self.rules, self.task, self.case, self.rng = rules, task, case, rng
        self.world = task.world(case, rng)
        self.line = MessageLine(max_chars=rules.max_chars, parsing=rules.parsing)
        self.channel = rules.channel.open(case, rng) if rules.channel is not None and rules.talk_rounds else None
        window = rules.memory if isinstance(rules.memory, int) else 0
        self.memory: dict[str, deque[Facts]] = {agent: deque(maxlen=window) for agent in case.agents}
        self.waited = dict.fromkeys(case.agents, 0)
        self.transcripts: dict[str, dict[str, str]] = {}  # agent → neighbor → what it said in this timestep's talk
        self.forced: dict[str, Action] = {}
        self.contexts: dict[str, Facts] = {}
        self.end: str | None = None
        self.deadlocks: list[int] = []
        self.traffic = Traffic(case.agents)
        self.timesteps = self.messages = self.characters = self.backoffs = self.passed = self.no_message_line = 0

    def acting(self, group: Sequence[str]) -> dict[str, Reply]:
        """Return agent → reply form for the agents of the group that get a turn; others are forced to back off."""
        self.forced, replies = {}, {}
        for agent in group:
            reply = self.world.reply(agent)
            if reply is None:
                continue
            action = self.world.backoff(agent)
            limit = self.rules.backoff_threshold
            due = action is not None and limit is not None and self.waited[agent] >= limit
            if due and self.rng.random() < self.rules.backoff_probability:
                self.forced[agent] = action
                continue
            if isinstance(reply, Choice | Labelled):
                reply = replace(reply, parsing=self.rules.parsing)
            replies[agent] = ActionWithMessage(reply, self.line) if self.rules.talk_rounds else reply
        return replies

    def turn(self, agent: str, name: str, reply: Reply, talk: int) -> Turn:
        """Return the agent's next turn."""
        rules = self.rules
        if agent not in self.contexts:
            self.contexts[agent] = {**self.task.context(self.case, agent), "talk_rounds": rules.talk_rounds}
        observation = {
            **self.world.observation(agent),
            **self.messages_for(agent),
            "timestep": self.timesteps + 1,
            "talk_round": talk,
            "memory": list(self.memory[agent]),
        }
        fresh = rules.memory != "thread"
        return Turn(agent, name, observation, reply, self.contexts[agent], rules.parse_retries, fresh)

    def last(self, agent: str) -> Facts:
        """What the agent knows of the end."""
        turn = self.turn(agent, "act", self.line, 0)
        return {**turn.context, **turn.observation, "memory": []}

    def messages_for(self, agent: str) -> Facts:
        """Return `inbox` and `silent`: the channel's, or all of this timestep's talk."""
        if self.channel is None:
            return {"inbox": {}, "silent": []}
        channel_view = self.channel.observation(agent)
        if agent not in self.transcripts:
            return channel_view
        listed = (*channel_view["inbox"], *channel_view["silent"])
        transcript = self.transcripts[agent]
        return {
            "inbox": {name: transcript[name] for name in self.receivers(agent) if name in transcript},
            "silent": [name for name in self.receivers(agent) if name in listed and name not in transcript],
        }

    def receivers(self, agent: str) -> Sequence[str]:
        """Whom an agent's words reach: its neighbors, or all others. Not kept: of all agents these are quadratic."""
        if self.case.topology is not None:
            return self.case.topology[agent]
        return [other for other in self.case.agents if other != agent]

    def discuss(self, moves: Sequence[Move]) -> None:
        """Deliver a round of talk. Without one long conversation, collect the timestep's messages for each agent."""
        self.deliver(moves)
        if self.channel is None or self.rules.memory == "thread":
            return
        for agent in self.case.agents:
            transcript = self.transcripts.setdefault(agent, {})
            for name, text in self.channel.observation(agent)["inbox"].items():
                transcript[name] = f"{transcript[name]} / {text}" if name in transcript else text

    def deliver(self, moves: Sequence[Move]) -> None:
        """Deliver each message to all neighbors."""
        if self.channel is None:
            return
        deliveries = []
        for move in moves:
            text = move.action["message"] if isinstance(move.action, dict) else move.action
            receivers = self.receivers(move.agent) if text else ()
            self.messages, self.characters = self.messages + bool(text), self.characters + len(text or "")
            if text:
                self.traffic.note(move.agent, receivers, text)
            deliveries.append(replace(move, action=dict.fromkeys(receivers, text)))
        self.channel.commit(deliveries)

    def step(self, moves: Sequence[Move]) -> None:
        """Advance the world by one timestep, if any agent acted."""
        if self.rules.talk_rounds:
            self.deliver(moves)
            texts = [move.text for move in moves if move.text is not None]
            self.no_message_line += sum(read(self.line, text).error is not None for text in texts)
        acts = {move.agent: self.act(move) for move in moves} | self.forced
        if not acts:
            self.passed += 1
            return
        before, self.world = self.world, self.world.step(acts, self.rng)
        self.timesteps, self.passed, self.backoffs = self.timesteps + 1, 0, self.backoffs + len(self.forced)
        for agent, act in acts.items():
            self.waited[agent] = self.waited[agent] + 1 if self.world.backoff(agent) is not None else 0
            if self.rules.memory:
                self.memory[agent].append(
                    {**before.observation(agent), "timestep": self.timesteps, "action": act_of(act)}
                )

    def act(self, move: Move) -> Action:
        """Return the agent's action; the no-op if its turn failed."""
        if move.action is None:
            reply = self.world.reply(move.agent)
            return reply.noop if reply else None
        return move.action["act"] if self.rules.talk_rounds else move.action

    def ended(self) -> bool:
        """Check for the end of the episode, and count a deadlock."""
        if self.world.deadlock and self.rules.deadlock == "unreported":
            self.end = "over"
        elif self.world.deadlock:
            self.deadlocks.append(self.timesteps)
            if self.rules.deadlock == "terminal":
                self.end = "deadlock"
            else:
                self.world = self.world.break_deadlock()
                self.waited = dict.fromkeys(self.waited, 0)
        if self.end is None and (self.world.over or self.passed >= len(self.case.agents)):
            self.end = "over"
        if self.end is None and self.timesteps >= self.rules.max_timesteps:
            self.end = "limit"
        return self.end is not None

    def facts(self) -> Facts:
        """Return the facts that the protocol and the world declare."""
        turns_per_round = len(self.case.agents) if self.rules.order == "sequential" else 1
        return {
            "timesteps": self.timesteps,
            "rounds": self.timesteps / turns_per_round,
            "end": self.end,
            "deadlocks": self.deadlocks,
            "messages": self.messages,
            "characters": self.characters,
            "no_message_line": self.no_message_line,
            "sent": self.traffic.sent,
            "backoffs": self.backoffs,
            **self.world.facts(),
        }
