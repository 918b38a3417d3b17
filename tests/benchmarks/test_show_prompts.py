"""`harness show` prints the prompts of a run to the letter: those that its journal gives, of every group."""

import itertools
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import identity
import pytest

import harness
from harness import Run
from harness.api import Request
from harness.cli.show import conversations, played_without_model
from harness.config import spec as specs
from harness.config.project import find
from harness.engines.mock import Mock
from harness.evaluation.load_run import load_run
from harness.extensions.judges.judge_plans import FOLDER
from harness.extensions.panels.calibrated_protocol import load_parameters
from harness.transcripts.view_api import RecordedTurn, Transcript
from tests.helpers import shipped
from tests.helpers.commands import invoke

SMALL: dict[str, tuple[str, ...]] = {
    "agentsnet_byzantine": (
        "matrix.problem=[matching]",
        "matrix.graphs=[small_world]",
        "matrix.size=[{inherits: 4}]",
    ),
    "repeated_dilemmas": ("protocol.max_timesteps=6", "matrix.stage=[{inherits: stag hunt}]"),
    "tournament": (
        "tournament.games_per_pairing=2",
        "protocol.max_timesteps=5",
        "tournament.pool=[{policy: random}, {policy: random, label: twin}]",
    ),
    "silo_calls": (
        "matrix.protocol=[P2P]",
        "matrix.agents=[2]",
        "matrix.problem=[global_maximum]",
        "protocol.max_rounds=6",
    ),
    "judged": (),
}
"""Groups that differ in policy and prompts, strategies beside a model, seats of a tournament, tools, judges."""
QUESTIONS = {"mmlu_pro_scored": "mmlu_pro", "teams/software": "humaneval", "teams/two_agents": "humaneval"}
"""Specs over data sets that `identity` gives small files to under another name."""
MOST = 40
ALL = shipped.specs()


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def played(name: str, folder: Path, *overrides: str, model: Mock | None = None, **options: Any) -> Run:
    return harness.evaluate(name, model, overrides=overrides, limit=1, output_path=folder / "run", **options)


def runs(run: Run) -> Iterator[Run]:
    """The run and those of its judges."""
    yield run
    for folder in sorted((run.folder / FOLDER).glob("*/")):
        yield load_run(folder)


def differences(run: Run) -> list[str]:
    """Turns that `show` gives otherwise than the journal, of some forty episodes; an empty run has none."""
    plan, wrong = played_without_model(specs.load(str(run.folder / "spec.yaml"), find())), []
    load_parameters(plan)
    conditions = {condition.id: condition for condition in plan.conditions}
    for transcript in itertools.islice(run.transcripts(), 0, None, max(1, len(run.scores) // MOST)):
        assert transcript.problem is None and transcript.case is not None
        condition, case = conditions[transcript.condition], transcript.case
        shown = conversations(plan, condition, case, transcript.repeat, transcript.agents)
        # `show` asks no engine: where one plays beside policies, prompts are the same until others read its answers.
        asked = [turn.round for turn in transcript.turns if turn.agent in transcript.models]
        last = min(asked, default=sys.maxsize)
        for agent, pairs in shown.items():
            journaled = [turn for turn in transcript.turns if turn.agent == agent and turn.round <= last]
            if [alone(read) for _, read in pairs if read.round <= last] != list(map(alone, journaled)):
                wrong.append(f"{transcript.id}: {agent}")
    return wrong


def alone(turn: RecordedTurn) -> RecordedTurn:
    """A turn without its place among those of other agents, and without what was done in it."""
    return replace(turn, number=0, move=None)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", SMALL)
def test_show_gives_the_prompts_of_the_journal(name: str, tmp_path: Path) -> None:
    run = played(name, tmp_path, *SMALL[name])
    count = 0
    for one in runs(run):
        assert differences(one) == []
        count += len(one.scores)
    assert count > 1 and not run.failed


@pytest.mark.slow
@pytest.mark.parametrize("name", shipped.two_of_each_family())
def test_show_gives_the_prompts_of_specs(name: str, tmp_path: Path) -> None:
    if name in QUESTIONS:
        [task] = identity.data(QUESTIONS[name])
        files = json.loads(task.partition("=")[2])["data_files"]
        run = played(name, tmp_path, f"task.data_files={json.dumps(files)}", allow_code_execution=True)
    else:
        run, _ = identity.play(identity.Job(name, "baseline"), None)
    for one in runs(run):
        assert differences(one) == []


def texts(turns: list[RecordedTurn]) -> Iterator[tuple[str, str]]:
    """(beginning of the heading, text) of all that an agent is sent, and "(the reply)" between."""
    for turn in turns:
        if turn.index and not turn.fresh:
            yield "assistant", "(the reply)"
        parts = list(turn.prompt)
        if turn.tools:
            at = next((i for i, (role, _) in enumerate(parts) if role == "tool"), len(parts) - 1)
            parts.insert(at, ("tools", turn.signatures))
        yield from parts


def printed(transcript: Transcript, agent: str) -> str:
    """What `show` is to print of an agent below the first line, without what follows the role in headings."""
    turns = [turn for turn in transcript.turns if turn.agent == agent]
    return "".join(f"\n--- {role}\n{text}\n" for role, text in texts(turns))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["agentsnet_byzantine", "silo_calls", "tournament"])
def test_the_command_prints_every_message_and_nothing_else(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = played(name, tmp_path, *SMALL[name])
    for transcript in list(run.transcripts())[-2:]:
        where = ("--condition", transcript.condition, "--case", transcript.case_id, "--repeat", str(transcript.repeat))
        for agent in transcript.agents:
            code, out, err = invoke(capsys, "show", "--spec", str(run.folder / "spec.yaml"), *where, "--agent", agent)
            assert (code, err) == (0, "")
            heading, _, rest = out.partition("\n")
            assert f" · agent {agent} · prompts " in heading and transcript.condition in heading
            lines = [line.partition(" · ")[0] if line.startswith("--- ") else line for line in rest.split("\n")]
            assert "\n".join(lines) == printed(transcript, agent)


def test_a_model_is_sent_what_show_prints(tmp_path: Path) -> None:
    """The first prompts of all agents that models play, as the engine gets them: also of groups of their own."""
    sent: dict[str, list[tuple[str, str]]] = {}

    def answer(request: Request) -> str:
        sent.setdefault(request.id, [(message["role"], message["content"]) for message in request.thread.messages])
        return ""

    run = played("agentsnet_byzantine", tmp_path, *SMALL["agentsnet_byzantine"], model=Mock(function=answer))
    plan = played_without_model(specs.load(str(run.folder / "spec.yaml"), find()))
    sets = set()
    for condition, case, repeat in plan.episodes():
        for agent, [(_, first), *_] in conversations(plan, condition, case, repeat, case.agents).items():
            assert list(first.prompt) == sent[f"{condition.id}/{case.id}/{repeat}/{agent}/0/0"]
            sets.add(condition.group_of(case, agent).prompts.name)
    assert len(sets) > 1, "all groups have the same prompts"


def test_a_repeat_that_is_not_played_has_no_prompts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = invoke(capsys, "show", "--spec", "tournament", "--case", "0", "--repeat", "10")
    assert code == 2 and "has repeats 0 to " in err and "found --repeat 10" in err
