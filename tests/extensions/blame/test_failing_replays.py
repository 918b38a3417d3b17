"""Episodes that fail, or do not end, once a move is another one: it is said, and costs no other result."""

from pathlib import Path

import pytest

import harness
from harness.api.errors import SpecError
from harness.config.project import Project, find
from harness.evaluation.run import Run
from harness.extensions.blame.blame import blamed
from harness.extensions.replay.replay_run import replayed
from harness.runtime.options import Options
from tests.helpers.commands import invoke
from tests.helpers.toy import TOY

UNTIL = '''
"""Ends after a round in which S0 says b."""
from harness.api import Outcome, Protocol, Turn, plugin


@plugin
class Until(Protocol):
    """Ends after a round in which S0 says b; two of c end it too."""

    def play(self, task, case, agents, rng):
        heard, round = {}, 0
        while "b" != heard.get("S0"):
            moves = yield [
                Turn(s, "say", {"round": round, "heard": dict(heard), "draw": 0.5}, task.reply(case, s),
                     task.context(case, s), 1)
                for s in agents
            ]
            heard, round = {move.agent: move.action for move in moves}, round + 1
        return Outcome(heard)
'''
FIXED = '''
"""Says one letter, and cannot go on once it has heard another one."""
from harness.api import Policy, plugin


@plugin
class Fixed(Policy):
    """Says one letter."""

    letter: str = "b"
    fails: bool = False

    def choose(self, turn, rng):
        if self.fails and turn.observation["round"]:
            raise RuntimeError("I did not expect another round\x1b[31m")
        return self.letter
'''
EPISODE = "agents=2/c0/0"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    folder = tmp_path_factory.mktemp("endless")
    (folder / "harness.yaml").write_text(f"name: endless\nparents: [{TOY.root}, harness_builtin]\n")
    for kind, name, text in (("protocols", "until", UNTIL), ("policies", "fixed", FIXED)):
        (folder / "registry" / kind).mkdir(parents=True)
        (folder / "registry" / kind / f"{name}.py").write_text(text.lstrip())
    return find(folder)


def played(project: Project, folder: Path, fails: bool) -> Run:
    how = ("protocol=until", f"baseline={{use: fixed, fails: {str(fails).lower()}}}", "agents=null")
    return harness.evaluate("toy", overrides=how, limit=1, output_path=folder, project=project)


@pytest.fixture(scope="module")
def endless(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return played(project, tmp_path_factory.mktemp("endless_run") / "run", False)


@pytest.fixture(scope="module")
def failing(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return played(project, tmp_path_factory.mktemp("failing_run") / "run", True)


def test_an_episode_that_does_not_end_with_other_moves_is_bounded_and_said(
    endless: Run, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.extensions.replay.simulation._MORE_BATCHES", 20)
    found = blamed(endless, {"use": "fixed", "letter": "a"}, episodes=[EPISODE], project=project)
    [verdict] = found.verdicts
    assert (verdict.finding, verdict.named, verdict.shares) == ("fails", (), {})
    assert verdict.problem is not None and "still playing after 30 batches" in verdict.problem
    assert "Played with other moves, 1 of 1 episodes failed, as by: RuntimeError: it does not" in " ".join(
        found.tables[0].notes
    )


def test_a_policy_that_fails_at_other_moves_costs_no_result(failing: Run, project: Project) -> None:
    found = blamed(failing, {"use": "fixed", "letter": "a"}, episodes=[EPISODE], project=project)
    [verdict] = found.verdicts
    assert verdict.finding == "fails" and verdict.problem is not None
    assert "I did not expect another round" in verdict.problem and "\x1b" not in verdict.problem


def test_a_replay_that_fails_says_why(
    failing: Run, project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project.root)
    folder = ("--output_path", str(tmp_path / "again"), "--quiet")
    code, out, _ = invoke(capsys, "replay", str(failing.folder), "--episode", EPISODE, "--change", "0=a", *folder)
    assert code == 0 and f"failed: 1 of 1 episodes, as {EPISODE}: " in out and "turns: \n" not in out
    assert "I did not expect another round" in out and "\x1b" not in out


def test_a_swapped_policy_that_cannot_play_is_refused_first(endless: Run, project: Project, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="--swap: this policy cannot play agents=2: Oracle plays sharded tasks"):
        replayed(
            endless, EPISODE, swap={"S1": "silo/oracle"}, options=Options(output_path=tmp_path / "run"), project=project
        )
    assert not (tmp_path / "run").exists()
    with pytest.raises(SpecError, match="--reference: this policy cannot play agents=2"):
        blamed(endless, "silo/oracle", episodes=[EPISODE], project=project)
