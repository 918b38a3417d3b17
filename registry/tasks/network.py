"""Network tasks declared in YAML."""

from __future__ import annotations

import keyword
import random
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import field, replace
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Any

from harness.api import Case, Facts, Outcome, PluginError, Range, Reply, derive_seed, plugin
from harness.extensions.networks import Adjacency, Honest, Network, NetworkTask, diameter, honest, topology_of, valid
from harness.extensions.yaml_tasks.contract import said_of
from harness.extensions.yaml_tasks.expressions import (
    FUNCTIONS,
    RANDOM,
    CompiledExpression,
    Expression,
    ExpressionError,
    ExpressionLimitError,
    Names,
    compiled,
    is_number,
    names,
    random_functions,
)
from harness.extensions.yaml_tasks.reply_fields import ReplyEntry, ReplyFields
from harness.extensions.yaml_tasks.wordings import Wording
from harness.extensions.yaml_tasks.yaml_task import YamlTask
from harness.replies import act_of

from ._network.answers import AnswerEntry, AnswerRule
from ._network.graphs import Graphs, Source
from ._network.optimum import Optimum, solve
from ._network.rules import Constraint, Rule, mean

NETWORK = ("agents", "edges", "neighbors", "degree", "n")
"""What expressions know of a network."""
OUTCOME = ("answer", "honest")
"""What those about an outcome know beside it."""
GRADES = ("solved", "score", "answered")
TAKEN = frozenset({
    *NETWORK, *OUTCOME, *GRADES, "gap", "solution", "agent", "u", "v", "diameter", "max_degree", "problem", "name",
    "goal", "question", "answer_format", "marker", "options", "rounds", "round", "rounds_left", "last_round", "inbox",
    "silent", "chain_of_thought", "previous", "error",
})  # fmt: skip
"""Names that prompts, expressions or grades use, and no fact or constraint may have."""
_DRAWS = re.compile(rf"\b(?:{'|'.join(RANDOM)})\s*\(")
_WORD = re.compile(r"[A-Za-z]\w*")
_PROBLEM = re.compile(r"[a-z][a-z0-9_]*")


@plugin
class DeclaredNetwork(YamlTask, NetworkTask):
    """A problem on networks, declared in YAML: what agents know, what they are asked, what must hold.

    Expressions know the network: `agents`, `edges` (pairs of neighbors, each once), `neighbors[a]`, `degree[a]` and `n`
    (the number of agents), and every fact: one of `known` as fact[a], the others by their name. In constraints,
    `answer[a]` is the answer of an agent, None if there is none that the form allows; there the network is that of the
    scored agents, while facts and `answer` have the byzantine ones too. `honest` lists the scored agents, as in worlds.

    Grades: `solved` (1 if all agents have answers and all constraints hold, else 0), `score`, `answered` (the share of
    agents with an answer), for every constraint, soft ones included, the share that holds (none where nothing counts),
    and with `optimum` the `gap` of solved cases.

    Attributes:
        problem: the problem's name, in a word: in ids and labels, and for prompt sets with a template a problem.
        goal: what the agents are to achieve, for the start: a template over the agent's facts, which are `name`,
            `neighbors`, `n`, `options` (of the answer), those of `shared`, and its own ones of `known`.
        question: what each agent is asked at the end, a template as well.
        answer: the form of an answer.
        reply: what agents write beside it, each on its line: `{reason: text, answer: , confidence: {number: [0, 1]}}`.
            In constraints `said[a]` is what an agent said, None in fields that it left out.
        constraints: name → what must hold for every edge, agent or pair, or for the network.
        soft: name → what should hold: it counts in `score` alone.
        score: an expression over the shares of constraints by name (1 where nothing counts), `answered`, `answer`,
            `honest` and the facts. By default their mean by `weight`; `answered` if nothing counts.
        graphs: a family, `{random: GENERATOR, parameters: {…}}` of networkx, an edge list [[a, b], …], or
            `{file: PATH}`.
        size: the number of agents. Edge lists have their own.
        instances: the number of networks. Of an edge list one, unless facts are drawn.
        connected: whether every agent must be able to hear of every other. A random graph is then drawn until it is
            connected, and another network in several parts is refused.
        budget: the rounds of messages under `rounds: paper`, an expression over `n`, `max_degree`, `diameter` and
            shared facts.
        shared: name → a fact for all agents: an expression over the network and other facts; may draw.
        known: name → a fact that each agent has of its own, an expression over `agent` as well; may draw.
        hidden: name → a fact that no agent has, such as the right answer, for constraints; may draw.
        optimum: what a named algorithm of networkx finds, to compare solved cases with: `gap` is (value - best) / best.
    """

    prompts = "network/standard"

    problem: str
    goal: str
    question: str
    answer: AnswerEntry
    constraints: dict[str, Constraint]
    reply_: ReplyEntry = field(default_factory=dict)
    soft: dict[str, Constraint] = field(default_factory=dict)
    score: Expression | None = None
    graphs: Graphs = "small_world"
    size: Annotated[int, Range(ge=2, le=100_000)] = 8
    instances: Annotated[int, Range(ge=1, le=1_000_000)] = 3
    connected: bool = True
    budget: Expression = Expression("2 * diameter + 1")
    shared: dict[str, Expression] = field(default_factory=dict)
    known: dict[str, Expression] = field(default_factory=dict)
    hidden: dict[str, Expression] = field(default_factory=dict)
    optimum: Optimum | None = None

    def __post_init__(self) -> None:
        if not _PROBLEM.fullmatch(self.problem):
            hint = "It takes small letters, digits and _, such as frequency_assignment."
            raise PluginError(f"problem is {self.problem!r:.80}", hint=hint, at=("problem",))
        self._source = Source(self.graphs, self.size, self.connected)
        self._check_names()
        self._facts = self._compiled_facts()
        self._answers = AnswerRule(self.answer, (*NETWORK, *self.shared, *self.known))
        self._beside = ReplyFields(self.reply_, "answer")
        if self._beside.values and "said" in self._facts:
            raise PluginError("`said` is what agents say beside answers: rename the fact", at=("reply",))
        known = (*NETWORK, *self._facts, *(("said",) if self._beside.values else ()))
        self._rules = {
            name: Rule.of(name, entry, (*known, *OUTCOME), self._answers.free, (key, name))
            for key in ("constraints", "soft")
            for name, entry in getattr(self, key).items()
        }
        variables = (*known, *OUTCOME, "answered", *self._rules)
        self._score = None if self.score is None else compiled(self.score, variables)
        self._budget = compiled(self.budget, ("n", "max_degree", "diameter", *self.shared))
        if self.optimum is not None:
            self._best = compiled(self.optimum["best"], (*known, "solution"))
            self._value = compiled(self.optimum["value"], (*known, *OUTCOME))
        facts = ("name", "neighbors", "n", "options", *self.shared, *self.known)
        self._goal = Wording("goal", self.goal, facts)
        self._question = Wording("question", self.question, facts)

    @property
    def is_global(self) -> bool:  # type: ignore[override]
        """Whether networks must be connected."""
        return self.connected

    @property
    def grades(self) -> tuple[str, ...]:
        """See above."""
        return (*GRADES, *self._rules, *(("gap",) if self.optimum is not None else ()))

    # ------------------------------------------------------------------------------------ parameters

    def _check_names(self) -> None:
        seen: dict[str, str] = {}
        for key in ("shared", "known", "hidden", "constraints", "soft"):
            for name in getattr(self, key):
                what = (
                    f"stands among {seen[name]} already" if name in seen
                    else "has a meaning of its own" if name in TAKEN
                    else "is a function of expressions" if name in FUNCTIONS or name in RANDOM
                    else "is not a plain word" if not _WORD.fullmatch(name) or keyword.iskeyword(name)
                    else None
                )  # fmt: skip
                if what is not None:
                    raise PluginError(f"{name!r} {what}; give it another name", at=(key, name))
                seen[name] = key
        if not self.constraints and not self.soft:
            raise PluginError("there are no constraints, and nothing soft to score", at=("constraints",))

    def _compiled_facts(self) -> dict[str, CompiledExpression]:
        """The facts, each after those that it needs."""
        texts = {**self.shared, **self.known, **self.hidden}
        facts = {
            name: compiled(text, (*NETWORK, *texts), ("agent",) if name in self.known else (), RANDOM)
            for name, text in texts.items()
        }
        needed = {name: sorted(fact.uses & facts.keys()) for name, fact in facts.items()}
        try:
            return {name: facts[name] for name in TopologicalSorter(needed).static_order()}
        except CycleError as error:
            circle = error.args[1]
            key = next(key for key in ("shared", "known", "hidden") if circle[0] in getattr(self, key))
            raise PluginError(f"facts need each other: {' ← '.join(circle)}", at=(key, circle[0])) from None

    # ----------------------------------------------------------------------------------------- cases

    def networks(self, seed: int) -> Iterable[Network]:
        """Yield the networks. Raises `DataError` for files, `PluginError` for parameters that do not fit together."""
        draws = any(_DRAWS.search(fact.text) for fact in self._facts.values())
        return self._source.networks(self.instances if draws or not self._source.fixed else 1, seed)

    def inputs(self, seed: int) -> tuple[str, ...]:
        """A summary of the network that was read from a file."""
        return self._source.summary(seed)

    def case(self, network: Network, seed: int) -> Case:
        """Return the case for a network: its facts drawn, the options of every agent worked out.

        Raises:
            ExpressionError: if an expression fails.
        """
        for rule in self._rules.values():
            rule.check(len(network.adjacency))
        case = super().case(network, seed)
        values: dict[str, Any] = {**_network(case.agents, _edges_of(network.adjacency), network.adjacency)}
        for name, fact in self._facts.items():
            rng = random.Random(derive_seed("network", self.problem, seed, network.id, name))
            value = fact.on({**names(values), **random_functions(rng)})
            values[name] = {agent: value(agent) for agent in case.agents} if name in self.known else value()
        form = self._answers.on(names(values))
        shared = {name: values[name] for name in self.shared}
        private = {
            agent: {"known": {name: values[name][agent] for name in self.known}, "answer": form(agent)}
            for agent in case.agents
        }
        target: dict[str, Any] = {name: values[name] for name in self.hidden}
        if self.optimum is not None:
            values["solution"] = solve(self.optimum["algorithm"], network.adjacency)
            target["gap"] = _finite(self._best.value(names(values)), self._best.text)
        return replace(
            case,
            public={**case.public, "shared": shared},
            private=private,
            target=target or None,
            labels={"problem": self.problem, **case.labels},
        )

    def rounds(self, case: Case) -> int:
        """Return the rounds of messages that `budget` gives.

        Raises:
            DataError: if it needs the diameter of a network in several parts.
            ExpressionError: if it fails, or gives no whole number of at least 0.
        """
        values = {**case.public, **case.public["shared"]}
        if "diameter" in self._budget.uses:
            values["diameter"] = diameter(topology_of(case))
        rounds = self._budget.value(names(values))
        if isinstance(rounds, bool) or not isinstance(rounds, int) or rounds < 0:
            raise ExpressionError.of(
                self._budget.text, f"budget gives {rounds!r:.60}; it must be a whole number of at least 0"
            )
        return rounds

    # ---------------------------------------------------------------------------------------- agents

    def context(self, case: Case, agent: str) -> Facts:
        """The facts of all network tasks and the agent's own, `goal`, `question` and `answer_format` in words."""
        reply = self._answers.reply(case.private[agent]["answer"])
        basic = super().context(case, agent)
        facts = {**basic, **case.public["shared"], **case.private[agent]["known"]}
        texts = {**facts, "options": list(reply.options or ())}
        return {
            **facts,
            "goal": self._goal(texts),
            "question": "\n\n".join(filter(None, (self._question(texts), *self._beside.words("your final answer")))),
            "answer_format": self._answers.words(reply),
            "marker": self._answers.marker,
        }

    def reply(self, case: Case, agent: str) -> Reply:
        """The declared form."""
        return self._beside.around(self._answers.reply(case.private[agent]["answer"]))

    # ---------------------------------------------------------------------------------------- grades

    def grade(self, case: Case, outcome: Outcome) -> Mapping[str, float | None]:
        """Return the grades; None if no agent is scored.

        Raises:
            ExpressionError: if an expression fails although all agents have answers.
        """
        team = honest(self, case, outcome)
        if not team.agents:
            return dict.fromkeys(self.grades)
        values = self._values(case, outcome, team)
        answered = sum(answer is not None for answer in team.answers.values()) / len(team.agents)
        shares = {name: rule.share(team, values) for name, rule in self._rules.items()}
        solved = team.all_valid and all(shares[name] in (None, 1) for name in self.constraints)
        variables = {**values, **{name: 1.0 if share is None else share for name, share in shares.items()}}
        variables["answered"] = answered
        grades = {
            "solved": float(solved),
            "score": self._scored(team, variables, shares),
            "answered": answered,
            **shares,
        }
        if self.optimum is not None:
            grades["gap"] = self._gap(case, values) if solved else None
        return grades

    def conflicts(self, case: Case, outcome: Outcome) -> Collection[tuple[str, ...]]:
        """The edges, agents and pairs for which a constraint does not hold."""
        team = honest(self, case, outcome)
        values = self._values(case, outcome, team)
        return [
            item
            for name in self.constraints
            for item, credit in self._rules[name].credits(team, values)
            if item and credit < 1
        ]

    def _values(self, case: Case, outcome: Outcome, team: Honest) -> Names:
        """What constraints know: the network of the scored agents, the facts, all answers."""
        values = _network(team.agents, team.edges, team.neighbors())
        values["n"] = len(case.agents)
        facts = {name: {agent: case.private[agent]["known"][name] for agent in case.agents} for name in self.known}
        answers = {
            agent: team.answers[agent] if agent in team.answers else valid(self, case, outcome, agent)
            for agent in case.agents
        }
        readable = {
            agent: self._answers.value(case.private[agent]["answer"], act_of(one)) for agent, one in answers.items()
        }
        if self._beside.values:
            nothing = dict.fromkeys(self._beside.names)
            values["said"] = {agent: {**nothing, **said_of(one)} for agent, one in answers.items()}
        hidden = {name: case.target[name] for name in self.hidden}
        return names(
            {**values, **case.public["shared"], **facts, **hidden, "answer": readable, "honest": list(team.agents)}
        )

    def _scored(self, team: Honest, variables: Names, shares: Mapping[str, float | None]) -> float:
        if self._score is None:
            score = mean([(share, self._rules[name].weight) for name, share in shares.items()])
            return float(variables["answered"] == 1) if score is None else score
        try:
            return _finite(self._score.value(variables), self._score.text)
        except ExpressionLimitError:
            raise
        except ExpressionError:
            if team.all_valid and not self._answers.free:
                raise
            return 0.0

    def _gap(self, case: Case, values: Names) -> float | None:
        """How far the answers are from what the algorithm found on the whole network, relative to it."""
        if case.unscored:
            return None
        value, best = _finite(self._value.value(values), self._value.text), case.target["gap"]
        if best == 0:
            return 0.0 if value == 0 else None
        return float((value - best) / abs(best))


def _network(agents: Collection[str], edges: Collection[tuple[str, str]], neighbors: Any) -> dict[str, Any]:
    return {
        "agents": list(agents),
        "edges": list(edges),
        "neighbors": {agent: list(neighbors[agent]) for agent in agents},
        "degree": {agent: len(neighbors[agent]) for agent in agents},
        "n": len(agents),
    }


def _edges_of(adjacency: Adjacency) -> list[tuple[str, str]]:
    """Each edge once, from the agent that comes first."""
    position = {agent: i for i, agent in enumerate(adjacency)}
    return [(u, v) for u, others in adjacency.items() for v in others if position[u] < position[v]]


def _finite(value: Any, text: str) -> float:
    if isinstance(value, bool):
        return float(value)
    if not is_number(value):
        raise ExpressionError.of(text, f"it gives {value!r:.60}; a number is needed")
    return float(value)
