"""`harness show` prints the prompts of a run: the other agents do there what the spec's baseline does."""

import json
from pathlib import Path

import pytest

from harness.cli import main
from tests.helpers.commands import TOY, invoke


def test_the_other_agents_do_what_they_do_in_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    changes = ["--set", "matrix.problem=[coloring]"]
    spec = ["--spec", "agentsnet_quick", *changes]
    assert main(["eval", *spec, "--limit", "1", "--quiet", "--log_samples", "--output_path", "run"]) == 0
    samples = [json.loads(line) for line in Path("run/samples.jsonl").read_text().splitlines()]
    for sample in samples:
        condition = sample["episode"].rsplit("/", 2)[0]
        capsys.readouterr()
        assert main(["show", *spec, "--condition", condition, "--case", "0", "--round", "1"]) == 0
        prompt = capsys.readouterr().out
        agent = prompt.partition(" · agent ")[2].partition(" ")[0]
        messages = [move["a"][agent] for move in sample["moves"][0] if agent in (move.get("a") or {})]
        assert messages and all(message in prompt for message in messages), condition


def test_a_scored_turn_shows_its_history_how_the_reply_begins_and_the_texts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(TOY)
    (tmp_path / "weigh.yaml").write_text(
        'name: weigh\ntask: {use: weigh, contexts: ["Q:", null]}\nprotocol: {use: rounds, rounds: 1}\n'
        "prompts: toy/opened\nmetrics: [agreed]\n"
        "tables: [{title: Agreed, rows: model, columns: number, metrics: agreed}]\n"
    )
    code, out, _ = invoke(capsys, "show", "--spec", str(tmp_path / "weigh.yaml"), "--case", "0")
    assert code == 0
    assert out.partition("\n\n")[2] == (
        "--- system\nBe brief.\n\n--- user\nQ\n\n--- assistant\nA\n\n"
        "--- user · turn 0 · say.j2\nRound 0. Say one letter.\n\n--- assistant · the reply begins\nIt is\n\n"
        '--- scored · 2 texts\n" a"\n  behind "Q:"\n" b"\n'
    )
