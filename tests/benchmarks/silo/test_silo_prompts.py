"""SILO-Bench's prompts: the paper's words, nothing that gives answer or way away, scaffolds that add one thing."""

import difflib
import json
import re
from functools import cache
from typing import Any

import pytest

from harness.api import Case, Turn
from harness.config import project
from harness.config.prompts import PromptSet
from harness.runtime.steps import drive
from tests.benchmarks.silo.silo_kit import TASKS

BUILTIN = project.builtin()
CHANNELS = ("mailbox", "broadcast", "store")
BASE = """You are Agent {agent_id} in a multi-agent system consisting of {N} agents (IDs range from 0 to {N-1}).
Task Description:
{task_description}
Your Local Data:
{data_shard}
Communication Protocol:
{protocol_description}
Available Actions:
- {protocol_specific_actions}
- submit_result(answer): Submit your final answer when confident
Your goal is to coordinate with other agents to compute the globally correct answer. No single agent has sufficient
information to solve this task independently. When you have determined the answer, submit it using submit_result()."""
PRINTED = {
    "global_maximum": """Find the maximum value across all data distributed among the agents. Each agent holds a portion
of a larger array. The correct answer is the single largest integer across the entire distributed dataset. You must
coordinate with other agents to determine this global maximum.""",
    "prefix_sum": """Compute the prefix sum array for a sequence distributed across agents. Agent 0 holds elements $[0,
k)$, Agent 1 holds elements $[k, 2k)$, and so on. The prefix sum at position i is the sum of all elements from position
0 to i. You must coordinate to compute the correct prefix sum for your portion, accounting for cumulative sums from
preceding agents.""",
    "distributed_sort": """Sort the entire distributed array in ascending order. Each agent holds a portion of the
unsorted data. The final result should be the complete sorted sequence. You must coordinate to exchange data and
determine the correct global ordering.""",
}
ACTIONS = {
    "mailbox": ["send_message", "receive_messages", "wait", "submit_result"],
    "broadcast": ["broadcast_message", "receive_messages", "list_agents", "wait", "submit_result"],
    "store": ["list_files", "read_file", "write_file", "delete_file", "wait", "submit_result"],
    "silence": ["wait", "submit_result"],
}
"""Table 5."""
GIVEN_AWAY = re.compile(
    r"\b(star|tree|ring|hub|leader|aggregator|coordinator|topology|gossip|optimal\w*|all-to-all|O\(N)\b", re.IGNORECASE
)


def turns(task: str, channel: str, agents: int = 4, seed: int = 0, **parameters: Any) -> tuple[Case, list[Turn]]:
    mapping = {key: parameters.pop(key) for key in ("inbox",) if key in parameters}
    result = BUILTIN.load("tasks", f"silo/{task}")(agents=agents, whole=parameters.pop("whole", False))
    protocol = BUILTIN.load("protocols", "action_rounds")(
        channel=BUILTIN.load("channels", channel)(**mapping), **{"max_rounds": 2, **parameters}
    )
    case = next(iter(result.cases(1, seed)))
    return case, list(drive(protocol, result, case).turns())


@cache
def prompt_set(name: str) -> PromptSet:
    return BUILTIN.prompts(f"silo/{name}")


def rendered(turn: Turn, prompts: str = "standard") -> tuple[str, str]:
    """The system prompt and the turn's."""
    result = prompt_set(prompts)
    return result.render("system", turn.context), result.render(turn.name, {**turn.context, **turn.observation})


def squeezed(text: str) -> str:
    return " ".join(text.split())


def test_the_base_prompt_is_word_for_word_the_papers() -> None:
    _, [turn, *_] = turns("global_maximum", "mailbox", 7)
    system, _ = rendered(turn)
    report = squeezed(system)
    filled = {"{agent_id}": "0", "{N}": "7", "{N-1}": "6", "{data_shard}": turn.context["shard"]}
    filled |= {"{task_description}": turn.context["task"]}
    base = squeezed(BASE)
    for name, text in filled.items():
        base = base.replace(name, squeezed(text))
    at = 0
    for part in re.split(r"\{protocol_description\}|\{protocol_specific_actions\}", base):
        result = report.find(squeezed(part).removesuffix(" -"), at)
        assert result >= at, f"not in the prompt, or not in this order: {part}"
        at = result
    assert report.startswith(base.split("{protocol_description}")[0].strip())


@pytest.mark.parametrize("task", PRINTED)
def test_the_three_printed_descriptions_are_word_for_word_the_papers(task: str) -> None:
    _, [turn, *_] = turns(task, "mailbox")
    assert turn.context["task"].split("\n")[0] == squeezed(PRINTED[task]).replace("$", "")  # marks of mathematics


@pytest.mark.parametrize("channel", ACTIONS)
def test_the_actions_are_those_of_table_5(channel: str) -> None:
    _, [turn, *_] = turns("global_maximum", channel)
    system, _ = rendered(turn)
    listed = system.split("Available Actions:")[1].split("Your goal")[0]
    assert re.findall(r"^- (\w+)\(", listed, re.MULTILINE) == ACTIONS[channel]
    for name in ACTIONS[channel]:
        assert f"\n<{name}" in system.split("How to act")[1], "how it is written"


@pytest.mark.sampled(22)
@pytest.mark.parametrize("task", TASKS)
def test_neither_the_answer_nor_the_way_reaches_a_prompt(task: str) -> None:
    outputs = [*((channel, "standard") for channel in CHANNELS), ("store", "reminder"), ("store", "scratchpad")]
    for channel, prompts in outputs:
        case, played = turns(task, channel, seed=3, max_rounds=1)
        for turn in played:
            system, requests = rendered(turn, prompts)
            own = turn.context["shard"]
            text = (system + requests).replace(own, "")
            assert not GIVEN_AWAY.search(text), GIVEN_AWAY.search(text)
            truth = case.target[case.agents.index(turn.agent)]
            if isinstance(truth, (list, dict)) and len(truth) > 2:
                assert json.dumps(truth)[1:-1] not in system + requests
            others = [json.dumps(case.private[agent]["shard"]) for agent in case.agents if agent != turn.agent]
            assert not any(shard in text for shard in others if shard != own)


@pytest.mark.parametrize("task", TASKS)
def test_prompts_differ_by_id_and_shard_alone(task: str) -> None:
    _, played = turns(task, "store")
    seen = set()
    for turn in played[:4]:
        system, requests = rendered(turn)
        bare = system.replace(turn.context["shard"], "SHARD").replace(
            f"You are Agent {turn.context['id']} ", "You are Agent ID "
        )
        seen.add((bare, requests))
    assert len(seen) == 1


def added(one: str, two: str) -> list[str]:
    return [
        line[2:] for line in difflib.ndiff(one.splitlines(), two.splitlines()) if line[0] in "+-" and line[2:].strip()
    ]


def test_each_scaffold_adds_one_thing() -> None:
    _, [turn, *_] = turns("prefix_sum", "mailbox")
    system, requests = rendered(turn)
    assert added(system, rendered(turn, "reminder")[0]) == []
    reminded = added(requests, rendered(turn, "reminder")[1])
    assert reminded[0] == "Available Actions:" and len(reminded) == 2 + 2 * len(ACTIONS["mailbox"])
    hint = added(system, rendered(turn, "scratchpad")[0])
    assert hint == [
        "You may find it useful to maintain a shared workspace of intermediate results with the other agents."
    ]
    assert added(requests, rendered(turn, "scratchpad")[1]) == []
    assert rendered(turn, "planning") == (system, requests)
    _, [first, *_] = turns("prefix_sum", "mailbox", planning=True)
    assert first.name == "plan" and "Planning round" in rendered(first, "planning")[1]


def test_push_and_pull_are_distinguished() -> None:
    _, [push, *_] = turns("prefix_sum", "mailbox", inbox="push")
    _, [pull, *_] = turns("prefix_sum", "mailbox", inbox="pull")
    assert "shown to you at the start of the next one" in rendered(push)[0] and "New messages:" in rendered(push)[1]
    assert "wait until you call receive_messages" in rendered(pull)[0] and "New messages:" not in rendered(pull)[1]


def test_who_is_alone_hears_of_no_agents_to_talk_to() -> None:
    case, [turn] = turns("prefix_sum", "silence", agents=3, whole=True, max_rounds=1)
    system, _ = rendered(turn, "alone")
    assert len(case.agents) == 1 and turn.context["shard"] in system
    assert "No single agent" not in system and "coordinate with other agents" not in system
    assert "<submit_result>answer</submit_result>" in system
    assert not any(name in system for name in ("send_message", "<wait", "wait()")), "there is nothing to wait for"


@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize("prompts", ["standard", "reminder", "scratchpad", "planning", "alone"])
def test_who_is_the_only_agent_hears_of_no_other(prompts: str, channel: str) -> None:
    planning = prompts == "planning"
    case, played = turns("prefix_sum", channel, agents=1, planning=planning, calls_per_round=2)
    assert len(case.agents) == 1
    for turn in played:
        text = (
            "".join(rendered(turn, prompts)).replace(turn.context["task"], "").replace("speaks of several agents", "")
        )
        for wrong in ("agents", "other agents", "others", "0 to 0", "No single agent", "send", "receive", "list_files"):
            assert wrong not in text, wrong
        assert "<submit_result>answer</submit_result>" in text


def test_push_says_that_receiving_shows_messages_again() -> None:
    for channel in ("mailbox", "broadcast"):
        system, _ = rendered(turns("prefix_sum", channel, inbox="push")[1][0])
        assert "receive_messages returns what has come since you last called it, also what you have been" in system


def test_results_and_messages_are_shown() -> None:
    context = turns("prefix_sum", "mailbox")[1][0].context
    observation = {
        "inbox": [{"from": "Agent-2", "round": 1, "text": "mine is {{ 7 * 7 }} <b>"}],
        "results": [{"call": "send_message", "ok": False, "text": "error: no"}],
        "round": 2, "rounds_left": 1,
    }  # fmt: skip
    text = BUILTIN.prompts("silo/standard").render("round", {**context, **observation})
    assert "- Agent-2: mine is {{ 7 * 7 }} <b>" in text and "- send_message: error: no" in text
