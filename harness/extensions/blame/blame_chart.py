"""The chart `blame`: whose moves made episodes fail, and when."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from harness import storage
from harness.api import Move
from harness.api.errors import DataError, Place, near
from harness.extensions.charts.chart import Chart
from harness.extensions.charts.failures import ENGINE, LIMIT, TRUNCATED, UNREADABLE
from harness.extensions.charts.sources import ChartOptions, Material
from harness.extensions.charts.style import label, ticks
from harness.extensions.replay.changes import without_messages
from harness.storage import finished_episodes

from .blame_verdict import words_of
from .findings import KeptVerdict, kept_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WAYS = ("round", "agent", "group", "model", "turn", "failure")
_WHO = ("agent", "group", "model")
_MAX_BARS = 40


def blame_chart(material: Material, choice: ChartOptions) -> Chart:
    """Bars of how many episodes a move of each round decides; by agent, by its group, by its model, by the template of
    its turn, or by the kind of failure. Nothing is played: it draws what `harness blame` has found, with the reference
    that was given last.

    Raises `DataError` where it has looked at none of the episodes, or no move decides one of them; and as
    `findings.kept_of`.
    """
    if choice.x is not None:
        raise DataError("a plot of blame has no axis to choose", place=Place("--x"), hint="Leave it out; --by groups.")
    by = choice.by or WAYS[0]
    if by not in WAYS:
        raise DataError(f"moves are counted by {', '.join(WAYS)}, found {by!r:.80}", hint="Choose with --by.")
    metric = choice.metric or material.headline().metric
    known = {score.id for source in material.sources for score in source.run.scores}
    if choice.episode is not None and choice.episode not in known:
        raise DataError(f"the run has no episode {choice.episode!r:.80}", hint=near(choice.episode, known))
    counts: Counter[str] = Counter()
    found: Counter[str] = Counter()
    references: dict[str, None] = {}
    for source in material.sources:
        names = {score.id for score in source.run.scores if choice.episode in (None, score.id)}
        reference, verdicts = kept_of(source.folder, metric, names)
        references |= {reference: None} if verdicts else {}
        kinds = _kinds(source.folder, verdicts) if by == "failure" else {}
        for name, verdict in verdicts.items():
            found[words_of(verdict.finding)] += 1
            if verdict.finding == "blamed" and verdict.named:
                counts.update([kinds[name]] if by == "failure" else _ways(by, verdict))
    if not found:
        folders = " ".join(shlex.quote(str(source.folder)) for source in material.sources[:1])
        own = "" if choice.metric is None else f" --metric {metric}"
        hint = f"First: `harness blame {folders}{own}`. It plays failed episodes again; the chart shows what it found."
        raise DataError(f"`harness blame` has found nothing about {metric} in these episodes", hint=hint)
    if not counts:
        said = "; ".join(f"{n} episodes: {words}" for words, n in found.most_common())
        raise DataError(f"no move decides an episode ({said})")
    named = sorted(counts.items(), key=lambda item: (int(item[0]), 0) if by == "round" else (0, -item[1]))
    shown, rest = named[:_MAX_BARS], len(named) - _MAX_BARS

    title = "kind of failure" if by == "failure" else by

    def paint(figure: Figure) -> None:
        axis = figure.subplots()
        places = range(len(shown))
        bars = axis.barh(places, [n for _, n in shown], height=0.68, color="#D55E00")
        axis.bar_label(bars, padding=2, fontsize=7)
        axis.set_yticks(places, ticks(name for name, _ in shown))
        axis.invert_yaxis()
        axis.locator_params(axis="x", integer=True)
        axis.set_xlabel("Episodes that a move decides")
        axis.set_ylabel(label(title))
        axis.spines["left"].set_visible(False)
        axis.tick_params(axis="y", length=0)

    more = f" {rest} more are not shown." if rest > 0 else ""
    looked = "; ".join(f"{n} of {found.total()}: {words}" for words, n in found.most_common())
    of = by if by in _WHO else f"{by} of the first such move"
    of = "what was wrong with the first such move" if by == "failure" else of
    return Chart(
        "blame",
        f"Who made episodes fail, by {title}",
        f"Episodes whose {metric} would have been as good as that of {', '.join(references)} if a move had been "
        f"another one, by {of}. Failed episodes that `harness blame` has looked at: {looked}.{more}",
        (title, "episodes"),
        tuple(shown),
        paint,
        height=1.0 + 0.26 * len(shown),
    )


def _kinds(folder: Path, verdicts: Mapping[str, KeptVerdict]) -> dict[str, str]:
    """Episode → what was wrong with its first decisive move."""
    first = {name: one.named[0] for name, one in verdicts.items() if one.named}
    kinds = {}
    for end, batches in finished_episodes.batches(*storage.journals(folder), episodes={*first}):
        moves = [move for batch in batches for move in batch]
        at = first[end["e"]]
        own = [move for move in moves if move.agent == at.agent]
        agents = frozenset(move.agent for move in moves)
        # Of several moves together, one may come about only by another: the episode as it was has no such move.
        kinds[end["e"]] = kind_of(own[at.index], agents) if at.index < len(own) else "after another move"
    return kinds


def kind_of(move: Move, agents: frozenset[str]) -> str:
    """What was wrong with a decisive move: the reply, or what it meant.

    Args:
        move: the move.
        agents: those of its episode, who may get messages.
    """
    if move.error_kind is not None:
        if move.error_kind == "parse" and move.calls and move.calls[-1].finish_reason == "length":
            return TRUNCATED
        return {"parse": UNREADABLE, "limit": LIMIT}.get(move.error_kind, ENGINE)
    if move.action is None:
        return "no action"
    return "message" if without_messages(move.action, None, agents) is not None else "action"


def _ways(by: str, verdict: KeptVerdict) -> list[str]:
    """What an episode counts for: that of its first decisive move; every agent of one."""
    first = verdict.named[0]
    if by == "round":
        return [str(first.round)]
    if by == "turn":
        return [first.template]
    return [*dict.fromkeys(str(getattr(one, by)) for one in verdict.named)]
