"""AgentsNet's five problems as constraints in three languages: a part of Python, Jinja, and CEL.

    python benchmarks/expressions.py            # CEL where cel-python or common-expression-language is installed

Each row is one grading of a small world of 1,000 agents in milliseconds, the fastest of several.
"""

from __future__ import annotations

import contextlib
import importlib
import random
import time
from collections.abc import Callable, Iterator
from typing import Any

from harness.extensions.networks import small_world
from harness.extensions.yaml_tasks.bounded_templates import BoundedEnvironment
from harness.extensions.yaml_tasks.expressions import compiled, names

PYTHON = {
    "coloring": "all(answer[u] != answer[v] for u, v in edges)",
    "vertex cover": "all('Yes' in (answer[u], answer[v]) for u, v in edges)"
    " and all(answer[a] == 'No' or any(answer[b] == 'No' for b in neighbors[a]) for a in agents)",
    "matching": "all(answer[answer[a]] == a if answer[a] != 'None' else all(answer[b] != 'None' for b in neighbors[a])"
    " for a in agents)",
    "consensus": "len(set(answer[a] for a in agents)) == 1",
    "leader election": "sum(answer[a] == 'Yes' for a in agents) == 1",
}
# Jinja has no comprehension: a condition over two ends of an edge needs a list that the harness makes beforehand
# (`rows`: agent, answer, the neighbors' answers, the answer of the agent that it names).
JINJA = {
    "coloring": "not pairs | selectattr('same') | list",
    "vertex cover": "not pairs | rejectattr('some_yes') | list"
    " and not rows | selectattr('answer', 'eq', 'Yes') | rejectattr('some_neighbor_no') | list",
    "matching": "not rows | rejectattr('answer', 'eq', 'None') | rejectattr('named_back') | list"
    " and not rows | selectattr('answer', 'eq', 'None') | selectattr('some_neighbor_none') | list",
    "consensus": "(rows | map(attribute='answer') | unique | list | length) == 1",
    "leader election": "(rows | selectattr('answer', 'eq', 'Yes') | list | length) == 1",
}
CEL = {
    "coloring": "edges.all(e, answer[e[0]] != answer[e[1]])",
    "vertex cover": "edges.all(e, answer[e[0]] == 'Yes' || answer[e[1]] == 'Yes')"
    " && agents.all(a, answer[a] == 'No' || neighbors[a].exists(b, answer[b] == 'No'))",
    "matching": "agents.all(a, answer[a] != 'None' ? answer[answer[a]] == a"
    " : neighbors[a].all(b, answer[b] != 'None'))",
    "consensus": "agents.all(a, answer[a] == answer[agents[0]])",
    "leader election": "agents.exists_one(a, answer[a] == 'Yes')",
}


def team(n: int) -> dict[str, Any]:
    """A small world with its agents' names as texts."""
    agents = [f"a{i}" for i in range(n)]
    edges = [(agents[u], agents[v]) for u, v in small_world(n, 1)]
    neighbors: dict[str, list[str]] = {agent: [] for agent in agents}
    for u, v in edges:
        neighbors[u].append(v)
        neighbors[v].append(u)
    return {"agents": agents, "edges": edges, "neighbors": neighbors}


def solved(problem: str, network: dict[str, Any]) -> dict[str, str]:
    """Answers for which no language can stop early."""
    agents, neighbors = network["agents"], network["neighbors"]
    rng = random.Random(0)
    answers: dict[str, str] = {}
    for agent in agents:
        near = [answers.get(b) for b in neighbors[agent]]
        if problem == "coloring":
            answers[agent] = next(f"Group {k}" for k in range(1, 99) if f"Group {k}" not in near)
        elif problem == "vertex cover":
            answers[agent] = "No" if "No" not in near else "Yes"
        elif problem == "matching" and agent not in answers:
            free = [b for b in neighbors[agent] if b not in answers]
            answers[agent] = rng.choice(free) if free else "None"
            if free:
                answers[answers[agent]] = agent
        elif problem == "consensus":
            answers[agent] = "1"
        elif problem == "leader election":
            answers[agent] = "Yes" if agent == agents[-1] else "No"
    return answers


def jinja_values(values: dict[str, Any]) -> dict[str, Any]:
    """The lists that Jinja's expressions need."""
    answer, neighbors = values["answer"], values["neighbors"]
    pairs = [{"same": answer[u] == answer[v], "some_yes": "Yes" in (answer[u], answer[v])} for u, v in values["edges"]]
    rows = [
        {
            "answer": answer[a],
            "named_back": answer.get(answer[a]) == a,
            "some_neighbor_no": any(answer[b] == "No" for b in neighbors[a]),
            "some_neighbor_none": any(answer[b] == "None" for b in neighbors[a]),
        }
        for a in values["agents"]
    ]
    return {"pairs": pairs, "rows": rows}


Language = tuple[str, dict[str, str], Callable[[str], Callable[[dict[str, Any]], Any]]]


def languages() -> Iterator[Language]:
    """(name, expressions, expression → function of the values) of what is installed."""

    def python(text: str) -> Callable[[dict[str, Any]], Any]:
        expression = compiled(text, ("agents", "edges", "neighbors", "answer"))
        return lambda values: expression.value(names(values))

    def jinja(text: str) -> Callable[[dict[str, Any]], Any]:
        environment = BoundedEnvironment()
        expression = environment.compile_expression(text)
        return lambda values: environment.evaluate(lambda: expression(**jinja_values(values)))

    yield "python", PYTHON, python
    yield "jinja", JINJA, jinja
    with contextlib.suppress(ImportError):
        cel = importlib.import_module("cel")
        yield "cel (common-expression-language)", CEL, lambda text: lambda values: cel.evaluate(text, values)
    with contextlib.suppress(ImportError):
        celpy = importlib.import_module("celpy")

        def cel_python(text: str) -> Callable[[dict[str, Any]], Any]:
            environment = celpy.Environment()
            program = environment.program(environment.compile(text))
            return lambda values: program.evaluate({key: celpy.json_to_cel(value) for key, value in values.items()})

        yield "cel (cel-python)", CEL, cel_python


def main() -> None:
    """Print a row a problem and language."""
    network = team(1_000)
    for name, texts, make in languages():
        for problem, text in texts.items():
            values = {**network, "edges": [list(edge) for edge in network["edges"]], "answer": solved(problem, network)}
            function, times = make(text), []
            for _ in range(5):
                start = time.perf_counter()
                result = function(values)
                times.append(1_000 * (time.perf_counter() - start))
            print(f"{name:34} {problem:16} {min(times):9.2f} ms  {len(text):4} characters  {result}")


if __name__ == "__main__":
    main()
