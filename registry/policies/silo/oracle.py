"""Perfect teams for SILO-Bench, with known numbers of messages and rounds."""

from __future__ import annotations

import json
from typing import Any, Literal

from harness.api import Turn, plugin
from harness.errors import PluginError
from harness.replies import AnswerForm

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
            works on all three.
        mistake: "early": all submit in round 1 the answer for their own shard (premature, and consensus failures).
            "one": the last agent submits a wrong answer although it knows all (a computation error, and no consensus).
            "all": all submit the same wrong answer (a computation error alone); for star and all.
    """

    plan: Literal["star", "tree", "dissemination", "all", "chain", "halo", "flag"] = "star"
    mistake: Literal["early", "one", "all"] | None = None

    def start(self) -> None:
        """Choose a plan that the channel allows.

        Raises:
            PluginError: if there is no such plan for the channel.
        """
        kind = self.context["channel"]["kind"]
        if self.n == 1:
            kind = "alone"
        plans = PLANS.get(kind, {})
        plan = plans.get(self.plan)
        if kind == "alone" or kind == "silence":
            plan = _plans.Alone
        if plan is None:
            raise PluginError(f"there is no plan {self.plan} for {kind}", hint=f"The plans are: {', '.join(plans)}.")
        self._steps = plan(self)
        self.pull = self.context["channel"].get("inbox") == "pull"

    def act(self, turn: Turn) -> list[Call]:
        """Return the plan's calls for this round; in pull mode also fetch messages."""
        if self.mistake == "early":
            return [submit(self.local())]
        calls = list(self._steps.step(turn.observation["round"]))
        done = bool(calls) and calls[-1]["call"] == "submit_result"
        if done and (self.mistake == "all" or (self.mistake == "one" and self.id == self.n - 1)):
            calls[-1] = submit(wrong(calls[-1]["answer"], self.task.answer_form(self.id)))
        if self.pull and not done:
            calls.append({"call": "receive_messages"})
        return calls


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
