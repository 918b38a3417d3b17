"""Whether agents know what they know: stated confidence against the share of right answers.

A reliability diagram with ten bins of equal width and the expected calibration error: the mean over all answers of the
distance between a bin's accuracy and its mean confidence (Guo et al., 2017, eq. 3).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from itertools import chain
from typing import TYPE_CHECKING

from harness import storage
from harness.api import Action, Case, Move, Task
from harness.api.errors import DataError
from harness.config.plan import episode_id
from harness.engines.likelihoods import shares
from harness.extensions.charts.style import FAINT, guide, label, labels, legend, look
from harness.extensions.panels.answer_with_confidence import split_confidence
from harness.extensions.panels.panels import Panel, candidate
from harness.extensions.panels.questions import is_right, score_of
from harness.storage import finished_episodes
from harness.tables import text
from harness.tables.scores import cluster_of
from harness.tables.stats import interval

from .chart import Chart
from .sources import ChartOptions, ChartRun, Material
from .tally import confidence

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BINS = 10
_MIN_ANSWERS = 5


class _Bins:
    """Counts of one series: answers, their confidences' sum, right ones, bin by bin.

    Agents of an episode hear each other, and repeats have the same question: `observed` has whether each answer is
    right with what it is one observation with.
    """

    def __init__(self) -> None:
        self.n, self.stated, self.right = [0] * BINS, [0.0] * BINS, [0] * BINS
        self.observed: list[list[tuple[Hashable, float]]] = [[] for _ in range(BINS)]

    def add(self, stated: float, right: bool, cluster: Hashable) -> None:
        i = min(BINS - 1, int(stated * BINS))
        self.n[i] += 1
        self.stated[i] += stated
        self.right[i] += right
        self.observed[i].append((cluster, float(right)))

    @property
    def error(self) -> float:
        return math.fsum(abs(r - s) for r, s in zip(self.right, self.stated, strict=True)) / sum(self.n)

    def filled(self) -> Iterator[tuple[int, float, float, int]]:
        """(bin, mean confidence, share right, answers) of bins with answers."""
        for i, n in enumerate(self.n):
            if n:
                yield i, self.stated[i] / n, self.right[i] / n, n


def calibration(material: Material, choice: ChartOptions) -> Chart:
    """The chart. Raises `DataError` if no agent states a confidence, or answers cannot be graded one by one."""
    stated = [sum(tally.stated.values()) for tally in material.tallies]
    if not any(stated):
        raise DataError("no calibration: no agent states a confidence")
    agents = dict.fromkeys(agent for tally in material.tallies for agent in tally.stated)
    by = choice.by
    if by is None:
        by = "model" if len(material.models) > 1 or not 1 < len(agents) <= _MIN_ANSWERS else "agent"
    elif by != "agent":
        material.way(by)
    series: dict[str, _Bins] = {}
    scored = iter(material.scores)
    for i, source in enumerate(material.sources):
        together = source.run.headline.table.cluster if source.run.headline else ()
        scores = {own.id: shown for own, shown in zip(source.run.scores, scored, strict=False)}
        for episode, agent, number, right in _answers(source) if stated[i] else ():
            if (score := scores.get(episode)) is not None:
                value = agent if by == "agent" else text(score.labels.get(by))
                cluster = (score.model, *cluster_of(score, together))
                series.setdefault(value, _Bins()).add(number, right, cluster)
    if not series:
        raise DataError("no calibration: no finished episode has an answer with a confidence")
    names = {value: value if by in ("model", "agent") else material.shown(value) for value in series}

    def paint(figure: Figure) -> None:
        axis, below = figure.subplots(2, 1, sharex=True, height_ratios=(4, 1))
        guide(axis)
        axis.plot([0, 1], [0, 1], color=FAINT, linestyle="--", linewidth=0.9, zorder=1)
        shown, cuts = [], labels(names.values(), 24)
        for i, bins in enumerate(series.values()):
            how = look(i)
            points = list(bins.filled())
            ends = [interval([bins.observed[b]], (0, 1)) or (y, y) for b, _, y, _ in points]
            reach = [[max(0.0, y - low) for (_, _, y, _), (low, _) in zip(points, ends, strict=True)],
                     [max(0.0, high - y) for (_, _, y, _), (_, high) in zip(points, ends, strict=True)]]  # fmt: skip
            shown.append(f"{cuts[i]} (ECE {bins.error:.2f})")
            axis.errorbar([x for _, x, _, _ in points], [y for _, _, y, _ in points], yerr=reach, elinewidth=0.8,
                          label=shown[-1], **how)  # fmt: skip
            width = 0.9 / BINS / len(series)
            below.bar([(b + 0.05) / BINS + (i + 0.5) * width for b, _, _, _ in points], [n for _, _, _, n in points],
                      width, color=how["color"])  # fmt: skip
        axis.set_ylim(-0.03, 1.03)
        axis.set_xlim(-0.02, 1.02)
        axis.set_ylabel("Right answers, share")
        below.set_ylabel("Answers")
        below.set_xlabel("Stated confidence")
        legend(axis, shown)

    return Chart(
        "calibration",
        "Stated confidence and right answers",
        f"Share of right answers against stated confidence, by {material.shown(by)}, in {BINS} bins; points on the "
        "dashed line are calibrated, points below it overconfident. Bars are 95 % intervals, with the "
        "answers of a case as one observation; below stand the answers a bin. "
        "Expected calibration error: "
        + ", ".join(f"{label(names[value])} {bins.error:.3f}" for value, bins in series.items())
        + ".",
        (material.shown(by), "confidence from", "to", "mean confidence", "share right", "answers", "observations"),
        tuple(
            (names[value], b / BINS, (b + 1) / BINS, x, y, n, len({cluster for cluster, _ in bins.observed[b]}))
            for value, bins in series.items()
            for b, x, y, n in bins.filled()
        ),
        paint,
        height=3.2 + 0.12 * len(series),
    )


def _answers(source: ChartRun) -> Iterator[tuple[str, str, float, bool]]:
    """(episode, agent, confidence, whether the answer is right) of every answer with a confidence: one that it states,
    or the probability that log-likelihoods give it among the options.

    Raises:
        DataError: where grading an answer runs it, or the task does not grade single answers.
        PluginError: likewise.
    """
    games: dict[str, tuple[Task, Case]] = {}
    for condition, case, repeat in source.plan().episodes():
        games[episode_id(condition, case, repeat)] = (condition.task, case)
    verdicts: dict[tuple[int, str, str], bool] = {}
    answers: dict[tuple[str, str], Action] = {}  # of agents whose confidence is a turn of its own
    for _, line in chain.from_iterable(map(finished_episodes.confirmed, storage.journals(source.folder))):
        if line.get("k") != "move" or (game := games.get(line["e"])) is None:
            continue
        (task, case), action, key = game, line.get("a"), (line["e"], line["s"])
        answer, number, _ = split_confidence(action)
        number = confidence(action) if number is None else number
        if (options := shares(action)) is None:
            answers[key] = answer
        elif line["t"] == "confidence":
            answer, found = answers.get(key), Panel.believed(task, case, [Move(line["s"], line["t"], action)])
            number = found.get(line["s"], {}).get(candidate(task, case, answer) or "")
        elif len(options) > 1:
            number = max(options)
        if number is None:
            continue
        if task.grading == "executes":
            raise DataError("no calibration: grading an answer of this task runs the program in it")
        score_of(task)
        verdict = (id(task), case.id, repr(answer))
        if verdict not in verdicts:
            verdicts[verdict] = answer is not None and is_right(task, case, answer)
        yield line["e"], line["s"], number, verdicts[verdict]
