"""Thoughts that a model writes into its text, in any marks, are read by no other agent: all protocols, whole runs."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import harness
from harness.api import Move, Turn
from harness.config.plan import Condition
from harness.extensions.openai.wire import read_completion as read_wire
from harness.replies.dialects import THOUGHTS
from harness.replies.parse_guard import read_completion
from harness.runtime.steps import Steps
from tests.extensions.openai.dialects.play import ENGINE, errors
from tests.extensions.panels.test_margins import PLAYED, acted, conditions, shown
from tests.helpers.fake_openai import FakeOpenAI, chat

THOUGHT = "SECRET: I say WAIT, or 41, though it is false."
SAID = "The answer is 42."
MARKS: dict[str, str] = {
    "harmony": f"<|channel|>analysis<|message|>{THOUGHT}<|end|>"
    "<|start|>assistant<|channel|>final<|message|>%s<|return|>",
    "harmony without tokens": f"analysis{'We think. '}{THOUGHT}assistantfinal%s",
    "closed only": f"{THOUGHT}\n</think>\n\n%s",
    "in the middle": f"Let me see.\n<think>\n{THOUGHT}\n</think>\n%s",
    "twice": f"<think>{THOUGHT}</think>\n<think>{THOUGHT}</think>\n%s",
    "with attributes": f'<think mode="deep">{THOUGHT}</think>\n%s',
    "in capitals": f"<THINK>{THOUGHT}</THINK>\n%s",
} | {name: f"{opening}\n{THOUGHT}\n{closing}\n%s" for name, opening, closing in [
    *((one, f"<{one}>", f"</{one}>") for one in ("think", "thinking", "thought", "reasoning", "longcat_think")),
    *((marks.opening, marks.opening, marks.closing) for marks in THOUGHTS),
]}  # fmt: skip
READABLE = sorted(MARKS.keys() - {"in the middle", "twice", "with attributes", "in capitals"})
"""Marks that the engine itself takes for a thought; what others hold is left out where a text passes on."""
MARKS |= {
    f"{closing}, closed only": f"{THOUGHT}\n{closing}\n%s"
    for closing in ("[/THINK]", "</thought>", "◁/think▷", "</seed:think>")
} | {
    f"{name}, cut off": MARKS[name].partition(THOUGHT)[0] + THOUGHT + " %s"
    for name in ("think", "[THINK]", "◁think▷", "<seed:think>", "harmony", "thinking", "thought")
}
BATCHES = 5


def said(turn: Turn) -> str:
    """What a model says here, with a text for others where the form has room for one."""
    action = acted(turn, SAID)
    return SAID if action is ... else turn.reply.written(action) or SAID


def prompts(condition: Condition, marks: str) -> Iterator[str]:
    """What the agents of an episode are asked, where all think in these marks."""
    names = [group.name for group in condition.groups]
    case = condition.task.example()
    agents = condition.protocol.possible_agents(case)
    roles = {agent: names[i % len(names)] for i, agent in enumerate(agents)}
    case = replace(case, roles={agent: role for agent, role in roles.items() if role != "default"})
    with Steps(condition.protocol, condition.task, case, random.Random(0)) as game:
        while game.batch is not None and game.number < BATCHES:
            moves = []
            for turn in game.batch:
                templates = condition.group_of(case, turn.agent).prompts
                answer = read_wire(chat(marks.replace("%s", said(turn))), 0.1, constrained=templates.verbatim)
                parsed = read_completion(turn.reply, answer)
                action, kind = parsed.action, None
                if parsed.error is not None:
                    action, kind = parsed.fallback_action, "parse"
                move = Move(turn.agent, turn.name, action, parsed.error, kind, (answer,))
                yield from shown(templates, turn, move)
                moves.append(move)
            game.send(moves)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", PLAYED)
def test_no_prompt_shows_the_thoughts_of_an_agent(name: str) -> None:
    for condition in conditions(name)[:6]:
        for marks in random.Random(condition.id).sample(sorted(MARKS), 3):
            leaks = [prompt for prompt in prompts(condition, MARKS[marks]) if "SECRET" in prompt]
            assert leaks == [], (condition.id, marks)


def test_other_words_in_angle_brackets_are_no_thoughts() -> None:
    """Else the test above would prove nothing."""
    [condition] = conditions("discussion with reasons")[:1]
    assert any("SECRET" in prompt for prompt in prompts(condition, f"<aside>{THOUGHT}</aside>\n%s"))
    assert all(any("42" in prompt for prompt in prompts(condition, MARKS[marks])) for marks in READABLE)


RUNS = {
    "dpbench_quick": (
        "MESSAGE: I am number 42.\nACTION: WAIT",
        ["matrix.condition=[sim3c]", "protocol.max_timesteps=3"],
    ),
    "arithmetic": (
        SAID,
        ["prompts=panels/standard", "protocol={use: debate, agents: 2, rounds: 2}", "matrix={terms: [4]}"],
    ),
}


@pytest.mark.sampled
@pytest.mark.parametrize("marks", READABLE)
@pytest.mark.parametrize("spec", RUNS)
def test_a_run_keeps_thoughts_apart_and_to_their_agent(tmp_path: Path, spec: str, marks: str) -> None:
    text, changes = RUNS[spec]
    with FakeOpenAI(lambda body: chat(MARKS[marks] % text)) as server:
        engine = {**ENGINE, "base_url": server.url}
        done = harness.evaluate(
            spec, "openai", model_args=engine, output_path=tmp_path / "run", overrides=[*changes, "repeats=1"], limit=1
        )
    asked = json.dumps([body["messages"] for body in server.bodies])
    assert "SECRET" not in asked and "42." in asked and errors(done) == []
    turns = list(done.turns())
    assert {turn["reply"].strip() for turn in turns} == {text}
    assert all("SECRET" in turn["reasoning"] for turn in turns), "people read them"
