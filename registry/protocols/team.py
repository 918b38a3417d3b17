"""Team: roles with briefs of their own, and a directed graph that says who reads whom."""

from __future__ import annotations

import random
from collections.abc import Hashable, Sequence
from dataclasses import field
from functools import cached_property
from typing import Annotated

from harness.api import Case, Play, PluginError, Range, Task, near, plugin
from harness.extensions.panels.answer_with_confidence import Style
from harness.extensions.panels.panels import Panel, Ties, majority

from ._team.graph import Edges, Graph, check_paths, graph_of, names_of
from ._team.play import TeamPlay
from ._team.roles import Part, Prune, Role, Stop, find_role, parts_of


@plugin
class Team(Panel):
    """Roles with briefs of their own work along the edges of a graph; the answering role's last answers count.

    In a round seats act in the order of the roles, each as soon as all seats before it have acted that it hears: all
    seats of a level of the graph at once. An edge to an earlier role is a loop: its message arrives in the next round.
    From the second round on a seat acts only if a seat that it hears has acted since. On the way back through the
    levels, seats between two loops act again, so that reports go up a tree. After the last round seats of the
    answering role with news, or without an answer, act once more.

    Turns: `work` (free text; observation: `messages` with `name` and `text`, `restated`, `own`, `signal`), `deliver`
    (an answer; `messages`, `restated`, `own`, `leading`), `rate` (`replies`, `restated`). The context has `team`:
    `seat`, `brief`, and the roles that the seat `hears` and is `heard_by`.

    Facts beside those of every panel: `rounds`, `votes`, `tied`, `turns` (role → number of turns), and `pruned` (None,
    or `round`, `ratings` by seat, `kept`). `history` has the seats that are asked for answers, in order.

    Attributes:
        roles: name → role. A role with one seat gives it its name; others have seats NAME-0, NAME-1, … .
        edges: who is read by whom: "planner > worker" or [planner, worker], for all seats of both; a > b > c; a > a
            for all other seats of a role. A role with `within` is entered at the seats that hear no other one, and
            left at those that no other one hears. Or a shape: "star" (the first role and all others, both ways),
            "chain" (seat after seat), "tree" (role under role, both ways), "graph" (all hear all, round by round).
        answers: the role whose answers count: by default the last one, in a star or tree the first. Its seats vote, but
            for those that a later seat of the role hears in the same round: of a chain the last one answers.
        rounds: the largest number of rounds.
        stop: {role: critic, says: approved}: as soon as the last line of all of the role's messages is this; or
            {agree: 0.66}: after a round in which at least this share of the answering seats holds the same answer.
        prune: {role: solver, keep: 2, after: 1, by: peers}: after a round the seats of a role, or one of another role
            that does nothing else, rate the last messages from 1 to 5; the best go on, the others act no more.
        ties: which of several leading answers wins.
        graph_seed: from which the random families of `within` are drawn.
    """

    agents: Annotated[int, Range(ge=1, le=1000)] | None = field(default=None, init=False)
    confidence: Style = "none"
    roles: dict[str, Role] = field()  # type: ignore[assignment, misc]  # here roles are mappings of the spec
    edges: Edges = field(default_factory=list)
    answers: str | None = None
    rounds: Annotated[int, Range(ge=1, le=1000)] = 1
    stop: Stop | None = None
    prune: Prune | None = None
    ties: Ties = "first"
    graph_seed: int = 0

    facts = (*Panel.facts, "rounds", "votes", "tied", "turns", "pruned")

    def __post_init__(self) -> None:
        parts = self.parts
        if self.prune is not None:
            self._check_prune(self.prune, parts)
        if self.stop is not None:
            self._check_stop(self.stop)
        answering = find_role(self._answering, self._playing, "answers")
        if self.stop is not None and "agree" in self.stop and answering.asks != "answer":
            message = f"no round can end in agreement: {answering.name!r} is asked for answers only at the end"
            raise PluginError(message, hint=f"Give {answering.name} asks: answer.", at=("stop", "agree"))
        if not self.edges and len(self._playing) > 1:
            hint = "Add edges: [planner > worker, …], or a shape: star, chain, tree or graph."
            raise PluginError("roles without edges: no seat would read another", hint=hint, at=("roles",))
        check_paths(self.graph, [seat for seat in parts[self._answering].seats if seat in self.graph.ends])

    @cached_property
    def parts(self) -> dict[str, Part]:
        """Role → its seats and what they are asked, in order. Raises `PluginError`."""
        parts = parts_of(self.roles)
        default = self._default(list(parts))
        answers = self.answers or default
        at_the_end = self.edges in ("star", "tree") and answers == default
        if answers in parts and parts[answers].asks is None and not at_the_end:
            return parts_of({**self.roles, answers: {**self.roles[answers], "asks": "answer"}})
        return parts

    @cached_property
    def graph(self) -> Graph:
        """Who hears whom. Raises `PluginError`."""
        return graph_of(self._playing, self.edges, self.graph_seed)

    @property
    def _playing(self) -> dict[str, Part]:
        """The roles without one that only rates."""
        by = None if self.prune is None else self.prune.get("by")
        return {name: part for name, part in self.parts.items() if name != by}

    @property
    def _answering(self) -> str:
        return self.answers or self._default(list(self.parts))

    def _default(self, names: Sequence[str]) -> str:
        by = None if self.prune is None else self.prune.get("by")
        names = [name for name in names if name != by] or list(names)
        return names[0 if self.edges in ("star", "tree") else -1]

    def possible_agents(self, case: Case) -> tuple[str, ...]:
        """All seats, in the order of the roles."""
        if len(case.agents) > 1:
            message = f"a team answers questions of one agent; {case.id!r} has {len(case.agents)} agents of its own"
            raise PluginError(message, hint="Use a task with one agent per question.", at=("roles",))
        return tuple(seat for part in self.parts.values() for seat in part.seats)

    def members(self, case: Case) -> tuple[str, ...]:
        """The seats that are asked for answers."""
        asked = {name for name, part in self.parts.items() if part.asks == "answer"} | {self._answering}
        return tuple(seat for seat in self.graph.seats if self.graph.role_of[seat] in asked)

    def shape(self, task: Task, case: Case) -> Hashable:
        """The seats: nothing else decides who is asked."""
        return self.possible_agents(case)

    def play(self, task: Task, case: Case, agents: Sequence[str], rng: random.Random) -> Play:
        """Yield the rounds, level by level, and the last turns of the answering role."""
        team = TeamPlay(self, task, case, self.parts, self.graph, self._answering, self.stop, agents)
        number, agreed, acted = 0, False, True
        while number < self.rounds and acted and not team.stopped and not agreed:
            acted = yield from team.round(number + 1)
            number += acted
            team.note()
            agreed = team.agreed()
            goes_on = acted and not agreed and not team.stopped
            if goes_on and self.prune is not None and number == self.prune.get("after", 1):
                yield from team.prune(self.prune, number)
        if not agreed:
            yield from team.close()
        opinions = team.opinions
        count = majority(task, case, [opinion.answer for opinion in opinions], ties=self.ties, rng=rng)
        ended = "stopped" if team.stopped else "agreed" if agreed else "rounds"
        several = len(opinions) > 1
        return self.outcome(
            team.history,
            count.answer,
            exit=ended if count.answer is not None else count.exit if several else "no answer",
            peer_characters=team.traffic.characters,
            sent=team.traffic.sent,
            rounds=number,
            votes=count.weights,
            tied=count.tied,
            turns=team.turns,
            pruned=team.pruned,
        )

    def _check_stop(self, stop: Stop) -> None:
        hint = "Write {role: critic, says: approved}, or {agree: 0.66}."
        if ("role" in stop) != ("says" in stop) or ("agree" in stop) == ("role" in stop):
            raise PluginError("stop needs a role and what it says, or agree", hint=hint, at=("stop",))
        if "role" in stop:
            find_role(stop["role"], self._playing, "stop", "role")
            if not stop["says"].strip() or "\n" in stop["says"] or len(stop["says"]) > 200:
                raise PluginError("says must be a few words on one line", hint=hint, at=("stop", "says"))

    def _check_prune(self, prune: Prune, parts: dict[str, Part]) -> None:
        part, by = find_role(prune["role"], parts, "prune", "role"), prune.get("by", "peers")
        if by == prune["role"]:
            raise PluginError(f"{by} rates itself", hint="Say by: peers, or name another role.", at=("prune", "by"))
        if by != "peers":
            if by not in parts:
                hint = near(by, ["peers", *parts])
                raise PluginError(f"prune names {by!r:.80}, which is not a role", hint=hint, at=("prune", "by"))
            if len(parts[by].seats) > 1 or self.answers == by or (self.stop or {}).get("role") == by:
                message = f"{by} rates, so it must have one seat, and can neither answer nor stop the team"
                raise PluginError(message, at=("prune", "by"))
            for i, edge in enumerate(() if isinstance(self.edges, str) else self.edges):
                if by in names_of(edge):
                    hint = "Drop the edge: a seat that rates reads the messages that it rates; it sends nothing."
                    raise PluginError(f"{by} only rates (prune), so it has no edges", hint=hint, at=("edges", i))
        if prune.get("after", 1) > self.rounds:
            message = f"prune after round {prune['after']}, and the team has {self.rounds}: no seat would be left out"
            raise PluginError(message, hint="Raise rounds, or lower after.", at=("prune", "after"))
        if prune["keep"] >= len(part.seats):
            message = f"keep is {prune['keep']}, and role {part.name!r} has {len(part.seats)} seats: all would go on"
            raise PluginError(message, hint="Lower keep.", at=("prune", "keep"))
