"""The machine of an episode and the loop that drives it: batches, moves, failures, and mistakes of protocols."""

import asyncio
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from harness.api import Action, Completion, Move, Outcome, Policy, Protocol, Request, Turn
from harness.api.errors import EngineFatalError, RequestError, StorageError
from harness.engines.mock import Mock
from harness.runtime import steps
from harness.runtime.episode import play
from harness.runtime.players import ModelPlayer, Player
from harness.runtime.policy_players import PolicyPlayer
from harness.runtime.steps import FAILED, Steps, by_turn, drive
from harness.storage import UNFINISHED
from tests.helpers.toy import TOY

TASK = TOY.load("tasks", "pick")()
CASE = TASK.example()


class First(Policy):
    """Always the first option."""

    def choose(self, turn: Turn, rng: random.Random) -> Action:
        return "a"


def rounds(number: int = 2) -> Protocol:
    protocol: Protocol = TOY.load("protocols", "rounds")(rounds=number)
    return protocol


def model(agent: str, answer: Callable[[Request], str]) -> ModelPlayer:
    return ModelPlayer(Mock(function=answer), TOY.prompts("toy/base"), {}, False, f"e/{agent}", 0)


def played(players: Mapping[str, Player], number: int = 1, recorded: Any = None) -> tuple[Outcome, list[Any]]:
    """The outcome, and what was recorded of new moves: (batch, position, turn of the agent, move)."""
    new: list[Any] = []
    game = Steps(rounds(number), TASK, CASE, random.Random(0))
    outcome = asyncio.run(play(game, players, recorded or {}, lambda *what: new.append(what)))
    return outcome, new


def test_policies_moves_are_recorded_as_those_of_models() -> None:
    players: dict[str, Player] = {agent: PolicyPlayer(First, 0) for agent in ("S0", "S1")}
    outcome, new = played({**players, "S2": model("S2", lambda request: "b")}, 2)
    assert outcome.answers == {"S0": "a", "S1": "a", "S2": "b"}
    assert [(batch, at, index, move.agent, move.action) for batch, at, index, move in new] == [
        (batch, at, batch, f"S{at}", "aab"[at]) for batch in (0, 1) for at in range(3)
    ]


def test_policies_let_others_in_after_every_batch_and_wait_for_no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> int:
        monkeypatch.setattr(asyncio.get_running_loop(), "call_later", None)
        game, turns = Steps(rounds(9), TASK, CASE, random.Random(0)), 0
        players = {agent: PolicyPlayer(First, 0) for agent in CASE.agents}
        playing = asyncio.create_task(play(game, players, {}, lambda *what: None))
        while not playing.done():
            turns += 1
            await asyncio.sleep(0)
        assert (await playing).answers == dict.fromkeys(CASE.agents, "a")
        return turns

    assert asyncio.run(main()) >= 9


def failing(errors: Mapping[str, Exception]) -> dict[str, Player]:
    """Three models, some of which raise."""

    def of(agent: str) -> Player:
        def answer(request: Request) -> str:
            if agent in errors:
                raise errors[agent]
            return "b"

        return model(agent, answer)

    return {agent: of(agent) for agent in CASE.agents}


@pytest.mark.parametrize("stop", [EngineFatalError("the engine is dead"), StorageError("the disk is full")])
def test_what_stops_the_run_is_raised_before_what_fails_the_episode(stop: Exception) -> None:
    with pytest.raises(type(stop), match=str(stop)):
        played(failing({"S0": ZeroDivisionError("a bug"), "S1": stop}))


def test_answers_beside_a_failure_are_recorded() -> None:
    new: list[Any] = []
    game = Steps(rounds(), TASK, CASE, random.Random(0))
    with pytest.raises(EngineFatalError):
        asyncio.run(play(game, failing({"S0": EngineFatalError("dead")}), {}, lambda *what: new.append(what[-1].agent)))
    assert sorted(new) == ["S1", "S2"]


def test_a_protocol_sees_that_a_request_failed_and_the_journal_why() -> None:
    seen: list[Move] = []

    class Spied(type(rounds())):  # type: ignore[misc]
        def play(self, *episode: Any) -> Any:
            inner = super().play(*episode)
            try:
                batch = next(inner)
                while True:
                    moves = yield batch
                    seen.extend(moves)
                    batch = inner.send(moves)
            except StopIteration as stop:
                return stop.value

    new: list[Move] = []
    players = {**failing({"S0": RequestError("Error code: 503 - busy")}), "S1": model("S1", lambda request: "?")}
    game = Steps(Spied(rounds=1), TASK, CASE, random.Random(0))
    asyncio.run(play(game, players, {}, lambda *what: new.append(what[-1])))
    by_agent = [{move.agent: move for move in moves} for moves in (seen, new)]
    assert [moves.pop("S0").error for moves in by_agent] == [FAILED, "Error code: 503 - busy"]
    assert by_agent[0] == by_agent[1] and by_agent[0]["S1"].error_kind == "parse"


def test_what_is_recorded_is_asked_for_no_more_and_goes_on_where_it_stopped() -> None:
    asked: list[str] = []

    def answer(request: Request) -> str:
        asked.append(request.id)
        return "a"

    players = {agent: model(agent, answer) for agent in CASE.agents}
    whole, new = played(players, 2)
    recorded = {(move.agent, index): move for _, _, index, move in new}
    asked.clear()
    again: Any = {agent: model(agent, answer) for agent in CASE.agents}
    assert played(again, 2, recorded) == (whole, []) and not asked
    assert [again[agent].thread.messages for agent in again] == [players[agent].thread.messages for agent in players]
    unread = replace(recorded["S1", 1], action=None, error_kind=UNFINISHED, calls=(Completion("?"),))
    outcome, rest = played({agent: model(agent, answer) for agent in CASE.agents}, 2, {**recorded, ("S1", 1): unread})
    assert outcome == whole and asked == ["e/S1/1/1"], "one retry, after the reply that stands in the journal"
    assert [(index, move.agent, [call.text for call in move.calls]) for _, _, index, move in rest] == [
        (1, "S1", ["?", "a"])
    ]


def test_a_recorded_turn_that_was_another_one_is_a_mistake_of_the_protocol() -> None:
    recorded = by_turn([[Move("S0", "vote", "a")]])
    with pytest.raises(RuntimeError, match="turn 0 of S0 is 'say' but was recorded as 'vote': the protocol is not"):
        played({agent: model(agent, lambda request: "b") for agent in CASE.agents}, recorded=recorded)


class Written(Protocol):
    """Yields batches of a function of their number, and returns a value."""

    def __init__(self, value: Any, batches: int = 0) -> None:
        self.value, self.batches = value, batches

    def play(self, task: Any, case: Any, agents: Any, rng: Any) -> Any:
        for _ in range(self.batches):
            yield []
        return self.value


def test_what_is_no_outcome_is_shown() -> None:
    with pytest.raises(TypeError, match=r"Written returned \{'answer': 1\}, not an Outcome"):
        drive(Written({"answer": 1}), TASK, CASE)


def test_the_outcome_before_the_end_says_what_is_missing() -> None:
    game = Steps(rounds(), TASK, CASE, random.Random(0))
    with pytest.raises(RuntimeError, match="Rounds has not come to an end: it waits for 3 moves"):
        game.result()


def test_the_last_allowed_batch_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "MAX_BATCHES", 3)
    assert drive(Written(Outcome(), 3), TASK, CASE).outcome == Outcome()
    with pytest.raises(RuntimeError, match="Written does not come to an end: it is still playing after 3 batches"):
        drive(Written(Outcome(), 4), TASK, CASE)


def test_a_drive_is_of_idle_agents_and_of_the_seed_0() -> None:
    idle = drive(rounds(), TASK, CASE)
    moves = [move for batch in idle.batches for _, move in batch]
    assert [(move.agent, move.turn, move.action) for move in moves] == [(f"S{i % 3}", "say", None) for i in range(6)]
    assert [turn.observation["draw"] for turn in idle.turns()] == [random.Random(0).random()] * 6


class Yields(Protocol):
    """Yields what it is given, once."""

    def __init__(self, batch: Any) -> None:
        self.batch = batch

    def play(self, task: Any, case: Any, agents: Any, rng: Any) -> Any:
        yield self.batch
        return Outcome()


def asked(agent: str) -> Turn:
    return Turn(agent, "say", {"round": 0, "heard": {}}, TASK.reply(CASE, "S0"))


@pytest.mark.parametrize(
    ("batch", "error", "message"),
    [
        ("turn", TypeError, "Yields yielded 'turn', not a list of turns"),
        (["turn"], TypeError, "Yields yielded 'turn' in a batch, not a Turn"),
        ([asked("S9")], RuntimeError, "Yields asks 'S9', which is not an agent of this case"),
        ([asked("S1"), asked("S1")], RuntimeError, "Yields asks 'S1' twice in one batch; a second turn needs a second"),
    ],
)
def test_batches_that_cannot_be_are_refused(batch: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{message}"):
        Steps(Yields(batch), TASK, CASE, random.Random(0))


def test_recorded_batches_are_read_by_agent_and_turn() -> None:
    moves = {(agent, turn): Move(agent, f"turn {turn}") for agent in ("A", "B") for turn in range(3)}
    batches = [[moves["A", 0], moves["B", 0]], [moves["B", 1]], [moves["A", 1], moves["B", 2]], [moves["A", 2]]]
    assert by_turn(batches) == moves


def test_a_finished_game_has_no_batch_and_an_unfinished_one_no_outcome() -> None:
    with Steps(rounds(1), TASK, CASE, random.Random(0)) as game:
        assert game.outcome is None and game.batch is not None and game.number == 0
        game.send([Move(turn.agent, turn.name, "a") for turn in game.batch])
        assert game.batch is None and game.outcome == game.result() and game.number == 1
