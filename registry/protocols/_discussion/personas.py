"""Personas of a discussion: listed, proposed by a model for the question, or traits by lot."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NotRequired, Required, TypedDict

from harness.api import Action, Facts, Parsed, PluginError, Reply, ReplyField
from harness.extensions.panels.peers import peer_text
from harness.replies.characters import is_placeholder

NAME, TEXT = 60, 600
"""Characters of a persona's name and of its text, where a model proposes them."""
_LABEL = 40
"""Characters of a name that is the beginning of a text."""
_TAIL = 20_000
"""How many of a reply's last characters are read."""
_ENTRY = re.compile(r"^[ \t]{0,8}(?:\d{1,3}[.)]|[-*•])[ \t]{1,8}(\S[^\n]{0,4000})", re.MULTILINE)
_MARKS = "*_`\"' \t"


class PersonaEntry(TypedDict):
    """A persona: `{name: Statistician, text: "You ask for the base rate first."}`."""

    name: Required[str]
    text: NotRequired[str]


Personas = Literal["none", "experts", "traits"] | list[str | PersonaEntry]
Persona = Mapping[str, str]
"""`text`: what the agent reads of it; `name`: what tables and other agents do."""

TRAITS: tuple[tuple[tuple[str, str], tuple[str, str]], ...] = (
    (("open", "open to new ideas and unusual views"), ("conventional", "attached to the familiar and the tried")),
    (("careful", "careful, orderly and thorough"), ("casual", "casual, and content with a rough result")),
    (("outgoing", "outgoing and quick to speak up"), ("reserved", "reserved and sparing with words")),
    (("trusting", "trusting and eager to agree"), ("sceptical", "sceptical and ready to contradict")),
    (("anxious", "anxious, and alert to what may go wrong"), ("calm", "calm and hard to unsettle")),
)
"""The Big Five (openness, conscientiousness, extraversion, agreeableness, neuroticism): high and low, in a word and in
a few."""


def listed(personas: Sequence[str | PersonaEntry], members: Sequence[str]) -> dict[str, Persona]:
    """Return agent → its persona, in the panel's order. Raises `PluginError` if there are more than agents."""
    if len(personas) > len(members):
        message = f"{len(personas)} personas for a panel of {len(members)}"
        hint = f"Set agents: {len(personas)}, or leave {len(personas) - len(members)} out."
        raise PluginError(message, hint=hint, at=("personas", len(members)))
    result: dict[str, Persona] = {}
    for i, (agent, entry) in enumerate(zip(members, personas, strict=False)):
        text = (entry if isinstance(entry, str) else entry.get("text") or entry["name"]).strip()
        name = (_cut(text, _LABEL) if isinstance(entry, str) else entry["name"]).strip()
        if not name or "\n" in name:
            hint = "A persona is a text, or {name: …, text: …}."
            raise PluginError("a persona needs a name on one line", hint=hint, at=("personas", i))
        result[agent] = {"name": name, "text": text}
    return result


def drawn(members: Sequence[str], rng: random.Random) -> dict[str, Persona]:
    """Return agent → five traits, each high or low with probability 1/2."""
    result: dict[str, Persona] = {}
    for agent in members:
        traits = [rng.choice(pair) for pair in TRAITS]
        result[agent] = {
            "name": ", ".join(word for word, _ in traits),
            "text": f"You are {'; '.join(words for _, words in traits)}.",
        }
    return result


def proposed(action: Action, members: Sequence[str]) -> dict[str, Persona]:
    """Return agent → persona, of an action of `Roster`; agents beyond its end have none."""
    return dict(zip(members, action, strict=False)) if isinstance(action, list) else {}


@dataclass(frozen=True, slots=True)
class Roster(Reply):
    """Experts, one a line: "1. Name: what the expert knows". The action is a list of {"name", "text"}.

    Lines that begin with a number or a bullet count; those beyond `count` are left out, and fewer are accepted.

    Attributes:
        count: how many experts are asked for.
    """

    count: int

    def allows(self, action: Action) -> bool:
        """A list of at most `count` personas, or nothing."""
        return action is None or (
            isinstance(action, list) and 0 < len(action) <= self.count and all(map(_is_persona, action))
        )

    @property
    def fields(self) -> tuple[ReplyField, ...]:
        """The experts, one a line."""
        return (ReplyField("experts"),)

    def says(self, action: Action) -> Facts:
        """Numbered lines."""
        return {"experts": "\n".join(f"{i}. {one['text']}" for i, one in enumerate(action, 1))}

    @property
    def examples(self) -> tuple[Action, ...]:
        """A list of experts."""
        return ([_expert(f"Expert {chr(65 + i)}: knows field {i}") for i in range(self.count)],)

    def parse(self, text: str) -> Parsed:
        """Read the list."""
        found = [one for line in _ENTRY.findall(text[-_TAIL:]) if (one := _expert(line)) is not None]
        if found:
            return Parsed(found[: self.count])
        return Parsed(error=f"write {self.count} numbered lines, each like this: 1. …: …")

    def constraint(self) -> Mapping[str, Any]:
        """Exactly `count` such lines."""
        lines = (rf"{i + 1}\. [^\n:]{{1,{NAME}}}: [^\n]{{1,{TEXT}}}" for i in range(self.count))
        return {"regex": r"\n".join(lines)}


def _expert(line: str) -> Persona | None:
    name, colon, text = " ".join(peer_text(line).split()).partition(":")
    if not colon:
        name, _, text = name.partition(" - ")
    name, text = _cut(name.strip(_MARKS), NAME), _cut(text.strip(_MARKS), TEXT)
    if not name or is_placeholder(name):
        return None
    return {"name": name, "text": f"{name}: {text}" if text else name}


def _is_persona(value: Any) -> bool:
    return isinstance(value, Mapping) and set(value) == {"name", "text"} and all(map(_is_text, value.values()))


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and "\n" not in value


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"
