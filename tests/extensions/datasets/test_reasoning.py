"""The six reasoning benchmarks and arithmetic, on rows of our own in the data sets' form."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import harness
from harness.api.errors import DataError, SetupError
from harness.config import resolve, spec
from harness.engines.mock import Mock
from tests.extensions.datasets.documents_kit import BUILTIN, ROOT, cases, graded, jsonl, offline, task_of
from tests.helpers.scores import numbers


def one(tmp_path: Path, name: str, *rows: dict[str, Any], **more: Any) -> tuple[Any, Any]:
    """The task over these rows, and its first case."""
    task = task_of(name, data_files=str(jsonl(tmp_path / "rows.jsonl", rows)), **more)
    return task, cases(task, 1)[0]


def said(task: Any, case: Any, text: str) -> Any:
    return task.reply(case, "Agent-0").parse(text).action


# ------------------------------------------------------------------------------------------ MATH


@pytest.mark.parametrize(
    "row",
    [
        {"problem": "Half of one?", "answer": r"\frac{1}{2}", "subject": "Algebra", "level": 1, "unique_id": "a"},
        {"question": "Half of one?", "solution": r"It is $\boxed{\frac12}$.", "type": "Algebra", "level": 1, "id": "a"},
    ],
)
def test_math(tmp_path: Path, row: dict[str, Any]) -> None:
    task, case = one(tmp_path, "math", row)
    assert (case.id, case.labels) == ("a", {"subject": "Algebra", "level": "1"})
    assert "boxed" in task.context(case, "Agent-0")["instruction"] and case.public["question"] == "Half of one?"
    for text, equal, strict in (
        (r"So \boxed{0.5}", 1, 1), (r"\boxed{\frac{2}{4}}", 1, None), (r"\boxed{\frac13}", 0, 0),
        (r"The answer is 1/2.", 1, 1),
    ):  # fmt: skip
        result = graded(task, case, said(task, case, text))
        assert result["math_equal"] == result["score"] == equal, text
        assert strict is None or result["math_strict"] == strict
    assert task.canonical(case, r"\frac12") == task.canonical(case, "0.5")


def test_what_grading_needs_is_reported_before_anything_is_asked(tmp_path: Path) -> None:
    """In a process that cannot find the package."""
    row = {"problem": "?", "answer": "1", "unique_id": "a"}
    file = jsonl(tmp_path / "rows.jsonl", [row])
    code = (
        "import sys; sys.modules['math_verify'] = None\n"
        "import importlib.util as u; find = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'math_verify' else find(name, *a)\n"
        "from tests.extensions.datasets.documents_kit import cases, task_of\n"
        f"try: cases(task_of('math', data_files={str(file)!r}))\n"
        "except Exception as error: print(error)"
    )
    done = offline(code, tmp_path)
    assert "needs the `math-verify` package" in done.stdout and "pip install" in done.stdout, done.stderr


def test_math_without_an_answer(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"rows.jsonl:1:1: the task cannot read the row: no answer"):
        one(tmp_path, "math", {"problem": "?", "solution": "no box"})
    with pytest.raises(DataError, match=r"column 'solution' is missing\n  Available columns: problem."):
        one(tmp_path, "math", {"problem": "?"})


# --------------------------------------------------------------------------------- multiple choice

MMLU = {
    "question_id": 7, "question": "Which is even?", "options": ["1", "3", "4", "N/A"], "answer": "C", "answer_index": 2,
    "cot_content": "A: Let's think step by step. 4 = 2 + 2. The answer is (C).", "category": "math", "src": "x",
}  # fmt: skip


def test_the_prompt_of_mmlu_pro_is_lm_evals_byte_for_byte(tmp_path: Path) -> None:
    """The golden file holds rows of ours, and what lm_eval's own package makes of them."""
    golden = json.loads((ROOT / "tests" / "golden" / "mmlu_pro_lm_eval.json").read_text("utf-8"))
    for split in ("validation", "test"):
        jsonl(tmp_path / f"{split}.jsonl", golden[split])
    for shots, expected in ((5, golden["five_shot"]), (0, golden["zero_shot"])):
        loaded = spec.load("mmlu_pro", BUILTIN, [f"task.data_dir={tmp_path}", f"task.num_fewshot={shots}"])
        [condition] = resolve.plan(loaded, BUILTIN, Mock()).conditions
        prompts = condition.groups[0].prompts
        requests = [prompts.render("answer", condition.task.context(case, "Agent-0")) for case in cases(condition.task)]
        assert requests == expected


def test_mmlu_pro_with_worked_examples_of_the_subject(tmp_path: Path) -> None:
    examples = [{**MMLU, "question": f"Example {i}?", "question_id": i} for i in range(6)]
    others = [{**MMLU, "question": "Another subject?", "category": "law"}]
    jsonl(tmp_path / "validation.jsonl", [*others, *examples])
    jsonl(tmp_path / "test.jsonl", [MMLU])
    task = task_of("mmlu_pro", data_dir=str(tmp_path))
    [case] = cases(task)
    question = case.public["question"]
    assert [f"Example {i}?" in question for i in range(6)] == [True] * 5 + [False] and "Another" not in question
    assert (case.id, case.labels, case.target) == ("7", {"category": "math"}, {"answers": ["C"]})
    assert task.reply(case, "Agent-0").options == ("A", "B", "C", "D"), '"N/A" is an option, as in lm-eval'
    assert graded(task, case, said(task, case, "Two plus two. The answer is (C)."))["score"] == 1


def listing(case: Any) -> str:
    """What stands between the question and the cue."""
    question: str = case.public["question"]
    return question.partition("Options:\n")[2].removesuffix("Answer: Let's think step by step.")


def test_options_within_the_question(tmp_path: Path) -> None:
    row = {
        "question": "Which is (A)? The options are: (A) one (B) see (A) (C) two.",
        "gold_answer": "B",
        "category": "x",
    }
    _, case = one(tmp_path, "mmlu_pro", row, num_fewshot=0)
    assert "\nQuestion:\nWhich is (A)?\nOptions:\n" in case.public["question"]
    assert listing(case) == "A. one\nB. see (A)\nC. two\n"
    with pytest.raises(DataError, match="no options, neither as a column nor within the question"):
        one(tmp_path, "mmlu_pro", {**row, "question": "Which?"}, num_fewshot=0)


@pytest.mark.parametrize(
    ("options", "answer", "shown", "right"),
    [
        ("['x', 'y']", "B", "A. x\nB. y\n", "B"),
        (["B", "A"], "A", "A. B\nB. A\n", "A"),
        (["N/A", "x", "y"], "B", "A. N/A\nB. x\nC. y\n", "B"),
        (["x", "y", "N/A"], "A", "A. x\nB. y\nC. N/A\n", "A"),
        (["A", "B"], "A", "A. A\nB. B\n", "A"),
    ],
)
def test_options_keep_their_letters(tmp_path: Path, options: Any, answer: str, shown: str, right: str) -> None:
    row = {"question": "?", "options": options, "answer": answer, "category": "x"}
    _, case = one(tmp_path, "mmlu_pro", row, num_fewshot=0)
    assert listing(case) == shown and case.target == {"answers": [right]}
    with pytest.raises(DataError, match="no list of options: 'Yes,No'"):
        one(tmp_path, "mmlu_pro", {**row, "options": "Yes,No"}, num_fewshot=0)


def test_gpqa_with_options_that_are_letters(tmp_path: Path) -> None:
    row = {"Question": "Which letter?", "Correct Answer": "C", "Incorrect Answer 1": "A", "Incorrect Answer 2": "B",
           "Incorrect Answer 3": "D"}  # fmt: skip
    _, case = one(tmp_path, "gpqa", row)
    assert case.public["choices"]["ABCD".index(case.target["answers"][0])] == "C"


def test_gpqa_draws_the_order_of_options_once(tmp_path: Path) -> None:
    rows = [
        {"Question": f"Q{i}?", "Correct Answer": "right", "Incorrect Answer 1": "a", "Incorrect Answer 2": "b",
         "Incorrect Answer 3": "c", "Record ID": f"r{i}"}
        for i in range(40)
    ]  # fmt: skip
    task = task_of("gpqa", data_files=str(jsonl(tmp_path / "train.jsonl", rows)))
    result = cases(task)
    assert result == cases(task, seed=1), "whatever the seed of the run"
    assert {case.target["answers"][0] for case in result} == set("ABCD")
    assert all(case.public["choices"]["ABCD".index(case.target["answers"][0])] == "right" for case in result)
    given = {"question": "Q? The options are: (A) x (B) y (C) z (D) w.", "gold_answer": "D"}
    _, case = one(tmp_path, "gpqa", given)
    assert case.public["choices"] == ["x", "y", "z", "w"] and case.target == {"answers": ["D"]}


def test_legalbench(tmp_path: Path) -> None:
    row = {"id": 3, "task": "hearsay", "text": "Is it hearsay?", "answer": "yes", "answer_choices": ["Yes", "No"]}
    task, case = one(tmp_path, "legalbench", row)
    assert case.public["question"] == "Is it hearsay?\n\nAllowed answers: Yes, No"
    assert (case.labels, case.target) == ({"legal_task": "hearsay"}, {"answers": ["Yes"]})
    for text, score in (("Final Answer: yes", 1), ("**Final Answer:** No", 0), ("Yes, because …", 1), ("maybe", 0)):
        assert graded(task, case, said(task, case, text))["score"] == score, text
    bare = {"text": "?", "answer": "A"}
    task, case = one(tmp_path, "legalbench", bare, answer={"form": "label", "labels": ["A", "B"]})
    assert graded(task, case, said(task, case, "Answer: (A)"))["score"] == 1
    with pytest.raises(DataError, match="no answer_choices in this row, though others have them"):
        cases(task_of("legalbench", data_files=str(jsonl(tmp_path / "mixed.jsonl", [row, bare]))))


def test_legalbench_as_the_hub_has_it(tmp_path: Path) -> None:
    rows = [{"text": f"Mark {i}?", "answer": ["generic", "arbitrary"][i % 2]} for i in range(4)]
    _, case = one(tmp_path, "legalbench", *rows, dataset_name="abercrombie")
    assert case.public["choices"] == ["arbitrary", "generic"] and case.labels == {"legal_task": "abercrombie"}
    free = [{"text": "?", "answer": f"answer {i}"} for i in range(50)]
    with pytest.raises(DataError, match="50 different answers: no labels"):
        one(tmp_path, "legalbench", *free)


# ----------------------------------------------------------------------------------------- FinQA

FINQA = {
    "id": 0, "question": "By what share did it grow?", "context": "It was 40 and is 50.",
    "gold_program": "subtract(50, 40), divide(#0, 40)", "gold_execution_answer": 0.25, "gold_answer": "25%",
}  # fmt: skip


def test_finqa(tmp_path: Path) -> None:
    task, case = one(tmp_path, "finqa", FINQA)
    assert "It was 40 and is 50." in case.public["question"]
    for text, execution, program in (
        ("Program: subtract(50, 40), divide(#0, 40)", 1, 1),
        ("Program: divide(subtract(50, 40), 40)", 1, 1),
        ("Program: divide(10, 40)", 1, 0),
        ("Program: divide(40, 50)", 0, 0),
        ("Program: divide(1, 0)", 0, 0),
    ):
        result = graded(task, case, said(task, case, text))
        assert (result["execution"], result["program"], result["score"]) == (execution, program, execution), text
    assert task.canonical(case, "subtract(0, 0)") == task.canonical(case, "multiply(0, -1)")
    assert task.canonical(case, "divide(10, 40)") == task.canonical(case, "divide(1, 4)")
    assert said(task, case, "It grew a lot.") is None


def test_finqa_as_the_hub_has_it(tmp_path: Path) -> None:
    row = {"id": "x", "pre_text": ["Before."], "post_text": ["After."], "table": [["", "2010"], ["sales", "12"]],
           "qa": {"question": "Sales?", "program": "table_max(sales, none)", "exe_ans": 12.0}}  # fmt: skip
    task, case = one(tmp_path, "finqa", row)
    assert "Before.\n | 2010\nsales | 12\nAfter." in case.public["question"]
    assert graded(task, case, said(task, case, "Program: table_max(sales, none)"))["execution"] == 1


# ------------------------------------------------------------------------------------- HumanEval

HUMAN = {
    "task_id": "Own/0", "entry_point": "double", "prompt": 'def double(x: int) -> int:\n    """Twice x."""\n',
    "canonical_solution": "    return 2 * x\n",
    "test": "def check(candidate):\n    assert candidate(2) == 4\n    assert candidate(0) == 0\n",
}  # fmt: skip
RIGHT = "```python\ndef double(x: int) -> int:\n    return x + x\n```"


def test_humaneval_grades_by_running(tmp_path: Path) -> None:
    task, case = one(tmp_path, "humaneval", HUMAN)
    assert task.grading == "executes" and "def double" in case.public["question"]
    for text, passed in (
        (RIGHT, 1),
        ("    return 2 * x", 1),
        ("```\nreturn 2 * x\n```", 1),
        ("return x", 0),
        ("no", 0),
    ):
        assert graded(task, case, said(task, case, text))["score"] == passed, text


def test_programs_run_only_with_permission(tmp_path: Path) -> None:
    file = jsonl(tmp_path / "rows.jsonl", [HUMAN, {**HUMAN, "task_id": "Own/1"}])
    overrides = [f"task.data_files={file}"]
    with pytest.raises(SetupError, match="HumanEval runs programs that models wrote") as caught:
        harness.evaluate("humaneval", Mock(text=RIGHT), overrides=overrides, output_path=tmp_path / "no")
    assert "allow_code_execution=True" in str(caught.value) and not (tmp_path / "no").exists()
    run = harness.evaluate(
        "humaneval", Mock(text=RIGHT), overrides=overrides, output_path=tmp_path / "run", allow_code_execution=True
    )
    assert [score.numbers["pass_at_1"] for score in run.scores] == [1, 1]
    from harness.evaluation.rescore import rescored

    with pytest.raises(SetupError, match="HumanEval runs programs"):
        rescored(tmp_path / "run")
    again = rescored(tmp_path / "run", allow_code_execution=True)
    assert [score.numbers for score in again.scores] == [score.numbers for score in run.scores]


# ------------------------------------------------------------------------------------ arithmetic


@given(st.integers(2, 9), st.integers(1, 5), st.integers(0, 99))
def test_arithmetic_is_right_and_the_calculator_too(terms: int, digits: int, seed: int) -> None:
    task = task_of("arithmetic", size=5, terms=terms, digits=digits)
    for case in cases(task, seed=seed):
        expression = case.public["question"].removeprefix("What is ").removesuffix("?")
        assert expression.count(" ") == 2 * (terms - 1)
        value = eval(expression)
        assert case.target == {"answers": [str(value)]}
        assert graded(task, case, value)["score"] == 1 and graded(task, case, value + 1)["score"] == 0


def test_arithmetic_through_the_front_door(tmp_path: Path) -> None:
    run = harness.evaluate("arithmetic", overrides=["task.size=20"], output_path=tmp_path / "ceiling")
    assert {score.numbers["score"] for score in run.scores} == {1} and len(run.scores) == 60
    wrong = harness.evaluate(
        "arithmetic", Mock(text="The answer is 1"), overrides=["task.size=20"], output_path=tmp_path / "m"
    )
    assert 0 <= sum(numbers(wrong.scores, "score")) < 10
    with pytest.raises(ValueError, match=r"operators must be any of \+ - \*"):
        BUILTIN.load("tasks", "arithmetic")(operators="/")
