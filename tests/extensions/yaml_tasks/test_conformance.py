"""Every plugin that ships keeps its contract: the checks of `yaml_tasks.conformance`, over all that is listed."""

import functools
import itertools
import random
from pathlib import Path
from typing import Any

import pytest

from harness.api import Case, Metric, Move, Outcome, Policy, Protocol, Task
from harness.checks.consistency import check_plan
from harness.config import project, resolve, spec
from harness.config.building import Plugins
from harness.engines.mock import Mock
from harness.extensions.games.worlds import SteppedTask, World
from harness.extensions.judges.judge_plans import judgings
from harness.extensions.yaml_tasks import conformance
from harness.plugins.manifests import offers
from harness.runtime.steps import drive
from tests.helpers import shipped
from tests.helpers.toy import TOY

ROOT = Path(__file__).parents[3]
BUILTIN = project.builtin()


def build(kind: str, name: str, /, **parameters: Any) -> Any:
    """A plugin with its defaults, references to other plugins filled in as a spec would."""
    loaded = spec.parse(
        {"name": "x", "task": "agentsnet/coloring", "protocol": {"use": "local_rounds", "channel": "neighbors"},
         "prompts": "agentsnet/standard", "metrics": ["solved"]},
        BUILTIN,
    )  # fmt: skip
    return Plugins(BUILTIN).get(kind, {"use": name, **parameters}, loaded.place)


def variants(name: str, **choices: list[Any]) -> list[tuple[str, dict[str, Any]]]:
    """A protocol with every combination of some parameters' values."""
    return [(name, dict(zip(choices, values, strict=True))) for values in itertools.product(*choices.values())]


PROTOCOLS = [
    *variants("local_rounds", channel=["neighbors"], parsing=["tolerant", "reference"], rounds=["paper", 0, 1, 5]),
    *variants("steps", order=["simultaneous"], channel=["neighbors"], talk_rounds=[0, 1, 3], memory=[0, 2, "thread"]),
    *variants("steps", order=["sequential"], channel=["neighbors"], talk_rounds=[0, 1], ends=["action", "turn"]),
    *variants("steps", deadlock=["non_terminal"], backoff_threshold=[1, None], parsing=["tolerant", "reference"]),
    *variants("action_rounds", channel=["mailbox", "broadcast", "store", "silence"], max_rounds=[6],
              planning=[False, True], calls_per_round=[1, 3]),
    *variants("action_rounds", channel=[{"use": "unreliable", "channel": "mailbox", "loss": 0.3, "delay": 2,
              "duplication": 0.3}], max_rounds=[6]),
    *variants("command_rounds", channel=["mas/broadcasting", "mas/p2p", "mas/shared_kv"], max_rounds=[6],
              phases=["one", "two"]),
    *variants("command_rounds", channel=[{"use": "unreliable", "channel": name, "loss": 0.3, "delay": 2,
              "duplication": 0.3} for name in ("mas/broadcasting", "mas/shared_kv")], max_rounds=[6]),
    *variants("single", repeats=[1, 3], reduce=["mean", "majority"]),
    *variants("vote", ties=["first", "random", "none"], invalid=["ignored", "vote"]),
    *variants("vote", agents=[3], confidence=["none", "line", "json"], calls=[None, 1, 7]),
    *variants("darkforest", agents=[1, 3], confidence=["none", "json"], coordinate=["always", "doubt", "never"]),
    *variants("darkforest", agents=[3], preset=["artifact/math", "artifact/humaneval", "artifact/mmlu_pro",
              "artifact/gpqa", "artifact/finqa", "artifact/legalbench"], disclosure=["full_traces"]),
    *variants("debate", agents=[1, 3], rounds=[1, 3], summarize=["none", "shared", "per_reader"]),
    *variants("debate", confidence=["line", "json"], restate=[True], stop=["unanimous"], ties=["random", "none"]),
    *variants("discussion", drafts=["all", "one", "none"], order=["simultaneous", "random", "moderator", "proposer"],
              max_rounds=[1]),
    *variants("discussion", decision=["unanimity", "hybrid", "last_word", "judge"], style=["agree", "critical"]),
    *variants("discussion", decision=["vote", "approval", "borda", "instant_runoff", "points"],
              votes=["secret", "public"], ties=["random", "none"], max_rounds=[1]),
    *variants("discussion", personas=["experts", "traits"], identity=["named"], visible=[2], topology=["ring"]),
    *variants("team", edges=["star", "chain", "tree", "graph"], rounds=[2],
              roles=[{"lead": {"brief": "Plan."}, "worker": {"agents": 2, "brief": "Work."}}]),
    *variants("self_refine", mode=["split", "fused"], on_stop=["approved", "rewrite"], past=["all", "last"]),
    *variants("self_refine", mode=["split", "fused"], confidence=["line", "json"], cap=[0, 2], invalid=["previous"]),
    *variants("reconcile", rounds=[0, 2], groups=[1, None], confidence=["none", "line", "json"],
              demonstrations=[[], [{"question": "1 + 1", "rationale": "two ones", "answer": 2, "agent": "Agent-1"}]]),
    *variants("reconcile", weights=["steps", "stated", "equal"], ties=["random", "none"]),
    *variants("mixture_of_agents", layers=[2, 3], slot=["system", "user"], shuffle=[False, True],
              aggregator=["Aggregator", "Agent-0"], confidence=["none", "line"]),
    *variants("graph_of_agents", agents=[3], pooling=["mean", "max"], conformance=["clean", "official"],
              top_k=[-1, 1, 3], confidence=["none", "line"]),
    *variants("graph_of_agents", rounds=[2], confidence=["json"]),
    *variants("action_rounds", channel=["mailbox"], max_rounds=[3], phases=["two"]),
    *variants("local_rounds", channel=["neighbors"], rounds=[1], phases=["two"]),
]  # fmt: skip
NEEDED: dict[str, dict[str, Any]] = {
    "unreliable": {"channel": "mailbox"}, "silo/failure": {"modes": ["timeout"]},
    "mas/failure": {"modes": ["timeout"]},
    "dataset_qa": {"data_files": str(ROOT / "tests" / "data" / "dataset_qa.jsonl"), "doc_to_text": "{{q}}",
                   "doc_to_target": "a", "answer": {"form": "text"}},
    "sharded": {"problem": "sum", "draw": {"data": "[randint(1, 9999) for _ in range(agents * per_agent)]"},
                "question": "What is the sum?", "truth": "sum(data)"},
    **{name: {"data_files": str(ROOT / "tests" / "data" / f"{name}.jsonl")}
       for name in ("math", "gpqa", "finqa", "legalbench", "humaneval", "mmlu_pro")},
    "network": {"problem": "toy", "goal": "Differ from your neighbors. Your mark: {{ mark }}.", "question": "Which?",
                "answer": {"choice": "['None'] + neighbors[agent]"}, "known": {"mark": "randint(1, 9)"},
                "constraints": {"differ": {"every": "edge", "holds": "answer[u] != answer[v]"}}},
    "world": {"state": {"pot": 0}, "own": {"paid": "randint(0, 2)"}, "sees": {"pot": "pot", "paid": "mine.paid"},
              "actions": {"PAY": {"parameters": {"coins": {"integer": ["1", "3 - mine.paid"]}},
                                  "effects": {"pot": "pot + coins", "mine.paid": "mine.paid + coins"}},
                          "LEAVE": {"when": "pot > 0", "effects": {"pot": "pot - chance(0.5)"}}, "WAIT": {}},
              "noop": "WAIT", "conflict": "random", "end": "pot > 7", "deadlock": "pot == 5",
              "break_deadlock": {"pot": 0}, "reports": {"by": "paid"}, "scores": {"pot": "pot", "odd": "pot % 2 == 1"}},
    "expression": {"act": "choice(options) if options else noop", "say": "'hello'", "remember": {"last": "action"}},
    "silo/behavior": {"kind": "strategy"}, "fact": {"of": "rounds"}, "panels/exit": {"ways": ["vote"]},
    "lm_eval": {"task": "local_two_filters", "include_path": str(ROOT / "tests" / "data" / "lm_eval")},
    "corpus": {"of": "f1"}, "games/action_rate": {"actions": ["x(0,0)"]}, "games/ever": {"actions": ["x(0,0)"]},
    "pettingzoo": {"env": "classic/tictactoe_v3"}, "textarena": {"env": "TicTacToe-v0"},
    "openspiel": {"game": "tic_tac_toe"}, "openspiel/bot": {"bot": "uniform_random"},
}  # fmt: skip
"""Parameters without a default."""
OWN = {"agentsnet": "local_rounds", "dpbench": "steps", "silo": "action_rounds", "mas": "command_rounds",
       "openspiel": "steps", "textarena": "steps", "who_broke_it": "single"}  # fmt: skip
"""A benchmark's own policies play its own tasks, by its own protocol."""
ONLY = {"mas/stale_reader": "mas/shared_kv"}
"""Policies for one channel."""


def question(task: str) -> Task:
    table: Task = build("tasks", task, **NEEDED.get(task, {}))
    return table


@functools.cache
def fitting(task: str) -> list[tuple[str, dict[str, Any]]]:
    """The protocols whose needs the task meets; where it is stepped, its agents have no answer to submit."""
    result = question(task)
    return [
        (name, arguments)
        for name, arguments in PROTOCOLS
        if result.misfit(BUILTIN.load("protocols", name).needs) is None
        and not (name in ("action_rounds", "command_rounds") and isinstance(result, SteppedTask))
    ]


@functools.cache
def share(task: str) -> list[tuple[str, dict[str, Any]]]:
    """Every fitting protocol, with its share of the variants, dealt out among the tasks that fit the same ones."""
    alike = [name for name in shipped.plugins("tasks") if fitting(name) == fitting(task)]
    mine = alike.index(task)
    dealt = []
    for _, group in itertools.groupby(fitting(task), key=lambda variant: variant[0]):
        listed = list(group)
        dealt += [v for i, v in enumerate(listed) if i % len(alike) == mine] or [listed[mine % len(listed)]]
    return dealt


def played() -> list[tuple[str, str]]:
    """Policies with tasks: a benchmark's own policies play its own tasks, the others play all."""
    return [
        (policy, task)
        for task in shipped.plugins("tasks")
        for policy in shipped.plugins("policies")
        if "/" not in policy or policy.split("/")[0] == task.split("/")[0]
    ]


@pytest.mark.parametrize("kind", [*offers("kinds"), "prompts", "specs"])
def test_no_plugin_is_broken(kind: str) -> None:
    assert [entry for entry in BUILTIN.listing(kind) if entry.problem] == []


def test_every_protocol_is_here() -> None:
    assert {name for name, _ in PROTOCOLS} == set(shipped.plugins("protocols"))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", shipped.plugins("tasks"))
def test_tasks(name: str) -> None:
    task = build("tasks", name, **NEEDED.get(name, {}))
    assert conformance.check_task(task) == []
    if isinstance(task, SteppedTask):
        for seed in range(5):
            assert conformance.check_world(task, seed) == []


@pytest.mark.sampled(2)
@pytest.mark.parametrize("task", shipped.plugins("tasks")[::-1])
def test_protocols(task: str) -> None:
    for name, arguments in share(task):
        assert conformance.check_protocol(build("protocols", name, **arguments), question(task)) == [], (
            name,
            arguments,
        )


@pytest.mark.parametrize("name", shipped.plugins("channels"))
def test_channels(name: str) -> None:
    case = build("tasks", "agentsnet/coloring").example()
    assert conformance.check_channel(build("channels", name, **NEEDED.get(name, {})), case) == []


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("name", "task"), played())
def test_policies(name: str, task: str) -> None:
    benchmark = name.split("/")[0] if "/" in name else None

    def make() -> Policy:
        needed = {"of": BUILTIN.load("policies", "random")()} if name == "faulty" else NEEDED.get(name, {})
        result: Policy = BUILTIN.load("policies", name)(**needed)
        return result

    for protocol, arguments in fitting(task) if benchmark else share(task):
        if benchmark and protocol != OWN[benchmark]:
            continue
        if name in ONLY and arguments["channel"] != ONLY[name]:
            continue
        assert conformance.check_policy(make, build("protocols", protocol, **arguments), question(task)) == [], (
            arguments
        )


# `evaluate` needs a script, which tests/extensions/datasets/test_corpus_metrics.py writes.
@pytest.mark.parametrize("name", sorted({*shipped.plugins("metrics")} - {"evaluate"}))
def test_metrics(name: str) -> None:
    needed = {"metric": "f1", "aggregation": "f1"} if name == "lm_eval" else NEEDED.get(name, {})
    assert conformance.check_metric(build("metrics", name, **needed)) == []


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", shipped.two_of_each_family())
def test_specs_hold_together(name: str) -> None:
    """All of them are examined by `harness validate`, which `.ci/run` runs."""
    loaded = spec.load(name, BUILTIN)
    plan = resolve.plan(loaded, BUILTIN, Mock())
    assert check_plan(plan) == []
    resolve.plan(loaded, BUILTIN)  # with the baseline


@pytest.mark.slow
def test_every_prompt_set_is_used_by_a_spec_and_so_examined() -> None:
    used = set()
    for name in shipped.specs():
        plan = resolve.plan(spec.load(name, BUILTIN), BUILTIN, Mock())
        judges = [judging.plan for judging in judgings(plan, Mock(), {})]
        used |= {group.prompts.name for one in (plan, *judges) for c in one.conditions for group in c.groups}
    used.add("judges/pairwise")  # of no spec: `harness judge` examines it, in tests/extensions/judges/test_pairs.py
    used |= {"lm_eval/text", "lm_eval/chat"}  # of no spec, since it would need the package: tests/extensions/lm_eval
    assert used == set(shipped.plugins("prompts"))


# ----------------------------------------------------------------------- the checks themselves can fail


class Leaky(Task):
    grades = ("right",)

    def cases(self, limit: int | None, seed: int) -> list[Case]:
        return [Case("c", ("A", "A"), target="the secret")]

    def context(self, case: Case, agent: str) -> dict[str, Any]:
        return {"hint": case.target}

    def reply(self, case: Case, agent: str) -> Any:
        return TOY.load("tasks", "pick")().reply(case, agent)

    def grade(self, case: Case, outcome: Outcome) -> dict[str, float | None]:
        return {"wrong": True}


def test_check_task_sees_leaks_repeats_and_bad_grades() -> None:
    text = " ".join(conformance.check_task(Leaky()))
    for word in ("holds the target", "agents repeat", "grade gives ['wrong']", "a grade is neither a number"):
        assert word in text


class Guessing(Leaky):
    """Its target is a small number; `telling` puts it into the context."""

    grades = ("wrong",)

    def __init__(self, telling: bool) -> None:
        self.telling = telling

    def cases(self, limit: int | None, seed: int) -> list[Case]:
        return [Case(f"c{i}", ("A", "B"), target=i) for i in range(10)][:limit]

    def context(self, case: Case, agent: str) -> dict[str, Any]:
        return {"agents": 2, "text": "Which number from 0 to 9?", "options": [*range(3)]} | (
            {"hint": {"number": case.target}} if self.telling else {}
        )

    def grade(self, case: Case, outcome: Outcome) -> dict[str, float | None]:
        return {"wrong": 0.0}


def test_check_task_tells_a_leak_from_a_coincidence() -> None:
    assert conformance.check_task(Guessing(telling=False)) == []
    assert conformance.check_task(Guessing(telling=True)) == ["the context holds the target, as hint.number"]


class Wild(Protocol):
    facts = ("missing",)

    def __init__(self, *asked: str) -> None:
        self.asked = asked

    def play(self, task: Any, case: Case, agents: Any, rng: Any) -> Any:
        from harness.api import Turn

        reply = task.reply(case, "S0")
        yield [Turn(agent, "say", {"x": object(), "y": random.random()}, reply) for agent in self.asked]
        return Outcome()


def test_check_protocol_sees_chance_and_facts() -> None:
    text = " ".join(conformance.check_protocol(Wild("S0", "S1"), TOY.load("tasks", "pick")()))
    for word in ("different batches", "is not JSON", "gives facts []"):
        assert word in text


@pytest.mark.parametrize(
    "asked, what", [(("nobody",), "which is not an agent of this case"), (("S0", "S0"), "'S0' twice in one batch")]
)
def test_check_protocol_sees_whom_it_may_not_ask(asked: tuple[str, ...], what: str) -> None:
    [problem] = conformance.check_protocol(Wild(*asked), TOY.load("tasks", "pick")())
    assert what in problem


class Counter(World):
    """A counter that counts in place."""

    def __init__(self) -> None:
        self.count = 0

    def observation(self, agent: str) -> dict[str, Any]:
        return {"count": self.count, "mark": {1, 2}}

    def reply(self, agent: str) -> Any:
        return TOY.load("tasks", "pick")().reply(Case("c", ("S0",)), agent)

    def step(self, actions: Any, rng: random.Random) -> "Counter":
        self.count += random.randint(1, 1000)
        return self

    def facts(self) -> dict[str, Any]:
        return {"count": {self.count}}


class Counting(SteppedTask):
    facts = ("counted",)
    grades = ()

    def cases(self, limit: int | None, seed: int) -> list[Case]:
        return [Case("c", ("S0",))]

    def context(self, case: Case, agent: str) -> dict[str, Any]:
        return {}

    def world(self, case: Case, rng: random.Random) -> Counter:
        return Counter()

    def grade(self, case: Case, outcome: Outcome) -> dict[str, float | None]:
        return {}


def test_check_world_sees_mutation_chance_and_facts() -> None:
    text = " ".join(conformance.check_world(Counting()))
    for word in (
        "changes the state",
        "observation is not JSON",
        "another game",
        "gives facts ['count']",
        "facts are not JSON",
    ):
        assert word in text


def test_check_policy_sees_illegal_actions() -> None:
    make = TOY.load("policies", "illegal")
    problems = conformance.check_policy(make, TOY.load("protocols", "rounds")(), TOY.load("tasks", "pick")())
    assert "chose 'z', which is none of" in problems[0]


class Moody(Metric):
    def measure(self, episode: Any) -> Any:
        return "good"


def test_check_metric_sees_what_is_no_number() -> None:
    assert conformance.check_metric(Moody()) == ["measures 'good'"]


class Endless(Protocol):
    def play(self, task: Any, case: Case, agents: Any, rng: Any) -> Any:
        while True:
            yield []


def test_drive_does_not_wait_for_ever() -> None:
    task = TOY.load("tasks", "pick")()
    with pytest.raises(RuntimeError, match="does not come to an end"):
        drive(Endless(), task, task.example())


def test_moves_of_a_drive_are_in_order() -> None:
    task = TOY.load("tasks", "pick")()
    played = drive(TOY.load("protocols", "rounds")(rounds=2), task, task.example(), lambda turn: "a")
    assert [[move for _, move in batch] for batch in played.batches] == [
        [Move(s, "say", "a") for s in ("S0", "S1", "S2")]
    ] * 2


SECOND: dict[str, tuple[Any, dict[str, Any]]] = {
    "agentsnet": ("agentsnet/coloring", {"use": "local_rounds", "channel": "neighbors", "rounds": 1}),
    "silo": ("silo/prefix_sum", {"use": "action_rounds", "channel": "mailbox", "max_rounds": 1}),
    "sharded": ("silo/prefix_sum", {"use": "action_rounds", "channel": "mailbox", "max_rounds": 1}),
    "sharded/standard": (
        {"use": "silo/prefix_sum", "topology": "ring"},
        {"use": "local_rounds", "channel": "neighbors", "rounds": 1},
    ),
    "mas": ("mas/sorting", {"use": "command_rounds", "channel": "mas/p2p", "max_rounds": 1}),
}


ROUNDS = [name for name in shipped.plugins("prompts") if name.split("/")[0] in SECOND and name != "silo/panel"]
"""Prompt sets of games in rounds; silo/panel puts a question to a panel, whose protocols have no second run."""


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", ROUNDS)
def test_every_prompt_set_tells_of_a_second_run(name: str) -> None:
    task, protocol = SECOND.get(name) or SECOND[name.split("/")[0]]
    planning = {"planning": True} if name == "silo/planning" else {}
    parameters = {"name": "x", "task": task, "prompts": name, "metrics": ["calls"]}
    loaded = spec.parse({**parameters, "protocol": {**protocol, "phases": "two", **planning}}, BUILTIN)
    assert check_plan(resolve.plan(loaded, BUILTIN, Mock())) == []


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("name", "prompts", "fit"),
    [
        ("sharded/ranks", "network/standard", "sharded/standard"),
        ("worlds/telephone", "silo/standard", "world/standard"),
        ("networks/coloring", "world/standard", "network/standard"),
    ],
)
def test_prompts_of_another_kind_of_task_are_one_problem(name: str, prompts: str, fit: str) -> None:
    (problem,) = check_plan(resolve.plan(spec.load(name, BUILTIN, [f"prompts={prompts}"]), BUILTIN))
    assert problem.message.startswith(f"prompt set {prompts!r} does not fit this task and protocol: undefined variable")
    assert problem.hint is not None and fit in problem.hint.rstrip(".").removeprefix("Sets that fit: ").split(", ")
    assert prompts not in problem.hint


def test_a_prompt_set_that_does_not_is_refused(tmp_path: Path) -> None:
    (tmp_path / "harness.yaml").write_text(f"parents: [{ROOT}]\n")
    (tmp_path / "prompts" / "mute").mkdir(parents=True)
    (tmp_path / "prompts" / "mute" / "prompts.yaml").write_text("base: silo/standard\n")
    (tmp_path / "prompts" / "mute" / "system.j2").write_text("You are {{ name }}. {{ task }} {{ shard }}\n")
    mine = project.find(tmp_path)
    task, protocol = SECOND["silo"]
    parameters = {"name": "x", "task": task, "prompts": "mute", "metrics": ["calls"]}
    for phases, text in (("one", []), ("two", ["previous"])):
        loaded = spec.parse({**parameters, "protocol": {**protocol, "phases": phases}}, mine)
        problems = check_plan(resolve.plan(loaded, mine, Mock()))
        assert ["previous" for error in problems if "never shows previous" in str(error)] == text, problems
