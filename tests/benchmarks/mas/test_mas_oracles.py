"""Perfect teams have the messages and rounds that theory gives them; failing ones fail in just the way they should."""

import pytest

from harness.api.errors import PluginError
from tests.benchmarks.mas.mas_teams import BACKENDS, FAMILIES, TASKS, Played, play


def perfect(played: Played) -> None:
    assert (played.grade["success"], played.grade["check"], played.flags) == (1, 1, set())
    assert played.facts["refused"] == 0


@pytest.mark.sampled(5)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("task", TASKS)
def test_everything_is_solved(task: str, backend: str) -> None:
    for agents in (1, 2, 3, 5, 10):
        for items in (1, 5):
            for family in FAMILIES:
                perfect(play(task, backend, agents, items=items, family=family))


@pytest.mark.parametrize("agents", [3, 4, 5, 10, 20, 50])
def test_messages_and_rounds(agents: int) -> None:
    n = agents
    report = play("sorting", "broadcasting", n)
    assert (report.facts["messages"], report.facts["rounds"]) == (n, 3)
    store = play("sorting", "shared_kv", n)
    reads = sum(sum(readers.values()) for readers in store.facts["reads"].values())
    assert (store.facts["messages"], reads, store.facts["rounds"]) == (n, n * (n - 1), 3)
    for hub, rounds in ((0, 4), (None, 4), (n // 2, 5)):  # first and last are one round faster: order of the drain
        star = play("sorting", "p2p", n, hub=hub)
        perfect(star)
        assert (star.facts["messages"], star.facts["rounds"]) == (2 * (n - 1), rounds), hub
    chain = play("prefix_sum", "p2p", n, plan="chain")
    perfect(chain)
    assert (chain.facts["messages"], chain.facts["rounds"]) == (n - 1, n)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_second_run_repeats_everything(backend: str) -> None:
    once, twice = play("sorting", backend, 5), play("sorting", backend, 5, phases="two")
    perfect(twice)
    assert twice.facts["rounds"] == once.facts["rounds"]
    assert twice.measured("mas/rounds") == once.measured("mas/rounds") == once.facts["rounds"]
    assert twice.measured("mas/rounds", phase="all") == 2 * once.facts["rounds"]
    assert twice.measured("messages") == 2 * (once.measured("messages") or 0)


def test_one_agent_submits_at_once_without_a_word() -> None:
    for backend in BACKENDS:
        alone = play("sorting", backend, 1)
        perfect(alone)
        assert (alone.facts["rounds"], alone.facts["messages"]) == (1, 0)
        perfect(play("prefix_sum", backend, 4, whole=True))


def test_no_such_plan_or_hub() -> None:
    with pytest.raises(PluginError, match="no plan chain for broadcasting"):
        play("sorting", "broadcasting", 3, plan="chain")
    with pytest.raises(PluginError, match="no plan chain for sorting"):
        play("sorting", "p2p", 3, plan="chain")
    with pytest.raises(PluginError, match="hub is 7, and there are agents 0 to 2"):
        play("sorting", "p2p", 3, hub=7)


def test_silence_sorts_the_own_list() -> None:
    for backend in BACKENDS:
        played = play("sorting", backend, 5, "mas/silent")
        assert played.outcome.answers == {s: sorted(played.case.private[s]["shard"]) for s in played.case.agents}
        assert (played.facts["messages"], played.facts["rounds"], played.flags) == (0, 1, {"premature"})
        assert play("sorting", backend, 5, "mas/silent", family="asc").grade["success"] == 1, "sorted already"
    assert play("maximum", "p2p", 4, "mas/silent").grade["success"] == 0.25
    assert play("prefix_sum", "p2p", 4, "mas/silent").grade["success"] == 0.25


def test_stale_readers_fail_by_stale_reads() -> None:
    for items in (1, 5):
        failed = play("sorting", "shared_kv", 4, "mas/stale_reader", items=items)
        assert failed.grade["success"] < 1 and "stale" in failed.flags and "premature" not in failed.flags
        assert set(failed.facts["stale"]["Agent-0"]) == {"list_1", "list_2", "list_3"}
        perfect(play("sorting", "shared_kv", 4, "mas/stale_reader", items=items, rereads=True))
    with pytest.raises(PluginError, match="needs the channel mas/shared_kv"):
        play("sorting", "p2p", 3, "mas/stale_reader")


def test_who_waits_for_another_in_vain_waits_to_the_end() -> None:
    for policy in ("mas/oracle", "mas/stale_reader"):
        played = play("sorting", "shared_kv", 3, policy, rounds=8, mute=1)
        assert played.flags >= {"timeout"} and played.outcome.answers["Agent-1"] is not None
        assert [played.outcome.answers[agent] for agent in ("Agent-0", "Agent-2")] == [None, None]
