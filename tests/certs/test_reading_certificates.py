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
def test_invalid_blocks_are_skipped(noise: bytes) -> None:
    assert split(noise + AUTHORITY.certificate + noise) == [AUTHORITY.certificate]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0, 1)])
def test_equal_certificates_give_equal_bundles(order: tuple[int, ...]) -> None:
    pems = [certificate_authority("ca", now=NOW + days * DAY, lifetime=DAY).certificate for days in range(3)]
    assert join(pems[number] for number in order) == b"".join(pems)


def test_fingerprints_do_not_depend_on_line_endings() -> None:
    (pem,) = split(AUTHORITY.certificate.replace(b"\n", b"\r\n"))
    assert fingerprint(pem) == fingerprint(AUTHORITY.certificate)


def test_the_expiry_of_a_chain_is_that_of_its_first_certificate() -> None:
    leaf = server_certificate(AUTHORITY, ["a.svc"], now=NOW, lifetime=5 * DAY)
    assert expiry(leaf.certificate + AUTHORITY.certificate) == NOW + 5 * DAY
