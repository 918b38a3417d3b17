"""Transcripts: a journal gives back every conversation as it was, and says where it cannot."""

import json
import random
from collections.abc import Callable
from itertools import chain
from pathlib import Path

import pytest

import harness
from harness.api import Request
from harness.api.errors import RequestError
from harness.config.project import builtin
from harness.config.spec import parse
from harness.engines.mock import Mock
from harness.extensions.panels.fit import fit
from harness.runtime.options import Options
from harness.storage import finished_episodes
from harness.transcripts.reader import Transcripts
from tests.helpers.toy import TOY, run

Dice = TOY.load("engines", "dice")
REPLIES = ["?", "WAIT", '{"action": "GRAB_LEFT"}', "I say\n```json\n{}\n```", "### Final Answer ###\nGroup 1", "3"]


def anything(request: Request) -> str:
    return random.Random(request.seed).choice(REPLIES)


def seldom(request: Request) -> str:
    if random.Random(request.seed).random() < 0.2:
        raise RequestError("busy")
    return anything(request)


def _samples(folder: Path) -> dict[str, dict[str, list[tuple[str, str]]]]:
    """Episode → agent → the last conversation, as the run itself logged it."""
    lines = map(json.loads, (folder / "samples.jsonl").read_text().splitlines())
    return {
        line["episode"]: {
            agent: [(message["role"], message["content"]) for message in messages]
            for agent, messages in line["threads"].items()
        }
        for line in lines
    }


@pytest.mark.sampled(1)
@pytest.mark.parametrize("answer", [anything, seldom])
@pytest.mark.parametrize("spec", ["agentsnet_quick", "dpbench_quick", "silo_quick", "mas_quick", "arithmetic"])
def test_conversations_are_those_that_were_held(tmp_path: Path, spec: str, answer: Callable[[Request], str]) -> None:
    harness.evaluate(
        spec, Mock(function=answer), output_path=tmp_path / "r", limit=1, log_samples=True, max_error_rate=1
    )
    logged = _samples(tmp_path / "r")
    transcripts = {transcript.id: transcript for transcript in Transcripts(tmp_path / "r")}
    assert transcripts.keys() == logged.keys()
    for name, threads in logged.items():
        transcript = transcripts[name]
        assert transcript.problem is None and transcript.finished
        assert list(chain.from_iterable(transcript.rounds)) == list(transcript.turns)
        for agent, thread in threads.items():
            assert transcript.conversation(agent)[-len(thread) :] == thread
            assert transcript.models[agent] == "mock"


def test_what_a_policy_plays_is_what_a_model_would_be_asked(tmp_path: Path) -> None:
    run(tmp_path / "r")
    transcript = next(iter(Transcripts(tmp_path / "r", TOY)))
    assert transcript.policies == dict.fromkeys(transcript.agents, "coin") and not transcript.models
    assert transcript.turns[0].prompt[-1] == ("user", "Round 0. Say one letter.")


def test_an_unfinished_episode_ends_with_the_turns_that_wait(tmp_path: Path) -> None:
    run(tmp_path / "r", Dice())
    end, batches = next(finished_episodes.batches(tmp_path / "r" / "journal.jsonl"))
    partial = [batches[0], batches[1][:1]]
    transcript = Transcripts(tmp_path / "r", TOY).read(end["e"], partial)
    assert [len(turns) for turns in transcript.rounds] == [2, 2] and not transcript.finished
    waiting = transcript.turns[-1]
    assert waiting.move is None and waiting.prompt[-1][0] == "user" and transcript.case is not None


def test_changed_prompts_are_named(tmp_path: Path) -> None:
    run(tmp_path / "r", Dice())
    meta = json.loads((tmp_path / "r" / "run.json").read_text())
    meta["identity"]["prompts"]["toy/base"] = "other"
    (tmp_path / "r" / "run.json").write_text(json.dumps(meta))
    transcript = next(iter(Transcripts(tmp_path / "r", TOY)))
    assert transcript.problem is not None and "prompts/toy/base" in transcript.problem and transcript.turns[0].prompt


def test_without_its_plugins_a_run_still_shows_what_was_said(tmp_path: Path) -> None:
    run(tmp_path / "r", Dice())
    spec = tmp_path / "r" / "spec.yaml"
    spec.write_text(spec.read_text().replace("use: pick", "use: gone"))
    transcript = next(iter(Transcripts(tmp_path / "r", TOY)))
    assert transcript.problem is not None and "gone" in transcript.problem
    assert len(transcript.turns) == 6 and all(turn.move and turn.move.text for turn in transcript.turns)
    assert transcript.models and not transcript.turns[0].prompt


def test_moves_of_another_protocol_are_shown_without_prompts(tmp_path: Path) -> None:
    run(tmp_path / "r", Dice())
    spec = tmp_path / "r" / "spec.yaml"
    spec.write_text(spec.read_text().replace("rounds: 3", "rounds: 2"))
    transcript = next(iter(Transcripts(tmp_path / "r", TOY)))
    assert len(transcript.turns) == 6 and transcript.problem is not None and "after 4 turns" in transcript.problem
    assert [bool(turn.prompt) for turn in transcript.turns] == [True] * 4 + [False] * 2


def test_cases_that_are_gone_are_named(tmp_path: Path) -> None:
    run(tmp_path / "r", Dice())
    end, batches = next(finished_episodes.batches(tmp_path / "r" / "journal.jsonl"))
    transcript = Transcripts(tmp_path / "r", TOY).read("other/c9/0", batches, {**end, "case": "c9"})
    assert transcript.problem is not None and "this case" in transcript.problem and len(transcript.turns) == 6


def _asking(folder: Path, question: str, answer: str) -> dict[str, object]:
    """A spec over a user's own file of one question."""
    (folder / "q.jsonl").write_text(json.dumps({"q": question, "a": answer}) + "\n")
    fields = {"data_files": {"test": [str(folder / "q.jsonl")]}, "doc_to_text": "{{q}}", "doc_to_target": "{{a}}"}
    return {
        "name": "own",
        "task": {"use": "dataset_qa", **fields},
        "protocol": {"use": "single"},
        "prompts": "qa/standard",
        "metrics": ["score"],
    }


def test_a_run_whose_data_changed_says_so(tmp_path: Path) -> None:
    harness.evaluate(_asking(tmp_path, "How many?", "3"), Mock(text="3"), output_path=tmp_path / "r")
    assert next(iter(Transcripts(tmp_path / "r"))).problem is None
    _asking(tmp_path, "How many?", "4")
    shown = next(iter(Transcripts(tmp_path / "r"))).problem
    assert shown is not None and shown.startswith("the task's right answers changed since the run: prompts and right")
    _asking(tmp_path, "How few?", "3")
    shown = next(iter(Transcripts(tmp_path / "r"))).problem
    assert shown is not None and shown.startswith("the task's questions changed since the run: prompts and right")


def test_a_run_whose_data_is_gone_names_it(tmp_path: Path) -> None:
    harness.evaluate(_asking(tmp_path, "How many?", "3"), Mock(text="3"), output_path=tmp_path / "r")
    (tmp_path / "q.jsonl").unlink()
    transcript = next(iter(Transcripts(tmp_path / "r")))
    assert transcript.problem is not None and str(tmp_path / "q.jsonl") in transcript.problem
    assert "the protocol" not in transcript.problem and transcript.turns[0].move is not None
    assert "does not make this case" not in transcript.problem


def test_parameters_that_changed_are_named(tmp_path: Path) -> None:
    panel = {"use": "simulated", "agents": {"Agent-0": {"accuracy": 0.9}, "Agent-1": {"accuracy": 0.3}}}
    file = tmp_path / "p.json"
    protocol = {"use": "darkforest", "agents": 2, "confidence": "line", "coordinate": "never", "calibration": str(file)}
    body = {"name": "fitting", "task": {"use": "arithmetic", "size": 3, "terms": 2}, "protocol": protocol}
    body |= {"prompts": "panels/standard", "baseline": panel, "calibrate": {"task": {"terms": 3}, "limit": 5}}
    body |= {"metrics": ["score"]}
    fit(parse(body, builtin()), builtin(), lambda: None, options=Options(output_path=tmp_path / "runs"))
    harness.evaluate(body, output_path=tmp_path / "r")
    assert next(iter(Transcripts(tmp_path / "r"))).problem is None
    file.write_text(file.read_text() + "\n")
    shown = next(iter(Transcripts(tmp_path / "r"))).problem
    assert shown == f"changed since the run: {file}; prompts are shown as they would be now"
