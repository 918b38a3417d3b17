"""`harness plot`: every kind of chart is drawn from finished runs, and what a run lacks is said."""

from __future__ import annotations

import re
import shutil
import warnings
from pathlib import Path
from xml.etree import ElementTree

import pytest

import harness
from harness.api import Completion, Request
from harness.api.errors import RequestError
from harness.engines.mock import Mock
from harness.extensions.charts import ChartOptions, chart, styled
from harness.extensions.charts.plot_command import material
from tests.helpers.commands import invoke
from tests.helpers.finished import calculator

KINDS = [
    ("scaling", ["small", "hostile"], ["Terms", "Accuracy ↑", "small"]),
    ("pareto", ["small", "hostile"], ["Tokens an episode ↓", "Accuracy ↑", "small"]),
    ("failures", ["small", "hostile"], ["Episodes, %", "Model", "solved", "unsolved"]),
    ("heatmap", ["network"], ["Sender", "Receiver", "Messages an episode"]),
    ("calibration", ["panel"], ["Stated confidence", "Right answers, share", "Answers"]),
]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("kind", "folders", "texts"), KINDS, ids=[kind for kind, _, _ in KINDS])
def test_every_kind_is_a_valid_svg_that_names_its_axes(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, folders: list[str], texts: list[str]
) -> None:
    files = [tmp_path / "a.svg", tmp_path / "b.svg"]
    for file in files:
        paths = [str(runs / folder) for folder in folders]
        code, out, err = invoke(capsys, "plot", *paths, "--kind", kind, "-o", str(file))
        assert code == 0, err
        assert out.splitlines()[-1] == f"figure: {file}"
    root = ElementTree.parse(files[0]).getroot()
    shown = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert [text for text in texts if text not in shown] == []
    assert not list(root.iter("{http://www.w3.org/2000/svg}script"))
    assert files[0].read_bytes() == files[1].read_bytes()
    assert "\u202e" not in files[0].read_text("utf-8")


def test_answers_of_a_case_are_one_observation_of_calibration(runs: Path) -> None:
    loaded = material([harness.load_run(runs / "panel")])
    rows = chart("calibration", loaded, ChartOptions()).rows
    cases = len({score.case for score in loaded.scores})
    answers, observations = zip(*(row[-2:] for row in rows), strict=True)
    assert sum(answers) > cases >= max(observations)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("suffix", ["pdf", "png"])
def test_papers_get_pdf_and_slides_png(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], suffix: str
) -> None:
    file = tmp_path / f"figure.{suffix}"
    assert invoke(capsys, "plot", str(runs / "small"), "--kind", "scaling", "-o", str(file))[0] == 0
    start = {"pdf": b"%PDF", "png": b"\x89PNG"}[suffix]
    assert file.read_bytes().startswith(start)


@pytest.mark.slow
def test_what_was_chosen_is_said_and_can_be_chosen(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plot = ("plot", str(runs / "network"), "--kind", "failures", "-o", str(tmp_path / "f.svg"))
    assert "a bar for each Task" in invoke(capsys, *plot)[1]
    assert "a bar for each graphs" in invoke(capsys, *plot, "--by", "graphs")[1]
    condition = "problem=coloring,graphs=small_world,size=4"
    code, out, _ = invoke(capsys, *plot[:3], "heatmap", *plot[4:], "--condition", condition)
    assert (code, condition in out) == (0, True)


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("folder", "more", "error", "hint"),
    [
        ("panel", ["--kind", "scaling"], "the group's size, or another number, is the same in all episodes", ""),
        (
            "network",
            ["--kind", "pareto"],
            "policies played, which use no tokens",
            "scaling, failures, heatmap.",
        ),
        ("small", ["--kind", "pareto", "--by", "model"], "all episodes are of Model small", "several models"),
        ("small", ["--kind", "calibration"], "no agent states a confidence", "scaling, pareto, failures"),
        ("small", ["--kind", "heatmap"], "does not record who sent messages", "scaling, pareto, failures"),
        ("small", ["--kind", "scaling", "--x", "term"], "no episode has the label 'term'", "Did you mean terms?"),
        ("network", ["--kind", "scaling", "--x", "graphs"], "'graphs' is not several numbers", "Numeric labels"),
        ("small", ["--kind", "scaling", "--metric", "scor"], "there is no metric 'scor'", "Did you mean score?"),
        ("small", ["--kind", "failures", "--by", "term"], "no episode has the label 'term'", "Did you mean terms?"),
        ("small", ["--kind", "failures", "--condition", "terms=3"], "no condition 'terms=3'", "Did you mean"),
        ("network", ["--kind", "heatmap", "--episode", "x"], "no finished episode 'x'", ""),
        ("small", ["--kind", "scalings"], "there is no kind 'scalings'", "Did you mean scaling?"),
        ("none", ["--kind", "scaling"], "folder not found", ""),
    ],
)
def test_what_is_lacking_is_said_in_a_line(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], folder: str, more: list[str], error: str, hint: str
) -> None:
    code, _, err = invoke(capsys, "plot", str(runs / folder), *more, "-o", str(tmp_path / "f.svg"))
    assert code == 2
    assert error in err and hint in err and "Traceback" not in err
    assert not (tmp_path / "f.svg").exists()


def test_a_damaged_journal_is_shown_with_its_line(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(runs / "small", folder)
    journal = folder / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b'"k"', b'"K"', 1)
    journal.write_bytes(b"".join(lines))
    code, _, err = invoke(capsys, "plot", str(folder), "--kind", "failures", "-o", str(tmp_path / "f.svg"))
    assert code != 0
    assert f"error: {journal}:3:1: the line is not as it was written" in err
    assert "The kinds that have data" not in err


def test_a_figure_has_a_form_and_a_place(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plot = ("plot", str(runs / "small"), "--kind", "scaling", "-o")
    code, _, err = invoke(capsys, *plot, str(tmp_path / "f.jpg"))
    assert code == 2 and "it is svg, png or pdf" in err
    code, _, err = invoke(capsys, *plot, str(tmp_path / "missing" / "f.svg"))
    assert code == 2 and "cannot write the figure" in err


def test_runs_of_other_specs_are_not_drawn_together(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = (str(runs / "small"), str(runs / "panel"))
    code, _, err = invoke(capsys, "plot", *both, "--kind", "failures", "-o", str(tmp_path / "f.svg"))
    assert code == 2 and "they ran different specs" in err


def texts_of(file: Path) -> list[str | None]:
    return [element.text for element in ElementTree.parse(file).getroot().iter("{http://www.w3.org/2000/svg}text")]


def test_long_names_beside_bars_stay_distinct_on_two_lines(tmp_path: Path) -> None:
    names = [f"meta-llama/Llama-3.1-{size}B-Instruct" for size in (70, 405)]
    names += [f"org/{'long-' * 12}{end}-{'name-' * 12}x" for end in ("one", "two")]
    runs = [
        harness.evaluate("arithmetic", Mock(model=name, text="4"), limit=1, output_path=tmp_path / str(i))
        for i, name in enumerate(names)
    ]
    with styled():
        (axis,) = chart("failures", material(runs), ChartOptions()).figure().axes
    shown = [tick.get_text() for tick in axis.get_yticklabels()]
    assert shown[:2] == ["meta-llama/Llama-\n3.1-70B-Instruct", "meta-llama/Llama-\n3.1-405B-Instruct"]
    assert shown[2] != shown[3]
    assert all("…" in name and max(map(len, name.split("\n"))) <= 26 for name in shown[2:])


def test_an_unsolved_episode_counts_under_the_gravest_cause(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    vague, cut = Completion("no idea"), Completion("no i", finish_reason="length")
    ends = iter([0, 1, vague, vague, cut, cut, vague, RequestError("refused"), RequestError("refused"), 0])

    def reply(request: Request) -> Completion:
        end = next(ends)
        if isinstance(end, RequestError):
            raise end
        if isinstance(end, Completion):
            return end
        value = eval(max(re.findall(r"[-+*() \d]{5,}", request.thread.messages[-1]["content"]), key=len))
        return Completion(f"#### {value + end}")

    sums = ["task.size=7", "matrix.terms=[2]", "protocol.parse_retries=1"]
    model = Mock(function=reply)
    harness.evaluate("arithmetic", model, overrides=sums, output_path=tmp_path / "r", max_concurrency=1)
    code, *_ = invoke(capsys, "plot", str(tmp_path / "r"), "--kind", "failures", "-o", str(tmp_path / "f.svg"))
    kinds = ("solved", "unsolved", "unreadable reply", "cut-off reply", "engine error", "failed", "limit reached")
    assert code == 0
    assert [kind for kind in kinds if kind in texts_of(tmp_path / "f.svg")] == [*kinds[:6]]
    code, *_ = invoke(capsys, "report", str(tmp_path / "r"), "--format", "html", "-o", str(tmp_path / "r.html"))
    page = (tmp_path / "r.html").read_text("utf-8")
    row = re.search(r'<th class="name" scope="row">mock §</th>((?:<td>[^<]*</td>)+)', page.partition("How episodes")[2])
    assert row and re.findall(r"<td>([^<]*)</td>", row[1]) == ["7", "2", "1", "1", "1", "1", "1"]


def test_with_prices_quality_costs_dollars(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prices = "prices={a: {input: 1, output: 2}, b: {input: 10, output: 20}}"
    for name in ("a", "b"):
        model = Mock(model=name, function=lambda request: Completion("#### 1", input_tokens=1_000, output_tokens=500))
        overrides = [prices, "task.size=2", "matrix.terms=[2]"]
        harness.evaluate("arithmetic", model, overrides=overrides, output_path=tmp_path / name)
    runs = (str(tmp_path / "a"), str(tmp_path / "b"))
    code, out, _ = invoke(capsys, "plot", *runs, "--kind", "pareto", "-o", str(tmp_path / "p.svg"))
    assert code == 0 and "On the front: a." in out
    assert "USD an episode ↓" in texts_of(tmp_path / "p.svg")


@pytest.mark.parametrize(
    ("played", "front"),
    [
        (
            {"good": (9, 2000), "as good": (9, 2001), "dear": (9, 2100), "worse": (3, 1999), "cheap": (3, 1900)},
            {"good", "as good", "cheap"},
        ),
        # Each costs less than 1 % more than the one before, and the last more than 1 % more than the first.
        ({"best": (9, 2030), "cheapest": (3, 2000), "between": (4, 2015)}, {"best", "cheapest"}),
    ],
)
def test_a_token_less_puts_nobody_on_the_front(
    tmp_path: Path, played: dict[str, tuple[int, int]], front: set[str]
) -> None:
    def run(name: str, wrong_from: int, tokens: int) -> harness.Run:
        model = Mock(model=name, function=calculator(wrong_from, tokens))
        sums = ["task.size=3", "matrix.terms=[2,3,4]"]
        return harness.evaluate("arithmetic", model, overrides=sums, output_path=tmp_path / name)

    runs = [run(name, *how) for name, how in played.items()]
    rows = chart("pareto", material(runs), ChartOptions()).rows
    assert {row[0] for row in rows if row[6] == "yes"} == front


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["scaling", "pareto"])
def test_fifteen_models_have_a_legend_that_fits(kind: str, tmp_path: Path) -> None:
    def answer(request: Request) -> Completion:
        return Completion("Answer: 4", input_tokens=10, output_tokens=3)

    runs = [
        harness.evaluate(
            "arithmetic", Mock(model=f"model-{i}-{'x' * i}", function=answer), limit=2, output_path=tmp_path / str(i)
        )
        for i in range(15)
    ]
    drawn = chart(kind, material(runs), ChartOptions())
    with styled(), warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = drawn.figure()
        figure.draw_without_rendering()
        (axis,) = figure.axes
        legend = axis.get_legend()
        assert legend is not None
        box, whole = legend.get_window_extent(), figure.bbox
        assert box.x0 >= whole.x0 and box.x1 <= whole.x1 and box.y1 <= whole.y1 + 1
        assert axis.get_window_extent().height > 100
        assert axis.get_yticklabels()[1].get_text().endswith("%")
