"""Graph-of-Agents through real players: every prompt of a whole episode, what a retry says, what is counted."""

import asyncio
import json
import random
from pathlib import Path
from typing import Any

import pytest

from harness.api import Move, Outcome, Request, Thread
from harness.checks.consistency import check_plan
from harness.config import resolve, spec
from harness.engines.mock import Mock
from harness.runtime.episode import play
from harness.runtime.players import ModelPlayer
from harness.runtime.steps import Steps, drive
from harness.storage import UNFINISHED
from tests.extensions.datasets.documents_kit import BUILTIN, cases, task_of
from tests.extensions.panels.goa_kit import goa

GOLDEN = Path(__file__).parents[2] / "golden"
TASK = task_of("arithmetic", size=1, terms=2)
CASE = cases(TASK)[0]
CARDS = {"Agent-0": "a model for everything", "Agent-1": "a model for programs", "Agent-2": "a model for mathematics"}


def reply(answer: int, work: str, sure: str = "0.8") -> str:
    return f"{work}\nThe answer is {answer}.\nConfidence: {sure}"


SAYS: dict[str, list[str]] = {
    "Meta": ["0,1,2", reply(495, "Most say so.")],
    "Agent-0": [
        reply(485, "I guess."),
        '{"2": 0.25, "3": 0.75}',
        reply(495, "I was wrong, 3 is right."),
        reply(495, "Nobody says otherwise now."),
    ],
    "Agent-1": [
        reply(475, "print(15 * 33)"),
        "The third is better.",
        '{"1": 0.25, "3": 0.75}',
        reply(495, "I follow 3."),
    ],
    "Agent-2": [reply(495, "15 times 33."), '{"1": 0.6, "2": 0.4}', reply(495, "Confirmed by both.", "95%")],
}
"""Node 2 is the best, then 0, then 1."""


class Episode:
    """One episode with models in all agents who say what `says` lists, each in its order."""

    def __init__(self, says: dict[str, list[str]] = SAYS, **parameters: Any) -> None:
        self.says = {agent: iter(texts) for agent, texts in says.items()}
        self.threads: list[tuple[str, Thread]] = []
        self.moves: list[Move] = []
        protocol = goa(cards=CARDS, **parameters)
        prompts, engine = BUILTIN.prompts("panels/standard"), Mock(function=self.answer)
        agents = protocol.possible_agents(CASE)
        players = {agent: ModelPlayer(engine, prompts, {}, False, f"golden/{agent}", 0) for agent in agents}
        played = play(Steps(protocol, TASK, CASE, random.Random(0)), players, {}, self.record)
        self.outcome: Outcome = asyncio.run(played)

    def answer(self, request: Request) -> str:
        if not any(thread is request.thread for _, thread in self.threads):
            self.threads.append((request.id.split("/")[1], request.thread))
        return next(self.says[request.id.split("/")[1]])

    def record(self, batch: int, position: int, index: int, move: Move) -> None:
        if move.error_kind != UNFINISHED:
            self.moves.append(move)


def transcript(**parameters: Any) -> str:
    """Every conversation in the order in which they began, and what came out."""
    played = Episode(**parameters)
    lines = []
    for agent, thread in played.threads:
        for message in thread.messages:
            lines.append(f"═══ {agent} · {message['role']} ═══\n{message['content']}\n")
    facts = "\n".join(f"{name}: {json.dumps(value)}" for name, value in played.outcome.facts.items())
    grade = json.dumps(TASK.grade(CASE, played.outcome))
    return "\n".join([*lines, f"group: {played.outcome.group}", facts, f"grade: {grade}", ""])


@pytest.mark.parametrize("pooling", ["mean", "max"])
def test_golden_transcript(pooling: str) -> None:
    """To look at a wanted change: write `transcript(pooling=…)` over the file and read the difference."""
    assert transcript(pooling=pooling) == (GOLDEN / f"goa_{pooling}.txt").read_text("utf-8")


def test_the_episode_comes_to_the_answer_of_its_best_node() -> None:
    mean, best = Episode(), Episode(pooling="max")
    assert mean.outcome.group == best.outcome.group == 495
    assert mean.outcome.facts["history"] == [[485, 475, 495], [495, 495, 495], [495, 495, 495]]
    assert mean.outcome.facts["unanimous_at"] == 1 and mean.outcome.facts["ranks"] == [2, 0, 1]
    calls = [sum(len(move.calls) for move in played.moves) for played in (mean, best)]
    assert calls == [13, 11], "one more than planned: a judge was asked twice"
    assert mean.outcome.facts["retries"] == {"pick": 0, "judge": [0, 1, 0]}


def test_tokens_that_cross_are_those_of_the_texts_an_agent_has_not_seen() -> None:
    counted = {(move.agent, move.turn): move.calls[0].peer_tokens for move in Episode().moves}
    words = {agent: len(texts[0].split()) for agent, texts in SAYS.items()}
    assert counted["Meta", "pick"] is None and counted["Agent-0", "answer"] is None
    assert counted["Agent-0", "judge"] == words["Agent-1"] + words["Agent-2"]
    assert counted["Agent-0", "forward"] is None, "it has judged that text"
    assert counted["Agent-2", "backward"] == len(SAYS["Agent-0"][2].split()) + len(SAYS["Agent-1"][3].split())


def test_five_tries_for_picks_and_three_for_scores() -> None:
    says = {
        **SAYS,
        "Meta": ["The second, I think."] * 5 + [reply(495, "So be it.")],
        "Agent-1": [reply(475, "15 * 33"), *["They are all fine."] * 3, reply(495, "I follow 3.")],
    }
    played = Episode(says)
    assert played.outcome.facts["picks"] is None and played.outcome.facts["slots"] == ["Agent-0", "Agent-1", "Agent-2"]
    assert played.outcome.facts["retries"] == {"pick": 4, "judge": [0, 2, 0]}
    assert (played.outcome.facts["dropped"], played.outcome.facts["exit"]) == ([1], "pooled")
    requests = [message["content"] for message in played.threads[0][1].messages if message["role"] == "user"]
    assert len(requests) == 5
    assert requests[1].startswith("Your reply could not be read: end with a line of exactly 3 numbers from 0 to 2")
    assert "Confidence" not in requests[1] and "The answer is" not in requests[1], "not what a first answer is told"


def test_a_confidence_that_is_missing_or_nonsense_brings_the_general_agent() -> None:
    for stated in ("nan", "very", "0.05", "-1"):
        says = {**SAYS, "Agent-1": [reply(475, "15 * 33", stated), *SAYS["Agent-1"][1:]]}
        says["Agent-0"] = [SAYS["Agent-0"][0], reply(465, "For another."), *SAYS["Agent-0"][1:]]
        facts = Episode(says).outcome.facts
        assert facts["replaced"] == [1] and facts["history"][:2] == [[485, 475, 495], [485, 465, 495]], stated
    says = {**SAYS, "Agent-1": [reply(475, "15 * 33", "90"), *SAYS["Agent-1"][1:]]}
    assert Episode(says).outcome.facts["replaced"] == [], "90 is 0.9"


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "given", [{}, {"top_k": -1}, {"pooling": "max", "conformance": "official"}, {"threshold": 0.9}]
)
@pytest.mark.parametrize("confidence", ["none", "line", "json"])
def test_every_template_has_what_it_needs(given: dict[str, Any], confidence: str) -> None:
    protocol = {"use": "graph_of_agents", "agents": 3, "confidence": confidence, **given}
    mapping = {"name": "x", "task": "arithmetic", "protocol": protocol, "metrics": ["score"]}
    loaded = spec.parse({**mapping, "prompts": "panels/standard"}, BUILTIN)
    assert check_plan(resolve.plan(loaded, BUILTIN, Mock())) == []


def test_a_task_whose_one_agent_knows_everything_can_be_put_to_the_graph() -> None:
    task = task_of("silo/global_maximum", agents=1)
    case = cases(task, 1)[0]
    run = drive(goa(), task, case)
    prompts = BUILTIN.prompts("silo/panel")
    for turn in run.turns():
        variables = {**turn.context, **turn.observation, "error": "…"}
        asks_for_answer = turn.name in ("answer", "forward", "backward", "pool")
        for template in (turn.name, "retry"):
            assert ("Final answer:" in prompts.render(template, variables)) == asks_for_answer, turn.name
    assert {turn.name for turn in run.turns()} == {"pick", "answer", "judge", "forward", "backward", "pool"}


def test_without_the_reminder_nothing_is_said_of_the_form_of_an_answer() -> None:
    prompts = BUILTIN.prompts("panels/standard")
    turns = drive(goa(pooling="max", conformance="official"), TASK, CASE).turns()
    [text, *_] = [prompts.render("backward", {**t.context, **t.observation}) for t in turns if t.name == "backward"]
    clean = drive(goa(pooling="max"), TASK, CASE).turns()
    [other, *_] = [prompts.render("backward", {**t.context, **t.observation}) for t in clean if t.name == "backward"]
    assert "Confidence: …" in other and "The answer is <number>" in other
    assert "Confidence: …" not in text and "The answer is <number>" not in text
