"""The base of SILO-Bench's scripted agents: what they know, their messages, and their answers."""

from __future__ import annotations

import importlib
import json
import random
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from harness.api import Action, Facts, PluginError, Policy, Turn
from harness.extensions.networks.answers import normalize
from harness.extensions.networks.sharded import ShardedTask

Call = dict[str, str]


@lru_cache(maxsize=64)
def problem(module: str, declared: str) -> ShardedTask:
    """Return the sharded task of a plugin file: as declared in YAML (JSON), or with default parameters."""
    classes = (value for value in vars(importlib.import_module(module)).values() if isinstance(value, type))
    task: ShardedTask = next(
        value(**json.loads(declared))
        for value in classes
        if issubclass(value, ShardedTask) and value.__module__ == module
    )
    return task


@lru_cache(maxsize=4)
def _solutions(module: str, declared: str, shards: tuple[str, ...], public: str) -> Sequence[str]:
    """Return all agents' answers as text. Cached, because all agents of an episode ask for the same."""
    task = problem(module, declared)
    answers = task.right_answers([_value(shard) for shard in shards], json.loads(public))
    if task.segmented(json.loads(public)):
        return [task.answer_text(answer) for answer in answers]
    return [task.answer_text(answers[0])] * len(shards)


@lru_cache(maxsize=4096)
def _value(text: str) -> Any:
    return json.loads(text)


@lru_cache(maxsize=4096)
def _letter(text: str) -> Mapping[str, Any]:
    """Return the content of another scripted agent's message; {} for any other message, such as a model's."""
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


class Agent(Policy):
    """Knows shards and answers by agent number, and chooses the calls of each round.

    Attributes:
        id, n: the agent's number, and the number of agents.
        task: the task that the agent solves; its size is not that of the case.
        shards: number → shard as text, as far as known.
        answers: number → answer to submit, as far as known.
        neighbors: the numbers of the agents to which this one can send messages.
        informed: the numbers of agents that are known to know all shards.
        last_round: whether there is no round after this one.
    """

    id: int
    n: int
    task: ShardedTask

    def choose(self, turn: Turn, rng: random.Random) -> Action:
        """Return the calls of this round; in rounds without calls the messages to neighbors, and at the end the answer.

        An agent with the whole input returns its answer.
        """
        calling = "results" in turn.observation
        alone = "inbox" not in turn.observation
        if "shard" not in turn.context or (alone and turn.context["n"] > 1):
            raise PluginError(
                f"{type(self).__name__} plays sharded tasks in rounds of calls or messages, and this turn is of "
                "something else",
                hint="Use it with a task such as silo/* and the protocol action_rounds or local_rounds.",
            )
        if not hasattr(self, "id"):
            self.id, self.n = turn.context["id"], turn.context["n"]
            self.shards = {self.id: turn.context["shard"]}
            self.answers: dict[int, str] = {}
            names = turn.context.get("neighbors")
            others = range(self.n) if names is None else [int(name.rpartition("-")[2]) for name in names]
            self.neighbors = [i for i in others if i != self.id]
            self.informed: set[int] = set()
            self.context = turn.context
            self._declared = json.dumps(turn.context.get("declared", {}))
            self.task = problem(self.context["module"], self._declared)
            if not alone:
                self.start()
        if alone:
            return self._answer(turn, self.local())
        self.last_round = turn.observation["rounds_left"] == 1
        for text in self._texts(turn.observation):
            self.learn(_letter(text))
        if not calling:
            return self._answer(turn, self.conclude()) if turn.name == "answer" else self.write(turn)
        if turn.name == "plan":
            return [{"call": "wait"}]
        calls = self.act(turn)
        return calls or [{"call": "wait"}]

    def start(self) -> None:
        """Prepare for the episode. Called once, before the first decision."""

    def learn(self, letter: Mapping[str, Any]) -> None:
        """Store the content of another agent's message."""
        shards = {int(i): shard for i, shard in letter.get("shards", {}).items()}
        self.shards.update(shards)
        if len(shards) == self.n and "by" in letter:
            self.informed.add(letter["by"])
        self.answers.update({int(i): answer for i, answer in letter.get("answers", {}).items()})
        if "answer" in letter:
            self.answers[self.id] = letter["answer"]

    @abstractmethod
    def act(self, turn: Turn) -> list[Call]:
        """Return the calls of this round; none to wait."""

    def write(self, turn: Turn) -> Action:
        """Return neighbor → message, in rounds without calls. By default the agent is silent."""
        return turn.reply.noop

    def conclude(self) -> str:
        """Return the answer after rounds without calls. By default that for the own shard."""
        return self.local()

    def from_known(self) -> str:
        """Return the answer for the known shards, as if there were no others."""
        try:
            return self.solve()[sorted(self.shards).index(self.id)]
        except (LookupError, ValueError, ArithmeticError, PluginError):
            return self.local()

    def solve(self, shards: Mapping[int, str] | None = None) -> Sequence[str]:
        """Return every agent's answer, from all shards (or from `shards`, as if there were only these agents)."""
        inputs = self.shards if shards is None else shards
        public = json.dumps(self.context["known"])
        texts = tuple(inputs[i] for i in sorted(inputs))
        return _solutions(self.context["module"], self._declared, texts, public)

    def local(self) -> str:
        """Return the answer for the agent's own shard, as if that were the whole input."""
        try:
            return self.solve({0: self.shards[self.id]})[0]
        except (LookupError, ValueError, ArithmeticError, PluginError):  # not every problem has one for a single shard
            form = self.task.answer_form(self.id)
            texts = ("0", "[]", "{}", "false", "none", *form.schema.get("enum", ()))
            return str(next(text for text in texts if form.fits(normalize(text))))

    def _answer(self, turn: Turn, text: str) -> Action:
        answer = normalize(text)
        return answer if turn.reply.allows(answer) else turn.reply.noop

    @property
    def segmented(self) -> bool:
        """Whether every agent has an answer of its own."""
        return self.task.segmented(self.context["known"])

    def _texts(self, observation: Facts) -> list[str]:
        """Return the texts of others that the agent has just received, through any channel."""
        inbox = observation["inbox"]
        if "results" not in observation:
            return [*inbox.values()]
        texts = [letter["text"] for letter in inbox]
        for result in observation["results"]:
            if result["ok"] and result["call"] == "receive_messages":
                texts += [line.partition(": ")[2] for line in result["text"].splitlines() if line.startswith("[round ")]
            elif result["ok"] and result["call"] == "read_file":
                texts.append(result["text"])
        return texts


def message(**letter: Any) -> str:
    """Return a message: JSON on one line."""
    return json.dumps(letter)


def submit(answer: str) -> Call:
    return {"call": "submit_result", "answer": answer}
