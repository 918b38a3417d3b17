"""Which of two answers a judge prefers: both orders are asked, and what depends on the order alone is a tie."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.api import Engine
from harness.api.errors import DataError
from harness.config.plan import Plan
from harness.extensions.analysis.paired import MIN_PAIRS, paired
from harness.extensions.judges.judge_task import answer_text, read_lines, shorten
from harness.tables import Cell, Column, EpisodeScore, Row, Table, text
from harness.tables.stats import wilson

from .judge_cases import AnsweredEpisode, Line, answered, question_of, reference_of
from .judge_plans import CASES, COUNTED, judge_plan
from .judge_verdicts import scores_of

Key = tuple[Any, ...]


@dataclass(frozen=True)
class PairSide:
    """One of the two: a run, or its episodes whose labels have these values.

    Attributes:
        name: what the table calls it; no judge sees it.
        folder: of the run.
        plan: the run's plan.
        where: label → value, as text.
        label: the label in which the sides differ, if they are of one run.
    """

    name: str
    folder: Path
    plan: Plan
    where: Mapping[str, str]
    label: str | None = None

    def episodes(self) -> Iterator[tuple[Key, AnsweredEpisode]]:
        """(what the same episode of the other side has too, episode)."""
        for episode in answered(self.plan, self.folder):
            labels = {**episode.condition.labels, **episode.case.labels}
            if all(text(labels.get(label)) == value for label, value in self.where.items()):
                others = {name: text(value) for name, value in labels.items() if name != self.label}
                where = episode.condition.id if self.label is None else json.dumps(others, sort_keys=True)
                yield (where, episode.case.id, episode.repeat), episode


def pairs_plan(judged: Plan, judge: Engine, prompt: str, repeats: int, parse_retries: int, sampling: Any) -> Plan:
    """The plan in which a judge chooses. Errors as `harness.config.resolve.plan`."""
    counts = [{"use": "grade", "of": of, "name": of} for of in ("first", "second", "tie", "missing")]
    data = {
        "name": f"{judged.spec.name}-pairs"[:120],
        "description": f"Which of two answers to the questions of {judged.spec.name} a judge prefers.",
        "task": {"use": "judging_pairs", "file": CASES},
        "protocol": {"use": "single", "repeats": repeats, "parse_retries": parse_retries},
        "prompts": prompt,
        "agents": {"default": "model"},
        "metrics": [*counts, *COUNTED],
        "generation_kwargs": sampling,
        "seed": judged.seed,
    }
    return judge_plan(data, judged, judge, (), None)


def pair_lines(a: PairSide, b: PairSide, max_chars: int, reference: bool) -> Iterator[Line]:
    """Two lines for every pair, one an order; one line without an answer where there is nothing to choose.

    Answers of A wait in a temporary file, so that no more than one pair is in memory.
    """
    with tempfile.TemporaryFile() as waiting:
        places: dict[Key, int] = {}
        for key, line in _side_lines(a, max_chars, reference):
            places[key] = waiting.tell()
            waiting.write(json.dumps(line).encode() + b"\n")
        for key, two in _side_lines(b, max_chars, reference):
            if key not in places:
                continue
            waiting.seek(places[key])
            yield from _both_orders(json.loads(waiting.readline()), two)


def _side_lines(side: PairSide, max_chars: int, reference: bool) -> Iterator[tuple[Key, Line]]:
    for key, episode in side.episodes():
        question, cut = shorten(question_of(episode.condition, episode.case), max_chars)
        facts: Line = {"episode": episode.id, "case": episode.case.id, "question": question, "reference": None}
        if reference:
            facts["reference"], more = shorten(reference_of(episode.case), max_chars)
            cut += more
        for i, action in enumerate(episode.answers):
            answer, more = (None, 0) if action is None else shorten(answer_text(action), max_chars)
            yield (*key, i), {**facts, "number": i, "answer": answer, "left_out": cut + more}


def _both_orders(one: Line, two: Line) -> Iterator[Line]:
    name = f"{one['episode']}#{one['number']}"
    about = {"pair": name, "case": one["case"], "episodes": [one["episode"], two["episode"]]}
    first, second = one["answer"], two["answer"]
    if one["question"] != two["question"]:
        yield {"id": name, **about, "answer": None, "without_judge": "unlike"}
    elif first is None or second is None or first == second:
        side = "tie" if first == second else "A" if second is None else "B"
        yield {"id": name, **about, "answer": None, "without_judge": side}
    else:
        facts = {
            "question": one["question"],
            "reference": one["reference"],
            "left_out": one["left_out"] + two["left_out"],
        }
        for order, texts in (("AB", (first, second)), ("BA", (second, first))):
            yield {"id": f"{name}#{order}", **about, "order": order, **facts, "first": texts[0], "second": texts[1]}


@dataclass
class Verdicts:
    """What a judge made of the pairs.

    Attributes:
        values: (case, 1 where B is better, −1 where A is, 0 for a tie) of every pair with a verdict.
        kinds: how many pairs came to which end.
        first, second: replies, over both orders, that preferred what stood first, or second.
        missing, replies: replies that could not be read, and all that were asked for.
    """

    values: list[tuple[str, float]]
    kinds: dict[str, int]
    first: int = 0
    second: int = 0
    missing: int = 0
    replies: int = 0


_KINDS = ("A", "B", "tie", "order", "missing", "default", "same", "unlike")


def verdicts_of(folder: Path, repeats: int) -> Verdicts:
    """Read a judge's run of pairs.

    An answer is better if it is preferred in both orders. If the two orders disagree, or one of them is a tie, the pair
    is a tie (Zheng et al., 2023, "Judging LLM-as-a-judge with MT-Bench and Chatbot Arena", Section 3.4). If the judge
    gave nothing readable in one of them, the pair has no verdict.
    """
    scores = {score.case: score for score in scores_of(folder)}
    result = Verdicts([], dict.fromkeys(_KINDS, 0))
    waiting: dict[str, float | None] = {}
    for place, line in read_lines(folder / CASES):
        if not isinstance(line.get("case"), str) or ("order" in line) == ("without_judge" in line):
            raise DataError("not a pair that was judged", place=place)
        if "order" not in line:
            _without_judge(result, line)
            continue
        score = scores.get(str(line.get("id")))
        waiting[line["order"]] = _order(result, score, repeats)
        if line["order"] == "BA":
            ab, ba = waiting.get("AB"), waiting.get("BA")
            kind, value = _pair(ab, None if ba is None else -ba)
            result.kinds[kind] += 1
            if value is not None:
                result.values.append((str(line["case"]), value))
            waiting = {}
    return result


def _without_judge(result: Verdicts, line: Line) -> None:
    side = str(line["without_judge"])
    if side == "unlike":
        result.kinds["unlike"] += 1
        return
    result.values.append((str(line["case"]), {"A": -1.0, "B": 1.0}.get(side, 0.0)))
    result.kinds["same" if side == "tie" else "default"] += 1
    result.kinds[side if side in ("A", "B") else "tie"] += 1


def _order(result: Verdicts, score: EpisodeScore | None, repeats: int) -> float | None:
    """1 where the second answer is preferred in this order, −1 where the first is, 0 for neither; None: unreadable."""
    counts = [int((score.number(name) if score else None) or 0) for name in ("first", "second", "tie")]
    result.first, result.second = result.first + counts[0], result.second + counts[1]
    result.replies += repeats
    result.missing += repeats - sum(counts)
    return float((counts[1] > counts[0]) - (counts[1] < counts[0])) if sum(counts) else None


def _pair(ab: float | None, ba: float | None) -> tuple[str, float | None]:
    """(how a pair ended, its value); both orders as 1 for B, −1 for A."""
    if ab is None or ba is None:
        return "missing", None
    if ab == ba:
        return {1.0: "B", -1.0: "A"}.get(ab, "tie"), ab
    return ("order" if ab and ba else "tie"), 0.0


def pair_tables(a: PairSide, b: PairSide, result: Verdicts, record: Mapping[str, Any]) -> list[Table]:
    """Who is preferred, with an interval and a test; and how far the judge can be trusted."""
    kinds, n = result.kinds, len(result.values)
    ties = n - kinds["A"] - kinds["B"]
    test = paired([[(case, value / 2) for case, value in result.values]], 0.5)
    share = None if test.difference is None else 0.5 + test.difference
    ends = tuple(min(1.0, max(0.0, 0.5 + end)) for end in test.interval) if test.interval else (None, None)
    cells = {
        "Pairs": Cell(n, n=n),
        f"{a.name} better": Cell(kinds["A"], n=n),
        f"{b.name} better": Cell(kinds["B"], n=n),
        "Ties": Cell(ties, n=n),
        "No verdict": Cell(kinds["missing"], n=n),
        f"Preference for {b.name}": Cell(share, None, n, low=ends[0], high=ends[1]),
        "p": Cell(test.pvalue, n=n),
    }
    forms = ("count",) * 5 + ("quantity", "pvalue")
    notes = [
        f"Preference: the share of pairs in which {b.name} is better, ties counting half; in brackets its 95 % "
        "interval. p: exact two-sided sign-flip test; repeats of a case are one observation.",
        "Each pair is asked in both orders; an answer is better if it is preferred in both.",
    ]
    if kinds["order"]:
        notes.append(f"{kinds['order']} of the {ties} ties are pairs in which the order alone decided.")
    if kinds["same"]:
        notes.append(
            f"{kinds['same']} of the {ties} ties are equal answers, or none on both sides; no judge was asked."
        )
    if kinds["default"]:
        notes.append(
            f"In {kinds['default']} pairs one side gave no answer and the other is better; no judge was asked."
        )
    if kinds["unlike"]:
        notes.append(f"{kinds['unlike']} pairs are left out: their questions are not the same.")
    if 0 < test.clusters < MIN_PAIRS:
        notes.append(
            f"{test.clusters} cases cannot show a difference: {MIN_PAIRS} must differ before p can be below 0.05."
        )
    decided = result.first + result.second
    bias = wilson(result.first, decided)
    asked = kinds["missing"] + n - kinds["same"] - kinds["default"]
    agreeing = asked - kinds["missing"] - kinds["order"]
    trust = {
        "Replies": Cell(result.replies, n=result.replies),
        "Without a choice": Cell(result.missing, n=result.replies),
        "Orders decide alone": Cell(
            kinds["order"] / (asked - kinds["missing"]) if agreeing + kinds["order"] else None, n=asked
        ),
        "First answer preferred": Cell(
            result.first / decided if decided else None,
            None,
            decided,
            low=bias[0] if bias else None,
            high=bias[1] if bias else None,
        ),
        "Calls": Cell(record["calls"], n=1),
        "Input tokens": Cell(record["input_tokens"], n=1),
        "Output tokens": Cell(record["output_tokens"], n=1),
    }
    trust_notes = [
        "First answer preferred: the share of all choices, over both orders, that fell on what stood first. Without "
        "position bias it is 0.5; in brackets its 95 % Wilson interval.",
    ]
    trust_forms = ("count", "count", "quantity", "quantity", "count", "count", "count")
    return [
        _table(f"{b.name} against {a.name}, judged in pairs", record["judge"], cells, forms, notes),
        _table("How the judge chose", record["judge"], trust, trust_forms, trust_notes),
    ]


def _table(title: str, judge: str, cells: Mapping[str, Cell], forms: Any, notes: list[str]) -> Table:
    return Table(
        title=title,
        row_labels=("judge",),
        column_labels=("statistic",),
        columns=tuple(Column({"statistic": n}, (n,), form=form) for n, form in zip(cells, forms, strict=True)),
        rows=(Row({"judge": judge}, (judge,), tuple(cells.values())),),
        row_names=("Judge",),
        error="interval",
        notes=tuple(notes),
    )
