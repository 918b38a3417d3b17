"""What DarkForest's coordinator is shown: the text, and that no field tells more than itself."""

from dataclasses import replace
from itertools import combinations
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.extensions.panels.peers import peer_text
from tests.benchmarks.darkforest.darkforest_kit import A, B, C, belief, disclosure, opinion

Policy, disclose = disclosure.Policy, disclosure.disclose
FIELDS: tuple[str, ...] = get_args(disclosure.Field)
THETA = belief.Theta({A: 0.8, B: 0.6}, {(A, C): 0.7}, c_miss=0.4)
SAID = [
    replace(opinion(A, "bee", 0.9), text="Wings, so\n\n  an insect.\nThe answer is bee"),
    replace(opinion(B, "cat", malformed=True), text="fur\ncat"),
    replace(opinion(C, "bee"), text="bee"),
]
NORMAL = {"SECRET0": "NORMAL", "SECRET1": "NORMAL1"}


def shown(*fields: str, said: list[Any] = SAID, errors: tuple[Any, ...] = (), **limits: Any) -> str:
    result = belief.believe(said, THETA)
    options = ["ant", "bee", "cat"]
    policy = Policy(frozenset(fields), **limits)
    flag = result.uncertain(0.6, 0.15)
    text: str = disclose(policy, said, result, flag, THETA, last_word, errors=errors, options=options)
    return text


def last_word(text: str) -> str | None:
    """How these tests' answers are read."""
    words = text.split()
    return NORMAL.get(words[-1], words[-1]) if words else None


def test_the_belief_summary_whole() -> None:
    """s(bee) = 0.7 (0.8 · 1.4 + 0.9) = 1.414, s(cat) = 0.6 · 0.5 · 0.9 = 0.27."""
    assert shown(*disclosure.SUMMARY) == (
        "Candidate answers, most believed first:\n"
        "1. bee (given by Agent-0, Agent-2, posterior 0.84)\n"
        "2. cat (given by Agent-1, posterior 0.16)\n"
        "Leading candidate: bee (posterior 0.84, margin over the next 0.679)\n"
        "The belief is concentrated.\n"
        "The members disagree: 2 answers.\n"
        "Members:\n"
        "- Agent-0: bee (confidence 0.9)\n"
        "- Agent-1: cat (not in the form asked for, no confidence stated)\n"
        "- Agent-2: bee (no confidence stated)"
    )


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ((), ""),
        (("answer",), "Members:\n- Agent-0: bee\n- Agent-1: cat\n- Agent-2: bee"),
        (("status",), "Members:\n- Agent-1: not in the form asked for"),
        (("confidence",), "Members:\n- Agent-0: confidence 0.9\n- Agent-1: no confidence stated\n"
                          "- Agent-2: no confidence stated"),
        (("top",), "Leading candidate: bee"),
        (("posterior",), "Leading candidate: posterior 0.84"),
        (("margin", "top"), "Leading candidate: bee (margin over the next 0.679)"),
        (("uncertain",), "The belief is concentrated."),
        (("disagreement",), "The members disagree: 2 answers."),
        (("counts",), "2 different answers, 0 replies without one."),
        (("guidance",), "Check the leading candidate first."),
        (("reasoning",), "Members:\n  Agent-0's reasoning: Wings, so an insect.\n  Agent-1's reasoning: fur"),
        (("clusters", "pattern"), "Candidate answers:\n"
         "1. bee (given by Agent-0, Agent-2, reliability of this agreement 0.7 (measured))\n"
         "2. cat (given by Agent-1, reliability of this agreement 1.0 (assumed))"),
        (("clusters", "imputed", "score"), "Candidate answers:\n"
         "1. bee (given by Agent-0, Agent-2, score 1.414, mean confidence 0.65)\n"
         "2. cat (given by Agent-1, score 0.27, mean confidence 0.4)"),
    ],
)  # fmt: skip
def test_every_field_by_itself(fields: tuple[str, ...], text: str) -> None:
    assert shown(*fields) == text


def test_whole_replies() -> None:
    assert "Agent-1's whole reply: fur\n    cat" in shown("trace")
    assert "Agent-1's whole reply: fur …" in shown("trace", trace=3)


def test_candidates_stand_in_the_panels_order_unless_the_belief_is_disclosed() -> None:
    said = [opinion(A, "x", 0.0), opinion(B, "y", 1.0), opinion(C, "y", 1.0)]
    assert shown("clusters", said=said).index("x") < shown("clusters", said=said).index("y")
    for field in ("top", "posterior"):
        assert shown("clusters", field, said=said).startswith("Candidate answers, most believed first:\n1. y")


def test_no_more_candidates_than_wanted() -> None:
    said = [opinion(f"Agent-{i}", f"answer{i}") for i in range(5)]
    text = shown("clusters", "posterior", said=said, clusters=3)
    assert "3. answer" in text and "4. " not in text and text.splitlines()[4] == "(2 more)"


def test_long_answers_are_written_once() -> None:
    program = "def f(x):\n    return x"
    said = [opinion(A, program), opinion(B, program), opinion(C, None)]
    text = shown(*disclosure.SUMMARY, said=said)
    assert text.count(peer_text(program, block=True)) == 2, "as the candidate, and as the leading one"
    assert "1. (given by Agent-0, Agent-1, posterior 1.0)\n  def f(x):" in text
    assert "- Agent-0: candidate 1\n- Agent-1: candidate 1\n- Agent-2: no answer that could be read" in text
    assert shown("answer", said=said).count(peer_text(program, block=True)) == 2


def test_an_answer_without_end_is_cut() -> None:
    said = [opinion(A, "x" * 1_000_000)]
    assert len(shown(*FIELDS, said=said, trace=100)) < 4 * disclosure.MAX_ANSWER


def test_normal_forms_options_and_errors() -> None:
    said = [replace(opinion(A, "B"), candidate="b"), opinion(B, None)]
    text = shown("answer", "canonical", "option", "error", said=said, errors=(None, "request\nrefused"))
    assert "- Agent-0: B (which is bee, in normal form b)" in text
    assert "- Agent-1: no answer that could be read, error: request refused" in text


def test_no_agent_could_be_read() -> None:
    said = [opinion(A, None), opinion(B, None)]
    text = shown(*disclosure.SUMMARY, said=said)
    assert text.startswith("No member's answer could be read.\nMembers:\n- Agent-0: no answer that could be read")
    assert "belief" not in text and "agree" not in text
    assert "work it out" in shown("guidance", said=said)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (["a", "b", "c"], "Strong conflict"),
        (["a", "b"], "Unsettled"),
        (["a", "a"], "Check the leading candidate"),
    ],
)
def test_guidance(said: list[str], words: str) -> None:
    opinions = [opinion(f"Agent-{i}", x, 0.5) for i, x in enumerate(said)]
    result = belief.believe(opinions, belief.Theta())
    assert disclosure.guidance(result, result.uncertain(0.6, 0.15)).startswith(words)
    weak = belief.believe([opinion(A, "a"), opinion(B, "b")], belief.Theta({A: 0.63, B: 0.37}))
    assert disclosure.guidance(weak, False) == "The belief is a weak prior."


SECRETS = {
    "answer": ("SECRET0", "SECRET1"), "clusters": ("SECRET0", "SECRET1"), "top": ("SECRET0",), "trace": ("whole",),
    "reasoning": ("because",), "confidence": ("0.123",), "error": ("broken",), "canonical": ("NORMAL",),
    "option": (), "imputed": (), "score": (), "posterior": (), "margin": (), "pattern": (),
}  # fmt: skip


@given(st.sets(st.sampled_from(FIELDS)))
def test_what_is_not_disclosed_is_not_there(fields: set[str]) -> None:
    said = [
        replace(opinion(A, "SECRET0", 0.123), text="because whole\nSECRET0", candidate="NORMAL"),
        replace(opinion(B, "SECRET1", 0.123), text="because whole\nSECRET1", candidate="NORMAL1"),
        opinion(C, None),
    ]
    text = shown(*fields, said=said, errors=(None, None, "broken"))
    for secret in ("SECRET0", "SECRET1", "because", "0.123", "broken", "NORMAL"):
        tellers = {field for field, message in SECRETS.items() if secret in message}
        tellers |= {"trace"} if secret in ("because", "SECRET0", "SECRET1") else set()
        tellers |= {"imputed"} if secret == "0.123" and "clusters" in fields else set()
        assert (secret in text) <= bool(tellers & fields), (secret, text)
    words = ("posterior", "margin", "uncertain", "score", "reliability")
    for word, field in zip(words, ("posterior", "margin", "uncertain", "score", "pattern"), strict=True):
        assert (word in text) <= (field in fields)


def test_every_pair_of_fields_makes_a_text() -> None:
    for one, two in combinations(FIELDS, 2):
        text = shown(one, two)
        assert text == shown(two, one) and ("\n\n" not in text or "trace" in (one, two))
