"""The JSON Schema of specs, as editors use it: what it accepts, and what it says of mistakes."""

import copy
import functools
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from harness.cli.new import SCHEMA
from harness.config import yamls
from harness.config.editor_schema import spec_schema
from harness.config.project import find
from harness.plugins.parameters import faults
from tests.helpers.commands import invoke

ROOT = Path(__file__).parents[3]
SPECS = sorted((ROOT / "specs").rglob("*.yaml"))
N, W, S = "networks/frequency_assignment", "worlds/commons", "sharded/ranks"


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(spec_schema(find(ROOT)))  # tests/core/cli/test_output.py: it is JSON Schema


def said(validator: jsonschema.Draft202012Validator, data: Any) -> list[tuple[str, str]]:
    """What editors show: (place, message)."""
    return [(error.json_path, error.message) for error in validator.iter_errors(data)]


def test_the_command_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = invoke(capsys, "schema")
    assert code == 0 and json.loads(out)["title"] == "harness spec"


@functools.cache
def shipped(base: str) -> Any:
    return yamls.read(ROOT / "specs" / f"{base}.yaml").data


def changed(base: str, path: str, value: Any) -> Any:
    """A shipped spec with another value at this path; `...` takes the key away."""
    data = copy.deepcopy(shipped(base))
    *above, key = path.split(".")
    here = data
    for step in above:
        here = here.setdefault(step, {})
    here[key] = value
    if value is ...:
        del here[key]
    return data


@pytest.mark.sampled(15)
@pytest.mark.parametrize("file", SPECS, ids=lambda file: file.stem)
def test_every_spec_that_ships_is_accepted(validator: jsonschema.Draft202012Validator, file: Path) -> None:
    assert said(validator, yamls.read(file).data) == []


LOSSY = {"use": "unreliable", "channel": "silence"}


@pytest.mark.parametrize(
    ("base", "path", "value", "place", "message"),
    [
        # a key, at the top, in plugins, and in plugins of plugins
        (N, "protocl", "x", "", "'protocl' was unexpected"),
        (N, "task", {"use": "agentsnet/coloring", "sampels": 3}, ".task", "'sampels' was unexpected"),
        (N, "task.constraints.apart.nedds", 1, ".task.constraints.apart", "'nedds' was unexpected"),
        (N, "task.graphs", {"randm": "star"}, ".task.graphs", "'randm' was unexpected"),
        (N, "task.graphs", {"random": "star", "paramters": {}}, ".task.graphs", "'paramters' was unexpected"),
        (N, "protocol.channel", {**LOSSY, "los": 0.5}, ".protocol.channel", "'los' was unexpected"),
        (N, "agents.bad", {"polcy": "random", "share": 0.5}, ".agents.bad", "'polcy' was unexpected"),
        (N, "metrics", [{"use": "grade", "off": "x"}], ".metrics[0]", "'off' was unexpected"),
        (W, "task.actions.FISH.wehn", "1", ".task.actions.FISH", "'wehn' was unexpected"),
        (S, "task.questoin", "Who?", ".task", "'questoin' was unexpected"),
        # a name
        (N, "task", "agentsnet/colouring", ".task", "is not one of ['agentsnet/coloring',"),
        (N, "task.use", "agentsnet/colouring", ".task.use", "is not one of ['agentsnet/coloring',"),
        (N, "protocol.channel", "neighbours", ".protocol.channel", "is not one of ['broadcast',"),
        (N, "baseline", "randm", ".baseline", "'randm' is not one of"),
        (
            N,
            "agents.bad",
            {"policy": {"use": "randm"}, "share": 0.5},
            ".agents.bad.policy.use",
            "'randm' is not one of",
        ),
        (N, "headline.floor", "randm", ".headline.floor", "'randm' is not one of"),
        (N, "metrics", ["solved", "solvd"], ".metrics[1]", "'solvd' is not one of"),
        (N, "models.second", {"use": "vlm"}, ".models.second.use", "'vlm' is not one of"),
        # a value
        (N, "task.instances", "many", ".task.instances", "'many' is not of type 'integer'"),
        (N, "task.instances", [3], ".task.instances", "[3] is not of type 'integer'"),
        (N, "task.instances", 0, ".task.instances", "0 is less than the minimum of 1"),
        (N, "task.graphs", "rings", ".task.graphs", "'rings' is not one of ['small_world',"),
        (N, "task.constraints.apart.every", "egde", ".task.constraints.apart.every", "is not one of ['edge',"),
        (W, "task.conflict", "radnom", ".task.conflict", "'radnom' is not one of ['order', 'random']"),
        (S, "task.form", {"form": "intger", "words": "x"}, ".task.form.form", "'intger' is not one of"),
        (S, "task.agents", "five", ".task.agents", "'five' is not of type 'integer'"),
        (N, "structured_output", "ja", ".structured_output", r"'ja' does not match '^\\$"),
        (N, "repeats", 0, ".repeats", "0 is less than the minimum of 1"),
        # what is not there
        (N, "protocol", ..., "", "'protocol' is a required property"),
        (N, "task.use", ..., ".task", "'use' is a required property"),
        (S, "task.truth", ..., ".task", "'truth' is a required property"),
        (N, "task.constraints.apart.holds", ..., ".task.constraints.apart", "'holds' is a required property"),
        (N, "metrics", [{"name": "x"}], ".metrics[0]", "'use' is a required property"),
        (N, "protocol.channel", {"use": "unreliable"}, ".protocol.channel", "'channel' is a required property"),
    ],
)
def test_a_mistake_is_named_once(
    validator: jsonschema.Draft202012Validator, base: str, path: str, value: Any, place: str, message: str
) -> None:
    [(where, what)] = said(validator, changed(base, path, value))
    assert where == f"${place}" and message in what


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("task", "${task}"),
        ("task", {"use": "${task}", "whatever": 1}),
        ("task.graphs", {"random": "${graphs}", "parameters": {"p": "${p}"}}),
        ("task.graphs", [["${a}", "b"], "${edge}"]),
        ("task.constraints", "${constraints}"),
        ("task.constraints.apart.every", "${what}"),
        ("task.constraints.apart.needs_answers", "${needed}"),
        ("task.soft.low.weight", "${weight}"),
        ("protocol.channel", "${channel}"),
        ("protocol.parse_retries", "${retries}"),
        ("protocol.channel", {"use": "unreliable", "channel": "${channel}", "loss": "${loss}"}),
        ("agents.bad", {"policy": {"use": "simulated", "accuracy": "${accuracy}"}, "share": "${share}"}),
        ("metrics", [{"use": "grade", "of": "apart", "name": "distance"}, "solved"]),
        ("baseline", None),
    ],
)
def test_what_is_right_is_accepted(validator: jsonschema.Draft202012Validator, path: str, value: Any) -> None:
    assert said(validator, changed(N, path, value)) == []


VALUES: tuple[Any, ...] = (1, 0, -1, 2.5, "x", "", True, [], ["a"], [1, 2], {}, {"a": 1}, [["a", "b"]], ...)
"""For a key of a task; the last one takes it away."""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("base", [N, W, S])
def test_editors_and_the_harness_agree(validator: jsonschema.Draft202012Validator, base: str) -> None:
    task = shipped(base)["task"]
    cls = find(ROOT).load("tasks", task["use"])
    paths = [".".join(path) for path in inner_keys(task) if path != ("use",)]
    chance = random.Random(0)
    for _ in range(25):
        path, value = chance.choice(paths), chance.choice(VALUES)
        data = changed(base, f"task.{path}", value)
        use, arguments = data["task"].pop("use"), {k: v for k, v in data["task"].items() if "${" not in str(v)}
        found = said(validator, {**data, "task": {"use": use, **arguments}})
        assert bool(found) == bool([*faults(cls, arguments)]), (path, value, found)


def inner_keys(data: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The paths of all keys below."""
    for key, value in data.items() if isinstance(data, dict) else ():
        yield (*above, key)
        yield from inner_keys(value, (*above, key))


@pytest.mark.parametrize("word", ["extends", "include"])
def test_a_spec_that_extends_another_says_what_is_different(
    validator: jsonschema.Draft202012Validator, word: str
) -> None:
    change = {"task": {"instances": 3, "goal": None}, "protocol": {"channel": {"loss": 0.1}}, "baseline": None}
    assert said(validator, {word: "networks/coloring", **change}) == []
    assert said(validator, {word: "networks/coloring", "task": {"use": "network", "constraints": {"apart": {}}}}) == []
    [(place, message)] = said(validator, {word: "networks/coloring", "task": {"use": "network", "sampels": 3}})
    assert place == "$.task" and "'sampels' was unexpected" in message
    # A list replaces the one there, so that its entries are whole.
    [(place, _)] = said(validator, {word: "networks/coloring", "metrics": [{"of": "apart"}]})
    assert place == "$.metrics[0]"


@pytest.mark.slow
def test_a_new_project_has_the_schema_that_its_specs_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project = tmp_path / "mine"
    assert invoke(capsys, "new", str(project))[0] == 0
    monkeypatch.chdir(project)
    (project / "registry" / "tasks" / "broken.py").write_text("@plugin\nclass Broken: ...\n")
    assert invoke(capsys, "new", "task", "seating", "--kind", "network")[0] == 0
    validator = jsonschema.Draft202012Validator(json.loads((project / SCHEMA).read_text()))
    for spec in ("meeting", "seating"):
        file = project / "specs" / f"{spec}.yaml"
        [_, reference] = file.read_text().splitlines()[0].split("$schema=")
        assert (file.parent / reference).resolve() == project / SCHEMA
        assert said(validator, yamls.read(file).data) == []
    assert said(validator, {"extends": "meeting", "task": {"use": "broken", "of": "any sort"}}) == []
    assert "'dais' was unexpected" in str(
        said(validator, {"extends": "meeting", "task": {"use": "meeting", "dais": 5}})
    )
