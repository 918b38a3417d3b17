"""Stepped games: all at once or one after another, with or without talk (DPBench, Sections 3.1, 3.3 and C.1)."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Literal

from harness.api import Action, Case, Channel, Facts, Move, Outcome, Play, Protocol, Range, Reply, Task, Turn, plugin
from harness.authoring.networks import NeighborChannel
from harness.authoring.traffic import Traffic
from harness.authoring.worlds import SteppedTask
from harness.errors import PluginError
from harness.replies import ActionWithMessage, Choice, Labelled, MessageLine, Parsing


@plugin
class Steps(Protocol):
    """A world is stepped until it is over, deadlocked, or out of time.

    Turns: `act`, and `talk` before it where there is more than one round of talk. Every observation has what the
    world shows
    the agent, what the channel shows (`inbox`, `silent`; without talk both are empty), `timestep` (from 1), `memory`
    (the agent's last observations, each with the action it took) and `talk_round` (from 1; 0 without talk). The context
    is the task's and `talk_rounds`. An agent that fails does what an idle one does.

    Attributes:
        order: "simultaneous": all agents decide on the same state, one timestep. "sequential": one after another,
            each on the state that those before have left; every action is one timestep (Appendix C.1).
        max_timesteps: the limit, in timesteps.
        ends: when the end is looked at in sequential order: after every "action", as the paper has it; or after
            all agents' "turn", as its released code does: then the limit is overshot to a multiple of the agents, and
            a deadlock that an agent resolves within the turn is none.
        talk_rounds: 0: no messages. 1: a message goes with each action, and is seen from the next decision on.
            R > 1: R − 1 rounds of messages alone come before each action; who speaks or acts sees all of the
            timestep's so far, those of one neighbor joined by " / ".
        channel: how messages travel; each goes to all neighbors. `neighbors` shows those of the last round;
            with `lifetime: latest` the last of each neighbor, which is what sequential order wants.
        memory: how many of its own last observations an agent is shown (0: each decision is a new conversation), or
            "thread": one conversation for the whole episode.
        deadlock: "terminal": ends the episode. "non_terminal": is counted, then broken from outside. "unreported": ends
            the episode and is not counted, as release 0.2 of DPBench has it in sequential order.
        backoff_threshold: an agent that has held something in vain for this many of its turns, that of taking it
            included, may be made to give up; None: never.
        backoff_probability: how likely it is made to, each time.
        parse_retries: how often an unreadable reply is asked for again; then the agent does nothing.
        max_chars: a longer message is cut; None for no limit.
        parsing: how replies are read; "reference" is DPBench's own code, quirks included.
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
    facts = ("timesteps", "rounds", "end", "deadlocks", "messages", "characters", "sent", "backoffs")

    def __post_init__(self) -> None:
        if self.talk_rounds and self.channel is None:
            raise PluginError("talk_rounds needs a channel", hint="For example `channel: neighbors`.")
        if self.talk_rounds > 1 and self.order == "sequential":
            message = f"talk_rounds: {self.talk_rounds} is for simultaneous order; in sequential order it is 0 or 1"
            raise PluginError(message)

    def play(self, task: Task, case: Case, agents: Sequence[str], rng: random.Random) -> Play:
        """Yields, for each timestep, the batches of talk and the batch of actions."""
        assert isinstance(task, SteppedTask)
        game = _Game(self, task, case, rng)
        while game.end is None:
            for group in [tuple(agents)] if self.order == "simultaneous" else [(agent,) for agent in agents]:
                acting = game.acting(group)
                game.heard = {}
                for talk in range(1, self.talk_rounds):
                    game.discuss((yield [game.turn(agent, "talk", game.line, talk) for agent in acting]))
                moves = yield [game.turn(agent, "act", reply, self.talk_rounds) for agent, reply in acting.items()]
                game.step(moves)
                if self.ends == "action" and game.ended():
                    break
            if self.ends == "turn":
                game.ended()
        return Outcome(facts=game.facts())


class _Game:
    """One episode: its world, its clock, and what is counted."""

    def __init__(self, rules: Steps, task: SteppedTask, case: Case, rng: random.Random) -> None:
        self.rules, self.task, self.case, self.rng = rules, task, case, rng
        self.world = task.world(case, rng)
        self.line = MessageLine(max_chars=rules.max_chars, parsing=rules.parsing)
        self.channel = rules.channel.open(case, rng) if rules.channel is not None and rules.talk_rounds else None
        everybody = {agent: tuple(other for other in case.agents if other != agent) for agent in case.agents}
        self.hearers = everybody if case.topology is None else case.topology
        window = rules.memory if isinstance(rules.memory, int) else 0
        self.memory: dict[str, deque[Facts]] = {agent: deque(maxlen=window) for agent in case.agents}
        self.waited = dict.fromkeys(case.agents, 0)
        self.heard: dict[str, dict[str, str]] = {}  # agent → neighbor → what it said in this timestep's talk
        self.forced: dict[str, Action] = {}
        self.contexts: dict[str, Facts] = {}
        self.end: str | None = None
        self.deadlocks: list[int] = []
        self.traffic = Traffic(case.agents)
        self.timesteps = self.messages = self.characters = self.backoffs = self.passed = 0

    def acting(self, group: Sequence[str]) -> dict[str, Reply]:
        """Who of the group is asked, and for what. Who is made to give up is not asked."""
        self.forced, asked = {}, {}
        for agent in group:
            reply = self.world.reply(agent)
            if reply is None:
                continue
            action = self.world.backoff(agent)
            limit = self.rules.backoff_threshold
            waited = action is not None and limit is not None and self.waited[agent] >= limit
            if waited and self.rng.random() < self.rules.backoff_probability:
                self.forced[agent] = action
                continue
            if isinstance(reply, Choice | Labelled):
                reply = replace(reply, parsing=self.rules.parsing)
            asked[agent] = ActionWithMessage(reply, self.line) if self.rules.talk_rounds else reply
        return asked

    def turn(self, agent: str, name: str, reply: Reply, talk: int) -> Turn:
        """What the agent is asked."""
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

    def messages_for(self, agent: str) -> Facts:
        """`inbox` and `silent`: what the channel shows, or all of this timestep's talk."""
        if self.channel is None:
            return {"inbox": {}, "silent": []}
        shown = self.channel.observation(agent)
        if agent not in self.heard:
            return shown
        around = (*shown["inbox"], *shown["silent"])
        heard = self.heard[agent]
        return {
            "inbox": {name: heard[name] for name in self.hearers[agent] if name in heard},
            "silent": [name for name in self.hearers[agent] if name in around and name not in heard],
        }

    def discuss(self, moves: Sequence[Move]) -> None:
        """A round of talk. Where each decision is a new conversation, what was said in it is kept for the timestep."""
        self.hear(moves)
        if self.channel is None or self.rules.memory == "thread":
            return
        for agent in self.case.agents:
            before = self.heard.setdefault(agent, {})
            for name, text in self.channel.observation(agent)["inbox"].items():
                before[name] = f"{before[name]} / {text}" if name in before else text

    def hear(self, moves: Sequence[Move]) -> None:
        """Messages travel: each to all neighbors."""
        if self.channel is None:
            return
        sent = []
        for move in moves:
            text = move.action["message"] if isinstance(move.action, dict) else move.action
            hearers = self.hearers[move.agent] if text else ()
            self.messages, self.characters = self.messages + bool(text), self.characters + len(text or "")
            if text:
                self.traffic.note(move.agent, hearers, text)
            sent.append(replace(move, action=dict.fromkeys(hearers, text)))
        self.channel.commit(sent)

    def step(self, moves: Sequence[Move]) -> None:
        """The world goes on by one timestep, if anybody acted."""
        if self.rules.talk_rounds:
            self.hear(moves)
        acts = {move.agent: self.act(move) for move in moves} | self.forced
        if not acts:
            self.passed += 1
            return
        before, self.world = self.world, self.world.step(acts, self.rng)
        self.timesteps, self.passed, self.backoffs = self.timesteps + 1, 0, self.backoffs + len(self.forced)
        for agent, act in acts.items():
            self.waited[agent] = self.waited[agent] + 1 if self.world.backoff(agent) is not None else 0
            if self.rules.memory:
                self.memory[agent].append({**before.observation(agent), "timestep": self.timesteps, "action": act})

    def act(self, move: Move) -> Action:
        """What the agent did; the idle action if it failed."""
        if move.action is None:
            reply = self.world.reply(move.agent)
            return reply.noop if reply else None
        return move.action["act"] if self.rules.talk_rounds else move.action

    def ended(self) -> bool:
        """Look whether this is the end, and count a deadlock."""
        if self.world.deadlock and self.rules.deadlock == "unreported":
            self.end = "over"
        elif self.world.deadlock:
            self.deadlocks.append(self.timesteps)
            if self.rules.deadlock == "terminal":
                self.end = "deadlock"
            else:
                self.world = self.world.freed()
                self.waited = dict.fromkeys(self.waited, 0)
        if self.end is None and (self.world.over or self.passed >= len(self.case.agents)):
            self.end = "over"
        if self.end is None and self.timesteps >= self.rules.max_timesteps:
            self.end = "limit"
        return self.end is not None

    def facts(self) -> Facts:
        """What the protocol and the world declare."""
        everybody = len(self.case.agents) if self.rules.order == "sequential" else 1
        return {
            "timesteps": self.timesteps,
            "rounds": self.timesteps / everybody,
            "end": self.end,
            "deadlocks": self.deadlocks,
            "messages": self.messages,
            "characters": self.characters,
            "sent": self.traffic.sent,
            "backoffs": self.backoffs,
            **self.world.facts(),
        }
