"""II-17 to III-30: what the inputs guarantee, solutions worked by hand, who needs whose data, spellings of answers."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from decimal import ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.api import Case, Outcome
from harness.api.errors import PluginError
from harness.extensions.networks.sharded import ShardedTask
from tests.benchmarks.silo.brute_b import SOLUTIONS, scores
from tests.benchmarks.silo.brute_base import flat
from tests.benchmarks.silo.test_silo_tasks import case, shards, task

SIZES = given(agents=st.integers(1, 8), items=st.integers(1, 12), seed=st.integers(0, 2**32))
Row = dict[str, Any]


def drawn(name: str, seed: int = 0, **parameters: Any) -> tuple[list[Any], dict[str, Any]]:
    """Shards and what is known."""
    of = case(task(name, **parameters), seed)
    return shards(of), dict(of.public["known"])


def graded(made: ShardedTask, of: Case, text: str) -> dict[str, float | None]:
    """The grade if everybody answers this."""
    answers = {agent: made.reply(of, agent).parse(text).action for agent in of.agents}
    return dict(made.grade(of, Outcome(answers)))


# ------------------------------------------------------------------------------------------ inputs


@SIZES
def test_lists_of_integers_have_k_items_within_their_bounds(agents: int, items: int, seed: int) -> None:
    bounds = {
        "diff_array": (1, 100),
        "merge_neighbors": (1, 50),
        "distributed_sort": (1, 1000),
        "median_of_medians": (1, 1000),
        "global_distinct": (0, max(0, agents * items // 2 - 1)),
    }
    for name, (low, high) in bounds.items():
        for domain in ("paper", "hardened"):
            parts, _ = drawn(name, seed, agents=agents, items=items, domain=domain)
            if (name, domain) == ("merge_neighbors", "hardened"):
                high = 10 * agents
            assert [len(part) for part in parts] == [items] * agents
            assert all(low <= value <= high for value in flat(parts))


@SIZES
def test_the_sequence_to_be_merged_is_sorted_over_all_shards(agents: int, items: int, seed: int) -> None:
    everything = flat(drawn("merge_neighbors", seed, agents=agents, items=items)[0])
    assert everything == sorted(everything)


def test_merging_can_be_guessed_unless_hardened() -> None:
    def guessed(domain: str) -> list[bool]:
        result = task("merge_neighbors", agents=50, domain=domain)
        return [case(result, seed).target[0] == list(range(1, 51)) for seed in range(20)]

    assert all(guessed("paper")) and not any(guessed("hardened"))


@SIZES
def test_the_list_has_one_head_and_reaches_every_node(agents: int, items: int, seed: int) -> None:
    parts, names = drawn("list_ranking", seed, agents=agents, items=items)
    nodes: list[Row] = flat(parts)
    assert [len(part) for part in parts] == [items] * agents and names == {"nodes": agents * items}
    assert sorted(node["id"] for node in nodes) == list(range(agents * items))
    ends = Counter(node["next"] for node in nodes)
    assert ends[-1] == 1 and set(ends.values()) == {1}
    ranks = SOLUTIONS["list_ranking"](parts, names)
    assert sorted(ranks.values()) == list(range(agents * items))


def test_neither_list_order_nor_shards_give_ranks_away() -> None:
    parts, names = drawn("list_ranking", 1, agents=20)
    ranks = SOLUTIONS["list_ranking"](parts, names)
    inside = sum(b["id"] == a["next"] for part in parts for a, b in pairwise(part))
    assert inside < 5 and sum(int(node) == rank for node, rank in ranks.items()) < 10


@SIZES
def test_blocks_are_12_to_40_plain_characters(agents: int, items: int, seed: int) -> None:
    parts, _ = drawn("pipeline_hash", seed, agents=agents, items=items)
    assert [len(part) for part in parts] == [items] * agents
    for block in flat(parts):
        assert 12 <= len(block) <= 40 and block.replace("_", "a").isalnum() and block.isascii()


@SIZES
def test_graphs_have_no_self_loops_and_simple_ones_no_edge_twice(agents: int, items: int, seed: int) -> None:
    for name, per_agent in (("graph_components", 10), ("bfs_distance", 8), ("pagerank_step", 8)):
        parts, names = drawn(name, seed, agents=agents, items=items)
        edges = flat(parts)
        assert names["nodes"] == per_agent * agents and len(parts) == agents and max(map(len, parts)) <= items
        assert all(u != v and {u, v} <= set(range(names["nodes"])) for u, v in edges)
        if name == "bfs_distance":
            assert len({frozenset(edge) for edge in edges}) == len(edges)
        if name == "pagerank_step":
            assert len({tuple(edge) for edge in edges}) == len(edges)


def test_components_keep_repeated_edges_and_are_as_many_as_expected() -> None:
    """At 100 agents 1000·exp(−4) = 18.3 nodes without an edge, 2000·exp(−8) = 0.7 pairs, and one large component."""
    result = task("graph_components", agents=100)
    played = [case(result, seed) for seed in range(30)]
    mean = sum(of.target[0] for of in played) / len(played)
    assert 18 < mean < 22
    many = flat(drawn("graph_components", 0, agents=1, items=200)[0])
    assert len({frozenset(edge) for edge in many}) < len(many)  # 10 nodes have no more than 45


@SIZES
def test_points_and_centroids_are_in_the_square_with_two_decimals(agents: int, items: int, seed: int) -> None:
    parts, names = drawn("k_means_iteration", seed, agents=agents, items=items)
    assert [len(part) for part in parts] == [items] * agents and len(names["centroids"]) == 3
    for x, y in flat(parts) + names["centroids"]:
        assert 0 <= x <= 100 and 0 <= y <= 100 and (x, y) == (round(x, 2), round(y, 2))
    result = task("k_means_iteration", agents=agents, items=items)
    assert str(names["centroids"]) in result.context(case(result, seed), "Agent-0")["task"]


@given(agents=st.integers(1, 6), items=st.integers(2, 9), seed=st.integers(0, 2**32))
def test_the_fourth_best_match_is_worse_than_the_third(agents: int, items: int, seed: int) -> None:
    parts, _ = drawn("collaborative_filtering", seed, agents=agents, items=items)
    users, products = ([row for part in parts for row in part[kind]] for kind in ("users", "items"))
    assert all(len(part["users"]) + len(part["items"]) == items for part in parts)
    for rows in (users, products):
        assert [row["id"] for row in rows] == list(range(len(rows)))
        for number in flat([row["vector"] for row in rows]):
            assert abs(number) <= 1 and number == round(number, 2)
    ordered = scores(parts)
    assert len(ordered) < 4 or ordered[2][0] > ordered[3][0]


def test_the_default_is_three_users_and_three_items_of_five_dimensions() -> None:
    for part in drawn("collaborative_filtering", 5, agents=4)[0]:
        assert [len(row["vector"]) for kind in ("users", "items") for row in part[kind]] == [5] * 6


def test_one_vector_an_agent_cannot_be_matched() -> None:
    with pytest.raises(PluginError, match=r"1 vector per agent.*\n.*items: 2"):
        case(task("collaborative_filtering", items=1), 0)


@SIZES
def test_heavy_tasks_are_all_with_agent_0(agents: int, items: int, seed: int) -> None:
    parts, names = drawn("load_balance", seed, agents=agents, items=items)
    tasks: list[Row] = flat(parts)
    assert names == {"tasks": agents * items, "workers": agents} and len(parts) == agents
    assert sorted(row["id"] for row in tasks) == list(range(agents * items))
    for holder, part in enumerate(parts):
        for row in part:
            heavy = row["id"] % 10 == 0
            assert 50 <= row["dur"] <= 100 if heavy else 1 <= row["dur"] <= 10
            assert agents == 1 or heavy == (holder == 0)
    sizes = [len(part) for part in parts[1:]] or [0]
    assert max(sizes) - min(sizes) <= 1


@SIZES
def test_rows_and_columns_are_cut_evenly(agents: int, items: int, seed: int) -> None:
    parts, names = drawn("matrix_multiply", seed, agents=agents, items=items)
    assert names == {"dim": agents * items}
    for part in parts:
        for side in ("rows", "columns"):
            assert [len(row) for row in part[side]] == [agents * items] * items
            assert all(1 <= entry <= 10 for entry in flat(part[side]))


@pytest.mark.parametrize("name", sorted(SOLUTIONS))
def test_every_number_of_items_has_the_independent_answer(name: str) -> None:
    for agents in (1, 2, 7):
        for items in (2, 3, 10) if name == "collaborative_filtering" else (1, 2, 3, 10):
            result = task(name, agents=agents, items=items)
            of = case(result, items)
            expected = SOLUTIONS[name](shards(of), dict(of.public["known"]))
            expected = expected if result.segmented(of.public["known"]) else [expected] * agents
            texts = {
                agent: result.reply(of, agent).parse(result.answer_text(expected[i]))
                for i, agent in enumerate(of.agents)
            }
            assert result.grade(of, Outcome({agent: text.action for agent, text in texts.items()}))["success"] == 1


# ------------------------------------------------------------------------------------ by hand

CENTROIDS = {"centroids": [[0.0, 0.0], [10.0, 0.0], [50.0, 50.0]]}
UNIT, HALF = [1.0, 0.0, 0.0, 0.0, 0.0], [0.5, 0.5, 0.0, 0.0, 0.0]
BY_HAND: list[tuple[str, list[Any], dict[str, Any], Any]] = [
    ("diff_array", [[3, 1], [4]], {}, [-2, 3]),
    ("diff_array", [[8]], {}, []),
    (
        "list_ranking",
        [[{"id": 2, "next": 0}, {"id": 1, "next": -1}], [{"id": 0, "next": 1}]],
        {"nodes": 3},
        {"2": 0, "0": 1, "1": 2},
    ),
    ("list_ranking", [[{"id": 0, "next": -1}]], {"nodes": 1}, {"0": 0}),
    ("merge_neighbors", [[1, 1, 2], [2, 2, 5], [5, 9, 9]], {}, [1, 2, 5, 9]),
    ("pipeline_hash", [["a"], ["b", "~"]], {}, [[97], [3, 125]]),  # 97 xor 98 = 3, 126 xor 3 = 125
    ("pipeline_hash", [["z" * 82]], {}, [[4]]),  # 82 · 122 = 10,004
    ("pipeline_hash", [[chr(6384)], [chr(9999)]], {}, [[6384], [6383]]),  # 6384 xor 9999 = 16,383
    ("distributed_sort", [[5, 1], [3, 1]], {"output": "global"}, [1, 1, 3, 5]),
    ("distributed_sort", [[5, 1], [3, 1]], {"output": "segment"}, [[1, 1], [3, 5]]),
    ("median_of_medians", [[5, 1], [4, 2]], {}, 4),
    ("median_of_medians", [[9, 1, 1]], {}, 1),
    ("median_of_medians", [[1, 2, 9], [1, 3, 9], [1, 1, 1]], {}, 1),  # the median of the local medians 2, 3, 1 is 2
    ("graph_components", [[[0, 1], [1, 0]], [[3, 4], [4, 5]]], {"nodes": 6}, 3),
    ("graph_components", [[], []], {"nodes": 20}, 20),
    ("bfs_distance", [[[1, 0]], [[2, 1], [3, 4]]], {"nodes": 5}, {"0": 0, "1": 1, "2": 2, "3": -1, "4": -1}),
    ("k_means_iteration", [[[5.0, 0.0], [9.0, 1.0]], [[1.0, 2.0]]], CENTROIDS, [[3, 1], [9, 1], [50, 50]]),
    ("global_distinct", [[1, 2, 2], [2, 7]], {}, 3),
    (
        "collaborative_filtering",
        [
            {"users": [{"id": 0, "vector": UNIT}], "items": [{"id": 0, "vector": UNIT}]},
            {"users": [{"id": 1, "vector": HALF}], "items": [{"id": 1, "vector": HALF}, {"id": 2, "vector": UNIT}]},
        ],
        {},
        [[0, 0, 1.0], [0, 2, 1.0], [0, 1, 0.5]],  # (1, 0), (1, 1) and (1, 2) score 0.5 too
    ),
    (
        "pagerank_step",
        [[[0, 1], [0, 2]], [[3, 1]]],
        {"nodes": 4, "damping": 0.85},
        {"0": 0.0375, "1": 0.35625, "2": 0.14375, "3": 0.0375},
    ),
    (
        "load_balance",  # 60 | 7 + 5 + 5
        [[{"id": 0, "dur": 60}], [{"id": 1, "dur": 5}, {"id": 2, "dur": 7}, {"id": 3, "dur": 5}]],
        {"tasks": 4, "workers": 2},
        {"variance": 462.25, "max_load": 60, "min_load": 17},
    ),
    (
        "load_balance",  # in order of length 4 + 2 + 2 | 3 + 3, which is not the best there is
        [[{"id": 0, "dur": 2}, {"id": 1, "dur": 3}, {"id": 2, "dur": 2}], [{"id": 3, "dur": 4}, {"id": 4, "dur": 3}]],
        {"tasks": 5, "workers": 2},
        {"variance": 1.0, "max_load": 8, "min_load": 6},
    ),
    ("load_balance", [[{"id": 0, "dur": 7}]], {"workers": 1}, {"variance": 0, "max_load": 7, "min_load": 7}),
    (
        "matrix_multiply",
        [{"rows": [[1, 2]], "columns": [[5, 7]]}, {"rows": [[3, 4]], "columns": [[6, 8]]}],
        {"dim": 2},
        [[19, 22], [43, 50]],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("name", "parts", "known", "expected"), BY_HAND)
def test_worked_by_hand(name: str, parts: list[Any], known: dict[str, Any], expected: Any) -> None:
    solved = task(name, agents=len(parts)).solve(parts, known)
    if name == "pagerank_step":
        assert solved == pytest.approx(expected, abs=1e-15)
    else:
        assert solved == expected


def test_every_problem_is_worked_by_hand() -> None:
    assert {name for name, *_ in BY_HAND} == set(SOLUTIONS)


# ------------------------------------------------------------------------- who needs what, and sort


@pytest.mark.parametrize("name", sorted(SOLUTIONS))
def test_all_data_are_needed_but_for_hashes_only_those_before(name: str) -> None:
    result = task(name, agents=4)
    parts, names = drawn(name, agents=4)
    needs = [result.needed_agents(i, parts, names) for i in range(4)]
    assert needs == ([[0b1], [0b11], [0b111], [0b1111]] if name == "pipeline_hash" else [[0b1111]] * 4)


def test_a_hash_of_the_first_blocks_is_never_premature() -> None:
    result = task("pipeline_hash", agents=2)
    of = case(result, 0)
    alone = {"knew": {"Agent-0": "1", "Agent-1": "2"}}
    wrong_first = result.grade(of, Outcome({"Agent-0": [0], "Agent-1": of.target[1]}, facts=alone))
    assert (wrong_first["premature"], wrong_first["computation"], wrong_first["consensus"]) == (1, 1, None)
    heard = {"knew": {"Agent-0": "1", "Agent-1": "3"}}
    assert result.grade(of, Outcome({"Agent-0": [0], "Agent-1": of.target[1]}, facts=heard))["premature"] == 0


def test_sort_is_asked_for_in_the_words_of_the_paper() -> None:
    result = task("distributed_sort")
    assert result.context(case(result, 0), "Agent-3")["task"].startswith(
        "Sort the entire distributed array in ascending order. Each agent holds a portion of the unsorted data. The "
        "final result should be the complete sorted sequence. You must coordinate to exchange data and determine the "
        "correct global ordering."
    )


def test_sort_by_segments_has_the_same_input_and_an_answer_for_each() -> None:
    whole, parts = (task("distributed_sort", agents=4, sort_output=output) for output in ("global", "segment"))
    of, cut = case(whole, 9), case(parts, 9)
    assert shards(of) == shards(cut) and of.target == [flat(cut.target)] * 4
    assert [len(chunk) for chunk in cut.target] == [20] * 4
    context = parts.context(cut, "Agent-2")["task"]
    assert "of 20 elements each" in context and "submits chunk i of the sorted sequence" in context
    assert "complete sorted sequence" not in context and "{" not in context
    everybody_the_same = graded(parts, cut, json.dumps(cut.target[2]))
    assert everybody_the_same["success"] == 0.25


def test_who_holds_everything_is_asked_for_the_complete_sorted_sequence() -> None:
    result = task("distributed_sort", agents=4, sort_output="segment", whole=True)
    of = case(result, 9)
    assert "complete sorted sequence" in result.context(of, "Agent-0")["task"]
    assert of.target == [sorted(shards(of)[0])] and len(of.target[0]) == 80


# --------------------------------------------------------------------------------------- spellings


def respelled(value: Any, number: Callable[[Any], Any], key: Callable[[str], Any] = str) -> Any:
    """A value with its lists as tuples, its numbers and keys made again."""
    if isinstance(value, list):
        return tuple(respelled(item, number, key) for item in value)
    if isinstance(value, dict):
        return {key(name): respelled(item, number, key) for name, item in value.items()}
    return number(value)


def rounded(digits: int | None, how: str, write: Callable[[Decimal], Any]) -> Callable[[Any], Any]:
    def one(value: Any) -> Any:
        exact = Decimal(str(value))
        return write(exact if digits is None or isinstance(value, int) else exact.quantize(Decimal(10) ** -digits, how))

    return one


def int_key(name: str) -> Any:
    return int(name) if name.isdigit() else name


@pytest.mark.parametrize("how", [ROUND_HALF_UP, ROUND_HALF_EVEN])
@pytest.mark.parametrize("name", sorted(SOLUTIONS))
def test_a_right_answer_is_right_however_it_is_written(name: str, how: str) -> None:
    result = task(name, agents=2)
    for seed in range(5):
        of = case(result, seed)
        for agent, truth in zip(of.agents, of.target, strict=True):
            numbers = respelled(truth, rounded(result.digits, how, float), int_key)
            quoted = respelled(truth, rounded(result.digits, how, str), int_key)
            plain = result.answer_text(truth)
            texts = (repr(numbers), repr(quoted), plain, f"```json\n{plain}\n```", f"'{plain}'", json.dumps(plain))
            for text in texts:
                answers = {agent: result.reply(of, agent).parse(text).action}
                share = result.grade(of, Outcome(answers))["success"]
                assert share is not None and share >= 0.5, text


@pytest.mark.parametrize(
    ("name", "truth", "right", "wrong"),
    [
        ("k_means_iteration", [[0.125, 1.0]], ["[[0.12, 1]]", "((0.13, '1.00'),)", "[[0.125, 1]]"], "[[0.14, 1]]"),
        ("pagerank_step", {"0": 0.0001875}, ["{0: 0.000187}", '{"0": "0.000188"}'], '{"0": 0.000189}'),
        ("collaborative_filtering", [[1, 0, 0.123]], ["[[1, 0, 0.1230]]", "[('1', 0, .123)]"], "[[1, 0, 0.1231]]"),
        ("load_balance", {"variance": 0.125}, ["{'variance': 0.12}", '{"variance": "0.13"}'], '{"variance": 0.11}'),
    ],
)
def test_a_half_may_be_rounded_either_way(name: str, truth: Any, right: list[str], wrong: str) -> None:
    result = task(name, agents=2)
    of = replace(case(result, 0), target=[truth, truth])
    assert [graded(result, of, text)["success"] for text in right] == [1] * len(right)
    assert graded(result, of, wrong)["success"] == 0


@pytest.mark.parametrize(
    ("name", "truth", "answer", "partial"),
    [
        ("diff_array", [1, -2, 3, 4], [1, -2, 3, 5], 3 / 4),
        ("list_ranking", {"0": 1, "1": 0}, {"0": 1, "1": 1}, 1 / 2),
        ("merge_neighbors", [1, 2, 4], [1, 2, 3, 4], 2 / 3),
        ("pipeline_hash", [97, 3], [97], 1 / 2),
        ("distributed_sort", [1, 1, 3, 5], [1, 3, 5, 1], 3 / 4),
        ("median_of_medians", 500, 501, 0),
        ("graph_components", 500, 501, 0),
        ("bfs_distance", {"0": 0, "1": -1, "2": 1, "3": 2}, {"0": 0, "2": 1, "3": 2}, 3 / 4),
        ("k_means_iteration", [[1.0, 2.0], [3.0, 4.0]], [[1, 2], [3, 4.5]], 1 / 2),
        ("global_distinct", 500, 501, 0),
        ("collaborative_filtering", [[0, 1, 0.5], [2, 1, 0.4]], [[2, 1, 0.4], [0, 1, 0.5]], 1 / 2),
        ("pagerank_step", {"0": 0.5, "1": 0.25}, {"0": 0.5, "1": 0.2}, 1 / 2),
        ("load_balance", {"variance": 1.5, "max_load": 9, "min_load": 6}, {"max_load": 9, "min_load": 6}, 2 / 3),
        ("matrix_multiply", [[1, 2], [3, 4]], [[1, 2], [3, 5]], 3 / 4),
    ],
)
def test_credit_for_what_is_nearly_right(name: str, truth: Any, answer: Any, partial: float) -> None:
    result = task(name, agents=2)
    of = replace(case(result, 0), target=[truth, truth])
    grade = graded(result, of, json.dumps(answer))
    assert (grade["success"], grade["partial"]) == (0, pytest.approx(partial))
