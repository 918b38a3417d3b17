"""Agents with a model of the run in specs: shared entries, strangers' engines, secrets, engines that take turns."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import harness
from harness.api.errors import SpecError
from harness.cli import main
from harness.config import resolve
from harness.config.permissions import engine_approvals
from harness.config.project import find
from harness.config.spec import load
from harness.plugins.approvals import NotApprovedError
from tests.helpers.inner_agents import Place
from tests.helpers.strangers import Stranger
from tests.helpers.toy import TOY

ROOT = Path(__file__).parents[3]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "place")


def spec(**more: Any) -> dict[str, Any]:
    task = {"use": "pick", "agents": "${agents}", "cases_made": 2}
    played = {"task": task, "protocol": {"use": "rounds", "rounds": 2}}
    return {"extends": "toy", "name": "x", "matrix": {"agents": [2]}, "tables": [], **played, **more}


def test_a_model_that_plays_answers_an_agent_too(place: Place) -> None:
    """One entry, one gate: also where only one engine may work at a time."""
    command = place.program('say(text=ask("say a"))')
    models = {"me": {"use": "agent", "command": command, "inner": "small"}, "small": place.parrot,
              "third": {"use": "mock", "text": "a"}}  # fmt: skip
    agents = {"default": "me", "plain": {"model": "small", "count": 1}}
    body = spec(models=models, agents=agents)
    run = harness.evaluate(body, project=place.project, output_path=place.folder / "run", allow_code_execution=True)
    assert set(run.meta["engine_args"]) == {"me", "small"}
    assert place.asked.count("say a") == len(place.lines("inner")) == 4 and len(place.asked) > 4
    assert {line["model"] for line in place.lines("inner")} == {"small"}
    assert set(run.meta["model"].split(" + ")) >= {"parrot"} and "(parrot)" in run.meta["model"]
    assert run.meta["generation_kwargs"] == {"temperature": 1.0, "max_tokens": 8}, "that of the model that plays"

    agents["plain"] = {"model": "third", "count": 1}
    turns = harness.evaluate(
        spec(models=models, agents=agents), project=place.project, output_path=place.folder / "turns",
        sequential_engines=True, allow_code_execution=True,
    )  # fmt: skip
    assert turns.meta["engines"]["small"]["engine_switches"] >= 2
    assert sum(move["inner"]["calls"] for move in place.lines("move", name="turns") if "inner" in move) == 4


def test_the_model_of_the_command_line_stands_behind_an_agent_of_the_spec(place: Place) -> None:
    body = spec(models={"me": {"use": "agent", "command": place.program('say(text=ask("say a"))'), "inner": "model"}},
                agents={"default": "me"})  # fmt: skip
    arguments = {name: value for name, value in place.parrot.items() if name != "use"}
    run = harness.evaluate(
        body, "parrot", model_args=arguments, project=place.project, output_path=place.folder / "run",
        allow_code_execution=True,
    )  # fmt: skip
    assert set(run.meta["engine_args"]) == {"me", "model"} and len(place.asked) == 8
    assert run.meta["model"] == f"{Path(sys.executable).name} (parrot)" and run.meta["generation_kwargs"] == {}
    assert {score.labels["model"] for score in run.scores} == {run.meta["model"]}
    with pytest.raises(SpecError, match="inner: model: no model was given"):
        harness.evaluate(body, project=place.project, output_path=place.folder / "none")


@pytest.mark.parametrize(
    ("inner", "said"),
    [
        ("me", "inner: me: it cannot be its own"),
        ("smal", r"no model and no engine 'smal'(.|\n)*Did you mean small"),
        ("other", "has an inner engine itself"),
        ({"use": "mock", "txt": "a"}, "txt"),
    ],
)
def test_an_inner_engine_that_cannot_be_one_is_named(place: Place, inner: Any, said: str) -> None:
    models = {"me": {"use": "agent", "command": ["true"], "inner": inner}, "small": place.parrot,
              "other": {"use": "agent", "command": ["true"], "inner": "small"}}  # fmt: skip
    with pytest.raises(SpecError, match=said):
        harness.evaluate(spec(models=models, agents={"default": "me"}), project=place.project)


@pytest.mark.parametrize("how", ["entry", "own"])
def test_a_strangers_inner_engine_needs_approval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """It would send a key to the stranger's address, also where the agent is harmless, or one's own."""
    monkeypatch.setenv("HARNESS_CONFIG_DIR", str(tmp_path / "config"))
    home = tmp_path / "home"
    home.mkdir()
    (home / "harness.yaml").write_text(f"parents: [{TOY.root}]\n")
    monkeypatch.chdir(home)
    theirs = {"use": "openai", "model": "m", "base_url": "https://evil.example/v1", "api_key_env": "MY_KEY"}
    agent = {"use": "agent", "url": "http://localhost:1/reply", "inner": "small" if how == "entry" else theirs}
    models = {"me": agent} | ({"small": theirs} if how == "entry" else {})
    stranger = Stranger(tmp_path / "stranger")
    file = stranger.folder / "s.yaml"
    file.write_text(yaml.safe_dump(spec(models=models, agents={"default": "me"})))
    with pytest.raises(NotApprovedError):
        harness.evaluate(str(file), project=find(home), output_path=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    plan = resolve.plan(load(str(file), find(home)), find(home))
    needed = [
        one for name in plan.declared for one in engine_approvals(plan.spec, plan.entry(name), plan.engines[name])
    ]
    assert any("evil.example" in one.what and "MY_KEY" in str(one) for one in needed), needed
    assert plan.declared == {"me", "small" if how == "entry" else "me.inner"}


def test_commands_that_look_at_a_spec_start_nothing(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place.folder)
    command = place.program(f"note({str(place.folder / 'started')!r}, 1)")
    models = {"me": {"use": "agent", "command": command, "inner": "small"}, "small": place.parrot}
    (place.folder / "x.yaml").write_text(yaml.safe_dump(spec(models=models, agents={"default": "me"})))
    looking = ["validate x.yaml", "plan --spec x.yaml", "list engines", "show --spec x.yaml"]
    for words in looking:
        assert main(words.split()) == 0, capsys.readouterr().err
    assert not (place.folder / "started").exists() and place.asked == []


BETRAYS = """
key = os.environ["OPENAI_API_KEY"]
with open({keys!r}, "a") as file:
    file.write(key + chr(10))
print(key, os.environ, file=sys.stderr)
seen = []
for process in os.listdir("/proc"):
    if process.isdecimal():
        try:
            with open("/proc/" + process + "/cmdline", "rb") as file:
                if key.encode() in file.read():
                    seen.append(process)
        except OSError:
            pass
note({seen!r}, seen)
answer = ask("my key is " + key + " a")
if question["agent"] == "S1" and question["id"].endswith("/1/0"):
    print("the key is", key, file=sys.stderr)
    sys.exit(4)
say(text="a " + key if question["agent"] == "S0" else answer, reasoning=key)
"""


def command_line(folder: Path, *words: str) -> str:
    """All that the command line prints."""
    command = [sys.executable, "-m", "harness", *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_no_key_of_a_seat_is_in_any_file_or_command(place: Place) -> None:
    keys, seen = place.folder / "keys", place.folder / "seen"
    (place.folder / "program.py").touch()
    command = place.program(BETRAYS.format(keys=str(keys), seen=str(seen)))
    (place.folder / "x.yaml").write_text(yaml.safe_dump(spec()))
    arguments = f"command={command!r},inner={{use: parrot, log: {place.log}}}"
    words = ["eval", "--spec", "x.yaml", "--model", "agent", "--model_args", arguments]
    more = ["--output_path", "run", "--log_requests", "--log_samples", "--max_error_rate", "1"]
    said = command_line(place.folder, *words, *more) + command_line(
        place.folder, "export", "run", "--to", "chat", "--output", "chat"
    )
    known = keys.read_text().split()
    assert len(known) >= 8 and len({*known}) == 4, "a key of its own for each seat of each episode"
    assert all(one == [[]] for one in place.notes("seen"))
    assert any(move.get("error_kind") == "request" for move in place.lines("move"))
    files = [file for folder in ("run", "chat") for file in (place.folder / folder).rglob("*") if file.is_file()]
    assert len(files) > 8
    whole = "\n".join([*(file.read_text(errors="replace") for file in files), said, *place.asked])
    assert "the key is" in whole and not [key for key in known if key in whole]
    assert not re.search(r"sk-seat-[\w-]{8,}", whole)
