"""What an agent was asked before: for engines whose programs play their turns again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .reply import Facts, Reply


@dataclass(frozen=True, slots=True)
class AskedTurn:
    """What an agent was asked in a turn: kept for engines that `keeps_questions`.

    Attributes:
        messages: the conversation, as it grows.
        end: how many messages there were when it was asked; what follows up to the next such turn are the answers.
        index: which of the agent's turns it is.
        seed: of its first answer.
        reply: the form of the answers.
        tools: as `Request.tools`.
    """

    messages: Sequence[Mapping[str, Any]]
    end: int
    index: int
    seed: int
    reply: Reply
    tools: tuple[Facts, ...] = ()
