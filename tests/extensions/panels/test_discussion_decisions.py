"""How a discussion decides: each rule by what members say, and that every rule has an end whatever happens."""

import itertools
import random
from pathlib import Path
from typing import Any

import pytest

from harness.api import Turn
from harness.api.errors import PluginError, RequestError
from harness.extensions.panels.ballots import CandidateBallot
from harness.replies import Choice
from harness.runtime.steps import drive
from tests.extensions.datasets.documents_kit import BUILTIN, jsonl, task_of
from tests.extensions.panels.exchange_kit import Episode, Say, question, scripted

CONSENSUS = ("unanimity", "majority", "supermajority", "hybrid")
BALLOTS = ("vote", "approval", "borda", "instant_runoff", "points")
DECISIONS = (*CONSENSUS, *BALLOTS, "plurality", "last_word", "judge")


def says(answers: dict[str, list[Any]], last: dict[str, str] | None = None) -> Say:
    """Answers in order, the last one again and again; `last`: what an agent says in its last call of `len + 1`."""

    def say(agent: str, number: int) -> str:
        listed = answers[agent]
        if last and number >= len(listed):
            return last[agent]
        return str(listed[min(number, len(listed) - 1)])

    return say


def panel(*rows: list[Any]) -> dict[str, list[Any]]:
    return {f"Agent-{i}": row for i, row in enumerate(rows)}


def decided(say: Say, **parameters: Any) -> Episode:
    return scripted("discussion", say, **{"agents": 3, "max_rounds": 3, **parameters})


@pytest.mark.parametrize(
    ("decision", "rounds", "exit"),
    [("unanimity", 3, "unanimity"), ("majority", 1, "majority"), ("hybrid", 3, "majority")],
)
def test_a_consensus_ends_the_talk(decision: str, rounds: int, exit: str) -> None:
    """Two agree after a round, all after three; in the hybrid two are enough after the second."""
    rows = panel([1, 2, 2, 2], [2, 2, 2, 2], [3, 3, 3, 2 if decision == "unanimity" else 3])
    episode = decided(says(rows), decision=decision, unanimous_rounds=2)
    assert (episode.outcome.facts["rounds"], episode.outcome.facts["exit"]) == (rounds, exit)
    assert episode.outcome.group == 2 and episode.outcome.facts["decided_at"] == rounds


def test_two_thirds_are_of_all_members_also_of_silent_ones() -> None:
    two_of_three = decided(says(panel([2], [2], ["what?"])), decision="supermajority")
    assert two_of_three.outcome.facts["rounds"] == 0 and two_of_three.outcome.group == 2
    two_of_four = decided(says(panel([2], [2], ["what?"], ["no idea"])), agents=4, decision="supermajority")
    assert two_of_four.outcome.facts["rounds"] == 3 and two_of_four.outcome.facts["exit"] == "vote"
    none = decided(says(panel([2], [2], ["what?"], ["no idea"])), agents=4, decision="majority", otherwise="none")
    assert none.outcome.group is None and none.outcome.facts["exit"] == "no consensus"
    assert none.outcome.facts["decided_at"] is None


def test_the_last_word_is_that_of_the_last_who_gave_an_answer() -> None:
    episode = decided(says(panel([1], [2], ["?"])), decision="last_word", order="round_robin", max_rounds=1)
    assert episode.outcome.group == 2 and episode.outcome.facts["exit"] == "last word"


def test_the_last_word_stays_with_the_last_answer_where_its_author_falls_silent() -> None:
    rows = {**panel([1], [2, "?"]), "Moderator": ["Next: Agent-0", "Next: Agent-1", "Next: Agent-1", "Next: Agent-1"]}
    plan = {"agents": 2, "decision": "last_word", "order": "moderator", "drafts": "none"}
    assert decided(says(rows), max_rounds=1, **plan).outcome.group == 2
    assert decided(says(rows), max_rounds=2, **plan).outcome.group == 1


def labels(episode: Episode) -> dict[str, str]:
    """Answer → its label on the first ballot."""
    prompt = next(one.prompt for one in episode.asked if "these answers to the question are left" in one.prompt)
    lines = prompt.split("\n")
    return {
        lines[i + 1].strip(): line.strip("= ")
        for i, line in enumerate(lines)
        if line.startswith("=== ") and len(line) == 9
    }


def balloted(decision: str, wanted: dict[str, str], **parameters: Any) -> Episode:
    """Three agents answer 1, 2 and 3 and fill ballots; {1} in a ballot stands for the label of the answer 1."""
    rows = panel([1], [2], [3])
    known: dict[str, str] = {}
    first = decided(says(rows, dict.fromkeys(rows, "none")), decision=decision, max_rounds=0, **parameters)
    known = labels(first)
    filled = {agent: ballot.format("", *(known[str(i)] for i in (1, 2, 3))) for agent, ballot in wanted.items()}
    return decided(says(rows, filled), decision=decision, max_rounds=0, **parameters)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("decision", "ballots", "winner", "scores"),
    [
        ("vote", ["Vote: {3}", "Vote: {3}", "Vote: {1}"], 3, [1, 0, 2]),
        ("approval", ["Approve: {1}, {2}", "Approve: {2}", "Approve: none"], 2, [1, 2, 0]),
        ("borda", ["Ranking: {1} > {2} > {3}", "Ranking: {2} > {1} > {3}", "Ranking: {2} > {3} > {1}"], 2, [3, 5, 1]),
        ("instant_runoff", ["Ranking: {1} > {3}", "Ranking: {2} > {3}", "Ranking: {1}"], 1, [2, 1, 0]),
        ("points", ["Points: {1}=5, {2}=5", "Points: {2}=10", "Points: {3}=10"], 2, [5, 15, 10]),
    ],
)
def test_ballots_decide_by_their_rule(decision: str, ballots: list[str], winner: int, scores: list[int]) -> None:
    episode = balloted(decision, {f"Agent-{i}": text for i, text in enumerate(ballots)})
    assert episode.outcome.group == winner
    assert list(episode.outcome.facts["votes"].values()) == scores and episode.outcome.facts["exit"] == "vote"


@pytest.mark.parametrize(("ties", "group"), [("first", 1), ("none", None)])
def test_where_all_approve_of_none_their_own_answers_are_counted(ties: str, group: Any) -> None:
    none = {f"Agent-{i}": "Approve: none" for i in range(3)}
    outcome = balloted("approval", none, ties=ties).outcome
    assert outcome.group == group and list(outcome.facts["votes"].values()) == [1, 1, 1]


def test_public_votes_are_seen_by_those_after_and_secret_ones_by_none() -> None:
    wanted = {"Agent-0": "Vote: {3}", "Agent-1": "Vote: {3}", "Agent-2": "Vote: {1}"}
    public, secret = balloted("vote", wanted, votes="public"), balloted("vote", wanted)
    shown = [one.prompt.count("\n- ") for one in public.asked if "are left" in one.prompt]
    assert shown == [0, 1, 2] and not any("Others have voted" in one.prompt for one in secret.asked)
    assert public.outcome.group == secret.outcome.group == 3


def test_a_ballot_does_not_say_whose_answers_they_are() -> None:
    """The order of the candidates differs from episode to episode, and no name of an agent stands on it."""
    episode = balloted("vote", dict.fromkeys(("Agent-0", "Agent-1", "Agent-2"), "Vote: {1}"))
    prompts = [one.prompt for one in episode.asked if "are left" in one.prompt]
    assert len(prompts) == 3 and len(set(prompts)) == 1 and "Agent-" not in prompts[0]


def test_a_tie_talks_again_while_there_are_rounds() -> None:
    split, later = panel([1, 1, 2, 2], [2, 2, 2, 2]), panel([1], [2])
    episode = decided(says(split), agents=2, ties="again", vote_after=1, max_rounds=3)
    assert episode.outcome.facts["rounds"] == 2 and episode.outcome.group == 2 and not episode.outcome.facts["tied"]
    never = decided(says(later), agents=2, ties="again", vote_after=1, max_rounds=3)
    assert never.outcome.facts["rounds"] == 3 and never.outcome.group == 1 and never.outcome.facts["exit"] == "tie"


def test_a_judge_answers_for_the_group_and_reads_no_names() -> None:
    rows = {**panel([1], [2], [3]), "Judge": [7]}
    episode = decided(says(rows), decision="judge", max_rounds=0)
    assert episode.outcome.group == 7 and episode.outcome.facts["exit"] == "judge"
    assert episode.outcome.facts["proposal"] == 7
    asked = next(one for one in episode.asked if one.agent == "Judge")
    assert asked.saw == ["Agent-0.0", "Agent-1.0", "Agent-2.0"] and "Agent-0" not in asked.prompt.replace("<", "")[:50]
    mute = decided(says({**rows, "Judge": ["?"]}), decision="judge", max_rounds=0)
    assert mute.outcome.group == 1 and mute.outcome.facts["exit"] == "tie"
    strict = decided(says({**rows, "Judge": ["?"]}), decision="judge", max_rounds=0, otherwise="none")
    assert strict.outcome.group is None and strict.outcome.facts["exit"] == "no judge"


def test_a_judge_reads_what_agreement_adopts() -> None:
    rows: dict[str, list[Any]] = {"Agent-0": [5], "Agent-1": ["\nAGREE, it is."], "Judge": [5]}
    episode = decided(
        says(rows), agents=2, decision="judge", style="agree", order="round_robin", drafts="one", max_rounds=1
    )
    assert "takes over an answer: 5)" in episode.prompt("Judge", 0) and episode.outcome.group == 5


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"decision": "judge", "judge": "Agent-1"}, "judge 'Agent-1' is a member of the panel"),
        ({"judge": " "}, "judge is empty"),
        ({"vote_after": 4}, "vote_after: 4 is more than max_rounds: 3"),
        ({"vote_after": 1, "decision": "majority"}, "vote_after does not go with decision: majority"),
        ({"ties": "again"}, "ties: again leaves no round to talk again in"),
        ({"ties": "again", "decision": "hybrid"}, "ties: again leaves no round to talk again in"),
    ],
)
def test_what_cannot_be_meant_is_refused(parameters: dict[str, Any], says: str) -> None:
    with pytest.raises(PluginError, match=says) as refused:
        decided(lambda agent, number: "1", **parameters)
    assert refused.value.at


def fails(agent: str, number: int) -> str:
    raise RequestError("the server is away")


def garbles(agent: str, number: int) -> str:
    return str(number) if agent == "Agent-0" else f"{agent[-1]}.{number} or 13 \x00\ud800" if agent == "Agent-1" else ""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("say", [fails, garbles])
@pytest.mark.parametrize("decision", DECISIONS)
def test_every_rule_comes_to_an_end_whatever_members_say(decision: str, say: Say) -> None:
    episode = decided(say, decision=decision, votes="public", max_rounds=1)
    assert episode.outcome.facts["exit"]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("decision", DECISIONS)
def test_every_rule_has_an_outcome_for_every_play(decision: str) -> None:
    """Idle agents, random ones, and one that answers alone, under every way to vote and every rule for ties."""
    task, case = question()
    random_policy, discussion = BUILTIN.load("policies", "random")(), BUILTIN.load("protocols", "discussion")
    rng = random.Random(0)

    def plays(turn: Turn) -> Any:
        if isinstance(turn.reply, CandidateBallot | Choice):
            return random_policy.choose(turn, rng)
        return None if rng.random() < 0.3 else {"answer": rng.randint(1, 3), "confidence": None, "malformed": False}

    def alone(turn: Turn) -> Any:
        return plays(turn) if turn.agent == "Agent-0" else None

    sizes, votes, ties = (1, 2, 5), ("secret", "public"), ("first", "random", "none", "again")
    for agents, way, tie, otherwise in itertools.product(sizes, votes, ties, ("plurality", "none")):
        after = 1 if tie == "again" else None
        if after and decision in CONSENSUS:
            continue
        protocol = discussion(
            decision=decision, agents=agents, votes=way, ties=tie, otherwise=otherwise, vote_after=after, max_rounds=2
        )
        for answer in (lambda turn: turn.reply.noop, plays, alone):
            outcome = drive(protocol, task, case, answer).outcome
            answered = [one for one in outcome.facts["history"][-1] if one is not None]
            assert outcome.facts["exit"] and (outcome.group is None or decision == "judge" or outcome.group in answered)


def test_no_label_on_a_ballot_is_an_option_of_the_question(tmp_path: Path) -> None:
    """A vote for B must not be one for the option B."""
    jsonl(tmp_path / "rows.jsonl", [{"question": "Which?", "answer": "C"}])
    data: dict[str, Any] = {"data_files": {"test": str(tmp_path / "rows.jsonl")}, "doc_to_text": "{{question}}"}
    more: dict[str, Any] = {
        "doc_to_choice": ["elm", "oak", "yew"],
        "doc_to_target": "answer",
        "answer": {"form": "letter"},
    }
    rows = panel(*([f"The answer is {letter}."] for letter in "ABC"))
    ballots = {"Agent-0": "Vote: D", "Agent-1": "Vote: E", "Agent-2": "Vote: E"}
    episode = decided(says(rows, ballots), task=task_of(**data, **more), decision="vote", max_rounds=0)
    shown = labels(episode)
    assert sorted(shown) == ["A", "B", "C"] and sorted(shown.values()) == ["D", "E", "F"]
    assert episode.outcome.group == next(answer for answer, label in shown.items() if label == "E")
