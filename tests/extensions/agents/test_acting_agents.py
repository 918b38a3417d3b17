"""Agents that act by themselves, through their seat's MCP server (`interface: mcp`)."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.api.errors import SetupError
from harness.config.project import builtin
from harness.extensions.agents import _agent_loop
from harness.storage import journals
from harness.storage.finished_episodes import batches
from tests.helpers.acting import ACTS, Writer
from tests.helpers.toy import run

ONE_SILO = ("matrix.agents=[2]", "matrix.problem=[global_maximum]", "protocol.max_rounds=3")
SPECS = {
    "game_suite": ("matrix.game=[tic_tac_toe]",),
    "agentsnet_quick": ("matrix.problem=[matching]", "matrix.graphs=[small_world]"),
    "silo_quick": ONE_SILO,
    "silo_calls": (*ONE_SILO, "matrix.protocol=[{name: P2P, channel: mailbox}]"),
    "mas_quick": ("matrix.agents=[3]", "protocol.max_rounds=2"),
    "dpbench_quick": ("matrix.condition=[sim3nc,sim3c]", "repeats=1", "protocol.max_timesteps=3"),
    "worlds/commons": ("matrix.order=[sequential]", "repeats=1", "protocol.max_timesteps=6"),
    "worlds/dining_table": ("matrix.order=[simultaneous]", "repeats=1", "protocol.max_timesteps=4"),
}
"""Spec → changes that make it small: messages and choices, calls, submissions, legal moves, actions with parameters."""


def moves(folder: Path) -> dict[str, list[list[tuple[str, str, Any, str | None]]]]:
    """Episode → its moves, batch by batch: (agent, turn, action, error)."""
    return {
        str(end["e"]): [[(move.agent, move.turn, move.action, move.error) for move in batch] for batch in played]
        for end, played in batches(*journals(folder))
    }


def numbers(run: harness.Run) -> list[dict[str, Any]]:
    """What was measured, but for times."""
    return [{name: one for name, one in score.numbers.items() if "latency" not in name} for score in run.scores]


@pytest.mark.parametrize(
    "spec", [pytest.param(name, marks=pytest.mark.slow if i else ()) for i, name in enumerate(SPECS)]
)
def test_an_agent_that_acts_makes_the_moves_of_one_that_writes(spec: str, tmp_path: Path) -> None:
    how: dict[str, Any] = {"overrides": SPECS[spec], "limit": 1, "project": builtin()}
    written = harness.evaluate(spec, Writer(), output_path=tmp_path / "written", **how)
    assert written.scores and not written.failed and ACTS
    acting = {"call": "tests.helpers.acting:play", "interface": "mcp", "concurrency": 200}
    acted = harness.evaluate(spec, "agent", model_args=acting, output_path=tmp_path / "acted", **how)
    assert not acted.failed
    assert moves(tmp_path / "acted") == moves(tmp_path / "written")
    assert numbers(acted) == numbers(written)


# ---------------------------------------------------------------------------------- how programs end

PLAYERS = '''
import asyncio

from tests.helpers.acting import seat_at, wait


async def one_turn(mcp_url, mcp_token, agent):
    """Plays a turn and leaves: it is started again for the next one."""
    async with seat_at(mcp_url, mcp_token) as seat:
        state = await wait(seat)
        if state["status"] == "turn":
            assert state["new_conversation"], "it hears all that was said"
            await seat.call_tool("reply", {"text": "a" if "[You replied]" in state["text"] else "b"})


async def gives_up(mcp_url, mcp_token):
    async with seat_at(mcp_url, mcp_token) as seat:
        await wait(seat)


async def breaks(mcp_url, mcp_token):
    async with seat_at(mcp_url, mcp_token) as seat:
        await wait(seat)
        raise ValueError("no idea")


async def hangs(mcp_url, mcp_token):
    await asyncio.Event().wait()


def no_url(messages):
    return "a"


class Player:
    def reply(self, message):
        return "a"
'''


@pytest.fixture
def players(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "acting_players.py").write_text(PLAYERS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "acting_players", raising=False)
    return tmp_path


def played(folder: Path, name: str, **fields: Any) -> harness.Run:
    """A run of the toy project, of one case of two agents and two rounds."""
    model = {"call": f"acting_players:{name}", "interface": "mcp", **fields}
    small = ("matrix.agents=[2]", "task.cases_made=1", "protocol.rounds=2")
    return run(folder / "run", "agent", small, model_args=model, max_error_rate=1.0)


@pytest.mark.slow
def test_a_program_that_leaves_after_its_move_is_started_again(players: Path) -> None:
    done = played(players, "one_turn")
    actions = [action for batch in moves(players / "run")[done.scores[0].id] for _, _, action, _ in batch]
    assert actions == ["b", "b", "a", "a"] and report(players)["programs"] == 4


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gives_up", "acting_players:gives_up returned before it made its move"),
        ("breaks", "acting_players:breaks fails: ValueError: no idea (acting_players.py:"),
        ("hangs", "acting_players:hangs made no move within 0.2 s"),
    ],
)
def test_a_program_that_makes_no_move_fails_its_turn(players: Path, name: str, words: str) -> None:
    done = played(players, name, timeout=0.2 if name == "hangs" else 60)
    errors = [error for batch in moves(players / "run")[done.scores[0].id] for _, _, _, error in batch]
    assert len(errors) == 4 and all(str(error).startswith(words) for error in errors), errors
    assert report(players)["programs"] == 4
    assert not _agent_loop._users  # the loop of functions is left as often as it was entered


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"call": "acting_players:no_url"}, "call=acting_players:no_url has no parameter mcp_url"),
        ({"call": "acting_players:Player"}, "is a class; interface=mcp takes a function"),
        ({"call": "acting_players:hangs", "args": {"style": 1}}, "has no parameter 'style'"),
        ({"call": "acting_players:hangs", "history": True}, "interface=mcp takes no history="),
        ({"url": "http://127.0.0.1:1"}, "interface=mcp takes no url="),
        ({"command": "python x.py", "args": {"a": 1}}, "interface=mcp gives a command no args="),
    ],
)
def test_fields_that_do_not_fit_are_explained(players: Path, fields: dict[str, Any], words: str) -> None:
    with pytest.raises(SetupError, match=re.escape(words)):
        run(players / "run", "agent", model_args={**fields, "interface": "mcp"})


@pytest.mark.slow
def test_a_command_gets_its_secret_by_its_environment_alone(players: Path) -> None:
    (players / "program.py").write_text(
        "import asyncio, os, sys\n"
        "from acting_players import one_turn\n"
        "token = os.environ['HARNESS_MCP_TOKEN']\n"
        "open('token', 'w').write(token)\n"
        "print('secret', token, open('/proc/self/cmdline').read().count('--'))\n"
        "asyncio.run(one_turn(os.environ['HARNESS_MCP_URL'], os.environ['HARNESS_MCP_TOKEN'], ''))\n"
    )
    model = {"command": f"{sys.executable} program.py", "interface": "mcp"}
    small = ("matrix.agents=[1]", "task.cases_made=1", "protocol.rounds=1")
    done = run(players / "run", "agent", small, model_args=model)
    [[(_, _, action, error)]] = moves(players / "run")[done.scores[0].id]
    assert action == "b", error
    log = (players / "run" / "engine.log").read_text()
    assert "secret … 0" in log, "its command line has no option, and its log no key"
    secret = (players / "token").read_bytes()
    assert len(secret) > 20 and not any(secret in file.read_bytes() for file in (players / "run").iterdir())


def report(folder: Path) -> dict[str, int]:
    found: dict[str, int] = json.loads((folder / "run" / "run.json").read_text())["engines"]["model"]
    return found
