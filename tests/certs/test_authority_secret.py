"""Test the encoding of CAs in the Secret."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from memory_cluster import START

from gpugate.certs.authorities import COMMON_NAME, Authorities, CorruptSecretError, Periods, Previous, decode, encode
from gpugate.certs.pki import KeyPair, certificate_authority, expiry

PERIODS = Periods()
LATER = START + PERIODS.leaf


def authority(name: str) -> KeyPair:
    return certificate_authority(f"{COMMON_NAME}{name}", now=START, lifetime=PERIODS.authority)


OLD = tuple(authority(name).certificate for name in ("oldest", "older"))
FULL = Authorities(
    authority("active"),
    START,
    authority("next"),
    published_at=LATER,
    previous=tuple(Previous(pem, LATER, expiry(pem)) for pem in OLD),
    rotation_requested=True,
    distrusted=True,
    answered={"gpugate.dev/rotate": "1"},
)
LEAST = Authorities(FULL.active, START)


@pytest.mark.parametrize(
    "authorities",
    [
        FULL,
        LEAST,
        replace(FULL, rotation_requested=False),
        replace(FULL, distrusted=False),
        replace(FULL, published_at=None),
        replace(FULL, previous=FULL.previous[::-1]),
    ],
    ids=[
        "all fields",
        "only the active one",
        "no rotation requested",
        "not distrusted",
        "not published",
        "another order",
    ],
)
def test_encoding_and_decoding_round_trips(authorities: Authorities) -> None:
    assert decode(encode(authorities)) == authorities


def test_the_secret_has_a_key_for_each_file() -> None:
    data = encode(FULL)
    assert set(data) == {"state.json", "active.crt", "active.key", "next.crt", "next.key", "previous.crt"}
    assert data["previous.crt"] == b"".join(OLD)
    assert set(encode(LEAST)) == {"state.json", "active.crt", "active.key", "previous.crt"}


STATE = json.loads(encode(FULL)["state.json"])


def test_the_state_has_format_1() -> None:
    assert STATE["format"] == 1
    assert set(STATE) == {"format", "promotedAt", "publishedAt", "previous", "pressing", "distrusted", "answered"}


def changed_state(**changed: object) -> dict[str, bytes]:
    return {"state.json": json.dumps(STATE | changed).encode()}


BAD_TIME = {
    fingerprint: times | {"leavesAt": "2026-03-01T00:00:00"} for fingerprint, times in STATE["previous"].items()
}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"active.crt": b""}, "active.crt: missing"),
        ({"active.crt": b"", "active.key": b""}, "active.crt and active.key: missing"),
        ({"active.crt": b"junk"}, "active.crt, active.key: certificate: not PEM"),
        ({"state.json": b""}, "state.json is not valid JSON"),
        ({"state.json": b"{"}, "state.json is not valid JSON"),
        ({"state.json": b"[" * 100_000}, "state.json is not valid JSON"),
        (
            {"state.json": b"[]"},
            "state.json has an unsupported format (supported: 1): was it written by a newer gpugate?",
        ),
        ({"state.json": b"{}"}, "state.json has an unsupported format (supported: 1)"),
        (changed_state(format=2), "state.json has an unsupported format (supported: 1)"),
        (changed_state(promotedAt="2026-03-01T00:00:00"), "state.json has unexpected content (ValueError)"),
        (changed_state(promotedAt=1), "state.json has unexpected content (TypeError)"),
        (changed_state(previous=BAD_TIME), "state.json has unexpected content (ValueError)"),
        (changed_state(answered=[]), "state.json has unexpected content (AttributeError)"),
        ({"state.json": b'{"format": 1}'}, "state.json has unexpected content (KeyError)"),
    ],
)
def test_errors_name_the_corrupt_key(changed: dict[str, bytes], message: str) -> None:
    with pytest.raises(CorruptSecretError) as raised:
        decode(encode(FULL) | changed)
    assert str(raised.value).startswith(message)


@pytest.mark.parametrize(
    "changed",
    [{"next.crt": b""}, {"next.key": b"junk"}, {"next.crt": FULL.active.certificate}],
    ids=["no certificate", "an invalid key", "another certificate"],
)
def test_an_unusable_next_authority_is_omitted(changed: dict[str, bytes]) -> None:
    assert decode(encode(FULL) | changed) == replace(FULL, next=None, published_at=None)


@pytest.mark.parametrize(
    ("pem", "remaining"),
    [(b"", ()), (OLD[0] + b"junk", (FULL.previous[0],)), (OLD[1], (FULL.previous[1],))],
    ids=["all", "the second", "the first"],
)
def test_missing_previous_certificates_are_omitted(pem: bytes, remaining: tuple[Previous, ...]) -> None:
    assert decode(encode(FULL) | {"previous.crt": pem}) == replace(FULL, previous=remaining)
