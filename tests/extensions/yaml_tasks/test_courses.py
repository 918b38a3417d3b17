"""`harness validate` on the course of a world: who can act, its end, its metrics, and worlds of very many agents."""

import contextlib
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.commands import ROOT, invoke

WORLD = """\
name: talk
task:
  use: world
  agents: {agents}
  rules: Say something.
  state: {{said: 0}}
  own: {{spoke: 0}}
  sees: {{said_so_far: said, your_own: mine.spoke}}
  actions:
    SAY: {{means: say it, when: {when}, effects: {{said: said + 1, mine.spoke: mine.spoke + 1}}}}
    WAIT: {{means: nothing, when: {when}}}
  noop: WAIT
  {end}
  scores: {{score: "min(1, said / (5 * n))"}}
protocol: {{use: steps, order: simultaneous, max_timesteps: 8}}
prompts: world/standard
metrics: [score]
baseline: {baseline}
"""
SAYS = {"use": "expression", "act": "'SAY'"}


def validated(capsys: pytest.CaptureFixture[str], folder: Path, **parts: object) -> str:
    values = {"agents": 2, "when": "True", "end": "end: rounds >= 3", "baseline": "random", **parts}
    (folder / "talk.yaml").write_text(WORLD.format(**values))
    code, out, err = invoke(capsys, "validate", str(folder / "talk.yaml"))
    assert (code, err) == (0, "")
    return out


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ({"when": "said > 0"}, "warning: no agent could act in any of 20 cases"),
        ({"end": "turn: said > 0"}, "warning: no agent could act in any of 20 cases"),
        ({"end": "end: rounds >= 9"}, "random agents and the spec's policies all played on to max_timesteps: 8"),
        ({"end": "end: said < 0", "baseline": ""}, "20 cases: random agents all played on to max_timesteps: 8"),
    ],
)
def test_a_world_that_comes_to_nothing_is_warned_of(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, parts: dict[str, str], says: str
) -> None:
    assert says in validated(capsys, tmp_path, **parts)


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"end": "reports: {heard: said}"},  # without `end:` the limit is the end
        {"end": "turn: number == 0 or said > 0"},
        {"end": "end: said >= 8 * n", "baseline": SAYS},  # which only the spec's policy reaches
    ],
)
def test_other_worlds_are_not(capsys: pytest.CaptureFixture[str], tmp_path: Path, parts: dict[str, object]) -> None:
    assert "warning" not in validated(capsys, tmp_path, **parts)


def refused(capsys: pytest.CaptureFixture[str], folder: Path, metric: str, **parts: object) -> str:
    values = {"agents": 2, "when": "True", "end": "end: rounds >= 8", "baseline": SAYS, **parts}
    grades = "scores: {by_agent: spoke, said: said, "
    spec = (
        WORLD.format(**values).replace("scores: {", grades).replace("metrics: [score]", f"metrics: [score, {metric}]")
    )
    (folder / "talk.yaml").write_text(spec)
    code, out, err = invoke(capsys, "validate", str(folder / "talk.yaml"))
    assert code == 2 and ": 1 problem\n" in out and "talk.yaml:17:18: " in err and "Traceback" not in err, err
    return err


def test_a_metric_that_cannot_measure_an_episode_is_a_problem(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    err = refused(capsys, tmp_path, "{use: grade, of: by_agent}")
    assert "metric grade: the task's grade 'by_agent' is {'Agent-0': 0.0, 'Agent-1': 0.0}, not a number" in err
    assert "one number for an episode" in err


@pytest.mark.parametrize(
    ("bounds", "baseline", "says"),
    [("[0, 1]", "random", "which is not between 0"), ("[0, 15]", SAYS, "is 16.0, which is not between 0 and 15")],
)
def test_a_metric_that_fails_what_players_reach_is_too(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, bounds: str, baseline: object, says: str
) -> None:
    err = refused(capsys, tmp_path, f"{{use: grade, of: said, bounds: {bounds}}}", baseline=baseline)
    assert says in err


A_CALL = """\
from harness.api import Metric, plugin


@plugin
class TokensACall(Metric):
    def measure(self, episode):
        calls = [call for move in episode.moves() if move.agent == "Agent-1" for call in move.calls]
        return sum(call.output_tokens for call in calls) / len(calls)
"""


@pytest.mark.parametrize("default", ["model", "{policy: random}"])
def test_random_agents_in_a_models_place_make_calls(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, default: str
) -> None:
    (tmp_path / "metrics").mkdir()
    (tmp_path / "metrics" / "tokens_a_call.py").write_text(A_CALL)
    (tmp_path / "harness.yaml").write_text(f"name: p\nparents: [{ROOT}]\n")
    world = WORLD.format(agents=2, when="True", end="end: rounds >= 3", baseline="")
    world = world.replace("metrics: [score]", "metrics: [score, tokens_a_call]")
    (tmp_path / "talk.yaml").write_text(
        f"{world}agents: {{default: {default}, other: {{model: model, agents: [Agent-1]}}}}\n"
    )
    with contextlib.chdir(tmp_path):
        code, out, err = invoke(capsys, "validate", "talk.yaml")
    assert (code, err) == (0, "") and "20 cases" in out


PEAK = """
import pathlib, sys
from harness.cli import main

code = main(sys.argv[1:])
print(pathlib.Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
sys.exit(code)
"""
"""A command that prints its peak memory in KB at the end: `ru_maxrss` would count the process that started it."""


@pytest.mark.slow
def test_thousands_of_agents_take_little_memory(tmp_path: Path) -> None:
    """No prompt is rendered for each of them, no turn is kept, and no list of all is kept by each."""
    text = WORLD.format(agents=4000, when="True", end="end: rounds >= 3", baseline="random")
    (tmp_path / "talk.yaml").write_text(text)
    command = [sys.executable, "-c", PEAK, "validate", str(tmp_path / "talk.yaml")]
    shown = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert int(shown.split()[-1]) < 200_000, "KB; with all of them for each it was 1.7 GB"
