"""What a server can do, as `harness probe` has seen it: a card, and what it says of requests before the first."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Literal

from harness.api import Request
from harness.api.errors import DataError, Place, SetupError
from harness.engines.likelihoods import LikelihoodRequest
from harness.plugins.parameters import Schema, json_schema, schema_problems
from harness.storage.files import write_atomically

FORMAT: Final = 1
"""The version of a card's file."""
MANY_STOPS: Final = 16
"""Stops that no spec has more of: as many as a server is asked to take."""
_CHARACTERS: Final = 4.0
"""Of English prose in a token, where a server counts no tokens."""
_LARGEST: Final = 1 << 20
"""Bytes of a card's file."""
Taken = Literal["taken", "refused"]


@dataclass(frozen=True, kw_only=True)
class Card:
    """What one server was seen to do with one model. None: it could not be seen.

    Attributes:
        server: its address without secrets.
        model: the model's name there.
        at: when it was asked, ISO 8601.
        harness: the version that asked.
        requests: how many requests that took.
        models: the names that it lists, 30 at most.
        listed: how many it lists.
        answered_as: who answered, by the server's own word.
        window: tokens of prompt and reply together.
        token_characters: how many a token of English prose has.
        system: whether a system message is taken; `dropped`: the prompt has as few tokens as without it.
        roles_in_a_row, empty_turns: whether two messages of the user in a row, and an empty one of the assistant, are
            taken.
        temperature: whether the parameter is taken.
        same_seed: whether the same seed gave the same reply.
        two_seeds: whether two seeds gave two replies.
        seed: whether the parameter is taken.
        stops: of 16, 4 and 1 stops the most of which the last one ended a reply; 0: none does.
        max_tokens: those of the parameter's two names that bound a reply.
        tools: what became of an offered tool; `taken`: the model did not call it; `dropped`: the prompt has as many
            tokens as without it.
        calls_at_once: calls in one reply that was asked for two.
        tool_results: whether a conversation with a call and its result is taken.
        parallel_tools: whether one with two calls in one message is taken.
        structured: engine's `structured` → the forms to which replies were held so: `json`, `choice`.
        texts: whether `/completions` is there.
        likelihoods: what gets log-likelihoods: `texts`, `chats`.
        reasoning: the field of a message in which reasoning stands; `text`: in marks in the reply; `hidden`: only its
            tokens are counted; `none`: there was none.
        usage: whether the counts of tokens add up; `beside`: reasoning is counted beside the reply.
        rate_limits: header → its value.
        streaming: `only`: refuses to answer in one piece; `always`: streams what was not to be streamed.
        refused: name of the above → the server's words.
    """

    server: str
    model: str
    at: str
    harness: str
    requests: int
    models: list[str] = field(default_factory=list)
    listed: int = 0
    answered_as: str | None = None
    window: int | None = None
    token_characters: float | None = None
    system: Literal["taken", "dropped", "refused"] | None = None
    roles_in_a_row: Taken | None = None
    empty_turns: Taken | None = None
    temperature: Taken | None = None
    seed: Taken | None = None
    same_seed: bool | None = None
    two_seeds: bool | None = None
    stops: int | None = None
    max_tokens: list[str] = field(default_factory=list)
    tools: Literal["called", "taken", "dropped", "refused"] | None = None
    calls_at_once: int | None = None
    tool_results: Taken | None = None
    parallel_tools: Taken | None = None
    structured: dict[str, list[str]] | None = None
    texts: Taken | None = None
    likelihoods: list[str] | None = None
    reasoning: str | None = None
    usage: Literal["adds up", "beside", "does not add up", "none"] | None = None
    rate_limits: dict[str, str] = field(default_factory=dict)
    streaming: Literal["asked", "always", "only"] = "asked"
    refused: dict[str, str] = field(default_factory=dict)

    def write(self, path: Path) -> None:
        """Write the card's file. Raises `StorageError`."""
        write_atomically(path, json.dumps({"card": FORMAT, **asdict(self)}, indent=1, ensure_ascii=False) + "\n")

    def lacks(self, name: str, what: str) -> str | None:
        """Why a request with `what` does not reach the model, by the attribute `name`; None if it may."""
        if getattr(self, name) == "dropped":
            return f"the server leaves {what} out of its prompts"
        words = self.refused.get(name)
        return (
            f"the server takes no {what}{f' ({words})' if words else ''}" if getattr(self, name) == "refused" else None
        )

    @property
    def engine_args(self) -> dict[str, Any]:
        """Fields of the engine `openai` that fit this server."""
        kinds = self.structured or {}
        best = max(kinds, key=lambda kind: len(kinds[kind]), default="openai")
        return {
            **({"system": "merge"} if self.system in ("dropped", "refused") else {}),
            **({"structured": best} if len(kinds.get(best, ())) > len(kinds.get("openai", ())) else {}),
            **({"send_seed": False} if self.seed == "refused" else {}),
            **({"extra_body": {"stream": True}} if self.streaming == "only" else {}),
        }


_SHAPE: Final[Schema] = {**json_schema(Card), "additionalProperties": True}


def read_card(path: str) -> Card:
    """The card in a file. Raises `SetupError` if there is none, and `DataError` if it is damaged."""
    hint = "`harness probe SERVER -o FILE` writes one."
    try:
        with Path(path).open("rb") as file:
            text = file.read(_LARGEST + 1)
    except OSError as error:
        raise SetupError(f"no card {path}: {error.strerror or error}", hint=hint) from None
    try:
        data = json.loads(text) if len(text) <= _LARGEST else None
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict) or data.pop("card", None) != FORMAT:
        raise DataError(f"not a card of this version ({FORMAT})", place=Place(path), hint=hint)
    if (wrong := next(schema_problems(data, _SHAPE), None)) is not None:
        raise DataError(f"not a card: {'.'.join(map(str, wrong[0]))}: {wrong[1]}", place=Place(path), hint=hint)
    known = {one.name for one in fields(Card)}
    return Card(**{name: value for name, value in data.items() if name in known})


@dataclass(frozen=True)
class CardCheck:
    """Says of requests why a server cannot answer them as they are.

    Args:
        card: what was seen of it.
        system, structured, has_tokenizer: the engine's fields; the last one whether there is a `tokenizer`.
    """

    card: Card
    system: str
    structured: str
    has_tokenizer: bool

    def __call__(self, request: Request) -> tuple[str, str] | None:
        """(why, what to do) of a request that it cannot answer; None if nothing speaks against it."""
        card = self.card
        if isinstance(request, LikelihoodRequest):
            return self._likelihoods(request) or self._window(request)
        if not request.thread.chat and (why := card.lacks("texts", "/v1/completions")):
            return f"is a text to continue, and {why}", "Take a prompt set with chat: true."
        if request.constraint and (problem := self._constraint([*request.constraint])) is not None:
            return problem
        if "temperature" in request.sampling and (why := card.lacks("temperature", "temperature")):
            hint = "Leave it out, which is another experiment: --gen_kwargs temperature=null"
            return f"has a temperature, and {why}", hint
        return self._roles([message["role"] for message in request.thread.messages]) or self._window(request)

    def _likelihoods(self, request: LikelihoodRequest) -> tuple[str, str] | None:
        kind = "chats" if request.thread.chat and not self.has_tokenizer and not request.rolling else "texts"
        if any(isinstance(one.context, str) for one in request.continuations):
            kind = "texts"
        if self.card.likelihoods is None or kind in self.card.likelihoods:
            return None
        words = self.card.refused.get(f"likelihoods of {kind}")
        what = f"is scored by log-likelihoods, and the server gives none of {kind}{f' ({words})' if words else ''}"
        other = "Set tokenizer= to the model's tokenizer, or take" if "texts" in self.card.likelihoods else "Take"
        return what, f"{other} a server that returns prompts with their log-probabilities, such as vLLM's."

    def _constraint(self, kinds: Sequence[str]) -> tuple[str, str] | None:
        held = self.card.structured
        if held is None or self.structured == "none":
            return None
        form = "json" if "json" in kinds else "choice"
        if form in held.get(self.structured, ()):
            return None
        able = [how for how, forms in held.items() if form in forms]
        words = self.card.refused.get(f"structured={self.structured}", "its replies were not held to it")
        what = f"is held to its form, and the server does not do that by structured={self.structured} ({words})"
        return what, f"It does by --model_args structured={able[0]}." if able else "Leave structured_output: true out."

    def _roles(self, roles: Sequence[str]) -> tuple[str, str] | None:
        if "system" in roles and self.system == "role" and (why := self.card.lacks("system", "such messages")):
            hint = "Put it before the first message of the user: --model_args system=merge"
            return f"has a system message, and {why}", hint
        in_a_row = any(a == b == "user" for a, b in pairwise(roles))
        if in_a_row and (why := self.card.lacks("roles_in_a_row", "such messages")):
            return f"has two messages of the user in a row, and {why}", "Take another prompt set, or another server."
        return None

    def _window(self, request: Request) -> tuple[str, str] | None:
        window = self.card.window
        chars = sum(len(message["content"] or "") for message in request.thread.messages)
        tokens = chars / (self.card.token_characters or _CHARACTERS)
        if window is None or tokens <= window:
            return None
        what = f"has about {tokens:,.0f} tokens, and the server's window has {window:,}"
        return what, "Give the server a longer context, or make the spec smaller, such as by fewer rounds."
