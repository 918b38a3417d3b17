"""One standard error everywhere: tables, results.json, data frames and exports follow `cluster:` alike."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.api import Request
from harness.config.project import builtin
from harness.engines.mock import Mock
from harness.extensions.exports import export
from harness.extensions.exports.hub import model_index
from harness.extensions.exports.weights_and_biases import summary

CLUSTERS: dict[str, Any] = {
    "repeats of a case": None,
    "a label": "topic",
    "cases": "case",
    "a label and cases": ["topic", "case"],
    "episodes": "episode",
}


def right_about_rivers(request: Request) -> str:
    """Answers one topic rightly, and the other at times."""
    question = request.thread.messages[-1]["content"]
    right = "river" in question or request.seed % 3 == 0
    return "yes" if right else "no"


def played(folder: Path, cluster: Any) -> harness.Run:
    rows = [{"q": f"{topic} {i}?", "a": "yes", "topic": topic} for topic in ("river", "town", "hill") for i in range(4)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    spec = {
        "name": "clustered",
        "task": {
            "use": "dataset_qa",
            "data_files": str(folder / "rows.jsonl"),
            "test_split": "test",
            "doc_to_text": "{{q}}",
            "doc_to_target": "{{a}}",
            "labels": {"topic": "{{topic}}"},
        },
        "protocol": "single",
        "repeats": 3,
        "tables": [
            {"title": "Right", "rows": "model", "metrics": "score", "aggregate": "pooled", "uncertainty": "sem"}
        ],
        **({} if cluster is None else {"cluster": cluster}),
    }
    return harness.evaluate(spec, Mock(function=right_about_rivers), output_path=folder / "run", project=builtin())


@pytest.fixture(scope="module", params=[*CLUSTERS.values()], ids=[*CLUSTERS])
def clustered(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> harness.Run:
    return played(tmp_path_factory.mktemp("clustered"), request.param)


def test_every_output_has_the_standard_error_of_the_tables(clustered: harness.Run, tmp_path: Path) -> None:
    [cell] = [cell for row in clustered.tables[0].rows for cell in row.cells]
    found = {"results.json": json.loads((clustered.folder / "results.json").read_text())}
    found["rows"] = clustered.rows
    found["to_pandas"] = clustered.to_pandas().to_dict("records")
    errors = {name: next(r["stderr"] for r in rows if r["metric"] == "score") for name, rows in found.items()}
    index = [entry["metrics"][0] for entry in model_index(clustered)[0]["results"]]
    errors["hub"] = next(metric["args"]["stderr"] for metric in index if metric["name"] == "score")
    [path] = [f for f in export(clustered, "lm_eval", tmp_path / "lm").files if f.name.startswith("results_")]
    errors["lm_eval"] = json.loads(path.read_text())["results"]["clustered"]["score_stderr,none"]
    [log] = export(clustered, "inspect", tmp_path / "log").files
    with zipfile.ZipFile(log) as parts:
        scores = json.loads(parts.read("header.json"))["results"]["scores"]
    errors["inspect"] = next(s["metrics"]["stderr"]["value"] for s in scores if s["name"] == "score")
    errors["wandb"] = summary(clustered)["score/stderr"]
    assert cell.stderr is not None and cell.stderr > 0
    assert errors == dict.fromkeys(errors, pytest.approx(cell.stderr, abs=1e-12))


def test_the_errors_differ_where_clusters_do(tmp_path_factory: pytest.TempPathFactory) -> None:
    errors = [
        row["stderr"]
        for cluster in ("topic", "case", "episode")
        for row in played(tmp_path_factory.mktemp("clustered"), cluster).rows
        if row["metric"] == "score"
    ]
    assert len({round(error, 9) for error in errors}) == 3
    assert errors[0] > errors[1] > errors[2], "topics that agree are fewer observations than cases"
