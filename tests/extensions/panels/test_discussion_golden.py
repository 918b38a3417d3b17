"""`discussion` through real players: every conversation of an episode, for every value of every option."""

import asyncio
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from harness.api import Completion, Request, Thread
from harness.engines.mock import Mock
from harness.runtime.episode import play
from harness.runtime.players import ModelPlayer
from harness.runtime.steps import Steps
from tests.extensions.datasets.documents_kit import BUILTIN
from tests.extensions.panels.exchange_kit import question

GOLDEN = Path(__file__).parents[2] / "golden"
OPTIONS: dict[str, list[Any]] = {
    "drafts": ["all", "one", "none"],
    "topology": ["chain", "report", [[0, 2]], {"Agent-1": ["Agent-0"]}],
    "visible": [1, 2],
    "identity": ["named"],
    "order": ["round_robin", "random", "moderator", "proposer"],
    "personas": ["experts", "traits", ["a careful accountant", {"name": "Skeptic", "text": "You doubt every sum."}]],
    "style": ["step_by_step", "critical", "short", "agree"],
    "decision": ["majority", "vote", "approval", "borda", "points", "judge"],
    "votes": ["public"],
}
ANSWERS = {"Agent-0": [485, 495, 495], "Agent-1": [495, 495, 495], "Agent-2": [475, 485, 495]}
HELPERS = {
    "Moderator": ["Agent-2 has not been heard.\nNext: Agent-2", "Let the first speak.\nNext: Agent-0", "Next: Agent-2"],
    "Recruiter": ["1. Accountant: adds up columns without slips.\n2. Teacher: knows where pupils go wrong."],
}


def ballot(asked: str) -> str:
    """The ballot of a voter who likes the first candidates best, in the form that the prompt's last line shows."""
    marker = asked.rstrip().splitlines()[-1].partition(":")[0]
    first, *others = re.findall(r"^=== ([A-Z]) ===", asked, re.MULTILINE)
    liked = {
        "Vote": first,
        "Approve": ", ".join([first, *others[:1]]),
        "Ranking": " > ".join([first, *others[:2]]),
        "Points": ", ".join([f"{first}=7", *(f"{one}=3" for one in others[:1])]),
    }
    return f"{marker}: {liked[marker]}"


def says(agent: str, number: int, asked: str) -> str:
    """Work and answer of the agent's call of that number, as `asked` wants it."""
    if agent in HELPERS:
        return HELPERS[agent][number % len(HELPERS[agent])]
    if agent == "Judge":
        return "The second is right: 15 times 33.\nThe answer is 495."
    if "answers to the question are left" in asked:  # the form of a ballot, which its last line shows
        return f"That is my ballot.\n{ballot(asked)}"
    answer, before = ANSWERS[agent][number], ANSWERS[agent][max(0, number - 1)]
    if "on the table" in asked:
        return "AGREE. I checked it." if answer != before else f"DISAGREE: I stay with mine.\nThe answer is {answer}."
    flaw = "Flaw: the carry is lost.\n" if "Flaw:" in asked else ""
    return f"{flaw}{agent} multiplies, time {number + 1}.\nThe answer is {answer}."


def transcript(**parameters: Any) -> str:
    """Every conversation in the order in which they began, and what came out."""
    task, case = question()
    protocol = BUILTIN.load("protocols", "discussion")(**parameters)
    threads: list[tuple[str, Thread]] = []
    counts: dict[str, int] = {}

    def answer(request: Request) -> Completion:
        agent = request.id.split("/")[1]
        if not any(thread is request.thread for _, thread in threads):
            threads.append((agent, request.thread))
        number = counts[agent] = counts.get(agent, -1) + 1
        return Completion(says(agent, number, request.thread.messages[-1]["content"]))

    engine, prompts = Mock(function=answer), BUILTIN.prompts("panels/standard")
    players = {
        agent: ModelPlayer(engine, prompts, {}, False, f"golden/{agent}", 0) for agent in protocol.possible_agents(case)
    }
    outcome = asyncio.run(
        play(Steps(protocol, task, case, random.Random(0)), players, {}, lambda *_: None, lambda batch: None)
    )
    lines = [
        f"═══ {agent} · {message['role']} ═══\n{message['content']}\n"
        for agent, thread in threads
        for message in thread.messages
    ]
    facts = "\n".join(f"{name}: {json.dumps(value)}" for name, value in outcome.facts.items())
    return "\n".join([*lines, f"group: {outcome.group}", facts, ""])


def transcripts(option: str) -> str:
    """Those of all values of an option, each with as few agents and rounds as show it."""
    shape: dict[str, Any] = {"agents": 3 if option in ("topology", "order", "decision", "votes") else 2}
    shape["max_rounds"] = {"visible": 2, "decision": 0, "votes": 0}.get(option, 1)
    shape |= {"decision": "vote"} if option == "votes" else {}
    return "\n".join(
        f"██████ {option}: {json.dumps(value)}\n\n{transcript(**{option: value}, **shape)}"
        for value in OPTIONS[option]
    )  # fmt: skip


@pytest.mark.sampled(4)
@pytest.mark.parametrize("option", OPTIONS)
def test_golden_transcripts(option: str) -> None:
    """To look at a wanted change: write `transcripts(option)` over the file and read the difference."""
    assert transcripts(option) == (GOLDEN / f"discussion_{option}.txt").read_text("utf-8")
