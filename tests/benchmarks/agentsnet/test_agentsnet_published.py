"""The published AgentsNet figures: whole, consistent but for known misfits, and readable by tables."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.api import Episode, Metric, Statistic
from harness.api.errors import DataError
from harness.config import spec
from harness.config.project import builtin
from harness.extensions.analysis.published import load_published
from harness.extensions.analysis.published_beside import cited
from harness.report import render
from harness.tables import EpisodeScore, TableSpec, build, check, stats
from harness.tables.published_figures import PublishedFigure, PublishedTable
from tests.helpers import shipped

FOLDER = Path(__file__).parents[3] / "results" / "published"
PROBLEMS = ["coloring", "consensus", "leader_election", "matching", "vertex_cover"]
FAMILIES = ["small_world", "scale_free", "delaunay"]
PAPER = {table.id.split("/")[1]: table for table in shipped.published_by("agentsnet").values()}
SPECS = Path(__file__).parents[3] / "specs"
NAMES = ("agentsnet", "agentsnet_scale", "agentsnet_byzantine", "agentsnet_prompts")
ENTRIES = {name: yaml.safe_load((SPECS / f"{name}.yaml").read_text(encoding="utf-8"))["tables"] for name in NAMES}


def entry(name: str, title: str) -> TableSpec:
    """A table of a spec, by the beginning of its title."""
    return TableSpec.parse(next(e for e in ENTRIES[name] if e["title"].startswith(title)))


class Number(Metric):
    def measure(self, episode: Episode) -> float | None:
        return None


METRICS = {
    name: Number()
    for entries in ENTRIES.values()
    for table in entries
    for name in ([table["metrics"]] if isinstance(table["metrics"], str) else table["metrics"])
}


def by(table: str, *labels: str, overall: bool = False) -> dict[Any, PublishedFigure]:
    results = [r for r in PAPER[table].records if r.overall == overall]
    return {tuple(r.labels[x] for x in labels) if len(labels) > 1 else r.labels[labels[0]]: r for r in results}


# --------------------------------------------------------------------------------- the figures alone


def test_every_table_is_whole() -> None:
    sizes = {name: len(table.records) for name, table in PAPER.items()}
    assert sizes == {
        "table2": 10 * 6,
        "table4": 10 * 5,
        "table5": 5 * 6,
        "table6": 5 * 6,
        "table7": 11 * 6,
        "table8": 10 * 6,
        "table9": 5 * 3,
        "table10": 5 * 9,
        "table11": 11 * 9,
    }
    for table in PAPER.values():
        assert table.source == f"AgentsNet, Table {table.id.removeprefix('agentsnet/table')}"
        assert {r.labels["problem"] for r in table.records if "problem" in r.labels} <= set(PROBLEMS)
        assert table.warnings


def test_the_agentsnet_column_of_table_2_follows_from_its_cells_within_rounding() -> None:
    cells = by("table2", "model", "problem")
    for model, printed in by("table2", "model", overall=True).items():
        row = [cells[model, problem] for problem in PROBLEMS]
        exact = stats.mean_of_conditions(Statistic(r.value, r.stderr, 27) for r in row)
        assert exact.value == pytest.approx(printed.value, abs=0.01), model  # half a digit in the cells and here
        spread = [[max(0.0, (r.stderr or 0) + d) for r in row] for d in (-0.005, 0.005)]
        low, high = (math.hypot(*errors) / 5 for errors in spread)
        assert low - 0.005 <= (printed.stderr or 0) <= high + 0.005, model


def test_soft_scores_are_hard_where_the_task_is_all_or_nothing_and_never_lower() -> None:
    hard, soft = by("table2", "model", "problem"), by("table4", "model", "problem")
    assert hard.keys() == soft.keys()
    for key, record in soft.items():
        assert record.value >= hard[key].value, key
        if key[1] in ("consensus", "leader_election"):
            assert (record.value, record.stderr) == (hard[key].value, hard[key].stderr), key


def misfits(table: str, n: int) -> Iterator[tuple[Any, ...]]:
    """Cells that are not k of n solved, with the standard error of ddof = 1, to two digits."""
    for record in PAPER[table].records:
        solved = round(record.value * n)
        exact = stats.mean([1.0] * solved + [0.0] * (n - solved))
        results = (f"{exact.value:.2f}", f"{exact.stderr:.2f}")
        if not record.overall and results != (f"{record.value:.2f}", f"{record.stderr:.2f}"):
            yield *(v for k, v in record.labels.items() if k != "model"), record.value, record.stderr


def test_success_rates_are_k_of_9_but_for_known_misfits() -> None:
    assert list(misfits("table5", 9)) == [("vertex_cover", 4, "aware", 0.33, 0.33)]  # 1 of 3
    assert list(misfits("table6", 9)) == []
    assert list(misfits("table7", 9)) == [
        ("minimal", "vertex_cover", 0.67, 0.33),  # 2 of 3
        ("step_by_step", "vertex_cover", 0.14, 0.14),  # 1 of 7
        ("conversational", "vertex_cover", 0.50, 0.50),  # 1 of 2
    ]
    assert list(misfits("table9", 9)) == []
    assert list(misfits("table10", 9)) == [("coloring", 80, 0.56, 0.17), ("coloring", 100, 0.56, 0.17)]


def test_table_8_is_k_of_27_but_for_known_misfits() -> None:
    assert list(misfits("table8", 27)) == [
        ("standard", "coloring", 0.37, 0.10),
        ("formal", "leader_election", 0.37, 0.10),
        ("conversational", "coloring", 0.37, 0.10),
        ("conversational", "matching", 0.37, 0.10),
        ("real_world", "coloring", 0.18, 0.08),
    ]


DROPPED = {"minimal": (12, 39), "step_by_step": (18, 43), "conversational": (18, 38)}


@pytest.mark.parametrize("table", ["table7", "table8"])
def test_averages_of_prompt_variants_are_pooled_over_the_runs_that_were_kept(table: str) -> None:
    cells, misfit = by(table, "prompts", "problem"), []
    for prompts, printed in by(table, "prompts", overall=True).items():
        mean = sum(cells[prompts, problem].value for problem in PROBLEMS) / 5
        if abs(mean - printed.value) > 0.01:
            misfit.append(prompts)
        if table == "table7" and prompts in DROPPED:
            solved, runs = DROPPED[prompts]
            assert f"{solved / runs:.2f}" == f"{printed.value:.2f}"
    assert misfit == {"table7": ["minimal", "step_by_step"], "table8": ["abstract"]}[table]


def test_tokens_add_up_within_rounding() -> None:
    mapping: dict[tuple[str, int], dict[str, float]] = {}
    for record in PAPER["table11"].records:
        mapping.setdefault((record.labels["model"], record.labels["size"]), {})[record.metric] = record.value
    for key, tokens in mapping.items():
        rounding = 100 if tokens["tokens_total"] < 1e6 else 600
        total = tokens["tokens_input"] + tokens["tokens_output"]
        assert total == pytest.approx(tokens["tokens_total"], abs=rounding + 50), key


# ------------------------------------------------------------------------ beside our own, in tables


def run(model: str, sizes: list[int], **more: str) -> list[EpisodeScore]:
    """Nine episodes for each problem and size; tokens in thousands grow with the size."""
    return [
        EpisodeScore(
            f"{problem}-{size}-{family}/{i}/0",
            f"{problem}-{size}-{family}",
            {"model": model, "problem": problem, "size": size, "graphs": family, **more},
            {
                "solved": float((i + p) % 3 > 0),
                "score": 0.5,
                "tokens_input": 1000.0 * size + i,
                "tokens_output": 500.0 * size,
                "tokens_total": 1500.0 * size + i,
            },
        )
        for p, problem in enumerate(PROBLEMS)
        for size in sizes
        for family in FAMILIES
        for i in range(3)
    ]


BYZANTINE = [s for a in ("unaware", "aware") for s in run("m", [4, 8, 16], awareness=a)]
PROMPTS = [s for p in ("standard", "minimal") for s in run("m", [4, 8, 16], prompts=p)]
RUNS = {
    "agentsnet": run("m", [4, 8, 16]),
    "agentsnet_scale": run("m", list(range(20, 101, 10))),
    "agentsnet_byzantine": BYZANTINE,
    "agentsnet_prompts": PROMPTS,
}
CASES = [(name, entry) for name, entries in ENTRIES.items() for entry in entries]


@pytest.mark.parametrize(("name", "entry"), CASES, ids=[f"{n}-{e['title']}"[:30] for n, e in CASES])
def test_every_entry_places_every_published_figure(name: str, entry: dict[str, Any]) -> None:
    scores = RUNS[name]
    labels = {k: [s.labels[k] for s in scores] for k in scores[0].labels}
    assert check(entry, labels, METRICS) == []
    spec = TableSpec.parse(entry)
    table = build(cited(spec, PAPER.values()), scores, METRICS)
    expected = sum(len(t.records) for t in PAPER.values() if t.id in spec.published)
    theirs = [cell for row in table.rows if row.published for cell in row.cells if cell.value is not None]
    assert len(theirs) == expected
    assert not any("no place" in note or "not comparable" in note for note in table.notes)
    assert len(render(table).splitlines()) > len(table.rows)


def test_table_2_in_our_words() -> None:
    table = build(
        cited(entry("agentsnet", "Fraction of solved instances"), [PAPER["table2"]]), RUNS["agentsnet"], METRICS
    )
    lines = render(table).splitlines()
    assert lines[2].split("  ")[0] == "Model"
    assert lines[2].split()[-1] == "AGENTSNET"
    assert lines[4].split()[-2:] == ["0.67", "(0.05)"]  # 45 conditions of 2 in 3: √(45/9)/45
    sonnet = next(line for line in lines if line.startswith("Claude 3.7 Sonnet †"))
    assert sonnet.split()[-2:] == ["0.70", "(0.02)"]
    assert "† published: AgentsNet, Table 2, profile agentsnet_reference; not run here." in lines


def squares(scores: list[EpisodeScore]) -> tuple[float, float]:
    """Mean and standard error by the paper's Appendix C, equations 1 to 4."""
    conditions: dict[str, list[float]] = {}
    for score in scores:
        conditions.setdefault(score.condition, []).append(score.number("solved") or 0.0)
    means = [sum(runs) / len(runs) for runs in conditions.values()]  # eq. 1
    errors = [statistics.stdev(runs) / math.sqrt(len(runs)) for runs in conditions.values()]  # eq. 2
    mean = sum(means) / len(means)  # eq. 3
    return mean, math.sqrt(sum(error**2 for error in errors) / len(errors) ** 2)  # eq. 4


@pytest.mark.parametrize("repeats", [1, 3])
def test_errors_of_the_reference_are_the_papers_and_tables_say_which_they_have(repeats: int) -> None:
    """On networks that are hard or easy for all five problems; the five outcomes of a network go together."""
    lots = random.Random(7)
    hard = {(size, family, i): lots.random() for size in (4, 8, 16) for family in FAMILIES for i in range(3)}
    scores = [
        EpisodeScore(
            f"{problem}-{size}-{family}/{size}-{family}-{i}/{repeat}",
            f"{problem}-{size}-{family}",
            {"model": "m", "problem": problem, "size": size, "graphs": family},
            {"solved": float(lots.random() < luck)},
        )
        for problem in PROBLEMS
        for (size, family, i), luck in hard.items()
        for repeat in range(repeats)
    ]
    mean, error = squares(scores)
    tables = {}
    for name in ("agentsnet", "agentsnet_reference"):
        first = TableSpec.parse(spec.load(name, builtin()).tables[0])
        tables[name] = build(cited(first, [PAPER["table2"]]), scores, {"solved": Number()})
    cells = {name: table.rows[0].cells for name, table in tables.items()}
    overall = cells["agentsnet_reference"][-1]
    assert (overall.value, overall.stderr) == (pytest.approx(mean), pytest.approx(error))
    clustered = cells["agentsnet"][-1]
    assert clustered.value == overall.value and clustered.stderr > 1.2 * error
    for cell, problem in zip(cells["agentsnet_reference"][:-1], PROBLEMS, strict=True):
        assert (cell.value, cell.stderr) == pytest.approx(
            squares([s for s in scores if s.labels["problem"] == problem])
        )
    (theirs,), (ours,) = ([n for n in tables[name].notes if n.startswith("Standard errors treat")] for name in tables)
    printed = "Published errors (†) stand as they were printed."
    assert theirs == f"Standard errors treat episodes with equal case as one observation (clustered). {printed}"
    squared = "those of conditions add in quadrature"
    assert ours == f"Standard errors treat episodes as independent; {squared}. {printed}"
    assert any("eq. 4, for which every run is independent" in n for n in tables["agentsnet"].notes)


def test_table_11_in_thousands() -> None:
    table = build(cited(entry("agentsnet", "Tokens"), [PAPER["table11"]]), RUNS["agentsnet"], METRICS)
    assert [column.names for column in table.columns][:4] == [
        ("4 nodes", "Input"),
        ("4 nodes", "Output"),
        ("4 nodes", "Total"),
        ("8 nodes", "Input"),
    ]
    lines = render(table).splitlines()
    assert next(line for line in lines if line.startswith("m ")).split()[1:4] == ["4.0K", "2.0K", "6.0K"]
    assert next(line for line in lines if line.startswith("Claude 3.5 Haiku")).split()[4:7] == [
        "35.1K",
        "7.9K",
        "43.0K",
    ]


def test_tables_5_and_6_stand_under_the_run_by_model() -> None:
    published = [PAPER["table5"], PAPER["table6"]]
    table = build(cited(entry("agentsnet_byzantine", "Solved with"), published), BYZANTINE, METRICS)
    assert [column.names for column in table.columns][:3] == [
        ("4 nodes", "Aware"),
        ("4 nodes", "Unaware"),
        ("8 nodes", "Aware"),
    ]
    assert [row.names[0] for row in table.rows] == ["m"] * 5 + ["Llama 4 Maverick"] * 5 + ["Gemini 2.0 Flash"] * 5


def test_figure_4_stacks_to_the_mean_of_its_tasks() -> None:
    table = build(entry("agentsnet", "Fraction of solved instances by size ("), RUNS["agentsnet"], METRICS)
    small = [row for row in table.long() if row["panel"] == "4 nodes"]
    assert [row["series"] for row in small] == ["Coloring", "Consensus", "Leader Election", "Matching", "Vertex Cover"]
    assert all(0 <= row["value"] <= 0.2 for row in small)
    assert sum(row["value"] for row in small) == pytest.approx(2 / 3)


def test_a_smaller_run_is_distinguished_from_the_papers() -> None:
    table = build(cited(entry("agentsnet", "Fraction of solved instances"), [PAPER["table2"]]), run("m", [4]), METRICS)
    note = "† AgentsNet, Table 2 covers size 4, 8, 16; this run size 4: not comparable as a whole."
    assert note in table.notes


# --------------------------------------------------------------------------------------- the loader

GOOD: dict[str, Any] = {"id": "t", "title": "T", "source": "S", "records": [{"model": "m", "metric": "x", "value": 1}]}


def write(folder: Path, content: Any, name: str = "paper.yaml") -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content), encoding="utf-8")
    return path


def test_a_folder_is_read_file_by_file(tmp_path: Path) -> None:
    write(tmp_path, {"tables": [GOOD]}, "b.yaml")
    write(tmp_path, {"tables": [GOOD]}, "a.yaml")
    record = PublishedFigure({"model": "m"}, "x", 1)
    assert load_published(tmp_path) == [PublishedTable(f"{f}/t", "S", "T", (record,)) for f in ("a", "b")]
    assert load_published(tmp_path / "none") == []


def test_a_figure_may_have_a_standard_error_or_a_standard_deviation(tmp_path: Path) -> None:
    figures = [{"model": m, "metric": "x", "value": 1} for m in "abc"]
    write(
        tmp_path,
        {"tables": [{**GOOD, "records": [figures[0], {**figures[1], "std": 0.16}, {**figures[2], "stderr": 0}]}]},
    )
    (result,) = load_published(tmp_path)
    assert [(r.stderr, r.std, dict(r.labels)) for r in result.records] == [
        (None, None, {"model": "a"}),
        (None, 0.16, {"model": "b"}),
        (0, None, {"model": "c"}),
    ]


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a: [", "cannot read published figures"),
        ("[" * 200, "cannot read published figures"),
        ("!!python/object/apply:os.getcwd []", "cannot read published figures"),
        ("", "this must be a mapping, found nothing"),
        ({"tables": {}}, "'tables' must be a list, found a mapping"),
        ({"tables": [GOOD, GOOD]}, "two tables are called 't'"),
        ({"tables": [{**GOOD, "source": 3}]}, "'source' must be text, found the number 3"),
        ({"tables": [{**GOOD, "covers": {"size": 4}}]}, "'size' must be a list, found the number 4"),
        ({"tables": [{**GOOD, "records": [{"metric": "x", "value": "1"}]}]}, "'value' must be a number, found text"),
        ({"tables": [{**GOOD, "records": [{"metric": "x", "value": float("nan")}]}]}, "cannot read published figures"),
        (
            {"tables": [{**GOOD, "records": [{"metric": "x", "value": float("inf")}]}]},
            "'value' must be a number, found",
        ),
        ({"tables": [{**GOOD, "records": [{"metric": "x", "value": 1, "n": 1.5}]}]}, "'n' must be an integer"),
        ({"tables": [{**GOOD, "records": [{"metric": "x", "value": 1, "std": "1"}]}]}, "'std' must be"),
        ({"tables": [{**GOOD, "records": [{"value": 1}]}]}, "entry 0 of 'records': missing required key 'metric'"),
        ({"tables": [{**GOOD, "records": GOOD["records"] * 2}]}, "two figures of 'x' for"),
    ],
)
def test_a_wrong_file_is_explained(tmp_path: Path, content: Any, message: str) -> None:
    path = write(tmp_path, content)
    with pytest.raises(DataError) as caught:
        load_published(tmp_path)
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(path))
