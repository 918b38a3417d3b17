"""`harness calibrate`: parameters come from other rows and from the same agents, or they are refused."""

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.api import Case, Engine
from harness.api.errors import DataError, PluginError, SpecError
from harness.cli import main
from harness.config import project, spec
from harness.engines.mock import Mock
from harness.evaluation.evaluate import evaluate
from harness.evaluation.run import Run
from harness.extensions.panels import calibrated_protocol as calibration
from harness.extensions.panels.fit import fit
from harness.runtime.options import Options

BUILTIN = project.builtin()
PANEL: dict[str, Any] = {"use": "simulated", "agents": {"Agent-0": {"accuracy": 0.9}, "Agent-1": {"accuracy": 0.3}}}


def body(folder: Path, **changes: Any) -> dict[str, Any]:
    protocol = {"use": "darkforest", "agents": 3, "confidence": "line", "coordinate": "never",
                "calibration": str(folder / "fitted" / "p.json")}  # fmt: skip
    return {
        "name": "fitting",
        "task": {"use": "arithmetic", "size": 20, "terms": 2},
        "protocol": protocol,
        "prompts": "panels/standard",
        "baseline": PANEL,
        "calibrate": {"task": {"terms": 3}, "limit": 15},
        "metrics": ["score"],
        **changes,
    }


def fitted(folder: Path, model: Engine | None = None, overwrite: bool = False, **changes: Any) -> dict[str, Any]:
    loaded = spec.parse(body(folder, **changes), BUILTIN)
    files = fit(loaded, BUILTIN, lambda: model, options=Options(output_path=folder / "runs", overwrite=overwrite))
    [(file, questions)] = files.items()
    data: dict[str, Any] = json.loads(file.read_text("utf-8"))
    assert questions == len(data["questions"])
    return data


def run(folder: Path, model: Engine | None = None, **changes: Any) -> Run:
    return evaluate(body(folder, **changes), model, output_path=folder / "run")


def test_the_agents_answer_the_calibration_rows_and_what_they_got_right_is_written(tmp_path: Path) -> None:
    result = fitted(tmp_path)
    assert len(result["questions"]) == 15 and result["task"] == {"use": "arithmetic", "size": 20, "terms": 3}
    assert list(result["agents"]) == ["Agent-0", "Agent-1", "Agent-2"]
    counts = result["parameters"]["tallies"]
    assert counts["Agent-0"]["correct"] > counts["Agent-1"]["correct"] and counts["Agent-0"]["all"] == 15
    assert run(tmp_path).meta["identity"]["calibration"].keys() == {str(tmp_path / "fitted" / "p.json")}


def test_fitting_again_asks_nothing_and_gives_the_same(tmp_path: Path) -> None:
    requests: list[str] = []

    def answer(request: Any) -> str:
        requests.append(request.id)
        return "The answer is 7.\nConfidence: 0.5"

    first = fitted(tmp_path, Mock(function=answer))
    assert len(requests) == 45, "three agents, each row once"
    assert fitted(tmp_path, Mock(function=answer)) == first and len(requests) == 45


def test_a_file_of_other_parameters_is_not_written_over_by_itself(tmp_path: Path) -> None:
    fitted(tmp_path)
    other: dict[str, Any] = {"calibrate": {"task": {"terms": 3}, "limit": 10}}
    (tmp_path / "runs").rename(tmp_path / "before")
    with pytest.raises(DataError, match=r"p\.json holds other parameters\n  --overwrite"):
        fitted(tmp_path, **other)
    assert len(fitted(tmp_path, overwrite=True, **other)["questions"]) == 10


def test_questions_that_were_calibrated_on_are_refused(tmp_path: Path) -> None:
    fitted(tmp_path, calibrate={"task": {}, "limit": 5})
    with pytest.raises(
        DataError, match=r"5 of the 20 questions are among those the parameters were fitted on"
    ) as raised:
        run(tmp_path)
    assert "p.json" in str(raised.value) and "must be disjoint" in str(raised.value)
    assert not (tmp_path / "run" / "journal.jsonl").exists(), "nothing was played"


def test_a_question_is_known_by_what_it_asks_not_by_its_id() -> None:
    def case(name: str, **public: Any) -> Case:
        return Case(name, ("A",), {"choices": None, **public})

    def fingerprint(case: Case) -> str:
        return calibration.fingerprint(BUILTIN.load("tasks", "dataset_qa")(doc_to_text="q", doc_to_target="a"), case)

    assert fingerprint(case("1", question="What  is\nit?")) == fingerprint(case("2", question="what is it?"))
    output = case("1", question="An example. What is it?", bare="What is it?")
    assert fingerprint(output) == fingerprint(case("9", question="What is it?"))
    one = case("1", question="Which?\nA. Lyon\nB. Paris", choices=["Lyon", "Paris"])
    other = case("2", question="Which?\nA. Paris\nB. Lyon", choices=["Paris", "Lyon"])
    assert fingerprint(one) == fingerprint(other), "the same question in another order"
    assert fingerprint(one) != fingerprint(case("3", question="Which?\nA. Nice\nB. Paris", choices=["Nice", "Paris"]))
    assert fingerprint(case("1", question="A?")) != fingerprint(case("1", question="B?"))
    task = BUILTIN.load("tasks", "agentsnet/coloring")()
    one, other = (Case("1", ("A",), private=private) for private in ({}, {"A": {"x": 1}}))
    assert calibration.fingerprint(task, one) != calibration.fingerprint(task, other), "what is no question"


def test_other_agents_are_refused(tmp_path: Path) -> None:
    fitted(tmp_path)
    with pytest.raises(DataError, match=r"it is about other agents: Agent-0 was .*accuracy.*, and is .*0\.91"):
        run(tmp_path, baseline={**PANEL, "agents": {"Agent-0": {"accuracy": 0.91}}})
    with pytest.raises(DataError, match=r'about other agents: Agent-0 was .*, and is \{"model": "mock"'):
        run(tmp_path, Mock())
    more = {**body(tmp_path)["protocol"], "agents": 4}
    with pytest.raises(DataError, match=r"about other agents: Agent-3 was not there, and is"):
        run(tmp_path, protocol=more)
    fewer = {**body(tmp_path)["protocol"], "agents": 2}
    with pytest.raises(DataError, match=r"about other agents: Agent-2 was .*, and is not there"):
        run(tmp_path, protocol=fewer)


def test_another_model_and_another_temperature_are_other_agents(tmp_path: Path) -> None:
    text = "The answer is 7.\nConfidence: 0.5"
    fitted(tmp_path, Mock(model="one", text=text))
    with pytest.raises(DataError, match=r'Agent-0 was \{"model": "one".*and is \{"model": "two"'):
        run(tmp_path, Mock(model="two", text=text))
    with pytest.raises(DataError, match=r"temperature"):
        run(tmp_path, Mock(model="one", text=text), generation_kwargs={"temperature": 0.7})
    assert run(tmp_path, Mock(model="one", text=text)).failed == []


def test_other_words_are_refused_and_words_that_agents_never_see_are_not(tmp_path: Path) -> None:
    text = "The answer is 7.\nConfidence: 0.5"
    own = tmp_path / "own"
    (own / "prompts" / "mine").mkdir(parents=True)
    (own / "harness.yaml").write_text("parents: [harness_builtin]\n")
    (own / "prompts" / "mine" / "prompts.yaml").write_text("base: panels/standard\n")
    mine = project.find(own)

    def evaluated() -> Run:
        data = body(tmp_path, prompts="mine")
        return evaluate(data, Mock(text=text), output_path=tmp_path / "run", project=project.find(own))

    fit(
        spec.parse(body(tmp_path, prompts="mine"), mine),
        mine,
        lambda: Mock(text=text),
        options=Options(output_path=tmp_path / "runs"),
    )
    (own / "prompts" / "mine" / "debate.j2").write_text("Now argue.")
    assert evaluated().failed == []
    (own / "prompts" / "mine" / "question.j2").write_text("Listen: {{ question }}")
    with pytest.raises(DataError, match=r"the prompt set mine has other words than"):
        evaluated()


def test_a_coordinator_is_no_part_of_what_was_calibrated(tmp_path: Path) -> None:
    protocol = {**body(tmp_path)["protocol"], "coordinate": "always"}
    agents = {"default": "model", "boss": {"model": "boss", "agents": ["Coordinator"]}}
    more: dict[str, Any] = {"protocol": protocol, "agents": agents}
    text = "The answer is 7.\nConfidence: 0.5"
    one = fitted(tmp_path, Mock(text=text), models={"boss": {"use": "mock", "text": "The answer is 1."}}, **more)
    assert list(one["agents"]) == ["Agent-0", "Agent-1", "Agent-2"]
    other = {"boss": {"use": "mock", "model": "another", "text": "The answer is 2."}}
    assert run(tmp_path, Mock(text=text), models=other, **more).failed == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "not a JSON object"),
        ("{", "not a JSON object"),
        ("{}", "not a file of calibrated parameters: its schema is None"),
        ('{"schema": "harness.calibration/2"}', "missing required keys 'agents'"),
        ('{"schema": "harness.calibration/2", "agents": {"A": 1}, "questions": []}', "'questions' must be a mapping"),
        (
            '{"schema": "harness.calibration/2", "agents": {"A": 1}, "questions": {"a": 1}, "parameters": {"a": 1},'
            '"templates": ["answer"]}',
            "questions: 'a' must be text",
        ),
        (
            '{"schema": "harness.calibration/2", "agents": {"A": 1}, "questions": {"a": "x"}, "parameters": {"a": 1},'
            '"templates": []}',
            "'templates' must not be empty",
        ),
        (
            '{"schema": "harness.calibration/2", "agents": {"A": 1}, "questions": {"a": "x"}, "parameters": {"a": 1},'
            '"templates": ["answer"]}',
            "missing required key 'prompts'",
        ),
    ],
)
def test_a_damaged_file_is_reported(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "fitted" / "p.json"
    file.parent.mkdir()
    file.write_text(content)
    with pytest.raises(DataError, match=message) as error:
        run(tmp_path)
    assert "p.json" in str(error.value)


def test_parameters_that_cannot_be_are_reported_with_their_file(tmp_path: Path) -> None:
    result = fitted(tmp_path)
    result["parameters"]["tallies"]["Agent-1"]["correct"] = -3
    file = tmp_path / "fitted" / "p.json"
    file.write_text(json.dumps(result))
    with pytest.raises(PluginError, match=r"p\.json.*Agent-1.*correct"):
        run(tmp_path)


def test_a_file_that_is_not_there_is_reported_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"there are no calibrated parameters .*p\.json\n  `harness calibrate --spec"):
        run(tmp_path)


@pytest.mark.slow
def test_a_run_goes_on_with_the_parameters_it_began_with(tmp_path: Path) -> None:
    fitted(tmp_path)
    run(tmp_path)
    assert run(tmp_path).failed == []
    fitted(tmp_path / "more", calibrate={"task": {"terms": 4}, "limit": 5})
    (tmp_path / "more" / "fitted" / "p.json").replace(tmp_path / "fitted" / "p.json")
    with pytest.raises(DataError, match=r"already contains a run with a different configuration"):
        run(tmp_path)


def test_another_panel_is_another_run_so_what_hints_say_can_be_done(tmp_path: Path) -> None:
    fitted(tmp_path)
    other: dict[str, Any] = {"baseline": {**PANEL, "agents": {"Agent-0": {"accuracy": 0.8}}}}
    assert fitted(tmp_path, overwrite=True, **other)["agents"]["Agent-0"]["parameters"] != PANEL["agents"]
    assert run(tmp_path, **other).failed == []


def test_fewer_rows_may_be_asked_for_and_never_more(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(json.dumps(body(tmp_path)))
    command = ["calibrate", "--spec", str(file), "--output_path", str(tmp_path / "runs"), "--quiet", "--overwrite"]
    assert main([*command, "--limit", "3"]) == 0 and "fitted on 3 questions" in capsys.readouterr().out
    assert main([*command, "--limit", "300"]) == 0 and "fitted on 15 questions" in capsys.readouterr().out


def test_what_is_wrong_is_reported_before_anything_is_asked(tmp_path: Path) -> None:
    def refused(**changes: Any) -> str:
        requests: list[str] = []

        def answer(request: Any) -> str:
            requests.append(request.id)
            return "The answer is 7."

        data = {**body(tmp_path), **changes}
        for attempt in (lambda: fitted(tmp_path, Mock(function=answer), **data), lambda: run(tmp_path, Mock(), **data)):
            with pytest.raises((SpecError, PluginError, DataError)) as raised:
                attempt()
        assert requests == []
        return str(raised.value)

    protocol = body(tmp_path)["protocol"]
    assert "correlated names 'Agent-9'" in refused(protocol={**protocol, "correlated": [["Agent-0", "Agent-9"]]})
    assert "anchor names 'Agent9'" in refused(protocol={**protocol, "anchor": "Agent9"})


def test_a_mistake_in_fit_is_reported_where_it_stands(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(json.dumps({**body(tmp_path), "calibrate": {"task": {"termz": 3}}}, indent=1))
    with pytest.raises(SpecError, match=r"s\.yaml:\d+:\d+: .*unknown key 'termz'"):
        fit(spec.load(str(file), BUILTIN), BUILTIN, lambda: None, options=Options(output_path=tmp_path / "runs"))


def without(data: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name != key}


def test_what_cannot_be_fitted_is_reported(tmp_path: Path) -> None:
    def error(data: Mapping[str, Any]) -> str:
        with pytest.raises((SpecError, DataError)) as raised:
            fit(spec.parse(data, BUILTIN), BUILTIN, lambda: None, options=Options(output_path=tmp_path / "runs"))
        return str(raised.value)

    plain = body(tmp_path)
    assert "there is no calibrate:" in error(without(plain, "calibrate"))
    assert "no protocol of this spec names a file" in error({**plain, "protocol": {"use": "vote", "agents": 3}})
    swept = {**plain, "matrix": {"terms": [2, 4]}, "calibrate": {"task": {"terms": "${terms}"}, "limit": 5}}
    assert "differ in task" in error(swept)
    assert "unknown key 'tasks'" in error({**plain, "calibrate": {"tasks": {}}})


def test_a_tournament_has_nothing_to_fit(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", "--spec", "tournament"]) == 2
    assert "no protocol of this spec names a file of parameters" in capsys.readouterr().err


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(json.dumps(body(tmp_path)))
    assert main(["calibrate", "--spec", str(file), "--output_path", str(tmp_path / "runs"), "--quiet"]) == 0
    assert "p.json: fitted on 15 questions" in capsys.readouterr().out
    assert main(["eval", "--spec", str(file), "--output_path", str(tmp_path / "run"), "--quiet"]) == 0
    assert main(["calibrate", "--spec", "arithmetic", "--quiet"]) == 2
    assert "no protocol of this spec names a file of parameters" in capsys.readouterr().err


def test_eval_names_the_fit_that_it_needs_and_the_fit_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    results = ["eval", "--spec", "darkforest_quick", "--limit", "2", "--quiet"]
    results += ["--set", "matrix.panel=[three_equals]", "--set", "matrix.method=[vote,belief]"]
    model = ["--model", "mock", "--model_args", "text='The answer is 7.'"]
    for more in (model, []):  # the files that ship are about simulated agents; then those in the folder about the model
        assert main([*results, *more]) == 2
        command = shlex.split(capsys.readouterr().err.splitlines()[-1])
        assert command[:4] == ["harness", "calibrate", "--spec", "darkforest_quick"]
        assert ("--overwrite" in command) == (not more)
        assert main([*command[1:], "--quiet"]) == 0
        assert main([*results, *more]) == 0
