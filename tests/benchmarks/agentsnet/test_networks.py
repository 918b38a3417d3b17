"""The networks: the paper's own to the last neighbor, every other family at any size, and users' files."""

import hashlib
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.api import Case
from harness.api.errors import DataError, PluginError, SetupError
from harness.cli import main
from harness.extensions.networks import FAMILIES as GENERATORS
from harness.extensions.networks import adjacency_of
from tests.benchmarks.agentsnet.agentsnet_kit import BUILTIN, PROBLEMS, task
from tests.helpers.samples import examples

FAMILIES = ("small_world", "scale_free", "delaunay")
OTHERS = ("erdos_renyi", "grid", "ring", "tree", "star", "complete")
SMALL, LARGE = (4, 8, 16), tuple(range(20, 101, 10))


def cases(problem: str = "coloring", seed: int = 0, **parameters: Any) -> list[Case]:
    return list(task(problem, **parameters).cases(None, seed))


def suite(sizes: tuple[int, ...]) -> list[Case]:
    return [case for family in FAMILIES for size in sizes for case in cases(graphs=family, size=size)]


def graph(case: Case) -> nx.Graph:
    return nx.Graph({agent: list(neighbors) for agent, neighbors in (case.topology or {}).items()})


# --------------------------------------------------------------------------------- the paper's own


def test_the_networks_of_the_papers_transcripts() -> None:
    k4 = cases(size=4)[0]  # Appendix E.1
    assert k4.agents == ("Jeremy", "Douglas", "Stephen", "Danielle")
    assert all(set(k4.topology[agent]) == set(k4.agents) - {agent} for agent in k4.agents)

    ws_8_0 = cases(size=8)[0]  # Appendix E.2 and E.5
    assert ws_8_0.agents == ("Joseph", "Timothy", "Henry", "Kyle", "Dorothy", "Joyce", "Richard", "Rachel")
    assert ws_8_0.topology["Kyle"] == ("Timothy", "Henry", "Dorothy", "Richard")  # in the order printed
    assert set(ws_8_0.topology["Dorothy"]) == {"Timothy", "Kyle", "Rachel", "Joseph"}

    dt_8_0 = cases(graphs="delaunay", size=8)[0]  # Appendix E.3 and E.4
    assert dt_8_0.agents == ("Dorothy", "Lauren", "Tyler", "Brandon", "Bobby", "Kayla", "Samuel", "Anna")
    assert set(dt_8_0.topology["Samuel"]) == {"Tyler", "Lauren", "Brandon", "Bobby", "Anna", "Dorothy"}
    assert {"Bobby", "Brandon"} <= set(dt_8_0.topology["Kayla"]) and "Brandon" in dt_8_0.topology["Bobby"]


def test_the_published_suites_are_what_they_always_were() -> None:
    """Every agent and every neighbor list of the 108 networks, in order; no package update may change them."""
    for sizes, digest in ((SMALL, "0299823d3448c94d"), (LARGE, "5ad055a9e88399fc")):
        lines = [[case.id, case.agents, list((case.topology or {}).values())] for case in suite(sizes)]
        assert hashlib.sha256(json.dumps(lines).encode()).hexdigest()[:16] == digest


def distinct(networks: list[Case]) -> list[nx.Graph]:
    """One graph of every topology, whatever its agents are called."""
    results: list[nx.Graph] = []
    for case in networks:
        if not any(nx.is_isomorphic(graph(case), other) for other in results):
            results.append(graph(case))
    return results


@pytest.mark.parametrize("family", FAMILIES)
def test_the_kept_graphs_are_those_that_the_papers_seeds_draw(family: str) -> None:
    """The data file against the libraries that drew it, edge by edge, as the task's own `seeded` networks are drawn."""
    draw = {str(name): generator for name, generator in GENERATORS.items()}[family]
    for size in (*SMALL, *LARGE):
        for case, seed in zip(cases(graphs=family, size=size), (1825, 410, 4507), strict=True):
            drawn = adjacency_of(case.agents, draw(size, seed))
            assert [*(case.topology or {}).items()] == [*drawn.items()]


def test_the_small_suite_in_numbers() -> None:
    small = suite(SMALL)
    assert len({case.id for case in small}) == len(small) == 27
    assert len(distinct(small)) == 20
    assert len(distinct([case for case in small if len(case.agents) == 4])) == 3
    assert [case.id for case in small if case.public["max_degree"] + 1 >= 10] == ["scale_free-16-0"]


@pytest.mark.parametrize(("sizes", "calls"), [(SMALL, 9_052), (LARGE, 338_400)])
def test_round_budgets_add_up_to_the_papers_calls(sizes: tuple[int, ...], calls: int) -> None:
    """One call a round and one for the answer; both sums follow from Section 5.1 and the diameters."""
    networks = suite(sizes)
    rounds = {problem: [task(problem).rounds(case) for case in networks] for problem in PROBLEMS}
    total = sum((t + 1) * len(case.agents) for ts in rounds.values() for t, case in zip(ts, networks, strict=True))
    assert total == calls


def test_round_budgets() -> None:
    k4, tail = cases(size=4)[0], task("coloring").example()
    assert [task("coloring").rounds(cases(size=n)[0]) for n in SMALL] == [4, 5, 6]
    assert [task("consensus").rounds(case) for case in (k4, tail)] == [3, 5]
    twenty = cases(size=20)[0]
    assert task("coloring").rounds(twenty) == task("consensus").rounds(twenty) == 2 * nx.diameter(graph(twenty)) + 1


@pytest.mark.parametrize("wrong", [{"size": 5}, {"size": 8, "instances": 4}, {"size": 8, "graphs": "ring"}])
def test_what_the_paper_does_not_have_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(PluginError, match=r"(?s)published suites have no .*source: seeded"):
        cases(**wrong)


# ---------------------------------------------------------------------------------- other families


@settings(max_examples=examples(60), deadline=None)
@given(st.sampled_from((*FAMILIES, *OTHERS)), st.integers(2, 40), st.integers(0, 5))
def test_every_family_is_connected_at_every_size(family: str, size: int, seed: int) -> None:
    first, again = (cases(seed=seed, graphs=family, size=size, instances=2, source="seeded") for _ in range(2))
    assert first == again
    for case in first:
        topology = case.topology or {}
        assert len(set(case.agents)) == size == len(topology) == case.labels["size"]
        assert nx.is_connected(graph(case))
        assert all(agent in topology[neighbor] for agent in topology for neighbor in topology[agent])
        assert all(len(set(near)) == len(near) and agent not in near for agent, near in topology.items())
        assert case.public["max_degree"] == max(map(len, topology.values()))


@pytest.mark.parametrize(
    ("family", "edges", "degrees"),
    [
        ("ring", 9, {2: 9}),
        ("star", 8, {1: 8, 8: 1}),
        ("complete", 36, {8: 9}),
        ("grid", 12, {2: 4, 3: 4, 4: 1}),
    ],
)
def test_shapes(family: str, edges: int, degrees: dict[int, int]) -> None:
    shape = graph(cases(graphs=family, size=9, source="seeded")[0])
    assert shape.number_of_edges() == edges
    assert Counter(degree for _, degree in shape.degree) == degrees


def test_trees_have_no_cycle() -> None:
    assert all(nx.is_tree(graph(case)) for case in cases(graphs="tree", size=30, instances=5, source="seeded"))


def test_seeded_networks_differ_by_seed_and_sample() -> None:
    drawn = cases(seed=0, size=30, source="seeded") + cases(seed=1, size=30, source="seeded")
    assert len({(case.agents, tuple((case.topology or {}).values())) for case in drawn}) == 6


@pytest.mark.slow
def test_ten_thousand_agents() -> None:
    (case,) = cases(size=10_000, instances=1, source="seeded")
    assert len(set(case.agents)) == 10_000 and "James" in case.agents and "James50" in case.agents
    assert task("coloring").rounds(case) > 20
    assert len(task("coloring").context(case, case.agents[0])["neighbors"]) == len(case.topology[case.agents[0]])


def test_the_first_cases_come_without_the_others() -> None:
    assert len(list(task("coloring", size=4).cases(2, 0))) == 2


def test_an_example_needs_no_graph_package() -> None:
    code = (
        "import sys; from harness.config import project; t = project.builtin().load('tasks', 'agentsnet/consensus')();"
        "t.rounds(t.example()); print({'networkx', 'numpy', 'scipy', 'datasets'} & set(sys.modules))"
    )
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root)
    assert done.stdout.strip() == "set()"


# --------------------------------------------------------------------------------------- edge lists


def edge_list(folder: Path, text: str) -> str:
    file = folder / "office.csv"
    file.write_text(text, encoding="utf-8")
    return str(file)


@pytest.mark.parametrize(
    "text",
    [
        "Ann,Bo\nBo,Cy\n",
        "# a comment\n\nAnn Bo\nBo   Cy\nBo Ann\n",
        "\ufeffAnn\tBo\r\nBo\tCy\r\n",
    ],
)  # fmt: skip
def test_edge_lists(tmp_path: Path, text: str) -> None:
    (case,) = cases(source="edges", edges=edge_list(tmp_path, text))
    assert case.topology == {"Ann": ("Bo",), "Bo": ("Ann", "Cy"), "Cy": ("Bo",)}
    assert (case.id, case.labels["graphs"], case.labels["size"]) == ("office", "office", 3)


@pytest.mark.parametrize("first", ["A,B", "a b", "u,v", "From,To", "source,target", "node1\tnode2"])
def test_an_edge_that_looks_like_a_header_is_an_edge(tmp_path: Path, first: str) -> None:
    one, other = re.split(r"[,\s]", first)
    (case,) = cases(source="edges", edges=edge_list(tmp_path, f"{first}\n{other} Cy\n"))
    assert case.topology == {one: (other,), other: (one, "Cy"), "Cy": (other,)}


@pytest.mark.parametrize("first", ["source,target", "FROM,TO", "u,v", "node1 node2", "a,b"])
def test_above_numbered_agents_words_are_a_header(tmp_path: Path, first: str) -> None:
    (case,) = cases(source="edges", edges=edge_list(tmp_path, f"# x\n{first}\n0,1\n1,2\n"))
    assert len(case.agents) == 3 and not {"source", "FROM", "u", "node1", "a"} & {*case.agents}


@pytest.mark.parametrize("text", ["source,target\nAnn,Bo\n", "a,b\nc,d\n", "person,friend\n0,1\n", "a,b\n"])
def test_what_may_be_a_header_or_an_edge_is_asked(tmp_path: Path, text: str) -> None:
    file = edge_list(tmp_path, f"\n{text}Bo,Cy\n" if "Ann" in text else f"\n{text}")
    with pytest.raises(DataError, match=r"office.csv:2:1: .*a header or an edge(?s:.*)header: true"):
        cases(source="edges", edges=file)
    (with_it,) = cases(source="edges", edges=file, header=False)
    assert len(with_it.agents) >= 2
    if text != "a,b\n":
        (without,) = cases(source="edges", edges=file, header=True)
        assert len(without.agents) == len(with_it.agents) - 2


@pytest.mark.slow
def test_what_was_read_is_shown_before_anything_is_played(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = edge_list(tmp_path, "A,B\nB,C\n")
    overrides = ["--set", "task.source=edges", "--set", f"task.edges={file}"]
    text = f"{file}: 3 agents, 2 edges: A–B, B–C"
    assert main(["validate", "agentsnet_quick", *overrides]) == 0
    assert capsys.readouterr().out.splitlines() == ["agentsnet_quick: ok", f"  {text}"]
    assert main(["plan", "--spec", "agentsnet_quick", *overrides]) == 0
    assert capsys.readouterr().out.splitlines()[0] == f"input           {text}"
    assert main(["eval", "--spec", "agentsnet_quick", *overrides, "--output_path", str(tmp_path / "run")]) == 0
    assert text in capsys.readouterr().err.splitlines()
    assert main(["validate", "agentsnet_quick", *overrides[:3], f"task.edges={tmp_path / 'none.csv'}"]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_numbered_agents_get_names(tmp_path: Path) -> None:
    file = edge_list(tmp_path, "0 1\n1 2\n")
    (case,), (other,) = cases(source="edges", edges=file), cases(seed=1, source="edges", edges=file)
    assert all(agent.isalpha() for agent in case.agents) and len(case.agents) == 3
    assert case.agents != other.agents


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("Ann,Bo\nBo\n", 2, "expected two agents, found 1"),
        ("Ann Bo\n# x\nAnn Bo 0.5\n", 3, "expected two agents, found 3"),
        ("Ann,Bo\nBo,\n", 2, "expected two agents"),
        ("Ann,Ann\n", 1, "own neighbor"),
        ("Ann,B\x1b[2Jo\n", 1, "printable characters"),
        ("Ann,Bo\nBo,none\n", 2, "cannot be called None"),
    ],
)
def test_bad_lines_are_named(tmp_path: Path, text: str, line: int, problem: str) -> None:
    with pytest.raises(DataError, match=rf"office.csv:{line}:1: .*{problem}"):
        cases(source="edges", edges=edge_list(tmp_path, text))


def test_files_that_are_no_edge_list(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="has no edges"):
        cases(source="edges", edges=edge_list(tmp_path, "# nothing\n"))
    with pytest.raises(DataError, match="cannot be read"):
        cases(source="edges", edges=str(tmp_path / "nowhere.csv"))
    (tmp_path / "office.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="cannot be read"):
        cases(source="edges", edges=str(tmp_path / "office.csv"))
    with pytest.raises(PluginError, match="needs a file"):
        cases(source="edges")


def test_a_network_in_two_parts(tmp_path: Path) -> None:
    file = edge_list(tmp_path, "Ann,Bo\nCy,Di\nDi,Ed\n")
    for problem in ("consensus", "leader_election"):
        with pytest.raises(DataError, match=r"(?s)2 parts of 3, 2 agents.*needs a connected network"):
            cases(problem, source="edges", edges=file)
    (case,) = cases("matching", source="edges", edges=file)  # meaningful: every part is matched by itself
    assert task("matching").rounds(case) == 5
    many = edge_list(tmp_path, "".join(f"A{i},B{i}\n" for i in range(10)))
    (case,) = cases("matching", source="edges", edges=many)
    with pytest.raises(DataError, match="10 parts"):
        task("matching").rounds(case)  # more than 16 agents: the budget follows from the diameter


# ------------------------------------------------------------------------------------- the data set

K3 = [[0, 1], [1, 2], [2, 0]]
ROWS: dict[str, dict[str, Any]] = {
    "pairs and names": {"graph_type": "ws", "names": ["Ann", "Bo", "Cy"], "edges": K3, "sample": 0},
    "JSON text": {"graphs": "small_world", "names": '["Ann", "Bo", "Cy"]', "edges": json.dumps(K3), "index": 0},
    "node-link": {
        "id": "ws_3_0",
        "graph": {
            "nodes": [{"id": 0, "name": "Ann"}, {"id": 1, "name": "Bo"}, {"id": 2, "name": "Cy"}],
            "links": [{"source": 0, "target": 1}, {"source": 1, "target": 2}, {"source": 2, "target": 0}],
        },
    },
    "adjacency": {
        "id": "coloring_ws_3_0",
        "names": {"a": "Ann", "b": "Bo", "c": "Cy"},
        "adjacency": {"a": ["b", "c"], "b": ["a", "c"], "c": ["a", "b"]},
    },
    "edge index": {"generator": "Watts-Strogatz", "names": ["Ann", "Bo", "Cy"], "edge_index": [[0, 1, 2], [1, 2, 0]]},
    "edges by name": {
        "id": "ws_3_0",
        "agents": ["Ann", "Bo", "Cy"],
        "edges": [["Ann", "Bo"], ["Bo", "Cy"], ["Cy", "Ann"]],
    },
}


def dataset(folder: Path, **parameters: Any) -> list[Case]:
    return cases(source="dataset", data_dir=str(folder), **{"size": 3, **parameters})


@pytest.mark.parametrize("form", ROWS)
@pytest.mark.parametrize("suffix", ["json", "jsonl", "parquet"])
def test_rows_of_the_data_set(tmp_path: Path, form: str, suffix: str) -> None:
    file = tmp_path / f"rows.{suffix}"
    if suffix == "parquet":
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.Table.from_pylist([ROWS[form]]), file)
    else:
        file.write_text(json.dumps([ROWS[form]] if suffix == "json" else ROWS[form]))
    (case,) = dataset(tmp_path)
    assert case.agents == ("Ann", "Bo", "Cy")
    assert {agent: set(near) for agent, near in (case.topology or {}).items()} == {
        agent: set(case.agents) - {agent} for agent in case.agents
    }
    assert case.labels["graphs"] == "small_world"


def test_one_file_per_network_and_csv(tmp_path: Path) -> None:
    (tmp_path / "ba_3_1.json").write_text(json.dumps({"edges": K3}))
    (tmp_path / "more.csv").write_text('graph_id,edges\nba_3_2,"[[0,1],[1,2]]"\n')
    result = dataset(tmp_path, graphs="scale_free")
    assert [case.id for case in result] == ["scale_free-3-1", "scale_free-3-2"]
    assert all(agent.isalpha() for case in result for agent in case.agents)


def test_a_line_of_jsonl_ends_with_a_newline_and_nothing_else(tmp_path: Path) -> None:
    row = {**ROWS["pairs and names"], "comment": "one\u2028two\x85three"}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row, ensure_ascii=False) + "\n", encoding="utf-8")
    assert len(dataset(tmp_path)) == 1


def test_rows_of_one_network_count_once_and_samples_are_counted(tmp_path: Path) -> None:
    rows = [{**ROWS["pairs and names"], "task": problem} for problem in PROBLEMS]
    rows += [{**ROWS["pairs and names"], "names": [f"A{i}", "Bo", "Cy"], "sample": i} for i in range(1, 5)]
    (tmp_path / "rows.json").write_text(json.dumps({"data": rows}))
    assert [case.id for case in dataset(tmp_path)] == [f"small_world-3-{i}" for i in range(3)]
    assert len(dataset(tmp_path, instances=1)) == 1


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("rows.json", "{", "cannot be read"),
        ("rows.jsonl", '{"edges": [[0, 0]]}', r"rows.jsonl:1:1: a row is not a graph .*edge from an agent to itself"),
        ("rows.json", '[{"question": 1}]', r"a row is not a graph .*its fields are question"),
        ("rows.json", "[5]", "row 1 is not an object"),
        ("rows.json", "[" * 100_000, "rows.json: the file cannot be read"),
        ("rows.jsonl", json.dumps({"edges": "[" * 100_000}), "rows.jsonl:1:1: a row is not a graph"),
        ("rows.json", '[{"id": "ba_3_0", "edges": [[0, 1], [1, 2]]}]', r"(?s)no small_world graph of 3.*scale_free 3"),
        ("readme.md", "hello", "nothing to read"),
    ],
)
def test_data_that_is_no_data_set(tmp_path: Path, name: str, text: str, problem: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=problem):
        dataset(tmp_path)


@pytest.mark.slow
def test_the_data_set_comes_through_the_datasets_package(tmp_path: Path) -> None:
    """A folder stands for the hub, which tests do not reach."""
    (tmp_path / "train.jsonl").write_text(json.dumps(ROWS["pairs and names"]) + "\n")
    code = (
        "from harness.config import project; t = project.builtin().load('tasks', 'agentsnet/coloring');"
        f"print([c.agents for c in t(source='dataset', size=3, dataset_path={str(tmp_path)!r}).cases(None, 0)])"
    )
    environment = {"HF_HOME": str(tmp_path / "cache"), "HF_HUB_OFFLINE": "1", "PATH": ""}
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root, env=environment)
    assert done.stdout.strip() == "[('Ann', 'Bo', 'Cy')]", done.stderr


def test_a_data_set_that_cannot_be_loaded(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"(?s)cannot be loaded.*source: published"):
        cases(source="dataset", size=4, dataset_path=str(tmp_path / "nowhere"))


def test_tasks_are_listed_with_their_problem() -> None:
    listed = {entry.name: entry.description for entry in BUILTIN.listing("tasks")}
    assert all(listed[f"agentsnet/{problem}"].startswith("AgentsNet") for problem in PROBLEMS)
