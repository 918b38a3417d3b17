"""`harness new task` for every kind, and what `harness validate` proves of tasks that a spec declares."""

import shutil
from pathlib import Path

import pytest

from harness.cli import main
from harness.cli.new import kinds
from tests.helpers.commands import invoke

KINDS = kinds()
SHOWN = {
    "network": "Mean score",
    "questions": "always 43 0.25",
    "sharded": "silo/oracle mailbox 1.00",
    "world": "greedy 56",
}
"""What the baseline of a starter scores."""


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("new") / "mine"
    assert main(["new", str(folder)]) == 0
    return folder


@pytest.fixture
def project(mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new project, which is the working directory."""
    shutil.copytree(mine, tmp_path / "mine")
    monkeypatch.chdir(tmp_path / "mine")
    return tmp_path / "mine"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", KINDS[3:] + KINDS[:3])  # the first is the one that runs by default
def test_a_new_task_is_valid_and_plays(project: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    code, out, _ = invoke(capsys, "new", "task", "first_try", "--kind", kind)
    assert code == 0 and "specs/first_try.yaml" in out and "harness eval --spec specs/first_try.yaml" in out
    code, out, err = invoke(capsys, "validate", "specs/first_try.yaml")
    assert code == 0, err
    assert kind == "questions" or "20 cases; random agents: " in out
    code, out, err = invoke(capsys, "eval", "--spec", "specs/first_try.yaml", "--quiet")
    assert code == 0 and "first_try" in out, err
    assert SHOWN[kind] in " ".join(out.split()), out
    lines = (project / "specs/first_try.yaml").read_text().splitlines()
    assert len(lines) <= 45
    end = next(i for i, line in enumerate(lines) if line.startswith("protocol:"))
    keys = [line for line in lines if line[:1].isalpha()]
    keys += [line for line in lines[:end] if line[:2] == "  " and line[2].isalpha()]
    assert [line for line in keys if "#" not in line] == []
    assert not any(file for file in project.rglob("*") if file.is_file() and b"__NAME__" in file.read_bytes())
    code, _, err = invoke(capsys, "new", "task", "first_try", "--kind", kind)
    assert code == 2 and "exists already" in err


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("mean(data)", "mean(dato)", "specs/prices.yaml:19:18: dato: unknown name. Did you mean data?"),
        ("mean(data)", "1 / (min(data) - 1)", "division by zero"),  # some seeds draw a 1
        ("sum(price > middle for price in data)", "sum(price > middle for price in data) / 0", "division by zero"),
        ("public: []", "public: [answer_to_all]", "answer_to_all"),
    ],
)
def test_a_faulty_task_is_found(
    project: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, message: str
) -> None:
    invoke(capsys, "new", "task", "prices", "--kind", "sharded")
    spec = project / "specs/prices.yaml"
    text = spec.read_text()
    assert text.count(old) == 1
    spec.write_text(text.replace(old, new))
    code, _, err = invoke(capsys, "validate", "specs/prices.yaml")
    assert code == 2 and message in err and "Traceback" not in err, err


def test_a_right_answer_in_a_prompt_is_found(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    invoke(capsys, "new", "task", "prices", "--kind", "sharded")
    spec = project / "specs/prices.yaml"
    text = (
        spec.read_text()
        .replace("draw:", "draw:\n    secret: sum([randint(1, 9) for _ in range(4)])")
        .replace("public: []", "public: [secret]")
    )
    spec.write_text(text.replace("truth: sum(price > middle for price in data)", "truth: secret"))
    code, _, err = invoke(capsys, "validate", "specs/prices.yaml")
    assert code == 2 and "the context holds the target, as known.secret" in err, err


def recipe(folder: Path, name: str, *changes: tuple[str, str]) -> Path:
    """A spec of the cookbook, changed."""
    page = (Path(__file__).parents[3] / "docs/how-to/cookbook.md").read_text()
    text = next(part for part in page.split("```yaml\n") if part.startswith(f"name: {name}\n")).partition("```")[0]
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (folder / "own.yaml").write_text(text)
    return folder / "own.yaml"


def test_a_grade_among_metrics_learns_how_it_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = recipe(tmp_path, "alarm", ("{use: grade, of: warned, name: warned}", "warned"))
    code, _, err = invoke(capsys, "validate", str(file))
    assert code == 2 and "there is no metric 'warned'" in err
    assert "'warned' is a grade of this task: write {use: grade, of: warned, name: warned}." in err
    file.write_text(file.read_text().replace("score, warned]\nt", "score, characters]\nt"))
    assert (
        "'characters' is a fact of this protocol: write {use: fact, of: characters"
        in invoke(capsys, "validate", str(file))[2]
    )


ADELAIDE = (("Ada", "Adelaide"), ("Bo", "Bartholomew"), ("Cy", "Christabel"))


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("election", ADELAIDE),
        ("election", (*ADELAIDE, ("form: {one_of: [Adelaide, Bartholomew, Christabel]}", "form: text"))),
        ("election", (*ADELAIDE, ("  agents: 5", "  agents: 5\n  whole: true"), ("silo/oracle, plan: star", "random"))),
        ("hotspot", (("known: {", "hidden: {highest: max(values(degrees))}\n  known: {"),)),
    ],
)
def test_right_answers_may_stand_in_the_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, changes: tuple[tuple[str, str], ...]
) -> None:
    code, _, err = invoke(capsys, "validate", str(recipe(tmp_path, name, *changes)))
    assert code == 0, err


NAMES = "['Adelaide', 'Bartholomew', 'Christabel']"
KNOWN = 'known: {degrees: "randint(10, 99)"}'


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("name", "changes", "place"),
    [
        (
            "election",
            (
                *ADELAIDE,
                ("    data:", f"    best: choice({NAMES})\n    data:"),
                ("  until:", "  public: [best]\n  until:"),
                ('truth: "max(keys(tally), key=lambda name: tally[name])"', "truth: best"),
            ),
            "the context holds the target, as known.best",
        ),
        (
            "hotspot",
            ((KNOWN, 'hidden: {top: "randint(10, 99)"}\n  known: {degrees: top}'),),
            "the context holds the target, as degrees",
        ),
        (
            "hotspot",
            (
                (KNOWN, f"hidden: {{top: sum(values(degrees))}}\n  shared: {{total: top}}\n  {KNOWN}"),
                ("where it is hottest.", "where it is hottest. It is {{ total }} in all."),
            ),
            "the context holds the target, as total",
        ),
    ],
)
def test_right_answers_that_every_agent_has_are_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, changes: tuple[tuple[str, str], ...], place: str
) -> None:
    code, _, err = invoke(capsys, "validate", str(recipe(tmp_path, name, *changes)))
    assert code == 2 and place in err, err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "rule", "says"),
    [
        (2, "answer[u] > 99", "best outcome of all: solved 0, score 0.5, answered 1, separate 0; no answers solve it"),
        (8, "answer[u] > 99", "separate 0; warning: no outcome found that solves it"),
        (8, "answer[u] != answer[v]", "best outcome of a search: solved 1"),
    ],
)
def test_a_task_that_nothing_solves_is_noticed(
    project: Path, capsys: pytest.CaptureFixture[str], size: int, rule: str, says: str
) -> None:
    invoke(capsys, "new", "task", "rooms", "--kind", "network")
    spec = project / "specs/rooms.yaml"
    text = spec.read_text().replace("size: 8 ", f"size: {size} ").replace("answer[u] != answer[v]", rule)
    spec.write_text(text.replace("[ring, tree, small_world]", "[tree]"))
    code, out, err = invoke(capsys, "validate", "specs/rooms.yaml")
    assert code == 0 and says in out, out + err
