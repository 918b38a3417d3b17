"""Assigning episodes to workers: none twice, none lost, whatever workers do."""

import math
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.api import Case, Move
from harness.config.plan import Condition, episode_id
from harness.executors._scheduler import Assignment, Scheduler
from harness.runtime.runner import Job

CONDITION: Any = Condition("all", {}, None, None, ())  # type: ignore[arg-type]


def jobs(count: int) -> list[Job]:
    return [(CONDITION, Case(f"c{i}", ("S",)), 0) for i in range(count)]


def scheduler(count: int, workers: int = 2, width: int = 2, moves: Any = None) -> Scheduler:
    return Scheduler(iter(jobs(count)), moves if moves is not None else {}, count, workers, width)


def names(assignments: list[Assignment]) -> list[str]:
    return [each.id for each in assignments]


def test_plan_order_and_a_fair_share() -> None:
    made = scheduler(10, workers=2, width=100)
    made.join(0)
    made.join(1)
    assert names(made.take(0)) == [f"all/c{i}/0" for i in range(5)], "half, though it could hold all"
    assert names(made.take(1)) == [f"all/c{i}/0" for i in range(5, 10)]
    assert made.take(0) == []


def test_a_fast_worker_gets_more_in_advance_and_less_towards_the_end() -> None:
    made = scheduler(100, width=4)
    made.join(0)
    made.join(1)
    first = names(made.take(0))
    assert len(first) == 4, "as many as it plays at once"
    assert made.take(0) == []
    made.finish(0, first)  # four between two updates
    advance = [len(made.take(0)) - 4]
    while held := list(made.active[0])[:4]:
        made.finish(0, held)
        made.take(0)
        advance.append(len(made.active[0]) - 4)
    assert advance[0] == 8 and advance == sorted(advance, reverse=True)
    assert advance[advance.index(0) - 1] <= 4, "they shrink"


def test_a_worker_that_has_nothing_left_gets_more_at_once() -> None:
    """Also one that plays a single episode at a time, such as one without an engine."""
    made = scheduler(10_000, width=1)
    made.join(0)
    made.join(1)
    taken = []
    for _ in range(10):
        held = names(made.take(0))
        taken.append(len(held))
        made.finish(0, held)
    assert taken[:4] == [1, 3, 7, 15] and max(taken) == 257


def test_what_is_finished_twice_counts_once() -> None:
    made = scheduler(3, workers=1)
    made.join(0)
    [one, *_] = names(made.take(0))
    assert made.finish(0, [one, one, "stranger"]) == {one}
    assert made.finish(0, [one]) == set()
    assert made.left == 2


def test_a_lost_workers_episodes_are_assigned_again_with_their_moves() -> None:
    known = {("S", 0): Move("S", "say", "a")}
    made = scheduler(3, workers=1, width=3, moves={"all/c0/0": dict(known)})
    made.join(0)
    assert made.take(0)[0].moves == known
    more = {("S", 1): Move("S", "say", "b")}
    assert made.recover(0, {"all/c2/0"}, {"all/c0/0": more}) == ["all/c2/0"]
    made.join(1)
    again = {each.id: each.moves for each in made.take(1)}
    assert again == {"all/c0/0": known | more, "all/c1/0": {}}
    made.finish(1, again)
    assert made.done


def test_paused_episodes_take_no_place_of_others() -> None:
    """Nor does the run wait for them at its end."""
    made = scheduler(6, workers=2, width=2)
    made.join(0)
    made.join(1)
    first = names(made.take(0))
    assert len(first) == 2 and made.take(0) == []
    made.pause(0, [*first, "stranger"])
    assert len(made.take(0)) == 2
    other = names(made.take(1))
    made.finish(1, other)
    assert len(other) == 2 and not made.done
    rest = list(made.active[0])
    assert made.finish(0, [first[0], rest[0]]) == {first[0], rest[0]}, "its failures are confirmed after all"
    assert not made.done
    made.finish(0, rest)
    assert made.done and made.left == 1


def test_what_a_lost_worker_paused_is_assigned_again() -> None:
    made = scheduler(2, workers=1, width=2)
    made.join(0)
    [one, two] = names(made.take(0))
    made.pause(0, [one, two])
    assert made.done
    assert made.recover(0, {one}, {}) == [one] and not made.done
    made.join(1)
    assert names(made.take(1)) == [two]


def test_nothing_to_play_is_done_at_once() -> None:
    assert scheduler(0).done


EVENTS = st.lists(st.tuples(st.sampled_from(["take", "finish", "lose", "pause"]), st.integers(0, 3), st.integers(0, 9)))


@settings(deadline=None)
@given(st.integers(1, 40), st.integers(1, 3), st.integers(1, 5), EVENTS)
def test_every_episode_is_finished_exactly_once(count: int, workers: int, width: int, events: Any) -> None:
    made = scheduler(count, workers, width)
    finished: list[str] = []
    number = workers
    alive = set(range(workers))
    for worker in alive:
        made.join(worker)
    for what, which, size in events:
        worker = sorted(alive)[which % workers]
        held = list(made.active[worker])
        if what == "take":
            made.take(worker)
            assert len(made.active[worker]) <= max(len(held), math.ceil(made.left / workers))
        elif what == "finish":
            finished += made.finish(worker, held[:size])
        elif what == "lose":
            finished += made.recover(worker, set(held[:size]), {})
            alive = alive - {worker} | {number}
            made.join(number)
            number += 1
        else:
            made.pause(worker, held[:size])
    while not made.done:
        for worker in alive:
            made.take(worker)
            finished += made.finish(worker, [*made.active[worker], *made.paused[worker]])
    for worker in alive:
        finished += made.finish(worker, list(made.paused[worker]))
    assert sorted(finished) == sorted(episode_id(*job) for job in jobs(count))
    assert made.left == 0 and not any(made.active.values())
