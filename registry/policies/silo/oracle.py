"""The perfect teams of SILO-Bench: known numbers of messages and rounds, the right answer everywhere."""

from __future__ import annotations

import json
from typing import Any, Literal

from harness.api import Turn, plugin
from harness.errors import PluginError
from harness.replies import AnswerForm

from . import _plans
from ._agent import Agent, Call, problem, submit
from ._plans import PLANS


@plugin
class Oracle(Agent):
    """Any sharded task: follows a plan that brings every agent the right answer, or one with a mistake in it.

    Attributes:
        plan: for mailbox: star (agent 0 gathers and tells), tree (a binary heap), dissemination (i → i + 2^t), all
            (each to each other), chain (i → i + 1; prefix_sum and pipeline_hash), halo (neighbors; life_game_1d),
            flag (who has a match tells all; any_match if there is one). For broadcast: all, star. For store: all (a
            file each, all read all), star (agent 0 reads all and writes the answers). "star" fits all three.
        mistake: "early": all submit in round 1 what it can know alone (premature, and consensus failures).
            "one": the last agent submits a wrong answer after hearing everything (a computation error, and no
            consensus). "all": all submit the same wrong answer (a computation error alone); for star and all.
    """

    plan: Literal["star", "tree", "dissemination", "all", "chain", "halo", "flag"] = "star"
    mistake: Literal["early", "one", "all"] | None = None

    def start(self) -> None:
        """Choose what the channel allows.

        Raises:
            PluginError: if there is no such plan for the channel.
        """
        kind = self.context["channel"]["kind"]
        if self.n == 1:
            kind = "alone"
        known = PLANS.get(kind, {})
        made = known.get(self.plan)
        if kind == "alone" or kind == "silence":
            made = _plans.Alone
        if made is None:
            raise PluginError(f"there is no plan {self.plan} for {kind}", hint=f"There are: {', '.join(known)}.")
        self._steps = made(self)
        self.pull = self.context["channel"].get("inbox") == "pull"

    def act(self, turn: Turn) -> list[Call]:
        """What the plan says for this round; in pull mode also fetch what has come."""
        if self.mistake == "early":
            return [submit(self.local())]
        calls = list(self._steps.step(turn.observation["round"]))
        done = bool(calls) and calls[-1]["call"] == "submit_result"
        if done and (self.mistake == "all" or (self.mistake == "one" and self.id == self.n - 1)):
            calls[-1] = submit(wrong(calls[-1]["answer"], problem(self.context["module"]).form))
        if self.pull and not done:
            calls.append({"call": "receive_messages"})
        return calls


def wrong(answer: str, form: AnswerForm) -> str:
    """Another answer of the same form."""
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
