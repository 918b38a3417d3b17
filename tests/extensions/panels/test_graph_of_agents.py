"""`graph_of_agents`: who is asked how often, who sees what, every way out, and where the official code differs."""

import json
from typing import Any

import pytest

from harness.api.errors import PluginError
from harness.extensions.yaml_tasks import conformance
from harness.runtime.steps import drive
from tests.extensions.panels.goa_kit import (
    AGAIN,
    CASE,
    POOLED,
    TASK,
    Script,
    facts_of,
    goa,
    heard,
    judgements,
    labels,
    names,
    number,
    played,
    turn_of,
)

PICK = frozenset({"pick"})


def middle() -> Script:
    """Node 1 is the best, node 0 the second."""
    return Script(rows=judgements(0.3, 0.6, 0.1))


def falling(nodes: int) -> Script:
    return Script(picks=range(nodes), rows=judgements(*range(nodes + 5, 5, -1)))


# ---------------------------------------------------------------------------------------------- calls


def test_the_numbers_of_calls_at_the_defaults() -> None:
    assert len(names(played())) == 12
    assert len(names(played(pooling="max"))) == 10
    assert len(names(played(pooling="max", conformance="official"))) == 11, "node 0 is the best"
    assert len(names(played(middle(), pooling="max", conformance="official"))) == 10
    assert len(names(played(conformance="official"))) == 12


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("r", [1, 2, 4])
def test_the_formulas_of_calls(k: int, r: int) -> None:
    mean = played(falling(k), agents=k, top_k=k, rounds=r)
    best = played(falling(k), agents=k, top_k=k, rounds=r, pooling="max")
    assert len(names(mean)) == 2 + 2 * k + 2 * r * (k - 1)
    assert len(names(best)) == 1 + 2 * k + r * k


def test_what_can_be_asked_at_once_is() -> None:
    batches = [[(turn.agent, turn.name) for turn, _ in batch] for batch in played().batches]
    assert batches == [
        [("Meta", "pick")],
        [("Agent-0", "answer"), ("Agent-1", "answer"), ("Agent-2", "answer")],
        [("Agent-0", "judge"), ("Agent-1", "judge"), ("Agent-2", "judge")],
        [("Agent-1", "forward"), ("Agent-2", "forward")],
        [("Agent-0", "backward"), ("Agent-1", "backward")],
        [("Meta", "pool")],
    ]
    assert all(turn.fresh for turn in played().turns())


# ----------------------------------------------------------------------------------------- who saw what


def test_first_answers_are_given_alone_and_others_alone_are_judged() -> None:
    run = played()
    for slot in range(3):
        assert turn_of(run, "answer", f"Agent-{slot}").observation == {}
        judge = turn_of(run, "judge", f"Agent-{slot}")
        assert heard(judge) == {other: 10 + other for other in range(3) if other != slot}
        assert set(labels(judge).values()) == {None}


def test_down_the_graph_nodes_see_first_answers_of_all_above_them() -> None:
    run = played()
    assert heard(turn_of(run, "forward", "Agent-1")) == {0: 10}
    lowest = turn_of(run, "forward", "Agent-2")
    assert (heard(lowest), number(lowest.observation["own"])) == ({0: 10, 1: 11}, 12)
    assert labels(lowest) == {0: "moderate", 1: "moderate"}, "0.51 and 0.36 of 0.87"


def test_up_the_graph_nodes_see_their_first_answer_and_revised_ones_below() -> None:
    run = played()
    top, second = turn_of(run, "backward", "Agent-0"), turn_of(run, "backward", "Agent-1")
    assert (number(top.observation["own"]), heard(top)) == (10, {1: 21, 2: 22})
    assert (number(second.observation["own"]), heard(second)) == (11, {2: 22})
    assert labels(top) == {1: "high", 2: "low"}, "0.36 and 0.13 of 0.49"
    assert labels(second) == {2: "high"}, "all of the weight there is"


def test_the_pool_gets_every_agents_last_text() -> None:
    run = played()
    assert heard(turn_of(run, "pool", "Meta")) == {0: 30, 1: 31, 2: 22}
    assert run.outcome.group == POOLED == facts_of(run)["proposal"]
    assert facts_of(run)["history"] == [[10, 11, 12], [10, 21, 22], [30, 31, 22]]
    assert (facts_of(run)["exit"], facts_of(run)["unanimous_at"]) == ("pooled", None)


def test_max_takes_the_best_nodes_text_as_it_stands() -> None:
    run = played(middle(), pooling="max")
    assert heard(turn_of(run, "backward", "Agent-1")) == {0: 20, 2: 22}
    assert (run.outcome.group, facts_of(run)["proposal"], facts_of(run)["exit"]) == (31, None, "top node")
    assert facts_of(run)["history"][-1] == [20, 31, 22]


def test_a_further_round_begins_with_the_texts_of_the_last() -> None:
    run = played(rounds=2)
    first, second = [turn for turn in run.turns() if (turn.name, turn.agent) == ("forward", "Agent-2")]
    assert (heard(first), number(first.observation["own"])) == ({0: 10, 1: 11}, 12)
    assert (heard(second), number(second.observation["own"])) == ({0: 30, 1: 31}, 22)
    assert labels(first) == labels(second), "scores are not asked for again"


def test_policies_observe_what_most_of_what_they_see_say() -> None:
    answers = {"Agent-0": 7, "Agent-1": 8, "Agent-2": 7}
    script = Script()

    def choose(turn: Any) -> Any:
        return (
            {"answer": answers[turn.agent], "confidence": 1, "malformed": False}
            if turn.name == "answer"
            else script(turn)
        )

    run = drive(goa(), TASK, CASE, choose)
    assert turn_of(run, "judge", "Agent-1").observation["leading"] == 7
    assert turn_of(run, "forward", "Agent-2").observation["leading"] == 7


def test_what_crosses_is_counted_where_an_agent_first_sees_it() -> None:
    run = played()
    peer_text = {(turn.agent, turn.name): [number(text) for text in turn.peer_texts] for turn in run.turns()}
    assert peer_text["Agent-0", "judge"] == [11, 12]
    assert peer_text["Agent-2", "forward"] == [], "the same answers as it judged"
    assert peer_text["Agent-0", "backward"] == [21, 22]
    assert peer_text["Meta", "pool"] == [30, 31, 22]
    assert facts_of(run)["peer_characters"] == sum(len(text) for turn in run.turns() for text in turn.peer_texts)


def test_a_meta_agent_on_the_panel_does_not_cross_to_itself() -> None:
    run = played(meta="Agent-2")
    assert goa(meta="Agent-2").possible_agents(CASE) == ("Agent-0", "Agent-1", "Agent-2")
    pool = turn_of(run, "pool", "Agent-2")
    assert heard(pool) == {0: 30, 1: 31, 2: 22}
    assert [number(text) for text in pool.peer_texts] == [30, 31]


# --------------------------------------------------------------------------------------- who takes part


def test_picks_are_made_by_cards_and_numbers() -> None:
    script = Script(picks=(2, 0), rows=[{1: 1.0}, {0: 1.0}])
    run = played(script, top_k=2, cards={"Agent-2": "good at sums"})
    assert turn_of(run, "pick", "Meta").observation["cards"] == [
        {"number": 0, "card": None},
        {"number": 1, "card": None},
        {"number": 2, "card": "good at sums"},
    ]
    assert facts_of(run)["slots"] == ["Agent-2", "Agent-0"] and facts_of(run)["picks"] == [2, 0]
    assert facts_of(run)["cards"] == [None, None, "good at sums"]
    assert facts_of(run)["history"][0] == [10, 11], "in the order of the picks"


def test_without_readable_picks_the_first_agents_play() -> None:
    run = played(Script(picks=(0, 1), rows=[{1: 1.0}, {0: 1.0}], unreadable=PICK), agents=4, top_k=2)
    assert (facts_of(run)["picks"], facts_of(run)["slots"]) == (None, ["Agent-0", "Agent-1"])


def test_an_agent_picked_twice_is_two_nodes_asked_one_after_the_other() -> None:
    run = played(Script(picks=(0, 0, 2)))
    requests = [[(turn.agent, turn.name) for turn, _ in batch] for batch in run.batches]
    assert requests[1:3] == [[("Agent-0", "answer"), ("Agent-2", "answer")], [("Agent-0", "answer")]]
    assert requests[3:5] == [[("Agent-0", "judge"), ("Agent-2", "judge")], [("Agent-0", "judge")]]
    one, two = [turn for turn in run.turns() if (turn.agent, turn.name) == ("Agent-0", "judge")]
    assert (heard(one), heard(two)) == ({1: 11, 2: 12}, {0: 10, 2: 12})
    assert [number(text) for text in (*one.peer_texts, *two.peer_texts)] == [12], "its own texts do not cross"
    assert len(names(run)) == 12


@pytest.mark.parametrize(("level", "nodes"), [(2, 2), (4, 4), (None, 3)])
def test_the_difficulty_says_how_many(level: int | None, nodes: int) -> None:
    script = Script(picks=range(nodes), rows=judgements(*[1] * nodes), level=level)
    run = played(script, agents=4, top_k=-1)
    assert names(run)[:2] == ["difficulty", "pick"] and turn_of(run, "pick", "Meta").observation["count"] == nodes
    assert (facts_of(run)["difficulty"], len(facts_of(run)["slots"])) == (level, nodes)
    assert len(names(run)) == 3 + 2 * nodes + 2 * (nodes - 1)


def test_more_nodes_than_agents() -> None:
    run = played(Script(picks=(0, 1, 2, 0), rows=judgements(1, 1, 1, 1), unreadable=PICK), top_k=4)
    assert (facts_of(run)["picks"], facts_of(run)["slots"]) == (None, ["Agent-0", "Agent-1", "Agent-2", "Agent-0"])


@pytest.mark.parametrize(("confidence", "again"), [(None, True), (0.05, True), (0.1, False), (0.0, True), (1.0, False)])
def test_who_is_not_sure_is_answered_for(confidence: float | None, again: bool) -> None:
    run = played(Script(confidence={1: confidence}))
    assert facts_of(run)["replaced"] == ([1] if again else [])
    assert heard(turn_of(run, "judge", "Agent-2")) == {0: 10, 1: AGAIN if again else 11}
    assert len(names(run)) == 12 + again
    if again:
        assert facts_of(run)["history"][:2] == [[10, 11, 12], [10, AGAIN, 12]]
        judge = turn_of(run, "judge", "Agent-1")
        assert (judge.agent, heard(judge)) == ("Agent-1", {0: 10, 2: 12}), "the node stays where it is"


def test_the_general_agent_is_not_answered_for_and_can_be_another() -> None:
    unsure: dict[int, float | None] = {0: None, 1: None}
    assert facts_of(played(Script(confidence=unsure)))["replaced"] == [1]
    assert facts_of(played(Script(confidence=unsure), general="Agent-1"))["replaced"] == [0]
    run = played(Script(confidence=unsure), general="Meta")
    assert facts_of(run)["replaced"] == [0, 1]
    assert [turn.name for turn in run.turns() if turn.agent == "Meta"] == ["pick", "answer", "answer", "pool"]
    assert goa(general="Wise").possible_agents(CASE) == ("Agent-0", "Agent-1", "Agent-2", "Meta", "Wise")


def test_where_no_confidence_is_asked_for_no_agent_is_answered_for() -> None:
    assert facts_of(played(Script(confidence={1: None}), confidence="none"))["replaced"] == []


# ------------------------------------------------------------------------------------------- ways out


def test_one_agent_answers_alone() -> None:
    run = played(Script(picks=(2,), confidence={0: 0.0}), top_k=1)
    assert names(run) == ["pick", "answer"]
    assert (run.outcome.group, facts_of(run)["exit"], facts_of(run)["replaced"]) == (10, "one agent", [])


def test_one_survivor_keeps_its_first_answer() -> None:
    run = played(middle(), threshold=0.5)
    assert names(run).count("judge") == 3 and "forward" not in names(run)
    assert (run.outcome.group, facts_of(run)["exit"], facts_of(run)["ranks"]) == (11, "one survivor", [1])


def test_without_survivors_first_answers_are_pooled() -> None:
    run = played(threshold=0.9, pooling="max")
    pool = turn_of(run, "pool", "Meta")
    assert heard(pool) == {0: 10, 1: 11, 2: 12} and set(labels(pool).values()) == {None}
    assert (run.outcome.group, facts_of(run)["exit"], facts_of(run)["top"]) == (POOLED, "no survivor", None)
    assert len(names(run)) == 1 + 2 * 3 + 1


def test_who_does_not_survive_is_not_asked_again() -> None:
    run = played(Script(rows=judgements(0.6, 0.38, 0.02)), threshold=0.2)
    assert facts_of(run)["ranks"] == [0, 1]
    assert [(turn.agent, turn.name) for turn in run.turns()][7:] == [
        ("Agent-1", "forward"),
        ("Agent-0", "backward"),
        ("Meta", "pool"),
    ]
    assert heard(turn_of(run, "pool", "Meta")) == {0: 30, 1: 21}


@pytest.mark.parametrize(
    ("parameters", "unreadable", "exit"),
    [
        ({}, "pool", "pooled, unreadable"),
        ({"pooling": "max"}, "backward", "top node, unreadable"),
        ({"threshold": 0.9}, "pool", "no survivor, unreadable"),
        ({"threshold": 0.5, "confidence": "none"}, "answer", "one survivor, unreadable"),
    ],
)
def test_what_cannot_be_read_is_no_answer(parameters: dict[str, Any], unreadable: str, exit: str) -> None:
    run = played(Script(rows=judgements(0.6, 0.3, 0.1), unreadable=frozenset({unreadable})), **parameters)
    assert (run.outcome.group, facts_of(run)["exit"]) == (None, exit)


# --------------------------------------------------------------------------------------------- scores


def test_scores_are_reported_whole() -> None:
    rows = [{1: 0.75, 2: 0.25}, None, {0: 0.5, 1: 0.5}]
    run = played(Script(rows=rows))
    assert facts_of(run)["scores"] == [[None, 0.75, 0.25], [None] * 3, [0.5, 0.5, None]]
    assert (facts_of(run)["dropped"], facts_of(run)["ranks"], facts_of(run)["top"]) == ([1], [1, 0, 2], 1)
    assert facts_of(run)["shares"] == pytest.approx([x / 1.375 for x in (0.5, 0.625, 0.25)])
    edges = {(e["pass"], e["from"], e["to"]): e["relevance"] for e in facts_of(run)["edges"]}
    assert edges == {
        ("forward", 1, 0): "high", ("forward", 1, 2): "moderate", ("forward", 0, 2): "moderate",
        ("backward", 0, 1): "moderate", ("backward", 2, 1): "low", ("backward", 2, 0): "high",
    }  # fmt: skip
    assert json.loads(json.dumps(facts_of(run))) == facts_of(run)


def test_a_node_no_agent_has_judged_counts_as_the_average_of_the_others() -> None:
    run = played(Script(rows=[{1: 0.8, 2: 0.2}, None, None]))
    assert facts_of(run)["shares"] == pytest.approx([1 / 3, 0.8 / 1.5, 0.2 / 1.5])
    assert facts_of(run)["exit"] == "pooled"


def test_without_any_judge_there_is_no_graph() -> None:
    run = played(Script(rows=[None] * 3))
    assert (facts_of(run)["exit"], facts_of(run)["shares"], facts_of(run)["dropped"]) == (
        "no survivor",
        [0, 0, 0],
        [0, 1, 2],
    )
    assert run.outcome.group == POOLED


@pytest.mark.parametrize(
    ("given", "ranks"),
    [
        ({}, [0, 1, 2]),
        ({"domains": {"Agent-0": "math", "Agent-1": "code", "Agent-2": "general"}}, [2, 1, 0]),
        ({"domains": {"Agent-1": "code", "Agent-0": "law"}}, [1, 0, 2]),
        ({"domains": {"Agent-2": "law"}, "order": ["law"]}, [2, 0, 1]),
    ],
)
def test_equal_scores_go_by_domain_and_then_by_number(given: dict[str, Any], ranks: list[int]) -> None:
    assert facts_of(played(Script(rows=judgements(1, 1, 1)), **given))["ranks"] == ranks


# ------------------------------------------------------------------------------------------- official


def test_official_goes_up_one_after_another_by_number() -> None:
    run = played(middle(), conformance="official")
    ups = [turn for turn in run.turns() if turn.name == "backward"]
    assert [turn.agent for turn in ups] == ["Agent-0", "Agent-1"], "by number, whoever ranks higher"
    assert heard(ups[0]) == {2: 22}
    assert heard(ups[1]) == {0: 30, 2: 22}, "node 0's revision on the way down, 20, is overwritten before it is read"
    clean = played(middle())
    assert heard(turn_of(clean, "backward", "Agent-1")) == {0: 20, 2: 22}


def test_official_max_overlooks_node_0() -> None:
    run = played(pooling="max", conformance="official")
    ups = [turn for turn in run.turns() if turn.name == "backward"]
    assert [(turn.agent, turn.observation["reminded"]) for turn in ups] == [("Agent-0", False), ("Agent-1", False)]
    assert (run.outcome.group, facts_of(run)["exit"]) == (30, "top node")
    other = played(middle(), pooling="max", conformance="official")
    assert [turn.observation["reminded"] for turn in other.turns() if turn.name == "backward"] == [True]


def test_official_has_no_answer_where_a_node_has_no_judge() -> None:
    rows = [{1: 0.8, 2: 0.2}, None, None]
    run = played(Script(rows=rows), conformance="official")
    assert (run.outcome.group, facts_of(run)["exit"], len(names(run))) == (None, "edges failed", 7)
    assert facts_of(played(Script(rows=[*judgements(3, 2, 1)[:2], None]), conformance="official"))["exit"] == "pooled"


def test_official_takes_one_index_for_a_labelled_list() -> None:
    form = turn_of(played(conformance="official"), "pick", "Meta").reply
    assert form.parse("label: 2,1,0").action == [2]
    assert form.parse("0, 1, 2").action is None and form.parse("0,1,2").action == [0, 1, 2]
    run = played(Script(picks=(2,)), conformance="official")
    assert (names(run), facts_of(run)["exit"]) == (["pick", "answer"], "one agent")


# -------------------------------------------------------------------------------------------- bad input


def test_mistakes_are_reported() -> None:
    with pytest.raises(PluginError, match=r"top_k is 0: no agent would answer\n  Give 1 or more, or -1"):
        goa(top_k=0)
    with pytest.raises(PluginError, match=r"cards names 'Agent-3', which is not on the panel\n  Did you mean Agent-"):
        played(cards={"Agent-3": "good at sums"})
    with pytest.raises(PluginError, match="domains names 'Meta', which is not on the panel"):
        played(domains={"Meta": "general"})


@pytest.mark.parametrize(
    "given",
    [{}, {"pooling": "max"}, {"conformance": "official", "pooling": "max"}, {"top_k": -1}, {"top_k": 1}, {"rounds": 3}],
)
def test_it_keeps_a_protocols_promises(given: dict[str, Any]) -> None:
    assert conformance.check_protocol(goa(**given), TASK) == []


def test_no_agent_answering_anything_comes_to_an_end() -> None:
    run = drive(goa(), TASK, CASE, lambda turn: None)
    assert (run.outcome.group, facts_of(run)["exit"]) == (None, "no survivor, unreadable")
    assert facts_of(run)["replaced"] == [1, 2] and facts_of(run)["peer_characters"] == 0
