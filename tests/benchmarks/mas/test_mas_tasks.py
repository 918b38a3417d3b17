"""The generator keeps Algorithm 1's promises, answers equal an independent solution, and failures are told by rule."""

from itertools import accumulate, combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.api import Case, Outcome
from tests.benchmarks.mas.mas_teams import FAMILIES, TASKS, graded, task_of
from tests.helpers.samples import examples

SIZES = st.tuples(st.integers(1, 8), st.integers(1, 6))


def case_of(task: str, seed: int = 0, **parameters: object) -> Case:
    return next(iter(task_of(task, **parameters).cases(1, seed)))


def whole(case: Case) -> list[int]:
    return [x for agent in case.agents for x in case.private[agent]["shard"]]


def rate(values: list[int]) -> float:
    """Equation 3, word for word."""
    pairs = list(combinations(range(len(values)), 2))
    return sum(values[p] > values[q] for p, q in pairs) / len(pairs) if pairs else 0.0


@given(SIZES, st.sampled_from(FAMILIES), st.integers(0, 50))
def test_inputs_are_what_algorithm_1_makes(size: tuple[int, int], family: str, seed: int) -> None:
    n, k = size
    case = case_of("sorting", seed, agents=n, items=k, family=family)
    values, total = whole(case), n * k
    assert [len(case.private[agent]["shard"]) for agent in case.agents] == [k] * n
    assert len(set(values)) == total and all(0 <= x < 10 * total for x in values)
    base = sorted(values, reverse="desc" in family)
    moved = sum(a != b for a, b in zip(values, base, strict=True))
    assert moved <= {"random": total, "near_asc": total // 5, "near_desc": total // 5}.get(family, 0)


@given(SIZES, st.sampled_from(FAMILIES))
def test_right_answers_and_inversion_rate(size: tuple[int, int], family: str) -> None:
    n, k = size
    cases = {task: case_of(task, agents=n, items=k, family=family) for task in TASKS}
    values = whole(cases["sorting"])
    assert all(whole(case) == values for case in cases.values()), "all problems of a size are put on one input"
    assert [x for part in cases["sorting"].target for x in part] == sorted(values)
    assert [x for part in cases["prefix_sum"].target for x in part] == list(accumulate(values))
    assert cases["maximum"].target == [[max(values)]] * n
    assert {len(part) for task in ("sorting", "prefix_sum") for part in cases[task].target} == {k}
    grade = task_of("sorting", agents=n, items=k, family=family).grade(cases["sorting"], Outcome())
    assert grade["inversion_rate"] == pytest.approx(rate(values))
    assert grade["elements"] == n * k


@pytest.mark.parametrize(
    ("family", "n", "k", "expected"),
    [("random", 10, 10, 0.5), ("near_asc", 3, 5, 0.09), ("near_asc", 5, 5, 0.104), ("near_asc", 10, 10, 0.123)],
)
def test_mean_disorder_of_the_families(family: str, n: int, k: int, expected: float) -> None:
    task = task_of("sorting", agents=n, items=k, family=family, instances=400)
    rates = [task.grade(case, Outcome())["inversion_rate"] for case in task.cases(None, 0)]
    assert sum(rates) / len(rates) == pytest.approx(expected, abs=0.012)


def test_sorted_families_have_no_disorder_or_all() -> None:
    for n, k in ((1, 1), (1, 5), (3, 3), (5, 10)):
        for family, expected in (("asc", 0.0), ("desc", 1.0 if n * k > 1 else 0.0)):
            values = whole(case_of("sorting", agents=n, items=k, family=family))
            assert rate(values) == expected
    for n, k in ((3, 3), (9, 1)):  # a single place that is "shuffled" stays where it is
        assert whole(case_of("sorting", agents=n, items=k, family="near_asc")) == sorted(
            whole(case_of("sorting", agents=n, items=k, family="near_asc"))
        )


def test_instances_differ_by_seed_and_sample_and_by_nothing_else() -> None:
    task = task_of("sorting", agents=4, items=5, instances=3)
    first, again = list(task.cases(None, 1)), list(task.cases(None, 1))
    assert first == again and len({str(case.private) for case in first}) == 3
    assert next(iter(task.cases(1, 2))).private != first[0].private
    alone = case_of("sorting", 1, agents=4, items=5, whole=True)
    assert len(alone.agents) == 1 and whole(alone) == whole(first[0]) and alone.target == [sorted(whole(alone))]


# ------------------------------------------------------------------------------------- the grade


def truth(task: str = "sorting", agents: int = 3, items: int = 3) -> list[list[int]]:
    target: list[list[int]] = case_of(task, agents=agents, items=items).target
    return target


FLAGS = ("premature", "hallucination", "boundary", "timeout")


def flags(grade: dict[str, float]) -> set[str]:
    return {name for name in (*FLAGS, "stale") if grade[name]}


def test_all_right() -> None:
    for task in TASKS:
        grade = graded(task, truth(task), agents=3, items=3, stale={})
        assert (grade["success"], grade["check"], grade["partial"], flags(grade)) == (1, 1, 1, set())


def test_no_agent_submits() -> None:
    grade = graded("sorting", [None] * 3, agents=3, items=3)
    assert (grade["success"], grade["check"], flags(grade)) == (0, 0, {"timeout"})


def test_two_slices_swapped_is_a_boundary_mismatch() -> None:
    a, b, c = truth()
    grade = graded("sorting", [b, a, c], agents=3, items=3)
    assert grade["success"] == pytest.approx(1 / 3) and grade["check"] == 0 and flags(grade) == {"boundary"}
    shifted = sorted(a + b)[1:4]
    assert flags(graded("sorting", [shifted, b, c], agents=3, items=3)) == {"boundary"}
    sums = truth("prefix_sum")
    assert flags(graded("prefix_sum", [sums[1], sums[1], sums[2]], agents=3, items=3)) == {"boundary"}


def test_who_could_not_know_is_premature_and_not_mistaken() -> None:
    a, b, c = truth()
    assert flags(graded("sorting", [b, b, c], agents=3, items=3, knew=[0b001, 0b111, 0b111])) == {"premature"}
    assert flags(graded("sorting", [a, b, c], agents=3, items=3, knew=[0b001, 0b001, 0b001])) == set(), "all is right"
    sums = truth("prefix_sum")
    sums[1] = [x + 1 for x in sums[1]]
    assert flags(graded("prefix_sum", sums, agents=3, items=3, knew=[0b001, 0b011, 0b111])) == set(), (
        "agent i needs those before it and no others; a wrong sum is none of the modes"
    )
    assert flags(graded("prefix_sum", sums, agents=3, items=3, knew=[0b001, 0b010, 0b111])) == {"premature"}


def test_numbers_that_no_agent_has_and_numbers_left_out_are_hallucinations() -> None:
    a, b, c = truth()
    stranger = next(x for x in range(90) if x not in a + b + c)
    assert flags(graded("sorting", [sorted([*a[:2], stranger]), b, c], agents=3, items=3)) == {"hallucination"}
    skipped = [a[0], a[1], b[0]]  # a[2] lies between
    assert flags(graded("sorting", [skipped, b, c], agents=3, items=3)) == {"hallucination"}
    assert flags(graded("sorting", [skipped, b, c], agents=3, items=3, knew=[1, 7, 7])) == {"premature"}
    assert flags(graded("sorting", [[a[0]] * 3, b, c], agents=3, items=3)) == {"hallucination"}, "some given twice"
    assert flags(graded("sorting", [a[::-1], b, c], agents=3, items=3)) == set(), "descending is another convention"
    largest = truth("maximum")
    assert flags(graded("maximum", [[91], *largest[1:]], agents=3, items=3)) == {"hallucination"}
    assert flags(graded("maximum", [[min(a)], *largest[1:]], agents=3, items=3)) == set()


def test_stale_reads_count_for_wrong_answers_only_and_not_without_a_store() -> None:
    a, b, c = truth()
    wrong = [b, b, c]
    assert "stale" in flags(graded("sorting", wrong, agents=3, items=3, stale={"Agent-0": ["x"], "Agent-1": []}))
    assert "stale" not in flags(graded("sorting", wrong, agents=3, items=3, stale={"Agent-0": [], "Agent-1": ["x"]}))
    assert graded("sorting", wrong, agents=3, items=3)["stale"] is None
    assert graded("sorting", [a, b, c], agents=3, items=3, stale={"Agent-0": ["x"]})["stale"] == 0


def test_what_does_not_apply_is_missing() -> None:
    grade = graded("maximum", [[1]] * 3, agents=3, items=3)
    assert grade["boundary"] is None and grade["hallucination"] is not None
    grade = graded("prefix_sum", [[1, 2, 3]] * 3, agents=3, items=3)
    assert grade["hallucination"] is None and grade["boundary"] is not None


ANSWERS = st.none() | st.integers() | st.text(max_size=3) | st.lists(st.integers(-5, 40) | st.booleans(), max_size=4)


@given(st.lists(ANSWERS, min_size=3, max_size=3), st.sampled_from(TASKS))
@settings(max_examples=examples(200))
def test_grading_is_total_and_the_global_check_agrees_with_every_agent_being_right(answers: list, task: str) -> None:  # type: ignore[type-arg]
    grade = graded(task, answers, agents=3, items=3)
    assert set(grade) == set(task_of(task).grades)
    assert (grade["check"] == 1) == (grade["success"] == 1)
    assert grade["success"] < 1 or not flags(grade)


@given(st.permutations(range(9)))
def test_check_is_about_order_as_well_as_numbers(order: list[int]) -> None:
    values = [x for part in truth() for x in part]
    moved = [values[i] for i in order]
    grade = graded("sorting", [moved[0:3], moved[3:6], moved[6:9]], agents=3, items=3)
    assert grade["check"] == float(moved == sorted(values)) == float(grade["success"] == 1)
