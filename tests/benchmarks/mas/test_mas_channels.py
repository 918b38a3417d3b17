"""MAS-Bench's backends, from what an agent writes to what it is shown: Table 5 row by row, errors, submissions."""

import asyncio
import random
import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.api import Completion, Outcome, Request
from harness.api.errors import ContextLengthError, RequestError
from harness.engines.mock import Mock
from harness.runtime.episode import play as play_with
from harness.runtime.players import ModelPlayer
from harness.runtime.steps import Drive, Steps, drive
from tests.benchmarks.mas.mas_kit import (
    BACKENDS,
    BROADCASTING,
    BUILTIN,
    KV,
    P2P,
    fence,
    load,
    play,
    post,
    results_of,
    returned,
    rounds,
    seen,
)
from tests.helpers.mas_commands import Commands

LINE_ENDS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"
RECEIVE = fence("receive_messages")

# -------------------------------------------------------------------------------- Table 5, row by row


def test_broadcasting() -> None:
    played = play(
        BROADCASTING,
        {
            (1, 1): fence("broadcast_message my list: [7]", "list_agents", "wait", "receive_messages"),
            (0, 1): fence("broadcast_message hi"),
            (2, 1): fence("receive_messages", "receive_messages"),
            (0, 2): fence("receive_messages"),
        },
    )
    assert returned(played, 1, 1) == [
        "delivered (Agent-0, Agent-2)",
        "Agent-0, Agent-1, Agent-2",
        "acknowledged",
        "broadcast from Agent-0: hi",
    ]
    assert returned(played, 2, 1) == [
        "broadcast from Agent-0: hi | broadcast from Agent-1: my list: [7]",
        "no new messages",
    ], "in order of insertion, and only once"
    assert returned(played, 0, 1) == ["delivered (Agent-1, Agent-2)"]
    assert returned(played, 0, 2) == ["broadcast from Agent-1: my list: [7]"], "one's own are not among them"


def test_p2p() -> None:
    played = play(
        P2P,
        {
            (0, 1): fence("send_message 2 one", "send_message Agent-2 two", "wait"),
            (1, 1): fence("send_message 2 three", "receive_messages"),
            (2, 1): fence("receive_messages", "receive_messages"),
        },
    )
    assert returned(played, 0, 1) == ["delivered to Agent-2", "delivered to Agent-2", "acknowledged"]
    assert returned(played, 1, 1) == ["delivered to Agent-2", "no new messages"]
    assert returned(played, 2, 1) == ["from Agent-0: one | from Agent-0: two | from Agent-1: three", "no new messages"]


def test_shared_kv() -> None:
    long = "x" * 121
    played = play(
        KV,
        {
            (0, 1): fence("list_files", f"write_file plan\n{long}", "write_file a.txt\n 1\n2"),
            (1, 1): fence("list_files", "list_files pl", "list_files none", "read_file a.txt", "wait"),
            (1, 2): fence("delete_file plan", "read_file plan", "delete_file plan", "list_files"),
        },
    )
    assert returned(played, 0, 1) == [
        "no files",
        f"wrote plan len=121 preview={'x' * 120}",
        "wrote a.txt len=4 preview= 1\n2",
    ]
    plan, a = "id=0 path=plan len=121 updated=round 1", "id=1 path=a.txt len=4 updated=round 1"
    assert returned(played, 1, 1) == [f"{plan} | {a}", plan, "no files", "content= 1\n2", "acknowledged"]
    missing = "error: there is no file 'plan'"
    assert returned(played, 1, 2) == ["removed plan", f"read_file -> {missing}", f"delete_file -> {missing}", a]


@given(st.text(st.one_of(st.sampled_from(LINE_ENDS + "\t\x00\x1b |="), st.characters(exclude_categories=["Cs"]))))
@example("1\r\n2\n  3\x0c4\x855\u20286\n\nrecorded [1]")
def test_the_store_gives_every_value_back_as_it_was_written(value: str) -> None:
    """Appendix E.4 and Table 5: stored verbatim, read verbatim; by another agent, by the writer, and in the prompt."""
    value = value.replace("`", "'").replace("<|", "< |").rstrip("\r\n") or "0"  # what a fenced reply can hold
    script = {(0, 1): fence(f"write_file k\n{value}", "read_file k"), (1, 1): fence("read_file k", "list_files")}
    played = play(KV, script, max_rounds=2)
    assert returned(played, 0, 1) == [f"wrote k len={len(value)} preview={value[:120]}", f"content={value}"]
    assert returned(played, 1, 1)[0] == f"content={value}"
    assert f" len={len(value)} " in returned(played, 1, 1)[1]
    turn = seen(played, 1, 2)
    assert f"content={value}\n" in BUILTIN.prompts("mas/short").render(turn.name, {**turn.context, **turn.observation})


def test_the_preview_of_a_short_value_is_all_of_it() -> None:
    value = "y" * 120
    assert returned(play(KV, {(0, 1): fence(f"write_file k\n{value}")}), 0, 1) == [f"wrote k len=120 preview={value}"]


@pytest.mark.parametrize("target", ["1", "Agent-1", "agent_1", "AGENT-1", "01", '"1"'])
def test_ways_to_name_a_receiver(target: str) -> None:
    assert returned(play(P2P, {(0, 1): fence(f"send_message {target} x")}), 0, 1) == ["delivered to Agent-1"]


@pytest.mark.parametrize(
    ("backend", "command", "reply"),
    [
        (P2P, "send_message 3 x", "send_message -> error: there is no agent '3'; there are Agent-0 to Agent-2"),
        (P2P, "send_message -1 x", "send_message -> error: there is no agent '-1'; there are Agent-0 to Agent-2"),
        (P2P, "send_message all x", "send_message -> error: there is no agent 'all'; there are Agent-0 to Agent-2"),
        (P2P, "send_message 0 x", "send_message -> error: a message to yourself is not sent; you know its content"),
        (P2P, "send_message 1", "send_message -> error: content is missing; write:\nsend_message <target_id>"),
        (P2P, "SEND_MESSAGE", "send_message -> error: target_id is missing"),
        (BROADCASTING, "broadcast_message", "broadcast_message -> error: content is missing"),
        (KV, "read_file", "read_file -> error: path is missing"),
        (KV, "write_file a\n", "write_file -> error: content is missing"),
        (KV, "delete_file a", "delete_file -> error: there is no file 'a'"),
        (KV, f"write_file {'p' * 201}\nx", "write_file -> error: a path has 1 to 200 printable characters, found 'ppp"),
        (KV, "read_file a\x00b", "read_file -> error: a path has 1 to 200 printable characters, found 'a\\x00b'"),
        (P2P, "", "Unknown command: "),
        (P2P, "broadcast_message x\ny", "Unknown command: broadcast_message x"),
        (P2P, "read_file x", "Unknown command: read_file x"),
        (KV, "send_message 1 x", "Unknown command: send_message 1 x"),
        (BROADCASTING, "Hello!", "Unknown command: Hello!"),
    ],
)
def test_errors(backend: str, command: str, reply: str) -> None:
    played = play(backend, {(0, 1): fence(command, "wait")})
    refused, done = returned(played, 0, 1)
    assert refused.startswith(reply) and done == "acknowledged", "later blocks are carried out all the same"
    assert played.outcome.facts["refused"] == 1 and played.outcome.facts["messages"] == 0
    if command == "":
        assert refused == reply


@pytest.mark.parametrize(
    ("backend", "command"),
    [
        (BROADCASTING, "broadcast_message 123456"),
        (P2P, "send_message 1 123456"),
        (KV, "write_file a\n123456"),
    ],
)
def test_what_is_too_long_is_refused(backend: str, command: str) -> None:
    played = play(load("channels", backend, max_chars=5), {(0, 1): fence(command, command[:-1])})
    assert "6 characters; at most 5 are allowed" in returned(played, 0, 1)[0]
    assert " -> error: " not in returned(played, 0, 1)[1] and played.outcome.facts["messages"] == 1


# ---------------------------------------------------------------- replies without commands, lost calls


def with_models(
    backend: str, reply: Any, max_rounds: int = 3, parse_retries: int = 0
) -> tuple[dict[str, Any], Outcome]:
    """Models that answer `reply(agent, turn)`: their conversations, and what came out."""

    def answer(request: Request) -> str | Completion:
        _, agent, turn, _ = request.id.split("/")
        return reply(agent, int(turn))  # type: ignore[no-any-return]

    task = load("tasks", "mas/sorting", agents=2, items=1)
    case = next(iter(task.cases(1, 0)))
    prompts, engine = BUILTIN.prompts("mas/short"), Mock(function=answer)
    players = {agent: ModelPlayer(engine, prompts, {}, False, f"e/{agent}", 0) for agent in case.agents}
    protocol = rounds(backend, max_rounds=max_rounds, parse_retries=parse_retries)
    outcome = asyncio.run(play_with(Steps(protocol, task, case, random.Random(0)), players, {}, lambda *_: None))
    return {agent: player.thread.messages for agent, player in players.items()}, outcome


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_literal_for_a_reply_without_commands(backend: str) -> None:
    threads, outcome = with_models(backend, lambda agent, turn: "Let me think." if turn == 0 else fence("wait"))
    texts = [(message["role"], message["content"]) for message in threads["Agent-0"][2:5]]
    assert texts == [
        ("assistant", "Let me think."), ("user", "No commands detected in last reply."), ("assistant", fence("wait")),
    ]  # fmt: skip
    assert outcome.facts["refused"] == 2 and outcome.facts["rounds"] == 3


@pytest.mark.parametrize("error", [RequestError("no"), ContextLengthError("too long")])
@pytest.mark.parametrize("backend", BACKENDS)
def test_the_literal_for_a_call_that_failed(backend: str, error: Exception) -> None:
    def reply(agent: str, turn: int) -> str:
        if (agent, turn) == ("Agent-0", 0):
            raise error
        return fence("wait")

    threads, outcome = with_models(backend, reply)
    assert [message["content"] for message in threads["Agent-0"][2:5]] == [
        "", "Environment could not process that step", fence("wait"),
    ]  # fmt: skip
    assert threads["Agent-1"][3]["content"] == "acknowledged", "the others play on"
    assert outcome.facts["refused"] == 1


def test_a_reply_is_asked_for_again_if_the_protocol_says_so() -> None:
    requests: list[str] = []

    def reply(agent: str, turn: int) -> str:
        requests.append(agent)
        return "I wait." if requests.count(agent) == 1 else fence("wait")

    threads, outcome = with_models(P2P, reply, max_rounds=2, parse_retries=1)
    assert threads["Agent-0"][3]["content"].startswith("No commands detected in last reply. Write each command")
    assert threads["Agent-0"][5]["content"] == "acknowledged" and outcome.facts["refused"] == 0


# --------------------------------------------------------------------------------------- submission


def submitting(backend: str, extra: tuple[str, ...] = ()) -> Drive:
    """Agent 1 submits in round 1; in round 2 the others look, and write to it."""
    look = {BROADCASTING: ("receive_messages",), P2P: ("receive_messages",), KV: ("list_files",)}[backend]
    write = "write_file x\nlate" if backend == KV else post(backend, "late", 1)
    return play(
        backend,
        {(1, 1): fence("submit_result [4, 2]", *extra), (0, 2): fence(*look, write), (2, 2): fence(*look)},
        items=2,
    )


def test_broadcasting_announces_a_submission() -> None:
    played = submitting(BROADCASTING)
    announced = "broadcast from Agent-1: Agent-1 submitted result [4, 2]"
    assert returned(played, 0, 2) == [announced, "delivered (Agent-1, Agent-2)"], "who is gone is still sent to"
    assert returned(played, 2, 2) == [f"{announced} | broadcast from Agent-0: late"]
    assert played.outcome.facts["messages"] == 1, "the announcement is the harness's"
    submitter = played.batches[0][1][0].agent
    assert submitter == "Agent-1" and played.outcome.answers["Agent-1"] == [4, 2]


def test_p2p_announces_nothing_and_refuses_to_deliver_to_who_is_gone() -> None:
    played = submitting(P2P)
    assert returned(played, 0, 2) == [
        "no new messages",
        "send_message -> error: Agent-1 has submitted its result and is offline; the message was not delivered",
    ]
    assert returned(played, 2, 2) == ["no new messages"]
    assert played.outcome.facts["messages"] == 0 and played.outcome.facts["refused"] == 1


def test_shared_kv_leaves_a_marker() -> None:
    played = submitting(KV)
    marker = "id=0 path=Agent-1_submission.txt len=6 updated=round 1"
    assert returned(played, 0, 2) == [marker, "wrote x len=4 preview=late"]
    assert returned(played, 2, 2) == [f"{marker} | id=1 path=x len=4 updated=round 2"]
    again = play(KV, {(1, 1): fence("submit_result [4]"), (0, 2): fence("read_file Agent-1_submission.txt")})
    assert returned(again, 0, 2) == ["content=[4]"]


@pytest.mark.parametrize(
    ("backend", "words", "characters"),
    [
        (BROADCASTING, "broadcasted to Agent-0, Agent-2", len("Agent-1 submitted result [4, 2]")),
        (P2P, "", 0),
        (KV, "wrote_file=Agent-1_submission.txt", len("[4, 2]")),
    ],
)
def test_the_channels_part_in_a_submission(backend: str, words: str, characters: int) -> None:
    """The one who submits is not asked again, so what a channel says of it is to be had from the channel alone."""
    case = next(iter(load("tasks", "mas/sorting", agents=3, items=2).cases(1, 0)))
    assert load("channels", backend).open(case, random.Random(0)).on_submit("Agent-1", "[4, 2]") == words
    played = play(backend, {(1, 1): fence("submit_result [4, 2]")}, items=2)
    assert played.outcome.facts["communication"] == characters


def test_nothing_else_distinguishes_the_backends_when_an_agent_submits() -> None:
    """The same replies, none of which looks: the same turns, answers and accounts."""
    script = {(0, 1): fence("submit_result [4]"), (1, 1): fence("submit_result 4"), (1, 2): fence("submit_result [4]")}
    ends = []
    for backend in BACKENDS:
        played = play(backend, script)
        assert results_of(played, 1, 2)[0].startswith("submit_result -> error: a list of exactly 1 integers is needed")
        facts = {**played.outcome.facts, "reads": None, "stale": None, "communication": None}
        ends.append((played.outcome.answers, facts, [[turn.agent for turn, _ in batch] for batch in played.batches]))
    assert ends[0] == ends[1] == ends[2]
    assert ends[0][1]["submitted"] == {"Agent-0": 1, "Agent-1": 2} and ends[0][1]["rounds"] == 5


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("yes", "this is no list: 'yes'"),
        ("{}", "this is no list"),
        ('"[1, 2]"', "this is no list"),
        ("12", "this is no list"),
        ("None", "this is no list"),
        ("[1, 2", "this is no list"),
        ("[1.0, 2]", "1.0 in it is no integer"),
        ("[True, 2]", "True in it is no integer"),
        ("[1, false]", "False in it is no integer"),
        ("['1', 2]", "'1' in it is no integer"),
        ("[1, None]", "None in it is no integer"),
        ("[[1, 2]]", "[1, 2] in it is no integer"),
        ("[1, NaN]", "'NaN' in it is no integer"),
        ("[]", "this one has 0"),
        ("[1]", "this one has 1"),
        ("[1, 2, 3]", "this one has 3"),
    ],
)
@pytest.mark.parametrize("backend", BACKENDS)
def test_an_invalid_result_can_be_replaced(backend: str, text: str, why: str) -> None:
    script = {(0, 1): fence(f"submit_result {text}", "wait")}
    played = play(backend, script, items=2)
    first, then = returned(played, 0, 1)
    assert first.startswith(
        "submit_result -> error: a list of exactly 2 integers is needed, written like [<number>, …]; "
    )
    assert why in first and then == "acknowledged"
    assert played.outcome.answers["Agent-0"] is None and played.outcome.facts["submitted"] == {}
    again = play(backend, {**script, (0, 2): fence("submit_result [1, 2]")}, items=2)
    assert again.outcome.answers["Agent-0"] == [1, 2] and again.outcome.facts["submitted"] == {"Agent-0": 2}


@pytest.mark.parametrize("text", ["[1,2]", "[1,\n 2]", "[1, 2,]", " [ +1 , 0x2 ] "])
def test_ways_to_write_a_result(text: str) -> None:
    assert play(P2P, {(0, 1): fence(f"submit_result {text}")}, items=2).outcome.answers["Agent-0"] == [1, 2]


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_first_valid_result_is_final_and_later_blocks_still_run(backend: str) -> None:
    after = "write_file x\nbye" if backend == KV else post(backend, "bye", 0)
    look = fence("read_file x") if backend == KV else RECEIVE
    script = {
        (1, 1): fence("submit_result [9]", "submit_result [1, 2]", "submit_result [3, 4]", after, "submit_result x"),
        (0, 2): look,
    }
    played = play(backend, script, items=2)
    assert played.outcome.answers["Agent-1"] == [1, 2]
    assert played.outcome.facts["refused"] == 3, "the short one, and the two after the final one"
    assert returned(played, 0, 2)[0].endswith("bye") and played.outcome.facts["messages"] == 1
    assert all(turn.agent != "Agent-1" for turn in played.turns() if turn.observation["round"] > 1), "not asked again"


@pytest.mark.parametrize("backend", BACKENDS)
def test_waiting_does_not_stop_what_follows(backend: str) -> None:
    after = "write_file x\ny" if backend == KV else post(backend, "y")
    played = play(backend, {(0, 1): fence("wait", after, "wait", "submit_result [1]")})
    assert played.outcome.facts["messages"] == 1 and played.outcome.answers["Agent-0"] == [1]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("task", ["sorting", "maximum", "prefix_sum"])
def test_who_is_alone_reads_of_no_group(backend: str, task: str) -> None:
    """The commands stay, for Table 8 compares the backends at N = 1; CAMOC's clauses are printed words."""
    plugin = load("tasks", f"mas/{task}", agents=1, items=5)
    case = next(iter(plugin.cases(1, 0)))
    [turn] = drive(rounds(backend, max_rounds=1), plugin, case).turns()
    prompts = BUILTIN.prompts("mas/short")
    system, requests = (
        prompts.render("system", turn.context),
        prompts.render("round", {**turn.context, **turn.observation}),
    )
    before, commands = system.split("Commands:\n")
    commands, rules = commands.split("Rules of behaviour:\n")
    for text in (before, rules, requests):
        for wrong in ("other agent", "agents", "Agent-1", "Each of them", "the 1 ", "1 lists"):
            assert wrong not in text.replace("multi-agent", ""), wrong
    assert "There is no other agent, so those that communicate reach nobody." in commands
    assert isinstance(turn.reply, Commands)
    assert [verb.name for verb in turn.reply.verbs] == re.findall(r"^(\w+):", commands, re.MULTILINE)
