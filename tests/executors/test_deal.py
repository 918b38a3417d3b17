"""Dealing episodes out: nobody else's, none twice, none lost, whatever workers do."""

import asyncio
import math
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.api import Case, Move
from harness.config.plan import Condition, episode_id
from harness.executors._deal import Deal, Hand
from harness.runtime.runner import Job

CONDITION: Any = Condition("all", {}, None, None, ())  # type: ignore[arg-type]


def jobs(count: int) -> list[Job]:
    return [(CONDITION, Case(f"c{i}", ("S",)), 0) for i in range(count)]


def deal(count: int, workers: int = 2, width: int = 2, moves: Any = None) -> Deal:
    return Deal(iter(jobs(count)), moves if moves is not None else {}, count, workers, width)


def names(hands: list[Hand]) -> list[str]:
    return [hand.id for hand in hands]


def test_plan_order_and_a_fair_share() -> None:
    made = deal(10, workers=2, width=100)
    made.join(0)
    made.join(1)
    assert names(made.take(0)) == [f"all/c{i}/0" for i in range(5)], "half, though it could hold all"
    assert names(made.take(1)) == [f"all/c{i}/0" for i in range(5, 10)]
    assert made.take(0) == []


def test_a_worker_holds_its_width_and_a_few_more() -> None:
    made = deal(1000, width=4)
    made.join(0)
    first = names(made.take(0))
    assert len(first) == 5
    assert made.take(0) == []
    made.finish(0, first)  # five between two questions: it is fast, and gets more ahead
    assert len(made.take(0)) == 4 + 10


def test_what_is_finished_twice_counts_once() -> None:
    made = deal(3, workers=1)
    made.join(0)
    [one, *_] = names(made.take(0))
    assert made.finish(0, [one, one, "stranger"]) == [one]
    assert made.finish(0, [one]) == []
    assert made.left == 2


def test_a_lost_workers_episodes_are_dealt_again_with_their_moves() -> None:
    known = {("S", 0): Move("S", "say", "a")}
    made = deal(3, workers=1, width=3, moves={"all/c0/0": dict(known)})
    made.join(0)
    assert made.take(0)[0].moves == known
    more = {("S", 1): Move("S", "say", "b")}
    assert made.settle(0, {"all/c2/0"}, {"all/c0/0": more}) == ["all/c2/0"]
    made.join(1)
    again = {hand.id: hand.moves for hand in made.take(1)}
    assert again == {"all/c0/0": known | more, "all/c1/0": {}}
    made.finish(1, again)
    assert made.over.is_set()


def test_doubted_episodes_keep_nobody_from_playing_and_are_waited_for_by_nobody() -> None:
    made = deal(6, workers=2, width=1)
    made.join(0)
    made.join(1)
    first = names(made.take(0))
    assert len(first) == 2 and made.take(0) == []
    made.doubt(0, [*first, "stranger"])
    assert len(made.take(0)) == 2, "what it doubts fills no hand"
    other = names(made.take(1))
    made.finish(1, other)
    assert len(other) == 2 and not made.over.is_set()
    rest = list(made.held[0])
    assert made.finish(0, [first[0], rest[0]]) == [first[0], rest[0]], "it is believed after all"
    assert not made.over.is_set()
    made.finish(0, rest)
    assert made.over.is_set() and made.left == 1


def test_what_a_lost_worker_doubted_is_dealt_again() -> None:
    made = deal(2, workers=1, width=2)
    made.join(0)
    [one, two] = names(made.take(0))
    made.doubt(0, [one])
    made.missing(0)
    made.doubt(0, [two])
    assert made.settle(0, {one}, {}) == [one]
    made.join(1)
    assert names(made.take(1)) == [two]


def test_who_waits_hears_of_what_comes_back() -> None:
    async def wait() -> bool:
        made = deal(2, workers=2, width=1)
        made.join(0)
        made.join(1)
        made.take(0)
        made.take(1)
        waiting = asyncio.ensure_future(made.changed.wait())
        await asyncio.sleep(0)
        made.settle(0, (), {})
        await waiting
        return not made.changed.is_set() and not made.over.is_set()

    assert asyncio.run(wait())


def test_the_idle_steal_what_others_have_not_begun_with() -> None:
    made = deal(6, workers=1, width=1)
    made.join(0)
    made.finish(0, names(made.take(0)))  # two: now it gets four ahead
    held = names(made.take(0))
    assert len(held) == 4
    made.workers = 2
    made.join(1)
    assert made.take(1) == []
    assert made.victim(1, {0, 1}) == (0, 1), "as many as it can begin with at once"
    assert made.victim(1, {1}) is None, "not from who is gone"
    assert made.victim(0, {0, 1}) is None, "it has enough"
    made.give_back(0, held[-1:])
    assert names(made.take(1)) == held[-1:]
    made.give_back(0, held[-1:])
    assert made.take(0) == [], "what it does not hold any more cannot be given back"


def test_nothing_to_play_is_over_at_once() -> None:
    assert deal(0).over.is_set()


EVENTS = st.lists(st.tuples(st.sampled_from(["take", "finish", "lose", "steal"]), st.integers(0, 3), st.integers(0, 9)))


@settings(deadline=None)
@given(st.integers(1, 40), st.integers(1, 3), st.integers(1, 5), EVENTS)
def test_every_episode_is_finished_exactly_once(count: int, workers: int, width: int, events: Any) -> None:
    made = deal(count, workers, width)
    finished: list[str] = []
    number = workers
    alive = set(range(workers))
    for worker in alive:
        made.join(worker)
    for what, which, size in events:
        worker = sorted(alive)[which % workers]
        held = list(made.held[worker])
        if what == "take":
            made.take(worker)
            assert len(made.held[worker]) <= max(len(held), math.ceil(made.left / workers))
        elif what == "finish":
            finished += made.finish(worker, held[:size])
        elif what == "lose":
            finished += made.settle(worker, set(held[:size]), {})
            alive = alive - {worker} | {number}
            made.join(number)
            number += 1
        elif (found := made.victim(worker, alive)) is not None:
            victim, most = found
            assert victim != worker and most >= 1
            made.give_back(victim, list(made.held[victim])[-most:])
    while not made.over.is_set():
        for worker in alive:
            finished += made.finish(worker, names(made.take(worker)) + list(made.held[worker]))
    assert sorted(finished) == sorted(episode_id(*job) for job in jobs(count))
    assert made.left == 0 and not any(made.held.values())
