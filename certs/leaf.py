"""The certificate that one replica serves with: made by it, kept in memory only, changed when the new one is known to work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from gpugate.certs.pki import CertificateError, expiry, fingerprint, server_certificate
from gpugate.certs.plan import trusted_everywhere
from gpugate.certs.serving import self_test

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Sequence

    from gpugate.certs.authorities import Authorities, Periods
    from gpugate.certs.pki import KeyPair
    from gpugate.certs.protocols import Registered

UNTRUSTED: Final = "the webhook configurations do not hold the authority of this server's certificate"


@dataclass(frozen=True, slots=True)
class Leaf:
    """A server certificate: the pair, the fingerprint of what signed it, and when the next is due."""

    pair: KeyPair
    authority: str
    renew_at: dt.datetime


@dataclass(frozen=True, slots=True)
class Choice:
    """What to serve with from now on, and what is wrong with that; an empty text if nothing is."""

    leaf: Leaf
    trouble: str = ""


def choose(  # noqa: PLR0913 -- what a choice depends on
    current: Leaf | None,
    authorities: Authorities,
    live: Sequence[Registered],
    names: Sequence[str],
    periods: Periods,
    now: dt.datetime,
    *,
    jitter: float,
) -> Choice:
    """Keep the certificate, or make another; one that clients trust is never given up for one that they do not.

    Args:
        current: what is served with now.
        authorities: what the Secret holds, or held when it was read last.
        live: the configurations that exist, as they are or were.
        names: what clients reach the server by; the first is what the test is about.
        periods: how long things last.
        now: the time.
        jitter: from -1 to 1, so that replicas do not renew at once.
    """
    active = authorities.active
    bundles = {bundle for each in live for bundle in each.bundles.values()}
    # Where nothing is registered there is nobody to distrust it.
    trusted = not bundles or active.certificate in trusted_everywhere(live)
    if current is not None:
        if not _due(current, active, now):
            return Choice(current, "" if trusted else UNTRUSTED)
        if not trusted and now < expiry(current.pair.certificate):
            return Choice(current, UNTRUSTED)
    pair = server_certificate(active, names, now=now, lifetime=periods.leaf)
    # Two thirds of what it can be used for, so that two more attempts have time.
    usable = expiry(pair.certificate) - now
    made = Leaf(pair, fingerprint(active.certificate), now + usable * (2 / 3 + jitter / 10))
    try:
        for bundle in bundles if trusted and bundles else {active.certificate}:
            self_test(pair, bundle, names[0], now)
    except CertificateError as error:
        return Choice(current or made, f"a new certificate did not pass its test: {error}")
    return Choice(made, "" if trusted else UNTRUSTED)


def _due(current: Leaf, active: KeyPair, now: dt.datetime) -> bool:
    return now >= current.renew_at or current.authority != fingerprint(active.certificate)
