"""How a discussion decides: by consensus after a round, or in the end by a vote, ballots, a judge or the last word."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, Protocol

from harness.api import Action, Case, Move, Task, Turn
from harness.extensions.panels import elections
from harness.extensions.panels.ballots import Approval, Points, Ranking
from harness.extensions.panels.panels import Opinion, Panel, Ties, leading, majority
from harness.extensions.panels.peers import peer_text
from harness.replies import Choice

from .talk import Talk, in_words

Consensus = Literal["unanimity", "majority", "supermajority", "hybrid"]
"""All members agree; more than half; two thirds; all in the first rounds and then more than half."""
Ballot = Literal["vote", "approval", "borda", "instant_runoff", "points"]
"""One choice; any number; rankings with points for places; rankings with elimination; ten points to give away."""
Decision = Consensus | Ballot | Literal["plurality", "last_word", "judge"]
POINTS = 10
"""What a member may give away in a `points` vote."""
_CONSENSUS = ("unanimity", "majority", "supermajority", "hybrid")
_TEMPLATES = {"vote": "vote", "approval": "approve", "borda": "rank", "instant_runoff": "rank", "points": "points"}

Form = Choice | Approval | Points | Ranking
Ask = Generator[list[Turn], list[Move], "Verdict"]


class Rules(Protocol):
    """The parameters of a discussion that decide."""

    decision: Decision
    votes: Literal["secret", "public"]
    ties: Ties | Literal["again"]
    otherwise: Literal["plurality", "none"]
    unanimous_rounds: int
    judge: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a discussion decides.

    Attributes:
        answer: the group's answer; None if there is none.
        exit: how it was decided, or why it was not: the kind of consensus; "vote", "tie", "no candidate"; "no
            consensus"; "last word"; "judge", "no judge" where the judge gave no answer.
        votes: candidate → its score by the rule of the decision.
        tied: whether several candidates led.
        proposal: the answer of the judge.
    """

    answer: Action
    exit: str
    votes: Mapping[str, float]
    tied: bool = False
    proposal: Action = None


def is_consensus(decision: Decision) -> bool:
    """Whether a decision may be reached after any round."""
    return decision in _CONSENSUS


def settled(rules: Rules, number: int, opinions: Sequence[Opinion]) -> Verdict | None:
    """Return the consensus after round `number` (0: the drafts), None if there is none or the decision needs none.

    Members agree whose current answers are equal. The share is that of all members, also of those without an answer.
    """
    if not is_consensus(rules.decision):
        return None
    counts = Counter(opinion.candidate for opinion in opinions if opinion.candidate is not None)
    if not counts:
        return None
    [(_, most)] = counts.most_common(1)
    kind = rules.decision
    if kind == "hybrid":
        kind = "unanimity" if number <= rules.unanimous_rounds else "majority"
    all_of_them = len(opinions)
    agree = {"unanimity": most == all_of_them, "majority": 2 * most > all_of_them}
    if not agree.get(kind, 3 * most >= 2 * all_of_them):
        return None
    return Verdict(leading(opinions), kind, {key: float(count) for key, count in counts.items()})


def decide(rules: Rules, panel: Panel, task: Task, case: Case, talk: Talk, rng: random.Random) -> Ask:
    """Decide without a consensus, on what the members hold now. Ballots and judges are turns of their own."""
    election = _Election(rules, panel, task, case, talk, rng)
    if rules.decision == "last_word":
        answer = talk.last_word
        return Verdict(answer, "no candidate" if answer is None else "last word", election.count().votes)
    if rules.decision == "judge":
        return (yield from election.judged())
    if rules.decision in _TEMPLATES and len(election.candidates) > 1:
        return (yield from election.balloted())
    if is_consensus(rules.decision) and rules.otherwise == "none":
        return Verdict(None, "no consensus", election.count().votes)
    return election.count()


@dataclass(frozen=True, slots=True)
class _Candidate:
    """An answer that can be voted for: its canonical text, the answer, its author, and its words."""

    key: str
    answer: Action
    author: str
    text: str


class _Election:
    """The candidates, and ways to choose one of them."""

    def __init__(self, rules: Rules, panel: Panel, task: Task, case: Case, talk: Talk, rng: random.Random) -> None:
        self._rules, self._panel, self._task, self._case = rules, panel, task, case
        self._talk, self._opinions, self._rng = talk, talk.candidates, rng
        first = {o.candidate: o for o in reversed(self._opinions) if o.candidate is not None}
        self.candidates = [
            _Candidate(o.candidate, o.answer, o.agent, in_words(o.answer))
            for o in self._opinions
            if o.candidate is not None and first[o.candidate] is o
        ]

    def count(self) -> Verdict:
        """Count the members' current answers."""
        answers = [opinion.answer for opinion in self._opinions]
        ties: Ties = "first" if self._rules.ties == "again" else self._rules.ties
        count = majority(self._task, self._case, answers, ties=ties, rng=self._rng)
        return Verdict(count.answer, count.exit, count.weights, count.tied)

    def judged(self) -> Ask:
        """Ask the judge, who reads what the members wrote last, in random order and without names."""
        judge, read = self._rules.judge, [opinion for opinion in self._opinions if opinion.text]
        self._rng.shuffle(read)
        for opinion in read:
            self._talk.traffic.note(opinion.agent, [judge], opinion.text)
        replies = [{"text": one.peer_text, "adopted": self._talk.adopted(one.agent)} for one in read]
        observation = {"replies": replies, "leading": leading(read)}
        texts = [opinion.text for opinion in read]
        [move] = yield [
            self._panel.ask(self._task, self._case, judge, "decide", observation, peer_texts=texts, fresh=True)
        ]
        answer, counted = self._panel.read(self._task, self._case, move).answer, self.count()
        if answer is not None:
            return Verdict(answer, "judge", counted.votes, proposal=answer)
        return counted if self._rules.otherwise == "plurality" else Verdict(None, "no judge", counted.votes)

    def balloted(self) -> Ask:
        """Ask every member for a ballot; all at once, or one after another with the earlier ballots in view.

        On the ballot candidates have labels in a random order, so that none says whose answer it is. No label is an
        option of the question: a vote for B would be one for the option B to many a voter. A member without a readable
        ballot has no vote.
        """
        order = self._rng.sample(range(len(self.candidates)), len(self.candidates))
        options = self._task.reply(self._case, self._case.agents[0]).options or ()
        place_of = dict(zip(_labels([*options, *(one.answer for one in self.candidates)]), order, strict=False))
        form = self._form(tuple(place_of))
        cast: list[Action] = []
        secret = self._rules.votes == "secret"
        for voters in [self._opinions] if secret else [[opinion] for opinion in self._opinions]:
            earlier = [ballot if isinstance(form, Choice) else form.written(ballot) for ballot in cast]
            moves = yield [self._turn(voter, form, place_of, earlier) for voter in voters]
            cast += [move.action for move in moves if move.action is not None]
        if not any(cast):  # all of them may approve of none; then what they answered decides
            return self.count()
        scores = self._scores(cast, place_of)
        best = elections.winners(scores)
        votes = {one.key: float(score) for one, score in zip(self.candidates, scores, strict=True)}
        tied = len(best) > 1
        if tied and self._rules.ties == "none":
            return Verdict(None, "tie", votes, True)
        winner = self._rng.choice(best) if tied and self._rules.ties == "random" else best[0]
        return Verdict(self.candidates[winner].answer, "tie" if tied else "vote", votes, tied)

    def _form(self, labels: tuple[str, ...]) -> Form:
        if self._rules.decision == "vote":
            return Choice(labels, "Vote:")
        if self._rules.decision == "approval":
            return Approval(labels)
        return Points(labels, POINTS) if self._rules.decision == "points" else Ranking(labels)

    def _turn(self, voter: Opinion, form: Form, place_of: Mapping[str, int], earlier: Sequence[str]) -> Turn:
        others = [one for one in self.candidates if one.key != voter.candidate]
        for one in others:
            self._talk.traffic.note(one.author, [voter.agent], one.text)
        shown = [(label, self.candidates[place]) for label, place in place_of.items()]
        observation = {
            "candidates": [
                {
                    "label": label,
                    "text": peer_text(one.text, block=True),
                    "answer": one.answer,
                    "own": one.key == voter.candidate,
                }
                for label, one in shown
            ],
            "ballots": list(earlier),
            "points": POINTS,
            "sample": "Vote: <letter>" if isinstance(form, Choice) else form.sample(),
            "restated": not voter.text,  # its conversation may not have begun
            "reminded": False,
        }
        name, more = _TEMPLATES[self._rules.decision], self._talk.more.get(voter.agent)
        texts = [one.text for one in others]
        turn = self._panel.ask(self._task, self._case, voter.agent, name, observation, peer_texts=texts, more=more)
        return replace(turn, reply=form)

    def _scores(self, cast: Sequence[Action], place_of: Mapping[str, int]) -> Sequence[Fraction]:
        count, decision = len(self.candidates), self._rules.decision
        if decision == "vote":
            return elections.plurality([place_of[label] for label in cast], count)
        if decision == "points":
            points = [{place_of[label]: number for label, number in ballot.items()} for ballot in cast]
            return elections.cumulative(points, count)
        listed = [[place_of[label] for label in ballot] for ballot in cast]
        rule = {"approval": elections.approval, "borda": elections.borda}.get(decision, elections.instant_runoff)
        return rule(listed, count)


def _labels(taken: Iterable[Action]) -> Iterator[str]:
    """Labels for candidates, none of which is one of these answers in any case."""
    words = {str(answer).upper() for answer in taken}
    return (label for label in map(label_of, itertools.count()) if label not in words)


def label_of(place: int) -> str:
    """The label at a place: A to Z, then AA, AB, …

    >>> [label_of(place) for place in (0, 25, 26, 701, 702)]
    ['A', 'Z', 'AA', 'ZZ', 'AAA']
    """
    label = ""
    place += 1
    while place:
        place, rest = divmod(place - 1, 26)
        label = chr(ord("A") + rest) + label
    return label
