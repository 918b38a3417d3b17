"""Rounds of calls over mailbox, broadcast and store: who sees what when, what is refused, how an episode ends."""

import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from harness.api import Case, Outcome, Parsed, Reply, Task, Turn
from harness.config import project
from harness.runtime.steps import Drive, drive

BUILTIN = project.builtin()
Calls = list[dict[str, str]]


class Number(Reply):
    def parse(self, text: str) -> Parsed:
        return Parsed(int(text)) if text.strip().isdecimal() else Parsed(error="the answer is a number")


class Sum(Task):
    """Everybody has a number; everybody must give the sum."""

    def __init__(self, agents: int = 3) -> None:
        self.agents = agents

    def cases(self, limit: int | None, seed: int) -> list[Case]:
        return [Case("c", tuple(f"Agent {i}" for i in range(self.agents)))]

    def context(self, case: Case, agent: str) -> dict[str, Any]:
        return {"name": agent, "number": case.agents.index(agent)}

    def reply(self, case: Case, agent: str) -> Reply:
        return Number()

    def grade(self, case: Case, outcome: Outcome) -> dict[str, float | None]:
        return {}


def channel(use: str, **parameters: Any) -> Any:
    return BUILTIN.load("channels", use)(**parameters)


def play(
    on: Any, script: Mapping[tuple[int, int], Calls] | Callable[[Turn], Any], agents: int = 3, **parameters: Any
) -> Drive:
    """`script`: (number of the agent, round) → its calls; it waits where there are none."""

    def answer(turn: Turn) -> Any:
        if callable(script):
            return script(turn)
        key = int(turn.agent.split()[1]), turn.observation["round"]
        return script.get(key, turn.reply.noop)

    protocol = BUILTIN.load("protocols", "action_rounds")(channel=on, **{"max_rounds": 5, **parameters})
    task = Sum(agents)
    return drive(protocol, task, task.example(), answer)


def seen(played: Drive, agent: int, number: int) -> Turn:
    return next(t for t in played.turns() if t.agent == f"Agent {agent}" and t.observation["round"] == number)


def inbox(played: Drive, agent: int, number: int) -> list[str]:
    return [f"{letter['from']}: {letter['text']}" for letter in seen(played, agent, number).observation["inbox"]]


def results(played: Drive, agent: int, number: int) -> list[str]:
    return [result["text"] for result in seen(played, agent, number).observation["results"]]


def send(to: object, text: str) -> dict[str, str]:
    return {"call": "send_message", "target_id": str(to), "content": text}


def broadcast(text: str) -> dict[str, str]:
    return {"call": "broadcast_message", "content": text}


def write(path: str, text: str) -> dict[str, str]:
    return {"call": "write_file", "path": path, "content": text}


def submit(answer: object) -> dict[str, str]:
    return {"call": "submit_result", "answer": str(answer)}


RECEIVE, WAIT, LIST = {"call": "receive_messages"}, {"call": "wait"}, {"call": "list_files", "prefix": ""}


def read(path: str) -> dict[str, str]:
    return {"call": "read_file", "path": path}


# ----------------------------------------------------------------------------------------- mailbox


def test_a_message_is_there_from_the_next_round_on_in_order_of_senders() -> None:
    script = {(2, 1): [send(1, "c")], (0, 1): [send(1, "a"), send(1, "b")], (1, 1): [send("Agent 0", "d")]}
    played = play(channel("mailbox"), script)
    assert inbox(played, 1, 1) == []
    assert inbox(played, 1, 2) == ["Agent 0: a", "Agent 0: b", "Agent 2: c"]
    assert inbox(played, 0, 2) == ["Agent 1: d"] and inbox(played, 1, 3) == []
    assert results(played, 0, 2) == ["sent to Agent 1", "sent to Agent 1"]
    assert played.outcome.facts["sent"] == {
        "Agent 0": {"Agent 1": [2, 2]}, "Agent 1": {"Agent 0": [1, 1]}, "Agent 2": {"Agent 1": [1, 1]},
    }  # fmt: skip
    assert played.outcome.facts["messages"] == 4 and played.outcome.facts["received"]["Agent 1"] == [3, 3]


def test_pulled_messages_come_a_round_later_and_once() -> None:
    script = {(0, 1): [send(1, "a")], (1, 1): [RECEIVE], (1, 2): [RECEIVE], (1, 3): [RECEIVE]}
    played = play(channel("mailbox", inbox="pull"), script)
    assert [inbox(played, 1, n) for n in (1, 2, 3)] == [[], [], []]
    assert [results(played, 1, n) for n in (2, 3, 4)] == [
        ["no new messages"], ["[round 1] Agent 0: a"], ["no new messages"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (send(1, "x"), "error: a message to yourself is not sent"),
        (send(7, "x"), "error: there is no agent '7'; there are Agent 0 to Agent 2"),
        (send("the boss", "x"), "error: there is no agent 'the boss'"),
        (send("²", "x"), "error: there is no agent '²'"),
        (send(0, "x" * 11), "error: the message has 11 characters; at most 10 are allowed"),
        ({"call": "send_message", "error": "target_id is missing"}, "error: target_id is missing"),
        ({"call": "", "skipped": 9}, "error: 9 more calls in this reply were skipped"),  # type: ignore[dict-item]
    ],
)
def test_what_is_refused_is_reported_and_counts_for_nothing(call: dict[str, str], says: str) -> None:
    played = play(channel("mailbox", max_chars=10), {(1, 1): [call, send(0, "ok")]})
    assert results(played, 1, 2)[0].startswith(says) and results(played, 1, 2)[1] == "sent to Agent 0"
    assert played.outcome.facts["messages"] == 1 and played.outcome.facts["refused"] == 1
    assert inbox(played, 0, 2) == ["Agent 1: ok"]


@pytest.mark.parametrize("name", ["2", "Agent 2", "agent 2", "Agent-2", '"2"', "02", "agent_2"])
def test_agents_are_found_by_name_or_number(name: str) -> None:
    assert inbox(play(channel("mailbox"), {(0, 1): [send(name, "hi")]}), 2, 2) == ["Agent 0: hi"]


# --------------------------------------------------------------------------------------- broadcast


def test_a_broadcast_reaches_all_others_and_not_its_sender() -> None:
    played = play(channel("broadcast"), {(1, 1): [broadcast("b")], (0, 1): [broadcast("a"), {"call": "list_agents"}]})
    assert inbox(played, 2, 2) == ["Agent 0: a", "Agent 1: b"] and inbox(played, 0, 2) == ["Agent 1: b"]
    assert results(played, 0, 2) == ["sent to all 2 others", "Agent 0, Agent 1, Agent 2"]
    assert played.outcome.facts["sent"]["Agent 0"] == {"*": [1, 1]}


def test_who_receives_late_gets_every_broadcast_exactly_once() -> None:
    script = {(0, 1): [broadcast("a")], (0, 2): [broadcast("b")], (2, 3): [RECEIVE], (0, 3): [broadcast("c")]}
    played = play(channel("broadcast", inbox="pull"), {**script, (2, 4): [RECEIVE]})
    assert results(played, 2, 4) == ["[round 1] Agent 0: a\n[round 2] Agent 0: b"]
    assert results(played, 2, 5) == ["[round 3] Agent 0: c"]


# ------------------------------------------------------------------------------------------- store


def test_files_are_seen_from_the_next_round_on_and_ones_own_at_once() -> None:
    script = {(0, 1): [write("x", "1"), read("x"), LIST], (1, 1): [read("x")], (1, 2): [read("x"), LIST]}
    played = play(channel("store"), script)
    assert results(played, 0, 2) == ["wrote 1 characters to x", "1", "x"]
    assert results(played, 1, 2) == ["error: there is no file 'x'"]
    assert results(played, 1, 3) == ["1", "x"]
    assert played.outcome.facts["reads"] == {"Agent 0": {"Agent 1": 1}}, "one's own reads do not count"
    pure = play(channel("store", reads="snapshot"), script)
    assert results(pure, 0, 2) == ["wrote 1 characters to x", "error: there is no file 'x'", "no files"]


def test_the_last_writer_wins_and_is_the_one_who_is_read() -> None:
    script = {(2, 1): [write("x", "two")], (0, 1): [write("x", "nil")], (1, 2): [read("x")]}
    played = play(channel("store"), script)
    assert results(played, 1, 3) == ["two"]
    assert played.outcome.facts["reads"] == {"Agent 2": {"Agent 1": 1}}


def test_deleting_is_judged_on_what_one_sees_and_applied_in_order() -> None:
    script = {
        (0, 1): [write("x", "1")], (1, 1): [{"call": "delete_file", "path": "x"}],
        (1, 2): [{"call": "delete_file", "path": "x"}, read("x")], (2, 2): [write("x", "2")], (0, 3): [read("x")],
        (0, 2): [{"call": "delete_file", "path": "x"}],
    }  # fmt: skip
    played = play(channel("store"), script)
    assert results(played, 1, 2) == ["error: there is no file 'x'"]
    assert results(played, 1, 3) == ["deleted x", "error: there is no file 'x'"]
    assert results(played, 0, 4) == ["2"], "agent 2 wrote after the others had deleted"


@pytest.mark.parametrize("path", ["../../etc/passwd", "/etc/passwd", "C:\\x", "a/../b", "~", "con"])
def test_a_path_is_a_name_and_nothing_else(path: str) -> None:
    played = play(channel("store"), {(0, 1): [write(path, "1")], (1, 2): [LIST, read(path), read("a")]})
    assert results(played, 1, 3) == [path, "1", "error: there is no file 'a'"]


@pytest.mark.parametrize("path", ["", "   ", "a\nb", "\x00", "x" * 201])
def test_odd_paths_are_refused(path: str) -> None:
    played = play(channel("store"), {(0, 1): [write(path, "1")]})
    assert results(played, 0, 2)[0].startswith("error: a path has 1 to 200 printable characters")


# ----------------------------------------------------------------------------------- rounds and ends


def test_wait_and_submit_end_the_round_and_what_follows_is_not_done() -> None:
    script = {(0, 1): [send(1, "a"), WAIT, send(1, "b")], (2, 1): [submit(3), send(1, "c")]}
    played = play(channel("mailbox"), script)
    text = "error: this ended your round; 1 call behind it was not carried out"
    assert inbox(played, 1, 2) == ["Agent 0: a"] and results(played, 0, 2) == ["sent to Agent 1", text]
    assert played.outcome.facts["refused"] == 1 + 1, "the sender's, and the one behind an answer that is final"
    assert [turn.agent for turn in played.turns() if turn.observation["round"] == 2] == ["Agent 0", "Agent 1"]
    assert played.outcome.answers == {"Agent 0": None, "Agent 1": None, "Agent 2": 3}
    assert played.outcome.facts["submitted"] == {"Agent 2": 1} and played.outcome.facts["rounds"] == 5


def test_calls_behind_the_end_of_a_round_are_counted_for_their_author() -> None:
    form = seen(play(channel("mailbox"), {}), 0, 1).reply
    many = form.parse("<wait/>" + '<send_message target_id="1">x</send_message>' * 20 + "<wait/>").action
    script = {(0, 1): many, (1, 1): [WAIT, WAIT], (2, 1): [submit("many"), send(1, "a"), send(1, "b")]}
    played = play(channel("mailbox"), script)
    assert results(played, 0, 2) == ["error: this ended your round; 21 calls behind it were not carried out"]
    assert results(played, 1, 2) == [], "a second wait is nothing lost"
    assert results(played, 2, 2)[1] == "error: this ended your round; 2 calls behind it were not carried out"


def test_the_first_answer_that_can_be_read_is_final() -> None:
    played = play(channel("mailbox"), {(0, 1): [submit("many")], (0, 2): [submit(3), submit(4)]})
    assert results(played, 0, 2) == ["error: the answer is a number"]
    assert played.outcome.answers["Agent 0"] == 3 and played.outcome.facts["submitted"] == {"Agent 0": 2}


def test_an_episode_ends_when_all_have_submitted() -> None:
    played = play(channel("mailbox"), lambda turn: [submit(3)] if turn.observation["round"] == 2 else [WAIT])
    assert played.outcome.facts["rounds"] == 2 and len(played.batches) == 2


def test_messages_to_those_who_have_submitted_are_sent_and_never_seen() -> None:
    played = play(channel("mailbox"), {(0, 1): [submit(3)], (1, 2): [send(0, "late")]})
    assert results(played, 1, 3) == ["sent to Agent 0"] and played.outcome.facts["received"]["Agent 0"] == [0, 0]


def test_an_agent_without_a_call_loses_the_round_and_is_reported() -> None:
    played = play(channel("mailbox"), lambda turn: None if turn.agent == "Agent 0" else [WAIT], max_rounds=2)
    assert results(played, 0, 2) == ["error: the request failed; nothing was done"]
    assert played.outcome.facts["refused"] == 2


def test_several_replies_a_round_see_their_own_results_and_no_other_agents_doings() -> None:
    played = play(
        channel("store"),
        lambda t: [write(f"f{t.agent[-1]}", "1"), LIST] if not t.observation["results"] else [LIST, WAIT],
        calls_per_round=3,
        max_rounds=2,
    )
    own = [turn for turn in played.turns() if turn.agent == "Agent 0"]
    assert [t.observation["round"] for t in own] == [1, 1, 2]
    assert [r["text"] for r in own[1].observation["results"]] == ["wrote 1 characters to f0", "f0"]
    assert [r["text"] for r in own[2].observation["results"]] == ["f0"], "files of others come with the next round"


def test_a_planning_round_comes_first_and_takes_no_answers() -> None:
    script = {(0, 0): [send(1, "plan")], (1, 0): [submit(3)]}
    played = play(channel("mailbox"), script, planning=True, max_rounds=2)
    assert [batch[0][0].name for batch in played.batches] == ["plan", "round", "round"]
    assert inbox(played, 1, 1) == ["Agent 0: plan"]
    assert results(played, 1, 1) == ["error: this round is for planning; submit later"]
    assert played.outcome.facts["messages"] == 1 and played.outcome.facts["submitted"] == {}


@pytest.mark.parametrize("use", ["mailbox", "broadcast", "store"])
@pytest.mark.parametrize("agents", [1, 2, 50])
def test_any_number_of_agents(use: str, agents: int) -> None:
    played = play(channel(use), lambda turn: [submit(0)] if turn.observation["round"] == 2 else [WAIT], agents)
    assert played.outcome.facts["rounds"] == 2 and len(played.outcome.facts["submitted"]) == agents


# --------------------------------------------------------------------------------------- knowledge


def bits(text: str) -> set[int]:
    return {i for i, bit in enumerate(reversed(f"{int(text, 16):b}")) if bit == "1"}


def test_knowledge_travels_with_messages_and_counts_at_the_decision() -> None:
    script = {
        (0, 1): [send(1, "a")], (1, 2): [send(2, "ab")], (2, 3): [submit(3)],
        (1, 3): [submit(3)], (0, 3): [submit(3)],
    }  # fmt: skip
    facts = play(channel("mailbox"), script).outcome.facts
    assert {agent: bits(name) for agent, name in facts["knew"].items()} == {
        "Agent 0": {0}, "Agent 1": {0, 1}, "Agent 2": {0, 1, 2},
    }  # fmt: skip
    assert bits(facts["met"]["Agent 2"]) == {1}, "what it heard itself"


def test_what_is_read_in_the_reply_that_submits_does_not_count() -> None:
    script = {(0, 1): [write("x", "1")], (1, 2): [read("x"), submit(3)], (2, 2): [read("x")], (2, 3): [submit(3)]}
    facts = play(channel("store"), script).outcome.facts
    assert bits(facts["knew"]["Agent 1"]) == {1} and bits(facts["knew"]["Agent 2"]) == {0, 2}
    assert bits(facts["known"]["Agent 1"]) == {0, 1}


# ------------------------------------------------------------------------------------------- faults


@pytest.mark.parametrize("use", ["mailbox", "broadcast", "neighbors", "store"])
def test_any_channel_can_lose_everything(use: str) -> None:
    lossy = channel("unreliable", channel=channel(use), loss=1.0)
    if use == "neighbors":
        case = Case("x", ("A", "B"), topology={"A": ("B",), "B": ("A",)})
        from harness.api import Move

        opened = lossy.open(case, random.Random(0))
        opened.commit([Move("A", "t", {"B": "hi"})])
        assert opened.observation("B") == {"inbox": {}, "silent": ["A"]}
        return
    call = {"mailbox": send(1, "a"), "broadcast": broadcast("a"), "store": write("x", "a")}[use]
    played = play(lossy, {(0, 1): [call], (1, 2): [LIST] if use == "store" else [RECEIVE]})
    assert inbox(played, 1, 2) == [] and results(played, 1, 3)[0] in ("no files", "no new messages")
    assert played.outcome.facts["messages"] == 1, "it was sent"


def test_messages_are_doubled_and_late() -> None:
    twice = play(channel("unreliable", channel=channel("mailbox"), duplication=1.0), {(0, 1): [send(1, "a")]})
    assert inbox(twice, 1, 2) == ["Agent 0: a", "Agent 0: a"]
    script = {(0, 1): [broadcast(f"m{i}") for i in range(8)]}
    late = play(channel("unreliable", channel=channel("broadcast"), delay=2), script)
    items = [inbox(late, 1, n) for n in (2, 3, 4, 5)]
    assert sum(map(len, items)) == 8 and items[3] == [] and len([c for c in items if c]) > 1
    assert late == play(channel("unreliable", channel=channel("broadcast"), delay=2), script), "chance has a seed"
