"""SILO-Bench's I-02 to I-10 and II-12 to II-16: what their inputs promise, small examples, needs, other spellings."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import ceil
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.api import Outcome
from harness.api.errors import PluginError
from harness.extensions.networks.sharded import ShardedTask
from tests.benchmarks.silo.brute_base import flat
from tests.benchmarks.silo.test_silo_tasks import case, shards, task
from tests.helpers.samples import examples

NUMBERS = {
    "range_count": (0, 1000), "checksum_xor": (0, 255), "top_k_selection": (1, 1000), "moving_average": (1, 100),
    "life_game_1d": (0, 1), "trapping_rain": (0, 10),
}  # fmt: skip
SIZES = {
    "word_frequency": 30, "distributed_vote": 25, "any_match": 15, "range_count": 30, "checksum_xor": 20,
    "average_value": 25, "set_union_size": 30, "top_k_selection": 30, "standard_deviation": 30, "moving_average": 15,
    "longest_palindrome": 15, "life_game_1d": 10, "pattern_search": 20, "trapping_rain": 10,
}  # fmt: skip
GUESSABLE = {"word_frequency", "distributed_vote", "longest_palindrome"}
instances = given(agents=st.integers(1, 12), items=st.integers(1, 40), seed=st.integers(0, 10**6))
few = settings(max_examples=examples(60), deadline=None)


def inputs(name: str, seed: int = 0, **parameters: Any) -> tuple[list[Any], Any]:
    played = case(task(name, **parameters), seed)
    return shards(played), played.public["known"]


def crossing(text: Sequence[str], cut: int) -> int:
    """Length of the longest palindrome with letters on both sides of `cut`."""
    spans = [(i, j) for i in range(max(0, cut - 20), cut) for j in range(cut + 1, min(len(text), cut + 20) + 1)]
    return max((j - i for i, j in spans if text[i:j] == text[i:j][::-1]), default=0)


# ------------------------------------------------------------------------------------------- inputs


@pytest.mark.parametrize("name", SIZES)
def test_shards_have_the_default_size(name: str) -> None:
    assert [len(shard) for shard in inputs(name, agents=3)[0]] == [SIZES[name]] * 3


@few
@instances
def test_every_size_gives_an_input(agents: int, items: int, seed: int) -> None:
    for name in SIZES:
        drawn, names = inputs(name, seed, agents=agents, items=items)
        assert [len(shard) for shard in drawn] == [items] * agents
        assert task(name).right_answers(drawn, names) is not None


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_fill_their_range_and_stay_in_it(name: str) -> None:
    low, high = NUMBERS[name]
    numbers = set(flat(inputs(name, agents=50, items=1000)[0]))
    assert numbers <= set(range(low, high + 1)) and len(numbers) > 0.99 * (high - low + 1)


@pytest.mark.parametrize("name", ["average_value", "standard_deviation"])
def test_fractions_have_two_decimals(name: str) -> None:
    numbers = flat(inputs(name, agents=20)[0])
    assert all(0 <= x <= 100 and x == float(f"{x:.2f}") for x in numbers)
    assert any(x != float(f"{x:.1f}") for x in numbers)


@pytest.mark.parametrize("name", sorted(set(SIZES) - GUESSABLE))
def test_hardening_changes_only_the_seed_of_what_cannot_be_guessed(name: str) -> None:
    result = task(name, domain="hardened", agents=4)
    drawn, names = inputs(name, agents=4, domain="hardened")
    assert names == inputs(name, agents=4)[1] and [len(s) for s in drawn] == [result.items] * 4


@few
@instances
def test_every_tenth_word_is_an_apple(agents: int, items: int, seed: int) -> None:
    drawn, names = inputs("word_frequency", seed, agents=agents, items=items)
    assert names == {"word": "apple"} and all(set(shard[9::10]) <= {"apple"} for shard in drawn)
    assert len(set(flat(inputs("word_frequency", seed, agents=10)[0]))) == 7


def test_a_hardened_word_is_any_and_sometimes_there_is_none() -> None:
    seen = [inputs("word_frequency", seed, domain="hardened") for seed in range(100)]
    assert len({name["word"] for _, name in seen}) == 8
    assert 1 <= sum(name["word"] not in flat(drawn) for drawn, name in seen) < 50


@few
@instances
def test_a_vote_has_one_winner_with_more_than_half(agents: int, items: int, seed: int) -> None:
    votes = flat(inputs("distributed_vote", seed, agents=agents, items=items)[0])
    assert Counter(votes).most_common(1)[0][1] > len(votes) / 2
    assert set(votes) <= {"Alice", "Bob", "Carol", "Dave"}


@few
@given(agents=st.integers(3, 30), items=st.integers(8, 40), seed=st.integers(0, 10**6))
def test_a_hardened_vote_is_lost_in_most_shards(agents: int, items: int, seed: int) -> None:
    drawn, _ = inputs("distributed_vote", seed, agents=agents, items=items, domain="hardened")
    winner, votes = Counter(flat(drawn)).most_common(1)[0]
    assert votes > agents * items / 2
    ranked = [Counter(shard).most_common(2) for shard in drawn]
    strict = [top[0][0] for top in ranked if len(top) == 1 or top[0][1] > top[1][1]]
    assert sum(name != winner for name in strict) > agents / 2


def test_a_hardened_vote_needs_enough_votes() -> None:
    with pytest.raises(PluginError, match="at least 8 votes a shard; items is 7") as caught:
        inputs("distributed_vote", agents=3, items=7, domain="hardened")
    assert "domain: paper" in str(caught.value.hint)
    assert inputs("distributed_vote", agents=2, items=7, domain="hardened")


def test_a_log_has_an_error_in_half_of_the_instances_and_never_two() -> None:
    errors = [sum("ERROR" in line for line in flat(inputs("any_match", seed)[0])) for seed in range(200)]
    assert set(errors) == {0, 1} and 70 <= sum(errors) <= 130


@few
@instances
def test_a_union_is_drawn_from_half_as_many_numbers(agents: int, items: int, seed: int) -> None:
    drawn = flat(inputs("set_union_size", seed, agents=agents, items=items)[0])
    assert set(drawn) <= set(range(max(1, agents * items // 2)))


def test_a_palindrome_is_planted_where_it_fits() -> None:
    result = task("longest_palindrome", agents=4)
    lengths = Counter(result.solve(*inputs("longest_palindrome", seed, agents=4)) for seed in range(100))
    assert min(lengths) == 7 and lengths[7] > 90
    assert result.solve(*inputs("longest_palindrome", agents=2, items=2)) == 4
    assert result.solve(*inputs("longest_palindrome", agents=1, items=1)) == 1


def test_hardened_palindromes_vary_in_length_and_half_of_them_cross_a_boundary() -> None:
    result, lengths, crossed = task("longest_palindrome"), Counter[int](), 0
    for seed in range(200):
        drawn, names = inputs("longest_palindrome", seed, agents=4, domain="hardened")
        longest = result.solve(drawn, names)
        lengths[longest] += 1
        crossed += any(crossing("".join(drawn), cut) == longest for cut in (15, 30, 45))
    assert set(lengths) == set(range(5, 16)) and max(lengths.values()) < 50 and 70 <= crossed <= 130
    for k in (1, 2, 6):
        assert all(
            result.solve(*inputs("longest_palindrome", seed, agents=5, items=k, domain="hardened")) >= 5
            for seed in range(10)
        )


def test_text_and_terrain_vary() -> None:
    assert set("".join(inputs("pattern_search", agents=20)[0])) == set("ABCDXYZ")
    heights = flat(inputs("trapping_rain", agents=100)[0])
    assert set(heights) == set(range(11)) and 0.25 < sum(h > 5 for h in heights) / len(heights) < 0.42


# ----------------------------------------------------------------------------------------- examples

EXAMPLES: list[tuple[str, list[Any], dict[str, Any], Any]] = [
    ("word_frequency", [["apple", "Apple", "pineapple"], ["fig", "apple"]], {"word": "apple"}, 2),
    ("word_frequency", [["apple"], ["fig"]], {"word": "kiwi"}, 0),
    ("distributed_vote", [["Bob", "Carol", "Bob"], ["Carol", "Carol", "Carol"]], {}, "Carol"),
    ("any_match", [["INFO a"], ["WARN b", "ERROR c"]], {}, True),
    ("any_match", [["INFO a: error"], ["WARN b"]], {}, False),
    ("range_count", [[99, 100], [500, 501], [300, 300]], {"low": 100, "high": 500}, 4),
    ("checksum_xor", [[5, 3], [255]], {}, 249),
    ("checksum_xor", [[7], [7]], {}, 0),
    ("average_value", [[1.5, 2.5], [3.5]], {}, 2.5),
    ("average_value", [[0.0, 0.0, 0.0], [10.0]], {}, 2.5),
    ("set_union_size", [[1, 1, 2], [2, 3, 0]], {}, 4),
    ("top_k_selection", [[5, 9, 9], [7, 9, 1]], {"top": 10}, [9, 9, 9, 7, 5, 1]),
    ("top_k_selection", [[5, 9, 9], [7, 8, 1]], {"top": 3}, [9, 9, 8]),
    ("standard_deviation", [[2.0, 4.0, 4.0, 4.0], [5.0, 5.0, 7.0, 9.0]], {}, 2.0),
    ("standard_deviation", [[73.25]], {}, 0.0),
    ("moving_average", [[1, 2], [3, 10]], {}, [2.0, 5.0]),
    ("moving_average", [[1, 2]], {}, []),
    ("longest_palindrome", ["xab", "cba", "yz"], {}, 5),
    ("longest_palindrome", ["xab", "bay"], {}, 4),
    ("longest_palindrome", ["a", "b"], {}, 1),
    ("life_game_1d", [[0, 0, 1], [0, 0, 0]], {"steps": 1}, [[0, 1, 1], [1, 0, 0]]),
    ("life_game_1d", [[0, 0, 1], [0, 0, 0]], {"steps": 2}, [[1, 0, 0], [0, 1, 0]]),
    ("life_game_1d", [[1, 1], [1, 0]], {"steps": 1}, [[0, 0], [0, 1]]),
    ("life_game_1d", [[1, 0], [0, 1]], {"steps": 1}, [[1, 1], [1, 1]]),
    ("pattern_search", ["AAB", "XCB", "CABC"], {}, 2),
    ("pattern_search", ["AABBCC"], {}, 1),
    ("pattern_search", ["CBA", "BA", "C"], {}, 1),
    ("pattern_search", ["CBAB"], {}, 0),
    ("trapping_rain", [[0, 1, 0, 2], [1, 0, 1, 3], [2, 1, 2, 1]], {}, 6),
    ("trapping_rain", [[3, 0], [0, 2]], {}, 4),
    ("trapping_rain", [[1, 2], [2, 1]], {}, 0),
]


@pytest.mark.parametrize(("name", "parts", "known", "expected"), EXAMPLES)
def test_small_examples(name: str, parts: list[Any], known: dict[str, Any], expected: Any) -> None:
    solved = task(name, agents=len(parts)).solve(parts, known)
    assert solved == expected and type(solved) is type(expected)


def test_every_task_has_an_example() -> None:
    assert {name for name, *_ in EXAMPLES} == set(SIZES)


# -------------------------------------------------------------------------------------------- needs


def test_a_match_needs_one_holder_and_no_match_needs_all() -> None:
    result = task("any_match", agents=3)
    none, two = [["a"], ["b"], ["c"]], [["ERROR"], ["b"], ["x ERROR"]]
    assert [list(result.needed_agents(i, none, {})) for i in range(3)] == [[0b111]] * 3
    assert [set(result.needed_agents(i, two, {})) for i in range(3)] == [{0b001, 0b100}] * 3


@pytest.mark.parametrize(("k", "steps", "masks"), [
    (10, 5, [0b0011, 0b0111, 0b1110, 0b1100]), (5, 5, [0b0011, 0b0111, 0b1110, 0b1100]),
    (3, 5, [0b0111, 0b1111, 0b1111, 0b1110]), (4, 0, [0b0001, 0b0010, 0b0100, 0b1000]),
])  # fmt: skip
def test_life_needs_the_agents_within_reach(k: int, steps: int, masks: list[int]) -> None:
    result = task("life_game_1d", agents=4)
    assert [result.needed_agents(i, [[0] * k] * 4, {"steps": steps}) for i in range(4)] == [[mask] for mask in masks]


def test_life_is_decided_by_what_it_needs_and_by_nothing_else() -> None:
    result = task("life_game_1d", agents=5, items=3)
    reached = set()
    for seed in range(30):
        drawn, names = inputs("life_game_1d", seed, agents=5, items=3)
        changed = [[1 - cell for cell in drawn[0]], *drawn[1:]]
        pairs = zip(result.solve(drawn, names), result.solve(changed, names), strict=True)
        reached |= {i for i, (before, after) in enumerate(pairs) if before != after}
    needing = {i for i in range(5) if result.needed_agents(i, drawn, names)[0] & 1}
    assert reached == needing == set(range(ceil(5 / 3) + 1))


@pytest.mark.parametrize("name", sorted(set(SIZES) - {"any_match", "life_game_1d"}))
def test_all_other_tasks_need_every_agent(name: str) -> None:
    drawn, names = inputs(name, agents=4)
    assert list(task(name, agents=4).needed_agents(2, drawn, names)) == [0b1111]


# ---------------------------------------------------------------------------------------- spellings


def success(made: ShardedTask, texts: Sequence[str], truth: Any) -> float | None:
    """The one grade that all of these texts get where `truth` is right."""
    played = replace(case(made, 0), target=[truth])
    (agent,) = played.agents
    scores = {made.grade(played, Outcome({agent: made.reply(played, agent).parse(t).action}))["success"] for t in texts}
    assert len(scores) == 1, texts
    return scores.pop()


SPELLINGS: list[tuple[str, Any, list[str], list[str]]] = [
    ("word_frequency", 12, ["12", "12.0", '"12"', "```json\n12\n```"], ["13", "true", "[12]"]),
    ("distributed_vote", "Bob", ["Bob", '"Bob"', " 'Bob'\n"], ["Bobby", "bob", '["Bob"]']),
    ("any_match", True, ["true", "True", '"TRUE"'], ["1", "false", '"yes"']),
    ("any_match", False, ["false", "False", "FALSE"], ["0", "true", "[]"]),
    ("range_count", 3, ["3", "3.0"], ["2"]),
    ("checksum_xor", 201, ["201", '"201"'], ["200"]),
    ("average_value", 2.675, ["2.67", "2.68", "2.675", '"2.68"'], ["2.66", "2.69", "2.6", "nan"]),
    ("set_union_size", 7, ["7", "7.00"], ["8"]),
    ("top_k_selection", [9, 9, 1], ["[9, 9, 1]", "(9, 9, 1)", '["9", 9.0, "1"]', '"[9,9,1]"'], ["[9, 1]", "[1, 9, 9]"]),
    ("standard_deviation", 0.125, ["0.12", "0.13", ".125"], ["0.11", "0.14"]),
    ("moving_average", [5 / 3, 2.0], ["[1.67, 2]", "(1.67, 2.00)", "['1.667', 2]"], ["[1.66, 2]", "[1.67]"]),
    ("longest_palindrome", 7, ["7", '"7"'], ["6"]),
    ("life_game_1d", [0, 1], ["[0, 1]", "(0, 1)", '["0", "1"]', "[0.0, 1.0]"], ["[0, 1, 0]", "[false, true]"]),
    ("pattern_search", 0, ["0", "0.0"], ["1", "false"]),
    ("trapping_rain", 25, ["25", "2.5e1"], ["25.5"]),
]


@pytest.mark.parametrize(("name", "truth", "right", "wrong"), SPELLINGS)
def test_other_spellings_are_right(name: str, truth: Any, right: list[str], wrong: list[str]) -> None:
    result = task(name, agents=1)
    assert success(result, right, truth) == 1
    assert success(result, wrong, truth) == 0


def test_every_task_has_spellings() -> None:
    assert {name for name, *_ in SPELLINGS} == set(SIZES)
