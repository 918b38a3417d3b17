"""A state of an OpenSpiel game as a frozen world."""

from __future__ import annotations

import functools
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from harness.api import Action, Facts
from harness.extensions.games.game_task import Invalid, legal_instead
from harness.extensions.games.legal import LegalAction
from harness.extensions.games.worlds import World

from .counts import counted
from .loading import LoadedGame
from .readable import readable
from .spoken import also, variants
from .witness import ObservedLines, Played, witness

_NOTHING = re.compile(r"Non-terminal|Terminal\. History string: .*")
"""What games with a single joint move have for a state."""


@dataclass(frozen=True, slots=True)
class Course:
    """What was played: each move as agent → name of its action, and the same in words.

    `turns` says for each agent after how many lines it last had a turn.
    """

    moves: list[Facts] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    turns: dict[str, int] = field(default_factory=dict)

    def add(self, move: Facts) -> None:
        """Add a move; only to a course that no state has yet."""
        self.moves.append(move)
        self.lines.append(", ".join([f"{who}: {what}" for who, what in move.items()]))

    def after(self, agents: Iterable[str]) -> Course:
        """A copy to add to, in which these agents have just had a turn."""
        return Course(self.moves[:], self.lines[:], {**self.turns, **dict.fromkeys(agents, len(self.lines))})

    def last(self, agent: str, least: int) -> list[str]:
        """The lines since an agent's last turn; more of them if these are fewer than `least`."""
        return self.lines[min(max(0, len(self.lines) - least), self.turns.get(agent, 0)) :]


class Rules:
    """What all states of one episode share.

    Args:
        loaded: the game.
        agents: the agents, in the order of seats.
        seed: all chance comes from it.
        invalid: what an invalid action leads to.
        observes: "observation" or "information".
        listed: how many legal actions an observation lists.
        recent: how many of the last moves it words; those since the agent's last turn always.
    """

    def __init__(
        self,
        loaded: LoadedGame,
        agents: tuple[str, ...],
        seed: int,
        invalid: Invalid,
        observes: str,
        listed: int,
        recent: int,
    ) -> None:
        self.loaded, self.agents, self.seed, self.invalid = loaded, agents, seed, invalid
        self.listed, self.recent = listed, recent
        self.seat = {agent: number for number, agent in enumerate(agents)}
        self.information = observes == "information"
        self.public = loaded.public
        self.witness = None if loaded.public or self.information else witness(loaded.name)
        self._salt = seed.to_bytes(8, "big")

    def uniform(self, number: int) -> float:
        """The draw for the game's chance event of this number, from 0 to 1."""
        digest = blake2b(self._salt + number.to_bytes(4, "big"), digest_size=7).digest()
        return int.from_bytes(digest, "big") / 2**56

    def first(self) -> GameState:
        """The state in which agents begin."""
        state = self.loaded.with_seed(self.seed).new_initial_state()
        course = Course()
        events = self.draw(state, 0, course)
        seen, texts = self.watched(tuple(ObservedLines() for _ in self.agents), (), state, {})
        return GameState(self, state, events, course, {}, seen=seen, texts=texts)

    def watched(
        self, seen: tuple[ObservedLines, ...], before: tuple[str, ...], after: Any, moves: Mapping[int, str]
    ) -> tuple[tuple[ObservedLines, ...], tuple[str, ...]]:
        """What each seat has seen once these moves, seat → name, have led to a state, and what the game shows each now.

        `before` has the same texts of the state before; none at the start.
        """
        if self.witness is None:
            return (), ()
        result, shown = [], tuple(self.text(after, seat) for seat in range(len(self.agents)))
        for seat, old in enumerate(seen):
            texts = before[seat] if before else "", shown[seat]
            waits = not (after.is_terminal() or after.is_simultaneous_node() or after.current_player() == seat)
            lines = self.witness(Played(self.loaded.name, self.agents, seat, *texts, moves, waits))
            result.append((old.turn() if seat in moves else old).add(lines, self.recent))
        return tuple(result), shown

    def text(self, state: Any, seat: int) -> str:
        """What the game shows a seat, in its own writing."""
        text: str = (state.information_state_string if self.information else state.observation_string)(seat)
        text = text.strip("\n")
        return "" if _NOTHING.fullmatch(text) else text

    def draw(self, state: Any, events: int, course: Course) -> int:
        """Let chance play until agents decide; returns the number of chance events so far."""
        while state.is_chance_node():
            outcome = _drawn(state.chance_outcomes(), self.uniform(events))
            if self.public:
                course.add({"chance": state.action_to_string(state.current_player(), outcome)})
            state.apply_action(outcome)
            events += 1
        return events


class GameState(World):
    """Nothing changes the OpenSpiel state in it: a step works on a clone.

    Args:
        rules: what all states share.
        state: OpenSpiel's state, where agents decide or the game is over.
        events: how many chance events there were.
        course: what was played, in order, if all agents may know it.
        counts: agent → its invalid actions so far.
        pending: agent → its action, of agents that have acted on this state while others have not.
        forfeited: the agent that lost by an invalid action.
        seen: what each seat was shown while others acted, in games that hide something; else nothing.
        texts: what the game shows each seat in this state, there; else nothing.
    """

    __slots__ = ("_legal", "counts", "course", "events", "forfeited", "pending", "rules", "seen", "state", "texts")

    def __init__(
        self,
        rules: Rules,
        state: Any,
        events: int,
        course: Course,
        counts: Mapping[str, int],
        pending: Mapping[str, int] | None = None,
        forfeited: str | None = None,
        seen: tuple[ObservedLines, ...] = (),
        texts: tuple[str, ...] = (),
    ) -> None:
        self.rules, self.state, self.events, self.course, self.counts = rules, state, events, course, counts
        self.pending, self.forfeited, self.seen, self.texts = pending or {}, forfeited, seen, texts
        self._legal: dict[int, tuple[list[int], tuple[str, ...]]] = {}

    def legal(self, seat: int) -> tuple[list[int], tuple[str, ...]]:
        """The legal actions of a seat and their names: `choices`."""
        found = self._legal.get(seat)
        if found is None:
            found = self._legal[seat] = choices(self.rules.loaded, self.state, seat)
        return found

    def acts(self, agent: str) -> bool:
        """Whether the agent has a turn."""
        if self.over or agent in self.pending:
            return False
        seat = self.rules.seat[agent]
        if self.state.is_simultaneous_node():
            return bool(self.legal(seat)[0])
        return bool(self.state.current_player() == seat)

    def observation(self, agent: str) -> Facts:
        """`state`, `legal`, `legal_count`, `moves`, `recent`, `history`."""
        rules, seat = self.rules, self.rules.seat[agent]
        names = self.legal(seat)[1] if self.acts(agent) else ()
        if self.seen:
            last = self.seen[seat].last(rules.recent)
        elif self.over:  # nobody's turn is next: the same moves for all
            last = self.course.lines[-max(rules.recent, len(rules.agents)) :]
        else:
            last = self.course.last(agent, rules.recent)
        text = self.texts[seat] if self.texts else rules.text(self.state, seat)
        parts = readable(rules.loaded.name, text, seat), counted(rules.loaded, self.state, seat, self.is_long(last))
        return {
            "state": "\n".join(filter(None, parts)),
            "legal": list(names[: rules.listed]),
            "legal_count": len(names),
            "moves": self.course.moves,
            "recent": last,
            "history": self.state.history() if rules.public else [],
        }

    def is_long(self, shown: Sequence[str]) -> bool:
        """Whether these last moves are not all."""
        return len(shown) < len(self.course.lines)

    def reply(self, agent: str) -> LegalAction | None:
        """One of the legal actions, by name."""
        if not self.acts(agent):
            return None
        seat = self.rules.seat[agent]
        actions, names = self.legal(seat)
        game = self.rules.loaded.name
        others = also(game, self.state, seat, actions, names)
        return LegalAction(names, also=others, whole=game in _NUMBERS, variants=variants(game, names))

    def step(self, actions: Mapping[str, Action], rng: random.Random) -> GameState:
        """The state after these actions; in a simultaneous node once all agents have acted."""
        rules, pending, counts = self.rules, dict(self.pending), self.counts
        for agent, action in actions.items():
            if not self.acts(agent):
                continue
            numbers, names = self.legal(rules.seat[agent])
            if action is None:
                counts = {**counts, agent: counts.get(agent, 0) + 1}
                if rules.invalid == "forfeit":
                    return GameState(
                        rules,
                        self.state,
                        self.events,
                        self.course,
                        counts,
                        forfeited=agent,
                        seen=self.seen,
                        texts=self.texts,
                    )
                action = legal_instead(names, rules.seed, self.state.move_number(), agent)
            pending[agent] = numbers[names.index(action)]
        if not pending:
            return self
        if self.state.is_simultaneous_node():
            if any(agent not in pending and self.acts(agent) for agent in rules.agents):
                return GameState(
                    rules, self.state, self.events, self.course, counts, pending, seen=self.seen, texts=self.texts
                )
            state = self.state.clone()
            state.apply_actions([pending.get(agent, 0) for agent in rules.agents])
        else:
            state = self.state.clone()
            state.apply_action(next(iter(pending.values())))
        course = self.course
        if rules.public:
            course = course.after(pending)
            course.add({agent: self.name(rules.seat[agent], number) for agent, number in pending.items()})
        events = rules.draw(state, self.events, course)
        moves = {rules.seat[agent]: self.name(rules.seat[agent], number) for agent, number in pending.items()}
        seen, texts = rules.watched(self.seen, self.texts, state, moves) if rules.witness else ((), ())
        return GameState(rules, state, events, course, counts, seen=seen, texts=texts)

    def name(self, seat: int, action: int) -> str:
        """The name of a legal action."""
        actions, names = self.legal(seat)
        return names[actions.index(action)]

    def facts(self) -> Facts:
        """`returns`, `invalid` and, if an agent has forfeited the game, `forfeited`."""
        values = dict(zip(self.rules.agents, self.returns(), strict=True))
        forfeited = {} if self.forfeited is None else {"forfeited": self.forfeited}
        invalid = {agent: self.counts.get(agent, 0) for agent in self.rules.agents}
        return {"returns": values, "invalid": invalid, **forfeited}

    def returns(self) -> list[float]:
        """Each agent's return, in the order of seats; of an unfinished game, what it has given so far.

        After a forfeit that agent gets the game's least return. Where returns have a constant sum the others share what
        is left of it; in a game of equal returns all get the least.
        """
        values = list(map(float, self.state.returns()))
        loaded = self.rules.loaded
        if self.forfeited is None or loaded.bounds is None:
            return values
        least, others = loaded.bounds[0], len(values) - 1
        if loaded.utility == "identical":
            return [least] * len(values)
        if loaded.utility != "general_sum":
            values = [((loaded.game.utility_sum() or 0.0) - least) / others] * len(values)
        values[self.rules.seat[self.forfeited]] = least
        return values

    @property
    def over(self) -> bool:
        """Whether the game has ended."""
        return self.forfeited is not None or bool(self.state.is_terminal())


def choices(loaded: LoadedGame, state: Any, seat: int) -> tuple[list[int], tuple[str, ...]]:
    """The legal actions of a seat and their names, in OpenSpiel's order; of backgammon one action for each name."""
    actions = state.legal_actions(seat)
    if loaded.name != "backgammon":
        text, lead = state.action_to_string, _LEADS.get(loaded.name)
        names = [text(seat, action) for action in actions]
        return actions, distinct(tuple([_bare(lead, name) for name in names] if lead else names))
    named = {move_of(state, seat, action): action for action in reversed(actions)}
    return list(named.values())[::-1], tuple(named)[::-1]


_NUMBERS = ("oh_hell", "spades")
"""Games with bids that are numbers, and cards."""
_LEADS = {
    "battleship": re.compile(r"^Pl\d: |place ship | with top-left corner in"),
    "colored_trails": re.compile(r"^Proposer \d: "),
    "gin_rummy": re.compile(r"^Player: \d Action: "),
    "negotiation": re.compile(r"^, (?=Utterance: )"),
    "skat": re.compile(r"^unknown/(?=pass$)"),
    "universal_poker": re.compile(r"^player=\d+ move="),
}
"""What OpenSpiel writes before the names of actions, and says nothing."""


@functools.lru_cache(maxsize=10_000)
def _bare(lead: re.Pattern[str], name: str) -> str:
    return lead.sub("", name)


def move_of(state: Any, seat: int, action: int) -> str:
    """The moves of an action of backgammon, without OpenSpiel's number before them.

    Several numbers may stand for the same moves. They differ in the order of the dice, and lead to the same state.
    """
    name: str = state.action_to_string(seat, action)
    return name.partition(" - ")[2] or name


def _drawn(outcomes: list[tuple[int, float]], uniform: float) -> int:
    for outcome, probability in outcomes:
        uniform -= probability
        if uniform < 0:
            return outcome
    return next(outcome for outcome, probability in reversed(outcomes) if probability)  # their sum fell below 1


def distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    """The names, printable and all different: those that stand for several actions get a number behind them."""
    if len(set(names)) == len(names) and all(map(str.isprintable, names)):
        return names
    clean = [" ".join("".join(c if c.isprintable() else " " for c in name).split()) or "action" for name in names]
    seen: dict[str, int] = {}
    result: list[str] = []
    taken = set(clean)
    for name in clean:
        number = seen[name] = seen.get(name, 0) + 1
        unique = name
        while number > 1 and unique in taken:
            unique = f"{name} #{number}"
            number += 1
        taken.add(unique)
        result.append(unique)
    return tuple(result)
