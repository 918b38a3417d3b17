"""Players that were told the right answer are marked wherever their numbers are shown, kept or compared."""

import csv
import io
import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.api import Action, Case, Engine, InformedPolicy, Turn
from harness.cli import main
from harness.config import resolve, spec
from harness.config.plan import Group, Plan, simulated
from harness.engines.mock import Mock
from harness.evaluation.evaluate import evaluate
from harness.evaluation.load_run import load_run
from harness.evaluation.rescore import rescored
from harness.evaluation.run import Run
from harness.extensions.analysis.leaderboard import RunScores, leaderboard
from harness.extensions.charts.figures import draw
from harness.extensions.charts.page_html import page
from harness.report import FORMATS, render
from harness.runtime.policy_players import PolicyPlayer
from harness.runtime.seats import seed_of
from harness.tables import EpisodeScore, TableSpec
from tests.extensions.datasets.documents_kit import BUILTIN
from tests.helpers.journals import as_killed

NOTE = "simulated: players knew the right answer"
PANEL = {"use": "simulated", "label": "weak experts", "accuracy": 0.6}
TABLES = [
    {"title": "One", "rows": "model", "columns": "terms", "metrics": "score", "aggregate": "pooled"},
    {"title": "Two", "rows": "terms", "metrics": "score", "labels": {"simulated (weak experts)": "GPT-9", "2": "two"}},
    {"title": "Renamed", "rows": "model", "metrics": "score", "labels": {"simulated (weak experts)": "GPT-9"}},
    {"title": "Figure", "rows": ["model", "terms"], "metrics": "score", "figure": "bar"},
    {"title": "Tests", "rows": "model", "metrics": "score", "compare": {"label": "terms", "base": 2, "with": 3}},
]


def body(baseline: Any = PANEL, **more: Any) -> dict[str, Any]:
    return {
        "name": "x",
        "task": {"use": "arithmetic", "size": 8, "terms": "${terms}"},
        "matrix": {"terms": [2, 3]},
        "protocol": {"use": "vote", "agents": 3},
        "prompts": "panels/standard",
        "baseline": baseline,
        "metrics": ["score"],
        "tables": TABLES,
        **more,
    }


def played(folder: Path, model: Engine | None = None, **more: Any) -> Run:
    return evaluate(body(**more), model, output_path=folder, project=BUILTIN)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return played(tmp_path_factory.mktemp("simulated") / "run")


# ------------------------------------------------------------------------------------------ records


def test_the_run_its_scores_its_rows_and_its_journal_say_so(run: Run) -> None:
    assert run.meta["uses_ground_truth"] is True and run.meta["policies_only"] is True
    assert run.meta["model"] == "simulated (weak experts)"
    assert all(score.uses_ground_truth for score in run.scores)
    assert all(row["uses_ground_truth"] is True for row in json.loads((run.folder / "results.json").read_text()))
    ends = [json.loads(line) for line in (run.folder / "journal.jsonl").read_text().splitlines() if '"end"' in line]
    assert len(ends) == 16 and all(end["uses_ground_truth"] is True for end in ends)
    assert all(json.loads(line)["uses_ground_truth"] for line in (run.folder / "scores.jsonl").read_text().splitlines())
    assert (run.folder / "tables.md").read_text().count(NOTE) == len(TABLES)


def test_a_run_without_them_has_no_trace_of_the_mark(tmp_path: Path) -> None:
    plain = played(tmp_path / "run", baseline="calculator")
    assert plain.meta["uses_ground_truth"] is False
    text = "".join((plain.folder / name).read_text() for name in ("journal.jsonl", "scores.jsonl", "results.json"))
    assert "simulated" not in text and "uses_ground_truth" not in text
    for form in FORMATS:
        assert not any("simulated" in render(table, form) or "‡" in render(table, form) for table in plain.tables)


def test_the_mark_survives_reading_rescoring_and_going_on(run: Run, tmp_path: Path) -> None:
    assert all(score.uses_ground_truth for score in load_run(run.folder, BUILTIN).scores)
    again = rescored(run.folder, BUILTIN)
    assert again.scores == run.scores and again.meta["model"] == run.meta["model"]
    torn = tmp_path / "torn"
    torn.mkdir()
    for name in ("run.json", "spec.yaml"):
        (torn / name).write_text((run.folder / name).read_text())
    lines = (run.folder / "journal.jsonl").read_text().splitlines(keepends=True)
    (torn / "journal.jsonl").write_text("".join(lines[: len(lines) // 2]))
    as_killed(torn)
    assert played(torn).scores == run.scores, "the same answers, and all of them marked"


# ------------------------------------------------------------------------------------------- tables


@pytest.mark.parametrize("form", ["text", "markdown", "latex"])
def test_every_table_has_the_note_and_every_row_the_mark(run: Run, form: str) -> None:
    for table in run.tables:
        text = render(table, form)
        assert NOTE in text
        assert text.count("daggerdbl" if form == "latex" else "‡") >= len(table.rows) + 1


def test_no_renaming_takes_the_word_away(run: Run) -> None:
    by_terms, renamed = run.tables[1], run.tables[2]
    assert "GPT-9 (simulated) ‡" in render(renamed) and "two ‡" in render(by_terms)
    assert "simulated (weak experts) ‡" in render(run.tables[0]), "where the word is there already it is enough"
    assert "GPT-9 (simulated) ‡" in page("x", [renamed]) and NOTE in page("x", [renamed])


def test_csv_and_json_say_it_of_every_number(run: Run) -> None:
    for table in run.tables:
        assert {row["uses_ground_truth"] for row in csv.DictReader(io.StringIO(render(table, "csv")))} == {"True"}
        data = json.loads(render(table, "json"))
        assert all(cell["uses_ground_truth"] is True for row in data["rows"] for cell in row["cells"])


@pytest.mark.slow
def test_figures_say_it(run: Run, tmp_path: Path) -> None:
    figure = draw(run.tables[3], tmp_path / "f.svg")
    assert "simulated" in str(figure.get_suptitle())
    assert all("‡" in label.get_text() for axis in figure.axes for label in axis.get_xticklabels())


@pytest.mark.slow
def test_the_command_line_says_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.yaml").write_text(json.dumps(body()))
    folder = str(tmp_path / "run")
    assert main(["eval", "--spec", str(tmp_path / "x.yaml"), "--output_path", folder, "--quiet"]) == 0
    for words in (
        ["report", folder],
        ["score", folder],
        ["leaderboard", folder],
        ["report", folder, "--format", "html"],
    ):
        capsys.readouterr()
        assert main(words) == 0
        assert NOTE in capsys.readouterr().out, words


# -------------------------------------------------------------------------------------- comparisons


def scores(run: Run) -> RunScores:
    return RunScores(run.meta, run.scores, run.table_specs, run.metrics)


def test_a_leaderboard_shows_who_is_simulated_and_who_is_not(run: Run, tmp_path: Path) -> None:
    real = played(tmp_path / "real", Mock(text="The answer is 3.", model="a-model"), baseline=None)
    first, second, *_ = leaderboard([scores(real), scores(run)])
    names = [line.split("  ")[0] for line in render(first).splitlines()]
    assert "a-model" in names and "simulated (weak experts) ‡" in names
    assert [row.uses_ground_truth for row in first.rows] == [False, True]
    assert [(row.names[0], row.uses_ground_truth) for row in second.rows] == [
        ("a-model", False), ("a-model", False), ("GPT-9", True), ("GPT-9", True)]  # fmt: skip
    assert render(second).count("GPT-9 (simulated) ‡") == 2
    assert all(NOTE in table.notes[0] for table in (first, second))
    twin = replace(scores(real), run={**real.meta, "run": "other"}, scores=[named_as(s, run) for s in real.scores])
    apart = leaderboard([twin, scores(run)])[0]
    assert [row.uses_ground_truth for row in apart.rows] == [False, True], (
        "a model of the same name keeps a row of its own"
    )


def named_as(score: EpisodeScore, run: Run) -> EpisodeScore:
    return replace(score, labels={**score.labels, "model": run.meta["model"]})


def test_columns_and_tests_between_both_are_marked_cell_by_cell(run: Run, tmp_path: Path) -> None:
    real = played(tmp_path / "real", Mock(text="The answer is 3.", model="a-model"), baseline=None)
    entries = [
        {"title": "Columns", "rows": "terms", "columns": "model", "metrics": "score"},
        {"title": "T", "rows": "terms", "metrics": "score",
         "compare": {"label": "model", "base": "a-model", "with": "simulated (weak experts)"}},
    ]  # fmt: skip
    tables = [TableSpec.parse(entry) for entry in entries]
    columns, tests = leaderboard([replace(scores(each), tables=tables) for each in (real, run)])
    assert [[cell.uses_ground_truth for cell in row.cells] for row in columns.rows] == [[False, True]] * 2
    lines = [line for line in render(columns).splitlines() if line[:1] in "23" and "‡" in line]
    assert len(lines) == 2 and all(line.rstrip().endswith("‡") and line.count("‡") == 1 for line in lines)
    assert all(cell.uses_ground_truth for row in tests.rows for cell in row.cells) and NOTE in render(tests)


def test_a_real_model_beside_simulated_ones_is_marked_too(tmp_path: Path) -> None:
    agents = {"default": "model", "weak": {"policy": PANEL, "agents": ["Agent-1", "Agent-2"]}}
    mixed = played(tmp_path / "run", Mock(text="The answer is 3.", model="a-model"), agents=agents, baseline=None)
    assert mixed.meta["model"] == "a-model + simulated (weak experts)"
    assert (mixed.meta["uses_ground_truth"], mixed.meta["policies_only"]) == (True, False)
    assert all(score.uses_ground_truth for score in mixed.scores) and NOTE in render(mixed.tables[0])


def test_in_a_mixed_run_only_simulated_rows_are_marked(tmp_path: Path) -> None:
    who = [{"name": "told", "player": PANEL}, {"name": "not", "player": "calculator"}]
    tables = [{"title": "T", "rows": "who", "metrics": "score"}, {"title": "A", "rows": "model", "metrics": "score"}]
    task = {"use": "arithmetic", "size": 8}
    both = played(tmp_path / "run", baseline="${who.player}", matrix={"who": who}, task=task, tables=tables)
    assert both.meta["model"] == "calculator + simulated (weak experts)"
    each, together = both.tables
    assert [(row.names, row.uses_ground_truth) for row in each.rows] == [(("told",), True), (("not",), False)]
    assert [row.uses_ground_truth for row in together.rows] == [True], "a mean that some told players are in is marked"


def test_panels_of_many_labels_are_called_simulated(tmp_path: Path) -> None:
    who = [{"name": name, "player": {**PANEL, "label": name}} for name in ("one", "two")]
    result = planned(body("${who.player}", matrix={"who": who}, task={"use": "arithmetic", "size": 2}, tables=[]))
    assert result.model == "simulated"
    assert [condition.groups[0].ground_truth_label for condition in result.conditions] == [
        "simulated (one)",
        "simulated (two)",
    ]


def planned(data: dict[str, Any]) -> Plan:
    return resolve.plan(spec.parse(data, BUILTIN), BUILTIN)


# --------------------------------------------------------------------------------- who is told what


class Hearsay(InformedPolicy):
    """Says what it was told, and how often it has been asked since."""

    def __init__(self, label: str = "") -> None:
        self.label, self.heard, self.asked = label, None, 0

    heard: tuple[str, str, int] | None

    def inform(self, agent: str, case: Case, seed: int) -> None:
        self.heard = (agent, case.id, seed)

    def choose(self, turn: Turn, rng: random.Random) -> Action:
        self.asked += 1
        return [self.heard, self.asked]


def test_a_group_tells_its_players_before_they_play_and_again_when_they_begin_again() -> None:
    task = BUILTIN.load("tasks", "arithmetic")(size=1)
    case = next(iter(task.cases(1, 0)))
    group = Group("default", BUILTIN.prompts("panels/standard"), policy=Hearsay)
    seed = seed_of(7, task, case, 0)
    player = PolicyPlayer(lambda: group.make_policy("Agent-0", case, seed), 1)
    reply = BUILTIN.load("tasks", "arithmetic")(size=1).reply(case, "Agent-0")
    turns = [Turn("Agent-0", "t", {}, reply, {"previous": i // 2}, fresh=i == 2) for i in range(4)]
    assert [player.decide(turn).action for turn in turns] == [[("Agent-0", case.id, seed), n] for n in (1, 2, 1, 2)]
    assert seed_of(7, task, case, 0) != seed_of(7, task, case, 1) != seed_of(8, task, case, 1)
    with pytest.raises(TypeError, match="a model plays group"):
        replace(group, policy=None).make_policy("Agent-0", case, seed)


def test_all_conditions_meet_the_same_answers(tmp_path: Path) -> None:
    ties = {"ties": ["first", "random", "none"]}
    protocol = {"use": "vote", "agents": 3, "ties": "${ties}"}
    done = played(tmp_path / "run", protocol=protocol, matrix=ties, task={"use": "arithmetic", "size": 20}, tables=[])
    moves: dict[str, list[Any]] = {}
    for line in map(json.loads, (done.folder / "journal.jsonl").read_text().splitlines()):
        if line["k"] == "move":
            moves.setdefault(line["e"].split("/")[0], []).append((line["s"], line["a"]))
    one, two, three = moves.values()
    assert one == two == three and len(one) == 60


def test_what_a_panel_is_calibrated_on_says_nothing_of_what_it_will_answer() -> None:
    """Rows of two splits have the same ids here, and must not meet the same luck."""
    splits = [BUILTIN.load("tasks", "arithmetic")(size=40, test_split=split) for split in ("train", "test")]
    one, two = (list(task.cases(None, 0)) for task in splits)
    assert [case.id for case in one] == [case.id for case in two]
    task = splits[0]
    assert not {seed_of(0, task, case, 0) for case in one} & {seed_of(0, task, case, 0) for case in two}
    text = replace(
        one[0], public={**one[0].public, "question": "An example. What is 1 + 1?", "bare": one[0].public["question"]}
    )
    assert seed_of(0, task, text, 0) == seed_of(0, task, one[0], 0), (
        "examples before a question do not change who answers it"
    )


def test_names() -> None:
    assert simulated("") == "simulated" and simulated("GPT-9") == "simulated (GPT-9)"


def test_prompts_are_shown_as_simulated_players_fill_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.yaml").write_text(json.dumps(body()))
    assert main(["show", "--spec", str(tmp_path / "x.yaml"), "--case", "0", "--agent", "Agent-2"]) == 0
    assert "What is" in capsys.readouterr().out
