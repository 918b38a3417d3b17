"""`harness leaderboard | compare`: runs side by side."""

from __future__ import annotations

import argparse
import filecmp
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness import storage
from harness.api.errors import DataError, UserError, near
from harness.cli import options as opt
from harness.cli.output import readable, show
from harness.cli.usage import Parser
from harness.config import resolve
from harness.config.building import policy_name
from harness.config.plan import QUESTIONS
from harness.config.project import find
from harness.config.spec import Spec, load
from harness.evaluation.load_run import load_run, run_folder
from harness.evaluation.run import Run
from harness.evaluation.stages import execute
from harness.extensions.analysis import comparison
from harness.extensions.analysis.amount import Amount
from harness.extensions.analysis.leaderboard import Comparable, RunScores, grouped
from harness.extensions.analysis.leaderboard import leaderboard as merge
from harness.extensions.analysis.overall import overall
from harness.extensions.analysis.pairs_table import all_pairs
from harness.extensions.analysis.published_test import as_published
from harness.extensions.analysis.run_pair import RunPart, add_sides, two_sides
from harness.extensions.analysis.standings import Role, Standings, standings
from harness.extensions.analysis.table_names import tables_named
from harness.report.provenance import as_table, facts
from harness.runtime.options import Options
from harness.runtime.run_json import META
from harness.runtime.run_schema import read_meta
from harness.tables import HeadlineSpec, Table, text

CACHE = ".baselines"
"""The folder of results in which baselines are kept that were played for a leaderboard."""
SCORES = "scores.jsonl"
Doubt = tuple[tuple[str, str], str]
"""The names of two runs that say that they are the same, and what differs between them."""


def board(runs: Sequence[Path], form: str) -> None:
    """Print the leaderboard of finished runs, as `harness leaderboard` does."""
    parser = Parser(prog="harness leaderboard")
    leaderboard_options(parser)
    leaderboard(parser.parse_args([*map(str, runs), "--format", form]))


def leaderboard(options: argparse.Namespace) -> int:
    """Standings of every benchmark, its tables, and one page over all benchmarks."""
    paths = [run_folder(path) for path in options.runs]
    found, apart, doubts = _load(paths)
    if not found:
        listed = "".join(f"\n  {line}" for line in apart)
        where = ", ".join(map(str, paths))
        raise DataError(f"no finished run in {where}{listed}", hint="Give folders that `harness eval` wrote into.")
    only_runs = all((path / META).is_file() for path in paths)
    groups = _groups([run for run, _ in found], refuse=only_runs)
    runs = {id(scores): run for scores, run in found}
    main = _main_groups(groups)
    boards, sections = [], list[tuple[Run, Standings, list[Table]]]()
    for group in groups:
        run = runs[id(group.runs[0])]
        ahead = main[group.runs[0].spec]
        name = group.runs[0].spec + ("" if group is ahead else f", digest {run.meta['spec_digest'][:8]}")
        baselines = _baselines(run, group) if options.with_baselines else ()
        papers = run.published() if options.with_published else []
        board = replace(standings(group.runs, baselines, name, papers), part=_part(run.spec))
        names = {scores.id for scores in group.runs}
        disputed = [_in_words(doubt) for doubt in doubts if not names.isdisjoint(doubt[0])]
        board = replace(board, notes=(*disputed, *board.notes))
        if board.part:
            board = replace(board, notes=(f"Incomplete: {board.part}.", *board.notes))
        if group is ahead:
            boards.append(board)
        elif conflict := ahead.conflict(group.runs[0]):
            board = replace(board, notes=(f"Apart: {conflict[0]}.", *board.notes))
        sections.append((run, board, merge(group.runs, papers)))
    _print(sections, boards, _origin(found, options), options)
    for line in apart:
        print(f"not shown: {line}", file=sys.stderr)
    for doubt in doubts:
        print(f"warning: {_in_words(doubt)}", file=sys.stderr)
    return 0


def compare(options: argparse.Namespace) -> int:
    """Two runs, or two parts of one, case by case; or a run against published figures."""
    margin = Amount.read(options.margin, "--margin") if options.margin else None
    if options.published:
        return _published(options, margin)
    a, b = two_sides(options, "to compare")
    first, second = a.run, b.run
    pairs = comparison.pair(a, b, _questions(a, b))
    headline, note = _headline(first, options)
    chosen = options.metrics.split(",") if options.metrics else _usual(first, headline)
    for name in chosen:
        if name not in first.metrics or name not in second.metrics:
            both = [name for name in first.metrics if name in second.metrics]
            raise DataError(f"there is no metric {name!r} on both sides", hint=near(name, both))
    titles = {key: value for table in reversed(first.table_specs) for key, value in table.labels.items()}
    tables = [
        comparison.differences(a, b, pairs),
        comparison.compared(a, b, pairs, headline, chosen, titles, margin),
        comparison.most_different(a, b, pairs, headline),
    ]
    if note:
        tables[1] = replace(tables[1], notes=(*tables[1].notes, note))
    if options.format == "csv":
        tables = tables[1:]
    show(tables, options.format, f"{b.name} against {a.name}", options.output)
    return 0


def _published(options: argparse.Namespace, margin: Amount | None) -> int:
    """A run against the figures that papers have published of a model."""
    if len(options.runs) != 1 or options.label:
        raise DataError("--published compares one run with a paper", hint="Give one run folder, and no --label.")
    run = load_run(options.runs[0])
    tables = as_published(run, options.published, margin)
    show(tables, options.format, f"{run.spec.name}: as published?", options.output)
    return 0


def _headline(run: Run, options: argparse.Namespace) -> tuple[HeadlineSpec, str | None]:
    """The headline; without its `where:`, and with a note, where the options choose other episodes themselves."""
    headline = run.headline
    chosen = {*(entry.partition("=")[0] for entry in options.where), *(options.label or ())[:1]}
    if not chosen & headline.table.where.keys():
        return headline, None
    plain = replace(headline.table, where={}, title=headline.metric)
    note = f"{headline.metric} is not {headline.name}, which is about {headline.where} only."
    return replace(headline, table=plain), note


def _usual(run: Run, headline: HeadlineSpec) -> list[str]:
    """The headline, what is beside it, and the metrics of the spec's first table."""
    first = next((table.cells for table in run.table_specs), ())
    return [name for name in dict.fromkeys([headline.metric, *first, *headline.also_show]) if name in run.metrics]


def _questions(a: RunPart, b: RunPart) -> tuple[comparison.Digest, comparison.Digest] | None:
    """What the cases of both ask; None if run.json of two runs says that all are the same."""
    asked = [(side.run.meta.get("cases") or {}).get(QUESTIONS) for side in (a, b)]
    if a.run is not b.run and asked[0] is not None and asked[0] == asked[1]:
        return None
    try:
        return _digests(a), _digests(b)
    except UserError as error:
        print(f"not checked whether cases of one id ask the same: {' '.join(error.message.split())}", file=sys.stderr)
        return None


def _digests(side: RunPart) -> comparison.Digest:
    from harness.engines.mock import Mock

    wanted = {(score.condition, score.case) for score in side.scores}
    return {
        (condition.id, case.id): comparison.case_digest((case.public, case.private, case.topology))
        for condition, case, repeat in resolve.plan(side.run.spec, find(), Mock()).episodes()
        if repeat == 0 and (condition.id, case.id) in wanted
    }


def _print(
    sections: Sequence[tuple[Run, Standings, list[Table]]],
    boards: Sequence[Standings],
    origin: Table,
    options: argparse.Namespace,
) -> None:
    title = boards[0].name if len(boards) == 1 else "Leaderboards"
    if options.table:
        tables, entries = list[Table](), []
        for run, _, own in sections:
            tables += own
            entries += run.table_specs
        show([*tables_named(tables, entries, options.table), origin], options.format, title, options.output)
        return
    shown = [overall(boards)] if len(boards) > 1 else []
    shown += [all_pairs(boards)] if options.pairs else []
    for _, board, own in sections:
        several = [replace(table, title=_of(board.name, table.title)) for table in own]
        shown += [board.table(), *(several if len(sections) > 1 else own)]
    show([*readable(shown, options), origin], options.format, title, options.output)


def _origin(found: Sequence[tuple[RunScores, Run]], options: argparse.Namespace) -> Table:
    """Where the numbers of a board come from, by each run's record."""
    author = options.author or find().author
    return as_table([(scores.id, facts(run.meta, run.folder, scores.cost, author)) for scores, run in found])


def _of(benchmark: str, title: str) -> str:
    """A table's title among those of several benchmarks: with the benchmark's name, which it may begin with."""
    return title if title.startswith(benchmark) else f"{benchmark}: {title}"


def _load(paths: Sequence[Path]) -> tuple[list[tuple[RunScores, Run]], list[str], list[Doubt]]:
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
    for path in paths:
        explicit = (path / META).is_file()
        for folder in [path] if explicit else _below(path):
            if folder.resolve() in seen:
                continue
            seen.add(folder.resolve())
            try:
                run = load_run(folder)
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


def _part(ran: Spec) -> str | None:
    """What of the project's spec of that name was run, where it is not all of it."""
    limit = ran.get("limit")
    parts = [f"at most {limit} case{'s' * (limit > 1)} per condition"] if limit else []
    try:
        whole = load(ran.name, find())
        played, every = ({variant.id for variant in spec.variants()} for spec in (ran, whole))
        parts = [] if limit == whole.get("limit") else parts
        parts += [f"{len(played)} of {len(every)} conditions"] if played < every else []
        if (few := int(ran.get("repeats") or 1)) < (all_of_them := int(whole.get("repeats") or 1)):
            parts.append(f"{few} of {all_of_them} repeats")
    except UserError:
        pass  # the spec is from elsewhere: what it was is not known
    return ", ".join(parts) or None


def _baselines(run: Run, group: Comparable) -> list[tuple[Role, RunScores]]:
    """Floor and ceiling of the headline, played now or before. A policy that cannot play is left out, with a line."""
    headline, project = run.headline, find()
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
            if not (folder / "scores.jsonl").is_file():
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


def leaderboard_options(command: Parser) -> None:
    """The options of `harness leaderboard`."""
    command.add_argument("runs", nargs="+", metavar="PATH", help="run folders, or folders of runs")
    text = "show floor and ceiling: policies, played now"
    command.add_argument("--with_baselines", action="store_true", help=text)
    command.add_argument("--pairs", action="store_true", help="list the paired differences of all pairs of models")
    command.add_argument("--author", metavar="NAME", help="who publishes it (default: author in harness.yaml)")
    opt.add(command, "table", "output", *opt.TABLES)


def compare_options(command: Parser) -> None:
    """The options of `harness compare`."""
    command.add_argument("runs", nargs="+", metavar="RUN", help="two runs; or one, with --label")
    add_sides(command, "protocol P2P SFS")
    text = "these metrics (default: the headline, the metrics beside it, and those of the first table)"
    command.add_argument("--metrics", metavar="NAME,…", help=text)
    text = "test whether differences are smaller than this: 3%% of a metric's range, or a number in the headline's unit"
    command.add_argument("--margin", metavar="AMOUNT", help=text)
    text = "compare one run with the figures that its spec's papers have of this model"
    command.add_argument("--published", metavar="MODEL", help=text)
    opt.add(command, "output", "format")
