"""What a spec says of a team: its roles, when it stops, and who is left out after a round."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, NotRequired, Required, TypedDict

from harness.api import PluginError, Range, near

from .families import Within

MAX_SEATS = 1000
Asks = Literal["text", "answer"]
_NAME = re.compile(r"[A-Za-z][\w-]{0,39}", re.ASCII)


class Role(TypedDict):
    """A role: what its seats are to do, how many there are, and what their turns are like."""

    brief: Required[Annotated[str, "what its seats are to do; it stands in their system message"]]
    agents: NotRequired[Annotated[int, Range(ge=1, le=MAX_SEATS), "how many seats it has (1)"]]
    asks: NotRequired[
        Annotated[Asks, "whether its turns ask for free text, or for an answer to the question (the answering role)"]
    ]
    conversation: NotRequired[
        Annotated[
            Literal["kept", "new"],
            "whether a seat keeps its conversation, or each turn is a new one that shows its own last message and the "
            "last one of each seat that it hears",
        ]
    ]
    question: NotRequired[Annotated[bool, "whether its seats read the question (true)"]]
    within: NotRequired[Annotated[Within, "the graph of its own seats: each hears earlier ones in the same round"]]


class Stop(TypedDict):
    """When the team stops before its rounds are used up: one of the two."""

    role: NotRequired[Annotated[str, "the role whose seats can stop the team"]]
    says: NotRequired[Annotated[str, "with role: the last line of a message that stops it"]]
    agree: NotRequired[
        Annotated[float, Range(gt=0, le=1), "the share of the answering role's seats that must hold the same answer"]
    ]


class Prune(TypedDict):
    """Who goes on after a round: the seats of a role whose last messages are rated best."""

    role: Required[Annotated[str, "the role that is pruned"]]
    keep: Required[Annotated[int, Range(ge=1, le=MAX_SEATS), "how many of its seats go on"]]
    after: NotRequired[Annotated[int, Range(ge=1, le=1000), "after which round (1)"]]
    by: NotRequired[Annotated[str, "who rates: peers, or a role of one seat that does nothing else"]]


@dataclass(frozen=True, slots=True)
class Part:
    """A role, with its defaults, and its seats."""

    name: str
    brief: str
    seats: tuple[str, ...]
    asks: Asks | None
    keeps_conversation: bool
    question: bool
    within: Within | None


def parts_of(roles: Mapping[str, Role]) -> dict[str, Part]:
    """Return role → part, in order. Raises `PluginError` for what no team can have."""
    if not roles:
        hint = "Name one or more, each with a brief: {solver: {brief: Solve the problem.}}."
        raise PluginError("roles is empty: the team has no seats", hint=hint, at=("roles",))
    parts: dict[str, Part] = {}
    owner: dict[str, str] = {}
    for name, role in roles.items():
        if not _NAME.fullmatch(name):
            hint = "A name has letters, digits, _ and -, begins with a letter, and has at most 40 characters."
            raise PluginError(f"{name!r:.80} is not a name for a role", hint=hint, at=("roles", name))
        if not role["brief"].strip():
            hint = "Say in a sentence or two what it is to do."
            raise PluginError(f"role {name!r} has an empty brief", hint=hint, at=("roles", name, "brief"))
        count = role.get("agents", 1)
        seats = (name,) if count == 1 else tuple(f"{name}-{i}" for i in range(count))
        for seat in seats:
            if seat in owner:
                message = f"roles {owner[seat]!r} and {name!r} both have a seat {seat!r}"
                raise PluginError(message, hint="Rename one of them.", at=("roles", name))
        owner |= dict.fromkeys(seats, name)
        kept, question = role.get("conversation", "kept") == "kept", role.get("question", True)
        parts[name] = Part(name, role["brief"], seats, role.get("asks"), kept, question, role.get("within"))
    if len(owner) > MAX_SEATS:
        message = f"the team has {len(owner):,} seats; at most {MAX_SEATS:,} can play"
        raise PluginError(message, hint="Lower agents: of its roles.", at=("roles",))
    return parts


def find_role(name: str, parts: Mapping[str, Part], *at: str | int) -> Part:
    """The role of this name. Raises `PluginError` with near matches."""
    if name not in parts:
        raise PluginError(f"{at[0]} names {name!r:.80}, which is not a role", hint=near(name, parts), at=at)
    return parts[name]
