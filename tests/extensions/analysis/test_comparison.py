"""`harness compare`: what differs between two runs, in words and numbers, case by case."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from harness import evaluate
from harness.engines.mock import Mock
from tests.helpers.commands import invoke

Capsys = pytest.CaptureFixture[str]
SILO = ["matrix.agents=[2]", "matrix.problem=[global_maximum, prefix_sum]"]


def played(folder: Path, spec: str, *overrides: str, model: str | None = None, **more: object) -> Path:
    """A run in `folder`."""
    return evaluate(spec, model, overrides=overrides, output_path=folder, **more).folder  # type: ignore[arg-type]


SUMS = ["task.size=10"]
PLAYED: dict[str, tuple[str, list[str], dict[str, object]]] = {
    "oracle": ("silo_quick", SILO, {}),
    "silent": ("silo_quick", [*SILO, "baseline=silo/silent"], {}),
    "rounds": ("silo_quick", [*SILO, "protocol.max_rounds=7"], {}),
    "reminder": ("silo_quick", [*SILO, "prompts=silo/reminder"], {}),
    "p2p": ("silo_quick", [*SILO, "matrix.protocol=[P2P]"], {}),
    "sfs": ("silo_quick", [*SILO, "matrix.protocol=[SFS]", "baseline=silo/silent"], {}),
    "seed": ("silo_quick", SILO, {"seed": 7}),
    "mock0": ("arithmetic", [*SUMS, "generation_kwargs.temperature=0.0"], {"model": "mock"}),
    "mock1": ("arithmetic", [*SUMS, "generation_kwargs.temperature=1.0"], {"model": "mock"}),
}
"""Runs of SILO-Bench and of sums, each with one thing changed."""


class Runs:
    """The folder of these runs, each of which is played when a test first names it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __truediv__(self, name: str) -> Path:
        if name in PLAYED and not (self.folder / name).exists():
            spec, overrides, more = PLAYED[name]
            played(self.folder / name, spec, *overrides, **more)  # type: ignore[arg-type]
        return self.folder / name


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs(tmp_path_factory.mktemp("compare"))


def compare(capsys: Capsys, *arguments: object) -> tuple[int, str, str]:
    return invoke(capsys, "compare", *map(str, arguments))


def differing(out: str) -> dict[str, list[str]]:
    """The rows of the first table."""
    lines = out.partition("\n\n\n")[0].splitlines()[4:]
    return {line.split()[0]: line.split()[1:] for line in lines if line and not line.startswith(("Nothing", "  "))}


def test_two_players_of_the_same_cases(runs: Runs, capsys: Capsys) -> None:
    code, out, err = compare(capsys, runs / "silent", runs / "oracle")
    assert (code, err) == (0, "")
    assert out.startswith("What differs\n")
    assert differing(out) == {"model": ["silo/silent", "silo/oracle"], "baseline.plan": ["–", "star"]}
    assert "silo/oracle against silo/silent, paired by case" in out
    headline = next(line for line in out.splitlines() if line.startswith("Success rate ↑"))
    assert headline.split()[3:5] == ["0.500", "1.000"] and headline.split()[-1] == "6"
    assert "6 of 6 pairs differ in Success rate; these differ most." in out
    assert f"Look at them: `harness view {runs / 'oracle'}` (B)." in out
    counts = next(line for line in out.splitlines() if line.startswith("parse failures"))
    assert counts.split()[2:] == ["0.000", "0.000", "0.000", "–", "–", "–", "6"]  # no share of 0: it has no interval
    assert "protocol=P2P,agents=2,problem=prefix_sum/II-11-n2-0/0" in out


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("other", "what", "sides"),
    [
        ("rounds", "protocol.max_rounds", ["20", "7"]),
        ("reminder", "prompts", ["silo/standard", "silo/reminder"]),
    ],
)
def test_what_differs_is_said_in_words(other: str, what: str, sides: list[str], runs: Runs, capsys: Capsys) -> None:
    code, out, _ = compare(capsys, runs / "oracle", runs / other)
    assert (code, differing(out)) == (0, {what: sides})
    assert f"{other} against oracle, paired by case" in out


def test_two_settings_of_sampling(runs: Runs, capsys: Capsys) -> None:
    code, out, _ = compare(capsys, runs / "mock0", runs / "mock1")
    assert (code, differing(out)) == (0, {"generation_kwargs.temperature": ["0.0", "1.0"]})


def test_models_and_policies_differ_in_their_engine(runs: Runs, tmp_path: Path, capsys: Capsys) -> None:
    policy = played(tmp_path / "policy", "arithmetic", "task.size=10", "generation_kwargs.temperature=0.0")
    _, out, _ = compare(capsys, policy, runs / "mock0")
    assert differing(out) == {"model": ["calculator", "mock"], "engine": ["none:", "policies", "play", "Mock"]}
    other = evaluate(
        "arithmetic",
        "mock",
        model_args={"text": "6"},
        overrides=["task.size=10", "generation_kwargs.temperature=0.0"],
        output_path=tmp_path / "other",
    )
    _, out, _ = compare(capsys, runs / "mock0", other.folder)
    assert differing(out) == {"engine.text": ["6"]}


PANEL = """
name: panel
task: {use: arithmetic, size: 6, terms: 3}
protocol: {use: vote, agents: 3}
prompts: panels/standard
baseline: {use: simulated, accuracy: 0.6}
metrics: [score]
"""
MIXED = PANEL.replace(
    "baseline: {use: simulated, accuracy: 0.6}",
    "models: {other: {use: mock, text: 'The answer is 3.'}}\nagents: {default: model, two: {count: 2, model: other}}",
)


@pytest.mark.parametrize(
    ("spec", "options", "changed", "rows", "model"),
    [
        (
            PANEL,
            (),
            ("--set", "baseline.accuracy=0.7"),
            {"baseline.accuracy": ["0.6", "0.7"]},
            "simulated (accuracy=0.7)",
        ),
        (
            PANEL,
            (),
            ("--repeats", "2", "--set", "baseline.accuracy=0.7"),
            {"repeats": ["1", "2"], "baseline.accuracy": ["0.6", "0.7"]},
            "simulated (accuracy=0.7)",
        ),
        (
            MIXED,
            ("--model", "mock"),
            ("--set", "models.other.model=gpt"),
            {"models.other.model": ["mock", "gpt"]},
            "mock (latency=0.0); other: gpt (text=The answer is 3.",
        ),
        (PANEL, ("--model", "mock"), ("--set", "baseline.accuracy=0.7"), {}, "mock"),
    ],
    ids=["a policy's parameter", "and the repeats", "another model in seats", "a policy that does not play"],
)
def test_the_players_that_differ_are_named(
    spec: str,
    options: tuple[str, ...],
    changed: tuple[str, ...],
    rows: dict[str, list[str]],
    model: str,
    tmp_path: Path,
    capsys: Capsys,
) -> None:
    (tmp_path / "panel.yaml").write_text(spec)
    for name, more in (("a", ()), ("b", changed)):
        run = ("--spec", str(tmp_path / "panel.yaml"), *options, *more, "--output_path", str(tmp_path / name))
        code, out, err = invoke(capsys, "eval", *run)
        assert code == 0, err
    assert f"panel: {model}" in " ".join(out.split())
    code, out, _ = compare(capsys, tmp_path / "a", tmp_path / "b")
    assert (code, differing(out)) == (0, rows)
    assert ("Nothing differs of what is compared" in out) == (not rows)


def test_where_a_model_is_differs(runs: Runs, tmp_path: Path, capsys: Capsys) -> None:
    for name in "ab":
        folder = played(tmp_path / name, "arithmetic", *SUMS, model="mock")
        meta = json.loads((folder / "run.json").read_text())
        meta["engine_args"]["model"]["base_url"] = f"http://{name}.example/v1"
        (folder / "run.json").write_text(json.dumps(meta))
    _, out, _ = compare(capsys, tmp_path / "a", tmp_path / "b")
    assert differing(out) == {"engine.base_url": ["http://a.example/v1", "http://b.example/v1"]}


def test_a_run_beside_itself_differs_in_nothing(runs: Runs, capsys: Capsys) -> None:
    code, out, _ = compare(capsys, runs / "oracle", runs / "oracle")
    assert code == 0
    assert "Nothing differs of what is compared" in out and "No pair differs in Success rate." in out


def test_two_values_of_a_swept_label_in_one_run(runs: Runs, capsys: Capsys) -> None:
    code, out, _ = compare(capsys, runs / "oracle", "--label", "protocol", "P2P", "BP")
    assert (code, differing(out)) == (0, {"protocol": ["P2P", "BP"]})
    assert "BP against P2P, paired by case" in out
    assert next(line for line in out.splitlines() if line.startswith("Success rate ↑")).split()[-1] == "2"


@pytest.mark.slow
def test_runs_whose_matrix_has_other_values_pair_over_what_they_share(runs: Runs, capsys: Capsys) -> None:
    code, out, _ = compare(capsys, runs / "p2p", runs / "sfs", "--format", "json")
    what, tests, cases = json.loads(out)
    assert code == 0
    assert {row["names"][0] for row in what["rows"]} >= {"protocol", "model"}
    assert [cell["value"] for cell in tests["rows"][0]["cells"]][-1] == 2
    assert all(row["key"]["a"] != row["key"]["b"] for row in cases["rows"])
    code, out, _ = compare(capsys, runs / "p2p", runs / "oracle", "--where", "protocol=P2P")
    assert (code, "paired by case" in out) == (0, True)


@pytest.mark.slow
def test_several_values_on_one_side_need_a_choice(runs: Runs, capsys: Capsys) -> None:
    spec = {
        "extends": "silo_quick",
        "name": "unswept",
        "protocol": {"channel": "mailbox"},
        "tables": [],
        "matrix": {"protocol": None, "agents": [2], "problem": ["global_maximum", "prefix_sum"]},
    }
    evaluate(spec, output_path=runs / "unswept")
    code, _, err = compare(capsys, runs / "oracle", runs / "unswept")
    assert code == 2
    assert err == ("error: oracle has several values of protocol: BP, P2P, SFS\n  Choose one: --where protocol=BP\n")
    code, out, _ = compare(capsys, runs / "p2p", runs / "unswept")
    assert (code, differing(out)["protocol"]) == (0, ["P2P", "–"])


@pytest.mark.slow
def test_cases_of_one_id_that_are_not_the_same_make_no_pairs(runs: Runs, capsys: Capsys) -> None:
    code, _, err = compare(capsys, runs / "oracle", runs / "seed")
    assert (code, "oracle and seed have no case in common: cases with the same id ask other questions" in err) == (
        2,
        True,
    )


def test_runs_without_a_common_case_are_refused_in_a_sentence(runs: Runs, capsys: Capsys) -> None:
    code, out, err = compare(capsys, runs / "oracle", runs / "mock0")
    assert (code, out, len(err.splitlines())) == (2, "", 2)
    assert "have no case in common" in err or "several values" in err


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["oracle"], "one run and no label: nothing to compare"),
        (["oracle", "silent", "rounds"], "3 runs and no label"),
        (["oracle", "silent", "--label", "protocol", "P2P", "BP"], "2 runs and a label"),
        (["oracle", "--label", "protocl", "P2P", "BP"], "no episode of oracle has the label 'protocl'"),
        (["oracle", "--label", "protocol", "P2P", "XX"], "no episode of oracle has protocol 'XX'"),
        (["oracle", "silent", "--metrics", "solvd"], "there is no metric 'solvd' on both sides"),
        (["oracle", "nowhere"], "folder not found"),
    ],
)
def test_mistakes_are_explained(arguments: Sequence[str], message: str, runs: Runs, capsys: Capsys) -> None:
    given = [runs / x if i == 0 or x in ("silent", "rounds", "nowhere") else x for i, x in enumerate(arguments)]
    code, out, err = compare(capsys, *given)
    assert (code, out) == (2, "")
    assert message in err and "Traceback" not in err


@pytest.mark.sampled(1)
@pytest.mark.parametrize("form", ["text", "markdown", "latex", "csv", "json", "html"])
def test_every_format_has_the_tests_and_the_cases(form: str, runs: Runs, tmp_path: Path, capsys: Capsys) -> None:
    file = tmp_path / "out"
    code, *_ = compare(capsys, runs / "silent", runs / "oracle", "--format", form, "--output", file)
    text = file.read_text("utf-8")
    assert code == 0
    assert "prefix" in text
    assert ("p_holm" if form in ("csv", "json") else "Holm") in text


@pytest.mark.slow
def test_the_same_numbers_every_time(runs: Runs, capsys: Capsys) -> None:
    assert compare(capsys, runs / "silent", runs / "oracle") == compare(capsys, runs / "silent", runs / "oracle")


def statistics(out: str) -> dict[str, dict[str, float | None]]:
    """Metric → statistic → number, of `--format json`."""
    _, tests, _ = json.loads(out)
    names = [column["key"]["statistic"] for column in tests["columns"]]
    return {
        row["key"]["metric"]: dict(zip(names, (cell["value"] for cell in row["cells"]), strict=True))
        for row in tests["rows"]
    }


@pytest.mark.slow
def test_the_headlines_selection_applies_unless_the_options_choose_by_the_same_label(
    tmp_path: Path, capsys: Capsys
) -> None:
    spec = {
        "extends": "silo_quick",
        "name": "some",
        "headline": {"metric": "silo/success", "title": "Right by mail", "where": {"protocol": "P2P"}},
    }
    for name in ("oracle", "silent"):
        evaluate(spec, overrides=[*SILO, f"baseline=silo/{name}"], output_path=tmp_path / name)
    sides = (tmp_path / "silent", tmp_path / "oracle")
    _, out, _ = compare(capsys, *sides)
    assert "Right by mail ↑: only pairs with protocol P2P." in out and "of 2 pairs differ" in out
    found = statistics(compare(capsys, *sides, "--format", "json")[1])
    assert [row["pairs"] for name, row in found.items() if name == "silo/success"] == [2]
    _, out, _ = compare(capsys, *sides, "--where", "protocol=BP")
    assert "silo/success is not Right by mail, which is about protocol P2P only." in out
    assert "Right by mail ↑" not in out and "of 2 pairs differ" in out


def test_parts_of_a_run_that_ask_other_questions_are_refused(tmp_path: Path, capsys: Capsys) -> None:
    run = played(tmp_path / "sums", "arithmetic", "task.size=5", "matrix.terms=[2,4]")
    code, out, err = compare(capsys, run, "--label", "terms", "2", "4")
    assert (code, out) == (2, "")
    assert "2 and 4 have no case in common: cases with the same id ask other questions" in err


def test_runs_of_other_benchmarks_are_refused_by_their_names(runs: Runs, capsys: Capsys) -> None:
    _, _, err = compare(capsys, runs / "oracle", runs / "mock0")
    assert "have no case in common: they played silo_quick and arithmetic" in err


@pytest.mark.slow
def test_other_numbers_of_repeats_pair_the_means_of_a_case(tmp_path: Path, capsys: Capsys) -> None:
    once = played(tmp_path / "once", "silo_quick", *SILO)
    twice = played(tmp_path / "twice", "silo_quick", *SILO, "baseline=silo/silent", repeats=2)
    code, out, _ = compare(capsys, once, twice)
    assert code == 0
    assert "A pair is a case, with the means of its repeats: up to 1 of A and 2 of B." in out
    assert "are in no pair" not in out
    found = statistics(compare(capsys, once, twice, "--format", "json")[1])["silo/success"]
    same = statistics(compare(capsys, runs_once(tmp_path, "silent"), once, "--format", "json")[1])["silo/success"]
    assert (found["pairs"], found["p"]) == (same["pairs"], same["p"])


def runs_once(folder: Path, name: str) -> Path:
    return played(folder / name, "silo_quick", *SILO, f"baseline=silo/{name}")


def test_tables_of_a_spec_and_compare_have_the_same_p(tmp_path: Path, capsys: Capsys) -> None:
    spec = {
        "name": "two_players",
        "task": {"use": "agentsnet/coloring", "graphs": "ring", "size": 6, "instances": 8, "source": "seeded"},
        "protocol": {"use": "local_rounds", "rounds": "paper", "channel": "neighbors", "parse_retries": 1},
        "prompts": "agentsnet/standard",
        "matrix": {"player": ["random", "agentsnet/classical"]},
        "baseline": "${player}",
        "metrics": ["score"],
        "tables": [
            {
                "title": "T",
                "rows": "model",
                "metrics": "score",
                "compare": {"label": "player", "base": "random", "with": "agentsnet/classical", "paired_by": "sample"},
            }
        ],
    }
    run = evaluate(spec, output_path=tmp_path / "run")
    (table,) = run.tables
    (row,) = table.rows
    own = {column.key["statistic"]: cell.value for column, cell in zip(table.columns, row.cells, strict=True)}
    out = compare(capsys, run.folder, "--label", "player", "random", "agentsnet/classical", "--format", "json")[1]
    theirs = statistics(out)["score"]
    assert own["p"] == theirs["p"] is not None
    names = ("difference", "p_holm", "detectable", "pairs")
    assert [own[name] for name in ("base", "with", *names)] == [theirs[name] for name in ("a", "b", *names)]


@pytest.mark.slow
def test_games_of_tournaments_are_paired_by_who_met_in_which_seats(tmp_path: Path, capsys: Capsys) -> None:
    pool: list[object] = ["model", {"label": "kind", "policy": {"use": "expression", "act": "'COOPERATE'"}}]
    spec = {
        "extends": "tournament",
        "name": "duel",
        "matrix": {"order": ["simultaneous", "sequential"]},
        "protocol": {"use": "steps", "order": "${order}", "max_timesteps": 40},
        "tournament": {"pool": [*pool, {"policy": "random"}], "games_per_pairing": 2},
        "tables": [],
    }
    means = []
    for action in ("COOPERATE", "DEFECT"):
        run = evaluate(spec, Mock(text=f"ACTION: {action}", model=action), output_path=tmp_path / action)
        scores = [score.numbers["score"] for score in run.scores]
        means.append(sum(x for x in scores if isinstance(x, float)) / len(scores))
    code, out, err = compare(capsys, tmp_path / "COOPERATE", tmp_path / "DEFECT")
    assert (code, err) == (0, "")
    line = next(line for line in out.splitlines() if line.startswith("Share of the coins"))
    assert [line.partition("↑")[2].split()[i] for i in (0, 1, -1)] == [*(f"{mean:.3f}" for mean in means), "36"]
    assert "Cases that differ most\n\nEpisode  " in out, "an episode is paired with another one"


def test_scores_of_a_version_that_named_no_problems_pair_alike_on_either_side(tmp_path: Path, capsys: Capsys) -> None:
    """Cases that two conditions have in common are one observation by what the newer side says."""
    spec = {
        "name": "sums",
        "task": {"use": "arithmetic", "size": 8, "terms": 2},
        "matrix": {"panel": [1, 3]},
        "protocol": {"use": "vote", "agents": "${panel}"},
        "prompts": "panels/standard",
        "metrics": ["score"],
    }
    runs = [
        evaluate({**spec, "baseline": {"use": "simulated", "accuracy": accuracy}}, output_path=tmp_path / name).folder
        for name, accuracy in (("older", 0.1), ("newer", 0.9))
    ]
    both = statistics(compare(capsys, *runs, "--format", "json")[1])["score"]
    older = runs[0] / "scores.jsonl"
    rows = [json.loads(line) for line in older.read_text().splitlines()]
    older.write_text("".join(json.dumps({**row, "problem": ""}) + "\n" for row in rows))
    forth, back = (statistics(compare(capsys, *sides, "--format", "json")[1])["score"] for sides in (runs, runs[::-1]))
    assert forth == both and back["p"] == both["p"] and back["pairs"] == 16
    assert back["difference"] == -(both["difference"] or 0)
