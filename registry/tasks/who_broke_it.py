"""Who broke it? Transcripts of teams that failed by one move, which experiments have found."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from harness.api import (
    Action,
    Case,
    Facts,
    Outcome,
    Parsed,
    PluginError,
    Protocol,
    Range,
    Reply,
    ReplyField,
    UserError,
    plugin,
)
from harness.extensions.blame.who_broke_it.reader_opinions import asked_about
from harness.extensions.blame.who_broke_it.teams import BrokenTeams, RecordedEpisode, transcript
from harness.extensions.panels.questions import Question, QuestionTask
from harness.replies import fields_of, strip_reasoning

_ASKED = """{n} agents have worked on a task together, and they have failed. One single move made them fail: had its \
agent done there what it should have, and all others as they did, the group would have succeeded. Below is what \
the agents were told and what they did. Find the agent and the turn of that move."""
_ASKED_OF_RUN = """{n} agents have worked on a task together, and they have failed. Perhaps one single move made them \
fail: had its agent done there what it should have, and all others as they did, the group would have succeeded. Below \
is what the agents were told and what they did. Find the agent and the turn of that move; if there are several, of any \
one of them; if there is none, of the move that did most to make them fail."""
_INSTRUCTION = """Think step by step, then end your reply with two lines:
AGENT: [the agent's name, as it stands below]
TURN: [the number of the turn]"""
_OUTSIDE = re.compile(
    r"(?im)^[ \t]*(?:```+\w*[ \t]*|(?P<agent>\W{0,5}AGENT\b[^\n]{0,200}?)[ \t,;|]+(?P<turn>TURN\W{1,5}\d))"
)
"""Fences around the two lines, and both of them on one line."""
_LENGTHS = (25, 50, 100)
"""Turns up to which transcripts count as equally long, for tables."""
_TURN = re.compile(r"(?:\W{0,5}|.{0,40}?\bturn\W{0,5}|\D{0,20})(\d{1,6})(?!\d)", re.IGNORECASE)
"""What a line begins with, else the number after the word turn ("round 0, turn 1"), else the first one."""


def _apart(found: re.Match[str]) -> str:
    """Nothing for a fence, and two lines for both fields on one."""
    return "" if found["agent"] is None else f"{found['agent']}\n{found['turn']}"


@dataclass(frozen=True, slots=True)
class Accusation(Reply):
    """An agent and a turn: {"agent": …, "turn": …}.

    Attributes:
        turns: the agent of each turn.
    """

    turns: tuple[str, ...]

    @property
    def fields(self) -> tuple[ReplyField, ...]:
        """The agent and the turn, each on its line."""
        agents = {"enum": [*dict.fromkeys(self.turns)]}
        number = {"type": "integer", "minimum": 0, "maximum": len(self.turns) - 1}
        return ReplyField("agent", "AGENT:", agents), ReplyField("turn", "TURN:", number)

    def says(self, action: Action) -> Facts:
        """Both as they stand."""
        return action if isinstance(action, Mapping) else {}

    @property
    def options(self) -> tuple[Action, ...]:
        """All turns, with their agents."""
        return tuple({"agent": agent, "turn": number} for number, agent in enumerate(self.turns))

    def allows(self, action: Action) -> bool:
        """Whether there are such an agent and such a turn; they need not belong together."""
        if not isinstance(action, Mapping) or action.keys() != {"agent", "turn"}:
            return False
        number = action["turn"]
        known = number is None or (type(number) is int and 0 <= number < len(self.turns))
        return known and action["agent"] in self.turns

    def parse(self, text: str) -> Parsed:
        """The last AGENT and TURN that a text says outside of its thinking, in any case."""
        stated = fields_of(_OUTSIDE.sub(_apart, strip_reasoning(text)), ["agent", "turn"])
        found = {name: str(value).strip(" \t*_`\"'.[]") for name, value in stated.items()}
        named = found.get("agent", "").casefold()
        agent = next((one for one in dict.fromkeys(self.turns) if one.casefold() == named), None)
        number = _TURN.match(found.get("turn", ""))
        turn = int(number[1]) if number is not None else None
        if turn is not None and not turn < len(self.turns):
            turn = None
        if agent is None:
            listed = ", ".join([*dict.fromkeys(self.turns)][:20])
            return Parsed(error=f"no line AGENT: names one of the agents {listed}")
        action = {"agent": agent, "turn": turn}
        if turn is None:
            why = f"no line TURN: has the number of a turn, 0 to {len(self.turns) - 1}"
            return Parsed(error=why, fallback_action=action)
        return Parsed(action)

    def constraint(self) -> Mapping[str, Any]:
        """A JSON object with both."""
        return {"json": self.json_schema}


@plugin
class WhoBrokeIt(QuestionTask):
    """Transcripts of failed teams, whose reader names the agent and the turn that made them fail. Works offline.

    A scripted team that solves its task plays with one fault: an agent errs in one turn. Only such episodes are asked
    about in which replacing that move, and no other one, makes the team succeed (`harness blame`): the answer is what
    an experiment says, and no opinion. Episodes are drawn from the seed, as many as are wanted.

    Attributes:
        spec: the team's spec; the policy that its headline names as ceiling plays all agents.
        set: changes of it, as `--set` takes them, such as `matrix.size=[8]`.
        faults: the kinds of faults that are planted. "plausible": another move in the same format, with values that
            other agents say, which no surface cue gives away (`who_broke_it/surface`, `who_broke_it/odd_one_out`).
            Easy to see are those of the policy `faulty`: "wrong", "silent" (`harness schema policies faulty`).
        episodes: the number of transcripts.
        run: the folder of a finished run that `harness blame` has looked at: its failed episodes are asked about, in
            place of teams. The answers are opinions for `harness blame --labels`. Of several moves each of which alone
            decides an episode, any one is right; where the experiment blames nobody, or only several moves together,
            there is no right answer.
        shows: "moves": the instructions of agents, and what they did; "prompts": also what each turn showed them.
    """

    spec: str = "agentsnet_quick"
    set: list[str] = field(default_factory=list)
    faults: list[Literal["plausible", "wrong", "silent"]] = field(default_factory=lambda: ["plausible"])
    episodes: Annotated[int, Range(ge=1, le=1_000_000)] = 20
    run: str | None = None
    shows: Literal["moves", "prompts"] = "moves"

    grades = ("score", "agent", "turn", "answered", "distance")

    @functools.cached_property
    def _teams(self) -> BrokenTeams:
        return BrokenTeams(self.spec, self.set, self.faults)

    def spec_defaults(self, protocol: type[Protocol]) -> Facts:
        """Questions' prompts; the score, and its parts."""
        parts = [{"use": "grade", "of": name, "name": name} for name in ("agent", "turn", "distance", "answered")]
        headline = {"metric": "score", "title": "Agent and turn named", "unit": "percent", "digits": 1}
        return {
            "prompts": "qa/standard",
            "metrics": ["score", *parts, "parse_failures", "truncated", "engine_errors"],
            "headline": headline,
        }

    def cases(self, limit: int | None, seed: int) -> Iterator[Case]:
        """The transcripts. Raises `PluginError` where no fault decides an episode of the team, or the run has none."""
        if self.run is not None:
            yield from self._of_run(self.run, limit)
            return
        for number in range(self.episodes if limit is None else min(limit, self.episodes)):
            found = self._teams.episode(seed, number)
            yield self._case(f"{number}", found, {"agent": found.agent, "turn": found.culprit}, found.fault)

    def _of_run(self, folder: str, limit: int | None) -> Iterator[Case]:
        try:
            for name, recorded, moves in itertools.islice(asked_about(Path(folder)), limit):
                target = moves[0] if len(moves) == 1 else moves or None
                yield self._case(name, recorded, target, "none planted", _ASKED_OF_RUN)
        except UserError as error:
            raise PluginError(error.message, at=("run",), hint=error.hint) from None

    def _case(
        self,
        name: str,
        recorded: RecordedEpisode,
        target: Facts | Sequence[Facts] | None,
        fault: str,
        asked: str = _ASKED,
    ) -> Case:
        text = "\n\n".join([asked.format(n=len(recorded.agents)), *transcript(recorded, self.shows == "prompts")])
        length = next((f"up to {most}" for most in _LENGTHS if len(recorded.turns) <= most), f"over {_LENGTHS[-1]}")
        return Case(
            name,
            ("Agent-0",),
            {"question": text, "turns": [one.turn.agent for one in recorded.turns]},
            target=target,
            labels={"group_size": len(recorded.agents), "length": length, "fault": fault},
        )

    def example(self) -> Case:
        """A short made-up transcript: nothing is played."""
        did = "\n".join(f"Turn {i} (round 0): {name}\n  did: {text}" for i, (name, text) in enumerate(_EXAMPLE))
        question = f"{_ASKED.format(n=2)}\n\n== What they did\n\n{did}"
        labels = {"group_size": 2, "length": f"up to {_LENGTHS[0]}", "fault": "wrong"}
        turns = [name for name, _ in _EXAMPLE]
        public = {"question": question, "turns": turns}
        return Case("example", ("Agent-0",), public, target={"agent": "Ben", "turn": 1}, labels=labels)

    def context(self, case: Case, agent: str) -> Facts:
        """The transcript and how to answer; `name` of the reader and `n` readers, as panels show them."""
        question = case.public["question"]
        return {
            "name": agent,
            "n": len(case.agents),
            "question": question,
            "choices": None,
            "instruction": _INSTRUCTION,
        }

    def reply(self, case: Case, agent: str) -> Reply:
        """An agent and a turn."""
        return Accusation(tuple(case.public["turns"]))

    def question_of(self, case: Case) -> Question:
        """The transcript."""
        return Question(case.public["question"])

    def grade(self, case: Case, outcome: Outcome) -> Mapping[str, float | None]:
        """Whether agent and turn are named (`score`), each alone, and how far the named turn is off: `distance`, in
        turns, None where none is named. Of several answers the means. `answered`: the share that name an agent. Where
        several moves are right, any one of them counts; where none is, only `answered` is known."""
        given = [outcome.group] if outcome.group is not None else outcome.facts.get("samples") or [None]
        form, right = self.reply(case, ""), case.target
        read = [one if form.allows(one) else {"agent": None, "turn": None} for one in given]
        n = len(read)
        answered = sum(one["agent"] is not None for one in read) / n
        if right is None:
            return {**dict.fromkeys(self.grades), "answered": answered}
        moves = right if isinstance(right, list) else [right]
        agents, turns = {move["agent"] for move in moves}, {move["turn"] for move in moves}
        off = [min(abs(one["turn"] - turn) for turn in turns) for one in read if one["turn"] is not None]
        return {
            "score": sum(one in moves for one in read) / n,
            "agent": sum(one["agent"] in agents for one in read) / n,
            "turn": sum(one["turn"] in turns for one in read) / n,
            "answered": answered,
            "distance": sum(off) / len(off) if off else None,
        }


_EXAMPLE = (("Ann", "I have 3."), ("Ben", "I have 4, so the sum is 8."), ("Ann", "The sum is 8."))
