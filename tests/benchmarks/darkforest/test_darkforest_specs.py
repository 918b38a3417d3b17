"""DarkForest's specs: who is asked what, how often, how hot; tables that are filled, and the paper's beside them."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.api import Statistic
from harness.api.errors import DataError
from harness.config import resolve, spec
from harness.config.plan import Condition, Plan
from harness.config.spec import over
from harness.engines.mock import Mock
from harness.evaluation.run import Run
from harness.extensions.datasets.templates import DocTemplate
from harness.runtime.steps import drive
from harness.tables import Table
from tests.benchmarks.darkforest.darkforest_small import BENCHMARKS, QUESTIONS, Model, data, played
from tests.extensions.datasets.documents_kit import BUILTIN, cases, task_of
from tests.helpers import shipped
from tests.helpers.scores import numbers

PAPER = [*shipped.published_by("darkforest").values()]
SPECS = ("darkforest", "darkforest_ablations", "darkforest_disclosure", "darkforest_panels")
METHODS = ["Debate", "Self-Consistency", "Refine", "ReConcile", "Mixture-of-Agent", "Graph-of-Agent (Mean)",
           "Graph-of-Agent (Max)", "DarkForest (Ours)"]  # fmt: skip
VOTES = {f"Vote, {n} calls": n for n in (4, 6, 9, 12, 14)}
CALLS = {"Debate": 6, "Self-Consistency": 3, "Refine": 9, "Mixture-of-Agent": 4, "Graph-of-Agent (Mean)": 12,
         "Graph-of-Agent (Max)": 10, "DarkForest (Ours)": 4, **VOTES}  # fmt: skip
"""What a question takes where every reply can be read and says how sure it is; ReConcile's depend on agreement."""


def planned(name: str, *overrides: str) -> Plan:
    return resolve.plan(spec.load(name, BUILTIN, overrides), BUILTIN, Mock(model="Qwen"))


def condition(plan: Plan, **labels: str) -> Condition:
    [result] = [c for c in plan.conditions if labels.items() <= c.labels.items()]
    return result


def seated(one: Condition) -> dict[str, str | None]:
    """Agent → model."""
    case = one.assign_groups(one.task.example(), 0)
    models = {group.name: group.model for group in one.groups}
    return {agent: models[case.roles.get(agent, "default")] for agent in one.protocol.possible_agents(case)}


# ------------------------------------------------------------------------------------------ the plan


def test_eight_methods_and_five_votes_on_six_benchmarks() -> None:
    plan = planned("darkforest")
    assert [*dict.fromkeys(c.labels["benchmark"] for c in plan.conditions)] == [*BENCHMARKS]
    methods = [*dict.fromkeys(c.labels["method"] for c in plan.conditions)]
    assert methods == [*METHODS, *VOTES]
    assert len(plan.conditions) == len(BENCHMARKS) * len(methods)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("benchmark", "panel"), [
    ("MATH", ["model", "coder", "mathstral"]), ("HumanEval", ["model", "coder", "mathstral"]),
    ("MMLU-Pro", ["model", "coder", "mathstral"]), ("GPQA", ["model", "coder", "mathstral"]),
    ("FinQA", ["model", "finance", "saul"]), ("LegalBench", ["model", "finance", "saul"]),
])  # fmt: skip
def test_every_model_plays_where_table_4_says(benchmark: str, panel: list[str]) -> None:
    coordinator = "coder" if benchmark in ("HumanEval", "MMLU-Pro") else "model"
    plan = planned("darkforest", f"matrix.benchmark=[{benchmark}]")
    agents = {f"Agent-{i}": model for i, model in enumerate(panel)}
    for method in (*METHODS, "Vote, 6 calls"):
        head = {"DarkForest (Ours)": {"Coordinator": coordinator}, "Mixture-of-Agent": {"Aggregator": coordinator}}
        if method.startswith("Graph"):
            head[method] = {"Meta": "model"}
        expected = {"Agent-0": "model"} if method == "Refine" else {**agents, **head.get(method, {})}
        assert seated(condition(plan, method=method)) == expected, method


def test_sampling_is_the_benchmarks_and_votes_are_drawn() -> None:
    temperatures = dict(zip(BENCHMARKS, (0.7, 0.2, 0.0, 0.0, 0.0, 0.0), strict=True))
    tokens = dict(zip(BENCHMARKS, (800, 1024, 2048, 2048, 2048, 2048), strict=True))
    for one in planned("darkforest").conditions:
        benchmark = one.labels["benchmark"]
        voting = str(one.labels["method"]).startswith("Vote")
        mapping = {
            "temperature": 0.7 if voting else temperatures[benchmark],
            "top_p": 1.0,
            "max_tokens": tokens[benchmark],
        }
        assert all(group.sampling == mapping for group in one.groups), one.id


def test_thresholds_counts_and_files_are_the_benchmarks() -> None:
    plan = planned("darkforest", "matrix.method=[DarkForest (Ours)]")
    results = [(p.tau_m, p.min_count, p.calibration) for c in plan.conditions if (p := c.protocol)]  # type: ignore[attr-defined]
    files = [f"results/fitted/darkforest/{benchmark}.json" for benchmark in BENCHMARKS]
    assert results == list(zip((0.25, 0.2, 0.25, 0.25, 0.2, 0.2), (10, 5, 5, 5, 3, 3), files, strict=True))


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_no_question_is_both_calibrated_on_and_evaluated(benchmark: str) -> None:
    """Either the rows are those of another split or data set, or what `where` keeps of one it drops of the other."""
    [variant] = spec.load(
        "darkforest", BUILTIN, [f"matrix.benchmark=[{benchmark}]", "matrix.method=[Debate]"]
    ).variants()
    task = variant.data["task"]
    learn = over(task, variant.data["calibrate"]["task"])
    results: list[set[int]] = []
    for entry in (task, learn):
        where = DocTemplate("where", (entry.get("process_docs") or {}).get("where", "1"))
        rows = [{"task_id": f"HumanEval/{i}", "question_id": i, "question": "x" * i} for i in range(164)]
        results.append({i for i, row in enumerate(rows) if str(where(row)) not in ("False", "0")})
    source = [{k: v for k, v in entry.items() if k != "process_docs"} for entry in (task, learn)]
    assert source[0] != source[1] or not results[0] & results[1]
    if benchmark == "HumanEval":
        assert (len(results[0]), len(results[1]), variant.data["calibrate"]["limit"]) == (50, 114, 114)  # Table 5
    if benchmark == "MMLU-Pro":
        assert len(results[1]) == 164, "every row of the validation split is calibrated on"


# --------------------------------------------------------------------------------- calls, by the protocol


def longest(method: str) -> int:
    """Turns of an episode in which nobody can be read, or nobody is content: as many as there can be."""
    plan = planned("darkforest", "matrix.benchmark=[MATH]")
    protocol = condition(plan, method=method).protocol
    task = task_of("arithmetic", size=1, terms=2)
    [case] = cases(task, 1)
    rng = random.Random(0)

    def unsure(turn: Any) -> Any:
        if turn.name == "judge":
            return {
                number: 1 / len(turn.observation["others"])
                for number in (str(o["number"]) for o in turn.observation["others"])
            }
        if turn.name in ("pick", "feedback"):
            return turn.reply.noop
        return {"answer": rng.randrange(10**6), "confidence": 0.0, "malformed": False}

    return sum(1 for _ in drive(protocol, task, case, unsure).turns())


@pytest.mark.slow
def test_beside_every_method_that_exchanges_stands_a_vote_with_as_many_calls() -> None:
    most = {method: longest(method) for method in METHODS}
    assert most == {**{m: CALLS.get(m, 9) for m in METHODS}, "Graph-of-Agent (Mean)": 14, "Graph-of-Agent (Max)": 12}
    assert {n for method, n in most.items() if method != "Self-Consistency"} == {*VOTES.values()}
    order = next(t for t in spec.load("darkforest", BUILTIN).get("tables") if "as many calls" in t["title"])["order"][
        "method"
    ]
    for method, n in most.items():
        if method != "Self-Consistency":
            below = next(name for name in order[order.index(method) :] if name.startswith("Vote"))
            assert VOTES[below] == n, (method, below)


# ------------------------------------------------------------------------------------ a run, whole


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Run, Model]]:
    yield played("darkforest", tmp_path_factory.mktemp("darkforest"))


@pytest.mark.slow
def test_every_method_takes_the_calls_it_declares(ran: tuple[Run, Model]) -> None:
    run, _ = ran
    assert not run.failed
    for score in run.scores:
        method, calls = score.labels["method"], score.numbers["calls"]
        assert calls == CALLS[method] if method in CALLS else calls in (3, 6, 9), (score.id, calls)
        peer_characters = score.numbers["peer_tokens"]
        alone = method == "Refine" or method.startswith(("Vote", "Self"))
        agreed = method == "ReConcile" and score.numbers["agreed_first"] == 1
        assert (peer_characters == 0) == (alone or agreed), (score.id, peer_characters)


@pytest.mark.slow
def test_first_answers_are_asked_for_once_and_billed_to_every_agent(ran: tuple[Run, Model]) -> None:
    run, model = ran
    for benchmark in BENCHMARKS:
        billed = sum(numbers([s for s in run.scores if s.labels["benchmark"] == benchmark], "calls"))
        assert model.asked[benchmark] < billed - QUESTIONS * (3 * 3 + 4 + 6 + 9 + 12), (
            "votes share, and four methods do"
        )
    by = {(s.labels["benchmark"], s.labels["method"], s.id.split("/")[-2]): s.numbers for s in run.scores}
    for (benchmark, method, question), measured in by.items():
        if method in ("DarkForest (Ours)", "ReConcile") or method.startswith("Graph"):
            same = by[benchmark, "Self-Consistency", question]
            assert (measured["first"], measured["available"]) == (same["first"], same["available"])


@pytest.mark.slow
def test_temperatures_reach_the_engine(ran: tuple[Run, Model]) -> None:
    _, model = ran
    assert model.temperatures == {
        "MATH": {0.7}, "HumanEval": {0.2, 0.7}, **{b: {0.0, 0.7} for b in BENCHMARKS[2:]},
    }  # fmt: skip


@pytest.mark.slow
def test_table_1_has_the_papers_columns_and_rows(ran: tuple[Run, Model]) -> None:
    run, _ = ran
    table = run.with_published(PAPER)[0]
    quality = [(b, "Quality") for b in BENCHMARKS]
    assert [column.names for column in table.columns] == [*quality[:5], ("FinQA", "Program accuracy"), quality[5]]
    ours = [row.names[1] for row in table.rows if row.published is None]
    assert ours == [row.names[1] for row in table.rows if row.published] == METHODS
    printed = [round(100 * (cell.value or 0), 2) for cell in table.rows[-1].cells]
    assert printed == [76.80, 84.00, 58.38, 39.90, 15.67, 11.33, 68.00]


def filled(table: Table) -> None:
    """Every row of ours has a number in every column, but for how often the one agent of Refine agrees with itself."""
    ours = [row for row in table.rows if row.published is None]
    empty = [(row.names[-1], i) for row in ours for i, cell in enumerate(row.cells) if cell.value is None]
    agreed = [i for i, column in enumerate(table.columns) if column.key.get("metric") in ("agreed_first", "agreed")]
    refining = [row.names[-1] for row in ours if row.names[-1] == "Refine"]
    assert ours and empty == [(name, i) for name in refining for i in agreed], table.title


def beside(run: Run) -> set[str]:
    """Check that the paper's figures have their place; the sources that are shown."""
    values = set()
    for table in run.with_published(PAPER):
        assert not [note for note in table.notes if "have no place" in note], table.title
        here = [row.names[-1] for row in table.rows if row.published is None]
        theirs = [row for row in table.rows if row.published]
        assert {row.names[-1] for row in theirs} <= {*here}, table.title
        values |= {str(row.published) for row in theirs}
    return values


@pytest.mark.slow
def test_every_column_is_filled_and_the_papers_figures_have_their_place(ran: tuple[Run, Model]) -> None:
    run, _ = ran
    for table in run.tables:
        filled(table)
    assert beside(run) == {"DarkForest, Table 1", "DarkForest, Figure 3"}


@pytest.mark.slow
def test_what_is_lost_was_available_and_what_is_gained_was_not(ran: tuple[Run, Model]) -> None:
    run, _ = ran
    for score in run.scores:
        n = {name: score.number(name) or 0.0 for name in ("score", "available", "lost", "gained", "ever", "agreed")}
        assert n["score"] == n["available"] - n["lost"] + n["gained"], score.id
        assert n["ever"] >= max(n["available"], n["score"]) if score.labels["method"] not in WRITTEN else True
    stacked = next(t for t in run.tables if t.title == "Tokens a question on MATH")
    total = next(t for t in run.tables if t.title == "Tokens a question")
    heights = {row.names[-1]: sum(cell.value or 0 for cell in row.cells) for row in stacked.rows}
    assert heights == {row.names[-1]: pytest.approx(row.cells[0].value) for row in total.rows}


WRITTEN = ("Mixture-of-Agent", "Graph-of-Agent (Mean)", "DarkForest (Ours)")
"""Somebody who is not on the panel writes the answer."""


# ---------------------------------------------------------------------------------------- ablations


WITH_ABLATIONS = ("MATH", "MMLU-Pro", "LegalBench")
"""Those that the paper shows ablations for."""


@pytest.fixture(scope="module")
def ablated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Model]:
    return played("darkforest_ablations", tmp_path_factory.mktemp("ablated"), benchmarks=WITH_ABLATIONS)


@pytest.mark.slow
def test_all_ablations_together_take_four_calls_a_question(ablated: tuple[Run, Model]) -> None:
    run, model = ablated
    assert not run.failed and model.asked == dict.fromkeys(WITH_ABLATIONS, 4 * QUESTIONS)
    calls = {str(s.labels["variant"]): s.numbers["calls"] for s in run.scores}
    alone = {"w/o Coordinator", "Majority Vote", "Weighted Vote", "Uniform", "Agent calibrated", "Full calibrated"}
    assert calls == {variant: 3 if variant in alone else 4 for variant in calls} and len(calls) == 11


@pytest.mark.slow
def test_one_setting_under_two_names_gives_one_number(ablated: tuple[Run, Model]) -> None:
    run, _ = ablated
    by: dict[str, list[Any]] = {}
    for score in run.scores:
        by.setdefault(str(score.labels["variant"]), []).append(score.numbers)
    for one, two in (
        ("Full DarkForest", "τp = 0.66"),
        ("w/o Coordinator", "Full calibrated"),
        ("Weighted Vote", "Agent calibrated"),
    ):
        assert by[one] == by[two]
    override = {v: sum(n["override"] for n in by[v]) for v in ("τp = 0.50", "τp = 0.66", "τp = 0.80", "w/o Guardrail")}
    assert override["τp = 0.50"] >= override["τp = 0.66"] >= override["τp = 0.80"] >= override["w/o Guardrail"] == 0
    assert all(n["override"] is None for n in by["Majority Vote"])


@pytest.mark.slow
def test_ablations_stand_beside_the_papers(ablated: tuple[Run, Model]) -> None:
    run, _ = ablated
    sources = {
        f"DarkForest, {what}"
        for what in ("Tables 2 and 7", "Table 6", "Table 9", "Figure 5", "Figures 4 and 6", "Figure 7")
    }
    assert beside(run) == sources
    decision, votes, *_ = run.with_published(PAPER)
    assert [column.names for column in decision.columns] == [
        ("w/o Coordinator",),
        ("w/o Guardrail",),
        ("Full DarkForest",),
    ]
    assert [column.names for column in votes.columns] == [("Majority Vote",), ("Weighted Vote",), ("Full DarkForest",)]
    assert [[cell.value for cell in row.cells] for row in decision.rows if row.published] == [
        [0.768, 0.754, 0.768],
        [0.672, 0.656, 0.680],
    ]
    for table in run.tables[:6]:
        filled(table)


def test_more_is_disclosed_and_more_crosses(tmp_path: Path) -> None:
    run, _ = played("darkforest_disclosure", tmp_path, benchmarks=["GPQA"])
    assert beside(run) == {"DarkForest, Table 8"}
    peer_text = [run.tables[0].rows[i].cells[4].value or 0 for i in range(3)]
    assert peer_text == sorted(peer_text) and peer_text[0] < peer_text[2]
    assert {s.numbers["calls"] for s in run.scores} == {4}


@pytest.mark.slow
def test_panels_grow_and_coordinators_change(tmp_path: Path) -> None:
    variants = planned("darkforest_panels")
    general = {"Agent-0": "model", "Agent-1": "finance", "Agent-2": "saul"}
    assert seated(condition(variants, variant="5 backbones")) == {
        **general, "Agent-3": "coder", "Agent-4": "mathstral", "Coordinator": "model",
    }  # fmt: skip
    heads = {str(c.labels["variant"]): seated(c)["Coordinator"] for c in variants.conditions}
    assert [heads[v] for v in ("finance-Llama3-8B", "Saul-7B", "Qwen2.5-Coder-7B", "Mathstral-7B")] == [
        "finance", "saul", "coder", "mathstral",
    ]  # fmt: skip
    results = [f"agents.{name}.model=model" for name in ("fourth", "fifth", "head")]
    run, _ = played("darkforest_panels", tmp_path, *results, benchmarks=["FinQA"])
    assert beside(run) == {"DarkForest, Table 10 and Figure 8", "DarkForest, Figure 9"}
    calls = {str(s.labels["variant"]): s.numbers["calls"] for s in run.scores}
    assert (calls["3 backbones"], calls["4 backbones"], calls["5 backbones"]) == (4, 5, 6)
    fitted = sorted(file.name for file in (tmp_path / "results" / "fitted" / "darkforest").iterdir())
    assert fitted == ["FinQA-4.json", "FinQA-5.json", "FinQA.json"]
    for table in run.tables:
        filled(table)


def test_every_published_table_has_a_table_of_a_spec() -> None:
    named = [i for name in SPECS for t in spec.load(name, BUILTIN).get("tables") for i in [t.get("published")] if i]
    assert sorted(named) == sorted(table.id for table in PAPER)


def test_without_fitted_parameters_nothing_is_evaluated(tmp_path: Path) -> None:
    with contextlib.chdir(tmp_path), pytest.raises(DataError, match=r"no calibrated parameters .*MATH\.json") as caught:
        harness.evaluate(
            "darkforest", Mock(function=Model()), overrides=[data(tmp_path, ["MATH"])], output_path=tmp_path / "r"
        )
    assert "harness calibrate" in str(caught.value)


@pytest.mark.slow
def test_a_metric_that_one_benchmark_has_is_missing_in_the_others(ran: tuple[Run, Model]) -> None:
    run, _ = ran
    results = {score.labels["benchmark"] for score in run.scores if score.numbers["program"] is not None}
    assert results == {"FinQA"}
    assert run.metrics["program"].aggregate([1.0, 0.0]) == Statistic(0.5, 0.5, 2)
