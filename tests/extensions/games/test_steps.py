"""The protocol of stepped games: order, time, talk, memory, deadlocks, backoff (DPBench, Sections 3.1, 3.3 and C.1)."""

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from harness.api import Action, Case, Move, Outcome, Turn
from harness.api.errors import PluginError
from harness.config import project
from harness.extensions.games.worlds import SteppedTask, World
from harness.replies import Choice, Labelled
from harness.runtime.steps import Drive, drive

BUILTIN = project.builtin()
LEFT, RIGHT, RELEASE, WAIT = "GRAB_LEFT", "GRAB_RIGHT", "RELEASE", "WAIT"


def steps(**parameters: Any) -> Any:
    if "lifetime" in parameters:
        parameters["channel"] = BUILTIN.load("channels", "neighbors")(lifetime=parameters.pop("lifetime"))
    return BUILTIN.load("protocols", "steps")(**parameters)


def table(n: int = 3) -> Any:
    return BUILTIN.load("tasks", "dpbench/dining_table")(philosophers=n)


def driven(protocol: Any, script: Callable[[Turn], Action], n: int = 3, task: Any = None) -> Drive:
    task = task or table(n)
    return drive(protocol, task, task.example(), script)


def said(act: str, message: str | None = None) -> dict[str, str | None]:
    return {"act": act, "message": message}


def scripted(*rounds: str) -> Callable[[Turn], Action]:
    """One letter a philosopher and timestep of its own, e.g. "LR-": left, right, wait."""
    words = {"L": LEFT, "R": RIGHT, ".": RELEASE, "-": WAIT}
    turns: dict[str, Iterator[str]] = {
        f"P{i}": iter([words[letter] for letter in letters]) for i, letters in enumerate(zip(*rounds, strict=True))
    }
    return lambda turn: next(turns[turn.agent])


# ------------------------------------------------------------------------------------------- order


def test_simultaneous_every_agent_decides_on_the_same_state() -> None:
    played = driven(steps(), lambda turn: LEFT)
    assert [[turn.agent for turn, _ in batch] for batch in played.batches] == [["P0", "P1", "P2"]]
    assert all(turn.observation["left_available"] and turn.observation["right_available"] for turn in played.turns())
    assert played.outcome.facts == {
        "timesteps": 1, "rounds": 1.0, "end": "deadlock", "deadlocks": [1], "messages": 0, "characters": 0,
        "no_message_line": 0,
        "sent": {"P0": {}, "P1": {}, "P2": {}},
        "backoffs": 0, "eaten": {"P0": 0, "P1": 0, "P2": 0},
    }  # fmt: skip


def test_sequential_each_sees_what_those_before_have_done() -> None:
    played = driven(steps(order="sequential"), lambda turn: LEFT)
    assert [[turn.agent for turn, _ in batch] for batch in played.batches] == [["P0"], ["P1"], ["P2"]]
    assert [turn.observation["right_available"] for turn in played.turns()] == [True, True, False]
    assert [turn.observation["timestep"] for turn in played.turns()] == [1, 2, 3], "each action is one timestep"
    assert played.outcome.facts["deadlocks"] == [3] and played.outcome.facts["rounds"] == 1.0


def test_the_limit_counts_actions_in_sequential_order_and_the_release_overshoots_it() -> None:
    def wait(turn: Turn) -> str:
        return WAIT

    exact = driven(steps(order="sequential", max_timesteps=7), wait).outcome.facts
    assert (exact["timesteps"], exact["rounds"], exact["end"]) == (7, pytest.approx(7 / 3), "limit")
    release = driven(steps(order="sequential", max_timesteps=7, ends="turn"), wait).outcome.facts
    assert (release["timesteps"], release["rounds"]) == (9, 3.0)
    at_once = driven(steps(max_timesteps=7, ends="turn"), wait).outcome.facts
    assert (at_once["timesteps"], at_once["rounds"]) == (7, 7.0)


def test_a_deadlock_within_a_turn_that_an_agent_resolves_is_none_in_the_release() -> None:
    rounds = ["-LL", "L..", "..."]  # P1 and P2 hold their left forks; P0 takes its left one: stuck until P1 lets go
    paper = driven(steps(order="sequential", max_timesteps=9), scripted(*rounds)).outcome.facts
    assert (paper["end"], paper["deadlocks"]) == ("deadlock", [4])
    release = driven(steps(order="sequential", max_timesteps=9, ends="turn"), scripted(*rounds)).outcome.facts
    assert (release["end"], release["deadlocks"], release["timesteps"]) == ("limit", [], 9)


def test_a_deadlock_in_the_last_timestep_is_a_deadlock() -> None:
    assert driven(steps(max_timesteps=1), lambda turn: LEFT).outcome.facts["end"] == "deadlock"


# -------------------------------------------------------------------------------------------- talk


def test_messages_come_with_actions_and_are_seen_in_the_next_timestep() -> None:
    protocol = steps(talk_rounds=1, lifetime="round", max_timesteps=3)
    played = driven(
        protocol, lambda turn: said(WAIT, f"{turn.agent}@{turn.observation['timestep']}" * (turn.agent != "P2"))
    )
    first, second, third = ([turn.observation for turn, _ in batch] for batch in played.batches)
    assert [observation["inbox"] for observation in first] == [{}, {}, {}]
    assert second[0]["inbox"] == {"P1": "P1@1"} and second[0]["silent"] == ["P2"]
    assert third[2]["inbox"] == {"P1": "P1@2", "P0": "P0@2"}
    assert played.outcome.facts["messages"] == 6 and played.outcome.facts["characters"] == 24
    assert all(turn.context["talk_rounds"] == 1 for turn in played.turns())


@pytest.mark.parametrize(("lifetime", "kept"), [("round", {}), ("latest", {"P1": "hello"})])
def test_how_long_a_message_is_seen(lifetime: str, kept: dict[str, str]) -> None:
    """The paper: in the next timestep. Its release 0.2 shows it until the next one: `lifetime: latest`."""
    protocol = steps(talk_rounds=1, lifetime=lifetime, max_timesteps=3)
    script = lambda turn: said(WAIT, "hello" if turn.observation["timestep"] == 1 and turn.agent == "P1" else None)  # noqa: E731
    observations = [turn.observation for turn in driven(protocol, script).turns() if turn.agent == "P0"]
    assert [observation["inbox"] for observation in observations] == [{}, {"P1": "hello"}, kept]


def test_sequential_talk_shows_the_latest_of_each_neighbor() -> None:
    protocol = steps(order="sequential", talk_rounds=1, lifetime="latest", max_timesteps=4)
    played = driven(protocol, lambda turn: said(WAIT, f"{turn.agent}@{turn.observation['timestep']}"))
    inboxes = [turn.observation["inbox"] for turn in played.turns()]
    assert inboxes == [{}, {"P0": "P0@1"}, {"P1": "P1@2", "P0": "P0@1"}, {"P2": "P2@3", "P1": "P1@2"}]


def test_discussion_comes_before_the_action_and_all_of_it_is_seen() -> None:
    protocol = steps(talk_rounds=3, lifetime="round", max_timesteps=1)
    played = driven(protocol, lambda t: f"{t.observation['talk_round']}" if t.name == "talk" else said(WAIT, "act"))
    assert [next((turn.name, turn.observation["talk_round"]) for turn, _ in batch) for batch in played.batches] == [
        ("talk", 1), ("talk", 2), ("act", 3),
    ]  # fmt: skip
    assert [batch[0][0].observation["inbox"] for batch in played.batches] == [
        {}, {"P2": "1", "P1": "1"}, {"P2": "1 / 2", "P1": "1 / 2"},
    ]  # fmt: skip
    assert played.outcome.facts["timesteps"] == 1 and played.outcome.facts["messages"] == 9


def test_in_one_conversation_no_agent_is_asked_twice() -> None:
    protocol = steps(talk_rounds=3, lifetime="round", max_timesteps=2, memory="thread")
    played = driven(protocol, lambda t: f"{t.observation['talk_round']}" if t.name == "talk" else said(WAIT, "act"))
    inboxes = [batch[0][0].observation["inbox"].get("P1") for batch in played.batches]
    assert inboxes == [None, "1", "2", "act", "1", "2"]


def test_silence_in_the_last_round_of_talk_hides_nothing_said_before() -> None:
    def talk(turn: Turn) -> Any:
        if turn.name == "act":
            return said(WAIT, None)
        return "early" if (turn.agent, turn.observation["talk_round"]) == ("P1", 1) else None

    played = driven(steps(talk_rounds=3, lifetime="round", max_timesteps=2), talk)
    observations = [turn.observation for turn in played.turns() if turn.agent == "P0"]
    assert [(observation["inbox"], observation["silent"]) for observation in observations[1:]] == [
        ({"P1": "early"}, ["P2"]), ({"P1": "early"}, ["P2"]),
        ({}, ["P2", "P1"]), ({"P1": "early"}, ["P2"]), ({"P1": "early"}, ["P2"]),
    ]  # fmt: skip


def test_talk_needs_a_channel_and_discussion_needs_simultaneous_order() -> None:
    with pytest.raises(PluginError, match="talk_rounds needs a channel"):
        steps(talk_rounds=1)
    with pytest.raises(PluginError, match="talk_rounds: 2 needs simultaneous order"):
        steps(talk_rounds=2, order="sequential", lifetime="latest")


def test_an_agent_that_fails_waits_and_says_nothing() -> None:
    protocol = steps(talk_rounds=2, lifetime="round", max_timesteps=2)
    facts = driven(protocol, lambda turn: None).outcome.facts
    assert (facts["timesteps"], facts["messages"], facts["end"]) == (2, 0, "limit")


# ------------------------------------------------------------------------------------------ memory


def test_without_memory_every_decision_is_a_new_conversation() -> None:
    turns = list(driven(steps(max_timesteps=3), lambda turn: WAIT).turns())
    assert all(turn.fresh and turn.observation["memory"] == [] for turn in turns)
    assert not any(turn.fresh for turn in driven(steps(max_timesteps=3, memory="thread"), lambda turn: WAIT).turns())


def test_memory_is_ones_own_last_observations() -> None:
    played = driven(steps(max_timesteps=4, memory=2), scripted("L--", "---", "R--", "---"))
    observations = [turn.observation for turn in played.turns() if turn.agent == "P0"]
    assert [[then["timestep"] for then in observation["memory"]] for observation in observations] == [
        [],
        [1],
        [1, 2],
        [2, 3],
    ]
    first, then = observations[2]["memory"]
    assert (first["holds_left"], first["action"], then["holds_left"], then["action"]) == (False, LEFT, True, WAIT)
    own = table().world(table().example(), random.Random(0)).observation("P0")
    assert set(first) == {*own, "timestep", "action"}, "nothing of the others"


# ----------------------------------------------------------------------------- deadlocks and backoff


def test_a_deadlock_that_is_not_terminal_is_counted_and_broken() -> None:
    facts = driven(steps(deadlock="non_terminal", max_timesteps=4), lambda turn: LEFT).outcome.facts
    assert (facts["deadlocks"], facts["end"], facts["timesteps"]) == ([1, 2, 3, 4], "limit", 4)


def test_a_broken_deadlock_starts_the_waiting_again() -> None:
    def again(turn: Turn) -> str:
        return (
            LEFT
            if turn.observation["timestep"] in (1, 2) and (turn.agent == "P0" or turn.observation["timestep"] == 1)
            else WAIT
        )

    protocol = steps(deadlock="non_terminal", backoff_threshold=2, backoff_probability=1.0, max_timesteps=5)
    played = driven(protocol, again)
    assert played.outcome.facts["deadlocks"] == [1]
    requests = [{turn.agent for turn, _ in batch} for batch in played.batches]
    assert ["P0" in agents for agents in requests] == [True, True, True, False, True]


def test_backoff_makes_those_who_wait_give_up_without_asking_them() -> None:
    def take_left(turn: Turn) -> str:
        return LEFT if turn.agent == "P0" else WAIT

    played = driven(steps(backoff_threshold=2, backoff_probability=1.0, max_timesteps=6), take_left)
    assert [len(batch) for batch in played.batches] == [3, 3, 2, 3, 3, 2]
    assert played.outcome.facts["backoffs"] == 2
    never = driven(steps(backoff_threshold=2, backoff_probability=0.0, max_timesteps=6), take_left)
    assert never.outcome.facts["backoffs"] == 0
    half = steps(backoff_threshold=1, backoff_probability=0.5, max_timesteps=200)
    assert 30 < driven(half, take_left).outcome.facts["backoffs"] < 100
    assert driven(half, take_left) == driven(half, take_left), "chance comes from the seed"


# ---------------------------------------------------------------------------- any other stepped game


@dataclass(frozen=True)
class Nim(World):
    """Two players take one or two of a heap, in turn; who takes the last has won."""

    heap: int
    mover: str = "A"
    winner: str | None = None

    def observation(self, agent: str) -> dict[str, Any]:
        return {"heap": self.heap}

    def reply(self, agent: str) -> Choice | None:
        return Choice(tuple("12"[: self.heap]), "take") if agent == self.mover and self.heap else None

    def step(self, actions: Any, rng: random.Random) -> "Nim":
        count = int(actions[self.mover] or 1)
        left = self.heap - count
        return replace(self, heap=left, mover="AB".replace(self.mover, ""), winner=None if left else self.mover)

    @property
    def over(self) -> bool:
        return self.winner is not None

    def facts(self) -> dict[str, Any]:
        return {"winner": self.winner}


class NimTask(SteppedTask):
    facts = ("winner",)
    grades = ("a_wins",)

    def cases(self, limit: int | None, seed: int) -> list[Case]:
        return [Case("heap", ("A", "B"))]

    def context(self, case: Case, agent: str) -> dict[str, Any]:
        return {"name": agent}

    def world(self, case: Case, rng: random.Random) -> Nim:
        return Nim(5)

    def grade(self, case: Case, outcome: Outcome) -> dict[str, float | None]:
        winner = outcome.facts.get("winner")
        return {"a_wins": None if winner is None else float(winner == "A")}


@pytest.mark.parametrize("order", ["simultaneous", "sequential"])
def test_a_game_with_its_own_turns_ends_when_it_is_over(order: str) -> None:
    played = driven(steps(order=order), lambda turn: "2" if turn.observation["heap"] % 3 == 2 else "1", task=NimTask())
    assert [(turn.agent, turn.observation["heap"]) for turn in played.turns()] == [("A", 5), ("B", 3), ("A", 2)]
    assert played.outcome.facts["winner"] == "A" and played.outcome.facts["end"] == "over"
    assert played.outcome.facts["timesteps"] == 3
    assert NimTask().grade(NimTask().example(), played.outcome) == {"a_wins": 1.0}


def test_a_game_in_which_no_agent_has_a_turn_is_over() -> None:
    class Nobody(NimTask):
        def world(self, case: Case, rng: random.Random) -> Nim:
            return Nim(0)

    facts = driven(steps(order="sequential"), lambda turn: "1", task=Nobody()).outcome.facts
    assert (facts["end"], facts["timesteps"]) == ("over", 0)


# ------------------------------------------------------------------------------------------ replay


def test_recorded_actions_give_the_same_states_again() -> None:
    rng = random.Random(5)
    protocol = steps(order="sequential", talk_rounds=1, lifetime="latest", memory=3)
    first = driven(protocol, lambda turn: rng.choice(turn.reply.options or ()), n=5)
    recorded = iter([json.loads(json.dumps(move.action)) for batch in first.batches for _, move in batch])
    assert driven(protocol, lambda turn: next(recorded), n=5) == first


def test_the_reading_is_handed_to_the_reply() -> None:
    for parsing in ("tolerant", "reference"):
        [turn, *_] = driven(steps(parsing=parsing, max_timesteps=1), lambda turn: WAIT).turns()
        assert isinstance(turn.reply, Labelled) and turn.reply.parsing == parsing
    [turn, *_] = driven(steps(talk_rounds=1, lifetime="round", max_chars=9), lambda turn: None).turns()
    assert turn.reply.parse(f"MESSAGE: {'x' * 99}\nACTION: WAIT").action["message"] == "x" * 9


def test_golden_episode() -> None:
    """Three philosophers, one meal, one deadlock: every state as its agent saw it."""
    played = driven(steps(), scripted("L-L", "R-L", "---", "LLL"))
    lines = [
        f"{turn.agent} {turn.observation['state'][0]}{turn.observation['meals']}"
        f" {'L' if turn.observation['holds_left'] else '-'}{'R' if turn.observation['holds_right'] else '-'}"
        f" {'L' if turn.observation['left_available'] else '-'}{'R' if turn.observation['right_available'] else '-'}"
        f" {move.action}"
        for batch in played.batches
        for turn, move in batch
    ]
    assert lines == [
        "P0 H0 -- LR GRAB_LEFT", "P1 H0 -- LR WAIT", "P2 H0 -- LR GRAB_LEFT",
        "P0 H0 L- LR GRAB_RIGHT", "P1 H0 -- L- WAIT", "P2 H0 L- L- GRAB_LEFT",
        "P0 E1 LR LR WAIT", "P1 H0 -- -- WAIT", "P2 H0 L- L- WAIT",
        "P0 H1 -- LR GRAB_LEFT", "P1 H0 -- L- GRAB_LEFT", "P2 H0 L- LR GRAB_LEFT",
    ]  # fmt: skip
    assert played.outcome.facts["eaten"] == {"P0": 1, "P1": 0, "P2": 0}
    assert (played.outcome.facts["end"], played.outcome.facts["deadlocks"]) == ("deadlock", [4])
    assert all(isinstance(move, Move) for batch in played.batches for _, move in batch)


def test_golden_episode_in_turns_and_with_messages() -> None:
    """Three philosophers one after another: P0 eats, P1 is told to wait and does, then takes what is free."""
    script = [
        said(LEFT, "mine is next"), said(WAIT, "go on"), said(WAIT, None),
        said(RIGHT, None), said(LEFT, "now I"), said(WAIT, None), said(WAIT, "done"), said(LEFT, None),
    ]  # fmt: skip
    moves = iter(script)
    protocol = steps(order="sequential", talk_rounds=1, lifetime="latest", max_timesteps=8)
    played = driven(protocol, lambda turn: next(moves))
    lines = [
        f"{turn.observation['timestep']} {turn.agent} {turn.observation['state'][0]}{turn.observation['meals']}"
        f" {'L' if turn.observation['left_available'] else '-'}{'R' if turn.observation['right_available'] else '-'}"
        f" {turn.observation['inbox'].get(turn.context['left'])} {turn.observation['inbox'].get(turn.context['right'])}"
        for turn in played.turns()
    ]
    assert lines == [  # timestep, agent, state, meals, forks it can have, what its left and right neighbors said last
        "1 P0 H0 LR None None", "2 P1 H0 LR mine is next None", "3 P2 H0 L- go on mine is next",
        "4 P0 H0 LR None go on", "5 P1 H0 -R mine is next None", "6 P2 H0 L- now I mine is next",
        "7 P0 E1 LR None now I", "8 P1 H0 LR done None",
    ]  # fmt: skip
    assert played.outcome.facts["messages"] == 4
