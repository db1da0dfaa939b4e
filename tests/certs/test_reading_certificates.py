from __future__ import annotations

import datetime as dt

import pytest

from gpugate.certs.pki import (
    certificate_authority,
    common_name,
    expiry,
    fingerprint,
    join,
    server_certificate,
    split,
)

NOW = dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC)
DAY = dt.timedelta(days=1)
AUTHORITY = certificate_authority("ca", now=NOW, lifetime=30 * DAY)


def test_a_bundle_is_split() -> None:
    pems = [certificate_authority(name, now=NOW, lifetime=DAY).certificate for name in "abc"]
    assert [common_name(pem) for pem in split(b"".join(pems))] == ["a", "b", "c"]


@pytest.mark.parametrize(
    "noise",
    [b"", b"junk", b"\xff\x00", b"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n", AUTHORITY.key],
    ids=["nothing", "text", "bytes", "no-certificate", "key"],
)
def test_what_is_no_certificate_is_passed_over(noise: bytes) -> None:
    assert split(noise + AUTHORITY.certificate + noise) == [AUTHORITY.certificate]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0, 1)])
def test_the_same_certificates_are_always_the_same_bundle(order: tuple[int, ...]) -> None:
    pems = [certificate_authority("ca", now=NOW + days * DAY, lifetime=DAY).certificate for days in range(3)]
    assert join(pems[number] for number in order) == b"".join(pems)


def test_line_ends_make_no_difference_to_a_fingerprint() -> None:
    (one,) = split(AUTHORITY.certificate.replace(b"\n", b"\r\n"))
    assert fingerprint(one) == fingerprint(AUTHORITY.certificate)


def test_expiry_is_that_of_the_first_of_a_chain() -> None:
    leaf = server_certificate(AUTHORITY, ["a.svc"], now=NOW, lifetime=5 * DAY)
    assert expiry(leaf.certificate + AUTHORITY.certificate) == NOW + 5 * DAY
