"""Bodies that are no JSON, or more of it than anybody needs.

A body whose first bytes name the uid is denied by a review, so that no failurePolicy can let the request in; any other
is refused.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "default"}, "spec": {"containers": []}}
KIB = 1024


@pytest.fixture(scope="module")
def with_object(review: Callable[..., Any]) -> Callable[[str], bytes]:
    """Write a review of an object given as text."""

    def make(text: str) -> bytes:
        return json.dumps(review(POD)).replace(json.dumps(POD), text, 1).encode()

    return make


def pod_with(member: str) -> str:
    return json.dumps(POD)[:-1] + f', "x": {member}' + "}"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"a', id="truncated"),
        pytest.param(b"[1,]", id="comma-at-the-end"),
        pytest.param(b"{'a':1}", id="single-quotes"),
        pytest.param(b'{"a":1} // comment', id="comment"),
        pytest.param(b'/* comment */ {"a":1}', id="comment-first"),
        pytest.param(b'{"a":1}{"b":2}', id="text-after-the-end"),
        pytest.param(b"\x00", id="NUL"),
        pytest.param(b'\xef\xbb\xbf{"kind":"AdmissionReview"}', id="byte-order-mark"),
        pytest.param('{"kind":"AdmissionReview"}'.encode("utf-16"), id="utf-16"),
        pytest.param('{"kind":"AdmissionReview"}'.encode("utf-16-le"), id="utf-16-without-a-mark"),
        pytest.param('{"kind":"AdmissionReview"}'.encode("utf-32"), id="utf-32"),
        pytest.param('{"kind":"Ä"}'.encode("latin-1"), id="latin-1"),
        pytest.param(b'{"kind":NaN}', id="nan"),
        pytest.param(b'{"kind":1e999}', id="out-of-range"),
        pytest.param(b'{"kind":"\\ud800"}', id="lone-surrogate"),
    ],
)
def test_no_json(refused: Callable[..., None], body: bytes) -> None:
    refused(body, 400, r"not JSON in UTF-8: .* at \d+")


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"null", id="null"),
        pytest.param(b'"x"', id="string"),
        pytest.param(b"5", id="number"),
        pytest.param(b"[]", id="list"),
    ],
)
def test_no_object(refused: Callable[..., None], body: bytes) -> None:
    refused(body, 400, "AdmissionReview is expected")


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda body: body[:-20], id="truncated"),
        pytest.param(lambda body: body[:150], id="truncated-soon-after-the-uid"),
        pytest.param(lambda body: body + b"{}", id="text-after-the-end"),
        pytest.param(lambda body: body.replace(b"}", b",}", 1), id="comma-at-the-end"),
        pytest.param(lambda body: body.replace(b'"a"', b'"\xc4"'), id="latin-1"),
    ],
)
def test_no_json_behind_a_uid(
    denied: Callable[..., None], with_object: Callable[[str], bytes], change: Callable[[bytes], bytes]
) -> None:
    denied(change(with_object(json.dumps(POD))), 400, r"not JSON in UTF-8: .* at \d+")


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("NaN", id="nan"),
        pytest.param("Infinity", id="infinity"),
        pytest.param("-Infinity", id="minus-infinity"),
        pytest.param("1e999", id="out-of-range"),
        pytest.param("9" * 5000, id="5000-digits"),
        pytest.param("1e400", id="1e400-is-out-of-range"),
        pytest.param("01", id="leading-zero"),
        pytest.param("0x10", id="hexadecimal"),
        pytest.param(r'"\ud800"', id="lone-surrogate"),
        pytest.param(r'"\udc00\ud800"', id="surrogates-the-wrong-way-round"),
        pytest.param('"\x01"', id="control-character-unescaped"),
    ],
)
def test_values_that_are_no_json(denied: Callable[..., None], with_object: Callable[[str], bytes], value: str) -> None:
    denied(with_object(pod_with(value)), 400, r"not JSON in UTF-8: .* at \d+")


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(str(2**63), id="44-2^63"),
        pytest.param(str(2**64), id="44-2^64"),
        pytest.param(str(-(2**63) - 1), id="below-64-bits"),
        pytest.param("1" * 30, id="30-digits"),
        pytest.param("1e-400", id="too-small"),
        pytest.param(r'"\u0000\u0001\u001b[31m\u202e"', id="control-characters"),
        pytest.param('"' + "[" * 1000 + '"', id="brackets-in-a-string"),
        pytest.param("{" + ",".join(f'"k{number}":0' for number in range(200_000)) + "}", id="200000-keys"),
        pytest.param('"' + "x" * 3 * KIB * KIB + '"', id="string-of-3-MiB"),
        pytest.param('"' + r"\u003c" * 3 * KIB * KIB + '"', id="18-MiB-of-escapes"),
        pytest.param('"a", "x": "b", "x": {"x": 1, "x": 2}', id="duplicate-keys"),
    ],
)
@pytest.mark.parametrize("path", ["/mutate", "/validate"])
def test_odd_values_are_data(
    ask: Callable[..., Any], with_object: Callable[[str], bytes], path: str, value: str
) -> None:
    assert ask(path, with_object(pod_with(value)))["allowed"] is True


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("[" + ",".join(["{}"] * 1_000_000) + "]", id="a-million-objects"),
        pytest.param("{" + ",".join(f'"k{number}":0' for number in range(350_000)) + "}", id="350000-keys"),
    ],
)
def test_more_values_than_are_read_are_evaluated_or_denied(
    ask: Callable[..., Any], with_object: Callable[[str], bytes], value: str
) -> None:
    answer = ask("/validate", with_object(pod_with(value)))
    assert answer["allowed"] or answer["status"]["code"] == 413


def nested(levels: int) -> str:
    """Write a Pod that makes so many levels with the request around it."""
    return pod_with("[" * (levels - 2) + "]" * (levels - 2))


def test_200_levels(ask: Callable[..., Any], with_object: Callable[[str], bytes]) -> None:
    assert ask("/validate", with_object(nested(200)))["allowed"] is True


@pytest.mark.parametrize("levels", [201, 1001, 9999, 100_000], ids=lambda levels: f"48-{levels}-levels")
def test_too_many_levels(denied: Callable[..., None], with_object: Callable[[str], bytes], levels: int) -> None:
    denied(with_object(nested(levels)), 413, "nested more than 200 levels")


def test_levels_without_end_and_without_a_uid(refused: Callable[..., None]) -> None:
    refused(b"[" * 200_000, 413, "nested more than 200 levels")


def test_of_two_requests_the_last_is_answered(ask: Callable[..., Any], review: Callable[..., Any]) -> None:
    first = json.dumps(review(POD, uid="first"))
    body = first[:-1] + ', "request": ' + json.dumps(review(POD, uid="last")["request"]) + "}"
    assert ask("/validate", body.encode(), uid="last")["uid"] == "last"


def test_of_two_names_the_last_is_taken(ask: Callable[..., Any], with_object: Callable[[str], bytes]) -> None:
    text = json.dumps(POD).replace('"namespace"', '"name": "b", "namespace"')
    assert ask("/validate", with_object(text))["allowed"] is True


@pytest.mark.parametrize("key", ["kind", "apiVersion", "request", "uid"], ids=lambda key: f"51-{key}")
def test_keys_in_another_case(refused: Callable[..., None], review: Callable[..., Any], key: str) -> None:
    body = json.dumps(review(POD | {"kind": "Secret"}))
    refused(body.replace(f'"{key}"', f'"{key.upper()}"', 1).encode(), 400, "AdmissionReview|request")
