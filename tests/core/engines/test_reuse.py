"""`--reuse`: runs take from earlier ones what was asked there, and their results are those of one run of the whole."""

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import harness
from harness.api import Completion, Request
from harness.api.errors import DataError, EngineFatalError
from harness.engines.mock import Mock
from harness.evaluation.run import Run

RING: dict[str, Any] = {
    "name": "ring",
    "matrix": {"size": [4]},
    "task": {"use": "agentsnet/leader_election", "instances": 1, "source": "seeded", "size": "${size}"},
    "protocol": {"use": "local_rounds", "rounds": 2, "channel": "neighbors", "parse_retries": 1},
    "prompts": "agentsnet/standard",
    "metrics": ["solved", {"use": "tokens", "kind": "total", "name": "tokens"}, "parse_failures"],
}


class Player:
    """Answers by the seed of each call, and counts the calls."""

    def __init__(self, salt: int = 0, fatal_after: int | None = None) -> None:
        self.calls, self.salt, self.fatal_after = 0, salt, fatal_after

    def __call__(self, request: Request) -> Completion:
        if self.calls == self.fatal_after:
            raise EngineFatalError("gone")
        self.calls += 1
        rng = random.Random(request.seed + self.salt)
        text = rng.choice(
            ["### Final Answer ###\nYes", "### Final Answer ###\nNo", "what?", '```json\n{"Lea": "x"}\n```']
        )
        return Completion(text, input_tokens=len(request.thread.messages), output_tokens=rng.randint(1, 9))


def play(folder: Path, player: Player, model: str = "m", **options: Any) -> Run:
    spec = options.pop("spec", RING)
    return harness.evaluate(spec, Mock(model=model, function=player), output_path=folder, **options)


def numbers(run: Run) -> Any:
    rows = json.loads((run.folder / "results.json").read_text())
    return [{**row, "run": None} for row in rows], [score.to_json() for score in run.scores]


CHANGES: list[dict[str, Any]] = [
    {"repeats": 2},
    {"repeats": 3},
    {"spec": {**RING, "task": {**RING["task"], "instances": 3}}},
    {"spec": {**RING, "name": "other", "metrics": ["solved"], "description": "d"}},
    {"limit": 1, "spec": {**RING, "task": {**RING["task"], "instances": 2}}},
    {"spec": {**RING, "matrix": {"size": [5, 4]}}},
    {"spec": {**RING, "matrix": {"size": [4, 5, 6]}, "seed": 0}, "repeats": 2},
]


def test_only_what_is_new_is_asked(tmp_path: Path) -> None:
    first, second = Player(), Player()
    small = play(tmp_path / "small", first, repeats=2)
    large = play(tmp_path / "large", second, repeats=5, reuse=tmp_path)
    fresh = play(tmp_path / "alone" / "large", whole := Player(), repeats=5)
    assert numbers(large) == numbers(fresh)
    assert 0 < first.calls < whole.calls == first.calls + second.calls
    assert numbers(play(tmp_path / "less", none := Player(), repeats=2, reuse=tmp_path / "large")) == numbers(small)
    assert none.calls == 0, "less is in more"
    note = f"{first.calls} replies of m are those of earlier runs: small."
    assert any(note in table.notes for table in large.tables)
    assert not any("earlier runs" in " ".join(table.notes) for table in fresh.tables)


@settings(max_examples=5)
@given(st.lists(st.integers(0, len(CHANGES) - 1), min_size=1, max_size=3), st.integers(0, len(CHANGES) - 1))
def test_earlier_runs_never_change_a_result(
    tmp_path_factory: pytest.TempPathFactory, before: list[int], last: int
) -> None:
    """Any runs in any order, each of which takes what there is: the last one is as if it had been alone."""
    results = tmp_path_factory.mktemp("results")
    for i, change in enumerate(before):
        play(results / str(i), Player(), **CHANGES[change], reuse=results if i else None)
    player = Player()
    assert numbers(play(results / "last", player, **CHANGES[last], reuse=results)) == numbers(
        play(results / "alone" / "last", whole := Player(), **CHANGES[last])
    )
    assert player.calls < whole.calls, "all of these have something in common"
    shutil.rmtree(results)


@pytest.mark.parametrize(
    "change",
    [{"model": "other"}, {"seed": 1}, {"spec": {**RING, "generation_kwargs": {"temperature": 0.5}}}],
    ids=["model", "seed", "sampling"],
)
def test_other_calls_are_asked(tmp_path: Path, change: dict[str, Any]) -> None:
    play(tmp_path / "first", Player(salt=1), repeats=2)
    there = play(tmp_path / "there", player := Player(), repeats=2, reuse=tmp_path, **change)
    alone = play(tmp_path / "alone" / "there", whole := Player(), repeats=2, **change)
    assert player.calls == whole.calls and numbers(there) == numbers(alone)


def test_an_episode_goes_on_alone_from_where_other_words_are_asked(tmp_path: Path) -> None:
    """One more retry: what is asked before the first of them is known."""
    play(tmp_path / "first", Player(), repeats=2)
    change: dict[str, Any] = {"spec": {**RING, "protocol": {**RING["protocol"], "parse_retries": 2}}, "repeats": 2}
    there = play(tmp_path / "there", player := Player(), reuse=tmp_path, **change)
    assert numbers(there) == numbers(play(tmp_path / "alone" / "there", whole := Player(), **change))
    assert 0 < player.calls < whole.calls


def test_a_killed_run_a_damaged_one_and_two_that_disagree(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(harness.HarnessError):
        play(tmp_path / "runs" / "stopped", Player(fatal_after=7), repeats=2)
    alone = numbers(play(tmp_path / "alone" / "r", whole := Player(), repeats=2))
    done = play(tmp_path / "r", player := Player(), repeats=2, reuse=tmp_path / "runs")
    assert numbers(done) == alone and player.calls == whole.calls - 7

    journal = tmp_path / "runs" / "stopped" / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([*lines[:2], lines[2].replace(b"text", b"tex7"), *lines[3:]]))
    done = play(tmp_path / "s" / "r", player := Player(), repeats=2, reuse=tmp_path / "runs")
    assert numbers(done) == alone and whole.calls - 7 < player.calls < whole.calls
    assert f"{journal}:3" in caplog.text and "what follows it is not used" in caplog.text

    play(tmp_path / "runs" / "a later one", Player(salt=5), repeats=2)
    play(tmp_path / "t" / "r", Player(), repeats=2, reuse=tmp_path / "runs")
    assert "heard different answers" in caplog.text


def test_a_run_of_older_versions_is_not_used_and_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    from harness import storage

    play(tmp_path / "old", Player(), repeats=2)
    journal = tmp_path / "old" / "journal.jsonl"
    raw = []
    for _, line in storage.lines(journal):
        line.pop("crc")
        for call in line.get("calls", ()):
            call.pop("request_digest")
        raw.append(storage.sealed(json.dumps(line).encode()))
    journal.write_bytes(b"".join(raw))
    play(tmp_path / "new", player := Player(), repeats=2, reuse=tmp_path / "old")
    assert player.calls and "do not say what was asked" in caplog.text


def test_nothing_to_take_is_said_before_a_folder_is_made(tmp_path: Path) -> None:
    for folder, what in ((tmp_path / "none", "no such folder"), (tmp_path, "no other run")):
        with pytest.raises(DataError, match=what):
            play(tmp_path / "r", Player(), reuse=folder)
    assert not (tmp_path / "r").exists()


def test_a_tournament_grows_by_a_contestant(tmp_path: Path) -> None:
    """Of the games of a larger pool only those of the newcomer are asked; the ratings are those of the whole."""

    def spec(*pool: Any) -> dict[str, Any]:
        return {
            "name": "dilemma",
            "extends": "tournament",
            "protocol": {"max_timesteps": 3},
            "tournament": {"pool": [*pool], "games_per_pairing": 1, "self_play": False},
        }

    random_player, always = (
        {"policy": "random"},
        {"label": "defects", "policy": {"use": "expression", "act": "'DEFECT'"}},
    )
    play(tmp_path / "two", first := Player(), spec=spec("model", random_player))
    larger = spec("model", random_player, always)
    grown = play(tmp_path / "three", second := Player(), spec=larger, reuse=tmp_path)
    alone = play(tmp_path / "alone" / "three", whole := Player(), spec=larger)
    assert numbers(grown) == numbers(alone)
    assert first.calls > 0 and first.calls + second.calls == whole.calls


def test_calls_that_conditions_share_are_taken_too(tmp_path: Path) -> None:
    shared = {**RING, "dedupe_calls": True}
    play(tmp_path / "first", Player(), spec=shared)
    done = play(tmp_path / "second", player := Player(), spec={**shared, "repeats": 3}, reuse=tmp_path)
    alone = play(tmp_path / "alone" / "second", whole := Player(), spec={**shared, "repeats": 3})
    assert numbers(done) == numbers(alone) and 0 < player.calls < whole.calls


def test_the_command_line_takes_the_calls_of_earlier_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from harness.cli import main

    command = ["eval", "--spec", "agentsnet_quick", "--model", "mock", "--model_args", "text=x", "--set"]
    command += ["matrix.problem=[coloring]", "--quiet", "--output_path"]
    assert main([*command, str(tmp_path / "a")]) == 0
    assert main([*command, str(tmp_path / "b"), "--repeats", "2", "--reuse", str(tmp_path)]) == 0
    assert "replies of mock are those of earlier runs: a." in capsys.readouterr().out
    assert main([*command, str(tmp_path / "c"), "--reuse", str(tmp_path / "nowhere")]) != 0
    assert "there is no such folder" in capsys.readouterr().err
