"""Graph-of-Agents: agents are picked, score one another, and hand answers down and up a graph of who is better."""

from __future__ import annotations

import random
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, TypeVar

from harness.api import Action, Case, Move, Outcome, Play, Range, Reply, Task, Turn, plugin
from harness.authoring.panels import Opinion, Panel, leading
from harness.authoring.traffic import Traffic
from harness.errors import PluginError, near
from harness.replies.with_confidence import Style

from ._graph import Graph, graph_of, means, waves
from ._graph_replies import Indices, Level, Scores

T = TypeVar("T")
Step = Generator[list[Turn], list[Move], T]
DEFAULT_K = 3
"""How many nodes there are if the difficulty that was asked for cannot be read."""


@plugin
class GraphOfAgents(Panel):
    """Agents are picked for a question, score one another's answers, and revise along the edges of that ranking.

    Yun et al., arXiv:2604.17148. A node is one of the picked agents; the same agent can be picked twice. Everybody is
    asked in new conversations. Turns: `difficulty`, `pick`, `answer`, `judge`, `forward`, `backward`, `pool`.

    Attributes:
        pooling: "mean": the meta agent writes the answer out of all nodes' texts. "max": that of the best node, as it
            stands, counts.
        conformance: "official" does what the published code does where it strays from the method; see
            docs/methods/graph_of_agents.md.
        top_k: how many nodes; -1: as many as the meta agent rates the question difficult, from 1 to 6.
        rounds: how often answers go down and up the graph.
        threshold: nodes whose share of the scores is not above this take no further part.
        floor: a node's first answer is given again by the general agent where the confidence it states is below this,
            or missing. Not where no confidence is asked for.
        cards: agent → what it is good at, in a line: what the meta agent picks by.
        domains: agent → its field; decides between nodes with equal scores.
        order: fields in the order in which they win; any other comes after them, then the earlier node.
        meta: the agent that picks and pools.
        general: the agent that answers for others; None: the panel's first.
        pick_tries: how often picks (and difficulty) are asked for before the first agents are taken (and 3 of them).
        judge_tries: how often scores are asked for before the judge is ignored.
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
            raise PluginError("top_k is 0: nobody would answer", hint=hint, at=("top_k",))

    def others(self) -> tuple[str, ...]:
        """The meta agent, and the general one if it has a name."""
        return (self.meta, self.general) if self.general else (self.meta,)

    def play(self, task: Task, case: Case, agents: Sequence[str], rng: random.Random) -> Play:
        """Yields a batch for everything that can be asked at the same time; see `_Episode`."""
        members = self.members(case)
        for name, given in (("cards", self.cards or {}), ("domains", self.domains or {})):
            for agent in sorted(given.keys() - {*members}):
                hint = near(agent, members)
                raise PluginError(f"{name} names {agent!r}, who is not on the panel", hint=hint, at=(name, agent))
        return _Episode(self, task, case, members).play()


@dataclass
class _Episode:
    """One question: the nodes, what was shown to whom, what is told in the end."""

    rules: GraphOfAgents
    task: Task
    case: Case
    members: Sequence[str]
    slots: list[str] = field(default_factory=list)
    history: list[list[Opinion]] = field(default_factory=list)
    seen: set[tuple[str, int]] = field(default_factory=set)
    traffic: Traffic = field(init=False)
    told: dict[str, Any] = field(default_factory=dict)

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

    # ------------------------------------------------------------------------------------ who takes part

    def pick(self) -> Step[None]:
        """The meta agent reads the question and the cards, and names as many agents as are wanted."""
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
        self.told |= {"cards": cards, "difficulty": level, "slots": self.slots, "retries": retries}
        self.told["picks"] = move.action  # None: the first agents were taken

    def propose(self) -> Step[list[Opinion]]:
        """Every node answers alone; where several do, the general agent answers again for those not sure enough."""
        answers: dict[int, Opinion] = {}
        for batch in waves([*enumerate(self.slots)]):
            moves = yield [self.turn(self.slots[slot], "answer", {}) for slot in batch]
            answers |= {slot: self.read(move) for slot, move in zip(batch, moves, strict=True)}
        first = [answers[slot] for slot in range(len(self.slots))]
        self.history.append(first)
        general = self.rules.general or self.members[0]
        replaced = [slot for slot, one in enumerate(first) if one.agent != general and self.unsure(one)]
        self.told["replaced"] = replaced if len(first) > 1 else []
        for slot in self.told["replaced"]:
            [move] = yield [self.turn(general, "answer", {})]
            answers[slot] = self.read(move)
        if self.told["replaced"]:
            self.history.append([answers[slot] for slot in range(len(first))])
        return self.history[-1]

    def unsure(self, opinion: Opinion) -> bool:
        """Whether a confidence was asked for, and is missing or below the floor."""
        stated = opinion.confidence
        return self.rules.confidence != "none" and (stated is None or stated < self.rules.floor)

    # ------------------------------------------------------------------------------------------ the graph

    def judge(self, first: Sequence[Opinion]) -> Step[Graph | None]:
        """Every node scores the others' answers. None: by the official conformance, with a node nobody has judged."""
        rows: list[dict[int, float] | None] = [None] * len(first)
        retries = [0] * len(first)
        for batch in waves([*enumerate(self.slots)]):
            moves = yield [self.judgement(slot, first) for slot in batch]
            for slot, move in zip(batch, moves, strict=True):
                retries[slot] = _retries(move)
                if move.action is not None:
                    rows[slot] = {int(name) - 1: float(score) for name, score in move.action.items()}
        found = means(rows)
        graph = graph_of(found, self.rules.threshold, [self.standing(agent) for agent in self.slots])
        self.told["retries"]["judge"] = retries
        self.told |= {"scores": [[None if row is None else row.get(slot) for slot in range(len(rows))] for row in rows]}
        self.told |= {"dropped": [judge for judge, row in enumerate(rows) if row is None]}
        self.told |= {"shares": list(graph.shares), "ranks": list(graph.ranks), "top": graph.top}
        if self.rules.conformance == "official" and None in found:
            return None
        return graph

    def judgement(self, slot: int, first: Sequence[Opinion]) -> Turn:
        """A node is asked to score the answers of all others, by number, not its own."""
        others = [other for other in range(len(first)) if other != slot]
        observation = self.observation(first, others)
        form = Scores(tuple(str(other + 1) for other in others))
        return self.turn(
            self.slots[slot], "judge", observation, [first[i] for i in others], form, self.rules.judge_tries
        )

    def standing(self, agent: str) -> int:
        """Where an agent's field comes in the order that decides between equal scores."""
        own = (self.rules.domains or {}).get(agent)
        return self.rules.order.index(own) if own in self.rules.order else len(self.rules.order)

    # ------------------------------------------------------------------------------------ down and up

    def forward(self, graph: Graph, texts: Sequence[Opinion]) -> Step[list[Opinion]]:
        """All nodes but the best revise, at the same time, seeing the answers of those above them."""
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
        """Nodes write anew from what they had before `forward`, seeing the revised answers of those below them.

        Clean: all but the lowest for the mean, the best alone for the max; all at the same time. Official: one after
        another by number, so that who comes later sees what earlier ones have just written; and where the best node
        is number 0, max takes it for none: all are asked, without a word on the form of the answer.
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
        """A node answers again, from its own answer and its neighbors', each with its relevance."""
        labels = graph.relevance(neighbors)
        observation = self.observation(sources, neighbors, labels) | {"own": own.text}
        observation["leading"] = leading([own, *(sources[i] for i in neighbors)])
        if name == "backward":
            observation["reminded"] = reminded
        edges = self.told.setdefault("edges", [])
        for other in neighbors:
            edge = {"pass": name, "from": other, "to": slot, "relevance": labels[other]}
            if edge not in edges:
                edges.append(edge)
        return self.turn(self.slots[slot], name, observation, [own, *(sources[i] for i in neighbors)])

    def pool(self, texts: Sequence[Opinion], graph: Graph) -> Step[Opinion]:
        """The meta agent writes one answer out of those of the nodes that are left, of all if none is."""
        slots = sorted(graph.ranks) or [*range(len(texts))]
        labels = graph.relevance(graph.ranks)
        [move] = yield [
            self.turn(self.rules.meta, "pool", self.observation(texts, slots, labels), [texts[slot] for slot in slots])
        ]
        return self.read(move)

    # ------------------------------------------------------------------------------------------- helpers

    def observation(self, texts: Sequence[Opinion], slots: Sequence[int], labels: Any = None) -> dict[str, Any]:
        """Others' replies as written, by number; `relevance` is None where there is none."""
        others = [
            {"number": slot + 1, "relevance": (labels or {}).get(slot), "text": texts[slot].peer_text} for slot in slots
        ]
        return {"others": others, "leading": leading([texts[slot] for slot in slots])}

    def turn(
        self,
        agent: str,
        name: str,
        observation: dict[str, Any],
        shown: Sequence[Opinion] = (),
        form: Reply | None = None,
        tries: int = 1,
    ) -> Turn:
        """A turn in a new conversation. With a `form` of its own it is not the question that is answered, and a retry
        says nothing of how answers are written."""
        new = []
        for opinion in shown:
            key = (agent, id(opinion))  # kept in the history, so no two ever have one id
            if opinion.agent != agent and opinion.text and key not in self.seen:
                self.seen.add(key)
                new.append(opinion.text)
                self.traffic.note(opinion.agent, [agent], opinion.text)
        if form is not None:
            observation = {**observation, "reminded": False}
        turn = self.rules.ask(self.task, self.case, agent, name, observation, peer_texts=new, fresh=True)
        return turn if form is None else replace(turn, reply=form, parse_retries=tries - 1)

    def read(self, move: Move) -> Opinion:
        """What a move that answers the question says."""
        return self.rules.read(self.task, self.case, move)

    def end(self, final: Opinion | None, exit: str, proposal: Action = None) -> Outcome:
        """The outcome; what was not come to is told as empty."""
        empty: dict[str, Any] = {"scores": [], "dropped": [], "shares": [], "ranks": [], "edges": [], "top": None}
        unread = final is not None and final.answer is None
        return self.rules.outcome(
            self.history,
            final.answer if final else None,
            exit=f"{exit}, unreadable" if unread else exit,
            peer_characters=self.traffic.characters,
            sent=self.traffic.sent,
            proposal=proposal,
            **{**empty, **self.told},
        )


def _retries(move: Move) -> int:
    """How often it was asked again."""
    return max(0, len(move.calls) - 1)
