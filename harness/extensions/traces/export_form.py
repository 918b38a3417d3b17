"""The form of export `otel`: a finished run as a file of OTLP/JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from harness.evaluation.run import Run
from harness.extensions.exports.form import ExportForm
from harness.transcripts.view_api import RecordedTurn, Transcript

from .content import Message
from .episode_spans import EpisodeSpans, PlayedTurn
from .otlp_json import lines
from .seat_facts import Players
from .span import DERIVED, OPERATION, TOOL, RunSpans, Span, nanoseconds

FILE: Final = "traces.jsonl"


def write_run(run: Run, folder: Path, trace_content: bool = False) -> str:
    """Write the run's spans, one episode in memory at a time; returns what was written, in words.

    Args:
        run: a finished run.
        folder: exists.
        trace_content: whether to show what models read and wrote.

    Raises:
        DataError: the journal is damaged.
        OSError: the file cannot be written.
    """
    counts: Counter[str] = Counter()
    ids = RunSpans(run.meta)
    with (folder / FILE).open("x", encoding="utf-8") as file:
        for line in lines(ids, _spans(run, ids, trace_content, counts)):
            file.write(line + "\n")
    text = f"{counts['spans']:,} spans of {counts['episodes']:,} episodes, trace {ids.trace}"
    if counts["derived"]:
        text += f"; {counts['derived']:,} have times that no clock measured (mas_eval.time.derived)"
    return text


def _spans(run: Run, ids: RunSpans, content: bool, counts: Counter[str]) -> Iterator[Span]:
    """All spans of the run, its own last."""
    reader = run.reader()
    players = Players(run.meta, reader.plan)
    last = ids.start
    for transcript in reader:
        counts["episodes"] += 1
        for span in episode_spans(ids, players, transcript, content):
            counts["spans"] += 1
            is_tool = span.attributes.get(OPERATION) == TOOL  # no clock measures those
            counts["derived"] += DERIVED in span.attributes and not is_tool
            last = max(last, span.end)
            yield span
    counts["spans"] += 1
    end = run.meta.get("end")
    yield ids.own(max(last, nanoseconds(str(end)) if end else last))


def episode_spans(ids: RunSpans, players: Players, transcript: Transcript, content: bool) -> Iterator[Span]:
    """The spans of an episode that is read back, its own last."""
    made = EpisodeSpans(ids, transcript.id, players, players.seats_of(transcript), content=content)
    said: dict[str, list[Message]] = {}
    for turn in transcript.turns:
        if turn.move is not None:
            yield from made.turn(_played(turn, said))
    facts = facts_of(transcript.condition, transcript.case_id, transcript.repeat, transcript.labels)
    if content:
        facts["mas_eval.problem"] = transcript.problem
    yield from made.end(facts | numbers_of(transcript.numbers), transcript.error)


def _played(turn: RecordedTurn, said: dict[str, list[Message]]) -> PlayedTurn:
    """A recorded turn; `said`: agent → its conversation, which grows."""
    assert turn.move is not None
    messages = [] if turn.fresh else said.setdefault(turn.agent, [])
    said[turn.agent] = messages
    messages += turn.messages
    return PlayedTurn(turn.round, turn.index, turn.move, None, messages, len(messages), inner=turn.inner)


def facts_of(condition: str, case: str, repeat: int, labels: Mapping[str, Any]) -> dict[str, Any]:
    """What spans say of an episode before it is played."""
    own = {"mas_eval.condition": condition, "mas_eval.case": case, "mas_eval.repeat": repeat}
    return {**own, **{f"mas_eval.label.{name}": value for name, value in labels.items()}}


def numbers_of(numbers: Mapping[str, Any]) -> dict[str, Any]:
    """What spans say of its scores: numbers, and the two parts of a ratio."""
    return {f"mas_eval.metric.{name}": value for name, value in numbers.items()}


FORM: Final = ExportForm(lambda run, **options: (FILE,), write_run, takes=("trace_content",))
