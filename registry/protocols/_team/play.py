"""One episode of a team: what each seat has heard and holds, and the turns that show it."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any, NamedTuple

from harness.api import Case, Facts, Move, Task, Turn
from harness.extensions.panels.panels import Opinion, Panel, leading, said_in
from harness.extensions.panels.peers import peer_text
from harness.extensions.panels.traffic import Traffic
from harness.replies import FreeText

from .graph import Graph
from .ratings import PeerRatings
from .roles import Part, Prune, Stop

_MARKS = " \t\r*_`#\"'.!"
_TAIL = 2_000
"""How many of a message's last characters are searched for its last line."""
_MAX_NAMED_SEATS = 8
"""The most seats that a brief lists by name."""
Batch = Generator[list[Turn], list[Move], None]


class Message(NamedTuple):
    """What a seat wrote."""

    seat: str
    text: str
    for_others: str


@dataclass(slots=True)
class _Seat:
    """What a seat has heard and written.

    `unread`: messages that none of its turns has shown; `latest`: speaker → its last message; `news`: whether a seat
    that it hears has acted since its own last turn; `answered`: whether it was ever asked for an answer.
    """

    unread: list[Message] = field(default_factory=list)
    latest: dict[str, Message] = field(default_factory=dict)
    news: bool = False
    opened: bool = False
    answered: bool = False
    own: Message | None = None
    opinion: Opinion | None = None


class TeamPlay:
    """A team at work. The work of a turn is proportional to the messages that it shows.

    Attributes:
        dropped: seats that do not act any more.
        stopped: whether the stop role has spoken.
        history: rows of what the seats that are asked for answers hold.
        traffic: who read whose texts.
        turns: role → the number of its turns.
        pruned: the fact of that name.
    """

    def __init__(
        self, panel: Panel, task: Task, case: Case, parts: Mapping[str, Part], graph: Graph, answers: str,
        stop: Stop | None, agents: Sequence[str],
    ) -> None:  # fmt: skip
        self._panel, self._task, self._case = panel, task, case
        self._parts, self._graph, self._answers, self._stop = parts, graph, answers, stop or {}
        self._ends = [seat for seat in parts[answers].seats if seat in graph.ends]
        self._seats = {seat: _Seat() for seat in agents}
        asked = {name for name, part in parts.items() if part.asks == "answer"} | {answers}
        self._askers = [seat for seat in graph.seats if graph.role_of[seat] in asked]
        self._stopping: set[str] = set()  # seats of the stop role whose last message stops
        self._asked = False  # for an answer, since the last row of the history
        self._more = {seat: self._brief(parts[graph.role_of[seat]], seat) for seat in graph.seats}
        self.dropped: set[str] = set()
        self.stopped = False
        self.history: list[list[Opinion]] = []
        self.traffic = Traffic(agents)
        self.turns = dict.fromkeys(parts, 0)
        self.pruned: Facts | None = None

    # -------------------------------------------------------------------------------------- rounds

    def round(self, number: int) -> Generator[list[Turn], list[Move], bool]:
        """Yield the batches of a round; returns whether a seat acted.

        Levels act one after another; in the first round all seats, later those with news. On the way back seats
        between two loops act again where they have news. A stop ends the round.
        """
        acted, levels = False, self._graph.levels
        for level in levels:
            acted |= yield from self._act([seat for seat in level if number == 1 or self._seats[seat].news])
            if self.stopped:
                return True
        between = self._graph.returning
        for level in reversed(levels) if between else ():
            acted |= yield from self._act([seat for seat in level if seat in between and self._seats[seat].news])
            if self.stopped:
                return True
        return acted

    def close(self) -> Batch:
        """Yield the last batch: seats of the answering role that were never asked for an answer, or have news.

        News does not count where the team has stopped.
        """
        seats = [(seat, self._seats[seat]) for seat in self._ends]
        yield from self._act(
            [seat for seat, own in seats if not own.answered or (own.news and not self.stopped)], last=True
        )
        self.note()

    def note(self) -> None:
        """Append a row to the history, if an answer was asked for since the last one."""
        if self._asked:
            held = ((seat, self._seats[seat].opinion) for seat in self._askers)
            self.history.append([own or Opinion(seat, None, None) for seat, own in held])
            self._asked = False

    @property
    def opinions(self) -> list[Opinion]:
        """What the seats of the answering role hold that still act."""
        seats = (seat for seat in self._ends if seat not in self.dropped)
        return [self._seats[seat].opinion or Opinion(seat, None, None) for seat in seats]

    def agreed(self) -> bool:
        """Whether as many of these as `stop` asks for hold the same answer."""
        share = self._stop.get("agree")
        if share is None:
            return False
        held = [opinion.candidate for opinion in self.opinions]
        most = max((held.count(key) for key in dict.fromkeys(held) if key is not None), default=0)
        return most > 0 and most >= share * len(held) - 1e-9

    # --------------------------------------------------------------------------------------- turns

    def _act(self, seats: Sequence[str], last: bool = False) -> Generator[list[Turn], list[Move], bool]:
        seats = [seat for seat in seats if seat not in self.dropped]
        if not seats:
            return False
        moves = yield [self._turn(seat, last) for seat in seats]
        for seat, move in zip(seats, moves, strict=True):
            self._take(seat, move, last)
        role = self._stop.get("role")
        if role is not None:
            acting = [seat for seat in self._parts[role].seats if seat not in self.dropped]
            self.stopped = self._stopping.issuperset(acting)
        return True

    def _turn(self, seat: str, last: bool) -> Turn:
        own, part = self._seats[seat], self._parts[self._graph.role_of[seat]]
        answers = last or part.asks == "answer"
        again = not part.keeps_conversation
        heard = [own.latest[s] for s in self._graph.hears[seat] if s in own.latest] if again else own.unread
        texts = self._read(seat, own.unread)
        held = [o for s in self._graph.hears[seat] if (o := self._seats[s].opinion) is not None]
        observation: dict[str, Any] = {
            "messages": [{"name": message.seat, "text": message.for_others} for message in heard if message.text],
            "restated": part.question and (again or not own.opened),
            "own": own.own.for_others if again and own.own is not None else None,
        }
        if answers:
            observation["leading"] = leading(held)
        else:
            observation["signal"] = self._stop.get("says") if self._stop.get("role") == part.name else None
        fresh, name = again and own.opened, "deliver" if answers else "work"
        more = self._more[seat]
        turn = self._panel.ask(
            self._task, self._case, seat, name, observation, peer_texts=texts, fresh=fresh, more=more
        )
        own.opened, own.news, own.unread = True, False, []
        own.answered |= answers
        self._asked |= answers
        self.turns[part.name] += 1
        return turn if answers else replace(turn, reply=FreeText())

    def _read(self, seat: str, messages: Sequence[Message]) -> list[str]:
        """Count messages as read; returns their texts."""
        for message in messages:
            if message.text:
                self.traffic.note(message.seat, [seat], message.text)
        return [message.text for message in messages if message.text]

    def _take(self, seat: str, move: Move, last: bool) -> None:
        """Note a move, and bring its text to all that hear the seat. A failed call sends nothing."""
        own, part = self._seats[seat], self._parts[self._graph.role_of[seat]]
        if move.error_kind not in (None, "parse"):
            return
        if last or part.asks == "answer":
            opinion = self._panel.read(self._task, self._case, move)
            text = opinion.text
            if opinion.candidate is not None:
                own.opinion = opinion
        else:
            text = said_in(move.text) if move.text is not None else str(move.action or "")
        own.own = message = Message(seat, text, peer_text(text, block=True))
        if part.name == self._stop.get("role"):
            (self._stopping.add if says(text, self._stop["says"]) else self._stopping.discard)(seat)
        for listener in self._graph.heard_by[seat]:
            if listener not in self.dropped:
                other = self._seats[listener]
                other.unread.append(message)
                other.latest[seat] = message
                other.news = True

    def _brief(self, part: Part, seat: str) -> Facts:
        """What a seat knows of itself and of its place, beside the task."""
        graph = self._graph
        hears, heard = (self._names(known[seat]) for known in (graph.hears, graph.heard_by))
        return {"team": {"seat": seat, "brief": part.brief, "hears": hears, "heard_by": heard}}

    def _names(self, seats: Sequence[str]) -> list[str]:
        """Seats by name, or, where they are many, by role."""
        return (
            [*seats]
            if len(seats) <= _MAX_NAMED_SEATS
            else [*dict.fromkeys(self._graph.role_of[seat] for seat in seats)]
        )

    # ------------------------------------------------------------------------------------- ratings

    def prune(self, rules: Prune, number: int) -> Batch:
        """Yield one batch of turns `rate`, and drop the seats whose last messages are rated worst.

        A seat's rating is the mean of those that it got. One without ratings comes last; of equal ones the earlier
        seat goes on.
        """
        part = self._parts[rules["role"]]
        by = rules.get("by", "peers")
        judges = part.seats if by == "peers" else self._parts[by].seats
        shown = {judge: [seat for seat in part.seats if seat != judge and self._seats[seat].own] for judge in judges}
        judges = tuple(judge for judge in judges if shown[judge])
        got: dict[str, list[float]] = {seat: [] for seat in part.seats}
        if judges:
            moves = yield [self._rate(judge, shown[judge]) for judge in judges]
            for judge, move in zip(judges, moves, strict=True):
                for place, rating in (move.action or {}).items():
                    got[shown[judge][int(place) - 1]].append(float(rating))
        ratings = {seat: round(fmean(values), 4) if values else None for seat, values in got.items()}
        ordered = sorted(part.seats, key=lambda seat: -(ratings[seat] or 0.0))
        self.dropped = {*ordered[rules["keep"] :]}
        for own in self._seats.values():
            own.unread = [message for message in own.unread if message.seat not in self.dropped]
            own.latest = {seat: message for seat, message in own.latest.items() if seat not in self.dropped}
        kept = [seat for seat in part.seats if seat not in self.dropped]
        self.pruned = {"round": number, "ratings": ratings, "kept": kept}

    def _rate(self, judge: str, seats: Sequence[str]) -> Turn:
        own, part = self._seats[judge], self._parts[self._graph.role_of.get(judge, judge)]
        messages = [message for seat in seats if (message := self._seats[seat].own) is not None]
        new = [m for m in messages if own.latest.get(m.seat) is not m or any(m is unread for unread in own.unread)]
        observation = {
            "replies": [message.for_others for message in messages],
            "restated": part.question and (not part.keeps_conversation or not own.opened),
            "reminded": False,
        }
        more = self._more.get(judge) or {"team": {"seat": judge, "brief": part.brief, "hears": [], "heard_by": []}}
        fresh, own.opened = own.opened and not part.keeps_conversation, True
        self.turns[part.name] += 1
        turn = self._panel.ask(
            self._task,
            self._case,
            judge,
            "rate",
            observation,
            peer_texts=self._read(judge, new),
            fresh=fresh,
            more=more,
        )
        return replace(turn, reply=PeerRatings(tuple(str(n + 1) for n in range(len(messages)))))


def says(text: str, signal: str) -> bool:
    """Whether the last line of a text is the signal, whatever its case and the marks around it.

    >>> says("All tests pass.\\n**Approved.**\\n", "approved")
    True
    """
    lines = text[-_TAIL:].strip().splitlines()
    return bool(lines) and lines[-1].strip(_MARKS).casefold() == signal.strip(_MARKS).casefold()
