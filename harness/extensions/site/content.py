"""What the pages are about: benchmarks, models, runs, and the rows of standings that connect them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from harness.api.errors import DataError
from harness.api.run_files import SCORES
from harness.evaluation.run import Run
from harness.extensions.analysis.leaderboard import RunScores
from harness.extensions.analysis.overall import position, scale_of
from harness.extensions.analysis.section import Section
from harness.extensions.analysis.standings import Standing
from harness.extensions.submissions.check import Verification
from harness.report.grid import grid
from harness.tables import Table, text

from . import addresses, drawings

_HEADLINE = 2
"""The column of standings that has the headline."""


@dataclass
class Entry:
    """One row of standings that is a run's.

    Attributes:
        standing: the row.
        shown: its headline with its interval, as tables show it.
    """

    benchmark: BenchmarkPages
    board: BoardPart
    standing: Standing
    run: PlayedRun
    model: Model
    shown: str

    @property
    def kind(self) -> str:
        """What it is beside models, which are not called anything."""
        if not self.run.is_scripted:
            return ""
        if self.standing.end is not None:
            return f"{self.standing.end}, a scripted policy"
        return "knows the answers" if self.standing.cell.uses_ground_truth else "scripted policy"

    @property
    def may_be_first(self) -> bool:
        """Whether it may be the best of several."""
        return self.standing.ranks is not None and self.standing.ranks[0] == 1 < self.board.ranked

    @property
    def positions(self) -> tuple[float | None, float | None, float | None]:
        """Where its number and the ends of its interval lie: 0 is the floor, 1 the ceiling; where these are not known,
        the worst and the best end of the picture of its board."""
        cell, (low_end, high_end) = self.standing.cell, self.board.within
        higher = self.board.section.board.headline.better == "higher"
        ends = self.board.scale or ((low_end, high_end) if higher else (high_end, low_end))
        low, high = sorted_ends(position(cell.low, ends), position(cell.high, ends))
        return position(cell.value, ends), low, high


def sorted_ends(one: float | None, other: float | None) -> tuple[float | None, float | None]:
    """The ends of an interval, the smaller first."""
    return (one, other) if one is None or other is None or one <= other else (other, one)


@dataclass
class BoardPart:
    """Runs of a benchmark that can be compared, as the page of the benchmark shows them.

    Attributes:
        section: the runs and their tables.
        table: the standings.
        texts: the texts of their cells.
        entries: those of their rows that are runs'.
        within: from where to where a picture of its numbers goes.
        scale: floor and ceiling; None where they are not known.
    """

    section: Section
    table: Table
    texts: list[list[str]]
    header: list[str]
    within: tuple[float, float]
    scale: tuple[float, float] | None
    entries: dict[str, Entry] = field(default_factory=dict)

    @classmethod
    def of(cls, section: Section) -> BoardPart:
        """The part for comparable runs."""
        table, board = section.board.table(), section.board
        texts, ends = grid(table), scale_of(board)
        cells = [row.cell for row in board.rows]
        numbers = [x for cell in cells for x in (cell.value, cell.low, cell.high)]
        bounds = board.headline.metrics[board.headline.metric].bounds
        within = drawings.extent(numbers, board.headline.table.unit == "percent" or bounds == (0, 1))
        header = [names[-1] for names in texts.header]
        return cls(section, table, texts.body, header, within, ends if isinstance(ends, tuple) else None)

    @property
    def ends(self) -> tuple[float | None, float | None]:
        """The numbers of floor and ceiling, as far as they were played."""
        found = [
            next((row.cell.value for row in self.section.board.rows if (row.end or row.role) == role), None)
            for role in ("floor", "ceiling")
        ]
        return found[0], found[1]

    @property
    def from_floor(self) -> tuple[float, float]:
        """From where to where a picture goes in which the floor is 0 and the ceiling 1, and all numbers have room."""
        every = [x for one in self.entries.values() for x in one.positions if x is not None]
        return min(0.0, *every, 0.0), max(1.0, *every, 1.0)

    @property
    def ranked(self) -> int:
        """How many models are ranked."""
        return sum(row.ranks is not None for row in self.section.board.rows)

    def leaders(self) -> list[Entry]:
        """Those with the best number, of the ranked models; of the scripted policies where no model is ranked."""
        ranked = [one for one in self.entries.values() if one.standing.ranks is not None]
        ranked = [one for one in ranked if not one.run.is_scripted] or ranked
        best = next((one.standing.cell.value for one in ranked), None)
        return [one for one in ranked if one.standing.cell.value == best]

    def strip(self, row: Standing, with_others: bool = False) -> drawings.Strip:
        """The picture of a row's number."""
        others = [one.cell.value for one in self.section.board.rows if with_others and one.role == "model"]
        return drawings.strip(
            self.within,
            row.cell.value,
            (row.cell.low, row.cell.high),
            self.ends,
            [x for x in others if x is not None],
        )


@dataclass
class BenchmarkPages:
    """All runs of a spec.

    Attributes:
        parts: runs that can be compared; the first is the one on the page over all benchmarks.
    """

    name: str
    parts: list[BoardPart]

    @property
    def page(self) -> str:
        """Its address."""
        return f"benchmarks/{addresses.slug(self.name)}/{addresses.INDEX}"

    @property
    def main(self) -> BoardPart:
        """The part on the page over all benchmarks."""
        return self.parts[0]

    @property
    def about(self) -> str:
        """What its spec says about it."""
        description = self.main.section.runs[0][1].spec.get("description")
        return " ".join(description.split()) if isinstance(description, str) else ""

    @property
    def entries(self) -> list[Entry]:
        """Its rows that are runs', those of the first part first."""
        return [one for part in self.parts for one in part.entries.values()]


@dataclass
class Model:
    """All rows of a model, by its own name."""

    name: str
    entries: list[Entry] = field(default_factory=list)

    @property
    def page(self) -> str:
        """Its address."""
        return f"models/{addresses.slug(self.name)}/{addresses.INDEX}"

    @property
    def is_scripted(self) -> bool:
        """Whether it is no model: in none of its runs a model plays."""
        return all(one.run.is_scripted for one in self.entries)

    @property
    def main(self) -> dict[str, Entry]:
        """Benchmark → its row there, of several the one whose run began last."""
        ordered = sorted(self.entries, key=lambda one: one.run.start)
        ordered = [one for one in ordered if one.board is one.benchmark.main]
        return {one.benchmark.name: one for one in ordered}


@dataclass
class PlayedRun:
    """One run.

    Attributes:
        scores: its numbers, under its name here.
        run: the run.
        folder_name: its part of the address.
        verification: what `harness verify` finds; None if it was not asked for.
    """

    scores: RunScores
    run: Run
    folder_name: str
    benchmark: BenchmarkPages
    board: BoardPart
    entries: list[Entry] = field(default_factory=list)
    verification: Verification | None = None

    @property
    def folder(self) -> str:
        """The folder of its pages."""
        return f"runs/{self.folder_name}"

    @property
    def page(self) -> str:
        """Its address."""
        return f"{self.folder}/{addresses.INDEX}"

    @property
    def is_scripted(self) -> bool:
        """Whether policies play in it and no model."""
        return self.run.meta.get("policies_only") is True

    @property
    def start(self) -> str:
        """When it began."""
        return text(self.run.meta.get("start") or "")

    @property
    def day(self) -> str:
        """The day on which it ended."""
        return text(self.run.meta.get("end") or self.run.meta.get("start") or "–")[:10]


@dataclass
class Content:
    """All that a site shows.

    Attributes:
        benchmarks: in the order of their names.
        models: in the order of their names.
        runs: the newest first.
    """

    benchmarks: list[BenchmarkPages]
    models: list[Model]
    runs: list[PlayedRun]

    @property
    def players(self) -> str:
        """How many models and scripted policies there are, in words."""
        scripted = sum(one.is_scripted for one in self.models)
        counts = ((len(self.models) - scripted, "model", "models"), (scripted, "scripted policy", "scripted policies"))
        said = [f"{count:,} {one if count == 1 else several}" for count, one, several in counts if count]
        return " and ".join(said) or "0 models"

    @classmethod
    def of(cls, sections: Sequence[Section]) -> Content:
        """Put boards together. Raises `DataError` if two runs have the same address."""
        by_spec: dict[str, list[Section]] = {}
        for section in sorted(sections, key=lambda one: not one.is_main):
            by_spec.setdefault(section.spec, []).append(section)
        benchmarks = [BenchmarkPages(name, [*map(BoardPart.of, own)]) for name, own in sorted(by_spec.items())]
        models: dict[str, Model] = {}
        runs: dict[int, PlayedRun] = {}
        taken: dict[str, PlayedRun] = {}
        for benchmark in benchmarks:
            for part in benchmark.parts:
                for scores, run in part.section.runs:
                    name = _free(addresses.of_run(scores.run), run, taken)
                    taken[name] = runs[id(scores)] = PlayedRun(scores, run, name, benchmark, part)
                _enter(benchmark, part, runs, models)
        newest = sorted(runs.values(), key=lambda one: (one.start, one.folder_name), reverse=True)
        return cls(benchmarks, [models[name] for name in sorted(models)], newest)


def _free(name: str, run: Run, taken: Mapping[str, PlayedRun]) -> str:
    """The run's part of an address; of a second run that says that it is the same one with a digest of its numbers."""
    if name not in taken:
        return name
    name = f"{name}-{addresses.digest((run.folder / SCORES).read_text('utf-8', errors='replace'))}"
    if name in taken:
        raise DataError(f"{run.folder} and {taken[name].run.folder} have one address", hint="Remove one of them.")
    return name


def _enter(benchmark: BenchmarkPages, part: BoardPart, runs: Mapping[int, PlayedRun], models: dict[str, Model]) -> None:
    """Note the rows of a board that are runs' with their benchmark, run and model."""
    board, of_run = part.section.board, part.section.run_of()
    for row, texts in zip(board.rows, part.texts, strict=True):
        if row.role != "model" or row.model not in of_run:
            continue
        played = runs[id(of_run[row.model][0])]
        own = board.players[row.model].model if row.model in board.players else row.model
        model = models.setdefault(own, Model(own))
        entry = Entry(benchmark, part, row, played, model, texts[_HEADLINE])
        part.entries[row.model] = entry
        model.entries.append(entry)
        played.entries.append(entry)
