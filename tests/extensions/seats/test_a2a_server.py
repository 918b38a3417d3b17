"""A seat as an A2A agent, played with the package's own client."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import httpx
import pytest
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    Task,
    TaskState,
)
from a2a.utils.errors import A2AError
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Value

from harness.api import Reply, Request, Thread
from harness.extensions.networks.calls import Calls
from harness.extensions.seats.a2a_server import MAX_BODY, SeatA2A
from harness.extensions.seats.board import OpenSeat
from harness.replies import Labelled
from tests.core.replies.every_form import VERBS

URL = "http://127.0.0.1:8000/seats/Ann/a2a"
FORM = Labelled(("WAIT", "GRAB"))
INPUT, DONE, GONE = TaskState.TASK_STATE_INPUT_REQUIRED, TaskState.TASK_STATE_COMPLETED, TaskState.TASK_STATE_CANCELED


class Game:
    """The run's side: episodes of two turns, one after another; `moves` has what was played."""

    def __init__(self, seat: OpenSeat, form: Reply = FORM, turns: int = 2) -> None:
        self.seat, self.form, self.turns = seat, form, turns
        self.moves: list[Any] = []

    async def play(self, episodes: int = 1) -> None:
        for episode in range(episodes):
            thread = Thread()
            for turn in range(self.turns):
                thread.add("user", f"episode {episode}, turn {turn}")
                asked = Request(f"toy/{episode}/0/Ann/{turn}/0", thread, {}, 7, reply=self.form)
                answer = await self.seat.ask(asked)
                self.moves.append(answer.text or [dict(one) for one in answer.tool_calls or ()])
                thread.add("assistant", answer.text)
            self.seat.end(f"You won game {episode}.")


class Player:
    """A client of a seat."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.task = Task()

    async def say(self, *parts: Part | str, begin: bool = False, number: str = "", **fields: Any) -> Task:
        """Send a message in the task; returns the task as it is when the seat waits for input or has ended it."""
        self.count = getattr(self, "count", 0) + 1
        fields = {"context_id": self.task.context_id, "task_id": "" if begin else self.task.id, **fields}
        message = Message(
            message_id=number or f"{id(self)}-{self.count}",
            role=Role.ROLE_USER,
            parts=[Part(text=one) if isinstance(one, str) else one for one in parts],
            **fields,
        )
        asked = SendMessageRequest(message=message, configuration=SendMessageConfiguration(history_length=0))
        async for event in self.client.send_message(asked):
            kind = event.WhichOneof("payload")
            if kind == "task":
                self.task = event.task
            elif kind == "status_update":
                self.task.status.CopyFrom(event.status_update.status)
            elif kind == "artifact_update":
                self.task.artifacts.append(event.artifact_update.artifact)
        return self.task

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.task.status.message.parts)

    @property
    def facts(self) -> dict[str, Any]:
        return dict(self.task.status.message.metadata)


def data(value: Any) -> Part:
    return Part(data=ParseDict(value, Value()))


@contextlib.asynccontextmanager
async def opened(seat: OpenSeat, binding: str = "JSONRPC", streaming: bool = True) -> AsyncIterator[Any]:
    """The seat, served; gives what makes clients of it."""
    app = SeatA2A(seat, URL, about="a toy")
    http = httpx.AsyncClient(
        transport=httpx.ASGITransport(app), headers={"Authorization": f"Bearer {seat.secret}"}, timeout=20
    )
    card = await A2ACardResolver(http, URL).get_agent_card()
    config = ClientConfig(httpx_client=http, supported_protocol_bindings=[binding], streaming=streaming)
    try:
        yield lambda: Player(ClientFactory(config).create(card))
    finally:
        await app.close()
        await http.aclose()


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 20))


@pytest.mark.parametrize("binding", ["JSONRPC", "HTTP+JSON"])
@pytest.mark.parametrize("streaming", [True, False], ids=["stream", "whole"])
def test_a_client_plays_one_episode_after_another(binding: str, streaming: bool) -> None:
    async def play() -> None:
        seat = OpenSeat("toy: seat Ann")
        game = Game(seat)
        async with opened(seat, binding, streaming) as client:
            playing, player = asyncio.create_task(game.play(2)), client()
            for episode in range(2):
                await player.say("start", begin=True)
                assert player.task.status.state == INPUT and player.text == f"episode {episode}, turn 0"
                assert player.facts["agent"] == "Ann" and [one["name"] for one in player.facts["tools"]] == ["reply"]
                await player.say("ACTION: GRAB")
                assert player.task.status.state == INPUT and player.text == f"episode {episode}, turn 1"
                await player.say(data({"tool": "reply", "arguments": {"action": "WAIT"}}))
                assert player.task.status.state == DONE
                assert player.task.artifacts[0].name == "outcome"
                assert player.task.artifacts[0].parts[0].text == f"You won game {episode}."
            await playing
            assert game.moves == ["ACTION: GRAB", "ACTION: WAIT"] * 2
            seat.close()
            await player.say("start", begin=True)
            assert player.task.status.state == TaskState.TASK_STATE_REJECTED and "no further episodes" in player.text

    run(play())


def test_moves_that_are_not_legal_are_explained_and_change_nothing() -> None:
    async def play() -> None:
        seat = OpenSeat("toy/Ann")
        game = Game(seat)
        async with opened(seat) as client:
            playing, player = asyncio.create_task(game.play()), client()
            await player.say("start")
            for parts, why in (
                (("ACTION: DANCE",), "that cannot be read"),
                ((data({"tool": "dance"}),), "there is no tool 'dance'"),
                ((data([1]),), 'a data part is {"tool": name, "arguments": {…}}'),
                ((data({"tool": "reply", "arguments": 3}),), "a data part is"),
                ((Part(raw=b"x"),), "neither a file nor an address"),
                ((Part(url="http://127.0.0.1/"), "ACTION: GRAB"), "neither a file nor an address"),
            ):
                await player.say(*parts)
                assert player.task.status.state == INPUT and why in player.text, player.text
                assert player.facts["refused"] is True and "wait_for_turn" not in player.text
            assert not game.moves
            await player.say("ACTION: GRAB")
            assert player.text == "episode 0, turn 1"
            await player.say("ACTION: GRAB")
            await playing

    run(play())


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999", "9" * 5000])
def test_a_number_that_json_does_not_have_is_refused_and_breaks_no_task(number: str) -> None:
    async def play() -> None:
        seat = OpenSeat("toy/Ann")
        app, headers = SeatA2A(seat, URL), {"Authorization": f"Bearer {seat.secret}", "A2A-Version": "1.0"}
        game = Game(seat)
        playing = asyncio.create_task(game.play())
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), headers=headers, timeout=20) as http:

            async def call(method: str, params: str) -> httpx.Response:
                body = f'{{"jsonrpc": "2.0", "id": 1, "method": "{method}", "params": {params}}}'
                return await http.post(f"{URL}/", content=body)

            async def say(part: str, task: str = "") -> httpx.Response:
                named = f'"messageId": "{len(part)}{task}", "role": "ROLE_USER", "taskId": "{task}"'
                return await call("SendMessage", f'{{"message": {{{named}, "parts": [{part}]}}}}')

            task = (await say('{"text": "start"}')).json()["result"]["task"]["id"]
            refused = await say(f'{{"data": {{"tool": "reply", "arguments": {{"action": {number}}}}}}}', task)
            assert refused.status_code == 400 and "number" in refused.json()["error"]
            assert (await call("ListTasks", "{}")).json()["result"]["totalSize"] == 1
            for move in ("ACTION: GRAB", "ACTION: GRAB "):
                await say(f'{{"text": "{move}"}}', task)
            await playing
        await app.close()

    run(play())


def test_tasks_that_were_left_behind_end_and_a_message_may_name_its_task_alone() -> None:
    async def play() -> None:
        seat = OpenSeat("toy/Ann")
        app, headers = SeatA2A(seat, URL), {"Authorization": f"Bearer {seat.secret}", "A2A-Version": "1.0"}
        game = Game(seat)
        playing = asyncio.create_task(game.play())
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), headers=headers, timeout=20) as http:

            async def say(text: str, task: str = "") -> Any:
                message = {"messageId": text + task, "role": "ROLE_USER", "taskId": task, "parts": [{"text": text}]}
                body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
                return (await http.post(f"{URL}/", json=body)).json()["result"]["task"]

            for number in range(70):
                task = (await say(f"start {number}"))["id"]
            assert len(asyncio.all_tasks()) < 5 * 70
            for move in ("no move", "ACTION: GRAB", "ACTION: GRAB "):
                state = (await say(move, task))["status"]["state"]
            assert state == "TASK_STATE_COMPLETED"
            await playing
        await app.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(play())


def test_several_calls_are_one_move() -> None:
    async def play() -> None:
        seat = OpenSeat("toy/Ann")
        game = Game(seat, Calls(VERBS, 2), turns=1)
        async with opened(seat) as client:
            playing, player = asyncio.create_task(game.play()), client()
            await player.say("start")
            names = [one["name"] for one in player.facts["tools"]]
            assert "end_turn" in names
            await player.say(data({"tool": names[0], "arguments": {}}))
            assert player.task.status.state == INPUT
            playing.cancel()

    run(play())


def test_an_answer_that_is_sent_again_is_taken_once() -> None:
    async def play() -> None:
        seat = OpenSeat("toy/Ann")
        game = Game(seat, turns=3)
        async with opened(seat) as client:
            playing, player = asyncio.create_task(game.play()), client()
            await player.say("start")
            await player.say("ACTION: GRAB", number="once")
            assert player.text == "episode 0, turn 1"
            await player.say("ACTION: GRAB", number="once")
            assert player.text == "episode 0, turn 1" and game.moves == ["ACTION: GRAB"]
            playing.cancel()

    run(play())


def test_a_client_that_vanished_comes_back_to_its_turn() -> None:
    async def play() -> None:
        seat = OpenSeat("toy/Ann")
        game = Game(seat, turns=3)
        async with opened(seat) as client:
            playing, player = asyncio.create_task(game.play()), client()
            await player.say("start")
            await player.say("ACTION: GRAB")
            back = await client().client.get_task(GetTaskRequest(id=player.task.id))
            assert back.status.state == INPUT and back.status.message.parts[0].text == "episode 0, turn 1"
            again = client()
            await again.say("I am back", begin=True)
            assert (
                again.text
                == "episode 0, turn 0\n\n[You replied]\nACTION: GRAB\n[end of your reply]\n\nepisode 0, turn 1"
            )
            await again.say("ACTION: WAIT")
            assert game.moves == ["ACTION: GRAB", "ACTION: WAIT"]
            playing.cancel()

    run(play())


def test_of_two_clients_the_last_one_plays_and_the_other_is_told_so() -> None:
    async def play() -> None:
        seat = OpenSeat("toy/Ann")
        game = Game(seat, turns=3)
        async with opened(seat) as client:
            one, other = client(), client()
            waits = asyncio.create_task(one.say("start"))  # before there is a turn
            for _ in range(100):
                await asyncio.sleep(0)
            playing = asyncio.create_task(other.say("start"))
            assert (await waits).status.state == GONE and "another client plays this seat now" in one.text
            going = asyncio.create_task(game.play())
            await playing
            third = client()
            await third.say("start")
            await other.say("ACTION: GRAB")
            assert other.task.status.state == GONE and not game.moves
            await third.say("ACTION: WAIT")
            assert third.text == "episode 0, turn 1" and game.moves == ["ACTION: WAIT"]
            with pytest.raises(A2AError, match="terminal state"):
                await other.say("ACTION: GRAB")
            going.cancel()

    run(play())


def test_an_answer_to_a_turn_that_is_over_gets_the_next_one() -> None:
    async def play() -> None:
        seat = OpenSeat("toy/Ann")
        async with opened(seat) as client:
            thread, player = Thread(), client()
            thread.add("user", "one")
            asked = asyncio.create_task(seat.ask(Request("toy/0/0/Ann/0/0", thread, {}, 7, reply=FORM)))
            await player.say("start")
            asked.cancel()  # its time is over
            with contextlib.suppress(asyncio.CancelledError):
                await asked
            thread.add("assistant", "")
            thread.add("user", "two")
            before = seat._waiting
            answer = asyncio.create_task(player.say("ACTION: GRAB"))
            while seat._waiting is before:
                await asyncio.sleep(0)
            asked = asyncio.create_task(seat.ask(Request("toy/0/0/Ann/1/0", thread, {}, 7, reply=FORM)))
            await answer
            assert "nothing was done" in player.text and player.text.endswith("two")
            await_end = asyncio.create_task(player.say("ACTION: WAIT"))
            assert (await asked).text == "ACTION: WAIT"
            seat.end("over")
            assert (await await_end).status.state == DONE

    run(play())


def test_an_episode_that_ended_meanwhile_is_completed_and_the_next_one_waits() -> None:
    async def play() -> None:
        seat = OpenSeat("toy/Ann")
        game = Game(seat, turns=1)
        async with opened(seat) as client:
            player = client()
            playing = asyncio.create_task(game.play(2))
            await player.say("start")
            await player.say("ACTION: GRAB")  # the next episode's turn is there before the task is looked at
            assert player.task.status.state == DONE
            assert player.task.artifacts[0].parts[0].text == "You won game 0."
            await player.say("and on", begin=True)
            assert player.text == "episode 1, turn 0"
            await player.say("ACTION: GRAB")
            await playing
            waits = asyncio.create_task(player.say("and on", begin=True))  # the last episode is over, and said so
            for _ in range(100):
                await asyncio.sleep(0)
            assert not waits.done()
            seat.close()
            assert (await waits).status.state == TaskState.TASK_STATE_REJECTED

    run(play())


def test_a_task_that_is_cancelled_leaves_the_turn_open() -> None:
    async def play() -> None:
        seat = OpenSeat("toy/Ann")
        async with opened(seat) as client:
            playing, player = asyncio.create_task(Game(seat).play()), client()
            await player.say("start")
            gone = await player.client.cancel_task(CancelTaskRequest(id=player.task.id))
            assert gone.status.state == GONE
            again = client()
            await again.say("start", begin=True)
            assert again.text == "episode 0, turn 0"
            playing.cancel()

    run(play())


def test_only_who_has_the_secret_plays_and_requests_are_bounded() -> None:
    async def play() -> None:
        seat = OpenSeat("toy/Ann")
        app = SeatA2A(seat, URL)
        transport, own = httpx.ASGITransport(app), {"Authorization": f"Bearer {seat.secret}"}
        async with httpx.AsyncClient(transport=transport, timeout=20) as http:
            assert (await http.get(f"{URL}/.well-known/agent-card.json")).json()["name"] == "toy/Ann"
            for headers in ({}, {"Authorization": "Bearer other"}, {"Authorization": seat.secret}):
                for path in ("/", "/message:send", "/tasks"):
                    answer = await http.post(f"{URL}{path}", json={}, headers=headers)
                    assert answer.status_code == 401 and seat.secret not in answer.text
            assert (await http.post(f"{URL}/", json={}, headers={**own, "Host": "evil.example:80"})).status_code == 421
            assert (await http.post(f"{URL}/", content=b"x" * (MAX_BODY + 1), headers=own)).status_code == 413

            async def flood() -> AsyncIterator[bytes]:
                for _ in range(50):
                    yield b"x" * 1_000_000

            with contextlib.suppress(Exception):  # the connection counts as closed by the client
                assert (await http.post(f"{URL}/", content=flood(), headers=own)).status_code >= 400
            for body in (
                b"{",
                b"[]",
                b"5",
                b"[" * 100_000,
                b'{"jsonrpc": "2.0", "method": "SendMessage", "params": 5}',
            ):
                answer = await http.post(f"{URL}/", content=body, headers={**own, "A2A-Version": "1.0"})
                assert answer.status_code == 200 and "error" in answer.json()
            assert not seat.counts["turns"]
        await app.close()

    run(play())
