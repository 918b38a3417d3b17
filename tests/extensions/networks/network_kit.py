"""What the tests of declared network tasks share: tasks of shipped specs, and small tasks of their own."""

import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.api import Case, Outcome, Task
from harness.config import project, resolve
from harness.config.spec import load, parse

BUILTIN = project.builtin()
SPECS = sorted(f"networks/{file.stem}" for file in (BUILTIN.root / "specs" / "networks").glob("*.yaml"))

COLORING: dict[str, Any] = {
    "use": "network",
    "problem": "toy",
    "goal": "Neighbors answer differently.",
    "question": "Which color?",
    "answer": {"choice": ["red", "blue"]},
    "constraints": {"separate": {"every": "edge", "holds": "answer[u] != answer[v]"}},
}


def of_spec(name: str, *changes: str) -> list[Any]:
    """The task of every condition of a shipped spec."""
    return [condition.task for condition in resolve.plan(load(name, BUILTIN, changes), BUILTIN).conditions]


def task(**changes: Any) -> Any:
    """A task that differs from `COLORING`; a change to None leaves a key out."""
    entry = {key: value for key, value in {**COLORING, **changes}.items() if value is not None}
    data = {
        "name": "x", "task": entry, "protocol": {"use": "local_rounds", "channel": "neighbors"},
        "prompts": "network/standard", "baseline": "random", "metrics": ["solved"],
    }  # fmt: skip
    return resolve.plan(parse(data, BUILTIN), BUILTIN).conditions[0].task


def file(folder: Path, body: str) -> Path:
    """A spec with this task."""
    lines = ["name: x", "task:", "  use: network", *(f"  {line}" for line in body.strip().splitlines())]
    lines += ["protocol: {use: local_rounds, channel: neighbors}", "prompts: network/standard", "baseline: random"]
    path = folder / "x.yaml"
    path.write_text("\n".join([*lines, "metrics: [solved, score]"]) + "\n")
    return path


def one_case(problem: Task, seed: int = 0) -> Case:
    return next(iter(problem.cases(1, seed)))


def grade(problem: Task, case: Case, answers: Mapping[str, Any]) -> dict[str, float | None]:
    return dict(problem.grade(case, Outcome(answers)))


JUNK: Sequence[Any] = (None, "", "group 1", "Group 0", "yes", "2", "Nobody", 1, 0, 1.5, True, [], ["Yes"], {}, {"a": 1})


def vectors(problem: Task, case: Case, rng: random.Random, number: int) -> Iterator[dict[str, Any]]:
    """Random answers of all agents: mostly options, in every third vector some that are missing or junk."""
    options = {agent: problem.reply(case, agent).options or JUNK for agent in case.agents}
    for i in range(number):
        answers = {agent: rng.choice(options[agent]) for agent in case.agents}
        if i % 3 == 0:
            for agent in rng.sample(case.agents, rng.randint(1, len(case.agents))):
                if rng.random() < 0.3:
                    del answers[agent]
                else:
                    answers[agent] = rng.choice(JUNK)
        if i % 5 == 0:  # often as good as solved
            answers = {agent: options[agent][rng.random() < 0.1] for agent in case.agents}
        yield answers
