"""The metrics by hand-made episodes."""

import pytest

from harness.api.errors import PluginError
from tests.benchmarks.mas.mas_teams import BUILTIN, play


def test_success_of_agents_runs_and_the_global_check() -> None:
    half = play("maximum", "p2p", 2, "mas/silent")
    assert half.measured("mas/success") == 0.5
    assert half.measured("mas/success", of="run") == half.measured("mas/success", of="check") == 0
    right = play("maximum", "p2p", 2)
    assert [right.measured("mas/success", of=of) for of in ("agents", "run", "check")] == [1, 1, 1]


def test_token_efficiency_bills_every_call_and_the_last_phase_apart() -> None:
    once = play("sorting", "broadcasting", 3, items=5).with_calls(input_tokens=100, output_tokens=20)
    assert once.facts["rounds"] == 3  # 9 calls of 120 tokens for 15 numbers
    assert once.measured("mas/token_efficiency") == pytest.approx(15 / (9 * 120) * 1e5)
    twice = play("sorting", "broadcasting", 3, items=5, phases="two").with_calls(input_tokens=100, output_tokens=20)
    assert twice.measured("mas/token_efficiency") == once.measured("mas/token_efficiency")
    assert twice.measured("mas/token_efficiency", phase="all") == pytest.approx(15 / (18 * 120) * 1e5)
    assert play("sorting", "p2p", 3).measured("mas/token_efficiency") is None, "a policy has no tokens"


def test_communication_counts_each_text_once() -> None:
    played = play("sorting", "p2p", 2, items=1)
    lists = [played.case.private[agent]["shard"] for agent in played.case.agents]
    answer = sorted(lists[0] + lists[1])[1:]
    sent = ['{"shards": {"1": "' + str(lists[1]) + '"}}', '{"answers": {"1": "' + str(answer) + '"}}']
    texts = [
        "receive_messages", "no new messages",  # agent 0 is first
        f"send_message 0 {sent[0]}", "delivered to Agent-0",
        "receive_messages", f"from Agent-1: {sent[0]}",
        "receive_messages", "no new messages",
        f"send_message 1 {sent[1]}",  # and submits, which is not counted; that it was delivered is never shown
        "receive_messages", f"from Agent-0: {sent[1]}",
    ]  # fmt: skip
    assert played.facts["communication"] == sum(map(len, texts))
    called = played.with_calls("abcdefgh", input_tokens=40, output_tokens=2)  # 4 characters a token
    calls = sum(len(batch) for batch in called.batches)
    assert called.measured("mas/communication", of="tokens") == pytest.approx(sum(map(len, texts)) / 4)
    assert called.measured("mas/communication") == pytest.approx(sum(map(len, texts)) / 4 / (42 * calls))
    assert played.measured("mas/communication") is None


def test_tokens_of_reasoning_that_is_not_shown_are_no_measure_of_text() -> None:
    played = play("sorting", "broadcasting", 10)
    open_, hidden = played.with_calls("abcdefgh", 400, 2), played.with_calls("abcdefgh", 400, 1502, hidden=1500)
    tokens = [one.measured("mas/communication", of="tokens") for one in (open_, hidden)]
    assert tokens[0] == pytest.approx(tokens[1])
    assert (hidden.measured("mas/communication") or 0) < 1


def test_what_a_submission_makes_known_is_communication() -> None:
    for backend in ("broadcasting", "shared_kv"):
        quiet = play("sorting", backend, 3, "mas/silent", items=2)
        answers = [str(quiet.outcome.answers[agent]) for agent in quiet.case.agents]
        prefix = len("Agent-0 submitted result ") if backend == "broadcasting" else 0
        assert quiet.facts["communication"] == sum(len(answer) + prefix for answer in answers)
    assert play("sorting", "p2p", 3, "mas/silent").facts["communication"] == 0


def test_both_phases_communicate() -> None:
    once = play("sorting", "shared_kv", 3).with_calls()
    twice = play("sorting", "shared_kv", 3, phases="two").with_calls()
    tokens = once.measured("mas/communication", of="tokens") or 0
    assert twice.measured("mas/communication", of="tokens") == pytest.approx(2 * tokens)
    assert twice.measured("mas/communication", of="tokens", phase="final") == pytest.approx(tokens)
    for phase in ("all", "final"):
        assert twice.measured("mas/communication", phase=phase) == pytest.approx(once.measured("mas/communication"))


def test_failure_modes() -> None:
    silent = play("sorting", "shared_kv", 4, "mas/silent")
    assert silent.measured("mas/failure", modes=["premature"]) == 1
    assert silent.measured("mas/failure", modes=["premature", "timeout"]) == 0
    assert play("sorting", "p2p", 4).measured("mas/failure", modes=["stale"]) is None
    assert play("sorting", "p2p", 3, rounds=2).measured("mas/failure", modes=["timeout"]) == 1
    with pytest.raises(PluginError, match="modes is empty"):
        BUILTIN.load("metrics", "mas/failure")(modes=[])


def test_totals_of_a_run() -> None:
    metric = BUILTIN.load("metrics", "mas/communication")(of="tokens", over="run")
    assert metric.aggregate([1.0, 2.0]).value == 3
    count = BUILTIN.load("metrics", "mas/failure")(modes=["timeout"], count=True)
    assert count.aggregate([1.0, 0.0, 1.0]).value == 2


def test_inversion_rate() -> None:
    assert play("sorting", "p2p", 3, family="desc").measured("mas/inversion_rate") == 1
