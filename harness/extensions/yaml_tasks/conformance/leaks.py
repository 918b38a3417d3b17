"""Whether the contexts of agents, all that prompts show at the start, hold the right answer.

A right answer may be in the data by nature: the winner's name on a ballot. It is given away where it is at one
place, for every agent, in all of several cases whose answers differ.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from harness.api import Case, Facts, Task

CASES = 12
AGENTS = 4
"""Agents of a case that are looked at. What one of them alone knows is not a leak: the others must learn it."""
DIFFERENT = 3
"""Different answers from which one place can hold them all by no coincidence."""
MIN_TELLING_CHARS = 8
"""Characters of JSON from which one or two answers are enough. A 3 can be in a context by coincidence."""
SHARD = "shard"
_BEFORE = (6, 12, 24)
"""Characters before an answer by which its place in a text is known."""
_OCCURRENCES = 50


def cases_of(task: Task, seed: int) -> list[Case]:
    """Cases to compare, of several seeds where one gives few."""
    cases = list(task.cases(CASES, seed))
    for other in range(seed + 1, seed + CASES):
        more = list(task.cases(CASES - len(cases), other)) if len(cases) < CASES else []
        if not more or more == cases[: len(more)]:  # the seed draws nothing
            break
        cases += more
    return cases


def in_context(task: Task, cases: Iterable[Case]) -> list[str]:
    """Where the contexts of agents hold right answers, in words."""
    samples = ((case, i, _known(task.context(case, agent))) for case in cases for i, agent in _agents(case))
    return [f"the context holds the target, as {place}" for place in _common(task, samples)]


def in_first_turns(task: Task, samples: Iterable[tuple[Case, int, Facts]]) -> list[str]:
    """Where first turns hold right answers, in words: (case, number of the agent, all that its turn shows)."""
    known = ((case, number, _known(shown)) for case, number, shown in samples)
    return [f"the first turn shows the target, as {place}" for place in _common(task, known)]


def _known(context: Facts) -> Facts:
    """A context without the data that a question is about. Its order can favor the right answer (SILO-Bench, votes)."""
    return {**context, SHARD: ""} if SHARD in context else context


def _agents(case: Case) -> Iterable[tuple[int, str]]:
    return list(enumerate(case.agents))[:AGENTS]


def _common(task: Task, samples: Iterable[tuple[Case, int, Any]]) -> list[str]:
    """The places that hold an answer in all samples: (case, number of the agent, what it is shown)."""
    values: dict[str, list[str]] = {}
    places: dict[str, set[str]] = {}
    count = 0
    for case, number, seen in samples:
        count += 1
        for part, value in _parts(task, case, number):
            values.setdefault(part, []).append(json.dumps(value, default=str))
            if part not in places or places[part]:  # otherwise it is known to be at no common place
                here = set(_places(value, seen))
                places[part] = places[part] & here if part in places else here
    found = []
    for part, texts in values.items():
        if len(texts) == count and _telling(set(texts)):
            found += sorted(places[part])
    short: dict[str, str] = {}
    for place in dict.fromkeys(found):  # one prefix for each place in a text is enough
        short.setdefault(place.partition(", after")[0], place)
    return [*short.values()]


def _telling(texts: set[str]) -> bool:
    """Whether answers that are at one place in all cases are given away there."""
    if len(texts) >= DIFFERENT:
        return True
    # A single word can be a constant of the data; a list, a table or a long number is none.
    return all(
        len(text) >= MIN_TELLING_CHARS and not (len(texts) == 1 and re.fullmatch(r'"\S*"', text)) for text in texts
    )


def _parts(task: Task, case: Case, number: int) -> Iterator[tuple[str, Any]]:
    """The task's secrets; of one with an entry an agent, the first and the agent's own too."""
    for name, secret in task.secrets(case).items():
        yield name, secret
        if secret is case.target and isinstance(secret, (list, tuple)) and len(secret) == len(case.agents) > 0:
            yield f"{name}, first", secret[0]
            yield f"{name}, own", secret[number]


def _places(value: Any, seen: Any) -> Iterator[str]:
    """Where a value stands: paths of facts, and in texts what comes before it."""
    value = list(value) if isinstance(value, tuple) else value
    text = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    finder = re.compile(rf"(?<!\w){re.escape(text)}(?!\w)").finditer if text.strip() else None
    for place, node in _nodes(seen):
        if type(node) is type(value) and node == value and place:
            yield place
        elif isinstance(node, str) and finder is not None:
            yield from (f"{place}, after {before!r}" for before in _befores(node, finder))


def _befores(text: str, finder: Callable[[str], Iterable[re.Match[str]]]) -> Iterator[str]:
    """What comes before each occurrence, where nothing else in the text follows the same characters."""
    for match in itertools.islice(finder(text), _OCCURRENCES):
        for length in _BEFORE:
            before = text[max(0, match.start() - length) : match.start()]
            if before.strip() and text.count(before) == 1:
                yield before


def _nodes(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    value = list(value) if isinstance(value, tuple) else value
    yield place, value
    if isinstance(value, (dict, list)):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _nodes(item, f"{place}.{key}" if place else str(key))
