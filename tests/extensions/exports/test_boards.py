"""Exports for boards that list models: Every Eval Ever's records, and `.eval_results` of the Hugging Face hub."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

import harness
from harness.api.errors import DataError
from harness.engines.mock import Mock
from harness.extensions.exports import export
from tests.helpers.commands import ROOT, invoke
from tests.helpers.inner_agents import Place
from tests.helpers.toy import run

SCHEMA = json.loads((ROOT / "tests" / "data" / "every_eval_ever" / "eval.schema.json").read_text("utf-8"))


def record(done: harness.Run, folder: Path) -> dict[str, Any]:
    [file] = export(done, "every_eval_ever", folder).files
    return json.loads(file.read_text("utf-8"))


@pytest.fixture(scope="module")
def org(tmp_path_factory: pytest.TempPathFactory) -> harness.Run:
    """A run of a model with an owner, with sampling parameters that the schema knows and one that it does not."""
    sampling = ("generation_kwargs={temperature: 0.5, max_tokens: 64, min_p: 0.1}", "headline.metric=agreed")
    return run(tmp_path_factory.mktemp("org") / "r", Mock(model="lab/tiny-1", text="b"), overrides=sampling)


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> harness.Run:
    """A run whose model has a name that breaks terminals and files, with a limit of tokens that is none."""
    overrides = ("headline={metric: agreed, min_read: 0}", "generation_kwargs={max_tokens: null, top_k: 3}")
    return run(tmp_path_factory.mktemp("odd") / "r", Mock(model="../\x1b[2J<b>\udcff", text="?"), overrides=overrides)


@pytest.mark.parametrize("which", ["odd", "org"])
def test_a_record_fits_the_published_schema(which: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    made = record(request.getfixturevalue(which), tmp_path)
    jsonschema.Draft7Validator(SCHEMA).validate(made)
    assert made["schema_version"] == SCHEMA["version"]


def test_a_record_has_the_headline_of_all_and_of_each_condition(org: harness.Run, tmp_path: Path) -> None:
    made = record(org, tmp_path)
    whole, *parts = made["evaluation_results"]
    assert whole["score_details"]["score"] == org.headline.cell(org.scores).value
    assert whole["score_details"]["uncertainty"]["num_samples"] == len(org.scores)
    assert len(parts) == len({score.condition for score in org.scores}) > 1
    by_row = {row["condition"]: row["value"] for row in org.rows if row["metric"] == "agreed"}
    names = {part["evaluation_name"].partition(".")[2]: part["score_details"]["score"] for part in parts}
    assert names == by_row
    generation = whole["generation_config"]
    assert generation["generation_args"]["temperature"] == 0.5
    assert generation["additional_details"] == {"min_p": "0.1"}
    assert made["model_info"]["developer"] == "lab"


def test_one_run_gives_one_record(org: harness.Run, tmp_path: Path) -> None:
    first, second = (export(org, "every_eval_ever", tmp_path / name) for name in "ab")
    assert first.files[0].name == second.files[0].name
    assert first.files[0].read_bytes() == second.files[0].read_bytes()
    assert re.fullmatch(
        r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\.json", first.files[0].name
    )
    assert "data/toy/lab/tiny-1/" in first.summary


def test_the_hub_reads_eval_results(org: harness.Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from huggingface_hub import parse_eval_result_entries

    argv = ("export", str(org.folder), "--to", "eval_results", "--dataset", "lab/toy", "-o", str(tmp_path))
    code, out, _ = invoke(capsys, *argv)
    assert code == 0 and ".eval_results" in out
    [entry] = parse_eval_result_entries(yaml.safe_load((tmp_path / ".eval_results" / "toy.yaml").read_text("utf-8")))
    assert (entry.dataset_id, entry.task_id) == ("lab/toy", "default")
    assert entry.value == org.headline.cell(org.scores).value
    assert entry.date == str(org.meta["start"])[:10] and "group of agents" in str(entry.notes)


def policies(folder: Path) -> harness.Run:
    return run(folder, None)


def pair(folder: Path) -> harness.Run:
    two = ("models={other: {use: mock, text: a}}", "agents={default: model, rest: {model: other, count: 1}}")
    return run(folder, Mock(text="b"), overrides=(*two, "headline.metric=agreed"))


def unread(folder: Path) -> harness.Run:
    return run(folder, Mock(text="?"), overrides=("headline.metric=agreed",))


def without_headline(folder: Path) -> harness.Run:
    return run(folder, Mock(text="b"), overrides=("headline=null",))


def asking(folder: Path) -> harness.Run:
    """A run of an agent whose programs may ask a model."""
    place = Place(folder)
    agent = {"command": place.program('say(text=ask("say b"))'), "label": "lab/asker"}
    return place.play(agent, overrides=("headline={metric: agreed, better: higher}",))


def test_an_engine_that_only_answers_programs_is_no_player(tmp_path: Path) -> None:
    done = asking(tmp_path)
    assert len(done.meta["engine_args"]) == 2
    made = record(done, tmp_path / "out")
    jsonschema.Draft7Validator(SCHEMA).validate(made)
    assert made["model_info"]["name"] == "lab/asker" and made["model_info"]["inference_engine"]["name"] == "Agent"
    details = json.loads(made["model_info"]["additional_details"]["engine_args"])
    assert details["label"] == "lab/asker"
    assert export(done, "eval_results", tmp_path / "hub", dataset="lab/toy").files


def test_a_model_that_the_spec_names_has_a_record(tmp_path: Path) -> None:
    overrides = ("models={own: {use: mock, text: b}}", "agents={default: own}", "headline.metric=agreed")
    made = record(run(tmp_path / "run", None, overrides=overrides), tmp_path / "out")
    assert made["model_info"]["inference_engine"]["name"] == "Mock"


def asking_a_player(folder: Path) -> harness.Run:
    """The model that answers the programs also plays a seat."""
    place = Place(folder.with_name("place"))
    agent = {"use": "agent", "command": place.program('say(text=ask("say b"))'), "inner": "small"}
    models = {"me": agent, "small": place.parrot}
    spec = {"extends": "toy", "models": models, "agents": {"default": "me", "rest": {"model": "small", "count": 1}}}
    return harness.evaluate(
        spec, project=place.project, output_path=folder, limit=1, allow_code_execution=True,
        overrides=("headline.metric=agreed",),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("played", "what"),
    [
        pytest.param(policies, "no model played", id="policies"),
        pytest.param(pair, "2 models played", id="pair"),
        pytest.param(asking_a_player, "2 models played", id="asking a player"),
        pytest.param(unread, "has no headline", id="unread"),
        pytest.param(without_headline, "names no headline", id="no headline"),
    ],
)
@pytest.mark.parametrize("form", ["every_eval_ever", "eval_results"])
def test_what_a_board_cannot_hold_is_refused(
    played: Callable[[Path], harness.Run], what: str, form: str, tmp_path: Path
) -> None:
    done = played(tmp_path / "run")
    more: dict[str, Any] = {"dataset": "lab/toy"} if form == "eval_results" else {}
    with pytest.raises(DataError, match=what):
        export(done, form, tmp_path / "out", **more)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("--to", "eval_results"), "there is no --dataset"),
        (("--to", "eval_results", "--dataset", "toy"), "--dataset toy is not the name"),
        (("--to", "eval_results", "--dataset", "lab/toy", "--task_id", "a b"), "--task_id a b is no name of a task"),
        (("--to", "csv", "--dataset", "lab/toy"), "--dataset is not for the form 'csv'"),
    ],
)
def test_wrong_options_are_one_line(
    org: harness.Run, words: tuple[str, ...], what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = invoke(capsys, "export", str(org.folder), *words, "-o", str(tmp_path / "out"))
    assert code == 2 and what in err and "Traceback" not in err
