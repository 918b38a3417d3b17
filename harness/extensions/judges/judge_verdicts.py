"""What judges gave → the numbers of the episodes that they judged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness import storage
from harness.api import Facts, Metric
from harness.api.errors import DataError
from harness.api.run_files import META, SCORES
from harness.extensions.judges.judge_task import COUNTS, RATING, JudgedMetric, read_lines
from harness.tables import EpisodeScore, load_scores
from harness.tables.cost import spent_by_model

from .judge_plans import CASES, FOLDER, Judging, folder_name
from .judge_records import usable

Numbers = dict[str, float | None]


def records(judging: Judging, run: Path) -> dict[str, Facts]:
    """What run.json says about a judge that has judged all: metric → its record. Raises `DataError`."""
    folder, metric = run / judging.folder, judging.metric
    counts = dict.fromkeys(("answers", "unanswered", "left_out", "replies", "missing", "failed"), 0)
    for line in _lines(folder / CASES):
        counts["unanswered" if line["answer"] is None else "answers"] += 1
        counts["left_out"] += bool(line.get("left_out"))
    each = judging.judges * metric.repeats
    for score in scores_of(folder):
        counts["missing"] += int(score.number("missing") or 0) if score.error is None else each
        counts["failed"] += score.error is not None and not score.unanswered
    counts["replies"] = counts["answers"] * each
    counts |= spent_in(folder)
    record = {
        "folder": judging.folder,
        "judge": judging.plan.model,
        "panel": judging.models,
        "policy": not judging.plan.engines,
        "prompt": metric.prompt,
        "scale": [*metric.scale],
        "digest": judging.digest,
        "right": judging.right,
        **counts,
    }
    return dict.fromkeys(judging.metrics, record)


def with_verdicts(
    scores: Sequence[EpisodeScore], metrics: Mapping[str, Metric], recorded: Mapping[str, Facts], run: Path
) -> list[EpisodeScore]:
    """The scores with the numbers of judges, from the folders that run.json names. Raises `DataError`."""
    recorded = usable(recorded)
    verdicts: dict[str, dict[str, Numbers]] = {}
    judged: dict[str, JudgedMetric] = {}
    for name, metric in metrics.items():
        if isinstance(metric, JudgedMetric) and name in recorded:
            judged[name] = metric
            folder = str(recorded[name].get("folder"))
            if folder not in verdicts:
                verdicts[folder] = _verdicts(_inside(run, folder), metric)
    if not judged:
        return list(scores)
    complete = []
    for score in scores:
        numbers = dict(score.numbers)
        for name, metric in judged.items():
            own = verdicts[str(recorded[name]["folder"])].get(score.id, {})
            numbers[name] = own.get(metric.of) if score.error is None else None
        complete.append(replace(score, numbers=numbers))
    return complete


def _inside(run: Path, folder: str) -> Path:
    """The folder of a judge's run. Raises `DataError` for a path that run.json has from elsewhere."""
    parts = Path(folder).parts
    if len(parts) != 2 or parts[0] != FOLDER or parts[1] in (".", ".."):
        raise DataError(f"run.json names {folder!r:.80} as the folder of a judge, which is not a folder of {FOLDER}/")
    return run / folder


def _verdicts(folder: Path, metric: JudgedMetric) -> dict[str, Numbers]:
    """Episode → its numbers: of its answers' ratings the mean of those that there are, of counts the sum."""
    by_case = {score.case: score for score in scores_of(folder)}
    ratings = (RATING, *metric.criteria)
    verdicts: dict[str, Numbers] = {}
    for episode, answers in _by_episode(folder / CASES, by_case):
        numbers: Numbers = {}
        for name in ratings:
            lowest = metric.scale[0] if metric.unanswered == "lowest" else None
            values = [lowest if score is None else score.number(name) for score in answers]
            there = [value for value in values if value is not None]
            numbers[name] = sum(there) / len(there) if there else None
        asked = [score for score in answers if score is not None]
        for name in COUNTS:
            counts = [n for score in asked if (n := score.number(name)) is not None]
            if name == "missing":  # what it was asked, and did not answer at all
                counts += [score.unanswered for score in asked if score.unanswered]
            numbers[name] = sum(counts) if counts or name == "missing" else None
        verdicts[episode] = numbers
    return verdicts


def costs(recorded: Mapping[str, Facts], run: Path) -> dict[str, dict[str, dict[str, float]]]:
    """Metric → model → what its judge's replies are billed by, as `spent_by_model`; of metrics that one judge gave, the
    first. Only of judges that are models. Raises `DataError`."""
    first = {str(record["folder"]): name for name, record in reversed(usable(recorded).items())}
    spent = {name: spent_by_model(scores_of(_inside(run, folder))) for folder, name in first.items()}
    return {name: counts for name, counts in spent.items() if counts}


def spent_in(folder: Path) -> dict[str, int]:
    """Calls and tokens of a judge's run."""
    scores = scores_of(folder)
    tokens = {name: sum(int(s.number(name) or 0) for s in scores) for name in ("input_tokens", "output_tokens")}
    return {"calls": storage.JournalState(*storage.journals(folder), only=()).calls, **tokens}


def scores_of(folder: Path) -> list[EpisodeScore]:
    """What judges gave; nothing where there was nothing to rate."""
    file = folder / SCORES
    return load_scores(file) if file.exists() else []


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """The answers as they were written down. Raises `DataError`."""
    for place, line in read_lines(path):
        if not (isinstance(line.get("id"), str) and isinstance(line.get("episode"), str) and "answer" in line):
            raise DataError("not an answer that was judged", place=place)
        yield line


def _by_episode(cases: Path, by_case: Mapping[str, EpisodeScore]) -> Iterator[tuple[str, list[EpisodeScore | None]]]:
    """(episode, what the judge's run has for each of its answers; None: nothing was answered)."""
    episode, answers = "", list[EpisodeScore | None]()
    for line in _lines(cases):
        if line["episode"] != episode:
            if answers:
                yield episode, answers
            episode, answers = str(line["episode"]), []
        if line["answer"] is None:
            answers.append(None)
        elif (score := by_case.get(str(line["id"]))) is not None:
            answers.append(score)
    if answers:
        yield episode, answers


def missing_in_words(run: Path, metrics: Iterable[Sequence[str]]) -> Iterable[str]:
    """Lines on judges that have not rated all answers of a run: how many ratings are missing.

    `metrics`: of each such judge the names of its metrics.
    """
    for names in metrics:
        rated, planned = 0, 0
        for file in run.glob(f"{FOLDER}/{folder_name(names[0])}-*/{META}"):
            rated = max(rated, len(storage.JournalState(*storage.journals(file.parent)).ends))
            planned = max(planned, int(storage.read_json(file).get("planned") or 0))
        what = f"{rated:,} of {planned:,} answers are rated, {planned - rated:,} ratings are missing"
        if planned <= rated:
            what = "no answer is rated, all ratings are missing"
        yield f"{', '.join(names)}: {what}. The command that played the run goes on."
