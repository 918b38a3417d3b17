"""Programs that do their worst to the server: others are served, nothing is lost, and nothing stays open."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from harness.api import Completion, InnerRequest
from tests.helpers.endpoint_seats import HELLO, Place, Scripted, read_reply, serve

BODY: dict[str, Any] = {"model": "tiny", "messages": HELLO}
PATH = "/chat/completions"


async def flood(place: Place, connections: int, sent: bytes = b"") -> None:
    """Open connections that send no whole request. The server closes some of them meanwhile."""
    for _ in range(connections):
        _, writer = await place.connect()
        writer.write(sent)


@pytest.mark.parametrize("sent", [b"", b"POST /s/x/v1/chat/completions HTTP/1.1\r\nHost: "], ids=["silent", "begun"])
@pytest.mark.parametrize("connections", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_many_connections_disturb_nobody_else(connections: int, sent: bytes) -> None:
    async def work(place: Place) -> None:
        keeper, kept = await place.connect()
        kept.write(place.request(PATH, BODY))
        assert (await read_reply(keeper))[0] == 200
        await flood(place, connections, sent)
        assert place.server.open_connections <= 100
        assert (await place.post(PATH, BODY))[0] == 200
        kept.write(place.request(PATH, BODY))  # a connection that has asked before outlives those that have not
        assert (await read_reply(keeper))[0] == 200

    serve(work, max_connections=100)


def test_calls_of_one_seat_leave_room_for_others() -> None:
    async def work(place: Place) -> None:
        go = asyncio.Event()

        async def slow(ask: InnerRequest) -> Completion:
            await go.wait()
            return Completion("late")

        place.model.said = [slow]
        calls = [asyncio.create_task(place.post(PATH, BODY)) for _ in range(30)]
        refused, _ = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        other = place.server.open(Scripted([Completion("red")]), "episode/other")
        assert (await place.post_to(other.id, BODY, other.api_key))[0] == 200
        go.set()
        answers = await asyncio.gather(*calls)
        assert sorted(status for status, _ in answers) == [200] * 16 + [429] * 14
        assert {(await one)[1]["error"]["code"] for one in refused} == {"rate_limit_exceeded"}
        assert len(place.model.asks) == 16

    serve(work, max_connections=64)


def test_a_server_whose_connections_are_all_busy_says_so() -> None:
    async def work(place: Place) -> None:
        go, all_busy = asyncio.Event(), asyncio.Event()

        async def slow(ask: InnerRequest) -> Completion:
            if len(place.model.asks) == 2:
                all_busy.set()
            await go.wait()
            return Completion("late")

        place.model.said = [slow]
        calls = [asyncio.create_task(place.post(PATH, BODY)) for _ in range(2)]
        await all_busy.wait()
        reader, _ = await place.connect()
        status, _, body = await read_reply(reader)
        assert (status, json.loads(body)["error"]["type"]) == (503, "server_error")
        go.set()
        assert [status for status, _ in await asyncio.gather(*calls)] == [200, 200]

    serve(work, max_connections=2)


SLOW = [b"", b"G", b"GET /\r\n", b"POST /s/x/v1/models HTTP/1.1\r\n", b"POST / HTTP/1.1\r\nHost: x\r\n"]


@pytest.mark.parametrize("sent", SLOW, ids=["silent", "letter", "0.9", "line", "headers"])
def test_what_does_not_come_to_an_end_is_ended(sent: bytes) -> None:
    async def work(place: Place) -> None:
        reader, writer = await place.connect()
        writer.write(sent)
        assert (await read_reply(reader))[0] == 408
        assert await reader.read() == b""

    serve(work, patience=0.02)


def test_a_body_that_never_ends_is_cut() -> None:
    async def work(place: Place) -> None:
        reader, writer = await place.connect()
        head = place.request(PATH, None, Transfer_Encoding="chunked").replace(b"Content-Length: 0\r\n", b"")
        writer.write(head + b"5\r\n{    \r\n")
        assert (await read_reply(reader))[0] == 408
        reader, writer = await place.connect()
        writer.write(head + b"400\r\n" + b" " * 1024 + b"\r\n")
        assert (await read_reply(reader))[0] == 413

    serve(work, patience=0.05, max_body=1000)


@pytest.mark.parametrize("expects", [{}, {"Expect": "100-continue"}])
def test_50_mb_are_refused_before_they_are_sent(expects: dict[str, str]) -> None:
    async def work(place: Place) -> None:
        reader, writer = await place.connect()
        writer.write(place.request(PATH, None, Content_Length=str(50_000_000), **expects))
        status, _, body = await read_reply(reader)
        assert status == 413
        assert json.loads(body)["error"]["code"] == "request_too_large"

    serve(work, patience=0.1)


def test_what_expects_to_be_asked_for_its_body_is_asked() -> None:
    async def work(place: Place) -> None:
        reader, writer = await place.connect()
        body = json.dumps(BODY).encode()
        writer.write(place.request(PATH, None, Content_Length=str(len(body)), Expect="100-continue"))
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(body)
        assert (await read_reply(reader))[0] == 200

    serve(work)


def test_zipped_bytes_count_as_what_they_hold() -> None:
    import gzip

    async def work(place: Place) -> None:
        sent = gzip.compress(json.dumps(BODY).encode())
        assert (await place.post(PATH, sent, Content_Encoding="gzip"))[0] == 200
        assert (await place.post(PATH, gzip.compress(b" " * 10_000_000), Content_Encoding="gzip"))[0] == 413

    serve(work)


NO_HTTP = {
    "0.9": b"GET /\r\n\r\n",
    "garbage": bytes(range(256)),
    "http/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "tls": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "long line": b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\n\r\n",
    "long header": b"GET / HTTP/1.1\r\nX: " + b"x" * 20_000 + b"\r\n\r\n",
    "many headers": b"GET / HTTP/1.1\r\n" + b"".join(b"x%d: y\r\n" % n for n in range(5000)) + b"\r\n",
    "two lengths": b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
    "length and chunks": b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "negative length": b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
}


@pytest.mark.parametrize("sent", NO_HTTP.values(), ids=NO_HTTP)
def test_what_is_no_http_is_refused_and_closed(sent: bytes) -> None:
    async def work(place: Place) -> None:
        reader, writer = await place.connect()
        writer.write(sent)
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        assert head.split()[1] == b"400"
        assert json.loads(body)["error"]["message"] == "this is no request of HTTP/1.1"
        assert (await place.post(PATH, BODY))[0] == 200

    serve(work)


@pytest.mark.parametrize("stream", [False, True])
def test_a_program_that_dies_while_it_is_answered(stream: bool) -> None:
    """Its call is finished, once, for the record."""

    async def work(place: Place) -> None:
        asked, gone, answered = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def slow(ask: InnerRequest) -> Completion:
            asked.set()
            await gone.wait()
            answered.set()
            return Completion("late")

        place.model.said = [slow]
        _, writer = await place.connect()
        writer.write(place.request(PATH, {**BODY, "stream": stream}))
        await asked.wait()
        writer.transport.abort()
        place.model.said = [Completion("blue")]
        assert (await place.post(PATH, BODY))[0] == 200
        gone.set()
        await answered.wait()
        assert len(place.model.asks) == 2

    serve(work, keep_alive=0.001)


def test_requests_in_a_row_are_answered_in_their_order() -> None:
    async def work(place: Place) -> None:
        async def echo(ask: InnerRequest) -> Completion:
            return Completion(str(ask.messages[0]["content"]))

        place.model.said = [echo]
        reader, writer = await place.connect()
        bodies = [{**BODY, "messages": [{"role": "user", "content": str(number)}]} for number in range(50)]
        writer.write(b"".join(place.request(PATH, body) for body in bodies))
        for number in range(50):
            _, _, body = await read_reply(reader)
            assert json.loads(body)["choices"][0]["message"]["content"] == str(number)

    serve(work)


def test_the_socket_speaks_the_same() -> None:
    async def work(place: Place) -> None:
        reader, writer = await asyncio.open_unix_connection(place.access.socket)
        place.links.append(writer)
        writer.write(place.request(PATH, BODY))
        assert (await read_reply(reader))[0] == 200
        assert place.access.socket.parent.stat().st_mode & 0o077 == 0

    serve(work)


def test_a_server_that_closes_ends_calls_that_hang() -> None:
    async def work(place: Place) -> None:
        asked, cancelled = asyncio.Event(), asyncio.Event()

        async def hang(ask: InnerRequest) -> Completion:
            asked.set()
            try:
                await asyncio.Event().wait()
            finally:
                cancelled.set()
            return Completion("never")

        place.model.said = [hang]
        _, writer = await place.connect()
        writer.write(place.request(PATH, {**BODY, "stream": True}))
        await asked.wait()
        await place.server.close()
        await cancelled.wait()

    serve(work, keep_alive=0.001, grace=0.01)
