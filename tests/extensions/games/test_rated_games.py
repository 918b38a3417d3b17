"""Ratings from the command line: a run of games in YAML, its tables and heat map, and games that cannot be rated."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.cli import main

SPEC = """\
name: rated
task:
  use: world
  agents: 3
  instances: 4
  rules: Say high or low.
  own: {last: 0}
  actions:
    HIGH: {means: say high, effects: {mine.last: "randint(2, 6)"}}
    LOW: {means: say low, effects: {mine.last: "randint(1, 5)"}}
  noop: LOW
  end: rounds >= 1
  scores: {returns: last, score: mean(values(last)) / 6}
protocol: {use: steps, max_timesteps: 2}
prompts: world/standard
agents:
  <b>high</b>: {agents: [Agent-1], policy: {use: expression, act: "'HIGH'"}}
  low: {agents: [Agent-2], policy: {use: expression, act: "'LOW'"}}
repeats: 5
baseline: random
metrics: [score, games/results]
tables:
  - {title: Ratings, kind: rating, of: games/results, model: MODEL, labels: {default: luck}}
  - {title: Each against each, kind: cross_play, of: games/results, figure: heat, uncertainty: interval}
"""


def written(folder: Path, model: str, text: str = SPEC) -> str:
    path = folder / "rated.yaml"
    path.write_text(text.replace("MODEL", model))
    return str(path)


@pytest.mark.slow
def test_a_run_of_games_has_ratings_and_a_heat_map(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec, run = written(tmp_path, "plackett_luce"), str(tmp_path / "run")
    assert main(["eval", "--spec", spec, "--output_path", run, "--quiet"]) == 0
    shown = capsys.readouterr().out
    assert "Rating: Plackett–Luce" in shown and "luck" in shown and "Each against each" in shown
    assert "observation (4 of them)" in shown  # five repeats of four cases
    assert main(["report", run, "--plots", str(tmp_path / "plots")]) == 0
    assert (tmp_path / "plots" / "figure1.png").stat().st_size > 5_000
    assert main(["report", run, "--format", "html", "--output", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text()
    assert "<svg" in page and "&lt;b&gt;high" in page and "<b>high" not in page


@pytest.mark.slow
def test_games_that_a_model_cannot_rate_stop_a_run_before_it_begins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    crowded = written(tmp_path, "bradley_terry")
    assert main(["validate", crowded]) == 2
    assert (
        "rated.yaml:23:5: bradley_terry rates games of two contestants; condition all has 3" in capsys.readouterr().err
    )
    assert main(["eval", "--spec", crowded, "--output_path", str(tmp_path / "run")]) == 2
    assert "Say `model: plackett_luce` or `openskill`" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
    text = SPEC.replace("model: MODEL", "anchor: lwo")
    assert main(["validate", written(tmp_path, "", text)]) == 2
    shown = capsys.readouterr().err
    assert "rated.yaml:23:5: anchor: no contestant is called 'lwo'" in shown and "Did you mean low?" in shown
    assert main(["validate", written(tmp_path, "", text.replace("lwo", "default"))]) == 0
    capsys.readouterr()
    before, _, rest = SPEC.partition("agents:\n  <b>")
    alone = written(tmp_path, "elo", before + "repeats:" + rest.partition("repeats:")[2])
    assert main(["validate", alone]) == 2
    assert "kind: rating: no game has two contestants" in capsys.readouterr().err


GARBAGE = """\
name: garbage
task: {{use: openspiel, game: kuhn_poker{invalid}}}
protocol: steps
tournament:
  pool:
    - model
    - {{policy: random}}
    - {{label: last action, policy: {{use: expression, act: "options[-1]"}}}}
  games_per_pairing: 4
"""


@pytest.mark.parametrize(("invalid", "ends"), [("", {-2.0}), (", invalid: random", {-2.0, -1.0, 1.0, 2.0})])
def test_a_model_without_a_legal_move_is_unrated_and_loses_its_games(
    invalid: str, ends: set[float], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By default it loses by its first move; with `invalid: random` random moves play on for it, and are not rated."""
    spec, run = written(tmp_path, "", GARBAGE.format(invalid=invalid)), tmp_path / "run"
    arguments = ["--model", "mock", "--model_args", "text=I do not know.", "--output_path", str(run), "--quiet"]
    assert main(["eval", "--spec", spec, *arguments]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "mock – – 0 0 0" in shown and "100.0% 100.0% 0.0%" in shown
    assert "mock is not rated: it made no legal move in any of its turns" in shown
    lines = (run / "scores.jsonl").read_text("utf-8").splitlines()
    records = [json.loads(line)["numbers"]["games/results"]["record"] for line in lines]
    own = [seat for record in records for seat in record if seat[0] == "model"]
    asked = [seat for seat in own if len(seat) > 2]  # in Kuhn poker the second player may get no turn
    assert {seat[1] for seat in asked} <= ends and len({seat[1] for seat in asked}) >= min(len(ends), 2)
    assert all(seat[2].get("forfeited") == (None if invalid else 1) for seat in asked) and len(asked) >= 12
