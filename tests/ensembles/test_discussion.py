"""`discussion`: its options, alone and together; a vote and a debate are two of its points."""

from typing import Any

import pytest

from tests.ensembles.exchange_kit import Episode, played, says, scripted

TALE = says(
    Agent_0=[1, 2, 2, 2], Agent_1=["what?", 3, 1, 2], Agent_2=[2, 2, 3, 2],
)  # fmt: skip
COMMON = ("history", "unanimous_at", "peer_characters", "sent", "votes", "tied", "exit", "proposal")


def asked(episode: Episode) -> list[tuple[str, Any]]:
    """Every conversation as the model saw it, in the order of the calls."""
    return [(one.agent, one.messages) for one in episode.asked]


@pytest.mark.parametrize("rounds", [1, 2, 4])
def test_a_debate_is_a_discussion_with_the_defaults(rounds: int) -> None:
    debate = scripted("debate", TALE, rounds=rounds)
    discussion = scripted("discussion", TALE, max_rounds=rounds - 1)
    assert asked(discussion) == asked(debate), "the same calls, to the letter"
    assert discussion.outcome.group == debate.outcome.group and discussion.grade == debate.grade
    for fact in COMMON:
        assert discussion.outcome.facts[fact] == debate.outcome.facts[fact], fact


def test_a_vote_is_a_discussion_without_rounds() -> None:
    vote, discussion = scripted("vote", TALE, agents=3), scripted("discussion", TALE, max_rounds=0)
    assert asked(discussion) == asked(vote)
    assert discussion.outcome.group == vote.outcome.group
    assert [(m.turn, m.action, m.error) for m in discussion.moves] == [(m.turn, m.action, m.error) for m in vote.moves]
    for fact in (fact for fact in COMMON if fact != "sent"):  # a vote notes no readers
        assert discussion.outcome.facts[fact] == vote.outcome.facts[fact], fact
    assert discussion.outcome.facts["rounds"] == 0 and discussion.outcome.facts["decided_at"] == 0


def test_policies_play_both_alike() -> None:
    table = [[1, 1, 2], [2, None, 2], [2, 1, 2]]
    debate, discussion = played("debate", table, rounds=3), played("discussion", table, max_rounds=2)
    assert [[turn.agent for turn, _ in batch] for batch in discussion.batches] == [
        [turn.agent for turn, _ in batch] for batch in debate.batches
    ]
    assert discussion.outcome.group == debate.outcome.group == 2
