"""Example episodes in a page: two solved ones, two others and the shortest, with every prompt and reply."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from harness.api.printable import clean
from harness.extensions.charts import Material
from harness.extensions.charts.sources import PlayedEpisode
from harness.tables import HeadlineSpec, text
from harness.transcripts.reader import Transcripts
from harness.transcripts.view_api import RecordedTurn, Transcript

from .page_html import safe

_TURNS: Final = (16, 6)
"""How many turns of a long episode are shown from its beginning and from its end."""
_CHARACTERS: Final = 3_000
"""Of one message; the rest is counted."""
_ACTION: Final = 600


@dataclass(frozen=True, slots=True)
class Example:
    """An episode, and why it is here."""

    why: str
    played: PlayedEpisode


def chosen(material: Material, headline: HeadlineSpec) -> list[Example]:
    """Two solved episodes, two others, and the shortest, of different models and conditions where there are some."""
    finished = [
        one
        for one in material.played()
        if one.score.id in material.tallies[one.run].ends and headline.covers(one.score)
    ]
    best = 1.0 if headline.better == "higher" else 0.0
    solved = [one for one in finished if one.score.number(headline.metric) == best]
    unsolved = [one for one in finished if one.score.failed or one.score.number(headline.metric) not in (best, None)]
    picked = [Example("solved", one) for one in _different(solved, 2)]
    picked += [Example("failed" if one.score.failed else "not solved", one) for one in _different(unsolved, 2)]
    taken = {id(example.played) for example in picked}
    rest = [one for one in finished if id(one) not in taken and one.use.moves and not one.score.failed]
    if rest:
        shortest = min(rest, key=lambda one: (one.use.moves, one.use.characters))
        picked.append(Example("the shortest", shortest))
    return picked


def _different(played: Sequence[PlayedEpisode], count: int) -> list[PlayedEpisode]:
    """The first ones, of different models and then conditions as far as possible."""
    picked: list[PlayedEpisode] = []
    for _ in range(min(count, len(played))):
        models = {one.score.model for one in picked}
        conditions = {one.score.condition for one in picked}
        rest = (one for one in played if not any(one is other for other in picked))
        picked.append(min(rest, key=lambda one: (one.score.model in models, one.score.condition in conditions)))
    return picked


def examples_html(material: Material, headline: HeadlineSpec) -> str:
    """The examples as HTML, each folded; "" if no episode was played. Raises `DataError` for a damaged journal."""
    readers: dict[int, Transcripts] = {}
    parts = []
    for example in chosen(material, headline):
        i, score, tally = example.played.run, example.played.score, material.tallies[example.played.run]
        if i not in readers:
            readers[i] = Transcripts(material.sources[i].folder)
        end = tally.end(score.id)
        transcript = readers[i].read(score.id, tally.batches(score.id), end)
        value = score.number(headline.metric)
        parts.append(
            _episode(
                example.why, score.model, f"{headline.name} {'–' if value is None else f'{value:.3g}'}", transcript
            )
        )
    return "".join(parts)


def _episode(why: str, model: str, result: str, transcript: Transcript) -> str:
    turns = transcript.turns
    rounds = len({turn.round for turn in turns})
    sizes = ((len(transcript.agents), "agent"), (len(turns), "turn"), (rounds, "round"))
    facts = " · ".join((safe(result), *(f"{n:,} {word}{'s' * (n != 1)}" for n, word in sizes)))
    kind = {"solved": "good", "the shortest": "plain"}.get(why, "bad")
    notes = "".join(
        f'<p class="problem">{escape(clean(what[:_CHARACTERS]))}</p>'
        for what in (transcript.error, transcript.problem)
        if what
    )
    return (
        f'<details class="episode"><summary><b class="badge {kind}">{why}</b> {safe(model)} '
        f'<span class="dim">{safe(transcript.id)} · {facts}</span></summary>{notes}'
        f"{''.join(_turns(turns))}{_answers(transcript)}</details>\n"
    )


def _turns(turns: Sequence[RecordedTurn]) -> Iterator[str]:
    first, last = _TURNS
    omitted = len(turns) - first - last
    round_number = -1
    for i, turn in enumerate(turns):
        if omitted > 0 and first <= i < first + omitted:
            if i == first:
                yield f'<p class="dim">… {omitted} turns are left out: `harness view` shows them all.</p>'
            continue
        if turn.round != round_number:
            round_number = turn.round
            yield f"<h4>Round {round_number + 1}</h4>"
        yield _turn(turn)


def _turn(turn: RecordedTurn) -> str:
    parts = []
    for role, message in turn.prompt:
        body = _text(message)
        parts.append(f"<details class='said'><summary>{safe(role)}</summary>{body}</details>" if role == "system" or
                     len(message) > 400 else f'<div class="said"><i>{safe(role)}</i>{body}</div>')  # fmt: skip
    move = turn.move
    for i, call in enumerate(move.calls if move else ()):
        if call.reasoning:
            parts.append(f'<details class="said"><summary>reasoning</summary>{_text(call.reasoning)}</details>')
        parts.append(f'<div class="said reply"><i>reply</i>{_text(call.shown)}</div>')
        if i < len(turn.retries):
            parts.append(f'<div class="said"><i>asked again</i>{_text(turn.retries[i])}</div>')
    if move is not None and move.action is not None:
        action = json.dumps(move.action, ensure_ascii=False, default=str)
        parts.append(f'<div class="said action"><i>action</i>{_text(action, _ACTION)}</div>')
    if move is not None and move.error is not None:
        parts.append(
            f'<div class="said problem"><i>{safe(move.error_kind or "error")}</i>{_text(move.error, _ACTION)}</div>'
        )
    return (
        f'<div class="turn"><b>{safe(turn.agent)}</b> <span class="dim">{safe(turn.name)}</span>{"".join(parts)}</div>'
    )


def _answers(transcript: Transcript) -> str:
    if transcript.outcome is None:
        return ""
    outcome = transcript.outcome
    shown = f"group: {text(outcome.group)}" if outcome.group is not None else ""
    lines = [shown, *(f"{agent}: {text(answer)}" for agent, answer in outcome.answers.items())]
    return f'<div class="said action"><i>final answers</i>{_text(chr(10).join(filter(None, lines)))}</div>'


def _text(message: str, longest: int = _CHARACTERS) -> str:
    more = len(message) - longest
    rest = f'<span class="dim"> … {more:,} more characters</span>' if more > 0 else ""
    return f"<pre>{escape(clean(message[:longest]))}{rest}</pre>"
