"""Metrics of all episodes together: each episode gives a record, and only the whole has a number."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

import harness
from harness.api import CorpusMetric, Episode, Statistic
from harness.config.project import find
from harness.evaluation.rescore import rescored
from harness.evaluation.run import Run
from harness.extensions.yaml_tasks.conformance import check_metric
from harness.tables import CorpusRecord, EpisodeScore, TableSpec, build, load_scores
from tests.helpers.commands import invoke
from tests.helpers.toy import TOY

F1 = '''
import numpy
from harness.api import CorpusMetric, Episode, Statistic, plugin

@plugin
class F1(CorpusMetric):
    """F1 of "the group agreed", against the parity of the case's number."""

    odd: bool = False

    def measure(self, episode: Episode):
        if self.odd:
            return {1, 2}
        return numpy.array([episode.labels["number"] % 2, int(episode.grade["agreed"])])

    def aggregate(self, numbers) -> Statistic:
        hits = sum(a and b for a, b in numbers)
        return Statistic(2 * hits / max(1, sum(map(sum, numbers))), 0.125, len(numbers))
'''
SPEC = """
extends: toy
name: corpus
metrics: [agreed, {use: f1, name: F1}]
headline: {metric: F1}
tables:
  - {title: Both, rows: model, columns: metric, metrics: [agreed, F1], aggregate: pooled, uncertainty: {F1: sem}}
"""


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    (tmp_path / "harness.yaml").write_text(f"name: corpus\nparents: [{TOY.root}]\n")
    for folder, name, text in (("metrics", "f1.py", F1), ("specs", "corpus.yaml", SPEC)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text(text)
    return tmp_path


def run(corpus: Path, *overrides: str) -> Run:
    return harness.evaluate("corpus", output_path=corpus / "run", project=find(corpus), overrides=overrides)


def test_records_reach_the_tables_and_are_kept(corpus: Path) -> None:
    done = run(corpus)
    records = [score.numbers["F1"] for score in done.scores]
    assert all(isinstance(record, CorpusRecord) and len(record.value) == 2 for record in records)
    values = [record.value for record in records if isinstance(record, CorpusRecord)]
    hits = sum(a and b for a, b in values)
    cell = done.tables[0].rows[0].cells[1]
    assert cell.value == pytest.approx(2 * hits / sum(map(sum, values)))
    assert (cell.stderr, cell.n, cell.failed) == (0.125, 8, 0)
    assert load_scores(corpus / "run" / "scores.jsonl") == list(done.scores)
    assert json.loads((corpus / "run" / "scores.jsonl").read_text().splitlines()[0])["numbers"]["F1"] == {
        "record": values[0]
    }
    assert rescored(corpus / "run", find(corpus)).scores == done.scores
    assert {row["metric"]: row["n"] for row in done.rows} == {"agreed": 4, "F1": 4}
    assert [row["metric_F1" if "metric_F1" in row else "F1"] for row in done.episodes()] == values


def test_records_come_back_from_the_journal(corpus: Path) -> None:
    done = run(corpus)
    again = run(corpus)
    assert again.scores == done.scores and isinstance(again.scores[0].numbers["F1"], CorpusRecord)


def test_a_record_that_json_does_not_keep_fails_its_episode(corpus: Path) -> None:
    done = run(corpus, "metrics.1.odd=true")
    assert len(done.failed) == 8
    assert "metric F1" in str(done.failed[0].error) and "JSON does not keep" in str(done.failed[0].error)


def test_commands_that_need_a_number_of_each_episode_leave_it_out(
    corpus: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(corpus)
    harness.evaluate("corpus", output_path=corpus / "other", project=find(corpus), overrides=["baseline.bias=0.2"])
    monkeypatch.chdir(corpus)
    for command in (["leaderboard", "run", "other"], ["report", "run"], ["compare", "run", "other"]):
        code, shown, mistakes = invoke(capsys, *command)
        assert code == 0, mistakes
        assert "F1" in shown and "nan" not in shown.lower()


class Texts(CorpusMetric):
    def measure(self, episode: Episode) -> object:
        return episode.id

    def aggregate(self, numbers: Sequence[str]) -> Statistic:
        return Statistic(float(len(numbers)), None, len(numbers))


def test_records_are_any_json_value() -> None:
    assert check_metric(Texts()) == []
    scores = [EpisodeScore(f"c/{i}/0", "c", {"model": "m"}, {"t": CorpusRecord({"x": [i]})}) for i in range(3)]
    scores.append(EpisodeScore("c/3/0", "c", {"model": "m"}, {"t": CorpusRecord("lost")}, error="it failed"))
    assert [EpisodeScore.from_json(json.loads(json.dumps(score.to_json()))) for score in scores] == scores
    table = TableSpec.parse({"title": "T", "rows": "model", "metrics": "t", "aggregate": "pooled"})
    cell = build(table, scores, {"t": Texts()}).rows[0].cells[0]
    assert (cell.value, cell.n, cell.failed, scores[0].number("t")) == (3.0, 3, 1, None)
