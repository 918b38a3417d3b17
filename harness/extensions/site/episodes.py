"""Sample episodes of runs: which ones, and their pages' data."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue
from threading import Semaphore
from typing import Any, Final

from harness import storage
from harness.api.errors import DataError
from harness.config.project import Project
from harness.evaluation.run import Run
from harness.extensions.viewer.standalone import EpisodeReader
from harness.tables import EpisodeScore, HeadlineSpec

from . import addresses
from .content import PlayedRun

_READERS: Final = 4
"""So many processes read episodes at most."""
_AHEAD: Final = 64
"""So many runs are read before their pages are written."""
MAX_PAGE_CHARS: Final = 2_000_000
"""An episode with more of them is not shown."""


@dataclass(frozen=True)
class Sample:
    """An episode that has a page.

    Attributes:
        score: its numbers.
        word: how it ended, as the badge of the viewer says it: solved, partly solved, unsolved, unscored,
            failed.
        said: the same in the words of the spec.
    """

    run: PlayedRun
    score: EpisodeScore
    word: str
    said: str

    @property
    def page(self) -> str:
        """Its address."""
        return f"{self.run.folder}/episodes/{addresses.slug(self.score.id)}.html"


def chosen(played: PlayedRun) -> list[Sample]:
    """The first episode with the best number of a run and the first one with the worst, so that the choice is the run's
    alone; one where all are equal."""
    headline = played.run.headline
    number = {one.id: one.number(headline.metric) for one in headline.selected(played.scores.scores) if not one.failed}
    known = {name: x for name, x in number.items() if x is not None}
    if not known:
        return []
    sign = 1 if headline.better == "higher" else -1
    wanted = dict.fromkeys([max(known, key=lambda name: sign * known[name]), min(known, key=lambda n: sign * known[n])])
    wanted = dict.fromkeys([*wanted][:1]) if len({*known.values()}) == 1 else wanted
    by_id = {one.id: one for one in played.scores.scores}
    words = _words(played.run)
    found = []
    for name in wanted:
        word = _word(known[name], headline)
        found.append(Sample(played, by_id[name], word, words.get(word, word)))
    return found


def _word(x: float, headline: HeadlineSpec) -> str:
    good = x if headline.better == "higher" else 1 - x
    if good in (0, 1):
        return "solved" if good else "unsolved"
    return "partly solved" if 0 < good < 1 else "unscored"


def _words(run: Run) -> Mapping[str, str]:
    """What the spec calls episodes that are solved and those that are not."""
    headline = run.spec.get("headline")
    words = headline.get("words") if isinstance(headline, Mapping) else None
    return dict(zip(("solved", "unsolved"), map(str, words), strict=False)) if isinstance(words, list) else {}


Shown = tuple[PlayedRun, list[tuple[Sample, dict[str, Any] | str]]]
"""A run and its samples, each with its page's data, or with why it has none."""


class SampleReader:
    """The samples of runs, each run as soon as it is read. Several processes begin at once, and read on within `with`.

    Each process gets the runs of few specs, since it makes the plan of each.

    Args:
        runs: whose samples.
        project: whose plugins render prompts and draw.
    """

    def __init__(self, runs: Sequence[PlayedRun], project: Project) -> None:
        several = max(1, min(_READERS, os.cpu_count() or 1))
        self._readers = [EpisodeReader(project) for _ in range(several)]
        self._pools = [ThreadPoolExecutor(1) for _ in self._readers]
        self._done, self._count = SimpleQueue[Future[Shown]](), len(runs)
        self._room = Semaphore(_AHEAD)
        ordered = sorted(runs, key=lambda one: one.benchmark.name)
        sizes = [sum(path.stat().st_size for path in storage.journals(one.run.folder)) for one in ordered]
        read, whole = 0, max(1, sum(sizes))
        for played, size in zip(ordered, sizes, strict=True):
            which = min(several - 1, several * read // whole)
            work = self._pools[which].submit(self._read, played, self._readers[which])
            work.add_done_callback(self._done.put)
            read += size

    def __enter__(self) -> Iterator[Shown]:
        return self._each()

    def __exit__(self, *_: object) -> None:
        for pool, reader in zip(self._pools, self._readers, strict=True):
            pool.shutdown(wait=False, cancel_futures=True)
            reader.__exit__()
            self._room.release()

    def _each(self) -> Iterator[Shown]:
        for _ in range(self._count):
            done = self._done.get()
            self._room.release()
            yield done.result()

    def _read(self, played: PlayedRun, reader: EpisodeReader) -> Shown:
        self._room.acquire()
        if not (own := chosen(played)):
            return played, []
        try:
            found = reader.read(played.run.folder, [one.score.id for one in own])
        except DataError as error:
            return played, [(one, error.message) for one in own]
        return played, [(one, _data(one, own, found)) for one in own]


def _data(sample: Sample, own: Sequence[Sample], found: Mapping[str, Mapping[str, Any]]) -> dict[str, Any] | str:
    """What a page of an episode holds, as the viewer's pages expect it."""
    episode = found.get(sample.score.id)
    if episode is None:
        return "the journal has no such episode"
    other = next((one for one in own if one is not sample and one.score.id in found), None)
    return {
        **episode,
        "run": sample.run.folder_name,
        "result": sample.word,
        "words": _words(sample.run.run),
        "limited": sample.score.limited,
        "start": sample.run.start,
        "parent": None,
        "previous": other.score.id if other is not None and own.index(other) < own.index(sample) else None,
        "next": other.score.id if other is not None and own.index(other) > own.index(sample) else None,
        "up": f"../{addresses.INDEX}",
        "pages": {one.score.id: one.page.rpartition("/")[2] for one in own if one.score.id in found},
    }
