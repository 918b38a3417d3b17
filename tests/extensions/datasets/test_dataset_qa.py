"""`dataset_qa`: a data set as a task in YAML alone, with lm-eval's words."""

from pathlib import Path
from typing import Any

import pytest

from harness.api.errors import DataError, PluginError, UserError
from harness.extensions.panels.questions import GRADES
from tests.extensions.datasets.documents_kit import BUILTIN, cases, graded, jsonl, offline, plan_of, task_of
from tests.helpers.commands import invoke

ROWS: list[dict[str, Any]] = [
    {"q": "Which is a fruit?", "options": ["stone", "apple"], "gold": 1, "topic": "food"},
    {"q": "Which is a city?", "options": ["Rome", "Nile", "Alps"], "gold": 0, "topic": "places"},
    {"q": "Which swims?", "options": ["cat", "cod"], "gold": 1, "topic": "food"},
]


def choices(tmp_path: Path, **more: Any) -> Any:
    file = jsonl(tmp_path / "test.jsonl", ROWS)
    parameters = {"data_files": str(file), "doc_to_text": "{{q}}", "doc_to_target": "gold", "doc_to_choice": "options"}
    return task_of(**{**parameters, "answer": {"form": "letter"}, **more})


def test_options_are_listed_and_answers_are_letters(tmp_path: Path) -> None:
    task = choices(tmp_path, labels={"topic": "topic"})
    first, second, _ = cases(task)
    context = task.context(first, "Agent-0")
    assert (
        context["question"] == "Which is a fruit?\nA. stone\nB. apple" and "The answer is (X)" in context["instruction"]
    )
    assert (first.id, second.id, first.labels) == ("0", "1", {"topic": "food"})
    assert task.reply(first, "Agent-0").options == ("A", "B") and task.reply(second, "Agent-0").options == (
        "A",
        "B",
        "C",
    )
    assert graded(task, first, task.reply(first, "Agent-0").parse("I think the answer is (B).").action)["score"] == 1
    expected = {"exact_match": 0, "score": 0, "samples": 1, "correct": 0, "answered": 1}
    assert graded(task, first, "A") == {**expected, **dict.fromkeys(GRADES)}
    assert graded(task, first, None)["answered"] == 0


@pytest.mark.parametrize(
    ("choice", "target", "right"),
    [
        ("options", "gold", "B"),
        ("options", "{{ options[gold] }}", "B"),
        ("options", "{{ 'AB'[gold] }}", "B"),
        ("{{ options }}", "{{ gold }}", "B"),
        (["stone", "apple"], 1, "B"),
    ],
)
def test_choices_and_targets_as_lm_eval_writes_them(tmp_path: Path, choice: Any, target: Any, right: str) -> None:
    task = choices(tmp_path, doc_to_choice=choice, doc_to_target=target)
    assert cases(task, 1)[0].target == {"answers": [right]}


def test_a_whole_number_is_an_index_whatever_the_options_are(tmp_path: Path) -> None:
    def right(options: list[str], target: Any, template: str = "gold") -> str:
        row = {"q": "?", "options": options, "gold": target, "key": "B", "labels": ["A", "B"]}
        task = choices(tmp_path, data_files=str(jsonl(tmp_path / "own.jsonl", [row])), doc_to_target=template)
        [answer] = cases(task)[0].target["answers"]
        return str(answer)

    assert right(["1", "2", "3", "4"], 1) == right(["4", "1", "2", "0"], "1") == "B"
    assert right(["1", "2"], None, "{{ labels.index(key) }}") == "B"
    assert right(["10", "20"], "20") == "B", "no index: a text"
    assert right(["B", "A"], "A") == "B" and right(["x", "y"], "B") == "B", "a text before a letter"


@pytest.mark.parametrize(
    ("answer", "given", "right"),
    [
        ({"form": "letter", "options": 4}, "b", "B"), ({"form": "letter", "options": 4}, "(B)", "B"),
        ({"form": "letter", "options": 4}, 1, "B"), ({"form": "label", "labels": ["yes", "no"]}, "Yes", "yes"),
        ({"form": "label", "labels": ["yes", "no"]}, 1, "no"), ({"form": "number"}, "1,000", "1000"),
        ({"form": "number", "percent": True}, "12%", "0.12"), ({"form": "text"}, "Paris", "Paris"),
    ],
)  # fmt: skip
def test_right_answers_are_in_the_forms_own_spelling(tmp_path: Path, answer: Any, given: Any, right: str) -> None:
    file = jsonl(tmp_path / "test.jsonl", [{"q": "?", "a": given}])
    task = task_of(data_files=str(file), doc_to_text="q", doc_to_target="a", answer=answer)
    [case] = cases(task)
    assert case.target["answers"] == [right]
    text = task.reply(case, "Agent-0").parse(f"The answer is {right}.").action if answer["form"] != "text" else right
    assert graded(task, case, text)["score"] == 1


def test_votes_are_counted_as_answers_are_graded(tmp_path: Path) -> None:
    file = jsonl(tmp_path / "test.jsonl", [{"q": "?", "a": "Paris"}])
    metric = {"metric": "exact_match", "ignore_case": True}
    task = task_of(
        data_files=str(file), doc_to_text="q", doc_to_target="a", answer={"form": "text"}, metric_list=[metric]
    )
    [case] = cases(task)
    assert len({task.canonical(case, text) for text in ("Paris", "paris", "PARIS")}) == 1


def test_comparing_formulas_is_no_work_for_the_event_loop(tmp_path: Path) -> None:
    file = jsonl(tmp_path / "test.jsonl", [{"q": "?", "a": "1"}])
    for form, grading in (("boxed", "slow"), ("text", "quick")):
        task = task_of(data_files=str(file), doc_to_text="q", doc_to_target="a", answer={"form": form})
        assert task.grading == grading


def test_letters_that_stand_in_the_question_are_not_listed_again(tmp_path: Path) -> None:
    task = choices(tmp_path, doc_to_text="{{q}} (A) {{options[0]}} (B) {{options[1]}}", doc_to_choice=["A", "B"])
    assert task.context(cases(task, 1)[0], "Agent-0")["question"] == "Which is a fruit? (A) stone (B) apple"


def test_examples_stand_before_the_question_and_never_the_question_itself(tmp_path: Path) -> None:
    train = str(jsonl(tmp_path / "train.jsonl", ROWS))
    files = {"test": str(tmp_path / "test.jsonl"), "train": train}
    more = {"data_files": files, "num_fewshot": 1, "fewshot_split": "train", "description": "Choose.\n\n"}
    first = {**more, "fewshot_config": {"sampler": "first_n"}}
    one, two, _ = [case.public["question"] for case in cases(choices(tmp_path, **first))]
    assert two == (
        "Choose.\n\nWhich is a fruit?\nA. stone\nB. apple B\n\nWhich is a city?\nA. Rome\nB. Nile\nC. Alps"
    ), "the first row"
    assert one.startswith("Choose.\n\nWhich is a city?") and one.count("Which is a fruit?") == 1, "the first but itself"
    drawn = [case.public["question"] for case in cases(choices(tmp_path, **more))]
    assert drawn == [case.public["question"] for case in cases(choices(tmp_path, **more))], "the same for a seed"
    assert all(question.count(row["q"]) == 1 for question, row in zip(drawn, ROWS, strict=True))
    same = {**more, "fewshot_config": {"sampler": "first_n", "same": "topic"}}
    assert "Which swims?" in cases(choices(tmp_path, **same), 1)[0].public["question"], "of its own topic"
    with pytest.raises(DataError, match="1 examples are needed, but train has only 0 others with the topic 'places'"):
        cases(choices(tmp_path, **same))
    written = {**more, "fewshot_config": {"samples": ROWS[:2]}, "fewshot_split": None}
    assert "Which is a fruit?" in cases(choices(tmp_path, **written))[1].public["question"]


def test_rows_can_be_chosen_and_columns_made_in_yaml(tmp_path: Path) -> None:
    docs = {"where": "{{ topic == 'food' }}", "set": {"shout": "{{ q | upper }}"}}
    task = choices(tmp_path, doc_to_text="shout", process_docs=docs)
    assert [case.public["question"].split("\n")[0] for case in cases(task)] == ["WHICH IS A FRUIT?", "WHICH SWIMS?"]


def test_a_question_has_one_agent_and_may_have_many_answers(tmp_path: Path) -> None:
    task = choices(tmp_path)
    case = cases(task, 1)[0]
    assert case.agents == ("Agent-0",)
    assert graded(task, case, "B", "A", "B")["score"] == pytest.approx(2 / 3)
    assert graded(task, case, "B", "A", "B")["correct"] == 2
    assert graded(task, case, "A", "A", "B", group="B", samples=False)["score"] == 1, "the group's answer counts"
    assert graded(task, case, "A", "A", "B", group=None, samples=False)["score"] == 0, "no decision is wrong"


METRICS: list[tuple[Any, str, str, float]] = [
    ("exact_match", " Paris ", "Paris", 1),
    ("exact_match", "paris", "Paris", 0),
    (
        {"metric": "exact_match", "ignore_case": True, "aggregation": "mean", "higher_is_better": True},
        "paris",
        "Paris",
        1,
    ),
    ({"metric": "exact_match", "ignore_punctuation": True}, "P.a;ris", "Paris", 1),
    ({"metric": "exact_match", "regexes_to_ignore": ["[0-9]+ "]}, "12 Paris", "Paris", 1),
    ({"metric": "number_equal", "tolerance": 0.1}, "3.05", "3", 1),
    ({"metric": "number_equal", "relative": 0.01}, "100.5", "100", 1),
    ("number_equal", "1,000", "1000", 1),
    ("number_equal", "none", "1000", 0),
    ("math_strict", r"\frac12", "0.5", 1),
    ("math_equal", "(x+1)^2", "x^2+2x+1", 1),
    ("math_equal", "x", "y", 0),
]


@pytest.mark.parametrize(("metric", "answer", "target", "expected"), METRICS)
def test_metrics(tmp_path: Path, metric: Any, answer: str, target: str, expected: float) -> None:
    file = jsonl(tmp_path / "test.jsonl", [{"q": "?", "a": target}])
    task = task_of(
        data_files=str(file), doc_to_text="q", doc_to_target="a", answer={"form": "text"}, metric_list=[metric]
    )
    assert graded(task, cases(task)[0], answer)["score"] == expected


def test_any_of_several_right_answers_will_do(tmp_path: Path) -> None:
    file = jsonl(tmp_path / "test.jsonl", [{"q": "?", "a": ["Rome", "Roma"]}])
    task = task_of(data_files=str(file), doc_to_text="q", doc_to_target="a", answer={"form": "text"})
    assert [graded(task, cases(task)[0], arguments)["score"] for arguments in ("Roma", "Rome", "rome")] == [1, 1, 0]


@pytest.mark.parametrize(
    "target",
    ["answer", "{{ answer }}", "{{answer.aliases}}", "['Paris', '{{ answer.aliases[1] }}']",
     "{{ [answer.aliases[0]] + answer.aliases[1:] }}", "{{ answer.aliases | map('trim') }}"],
)  # fmt: skip
def test_a_list_of_right_answers_is_a_list_of_alternatives(tmp_path: Path, target: str) -> None:
    """TriviaQA's `doc_to_target`, and what else comes to a list in lm-eval."""
    names = ["Paris", "Lutetia"]
    row = {"q": "Capital of France?", "answer": {"aliases": names} if "aliases" in target else names}
    file = jsonl(tmp_path / "test.jsonl", [row])
    task = task_of(data_files=str(file), doc_to_text="q", doc_to_target=target, answer={"form": "text"})
    [case] = cases(task)
    assert case.target["answers"] == names
    assert [graded(task, case, arguments)["score"] for arguments in ("Paris", "Lutetia", str(names))] == [1, 1, 0]


def test_a_text_that_looks_like_a_list_stays_the_text_it_is(tmp_path: Path) -> None:
    """What a program prints, for one: the column's value and its only expression are the text."""
    file = jsonl(tmp_path / "test.jsonl", [{"q": "sorted([2, 1])?", "a": "[1, 2]"}])
    for target in ("a", "{{ a }}"):
        task = task_of(data_files=str(file), doc_to_text="q", doc_to_target=target, answer={"form": "text"})
        assert cases(task)[0].target["answers"] == ["[1, 2]"]


def test_no_right_answer_is_not_the_word_none(tmp_path: Path) -> None:
    file = jsonl(tmp_path / "test.jsonl", [{"q": "?", "a": None}])
    task = task_of(data_files=str(file), doc_to_text="q", doc_to_target="{{ a }}", answer={"form": "text"})
    with pytest.raises(DataError, match="the row has no right answer"):
        cases(task)


def test_line_breaks_at_the_end_of_templates_are_kept(tmp_path: Path) -> None:
    """As in lm-eval: a `|` block of YAML ends with one. BBH's prompts do."""
    file = jsonl(tmp_path / "test.jsonl", [{"q": "Is it?", "a": "yes"}])
    task = task_of(
        data_files=str(file), doc_to_text="Q: {{q}}\nA: Let's think.\n", doc_to_target="{{a}}\n", doc_to_id="{{q}}\n",
        description="Answer.\n\n", labels={"kind": "{{a}}\n"}, answer={"form": "text"}, num_fewshot=1,
        fewshot_config={"samples": [{"q": "Was it?", "a": "no"}]},
    )  # fmt: skip
    [case] = cases(task)
    text = "Answer.\n\nQ: Was it?\nA: Let's think.\n no\n\n\nQ: Is it?\nA: Let's think.\n"
    assert BUILTIN.prompts("qa/standard").render("answer", task.context(case, "Agent-0")) == text
    assert (case.id, case.labels) == ("Is it?", {"kind": "yes"}), "names have none"
    assert graded(task, case, "yes")["score"] == 1


def test_options_stand_directly_below_a_question_that_ends_its_line(tmp_path: Path) -> None:
    for text in ("{{q}}", "{{q}}\n"):
        assert (
            cases(choices(tmp_path, doc_to_text=text))[0].public["question"].startswith("Which is a fruit?\nA. stone")
        )
    task = choices(tmp_path, doc_to_text="{{q}} {{ options | join(' or ') }}?", list_choices=False)
    assert cases(task)[0].public["question"] == "Which is a fruit? stone or apple?"


def test_the_description_is_a_template_over_the_row(tmp_path: Path) -> None:
    task = choices(tmp_path, description="Of {{ topic }}.\n")
    assert [case.public["question"].split("\n")[0] for case in cases(task)] == ["Of food.", "Of places.", "Of food."]
    assert cases(choices(tmp_path, description="Choose"))[0].public["question"].startswith("ChooseWhich"), "a bare word"
    assert "uses the column 'topci', which the data does not have" in wrong(tmp_path, description="{{ topci }}")


MODULE = """
import datasets
import evaluate


class Shouts(evaluate.Metric):
    def _info(self):
        features = datasets.Features({"predictions": datasets.Value("string"), "references": datasets.Value("string")})
        return evaluate.MetricInfo(description="", citation="", inputs_description="", features=features)

    def _compute(self, predictions, references, times=1):
        return {"shouts": times * float(predictions[0] == references[0].upper())}
"""


@pytest.mark.slow
def test_a_local_metric_module_of_the_evaluate_library(tmp_path: Path) -> None:
    (tmp_path / "shouts.py").write_text(MODULE)
    jsonl(tmp_path / "test.jsonl", [{"q": "?", "a": "rome"}])
    code = (
        "from harness.plugins import approvals\n"
        "from tests.extensions.datasets.documents_kit import cases, graded, task_of\n"
        f"folder = {str(tmp_path)!r}\n"
        "leave = approvals.allowing()\n"
        "leave.__enter__()\n"
        "def score(*metrics):\n"
        "    task = task_of(data_files=folder + '/test.jsonl', doc_to_text='q', doc_to_target='a',\n"
        "                   answer={'form': 'text'}, metric_list=list(metrics))\n"
        "    return graded(task, cases(task)[0], 'ROME')\n"
        "found = score('exact_match', {'metric': f'hf:{folder}/shouts.py', 'name': 'shouts', 'times': 0.5})\n"
        "print(found['exact_match'], found['shouts'], found['score'])\n"
        "try: score(f'hf:{folder}/nothing.py')\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    done = offline(code, tmp_path)
    first, second = done.stdout.split("\n", 1)
    assert first == "0.0 0.5 0.0", done.stderr
    assert second.startswith("SetupError") and "local metric module" in second


# --------------------------------------------------------------------------------------- mistakes


def wrong(tmp_path: Path, **more: Any) -> str:
    with pytest.raises(UserError) as caught:
        cases(choices(tmp_path, **more))
    return str(caught.value).replace(str(tmp_path), "")


def step(**settings: Any) -> dict[str, Any]:
    """A task whose answer is read by one step of lm-eval's filters."""
    return {"answer": None, "filter_list": [{"name": "mine", "filter": [{"function": "regex", **settings}]}]}


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"doc_to_text": "{{ qestion }}"}, "uses the column 'qestion', which the data does not have"),
        ({"doc_to_text": "qq"}, "Did you mean q? Available columns: gold, options, q, topic"),
        ({"doc_to_text": "{{ q "}, "doc_to_text, line 1"),
        ({"doc_to_text": "{{ q.x.y }}"}, "doc_to_text: "),
        ({"doc_to_text": "{{ 1 / 0 }}"}, "doc_to_text: division by zero"),
        ({"doc_to_text": "{{ q.__class__.__mro__ }}"}, "doc_to_text: access to attribute"),
        ({"doc_to_target": "7"}, "'7' is none of the choices"),
        ({"doc_to_target": "{{ 'Paris' }}"}, "'Paris' is none of the choices"),
        ({"doc_to_choice": "q"}, "doc_to_choice gives no list of options"),
        ({"answer": {"form": "leter"}}, "there is no answer form 'leter'\n  Did you mean letter?"),
        ({"answer": {}}, "answer has no form"),
        (
            {"answer": {"form": "letter", "option": 3}},
            "the answer form letter: unknown key 'option'. Did you mean options?",
        ),
        ({"answer": {"form": "label"}, "doc_to_choice": None}, "the answer form label needs labels"),
        ({"metric_list": ["exact_mach"]}, "no metric 'exact_mach' for answers\n  Did you mean exact_match?"),
        ({"metric_list": ["acc", "acc_norm"]}, "It needs the likelihood of texts, which replies do not have"),
        (
            {"metric_list": [{"metric": "bleu", "aggregation": "bleu"}]},
            "{use: corpus, of: bleu} under the spec's metrics",
        ),
        ({"metric_list": [{"metric": "exact_match", "ignore": 1}]}, "metric exact_match"),
        ({"metric_list": ["exact_match", "exact_match"]}, "two metrics are called 'exact_match'"),
        ({"metric_list": [{"metric": "exact_match", "name": "score"}]}, "the name 'score' of a metric is taken"),
        ({"metric_list": [{"metric": "exact_match", "ignore_case": "no"}]}, "'ignore_case' must be true or false"),
        ({"metric_list": [{"metric": "exact_match", "regexes_to_ignore": ["("]}]}, "metric exact_match"),
        ({"doc_to_target": None}, "doc_to_target is missing"),
        ({"doc_to_target": "{{ none }}"}, "the row has no right answer"),
        ({"doc_to_text": "{{ '' }}"}, "the row has no question"),
        ({"doc_to_choice": None, "doc_to_target": "topic", "answer": {"form": "number"}}, "'food' is not a number"),
        (
            {"doc_to_choice": None, "doc_to_target": "topic", "answer": {"form": "letter", "options": 3}},
            "not a letter from A",
        ),
        ({"doc_to_choice": None, "doc_to_target": "topic", "answer": {"form": "code"}}, "programs are not graded"),
        ({"answer": {"form": "letter", "options": "x"}}, "'options' must be an integer or empty, found text 'x'"),
        ({"answer": {"form": "text", "stop": "END"}}, "'stop' must be a list, found text 'END'"),
        ({"answer": {"form": "pattern", "pattern": "("}}, "not a regular expression"),
        ({"dataset_kwargs": {"trust_remote_code": True}}, "code that comes with data is not run"),
        ({"process_docs": {"set": 5}}, "process_docs: 'set' must be a mapping"),
        (
            {"answer": None, "filter_list": [{"name": "a", "filter": []}, {"name": "a", "filter": []}]},
            "two filters are called 'a'",
        ),
        ({"answer": None, "filter_list": [{"filter": "x"}]}, "filter_list: 'filter' must be a list"),
        (step(regex_patern="x"), "the filter regex: unknown key 'regex_patern'. Did you mean regex_pattern?"),
        (step(regex_pattern=5), "the filter regex: 'regex_pattern' must be text, found the number 5"),
        (step(group_select="last"), "'group_select' must be an integer, found text 'last'"),
        (step(function="custom", filter_fn="f"), "'custom' is not supported\n  A function is Python"),
        (step(function="take_first_k", k=0), "the filter take_first_k: k is 0, and must be 1 or more"),
        (step(regex_pattern="("), "the filter regex: '(' is not a regular expression"),
        (step(function="take_first", k=3), "the filter take_first: unknown key 'k'"),
        (step(function="regexp"), "the filter 'regexp' is not supported\n  Did you mean regex or"),
        (
            {"answer": None, "filter_list": [{"nmae": "x", "filter": []}]},
            "filter_list: unknown key 'nmae'. Did you mean name?",
        ),
        ({"num_fewshot": 1, "fewshot_config": {"samples": 5}}, "fewshot_config: 'samples' must be a list"),
        ({"num_fewshot": 1, "fewshot_config": {"samples": ROWS, "same": "topc"}}, "same names the column 'topc'"),
        (
            {"metric_list": [{"metric": "exact_match", "aggregation": "median"}]},
            "aggregation 'median' is not supported",
        ),
        ({"doc_to_id": "topic"}, "the id 'food' occurs twice, first at /test.jsonl:1:1"),
        ({"process_docs": {"where": "{{ topic == 'sport' }}"}}, "`process_docs: where` leaves all of them out"),
        ({"process_docs": {"if": "x"}}, "process_docs: unknown key 'if'. Available: set, where."),
        ({"num_fewshot": 2}, "num_fewshot needs rows to take examples from"),
        (
            {"num_fewshot": 9, "fewshot_config": {"samples": ROWS}},
            "9 examples are needed, but fewshot_config has only 2 others",
        ),
        (
            {"num_fewshot": 1, "fewshot_config": {"sampler": "best"}},
            "fewshot_config: 'sampler' is 'best'. Available: default, first_n.",
        ),
        (
            {"num_fewshot": 1, "fewshot_config": {"smples": ROWS}},
            "fewshot_config: unknown key 'smples'. Did you mean samples",
        ),
    ],
)
def test_mistakes_are_reported(tmp_path: Path, more: dict[str, Any], message: str) -> None:
    assert message in wrong(tmp_path, **more)


def test_an_empty_file_and_a_row_without_an_answer(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("")
    assert "has no rows in the split 'test'" in wrong(tmp_path, data_files=str(tmp_path / "empty.jsonl"))
    file = jsonl(tmp_path / "gap.jsonl", [{"q": "?", "options": ["a", "b"], "gold": None}])
    assert "the row has no right answer" in wrong(tmp_path, data_files=str(file))


def test_validate_points_at_the_parameter(tmp_path: Path) -> None:
    file = jsonl(tmp_path / "test.jsonl", ROWS)
    text = (
        "name: mine\n"
        "task:\n"
        "  use: dataset_qa\n"
        f"  data_files: {file}\n"
        "  doc_to_text: |\n"
        "    {{ q }\n"
        "  doc_to_target: gold\n"
        "  answer: {form: text}\n"
        "protocol: single\nprompts: qa/standard\nmetrics: [score]\n"
    )
    from harness.config import resolve, spec
    from harness.engines.mock import Mock

    (tmp_path / "mine.yaml").write_text(text)
    with pytest.raises(UserError, match=r"mine.yaml:5:\d+: doc_to_text, line 1"):
        resolve.plan(spec.load(str(tmp_path / "mine.yaml"), BUILTIN), BUILTIN, Mock())


def test_a_task_that_is_not_there_is_made_up_for_checking(tmp_path: Path) -> None:
    plan = plan_of({"use": "dataset_qa", "dataset_path": "nobody/has-this", "doc_to_text": "{{a}} {{b}}",
                    "doc_to_target": "c", "answer": {"form": "boxed"}})  # fmt: skip
    from harness.checks.consistency import check_plan

    assert check_plan(plan) == []
    with pytest.raises(PluginError):
        plan_of({"use": "dataset_qa", "doc_to_text": "q", "answer": {"form": "x"}})


OPTIONS = "name: x\ntask:\n  use: dataset_qa\n  data_files: {test: q.csv}\n  doc_to_text: Q\n  doc_to_target: target\n"


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ('["{{A1}}", "{{A2}}"]', ("x.yaml:7:19: doc_to_choice: a list is literal", 'doc_to_choice: "{{[A1, A2]}}"')),
        ('["no", "Not {{A2}}"]', ("x.yaml:7:25: doc_to_choice: a list is literal",)),
        (
            '"{{[A1, A4]}}"',
            ("doc_to_choice uses the column 'A4', which the data does not have", "Available columns: A1, A2, Q"),
        ),
        ('"{{[A1, targett]}}"', ("uses the column 'targett'", "Did you mean target?")),
        ('"{{[A1, A2[9:], B]}}"', ("doc_to_choice uses the column 'B'", "Available columns: A1, A2, Q, target")),
        ('"{{[A1, 1 / 0]}}"', ("doc_to_choice: division by zero",)),
    ],
)
def test_mistakes_in_options_of_several_columns(
    options: str, says: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Key, columns, a near match, what to write; no class or file of the harness."""
    (tmp_path / "q.csv").write_text("Q,A1,A2,target\nWhat?,a,b,a\n")
    text = OPTIONS.replace("q.csv", str(tmp_path / "q.csv"))
    (tmp_path / "x.yaml").write_text(
        f"{text}  doc_to_choice: {options}\n  answer: {{form: letter}}\nprotocol: single\n"
    )
    code, _, err = invoke(capsys, "validate", str(tmp_path / "x.yaml"))
    assert code == 2 and all(one in err for one in says), err
    assert "Error" not in err and ".py:" not in err
