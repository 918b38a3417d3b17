"""Tasks of lm-eval in runs of ours: votes, raw replies, mistakes, copies of data, old runs."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import harness
from harness.api import Request
from harness.api.errors import DataError, PluginError, RequestError, UserError
from harness.config.project import builtin
from harness.config.proposals import complete
from harness.config.spec import parse
from harness.engines.mock import Mock
from harness.evaluation.load_run import load_run
from harness.evaluation.rescore import rescored
from harness.evaluation.run import Run
from harness.extensions.yaml_tasks.conformance import check_metric, check_protocol, check_task
from tests.extensions.lm_eval.package_kit import DATA, own_task
from tests.helpers.mock_scores import mock_scores

TASK = builtin().load("tasks", "lm_eval")
SINGLE, VOTE = (builtin().load("protocols", name) for name in ("single", "vote"))


PROGRAMS = """import evaluate

metric = evaluate.load('code_eval')
metric.compute(references=['assert True'], predictions=[['']], k=[1])


def pass_at_k(references, predictions, k):
    return metric.compute(references=references, predictions=[predictions], k=k)[0]
"""


def local(kind: str, **more: Any) -> Any:
    return TASK(task=f"local_{kind}", include_path=str(DATA), **more)


def spec(kind: str, protocol: Any = "single", **more: Any) -> dict[str, Any]:
    task = {"use": "lm_eval", "task": f"local_{kind}", "include_path": str(DATA), **more}
    return {"name": "t", "task": task, "protocol": protocol}


def own(folder: Path, **more: Any) -> dict[str, Any]:
    task = {"use": "lm_eval", "task": "own", "include_path": str(folder), **more}
    return {"name": "t", "task": task, "protocol": "single"}


def run(what: dict[str, Any], folder: Path, model: Any = None) -> Run:
    return harness.evaluate(what, model, output_path=folder, project=builtin())


@pytest.mark.slow
def test_a_discussion_plays_what_is_generated_and_no_scored_options(tmp_path: Path) -> None:
    protocol = {"use": "discussion", "style": "agree", "decision": "vote", "personas": "traits", "max_rounds": 1}
    played = run(spec("majority", protocol), tmp_path / "r", Mock(text="AGREE"))
    assert len(played.scores) > 0 and not played.failed
    with pytest.raises(UserError, match="its agents read what others answer, and this task scores options"):
        run(spec("multiple_choice", protocol), tmp_path / "s", Mock(text="A"))


def values(done: Run, metric: str) -> list[float | None]:
    return [score.number(metric) for score in done.scores]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", ["two_filters", "multiturn", "cloze", "rolling", "group", "choice_list", "macro_f1"])
def test_conformance(kind: str) -> None:
    task = local(kind, apply_chat_template=kind == "multiturn")
    assert check_task(task) == []
    assert check_protocol(SINGLE(), task) == [] == check_protocol(VOTE(agents=3), task)


def test_conformance_of_the_metric() -> None:
    metric = builtin().load("metrics", "lm_eval")
    assert check_metric(metric(metric="f1", aggregation="f1")) == []
    with pytest.raises(PluginError, match="how is one number made of all f1 values"):
        metric(metric="f1")
    with pytest.raises(PluginError, match="no aggregation 'f2'"):
        metric(metric="f1", aggregation="f2").aggregate([1.0])


def test_a_task_travels_without_the_objects_of_the_package() -> None:
    task = local("multiturn", limit=3)
    data = pickle.dumps(task)
    assert len(data) < 5000
    assert list(pickle.loads(data).cases(None, 0)) == list(task.cases(None, 0))


def test_prompts_that_take_too_much_room_are_worked_out_again(tmp_path: Path) -> None:
    task, small = local("multiturn"), local("multiturn")
    leaf = next(iter(small.leaves.values()))
    leaf._room = 500  # a few prompts
    early = small.cases(None, 0)
    first = [next(early) for _ in range(5)]
    assert list(small.cases(None, 0)) == list(task.cases(None, 0)) == [*first, *early]
    assert leaf._requests is None and next(iter(task.leaves.values()))._requests is not None


def test_filters_get_replies_in_which_the_first_finds_nothing(tmp_path: Path) -> None:
    # "first-vowel" reads lower case only; "last-vowel" reads E as well, and the metric ignores case.
    done = run(spec("two_filters", limit=4), tmp_path, Mock(function=lambda request: "E"))
    targets = [case.target["answer"] for case in local("two_filters", limit=4).cases(None, 0)]
    assert values(done, "exact_match,first-vowel") == [0.0] * 4
    assert values(done, "exact_match,last-vowel") == [float(target == "e") for target in targets]
    assert values(done, "answered") == [0.0] * 4 and values(done, "parse_failures") == [1.0] * 4


@pytest.mark.slow
def test_a_vote_counts_filtered_responses(tmp_path: Path) -> None:
    texts = ["It is e.", "e", "XYZ", "hmm, i"]

    def answer(request: Request) -> str:
        return texts[int(request.id.split("/Agent-")[1][0])]

    done = run(spec("two_filters", {"use": "vote", "agents": 4}, limit=6), tmp_path, Mock(function=answer))
    lines = map(json.loads, (tmp_path / "journal.jsonl").read_text("utf-8").splitlines())
    facts = [line["outcome"]["facts"] for line in lines if line["k"] == "end"]
    assert all(fact["votes"] == {"i": 2.0, "e": 1.0} for fact in facts)  # "It is e." has an i first
    targets = [case.target["answer"] for case in local("two_filters", limit=6).cases(None, 0)]
    assert values(done, "exact_match,first-vowel") == [float(target == "i") for target in targets]
    assert done.spec.data["prompts"] == "panels/standard"


def test_another_filter_can_vote(tmp_path: Path) -> None:
    case = next(iter(local("two_filters").cases(1, 0)))
    assert local("two_filters").canonical(case, "a e") == "a"
    assert local("two_filters", filter="last-vowel").canonical(case, "a e") == "e"


def test_a_panels_answer_stands_for_every_repeat_that_filters_expect(tmp_path: Path) -> None:
    done = run(spec("majority", {"use": "vote", "agents": 2}, limit=3), tmp_path, Mock(function=lambda request: "e"))
    assert not done.failed
    assert values(done, "exact_match,maj@3") == values(done, "exact_match,first")


def test_repeats_of_the_task_are_those_of_the_protocol(tmp_path: Path) -> None:
    assert complete(parse(spec("majority"), builtin()), builtin()).data["protocol"] == {"use": "single", "repeats": 5}
    fewer = spec("majority", {"use": "single", "repeats": 2}, limit=1)
    assert complete(parse(fewer, builtin()), builtin()).data["protocol"] == {"use": "single", "repeats": 2}
    done = run(fewer, tmp_path, Mock(text="e"))
    assert "Need at least 3 responses" in str(done.failed[0].error)


@pytest.mark.slow
def test_tasks_with_other_metrics_have_tables_of_their_own(tmp_path: Path) -> None:
    what = spec("cloze", limit=2)
    what["task"]["task"] = ["local_group", "local_rolling", "local_multiple_choice", "local_two_filters"]
    done = run(what, tmp_path, Mock(text="e"))
    titles = [table.title for table in done.tables]
    assert titles == ["topics", "local_rolling", "local_multiple_choice", "local_two_filters", "Replies"]
    assert [row.names[0] for row in done.tables[0].rows][-3:] == ["topics (by size)", "topics (equal)", "nature"]
    assert not any("not reported" in note for table in done.tables[:4] for note in table.notes)
    assert [row.names[0] for row in done.tables[4].rows] == ["local_two_filters"]
    assert done.headline.table.where == {"task": ("local_group_animals", "local_group_rivers", "local_group_numbers")}


def test_random_play_is_a_floor(tmp_path: Path) -> None:
    chance = run(spec("cloze"), tmp_path / "a")
    assert not chance.failed and 0 < sum(value or 0 for value in values(chance, "acc,none")) < 12
    nothing = run(spec("two_filters"), tmp_path / "b")
    assert set(values(nothing, "exact_match,first-vowel")) == {0.0}


def test_a_document_that_no_model_answered_has_no_value(tmp_path: Path) -> None:
    def fail(request: Any) -> Any:
        raise RequestError("no")

    text = run(spec("two_filters", limit=2), tmp_path / "a", Mock(function=lambda r: "e" if "/1/" in r.id else fail(r)))
    assert values(text, "exact_match,first-vowel")[0] is None and len(text.failed) == 1

    def score(request: Any) -> Any:
        return fail(request) if "cloze/0" in request.id else [[-1.0, False]] * 4

    scored = run(spec("cloze", limit=2), tmp_path / "b", Mock(function=mock_scores(score)))
    assert values(scored, "acc,none")[0] is None and len(scored.failed) == 1


@pytest.mark.slow
def test_an_old_run_is_read_without_its_task_and_scored_again_with_it(tmp_path: Path) -> None:
    folder = tmp_path / "tasks"
    shutil.copytree(DATA, folder)
    what = spec("aggregation", include_path=str(folder))
    what["metrics"] = [{"use": "lm_eval", "metric": "brier_score", "aggregation": "brier_score", "name": "brier"}]
    done = run(what, tmp_path / "r", Mock())
    before = done.tables[0].rows[0].cells[0].value
    assert before is not None
    assert rescored(tmp_path / "r", builtin()).tables[0].rows[0].cells[0].value == before
    shutil.rmtree(folder)
    assert load_run(tmp_path / "r", builtin()).tables[0].rows[0].cells[0].value == before
    with pytest.raises(UserError, match="there is no folder"):
        rescored(tmp_path / "r", builtin())


# --------------------------------------------------------------------------------------------- mistakes


def test_a_function_that_raises_is_named_with_its_line(tmp_path: Path) -> None:
    folder = own_task(tmp_path / "tasks", process_docs="docs")
    with pytest.raises(
        PluginError, match=r"own\.yaml:1:1: task 'own', .*ValueError: no such column.*functions\.py:2:1"
    ):
        run(own(folder), tmp_path / "a", Mock())
    own_task(folder, process_results="grade")
    done = run(own(folder), tmp_path / "b", Mock(text="2"))
    assert len(done.failed) == 3 and "ZeroDivisionError" in str(done.failed[0].error)
    assert "functions.py:6:1" in str(done.failed[0].error)
    own_task(folder, process_results="nothing")
    with pytest.raises(PluginError, match=r"own\.yaml:1:1: .*no function 'nothing'"):
        run(own(folder), tmp_path / "c", Mock())


def test_an_argument_of_generation_that_no_engine_knows_is_named_with_its_task(tmp_path: Path) -> None:
    folder = own_task(tmp_path / "tasks", generation_kwargs={"until": ["\n", ""], "num_beams": 1, "max_new_tokens": 7})
    case = next(iter(TASK(task="own", include_path=str(folder)).cases(1, 0)))
    assert case.sampling == {"until": ["\n"], "max_new_tokens": 7}
    own_task(folder, generation_kwargs={"until": ["\n"], "num_beams": 4})
    with pytest.raises(UserError, match=r"own\.yaml:1:1: task 'own': generation_kwargs: unknown word 'num_beams'"):
        run(own(folder), tmp_path / "a", Mock())


def test_a_text_that_breaks_a_function_counts_as_empty(tmp_path: Path) -> None:
    folder = own_task(tmp_path / "tasks", process_results="picky")
    done = run(own(folder), tmp_path / "a", Mock(text="boom"))
    assert not done.failed and values(done, "acc,none") == [0.0] * 3
    assert "KeyError" in (tmp_path / "a" / "errors.jsonl").read_text()


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ({"filter": "nome"}, r"no filter 'nome'\n.*Did you mean none"),
        ({"samples": {"local_close": [0]}}, "samples: there is no task 'local_close'"),
        ({"samples": {"local_cloze": [99]}}, "documents 0 to 15, found 99"),
        ({"samples": {}, "limit": 2}, "give samples or limit"),
        ({"fewshot_as_multiturn": True}, "turns of a conversation only"),
        ({"include_path": "nowhere"}, "there is no folder nowhere"),
        ({"num_fewshots": 2}, "num_fewshots"),
    ],
    ids=["filter", "samples", "number", "both", "turns", "folder", "key"],
)
def test_mistakes_teach(task: dict[str, Any], message: str, tmp_path: Path) -> None:
    what = spec("cloze")
    what["task"] |= task
    with pytest.raises(UserError, match=message):
        run(what, tmp_path / "r", Mock())


def test_programs_of_unknown_doings_and_pictures_are_refused(tmp_path: Path) -> None:
    folder = own_task(tmp_path / "tasks", unsafe_code=True)
    with pytest.raises(PluginError, match=r"runs programs that models wrote by code of its own.*\n.*code_eval"):
        complete(parse(own(folder), builtin()), builtin())
    own_task(folder, doc_to_image="question")
    with pytest.raises(PluginError, match="shows pictures"):
        complete(parse(own(folder), builtin()), builtin())


@pytest.mark.slow
def test_programs_of_the_metric_code_eval_run_in_the_sandbox(tmp_path: Path) -> None:
    folder = own_task(
        tmp_path / "tasks", unsafe_code=True, doc_to_target="assert answer() == {{answer}}", metric_list=None
    )
    entry = "{metric: !function programs.pass_at_k, aggregation: mean, higher_is_better: true, k: [1]}"
    text = (folder / "own.yaml").read_text().replace("metric_list: null", f"metric_list: [{entry}]")
    (folder / "own.yaml").write_text(text)
    (folder / "programs.py").write_text(PROGRAMS)
    with pytest.raises(UserError, match="allow_code_execution"):
        run(own(folder), tmp_path / "a", Mock())
    written = ["def answer(): return 1", "import os; os._exit(0)", "open('/etc/passwd')"]
    model = Mock(function=lambda request: written[int(request.id.split("/")[2])])
    done = harness.evaluate(
        own(folder), model, output_path=tmp_path / "b", project=builtin(), allow_code_execution=True
    )
    assert not done.failed and values(done, "pass@1,none") == [1.0, 0.0, 0.0]


# ------------------------------------------------------------------------------------------------- data


@pytest.mark.slow
def test_a_copy_takes_the_place_of_a_data_set_of_the_hub(tmp_path: Path) -> None:
    folder = own_task(tmp_path / "tasks", dataset_path="nobody/nothing", dataset_kwargs=None)
    copy = own_task(tmp_path / "copy")
    done = run(own(folder, data_dir=str(copy)), tmp_path / "a", Mock(text="2"))
    assert values(done, "exact_match,none") == [0.0, 1.0, 0.0]
    files = {split: str(copy / f"{split}.jsonl") for split in ("train", "test")}
    done = run(own(folder, data_files=files, num_fewshot=1), tmp_path / "b", Mock(text="3"))
    assert values(done, "exact_match,none") == [0.0, 0.0, 1.0]
    # Of several data sets each has a folder of its name.
    shutil.copytree(copy, tmp_path / "sets" / "nobody" / "nothing")
    again = TASK(task="own", include_path=str(folder), data_dir=str(tmp_path / "sets"))
    assert len(list(again.cases(None, 0))) == 3
    (copy / "test.jsonl").unlink()
    with pytest.raises(DataError, match="there is no such file"):
        run(own(folder, data_files=files), tmp_path / "c", Mock())


@pytest.mark.slow
def test_without_a_network_the_missing_data_set_is_named(tmp_path: Path) -> None:
    folder = own_task(tmp_path / "tasks", dataset_path="nobody/nothing", dataset_kwargs=None, dataset_name="main")
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(own(folder)))
    command = [sys.executable, "-m", "harness", "plan", "--spec", str(tmp_path / "s.yaml"), "--allow_code_execution"]
    offline = {**os.environ, "HF_HUB_OFFLINE": "1"}
    ended = subprocess.run(command, capture_output=True, text=True, env=offline, timeout=120)
    assert ended.returncode == 2 and "Traceback" not in ended.stderr
    assert "task 'own': the data set nobody/nothing (main) cannot be read" in ended.stderr
    assert "data_dir" in ended.stderr


def test_tables_of_a_task_have_a_row_for_each_condition() -> None:
    data = {"name": "both", "task": {"use": "lm_eval", "task": "local_cloze", "include_path": str(DATA)}}
    protocols = [{"name": "alone", "use": "single"}, {"name": "three", "use": "vote"}]
    swept = {**data, "protocol": {"use": "${how.use}"}, "matrix": {"how": protocols}}
    alone = complete(parse({**data, "protocol": "single"}, builtin()), builtin())
    assert alone.tables[0]["rows"] == ["task", "model"]
    table = complete(parse(swept, builtin()), builtin()).tables[0]
    assert table["rows"] == ["task", "model", "how"] and table["title"] == "both"
