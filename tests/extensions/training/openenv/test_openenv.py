"""A spec served by OpenEnv's own server, played by its own client."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import harness
from harness.api.errors import DataError
from harness.engines.mock import Mock
from tests.docs.test_docs import ROOT, blocks

pytestmark = [pytest.mark.trainers, pytest.mark.filterwarnings("ignore")]

SPEC: dict[str, Any] = {
    "extends": "agentsnet_quick",
    "agents": {"default": "model", "rest": {"policy": "random", "count": 3}},
    "matrix": {"problem": ["consensus"], "graphs": ["small_world"], "size": [4]},
}
"""One agent of four learns."""
DUEL: dict[str, Any] = {
    "name": "duel",
    "task": {"use": "openspiel", "game": "repeated_game(stage_game=matrix_rps(),num_repetitions=30)"},
    "protocol": {"use": "steps", "max_timesteps": 60},
    "prompts": "games/standard",
    "agents": {"default": "model", "rival": {"policy": "random", "agents": ["Player-1"]}},
    "metrics": ["score"],
}
"""Against an opponent that draws."""


def app_of(spec: Any) -> Any:
    from harness.extensions.training.openenv_server import create_app

    return create_app(spec)


@contextlib.contextmanager
def served(app: Any) -> Iterator[str]:
    import uvicorn

    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            thread.join(0.01)
            assert thread.is_alive()
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


def test_a_client_plays_an_episode_to_its_reward(tmp_path: Any) -> None:
    from openenv.core.generic_client import GenericEnvClient

    run = harness.evaluate(SPEC, Mock(text="0"), output_path=tmp_path / "run")
    with served(app_of(SPEC)) as address, GenericEnvClient(base_url=address).sync() as client:
        for _ in range(2):
            result = client.reset(seed=1, epoch=0)  # with the chance of the evaluation
            turns = 0
            while not result.done:
                assert result.observation["prompt"] in "\n\n".join(
                    str(one["content"]) for one in result.observation["messages"]
                )
                result = client.step({"text": "0"})
                turns += 1
            assert turns > 1 and client.state()["step_count"] == turns
            assert result.reward == run.scores[0].number("solved") == result.observation["metrics"]["solved"]


def test_the_example_of_the_documentation_is_played() -> None:
    from openenv.core.generic_client import GenericEnvClient

    [body] = [body for note, body in blocks(ROOT / "docs" / "how-to" / "trainers.md", "python") if "openenv" in note]
    names: dict[str, Any] = {}
    exec(body, names)
    with served(names["app"]) as address, GenericEnvClient(base_url=address).sync() as client:
        result = client.reset(seed=1)
        while not result.done:
            result = client.step({"text": "0"})
        assert result.observation["error"] is None and result.reward is not None


def test_two_clients_play_side_by_side() -> None:
    from openenv.core.generic_client import GenericEnvClient

    with (
        served(app_of(SPEC)) as address,
        GenericEnvClient(base_url=address).sync() as one,
        GenericEnvClient(base_url=address).sync() as other,
    ):
        first, second = one.reset(seed=1), other.reset(seed=1)
        while not first.done:
            assert first.observation["messages"] == second.observation["messages"]
            first, second = one.step({"text": "1"}), other.step({"text": "1"})
        assert second.done and first.reward == second.reward


def test_a_seed_draws_the_chance_of_the_episode_too() -> None:
    from harness.extensions.training.openenv_server import OpenEnvEnvironment, ReplyAction

    def others(env: OpenEnvEnvironment, **asked: Any) -> list[Any]:
        shown = env.reset(**asked)
        while not shown.done:
            shown = env.step(ReplyAction(text="Rock"))
        assert env.game is not None
        return [move.action for move in env.game.rollout.episode.moves() if move.agent == "Player-1"]

    sessions = [OpenEnvEnvironment(DUEL) for _ in range(2)]
    assert others(sessions[0], seed=1) == others(sessions[1], seed=1) != others(sessions[0], seed=2)
    assert len({str(others(env)) for env in sessions * 2}) == 4  # without a seed another each time, in each session
    for env in sessions:
        env.close()


def test_a_step_outside_an_episode_is_an_error() -> None:
    """Else the end would pay again, or an action be lost."""
    from openenv.core.generic_client import GenericEnvClient

    with served(app_of(SPEC)) as address, GenericEnvClient(base_url=address).sync() as client:
        with pytest.raises(RuntimeError, match="no episode has begun: reset begins one"):
            client.step({"text": "0"})
        result = client.reset(seed=1)
        while not result.done:
            result = client.step({"text": "0"})
        with pytest.raises(RuntimeError, match="the episode is over: reset begins one"):
            client.step({"text": "0"})
        assert not client.reset(seed=1).done


def test_an_engine_that_sessions_would_share_is_refused() -> None:
    from harness.extensions.training.openenv_server import create_app

    spec = {**SPEC, "agents": {"default": "model", "rest": {"model": "model", "count": 3}}}
    with pytest.raises(DataError, match="opponents: 'rest' is an engine"):
        create_app(spec, learn=["default"], opponents={"rest": Mock(text="0")})


def test_a_spec_in_which_several_learn_is_refused() -> None:
    from harness.extensions.training.openenv_server import create_app

    with pytest.raises(DataError, match="4 agents learn"):
        create_app("agentsnet_quick", limit=1)
