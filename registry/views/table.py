"""How DPBench is drawn: philosophers and forks around a table."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from harness.api import Case, Protocol, Task, plugin
from harness.extensions.games.worlds import World
from harness.extensions.viewer.scenes import count, messages, ring, verdict
from harness.transcripts.view_api import Edge, Node, RecordedTurn, Scene, Sheet, Transcript, View

from ..tasks.dpbench._table import GRAB_LEFT, GRAB_RIGHT, Table
from ..tasks.dpbench.dining_table import DiningTable

_KEY = "← → grabs a fork, ↓ releases, · waits, ! no action, ● eats"
_WORDS = {"GRAB_LEFT": "grabs left", "GRAB_RIGHT": "grabs right", "RELEASE": "releases", "WAIT": "waits"}


@plugin
class RoundTable(View):
    """Philosophers and forks around a table: who holds what, who eats, who waits, and the deadlock."""

    def draws(self, task: Task, protocol: Protocol) -> bool:
        """Dining tables."""
        return isinstance(task, DiningTable)

    def scenes(self, transcript: Transcript, task: Task) -> Iterator[Scene]:
        """The table at the start, and after each round of talk or of actions."""
        case = transcript.case
        assert isinstance(task, DiningTable) and case is not None
        game = _Game(task, case)
        rows: dict[str, list[str]] = {agent: [] for agent in case.agents}
        yield self._scene(game, {}, "All forks are on the table.", ())
        rounds = transcript.rounds
        for number, turns in enumerate(rounds):
            game.catch_up(turns)
            if turns[0].name == "talk":
                sent_messages = messages(_said(turns), case.agents)
                yield self._scene(game, {}, f"Talk: {count(len(sent_messages), 'message')}.", (), turns)
                continue
            acts = game.act(turns)
            for agent in case.agents:
                rows[agent].append(_glyph(acts, agent, game.world))
            caption = f"Timestep {game.steps}: "
            caption += ", ".join(f"{agent} {_WORDS.get(str(act), 'does nothing')}" for agent, act in acts.items())
            if game.world.deadlock:
                caption += ". Deadlock: all hold one fork and wait for the other"
            elif game.world.meals != game.before.meals:
                eating = [a for a, m, n in zip(case.agents, game.world.meals, game.before.meals, strict=True) if m > n]
                caption += f". {' and '.join(eating)} {'starts' if len(eating) == 1 else 'start'} to eat"
            if number == len(rounds) - 1 and transcript.finished:
                caption += f". {_end(transcript)}".removesuffix(".")
            columns = ("", *map(str, range(1, len(next(iter(rows.values()))) + 1)))
            sheet = Sheet("Actions", columns, tuple((agent, *cells) for agent, cells in rows.items()), note=_KEY)
            yield self._scene(game, acts, f"{caption}.", (sheet,), turns)

    def _scene(
        self,
        game: _Game,
        acts: Mapping[str, object],
        caption: str,
        sheets: tuple[Sheet, ...],
        turns: Sequence[RecordedTurn] = (),
    ) -> Scene:
        world, agents = game.world, game.world.agents
        seats, inner = ring(agents, 0.4), ring([f"fork {i}" for i in range(len(agents))], 0.23, turn=-0.5)
        nodes, edges = [Node("table", x=0.5, y=0.5, kind="surface")], list[Edge]()
        for i, agent in enumerate(agents):
            holding = sum(world.holds(i))
            marks = ["conflict"] if world.deadlock else ["eating"] if world.eating[i] else []
            for action in (GRAB_LEFT, GRAB_RIGHT):
                fork = world.fork(i, action)
                if acts.get(agent) == action and world.forks[fork] != i and not game.before.eating[i]:
                    marks.append("waiting")
                    edges.append(Edge(agent, f"fork {fork}", "wanted"))
            meals = world.meals[i]
            x, y = seats[agent]
            nodes.append(
                Node(agent, x=x, y=y, color=i, text=str(meals), marks=tuple(marks or (["waiting"] if holding else [])))
            )
        for i, holder in enumerate(world.forks):
            name = f"fork {i}"
            x, y = inner[name]
            if holder is not None:
                edges.append(Edge(agents[holder], name, "held"))
                hx, hy = seats[agents[holder]]
                x, y = x + 0.45 * (hx - x), y + 0.45 * (hy - y)
            nodes.append(Node(name, "", x, y, "thing", holder, "Ψ"))
        facts = {"meals": str(sum(world.meals)), "timestep": str(game.steps)}
        return Scene(caption, tuple(nodes), tuple(edges), messages(_said(turns), agents), sheets=sheets, facts=facts)


class _Game:
    """The world of an episode, stepped with its recorded moves; observations say what else happened between them."""

    def __init__(self, task: DiningTable, case: Case) -> None:
        self.rng = random.Random(0)  # dining philosophers draw nothing
        self.case, self.steps = case, 0
        self.world = self.before = task.world(case, self.rng)

    def catch_up(self, turns: Sequence[RecordedTurn]) -> None:
        """What happened before these turns without a move: an agent was forced to back off, a deadlock was broken."""
        seen = turns[0].observation or {}
        if self.world.deadlock and any(seen.get(key) != value for key, value in self._view(turns[0].agent).items()):
            self.step(self.world.break_deadlock())
        for agent in self.case.agents * 2:
            if self.steps + 1 >= seen.get("timestep", 0):
                break
            if (forced := self.world.backoff(agent)) is not None and agent != turns[0].agent:
                self.step(self.world.step({agent: forced}, self.rng))
                self.steps += 1

    def act(self, turns: Sequence[RecordedTurn]) -> dict[str, object]:
        """Step the world with a round of actions; agents of a simultaneous round without a turn were forced."""
        moves = {turn.agent: turn.move.action if turn.move is not None else None for turn in turns}
        acts = {agent: action.get("act") if isinstance(action, Mapping) else action for agent, action in moves.items()}
        if len(turns) > 1:
            absent = [agent for agent in self.case.agents if agent not in acts]
            acts |= {agent: act for agent in absent if (act := self.world.backoff(agent)) is not None}
        if any(turn.move is None for turn in turns):
            return {}  # the round is not complete
        self.step(self.world.step({agent: "WAIT" if act is None else act for agent, act in acts.items()}, self.rng))
        self.steps += 1
        return acts

    def step(self, world: World) -> None:
        assert isinstance(world, Table)
        self.before, self.world = self.world, world

    def _view(self, agent: str) -> Mapping[str, object]:
        return self.world.observation(agent)


def _said(turns: Sequence[RecordedTurn]) -> Sequence[RecordedTurn]:
    """Turns with what was said as a message: in rounds of talk the action is the message."""
    return [
        replace(turn, move=replace(turn.move, action={"message": turn.move.action}))
        if turn.move is not None and isinstance(turn.move.action, str) and turn.name == "talk"
        else turn
        for turn in turns
    ]


def _glyph(acts: Mapping[str, object], agent: str, world: Table) -> str:
    """What an agent did in one or two characters; ● while the philosopher eats."""
    letters = {"GRAB_LEFT": "←", "GRAB_RIGHT": "→", "RELEASE": "↓", "WAIT": "·"}
    letter = letters.get(str(acts[agent]), "!") if agent in acts else ""
    return f"{letter}●" if world.eating[world.agents.index(agent)] else letter


def _end(transcript: Transcript) -> str:
    end = transcript.outcome.facts.get("end") if transcript.outcome is not None else None
    words = {"deadlock": "The episode ends in a deadlock", "limit": "The time is up", "over": "The game is over"}
    return words.get(str(end), verdict(transcript))
