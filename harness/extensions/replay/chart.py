"""The chart `blame`: whose moves made episodes fail, and when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness import storage
from harness.api import Move
from harness.errors import DataError, Place
from harness.extensions.charts.chart import Chart
from harness.extensions.charts.failures import ENGINE, LIMIT, TRUNCATED, UNREADABLE
from harness.extensions.charts.sources import ChartOptions, Material
from harness.extensions.charts.style import label, ticks
from harness.storage import finished

from .blame import blamed
from .changes import without_messages
from .verdict import WORDS, BlameVerdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WAYS = ("round", "agent", "group", "turn", "failure")
_LOOKED = 200
_MOST_BARS = 40


def blame_chart(material: Material, choice: ChartOptions) -> Chart:
    """Bars of how many episodes a move of each round decides; by agent, by its group, by the template of its turn, or
    by the kind of failure.

    Raises `DataError` where no single episode is decided by a move, and as `blamed`.
    """
    if choice.x is not None:
        raise DataError("a plot of blame has no axis to choose", place=Place("--x"), hint="Leave it out; --by groups.")
    by = choice.by or WAYS[0]
    if by not in WAYS:
        raise DataError(f"moves are counted by {', '.join(WAYS)}, found {by!r:.80}", hint="Choose with --by.")
    counts: Counter[str] = Counter()
    found: Counter[str] = Counter()
    metric = reference = ""
    for source in material.sources:
        chosen = () if choice.episode is None else (choice.episode,)
        one = blamed(source.folder, metric=choice.metric, condition=choice.condition, limit=_LOOKED, episodes=chosen)
        metric, reference = one.metric, one.by
        kinds = _kinds(source.folder, one.verdicts) if by == "failure" else {}
        for verdict in one.verdicts:
            found[WORDS[verdict.finding]] += 1
            if verdict.finding == "blamed":
                counts.update(_ways(by, verdict, one.roles[verdict.episode], kinds))
    if not counts:
        said = "; ".join(f"{n} episodes: {words}" for words, n in found.most_common()) or "no episode failed"
        raise DataError(f"no move decides an episode ({said})")
    named = sorted(counts.items(), key=lambda item: (int(item[0]), 0) if by == "round" else (0, -item[1]))
    shown, rest = named[:_MOST_BARS], len(named) - _MOST_BARS

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
    of = by if by in ("agent", "group") else f"{by} of the first such move"
    of = "what was wrong with the first such move" if by == "failure" else of
    return Chart(
        "blame",
        f"Who made episodes fail, by {title}",
        f"Episodes whose {metric} would have been as good as that of {reference} if a move had been another one, by "
        f"{of}. Failed episodes that were looked at, at most {_LOOKED} a run: {looked}.{more}",
        (title, "episodes"),
        tuple(shown),
        paint,
        height=1.0 + 0.26 * len(shown),
    )


def _kinds(folder: Path, verdicts: Sequence[BlameVerdict]) -> dict[str, str]:
    """Episode → what was wrong with its first decisive move."""
    first = {one.episode: one.named[0].place for one in verdicts if one.named}
    kinds = {}
    for end, batches in finished.batches(*storage.journals(folder), episodes={*first}):
        moves = [move for batch in batches for move in batch]
        agent, index = first[end["e"]]
        own = [move for move in moves if move.agent == agent]
        agents = frozenset(move.agent for move in moves)
        # Of several moves together, one may come about only by another: the episode as it was has no such move.
        kinds[end["e"]] = kind_of(own[index], agents) if index < len(own) else "after another move"
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


def _ways(by: str, verdict: BlameVerdict, roles: dict[str, str], kinds: dict[str, str]) -> list[str]:
    """What an episode counts for: that of its first decisive move; every agent of one."""
    if by == "failure":
        return [kinds[verdict.episode]]
    if by == "round":
        return [str(verdict.named[0].round)]
    if by == "turn":
        return [verdict.named[0].turn]
    if by == "agent":
        return [*verdict.agents]
    return [*dict.fromkeys(roles.get(agent, "default") for agent in verdict.agents)]
