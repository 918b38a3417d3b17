"""Algorithm 1: who is asked when, what each agent sees, and one whole episode down to the last word."""

import asyncio
import json
import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.api import Case, Completion, Move, Outcome, Request, Turn
from harness.api.errors import PluginError
from harness.engines.mock import Mock
from harness.extensions.networks import Network, NetworkTask, seeded
from harness.extensions.panels.peers import peer_text
from harness.extensions.yaml_tasks import conformance
from harness.replies import Choice
from harness.runtime.episode import play
from harness.runtime.players import ModelPlayer
from harness.runtime.steps import Drive, Steps, drive
from tests.benchmarks.agentsnet.agentsnet_kit import BUILTIN, PROBLEMS, case_of, load, local_rounds, networks, task
from tests.helpers.samples import examples

GOLDEN = Path(__file__).parents[2] / "golden" / "agentsnet_coloring.txt"
EXAMPLE = task("coloring").example()  # Emma - Alan, Bob, Evelyn; Alan - Evelyn


def chatter(turn: Turn) -> Any:
    """Everybody tells every neighbor who wrote to whom in which round; Bob is always silent."""
    if turn.name == "answer":
        return turn.reply.options[0] if turn.reply.options else None
    if turn.agent == "Bob":
        return {}
    return {name: f"{turn.agent} to {name} in {turn.observation['round']}" for name in turn.observation["neighbors"]}


def observations(played: Drive, agent: str) -> list[Mapping[str, Any]]:
    return [turn.observation for turn in played.turns() if turn.agent == agent]


def test_every_agent_is_asked_t_times_for_messages_and_once_for_its_answer() -> None:
    played = drive(local_rounds(rounds=3), task("coloring"), EXAMPLE, chatter)
    assert [[turn.name for turn, _ in batch] for batch in played.batches] == [
        ["start"] * 4, ["talk"] * 4, ["talk"] * 4, ["answer"] * 4,
    ]  # fmt: skip
    assert [[turn.agent for turn, _ in batch] for batch in played.batches] == [list(EXAMPLE.agents)] * 4
    emma = observations(played, "Emma")
    assert [(seen["round"], seen["rounds_left"], seen["last_round"]) for seen in emma] == [
        (1, 3, False), (2, 2, False), (3, 1, True), (4, 0, False),
    ]  # fmt: skip
    assert played.outcome.answers == dict.fromkeys(EXAMPLE.agents, "Group 1")


def test_messages_arrive_once_in_the_next_round_in_neighbor_order() -> None:
    played = drive(local_rounds(rounds=2), task("coloring"), EXAMPLE, chatter)
    first, second, last = observations(played, "Emma")
    assert (first["inbox"], first["silent"]) == ({}, [])
    assert list(second["inbox"].items()) == [("Alan", "Alan to Emma in 1"), ("Evelyn", "Evelyn to Emma in 1")]
    assert (second["silent"], last["silent"]) == (["Bob"], ["Bob"])
    assert last["inbox"]["Alan"] == "Alan to Emma in 2"
    assert observations(played, "Bob")[1]["inbox"] == {"Emma": "Emma to Bob in 1"}


def test_facts_count_what_was_sent() -> None:
    played = drive(local_rounds(rounds=2), task("coloring"), EXAMPLE, chatter)
    sent = [move.action for batch in played.batches[:-1] for _, move in batch]
    assert played.outcome.facts == {
        "first": None,
        "final_from": 0,
        "rounds": 2,
        "messages": sum(map(len, sent)),  # 3 + 2 + 0 + 2 in each of two rounds
        "characters": sum(len(text) for action in sent for text in action.values()),
        "dropped": 0,
        "sent": {
            "Alan": {"Emma": [2, 34], "Evelyn": [2, 38]},
            "Bob": {},
            "Emma": {"Alan": [2, 34], "Bob": [2, 32], "Evelyn": [2, 38]},
            "Evelyn": {"Alan": [2, 38], "Emma": [2, 38]},
        },
    }
    assert played.outcome.facts["messages"] == 14


def test_messages_of_several_objects_are_sent_and_dropped_ones_counted() -> None:
    reply = '{"Alan": "1"}\n{"Emma": "2", "Stranger": "3"}\nBetter: {"Alan": "4"}\n{"Emma": "5"} (or {} for silence)'
    engine = Mock(function=lambda request: Completion(reply))
    prompts = BUILTIN.prompts("agentsnet/standard")
    players = {s: ModelPlayer(engine, prompts, {}, False, f"e/{s}", 0) for s in EXAMPLE.agents}
    game = play(
        Steps(local_rounds(rounds=1), task("coloring"), EXAMPLE, random.Random(0)), players, {}, lambda *_: None
    )
    facts = asyncio.run(game).facts
    near = [sum(name in ("Alan", "Emma") for name in EXAMPLE.topology[agent]) for agent in EXAMPLE.agents]
    assert facts["messages"] == sum(near)
    assert facts["dropped"] > sum(near), "the first draft, and the stranger's"


def test_without_rounds_only_the_answer_is_asked_for() -> None:
    played = drive(local_rounds(rounds=0), task("consensus"), EXAMPLE)
    assert [[turn.name for turn, _ in batch] for batch in played.batches] == [["answer"] * 4]
    assert observations(played, "Emma")[0]["inbox"] == {}


@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_papers_budget_and_the_contexts(problem: str) -> None:
    played = drive(local_rounds(), task(problem), EXAMPLE)
    rounds = task(problem).rounds(EXAMPLE)
    assert len(played.batches) == rounds + 1 == {"consensus": 6, "leader_election": 6}.get(problem, 5)
    assert all(
        turn.context == {**task(problem).context(EXAMPLE, turn.agent), "rounds": rounds} for turn in played.turns()
    )
    assert all(turn.parse_retries == 1 and not turn.fresh for turn in played.turns())


def test_a_network_task_of_ones_own_is_short_and_has_a_round_budget() -> None:
    class Chat(NetworkTask):
        problem = "chat"

        def networks(self, seed: int) -> Iterable[Network]:
            return seeded("ring", 6, 2, seed)

        def reply(self, case: Case, agent: str) -> Choice:
            return Choice(("a", "b"))

        def grade(self, case: Case, outcome: Outcome) -> dict[str, float | None]:
            return {}

    assert conformance.check_task(Chat()) == [] and conformance.check_protocol(local_rounds(), Chat()) == []
    one, two = Chat().cases(None, 0)
    assert one.topology != two.topology and all(len(neighbors) == 2 for neighbors in (one.topology or {}).values())
    assert len(drive(local_rounds(rounds=1), Chat(), one).batches) == 2
    assert len(drive(local_rounds(), Chat(), one).batches) == 8, "2·3 + 1 rounds in a ring of six, and the answers"
    with pytest.raises(PluginError, match="rounds must be 0 or more, found -1"):
        local_rounds(rounds=-1)


def test_settings_reach_the_turns() -> None:
    protocol = local_rounds(rounds=1, parse_retries=3, chain_of_thought=False, parsing="reference", max_chars=9)
    start, answer = (batch[0][0] for batch in drive(protocol, task("coloring"), EXAMPLE).batches)
    assert (start.parse_retries, start.observation["chain_of_thought"], start.observation["options"]) == (
        3,
        False,
        None,
    )
    assert start.reply.constraint()["json"]["properties"]["Alan"] == {"type": "string", "maxLength": 9}
    assert start.reply.parse('{"Alan": "a", "Tiffany": "b"}').action == {"Alan": "a"}  # one of the 200 names
    assert start.reply.parse('{"Alan": "a", "Xerxes": "b"}').action is None
    assert answer.reply.parse("### Final Answer ###: Group 1").action is None  # the reference reading
    assert answer.observation["options"] == ("Group 1", "Group 2", "Group 3", "Group 4")


def test_an_agent_without_an_action_is_silent() -> None:
    played = drive(local_rounds(rounds=2), task("coloring"), EXAMPLE, lambda turn: None)
    assert observations(played, "Emma")[1]["silent"] == ["Alan", "Bob", "Evelyn"]
    assert played.outcome.facts["messages"] == 0
    assert played.outcome.answers == dict.fromkeys(EXAMPLE.agents)


# ------------------------------------------------------------------------------------------ channel


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None)
@given(networks(), st.data())
def test_the_channel_carries_messages_to_neighbors_only(
    topology: dict[str, tuple[str, ...]], data: st.DataObject
) -> None:
    case = case_of(topology)
    channel = load("channels", "neighbors").open(case, random.Random(0))
    sent: dict[str, dict[str, str]] = {}
    for _ in range(2):  # nothing of the first round is left after the second
        sent = {s: data.draw(st.dictionaries(st.sampled_from([*topology, "Nobody"]), st.text())) for s in topology}
        channel.commit([Move(agent, "talk", action) for agent, action in sent.items()])
    for agent, near in topology.items():
        observation = channel.observation(agent)
        assert observation == channel.observation(agent)
        assert observation["inbox"] == {name: peer_text(sent[name][agent]) for name in near if agent in sent[name]}
        assert [*observation["inbox"]] == [name for name in near if name in observation["inbox"]]
        assert observation["silent"] == [name for name in near if name not in observation["inbox"]]


@pytest.mark.parametrize("action", [None, "hello", ["Emma"], 5])
def test_what_is_no_message_is_silence(action: object) -> None:
    channel = load("channels", "neighbors").open(EXAMPLE, random.Random(0))
    channel.commit([Move("Alan", "talk", action), Move("Bob", "talk", {"Emma": "x"})])
    assert channel.observation("Emma") == {"inbox": {"Bob": "x"}, "silent": ["Alan", "Evelyn"]}


def test_without_a_topology_every_agent_is_a_neighbor() -> None:
    channel = load("channels", "neighbors").open(Case("x", ("A", "B", "C")), random.Random(0))
    channel.commit([Move("A", "talk", {"B": "b", "C": "c", "A": "a"})])
    assert [channel.observation(agent) for agent in "ABC"] == [
        {"inbox": {}, "silent": ["B", "C"]},
        {"inbox": {"A": "b"}, "silent": ["C"]},
        {"inbox": {"A": "c"}, "silent": ["B"]},
    ]


# ------------------------------------------------------------------------------------ one whole episode


def script(request: Request) -> str:
    """A model that plays coloring on the example: Alan's first reply and Bob's answer must be asked for again."""
    _, agent, turn, attempt = request.id.split("/")
    names = {"Emma": ["Alan", "Bob", "Evelyn"], "Alan": ["Emma", "Evelyn"], "Bob": ["Emma"], "Evelyn": ["Emma", "Alan"]}
    group = {"Emma": 1, "Alan": 2, "Bob": 2, "Evelyn": 3}[agent]
    if (agent, turn, attempt) == ("Alan", "0", "0"):
        return "I'd like to be in Group 2, but let me hear from the others first."
    if (agent, turn, attempt) == ("Bob", "2", "0"):
        return "I would say Group 2 or Group 3."
    if turn == "2":
        return f"Nobody near me is in Group {group}.\n\n### Final Answer ###\n'Group {group}'"
    if agent == "Evelyn" and turn == "0":
        return "Let me listen first.\n{}"
    message = f"I'll be in Group {group}." if turn == "0" else f"I stay in\nGroup {group}."
    return f"Thinking of {{groups}} …\n```json\n{json.dumps(dict.fromkeys(names[agent], message), indent=1)}\n```"


def transcript(structured_output: bool = False) -> tuple[str, Outcome]:
    """Every message of the episode, conversation by conversation, and what came out."""
    prompts = BUILTIN.prompts("agentsnet/standard")
    engine = Mock(function=script)
    players = {s: ModelPlayer(engine, prompts, {}, structured_output, f"golden/{s}", 0) for s in EXAMPLE.agents}
    problem = task("coloring")
    outcome = asyncio.run(
        play(Steps(local_rounds(rounds=2), problem, EXAMPLE, random.Random(0)), players, {}, lambda *_: None)
    )
    lines = []
    for agent, player in players.items():
        for message in player.thread.messages:
            lines.append(f"═══ {agent} · {message['role']} ═══\n{message['content']}\n")
    mapping = {"answers": outcome.answers, "facts": outcome.facts, "grade": problem.grade(EXAMPLE, outcome)}
    return "\n".join([*lines, json.dumps(mapping, indent=1), ""]), outcome


def test_golden_transcript() -> None:
    """To look at a wanted change: write `transcript()[0]` over the file and read the difference."""
    text, _ = transcript()
    assert text == GOLDEN.read_text("utf-8")


def test_the_scripted_episode_is_solved_after_two_retries() -> None:
    text, outcome = transcript()
    assert task("coloring").grade(EXAMPLE, outcome) == {"solved": 1, "score": 1}
    assert text.count("Your last reply could not be used") == 2


def test_completions_are_the_only_thing_a_replay_needs() -> None:
    """Recorded moves bring back the same prompts, the same outcome, and ask no model."""
    prompts, problem = BUILTIN.prompts("agentsnet/standard"), task("coloring")
    recorded: dict[tuple[str, int], Move] = {}

    def forbidden(request: Request) -> Completion:
        raise AssertionError(f"{request.id} was asked for")

    def run(engine: Mock) -> tuple[dict[str, ModelPlayer], Outcome]:
        players = {s: ModelPlayer(engine, prompts, {}, False, f"golden/{s}", 0) for s in EXAMPLE.agents}
        keep = dict(recorded)
        outcome = asyncio.run(
            play(Steps(local_rounds(rounds=2), problem, EXAMPLE, random.Random(0)), players, keep,
                 lambda batch, position, index, move: recorded.update({(move.agent, index): move}))
        )  # fmt: skip
        return players, outcome

    first, outcome = run(Mock(function=script))
    again, same = run(Mock(function=forbidden))
    assert same == outcome
    assert [p.thread.messages for p in first.values()] == [p.thread.messages for p in again.values()]
