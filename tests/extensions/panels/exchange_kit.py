"""Episodes of panel protocols with a script in the model's place: who was asked what, and who saw whose replies."""

import asyncio
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness.api import Case, Completion, Move, Outcome, Request, Turn
from harness.engines.mock import Mock
from harness.runtime import episode
from harness.runtime.players import ModelPlayer
from harness.runtime.steps import Drive, Steps, drive
from tests.extensions.datasets.documents_kit import BUILTIN, cases, task_of

MARK = re.compile(r"<[a-z]+(?:-[a-j])?:[a-j]>", re.IGNORECASE)
_LETTERS = str.maketrans("0123456789", "abcdefghij")
Say = Callable[[str, int], str]
"""(agent, which of its calls, from 0) → what it replies; may raise an `EngineError`."""


@dataclass(frozen=True)
class Asked:
    """One call: whose, which of the agent's calls it was, and the conversation it was put in."""

    agent: str
    number: int
    messages: tuple[Mapping[str, str], ...]

    @property
    def prompt(self) -> str:
        """What was asked last."""
        return self.messages[-1]["content"]

    @property
    def roles(self) -> list[str]:
        return [message["role"] for message in self.messages]

    @property
    def saw(self) -> list[str]:
        """Whose replies stand in what the agent was shown last (system message included), as "agent.number"."""
        shown = [self.prompt, *(m["content"] for m in self.messages if m["role"] == "system")]
        return sorted(read(found) for text in shown for found in MARK.findall(text))


@dataclass(frozen=True)
class Episode:
    """What was asked, in order of the calls, and what came of it."""

    asked: list[Asked]
    moves: list[Move]
    outcome: Outcome
    grade: Mapping[str, float | None]

    def saw(self) -> dict[str, list[str]]:
        """Call → whose replies it showed."""
        return {f"{asked.agent}.{asked.number}": asked.saw for asked in self.asked}

    def prompt(self, agent: str, number: int) -> str:
        return next(a.prompt for a in self.asked if (a.agent, a.number) == (agent, number))


def mark(agent: str, number: int) -> str:
    """What tells a reply from all others, without a digit that could be read as an answer: <Agent-c:b>."""
    return f"<{agent.translate(_LETTERS)}:{str(number).translate(_LETTERS)}>"


def read(marked: str) -> str:
    """The call of a mark: Agent-2.1."""
    name, _, number = marked.strip("<>").partition(":")
    base, dash, suffix = name.partition("-")
    digits = str.maketrans("abcdefghij", "0123456789")
    return f"{base}{dash}{suffix.translate(digits)}.{number.translate(digits)}"


def question() -> tuple[Any, Case]:
    """A sum whose right answer is whatever the task says: `right(case)`."""
    task = task_of("arithmetic", size=1, terms=2)
    return task, cases(task)[0]


def right(case: Case) -> int:
    return int(case.target["answers"][0])


def scripted(name: str, say: Say, prompts: str = "panels/standard", task: Any = None, **parameters: Any) -> Episode:
    """One episode in which every agent is a model that says what the script tells, with real prompts. The mark of
    the call stands before every reply."""
    result, case = question() if task is None else (task, cases(task)[0])
    protocol = BUILTIN.load("protocols", name)(**parameters)
    requests: list[Asked] = []
    counts: dict[str, int] = {}

    def answer(request: Request) -> Completion:
        agent = request.id.split("/")[1]
        number = counts[agent] = counts.get(agent, -1) + 1
        requests.append(Asked(agent, number, tuple(map(dict, request.thread.messages))))
        return Completion(f"{mark(agent, number)} {say(agent, number)}")

    moves: list[Move] = []
    engine, templates = Mock(function=answer), BUILTIN.prompts(prompts)
    players = {
        agent: ModelPlayer(engine, templates, {}, False, f"e/{agent}", 0) for agent in protocol.possible_agents(case)
    }
    run = episode.play(Steps(protocol, result, case, random.Random(0)), players, {}, lambda *_: None, moves.extend)
    outcome = asyncio.run(run)
    return Episode(requests, moves, outcome, result.grade(case, outcome))


def says(**given: Sequence[Any]) -> Say:
    """Each agent's answers in order: `says(Agent_0=[1, 2])`; texts are said as they are."""
    texts = {agent.replace("_", "-"): list(listed) for agent, listed in given.items()}
    return lambda agent, number: _said(texts[agent][number])


def _said(what: Any) -> str:
    if isinstance(what, Exception):
        raise what
    return what if isinstance(what, str) else f"The answer is {what}."


def played(name: str, table: Sequence[Sequence[Any]], seed: int = 0, **parameters: Any) -> Drive:
    """An episode of agents without texts: what Agent-i gives in its j-th turn is `table[j][i]`."""
    task, case = question()
    count: dict[str, int] = {}

    def answer(turn: Turn) -> Any:
        number = count[turn.agent] = count.get(turn.agent, -1) + 1
        return table[number][int(turn.agent.partition("-")[2])]

    return drive(BUILTIN.load("protocols", name)(**parameters), task, case, answer, seed)
