"""CPU time of a step of the dining table, in Python and in YAML: everything that `steps` asks of a world.

    python benchmarks/worlds.py

Each number is the least of several runs of 2,000 steps, in microseconds a step of five philosophers.
"""

from __future__ import annotations

import random
import time

from harness.config import resolve, spec
from harness.config.project import builtin
from harness.extensions.games.worlds import SteppedTask

STEPS, RUNS = 2_000, 7


def play(task: SteppedTask, seed: int) -> None:
    """Random agents, as the protocol asks: replies, back-off, observations, a step, back-off, deadlock, end."""
    case = next(iter(task.cases(1, 0)))
    rng = random.Random(seed)
    world = task.world(case, rng)
    for _ in range(STEPS):
        actions = {}
        for agent in case.agents:
            reply = world.reply(agent)
            world.backoff(agent)
            world.observation(agent)
            options = None if reply is None else reply.options
            actions[agent] = rng.choice(options or (None,))
        world = world.step(actions, rng)
        for agent in case.agents:
            world.backoff(agent)
        world = world.break_deadlock() if world.deadlock else world
        if world.over:
            raise AssertionError("a table has no end")


def least(task: SteppedTask) -> float:
    times = []
    for run in range(RUNS):
        start = time.process_time()
        play(task, run)
        times.append(time.process_time() - start)
    return min(times) / STEPS * 1e6


def main() -> None:
    project = builtin()
    yaml = resolve.plan(spec.load("worlds/dining_table", project), project).conditions[0].task
    python = project.load("tasks", "dpbench/dining_table")(philosophers=5)
    assert isinstance(yaml, SteppedTask)
    one, other = least(python), least(yaml)
    print(f"Python {one:6.1f}\nYAML   {other:6.1f}   {other / one:.1f} times")


if __name__ == "__main__":
    main()
