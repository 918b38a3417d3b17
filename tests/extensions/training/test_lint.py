"""`harness lint`: a reward that pays players who solve nothing is named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.cli import main

NETWORK = """
extends: agentsnet_quick
name: linted
matrix: {problem: [leader_election], graphs: [small_world, scale_free, delaunay], size: [4]}
"""
CART = """
name: cart
task:
  use: world
  agents: [Ann, Bob]
  instances: 3
  rules: Push.
  draw: {heavy: "randint(0, 2)"}
  state: {moved: 0}
  actions: {PUSH: {means: push the cart}, WAIT: {means: do nothing}}
  noop: WAIT
  after: {moved: "1 if count(values(actions), 'PUSH') == heavy else 0"}
  end: rounds == 1
  scores: {moved: moved}
protocol: {use: steps, order: simultaneous}
prompts: world/standard
baseline: random
metrics: [{use: grade, of: moved, name: moved}]
headline: {metric: moved, floor: random}
"""
"""A world in which a turn has two options."""
FLOOR = "headline: {metric: score, floor: random}\n"


def linted(tmp_path: Path, rest: str, *options: str) -> int:
    file = tmp_path / "linted.yaml"
    file.write_text(NETWORK + rest)
    return main(["lint", "--spec", str(file), "--episodes", "6", *options])


def test_an_honest_reward_is_paid_to_nobody_who_solves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert linted(tmp_path, FLOOR) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "linted: reward score, 3 episodes of 3 cases a player"
    assert lines[1].startswith("fewer than --episodes 6: the spec has no more; --repeats ")
    assert lines[-2].startswith("no such player is shown to beat the floor")
    assert lines[-1].startswith("a gain that is the same in every case has no interval (silent, idle, ")
    assert {line.split("  ")[0] for line in lines[3:-2]} >= {"floor: random", "silent", "echoing", "copying"}


def test_players_that_a_reward_overpays_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rewards = "rewards: {format: {use: parse_failures, weight: 1}, length: tokens}\n"
    more = "matrix.problem=[leader_election, consensus, coloring]"
    assert linted(tmp_path, FLOOR + rewards, "--episodes", "9", "--set", more) == 1
    out = capsys.readouterr().out
    assert "linted: reward format, 9" in out and "without length: policies write no tokens" in out
    [verdict] = [line for line in out.splitlines() if line.startswith("the reward can be hacked: ")]
    assert "echoing" in verdict and "option" not in verdict
    [echoing] = [line for line in out.splitlines() if line.startswith("echoing ")]
    assert "beats the floor" in echoing


def test_what_few_cases_do_not_exclude_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "cart.yaml"
    file.write_text(CART)
    assert main(["lint", "--spec", str(file)]) == 0
    *table, verdict, rest = capsys.readouterr().out.splitlines()
    highest = max(float(end) for line in table for end in re.findall(r", ([+-]\d+\.\d+)\]", line))
    assert highest > 0 and f"a gain of up to {highest} is not excluded (" in rest
    assert verdict.startswith("no such player is shown to beat the floor")


def test_an_option_that_no_turn_has_accuses_nobody(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "cart.yaml"
    file.write_text(CART + "rewards: {agent: {use: expression, of: \"count(actions, 'PUSH')\"}}\n")
    assert main(["lint", "--spec", str(file), "--set", "task.instances=24"]) == 1
    *table, verdict = capsys.readouterr().out.splitlines()
    assert verdict == "the reward can be hacked: constant: option 1"
    alike = dict(re.findall(r"^(\S.*?)  +plays as (.*)$", "\n".join(table), re.MULTILINE))
    assert alike["constant: option 3"] == alike["constant: last option"] == alike["constant: option 2"] == "idle"


@pytest.mark.parametrize(("cases", "beats"), [(2, False), (8, False), (9, True)])
def test_the_same_gain_in_every_case_is_chance_in_few_cases(
    cases: int, beats: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = "matrix.problem=[leader_election, consensus, coloring]"
    rewards = "rewards: {format: {use: parse_failures, weight: 1}}\n"
    linted(tmp_path, FLOOR + rewards, "--episodes", str(cases), "--set", more)
    [idle] = [line for line in capsys.readouterr().out.splitlines() if line.startswith("idle ")]
    assert idle.split("+")[1] == ("1.000  beats the floor" if beats else "1.000")


def test_no_gain_goes_beyond_the_bounds_of_the_headline(capsys: pytest.CaptureFixture[str]) -> None:
    for cases in (2, 3):
        assert main(["lint", "--spec", "agentsnet_quick", "--episodes", str(cases)]) == 0
        out = capsys.readouterr().out
        assert "no such player is shown to beat the floor" in out
        floor = float(re.findall(r"^floor: all alike +([\d.]+)", out, re.MULTILINE)[0])
        intervals = [(float(low), float(high)) for low, high in re.findall(r"\[(\S+), (\S+)\]", out)]
        assert all(-floor - 1e-3 <= low < high <= 1 - floor + 1e-3 for low, high in intervals)
        assert len(intervals) > 0 or cases == 2


def test_one_case_is_too_few(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert linted(tmp_path, FLOOR, "--set", "matrix.graphs=[delaunay]") == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("too few cases")


def test_a_spec_without_a_floor_has_nothing_to_beat(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "game.yaml"
    file.write_text("extends: agentsnet_quick\nheadline:\nbaseline:\n")
    assert main(["lint", "--spec", str(file)]) == 2
    assert "the spec has neither a floor nor a baseline" in capsys.readouterr().err
