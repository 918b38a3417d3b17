"""`harness export --to lm_eval`: read with lm-eval's own functions, which take a second to import."""

import json
import platform
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

import harness
from harness.api.errors import DataError
from harness.config.project import find
from harness.engines.chat_tokens import tokenizer_facts
from harness.engines.mock import Mock
from harness.extensions.exports import export
from tests.helpers.commands import invoke

BUILTIN = find(Path(__file__).parents[3])
FACTS: dict[str, Any] = {
    "name": "capitals",
    "task": {
        "use": "dataset_qa",
        "data_files": "rows.jsonl",
        "test_split": "test",
        "doc_to_text": "{{question}}",
        "doc_to_target": "{{answer}}",
        "labels": {"task": "{{topic}}"},
        "num_fewshot": 0,
    },
    "protocol": "single",
    "tables": [
        {
            "title": "Capitals",
            "rows": "task",
            "metrics": "score",
            "groups": [
                {"title": "all", "of": ["rivers", "towns"]},
                {"title": "even", "of": ["all"], "weight": "equal"},
            ],
        }
    ],
}


def results_of(done: harness.Run, folder: Path) -> dict[str, Any]:
    [path] = [file for file in export(done, "lm_eval", folder).files if file.name.startswith("results_")]
    results: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return results


def test_the_table_that_lm_eval_prints(done: harness.Run, tmp_path: Path) -> None:
    from lm_eval.result_schema import EvalResults
    from lm_eval.utils import make_table

    results = results_of(done, tmp_path)
    shown = make_table(results)
    for row in done.rows:
        if row["metric"] == done.headline.metric:
            assert done.headline_missing and f"|{row['metric']}" not in shown  # too few turns were read
        elif row["value"] is not None:
            key = next(key for key, of in results["results"].items() if of["alias"] == f"toy {row['condition']}")
            assert results["results"][key][f"{row['metric']},none"] == row["value"]
            assert results["results"][key][f"{row['metric']}_stderr,none"] == row["stderr"]
            assert f"|{row['metric']}" in shown
    assert "|toy agents=2" in shown and "±" in shown
    assert results["n-samples"] == {key: {"original": 4, "effective": 4} for key in results["results"]}
    assert results.keys() - EvalResults.__annotations__.keys() == {"harness_version"}


class Served(Mock):
    """Reports of its tokenizer what the engine vllm does."""

    tokenizer: ClassVar[Any] = SimpleNamespace(
        bos_token=None,
        bos_token_id=None,
        eos_token="<|im_end|>",
        eos_token_id=2,
        pad_token="<|endoftext|>",
        pad_token_id=0,
        chat_template={"default": "{% for message in messages %}é{{ message.content }}{% endfor %}", "tools": "…"},
    )

    def report(self) -> dict[str, Any]:
        return {"platform": "cpu", "tokenizer": tokenizer_facts(self.tokenizer, None, 4096)}


@pytest.mark.export  # its package takes seconds to import
@pytest.mark.parametrize("chat", [False, True])
def test_where_the_numbers_come_from(tmp_path: Path, chat: bool) -> None:
    """The keys that lm-eval's own code adds, with its values; the environment is the run's."""
    from lm_eval.loggers.evaluation_tracker import GeneralConfigTracker
    from lm_eval.loggers.utils import add_tokenizer_info

    task = {"use": "lm_eval", "task": "local_two_filters", "include_path": str(BUILTIN.root / "tests/data/lm_eval")}
    more = {"apply_chat_template": True, "system_instruction": "Be brief."} if chat else {}
    spec = {"name": "t", "task": {**task, **more}, "protocol": "single", "limit": 2}
    done = harness.evaluate(spec, Served(text="e"), output_path=tmp_path / "run", project=BUILTIN)
    results = results_of(done, tmp_path / "out")
    theirs: dict[str, Any] = {}
    add_tokenizer_info(theirs, SimpleNamespace(tokenizer=Served.tokenizer, eot_token_id=2, max_length=4096))
    tracker = GeneralConfigTracker()
    template = Served.tokenizer.chat_template["default"] if chat else None
    tracker.log_experiment_args("mock", "pretrained=mock", more.get("system_instruction"), template, chat)
    names = ("system_instruction", "system_instruction_sha", "chat_template", "chat_template_sha")
    theirs |= {name: getattr(tracker, name) for name in (*names, "fewshot_as_multiturn")}
    assert len(theirs) == 10 and {name: results.get(name) for name in theirs} == theirs
    environment = results["pretty_env_info"].splitlines()
    assert f"python {platform.python_version()}" in environment and "engine model: cpu" in environment
    assert results["config"]["fewshot_seed"] == 1234


def test_files_have_names_that_lm_eval_finds_again(done: harness.Run, tmp_path: Path) -> None:
    from lm_eval.utils import get_file_task_name, get_results_filenames, get_sample_results_filenames

    files = [str(file) for file in export(done, "lm_eval", tmp_path).files]
    assert len(get_results_filenames(files)) == 1 and len(get_sample_results_filenames(files)) == 2
    results = json.loads(Path(get_results_filenames(files)[0]).read_text("utf-8"))
    names = {get_file_task_name(Path(file).name) for file in get_sample_results_filenames(files)}
    assert names == results["results"].keys() == results["configs"].keys()
    assert {Path(file).parent.name for file in files} == {"mock"} == {results["model_name_sanitized"]}


def test_samples(done: harness.Run, tmp_path: Path, replies: set[str]) -> None:
    from lm_eval.result_schema import SampleResult
    from lm_eval.utils import get_sample_results_filenames, hash_string

    files = [str(file) for file in export(done, "lm_eval", tmp_path).files]
    samples = [
        json.loads(line)
        for file in get_sample_results_filenames(files)
        for line in Path(file).read_text("utf-8").splitlines()
    ]
    assert len(samples) == len(done.scores)
    expected = sorted(score.number("agreed") or 0.0 for score in done.scores)
    assert sorted(sample["agreed"] for sample in samples) == expected
    for sample in samples:
        assert SampleResult.__annotations__.keys() <= sample.keys()
        assert len(sample["arguments"]) == len(sample["resps"]) and {r[0] for r in sample["resps"]} <= replies
        assert sample["doc_hash"] == hash_string(json.dumps(sample["doc"], indent=2, ensure_ascii=False))
    assert sorted(sample["doc_id"] for sample in samples) == sorted([*range(4)] * 2)


def test_subtasks_and_groups(tmp_path: Path) -> None:
    from lm_eval.utils import make_table

    rows = [("Nile?", "Cairo", "rivers")] * 3 + [("Seine?", "0", "rivers")] + [("Rome?", "0", "towns")] * 2
    lines = [json.dumps({"question": q, "answer": a, "topic": t}) for q, a, t in rows]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))
    spec = FACTS | {"task": FACTS["task"] | {"data_files": str(tmp_path / "rows.jsonl")}}
    done = harness.evaluate(spec, "mock", model_args={"text": "0"}, output_path=tmp_path / "run", project=BUILTIN)
    results = results_of(done, tmp_path / "out")
    assert [results["results"][name]["score,none"] for name in ("rivers", "towns")] == [0.25, 1.0]
    assert results["group_subtasks"] == {"all": ["rivers", "towns"], "even": ["all"]}
    assert results["groups"]["all"]["score,none"] == 0.5 and results["groups"]["all"]["sample_len"] == 6
    assert results["groups"]["even"]["score,none"] == 0.625
    shown = make_table(results, "groups")
    assert "0.625|" in shown and "|even" in shown
    assert " - rivers" in make_table(results)


def test_what_is_there_stays(capsys: pytest.CaptureFixture[str], done: harness.Run, tmp_path: Path) -> None:
    others = tmp_path / "mock" / "results_2026-01-01T00-00-00.json"
    others.parent.mkdir()
    others.write_text("{}")
    code, out, _ = invoke(capsys, "export", str(done.folder), "--to", "lm_eval", "-o", str(tmp_path))
    assert code == 0 and "2 tasks, 8 samples" in out and others.read_text() == "{}"
    with pytest.raises(DataError, match=r"already contains mock/results_"):
        export(done, "lm_eval", tmp_path)
    assert len(export(done, "lm_eval", tmp_path, overwrite=True).files) == 3


def test_a_failed_episode_has_no_numbers(done: harness.Run, tmp_path: Path) -> None:
    from lm_eval.utils import make_table

    scores = [replace(s, error="it broke") if s.condition == "agents=2" else s for s in done.scores]
    files = export(replace(done, scores=scores), "lm_eval", tmp_path).files
    samples = [json.loads(line) for f in files if f.suffix == ".jsonl" for line in f.read_text("utf-8").splitlines()]
    assert sorted("agreed" in sample for sample in samples) == [False] * 4 + [True] * 4
    results = json.loads(next(f for f in files if f.suffix == ".json").read_text("utf-8"))
    assert {key: len(of) for key, of in results["results"].items()} == {"toy_agents=2": 3, "toy_agents=3": 5}
    assert "toy agents=2" not in make_table(results)
