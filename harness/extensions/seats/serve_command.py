"""`harness serve`: a seat of a spec's episodes for an outside agent, the others played as in `harness eval`."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from harness.api.errors import Place, SpecError, UserError, near
from harness.cli.evaluate import evaluate_one, load, planned
from harness.cli.parser import eval_options
from harness.cli.usage import Parser
from harness.config.spec import Spec
from harness.extensions.seats.packages import PACKAGES
from harness.extensions.seats.seat_engine import PORT, ServedSeat

OUTSIDE = "outside"
"""The name of the engine, of the model in the spec, and of a group for one agent."""


def serve_options(command: Parser) -> None:
    """The options of `harness serve`: its own, and those of `harness eval`."""
    group = command.group("the seat")
    group.add_argument("--seat", required=True, metavar="NAME", help="a group of `agents:` in the spec, or an agent")
    text = "as an MCP server, or as an A2A agent (default: mcp)"
    group.add_argument("--as", dest="served_as", choices=tuple(PACKAGES), default="mcp", help=text)
    text = "the client is at standard input and output, and has started this command"
    group.add_argument("--stdio", action="store_true", help=text)
    group.add_argument("--port", type=int, default=PORT, metavar="N", help=f"0: any free one (default: {PORT})")
    group.add_argument("--label", default="agent", metavar="NAME", help="who it is: `outside (NAME)` in tables")
    eval_options(command)


def serve(options: argparse.Namespace) -> int:
    """Play the spec with an outside agent, and print its tables."""
    if len(options.specs) != 1:
        raise SpecError("found several", place=Place("--spec"), hint="Serve a seat of one spec at a time.")
    if options.stdio and options.served_as != "mcp":
        raise SpecError("found --as a2a", place=Place("--stdio"), hint="A2A is spoken over HTTP: leave --stdio out.")
    options.spec = options.specs[0]
    options.overrides = [*options.overrides, *_seated(load(options), options)]
    with contextlib.ExitStack() as stack:
        output = stack.enter_context(_private_output()) if options.stdio else 1
        plan = planned(options)
        engine = plan.engines.get(OUTSIDE)
        if not isinstance(engine, ServedSeat):
            hint = "Name a group that a model may play; `harness plan` lists them."
            raise SpecError(f"an outside agent cannot play {options.seat!r}", place=Place("--seat"), hint=hint)
        engine.prepare(plan, OUTSIDE)
        engine.output = output
        return evaluate_one(options, plan)[0]


@contextlib.contextmanager
def _private_output() -> Iterator[int]:
    """Standard output is the client's alone: a descriptor of it. Whatever else is written there goes to standard
    error, also by processes that start meanwhile."""
    sys.stdout.flush()
    private = os.dup(1)
    os.dup2(2, 1)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield private
    finally:
        os.dup2(private, 1)
        os.close(private)


def _seated(spec: Spec, options: argparse.Namespace) -> list[str]:
    """The changes to a spec that let an outside agent play a seat. Raises `SpecError`."""
    groups = spec.get("agents") or {"default": "model"}
    if not isinstance(groups, Mapping):
        hint = "Write agents: as a mapping, in a spec that extends it."
        raise SpecError(f"agents: of the spec is {groups!r:.60}", place=Place("--seat"), hint=hint)
    engine = {"use": OUTSIDE, "served_as": options.served_as, "port": options.port, "stdio": options.stdio}
    named = [f"models.{OUTSIDE}={json.dumps({**engine, 'label': options.label}, ensure_ascii=False)}"]
    name = options.seat
    if name in groups:
        body: Any = groups[name]
        kept = {key: value for key, value in body.items() if key != "policy"} if isinstance(body, Mapping) else {}
        changed = {**groups, name: {**kept, "model": OUTSIDE}}
    else:
        known = _agents(spec, options)
        if name not in known:
            raise SpecError(
                f"there is no group and no agent {name!r}", place=Place("--seat"), hint=near(name, [*groups, *known])
            )
        own = {OUTSIDE: {"model": OUTSIDE, "agents": [name]}}  # first: others take what is free
        changed = {"default": groups.get("default", "model"), **own, **groups}
    return [*named, f"agents={json.dumps(changed, ensure_ascii=False)}"]


def _agents(spec: Spec, options: argparse.Namespace) -> list[str]:
    """The names of the agents, as far as the spec can be planned."""
    plan = planned(options)
    names: dict[str, None] = {}
    for condition, case, _ in plan.episodes():
        with contextlib.suppress(UserError):
            names |= dict.fromkeys(condition.protocol.possible_agents(case))
    return list(names)
