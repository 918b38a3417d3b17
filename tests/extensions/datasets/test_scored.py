"""`scoring: loglikelihood`: the options' log-likelihoods decide, and no model writes anything."""

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.api import Outcome, Turn
from harness.api.errors import DataError, PluginError, UserError
from harness.checks.estimate import estimate
from harness.cli import main
from harness.engines.likelihoods import LikelihoodRequest, Likelihoods, likelihoods_of
from harness.engines.mock import Mock
from harness.extensions.panels.questions import GRADES
from tests.extensions.datasets.documents_kit import BUILTIN, cases, graded, jsonl, plan_of, task_of
from tests.helpers.mock_scores import mock_scores

ROWS: list[dict[str, Any]] = [
    {"q": "Which is a fruit?", "options": ["a stone", "fig"], "gold": 1, "category": "food"},
    {"q": "Which is a city?", "options": ["Rome", "the Nile", "Alps"], "gold": 0, "category": "places"},
]
KEYS = {"doc_to_text": "{{q}}", "doc_to_target": "gold", "doc_to_choice": "options", "scoring": "loglikelihood"}


def task(tmp_path: Path, name: str = "dataset_qa", rows: Any = ROWS, **more: Any) -> Any:
    return task_of(name, data_files=str(jsonl(tmp_path / "test.jsonl", rows)), **{**KEYS, **more})


def likely(*values: float) -> list[list[float | bool]]:
    return [[value, False] for value in values]


def texts(reply: Any) -> list[tuple[str, Any]]:
    return [(text.text, text.context) for text in reply.continuations]


def test_letters_are_scored_below_the_listed_options(tmp_path: Path) -> None:
    made = task(tmp_path, num_fewshot=1, fewshot_split="test")
    first, second = cases(made)
    context = made.context(first, "Agent-0")
    assert context["question"] == (
        "Which is a city?\nA. Rome\nB. the Nile\nC. Alps\nAnswer: A\n\nWhich is a fruit?\nA. a stone\nB. fig\nAnswer:"
    )
    assert context["instruction"] == "" and not made.writes_text and made.question_of(first).choices
    assert isinstance(made.reply(first, "Agent-0"), Likelihoods)
    assert texts(made.reply(second, "Agent-0")) == [("A", None), ("B", None), ("C", None)]


def test_what_writes_nothing_needs_no_max_tokens(tmp_path: Path) -> None:
    file = str(jsonl(tmp_path / "test.jsonl", ROWS))
    written = {"answer": {"form": "label", "labels": ["A", "B"]}, "doc_to_text": "{{q}}", "doc_to_target": "{{gold}}"}
    for keys, most in ((KEYS, 0), (written, None)):
        plan = plan_of({"use": "dataset_qa", "data_files": file, **keys})
        figures = estimate(plan)
        assert (figures.max_tokens, figures.most_output_tokens == 0) == (most, most == 0)


def test_texts_are_scored_behind_the_bare_question(tmp_path: Path) -> None:
    made = task(tmp_path, continuation="text", num_fewshot=1, fewshot_split="test", doc_to_text="{{q}}\nAnswer:")
    [first, _] = cases(made)
    question = "Which is a city?\nAnswer: Rome\n\nWhich is a fruit?\nAnswer:"
    assert made.context(first, "Agent-0")["question"] == question
    assert texts(made.reply(first, "Agent-0")) == [("a stone", None), ("fig", None)]


def test_labels_are_scored_as_they_are(tmp_path: Path) -> None:
    made = task(tmp_path, answer={"form": "label", "labels": ["Yes", "No"]}, doc_to_choice=None, doc_to_target="gold")
    first = cases(made)[0]
    assert texts(made.reply(first, "Agent-0")) == [("Yes", None), ("No", None)]
    assert graded(made, first, likely(-2, -1))["acc"] == 1
    built_in = task_of("legalbench", data_files="tests/data/legalbench.jsonl", scoring="loglikelihood")
    assert "acc" in built_in.grades and "exact_match" not in built_in.grades
    assert built_in.context(cases(built_in)[0], "Agent-0")["question"].endswith("Allowed answers: Yes, No\nAnswer:")


def test_accuracy_is_of_the_likeliest_option_and_acc_norm_of_that_by_character(tmp_path: Path) -> None:
    made = task(tmp_path, continuation="text")
    first = cases(made)[0]  # "a stone", 7 characters, and "fig", 3, which is right
    grade = graded(made, first, likely(-7.7, -6.0))
    shares = [math.exp(-1.7) / (1 + math.exp(-1.7)), 1 / (1 + math.exp(-1.7))]
    assert (grade["acc"], grade["acc_norm"], grade["score"]) == (1, 0, 1)
    assert grade["brier_score"] == pytest.approx(shares[0] ** 2 + (1 - shares[1]) ** 2)
    assert (grade["samples"], grade["correct"], grade["answered"]) == (1, 1, 1)
    assert set(grade) == set(made.grades) == {"acc", "acc_norm", "brier_score", *grade.keys()} | set(GRADES)
    assert graded(made, first, likely(-1.0, -1.0))["acc"] == 0, "the first of equally likely ones"
    assert graded(made, first, None)["score"] == 0
    assert graded(made, first, likely(-math.inf, -math.inf)) | {"brier_score": 0} == {
        **graded(made, first, None), "answered": 1, "brier_score": 0
    }  # fmt: skip
    assert (
        made.canonical(first, likely(-7.7, -6.0)) == "B" and made.canonical(first, likely(-math.inf, -math.inf)) == ""
    )


def test_the_first_metric_decides_what_a_vote_counts(tmp_path: Path) -> None:
    made = task(tmp_path, continuation="text", metric_list=["acc_norm", {"metric": "acc", "higher_is_better": True}])
    first = cases(made)[0]
    votes = [likely(-7.7, -6.0), likely(-1.0, -6.0), likely(-6.0, -1.0)]
    assert [made.canonical(first, action) for action in votes] == ["A", "A", "B"]
    group = made.grade(first, Outcome(dict(enumerate("abc")), votes[0], {"history": [votes]}))  # type: ignore[arg-type]
    assert (group["acc_norm"], group["score"], group["available"]) == (0, 0, 1)
    assert group["acc"] is None, "log-likelihoods are their model's, not the group's"


@pytest.mark.parametrize(
    ("parameters", "why"),
    [
        ({"answer": {"form": "boxed"}}, "answers of the form 'boxed' have none"),
        ({"answer": {"form": "label", "labels": ["y", "n"]}, "continuation": "letter"}, "have no letters"),
        ({"scoring": None, "continuation": "text"}, "continuation says which texts are scored; nothing is"),
        ({"metric_list": ["exact_match"]}, "no metric 'exact_match' for log-likelihoods"),
        ({"metric_list": [{"metric": "acc", "ignore_case": True}]}, "no parameter 'ignore_case'"),
        ({"metric_list": ["acc", "acc"]}, "twice"),
        ({"metric_list": [{"metric": "acc", "aggregation": "median"}]}, "'median' is not supported"),
    ],
)
def test_what_cannot_be_scored_is_said_at_once(tmp_path: Path, parameters: dict[str, Any], why: str) -> None:
    with pytest.raises(PluginError, match=why):
        task(tmp_path, **parameters)


def test_an_empty_option_names_its_row(tmp_path: Path) -> None:
    rows = [{"q": "?", "options": ["x", " "], "gold": 0}]
    with pytest.raises(DataError, match=r"test\.jsonl:1.*an option is empty"):
        cases(task(tmp_path, rows=rows, continuation="text"))
    assert len(cases(task(tmp_path, rows=rows))) == 1


def test_mmlu_pro_asks_for_no_reasoning_where_it_is_scored() -> None:
    more = {"data_files": "tests/data/mmlu_pro.jsonl", "scoring": "loglikelihood", "num_fewshot": 1}
    shots = {"samples": [{"question": "1+1?", "options": ["2", "3"], "answer": "A", "category": "math"}]}
    made = task_of("mmlu_pro", **more, fewshot_config=shots)
    header = "The following are multiple choice questions (with answers) about math.\n\n"
    question = made.context(cases(made)[0], "Agent-0")["question"]
    shown = "Question:\n1+1?\nOptions:\nA. 2\nB. 3\nAnswer: A\n\n"
    assert question.startswith(header + shown) and question.endswith("\nC. 3\nAnswer:") and "step" not in question
    bare = task_of("mmlu_pro", **more, fewshot_config=shots, continuation="text")
    assert bare.context(cases(bare)[0], "Agent-0")["question"].startswith(f"{header}Question:\n1+1?\nAnswer: 2\n\n")


# -------------------------------------------------------------------------------------- in a run


def spec(tmp_path: Path, protocol: Any = "single", prompts: str = "qa/standard", **more: Any) -> dict[str, Any]:
    data = {"data_files": str(jsonl(tmp_path / "test.jsonl", ROWS * 1)), **KEYS}
    return {
        "name": "scored",
        "task": {"use": "dataset_qa", **data},
        "protocol": protocol,
        "prompts": prompts,
        "metrics": ["score", {"use": "grade", "of": "acc_norm", "name": "acc_norm"}],
        "tables": [{"title": "Score", "rows": "model", "columns": "metric", "metrics": ["score"]}],
        **more,
    }


def test_models_score_options_and_their_choices_are_voted_on(tmp_path: Path) -> None:
    seen: list[LikelihoodRequest] = []

    def score(request: LikelihoodRequest) -> list[list[float | bool]]:
        seen.append(request)
        right = "fruit" in request.thread.text and request.id.rpartition("/")[0].count("Agent-2") == 0
        return [[-1.0 if right == bool(i) else -2.0, True] for i in range(len(request.continuations))]

    what = spec(tmp_path, {"use": "vote", "agents": 3}, "panels/standard")
    run = harness.evaluate(what, Mock(function=mock_scores(score)), output_path=tmp_path / "run", project=BUILTIN)
    assert [one.numbers["score"] for one in run.scores] == [1, 1] and len(seen) == 6
    assert {request.thread.messages[0]["content"].strip()[-7:] for request in seen} == {"Answer:"}
    lines = map(json.loads, (tmp_path / "run" / "journal.jsonl").read_text().splitlines())
    votes = [line["outcome"]["facts"]["votes"] for line in lines if line["k"] == "end"]
    assert sorted(votes, key=str) == [{"A": 3.0}, {"B": 2.0, "A": 1.0}]


def test_a_raw_prompt_leaves_the_blank_to_the_continuation(tmp_path: Path) -> None:
    seen: list[tuple[bool, str]] = []

    def score(request: LikelihoodRequest) -> list[list[float | bool]]:
        seen.append((request.thread.chat, request.thread.text[-9:]))
        return likely(*[-1.0] * len(request.continuations))

    harness.evaluate(
        spec(tmp_path, prompts="qa/scored"), Mock(function=mock_scores(score)), project=BUILTIN, output_path=tmp_path
    )
    assert seen == [(False, "\nAnswer: ")] * 2


def test_floors(tmp_path: Path) -> None:
    rng = random.Random(1)
    form = Likelihoods(task(tmp_path, continuation="text").reply(cases(task(tmp_path))[1], "Agent-0").continuations)
    for name in ("random", "uniform"):
        policy = BUILTIN.load("policies", name)()
        draws = [policy.choose(Turn("Agent-0", "answer", {}, form), rng) for _ in range(300)]
        assert all(form.allows(draw) for draw in draws) and likelihoods_of(form) is form
        if name == "uniform":
            assert draws[0] == [[-math.log(256) * 4, False], [-math.log(256) * 8, False], [-math.log(256) * 4, False]]
        else:
            first = [[number for number, _ in draw].index(max(draw)[0]) for draw in draws]
            assert all(70 < first.count(i) < 130 for i in range(3))


def test_simulated_agents_have_their_declared_skill(tmp_path: Path) -> None:
    rows = [{"q": f"{i}?", "options": list("abcd"), "gold": i % 4} for i in range(400)]
    what = spec(
        tmp_path, {"use": "vote", "agents": 1}, "panels/standard", baseline={"use": "simulated", "accuracy": 0.7}
    )
    what["task"]["data_files"] = str(jsonl(tmp_path / "many.jsonl", rows))
    run = harness.evaluate(what, None, output_path=tmp_path / "run", project=BUILTIN)
    assert sum(one.numbers["score"] == 1 for one in run.scores) / 400 == pytest.approx(0.7, abs=0.06)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("protocol", ["debate", "darkforest", "reconcile", "self_refine", "mixture_of_agents"])
def test_protocols_in_which_agents_read_answers_are_refused(tmp_path: Path, protocol: str) -> None:
    with pytest.raises(UserError, match=rf"'{protocol}': its agents read what others answer.*\n.*: single, vote\."):
        harness.evaluate(spec(tmp_path, protocol), Mock(), output_path=tmp_path, project=BUILTIN)


def test_a_confidence_cannot_be_stated_where_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no one states a confidence"):
        harness.evaluate(
            spec(tmp_path, {"use": "vote", "confidence": "line"}), Mock(), output_path=tmp_path, project=BUILTIN
        )


def test_the_shipped_spec_scored_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changes = ["task.scoring=loglikelihood", "task.data_files=tests/data/mmlu_pro.jsonl", "task.num_fewshot=0"]
    options = [word for change in changes for word in ("--set", change)]
    assert (
        main(["eval", "--spec", "mmlu_pro", *options, "--model", "mock", "--output_path", str(tmp_path / "run")]) == 0
    )
    assert "mock" in capsys.readouterr().out
    assert main(["plan", "--spec", "mmlu_pro", *options]) == 0
    assert ", 0 out" in capsys.readouterr().out
    assert main(["show", "--spec", "mmlu_pro", *options, "--case", "0"]) == 0
    assert "Answer:" in capsys.readouterr().out
    assert plan_of({"use": "mmlu_pro", "scoring": "loglikelihood"}).conditions
