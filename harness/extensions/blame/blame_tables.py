"""What `harness blame` has found in the episodes of a run, as tables."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Final, Literal, get_args

from harness.api import Facts
from harness.api.printable import clean_name, cut
from harness.evaluation.run import Run
from harness.tables import Cell, Column, Row, Table

from .blame_verdict import WORDS, BlameVerdict
from .sample_spread import spread

Way = Literal["agent", "group", "model", "round"]
WAYS: Final[tuple[Way, ...]] = get_args(Way)
"""By what `harness blame` counts."""
_NUMBERS = ("Decisive", "Share", "Alone", "Last")
_MAX_NAMED, _MAX_MESSAGES = 5, 20
_MAX_ERROR_CHARS = 300  # characters of an error
_PASSED = "{} did not fail: the reference does no better"


@dataclass(frozen=True)
class AgentPlayer:
    """Who played an agent: a model, or a policy."""

    name: str
    is_model: bool = True


@dataclass(frozen=True)
class Blame:
    """What made the episodes of a run fail.

    Attributes:
        run: the run.
        by: the reference, as tables call it.
        metric: the metric whose number to explain.
        verdicts: one for each episode that was looked at.
        roles: episode → agent → its group.
        players: episode → agent → the model, or the policy, that played it.
        passed: how many were looked at and did not fail, by a metric without a best number: with the reference in all
            seats theirs is no better.
        remaining: how many episodes the budget did not allow to look at; with a `limit` at most those that the sample
            lacks.
        asked: how many calls of a model were made, for all samples.
        further: the same of further samples, where another sample of a model is the reference.
        policy: the reference as a spec has it, {"use": …} and its parameters; of another sample of a model than that
            of number 0 also its number, as `sample`.
        errors: what episodes of the run raised, which have no outcome to explain.
        ways: which tables to show, of `WAYS`; none: those that say something.
    """

    run: Run
    by: str
    metric: str
    verdicts: tuple[BlameVerdict, ...]
    roles: dict[str, dict[str, str]]
    passed: int = 0
    remaining: int = 0
    asked: int = 0
    further: tuple[Blame, ...] = ()
    policy: Facts = field(default_factory=dict)
    errors: tuple[str, ...] = ()
    players: Mapping[str, Mapping[str, AgentPlayer]] = field(default_factory=dict)
    ways: tuple[Way, ...] = ()

    @property
    def raised(self) -> str | None:
        """How many episodes of the run raised, and have no outcome to explain, in a sentence; None if none did."""
        if not self.errors:
            return None
        first, verb = cut(clean_name(self.errors[0]), _MAX_ERROR_CHARS), "has" if len(self.errors) == 1 else "have"
        of = f"{len(self.errors)} of {of_episodes(len(self.run.scores))} raised and {verb}"
        return f"{of} no outcome that could be explained, as by: {first}"

    @property
    def samples(self) -> tuple[Blame, ...]:
        """This one and the further ones."""
        return self, *self.further

    @property
    def tables(self) -> list[Table]:
        """Who and when: by agent, by group and by model where there are several, by round (or `ways`); and what was
        found how often. Of several samples the means, with their standard deviation."""
        sent = any(one.messages for sample in self.samples for one in sample.verdicts)
        if not self.further:
            return [*self._filled(self._tables()), *([_foremost(self._messages())] if sent else [])]
        found = Counter(one.finding for sample in self.samples for one in sample.verdicts)
        notes = (
            f"Means over {len(self.samples)} samples; ±: the standard deviation between them.",
            "; ".join(f"{n} of {found.total()} verdicts: {WORDS[what]}" for what, n in found.most_common()),
        )
        each = zip(*(replace(sample, ways=self.ways)._tables() for sample in self.samples), strict=True)
        tables = self._filled([spread(tables, () if i else notes) for i, tables in enumerate(each)])
        return [*tables, *([_foremost(spread([one._messages() for one in self.samples], ()))] if sent else [])]

    def _filled(self, tables: Sequence[Table]) -> list[Table]:
        """The tables that have rows, with the notes of the first of all; where none has, how often what was found."""
        filled = [table for table in tables if table.rows]
        if filled:
            return [replace(filled[0], notes=tables[0].notes), *filled[1:]]
        found = Counter(WORDS[one.finding] for sample in self.samples for one in sample.verdicts)
        what, notes = "Findings", tables[0].notes[1:]  # the first says what the table does
        if self.further:
            what, notes = f"Findings of {len(self.samples)} samples", ()
        return [replace(_counted("finding", dict(found.most_common()), self._title(what)), notes=notes)]

    def _tables(self) -> list[Table]:
        blamed = [one for one in self.verdicts if one.finding == "blamed"]
        tables = list[Table]()
        for way in self.ways or self._usual():
            if way == "agent":
                tables.append(_shared("agent", _by_agent(blamed), self._title("By agent"), ()))
            elif way == "group":
                note = "Decisive: an agent of the group is. Share: the sum of its agents' shares."
                tables.append(
                    _shared("group", self._by_role(blamed), self._title("By group"), [note] if blamed else ())
                )
            elif way == "model":
                tables += self._by_model(blamed)
            else:
                rounds = Counter(one.named[0].round for one in blamed)
                first = "By round of the first decisive move"
                tables.append(_counted("round", dict(sorted(rounds.items())), self._title(first)))
        return [replace(tables[0], notes=(*self._notes(blamed), *tables[0].notes)), *tables[1:]]

    def _usual(self) -> list[Way]:
        """The tables in which something may differ."""
        groups = {role for roles in self.roles.values() for role in roles.values()}
        models = {player.name for players in self.players.values() for player in players.values() if player.is_model}
        unlike: dict[Way, bool] = {"agent": True, "group": len(groups) > 1, "model": len(models) > 1, "round": True}
        return [way for way, is_shown in unlike.items() if is_shown]

    def _by_model(self, blamed: Sequence[BlameVerdict]) -> list[Table]:
        """By model, and by model and agent."""
        counts: dict[str, list[int]] = {}
        for one in blamed:
            for name, count in Counter(player.name for player in self.players[one.episode].values()).items():
                counts.setdefault(name, []).append(count)
        seats = ", ".join(f"{clean_name(name)} {statistics.fmean(own):.3g}" for name, own in counts.items())
        notes = [
            "Decisive: an agent that the model played is. Share: the sum of its agents' shares.",
            f"Agents that it plays in an episode: {seats}. A model that plays more of them has more chances to err.",
        ]
        return [
            self._by_player(("model",), blamed, self._title("By model"), notes if blamed else ()),
            self._by_player(("model", "agent"), blamed, self._title("By model and agent"), ()),
        ]

    def _by_player(
        self, labels: tuple[str, ...], blamed: Sequence[BlameVerdict], title: str, notes: Iterable[str]
    ) -> Table:
        """A row for each player, or for each agent of one: in which share of episodes it is decisive; its mean share,
        over the episodes that have shares."""
        decisive, shares = dict[tuple[str, ...], list[bool]](), dict[tuple[str, ...], list[Fraction]]()
        for one in blamed:
            members: dict[tuple[str, ...], list[str]] = {}
            for agent, player in self.players[one.episode].items():
                members.setdefault((player.name, agent)[: len(labels)], []).append(agent)
            for names, agents in members.items():
                decisive.setdefault(names, []).append(any(agent in one.agents for agent in agents))
                if one.shares:
                    own = [one.shares[agent].value for agent in agents if agent in one.shares]
                    shares.setdefault(names, []).append(sum(own, Fraction(0)))
        rows = []
        for names, found in sorted(decisive.items(), key=lambda item: -statistics.fmean(item[1])):
            known = shares.get(names, [])
            cells = (
                Cell(statistics.fmean(found), n=len(found)),
                Cell(float(sum(known) / len(known)) if known else None, n=len(known)),
            )
            if any(cell.value for cell in cells):
                rows.append(Row(dict(zip(labels, names, strict=True)), tuple(map(clean_name, names)), cells))
        if len(rows) < len(decisive):
            notes = [*notes, f"Not shown, with 0 everywhere: {len(decisive) - len(rows)}."]
        columns = tuple(Column({"statistic": name.lower()}, (name,)) for name in _NUMBERS[:2])
        heads = tuple(label.capitalize() for label in labels)
        return Table(title, labels, ("statistic",), columns, tuple(rows), row_names=heads, notes=tuple(notes))

    @property
    def episodes(self) -> Table:
        """A row per episode: what was found, whose move decided it, and when; of several samples, in how many."""
        if self.further:
            return self._often()
        rows = []
        for one in self.verdicts:
            who = ", ".join(f"{clean_name(d.place[0])} at turn {d.number}" for d in one.named[:_MAX_NAMED])
            who += f", {len(one.named) - _MAX_NAMED} more" if len(one.named) > _MAX_NAMED else ""
            how = "" if not one.named else "any one" if one.single and len(one.named) > 1 else "together"
            how = "alone" if len(one.named) == 1 else how
            last = "" if one.last_chance is None else str(one.last_chance)
            rows.append(Row({"episode": one.episode}, (clean_name(one.episode), one.finding, who, how, last), ()))
        names = ("Episode", "Finding", "Decisive moves", "Save it", "Last chance")
        labels = ("episode", "finding", "moves", "how", "last")
        return Table("Episodes", labels, (), (), tuple(rows), row_names=names)

    def _messages(self) -> Table:
        """A row for each message without which the number is another one."""
        tried = [(one.episode, turn, value) for one in self.verdicts for turn, value in one.messages.items()]
        columns = (Column({"statistic": "effect"}, ("Effect",)),)
        rows = tuple(
            Row({"episode": name, "turn": turn}, (clean_name(name), str(turn)), (Cell(float(value), n=1),))
            for name, turn, value in tried
            if value
        )
        none, unknown = sum(value == 0 for *_, value in tried), sum(value is None for *_, value in tried)
        note = f"Of {len(tried)} messages, {none} change nothing; of {unknown} it is not known."
        names = ("Episode", "Turn")
        title = f"Messages that are not sent: what {self.metric} changes by"
        labels = ("episode", "turn")
        return Table(title, labels, ("statistic",), columns, rows, row_names=names, notes=(note,))

    def _often(self) -> Table:
        verdicts: dict[str, list[BlameVerdict]] = {}
        for sample in self.samples:
            for one in sample.verdicts:
                verdicts.setdefault(one.episode, []).append(one)
        rows = []
        for name, own in verdicts.items():
            counts = Counter(f"{clean_name(d.place[0])} at turn {d.number}" for one in own for d in one.named)
            decided = f"{sum(one.finding == 'blamed' for one in own)} of {len(self.samples)} samples"
            often = ", ".join(f"{move} ({n})" for move, n in counts.most_common(_MAX_NAMED))
            more = f", {len(counts) - _MAX_NAMED} more" if len(counts) > _MAX_NAMED else ""
            rows.append(Row({"episode": name}, (clean_name(name), decided, often + more), ()))
        names = ("Episode", "Decided in", "Decisive moves (in how many samples)")
        return Table("Episodes", ("episode", "finding", "moves"), (), (), tuple(rows), row_names=names)

    def _title(self, what: str) -> str:
        return f"{what}: what {self.metric} lost, and {self.by} would have kept"

    def _notes(self, blamed: Sequence[BlameVerdict]) -> Iterator[str]:
        found = Counter(one.finding for one in self.verdicts)
        yield "; ".join(f"{n} of {len(self.verdicts)} episodes: {WORDS[what]}" for what, n in found.most_common())
        if self.raised is not None:
            yield f"Besides, {self.raised}"
        if self.passed:
            yield f"Besides, {_PASSED.format(of_episodes(self.passed))}."
        if any(one.shares for one in blamed):
            what = "what replacing the agent changes where no other, and every other is"
            yield f"Share: Shapley value. Alone, last: {what}."
        if problems := [one.problem for one in self.verdicts if one.problem is not None]:
            of = f"{len(problems)} of {len(self.verdicts)}"
            yield f"Played with other moves, {of} episodes failed, as by: {problems[0]}"
        if any(share.low is not None for one in blamed for share in one.shares.values()):
            yield "Shares of some episodes are sampled; --format json has their intervals."

    def _by_role(self, blamed: Sequence[BlameVerdict]) -> dict[str, list[list[float]]]:
        """Group → for each episode whether it is blamed, and the sum of its agents' shares.

        What replacing a whole group changes is no sum of what replacing its agents does, and was not played.
        """
        found: dict[str, list[list[float]]] = {}
        for one in blamed:
            roles = self.roles[one.episode]
            for role in dict.fromkeys(roles.get(agent, "default") for agent in one.shares):
                members = [agent for agent in one.shares if roles.get(agent, "default") == role]
                total = sum((one.shares[agent].value for agent in members), Fraction(0))
                found.setdefault(role, []).append([float(any(agent in one.agents for agent in members)), float(total)])
        return found


def of_episodes(count: int) -> str:
    """ "1 episode", "2 episodes"."""
    return f"{count:,} episode{'s' * (count != 1)}"


def _numbers(one: BlameVerdict, agent: str) -> list[float]:
    share = one.shares[agent]
    return [float(agent in one.agents), float(share.value), float(share.alone), float(share.last)]


def _by_agent(blamed: Iterable[BlameVerdict]) -> dict[str, list[list[float]]]:
    found: dict[str, list[list[float]]] = {}
    for one in blamed:
        for agent in one.shares:
            found.setdefault(agent, []).append(_numbers(one, agent))
    return found


def _shared(label: str, found: dict[str, list[list[float]]], title: str, notes: Iterable[str]) -> Table:
    width = max((len(row) for own in found.values() for row in own), default=len(_NUMBERS))
    columns = tuple(Column({"statistic": name.lower()}, (name,)) for name in _NUMBERS[:width])
    means = {name: [statistics.fmean(column) for column in zip(*own, strict=True)] for name, own in found.items()}
    rows = [
        Row({label: name}, (clean_name(name),), tuple(Cell(value, n=len(found[name])) for value in own))
        for name, own in sorted(means.items(), key=lambda item: -item[1][0])
        if any(own)
    ]
    if len(rows) < len(means):
        notes = [*notes, f"Not shown, with 0 everywhere: {len(means) - len(rows)}."]
    return Table(
        title, (label,), ("statistic",), columns, tuple(rows), row_names=(label.capitalize(),), notes=tuple(notes)
    )


def _foremost(messages: Table) -> Table:
    """The rows of the greatest effects."""
    rows = sorted(messages.rows, key=lambda row: -abs(row.cells[0].value or 0))
    more = [f"Not shown: {len(rows) - _MAX_MESSAGES} more."] if len(rows) > _MAX_MESSAGES else []
    return replace(messages, rows=tuple(rows[:_MAX_MESSAGES]), notes=(*messages.notes, *more))


def _counted(label: str, counts: Mapping[Any, int], title: str) -> Table:
    columns = (Column({"statistic": "episodes"}, ("Episodes",), form="count"),)
    rows = tuple(Row({label: key}, (str(key),), (Cell(n, n=n),)) for key, n in counts.items())
    return Table(title, (label,), ("statistic",), columns, rows, row_names=(label.capitalize(),))
