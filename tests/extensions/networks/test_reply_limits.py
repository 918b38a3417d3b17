"""Replies have room for the right answer: in what constrained decoding lets through, and in the spec's max_tokens."""

import random
import re
from collections.abc import Iterator

import pytest

from harness.api import Case, Protocol, Task, Turn
from harness.config import project, resolve, spec
from harness.config.plan import Plan
from harness.engines.mock import Mock
from harness.extensions.networks.calls import Calls
from harness.extensions.networks.sharded import ShardedTask, shard_text
from harness.replies.action_with_message import ActionWithMessage
from tests.helpers.mas_commands import Commands

BUILTIN = project.builtin()
SUITES = ("silo_bench", "silo_quick", "silo_rcc", "mas_bench", "mas_quick", "mas_coupling")


def planned(name: str) -> Plan:
    return resolve.plan(spec.load(name, BUILTIN), BUILTIN, Mock())


def largest(plan: Plan) -> Iterator[tuple[Protocol, ShardedTask, Case]]:
    """Each problem once with its smallest and once with its largest group, alone or not."""
    tasks: dict[object, tuple[Protocol, ShardedTask]] = {}
    for condition in plan.conditions:
        task = condition.task
        assert isinstance(task, ShardedTask)
        size = (task.agents * task.items, task.agents)
        for best, kind in ((min, "small"), (max, "large")):
            key = (task.problem, task.whole, kind)
            before = tasks.get(key)
            if before is None or best(size, (before[1].agents * before[1].items, before[1].agents)) == size:
                tasks[key] = condition.protocol, task
    return ((protocol, task, next(iter(task.cases(1, plan.seed)))) for protocol, task in tasks.values())


def first_turn(protocol: Protocol, task: Task, case: Case) -> Turn:
    """The first turn of an episode, which goes no further."""
    return next(protocol.play(task, case, protocol.possible_agents(case), random.Random(0)))[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", SUITES)
def test_the_longest_right_answer_fits(name: str) -> None:
    """A token for each character: models that write digit by digit need no more."""
    plan = planned(name)
    limit = plan.sampling.get("max_tokens")
    for protocol, task, case in largest(plan):
        answer = max(map(task.answer_text, case.target), key=len)
        everything = " ".join(shard_text(case.private[agent]["shard"]) for agent in case.agents)
        form = first_turn(protocol, task, case).reply
        assert isinstance(form, Calls | Commands)
        pattern = re.compile(dict(form.constraint())["regex"])
        for verb in form.verbs:
            if verb.body is None:
                continue
            text = answer if verb.name == "submit_result" else everything
            head = "".join(f' {argument}="1"' for argument in verb.arguments)
            call = f"<{verb.name}{head}>{text}</{verb.name}>\n"
            if isinstance(form, Commands):
                head = "".join(" 1" for _ in verb.arguments) + ("\n" if verb.line else " ")
                call = f"```\n{verb.name}{head}{text}\n```\n"
            assert pattern.fullmatch(call), (case.id, verb.name, len(text))
            assert limit is None or len(call) <= limit, (case.id, verb.name)
            assert "error" not in form.parse(call).action[0]


@pytest.mark.slow
def test_the_matrix_of_a_hundred_agents_has_its_published_size() -> None:
    """What this is about: III-30's answer at N = 100 was cut at 8,192 tokens."""
    task = BUILTIN.load("tasks", "silo/matrix_multiply")(agents=100)
    [answer] = {task.answer_text(answer) for answer in next(iter(task.cases(1, 0))).target}
    assert 60_000 < len(answer) < 61_000


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["agentsnet", "agentsnet_quick", "agentsnet_scale", "dpbench", "dpbench_scale"])
def test_the_longest_option_fits(name: str) -> None:
    """Beside the longest message that a philosopher may send; AgentsNet's messages have no bound."""
    plan = planned(name)
    limit = plan.sampling["max_tokens"]
    for condition in plan.conditions:
        case = next(iter(condition.task.cases(1, plan.seed)))
        turn = first_turn(condition.protocol, condition.task, case)
        form, text = turn.reply, 0
        if isinstance(form, ActionWithMessage):
            text = form.line.max_chars
            form = form.act
        replies = [condition.task.reply(case, agent) for agent in case.agents] if turn.name != "act" else [form]
        for reply in replies:
            longest = max(map(str, reply.options or ("",)), key=len)
            assert len(f"MESSAGE: \nACTION: ### Final Answer ### {longest}") + text <= limit, (case.id, longest)
