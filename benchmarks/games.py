"""The games of `python benchmarks/run.py`: OpenSpiel's own loop, the task's worlds, and whole runs, side by side."""

from __future__ import annotations

import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

Row = dict[str, object]
Measured = Callable[[list[str]], tuple[float, float, float, str]]

GAMES = ("connect_four", "hanabi(players=3)", "leduc_poker")
_LEGAL = "Your legal actions: "


def adapter(measured: Measured, file: str, smoke: bool) -> list[Row]:
    """Microseconds a move of random play, by who plays the game, and how often OpenSpiel's own time that is."""
    rows: list[Row] = []
    for game in GAMES:
        runs = [
            json.loads(measured([file, "--work", f"games|{game}|{10 if smoke else 1000}"])[3])
            for _ in range(1 if smoke else 3)
        ]
        plain, world, run = (statistics.median(one[key] for one in runs) for key in ("plain", "world", "run"))
        rows.append(
            {
                "game": game,
                "OpenSpiel's loop, µs a move": round(plain, 1),
                "worlds, µs": round(world, 1),
                "whole run, µs": round(run, 1),
                "worlds / loop": round(world / plain, 1),
                "run / loop": round(run / plain, 1),
            }
        )
    return rows


def work_games(game: str, episodes: int) -> Row:
    """In a process of its own: CPU microseconds a move of the loop, of worlds and of a run with random policies."""
    plain_loop(game, episodes // 10 + 1)
    started = time.process_time()
    moves = plain_loop(game, episodes)
    plain = (time.process_time() - started) / moves
    worlds(game, episodes // 10 + 1)
    started = time.process_time()
    moves = worlds(game, episodes)
    world = (time.process_time() - started) / moves
    with tempfile.TemporaryDirectory() as folder:
        evaluate(game, None, 2, Path(folder) / "warm")
        started = time.process_time()
        run = evaluate(game, None, episodes, Path(folder) / "run")
        spent = time.process_time() - started
    played = sum(cast(int, score.numbers["timesteps"]) for score in run.scores)
    return {"plain": 1e6 * plain, "world": 1e6 * world, "run": 1e6 * spent / played}


def plain_loop(text: str, episodes: int) -> int:
    """Moves of random games by OpenSpiel alone: legal actions and their names, what the player observes, the step."""
    import pyspiel

    game, rng, moves = pyspiel.load_game(text), random.Random(0), 0
    for _ in range(episodes):
        state = game.new_initial_state()
        while not state.is_terminal():
            if state.is_chance_node():
                outcomes, weights = zip(*state.chance_outcomes(), strict=True)
                state.apply_action(rng.choices(outcomes, weights)[0])
                continue
            player, legal = state.current_player(), state.legal_actions()
            names = [state.action_to_string(player, action) for action in legal]
            state.observation_string(player)
            state.apply_action(legal[names.index(rng.choice(names))])
            moves += 1
    return moves


def worlds(text: str, episodes: int) -> int:
    """The same by the task's worlds."""
    from harness.config import resolve, spec
    from harness.config.project import builtin

    source = {"name": "x", "task": {"use": "openspiel", "game": text, "instances": episodes}, "protocol": "steps"}
    task: Any = resolve.plan(spec.parse(source, builtin()), builtin()).conditions[0].task
    rng, moves = random.Random(0), 0
    for case in task.cases(None, 0):
        world = task.world(case, rng)
        while not world.over:
            for agent in case.agents:
                reply = world.reply(agent)
                if reply is not None:
                    world.observation(agent)
                    world = world.step({agent: rng.choice(reply.options)}, rng)
                    moves += 1
                    break
    return moves


def evaluate(game: str, model: Any, episodes: int, folder: Path, **options: Any) -> Any:
    """A run of so many games."""
    import harness

    spec = {
        "name": "games",
        "task": {"use": "openspiel", "game": game, "instances": episodes},
        "protocol": {"use": "steps", "max_timesteps": 500},
        "prompts": "games/standard",
        "metrics": ["timesteps"],
        "baseline": "random",
    }
    return harness.evaluate(spec, model, output_path=folder, **options)


def latency(measured: Measured, file: str, smoke: bool) -> list[Row]:
    """A thousand games at once when every reply takes 50 ms; `bound s` is the longest game with that alone."""
    episodes = 20 if smoke else 1000
    result = json.loads(measured([file, "--work", f"games_latency|connect_four|{episodes}"])[3])
    return [{"game": "connect_four", "games": episodes, **result}]


def work_latency(game: str, episodes: int) -> Row:
    """In a process of its own: the longest game, and seconds of a run of all of them."""
    import asyncio

    from harness.api import Request
    from harness.engines.mock import Mock

    async def answer(request: Request) -> str:
        await asyncio.sleep(0.05)
        listed = request.thread.messages[-1]["content"].rpartition(_LEGAL)[2].split("\n", 1)[0].split(" | ")
        return f"The board looks as it looks.\nACTION: {random.Random(request.seed).choice(listed)}"

    with tempfile.TemporaryDirectory() as folder:
        evaluate(game, Mock(function=answer), 2, Path(folder) / "warm")
        started = time.perf_counter()
        run = evaluate(game, Mock(function=answer), episodes, Path(folder) / "run", max_concurrency=2 * episodes)
        wall = time.perf_counter() - started
    lengths = [cast(int, score.numbers["timesteps"]) for score in run.scores]
    return {"moves": sum(lengths), "bound s": round(max(lengths) * 0.05, 2), "wall s": round(wall, 2)}
