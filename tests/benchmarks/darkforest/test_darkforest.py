"""DarkForest whole: who is asked what, what the guardrail does, how it ends, and every ablation in a line."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import harness
from harness.api import Completion, Request
from harness.api.errors import PluginError, RequestError
from harness.engines.mock import Mock
from harness.plugins import parameters
from harness.runtime.steps import drive
from tests.benchmarks.darkforest.darkforest_kit import (
    A,
    B,
    C,
    DarkForest,
    converse,
    counts,
    letters,
    question,
    rules,
    tally,
)

answers = st.lists(st.sampled_from([None, "A", "B", "C"]), min_size=1, max_size=5)


def played(*given: str | None, coordinator: str | None = "B", **parameters: Any) -> Any:
    protocol = DarkForest(**{"agents": len(given), **parameters})
    return converse(protocol, letters(*given, coordinator=coordinator))


# ---------------------------------------------------------------------------------- who is asked what


def test_members_answer_alone_then_one_coordinator_is_shown_the_evidence() -> None:
    result = played("A", "B", "B", coordinator="B")
    alone, together = result.batches
    assert [turn.agent for turn, _ in alone] == [A, B, C]
    assert all((turn.name, turn.observation, turn.peer_texts) == ("answer", {}, ()) for turn, _ in alone)
    [(turn, _)] = together
    assert (turn.agent, turn.name, turn.fresh) == ("Coordinator", "coordinate", True)
    assert turn.peer_texts == (result.evidence,) and result.facts["peer_characters"] == len(result.evidence)
    assert (turn.observation["uncertain"], turn.observation["leading"]) == (False, "B")
    assert turn.context["question"] == "Which one?" and turn.context["confidence"] == "none"
    assert (result.outcome.group, result.facts["exit"], result.facts["proposal"]) == ("B", "coordinator", "B")


@pytest.mark.parametrize(
    ("parameters", "given", "calls"),
    [
        ({}, "AAB", 4), ({}, "AAA", 4), ({"agents": 5}, "ABCDA", 6),
        ({"coordinate": "never"}, "AAB", 3), ({"guardrail": False}, "AAB", 4),
        ({"coordinate": "disagreement"}, "AAA", 3), ({"coordinate": "disagreement"}, "AAB", 4),
        ({"coordinate": "disagreement"}, "AA-", 4), ({"coordinate": "uncertain"}, "AAB", 3),
        ({"coordinate": "uncertain"}, "ABC", 4), ({"coordinate": "uncertain"}, "---", 4),
        ({"preset": "artifact/gpqa"}, "AAB", 3), ({"preset": "artifact/gpqa"}, "ABB", 4),
        ({"preset": "artifact/gpqa"}, "AA-", 3), ({"preset": "artifact/gpqa"}, "A-A", 4),
        ({"coordinate": "doubt", "compared": [B, C]}, "ABB", 3),
        ({"coordinate": "doubt", "compared": [A, C]}, "ABB", 4),
        ({"preset": "artifact/math"}, "AAB", 4), ({"preset": "artifact/finqa"}, "AAB", 4),
    ],
)  # fmt: skip
def test_calls(parameters: dict[str, Any], given: str, calls: int) -> None:
    result = played(*(None if x == "-" else x for x in given), **parameters)
    assert sum(map(len, result.batches)) == calls
    assert result.facts["asked"] == calls - len(given)
    assert (result.facts["peer_characters"] > 0) == bool(result.facts["asked"])


def test_a_member_that_coordinates_is_asked_again() -> None:
    task, case = question()
    protocol = DarkForest(agents=3, coordinator=B)
    assert protocol.possible_agents(case) == (A, B, C)
    result = converse(protocol, letters("A", "B", "C", coordinator="A"), task, case)
    [(turn, _)] = result.batches[1]
    assert (turn.agent, turn.fresh) == (B, True)
    assert result.outcome.answers == {A: "A", B: "B", C: "C"}, "its own answer stays what it was"
    assert DarkForest(agents=3).possible_agents(case) == (A, B, C, "Coordinator")
    assert DarkForest(agents=3, coordinate="never").possible_agents(case) == (A, B, C)


@pytest.mark.parametrize(
    ("disclosed", "there", "missing"),
    [
        ("belief_summary", "posterior", "whole reply"),
        ("reasoning_summary", "reasoning: Because", "whole reply"),
        ("full_traces", "whole reply: Because", "reasoning:"),
        (["answer"], "Agent-0: A", "posterior"),
    ],
)
def test_disclosure(disclosed: Any, there: str, missing: str) -> None:
    text = letters("A", "B", "B") | {A: "Because\nThe answer is (A)"}
    evidence = converse(DarkForest(agents=3, disclosure=disclosed), text).evidence
    assert there in evidence and missing not in evidence


def test_what_is_not_disclosed_is_not_in_the_observation_either() -> None:
    result = played("A", "B", "B", disclosure=["answer"])
    observation = result.batches[1][0][0].observation
    assert (observation["uncertain"], observation["leading"]) == (None, None)
    nothing = played("A", "B", "B", disclosure=[])
    assert (
        nothing.evidence == "" and nothing.batches[1][0][0].peer_texts == () and nothing.facts["peer_characters"] == 0
    )


# ------------------------------------------------------------------------------- guardrail and exits


@pytest.mark.parametrize(
    ("given", "coordinator", "parameters", "group", "exit"),
    [
        ("AAB", "A", {}, "A", "coordinator"),
        ("AAB", "B", {}, "A", "guardrail"),
        ("AAB", "D", {}, "A", "guardrail"),
        ("AAB", "B", {"guardrail": False}, "B", "coordinator"),
        ("AAB", "B", {"tau_p": 0.67}, "B", "coordinator"),
        ("AAB", "B", {"tau_m": 0.34}, "B", "coordinator"),
        ("AAB", "B", {"k": 3}, "B", "coordinator"),
        ("ABC", "D", {}, "D", "coordinator"),
        ("A--", "B", {}, "B", "coordinator"),
        ("AAB", None, {}, "A", "coordinator unreadable"),
        ("ABC", None, {}, None, "coordinator unreadable"),
        ("ABC", None, {"unusable": "top"}, "A", "coordinator unreadable"),
        ("ABC", None, {"unusable": "anchor", "anchor": B}, "B", "coordinator unreadable"),
        ("---", "C", {}, "C", "no candidate"),
        ("---", None, {}, None, "no candidate"),
        ("---", None, {"coordinate": "never"}, None, "no candidate"),
        ("BAA", None, {"coordinate": "never"}, "A", "top"),
        ("BAC", None, {"coordinate": "never", "anchor": C}, "C", "anchor"),
        ("AAC", None, {"coordinate": "never", "anchor": C}, "A", "guardrail"),
        ("AB-", None, {"coordinate": "never", "anchor": C}, None, "anchor unreadable"),
        ("AB-", None, {"coordinate": "never", "anchor": C, "unusable": "top"}, "A", "top"),
        ("A", "B", {}, "B", "coordinator"),
    ],
)  # fmt: skip
def test_how_it_ends(given: str, coordinator: str | None, parameters: Any, group: Any, exit: str) -> None:
    result = played(*(None if x == "-" else x for x in given), coordinator=coordinator, **parameters)
    assert (result.outcome.group, result.facts["exit"]) == (group, exit)
    facts = result.facts
    assert facts["coordinator_read"] == (None if not facts["asked"] else int(coordinator is not None))


def test_a_failed_coordinator_and_failed_members() -> None:
    text = letters("A", "A", "B") | {"Coordinator": RequestError("refused")}
    result = converse(DarkForest(agents=3), text)
    assert (result.outcome.group, result.facts["exit"], result.facts["coordinator_read"]) == (
        "A",
        "coordinator failed",
        0,
    )
    result = converse(DarkForest(agents=3, preset="artifact/mmlu_pro"), text | {A: RequestError("timed out")})
    assert (result.outcome.group, result.facts["exit"]) == (None, "coordinator failed")
    assert "Agent-0: no answer that could be read, error: timed out" in result.evidence


def test_all_malformed_is_reported_and_malformed_answers_count_less() -> None:
    mapping = {A: "A", B: "A", C: "The answer is (B)\nConfidence: 0.5", "Coordinator": "The answer is (B)"}
    result = converse(DarkForest(agents=3, confidence="line"), mapping)
    assert [c["agents"] for c in result.facts["clusters"]] == [[A, B], [C]]
    assert result.facts["posterior"] == pytest.approx(0.5), "2 · ½ against 1"
    assert result.facts["exit"] == "coordinator"
    result = converse(DarkForest(agents=3, confidence="json"), mapping)
    assert result.facts["exit"] == "all malformed"


@pytest.mark.parametrize(("stated", "counted"), [("90", 0.9), ("nan", None), ("-1", None), ("1e999", None)])
def test_confidences_as_they_are_written(stated: str, counted: float | None) -> None:
    text = letters("A", "B") | {A: f"The answer is (A)\nConfidence: {stated}"}
    result = converse(DarkForest(agents=2, confidence="line"), text)
    first = next(c for c in result.facts["clusters"] if c["agents"] == [A])
    assert first["score"] == pytest.approx(0.5 + (0.5 if counted is None else counted))


@given(answers, st.sampled_from([None, "A", "B", "D"]), st.integers(0, 4), *[st.floats(0, 1)] * 2)
def test_the_guardrail_never_acts_below_its_thresholds(
    given: list[Any], coordinator: Any, k: int, tau_p: float, tau_m: float
) -> None:
    facts = played(*given, coordinator=coordinator, k=k, tau_p=tau_p, tau_m=tau_m).facts
    if facts["overridden"]:
        assert len(facts["clusters"][0]["agents"]) >= k
        assert facts["posterior"] >= tau_p - 1e-9 and facts["margin"] >= tau_m - 1e-9
        assert facts["dissent"] and facts["trusted"]
    assert facts["overridden"] == (facts["trusted"] and facts["dissent"])


@given(answers, st.sampled_from([None, "A", "B", "D"]))
def test_without_a_guardrail_the_coordinator_decides(given: list[Any], coordinator: Any) -> None:
    result = played(*given, coordinator=coordinator, guardrail=False)
    assert result.outcome.group == coordinator == result.facts["proposal"] and not result.facts["overridden"]
    assert json.loads(json.dumps(result.facts)) == result.facts and set(result.facts) == set(DarkForest.facts)


@given(answers)
def test_uniform_without_a_coordinator_is_a_vote(given: list[Any]) -> None:
    result = played(*given, coordinate="never", terms="uniform", ties=["support", "order"])
    valid = [x for x in given if x is not None]
    assert result.outcome.group == (max(valid, key=valid.count) if valid else None)


# -------------------------------------------------------------------------------------- calibrated

AGENTS = {A: tally(9, 10), B: tally(3, 10), C: tally(3, 10)}


def adopted(parameters: dict[str, Any], **settings: Any) -> Any:
    protocol = DarkForest(**{"agents": 3, **settings})
    protocol.load_parameters(parameters)
    return protocol


def test_a_weighted_vote_follows_who_is_reliable() -> None:
    text = letters("A", "B", "B")
    for terms, group in (("uniform", "B"), ("agent", "A"), ("full", "A")):
        result = converse(adopted(counts(AGENTS), terms=terms, coordinate="never"), text)
        assert result.outcome.group == group
    shares = [c["posterior"] for c in result.facts["clusters"]]
    assert shares == pytest.approx([10 / 18, 8 / 18])


def test_a_misleading_agreement_is_believed_less() -> None:
    parameters = counts(AGENTS, [((A, B), 0, 8), ((C,), 4, 6)])
    text = letters("A", "A", "B")
    result = converse(adopted(parameters, coordinate="never"), text)
    assert [c["score"] for c in result.facts["clusters"]] == pytest.approx([5 / 8 * 4 / 12, 1 / 10 * 14 / 12])
    assert converse(adopted(parameters, coordinate="never", terms=["agent", "pattern"]), text).outcome.group == "B"
    few = converse(adopted(parameters, coordinate="never", min_count=9), text)
    assert few.outcome.group == "A", "a pattern that was seen too rarely is not used"


def test_reliability_of_a_label() -> None:
    labelled = {"subject": {"bees": {A: tally(0, 4, 8), B: tally(7, 8)}}}
    protocol = adopted(counts(AGENTS, labels=labelled), coordinate="never", terms="agent", alpha_by="subject")
    result = converse(protocol, letters("A", "B", "C"))
    assert [c["score"] for c in result.facts["clusters"]] == pytest.approx([8 / 10, 4 / 12, 1 / 10])
    other = adopted(counts(AGENTS, labels=labelled), coordinate="never", terms="agent", alpha_by="level")
    assert converse(other, letters("A", "B", "C")).facts["clusters"][0]["score"] == pytest.approx(10 / 12)


def test_extra_conditions_of_trust() -> None:
    reliable = counts(AGENTS, [((A, B), 9, 10), ((A, B, C), 3, 10), ((C,), 8, 9)])

    def trusted(*given: str | None, **settings: Any) -> bool:
        protocol = adopted(reliable, terms="uniform" if "terms" not in settings else settings.pop("terms"), **settings)
        return bool(converse(protocol, letters(*given, coordinator="D")).facts["trusted"])

    choice = {"preset": "artifact/mmlu_pro", "terms": ["pattern"]}
    assert trusted("A", "A", None, **choice)
    assert not trusted("A", "A", "A", **choice), "R of all three is 1/3"
    assert not trusted("A", None, "A", **choice), "no pattern of the list"
    alone = {"preset": "artifact/finqa", "terms": ["pattern"]}
    assert trusted(None, None, "A", **alone), "reliable, and the only candidate"
    assert trusted("A", None, None, **alone), "the only candidate"
    assert not trusted("A", None, None)
    assert not trusted("A", "B", "C", **alone)


def test_an_anchor_that_leads_clearly() -> None:
    """HumanEval in the artifact: the coder's answer also counts alone, with a posterior of 0.8."""
    clear = counts({A: tally(0, 18), B: tally(17, 18), C: tally(0, 18)})
    text = letters("A", "B", None, coordinator="D")
    result = converse(adopted(clear, preset="artifact/humaneval"), text)
    assert (result.outcome.group, result.facts["exit"], result.facts["overridden"]) == ("B", "anchor", 1)
    assert converse(adopted(clear, preset="artifact/humaneval", anchor_posterior="never"), text).outcome.group == "D"
    assert converse(adopted(clear, preset="artifact/humaneval", anchor=A), text).outcome.group == "D"


def test_a_correlated_pair_of_the_preset() -> None:
    task, case = question()
    result = converse(DarkForest(agents=3, preset="artifact/math"), letters("A", "B", "B"), task, case)
    scores = {c["agents"][0]: c["score"] for c in result.facts["clusters"]}
    assert scores == {A: pytest.approx(1.0), B: pytest.approx(1.5)}


# ------------------------------------------------------------------------------- parameters, presets


def test_every_rule_is_a_parameter_and_nothing_is_given_twice() -> None:
    assert set(rules.PARAMETERS) <= set(parameters.fields(DarkForest))
    own = {name: getattr(DarkForest(), name) for name in rules.PARAMETERS}
    assert set(own.values()) == {None}, "what is not given is the preset's"
    assert rules.rules_of("paper", own) == rules.Rules()


@pytest.mark.parametrize("preset", rules.PRESETS)
def test_presets_are_mappings_of_legal_parameters(preset: str) -> None:
    data = json.loads(json.dumps(dict(rules.PRESETS[preset])))
    assert list(parameters.faults(DarkForest, {"preset": preset, **data})) == []
    same = DarkForest(agents=3, **data)._rules
    assert same == DarkForest(agents=3, preset=preset)._rules
    assert {f.name for f in fields(same)} == set(rules.PARAMETERS)


def test_what_is_given_wins_over_the_preset() -> None:
    _rules = DarkForest(agents=3, preset="artifact/gpqa", coordinate="never", guardrail=True, tau_m=0.0)._rules
    assert (_rules.coordinate, _rules.guardrail, _rules.tau_m, _rules.anchor) == ("never", True, 0.0, A)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"tau_p": float("nan")}, "tau_p is nan; it must be a finite number"),
        ({"fallback": float("inf")}, "fallback is inf"),
        ({"c_min": 0.95}, "c_min is 0.95, above c_max: 0.9"),
        ({"correlated": [[A, A]]}, "not a pair of agents"),
        ({"correlated": [[A, B, C]]}, "Three correlated agents are three pairs"),
        ({"unusable": "anchor"}, "needs an anchor"),
    ],
)
def test_parameters_that_make_no_sense(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(PluginError, match=message):
        DarkForest(agents=3, **parameters)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"anchor": "Agent-7"}, "anchor names 'Agent-7', which is not on the panel"),
        ({"priority": ["Agent-1", "agent-0"]}, "priority names 'agent-0', .*\n.*Did you mean Agent-0"),
        ({"agents": 2, "preset": "artifact/math"}, "of the preset artifact/math.* names 'Agent-2'"),
    ],
)
def test_agents_that_are_not_there(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(PluginError, match=message):
        converse(DarkForest(**{"agents": 3, **parameters}), letters("A", "A", "A"))


def test_a_panel_that_was_not_calibrated_does_not_play() -> None:
    """The panel of a case with agents of its own is known only when it plays."""
    protocol = DarkForest()
    protocol.load_parameters(counts({A: tally(1, 2), B: tally(1, 2)}))
    with pytest.raises(PluginError, match="the panel is Agent-0; the calibration is of Agent-0, Agent-1"):
        converse(protocol, letters("A"))


def test_playing_changes_nothing() -> None:
    task, case = question()
    protocol = adopted(counts(AGENTS, [((A, B), 5, 9)]), correlated=[[A, B]])
    before = repr(vars(protocol))
    one, two = (drive(protocol, task, case, lambda turn: "B") for _ in range(2))
    assert one == two and repr(vars(protocol)) == before


# ----------------------------------------------------------------------------------- through the door


def test_a_run_with_a_scripted_model(tmp_path: Path) -> None:
    """Everybody says 7 but the coordinator, who says 8; the guardrail holds where it is on."""
    requests: list[str] = []

    def says(request: Request) -> Completion:
        text = request.thread.messages[-1]["content"]
        requests.append(text)
        return Completion(f"The answer is {8 if 'prior belief' in text else 7}", input_tokens=9, output_tokens=1)

    spec = {
        "name": "x",
        "task": {"use": "arithmetic", "size": 2},
        "protocol": {"use": "darkforest", "agents": 3, "guardrail": "${guardrail}", "coordinator": "${coordinator}"},
        "matrix": {"guardrail": [True, False], "coordinator": ["Coordinator", A]},
        "prompts": "panels/standard",
        "metrics": ["score", {"use": "tokens", "name": "tokens"}],
    }
    run = harness.evaluate(spec, Mock(function=says), output_path=tmp_path / "run")
    assert len(requests) == 2 * 2 * 2 * 4 and {score.numbers["tokens"] for score in run.scores} == {40}
    outputs = [text for text in requests if "prior belief" in text]
    assert len(outputs) == 8 and all(
        "1. 7 (given by Agent-0, Agent-1, Agent-2, posterior 1.0)" in text for text in outputs
    )
    assert all("What is" in text and "The answer is <number>." in text for text in requests)
    ends = [line["outcome"] for line in _ended(run.folder / "journal.jsonl")]
    assert (
        sorted((end["group"], end["facts"]["exit"]) for end in ends)
        == [(7, "guardrail")] * 4 + [(8, "coordinator")] * 4
    )


def _ended(journal: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in journal.read_text("utf-8").splitlines()]
    return [line for line in lines if "outcome" in line]
