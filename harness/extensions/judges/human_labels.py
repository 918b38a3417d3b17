"""How far a judge agrees with people, and judges with each other."""

from __future__ import annotations

import csv
import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from harness import storage
from harness.api.errors import DataError, Place, near
from harness.api.printable import clean_name
from harness.extensions.analysis.paired import paired
from harness.extensions.judges.agreement import alpha, bootstrapped, kappa, weighted_kappa
from harness.extensions.judges.judge_task import RATING, judge_names, read_lines
from harness.extensions.statistics.components import components
from harness.storage import finished_episodes
from harness.tables import Cell, Column, EpisodeScore, Row, Table
from harness.tables.scores import cluster_of
from harness.tables.table import NumberForm

MAX_RATERS = 100
_TRUE, _FALSE = ("true", "yes"), ("false", "no")


@dataclass(frozen=True)
class HumanLabel:
    """What a person gave an episode: the columns of a line, and where it is."""

    rater: str
    value: float
    about: Mapping[str, str]
    place: Place


def read_labels(path: Path) -> Iterator[HumanLabel]:
    """The lines of a CSV or JSON-lines file.

    Columns: `label` (a number, or true, false, yes, no); `episode`, or `case` with `condition` and `repeat` where the
    run has several; `rater`, where several people gave labels. Lines with an empty label are left out.

    Raises:
        DataError: with the place.
    """
    for place, row in _rows(path):
        if "label" not in row or not ("episode" in row or "case" in row):
            hint = f"Columns there: {', '.join(map(str, row))}."
            raise DataError("a label needs the columns label, and episode or case", place=place, hint=hint)
        value = _number(row["label"], place)
        if value is not None:
            about = {k: str(row[k]) for k in ("episode", "case", "condition", "repeat") if row.get(k) not in (None, "")}
            yield HumanLabel(clean_name(str(row.get("rater") or "label"))[:60], value, about, place)


def _rows(path: Path) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    if path.suffix != ".csv":
        yield from read_lines(path)
        return
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            for row in reader:
                yield Place(str(path), reader.line_num, 1), {k.strip(): v for k, v in row.items() if isinstance(k, str)}
    except (OSError, ValueError, csv.Error) as error:
        raise DataError(f"cannot be read: {error}", place=Place(str(path))) from None


def _number(value: Any, place: Place) -> float | None:
    if value is None or value == "":
        return None
    if isinstance(value, bool) or str(value).strip().lower() in (*_TRUE, *_FALSE):
        return float(value is True or str(value).strip().lower() in _TRUE)
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        hint = "A label is a number, or true or false."
        raise DataError(f"{str(value)[:40]!r} is not a number", place=place, hint=hint)
    return number


def by_episode(labels: Iterable[HumanLabel], scores: Sequence[EpisodeScore]) -> dict[str, dict[str, float]]:
    """Rater → episode → label. Raises `DataError` for a label of no episode or of several, and for a second one."""
    episodes = {score.id for score in scores}
    by_case: dict[str, list[EpisodeScore]] = {}
    for score in scores:
        by_case.setdefault(score.case, []).append(score)
    by_rater: dict[str, dict[str, float]] = {}
    for label in labels:
        episode = label.about.get("episode")
        if episode is None:
            matching = [s.id for s in by_case.get(label.about.get("case", ""), ()) if _fits(s, label.about)]
            if len(matching) > 1:
                hint = "Add the columns condition and repeat, or episode."
                first = ", ".join(matching[:3])
                raise DataError(f"{len(matching)} episodes have this case: {first}, …", place=label.place, hint=hint)
            episode = matching[0] if matching else label.about.get("case", "")
        if episode not in episodes:
            hint = near(episode, list(by_case) if "episode" not in label.about else episodes)
            raise DataError(f"the run has no episode {episode!r:.80}", place=label.place, hint=hint)
        own = by_rater.setdefault(label.rater, {})
        if episode in own:
            hint = "Several people have a column `rater`."
            raise DataError(f"{label.rater!r} gave {episode!r:.80} two labels", place=label.place, hint=hint)
        own[episode] = label.value
        if len(by_rater) > MAX_RATERS:
            raise DataError(f"more than {MAX_RATERS} raters", place=label.place)
    return by_rater


def _fits(score: EpisodeScore, about: Mapping[str, str]) -> bool:
    repeat = about.get("repeat", score.id.rpartition("/")[2])
    return about.get("condition", score.condition) == score.condition and score.id.rpartition("/")[2] == repeat


def agreement_table(
    metric: str,
    judge: str,
    scores: Sequence[EpisodeScore],
    labels: Mapping[str, Mapping[str, float]],
    cluster: Sequence[str] = (),
) -> Table:
    """A row for each person against the judge; where there are several, people among themselves and all together."""
    numbers = {score.id: number for score in scores if (number := score.number(metric)) is not None}
    observed = {score.id: (score.model, cluster_of(score, cluster)) for score in scores}
    rows = []
    for rater, values in labels.items():
        both = [episode for episode in values if episode in numbers]
        pairs = [(numbers[episode], values[episode]) for episode in both]
        rows.append(
            _row(f"judge and {rater}", pairs, [list(pair) for pair in pairs], [observed[episode] for episode in both])
        )
    if len(labels) > 1:
        episodes = dict.fromkeys(episode for values in labels.values() for episode in values)
        units = [[by[episode] for by in labels.values() if episode in by] for episode in episodes]
        rows.append(_row("people among themselves", [], units))
        mine = [[numbers[e]] if e in numbers else [] for e in episodes]
        rows.append(_row("judge and people", [], [[*unit, *own] for unit, own in zip(units, mine, strict=True)]))
    together = f"episodes with equal {', '.join(cluster)}" if cluster else "repeats of a case"
    unrated = len({episode for by in labels.values() for episode in by} - numbers.keys())
    notes = [
        "Kappa: Cohen's, of equal ratings; weighted: by the square of the difference, in brackets its 95 % bootstrap "
        "interval; alpha: Krippendorff's, of squared differences. 1 is perfect agreement, 0 what chance gives.",
        "Judge − person: the mean difference, in brackets its 95 % interval. Intervals take "
        f"{together} as one observation.",
    ]
    if unrated:
        notes.append(f"{unrated} labelled episodes have no {metric}: they are in no pair.")
    return _table(f"Agreement of {metric} ({judge}) with people", rows, tuple(notes))


def panel_table(metric: str, names: Sequence[str], folder: Path, of: str = RATING) -> Table | None:
    """How far the judges of a panel agree, from the journal of their run; None if there is one judge.

    `names`: the judges' models, in order.
    """
    if len(names) < 2:
        return None
    units: list[list[float]] = []
    means: dict[str, list[float]] = {}
    answers: list[tuple[str, str, float]] = []
    for end, batches in finished_episodes.batches(*storage.journals(folder)):
        if end["error"] is None:
            by_judge: dict[str, list[float]] = {}
            for move in (move for batch in batches for move in batch):
                value = _rating(move.action, of)
                if value is not None:
                    by_judge.setdefault(move.agent, []).append(value)
            unit = {judge: sum(values) / len(values) for judge, values in by_judge.items()}
            answers += [(end["e"], judge, value) for judge, values in by_judge.items() for value in values]
            units.append(list(unit.values()))
            for judge, value in unit.items():
                means.setdefault(judge, []).append(value)
    called = zip(names, (means.get(agent) for agent in judge_names(len(names))), strict=True)
    listed = ", ".join(f"{name} {sum(values) / len(values):.2f}" for name, values in called if values)
    notes = (
        f"Mean ratings: {listed}.",
        "Answers that fewer than two judges rated count for nothing.",
        *_what_varies(answers),
    )
    return _table(f"Agreement of the judges of {metric}", [_row("judges among themselves", [], units)], notes)


def _what_varies(answers: Sequence[tuple[str, str, float]]) -> Iterable[str]:
    """How much of what varies in ratings goes with the answer, and with the judge. `answers`: answer, judge, rating."""
    by_answer, by_judge = ([one[i] for one in answers] for i in range(2))
    ratings = [rating for _, _, rating in answers]
    found = ratings and components(
        ratings, [0] * len(ratings), {"answers": by_answer, "judges": by_judge}, by_answer, intervals=False
    )
    if found and not found.alike and (shares := {name: found.share(name) for name in found.parts}):
        parts = ", ".join(f"{name} {100 * (share or 0):.0f} %" for name, share in shares.items())
        rest = f"{100 * (found.share() or 0):.0f} %"
        yield f"Of the variance of ratings: {parts}; {rest} is a judge's own view of an answer, and chance."


def _rating(action: Any, of: str) -> float | None:
    values = list(action.values()) if isinstance(action, Mapping) else [action]
    if isinstance(action, Mapping) and of in action:
        values = [action[of]]
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    return sum(numbers) / len(numbers) if numbers else None


def _row(
    name: str,
    pairs: Sequence[tuple[float, float]],
    units: Sequence[Sequence[float]],
    clusters: Sequence[Hashable] = (),
) -> Row:
    """`clusters`: of each pair what is one observation."""
    n = sum(len(unit) > 1 for unit in units)
    ends = bootstrapped(pairs, weighted_kappa, clusters)
    low, high = ends or (None, None)
    bias = paired([[(cluster, a - b) for cluster, (a, b) in zip(clusters, pairs, strict=True)]])
    apart = bias.interval or (None, None)
    cells = (
        Cell(n, n=n),
        Cell(sum(a == b for a, b in pairs) / n if pairs else None, n=n),
        Cell(kappa(pairs), n=n),
        Cell(weighted_kappa(pairs), None, n, low=low, high=high),
        Cell(alpha(units), n=n),
        Cell(bias.difference, None, n, low=apart[0], high=apart[1]),
    )
    return Row({"who": name}, (name,), cells)


_COLUMNS: Final[dict[str, NumberForm]] = {
    "Rated by both": "count",
    "Equal": "plain",
    "Kappa": "plain",
    "Weighted kappa": "quantity",
    "Alpha": "plain",
    "Judge − person": "quantity",
}


def _table(title: str, rows: Sequence[Row], notes: tuple[str, ...]) -> Table:
    """A table without the columns in which no row has a number."""
    filled = [i for i in range(len(_COLUMNS)) if i == 0 or any(row.cells[i].value is not None for row in rows)]
    names = [*_COLUMNS]
    columns = tuple(Column({"statistic": names[i]}, (names[i],), form=_COLUMNS[names[i]]) for i in filled)
    rows = [replace(row, cells=tuple(row.cells[i] for i in filled)) for row in rows]
    return Table(title, ("who",), ("statistic",), columns, tuple(rows), ("Who",), error="interval", notes=notes)
