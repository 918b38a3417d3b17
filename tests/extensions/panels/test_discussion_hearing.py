"""`discussion`: a word of one agent stands in exactly the prompts of those that may hear it."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.api.errors import PluginError
from harness.extensions.yaml_tasks.expressions import Expression
from harness.runtime.steps import drive
from tests.extensions.datasets.documents_kit import BUILTIN
from tests.extensions.panels.exchange_kit import MARK, Asked, Episode, mark, question, read, scripted
from tests.helpers.samples import examples

PATTERNS: dict[str, list[list[int]]] = {
    "all": [[1, 2, 3, 4], [0, 2, 3, 4], [0, 1, 3, 4], [0, 1, 2, 4], [0, 1, 2, 3]],
    "ring": [[1, 4], [0, 2], [1, 3], [2, 4], [0, 3]],
    "star": [[1, 2, 3, 4], [0], [0], [0], [0]],
    "report": [[1, 2, 3, 4], [0], [0], [0], [0]],
    "chain": [[], [0], [1], [2], [3]],
    "relay": [[4], [0], [1], [2], [3]],
    "tree": [[1, 2], [0, 3, 4], [0], [1], [1]],
    "pairs": [[1], [0], [3], [2], []],
}
"""Pattern → whom each of five agents hears."""
SEQUENTIAL = ("round_robin", "random", "moderator")


def talkative(agent: str, number: int) -> str:
    """Every agent answers; the moderator chooses the third agent, then the first, and so on."""
    return f"Next: Agent-{(2, 0, 1)[number % 3]}" if agent == "Moderator" else f"I say {agent[-1]}. The answer is 7."


def words(messages: Any) -> Counter[str]:
    """Whose words stand in what an agent was shown, as "agent.number"; its own replies are no part of that."""
    shown = (m["content"] for m in messages if m["role"] != "assistant")
    return Counter(read(found) for text in shown for found in MARK.findall(text))


def audible(calls: list[Asked], n: int, order: str, drafts: str) -> list[tuple[Asked, int, list[tuple[str, int]]]]:
    """For each call of a member: the call, its round, and what was said before it, as (agent.number, round)."""
    said: list[tuple[str, int]] = []
    result = []
    batch: list[tuple[str, int]] = []
    place = 0 if drafts == "all" else n
    for call in (call for call in calls if call.agent != "Moderator"):
        number, seat = divmod(place, n)
        opens = (
            seat == 0
            or (number > 0 and order in SEQUENTIAL)
            or (order == "proposer" and number > 0 and seat == 1)
        )  # fmt: skip
        if opens:
            said, batch = said + batch, []
        result.append((call, number, list(said)))
        batch.append((f"{call.agent}.{call.number}", number))
        place += 1
        if order == "proposer" and drafts == "all" and place == n:  # the draft is the first proposal
            said, batch, place = said + batch, [], n + 1
    return result


def check(episode: Episode, hears: list[list[int]], order: str, visible: Any, drafts: str) -> None:
    """Whether every call shows exactly what its agent may hear."""
    n = len(hears)
    for call, number, said in audible(episode.asked, n, order, drafts):
        speakers = {f"Agent-{i}" for i in hears[int(call.agent[-1])]}
        heard = [(word, when) for word, when in said if word.partition(".")[0] in speakers]
        if visible == "all":
            expected = Counter(word for word, _ in heard)
        else:
            own = [(word, when) for word, when in said if word.startswith(f"{call.agent}.")]
            expected = Counter(word for word, when in heard + own if when >= number - visible)
            expected.update({word for word, _ in own[-1:]} - set(expected))
        assert words(call.messages) == expected, (call.agent, call.number)


@st.composite
def graphs(draw: st.DrawFn) -> list[list[int]]:
    n = draw(st.integers(2, 5))
    return [sorted(draw(st.sets(st.sampled_from([j for j in range(n) if j != i])))) for i in range(n)]


@settings(max_examples=examples(60))
@given(
    hears=graphs(),
    order=st.sampled_from(["simultaneous", "proposer", *SEQUENTIAL]),
    visible=st.sampled_from(["all", 1, 2]),
    drafts=st.sampled_from(["all", "none"]),
    style=st.sampled_from(["free", "critical", "agree"]),
    identity=st.sampled_from(["anonymous", "named"]),
)
def test_a_word_is_read_by_those_that_may_hear_it_and_by_no_other(
    hears: list[list[int]], order: str, visible: Any, drafts: str, style: str, identity: str
) -> None:
    listed = {f"Agent-{i}": [f"Agent-{j}" for j in speakers] for i, speakers in enumerate(hears)}
    episode = scripted(
        "discussion", talkative, agents=len(hears), topology=listed, order=order, visible=visible, drafts=drafts,
        style=style, identity=identity, max_rounds=2,
    )  # fmt: skip
    check(episode, hears, order, visible, drafts)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("order", ["simultaneous", "proposer", *SEQUENTIAL])
@pytest.mark.parametrize("visible", ["all", 1])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_named_patterns(pattern: str, visible: Any, order: str) -> None:
    episode = scripted("discussion", talkative, agents=5, topology=pattern, order=order, visible=visible, max_rounds=2)
    check(episode, PATTERNS[pattern], order, visible, "all")


def test_pairs_hear_each_other_and_places_are_names_too() -> None:
    episode = scripted("discussion", talkative, agents=4, topology=[[0, "Agent-2"], [2, 3]], max_rounds=2)
    check(episode, [[2], [], [0, 3], [2]], "simultaneous", "all", "all")
    listed = scripted("discussion", talkative, agents=3, topology={"0": [2], "Agent-1": ["Agent-0", 2]}, max_rounds=2)
    check(listed, [[2], [0, 2], []], "simultaneous", "all", "all")


def test_a_random_graph_is_drawn_for_each_episode_and_neighbors_hear_each_other() -> None:
    task, case = question()
    graph = {"random": "gnm_random_graph", "parameters": {"m": Expression("4")}}
    protocol = BUILTIN.load("protocols", "discussion")(agents=5, topology=graph, max_rounds=1)
    drawn = []
    for seed in range(6):
        sent = drive(protocol, task, case, lambda turn: 7, seed).outcome.facts["sent"]
        edges = {(one, other) for one, readers in sent.items() for other in readers}
        assert len(edges) == 8 and edges == {(b, a) for a, b in edges}
        drawn.append(frozenset(edges))
    assert len(set(drawn)) > 1


def test_the_moderator_hears_all_of_it_with_names() -> None:
    episode = scripted("discussion", talkative, order="moderator", topology="chain", max_rounds=1)
    chair = [call for call in episode.asked if call.agent == "Moderator"]
    assert [sum(words(call.messages).values()) for call in chair] == [3, 4, 5]
    assert "=== Reply 1 of 3: Agent-0 ===" in chair[0].prompt and mark("Agent-2", 1) in chair[1].prompt


@pytest.mark.parametrize(
    ("hears", "what", "at"),
    [
        ([[0, 1], [0, 7]], "topology names 7, which has no seat on the panel", ("topology", 1)),
        ([[0, -1]], "topology names -1", ("topology", 0)),
        ([["Agent-1", 1]], "topology lets Agent-1 hear itself", ("topology", 0)),
        ([], "topology is empty", ("topology",)),
        ({}, "topology is empty", ("topology",)),
        ({"Agent-9": []}, "topology names 'Agent-9'", ("topology", "Agent-9")),
        ({"Agent-0": ["Agent-1", "Agent-11"]}, "topology names 'Agent-11'", ("topology", "Agent-0", 1)),
        ({"Agent-0": "Agent-1"}, "must have a list of agents", ("topology", "Agent-0")),
        ({"random": "gnp_random"}, "there is no random graph 'gnp_random'", ("topology", "random")),
        ({"random": "gnp_random_graph", "p": 1}, "a random graph has no 'p'", ("topology", "p")),
        ({"random": "gnp_random_graph"}, "needs the parameter p", ("topology",)),
    ],
)  # fmt: skip
def test_graphs_that_are_none(hears: Any, what: str, at: tuple[Any, ...]) -> None:
    with pytest.raises(PluginError, match=what.replace("(", r"\(")) as caught:
        scripted("discussion", talkative, topology=hears)
    assert caught.value.at == at
