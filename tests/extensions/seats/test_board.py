"""A seat: turns are published and read, acts answer them, and recorded turns come first after a restart."""

import asyncio
import re
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from harness.api import Completion, Engine, Move, Reply, Request, RequestError, Thread, Turn
from harness.config.prompts import PromptSet
from harness.extensions.networks.calls import Calls
from harness.extensions.seats.board import MAX_REFUSALS, ActResult, OpenSeat
from harness.replies import FreeText, Labelled
from harness.runtime.players import ModelPlayer
from tests.core.replies.every_form import VERBS

FORM = Labelled(("WAIT", "GRAB"))


def request(thread: Thread, form: Reply = FORM, turn: int = 0, attempt: int = 0) -> Request:
    return Request(f"toy/1/0/Ann/{turn}/{attempt}", thread, {}, 7, reply=form)


def said(*texts: str, thread: Thread | None = None) -> Thread:
    thread = thread or Thread()
    for text in texts:
        thread.add("user", text)
    return thread


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 20))


async def take(seat: OpenSeat, tool: str = "reply", **arguments: Any) -> tuple[str, ActResult]:
    """Read the next turn and make a move."""
    state = await seat.wait_for_turn(10)
    assert state.turn is not None
    return state.turn.text, seat.act(tool, arguments)


def test_a_turn_is_read_and_answered_and_the_next_one_shows_what_is_new() -> None:
    async def play() -> None:
        seat, thread = OpenSeat("toy/Ann"), said("rules", "first")
        asked = asyncio.create_task(seat.ask(request(thread)))
        text, answer = await take(seat, action="GRAB")
        assert text == "rules\n\nfirst" and answer == ActResult("done: turn 1 is over. Call wait_for_turn", over=True)
        reply = await asked
        assert reply.text == "ACTION: GRAB" and reply.latency is not None
        thread.add("assistant", reply.text)
        said("second", thread=thread)
        asked = asyncio.create_task(seat.ask(request(thread, turn=1)))
        state = await seat.wait_for_turn(10)
        assert state.turn is not None and (state.turn.text, state.turn.start, state.turn.number) == ("second", 3, 2)
        assert state.turn.context == "rules" and state.turn.observation == "second"
        assert seat.say("ACTION: WAIT").over and (await asked).text == "ACTION: WAIT"

    run(play())


def test_acts_without_an_open_turn_that_was_read_are_refused_and_change_nothing() -> None:
    async def play() -> None:
        seat, thread = OpenSeat("toy/Ann"), said("first")
        assert seat.act("reply", {"action": "WAIT"}).text.startswith("it is not your turn; nothing was done")
        assert (await seat.wait_for_turn(0)).kind == "wait"
        asked = asyncio.create_task(seat.ask(request(thread)))
        await asyncio.sleep(0)
        assert "you have not read turn 1" in seat.say("ACTION: WAIT").text
        seat.read()
        assert "turn 2 is not open" in seat.say("ACTION: WAIT", number=2).text
        assert seat.say("ACTION: WAIT").over
        late = seat.say("ACTION: GRAB")
        assert late.error and "turn 1 is over, you have made your move; nothing was done" in late.text
        thread.add("assistant", (await asked).text)
        asked = asyncio.create_task(seat.ask(request(said("second", thread=thread), turn=1)))
        await asyncio.sleep(0)
        late = seat.say("ACTION: GRAB")
        assert late.error and "turn 1 is over, and you have not read turn 2" in late.text
        assert (await take(seat, action="GRAB"))[1].over and (await asked).text == "ACTION: GRAB"
        seat.end("You won.")
        assert (await seat.wait_for_turn(10)).outcome == "You won."
        assert "the episode is over: You won.; nothing was done" in seat.say("ACTION: WAIT").text

    run(play())


def test_illegal_acts_are_explained_and_too_many_of_them_are_an_unreadable_reply() -> None:
    async def play() -> None:
        seat = OpenSeat("toy/Ann")
        asked = asyncio.create_task(seat.ask(request(said("first"))))
        _, answer = await take(seat, action="GRAP")
        assert answer.error and "Did you mean GRAB?" in answer.text
        for _ in range(MAX_REFUSALS - 1):
            assert not answer.over
            answer = seat.act("reply", {"action": "GRAP"})
        assert answer.over and "this was the last try" in answer.text
        assert FORM.parse((await asked).text).error is not None

    run(play())


@pytest.mark.parametrize("mistake", ["another turn", "unread", "no act"])
def test_whatever_is_refused_while_a_turn_is_open_counts(mistake: str) -> None:
    async def play() -> None:
        seat = OpenSeat("toy/Ann")
        asked = asyncio.create_task(seat.ask(request(said("first"))))
        await asyncio.sleep(0)
        if mistake != "unread":
            seat.read("a client")
            assert seat.act("reply", {"action": "GRAB"}, client="another").error  # no fault of the one that plays
        for last in [False] * (MAX_REFUSALS - 1) + [True]:
            answer = seat.refuse("that is no act") if mistake == "no act" else seat.say("ACTION: GRAB", 7)
            assert answer.error and answer.over is last, answer
        assert FORM.parse((await asked).text).error is not None and seat.counts["refused"] == MAX_REFUSALS

    run(play())


@pytest.mark.parametrize("secret", ["", "my own secret"])
def test_what_is_said_names_no_key(secret: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_SEAT_TOKEN", "the token of another seat")

    async def play() -> None:
        other = OpenSeat("Bob")
        for say in (True, False):
            seat = OpenSeat("Ann", secret=secret)
            asked = asyncio.create_task(seat.ask(request(said("1"), FreeText())))
            await seat.wait_for_turn(10)
            keys = f"{seat.secret} {other.secret} the token of another seat"
            result = seat.say(f"text: {keys}!") if say else seat.act("reply", {"text": f"{keys}!"})
            assert result.over, result
            assert "… … …!" in (await asked).text and seat.secret not in (await asked).text

    run(play())


def test_several_calls_are_one_move() -> None:
    async def play() -> None:
        seat, form = OpenSeat("toy/Ann"), Calls(VERBS)
        asked = asyncio.create_task(seat.ask(request(said("first"), form)))
        _, answer = await take(seat, "send_message", target_id="3", content="hi")
        assert answer.text.startswith("noted: call 1")
        assert seat.act("submit_result", {"answer": "12"}).text.startswith("noted: call 2")
        assert seat.act("end_turn", {}).over
        calls = form.parse((await asked).text).action
        assert [call["call"] for call in calls] == ["send_message", "submit_result"]

    run(play())


def test_the_last_one_that_waits_gets_the_turn() -> None:
    async def play() -> None:
        seat = OpenSeat("toy/Ann")
        first = asyncio.create_task(seat.wait_for_turn(10))
        await asyncio.sleep(0)
        second = asyncio.create_task(seat.wait_for_turn(10))
        assert (await first).kind == "replaced"
        asked = asyncio.create_task(seat.ask(request(said("first"))))
        assert (await second).kind == "turn"
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
        assert seat.turn is None and seat.say("ACTION: WAIT").error

    run(play())


def test_a_failed_turn_raises_and_the_next_one_has_everything() -> None:
    async def play() -> None:
        seat, thread = OpenSeat("toy/Ann"), said("rules", "first")
        asked = asyncio.create_task(seat.ask(request(thread)))
        await take(seat)
        seat.fail(RequestError("it ended"))
        with pytest.raises(RequestError, match="it ended"):
            await asked
        thread.add("assistant", "")
        asked = asyncio.create_task(seat.ask(request(said("second", thread=thread), turn=1)))
        text, _ = await take(seat, action="WAIT")
        assert text == "rules\n\nfirst\n\nsecond"
        await asked
        seat.close()
        assert (await seat.wait_for_turn(10)).kind == "over"
        with pytest.raises(RequestError, match="closed"):
            await seat.ask(request(thread))

    run(play())


# ---------------------------------------------------------------------------------- after a restart


class Recalls(Engine):
    """An engine that is never asked here."""

    model, keeps_questions = "seat", True

    async def complete(self, request: Request) -> Completion:
        raise AssertionError


@pytest.fixture
def prompts(tmp_path: Path) -> PromptSet:
    for name, text in (("system", "rules"), ("turn", "turn {{ n }}"), ("retry", "again: {{ error }}")):
        (tmp_path / f"{name}.j2").write_text(text)
    return PromptSet("toy", [tmp_path])


def resumed(prompts: PromptSet, moves: list[tuple[str, ...]], fresh: bool = False) -> Request:
    """The request of a turn, after moves with these replies were recorded; no reply: a failed one."""
    player = ModelPlayer(Recalls(), prompts, {}, False, "toy/1/0/Ann", 7)
    turns = [Turn("Ann", "turn", {"n": n}, FORM, fresh=fresh) for n in range(len(moves) + 1)]
    for turn, texts in zip(turns, moves, strict=False):
        parsed = FORM.parse(texts[-1]) if texts else None
        kind = "request" if parsed is None else "parse" if parsed.error else None
        action, error = (parsed.action, parsed.error) if parsed is not None else (None, "it failed")
        player.recall(turn, Move("Ann", "turn", action, error, kind, tuple(map(Completion, texts))))
    return player.preview(turns[-1])


async def replay(seat: OpenSeat, request: Request, moves: list[str]) -> tuple[list[str], str]:
    """What a seat shows whoever makes these moves, and the reply."""
    asked, shown = asyncio.create_task(seat.ask(request)), []
    for move in moves:
        state = await seat.wait_for_turn(10)
        assert state.turn is not None
        shown.append(state.turn.text)
        seat.say(move)
    return shown, (await asked).text


WAIT, GRAB = "ACTION: WAIT", "ACTION: GRAB"


@pytest.mark.parametrize(
    ("recorded", "moves", "shown", "counts"),
    [
        ([(WAIT,), (GRAB,)], [WAIT, GRAB, WAIT], ["rules|turn 0", "turn 1", "turn 2"], (2, 0)),
        ([(WAIT,), (GRAB,)], [WAIT, "I grab.\nACTION: GRAB", WAIT], ["rules|turn 0", "turn 1", "turn 2"], (2, 0)),
        ([(WAIT,), (), (GRAB,)], [GRAB, WAIT], ["rules|turn 0|<WAIT>|turn 1|turn 2", "turn 3"], (1, 0)),
        ([(WAIT,), ()], [WAIT], ["rules|turn 0|<WAIT>|turn 1|turn 2"], (0, 0)),
        ([(WAIT,), (GRAB,)], [GRAB, WAIT], ["rules|turn 0", "rules|turn 0|<WAIT>|turn 1|<GRAB>|turn 2"], (0, 1)),
    ],
)
def test_recorded_turns_come_first(
    prompts: PromptSet, recorded: list[tuple[str, ...]], moves: list[str], shown: list[str], counts: tuple[int, int]
) -> None:
    async def play() -> None:
        notes: list[str] = []
        seat = OpenSeat("toy/Ann", notes.append)
        texts, reply = await replay(seat, resumed(prompts, recorded), moves)
        marked = [re.sub(r"\[You replied\]\nACTION: (\w+)\n\[end of your reply\]", r"<\1>", text) for text in texts]
        assert [text.replace("\n\n", "|") for text in marked] == shown and reply == moves[-1]
        assert (seat.counts["recalled"], seat.counts["differed"]) == counts
        assert len(notes) == counts[1] and all("did not repeat its recorded move of turn 0" in note for note in notes)

    run(play())


def test_turns_of_earlier_conversations_come_first_too(prompts: PromptSet) -> None:
    async def play() -> None:
        texts, _ = await replay(
            OpenSeat("toy/Ann"), resumed(prompts, [(WAIT,), (GRAB,)], fresh=True), [WAIT, GRAB, GRAB]
        )
        assert texts == ["rules\n\nturn 0", "rules\n\nturn 1", "rules\n\nturn 2"]

    run(play())


def test_unreadable_replies_are_recorded_turns(prompts: PromptSet) -> None:
    async def play() -> None:
        seat, shown = OpenSeat("toy/Ann"), []
        asked = asyncio.create_task(seat.ask(resumed(prompts, [("?\n[refused: no]", WAIT)])))
        for _ in range(3):
            state = await seat.wait_for_turn(10)
            assert state.turn is not None
            shown.append((state.turn.index, state.turn.attempt, state.turn.messages[-1]["content"][:6]))
            if len(shown) == 1:
                assert seat.turn is not None and seat.turn.recorded is not None
                seat.turn.moves.unreadable = lambda error, said: Completion("?\n[refused: no]")  # type: ignore[method-assign]
                while not seat.say("?").over:
                    pass
            else:
                seat.say(WAIT)
        assert shown == [(0, 0, "turn 0"), (0, 1, "again:"), (1, 0, "turn 1")] and (await asked).text == WAIT

    run(play())


def test_whoever_starts_anew_has_all_tries() -> None:
    async def play() -> None:
        seat = OpenSeat("toy/Ann")
        asked = asyncio.create_task(seat.ask(request(said("first"))))
        await asyncio.sleep(0)
        for _ in range(MAX_REFUSALS - 1):
            assert not seat.say("ACTION: GRAB", 7).over
        seat.restart()
        await seat.wait_for_turn(10)
        assert not seat.say("ACTION: GRAB", 7).over
        assert seat.say("ACTION: GRAB").over and (await asked).text

    run(play())


def test_whoever_starts_anew_between_recorded_turns_hears_all(
    prompts: PromptSet,
) -> None:
    async def play() -> None:
        seat = OpenSeat("toy/Ann")
        asked = asyncio.create_task(seat.ask(resumed(prompts, [(WAIT,), (GRAB,), (GRAB,)])))
        await seat.wait_for_turn(10)
        seat.say(WAIT)
        seat.restart()  # it had made its move
        state = await seat.wait_for_turn(10)
        assert state.turn is not None and (state.turn.index, state.turn.start) == (1, 0)
        seat.restart()  # it had not
        state = await seat.wait_for_turn(10)
        assert state.turn is not None and (state.turn.index, state.turn.start, state.turn.recorded) == (3, 0, None)
        assert seat.say(GRAB).over and (await asked).text == GRAB

    run(play())
