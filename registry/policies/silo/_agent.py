"""What SILO-Bench's scripted agents share: what they know of others, how they write it, and how they answer."""

from __future__ import annotations

import importlib
import json
import random
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from harness.api import Action, Facts, Policy, Turn
from harness.authoring.sharded import ShardedTask
from harness.errors import PluginError
from harness.replies import normalise

Call = dict[str, str]


@lru_cache(maxsize=64)
def problem(module: str) -> ShardedTask:
    """The sharded task of a plugin file, with its defaults: it solves what it is given."""
    tagged = (value for value in vars(importlib.import_module(module)).values() if isinstance(value, type))
    made: ShardedTask = next(
        value() for value in tagged if issubclass(value, ShardedTask) and value.__module__ == module
    )
    return made


@lru_cache(maxsize=4)
def _solved(module: str, shards: tuple[str, ...], known: str) -> Sequence[str]:
    """All agents' answers as they write them. All agents of an episode ask for the same, so it is cached."""
    task = problem(module)
    answers = task.answers([_value(shard) for shard in shards], json.loads(known))
    if task.segmented(json.loads(known)):
        return [task.written(answer) for answer in answers]
    return [task.written(answers[0])] * len(shards)


@lru_cache(maxsize=4096)
def _value(text: str) -> Any:
    return json.loads(text)


@lru_cache(maxsize=4096)
def _letter(text: str) -> Mapping[str, Any]:
    """A message of another scripted agent; nothing if it is none (it may play among models)."""
    try:
        read = json.loads(text)
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}


class Agent(Policy):
    """Knows shards and answers by agent number; decides in each round what to do.

    Attributes:
        id, n: the own number, and how many agents there are.
        shards: number → shard as text, of those that are known.
        answer: what to submit, once it is known.
    """

    id: int
    n: int

    def choose(self, turn: Turn, rng: random.Random) -> Action:
        """The calls of this round; or the answer itself, where who holds the whole input is asked for nothing else."""
        asked_alone = "results" not in turn.observation
        if "shard" not in turn.context or (asked_alone and turn.context["n"] > 1):
            raise PluginError(
                f"{type(self).__name__} plays sharded tasks in rounds of calls, and this turn is of something else",
                hint="Use it with a task such as silo/* and the protocol action_rounds.",
            )
        if not hasattr(self, "id"):
            self.id, self.n = turn.context["id"], turn.context["n"]
            self.shards = {self.id: turn.context["shard"]}
            self.answers: dict[int, str] = {}
            self.context = turn.context
            if not asked_alone:
                self.start()
        if asked_alone:
            answer = normalise(self.local())
            return answer if turn.reply.allows(answer) else turn.reply.noop
        for text in self._texts(turn.observation):
            self.learn(_letter(text))
        if turn.name == "plan":
            return [{"call": "wait"}]
        calls = self.act(turn)
        return calls or [{"call": "wait"}]

    def start(self) -> None:
        """Called once, before the first decision."""

    def learn(self, letter: Mapping[str, Any]) -> None:
        """Take in what another agent has written."""
        self.shards.update({int(i): shard for i, shard in letter.get("shards", {}).items()})
        self.answers.update({int(i): answer for i, answer in letter.get("answers", {}).items()})
        if "answer" in letter:
            self.answers[self.id] = letter["answer"]

    @abstractmethod
    def act(self, turn: Turn) -> list[Call]:
        """The calls of this round; none to wait."""

    def solve(self, shards: Mapping[int, str] | None = None) -> Sequence[str]:
        """Every agent's answer, from all shards (or from those given, the agents being fewer)."""
        given = self.shards if shards is None else shards
        known = json.dumps(self.context["known"])
        return _solved(self.context["module"], tuple(given[i] for i in sorted(given)), known)

    def local(self) -> str:
        """What the agent comes to from its own shard, as if that were all there is."""
        try:
            return self.solve({0: self.shards[self.id]})[0]
        except (LookupError, ValueError, ArithmeticError):  # some problems make no sense of a single part
            form = problem(self.context["module"]).form
            texts = ("0", "[]", "{}", "false", *form.schema.get("enum", ()))
            return str(next(text for text in texts if form.fits(normalise(text))))

    @property
    def segmented(self) -> bool:
        """Whether every agent has an answer of its own."""
        return problem(self.context["module"]).segmented(self.context["known"])

    def _texts(self, observation: Facts) -> list[str]:
        """What others have written and this agent has just been shown, in any of the channels."""
        texts = [letter["text"] for letter in observation["inbox"]]
        for result in observation["results"]:
            if result["ok"] and result["call"] == "receive_messages":
                texts += [line.partition(": ")[2] for line in result["text"].splitlines() if line.startswith("[round ")]
            elif result["ok"] and result["call"] == "read_file":
                texts.append(result["text"])
        return texts


def written(**letter: Any) -> str:
    """A message: JSON on one line."""
    return json.dumps(letter)


def submit(answer: str) -> Call:
    return {"call": "submit_result", "answer": answer}
