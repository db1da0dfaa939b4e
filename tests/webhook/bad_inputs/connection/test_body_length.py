"""Bodies of no, of two, of another or of too large a length."""

from __future__ import annotations

from typing import Any

import pytest

MIB = 1024 * 1024
TOO_LARGE = 33 * MIB
UID = "0f4a1c2e-large"
NAMED = b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"%s",' % UID.encode()


def test_no_length(wire: Any) -> None:
    wire.refused(411, "Content-Length", b"POST /validate HTTP/1.1\r\nHost: gpugate\r\n\r\n")


def test_no_body(wire: Any) -> None:
    wire.refused(400, "empty", wire.post(body=b""))


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param([b"Content-Length: -1"], id="negative"),
        pytest.param([b"Content-Length: +23"], id="plus"),
        pytest.param([b"Content-Length: 23,23"], id="list"),
        pytest.param([b"Content-Length: 23", b"Content-Length: 23"], id="twice-the-same"),
        pytest.param([b"Content-Length: 23", b"Content-Length: 24"], id="two"),
        pytest.param([b"Content-Length: 0x17"], id="hexadecimal"),
        pytest.param([b"Content-Length: 2 3"], id="with-a-space"),
        pytest.param([b"Content-Length: \xd9\xa2\xd9\xa3"], id="digits-of-another-script"),
        pytest.param([b"Content-Length:"], id="empty"),
    ],
)
def test_lengths_that_are_no_number(wire: Any, headers: list[bytes]) -> None:
    wire.refused(400, "Content-Length|HTTP/1.1", wire.post(*headers, body=b"x" * 23))


@pytest.mark.parametrize(
    "length",
    [pytest.param(b"1" + b"0" * 400, id="19-10^400"), pytest.param(b"%d" % (10 * 1024**4), id="10-TiB")],
)
def test_lengths_beyond_any_bound(wire: Any, length: bytes) -> None:
    wire.refused_early(413, "large", wire.post(b"Content-Length: " + length, body=b"x" * 1024))


def test_rest_of_a_body_is_no_request(wire: Any) -> None:
    length = b"Content-Length: %d" % len(wire.good)
    first, second = wire.to_the_end(wire.post(length, body=wire.good + b'{"a":1}'))
    assert (first.status, first.response["allowed"], second.status) == (200, True, 400)


def test_length_in_the_middle_of_the_review(wire: Any) -> None:
    first, second = wire.to_the_end(wire.post(b"Content-Length: 1000"))
    assert (first.status, first.response["allowed"], first.response["status"]["code"]) == (200, False, 400)
    assert second.status == 400


@pytest.mark.parametrize("sent", [b"", b"{", None], ids=["nothing", "one-byte", "all-but-one-byte"])
def test_body_that_ends_early_is_not_answered(wire: Any, sent: bytes | None) -> None:
    body = wire.good if sent is None else sent
    request = wire.post(b"Content-Length: %d" % (len(body) + 1), body=body)
    assert wire.to_the_end(request, half_close=True) == []


def test_too_large_with_a_uid_is_denied_before_the_body_came(wire: Any) -> None:
    head = NAMED.ljust(600)
    (answer,) = wire.asked(wire.post(b"Content-Length: %d" % TOO_LARGE, body=head))
    response = answer.response
    assert (response["uid"], response["allowed"], response["status"]["code"]) == (UID, False, 413)


def test_too_large_with_a_uid_is_not_mutated(wire: Any) -> None:
    head = NAMED.ljust(600)
    (answer,) = wire.asked(wire.post(b"Content-Length: %d" % TOO_LARGE, body=head, path=b"/mutate"))
    response = answer.response
    assert (response["uid"], response["allowed"], len(response["warnings"])) == (UID, True, 1)


def test_client_that_sends_all_of_it_reads_the_answer(wire: Any) -> None:
    (answer,) = wire.asked(wire.post(body=NAMED.ljust(TOO_LARGE)))
    assert (answer.response["uid"], answer.response["status"]["code"]) == (UID, 413)


@pytest.mark.parametrize(
    "head",
    [
        pytest.param(b"x" * 600, id="no-review"),
        pytest.param(b" " * 512 + NAMED, id="uid-after-512-bytes"),
        pytest.param(NAMED.replace(UID.encode(), b"a\\u0022b").ljust(600), id="uid-with-an-escape"),
    ],
)
def test_too_large_without_a_uid(wire: Any, head: bytes) -> None:
    wire.refused_early(413, "32 MiB", wire.post(b"Content-Length: %d" % TOO_LARGE, body=head))


def test_just_small_enough_is_read(wire: Any) -> None:
    wire.allowed(wire.post(body=wire.good.ljust(32 * MIB)))


def chunked(body: bytes, size: int) -> bytes:
    parts = (body[start : start + size] for start in range(0, len(body), size))
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


@pytest.mark.parametrize("size", [16 * 1024, MIB], ids=["chunks-of-16-KB", "chunks-of-1-MB"])
def test_too_large_in_chunks_with_a_uid(wire: Any, size: int) -> None:
    body = chunked(NAMED.ljust(TOO_LARGE), size)
    (answer,) = wire.asked(wire.post(b"Transfer-Encoding: chunked", body=body))
    response = answer.response
    assert (response["uid"], response["allowed"], response["status"]["code"]) == (UID, False, 413)


def test_too_large_in_chunks_without_a_uid(wire: Any) -> None:
    wire.refused(413, "32 MiB", wire.post(b"Transfer-Encoding: chunked", body=chunked(b" " * TOO_LARGE, MIB)))
