"""What a client takes for a server: as crypto/tls decides, by which an API server decides."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st
from oracle.certificate_strategies import NOW, bundles, questions, written
from oracle.process import Oracle, Refused

from gpugate.certs.pki import certificate_authority, server_certificate, split
from gpugate.certs.serving import CertificateError, self_test

if TYPE_CHECKING:
    from gpugate.certs.pki import KeyPair

LIFETIMES = st.integers(1, 90).map(lambda days: dt.timedelta(days=days))


def theirs(oracle: Oracle, pair: KeyPair, bundle: bytes, name: str, now: dt.datetime) -> bool:
    shown = {"chain": pair.certificate.decode(), "bundle": bundle.decode(), "name": name, "time": now.isoformat()}
    try:
        verified: bool = oracle.ask("certificate", shown)
    except Refused:
        return False
    return verified


def ours(pair: KeyPair, bundle: bytes, name: str, now: dt.datetime) -> bool:
    try:
        self_test(pair, bundle, name, now)
    except CertificateError:
        return False
    return True


@given(questions())
def test_a_server_is_trusted_by_the_same_clients(
    oracle: Oracle, question: tuple[KeyPair, bytes, str, dt.datetime]
) -> None:
    assert ours(*question) == theirs(oracle, *question)


@given(written)
def test_the_same_certificates_are_in_a_bundle(oracle: Oracle, bundle: bytes) -> None:
    again = b"".join(split(bundle))
    assert oracle.ask("bundles", {"one": bundle.decode(), "another": again.decode()})["equal"]


@given(st.permutations([f"{label}.gpugate.svc" for label in "abcd"]), st.integers(1, 4), LIFETIMES, bundles)
def test_what_we_make_is_trusted(
    oracle: Oracle, permuted: list[str], count: int, lifetime: dt.timedelta, others: bytes
) -> None:
    asked = permuted[:count]
    authority = certificate_authority("gpugate-ca", now=NOW, lifetime=lifetime, names=asked)
    pair = server_certificate(authority, asked, now=NOW, lifetime=lifetime * 2)
    assert all(theirs(oracle, pair, others + authority.certificate, name, NOW) for name in asked)
