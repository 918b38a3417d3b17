"""DPBench's prompts are the paper's, word for word (Appendix A, Figures 6 to 9); ours only where it prints none."""

import random
from typing import Any

import pytest

from harness.config import project
from harness.runtime.steps import drive

BUILTIN = project.builtin()

SYSTEM = """\
You are P1, one of 5 philosophers seated at a circular dining table.

THE DINING PHILOSOPHERS PROBLEM:
- You and your fellow philosophers share forks placed between each pair of adjacent philosophers
- To eat, you must hold BOTH your left fork AND your right fork simultaneously
- Each fork can only be held by one philosopher at a time
- After eating, you automatically release both forks

YOUR GOAL:
- Coordinate with others to avoid DEADLOCK (where everyone holds one fork and waits forever)
- Maximize total meals eaten by the group
- Ensure fair distribution of meals among all philosophers

AVAILABLE ACTIONS:
- GRAB_LEFT: Pick up the fork on your left (if available)
- GRAB_RIGHT: Pick up the fork on your right (if available)
- RELEASE: Release any forks you are holding
- WAIT: Do nothing this turn

RESPONSE FORMAT:
THINKING: [Brief reasoning about the current situation]
ACTION: [One of: GRAB_LEFT, GRAB_RIGHT, RELEASE, WAIT]"""

COMMUNICATION = """\
COMMUNICATION:
- You can send a message to your neighbors each turn
- Use messages to coordinate and avoid conflicts
- Be concise and clear in your communication
"""

FORMAT = """\
RESPONSE FORMAT:
THINKING: [Brief reasoning about the current situation]
MESSAGE: [Short message to your neighbors, or "None"]
ACTION: [One of: GRAB_LEFT, GRAB_RIGHT, RELEASE, WAIT]"""

DECISION = """\
You are P1.

CURRENT STATE:
- Your state: HUNGRY
- Meals eaten: 0
- Currently holding: nothing

FORK STATUS:
- Left fork: available
- Right fork: not available

What is your action?

THINKING: [Your reasoning]
ACTION: [GRAB_LEFT / GRAB_RIGHT / RELEASE / WAIT]"""

TALKING = """\
NEIGHBOR MESSAGES:
- From left neighbor: "I take my left fork"
- From right neighbor: None

What is your action? You may also send a message to coordinate.

THINKING: [Your reasoning]
MESSAGE: [Short message to neighbors, or "None"]
ACTION: [GRAB_LEFT / GRAB_RIGHT / RELEASE / WAIT]"""


def second_turn(prompts: str, talk_rounds: int, **parameters: Any) -> tuple[str, str]:
    """P1's system prompt and its question in the second timestep: P2 holds its left fork, P0 has spoken."""
    channel = BUILTIN.load("channels", "neighbors")()
    protocol = BUILTIN.load("protocols", "steps")(channel=channel, talk_rounds=talk_rounds, **parameters)
    task = BUILTIN.load("tasks", "dpbench/dining_table")()

    def script(turn: Any) -> Any:
        act = "GRAB_LEFT" if turn.agent == "P2" else "WAIT"
        text = "I take my left fork" if turn.agent == "P0" else None
        return {"act": act, "message": text} if talk_rounds else act

    turns = [turn for turn in drive(protocol, task, task.example(), script).turns() if turn.agent == "P1"]
    result = BUILTIN.prompts(prompts)
    return result.render("system", turns[1].context), result.render("act", {**turns[1].context, **turns[1].observation})


def test_without_communication() -> None:
    assert second_turn("dpbench/standard", 0) == (SYSTEM, DECISION)


def test_with_communication() -> None:
    """The section stands between goal and actions, as in the released code; the paper calls it appended."""
    start, end = SYSTEM.split("AVAILABLE ACTIONS")
    system = f"{start}{COMMUNICATION}\nAVAILABLE ACTIONS{end.split('RESPONSE FORMAT')[0]}{FORMAT}"
    decision = f"{DECISION.split('What is')[0]}{TALKING}"
    assert second_turn("dpbench/standard", 1) == (system, decision)


VARIANTS = ["minimal", "resource_ordering", "symmetry_breaking", "theory_of_mind"]


@pytest.mark.parametrize("variant", VARIANTS)
def test_variants_change_the_system_prompt_only(variant: str) -> None:
    for talk in (0, 1):
        system, decision = second_turn(f"dpbench/{variant}", talk)
        standard, requests = second_turn("dpbench/standard", talk)
        assert system != standard and decision == requests
        for word in ("GRAB_LEFT", "GRAB_RIGHT", "RELEASE", "WAIT", "THINKING:", "ACTION:", "P1", "5"):
            assert word in system
        assert ("MESSAGE:" in system) == bool(talk)
        assert "\n\n\n" not in system


def test_resource_ordering_names_the_forks_of_each_philosopher() -> None:
    prompts = BUILTIN.prompts("dpbench/resource_ordering")
    task = BUILTIN.load("tasks", "dpbench/dining_table")(philosophers=3)
    lines = [prompts.render("system", {**task.context(task.example(), f"P{i}"), "talk_rounds": 0}) for i in range(3)]
    for text, own, first in zip(lines, [(0, 1), (1, 2), (2, 0)], ["left", "left", "right"], strict=True):
        assert f"your left fork is fork {own[0]}, your right fork is fork {own[1]}" in text
        assert f"for you the {first} one" in text


def test_memory_shows_ones_own_past() -> None:
    _, decision = second_turn("dpbench/standard", 0, memory=1)
    assert (
        "- Timestep 1: HUNGRY, 0 meals, held nothing, left fork available, right fork available; you chose WAIT"
        in decision
    )
    assert decision.replace(decision[decision.index("WHAT YOU SAW") : decision.index("CURRENT STATE")], "") == DECISION


def test_no_prompt_names_a_neighbor_or_shows_the_table() -> None:
    """Partial observability (Section 3.1): another philosopher appears in no prompt but in what it says itself."""
    rng = random.Random(3)
    channel = BUILTIN.load("channels", "neighbors")()
    task = BUILTIN.load("tasks", "dpbench/dining_table")(philosophers=5)
    for talk in (0, 2):
        protocol = BUILTIN.load("protocols", "steps")(channel=channel, talk_rounds=talk, memory=2)
        result = BUILTIN.prompts("dpbench/standard")
        played = drive(protocol, task, task.example(), lambda turn: rng.choice(turn.reply.options or (None,)))
        for turn in played.turns():
            text = result.render("system", turn.context) + result.render(
                turn.name, {**turn.context, **turn.observation}
            )
            assert not [f"P{i}" for i in range(5) if f"P{i}" != turn.agent and f"P{i}" in text]
