"""`mixture_of_agents`: calls, layers, where the references stand, and what the aggregator made of them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.api.errors import ContextLengthError
from tests.extensions.panels.exchange_kit import BUILTIN, Say, mark, played, question, right, says, scripted

SAID: dict[str, list[Any]] = {"Agent_0": [1, 1, 1], "Agent_1": [2, 2, 2], "Agent_2": [3, 3, 3], "Aggregator": [2]}
SAME = says(**SAID)


@pytest.mark.parametrize(("layers", "agents", "calls"), [(2, 3, 4), (3, 3, 7), (2, 2, 3), (4, 2, 7)])
def test_calls(layers: int, agents: int, calls: int) -> None:
    assert len(scripted("mixture_of_agents", SAME, layers=layers, agents=agents).asked) == calls
    assert calls == agents * (layers - 1) + 1


@pytest.mark.parametrize("slot", ["system", "user"])
def test_each_layer_sees_all_of_the_one_before_in_a_new_conversation(slot: Any) -> None:
    result = scripted("mixture_of_agents", SAME, layers=3, slot=slot)
    layer = {n: [f"Agent-{i}.{n}" for i in range(3)] for n in (0, 1)}
    assert result.saw() == {
        **{f"Agent-{i}.0": [] for i in range(3)},
        **{f"Agent-{i}.1": layer[0] for i in range(3)},
        "Aggregator.0": layer[1],
    }
    assert all(m["role"] != "assistant" for request in result.asked for m in request.messages)


def test_references_stand_in_the_system_role_or_in_the_turn() -> None:
    requests = scripted("mixture_of_agents", SAME, slot="system").asked
    bare = requests[0].messages
    assert requests[0].roles == ["user"] and requests[-1].roles == ["system", "user"]
    assert requests[-1].messages[1:] == bare, "the turn stays the question"
    user = scripted("mixture_of_agents", SAME, slot="user").asked
    assert all(one.roles == ["user"] for one in user)
    message = requests[-1].messages[0]["content"]
    assert message.strip() in user[-1].prompt and bare[0]["content"].strip() in user[-1].prompt
    for i in range(3):
        assert f"\n{i + 1}. {mark(f'Agent-{i}', 0)} The answer is {i + 1}." in message
    assert "Agent-0" not in message and "Aggregator" not in message


def test_what_the_aggregator_says_is_the_answer() -> None:
    outcome = scripted("mixture_of_agents", SAME).outcome
    assert (outcome.group, outcome.facts["proposal"], outcome.facts["exit"]) == (2, 2, "aggregator")
    assert outcome.facts["history"] == [[1, 2, 3]] and "Aggregator" not in outcome.answers
    assert (outcome.facts["agreed"], outcome.facts["agreement"], outcome.facts["novel"]) == (["Agent-1"], 1 / 3, 0)


def test_an_answer_of_its_own_is_novel() -> None:
    facts = scripted("mixture_of_agents", says(**{**SAID, "Aggregator": [9]})).outcome.facts
    assert (facts["novel"], facts["agreement"], facts["agreed"]) == (1, 0, [])


def test_an_aggregator_that_cannot_be_read_gives_no_answer() -> None:
    good = right(question()[1])
    mapping: dict[str, list[Any]] = {f"Agent_{i}": [good] for i in range(3)}
    result = scripted("mixture_of_agents", says(**mapping, Aggregator=["A polished reply."]))
    assert (result.outcome.group, result.outcome.facts["exit"]) == (None, "aggregator unreadable")
    assert (result.outcome.facts["novel"], result.outcome.facts["agreement"]) == (None, None)
    table = {"available": 1, "lost": 1, "score": 0, "proposal": None}
    assert {name: result.grade[name] for name in table} == table


def test_missing_proposers_are_left_out_and_reported() -> None:
    mapping = {**SAID, "Agent_1": [ContextLengthError("full"), 2], "Agent_2": ["no idea", 3]}
    result = scripted("mixture_of_agents", says(**mapping), layers=3)
    assert result.saw()["Agent-1.1"] == ["Agent-0.0", "Agent-2.0"], "what cannot be read is shown all the same"
    assert result.outcome.facts["missing"] == [["Agent-1"], []]
    assert result.outcome.facts["order"] == [["Agent-0", "Agent-2"], ["Agent-0", "Agent-1", "Agent-2"]]


@pytest.mark.parametrize("slot", ["system", "user"])
def test_without_a_proposal_the_aggregator_gets_the_question_alone(slot: Any) -> None:
    broken: Say = says(**{f"Agent_{i}": [ContextLengthError("full")] for i in range(3)}, Aggregator=[5])
    result = scripted("mixture_of_agents", broken, slot=slot)
    assert result.asked[-1].messages == result.asked[0].messages and result.outcome.group == 5
    assert result.outcome.facts["novel"] is None


def test_the_aggregator_may_sit_on_the_panel() -> None:
    result = scripted("mixture_of_agents", says(**{**SAID, "Agent_0": [1, 3]}), aggregator="Agent-0")
    assert [request.agent for request in result.asked] == ["Agent-0", "Agent-1", "Agent-2", "Agent-0"]
    assert result.asked[-1].roles == ["system", "user"] and result.outcome.group == 3
    assert result.outcome.facts["history"] == [[1, 2, 3]]
    assert result.outcome.facts["peer_characters"] == 2 * len(f"{mark('Agent-0', 0)} The answer is 1."), (
        "its own is none"
    )


def test_peer_text() -> None:
    result = scripted("mixture_of_agents", SAME, layers=3)
    each = len(f"{mark('Agent-0', 0)} The answer is 1.")
    assert result.outcome.facts["peer_characters"] == 3 * 2 * each + 3 * each
    words = len(f"{mark('Agent-0', 0)} The answer is 1.".split())
    assert [move.calls[0].peer_tokens for move in result.moves] == [None] * 3 + [2 * words] * 3 + [3 * words]


def test_the_order_by_lot_is_reported_and_is_that_of_the_list() -> None:
    seen = set()
    for seed in range(40):
        table = [[1, 2, 3]]
        drive = played_with_aggregator(table, seed, shuffle=True)
        order = drive.outcome.facts["order"][0]
        [(turn, _)] = drive.batches[-1]
        assert turn.context["references"] == [str(int(agent[-1]) + 1) for agent in order]
        seen.add(tuple(order))
    assert len(seen) == 6, "every order comes up"


def played_with_aggregator(table: list[list[Any]], seed: int = 0, **parameters: Any) -> Any:
    """The last panel's agent aggregates, with what its next turn gives."""
    return played("mixture_of_agents", [*table, [0, 0, 7]], seed, aggregator="Agent-2", **parameters)


@given(st.permutations([1, 2, 3]), st.integers(0, 100))
def test_one_order_for_all_readers_of_a_layer(row: list[int], seed: int) -> None:
    drive = played("mixture_of_agents", [row, row, row], seed, layers=3, shuffle=True, aggregator="Agent-0")
    contexts = [turn.context["references"] for turn, _ in drive.batches[1]]
    assert all(context == contexts[0] for context in contexts) and sorted(contexts[0]) == ["1", "2", "3"]


@given(st.lists(st.sampled_from([None, 1, 2, 3]), min_size=3, max_size=3), st.sampled_from([None, 1, 4]))
def test_agreement_is_a_share_of_the_readable(row: list[Any], final: Any) -> None:
    facts = played("mixture_of_agents", [row, [final] * 3], aggregator="Agent-0").outcome.facts
    readable = [answer for answer in row if answer is not None]
    if final is None or not readable:
        assert facts["agreement"] is None and facts["novel"] is None
    else:
        assert facts["agreement"] == readable.count(final) / len(readable)
        assert facts["novel"] == int(final not in readable)


def test_an_aggregator_with_a_name_of_its_own_has_an_agent() -> None:
    protocol = BUILTIN.load("protocols", "mixture_of_agents")(aggregator="Judge")
    assert protocol.possible_agents(question()[1]) == ("Agent-0", "Agent-1", "Agent-2", "Judge")
