"""Filters of replies: lm-eval's steps to the letter, several filters side by side, and choices among samples."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import harness
from harness.api import Case, Outcome
from harness.api.errors import PluginError, SpecError
from harness.engines.mock import Mock
from harness.extensions.datasets.filters import pipelines
from harness.extensions.panels.panels import ballot, majority
from tests.extensions.datasets.documents_kit import cases, graded, jsonl, plan_of, task_of
from tests.helpers.samples import examples

CHOICES = ("Guilty", "Guilty of Romance", "no. 1 (b)", "B")
PIECES = ["#### 12", "#### -3.5,", "A", "(B)", "(c) ", ": B", ":\n A", "Answer", " ", "\n", "guilty of romance",
          "Guilty", "no. 1 (b)", "the answer is ", "12", "$$", "PERSON: Ada, none", "loc : x",
          "('a', 'NN')", "é", "ﬁ", "’"]  # fmt: skip
# Both packages of regular expressions agree which of these are \w: fractions, accents alone and the like they do not.
KNOWN = st.characters(max_codepoint=0x2FFF, categories=("Lu", "Ll", "Lo", "Nd", "Zs", "Po", "Ps", "Pe", "Sm", "Cc"))
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(KNOWN, max_size=6), max_size=8).map("".join)
PATTERNS = st.sampled_from(
    [r"#### (\-?[0-9\.\,]+)", r"(-?[$0-9.,]{2,})|(-?[0-9]+)", r"\(([A-Z])\)", r"[Aa]nswer is\s*(.*)", r"\d*",
     r"(a)?(b)?", r"(?i)guilty( of romance)?", r"([A-D])(?=\s|$)", r"^(.)", r"\b\w+\b"]
)  # fmt: skip
STEPS = st.one_of(
    st.fixed_dictionaries(
        {
            "function": st.just("regex"),
            "regex_pattern": PATTERNS,
            "group_select": st.sampled_from([0, -1]),
            "fallback": st.sampled_from(["[invalid]", " B "]),
        }
    ),
    st.sampled_from(["remove_whitespace", "lowercase", "uppercase", "format_span"]).map(lambda f: {"function": f}),
)
OPTIONS = st.fixed_dictionaries(
    {
        "function": st.just("multi_choice_regex"),
        "regex_pattern": PATTERNS,
        "group_select": st.sampled_from([0, -1]),
        "ignore_case": st.booleans(),
        "ignore_punctuation": st.booleans(),
        "regexes_to_ignore": st.sampled_from([None, ["the ", r"\d"]]),
    }
)
LAST = st.sampled_from(
    [
        [],
        [{"function": "regex_pos"}],
        [{"function": "map", "mapping_dict": {"12": 5, "B": "right", "": "empty"}, "default_value": "none of them"}],
        [{"function": "majority_vote"}],
        [{"function": "take_first_k", "k": 2}],
        [{"function": "take_first_k", "k": 3}, {"function": "majority_vote"}, {"function": "take_first"}],
        [{"function": "take_first"}],
    ]
)


def same_as_theirs(texts: list[str], steps: list[dict[str, Any]]) -> None:
    from lm_eval.filters import build_filter_ensemble

    class Instance:
        resps, doc, filtered_resps = texts, {"choices": list(CHOICES)}, dict[str, Any]()

    components = [(step["function"], {k: v for k, v in step.items() if k != "function"}) for step in steps]
    build_filter_ensemble("theirs", components).apply([Instance()])  # type: ignore[list-item, arg-type]
    theirs = Instance.filtered_resps["theirs"]
    [ours] = pipelines([{"name": "ours", "filter": steps}])
    values = ours._run(texts, CHOICES)  # what `all` gives says nothing of "" and "[invalid]"
    assert values == ([theirs] if steps and steps[-1]["function"] == "take_first" else list(theirs))


@given(st.lists(TEXTS, min_size=3, max_size=5), st.lists(STEPS, max_size=3), LAST)
@settings(max_examples=examples(200), deadline=None)
def test_every_step_gives_what_lm_evals_gives(texts: list[str], steps: list[Any], last: list[Any]) -> None:
    same_as_theirs(texts, [*steps, *last])


@pytest.mark.slow
@given(st.lists(TEXTS, min_size=20, max_size=20), OPTIONS)
@example(["Guilty of Romance"] * 3, {"function": "multi_choice_regex"})
@settings(max_examples=examples(6), deadline=None)  # lm-eval walks through all of Unicode each time
def test_options_are_found_as_lm_eval_finds_them(texts: list[str], step: dict[str, Any]) -> None:
    same_as_theirs(texts, [step])


GSM: list[dict[str, Any]] = [
    {
        "name": "strict",
        "filter": [{"function": "regex", "regex_pattern": r"#### (-?\d+)"}, {"function": "take_first"}],
    },
    {
        "name": "flexible",
        "filter": [
            {"function": "regex", "regex_pattern": r"(-?\d+)", "group_select": -1},
            {"function": "take_first"},
        ],
    },
]
MAJORITY = [
    {"function": "regex", "regex_pattern": r"#### (-?\d+)"},
    {"function": "take_first_k", "k": 3},
    {"function": "majority_vote"},
    {"function": "take_first"},
]


@pytest.fixture
def sums(tmp_path: Path) -> Callable[..., Any]:
    file = jsonl(tmp_path / "test.jsonl", [{"q": "1 + 1?", "a": "2"}, {"q": "2 + 2?", "a": "4"}])

    def task(**more: Any) -> Any:
        return task_of(
            data_files=str(file), doc_to_text="q", doc_to_target="a", **{"metric_list": ["exact_match"], **more}
        )

    return task


def said(task: Any, case: Case, text: str) -> Any:
    """The action that counts when a model has written a text and is not asked again."""
    parsed = ballot(task, case, "Agent-0").parse(text)
    return parsed.action if parsed.error is None else parsed.fallback_action


def test_several_filters_each_have_their_grades(sums: Callable[..., Any]) -> None:
    task = sums(filter_list=GSM)
    case = cases(task)[0]
    grade = graded(task, case, said(task, case, "1 + 1 is 2"))
    assert (grade["exact_match,strict"], grade["exact_match,flexible"]) == (0.0, 1.0)
    assert (grade["score"], grade["answered"]) == (0.0, 0.0)
    grade = graded(task, case, said(task, case, "#### 2, not 3"), said(task, case, "#### 2"))
    assert (grade["exact_match,strict"], grade["exact_match,flexible"]) == (1.0, 0.5)
    assert (grade["correct"], grade["answered"]) == (2, 1.0)
    assert {"exact_match,strict", "exact_match,flexible", "score"} <= set(task.grades)


def test_what_is_voted_on_is_the_first_filters_answer(sums: Callable[..., Any]) -> None:
    task = sums(filter_list=GSM)
    case = cases(task)[0]
    replies = [said(task, case, text) for text in ("so #### 3", "I say #### 2", "hence: #### 2", "seven", "seven")]
    assert replies[1] == "I say #### 2"
    assert task.canonical(case, replies[1]) == "2"
    count = majority(task, case, replies)
    assert count.weights == {"3": 1.0, "2": 2.0}
    assert task.grade(case, Outcome({}, count.answer, {"history": [replies]}))["exact_match,strict"] == 1.0


def test_samples_go_through_a_filter_that_chooses(sums: Callable[..., Any]) -> None:
    task = sums(filter_list=[{"name": "maj@3", "filter": MAJORITY}])
    case = cases(task)[0]
    replies = [said(task, case, f"#### {n}") for n in (2, 5, 2, 5, 5)]
    grade = graded(task, case, *replies)
    assert (grade["exact_match"], grade["score"], grade["correct"], grade["samples"]) == (1.0, 1.0, 2, 5)
    assert graded(task, case, *replies[1:4])["score"] == 0.0
    with pytest.raises(PluginError, match="the filter maj@3 needs 3 replies to a question, and there are 2"):
        graded(task, case, *replies[:2])
    assert graded(task, case, "#### 2", group="#### 2")["score"] == 1.0  # a panel's answer is one reply


def test_a_filter_alone_that_takes_each_reply_makes_the_answer(sums: Callable[..., Any]) -> None:
    task = sums(filter_list=[{"filter": [{"function": "uppercase"}, *GSM[0]["filter"]]}])
    case = cases(task)[0]
    assert said(task, case, "so #### 2") == "2"
    parsed = task.reply(case, "Agent-0").parse("two")
    assert (parsed.action, parsed.error) == (None, "the filter none finds no answer in the reply")
    mapping = {"function": "map", "mapping_dict": {"two": 2}, "default_value": 0}
    task = sums(filter_list=[{"name": "words", "filter": [{"function": "lowercase"}, mapping]}])
    assert graded(task, case, said(task, case, "TWO"), said(task, case, "three"))["score"] == 0.5
    task = sums(filter_list=[{"filter": [{"function": "regex", "regex_pattern": "x", "fallback": "2"}]}])
    assert graded(task, case, said(task, case, "anything"))["score"] == 1.0


@pytest.mark.slow
def test_an_expression_without_end_finds_nothing(sums: Callable[..., Any]) -> None:
    task = sums(filter_list=[{"filter": [{"function": "regex", "regex_pattern": "(a+)+$"}]}])
    case = cases(task)[0]
    assert task.reply(case, "Agent-0").parse("a" * 5_000 + "b").error == "the filter none finds no answer in the reply"


def test_options_are_found_by_their_texts(tmp_path: Path) -> None:
    file = jsonl(tmp_path / "test.jsonl", [{"q": "Which?", "choices": ["red", "green"], "a": "(B)"}])
    steps = [{"function": "multi_choice_regex", "regex_pattern": r"\(([A-B])\)", "ignore_case": True}]
    task = task_of(
        data_files=str(file),
        doc_to_text="q",
        doc_to_choice="choices",
        doc_to_target="a",
        filter_list=[{"name": "x", "filter": steps}],
    )
    case = cases(task)[0]
    assert [said(task, case, text) for text in ("Green!", "answer: A", "blue", "red, green")] == [
        "(B)",
        "(A)",
        None,
        "(A)",
    ]
    assert graded(task, case, said(task, case, "GREEN"))["score"] == 1.0


def test_single_keeps_replies_that_the_first_filter_cannot_read(tmp_path: Path) -> None:
    """A whole run: the words have no number, and the second filter takes them as they are."""
    file = jsonl(tmp_path / "test.jsonl", [{"q": f"Say {i}.", "a": "anything"} for i in range(3)])
    any_reply = {"function": "regex", "regex_pattern": "(?s)(.+)"}
    anything = {"function": "map", "mapping_dict": {}, "default_value": "anything"}
    filters = [GSM[0], {"name": "any", "filter": [any_reply, anything]}]
    spec = tmp_path / "filters.yaml"
    spec.write_text(
        f"""name: filters
task: {{use: dataset_qa, data_files: {file}, doc_to_text: q, doc_to_target: a, metric_list: [exact_match],
  filter_list: {filters}}}
protocol: {{use: single, repeats: 2}}
prompts: qa/standard
metrics: [score, {{use: grade, of: "exact_match,any", name: "exact_match,any"}}, parse_failures]
""",
        encoding="utf-8",
    )
    run = harness.evaluate(str(spec), Mock(text="no number"), output_path=tmp_path / "run")
    assert {row["metric"]: row["value"] for row in run.rows} == {
        "score": 0.0,
        "exact_match,any": 1.0,
        "parse_failures": 2.0,
    }


def test_filters_are_checked_before_a_run(tmp_path: Path) -> None:
    file = jsonl(tmp_path / "test.jsonl", [{"q": "1 + 1?", "a": "2"}])
    task = {"use": "dataset_qa", "data_files": str(file), "doc_to_text": "q", "doc_to_target": "a"}
    plan_of({**task, "filter_list": GSM})
    with pytest.raises(PluginError, match="'custom' is not supported"):
        plan_of({**task, "filter_list": [{"name": "x", "filter": [{"function": "custom", "filter_fn": "f"}]}]})
    few = {"use": "single", "repeats": 2}
    with pytest.raises(SpecError, match="a filter of the task takes 3 replies to a question: set repeats to 3 or more"):
        plan_of({**task, "filter_list": [{"name": "maj@3", "filter": MAJORITY}]}, protocol=few)
    plan_of({**task, "filter_list": [{"name": "maj@3", "filter": MAJORITY}]}, protocol={**few, "repeats": 3})
    plan_of({**task, "filter_list": [{"name": "maj@3", "filter": MAJORITY}]}, protocol="vote")
