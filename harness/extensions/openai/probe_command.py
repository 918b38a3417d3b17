"""`harness probe`: asks a server small questions, and prints what it can do as a card."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shlex
import sys
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from harness.api.errors import SetupError, SpecError
from harness.api.printable import cut
from harness.cli import options as opt
from harness.cli.evaluate import pairs
from harness.cli.terminal import terminal_width
from harness.cli.usage import Parser
from harness.config import building
from harness.config.project import find
from harness.extensions.openai.card import Card
from harness.extensions.openai.clients import connect
from harness.extensions.openai.openai import OpenAI
from harness.extensions.openai.probe import Asker, probe
from harness.extensions.openai.refusals import in_one_line, server_words
from harness.extensions.openai.replicas import Replica, endpoint, public
from harness.extensions.openai.start_checks import check
from harness.storage.redaction import secrets_of

_PATIENCE = 120.0
"""Seconds for one question, at most."""
_UNKNOWN = "not known"
_MOST_WORDS = 160
"""Characters of a server's words that are shown."""


def options(command: Parser) -> None:
    """The options of `harness probe`."""
    command.group("arguments").add_argument("server", metavar="SERVER", help="its base_url: http://localhost:8000/v1")
    opt.add(command, "model_args", group="options")
    group = command.group("output")
    group.add_argument("-o", "--output", type=Path, metavar="FILE", help="also write the card: --model_args card=FILE")
    group.add_argument("--format", choices=("text", "json"), default="text", metavar="FORM", help="text, json")


def ask_server(options: argparse.Namespace) -> int:
    """Ask, print the card, and write it."""
    print(f"asking {public(options.server)} about 25 questions", file=sys.stderr)
    card = asyncio.run(_ask(options.server, pairs(options.model_args, "--model_args")))
    if options.output is not None:
        card.write(options.output)
    if options.format == "json":
        print(json.dumps(asdict(card), indent=1, ensure_ascii=False))
        return 0
    for line in lines(card, terminal_width()):
        print(line)
    args = {"base_url": options.server, **pairs(options.model_args, "--model_args"), "model": card.model}
    args |= card.engine_args
    if options.output is not None:
        args["card"] = str(options.output)
    words = ",".join(f"{name}={_word(value)}" for name, value in args.items())
    print(f"\nTo evaluate it:\n  harness eval --spec … --model openai --model_args {shlex.quote(words)}")
    return 0


def _word(value: Any) -> str:
    """A value as `--model_args` takes it."""
    return value if isinstance(value, str) else json.dumps(value).replace('"', "")


async def _ask(server: str, arguments: dict[str, Any]) -> Card:
    if "base_url" in arguments:
        raise SpecError("base_url is SERVER here", hint=f"harness probe {arguments['base_url']}")
    named = arguments.get("model")
    engine = building.engine({"use": "openai", "base_url": server, **arguments, "model": named or "?"}, find())
    if not isinstance(engine, OpenAI):
        raise SpecError(f"the project's engine openai is a {type(engine).__name__}", hint="Rename it.")
    secrets = {os.environ.get(engine.api_key_env, ""), *secrets_of([server, engine.extra_body])}
    line, words = partial(in_one_line, secrets=secrets), partial(server_words, secrets=secrets)
    limits: dict[str, str] = {}

    def note(headers: Mapping[str, str]) -> None:
        said = {name.lower(): value[:60] for name, value in headers.items() if "ratelimit-limit" in name.lower()}
        limits.update([*said.items()][:10])

    key = os.environ.get(engine.api_key_env, "")
    (client,) = connect([endpoint(server)], lambda: key, engine.timeout, note)
    async with client:
        replica = Replica(public(endpoint(server)), client, 1)
        problem = await check(replica, named, engine.timeout, engine.api_key_env, line, None)
        if problem is not None:
            raise problem
        if named is None:
            if len(replica.listed) != 1:
                some = f"{len(replica.listed):,} models: {', '.join(replica.listed[:30])}" if replica.listed else "none"
                raise SetupError(f"{replica.name} lists {some}", hint="Say which: --model_args model=NAME")
            named = replica.listed[0]
        return await probe(Asker(replica, engine.extra_body, min(engine.timeout, _PATIENCE), words), named, limits)


def lines(card: Card, width: int) -> Iterator[str]:
    """The card in lines of a width."""
    yield f"{card.server} · {card.model} · {card.requests} requests"
    yield ""
    rows = [*_rows(card)]
    left = max(len(name) for name, _ in rows) + 2
    for name, words in rows:
        for number, part in enumerate(textwrap.wrap(words, max(20, width - left)) or [""]):
            yield f"{'' if number else name:{left}}{part}"


def _rows(card: Card) -> Iterator[tuple[str, str]]:
    names = ", ".join(card.models[:5]) + (f", … ({card.listed:,} in all)" if card.listed > 5 else "")
    yield "served names", names or "lists none"
    yield "answered as", card.answered_as or "does not say"
    yield "window", f"{card.window:,} tokens" if card.window else _UNKNOWN
    dropped = {"dropped": "dropped: the prompt has no more tokens with it"}
    yield "system role", _said(card, "system", dropped)
    yield "roles in a row", _said(card, "roles_in_a_row")
    yield "empty turns", _said(card, "empty_turns")
    yield "temperature", _said(card, "temperature")
    yield "seeds", _seeds(card)
    counts = {None: _UNKNOWN, 0: "none ends a reply", 1: "1", 4: "4, fewer than 16", 16: "16 or more"}
    yield "stops", counts.get(card.stops, str(card.stops)) + ("" if card.stops else _why(card, "stops"))
    other = [f"{name} {'is refused' if name in card.refused else 'is ignored'}" for name in _names(card)]
    yield "max tokens", "; ".join([" or ".join(card.max_tokens) or "no name bounds a reply", *other])
    at_once = f"called, {card.calls_at_once} at once where two were asked for"
    left_out = "dropped: the prompt has no more tokens with them"
    words = {"called": at_once, "taken": "taken, but the model called none", "dropped": left_out}
    yield "tools", _said(card, "tools", words)
    if card.tools in ("called", "taken"):
        yield "tool results", _said(card, "tool_results")
        yield "parallel tools", _said(card, "parallel_tools", {"taken": "two calls in one message are taken"})
    held = [f"structured={how} ({', '.join(forms)})" for how, forms in (card.structured or {}).items() if forms]
    yield "structured output", "; ".join(held) or "holds replies to no form"
    yield "raw texts", _said(card, "texts")
    if card.likelihoods is not None:
        why = "" if card.likelihoods else _why(card, "likelihoods of texts")
        yield "log-likelihoods", f"of {' and '.join(card.likelihoods)}" if card.likelihoods else f"none{why}"
    places = {"none": "none was seen", "hidden": "hidden: only its tokens are counted", "text": "in the text, in marks"}
    yield "reasoning", places.get(card.reasoning or "", f"in the field {card.reasoning}")
    beside = {"beside": "adds up with reasoning, which is counted beside the reply", "none": "counts no tokens"}
    yield "usage", beside.get(card.usage or "", card.usage or _UNKNOWN)
    yield "rate limits", ", ".join(f"{name}: {value}" for name, value in card.rate_limits.items()) or "none in headers"
    streaming = {"asked": "only where it is asked for", "always": "always, which is read all the same"}
    yield "streaming", streaming.get(card.streaming, f"refuses to answer in one piece{_why(card, 'streaming')}")


def _names(card: Card) -> Iterator[str]:
    return (name for name in ("max_tokens", "max_completion_tokens") if name not in card.max_tokens)


def _seeds(card: Card) -> str:
    if card.seed != "taken":
        return _said(card, "seed")
    same = "same seed twice, same reply" if card.same_seed else "same seed twice, another reply"
    other = "two seeds, two replies" if card.two_seeds else "two seeds, same reply"
    return f"{same}; {other}"


def _said(card: Card, name: str, words: dict[str, str] | None = None) -> str:
    value: str | None = getattr(card, name)
    if value is None:
        return _UNKNOWN
    return (words or {}).get(value, value) + (_why(card, name) if value == "refused" else "")


def _why(card: Card, name: str) -> str:
    return f": {cut(card.refused[name], _MOST_WORDS)}" if name in card.refused else ""
