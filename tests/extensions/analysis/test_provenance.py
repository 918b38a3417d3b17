"""Where a board comes from stands in every form of it; the end of a run says what was run; files are announced."""

import contextlib
import csv
import io
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import harness
from harness.engines.mock import Mock
from harness.extensions.submissions.archive import pack, unpack
from harness.report.citation import facts
from harness.report.provenance import in_one_line
from tests.helpers.commands import invoke

FORMS = ("text", "markdown", "csv", "latex", "json", "html")
CHANGES = ["matrix.condition=[sim3nc]", "repeats=2", "generation_kwargs.temperature=0"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> harness.Run:
    folder = tmp_path_factory.mktemp("provenance") / "played"
    model = Mock(model="waiter", text="ACTION: WAIT")
    return harness.evaluate("dpbench_quick", model, overrides=CHANGES, output_path=folder)


def facts_of(run: harness.Run) -> list[str]:
    versions, start = run.meta["versions"], str(run.meta["start"])[:10]
    return [start, versions["harness"], str(run.meta["spec_digest"])[:12], "temperature=0", "A. Person", "played"]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_board_says_where_it_comes_from(
    run: harness.Run, form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "board"
    options = ("--format", form, "--author", "A. Person", "--output", str(file))
    code, out, err = invoke(capsys, "leaderboard", str(run.folder), *options)
    assert (code, out) == (0, "") and f"wrote: {file}" in err
    shown = file.read_text().replace("\\_", "_").replace("\\allowbreak{}", "")
    assert [fact for fact in facts_of(run) if fact not in shown] == []
    for name in ("date", "commit", "seed", "prompts", "sampling", "repeats", "cost", "limit", "author"):
        assert name in shown


def test_the_block_is_data_in_csv_and_json(run: harness.Run, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = invoke(capsys, "leaderboard", str(run.folder), "--format", "json")
    block = json.loads(out)[-1]
    found = {row["key"]["what"]: row["key"]["value"] for row in block["rows"]}
    assert found["seed"] == "42" and found["repeats"] == "2" and found["run"] == str(run.folder)
    assert found["commit"] == run.meta["git"]["commit"] + " (with changes)" * run.meta["git"]["dirty"]
    _, out, _ = invoke(capsys, "leaderboard", str(run.folder), "--format", "csv")
    rows = list(csv.reader(io.StringIO(out[out.index("run,what,value") :])))
    assert {what: value for _, what, value in filter(None, rows[1:])} == found


def test_the_author_is_that_of_the_project(
    run: harness.Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "harness.yaml").write_text("author: The Project\nparents: [harness_builtin]\n")
    with contextlib.chdir(tmp_path):
        code, out, err = invoke(capsys, "leaderboard", str(run.folder), "--format", "markdown")
    assert code == 0, err
    assert "The Project" in out


@pytest.mark.parametrize(
    ("stated", "shown"),
    [
        ("Lab good", "Lab good (stated by the submitter)"),
        ("a\x1b[2J\nb", r"a\x1b[2J\nb (stated by the submitter)"),
        ("x" * 1000, "x" * 199 + "… (stated by the submitter)"),
        (["a list"], "The Board"),
        (" ", "The Board"),
        (None, "The Board"),
    ],
)
def test_the_author_of_a_submission_is_who_submitted_it(
    run: harness.Run, stated: object, shown: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pack(run.folder, tmp_path / "run.zip", {"author": stated})
    (tmp_path / "kept").mkdir()
    unpack(tmp_path / "run.zip", tmp_path / "kept")
    _, out, _ = invoke(capsys, "leaderboard", str(tmp_path / "kept"), "--author", "The Board", "--format", "json")
    assert {row["key"]["what"]: row["key"]["value"] for row in json.loads(out)[-1]["rows"]}["author"] == shown


def test_the_site_names_the_author_of_a_submission(
    run: harness.Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pack(run.folder, tmp_path / "run.zip", {"author": "Lab <b>good"})
    (tmp_path / "kept").mkdir()
    unpack(tmp_path / "run.zip", tmp_path / "kept")
    site = tmp_path / "site"
    invoke(capsys, "leaderboard", str(tmp_path / "kept"), "--format", "site", "-o", str(site))
    [page] = site.glob("runs/*/index.html")
    assert "Lab &lt;b&gt;good (stated by the submitter)" in page.read_text()


def test_the_end_of_a_run_says_what_was_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("eval", "--spec", "dpbench_quick", "--model", "mock", "--model_args", "text=WAIT", "--limit", "1")
    sets = ("--set", "matrix.condition=[sim3nc]", "--set", "repeats=1", "--output_path", str(tmp_path / "run"))
    code, out, _ = invoke(capsys, *arguments, *sets)
    first = out.splitlines()[0]
    assert code == 0 and first.startswith("dpbench_quick: mock (text=WAIT")
    assert first.endswith("generation_kwargs: (temperature=0.7, max_tokens=128), limit: 1, seed: 42, repeats: 1")


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda values: st.lists(values, max_size=2) | st.dictionaries(st.sampled_from(["spec", "model"]), values),
)
KEYS = ("git", "identity", "engine_args", "versions", "start", "model", "spec_digest", "generation_kwargs")


@given(st.dictionaries(st.sampled_from(KEYS), JSON))
def test_a_record_of_any_content_gives_texts(record: dict[str, object]) -> None:
    assert all(isinstance(fact, str) for fact in facts(record, "played", "nothing", None).values())
    assert in_one_line(record)
