"""`harness show`: the resolved spec, or the prompts of one agent as a run sends them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from harness.api import Case, Turn
from harness.api.errors import DataError, NotPreparedError, SpecError, near
from harness.cli.evaluate import load
from harness.config import resolve, yamls
from harness.config.plan import Condition, Plan, prepare, protocol_seed
from harness.config.project import find
from harness.config.spec import Spec
from harness.plugins.approvals import NotApprovedError
from harness.runtime.prompt_reader import PromptReader, RecordedTurn
from harness.runtime.seats import seats, without_models
from harness.runtime.steps import drive


def show(options: argparse.Namespace) -> int:
    """Print the resolved spec, or the prompts of one agent."""
    chosen = (options.condition, options.case, options.agent, options.round, options.repeat)
    plain = all(choice is None for choice in chosen)
    try:
        loaded = load(options)
    except NotApprovedError:
        if not plain:
            raise
        loaded = load(options, proposals=False)  # without what its task would propose
    if plain:
        print(yamls.dump(loaded.data, width=110), end="")
        return 0
    plan = played_without_model(loaded)
    condition = _pick(options.condition, {c.id: c for c in plan.conditions}, "condition")
    cases = {case.id: (case, repeats) for case, repeats in plan.cases(condition)}
    case, repeats = _pick(options.case, cases, "case")
    repeat = options.repeat or 0
    if not 0 <= repeat < repeats:
        raise DataError(f"case {case.id!r} has repeats 0 to {repeats - 1}, found --repeat {repeat}")
    case = condition.assign_groups(case, plan.seed)
    agent = _pick(options.agent, {a: a for a in condition.protocol.possible_agents(case)}, "agent")
    prompts = condition.group_of(case, agent).prompts
    repeated = f" · repeat {repeat}" if repeat else ""
    print(f"# condition {condition.id} · case {case.id}{repeated} · agent {agent} · prompts {prompts.name}")
    try:
        prepare(replace(plan, conditions=(condition,)))
    except NotPreparedError as error:
        print(f"warning: shown with parameters that are not estimated yet: {error.message}", file=sys.stderr)
    turns = conversations(plan, condition, case, repeat, [agent])[agent]
    if options.round is not None and not 0 <= options.round < len(turns):
        raise DataError(f"agent {agent!r} has turns 0 to {len(turns) - 1}, found --round {options.round}")
    last = len(turns) - 1 if options.round is None else options.round
    first = 0 if options.round is None else max(i for i, (_, read) in enumerate(turns[: last + 1]) if read.fresh)
    print(written(turns[first : last + 1], prompts.chat), end="")
    return 0


def conversations(
    plan: Plan, condition: Condition, case: Case, repeat: int, agents: Sequence[str]
) -> dict[str, list[tuple[Turn, RecordedTurn]]]:
    """Agent → its turns with their prompts, where policies play and agents of models are idle.

    `case` has its groups assigned. Raises what a plugin raises.
    """
    seated = seats(plan, condition, case, repeat)
    seed = protocol_seed(plan, condition, case, repeat)
    played = drive(condition.protocol, condition.task, case, without_models(seated), seed)
    readers = {agent: PromptReader(seated[agent].group.prompts, agent) for agent in agents}
    shown: dict[str, list[tuple[Turn, RecordedTurn]]] = {agent: [] for agent in agents}
    for number, batch in enumerate(played.batches):
        for turn, move in batch:
            if (reader := readers.get(turn.agent)) is not None:
                shown[turn.agent].append((turn, reader.read(turn, move, number)))
    return shown


def written(turns: Sequence[tuple[Turn, RecordedTurn]], chat: bool) -> str:
    """Turns of one agent as `harness show` prints them; `chat`: whether its prompt set makes a conversation."""
    parts: list[tuple[str, str]] = []
    for i, (turn, read) in enumerate(turns):
        if i and not read.fresh:
            parts.append(("assistant", "(the reply)"))
        parts += _parts(turn, read, chat)
    return "".join(f"\n--- {heading}\n{text}\n" for heading, text in parts)


def played_without_model(loaded: Spec) -> Plan:
    """The plan of a run without a model; where it needs one, that of a model that does nothing."""
    from harness.engines.mock import Mock

    try:
        return resolve.plan(loaded, find())
    except SpecError:
        if loaded.get("baseline") is not None:
            raise
        return resolve.plan(loaded, find(), Mock())


def _parts(turn: Turn, read: RecordedTurn, chat: bool) -> Iterator[tuple[str, str]]:
    """(heading, text) of all that an agent is sent in a turn."""
    messages = [*read.prompt]
    begun = messages.pop() if messages and messages[-1][0] == "assistant" else None
    own = messages.pop() if messages and messages[-1][0] == "user" else None
    yield from (message for message in messages if message[0] != "tool")
    if read.tools:
        yield "tools", read.signatures
    yield from (message for message in messages if message[0] == "tool")
    if own is not None:
        yield f"{'user' if chat else 'text'} · turn {read.index} · {turn.name}.j2", own[1]
    if begun is not None:
        yield "assistant · the reply begins", begun[1]
    yield from turn.reply.extras


def _pick(choice: str | None, choices: dict[str, Any], word: str) -> Any:
    if not choices:
        raise DataError(f"there is no {word}")
    if choice is None:
        return next(iter(choices.values()))
    if choice in choices:
        return choices[choice]
    if choice.isdecimal() and int(choice) < len(choices):
        return list(choices.values())[int(choice)]
    raise DataError(f"there is no {word} {choice!r}", hint=near(choice, choices))
