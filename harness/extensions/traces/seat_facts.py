"""Who plays the agents of an episode, as spans say it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.config.plan import Plan
from harness.runtime.seats import Seat
from harness.transcripts.view_api import Transcript


@dataclass(frozen=True, slots=True)
class SeatFacts:
    """Who plays an agent.

    Attributes:
        model: the model's name; None where a policy plays.
        provider: the engine behind it.
        policy: the policy's name.
        sampling: `generation_kwargs` of its calls.
        seed: from which those of its calls derive; None: unknown.
        chat: whether its calls are chats, or continue texts.
    """

    model: str | None = None
    provider: str = "unknown"
    policy: str | None = None
    sampling: Mapping[str, Any] = field(default_factory=dict)
    seed: int | None = None
    chat: bool = True


class Players:
    """Knows the engines of a run.

    Args:
        meta: run.json.
        plan: of the run, or one like it whose `model` stands in; None: it cannot be made any more.
    """

    def __init__(self, meta: Mapping[str, Any], plan: Plan | None) -> None:
        self.meta, self.plan = meta, plan
        first = (meta.get("identity") or {}).get("engine") or {}  # all that older runs say
        self._types = {"model": first.get("engine", "unknown"), **meta.get("engine_types", {})}
        self._described: Mapping[str, Mapping[str, Any]] = meta.get("engine_args", {})

    def engine(self, name: str) -> tuple[str, str]:
        """(model, provider) of an engine by its name in the run."""
        provider = str(self._types.get(name, "unknown")).lower()
        if name == "model":
            return str(self.meta["model"]), provider
        if self.plan is not None and name in self.plan.engines:
            return self.plan.engines[name].model, provider
        known = self._described.get(name) or {}
        return str(known.get("model") or known.get("pretrained") or name), provider

    def seat(self, seat: Seat) -> SeatFacts:
        """Who plays a seat."""
        group = seat.group
        if group.policy is not None:
            default = self.meta.get("policies_only") and group.name == "default"
            return SeatFacts(policy=str(self.meta["model"]) if default else type(group.policy()).__name__)
        model, provider = self.engine(seat.model)
        return SeatFacts(model, provider, None, seat.sampling, seat.seed, group.prompts.chat)

    def seats(self, seated: Mapping[str, Seat]) -> dict[str, SeatFacts]:
        """Agent → who plays it."""
        return {agent: self.seat(seat) for agent, seat in seated.items()}

    def seats_of(self, transcript: Transcript) -> dict[str, SeatFacts]:
        """The same for an episode that is read back; without sampling and seeds where the plan cannot be made."""
        conditions = {one.id: one for one in self.plan.conditions} if self.plan is not None else {}
        condition, case = conditions.get(transcript.condition), transcript.case
        if self.plan is not None and condition is not None and case is not None:
            from harness.runtime.seats import seats

            return self.seats(seats(self.plan, condition, case, transcript.repeat))
        found: dict[str, SeatFacts] = {}
        for agent in transcript.agents:
            if (model := transcript.models.get(agent)) is not None:
                found[agent] = SeatFacts(model, self.engine("model")[1] if model == self.meta["model"] else "unknown")
            else:
                found[agent] = SeatFacts(policy=transcript.policies.get(agent))
        return found
