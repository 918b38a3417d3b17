"""What an engine's scheduler says, step by step, and what it comes to."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from harness.engines.priority import PriorityGate
from harness.extensions.vllm.load import KV_BOUND, Listener, Load, listen_only


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def stats(running: int, waiting: int = 0, kv: float = 0.0, begun: int = 0, preempted: int = 0) -> SimpleNamespace:
    cache = SimpleNamespace(requests=begun, preempted_requests=preempted)
    return SimpleNamespace(
        num_running_reqs=running,
        num_waiting_reqs=waiting,
        num_skipped_waiting_reqs=0,
        kv_cache_usage=kv,
        prefix_cache_stats=cache,
    )


def at(clock: Clock, now: float) -> None:
    clock.now = now


def test_means_are_over_time_and_idle_is_when_the_engine_has_nothing() -> None:
    clock = Clock()
    load = Load(8, clock)
    assert load.report() == {}
    load.handed()
    load.handed()
    at(clock, 1)
    load.observe(stats(1, 1, 0.5, begun=1))
    at(clock, 3)
    load.observe(stats(2, 0, 0.75, begun=1, preempted=1))
    at(clock, 4)
    load.observe(stats(0))  # both are done in the engine; this process has not seen it yet
    at(clock, 6)
    load.finished()
    load.handed()  # the next one comes after two idle seconds
    at(clock, 7)
    load.finished()
    at(clock, 8)
    load.observe(stats(1, begun=1))
    at(clock, 10)
    load.observe(stats(0))
    load.finished()
    assert load.report() == {
        "seconds": 10.0,
        "engine_idle_share": 0.2,
        "running_mean": 0.6,  # 1 for two seconds, 2 for one, 1 for two
        "running_max": 2,
        "waiting_mean": 0.2,
        "waiting_max": 1,
        "kv_cache_use_mean": 0.175,
        "kv_cache_use_max": 0.75,
        "preemptions": 1,
    }


def test_an_engine_that_has_not_got_what_is_on_its_way_is_not_idle() -> None:
    clock = Clock()
    load = Load(8, clock)
    load.handed()
    at(clock, 2)
    load.observe(stats(0))  # said before the request arrived
    at(clock, 5)
    load.observe(stats(0, begun=1))
    load.finished()
    assert load.report()["engine_idle_share"] == 0


def test_without_reports_it_says_less_and_admits_by_number() -> None:
    clock = Clock()
    load = Load(32, clock)
    load.handed()
    at(clock, 2)
    load.finished()
    assert load.report() == {"seconds": 2.0, "engine_idle_share": 0.0}
    assert [load.admits(n) for n in (0, 32, 47, 48)] == [True, True, True, False]


def test_a_short_queue_in_the_engine_is_kept_filled() -> None:
    load = Load(64)
    load.observe(stats(40, 10))
    assert load.admits(50) and load.admits(55) and not load.admits(56)  # 16 may wait, and none of them finds a place
    load.observe(stats(40, 0))
    assert load.admits(64 + 15) and not load.admits(64 + 16)
    load.observe(stats(40, 30))
    assert not load.admits(70)


def test_a_full_cache_holds_requests_back_on_any_replica() -> None:
    load = Load(64)
    load.observe(stats(3, kv=KV_BOUND), replica=1)
    assert not load.admits(3)
    load.observe(stats(2, kv=0.2), replica=0)
    assert not load.admits(5)
    load.observe(stats(3, kv=0.5), replica=1)
    assert load.admits(5)
    assert load.running == 5


def test_time_put_away_is_no_idleness() -> None:
    clock = Clock()
    load = Load(8, clock)
    for begin in (0, 100):
        at(clock, begin)
        load.handed()
        load.observe(stats(1, kv=0.95, begun=1))
        at(clock, begin + 4)
        load.finished()
        load.stopped()
        assert load.admits(0), "nothing is left of what it said"
    report = load.report()
    assert (report["seconds"], report["engine_idle_share"]) == (8.0, 0.0)


@given(st.lists(st.tuples(st.sampled_from(["hand", "done", "stats", "tick"]), st.integers(0, 9), st.floats(0, 1))))
def test_shares_are_shares_whatever_happens(events: list[tuple[str, int, float]]) -> None:
    clock = Clock()
    load, flying = Load(4, clock), 0
    for kind, number, share in events:
        if kind == "hand":
            load.handed()
            flying += 1
        elif kind == "done" and flying:
            load.finished()
            flying -= 1
        elif kind == "stats":
            load.observe(stats(number, 9 - number, share, begun=number))
        else:
            clock.now += number / 4
        load.admits(flying)
    for name, value in load.report().items():
        assert value >= 0
        if "share" in name or "use" in name:
            assert value <= 1.001


class PrometheusStatLogger: ...


def test_only_the_schedulers_statistics_are_kept() -> None:
    cancelled: list[bool] = []
    loggers = [Listener(Load(1), PriorityGate(lambda _: True), 0), PrometheusStatLogger()]
    engine: Any = SimpleNamespace(
        log_stats=True,
        output_handler=SimpleNamespace(cancel=lambda: cancelled.append(True)),
        output_processor=SimpleNamespace(log_stats=True),
        logger_manager=SimpleNamespace(stat_loggers=loggers),
    )
    listen_only(engine)
    assert (engine.log_stats, engine.output_processor.log_stats, engine.output_handler) == (False, False, None)
    assert len(loggers) == 1 and cancelled == [True]


def test_a_listener_lets_requests_through_as_the_scheduler_says() -> None:
    load = Load(4)
    listener = Listener(load, PriorityGate(load.admits), 0)
    listener.record(scheduler_stats=stats(3), iteration_stats=None, engine_idx=0)
    listener.record(None, None)
    listener.log_engine_initialized()
    listener.record_sleep_state(1, 1)
    listener.log()
    assert load.running == 3


def test_statistics_that_lack_something_are_no_error() -> None:
    load = Load(8)
    complete, lacking = stats(3), stats(5)
    del lacking.prefix_cache_stats
    listener = Listener(load, PriorityGate(load.admits), 0)
    listener.record(complete)
    listener.record(lacking)
    assert load.running == 3
