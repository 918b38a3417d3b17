"""`debate`: how many calls, who sees whose replies when, how it ends, and what is told of it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.api.errors import ContextLengthError, PluginError
from tests.extensions.panels.exchange_kit import MARK, played, question, read, right, says, scripted

SAME = says(**{f"Agent_{i}": [1] * 9 for i in range(5)}, Summarizer=["in short"] * 99)
ANSWERS = st.sampled_from([None, 1, 2, 3])


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("agents", "rounds", "summarize", "calls"),
    [(3, 2, "none", 6), (3, 3, "none", 9), (3, 1, "none", 3), (5, 2, "none", 10), (3, 3, "shared", 11),
     (3, 3, "per_reader", 15), (1, 2, "none", 2)],
)  # fmt: skip
def test_calls(agents: int, rounds: int, summarize: Any, calls: int) -> None:
    result = scripted("debate", SAME, agents=agents, rounds=rounds, summarize=summarize)
    assert len(result.asked) == calls
    exchanges = rounds - 1
    assert calls == agents * rounds + {"none": 0, "shared": 1, "per_reader": agents}[summarize] * exchanges


def test_the_default_is_three_agents_and_two_rounds() -> None:
    result = scripted("debate", SAME)
    assert [f"{a.agent}.{a.number}" for a in result.asked] == [f"Agent-{i}.{r}" for r in (0, 1) for i in range(3)]


def test_each_agent_sees_only_the_others_of_the_previous_round() -> None:
    assert scripted("debate", SAME, rounds=3).saw() == {
        "Agent-0.0": [], "Agent-1.0": [], "Agent-2.0": [],
        "Agent-0.1": ["Agent-1.0", "Agent-2.0"],
        "Agent-1.1": ["Agent-0.0", "Agent-2.0"],
        "Agent-2.1": ["Agent-0.0", "Agent-1.0"],
        "Agent-0.2": ["Agent-1.1", "Agent-2.1"],
        "Agent-1.2": ["Agent-0.1", "Agent-2.1"],
        "Agent-2.2": ["Agent-0.1", "Agent-1.1"],
    }  # fmt: skip


def test_the_own_conversation_is_kept_and_others_are_anonymous_in_the_panels_order() -> None:
    last = scripted("debate", SAME, rounds=3).asked[-1]
    assert last.roles == ["user", "assistant"] * 2 + ["user"]
    assert [read(m["content"][:11]) for m in last.messages if m["role"] == "assistant"] == ["Agent-2.0", "Agent-2.1"]
    assert [*map(read, MARK.findall(last.prompt))] == ["Agent-0.1", "Agent-1.1"]
    assert "Agent" not in MARK.sub("", "".join(m["content"] for m in last.messages))


@pytest.mark.parametrize("restate", [False, True])
def test_the_question_is_repeated_only_if_that_is_wanted(restate: bool) -> None:
    public = question()[1].public["question"]
    result = scripted("debate", SAME, restate=restate)
    assert public in result.prompt("Agent-0", 0) and (public in result.prompt("Agent-0", 1)) == restate


def test_who_is_alone_checks_itself() -> None:
    result = scripted("debate", says(Agent_0=[1, 2]), agents=1)
    assert "check every step" in result.prompt("Agent-0", 1) and result.outcome.group == 2
    assert result.outcome.facts["peer_characters"] == 0


def test_an_agent_that_failed_is_not_shown_and_the_others_go_on() -> None:
    result = scripted("debate", says(Agent_0=[ContextLengthError("full"), 3], Agent_1=[3, 3], Agent_2=["what?", 4]))
    assert result.saw()["Agent-1.1"] == ["Agent-2.0"], "what cannot be read is shown; what is not there is not"
    assert result.outcome.facts["history"] == [[None, 3, None], [3, 3, 4]]
    two = scripted("debate", says(Agent_0=[1, 1], Agent_1=[ContextLengthError("full")] * 2), agents=2)
    assert "check every step" in two.prompt("Agent-0", 1) and two.outcome.group == 1


def test_a_digest_for_all_holds_every_agents_replies_and_replaces_them() -> None:
    result = scripted("debate", SAME, summarize="shared", rounds=2)
    saw = result.saw()
    assert saw["Summarizer.0"] == ["Agent-0.0", "Agent-1.0", "Agent-2.0"]
    assert {saw[f"Agent-{i}.1"][0] for i in range(3)} == {"Summarizer.0"} and len(saw["Agent-0.1"]) == 1
    facts = result.outcome.facts
    assert facts["peer_characters"] == 3 * len("<Agent-a:a> The answer is 1.") + 3 * len("<Summarizer:a> in short")


def test_a_digest_for_each_reader_leaves_its_own_reply_out() -> None:
    result = scripted("debate", SAME, summarize="per_reader", rounds=3)
    saw = result.saw()
    assert saw["Summarizer.1"] == ["Agent-0.0", "Agent-2.0"] and saw["Agent-1.1"] == ["Summarizer.1"]
    assert saw["Summarizer.5"] == ["Agent-0.1", "Agent-1.1"] and saw["Agent-2.2"] == ["Summarizer.5"]
    assert all(request.roles == ["user"] for request in result.asked if request.agent == "Summarizer"), "always anew"


def test_without_a_digest_nothing_is_shown() -> None:
    broken = says(**{f"Agent_{i}": [1, 1] for i in range(3)}, Summarizer=[ContextLengthError("full")])
    result = scripted("debate", broken, summarize="shared")
    assert result.saw()["Agent-0.1"] == [] and "check every step" in result.prompt("Agent-0", 1)


def test_the_summarizer_is_none_of_the_panel() -> None:
    with pytest.raises(PluginError, match="summarizer 'Agent-1' is a member of the panel"):
        scripted("debate", SAME, summarize="shared", summarizer="Agent-1")
    assert scripted("debate", SAME, summarizer="Agent-1").outcome.group == 1, "where there is none, the name is free"


def test_the_last_round_is_voted_on() -> None:
    assert played("debate", [[1, 1, 2], [2, 1, 2]]).outcome.group == 2
    assert played("debate", [[1, 1, 1], [None, None, 3]]).outcome.group == 3, "no vote for what cannot be read"
    none = played("debate", [[1, 1, 1], [None, None, None]]).outcome
    assert (none.group, none.facts["exit"]) == (None, "no candidate")


@pytest.mark.parametrize(("ties", "winner"), [("first", 3), ("none", None)])
def test_ties(ties: str, winner: Any) -> None:
    outcome = played("debate", [[1, 1, 1], [3, 2, 1]], ties=ties).outcome
    assert (outcome.group, outcome.facts["exit"], outcome.facts["tied"]) == (winner, "tie", True)


@pytest.mark.slow
def test_ties_by_lot_depend_on_the_seed_alone() -> None:
    drawn = [played("debate", [[1, 1, 1], [3, 2, 1]], seed, ties="random").outcome.group for seed in range(60)]
    assert set(drawn) == {1, 2, 3}
    assert drawn == [played("debate", [[1, 1, 1], [3, 2, 1]], seed, ties="random").outcome.group for seed in range(60)]


@pytest.mark.parametrize(("stop", "rounds", "exit"), [("none", 4, "vote"), ("unanimous", 2, "unanimous")])
def test_agreement_ends_it_where_that_is_wanted(stop: str, rounds: int, exit: str) -> None:
    facts = played("debate", [[1, 2, 2], [2, 2, 2], [3, 2, 2], [2, 2, 2]], rounds=4, stop=stop).outcome.facts
    assert len(facts["history"]) == rounds and facts["exit"] == exit and facts["unanimous_at"] == 1


def test_silence_is_no_agreement() -> None:
    facts = played("debate", [[None] * 3, [5, 5, None], [5, 5, 5]], rounds=3, stop="unanimous").outcome.facts
    assert len(facts["history"]) == 3 and facts["unanimous_at"] == 2


def test_flips_adoption_and_a_right_answer_that_was_lost() -> None:
    good = right(question()[1])
    result = scripted("debate", says(Agent_0=[good, 7], Agent_1=[7, 7], Agent_2=[7, good]))
    mapping = {"available": 1, "lost": 1, "gained": 0, "to_right": 1, "to_wrong": 1, "ever": 1, "score": 0}
    assert {name: result.grade[name] for name in mapping} == mapping
    assert result.outcome.facts["adopted"] == 2, "Agent-0 to what both others had said, Agent-2 to the first of two"


def test_going_over_to_the_others_answer_is_counted() -> None:
    assert played("debate", [[1, 2, 2], [2, 2, 2]]).outcome.facts["adopted"] == 1
    assert played("debate", [[1, 2, 2], [1, 3, 2]]).outcome.facts["adopted"] == 0
    assert played("debate", [[1, 1, 1], [1, 1, 1]]).outcome.facts["adopted"] == 0


def test_tokens_of_others_are_counted_and_own_ones_are_not() -> None:
    result = scripted("debate", SAME, rounds=2)
    counts = [move.calls[-1].peer_tokens for move in result.moves]
    assert counts == [None] * 3 + [2 * len(["<Agent-a:a>", "The", "answer", "is", "1."])] * 3
    assert result.outcome.facts["peer_characters"] == 6 * len("<Agent-a:a> The answer is 1.")


@given(st.lists(st.tuples(ANSWERS, ANSWERS, ANSWERS), min_size=1, max_size=4))
def test_a_debate_is_a_vote_on_its_last_round(table: list[tuple[Any, ...]]) -> None:
    debated = played("debate", table, rounds=len(table)).outcome
    voted = played("vote", [table[-1]], agents=3).outcome
    assert (debated.group, debated.answers) == (voted.group, voted.answers)
    assert debated.facts["history"] == [[*row] for row in table]


@pytest.mark.slow
@given(st.lists(st.tuples(ANSWERS, ANSWERS, ANSWERS), min_size=2, max_size=4), st.integers(0, 2), ANSWERS)
def test_what_an_agent_says_is_seen_by_no_agent_in_the_same_round(
    table: list[tuple[Any, ...]], agent: int, other: Any
) -> None:
    """Whatever one agent answers in the last round, the turns of all others stay as they are."""
    changed = [*table[:-1], tuple(other if i == agent else given for i, given in enumerate(table[-1]))]
    batches = [played("debate", rows, rounds=len(rows)).batches for rows in (table, changed)]
    assert [[turn for turn, _ in batch] for batch in batches[0]] == [
        [turn for turn, _ in batch] for batch in batches[1]
    ]
