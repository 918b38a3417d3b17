"""One episode of a MAS-Bench task with scripted agents, without an engine."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from harness.api import Case, Completion, Episode, Move, Outcome, Turn
from harness.config import project
from harness.runtime.policy_players import PolicyPlayer
from harness.runtime.steps import drive

BUILTIN = project.builtin()
TASKS = ("maximum", "prefix_sum", "sorting")
BACKENDS = ("broadcasting", "p2p", "shared_kv")
FAMILIES = ("asc", "near_asc", "random", "near_desc", "desc")
MODES = ("premature", "stale", "hallucination", "boundary", "timeout")


class Played:
    """What came of it: the grade, the facts, the batches of moves."""

    def __init__(self, case: Case, batches: Sequence[Sequence[Move]], outcome: Outcome, grade: Mapping[str, Any]):
        self.case, self.batches, self.outcome, self.facts, self.grade = case, batches, outcome, outcome.facts, grade

    @property
    def flags(self) -> set[str]:
        return {mode for mode in MODES if self.grade[mode]}

    def measured(self, name: str, **parameters: Any) -> float | None:
        metric = BUILTIN.load("metrics", name)(**parameters)
        labels = {**self.case.labels}
        episode = Episode("e", "c", self.case.id, 0, labels, {}, self.batches, self.outcome, self.grade)
        number: float | None = metric.measure(episode)
        return number

    def with_calls(
        self, text: str = "abcd", input_tokens: int = 10, output_tokens: int = 2, hidden: int | None = None
    ) -> "Played":
        """The same as if a model had made every move by one call of this text and these tokens."""
        call = Completion(text, input_tokens=input_tokens, output_tokens=output_tokens, reasoning_tokens=hidden)
        batches = [[Move(m.agent, m.turn, m.action, calls=(call,)) for m in batch] for batch in self.batches]
        return Played(self.case, batches, self.outcome, self.grade)


def task_of(name: str, **parameters: Any) -> Any:
    return BUILTIN.load("tasks", f"mas/{name}")(**parameters)


def play(
    task: str, backend: str, agents: int, policy: str = "mas/oracle", *, items: int = 5, family: str = "random",
    phases: str = "one", rounds: int = 100, seed: int = 0, whole: bool = False,
    mute: int | None = None, **parameters: Any,
) -> Played:  # fmt: skip
    """`mute`: the number of an agent that is silent; `parameters` are the policy's."""
    result = task_of(task, agents=agents, items=items, family=family, whole=whole)
    channel = BUILTIN.load("channels", f"mas/{backend}")()
    protocol = BUILTIN.load("protocols", "command_rounds")(channel=channel, phases=phases, max_rounds=rounds)
    case = next(iter(result.cases(1, seed)))
    made_policy: Any = BUILTIN.load("policies", policy)
    players = {agent: PolicyPlayer(partial(made_policy, **parameters), i) for i, agent in enumerate(case.agents)}
    if mute is not None:
        players[case.agents[mute]] = PolicyPlayer(BUILTIN.load("policies", "mas/silent"), mute)

    def answer(turn: Turn) -> Any:
        return players[turn.agent].decide(turn).action

    played = drive(protocol, result, case, answer)
    batches = [[move for _, move in batch] for batch in played.batches]
    return Played(case, batches, played.outcome, result.grade(case, played.outcome))


def graded(task: str, answers: Sequence[Any], *, agents: int, knew: Sequence[int] | None = None, **more: Any) -> Any:
    """The grade of these submissions; `knew` as bits, everything by default; `more`: `stale`, the task's parameters."""
    facts = {name: more.pop(name) for name in ("stale",) if name in more}
    result = task_of(task, agents=agents, **more)
    case = next(iter(result.cases(1, 0)))
    names = knew or [(1 << agents) - 1] * agents
    submitted = {agent: answer for agent, answer in zip(case.agents, answers, strict=True) if answer is not None}
    facts["knew"] = {agent: f"{bits:x}" for agent, bits in zip(case.agents, names, strict=True) if agent in submitted}
    return result.grade(case, Outcome(answers=submitted, facts=facts))
