"""Sharded tasks that a spec declares: cuts, answers, credit, failure modes, mistakes, and the teams that play them."""

import copy
import json
import pickle
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import harness
from harness.api import Case, Outcome
from harness.api.errors import UserError
from harness.config import project, resolve, spec
from harness.extensions.networks import cuts
from harness.extensions.networks.sharded import ShardedTask
from harness.extensions.yaml_tasks.expressions import ExpressionError
from tests.helpers.samples import examples

BUILTIN = project.builtin()
TASK: dict[str, Any] = {
    "use": "sharded",
    "problem": "total",
    "agents": 3,
    "items": 4,
    "draw": {"limit": "randint(10, 50)", "data": "[randint(1, 100) for _ in range(agents * per_agent)]"},
    "public": ["limit"],
    "question": "What is the sum of all numbers above {{ limit }}?",
    "truth": "sum(x for x in data if x > limit)",
}
SPEC: dict[str, Any] = {
    "name": "declared",
    "task": TASK,
    "protocol": {"use": "action_rounds", "channel": "mailbox", "max_rounds": 20},
    "prompts": "sharded/standard",
    "baseline": {"use": "silo/oracle", "plan": "star"},
    "metrics": ["silo/success", "messages"],
}


def build(**changes: Any) -> ShardedTask:
    task = BUILTIN.load("tasks", "sharded")(**{k: v for k, v in {**TASK, **changes}.items() if k != "use"})
    assert isinstance(task, ShardedTask)
    return task


def case(task: ShardedTask, seed: int = 0) -> Case:
    return next(iter(task.cases(1, seed)))


def grade(task: ShardedTask, made: Case, *answers: Any, knew: tuple[int, ...] | None = None) -> dict[str, Any]:
    """`knew`: what each agent could know, as bits."""
    facts = {} if knew is None else {"knew": {agent: f"{k:x}" for agent, k in zip(made.agents, knew, strict=True)}}
    return dict(task.grade(made, Outcome(dict(zip(made.agents, answers, strict=True)), facts=facts)))


# ------------------------------------------------------------------------------------------- cuts


@pytest.mark.parametrize(
    ("cut", "data", "shards"),
    [
        ("contiguous", "[5, 6, 7, 8, 9]", [[5], [6, 7], [8, 9]]),
        ("contiguous", "'abcdef'", ["ab", "cd", "ef"]),
        ("contiguous", "{'x': [1, 2, 3], 'y': 'abc'}",
         [{"x": [1], "y": "a"}, {"x": [2], "y": "b"}, {"x": [3], "y": "c"}]),
        ("interleaved", "[5, 6, 7, 8]", [[5, 8], [6], [7]]),
        ({"overlap": 1}, "range(6)", [[0, 1, 2], [2, 3, 4], [4, 5]]),
        ({"overlap": 9}, "'abc'", ["abc", "bc", "c"]),
        ({"by": "item % agents"}, "[1, 2, 3, 4]", [[3], [1, 4], [2]]),
        ({"by": "place // 2 % limit"}, "'abcd'", ["ab", "cd", ""]),
        ("contiguous", "{1: [2, 3, 4]}", [{"1": [2]}, {"1": [3]}, {"1": [4]}]),
    ],
)  # fmt: skip
def test_cuts(cut: Any, data: str, shards: list[Any]) -> None:
    made = case(build(cut=cut, draw={"limit": "3", "data": data}, truth="len(data)"))
    assert [made.private[agent]["shard"] for agent in made.agents] == shards


@given(st.lists(st.integers(0, 9), max_size=40) | st.text("abc", max_size=40), st.integers(1, 7), st.integers(0, 9))
@settings(max_examples=examples(150), deadline=None)
def test_what_is_cut_can_be_put_together(data: Any, agents: int, number: int) -> None:
    ways: list[tuple[Any, Any]] = [
        (lambda values: cuts.contiguous(len(values), agents), None),
        (lambda values: cuts.interleaved(len(values), agents), cuts.dealt),
        (lambda values: cuts.contiguous(len(values), agents, number), lambda s: cuts.without_overlap(s, number)),
    ]
    for places, how in ways:
        shards = cuts.cut(data, agents, places)
        assert len(shards) == agents and cuts.put_together(shards, how) == data
    rng = random.Random(number)
    for places in (
        lambda values: cuts.shuffled(len(values), agents, rng),
        lambda values: cuts.keyed(values, agents, lambda item, place: (place * number) % agents),
    ):
        assert Counter(cuts.put_together(cuts.cut(data, agents, places))) == Counter(data)


def test_a_truth_sees_data_in_the_order_before_the_cut() -> None:
    for cut in ("contiguous", "interleaved", {"overlap": 2}):
        made = case(build(cut=cut, truth="data[:5]", form="integers", items=7))
        whole = case(build(cut=cut, truth="data[:5]", form="integers", items=7, whole=True))
        assert made.target == whole.target * 3, cut


def test_instances_are_drawn_from_their_seed_alone() -> None:
    three = list(build(instances=3).cases(None, 7))
    assert three[:2] == list(build(instances=2).cases(None, 7)) and three[0].private != three[1].private
    random.seed(1)
    assert list(build(instances=3).cases(None, 7)) == three
    again = pickle.loads(pickle.dumps(build(instances=3)))
    assert list(again.cases(None, 7)) == three


def test_until_draws_again() -> None:
    even = build(until="sum(data) % 7 == 3", truth="sum(data) % 7")
    assert {case(even, seed).target[0] for seed in range(20)} == {3}


# ---------------------------------------------------------------------------------------- answers


def test_one_agent_answers_and_the_others_help() -> None:
    task = build(answers="one")
    made = case(task)
    right = made.target[0]
    assert made.target == [right, "done", "done"]
    assert grade(task, made, right, None, None)["success"] == 1
    assert grade(task, made, right + 1, "done", "done")["success"] == 0
    late = grade(task, made, None, "done", "done", knew=(7, 2, 4))
    assert (late["timeout"], late["premature"], late["consensus"]) == (1, 0, None)
    assert task.context(made, "Agent-0")["task"].endswith("Form of the answer: one integer.")
    assert task.context(made, "Agent-1")["task"].endswith("Form of the answer: the word done.")
    assert task.reply(made, "Agent-2").parse("Done").error and task.reply(made, "Agent-2").parse("done").action
    assert len(case(build(answers="one", whole=True)).agents) == 1


def test_every_agent_has_an_answer_of_its_own() -> None:
    task = build(answers="own", truth="[sum(part) for part in shards]")
    made = case(task)
    sums = [sum(made.private[agent]["shard"]) for agent in made.agents]
    assert made.target == sums
    assert grade(task, made, sums[0], sums[1], sums[0] - 1, knew=(7, 7, 7))["consensus"] is None
    assert grade(task, made, *sums)["success"] == 1
    parts = build(answers="own", truth="shards", form="integers", whole=True)
    assert case(parts).target == [made.private["Agent-0"]["shard"] + made.private["Agent-1"]["shard"]
                                  + made.private["Agent-2"]["shard"]]  # fmt: skip


def test_byzantine_agents_are_left_out() -> None:
    task = build()
    made = replace(case(task), unscored=frozenset({"Agent-1"}))
    right = made.target[0]
    assert grade(task, made, right, -1, right, knew=(7, 7, 7))["success"] == 1
    assert grade(task, made, right, right, -1)["success"] == 0.5
    assert grade(task, replace(made, unscored=frozenset(made.agents)), 1, 1, 1)["success"] is None


@pytest.mark.parametrize(
    ("changes", "answer", "success", "partial"),
    [
        ({"truth": "100"}, 100, 1, 1),
        ({"truth": "100"}, 100.4, 0, 0),
        ({"truth": "100", "credit": "number"}, 100.9, 0, 1),
        ({"truth": "100", "tolerance": 5}, 105, 1, 1),
        ({"truth": "100", "tolerance": 5}, 105.1, 0, 0),
        ({"truth": "2 / 3", "form": "number", "digits": 2}, 0.66, 0, 0),
        ({"truth": "2 / 3", "form": "number", "digits": 2}, 0.67, 1, 1),
        ({"truth": "2 / 3", "form": "number", "digits": 2, "tolerance": 0.1}, 0.6, 1, 1),
        ({"truth": "[1, 2, 3]", "form": "integers", "credit": "entries"}, [1, 5, 3, 4], 0, 2 / 3),
        ({"truth": "[1, 2, 3]", "form": "integers", "credit": "entries", "tolerance": 3}, [1, 5, 3], 1, 1),
        ({"truth": "[[1, 2], [3]]", "form": "rows", "credit": "cells"}, [[1, 0], [3]], 0, 0.75),
        ({"truth": "{'a': 1, 'b': 2}", "form": "table", "credit": "entries"}, {"a": 1}, 0, 0.5),
        ({"truth": "{7: 1}", "form": "table"}, {"7": 1}, 1, 1),
        ({"truth": "'red'", "form": {"one_of": ["red", "blue"]}}, "red", 1, 1),
        ({"truth": "True", "form": "truth"}, True, 1, 1),
        ({"truth": "100", "credit": "1 - abs(answer - truth) / truth"}, 75, 0, 0.75),
        ({"truth": "100", "credit": "1 - abs(answer - truth) / truth"}, 900, 0, 0),
        ({"truth": "100", "credit": "1 - abs(answer - truth) / truth"}, [1], 0, 0),
        ({"truth": "100", "credit": "0.5"}, 3, 0, 0.5),
        ({"truth": "[1, 2]", "form": "integers", "credit": "answer[1] == truth[1]"}, [7], 0, 0),
        ({"truth": "[1, 2]", "form": "integers", "credit": "answer[1] == truth[1]"}, [7, 2], 0, 1),
        ({"draw": {"limit": "1", "data": "[1, 2, 3]"}, "truth": "3", "right": "answer in data"}, 2, 1, 1),
        ({"draw": {"limit": "1", "data": "[1, 2, 3]"}, "truth": "3", "right": "answer in data"}, 4, 0, 0),
        ({"truth": "100", "right": "answer % 10 == 0"}, 30, 1, 1),
        ({"truth": "100", "right": "100 / answer == 10 + agent * 0"}, 0, 0, 0),
    ],
)
def test_answers_are_right_or_have_credit(changes: Any, answer: Any, success: float, partial: float) -> None:
    task = build(**changes)
    grades = grade(task, case(task), answer, answer, answer)
    assert (grades["success"], grades["partial"]) == (success, pytest.approx(partial))


@pytest.mark.parametrize("changes", [{"credit": "1 / (truth - truth)"}, {"right": "data[999] == answer"}])
def test_an_expression_that_fails_for_the_right_answer_too_is_a_mistake(changes: Any) -> None:
    task = build(**changes)
    with pytest.raises(ExpressionError, match=r"division by zero|index out of range"):
        grade(task, case(task), -1, -1, -1)


@pytest.mark.parametrize("cut", ["contiguous", "random", "interleaved"])
def test_draws_are_made_again_until_what_was_worked_out_holds(cut: str) -> None:
    task = build(cut=cut, let={"tops": "[max(shard) for shard in shards]"}, until="len(unique(tops)) == agents")
    for seed in range(20):
        made = case(task, seed)
        tops = [max(made.private[agent]["shard"]) for agent in made.agents]
        assert len(set(tops)) == len(tops)


def test_failure_modes_follow_what_an_answer_needs() -> None:
    own = {"answers": "own", "truth": "[sum(shards[0][:1]) + i for i in range(agents)]", "form": "number"}
    first = build(**own, needs="[0]")
    made = case(first)
    assert grade(first, made, *made.target[:2], -1, knew=(1, 3, 4))["premature"] == 1
    assert grade(first, made, *made.target[:2], -1, knew=(1, 3, 5))["computation"] == 1
    either = build(**own, needs="[[0], [1, 2]]")
    assert grade(either, made, *made.target[:2], -1, knew=(1, 3, 6))["premature"] == 0
    before = build(**own, needs="range(agent + 1)")
    assert list(before.needed_agents(2, [[1], [2], [3]], {"limit": 1})) == [0b111]
    with pytest.raises(ExpressionError, match="lists numbers of agents"):
        build(**own, needs="[7]").needed_agents(0, [[1], [2]], {"limit": 1})


# ------------------------------------------------------------------------------------------ teams

TEAMS = [
    *(({"use": "action_rounds", "channel": channel}, "sharded/standard", {"use": "silo/oracle", "plan": plan})
      for channel, plan in (("mailbox", "star"), ("mailbox", "tree"), ("mailbox", "dissemination"),
                            ("broadcast", "all"), ("store", "all"), ("store", "star"))),
    *(({"use": "command_rounds", "channel": f"mas/{channel}"}, "mas/short", "mas/oracle")
      for channel in ("broadcasting", "p2p", "shared_kv")),
    ({"use": "local_rounds", "channel": "neighbors"}, "sharded/standard", {"use": "silo/oracle", "plan": "gossip"}),
]  # fmt: skip
FORMS: list[dict[str, Any]] = [
    {},
    {"answers": "one"},
    {"answers": "own", "truth": "chunks(sorted(data), per_agent)", "form": "integers"},
    {"truth": "'even' if sum(data) % 2 == 0 else 'odd'", "form": {"one_of": ["even", "odd"]}},
    {"draw": {"limit": "1", "shards": "[randint(1, 99) for _ in range(agents)]"}, "truth": "max(shards)"},
]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("changes", FORMS, ids=["all", "one", "own", "word", "shards"])
def test_perfect_teams_solve_what_is_declared(changes: dict[str, Any], tmp_path: Path) -> None:
    for number, (protocol, prompts, baseline) in enumerate(TEAMS):
        topology = {"topology": "ring"} if protocol["use"] == "local_rounds" else {}
        whole = {**SPEC, "protocol": protocol, "prompts": prompts, "baseline": baseline}
        run = harness.evaluate(
            {**whole, "task": {**TASK, **changes, **topology, "instances": 2}}, output_path=tmp_path / str(number)
        )
        assert [score.numbers["silo/success"] for score in run.scores] == [1, 1], (protocol, baseline)


def test_without_communication_hardly_anything_is_solved(tmp_path: Path) -> None:
    run = harness.evaluate(
        {**SPEC, "baseline": "silo/silent", "task": {**TASK, "instances": 20}}, output_path=tmp_path / "run"
    )
    assert {score.numbers["silo/success"] for score in run.scores} == {0}


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"one_of": ["bolts", "nuts"]}, "Form of the answer: one of these words: bolts, nuts."),
        ({"one_of": ["bolts", "nuts"], "words": "a part"}, "Form of the answer: a part."),
        ({"form": "text", "words": "a name"}, "Form of the answer: a name."),
    ],
)
def test_prompts_say_the_form_of_an_answer(form: dict[str, Any], words: str) -> None:
    task = build(truth="'bolts'", form=form)
    assert task.context(case(task), "Agent-1")["task"].endswith(words)


def test_prompts_hold_the_question_and_no_answer() -> None:
    task = build(items=20)
    made = case(task)
    context = task.context(made, "Agent-1")
    assert context["task"].startswith(f"What is the sum of all numbers above {context['known']['limit']}?")
    assert str(made.target[0]) not in json.dumps(context) and json.loads(json.dumps(context)) == context


# --------------------------------------------------------------------------------------- mistakes

MISTAKES: list[tuple[dict[str, Any], str]] = [
    ({"truth": "sum(dat)"}, r"dat: unknown name\. Did you mean data\?"),
    ({"public": [], "question": "?"}, "limit: drawn, but known to no agent"),
    ({"public": [], "question": "?"}, "to the data, or work it out in let"),
    ({"draw": {"limit": "1", "data": "range(agents * items)"}}, "The key `items` is `per_agent` in expressions"),
    ({"until": "smal > 1", "let": {"small": "1"}}, r"smal: unknown name\. Did you mean small\?"),
    ({"until": "small > 1", "let": {"small": "1"}}, "until does not hold for any of 1,000 draws"),
    ({"until": "total", "let": {"total": "sum([0 for x in range(10 ** 5)])"}}, "steps"),
    ({"truth": "randint(1, 2)"}, "chance is for draw alone"),
    ({"draw": {"limit": "1"}}, "draw has neither data nor shards"),
    ({"draw": {"limit": "1", "data": "[1]", "shards": "[1]"}}, "draw has both data and shards"),
    ({"public": ["limmit"]}, r"'limmit' is not drawn[\s\S]*Did you mean limit\?"),
    ({"public": ["data"]}, "data is what agents hold in parts"),
    ({"question": "{{ limmit }}"}, "question uses the fact 'limmit'"),
    ({"public": [], "question": "{{ limit }}"}, "Add it to `public`"),
    ({"let": {"limit": "1"}}, "'limit' has a meaning here already"),
    ({"let": {"sum": "1"}}, "'sum' cannot name a value"),
    ({"truth": "'many'"}, "truth is 'many', which is not one integer"),
    ({"answers": "own"}, "lists one answer for each of 3 agents"),
    ({"answers": "own", "truth": "[1, 2, 3]", "whole": True}, "make no answer of one agent"),
    ({"cut": {"by": "item"}}, "there are agents 0 to 2"),
    ({"cut": {"overlap": 0}}, "'overlap' must be ≥ 1, found 0"),
    ({"cut": {"by": "1", "overlap": 1}}, "cut has either by or overlap"),
    ({"cut": {"bye": "1"}}, r"unknown key 'bye'\. Did you mean by\?"),
    ({"draw": {"limit": "1", "data": "5"}}, "only a list, a text, or a mapping of them can be cut"),
    ({"draw": {"limit": "1", "shards": "[[1]]"}}, "one shard for each of 3 agents; it has 1"),
    ({"draw": {"limit": "1", "shards": "[[1]] * 3"}, "cut": "random"}, "shards are not cut"),
    ({"draw": {"limit": "1", "shards": "[1, 2, 3]"}}, "are not part of one input"),
    ({"until": "limit > 99"}, "until does not hold for any of 1,000 draws"),
    ({"until": "[0 for x in range(10 ** 6)] == limit"}, "steps"),
    ({"truth": "sum(x for x in range(10 ** 9))"}, "2,000,000"),
    ({"credit": "entires"}, r"no credit 'entires'[\s\S]*Did you mean entries\?"),
    ({"credit": "'all'"}, "it must be a number from 0 to 1"),
    ({"form": "int"}, r"Did you mean integer\?"),
    ({"form": {"one_of": ["1", "b"]}}, "'1' is no word: it is read as 1"),
    ({"form": {"words": "x"}}, "form has either one_of, or form and words"),
    ({"domain": "hardened"}, "unknown key 'domain'"),
]


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("changes", "message"), MISTAKES, ids=[message[:30] for _, message in MISTAKES])
def test_mistakes_are_explained_at_their_place(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    data = copy.deepcopy({**SPEC, "task": {**TASK, **changes}})
    file = tmp_path / "spec.yaml"
    file.write_text(yaml.safe_dump(data, sort_keys=False, width=300))
    with pytest.raises(UserError, match=message) as caught:
        plan = resolve.plan(spec.load(str(file), BUILTIN), BUILTIN)
        task = plan.conditions[0].task
        assert isinstance(task, ShardedTask)
        grade(task, case(task), 7, 7, 7)
    assert caught.value.place is not None or "whole" in changes or "shards" in data["task"]["draw"]
