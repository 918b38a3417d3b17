"""`discussion`: its options, alone and together; a vote and a debate are two of its points."""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.api import Turn
from harness.api.errors import ContextLengthError, PluginError, RequestError
from harness.extensions.yaml_tasks import conformance
from harness.runtime.steps import drive
from tests.extensions.datasets.documents_kit import BUILTIN
from tests.extensions.panels.exchange_kit import Episode, played, question, says, scripted
from tests.helpers.samples import examples

TALE = says(
    Agent_0=[1, 2, 2, 2], Agent_1=["what?", 3, 1, 2], Agent_2=[2, 2, 3, 2],
)  # fmt: skip
ORDERS = ("simultaneous", "round_robin", "random", "moderator", "proposer")
STYLES = ("free", "step_by_step", "critical", "short", "agree")
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


# ---------------------------------------------------------------------------- drafts, order, visible


def turns(episode: Episode) -> list[str]:
    """Agent and turn of every call."""
    return [f"{move.agent} {move.turn}" for move in episode.moves]


SAME = says(
    **{f"Agent_{i}": ["The answer is 1."] * 20 for i in range(4)},
    Moderator=["Next: Agent-2", "I cannot say.", "Next: Agent-2"] * 9,
    Recruiter=["1. Chemist: knows acids."] * 3,
)  # fmt: skip


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("drafts", "first", "history"),
    [
        ("all", ["Agent-0 answer", "Agent-1 answer", "Agent-2 answer"], [[1, 1, 1], [1, 1, 1]]),
        ("one", ["Agent-0 answer"], [[1, None, None], [1, 1, 1]]),
        ("none", [], [[1, 1, 1]]),
    ],
)
def test_drafts(drafts: str, first: list[str], history: list[list[Any]]) -> None:
    episode = scripted("discussion", SAME, drafts=drafts, max_rounds=1, order="round_robin")
    opens = "answer" if drafts == "none" else "talk"
    assert turns(episode) == [*first, f"Agent-0 {opens}", "Agent-1 talk", "Agent-2 talk"]
    facts = episode.outcome.facts
    assert facts["history"] == history and facts["rounds"] == 1 and facts["speeches"] == len(episode.moves)


@pytest.mark.parametrize(
    ("order", "spoke"),
    [
        ("simultaneous", "012"),
        ("round_robin", "012"),
        ("moderator", "M2M0M2"),  # what cannot be read gives the word to the one that spoke least
        ("proposer", "12"),  # the first agent's draft is the proposal
    ],
)
def test_who_speaks_in_a_round(order: str, spoke: str) -> None:
    episode = scripted("discussion", SAME, order=order, max_rounds=1)
    assert "".join("M" if move.agent == "Moderator" else move.agent[-1] for move in episode.moves[3:]) == spoke


def test_a_proposer_speaks_first_in_later_rounds_and_the_others_agree_or_amend() -> None:
    said = says(Agent_0=[5, 5], Agent_1=["\nAGREE, it is.", "\nDISAGREE. The answer is 6."], Agent_2=["\nAGREE"] * 2)
    episode = scripted("discussion", said, order="proposer", drafts="one", max_rounds=2)
    assert turns(episode)[1:] == ["Agent-1 talk", "Agent-2 talk", "Agent-0 talk", "Agent-1 talk", "Agent-2 talk"]
    assert episode.outcome.facts["history"] == [[5, None, None], [5, 5, 5], [5, 6, 5]]
    assert "AGREE" not in episode.prompt("Agent-0", 1).partition("End of the replies")[2], "it proposes"


def test_what_the_proposer_says_is_on_the_table_of_those_that_hear_it() -> None:
    said = says(Agent_0=[5, 5], Agent_1=[6, "\nAGREE"], Agent_2=[7, "\nAGREE"])
    episode = scripted("discussion", said, order="proposer", max_rounds=1)
    assert episode.outcome.facts["history"] == [[5, 6, 7], [5, 5, 5]]
    chain = scripted("discussion", said, order="proposer", max_rounds=1, topology="chain")
    assert chain.outcome.facts["history"][1] == [5, 5, 6], "Agent-2 does not hear the proposer"
    mute = scripted(
        "discussion", says(Agent_0=["?"], Agent_1=[6, "\nAGREE"], Agent_2=[7, 7]), order="proposer", max_rounds=1
    )
    assert mute.outcome.facts["history"][1] == [None, 7, 7], "without a proposal, the last answer heard"


def test_the_random_order_changes_with_round_and_seed_and_with_nothing_else() -> None:
    def order(seed: int) -> list[str]:
        run = played("discussion", [[1] * 4] * 9, seed, agents=4, order="random", max_rounds=4, drafts="none")
        return [turn.agent for turn in run.turns()]

    drawn = {tuple(order(seed)[i : i + 4]) for seed in range(5) for i in range(0, 16, 4)}
    assert len(drawn) > 5 and all(sorted(one) == [f"Agent-{i}" for i in range(4)] for one in drawn)
    assert order(3) == order(3)


def test_a_window_opens_a_new_conversation_and_always_has_the_agents_own_last_words() -> None:
    episode = scripted("discussion", SAME, visible=1, max_rounds=2, topology="chain")
    assert all(call.roles == ["user"] for call in episode.asked)
    assert "You have answered it before" in episode.prompt("Agent-0", 1), "it hears no other agent"
    assert "check every step" in episode.prompt("Agent-0", 1)
    silent = says(Agent_0=[ContextLengthError("full"), 1], Agent_1=[1, 1])
    alone = scripted("discussion", silent, agents=2, visible=1, max_rounds=1, topology={"Agent-1": [0]})
    assert alone.prompt("Agent-0", 1) == alone.prompt("Agent-0", 0), "nothing to show: the question once more"


def test_rounds_are_dated_where_several_are_visible() -> None:
    prompt = scripted("discussion", SAME, visible=2, identity="named", max_rounds=2).prompt("Agent-0", 2)
    assert "=== Reply 1 of 6: your own (draft) ===" in prompt and "=== Reply 5 of 6: Agent-1 (round 1) ===" in prompt


# -------------------------------------------------------------------------------------------- styles


def test_agreement_adopts_what_is_on_the_table_and_a_counter_proposal_replaces_it() -> None:
    said = says(
        Agent_0=[1, "My view: DISAGREE, the sum is wrong. The answer is 4."],
        Agent_1=[2, "\n**Agree**. It is right."],
        Agent_2=[3, "I like another one. The answer is 9."],
    )
    episode = scripted("discussion", said, style="agree", order="round_robin", max_rounds=1, parse_retries=1)
    assert "This answer is on the table: 3" in episode.prompt("Agent-0", 1)
    assert "This answer is on the table: 4" in episode.prompt("Agent-1", 1)
    assert "(With this the agent takes over an answer: 4)" in episode.prompt("Agent-2", 1)
    facts = episode.outcome.facts
    assert facts["history"] == [[1, 2, 3], [4, 4, 9]]
    assert facts["changes"] == [
        {"round": 1, "agent": "Agent-0", "before": 1, "after": 4, "heard": [], "joins": False},
        {"round": 1, "agent": "Agent-1", "before": 2, "after": 4, "heard": ["Agent-0"], "joins": True},
        {"round": 1, "agent": "Agent-2", "before": 3, "after": 9, "heard": [], "joins": False},
    ]


def test_an_agreement_in_json_is_shown_with_the_answer_that_it_adopts() -> None:
    said = says(
        Agent_0=['{"answer": "1", "confidence": 0.9}', '{"answer": "AGREE, it is right", "confidence": 1}'],
        Agent_1=['{"answer": "2", "confidence": 0.9}', '{"answer": "2", "confidence": 1}'],
    )
    how: dict[str, Any] = {"style": "agree", "order": "round_robin", "confidence": "json", "max_rounds": 1}
    prompt = scripted("discussion", said, agents=2, **how).prompt("Agent-1", 1)
    assert "(With this the agent takes over an answer: 2)" in prompt


@pytest.mark.parametrize(("style", "field"), [("agree", "answer"), ("critical", "reasoning")])
def test_a_line_that_json_must_hold_has_its_field(style: str, field: str) -> None:
    said = says(**{name: ['{"answer": "2", "confidence": 1}'] * 2 for name in ("Agent_0", "Agent_1")})
    how: dict[str, Any] = {"style": style, "order": "round_robin", "max_rounds": 1}
    episode = scripted("discussion", said, agents=2, confidence="json", **how)
    assert f'begins the field "{field}"' in episode.prompt("Agent-1", 1)
    plain = scripted("discussion", says(Agent_0=[2, 2], Agent_1=[2, 2]), agents=2, **how)
    assert "the field" not in plain.prompt("Agent-1", 1)


def test_a_disagreement_without_an_answer_is_asked_for_again() -> None:
    said = says(Agent_0=[1, "\nDISAGREE.", "\nDISAGREE. The answer is 5."], Agent_1=[2, 2])
    episode = scripted("discussion", said, agents=2, style="agree", max_rounds=1, parse_retries=1)
    assert "your own answer after DISAGREE" in episode.prompt("Agent-0", 2)
    assert episode.outcome.facts["history"][1] == [5, 2]


def test_nothing_on_the_table_is_a_question_as_any_other() -> None:
    episode = scripted("discussion", SAME, style="agree", topology="chain", max_rounds=1)
    assert "AGREE" not in episode.prompt("Agent-0", 1) and "AGREE" in episode.prompt("Agent-1", 1)


def test_criticism_must_name_a_flaw() -> None:
    said = says(Agent_0=[1, "\nFlaw: no proof. The answer is 1."], Agent_1=[1, "All is fine. The answer is 1."])
    moves = scripted("discussion", said, agents=2, style="critical", max_rounds=1).moves
    assert [move.action["malformed"] for move in moves[2:]] == [False, True]
    alone = scripted("discussion", says(Agent_0=[1, 1]), agents=1, style="critical", max_rounds=1)
    assert "Flaw" not in alone.prompt("Agent-0", 1), "there is nothing to criticize"


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("style", "drafted", "talked"),
    [("free", "", ""), ("step_by_step", "step by step", "step by step"), ("short", "Be brief", "Be brief"),
     ("critical", "", "Flaw: …"), ("agree", "", "DISAGREE")],
)  # fmt: skip
def test_each_style_is_asked_for(style: str, drafted: str, talked: str) -> None:
    episode = scripted("discussion", SAME, style=style, max_rounds=1)
    free = scripted("discussion", SAME, max_rounds=1)
    assert drafted in episode.prompt("Agent-0", 0) and talked in episode.prompt("Agent-0", 1)
    assert (episode.prompt("Agent-0", 0) == free.prompt("Agent-0", 0)) == (drafted == "")
    assert (episode.prompt("Agent-0", 1) == free.prompt("Agent-0", 1)) == (style == "free")


# -------------------------------------------------------------------- seats that fail; checks of plans


@pytest.mark.sampled(4)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("style", ["free", "critical", "agree"])
@pytest.mark.parametrize("visible", ["all", 1])
@pytest.mark.parametrize("decision", ["plurality", "unanimity", "majority"])
def test_seats_that_fail(order: str, style: str, visible: Any, decision: str) -> None:
    def say(agent: str, number: int) -> str:
        if agent in ("Agent-0", "Recruiter") or (agent == "Moderator" and number % 2):
            raise ContextLengthError("full")
        return {"Agent-1": "", "Agent-2": "I do not know.", "Moderator": "?"}.get(agent, "The answer is 3.")

    episode = scripted(
        "discussion", say, agents=4, order=order, style=style, visible=visible, personas="experts", decision=decision,
        max_rounds=2, parse_retries=1,
    )  # fmt: skip
    facts = episode.outcome.facts
    assert [len(row) for row in facts["history"]] == [4, 4, 4] and facts["personas"] == {}
    assert facts["history"][-1] in ([None, None, None, 3], [None, None, 3, 3])
    assert "Agent-2" in facts["sent"] and facts["sent"]["Agent-0"] == {}, "what cannot be read is read by others"


@pytest.mark.sampled(4)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("visible", ["all", 2])
def test_the_protocol_keeps_its_contract(order: str, visible: Any) -> None:
    for style in STYLES:
        protocol = BUILTIN.load("protocols", "discussion")(
            order=order, visible=visible, style=style, personas="traits", identity="named", decision="unanimity"
        )
        assert conformance.check_protocol(protocol, question()[0]) == []


CHOICES: dict[str, list[Any]] = {
    "agents": [1, 2, 4], "drafts": ["all", "one", "none"],
    "topology": ["all", "ring", "star", "chain", "tree", "pairs"],
    "visible": ["all", 1, 3], "identity": ["anonymous", "named"], "order": [*ORDERS], "style": [*STYLES],
    "personas": ["none", "experts", "traits", ["a judge"]], "confidence": ["none", "line", "json"],
    "decision": ["hybrid", "supermajority", "plurality", "last_word", "vote", "approval", "borda", "points", "judge"],
    "votes": ["secret", "public"], "parse_retries": [0, 1], "max_rounds": [1, 2],
}  # fmt: skip
REPLIES = [
    "", "junk", "\nAGREE", "\nDISAGREE\nThe answer is 3.", "The answer is 3.\nConfidence: 0.7", "\nNext: Agent-0",
    "\nVote: A", "\nRanking: B > A", "\n1. Expert: knows", '{"reasoning": "x", "answer": "4", "confidence": 0.5}',
    "\x1b[2J\u202e The answer is \ud800 5",
]  # fmt: skip


@settings(max_examples=examples(40))
@given(
    st.fixed_dictionaries({name: st.sampled_from(values) for name, values in CHOICES.items()}),
    st.randoms(use_true_random=False),
)
def test_any_combination_plays_whatever_is_said(chosen: dict[str, Any], rng: random.Random) -> None:
    def say(agent: str, number: int) -> str:
        if rng.random() < 0.1:
            raise RequestError("the server is away")
        return rng.choice(REPLIES)

    task, case = question()
    protocol = BUILTIN.load("protocols", "discussion")(**chosen)
    assert conformance.check_protocol(protocol, task) == []
    episode = scripted("discussion", say, **chosen)
    assert {len(answers) for answers in episode.outcome.facts["history"]} == {chosen["agents"]}
    assert len(episode.moves) <= len([*drive(protocol, task, case).turns()]), "more than was planned"


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("drafts", ["all", "one", "none"])
def test_idle_agents_make_it_last_as_long_as_it_can(order: str, drafts: str) -> None:
    task, case = question()
    make = BUILTIN.load("protocols", "discussion")
    protocol = make(order=order, drafts=drafts, decision="unanimity", personas="experts", max_rounds=3)
    longest = len([*drive(protocol, task, case).turns()])
    for answer in (7, 8):

        def talks(turn: Turn, answer: int = answer) -> Any:
            return answer if turn.name == "talk" else turn.reply.noop

        varied = drive(protocol, task, case, talks)
        assert len([*varied.turns()]) <= longest
    speeches = {"all": 3, "one": 1, "none": 0}[drafts] + 9 - (order == "proposer" and drafts != "none")
    assert longest == 1 + speeches + 9 * (order == "moderator")


@pytest.mark.parametrize("decision", ["vote", "approval", "borda", "instant_runoff", "points", "judge", "last_word"])
@pytest.mark.parametrize("more", [{}, {"votes": "public"}, {"ties": "again", "vote_after": 1}])
def test_plans_count_ballots_and_judges(decision: str, more: dict[str, Any]) -> None:
    task, case = question()
    protocol = BUILTIN.load("protocols", "discussion")(decision=decision, max_rounds=2, **more)
    idle = drive(protocol, task, case)
    decisions = 0 if decision == "last_word" else 1 if decision == "judge" else 3
    assert len([*idle.turns()]) == 9 + decisions * (2 if "ties" in more else 1)
    assert idle.outcome.group is None and idle.outcome.facts["history"][-1] == [None] * 3


@pytest.mark.parametrize(
    ("parameters", "what", "at"),
    [
        ({"drafts": "none", "decision": "vote", "vote_after": 0}, "no agent is asked", ("vote_after",)),
        ({"order": "moderator", "moderator": "Agent-1"}, "moderator 'Agent-1' is a member", ("moderator",)),
        ({"personas": "experts", "recruiter": "Agent-1"}, "recruiter 'Agent-1' is a member", ("recruiter",)),
        ({"moderator": " "}, "moderator is empty", ("moderator",)),
        ({"drafts": "none", "max_rounds": 0}, "no agent is asked", ("max_rounds",)),
        ({"personas": list("abcde")}, "5 personas for a panel of 3", ("personas", 3)),
        ({"personas": ["a", " "]}, "a persona needs a name on one line", ("personas", 1)),
        ({"personas": [{"name": "a\nb"}]}, "a persona needs a name on one line", ("personas", 0)),
    ],
)  # fmt: skip
def test_parameters_that_do_not_fit(parameters: dict[str, Any], what: str, at: tuple[Any, ...]) -> None:
    with pytest.raises(PluginError, match=what) as caught:
        scripted("discussion", SAME, **parameters)
    assert caught.value.at == at


def test_names_of_agents_that_do_not_play_are_free() -> None:
    assert scripted("discussion", SAME, moderator="Agent-1", recruiter="Agent-0").outcome.group == 1
