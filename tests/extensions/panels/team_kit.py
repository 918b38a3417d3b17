"""Episodes of the protocol `team` with a script in the model's place, batch by batch."""

import asyncio
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.api import Completion, Outcome, Request, Thread
from harness.engines.mock import Mock
from harness.runtime.episode import play
from harness.runtime.players import ModelPlayer
from harness.runtime.steps import Drive, Steps, drive
from tests.extensions.datasets.documents_kit import BUILTIN
from tests.extensions.panels.exchange_kit import question

Say = Callable[[str, int, str], str]
"""(seat, which of its turns, from 0, the prompt) → what it writes; may raise an `EngineError`."""


@dataclass
class Played:
    """An episode: calls (seat, number, prompt) batch by batch, conversations in the order in which they began."""

    batches: list[list[tuple[str, int, str]]] = field(default_factory=lambda: [[]])
    threads: list[tuple[str, Thread]] = field(default_factory=list)
    outcome: Outcome = field(default_factory=Outcome)

    @property
    def order(self) -> list[list[str]]:
        """Who acted in each batch."""
        return [[seat for seat, _, _ in batch] for batch in self.batches]

    def prompt(self, seat: str, number: int) -> str:
        return next(text for batch in self.batches for who, n, text in batch if (who, n) == (seat, number))


def team(**parameters: Any) -> Any:
    return BUILTIN.load("protocols", "team")(**parameters)


def roles(**briefs: Any) -> dict[str, Any]:
    """Roles by name: a number of seats, or a mapping without brief."""
    bodies = {name: {"agents": body} if isinstance(body, int) else body for name, body in briefs.items()}
    return {name: {"brief": f"You are a {name}.", **body} for name, body in bodies.items()}


def scripted(say: Say, **parameters: Any) -> Played:
    """An episode in which every seat is a model with real prompts."""
    (task, case), protocol = question(), team(**parameters)
    played, counts = Played(), dict[str, int]()

    def answer(request: Request) -> Completion:
        seat = request.id.split("/")[1]
        if not any(thread is request.thread for _, thread in played.threads):
            played.threads.append((seat, request.thread))
        number = counts[seat] = counts.get(seat, -1) + 1
        prompt = request.thread.messages[-1]["content"]
        played.batches[-1].append((seat, number, prompt))
        return Completion(say(seat, number, prompt))

    engine, prompts = Mock(function=answer), BUILTIN.prompts("panels/standard")
    seats = protocol.possible_agents(case)
    players = {seat: ModelPlayer(engine, prompts, {}, False, f"e/{seat}", 0) for seat in seats}
    run = play(
        Steps(protocol, task, case, random.Random(0)),
        players,
        {},
        lambda *_: None,
        lambda _: played.batches.append([]),
    )
    played.outcome = asyncio.run(run)
    played.batches = [batch for batch in played.batches if batch]
    return played


def idle(**parameters: Any) -> Drive:
    """An episode in which every seat does nothing."""
    return drive(team(**parameters), *question())


def order(drive: Drive) -> list[list[str]]:
    """Who acted in each batch."""
    return [[turn.agent for turn, _ in batch] for batch in drive.batches]


def facts(played: Played) -> Mapping[str, Any]:
    return played.outcome.facts
