"""Proof of a task that a spec declares: its cases can be drawn, graded and played, and it gives nothing away.

Expressions are the spec author's own code, and no test suite reads them. So `harness validate` draws cases with several
seeds and tries them on answers of every kind, and the spec's metrics on what random agents play.
"""

from __future__ import annotations

import itertools
import json
import math
import random
import statistics
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harness.api import Action, Case, Outcome, Task, Turn, derive_seed
from harness.api.errors import Place, SpecError, UserError
from harness.checks.trial_episodes import unmeasured
from harness.config.plan import Condition, Plan
from harness.extensions.games.worlds import SteppedTask
from harness.extensions.yaml_tasks.conformance import check_task
from harness.runtime.scoring import as_grade
from harness.storage.plugin_errors import describe

from .contract import with_fields
from .play_out import Choose, Clock, LateError, play_out
from .world_check import warning
from .yaml_task import YamlTask

CASES = 20
SECONDS = 2.0
"""What one task may take, in CPU time; fewer cases are drawn of one that takes longer."""
MAX_SEARCH = 3_000
"""Answer vectors that are graded in search of a solution."""
MAX_GRADES = 4
MAX_TASKS = 4
"""Tasks of a spec that are proved: a matrix of sizes declares one task many times."""
ALL = "of all"
_JUNK: tuple[Any, ...] = ("", "no such answer", -1, 1.5, True, [], {}, ["x"], {"a": 1}, 10**30)

Grades = Mapping[str, Any]
"""As `Task.grade` gives them: numbers, None, or mappings agent → number."""


@dataclass
class Proof:
    """What was tried, and what came of it.

    Attributes:
        cases: how many cases were drawn, each with a seed of its own.
        problems: what is wrong, each once.
        floor: grade → its mean over the cases when random agents play.
        ceiling: grade → its value for the best outcome of the first case; None if none was looked for.
        method: how that outcome was found, in words.
        facts: those of the outcomes of random agents.
    """

    cases: int = 0
    problems: list[UserError] = field(default_factory=list)
    floor: dict[str, float] = field(default_factory=dict)
    ceiling: dict[str, float] | None = None
    method: str = ""
    facts: list[Grades] = field(default_factory=list)

    def line(self) -> str:
        """The result in words."""
        best = "" if self.ceiling is None else f"; best outcome {self.method}: {_shown(self.ceiling)}"
        if self.ceiling is not None and self.ceiling.get("solved", 1.0) < 1:
            best += "; no answers solve it" if self.method == ALL else "; warning: no outcome found that solves it"
        if not self.cases:
            return f"no case was played to its end within {SECONDS:g} s"
        return f"{self.cases} cases; random agents: {_shown(self.floor)}{best}"


def _shown(grades: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.3g}" for name, value in [*grades.items()][:MAX_GRADES]) or "no grades"


def proofs(plays: Sequence[tuple[Plan, Place]]) -> Iterator[UserError | str]:
    """Prove the tasks that a spec declares: yield what is wrong with them, and a line about each that is proved.

    Args:
        plays: the spec's plan comes first; tasks of the others are the same.
    """
    plan, seen, mistaken = plays[0][0], set[str](), set[Place]()
    for condition in plan.conditions:
        if len(seen) == MAX_TASKS:
            return
        if isinstance(condition.task, YamlTask) and (key := repr(condition.task)) not in seen:
            seen.add(key)
            proof = prove(plan, condition)
            for problem in proof.problems:
                if problem.place not in mistaken:  # the mistake of a line is one, whatever the task's numbers are
                    yield problem
            mistaken |= {one.place for one in proof.problems if one.place not in (None, plan.spec.place("task"))}
            about = condition.origin
            if not proof.problems:
                yield f"{about}: {proof.line()}"
                if (wrong := warning(condition, proof.facts, plays)) is not None:
                    yield f"{about}: {wrong}"


def prove(plan: Plan, condition: Condition) -> Proof:
    """Draw cases of the condition's task and try them. Problems that know no better place are where the task is.

    Args:
        plan: its metrics must be able to measure what random agents play.
        condition: one of the plan's; its task is a `YamlTask`.
    """
    proof, task, deadline = Proof(), condition.task, time.process_time() + SECONDS
    place = plan.spec.place("task")
    floors: list[Grades] = []
    plain: list[str] = []
    for seed in range(CASES):
        try:
            case = next(iter(task.cases(1, seed)))
            if not seed:
                plain += check_task(task)
            for outcome in _outcomes(task, case, random.Random(seed)):
                plain += _wrong(task.grade(case, outcome))
            clock = Clock(max(deadline - time.process_time(), SECONDS))
            seated = condition.assign_groups(case, plan.seed)  # metrics tell models from policies, and groups apart
            episode = play_out(plan, condition, seated, clock.watching(_player(seed)), seed)
            assert episode.outcome is not None, "it was played to its end"
            proof.facts.append(episode.outcome.facts)
            floors.append(task.grade(case, episode.outcome))
            plain += _wrong(floors[-1])
            if not plain:
                proof.problems += unmeasured(plan, replace(episode, grade=as_grade(task, floors[-1])), set())
            if not seed:
                plain += _solve(proof, task, case)
        except LateError:
            break
        except UserError as error:
            where = error.place or place
            proof.problems.append(type(error)(error.message, place=where, hint=error.hint))
            break
        except Exception as error:
            plain.append(f"seed {seed}: {describe(error)}")
        proof.cases += 1
        if plain or proof.problems or time.process_time() > deadline:
            break
    proof.problems += [SpecError(f"{condition.id}: {one}", place=place) for one in dict.fromkeys(plain)]
    for name in task.grades:
        numbers = [number for grade in floors if (number := _numbers(grade).get(name)) is not None]
        if numbers:
            proof.floor[name] = statistics.fmean(numbers)
    return proof


def _player(seed: int) -> Choose:
    """Random agents: each draws from its options, and does nothing if there are none."""
    rng = random.Random(derive_seed("proof", seed))

    def choose(turn: Turn) -> Action:
        action = rng.choice(turn.reply.options) if turn.reply.options else turn.reply.noop
        return with_fields(turn.reply, action, rng)

    return choose


def _outcomes(task: Task, case: Case, rng: random.Random) -> Iterator[Outcome]:
    """Outcomes of every kind: nothing, nonsense, all the same, random, and random with one answer missing."""
    yield Outcome()
    if isinstance(task, SteppedTask):
        return  # grades come from the world's facts, which random play gives
    for junk in _JUNK:
        yield Outcome(dict.fromkeys(case.agents, junk), group=junk)
    options = {agent: task.reply(case, agent).options or _JUNK for agent in case.agents}
    for option in {json.dumps(o, default=str): o for agent in case.agents[:1] for o in options[agent][:20]}.values():
        yield Outcome(dict.fromkeys(case.agents, option), group=option)
    for _ in range(10):
        answers = {agent: rng.choice(options[agent]) for agent in case.agents}
        yield Outcome(answers)
        missing = dict(answers)
        missing[rng.choice(case.agents)] = rng.choice((None, "no such answer"))
        yield Outcome(missing)


def _wrong(grades: Grades) -> Iterator[str]:
    for name, value in grades.items():
        for number in value.values() if isinstance(value, Mapping) else (value,):
            if number is not None and not math.isfinite(number):
                yield f"grade {name!r} is {number}, which is not a number"
    score = _numbers(grades).get("score")
    if score is not None and not -1e-9 <= score <= 1 + 1e-9:
        yield f"grade 'score' is {score:.4g}; a score lies between 0 and 1"


# ---------------------------------------------------------------------------------------- solutions


def _solve(proof: Proof, task: Task, case: Case) -> Iterator[str]:
    """Note the best outcome of a case: the task's own solution, which must solve it, or what a search finds."""
    known = task.solution(case) if isinstance(task, YamlTask) else None
    if known is not None:
        best, proof.method = task.grade(case, known), "by the solution"
        if best.get("solved", best.get("success", 1.0)) != 1.0:
            yield f"its own solution does not solve {case.id}: {_shown(_numbers(best))}"
    elif isinstance(task, SteppedTask):
        return  # how a game ends cannot be searched answer by answer
    elif not {"solved", "score"} & set(task.grades) or not all(task.reply(case, a).options for a in case.agents):
        return
    else:
        best, proof.method = _search(task, case)
    proof.ceiling = _numbers(best)


def _numbers(grades: Grades) -> dict[str, float]:
    """Those grades that are numbers."""
    return {name: value for name, value in grades.items() if value is not None and not isinstance(value, Mapping)}


def _search(task: Task, case: Case) -> tuple[Grades, str]:
    """All answer vectors where they are few, else agents that improve their answers by turns, from random starts."""
    options = {agent: tuple(task.reply(case, agent).options or ()) for agent in case.agents}

    def value(grades: Grades) -> tuple[float, float]:
        return grades.get("solved") or 0.0, grades.get("score") or 0.0

    def graded(answers: Mapping[str, Action]) -> Grades:
        return task.grade(case, Outcome(dict(answers)))

    if math.prod(map(len, options.values())) <= MAX_SEARCH:
        vectors: Iterable[tuple[Action, ...]] = itertools.product(*options.values())
        grades = (graded(dict(zip(options, vector, strict=True))) for vector in vectors)
        return max(grades, key=value), ALL
    rng, deadline = random.Random(0), time.process_time() + SECONDS
    some = [option for many in itertools.islice(options.values(), 1) for option in many[:3]]
    same = [{a: option if option in many else many[0] for a, many in options.items()} for option in some]
    drawn = ({a: rng.choice(many) for a, many in options.items()} for _ in itertools.count())
    best: Grades = graded(same[0])
    left = MAX_SEARCH
    for answers in itertools.chain(same, drawn):
        here, better = graded(answers), True
        while better and left > 0 and time.process_time() < deadline:
            better = False
            for agent in rng.sample(list(options), len(options)):
                for option in options[agent]:
                    if left <= 0 or time.process_time() > deadline:
                        break
                    there, left = graded({**answers, agent: option}), left - 1
                    if value(there) > value(here):
                        answers, here, better = {**answers, agent: option}, there, True
        best = max(best, here, key=value)
        if left <= 0 or value(best) == (1.0, 1.0) or time.process_time() > deadline:
            break
    return best, "of a search"
