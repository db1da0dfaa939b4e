"""The serving certificate of one replica: created by it, kept in memory only, replaced after the new one passes a test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpugate.certs.pki import CertificateError, expiry, fingerprint, server_certificate
from gpugate.certs.plan import find_trusted
from gpugate.certs.serving import self_test

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Sequence

    from gpugate.certs.authorities import Authorities, Periods
    from gpugate.certs.pki import KeyPair
    from gpugate.certs.protocols import LiveConfiguration

UNTRUSTED: Final = "the webhook configurations do not contain the CA of this server's certificate"


@dataclass(frozen=True, slots=True)
class Leaf:
    """A serving certificate: the pair, the fingerprint of its CA, and the time to renew it."""

    pair: KeyPair
    authority: str
    renew_at: dt.datetime


@dataclass(frozen=True, slots=True)
class Choice:
    """The serving certificate to use, and why clients reject it or why it was not renewed; empty without a problem."""

    leaf: Leaf
    trouble: str = ""


def choose_leaf(  # noqa: PLR0913 -- the choice depends on all of them
    current: Leaf | None,
    authorities: Authorities,
    live: Sequence[LiveConfiguration],
    names: Sequence[str],
    periods: Periods,
    now: dt.datetime,
    *,
    jitter: float,
) -> Choice:
    """Keep the serving certificate or create a new one; an untrusted certificate never replaces a trusted one.

    Args:
        current: the certificate in use; None before the first.
        authorities: the CAs that were read last.
        live: the webhook configurations that were read last.
        names: the names and addresses that clients connect to; the self-test uses the first.
        periods: lifetimes and delays.
        now: the current time.
        jitter: from -1 to 1, so that replicas do not renew at the same time.
    """
    active = authorities.active
    bundles = {bundle for configuration in live for bundle in configuration.bundles.values()}
    # Without webhook configurations there is no client that could reject it.
    trusted = not bundles or active.certificate in find_trusted(live)
    if current is not None:
        if not _is_due(current, active, now):
            return Choice(current, "" if trusted else UNTRUSTED)
        if not trusted and now < expiry(current.pair.certificate):
            return Choice(current, UNTRUSTED)
    pair = server_certificate(active, names, now=now, lifetime=periods.leaf)
    # Renewal after two thirds of the usable time leaves time for two more attempts.
    usable = expiry(pair.certificate) - now
    renewed = Leaf(pair, fingerprint(active.certificate), now + usable * (2 / 3 + jitter / 10))
    try:
        for bundle in bundles if trusted and bundles else {active.certificate}:
            self_test(pair, bundle, names[0], now)
    except CertificateError as error:
        return Choice(current or renewed, f"the new certificate failed its self-test: {error}")
    return Choice(renewed, "" if trusted else UNTRUSTED)


def _is_due(current: Leaf, active: KeyPair, now: dt.datetime) -> bool:
    return now >= current.renew_at or current.authority != fingerprint(active.certificate)
