"""A leaderboard as a site: all pages, with `data.json` and `data.csv` beside each."""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from harness import __version__
from harness.api.errors import SpecError, UserError
from harness.api.printable import csv_cell
from harness.config.project import find
from harness.extensions.analysis.overall import overall
from harness.extensions.analysis.section import Section
from harness.extensions.submissions.check import Verification, verify
from harness.extensions.viewer import standalone
from harness.report.render import render
from harness.tables import Table

from . import addresses, charts, standing_rows
from .content import BenchmarkPages, Content, Model, PlayedRun
from .episodes import MAX_PAGE_CHARS, Sample, SampleReader, Shown
from .folder import SiteFolder
from .run_facts import record
from .templates_env import as_json, environment, for_script

STATIC = Path(__file__).with_name("static")


class Site:
    """Writes a site from the boards of `harness leaderboard`.

    Args:
        options: those of the command: output, author, verify.

    Raises:
        SpecError: no folder is named, or options do not go together.
        DataError: the folder holds something else.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        if options.output is None:
            raise SpecError("a site needs a folder", hint="harness leaderboard … --format site -o site")
        if options.table:
            raise SpecError("--table prints one table, and a site has all of them", hint="Leave --table out.")
        self._folder = SiteFolder(Path(options.output))
        self._project = find()
        self._author = options.author or self._project.author
        self._verify = options.verify
        self._environment = environment()

    def __call__(self, sections: Sequence[Section]) -> None:
        """Write all pages, and print where they are."""
        content = Content.of(sections)
        with SampleReader(content.runs, self._project) as reading:
            self._write(content, reading)
        root = self._folder.root
        many = len(content.benchmarks), len(content.models), len(content.runs)
        print("site of {} benchmarks, {} models and {} runs: {}".format(*many, root / addresses.INDEX), file=sys.stderr)

    def _write(self, content: Content, reading: Iterable[Shown]) -> None:
        if self._verify:
            for played in content.runs:
                played.verification = self._verified(played)
        self._folder.open()
        self._static(content)
        self._first(content)
        self._models(content)
        self._page("method/index.html", "method.html", {})
        for benchmark in content.benchmarks:
            self._benchmark(benchmark)
        for model in content.models:
            self._model(model, content)
        self._runs(content)
        for played, found in reading:
            self._run(played, found)
        self._folder.close()

    def _verified(self, played: PlayedRun) -> Verification:
        try:
            return verify(played.run.folder, self._project)
        except UserError as error:
            return Verification(differences=[error.message])

    # ------------------------------------------------------------------------------------ pages

    def _static(self, content: Content) -> None:
        for file in sorted(STATIC.iterdir()):
            self._folder.write(f"static/{file.name}", file.read_text("utf-8"))
        self._folder.write("static/viewer.js", standalone.script())
        self._folder.write("static/viewer.css", standalone.style())
        known = {addresses.slug(model.name): standing_rows.profile(model) for model in content.models}
        self._folder.write("static/profiles.js", f"globalThis.profiles = {for_script(known)};\n")

    def _first(self, content: Content) -> None:
        table = self._overall(content)
        leaders = [standing_rows.leader(benchmark) for benchmark in content.benchmarks]
        self._page(
            "index.html",
            "first.html",
            {"content": content, "leaders": leaders, "news": content.runs[:10]},
            {
                "benchmarks": [
                    {"name": one.name, "page": one.page, "runs": len(part.section.runs), **standing_rows.facts(part)}
                    for one in content.benchmarks
                    for part in one.parts[:1]
                ],
                "models": [{"name": one.name, "page": one.page} for one in content.models],
                "runs": [_of_run(one) for one in content.runs],
                "table": _plain(table),
            },
            render(table, "csv"),
        )

    def _overall(self, content: Content) -> Table:
        return overall([benchmark.main.section.board for benchmark in content.benchmarks])

    def _models(self, content: Content) -> None:
        table = self._overall(content)
        rows = [standing_rows.model_line(model, content, table) for model in content.models]
        matrix = standing_rows.matrix(table, content) if 1 < len(content.benchmarks) <= standing_rows.MATRIX else None
        data = [{"name": one.name, "page": one.page} for one in content.models]
        context: dict[str, Any] = {"rows": rows, "matrix": matrix, "notes": table.notes, "content": content}
        context["averaged"] = any(row.strip is not None for row in rows)
        self._page("models/index.html", "models.html", context, {"models": data}, render(table, "csv"))

    def _benchmark(self, benchmark: BenchmarkPages) -> None:
        parts = list[dict[str, Any]]()
        for part in benchmark.parts:
            tables = [table for table in part.section.tables if standing_rows.has_numbers(table)]
            try:
                drawn = charts.charts(part.section)
            except UserError as error:
                print(f"{benchmark.name}: no charts: {' '.join(error.message.split())}", file=sys.stderr)
                drawn = []
            parts.append({"part": part, "rows": standing_rows.rows(part), "charts": drawn,
                          "tables": [standing_rows.shown_table(table) for table in tables]})  # fmt: skip
        data = [
            {
                "standings": _plain(part.table),
                "tables": [_plain(table) for table in part.section.tables],
                "charts": [{"kind": one.kind, "columns": one.columns, "rows": one.rows} for one in shown["charts"]],
                "runs": [_of_run(one.run) for one in part.entries.values()],
            }
            for part, shown in zip(benchmark.parts, parts, strict=True)
        ]
        text = "".join(render(part.table, "csv") for part in benchmark.parts[:1])
        context = {"benchmark": benchmark, "parts": parts, "endings": charts.ENDINGS}
        self._page(benchmark.page, "benchmark.html", context, {"benchmark": benchmark.name, "parts": data}, text)

    def _model(self, model: Model, content: Content) -> None:
        other = standing_rows.default_other(model, content)
        lines = standing_rows.profile_lines(model, other)
        others = [(addresses.slug(one.name), one.name) for one in content.models if one is not model]
        data: dict[str, Any] = {"model": model.name, "profile": standing_rows.profile(model)}
        data["runs"] = [_of_run(one.run) for one in model.entries]
        table = [
            [one.benchmark.name, one.run.scores.id, one.standing.rank, *_numbers(one.standing.cell)]
            for one in model.entries
        ]
        text = _csv(("benchmark", "run", "rank", "value", "low", "high", "n", "failed", "missing"), table)
        context: dict[str, Any] = {"model": model, "other": other, "lines": lines, "others": others}
        context |= {"slug": addresses.slug(model.name), "benchmarks": len(content.benchmarks)}
        context["unknown"] = [*dict.fromkeys(one.benchmark.name for one in model.entries if one.board.scale is None)]
        self._page(model.page, "model.html", context, data, text)

    def _runs(self, content: Content) -> None:
        data = [_of_run(one) for one in content.runs]
        text = _csv([*data[0]] if data else (), [[*one.values()] for one in data])
        self._page("runs/index.html", "runs.html", {"content": content}, {"runs": data}, text)

    def _run(self, played: PlayedRun, found: Sequence[tuple[Sample, dict[str, Any] | str]]) -> None:
        shown: list[tuple[Sample, str]] = []
        for sample, data in found:
            why = data if isinstance(data, str) else ""
            if not isinstance(data, str):
                written = for_script(data)
                if len(written) > MAX_PAGE_CHARS:
                    why = "it is too long for a page"
                else:
                    context = {"sample": sample, "played": played, "data": data, "written": written}
                    self._page(sample.page, "episode.html", context)
            shown.append((sample, why))
        what = record(played, self._author)
        if what.spec is not None:
            self._folder.write(f"{played.folder}/spec.yaml", what.spec)
        data_of = {**_of_run(played), "facts": what.facts}
        if played.verification is not None:
            data_of["verification"] = vars(played.verification)
        numbers = [
            [one.standing.model, metric, *_numbers(cell)]
            for one in played.entries
            for metric, cell in {
                one.board.section.board.headline.metric: one.standing.cell,
                **one.standing.beside,
            }.items()
        ]
        columns = ("model", "metric", "value", "low", "high", "n", "failed", "missing")
        data_of["numbers"] = [dict(zip(columns, row, strict=True)) for row in numbers]
        text = _csv(columns, numbers)
        context = {"played": played, "record": what, "samples": shown, "verification": played.verification}
        self._page(played.page, "run.html", context, data_of, text)

    # ------------------------------------------------------------------------------------ files

    def _page(
        self, path: str, template: str, context: Mapping[str, Any], data: Any = None, text: str | None = None
    ) -> None:
        """Write a page, and what stands beside it."""
        more = {"link": partial(addresses.relative, path), "version": __version__, "author": self._author}
        html = self._environment.get_template(template).render(**context, **more, has_data=data is not None, here=path)
        self._folder.write(path, html + "\n")
        beside = path.rpartition("/")[0]
        beside = f"{beside}/" if beside else ""
        if data is not None:
            whole = {"schema": 1, "harness": __version__, **data}
            self._folder.write(f"{beside}data.json", as_json(whole, ensure_ascii=False) + "\n")
        if text is not None:
            self._folder.write(f"{beside}data.csv", text)


def _plain(table: Table) -> dict[str, Any]:
    return table.to_json()


def _numbers(cell: Any) -> list[Any]:
    return [cell.value, cell.low, cell.high, cell.n, cell.failed, cell.missing]


def _of_run(played: PlayedRun) -> dict[str, Any]:
    verification = played.verification
    return {
        "run": played.scores.id,
        "page": played.page,
        "benchmark": played.benchmark.name,
        "models": ", ".join(sorted(played.scores.models)),
        "date": played.day,
        "verified": None if verification is None else verification.level,
    }


def _csv(columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(map(csv_cell, columns))
    writer.writerows(map(csv_cell, row) for row in rows)
    return out.getvalue()
