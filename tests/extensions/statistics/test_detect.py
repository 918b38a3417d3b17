"""`harness plan --detect`: enough cases for the power that was asked for, by what runs show, and what that costs."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.api.errors import SpecError
from harness.extensions.analysis import paired
from harness.extensions.analysis.amount import Amount
from harness.extensions.games.tournaments.results import Game
from harness.extensions.statistics.sample_size import least_gap, of_games, of_scores, units_needed, worst
from harness.tables import EpisodeScore
from tests.helpers.commands import invoke

Capsys = pytest.CaptureFixture[str]
SPEC = """
name: sums
task: {use: arithmetic, size: 10, terms: 4}
protocol: {use: vote, agents: 3}
prompts: panels/standard
repeats: 2
models:
  small: {use: openai, model: gpt-small, base_url: "http://127.0.0.1:9/v1"}
baseline: {use: simulated, accuracy: 0.6}
metrics: [score]
"""


@given(st.floats(0.005, 0.5), st.floats(0.01, 2.0), st.sampled_from([0.6, 0.8, 0.95]))
def test_it_is_the_least_number_that_detects_the_difference(difference: float, variance: float, power: float) -> None:
    n = units_needed(difference, variance, power)
    assert paired.detectable((variance / n) ** 0.5, n - 1, power) <= difference
    if n > paired.MIN_PAIRS:
        assert paired.detectable((variance / (n - 1)) ** 0.5, n - 2, power) > difference


def test_so_many_cases_have_the_power() -> None:
    """60 models of 0.5 against 60 of 0.62, on as many cases as the plan asks for: four in five are told apart."""
    rng = numpy.random.default_rng(5)
    n = units_needed(0.12, worst(1.0).variance(1))
    found = 0
    for _ in range(60):
        difference = (rng.random(n) < 0.62).astype(float) - (rng.random(n) < 0.5)
        found += (paired.sign_flip([[(i, float(x)) for i, x in enumerate(difference)]]) or 1.0) < 0.05
    assert 40 <= found <= 57


@pytest.mark.parametrize(
    ("numbers", "gap"),
    [([0.0, 1.0, 1.0], 1.0), ([0.1 + 0.2, 0.3, 0.5, 0.1], 0.2), ([2.0, 2.0], 0.0), ([], 0.0), ([4.0, 1.0, 3.5], 0.5)],
    ids=["zeros and ones", "rounding errors", "equal", "none", "halves"],
)
def test_how_close_numbers_come(numbers: list[float], gap: float) -> None:
    assert least_gap(numbers) == pytest.approx(gap)


TALK = """
name: talk
task:
  use: world
  agents: 2
  rules: Say something.
  state: {said: 0}
  sees: {said: said}
  actions: {SAY: {effects: {said: said + 1}}, WAIT: {}}
  noop: WAIT
  end: rounds >= 5
  scores: {score: said / 10}
  instances: 40
protocol: {use: steps, order: simultaneous, max_timesteps: 20}
prompts: world/standard
metrics: [score]
headline: {metric: score}
baseline: {use: expression, act: "'SAY' if chance(0.5) else 'WAIT'"}
"""


def test_a_pilot_of_scores_asks_for_as_many_cases_as_their_variance_does(folder: Path, capsys: Capsys) -> None:
    """Only zeros and ones, or numbers as far apart, take more for the exact test."""
    (folder / "talk.yaml").write_text(TALK)
    spec, run = str(folder / "talk.yaml"), str(folder / "pilot")
    assert invoke(capsys, "eval", "--spec", spec, "--output_path", run)[0] == 0
    code, out, err = invoke(capsys, "plan", "--spec", spec, "--detect", "10%", "--run", run)
    assert code == 0, err
    [deviation] = re.findall(r"standard deviation of ([\d.]+) among", " ".join(out.split()))
    needed = units_needed(0.1, float(deviation) ** 2)
    assert needed <= int(rows_of(out)[0][1]) <= 1.15 * needed


def scores(models: int, repeats: int, cases: int = 400) -> list[EpisodeScore]:
    """Cases with a standard deviation of 1, of a model's own 0.5, of repeats 0.7."""
    rng = numpy.random.default_rng(3)
    ease, own = rng.normal(0, 1, cases), rng.normal(0, 0.5, (cases, models))
    return [
        EpisodeScore(f"c/q{i}/{k}", "c", {"model": f"m{m}"}, {"score": ease[i] + own[i, m] + rng.normal(0, 0.7)})
        for i, m, k in itertools.product(range(cases), range(models), range(repeats))
    ]


def test_two_models_show_what_cancels_and_one_what_may_not() -> None:
    two, one = of_scores(scores(2, 3), "score"), of_scores(scores(1, 3), "score")
    assert two is not None and one is not None
    assert (two.unit, two.rest) == pytest.approx((0.5, 0.98), rel=0.2) and two.shared == pytest.approx(1, rel=0.2)
    assert one.shared is None and (one.unit, one.rest) == pytest.approx((2.5, 0.98), rel=0.2)
    once = of_scores(scores(2, 1), "score")
    assert once is not None and not once.separable and once.unit == pytest.approx(1.48, rel=0.2)


def test_games_show_deals_and_the_advantage_of_the_first_seat() -> None:
    rng, games = numpy.random.default_rng(1), []
    for deal in range(400):
        luck = rng.normal(0, 1)
        for first, second in (("A", "B"), ("B", "A")):
            ahead = float(0.8 + (luck if first == "A" else -luck) + rng.normal(0, 0.5) > 0)
            standing = {first: ahead, second: 1 - ahead}
            games.append(Game(standing, standing, str(deal), deal, seats={first: 0, second: 1}))
    found = of_games(games)
    assert found is not None and found.seat > 0.3 and (found.games, found.deals) == (800, 400)
    assert found.seat_half is not None and found.seat_half < 0.1
    assert found.spread.separable and found.spread.unit > 0.15 and found.spread.rest > 0.3
    assert of_games([]) is None


def rows_of(out: str) -> list[list[str]]:
    """The numbers of the table: a line for each number of repeats."""
    return [line.split() for line in out.splitlines() if re.match(r" +\d+ +\d", line)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sums.yaml").write_text(SPEC)
    return tmp_path


def test_the_command_says_what_it_takes_and_costs(
    folder: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, runs = str(folder / "sums.yaml"), [str(folder / x) for x in "ab"]
    for run, accuracy in zip(runs, ("0.5", "0.9"), strict=True):
        more = ("--set", f"baseline.accuracy={accuracy}", "--output_path", run)
        assert invoke(capsys, "eval", "--spec", spec, *more)[0] == 0
    code, out, _ = invoke(capsys, "plan", "--spec", spec, "--detect", "5%")
    assert code == 0 and "No run says how numbers vary" in out
    assert rows_of(out) == [["1", "1612", "1612", "4836", "106392", "1238016"]]
    code, out, _ = invoke(capsys, "plan", "--spec", spec, "--detect", "5%", "--run", runs[0], "--run", runs[1])
    assert code == 0 and "differences of two models vary" in " ".join(out.split())
    assert "With the spec's 10 cases a condition" in out
    assert [row[0] for row in rows_of(out)] == ["1", "2", "3", "5", "10"]
    cases = [int(row[1]) for row in rows_of(out)]
    assert cases == sorted(cases, reverse=True) and "One model was seen" not in out
    assert "One model was seen" in invoke(capsys, "plan", "--spec", spec, "--detect", "5%", "--run", runs[0])[1]
    (folder / "prices.yaml").write_text("gpt-small: {input: 1, output: 10}\nother: {input: 1, output: 1}\n")
    monkeypatch.setenv("HARNESS_CONFIG_DIR", str(folder))
    out = invoke(capsys, "plan", "--spec", spec, "--detect", "5%")[1]
    assert "with gpt-small (USD per million tokens: 1 in, 10 out)" in out and "USD with gpt-small" in out
    assert "other" not in out


def test_cases_that_conditions_have_in_common_count_once(capsys: Capsys) -> None:
    detect = ("plan", "--spec", "arithmetic_votes", "--set", "task.size=10", "--detect", "5%")
    by_default = invoke(capsys, *detect)[1]
    assert rows_of(by_default) and rows_of(by_default) == rows_of(invoke(capsys, *detect, "--set", "cluster=case")[1])
    apart = rows_of(invoke(capsys, *detect, "--set", "cluster=episode")[1])
    assert int(apart[0][1]) < int(rows_of(by_default)[0][1])


def test_a_question_may_be_solved_in_all_conditions_or_in_none(folder: Path, capsys: Capsys) -> None:
    """Without a run, five conditions of the same questions take as many of them as one condition does."""
    detect = ("plan", "--spec", str(folder / "sums.yaml"), "--detect", "10%")
    [alone] = rows_of(invoke(capsys, *detect)[1])
    five = ("--set", "matrix.panel=[1, 3, 5, 7, 9]", "--set", "protocol.agents=${panel}")
    out = invoke(capsys, *detect, *five)[1]
    [shared] = rows_of(out)
    assert shared[1] == alone[1] and int(shared[2]) == 5 * int(alone[2])
    assert "all episodes of an observation at the same one" in " ".join(out.split())
    [own] = rows_of(invoke(capsys, *detect, "--set", "matrix.n=[2, 3, 4]", "--set", "task.terms=${n}")[1])
    assert 2 * int(own[1]) < int(alone[1])


def test_runs_that_do_not_say_which_cases_are_the_same_are_to_be_scored_again(tmp_path: Path, capsys: Capsys) -> None:
    run, more = tmp_path / "run", ("--set", "task.size=10", "--set", "baseline={use: simulated, accuracy: 0.6}")
    detect = ("plan", "--spec", "arithmetic_votes", *more, "--detect", "5%", "--run", str(run))
    assert invoke(capsys, "eval", "--spec", "arithmetic_votes", *more, "--output_path", str(run))[0] == 0
    before = invoke(capsys, *detect)
    assert before[0] == 0 and rows_of(before[1])
    rows = [json.loads(line) for line in (run / "scores.jsonl").read_text().splitlines()]
    (run / "scores.jsonl").write_text("".join(json.dumps({**row, "problem": ""}) + "\n" for row in rows))
    code, _, err = invoke(capsys, *detect)
    assert code == 2 and "older version" in err and f"harness score {run}" in err
    assert invoke(capsys, *detect, "--set", "cluster=case")[0] == 0  # which says what is the same
    assert invoke(capsys, "score", str(run))[0] == 0
    assert invoke(capsys, *detect) == before


def test_prices_of_all_where_a_spec_names_no_model(
    folder: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = re.sub(r"models:\n.*\n", "", SPEC)
    (folder / "sums.yaml").write_text(lines)
    (folder / "prices.yaml").write_text("".join(f"m{i}: {{input: 1, output: 1}}\n" for i in range(15)))
    monkeypatch.setenv("HARNESS_CONFIG_DIR", str(folder))
    out = invoke(capsys, "plan", "--spec", str(folder / "sums.yaml"))[1]
    assert out.count("USD per million tokens") == 12 and "(3 more models have a price)" in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--detect", "much"], "'much' is no amount"),
        (["--detect", "0"], "is no amount"),
        (["--detect", "100%"], "is no amount"),
        (["--detect", "5%", "--power", "0.2"], "--power 0.2 is not from 0.5 to 1"),
        (["--power", "0.9"], "--power without --detect"),
        (["--detect", "5%", "--run", "nowhere"], "nowhere"),
        (["--detect", "1e-7"], "no number of cases"),
    ],
)
def test_mistakes(folder: Path, capsys: Capsys, options: list[str], message: str) -> None:
    code, _, err = invoke(capsys, "plan", "--spec", str(folder / "sums.yaml"), *options)
    assert code == 2 and message in err


def test_amounts() -> None:
    assert Amount.read("±3%", "x").of(9.0, "score") == pytest.approx(0.27) and str(Amount.read("3%", "x")) == "3 %"
    assert Amount.read("0.5", "x").of(float("inf"), "tokens") == 0.5
    with pytest.raises(SpecError, match="tokens has no bounds"):
        Amount.read("3%", "x").of(float("inf"), "tokens")
