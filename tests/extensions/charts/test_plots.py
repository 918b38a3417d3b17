"""Figures: what is drawn where, and what a person without matplotlib is told."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy
import pytest

from harness.api.errors import DataError
from harness.extensions.charts.figures import draw
from harness.tables import Cell, Column, Row, Table

COLUMNS = tuple(Column({"problem": p}, (p,), "solved") for p in ("coloring", "matching"))


def figure(kind: Any, xs: list[Any], label: str = "model", **more: Any) -> Table:
    rows = [Row({label: x}, (str(x),), (Cell(0.1 * (i + 1), 0.01, 9), Cell(0.2, None, 9))) for i, x in enumerate(xs)]
    return Table("T", (label,), ("problem",), COLUMNS, tuple(rows), (label.title(),), figure=kind, **more)


def test_stacked_bars_stand_on_each_other() -> None:
    drawn = draw(figure("stacked", ["a", "b"]))
    (axis,) = drawn.axes
    coloring, matching = axis.containers
    assert [bar.get_height() for bar in coloring] == pytest.approx([0.1, 0.2])
    assert [bar.get_y() for bar in matching] == pytest.approx([0.1, 0.2])
    assert [tick.get_text() for tick in axis.get_xticklabels()] == ["a", "b"]
    assert [entry.get_text() for entry in drawn.legends[0].get_texts()] == ["coloring", "matching"]


def test_a_line_keeps_the_distances_of_a_numeric_x() -> None:
    (axis,) = draw(figure("line", [20, 50, 100], label="size")).axes
    assert numpy.asarray(axis.lines[0].get_xdata()).tolist() == [20, 50, 100]
    assert numpy.asarray(axis.lines[0].get_ydata()).tolist() == pytest.approx([0.1, 0.2, 0.3])
    assert axis.get_xlabel() == "Size"
    (named,) = draw(figure("line", ["small", "large"])).axes
    assert numpy.asarray(named.lines[0].get_xdata()).tolist() == [0, 1]


def test_a_heat_map_has_a_tile_for_every_cell_and_the_numbers_in_them() -> None:
    tiles, scale = draw(figure("heat", ["a", "b"], unit="percent", digits=0)).axes
    assert numpy.asarray(tiles.collections[0].get_array()).tolist() == [[0.1, 0.2], [0.2, 0.2]]
    assert [text.get_text() for text in tiles.texts] == ["10%", "20%", "20%", "20%"]
    assert [tick.get_text() for tick in tiles.get_yticklabels()] == ["a", "b"]
    assert scale.get_ylim() == (0, 1)
    with pytest.raises(DataError, match="nothing to draw"):
        draw(Table("T", ("model",), ("problem",), COLUMNS, (), ("Model",), figure="heat"))


def test_bars_stand_side_by_side_around_their_tick() -> None:
    (axis,) = draw(figure("bar", ["a"])).axes
    left, right = (container.patches[0] for container in axis.containers if hasattr(container, "patches"))
    assert left.get_x() + left.get_width() == pytest.approx(right.get_x())
    assert left.get_x() + right.get_x() + right.get_width() == pytest.approx(0)


@pytest.mark.parametrize(
    ("error", "reach"),
    [
        (None, [0.1, 0.3]),
        ("sem", [0.1, 0.3]),
        ("std", [-0.2, 0.6]),
        ("interval", [0.15, 0.5]),
        ({"solved": "interval"}, [0.15, 0.5]),
        ({"other": "std"}, [0.2, 0.2]),
    ],
)
def test_error_bars_are_what_the_entry_asks_for(error: Any, reach: list[float]) -> None:
    cells = (Cell(0.2, 0.1, 9, low=0.15, high=0.5, std=0.4), Cell(0.2, None, None))
    row = Row({"model": "a"}, ("a",), cells)
    drawn = draw(Table("T", ("model",), ("problem",), COLUMNS, (row,), ("Model",), figure="bar", error=error))
    bars: list[Any] = [container for container in drawn.axes[0].containers if hasattr(container, "has_yerr")]
    first, second = ([y for _, y in bar.lines[2][0].get_segments()[0]] for bar in bars)
    assert (first, second) == (pytest.approx(reach), pytest.approx([0.2, 0.2]))


def test_a_panel_for_each_value_of_the_other_row_labels() -> None:
    some, none = Cell(0.1, 0.01, 9), Cell(None, None, 0)
    cells = {4: (none, some), 8: (some, some)}
    rows = tuple(Row({"size": s, "model": "m"}, (f"{s} nodes", "m"), cells[s]) for s in (4, 8))
    drawn = draw(Table("T", ("size", "model"), ("problem",), COLUMNS, rows, ("Size", "Model"), figure="bar"))
    assert [axis.get_title() for axis in drawn.axes] == ["4 nodes", "8 nodes"]
    drawn_series: list[Any] = [axis.get_legend_handles_labels() for axis in drawn.axes]
    assert [labels for _, labels in drawn_series] == [["matching"], ["coloring", "matching"]]  # no bar without a value
    assert [entry.get_text() for entry in drawn.legends[0].get_texts()] == ["matching", "coloring"]
    colours = [handles[-1].patches[0].get_facecolor() for handles, _ in drawn_series]
    assert colours[0] == colours[1]


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_a_figure_is_written_whatever_its_names_say(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"figure{suffix}"
    draw(figure("bar", ["$x_{", "a\x1b[0m\n", r"\frac{1}{2}$$", "_hidden"], label="model"), path)
    assert path.stat().st_size > 1000


def test_published_points_are_marked() -> None:
    ours = figure("bar", ["a"])
    theirs = Row({"model": "p"}, ("p",), ours.rows[0].cells, published="Paper")
    (axis,) = draw(Table("T", ("model",), ("problem",), COLUMNS, (*ours.rows, theirs), ("Model",), figure="bar")).axes
    assert [tick.get_text() for tick in axis.get_xticklabels()] == ["a", "p †"]


def test_what_cannot_be_drawn_is_explained(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="'T' is a table, not a figure"):
        draw(figure(None, ["a"]))
    with pytest.raises(DataError, match="'T' has nothing to draw"):
        draw(figure("bar", []))
    with pytest.raises(DataError, match="cannot write the figure"):
        draw(figure("bar", ["a"]), tmp_path / "missing" / "figure.png")
    with pytest.raises(DataError, match="cannot write the figure"):
        draw(figure("bar", ["a"]), tmp_path / "figure.xyz")


def test_without_matplotlib_the_pip_command_is_reported() -> None:
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from harness.extensions.charts.figures import draw\n"
        "from harness.report import render\n"  # all else works without it
        "from harness.tables import Table\n"
        "table = Table('T', (), (), (), (), figure='bar')\n"
        "render(table)\n"
        "try: draw(table)\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=True)
    assert done.stdout.startswith("SetupError drawing figures needs matplotlib")
    assert 'pip install "mas-eval-harness[plots]"' in done.stdout
