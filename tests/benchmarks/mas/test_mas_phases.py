"""A second run of the group: everything is new but each one's own answer; and one whole episode to the last word."""

import asyncio
import json
import random
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

import harness
from harness import storage
from harness.api import Move, Outcome, Request, Thread, Turn
from harness.engines.mock import Mock
from harness.runtime.episode import play as play_with
from harness.runtime.players import ModelPlayer
from harness.runtime.steps import Drive, Steps, drive
from tests.benchmarks.mas.mas_kit import BACKENDS, BROADCASTING, BUILTIN, KV, P2P, fence, load, play, post, rounds
from tests.helpers.journals import as_killed

GOLDEN = Path(__file__).parents[2] / "golden" / "mas_p2p.txt"
RECEIVE = fence("receive_messages")
SORTING = load("tasks", "mas/sorting", agents=2, items=2)
CASE = next(iter(SORTING.cases(1, 0)))


def phases(played: Drive) -> tuple[list[Turn], list[Turn]]:
    """The turns of the first and of the second phase."""
    start = played.outcome.facts["final_from"]
    both = [[turn for turn, _ in batch] for batch in played.batches]
    return [*chain.from_iterable(both[:start])], [*chain.from_iterable(both[start:])]


def submit(*numbers: int) -> str:
    return fence(f"submit_result {list(numbers)}")


# ---------------------------------------------------------------------------------- what is new


@pytest.mark.parametrize("backend", BACKENDS)
def test_nothing_of_the_first_phase_is_left_in_the_second(backend: str) -> None:
    tell = "write_file secret\nhush" if backend == KV else post(backend, "hush", 1)
    look = "list_files" if backend == KV else "receive_messages"
    script = {(0, 1): fence(tell), (0, 2): submit(1), (1, 2): submit(2), (2, 2): submit(3)}
    again = {(number, 1): fence(look) for number in range(3)}
    played = play(backend, script, again=again, phases="two", max_rounds=2)
    first, second = phases(played)
    assert {turn.observation["round"] for turn in first} == {turn.observation["round"] for turn in second} == {1, 2}
    assert len(first) == len(second) == 6, "who had submitted is asked again"
    assert [turn.observation["results"] for turn in second[:3]] == [[]] * 3
    assert [result["text"] for turn in second[3:] for result in turn.observation["results"]] == [
        "no files" if backend == KV else "no new messages"
    ] * 3, "neither the message nor what the submissions left behind"
    assert "hush" not in repr(second)
    assert played.outcome.facts["known"] == {"Agent-0": "1", "Agent-1": "2", "Agent-2": "4"}


def test_in_p2p_no_agent_is_offline_when_the_second_phase_begins() -> None:
    script = {(1, 1): submit(1), (0, 2): fence("send_message 1 x")}
    played = play(P2P, script, again={(0, 1): fence("send_message 1 x"), (1, 1): RECEIVE}, phases="two", max_rounds=3)
    first, second = phases(played)
    assert "is offline" in first[5].observation["results"][0]["text"]
    texts = [turn.observation["results"][0]["text"] for turn in second[3:5]]
    assert texts == ["delivered to Agent-1", "from Agent-0: x"]


def test_the_second_phase_begins_new_conversations_with_the_agents_answers() -> None:
    script = {(0, 1): submit(7), (2, 2): submit(9), (1, 1): fence("submit_result none")}
    played = play(BROADCASTING, script, phases="two", max_rounds=3)
    first, second = phases(played)
    assert not any(turn.fresh or "previous" in turn.context for turn in first)
    assert [(turn.agent, turn.fresh) for turn in second] == [
        (f"Agent-{number}", opening) for opening in (True, False, False) for number in range(3)
    ]
    previous = {"Agent-0": [7], "Agent-1": None, "Agent-2": [9]}
    contexts = {turn.agent: turn.context for turn in first}
    for turn in second:
        assert turn.context == {**contexts[turn.agent], "previous": previous[turn.agent]}, (
            "one's own, and nothing else new"
        )


def test_the_second_phase_counts_and_the_first_is_reported() -> None:
    script = {(0, 1): submit(1, 2), (1, 1): submit(3, 4)}
    again = {(0, 2): submit(5, 6), (0, 1): fence("send_message 1 hello")}
    played = play(P2P, script, 2, 2, again=again, phases="two", max_rounds=3)
    facts = played.outcome.facts
    assert played.outcome.answers == {"Agent-0": [5, 6], "Agent-1": None}
    assert (facts["submitted"], facts["rounds"], facts["messages"]) == ({"Agent-0": 2}, 3, 1)
    assert facts["final_from"] == 1 and len(played.batches) == 4
    assert facts["first"]["answers"] == {"Agent-0": [1, 2], "Agent-1": [3, 4]}
    report = facts["first"]["facts"]
    assert (report["submitted"], report["rounds"], report["messages"]) == ({"Agent-0": 1, "Agent-1": 1}, 1, 0)
    assert set(report) == set(facts) - {"first", "final_from"}


def test_one_phase_has_no_first() -> None:
    facts = play(P2P, {(0, 1): submit(1)}).outcome.facts
    assert (facts["first"], facts["final_from"]) == (None, 0)


def test_who_was_right_in_the_first_phase_and_submits_nothing_in_the_second_is_wrong() -> None:
    task = load("tasks", "mas/sorting", agents=3, items=1)
    case = next(iter(task.cases(1, 0)))
    right = {(number, 1): submit(*case.target[number]) for number in range(3)}
    once = play(P2P, right, phases="one")
    assert task.grade(case, once.outcome)["success"] == 1
    again = {key: text for key, text in right.items() if key[0] != 1}
    graded = task.grade(case, play(P2P, right, again=again, phases="two").outcome)
    assert graded["success"] == pytest.approx(2 / 3) and graded["check"] == 0 and graded["timeout"] == 1
    wrong = {(number, 1): submit(-1) for number in range(3)}
    assert task.grade(case, play(P2P, wrong, again=right, phases="two").outcome)["success"] == 1


def test_each_phase_has_all_its_rounds() -> None:
    played = play(P2P, {}, phases="two", max_rounds=4)
    assert len(played.batches) == 8 and played.outcome.facts["final_from"] == 4
    assert [turn.observation["rounds_left"] for turn in played.turns() if turn.agent == "Agent-0"] == [4, 3, 2, 1] * 2


# -------------------------------------------------------------------- the same for other protocols


def test_rounds_of_calls_in_two_phases() -> None:
    task = load("tasks", "silo/global_maximum", agents=2)
    case = next(iter(task.cases(1, 0)))
    protocol = load("protocols", "action_rounds", channel=load("channels", "store"), max_rounds=3, phases="two")

    def answer(turn: Turn) -> Any:
        number = turn.observation["round"]
        if "previous" in turn.context:
            return [{"call": "list_files", "prefix": ""}] if number == 1 else turn.reply.noop
        if number == 1:
            return [{"call": "write_file", "path": "x", "content": "hush"}]
        return [{"call": "submit_result", "answer": "5"}] if turn.agent == "Agent-1" else turn.reply.noop

    played = drive(protocol, task, case, answer)
    first, second = phases(played)
    assert [turn.fresh for turn in second] == [True, True, False, False, False, False]
    assert {turn.agent: turn.context["previous"] for turn in second} == {"Agent-0": None, "Agent-1": 5}
    assert second[2].observation["results"][0]["text"] == "no files" and not any(turn.fresh for turn in first)
    assert played.outcome.answers == {"Agent-0": None, "Agent-1": None}
    facts = played.outcome.facts
    assert (facts["final_from"], facts["messages"], facts["first"]["facts"]["messages"]) == (3, 0, 2)
    assert facts["first"]["answers"] == {"Agent-0": None, "Agent-1": 5}


def test_rounds_of_letters_in_two_phases() -> None:
    task = load("tasks", "agentsnet/coloring")
    case = task.example()
    protocol = load("protocols", "local_rounds", channel=load("channels", "neighbors"), rounds=1, phases="two")

    def answer(turn: Turn) -> Any:
        again = "previous" in turn.context
        if turn.name == "answer":
            return turn.reply.options[again]  # type: ignore[index]
        return {} if again else dict.fromkeys(turn.observation["neighbors"], "hush")

    played = drive(protocol, task, case, answer)
    first, second = phases(played)
    assert [turn.name for turn in first] == [turn.name for turn in second] == ["start"] * 4 + ["answer"] * 4
    assert [turn.fresh for turn in second] == [True] * 4 + [False] * 4 and not any(turn.fresh for turn in first)
    assert all(turn.context["previous"] == "Group 1" for turn in second)
    assert "hush" in repr(first) and "hush" not in repr(second)
    assert set(played.outcome.answers.values()) == {"Group 2"}
    facts = played.outcome.facts
    assert (facts["final_from"], facts["messages"], facts["first"]["facts"]["messages"]) == (2, 0, 8)
    assert set(facts["first"]["answers"].values()) == {"Group 1"}


# ------------------------------------------------------------------------------- one whole episode


XS = {agent: str(CASE.private[agent]["shard"]) for agent in CASE.agents}
LOW, HIGH = map(str, CASE.target)
SAYS = {
    ("Agent-0", 0): "I tell Agent-1 what I have.\n\n" + fence(f"send_message 1 My list is {XS['Agent-0']}.", "wait"),
    ("Agent-0", 1): "Let me think about it first.",
    ("Agent-0", 2): f"```text\nreceive_messages\n```\nand now\n```\nsubmit {LOW}\n```",
    ("Agent-0", 3): fence(f"submit_result {LOW[:-1]}, true]", f"submit_result {LOW}"),
    ("Agent-1", 0): fence("receive_messages"),
    ("Agent-1", 1): fence("send_message Agent-0 Thanks!\nI take the upper half.", "submit_result [0, 0]"),
    # the second phase
    ("Agent-0", 4): fence(f"send_message 1 {XS['Agent-0']}"),
    ("Agent-0", 5): fence("receive_messages"),
    ("Agent-0", 6): "As before.\n" + fence(f"submit_result {LOW}"),
    ("Agent-1", 2): fence("receive_messages", f"send_message 0 {XS['Agent-1']}"),
    ("Agent-1", 3): "I was wrong.\n" + fence(f"submit_result {HIGH}"),
}
"""(agent, index of its turn) → reply: two agents who err in the first phase and put it right in the second."""
Recorded = dict[tuple[str, int], Move]


class Episode:
    """The episode with CAMOC's prompts, gone on with from recorded moves.

    Attributes:
        asked: id of each request → the conversation as it then was.
        threads: agent → its conversations, those that a model was asked in.
        moves: what was recorded newly.
    """

    def __init__(self, recorded: Recorded | None = None) -> None:
        self.asked: dict[str, list[dict[str, str]]] = {}
        self.threads: dict[str, list[Thread]] = {agent: [] for agent in CASE.agents}
        self.moves: Recorded = {}
        prompts, engine = BUILTIN.prompts("mas/camoc"), Mock(function=self.answer)
        self.players = {agent: ModelPlayer(engine, prompts, {}, False, f"golden/{agent}", 0) for agent in CASE.agents}
        protocol = rounds(P2P, phases="two", max_rounds=4)
        played = play_with(Steps(protocol, SORTING, CASE, random.Random(0)), self.players, recorded or {}, self.record)
        self.outcome: Outcome = asyncio.run(played)

    def answer(self, request: Request) -> str:
        _, agent, turn, _ = request.id.split("/")
        self.asked[request.id] = [*request.thread.messages]
        if not any(thread is request.thread for thread in self.threads[agent]):
            self.threads[agent].append(request.thread)
        return SAYS[agent, int(turn)]

    def record(self, batch: int, position: int, index: int, move: Move) -> None:
        self.moves[move.agent, index] = move


def transcript() -> str:
    """Every message of the episode, conversation by conversation, and what came out."""
    played = Episode()
    lines = []
    for agent, threads in played.threads.items():
        for number, thread in enumerate(threads, 1):
            for message in thread.messages:
                lines.append(f"═══ {agent} · phase {number} · {message['role']} ═══\n{message['content']}\n")
    grade = SORTING.grade(CASE, played.outcome)
    mapping = {"answers": played.outcome.answers, "facts": played.outcome.facts, "grade": grade}
    return "\n".join([*lines, json.dumps(mapping, indent=1), ""])


def test_golden_transcript() -> None:
    """To look at a wanted change: write `transcript()` over the file and read the difference."""
    assert transcript() == GOLDEN.read_text("utf-8")


def test_a_models_second_conversation_is_new() -> None:
    played = Episode()
    for agent, threads in played.threads.items():
        first, second = ([*thread.messages] for thread in threads)
        assert [message["role"] for message in second[:3]] == ["system", "user", "assistant"]
        head, previous = first[0]["content"], str(played.outcome.facts["first"]["answers"][agent])
        assert "This is the second run of the task" not in head
        assert second[0]["content"].count("This is the second run of the task") == 1
        assert second[0]["content"].count(previous) == 2, "its own result, where the paper puts it"
        assert first[1] == second[1], "the same beginning"
        assert "Thanks!" not in repr(second) and "My list is" not in repr(second)
    assert played.players["Agent-0"].thread is played.threads["Agent-0"][1]


def test_the_scripted_episode_goes_wrong_and_then_right() -> None:
    outcome = Episode().outcome
    assert outcome.facts["first"]["answers"] == {"Agent-0": CASE.target[0], "Agent-1": [0, 0]}
    assert (outcome.facts["final_from"], outcome.facts["rounds"]) == (4, 3)
    assert outcome.facts["first"]["facts"]["refused"] == 3  # no command, an unknown one, a truth value in a list
    assert SORTING.grade(CASE, outcome)["success"] == 1 and outcome.facts["refused"] == 0


@pytest.mark.slow
def test_an_episode_goes_on_from_any_recorded_moves_of_both_phases() -> None:
    """Nothing recorded is asked again; what is asked is asked in the same words; and the end is the same."""
    whole = Episode()
    everything = list(whole.moves.items())
    assert len(everything) == len(whole.asked) == len(SAYS) == 11
    for entry in range(len(everything) + 1):
        part = Episode(dict(everything[:entry]))
        assert part.outcome == whole.outcome
        left = [f"golden/{agent}/{index}/0" for (agent, index), _ in everything[entry:]]
        assert part.asked == {name: whole.asked[name] for name in left}
        assert [p.thread.messages for p in part.players.values()] == [p.thread.messages for p in whole.players.values()]


# ------------------------------------------------------------------------------------- a run, cut

SPEC = {
    "name": "cut",
    "task": {"use": "mas/sorting", "agents": 2, "items": 1, "instances": 4},
    "protocol": {"use": "command_rounds", "channel": "mas/shared_kv", "phases": "two", "max_rounds": 3},
    "prompts": "mas/camoc",
    "agents": {"default": "model"},
    "metrics": ["mas/success", {"use": "mas/rounds", "phase": "all"}, "messages"],
}


def by_chance(request: Request) -> str:
    """Draws from the request's own seed: waits, writes, reads, submits something, or forgets the commands."""
    replies = [
        "Hm.",
        fence("write_file k\n1"),
        fence("read_file k", "list_files"),
        submit(1),
        submit(request.seed % 20),
    ]
    return random.Random(request.seed).choice(replies)


@pytest.mark.slow
def test_a_run_in_two_phases_can_be_cut_anywhere_and_goes_on_to_the_same_end(tmp_path: Path) -> None:
    requests: list[str] = []

    def model(request: Request) -> str:
        requests.append(request.id)
        return by_chance(request)

    def run(folder: Path) -> tuple[bytes, ...]:
        requests.clear()
        done = harness.evaluate(SPEC, Mock(function=model), output_path=folder, project=BUILTIN)
        assert len(done.scores) == 4 and not done.failed
        return tuple((folder / name).read_bytes() for name in ("scores.jsonl", "results.json", "tables.md"))

    expected, everything = run(tmp_path / "run"), {*requests}
    journal = (tmp_path / "run" / "journal.jsonl").read_bytes()
    for cut in [*random.Random(0).sample(range(len(journal)), 8), len(journal)]:
        part = tmp_path / str(cut) / "run"  # the same run id, hence the same rows
        part.mkdir(parents=True)
        for name in ("run.json", "spec.yaml"):
            (part / name).write_bytes((tmp_path / "run" / name).read_bytes())
        (part / "journal.jsonl").write_bytes(journal[:cut])
        as_killed(part)
        moves = [line for _, line in storage.lines(part / "journal.jsonl") if line["k"] == "move"]
        results = {f"{line['e']}/{line['s']}/{line['i']}/0" for line in moves}
        assert run(part) == expected
        assert {*requests} == everything - results and len(requests) == len({*requests})
