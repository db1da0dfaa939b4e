"""Bodies that say they are something else than JSON in UTF-8."""

from __future__ import annotations

import gzip
from typing import Any

import pytest


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param([], id="none"),
        pytest.param([b"Content-Type: application/json"], id="json"),
        pytest.param([b"Content-Type: application/json; charset=utf-8"], id="utf-8"),
        pytest.param([b'Content-Type: Application/JSON;charset="UTF-8"'], id="quoted-and-upper-case"),
        pytest.param([b"Content-Encoding: identity"], id="identity"),
    ],
)
def test_json(wire: Any, headers: list[bytes]) -> None:
    wire.allowed(wire.post(*headers))


@pytest.mark.parametrize(
    "media_type",
    [
        pytest.param(b"text/plain", id="text"),
        pytest.param(b"application/json; charset=latin1", id="latin-1"),
        pytest.param(b"application/json; charset=utf-16", id="utf-16"),
        pytest.param(b"application/yaml", id="yaml"),
        pytest.param(b"application/vnd.kubernetes.protobuf", id="protobuf"),
        pytest.param(b"application/x-www-form-urlencoded", id="curl-without-a-header"),
        pytest.param(b"multipart/form-data; boundary=x", id="form"),
        pytest.param(b"application/jsonp", id="longer-name"),
        pytest.param(b"\xff\xfe", id="no-text"),
    ],
)
def test_other_media_types(wire: Any, media_type: bytes) -> None:
    wire.refused(415, "Content-Type: application/json", wire.post(b"Content-Type: " + media_type))


@pytest.mark.parametrize(
    "coding", [pytest.param(coding.encode(), id=f"16-{coding}") for coding in ("gzip", "br", "zstd", "deflate, gzip")]
)
def test_compressed_bodies(wire: Any, coding: bytes) -> None:
    compressed = wire.post(b"Content-Encoding: " + coding, body=gzip.compress(wire.good))
    wire.refused(415, "Content-Encoding", compressed)
