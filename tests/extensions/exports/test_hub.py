"""Data sets of the Hugging Face hub: what is uploaded, with the real client against a hub on loopback.

The client takes a second to import, so only tests that use it do.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import harness
from harness.api.errors import DataError
from harness.engines.mock import Mock
from harness.extensions.exports import export
from tests.helpers.commands import ROOT, TOY, invoke
from tests.helpers.fake_hub import FakeHub
from tests.helpers.toy import run

TOKEN = "hf_abcdefghijklmnopqrstuvwxyz"


def command(hub: str, run: Path, home: Path, *more: str, token: str = TOKEN) -> tuple[int, str]:
    """`harness export --to hub`, as a process whose client knows this hub; (exit code, all that it printed)."""
    words = [sys.executable, "-m", "harness", "export", str(run), "--to", "hub", *more]
    own = {"HF_ENDPOINT": hub, "HF_HOME": str(home), "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
    own |= {"HF_TOKEN": token} if token else {}
    environment = {key: value for key, value in os.environ.items() if not key.startswith("HF_")} | own
    done = subprocess.run(
        words, cwd=TOY, env={**environment, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
def test_a_run_is_uploaded_in_one_commit(done: harness.Run, tmp_path: Path) -> None:
    from pyarrow import parquet

    with FakeHub(TOKEN) as hub:
        code, printed = command(hub.url, done.folder, tmp_path, "--repo", "me/runs")
        repo = hub.repos["me/runs"]
        assert code == 0 and f"uploaded: {hub.url}/datasets/me/runs" in printed and "60 turns" in printed
        assert repo.private and len(repo.commits) == 1 and TOKEN not in printed
        assert set(repo.files) - {".gitattributes"} == {
            *("README.md", "episodes.parquet", "turns.parquet", "run.json", "spec.yaml", "results.json"),
        }
        assert not any(TOKEN.encode() in data for data in repo.files.values())
        assert not (done.folder / "export" / "hub").exists()
        (tmp_path / "turns.parquet").write_bytes(repo.files["turns.parquet"])
        assert parquet.read_table(tmp_path / "turns.parquet").num_rows == 60

        code, printed = command(hub.url, done.folder, tmp_path, "--repo", "me/runs")
        assert code == 2 and "me/runs is there already" in printed and len(repo.commits) == 1
        kept = ("-o", str(tmp_path / "kept"))
        code, printed = command(hub.url, done.folder, tmp_path, "--repo", "me/runs", "--overwrite", *kept)
        assert code == 0 and len(repo.commits) == 2 and (tmp_path / "kept" / "README.md").is_file()


@pytest.mark.slow
def test_what_the_hub_refuses_is_one_line(done: harness.Run, tmp_path: Path) -> None:
    with FakeHub(TOKEN, {"/commit/main": 403}) as hub:
        more = ("--public", "-o", str(tmp_path / "x"))
        code, printed = command(hub.url, done.folder, tmp_path, "--repo", "me/runs", *more)
        assert code == 2 and "refuses to write to me/runs (HTTP 403)" in printed and "Traceback" not in printed
        assert TOKEN not in printed and not (tmp_path / "x").exists() and not hub.repos["me/runs"].private
        code, printed = command(hub.url, done.folder, tmp_path, "--repo", "me/runs", token="")
        assert code == 2 and "HF_TOKEN" in printed and "Traceback" not in printed
    code, printed = command(hub.url, done.folder, tmp_path, "--repo", "me/runs")
    assert code == 2 and "cannot upload to me/runs" in printed and "Traceback" not in printed


def test_the_folder_is_a_data_set(done: harness.Run, tmp_path: Path) -> None:
    from huggingface_hub import DatasetCard

    export(done, "hub", tmp_path / "x")
    card = DatasetCard.load(tmp_path / "x" / "README.md")
    configs = {config["config_name"]: config["data_files"] for config in card.data.to_dict()["configs"]}
    assert configs == {"episodes": "episodes.parquet", "turns": "turns.parquet"}
    assert all((tmp_path / "x" / file).is_file() for file in configs.values())
    assert "### Agreement" in card.text and "| model | mock |" in card.text
    assert "| `agreed` | number | the metric agreed |" in card.text


def test_no_card_states_the_results_of_a_model_that_was_not_read(done: harness.Run, tmp_path: Path) -> None:
    assert done.headline_missing, "2 of 9 turns were read"
    files = export(done, "hub", tmp_path / "x").files
    assert "model-index.yaml" not in {file.name for file in files}
    card = (tmp_path / "x" / "README.md").read_text()
    assert "were parsed, fewer than 50 %" in card and "| mock | – |" in " ".join(card.split())


def test_model_cards_can_state_the_results(tmp_path: Path) -> None:
    from huggingface_hub import ModelCardData
    from huggingface_hub.repocard_data import model_index_to_eval_results

    done = run(tmp_path / "r", Mock(text="b"))
    export(done, "hub", tmp_path / "x")
    index = yaml.safe_load((tmp_path / "x" / "model-index.yaml").read_text())["model-index"]
    name, results = model_index_to_eval_results(index)
    assert name == "mock"
    rows = {(row["condition"], row["metric"]): row["value"] for row in done.rows if row["value"] is not None}
    assert rows
    assert {(result.dataset_config, result.metric_type): result.metric_value for result in results} == rows
    assert "model-index" in ModelCardData(model_name=name, eval_results=results).to_dict()


def test_policies_are_no_model(tmp_path: Path) -> None:
    headline = ("headline.metric=agreed", "headline.title=Same letter")
    files = export(run(tmp_path / "r", overrides=headline), "hub", tmp_path / "x").files
    assert "model-index.yaml" not in {file.name for file in files}
    card = (tmp_path / "x" / "README.md").read_text()
    assert "no model took part" in card and card.index("### Same letter") < card.index("### Agreement")


@pytest.mark.parametrize("repo", ["runs", "me/../runs", "me/ru ns", "/runs", "me/runs/2", "-me/runs"])
def test_names_are_checked_before_anything_is_written(
    capsys: pytest.CaptureFixture[str], done: harness.Run, repo: str
) -> None:
    code, _, err = invoke(capsys, "export", str(done.folder), "--to", "hub", f"--repo={repo}")
    assert code == 2 and "user/name" in err and repo in err


def test_only_the_hub_has_repos(done: harness.Run) -> None:
    with pytest.raises(DataError, match="hub"):
        export(done, "csv", repo="me/runs")
