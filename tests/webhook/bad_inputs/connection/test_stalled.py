"""Clients that stop, or go on a byte at a time: each is let go after a few seconds, and all of them at once."""

from __future__ import annotations

import selectors
import ssl
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

# Many times the longest deadline, which is that of a body.
PATIENCE_SECONDS = 90
PACE_SECONDS = 0.25
CLIENT_HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 32
HEAD = b"POST /validate HTTP/1.1\r\nHost: gpugate\r\nContent-Type: application/json\r\n"


class Stalled(NamedTuple):
    """What is sent at once, and what then goes on to come, a byte at a time."""

    sent: bytes
    drip: bytes = b""
    tls: bool = True
    good_first: bool = False


STALLED = {
    "nothing": Stalled(b"", tls=False),
    "half-a-client-hello": Stalled(CLIENT_HELLO, tls=False),
    "client-hello-byte-by-byte": Stalled(CLIENT_HELLO[:1], drip=CLIENT_HELLO[1:], tls=False),
    "no-request": Stalled(b""),
    "half-a-request-line": Stalled(b"POST /val"),
    "half-a-header": Stalled(HEAD),
    "header-byte-by-byte": Stalled(HEAD, drip=b"X: " + b"x" * 1000),
    "half-a-header-after-a-good-request": Stalled(HEAD, good_first=True),
    "body-stops": Stalled(HEAD + b'Content-Length: 1000\r\n\r\n{"kind":'),
    "body-never-starts": Stalled(HEAD + b"Content-Length: 1000\r\n\r\n"),
    "body-byte-by-byte": Stalled(HEAD + b"Content-Length: 1000\r\n\r\n", drip=b" " * 1000),
    "chunk-stops": Stalled(HEAD + b"Transfer-Encoding: chunked\r\n\r\nff\r\n{"),
    "last-chunk-missing": Stalled(HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"),
    "body-stops-after-a-good-request": Stalled(HEAD + b"Content-Length: 9\r\n\r\n{", good_first=True),
    "http-0.9": Stalled(b"GET /validate\r\n"),
}


class Outcome(NamedTuple):
    received: bytes
    closed: bool


@pytest.fixture(scope="module")
def outcomes(wire: Any) -> dict[str, Outcome]:
    """Open all of them, and wait until each was closed."""
    with ExitStack() as stack:
        open_now = {}
        for name, stalled in STALLED.items():
            sock = stack.enter_context(wire.tls() if stalled.tls else wire.tcp())
            if stalled.good_first:
                sock.sendall(wire.post())
                with sock.makefile("rb") as stream:
                    assert wire.read(stream).status == 200
            sock.sendall(stalled.sent)
            sock.setblocking(False)  # noqa: FBT003 -- the standard library's signature
            open_now[name] = sock
        return _wait(open_now)


def _wait(open_now: dict[str, socket.socket]) -> dict[str, Outcome]:
    received = dict.fromkeys(open_now, b"")
    drips = {name: iter(STALLED[name].drip) for name in open_now}
    with selectors.DefaultSelector() as selector:
        for name, sock in open_now.items():
            selector.register(sock, selectors.EVENT_READ, name)
        end = time.monotonic() + PATIENCE_SECONDS
        while selector.get_map() and time.monotonic() < end:
            for key, _ in selector.select(PACE_SECONDS):
                part = _part(key.fileobj.recv)
                received[key.data] += part or b""
                if part == b"":
                    selector.unregister(key.fileobj)
            for key in list(selector.get_map().values()):
                if (byte := next(drips[key.data], None)) is not None:
                    _part(lambda _, sock=key.fileobj, byte=byte: sock.send(bytes([byte])))
        still_open = {key.data for key in selector.get_map().values()}
    return {name: Outcome(received[name], name not in still_open) for name in open_now}


def _part(operation: Callable[[int], Any]) -> Any:
    """Return what a socket gives: bytes, none at its end, and None when there is nothing yet."""
    try:
        return operation(65536)
    except (BlockingIOError, ssl.SSLWantReadError):
        return None
    except OSError:
        return b""


@pytest.mark.parametrize("name", STALLED)
def test_closed(outcomes: dict[str, Outcome], name: str) -> None:
    assert outcomes[name].closed


# Requests whose head has come: these are answered.
BODIES = ("body-", "chunk-", "last-chunk-")


@pytest.mark.parametrize("name", [name for name in STALLED if not name.startswith(BODIES)])
def test_nothing_is_said_to_who_has_not_asked(outcomes: dict[str, Outcome], name: str) -> None:
    assert b"HTTP" not in outcomes[name].received


@pytest.mark.parametrize("name", [name for name in STALLED if name.startswith(BODIES)])
def test_a_body_that_does_not_come_is_said_to_have_timed_out(outcomes: dict[str, Outcome], name: str) -> None:
    head, _, body = outcomes[name].received.partition(b"\r\n\r\n")
    assert (head.split()[1], b"connection: close" in head.lower(), b'"kind":"Status"' in body) == (b"408", True, True)
