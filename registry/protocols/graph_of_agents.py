"""Graph-of-Agents: picked agents score one another and pass answers down and up the ranking."""

from __future__ import annotations

import random
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, TypeVar

from harness.api import Action, Case, Move, Outcome, Play, PluginError, Range, Reply, Task, Turn, near, plugin
from harness.extensions.panels.answer_with_confidence import Style
from harness.extensions.panels.panels import Opinion, Panel, leading
from harness.extensions.panels.traffic import Traffic

from ._graph import Graph, graph_of, means, waves
from ._graph_replies import Indices, Level, Scores

T = TypeVar("T")
Step = Generator[list[Turn], list[Move], T]
DEFAULT_K = 3
"""The number of nodes if the difficulty cannot be read."""


@plugin
class GraphOfAgents(Panel):
    """Agents are picked for a question, score one another's answers, and revise along the edges of that ranking.

    Yun et al., arXiv:2604.17148. A node is one of the picked agents; the same agent can be picked twice. Every turn is
    a new conversation. Turns: `difficulty`, `pick`, `answer`, `judge`, `forward`, `backward`, `pool`.

    Attributes:
        pooling: "mean": the meta agent combines all nodes' texts into one answer. "max": the best node's answer counts.
        conformance: "official" follows the published code where it deviates from the method; see
            docs/methods/graph_of_agents.md.
        top_k: the number of nodes; -1: the difficulty of the question, which the meta agent rates from 1 to 6.
        rounds: how often answers go down and up the graph.
        threshold: nodes whose share of the scores is not above this drop out.
        floor: where a node's first answer states a confidence below this, or none, the general agent answers again for
            it. Without effect if no confidence is requested.
        cards: agent → its strengths, in one line. The meta agent picks by them.
        domains: agent → its field, which decides between nodes with equal scores.
        order: fields in order of precedence. Other fields come after them; then the earlier node wins.
        meta: the agent that picks and pools.
        general: the agent that answers for unsure nodes; None: the panel's first.
        pick_tries: how often to ask for picks (and the difficulty) before taking the first agents (and 3 of them).
        judge_tries: how often to ask for scores before ignoring the judge.
    """

    confidence: Style = "line"
    pooling: Literal["mean", "max"] = "mean"
    conformance: Literal["clean", "official"] = "clean"
    top_k: Annotated[int, Range(ge=-1, le=100)] = 3
    rounds: Annotated[int, Range(ge=1, le=100)] = 1
    threshold: Annotated[float, Range(ge=0, lt=1)] = 0.05
    floor: Annotated[float, Range(ge=0, le=1)] = 0.1
    cards: dict[str, str] | None = None
    domains: dict[str, str] | None = None
    order: list[str] = field(default_factory=lambda: ["general", "code", "math"])
    meta: str = "Meta"
    general: str | None = None
    pick_tries: Annotated[int, Range(ge=1, le=100)] = 5
    judge_tries: Annotated[int, Range(ge=1, le=100)] = 3

    roles = ("meta", "general")
    facts = (
        *Panel.facts, "cards", "difficulty", "picks", "slots", "retries", "replaced", "scores", "dropped", "shares",
        "ranks", "edges", "top",
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.top_k == 0:
            hint = "Give 1 or more, or -1 to have the question's difficulty rated first."
            raise PluginError("top_k is 0: no agent would answer", hint=hint, at=("top_k",))

    def others(self) -> tuple[str, ...]:
        """The meta agent, and the general agent if it has a name."""
        return (self.meta, self.general) if self.general else (self.meta,)

    def play(self, task: Task, case: Case, agents: Sequence[str], rng: random.Random) -> Play:
        """Yield the batches of `_Episode`: turns that do not depend on one another share a batch."""
        members = self.members(case)
        for name, mapping in (("cards", self.cards or {}), ("domains", self.domains or {})):
            for agent in sorted(mapping.keys() - {*members}):
                hint = near(agent, members)
                raise PluginError(f"{name} names {agent!r}, which is not on the panel", hint=hint, at=(name, agent))
        return _Episode(self, task, case, members).play()


@dataclass
class _Episode:
    """One question: the nodes, the texts that each agent has seen, and the facts of the outcome."""

    rules: GraphOfAgents
    task: Task
    case: Case
    members: Sequence[str]
    slots: list[str] = field(default_factory=list)
    history: list[list[Opinion]] = field(default_factory=list)
    seen: set[tuple[str, int]] = field(default_factory=set)
    traffic: Traffic = field(init=False)
    facts: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.traffic = Traffic(self.rules.possible_agents(self.case))

    def play(self) -> Play:
        """The method, step by step."""
        rules = self.rules
        yield from self.pick()
        first = yield from self.propose()
        if len(first) == 1:
            return self.end(first[0], "one agent")
        graph = yield from self.judge(first)
        if graph is None:
            return self.end(None, "edges failed")
        if graph.top is None:
            pooled = yield from self.pool(first, graph)
            return self.end(pooled, "no survivor", pooled.answer)
        if len(graph.ranks) == 1:
            return self.end(first[graph.top], "one survivor")
        texts = first
        for _ in range(rules.rounds):
            revised = yield from self.forward(graph, texts)
            texts = yield from self.backward(graph, texts, revised)
        if rules.pooling == "max":
            return self.end(texts[graph.top], "top node")
        pooled = yield from self.pool(texts, graph)
        return self.end(pooled, "pooled", pooled.answer)

    # ------------------------------------------------------------------------------------------ the nodes

    def pick(self) -> Step[None]:
        """The meta agent reads the question and the cards, and picks the agents."""
        rules, pool = self.rules, self.members
        cards = [(rules.cards or {}).get(agent) for agent in pool]
        observation: dict[str, Any] = {"cards": [{"number": i, "card": card} for i, card in enumerate(cards)]}
        count, level, retries = rules.top_k, None, {}
        if count < 0:
            [move] = yield [self.turn(rules.meta, "difficulty", observation, (), Level(), rules.pick_tries)]
            level, retries["difficulty"] = move.action, _retries(move)
            count = level or DEFAULT_K
        form = Indices(len(pool), count, "reference" if rules.conformance == "official" else "tolerant")
        [move] = yield [self.turn(rules.meta, "pick", {**observation, "count": count}, (), form, rules.pick_tries)]
        picks = form.noop if move.action is None else move.action
        self.slots = [pool[i] for i in picks]
        retries["pick"] = _retries(move)
        self.facts |= {"cards": cards, "difficulty": level, "slots": self.slots, "retries": retries}
        self.facts["picks"] = move.action  # None: unreadable, so the first agents take part

    def propose(self) -> Step[list[Opinion]]:
        """Every node answers alone. With several nodes the general agent answers again for unsure ones."""
        answers: dict[int, Opinion] = {}
        for batch in waves([*enumerate(self.slots)]):
            moves = yield [self.turn(self.slots[slot], "answer", {}) for slot in batch]
            answers |= {slot: self.read(move) for slot, move in zip(batch, moves, strict=True)}
        first = [answers[slot] for slot in range(len(self.slots))]
        self.history.append(first)
        general = self.rules.general or self.members[0]
        replaced = [slot for slot, one in enumerate(first) if one.agent != general and self.unsure(one)]
        self.facts["replaced"] = replaced if len(first) > 1 else []
        for slot in self.facts["replaced"]:
            [move] = yield [self.turn(general, "answer", {})]
            answers[slot] = self.read(move)
        if self.facts["replaced"]:
            self.history.append([answers[slot] for slot in range(len(first))])
        return self.history[-1]

    def unsure(self, opinion: Opinion) -> bool:
        """Whether a requested confidence is missing or below the floor."""
        stated = opinion.confidence
        return self.rules.confidence != "none" and (stated is None or stated < self.rules.floor)

    # ------------------------------------------------------------------------------------------ the graph

    def judge(self, first: Sequence[Opinion]) -> Step[Graph | None]:
        """Every node scores the others' answers. None if a node has no score and conformance is official."""
        rows: list[dict[int, float] | None] = [None] * len(first)
        retries = [0] * len(first)
        for batch in waves([*enumerate(self.slots)]):
            moves = yield [self.judgement(slot, first) for slot in batch]
            for slot, move in zip(batch, moves, strict=True):
                retries[slot] = _retries(move)
                if move.action is not None:
                    rows[slot] = {int(name) - 1: float(score) for name, score in move.action.items()}
        averages = means(rows)
        graph = graph_of(averages, self.rules.threshold, [self.standing(agent) for agent in self.slots])
        self.facts["retries"]["judge"] = retries
        self.facts |= {
            "scores": [[None if row is None else row.get(slot) for slot in range(len(rows))] for row in rows]
        }
        self.facts |= {"dropped": [judge for judge, row in enumerate(rows) if row is None]}
        self.facts |= {"shares": list(graph.shares), "ranks": list(graph.ranks), "top": graph.top}
        if self.rules.conformance == "official" and None in averages:
            return None
        return graph

    def judgement(self, slot: int, first: Sequence[Opinion]) -> Turn:
        """The turn in which a node scores the answers of all others, by number."""
        others = [other for other in range(len(first)) if other != slot]
        observation = self.observation(first, others)
        form = Scores(tuple(str(other + 1) for other in others))
        return self.turn(
            self.slots[slot], "judge", observation, [first[i] for i in others], form, self.rules.judge_tries
        )

    def standing(self, agent: str) -> int:
        """The rank of an agent's field in the order that decides between equal scores."""
        own = (self.rules.domains or {}).get(agent)
        return self.rules.order.index(own) if own in self.rules.order else len(self.rules.order)

    # ------------------------------------------------------------------------------------ down and up

    def forward(self, graph: Graph, texts: Sequence[Opinion]) -> Step[list[Opinion]]:
        """All nodes but the best revise at the same time, and see the answers of the nodes above them."""
        revised = list(texts)
        lower = [(slot, self.slots[slot]) for slot in graph.ranks[1:]]
        for batch in waves(lower):
            moves = yield [
                self.revision("forward", graph, slot, graph.above(slot), texts[slot], texts) for slot in batch
            ]
            for slot, move in zip(batch, moves, strict=True):
                revised[slot] = self.read(move)
        self.history.append(revised)
        return revised

    def backward(self, graph: Graph, texts: Sequence[Opinion], revised: Sequence[Opinion]) -> Step[list[Opinion]]:
        """Nodes rewrite their answers from before `forward`, and see the revised answers of the nodes below them.

        Clean: all nodes but the lowest (for "mean") or the best alone (for "max"), at the same time. Official: one
        after another by number, so later nodes see what earlier ones have just written. And where the best node is
        number 0, official "max" takes it for missing: all nodes act, without a reminder of the answer's form.
        """
        official, best_only = self.rules.conformance == "official", self.rules.pooling == "max"
        overlooked = official and best_only and graph.top == 0
        upper = graph.ranks[:1] if best_only and not overlooked else graph.ranks[:-1]
        final = list(revised)
        batches = [[slot] for slot in sorted(upper)] if official else waves([(i, self.slots[i]) for i in upper])
        for batch in batches:
            sources = list(final) if official else revised
            moves = yield [
                self.revision("backward", graph, slot, graph.below(slot), texts[slot], sources, not overlooked)
                for slot in batch
            ]
            for slot, move in zip(batch, moves, strict=True):
                final[slot] = self.read(move)
        self.history.append(final)
        return final

    def revision(
        self,
        name: str,
        graph: Graph,
        slot: int,
        neighbors: Sequence[int],
        own: Opinion,
        sources: Sequence[Opinion],
        reminded: bool = True,
    ) -> Turn:
        """The turn in which a node answers again, from its own answer and its neighbors', each with its relevance."""
        labels = graph.relevance(neighbors)
        observation = self.observation(sources, neighbors, labels) | {"own": own.peer_text}
        observation["leading"] = leading([own, *(sources[i] for i in neighbors)])
        if name == "backward":
            observation["reminded"] = reminded
        edges = self.facts.setdefault("edges", [])
        for other in neighbors:
            edge = {"pass": name, "from": other, "to": slot, "relevance": labels[other]}
            if edge not in edges:
                edges.append(edge)
        return self.turn(self.slots[slot], name, observation, [own, *(sources[i] for i in neighbors)])

    def pool(self, texts: Sequence[Opinion], graph: Graph) -> Step[Opinion]:
        """The meta agent combines the answers of the remaining nodes, or of all if none remains."""
        slots = sorted(graph.ranks) or [*range(len(texts))]
        labels = graph.relevance(graph.ranks)
        [move] = yield [
            self.turn(self.rules.meta, "pool", self.observation(texts, slots, labels), [texts[slot] for slot in slots])
        ]
        return self.read(move)

    # ------------------------------------------------------------------------------------------- helpers

    def observation(self, texts: Sequence[Opinion], slots: Sequence[int], labels: Any = None) -> dict[str, Any]:
        """The observation with others' replies, by number; `relevance` is None if there is none."""
        others = [
            {"number": slot + 1, "relevance": (labels or {}).get(slot), "text": texts[slot].peer_text} for slot in slots
        ]
        return {"others": others, "leading": leading([texts[slot] for slot in slots])}

    def turn(
        self,
        agent: str,
        name: str,
        observation: dict[str, Any],
        sources: Sequence[Opinion] = (),
        form: Reply | None = None,
        tries: int = 1,
    ) -> Turn:
        """A turn in a new conversation. With a `form` it does not answer the question, so a retry does not remind the
        agent of the answer's form."""
        new_texts = []
        for opinion in sources:
            key = (agent, id(opinion))  # the history keeps all opinions, so ids are unique
            if opinion.agent != agent and opinion.text and key not in self.seen:
                self.seen.add(key)
                new_texts.append(opinion.text)
                self.traffic.note(opinion.agent, [agent], opinion.text)
        if form is not None:
            observation = {**observation, "reminded": False}
        turn = self.rules.ask(self.task, self.case, agent, name, observation, peer_texts=new_texts, fresh=True)
        return turn if form is None else replace(turn, reply=form, parse_retries=tries - 1)

    def read(self, move: Move) -> Opinion:
        """Read the answer in a move."""
        return self.rules.read(self.task, self.case, move)

    def end(self, final: Opinion | None, exit: str, proposal: Action = None) -> Outcome:
        """The outcome; facts of steps that did not happen are empty."""
        empty: dict[str, Any] = {"scores": [], "dropped": [], "shares": [], "ranks": [], "edges": [], "top": None}
        unreadable = final is not None and final.answer is None
        return self.rules.outcome(
            self.history,
            final.answer if final else None,
            exit=f"{exit}, unreadable" if unreadable else exit,
            peer_characters=self.traffic.characters,
            sent=self.traffic.sent,
            proposal=proposal,
            **{**empty, **self.facts},
        )


def _retries(move: Move) -> int:
    """Return the number of parse retries."""
    return max(0, len(move.calls) - 1)
