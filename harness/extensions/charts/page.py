"""The report: one HTML file that shows all of one or several runs of a spec."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from harness.api.errors import DataError, UserError
from harness.evaluation.run import Run
from harness.extensions.analysis.standings import standings
from harness.extensions.charts import Chart, ChartOptions, Material, inline, kinds, styled
from harness.extensions.charts.figures import draw
from harness.report.grid import number
from harness.tables import SIMULATED, Table

from .page_examples import examples_html
from .page_html import document, plain_table, safe, table_html
from .page_record import record_html

_CARDS: Final = 8
"""Up to so many models have a card each; more are in the table alone."""
_PLOTS: Final = 'pip install "mas-eval-harness[plots]" draws these charts.'


def report_page(material: Material, tables: Iterable[Table], description: str = "") -> str:
    """The whole page.

    Args:
        material: the runs.
        tables: the spec's tables over all of them.
        description: what the spec says about itself.

    Raises:
        DataError: where a journal is damaged.
    """
    meta = material.sources[0].run.run
    title = str(meta.get("spec"))
    runs, episodes = len(material.sources), len(material.scores)
    summary = f"{runs} run{'s' * (runs > 1)}, {len(material.models)} model{'s' * (len(material.models) > 1)}, "
    summary += f"{episodes:,} episodes" + (f", begun {str(meta.get('start'))[:10]}" if meta.get("start") else "")
    headline = material.headline()
    sections = {
        "Headline": _headline(material),
        "Charts": _charts(material),
        "Tables": _tables(tables),
        "Example episodes": examples_html(material, headline),
        "Run record": record_html(material),
    }
    shown = {name: body for name, body in sections.items() if body}
    links = "".join(f'<a href="#{_anchor(name)}">{name}</a>' for name in shown)
    body = "".join(f'<section id="{_anchor(name)}"><h2>{name}</h2>\n{html}</section>\n' for name, html in shown.items())
    about = f"<p>{safe(description)}</p>" if description else ""
    head = f'<header><h1>{safe(title)}</h1>{about}<p class="dim">{safe(summary)}</p><nav>{links}</nav></header>\n'
    return document(f"{title} · report", head + f"<main>{body}</main>", _file("page.css"), _file("page.js"))


def _file(name: str) -> str:
    return Path(__file__).with_name(name).read_text("utf-8")


def _anchor(name: str) -> str:
    return name.lower().replace(" ", "-")


def _tables(tables: Iterable[Table]) -> str:
    """Every table with a number in it; the names of the others."""
    filled: list[Table] = []
    empty: list[Table] = []
    for table in tables:
        has_numbers = any(cell.value is not None for row in table.rows for cell in row.cells)
        (filled if has_numbers else empty).append(table)
    names = "; ".join(safe(table.title) for table in empty)
    note = f'<p class="dim">Without a single number: {names}.</p>' if empty else ""
    return "".join(_table(table, i) for i, table in enumerate(filled)) + note


def _table(table: Table, number: int) -> str:
    """A table; of a figure the drawing with its data folded below it."""
    data = table_html(table, "sortable")
    if not table.figure or not _can_draw():
        return data
    try:
        with styled():
            figure = draw(table)
            figure.suptitle("")  # it is above
            svg = inline(figure, f"figure-{number}", table.title, "The data stand below.", 1.0)
    except DataError:  # nothing to draw
        return data
    shown = f'<h3>{safe(table.title)}</h3>{svg}<details class="printed"><summary>Data</summary>{data}</details>'
    return f'<figure class="whole">{shown}</figure>\n'


def _can_draw() -> bool:
    return importlib.util.find_spec("matplotlib") is not None


def _headline(material: Material) -> str:
    """A card a model: its rank, the number with its interval, what an episode used; of several models the standings."""
    board = standings([source.run for source in material.sources])
    table = board.table()
    used: dict[str, list[int]] = {}
    for one in material.played():
        if one.use.tokens is not None:
            used.setdefault(one.score.model, []).append(one.use.tokens)
    cards = []
    several = len(board.rows) > 1
    for row, line in zip(board.rows, table.rows, strict=True):
        cell = row.cell
        value, low, high = (number(x, table, board.headline.metric) for x in (cell.value, cell.low, cell.high))
        facts = [f"rank {row.rank}"] if several else []
        facts += [f"95 % from {low} to {high}"] if cell.low is not None else []
        if span := board.by_readers.get(row.model):
            low, high = (number(x, table, board.headline.metric) for x in span)
            facts.append(f"from {low} to {high} if replies are read by other rules")
        facts += [f"{cell.n or 0:,} episodes"] + ([f"{cell.failed:,} failed"] if cell.failed else [])
        facts += [f"{cell.missing:,} without a number"] if cell.missing else []
        if cell.value is None and row.read is not None and row.read < board.headline.min_read:
            facts.append(f"no number: {100 * row.read:.3g} % of its turns were parsed")
        if row.model in used:
            facts.append(f"{sum(used[row.model]) / len(used[row.model]):,.0f} tokens an episode")
        mark = f" {SIMULATED}" if cell.uses_ground_truth else ""
        cards.append(
            f'<div class="card"><div>{safe(row.model + mark)}</div>'
            f'<div class="value{" best" if line.cells[0].best else ""}">{safe(value)}</div>'
            f'<div class="dim">{" · ".join(map(safe, facts))}</div></div>'
        )
    shown = f'<div class="cards">{"".join(cards)}</div>' if len(cards) <= _CARDS else ""
    below = table_html(table, "sortable") if several else ""
    return f'<p class="dim">{safe(board.headline.title)}</p>{shown}{below}'


def _charts(material: Material) -> str:
    """Every kind that the runs have data for, each with its data."""
    charts = []
    for kind in kinds().values():
        try:
            charts.append(kind(material, ChartOptions()))
        except UserError:  # there is no data for this kind: then there is no such chart
            continue
    if not charts:
        return ""
    if not _can_draw():
        return f'<p class="dim">{safe(_PLOTS)}</p><div class="charts">{"".join(_figure(c, "") for c in charts)}</div>'
    with styled():
        drawn = [_figure(chart, inline(chart.figure(), chart.kind, chart.title, chart.about)) for chart in charts]
    return f'<div class="charts">{"".join(drawn)}</div>'


def _figure(chart: Chart, svg: str) -> str:
    rows = [[chart_cell(value) for value in row] for row in chart.rows]
    table = plain_table(chart.columns, rows, "sortable")
    data = f'<details class="printed"{"" if svg else " open"}><summary>Data</summary>{table}</details>'
    caption = f"<figcaption>{safe(chart.about)}</figcaption>"
    return f"<figure><h3>{safe(chart.title)}</h3>{svg}{caption}{data}</figure>\n"


def chart_cell(value: Any) -> str:
    """A value of the table below a chart, as text."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def page_of_runs(runs: Sequence[Run], tables: Iterable[Table], description: str = "") -> str:
    """All about finished runs, as `report_page`."""
    from harness.extensions.charts.plot_command import material

    return report_page(material(runs), tables, description)
