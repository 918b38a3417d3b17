"""Numbers that no sum of squares can hold cost no table, no comparison and no traceback."""

from pathlib import Path

import pytest

from harness.cli import main
from harness.tables import EpisodeScore

METRIC = '''from harness.api import Metric, plugin


@plugin
class Huge(Metric):
    """The same number for every episode."""

    value: float = 1.0

    def measure(self, episode):
        return self.value
'''
SPEC = """extends: arithmetic
name: x
metrics: [{use: huge, name: huge, value: VALUE}, score]
headline: {metric: huge}
tables: [{title: T, rows: model, metrics: huge}]
"""


@pytest.mark.parametrize(
    "values", [("1.7e308", "-1.7e308"), ("1e308", "1e154"), ("1e100", "-1e100"), ("5e-324", "0.0")]
)
def test_every_table_of_huge_numbers_can_be_made(
    tmp_path: Path, values: tuple[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "harness.yaml").write_text("parents: [harness_builtin]\n")
    (tmp_path / "metrics").mkdir()
    (tmp_path / "metrics" / "huge.py").write_text(METRIC)
    monkeypatch.chdir(tmp_path)
    for name, value in zip("ab", values, strict=True):
        Path(f"{name}.yaml").write_text(SPEC.replace("VALUE", value))
        play = ["eval", "--spec", f"{name}.yaml", "--model", "mock", "--limit", "2", "--quiet", "--output_path", name]
        assert main(play) == 0, capsys.readouterr().err
    for words in (["compare", "a", "b"], ["report", "a"], ["leaderboard", "a"], ["report", "a", "--format", "json"]):
        assert main(words) == 0, (words, capsys.readouterr().err)
    assert "Traceback" not in capsys.readouterr().err


def test_a_number_beyond_what_counts_is_missing() -> None:
    line = {"id": "e", "condition": "all", "labels": {}, "error": None}
    for value in (1e308, -1e101, 10**400):
        assert EpisodeScore.from_json({**line, "numbers": {"n": value}}).number("n") is None
        assert EpisodeScore.from_json({**line, "numbers": {"n": [value, 1]}}).number("n") is None
    assert EpisodeScore.from_json({**line, "numbers": {"n": 1e100}}).number("n") == 1e100
