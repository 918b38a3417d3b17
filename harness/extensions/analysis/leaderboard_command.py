"""`harness leaderboard`: runs of a benchmark as a ranked table."""

from __future__ import annotations

import argparse
import contextlib
import filecmp
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness import storage
from harness.api.errors import DataError, SpecError, UserError
from harness.api.run_files import META, SCORES, SPEC
from harness.cli import options as opt
from harness.cli.output import readable, show
from harness.cli.usage import Parser
from harness.config import resolve
from harness.config.building import policy_name
from harness.config.plan import Plan
from harness.config.project import Project, find
from harness.config.spec import Spec, load
from harness.engines.mock import Mock
from harness.evaluation.load_run import load_run, run_folder
from harness.evaluation.run import Run
from harness.evaluation.stages import execute
from harness.extensions.analysis.leaderboard import Comparable, RunScores, grouped
from harness.extensions.analysis.leaderboard import leaderboard as merge
from harness.extensions.analysis.overall import overall
from harness.extensions.analysis.pairs_table import all_pairs
from harness.extensions.analysis.section import Section
from harness.extensions.analysis.standings import Role, Standings, standings
from harness.extensions.analysis.table_names import tables_named
from harness.extensions.submissions.archive import stated_author
from harness.plugins.lookup import part
from harness.report.citation import as_table, facts
from harness.runtime.options import Options
from harness.runtime.run_schema import read_meta
from harness.runtime.run_specs import RunSpecs
from harness.tables import Table, text

CACHE = ".baselines"
"""The folder of results in which baselines are kept that were played for a leaderboard."""
_READ = (META, SPEC, SCORES)
SITE = "site"
Doubt = tuple[tuple[str, str], str]
"""The names of two runs that say that they are the same, and what differs between them."""


def board(runs: Sequence[Path], form: str) -> None:
    """Print the leaderboard of finished runs, as `harness leaderboard` does."""
    parser = Parser(prog="harness leaderboard")
    leaderboard_options(parser)
    leaderboard(parser.parse_args([*map(str, runs), "--format", form]))


@dataclass(frozen=True)
class Leaderboard:
    """What `harness leaderboard` shows.

    Attributes:
        sections: a benchmark each, or runs of one that are apart.
        origin: where the numbers come from.
        apart: why other runs are not shown.
        doubts: which runs cannot both be true.
    """

    sections: Sequence[Section]
    origin: Table
    apart: Sequence[str]
    doubts: Sequence[str]

    @property
    def boards(self) -> list[Standings]:
        """The standings on the page over all benchmarks: a spec's main group of runs each."""
        return [section.board for section in self.sections if section.is_main]


def leaderboard(options: argparse.Namespace) -> int:
    """Standings of every benchmark, its tables, and one page over all benchmarks."""
    site = part("site", "a leaderboard as a site")(options) if options.format == SITE else None
    if site is None and options.verify:
        raise SpecError(f"--verify needs --format {SITE}", hint="`harness verify RUN` checks a single run.")
    made = leaderboard_of(
        [run_folder(path) for path in options.runs],
        author=options.author,
        with_baselines=options.with_baselines,
        with_published=options.with_published,
    )
    if site is None:
        _print(made, options)
    else:
        site(made.sections)
    for line in made.apart:
        print(f"not shown: {line}", file=sys.stderr)
    for doubt in made.doubts:
        print(f"warning: {doubt}", file=sys.stderr)
    return 0


def leaderboard_of(
    paths: Sequence[Path],
    project: Project | None = None,
    *,
    author: str | None = None,
    with_baselines: bool = False,
    with_published: bool = False,
) -> Leaderboard:
    """The leaderboard of the finished runs in folders; runs that cannot be ranked together have sections of their own.

    Args:
        paths: folders of runs, or runs.
        project: where their plugins are; default: the project around the working directory.
        author: who publishes it; default: as the project says.
        with_baselines: also floor and ceiling, played now where no earlier leaderboard has.
        with_published: also figures of publications.

    Raises:
        DataError: no run is finished, or all paths are runs and two of one spec cannot be compared.
        UserError: a path that is a run itself cannot be read.
    """
    project = project or find()
    found, apart, doubts = _load(paths, project)
    if not found:
        listed = "".join(f"\n  {line}" for line in apart)
        where = ", ".join(map(str, paths))
        raise DataError(f"no finished run in {where}{listed}", hint="Give folders that `harness eval` wrote into.")
    only_runs = all((path / META).is_file() for path in paths)
    groups = _groups([run for run, _ in found], refuse=only_runs)
    runs = {id(scores): run for scores, run in found}
    main = _main_groups(groups)
    sections = list[Section]()
    for group in groups:
        run = runs[id(group.runs[0])]
        ahead = main[group.runs[0].spec]
        name = group.runs[0].spec + ("" if group is ahead else f", digest {run.meta['spec_digest'][:8]}")
        baselines = _baselines(run, group, project) if with_baselines else ()
        papers = run.published() if with_published else []
        board = replace(standings(group.runs, baselines, name, papers), part=_part(run.spec, project))
        names = {scores.id for scores in group.runs}
        disputed = [_in_words(doubt) for doubt in doubts if not names.isdisjoint(doubt[0])]
        board = replace(board, notes=(*disputed, *board.notes))
        if board.part:
            board = replace(board, notes=(f"Incomplete: {board.part}.", *board.notes))
        if group is not ahead and (conflict := ahead.conflict(group.runs[0])):
            board = replace(board, notes=(f"Apart: {conflict[0]}.", *board.notes))
        played = tuple((scores, runs[id(scores)]) for scores in group.runs)
        sections.append(Section(played, board, merge(group.runs, papers), group is ahead))
    return Leaderboard(sections, _origin(found, author or project.author), apart, [*map(_in_words, doubts)])


def _print(made: Leaderboard, options: argparse.Namespace) -> None:
    sections, boards = made.sections, made.boards
    title = boards[0].name if len(boards) == 1 else "Leaderboards"
    if options.table:
        tables, entries = list[Table](), []
        for section in sections:
            tables += section.tables
            entries += section.runs[0][1].table_specs
        show([*tables_named(tables, entries, options.table), made.origin], options.format, title, options.output)
        return
    shown = [overall(boards)] if len(boards) > 1 else []
    shown += [all_pairs(boards)] if options.pairs else []
    for section in sections:
        own, name = section.tables, section.board.name
        several = [replace(table, title=_of(name, table.title)) for table in own]
        shown += [section.board.table(), *(several if len(sections) > 1 else own)]
    show([*readable(shown, options), made.origin], options.format, title, options.output)


def _origin(found: Sequence[tuple[RunScores, Run]], author: str | None) -> Table:
    """Where the numbers of a board come from, by each run's record."""
    return as_table(
        [
            (scores.id, facts(run.meta, run.folder, scores.cost, stated_author(run.folder) or author))
            for scores, run in found
        ]
    )


def _of(benchmark: str, title: str) -> str:
    """A table's title among those of several benchmarks: with the benchmark's name, which it may begin with."""
    return title if title.startswith(benchmark) else f"{benchmark}: {title}"


def _load(paths: Sequence[Path], project: Project) -> tuple[list[tuple[RunScores, Run]], list[str], list[Doubt]]:
    """(the runs below the paths, why the others are not shown, those shown that cannot both be true).

    Raises:
        UserError: for a path that is a run itself and cannot be read.
    """
    paths = list({path.resolve(): path for path in paths}.values())
    found: list[tuple[RunScores, Run]] = []
    apart: list[str] = []
    doubts: list[Doubt] = []
    seen: set[Path] = set()
    started: dict[str, dict[Path, str]] = {}
    claimed = Counter(map(_claimed, paths))
    specs = RunSpecs(project)
    for path in paths:
        explicit = (path / META).is_file()
        for folder in [path] if explicit else _below(path):
            if folder.resolve() in seen:
                continue
            seen.add(folder.resolve())
            if not explicit and (link := next((name for name in _READ if (folder / name).is_symlink()), None)):
                apart.append(f"{folder}: its {link} is a link, which is not followed")
                continue
            try:
                run = load_run(folder, specs=specs)
                scores = RunScores.of(run)
            except (UserError, OSError) as error:
                if explicit:
                    raise
                why = _without_hint(error) if isinstance(error, UserError) else str(error)
                apart.append(" ".join((why if str(folder) in why else f"{folder}: {why}").split()))
                continue
            key = text([run.meta.get(name) for name in ("start", "spec_digest", "model", "command", "engine_args")])
            place = folder.relative_to(path) if len(paths) == 1 else folder
            alone = explicit and claimed[run.meta["run"]] == 1  # of two that claim a name, neither gets it
            name = run.meta["run"] if alone else place.as_posix()
            name = str(folder) if name in [other.id for other, _ in found] else name
            earlier = started.setdefault(key, {}) if run.meta.get("start") else {}
            unlike = {other: _unlike(folder, other) for other in earlier}
            if same := next((other for other in earlier if unlike[other] is None), None):
                apart.append(f"{folder}: the same run as {same}")
                continue
            doubts += [((earlier[other], name), what) for other, what in unlike.items() if what is not None]
            earlier[folder] = name
            found.append((replace(scores, run={**run.meta, "run": name}), run))
    return found, apart, doubts


def _claimed(path: Path) -> Any:
    """The name that the run in a folder gives itself; None if there is none."""
    try:
        return read_meta(path / META).get("run")
    except (UserError, OSError):
        return None


def _in_words(doubt: Doubt) -> str:
    (one, two), what = doubt
    return (
        f"{one} and {two} say that they are the same run, and their {what} differ: one of them was changed since. "
        "`harness score` on each says which."
    )


def _unlike(one: Path, two: Path) -> str | None:
    """What two folders of the same start differ in: journals, or scores; None if they hold the same run."""
    first, second = ([path.name for path in storage.journals(folder) if path.exists()] for folder in (one, two))
    if first != second or not all(filecmp.cmp(one / name, two / name, shallow=False) for name in first):
        return "journals"
    return None if filecmp.cmp(one / SCORES, two / SCORES, shallow=False) else "scores"


def _without_hint(error: UserError) -> str:
    return f"{error.place}: {error.message}" if error.place else error.message


def _below(path: Path) -> Iterator[Path]:
    """Every folder with a run.json, in order of name; links and hidden folders are not followed."""
    for folder, names, files in os.walk(path, followlinks=False):
        if META in files:
            names.clear()
            yield Path(folder)
        names[:] = sorted(name for name in names if not name.startswith("."))


def _groups(runs: Sequence[RunScores], refuse: bool) -> list[Comparable]:
    """The runs in groups that can be compared. With `refuse`, runs of one spec must all be comparable.

    Raises:
        DataError: saying why two of them are not.
    """
    groups = grouped(runs)
    specs = [group.runs[0].spec for group in groups]
    if refuse and (several := next((spec for spec in specs if specs.count(spec) > 1), None)):
        merge([run for run in runs if run.spec == several])
    return groups


def _main_groups(groups: Sequence[Comparable]) -> dict[str, Comparable]:
    """Spec → its group of most episodes a model, then of most runs: it is on the page over all benchmarks."""
    main: dict[str, Comparable] = {}
    for group in groups:
        name = group.runs[0].spec
        if name not in main or _weight(group) > _weight(main[name]):
            main[name] = group
    return main


def _weight(group: Comparable) -> tuple[int, int]:
    return max(len(run.scores) // max(len(run.models), 1) for run in group.runs), len(group.runs)


def _part(ran: Spec, project: Project) -> str | None:
    """What of the project's spec of that name was run, where it is not all of it."""
    limit = ran.get("limit")
    parts = [f"at most {limit} case{'s' * (limit > 1)} per condition"] if limit else []
    try:
        whole = load(ran.name, project)
        played, every = ({variant.id for variant in spec.variants()} for spec in (ran, whole))
        parts = [] if limit == whole.get("limit") else parts
        parts += [f"{len(played)} of {len(every)} conditions"] if played < every else []
        if (few := int(ran.get("repeats") or 1)) < (all_of_them := int(whole.get("repeats") or 1)):
            parts.append(f"{few} of {all_of_them} repeats")
    except UserError:
        pass  # the spec is from elsewhere: what it was is not known
    return ", ".join(parts) or None


def _baselines(run: Run, group: Comparable, project: Project) -> list[tuple[Role, RunScores]]:
    """Floor and ceiling of the headline, played now or before. A policy that cannot play is left out, with a line."""
    headline = run.headline
    with contextlib.suppress(UserError):  # what is wrong is said below, for each policy
        if not _seats_the_model(resolve.plan(run.spec, project, Mock())):
            print(f"{run.spec.name}: no agent takes the model under test: no seat for floor, ceiling", file=sys.stderr)
            return []
    roles: list[tuple[Role, object]] = [("floor", headline.floor), ("ceiling", headline.ceiling)]
    lines: list[tuple[Role, RunScores]] = []
    for role, policy in roles:
        if not isinstance(policy, str | dict):
            policy = "random" if role == "floor" else "POLICY"
            remedy = f"its spec can: headline: {{metric: …, {role}: {policy}}}"
            print(f"{run.spec.name}: its headline names no {role}; {remedy}", file=sys.stderr)
            continue
        try:
            plan = resolve.plan(resolve.with_baseline(run.spec, policy, "headline", role), project)
            name = policy_name(policy)
            own = "".join(char if char.isalnum() else "-" for char in name)
            folder = project.results() / CACHE / storage.file_name(f"{run.spec.name}-{own}-{plan.digest[:12]}")
            if not (folder / SCORES).is_file():
                print(f"{name} plays {run.spec.name} …", file=sys.stderr)
            played = execute(plan, Options(output_path=folder, overwrite=True), asked_for=None)
        except UserError as error:
            print(f"{run.spec.name}: no {role}: {' '.join(error.message.split())}", file=sys.stderr)
            continue
        scores = RunScores(played.meta, played.scores, (), played.metrics, {}, headline)
        if conflict := group.conflict(scores):
            print(f"{run.spec.name}: no {role}: {conflict[0]}", file=sys.stderr)
            continue
        lines.append((role, scores))
    return lines


def _seats_the_model(plan: Plan) -> bool:
    """Whether the model under test, or a policy in its place, plays an agent of any case, or a contestant."""
    if any("model" in (key.models() or ()) for key in plan.keys):
        return True
    return any(
        condition.group_of(case, agent).model == "model"
        for condition, case, _ in plan.episodes()
        for agent in condition.protocol.possible_agents(case)
    )


def leaderboard_options(command: Parser) -> None:
    """The options of `harness leaderboard`."""
    command.add_argument("runs", nargs="+", metavar="PATH", help="run folders, or folders of runs")
    text = "show floor and ceiling: policies, played now"
    command.add_argument("--with_baselines", action="store_true", help=text)
    command.add_argument("--pairs", action="store_true", help="list the paired differences of all pairs of models")
    command.add_argument("--author", metavar="NAME", help="who publishes it (default: author in harness.yaml)")
    command.add_argument("--verify", action="store_true", help="of a site: check every run as `harness verify` does")
    opt.add(command, "table", "output", *opt.TABLES, formats={SITE: "pages in the folder that --output names"})
