"""A reader is asked who made the episodes of a finished run fail: what it is shown, and its answers as opinions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from harness import storage
from harness.api.errors import DataError
from harness.api.printable import clean_name
from harness.evaluation.load_run import load_run
from harness.extensions.blame.blame_label import BlameLabel
from harness.extensions.blame.findings import FILE, verdicts_of
from harness.extensions.replay.base_run import BaseRun
from harness.runtime.seats import seats
from harness.storage import finished_episodes

from .teams import RecordedEpisode

TASK = "who_broke_it"
_AT_ONCE = 200
"""Episodes for which the journal is read once; so many are in memory."""


def asked_about(folder: Path) -> Iterator[tuple[str, RecordedEpisode, list[dict[str, Any]]]]:
    """(id, the episode, the moves each of which alone decides it) of all episodes that `harness blame` has looked at.

    A move is {"agent", "turn"}; there is none where nobody is blamed, or only several moves together. Raises
    `DataError` where blame has not looked at the run, and as `BaseRun.open`.
    """
    parent = BaseRun.open(folder)
    found = verdicts_of(parent.run.folder)
    names = [name for name in parent.jobs if name in found]
    if not names:
        hint = f"First: `harness blame {folder}`. It writes what is right into {FILE}."
        raise DataError(f"{folder} has no findings of who made its episodes fail", hint=hint)
    for number, name in enumerate(names):
        if number % _AT_ONCE == 0:
            parent.read(names[number : number + _AT_ONCE])
        turns = parent.played(name)
        recorded = RecordedEpisode.of(turns, seats(parent.plan, *parent.jobs[name]))
        known = [turn for turn in found[name] if 0 <= turn < len(turns)]
        yield name, recorded, [{"agent": turns[turn].turn.agent, "turn": turn} for turn in known]
        del parent.batches[name]


def opinions_of_run(folder: Path, episodes: Collection[str]) -> list[BlameLabel]:
    """The answers of a finished run of the task `who_broke_it` about a run with these episodes; its model is the rater.

    Raises `DataError` where it is about others, or no answer could be read.
    """
    run = load_run(folder)
    rater = clean_name(str(run.meta["model"]))[:60]
    found = []
    for end, _ in finished_episodes.batches(*storage.journals(run.folder)):
        if str(end["case"]) not in episodes:
            hint = f"Its spec needs task: {{use: {TASK}, run: …}}, with the run that is blamed."
            raise DataError(f"{folder} is asked about {end['case']!r:.80}, no episode of the run", hint=hint)
        outcome = end["outcome"] or {}
        group = outcome.get("group")
        given = [group] if group is not None else (outcome.get("facts") or {}).get("samples") or []
        found += [
            BlameLabel(rater, str(end["case"]), str(one["agent"]), turn if type(turn := one["turn"]) is int else None)
            for one in given
            if isinstance(one, Mapping) and one.keys() == {"agent", "turn"} and one["agent"] is not None
        ]
    if not found:
        raise DataError(f"{folder} has no answer that names an agent", hint=f"It has to be a run of the task {TASK}.")
    return found
