"""Play the baselines of the shipped specs and write their leaderboards into results/leaderboards.

python results/make.py                     # all of them, about four minutes
python results/make.py agentsnet dpbench   # these
python results/make.py --check agentsnet   # compare with the files that are there; exit code 1 if they differ
python results/make.py --site site         # play them into a site of their own: pages in the folder site
"""

from __future__ import annotations

import argparse
import difflib
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness import cli
from harness.config import resolve, spec
from harness.config.project import Project, find
from harness.evaluation.stages import execute
from harness.extensions.analysis.leaderboard import RunScores, leaderboard
from harness.extensions.analysis.standings import Role, Standings, standings
from harness.report import render
from harness.runtime.options import Options
from harness.tables import Cell, Column, HeadlineSpec, Row, Table

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "results" / "leaderboards"
FIRST: Mapping[str, str] = {"use": "expression", "label": "first action", "act": "options[0]"}
ALIKE: Mapping[str, str] = {"use": "expression", "label": "all alike", "act": "options[0] if options else noop"}
OWN: Sequence[Any] = (None,)
"""The spec's own `baseline:`, a panel of declared skill. Such a spec studies panels: its tables are of this one."""
GROUPS: dict[str, dict[str, Sequence[Any]]] = {
    "Benchmarks": {
        "agentsnet": (),
        "agentsnet_byzantine": (),
        "agentsnet_quick": (),
        "agentsnet_scale": (),
        "arithmetic": (),
        "arithmetic_votes": (),
        "darkforest_quick": (),
        "dpbench": ("dpbench/always_left", "dpbench/polite", "dpbench/odd_even", "dpbench/chandy_misra"),
        "dpbench_quick": ("dpbench/always_left", "dpbench/polite", "dpbench/odd_even", "dpbench/chandy_misra"),
        "dpbench_scale": ("dpbench/odd_even", "dpbench/chandy_misra"),
        "mas_bench": (),
        "mas_quick": (),
        "silo_bench": (),
        "silo_panel": (),
        "silo_quick": (),
        "who_broke_it": ("who_broke_it/last_speaker", "who_broke_it/surface", "who_broke_it/odd_one_out"),
    },
    "Games and tournaments": {
        "game_suite": (FIRST,),
        "game_suite_hidden": (FIRST,),
        "games_understood": (),
        "hanabi": (FIRST,),
        "negotiation": (FIRST,),
        "repeated_dilemmas": (FIRST,),
        "social_deduction": (),
        "tournament": (),
    },
    "Discussions and teams": {
        "discussion_quick": OWN,
        **{f"teams/{name}": OWN for name in ("chain", "dag_scaling", "graph", "importance", "star", "tree")},
    },
    "Declared tasks": {
        **{
            f"networks/{name}": (ALIKE,) if name == "consensus" else ()
            for name in (
                *("balanced_partition", "coloring", "consensus", "dominating_set", "frequency_assignment"),
                *("leader_election", "matching", "minority_veto", "shared_rooms", "two_hop_coloring", "vertex_cover"),
            )
        },
        **{f"sharded/{name}": () for name in ("auction", "inventory", "networks", "overlap", "ranks", "silo")},
        **{
            f"worlds/{name}": ()
            for name in (*("commons", "dining_table", "four_way_stop", "search_party", "telephone", "trading"),)
        },
        "worlds/public_goods": ({"use": "expression", "label": "free riders", "act": "{'action': 'KEEP'}"},),
    },
    "Crosses": {f"cross/{name}": () for name in ("copies", "crowd", "links", "pledges", "second_run")},
}
SPECS: dict[str, Sequence[Any]] = {name: others for group in GROUPS.values() for name, others in group.items()}
"""Spec → the policies that play besides the floor and the ceiling of its headline. The other shipped specs need data or
models, or differ in prompts alone, which policies do not read."""
LIMITS: Mapping[str, int] = {
    "discussion_quick": 15,
    "tournament": 4,
    "teams/dag_scaling": 10,
    **{f"cross/{name}": 3 for name in ("copies", "crowd", "links", "second_run")},
}
"""Spec → so many cases of a condition, where all of them would take long; the file says so."""
QUICK = tuple(name for name in SPECS if name.endswith("_quick") and name != "darkforest_quick")
"""Parts of other specs: they have a file, and no row on the page over all."""
MOST = 40
"""Rows of a table; longer ones stay out of the files."""
ENDS: tuple[Role, ...] = ("floor", "ceiling")
KEPT = ("model", "value", "low", "high", "n")
INDEX = "README.md"


def stem(name: str) -> str:
    """How the files of a spec begin."""
    return name.replace("/", "_")


def players(name: str, data: Mapping[str, Any]) -> list[tuple[Role, Any]]:
    """(role, policy) of all that play a spec: floor, ceiling, others; its own baseline if it names neither, and None
    where policies meet each other."""
    headline = data.get("headline", {})
    roles: list[tuple[Role, Any]] = [(role, headline[role]) for role in ENDS if role in headline]
    others: list[tuple[Role, Any]] = [("model", policy) for policy in SPECS[name] if policy not in headline.values()]
    return [*roles, *others] if roles or others else [("model", data.get("baseline"))]


def board(name: str, project: Project, work: Path) -> tuple[Standings, list[Table]]:
    """A spec's standings, with floor and ceiling named, and its tables. All of its players play in `work`."""
    loaded = spec.load(name, project, limit=LIMITS.get(name))
    runs: list[RunScores] = []
    ends: list[tuple[Role, RunScores]] = []
    own: list[RunScores] = []
    for role, policy in players(name, loaded.data):
        plan = resolve.plan(loaded if policy is None else resolve.with_baseline(loaded, policy), project)
        played = execute(plan, Options(output_path=work / f"{stem(name)}-{len(runs)}"))
        meta = {**played.meta, "run": f"{name}-{plan.model}"}
        runs.append(RunScores(meta, played.scores, played.table_specs, played.metrics, {}, played.headline))
        ends += [(role, runs[-1])] if role in ENDS else []
        own += [runs[-1]] if policy is None else []
    ranked = standings(runs, ends)
    tables = [table for table in leaderboard(own or runs) if not table.figure and _has_numbers(table)]
    tables = [table for table in tables if len(table.rows) <= MOST]
    return ranked, tables


def site(names: Sequence[str], folder: str, project: Project) -> int:
    """Play the baselines of these specs and write a site of their leaderboards; returns the exit code."""
    with tempfile.TemporaryDirectory() as work:
        for name in names:
            print(name, file=sys.stderr, flush=True)
            loaded = spec.load(name, project, limit=LIMITS.get(name))
            for _, policy in players(name, loaded.data):
                plan = resolve.plan(loaded if policy is None else resolve.with_baseline(loaded, policy), project)
                own = "".join(char if char.isalnum() else "-" for char in plan.model).strip("-")
                execute(plan, Options(output_path=Path(work) / stem(name) / own))
        return cli.main(["leaderboard", work, "--format", "site", "-o", folder])


def _has_numbers(table: Table) -> bool:
    return any(cell.value is not None for row in table.rows for cell in row.cells)


def files(name: str, project: Project, work: Path) -> Iterator[tuple[str, str]]:
    """(file name, content) of a spec's leaderboard."""
    ranked, tables = board(name, project, work)
    shown = [ranked.table(), *tables]
    limit = f"At most {LIMITS[name]} cases of each condition.\n\n" if name in LIMITS else ""
    yield f"{stem(name)}.md", f"# {name}\n\n{limit}" + "\n\n".join(render(table, "markdown") for table in shown)
    rows = [
        {"rank": row.rank, "model": row.model, **_numbers(row.cell), "beside": _values(row.beside)}
        for row in ranked.rows
    ]
    headline = ranked.headline
    ends = {str(row.end): entry for row, entry in zip(ranked.rows, rows, strict=True)}
    document: dict[str, Any] = {
        "spec": name,
        **({"limit": LIMITS[name]} if name in LIMITS else {}),
        "headline": {"metric": headline.metric, "title": headline.table.title, "better": headline.better},
        **{role: {key: ends[role][key] for key in KEPT} for role in ENDS if role in ends},
        "standings": rows,
    }
    yield f"{stem(name)}.json", json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _numbers(cell: Cell) -> dict[str, Any]:
    fields = ("value", "low", "high", "n", "failed", "missing")
    return {field: _rounded(getattr(cell, field)) for field in fields}


def _values(cells: Mapping[str, Cell]) -> dict[str, Any]:
    return {name: _rounded(cell.value) for name, cell in cells.items() if cell.value is not None}


def _rounded(value: float | None) -> float | None:
    """Six digits: what other versions of numerical libraries change is not there."""
    return float(f"{value:.6g}") if isinstance(value, float) else value


def index(folder: Path, project: Project) -> str:
    """The page over all leaderboards, from the JSON files in `folder`."""
    rows, units, digits = [], {}, {}
    for name in (name for name in SPECS if name not in QUICK):
        document = json.loads((folder / f"{stem(name)}.json").read_text("utf-8"))
        if not any(role in document for role in ENDS):
            continue
        loaded = spec.load(name, project)
        headline = HeadlineSpec.of(loaded.data, resolve.metrics(loaded, project))
        names = (name, headline.title, *(document[role]["model"] if role in document else "" for role in ENDS))
        rows.append(Row({"benchmark": name}, names, tuple(_cell(document.get(role)) for role in ENDS), name))
        digits[name] = headline.digits
        if isinstance(headline.table.unit, str):
            units[name] = headline.table.unit
    table = Table(
        title="Floor and ceiling of every headline",
        row_labels=("benchmark", "headline", *ENDS),
        column_labels=("player",),
        columns=tuple(Column({"player": role}, (role.capitalize(),)) for role in ENDS),
        rows=tuple(rows),
        row_names=("Benchmark", "Headline", "Floor is", "Ceiling is"),
        error="interval",
        unit=units,
        digits=digits,
        notes=(
            "Scripted policies, no models. Floor and ceiling are those that the spec's headline names: what any model "
            "should beat, and what is possible. Where there is no ceiling, no scripted policy is known to be the best. "
            "In brackets: 95 % intervals.",
        ),
    )
    links = "\n\n".join(
        f"### {title}\n\n" + "\n".join(f"- [{name}]({stem(name)}.md) ([JSON]({stem(name)}.json))" for name in group)
        for title, group in GROUPS.items()
    )
    return (
        "# Leaderboards of the baselines\n\n"
        "`python results/make.py` plays every baseline and writes these files. `python results/make.py --check` "
        "compares them with what the code gives now, as the tests do.\n\n"
        f"{render(table, 'markdown')}\n## All leaderboards\n\n{links}\n"
    )


def _cell(numbers: Mapping[str, Any] | None) -> Cell:
    if numbers is None:
        return Cell(blank=True)
    return Cell(numbers["value"], None, numbers["n"], low=numbers["low"], high=numbers["high"])


def make(names: Sequence[str], folder: Path, project: Project) -> list[str]:
    """Write the files of these specs into `folder`; returns the files' names. The page over all is written too if every
    leaderboard is there."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    with tempfile.TemporaryDirectory() as work:
        for name in names:
            print(name, file=sys.stderr, flush=True)
            for file, content in files(name, project, Path(work)):
                (folder / file).write_text(content, "utf-8")
                written.append(file)
    if all((folder / f"{stem(name)}.json").is_file() for name in SPECS):
        (folder / INDEX).write_text(index(folder, project), "utf-8")
        written.append(INDEX)
    return written


def differences(names: Sequence[str], project: Project, folder: Path = FOLDER) -> list[str]:
    """What a folder's files of these specs and its page over all have that the code does not give now, as a diff."""
    lines: list[str] = []
    with tempfile.TemporaryDirectory() as fresh:
        for file in make(names, Path(fresh), project):
            lines += _diff(folder / file, (Path(fresh) / file).read_text("utf-8"))
    return lines + _diff(folder / INDEX, index(folder, project))


def _diff(file: Path, now: str) -> list[str]:
    there = file.read_text("utf-8") if file.is_file() else ""
    return [*difflib.unified_diff(there.splitlines(), now.splitlines(), str(file), "now", lineterm="", n=0)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files, or compare them; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("specs", nargs="*", choices=[*SPECS, []], metavar="SPEC", help="these (default: all)")
    parser.add_argument("--check", action="store_true", help="compare with the files that are there")
    parser.add_argument("--site", metavar="DIR", help="write pages into this folder instead")
    options = parser.parse_args(arguments)
    project, names = find(ROOT), options.specs or [*SPECS]
    if options.site is not None:
        return site(names, options.site, project)
    if not options.check:
        make(names, FOLDER, project)
        return 0
    changed = differences(names, project)
    for line in changed[:100]:
        print(line)
    if changed:
        print("the files differ from what the code gives: python results/make.py writes them again", file=sys.stderr)
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
