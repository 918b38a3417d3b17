"""The card of an A2A agent: who it is, where and how it may be asked, and what run.json says of it."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urlsplit, urlunsplit

from a2a.types import AgentCard, AgentInterface
from google.protobuf.json_format import MessageToJson

from harness.api import Facts
from harness.api.errors import SetupError
from harness.api.printable import clean_name, cut
from harness.extensions.openai.replicas import public
from harness.storage.files import short_name

BINDINGS = ("JSONRPC", "HTTP+JSON")
"""Transports that the harness speaks."""
_VERSION = re.compile(r"(?:0\.3|1)(?:\.|$)")
"""Versions of the protocol that the harness speaks."""
_LOOPBACK = {"localhost", "127.0.0.1", "::1", "0.0.0.0", "::"}
"""Hosts that cards of servers on this machine name, for one place."""
_MOST_SHOWN, _MOST_SKILLS = 500, 20
"""Characters of a text, and number of skills, that run.json has."""
WELL_KNOWN = ".well-known/agent-card.json"


@dataclass(frozen=True)
class KnownCard:
    """An agent's card that the harness can use.

    Attributes:
        name: the agent's name in tables.
        identity: its name, version and organization: what may not change while a run goes on. Descriptions, skills
            and addresses may.
        sent: the card with only those interfaces that the harness may ask, at the address that the user gave.
        facts: for run.json, bounded and clean.
    """

    name: str
    identity: str
    sent: AgentCard
    facts: Facts


def card_address(url: str) -> tuple[str, str]:
    """The base and the path of the card of an agent: of an address that ends in `.json` itself."""
    if url.endswith(".json"):
        base, _, path = url.rpartition("/")
        return base, path
    return url.rstrip("/"), WELL_KNOWN


def read_card(card: AgentCard, asked: str) -> KnownCard:
    """Check a card.

    Args:
        card: as the agent gave it.
        asked: the address that the user gave.

    Raises:
        SetupError: the card has no name, names no interface at this address that the harness speaks, or requires an
            extension of the protocol.
    """
    where = public(asked)
    if not (name := clean_name(card.name.strip())):
        raise SetupError(f"the card of the agent at {where} has no name", hint="The A2A protocol requires one.")
    required = [one.uri for one in card.capabilities.extensions if one.required]
    if required:
        what = cut(clean_name(", ".join(required)), 200)
        raise SetupError(f"the agent at {where} requires {what}, an extension of A2A that the harness lacks")
    usable, problems = [], []
    for interface in card.supported_interfaces:
        problem = _problem(interface, asked)
        if problem is None:
            one = AgentInterface()
            one.CopyFrom(interface)
            one.url = _at(interface.url, asked)
            usable.append(one)
        else:
            problems.append(problem)
    if not usable:
        what = cut("; ".join(problems) or "it names no interface", 500)
        hint = (
            "The harness speaks JSON-RPC and HTTP+JSON of A2A 0.3 and 1, at the host and port that a2a= names: prompts "
            "and the key go nowhere else. Give the address that the card names if you trust it."
        )
        raise SetupError(f"the card of the agent at {where} cannot be used: {what}", hint=hint)
    sent = AgentCard()
    sent.CopyFrom(card)
    del sent.supported_interfaces[:]
    sent.supported_interfaces.extend(usable)
    maker = card.provider.organization.strip()
    identity = " ".join(filter(None, (name, card.version.strip(), f"({maker})" if maker else "")))
    return KnownCard(short_name(name), short_name(clean_name(identity)), sent, _facts(card, usable))


def _problem(interface: AgentInterface, asked: str) -> str | None:
    """Why an interface cannot be used."""
    what = f"{_shown(interface.protocol_binding, 40)} at {_shown(public(interface.url), 100)}"
    if interface.protocol_binding not in BINDINGS:
        return f"{what} is another transport"
    if interface.protocol_version and not _VERSION.match(interface.protocol_version):
        return f"{what} is of version {_shown(interface.protocol_version, 20)}"
    try:
        same = _origin(urlsplit(interface.url)) == _origin(urlsplit(asked))
    except ValueError:
        return f"{what} is no address"
    return None if same else f"{what} is another place"


def _origin(parts: SplitResult) -> tuple[str, str, int | None]:
    """Scheme, host and port. Raises `ValueError` for a port that is no number."""
    host = (parts.hostname or "").lower()
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    return parts.scheme, "localhost" if host in _LOOPBACK else host, port


def _at(url: str, asked: str) -> str:
    """The address, with the host as the user wrote it."""
    parts, given = urlsplit(url), urlsplit(asked)
    return urlunsplit((given.scheme, given.netloc, parts.path, parts.query, ""))


def _shown(text: str, most: int = _MOST_SHOWN) -> str:
    return cut(clean_name(text), most)


def _facts(card: AgentCard, usable: list[AgentInterface]) -> dict[str, Any]:
    whole = MessageToJson(card, indent=None, sort_keys=True)
    skills = [_shown(skill.name or skill.id, 100) for skill in card.skills[:_MOST_SKILLS]]
    places = [
        {"transport": one.protocol_binding, "version": _shown(one.protocol_version, 20), "url": public(one.url)}
        for one in usable[: len(BINDINGS)]
    ]
    facts = {
        "name": _shown(card.name.strip()),
        "version": _shown(card.version, 100),
        "organization": _shown(card.provider.organization, 100),
        "description": _shown(card.description),
        "skills": skills,
        "streaming": card.capabilities.streaming,
        "interfaces": places,
        "sha256": hashlib.sha256(whole.encode()).hexdigest(),
    }
    return {key: value for key, value in facts.items() if value not in ("", [])}
