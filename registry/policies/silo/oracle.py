"""Perfect teams for SILO-Bench, with known numbers of messages and rounds."""

from __future__ import annotations

import json
from typing import Any, Literal

from harness.api import Action, PluginError, Turn, plugin
from harness.extensions.networks.answers import AnswerForm

from . import _plans
from ._agent import Agent, Call, submit
from ._plans import PLANS


@plugin
class Oracle(Agent):
    """Any sharded task: follows a plan by which every agent submits the right answer, or makes a known mistake.

    Attributes:
        plan: for mailbox: star (agent 0 gathers shards and sends answers), tree (a binary heap), dissemination
            (i → i + 2^t), all (each to every other), chain (i → i + 1; prefix_sum and pipeline_hash), halo (neighbors;
            life_game_1d), flag (an agent with a match informs all; any_match with a match). For broadcast: all, star.
            For store: all (each writes a file and reads all), star (agent 0 reads all and writes the answers). "star"
            works on all three. In networks: flood (each passes on what is new to it, once, and ends with what it knows)
            and gossip (each repeats all that it knows until its neighbors know all); these work everywhere, also in
            rounds of messages between neighbors.
        mistake: "early": all submit in round 1 the answer for their own shard (premature, and consensus failures).
            "one": the last agent submits a wrong answer although it knows all (a computation error, and no consensus).
            "all": all submit the same wrong answer (a computation error alone); for star and all. "lie": sends others a
            forged shard, in which every number under a key or in a list is another one; all liars agree about it.
        keep: in a second run (`phases: two`) an agent that lacks data in the last round submits its first answer.
    """

    plan: Literal["star", "tree", "dissemination", "all", "chain", "halo", "flag", "flood", "gossip"] = "star"
    mistake: Literal["early", "one", "all", "lie"] | None = None
    keep: bool = False

    def start(self) -> None:
        """Choose a plan that the channel allows.

        Raises:
            PluginError: if there is no such plan for the channel.
        """
        channel = self.context.get("channel", {"kind": "neighbors"})
        kind = "alone" if self.n == 1 else channel["kind"]
        plans = PLANS.get(kind, {})
        plan = plans.get(self.plan)
        if kind == "alone" or kind == "silence":
            plan = _plans.Alone
        if plan is None:
            listed = ", ".join(plans)
            hint = f"The plans are: {listed}." if plans else f"There are plans for: {', '.join(PLANS)}."
            raise PluginError(f"there is no plan {self.plan} for {kind}", hint=hint)
        if channel.get("reach") == "neighbors" and self.plan not in ("flood", "gossip", "chain", "halo"):
            hint = "flood and gossip do, in any network."
            raise PluginError(f"the plan {self.plan} does not keep to the links of a network", hint=hint)
        if self.mistake == "lie":
            self.shards[self.id] = json.dumps(forged(json.loads(self.shards[self.id])))
        self._steps = plan(self)
        self.pull = channel.get("inbox") == "pull"

    def act(self, turn: Turn) -> list[Call]:
        """Return the plan's calls for this round; in pull mode also fetch messages."""
        if self.mistake == "early":
            return [submit(self.local())]
        calls = list(self._steps.step(turn.observation["round"]))
        if not calls and self.keep and self.last_round and self.context.get("previous") is not None:
            calls = [submit(self.task.answer_text(self.context["previous"]))]
        done = bool(calls) and calls[-1]["call"] == "submit_result"
        if done and (self.mistake == "all" or (self.mistake == "one" and self.id == self.n - 1)):
            calls[-1] = submit(wrong(calls[-1]["answer"], self.task.answer_form(self.id)))
        if self.pull and not done:
            calls.append({"call": "receive_messages"})
        return calls

    def write(self, turn: Turn) -> Action:
        """Return a message with shards for every neighbor."""
        steps = self._steps
        text = steps.news() if isinstance(steps, _plans.Flood) and self.mistake != "early" else None
        return turn.reply.noop if text is None else dict.fromkeys(turn.observation["neighbors"], text)

    def conclude(self) -> str:
        """Return the answer for all known shards."""
        if self.mistake == "early":
            return self.local()
        answer = self.from_known()
        mistaken = self.mistake == "all" or (self.mistake == "one" and self.id == self.n - 1)
        return wrong(answer, self.task.answer_form(self.id)) if mistaken else answer


def forged(value: Any) -> Any:
    """Return the value with another number in place of every one."""
    if isinstance(value, dict):
        return {key: forged(one) for key, one in value.items()}
    if isinstance(value, list):
        return [forged(one) for one in value]
    return value + 1 + abs(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value


def wrong(answer: str, form: AnswerForm) -> str:
    """Return another answer of the same form."""
    names = form.schema.get("enum", ())
    if names:
        return str(next(name for name in names if name != answer))
    try:
        value: Any = json.loads(answer)
    except ValueError:
        return f"{answer}x"
    if isinstance(value, bool):
        return json.dumps(not value)
    if isinstance(value, (int, float)):
        return json.dumps(value + 1 + abs(value))
    if isinstance(value, dict):
        return json.dumps({**value, "wrong": -1})
    return json.dumps([*value, [-1] if value and isinstance(value[0], list) else -1])
