"""Whether the first replies of a model were read; if not, why, in words, and what to change in this run's command.

It says only what can help with this spec and this engine: more tokens where whole replies would not fit, decoding
within the form where the form has one and the engine keeps to it, calls of tools where the engine offers them.
"""

from __future__ import annotations

import itertools
import logging
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from harness.api import CallsTools, Engine, Replays, Turn
from harness.api.printable import clean_name, cut
from harness.config.plan import Condition, Group, Plan
from harness.runtime.turn_shares import FIRST, TurnCounts, UnreadReply

FEW: Final = 0.8
"""Below this share of turns parsed, or of replies that are not cut off, a run says so."""
_MAX_EXAMPLE: Final = 160
_MAX_WHY: Final = 120
_MORE: Final = 4
"""What `max_tokens` is multiplied by in the advice."""
_MAX_TURNS: Final = 1_000
"""Turns of an episode with idle agents among which those that were not read are looked for."""
_OFTEN: Final = 0.2
"""The share of replies from which on something is worth a change."""
_LOOPS: Final = 0.4
"""The share of a text's groups of four words that stood before in it, from which on it repeats itself."""
_CUT: Final = re.compile(r"it was cut off[^:;]{0,60}: answer more briefly; ")
_OWN: Final = re.compile(r"'[^']*'|\"[^\"]*\"|\d+")
"""What is a reply's own in an error: quotations and numbers."""
_log = logging.getLogger(__name__)


@dataclass
class ShareCheck:
    """Says once for each model what keeps its replies from being read, and whether the run is to end for it.

    Attributes:
        plan: what is played.
        least: the shares that `--stop_unless` asks for, by name.
        missed: what was asked for and is not there, in words; None while nothing is.
    """

    plan: Plan
    least: Mapping[str, float] = field(default_factory=dict)
    missed: str | None = None
    _known: dict[str, dict[object, TurnCounts]] = field(default_factory=dict)
    _said: set[str] = field(default_factory=set)

    def take(self, source: object, model: str, counts: TurnCounts) -> None:
        """Take what a process knows of a model's first turns. `source`: which process."""
        engine = self.plan.engines.get(model)
        if engine is None or engine.asks_people or isinstance(engine, Replays):
            return
        self._known.setdefault(model, {})[source] = counts
        total = TurnCounts()
        for known in self._known[model].values():
            total += known
        if total.asked == 0:
            return
        missed = [name for name, least in self.least.items() if total.share(name) < least]
        if missed and self.missed is None and total.asked >= FIRST:
            self.missed = "; ".join(_missed(engine.model, total, name, self.least[name]) for name in missed)
        if model not in self._said and min(total.share("parsed"), total.share("complete")) < FEW:
            self._said.add(model)
            goes_on = total.asked >= FIRST and not missed  # fewer are looked at at the end
            for line in advice(self.plan, model, total, goes_on):
                _log.warning("%s", line)


def advice(plan: Plan, name: str, counts: TurnCounts, goes_on: bool) -> Iterator[str]:
    """What is wrong with a model's first turns: lines, the first for itself.

    Args:
        plan: what is played.
        name: the model's in the spec.
        counts: those turns.
        goes_on: whether the run does.
    """
    engine = plan.engines[name]
    model, parsed, complete = clean_name(engine.model), counts.share("parsed"), counts.share("complete")
    first = f"{model}: {_percent(parsed)} of its first {counts.asked:,} turns were parsed"
    if counts.answered < counts.asked:
        first += f", {_percent(counts.share('answered'))} answered"
    if complete < 1:
        first += f", {_percent(1 - complete)} of its replies were cut off at max_tokens"
    yield first
    unread = counts.unread
    if unread:
        shape, most = _commonest(unread)
        kept = f"{len(most)} of {len(unread)} unread replies" if len(unread) > 1 else "the unread reply"
        yield f"  {kept}: {shape}{_example(most[0])}"
    if changes := [*_changes(plan, name, engine, counts)]:
        yield f"  what may help: {'; '.join(changes)}"
    if goes_on:
        yield "  The run goes on." + (
            " (--stop_unless parsed=20% ends runs of which less is read.)" if parsed < FEW else ""
        )


def shape_of(reply: UnreadReply) -> str:
    """What kind of reply it is, in words that many replies share."""
    if not reply.text.strip():
        return "thoughts, and no answer before max_tokens" if reply.cut_off else "empty"
    if reply.cut_off and _repeats_itself(reply.text):
        return "repeats itself until max_tokens"
    if reply.cut_off:
        return "cut off at max_tokens before the answer"
    return cut(clean_name(_CUT.sub("", reply.error).partition(";")[0]), _MAX_WHY)


def _commonest(unread: Sequence[UnreadReply]) -> tuple[str, list[UnreadReply]]:
    """The most frequent shape, and the replies that have it."""
    groups: dict[str, list[UnreadReply]] = {}
    for reply in unread:
        groups.setdefault(_OWN.sub("…", shape_of(reply)), []).append(reply)
    most = max(groups.values(), key=len)
    return shape_of(most[0]), most


def _repeats_itself(text: str) -> bool:
    words = text.split()
    groups = [tuple(words[i : i + 4]) for i in range(len(words) - 3)]
    return len(groups) >= 8 and 1 - len({*groups}) / len(groups) >= _LOOPS


def _example(reply: UnreadReply) -> str:
    """One line of its text, behind it."""
    text = cut(clean_name(" ".join(reply.text.split())), _MAX_EXAMPLE)
    return f"; for example: {text}" if text else ""


def _changes(plan: Plan, name: str, engine: Engine, counts: TurnCounts) -> Iterator[str]:
    """Options of the command that may help."""
    cut_off = Counter(shape_of(reply) for reply in counts.unread if reply.cut_off)
    loops = cut_off["repeats itself until max_tokens"]
    short = cut_off.total() - loops if counts.unread else counts.answered - counts.complete
    groups = [(c, g) for c in plan.conditions for g in c.groups if g.policy is None and (g.model or "model") == name]
    if short >= _OFTEN * (len(counts.unread) or counts.answered) and short:
        limits = {most for _, group in groups if type(most := group.sampling.get("max_tokens")) is int}
        most = max(limits, default=max((reply.tokens or 0 for reply in counts.unread), default=0))
        now = f" ({most:,} now)" if most else ""
        yield f"--gen_kwargs max_tokens={_MORE * most if most else '…'}{now}"
    if engine.any_request:  # what it answers is made up, or recorded
        return
    turns = [*_unread(plan, [(c, g) for c, g in groups if not c.structured_output], counts.unread)]
    if any(_can_hold(engine, turn) for turn in turns):
        yield "--set structured_output=true (decodes within the form of the reply)"
    elif (
        plan.spec.get("reply_via") is None
        and isinstance(engine, CallsTools)
        and engine.tools_problem is None
        and any(turn.reply.fields and not turn.reply.tools and turn.reply.ability is None for turn in turns)
    ):
        yield "--set reply_via=tool_calls, if the model was trained to call tools"


def _unread(plan: Plan, groups: Sequence[tuple[Condition, Group]], unread: Sequence[UnreadReply]) -> Iterator[Turn]:
    """The turns, of those of the groups, whose replies were not read: one of each name and condition."""
    from harness.runtime.abilities import turns_of  # what engines that take every request do not need

    for condition, group in groups:
        names = {reply.turn for reply in unread if reply.condition == condition.id}
        for turn in itertools.islice(turns_of(plan, condition, group), _MAX_TURNS if names else 0):
            if turn.name in names:
                names.discard(turn.name)
                yield turn
            if not names:
                break


def _can_hold(engine: Engine, turn: Turn) -> bool:
    """Whether decoding can keep to the form of a turn."""
    constraint = turn.reply.constraint()
    return constraint is not None and not turn.reply.tools and engine.constraint_problem(constraint) is None


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _missed(model: str, counts: TurnCounts, name: str, least: float) -> str:
    whole = counts.answered if name == "complete" else counts.asked
    what = {"parsed": "turns were parsed", "answered": "turns were answered", "complete": "replies were complete"}[name]
    found = f"{100 * counts.share(name):.3g} % of the first {whole:,} {what}"
    return f"{model}: {found}, fewer than {100 * least:g} % (--stop_unless {name}={100 * least:g}%)"
