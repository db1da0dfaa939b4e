"""The connection between a worker and the process for expensive reviews, with a process that fails in each way."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from gpugate.webhook.admission.front import handover
from gpugate.webhook.admission.front.handover import HandOver, Response

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

OK = b"HTTP/1.1 200 OK\r\ndate: today\r\nContent-Length: 2\r\n\r\n{}"


def sent(
    hand_over: HandOver, reply: bytes | None, body: bytes = b"review", seconds: float = 10.0
) -> tuple[Response | None, bytes]:
    """Return the response to a review, and what the other process received; a reply of None never comes."""
    received = b""
    answered = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal received
        received = await reader.readuntil(b"\r\n\r\n")
        received += await reader.readexactly(len(body))
        try:
            if reply is None:
                # Until the client has closed the connection.
                await reader.read()
            else:
                writer.write(reply)
        finally:
            writer.close()
            answered.set()

    async def run() -> Response | None:
        server = await asyncio.start_unix_server(serve, sock=hand_over.listener)
        async with server:
            response = await hand_over.send("/validate?timeout=9ms", b"00-trace", body, seconds)
            await answered.wait()
            return response

    return asyncio.run(run()), received


@pytest.fixture
def hand_over(tmp_path: Path) -> Iterator[HandOver]:
    created = HandOver(tmp_path / "socket")
    yield created
    created.listener.close()


def test_accepting_never_blocks(hand_over: HandOver) -> None:
    assert not hand_over.listener.getblocking()


def test_the_other_process_receives_an_http_request(hand_over: HandOver) -> None:
    assert sent(hand_over, OK) == (
        Response(200, b"{}"),
        b"\r\n".join(
            (
                b"POST /validate?timeout=9ms HTTP/1.1",
                b"host: gpugate",
                b"content-length: 6",
                b"connection: close",
                b"traceparent: 00-trace",
                b"",
                b"review",
            )
        ),
    )


def test_the_response_has_some_time_besides_the_evaluation(hand_over: HandOver) -> None:
    response, _ = sent(hand_over, OK, seconds=0)
    assert response == Response(200, b"{}")


def test_the_largest_body_passes(hand_over: HandOver) -> None:
    body = b"x" * 32 * 1024 * 1024
    response, received = sent(hand_over, OK, body)
    assert (response, received.endswith(b"\r\n\r\n" + body)) == (Response(200, b"{}"), True)


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(b"", id="ends before it answers"),
        pytest.param(OK[:20], id="ends in the head"),
        pytest.param(OK[:-1], id="ends in the body"),
        pytest.param(None, id="is late"),
    ],
)
def test_without_an_answer_the_client_retries(
    hand_over: HandOver, reply: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handover, "_GRACE_SECONDS", 0.1)
    response, _ = sent(hand_over, reply, seconds=0 if reply is None else 10.0)
    assert response == Response(429, b"")


def closed(hand_over: HandOver) -> None:
    hand_over.listener.close()


def removed(hand_over: HandOver) -> None:
    hand_over.path.unlink()


@pytest.mark.parametrize("lose", [closed, removed])
def test_an_unreachable_process_has_no_response(hand_over: HandOver, lose: Callable[[HandOver], None]) -> None:
    lose(hand_over)
    assert asyncio.run(hand_over.send("/validate", b"", b"review", 10)) is None


def test_a_path_that_is_too_long_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="AF_UNIX path too long"):
        HandOver(tmp_path / ("x" * 120))
