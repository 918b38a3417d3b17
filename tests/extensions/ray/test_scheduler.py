"""Assigning episodes to workers: none twice, none lost, whatever workers do."""

import math
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.api import Case, Move
from harness.config.plan import Condition, Job, episode_id
from harness.extensions.ray._scheduler import Assignment, Scheduler

CONDITION: Any = Condition("all", {}, None, None, ())  # type: ignore[arg-type]


def jobs(count: int) -> list[Job]:
    return [(CONDITION, Case(f"c{i}", ("S",)), 0) for i in range(count)]


def scheduler(count: int, workers: int = 2, width: int = 2, moves: Any = None) -> Scheduler:
    return Scheduler(iter(jobs(count)), moves if moves is not None else {}, count, workers, width)


def names(assignments: list[Assignment]) -> list[str]:
    return [each.id for each in assignments]


def test_plan_order_and_a_fair_share() -> None:
    result = scheduler(10, workers=2, width=100)
    result.join(0)
    result.join(1)
    assert names(result.take(0)) == [f"all/c{i}/0" for i in range(5)], "half, though it could hold all"
    assert names(result.take(1)) == [f"all/c{i}/0" for i in range(5, 10)]
    assert result.take(0) == []


def test_a_fast_worker_gets_more_in_advance_and_less_towards_the_end() -> None:
    result = scheduler(100, width=4)
    result.join(0)
    result.join(1)
    first = names(result.take(0))
    assert len(first) == 4, "as many as it plays at once"
    assert result.take(0) == []
    result.finish(0, first)  # four between two updates
    advance = [len(result.take(0)) - 4]
    while items := list(result.active[0])[:4]:
        result.finish(0, items)
        result.take(0)
        advance.append(len(result.active[0]) - 4)
    assert advance[0] == 8 and advance == sorted(advance, reverse=True)
    assert advance[advance.index(0) - 1] <= 4, "they shrink"


def test_a_worker_that_has_nothing_left_gets_more_at_once() -> None:
    """Also one that plays a single episode at a time, such as one without an engine."""
    result = scheduler(10_000, width=1)
    result.join(0)
    result.join(1)
    results = []
    for _ in range(10):
        contents = names(result.take(0))
        results.append(len(contents))
        result.finish(0, contents)
    assert results[:4] == [1, 3, 7, 15] and max(results) == 257


def test_what_is_finished_twice_counts_once() -> None:
    result = scheduler(3, workers=1)
    result.join(0)
    [one, *_] = names(result.take(0))
    assert result.finish(0, [one, one, "stranger"]) == {one}
    assert result.finish(0, [one]) == set()
    assert result.remaining == 2


def test_a_lost_workers_episodes_are_assigned_again_with_their_moves() -> None:
    mapping = {("S", 0): Move("S", "say", "a")}
    result = scheduler(3, workers=1, width=3, moves={"all/c0/0": dict(mapping)})
    result.join(0)
    assert result.take(0)[0].moves == mapping
    more = {("S", 1): Move("S", "say", "b")}
    assert result.recover(0, {"all/c2/0"}, {"all/c0/0": more}) == ["all/c2/0"]
    result.join(1)
    again = {each.id: each.moves for each in result.take(1)}
    assert again == {"all/c0/0": mapping | more, "all/c1/0": {}}
    result.finish(1, again)
    assert result.done


def test_paused_episodes_take_no_place_of_others() -> None:
    """Nor does the run wait for them at its end."""
    result = scheduler(6, workers=2, width=2)
    result.join(0)
    result.join(1)
    first = names(result.take(0))
    assert len(first) == 2 and result.take(0) == []
    result.pause(0, [*first, "stranger"])
    assert len(result.take(0)) == 2
    other = names(result.take(1))
    result.finish(1, other)
    assert len(other) == 2 and not result.done
    rest = list(result.active[0])
    assert result.finish(0, [first[0], rest[0]]) == {first[0], rest[0]}, "its failures are confirmed after all"
    assert not result.done
    result.finish(0, rest)
    assert result.done and result.remaining == 1


def test_what_a_lost_worker_paused_is_assigned_again() -> None:
    result = scheduler(2, workers=1, width=2)
    result.join(0)
    [one, two] = names(result.take(0))
    result.pause(0, [one, two])
    assert result.done
    assert result.recover(0, {one}, {}) == [one] and not result.done
    result.join(1)
    assert names(result.take(1)) == [two]


def test_the_inner_calls_that_a_lost_worker_recorded_go_with_its_episode() -> None:
    earlier, later = {"k": "inner", "n": 0}, {"k": "inner", "n": 1}
    recorded = {"all/c0/0": [earlier]}
    result = Scheduler(iter(jobs(1)), {}, 1, workers=1, width=1, inner=recorded)
    result.join(0)
    [first] = result.take(0)
    assert first.inner == [earlier] and not recorded
    result.recover(0, (), {}, {first.id: [later]})
    result.join(1)
    [again] = result.take(1)
    assert again.inner == [earlier, later]


def test_nothing_to_play_is_done_at_once() -> None:
    assert scheduler(0).done


EVENTS = st.lists(st.tuples(st.sampled_from(["take", "finish", "lose", "pause"]), st.integers(0, 3), st.integers(0, 9)))


@settings(deadline=None)
@given(st.integers(1, 40), st.integers(1, 3), st.integers(1, 5), EVENTS)
def test_every_episode_is_finished_exactly_once(count: int, workers: int, width: int, events: Any) -> None:
    result = scheduler(count, workers, width)
    finished: list[str] = []
    number = workers
    alive = set(range(workers))
    for worker in alive:
        result.join(worker)
    for what, which, size in events:
        worker = sorted(alive)[which % workers]
        items = list(result.active[worker])
        if what == "take":
            result.take(worker)
            assert len(result.active[worker]) <= max(len(items), math.ceil(result.remaining / workers))
        elif what == "finish":
            finished += result.finish(worker, items[:size])
        elif what == "lose":
            finished += result.recover(worker, set(items[:size]), {})
            alive = alive - {worker} | {number}
            result.join(number)
            number += 1
        else:
            result.pause(worker, items[:size])
    while not result.done:
        for worker in alive:
            result.take(worker)
            finished += result.finish(worker, [*result.active[worker], *result.paused[worker]])
    for worker in alive:
        finished += result.finish(worker, list(result.paused[worker]))
    assert sorted(finished) == sorted(episode_id(*job) for job in jobs(count))
    assert result.remaining == 0 and not any(result.active.values())
