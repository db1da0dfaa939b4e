"""The certificate authorities (CAs) of a webhook, their roles over time, and the Secret that stores them.

A new CA is published long before it signs, and stays published while a certificate that it signed is in use. Therefore
no change has to reach all clients at once. A CA has one of three roles:

    next       published in the `caBundle` of the webhook configurations, does not sign yet
    active     signs the serving certificates of the replicas
    previous   signed earlier; published until all certificates that it signed are replaced; its key is deleted
"""

from __future__ import annotations

import datetime as dt
import json
import secrets
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from gpugate.certs.checks import checked_authority
from gpugate.certs.pki import CertificateError, KeyPair, certificate_authority, expiry, fingerprint, joined, split

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

COMMON_NAME: Final = "gpugate-ca-"
# Together with active and next, a bundle has at most four CAs. The API server searches all of them in each handshake.
MOST_PREVIOUS: Final = 2


@dataclass(frozen=True, slots=True)
class Periods:
    """Lifetimes and delays of certificates.

    Attributes:
        authority: the lifetime of a CA; three times `rotation`, so that it has each of the three roles equally long.
        rotation: how long a CA is active.
        leaf: the lifetime of a serving certificate; it is renewed after two thirds of it.
        propagation: how long a CA is published in both configurations before it signs, so that every API server
            trusts it by then; API servers watch the configurations and see a change within seconds.
    """

    authority: dt.timedelta = dt.timedelta(days=90)
    rotation: dt.timedelta = dt.timedelta(days=30)
    leaf: dt.timedelta = dt.timedelta(hours=24)
    propagation: dt.timedelta = dt.timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Previous:
    """A CA that no longer signs.

    Attributes:
        certificate: PEM.
        needed_until: when all certificates that it signed have expired; it may be removed from the bundle then.
        leaves_at: when it is removed from the bundle in any case.
    """

    certificate: bytes
    needed_until: dt.datetime
    leaves_at: dt.datetime


@dataclass(frozen=True, slots=True)
class Authorities:
    """The CAs of one Secret.

    Attributes:
        active: the CA that signs.
        promoted_at: when it became active.
        next: the CA that will sign; None before it is created.
        published_at: since when every webhook configuration contains `next`; None while it is not published.
        previous: the CAs that signed earlier, oldest first.
        pressing: a rotation was requested: promote `next` as soon as it has propagated.
        distrusted: the key of the active CA is compromised.
        answered: the kind of a request -> the last value that was processed.
    """

    active: KeyPair
    promoted_at: dt.datetime
    next: KeyPair | None = None
    published_at: dt.datetime | None = None
    previous: tuple[Previous, ...] = ()
    pressing: bool = False
    distrusted: bool = False
    answered: Mapping[str, str] = field(default_factory=dict)

    @property
    def certificates(self) -> tuple[bytes, ...]:
        """Every CA certificate that clients must trust, each as PEM."""
        following = () if self.next is None else (self.next.certificate,)
        return (*(each.certificate for each in self.previous), self.active.certificate, *following)

    @property
    def bundle(self) -> bytes:
        """The content of every `caBundle`."""
        return joined(self.certificates)


def first(periods: Periods, now: dt.datetime, trusted: Iterable[bytes] = ()) -> Authorities:
    """Create CAs for a Secret without usable CAs.

    `trusted` are CA certificates that clients trust already. Replicas may serve certificates that these signed, so they
    remain in the bundle until such certificates have expired.
    """
    started = Authorities(new_authority(periods, now), now)
    return replace(started, previous=_adopted(started, trusted, periods, now))


def adopting(authorities: Authorities, trusted: Iterable[bytes], periods: Periods, now: dt.datetime) -> Authorities:
    """Add the CA certificates that clients trust as previous CAs, because another replica may have created them."""
    return replace(authorities, previous=_adopted(authorities, trusted, periods, now))


def promoted(authorities: Authorities, periods: Periods, now: dt.datetime) -> Authorities:
    """Make the next CA active, and the active one previous.

    Raises:
        ValueError: there is no next CA.
    """
    if authorities.next is None:
        raise ValueError("there is no next CA to promote")
    old = authorities.active.certificate
    if authorities.distrusted:
        # Replicas renew their certificates within seconds. A replica that does not becomes untrusted.
        retired = Previous(old, now + periods.propagation, now + periods.propagation)
    else:
        # It remains until it expires, for replicas that could not read the Secret for a long time.
        retired = Previous(old, now + periods.leaf + periods.propagation, expiry(old))
    kept = authorities.previous
    if len(kept) >= MOST_PREVIOUS:
        kept = tuple(each for each in kept if now < each.needed_until)
    return Authorities(authorities.next, now, previous=(*kept, retired), answered=authorities.answered)


def leaving_soon(previous: Iterable[Previous], periods: Periods, now: dt.datetime) -> tuple[Previous, ...]:
    """Shorten the time that previous CAs remain trusted to the time that replicas need to renew."""
    soon = now + periods.propagation
    return tuple(Previous(p.certificate, min(p.needed_until, soon), min(p.leaves_at, soon)) for p in previous)


def without_what_left(authorities: Authorities, now: dt.datetime) -> Authorities:
    """Remove the previous CAs whose time in the bundle is over."""
    staying = tuple(each for each in authorities.previous if now < each.leaves_at)
    return authorities if staying == authorities.previous else replace(authorities, previous=staying)


def new_authority(periods: Periods, now: dt.datetime) -> KeyPair:
    """Create a CA without name constraints, because only the configurations of this webhook trust it."""
    # The names are unique, because a client looks up an issuer by name first.
    name = f"{COMMON_NAME}{now:%Y%m%d}-{secrets.token_hex(4)}"
    return certificate_authority(name, now=now, lifetime=periods.authority)


def _adopted(
    authorities: Authorities, trusted: Iterable[bytes], periods: Periods, now: dt.datetime
) -> tuple[Previous, ...]:
    known = set(authorities.certificates)
    needed_until = now + periods.leaf + periods.propagation
    found = [Previous(pem, needed_until, expiry(pem)) for pem in trusted if pem not in known and now < expiry(pem)]
    youngest = sorted(found, key=lambda each: each.leaves_at)[-MOST_PREVIOUS:]
    return (*authorities.previous, *youngest)[-MOST_PREVIOUS:]


_FORMAT: Final = 1
_STATE: Final = "state.json"


class CorruptSecretError(ValueError):
    """The Secret contains no usable CA; the text names the key of the Secret and the cause."""


def written(authorities: Authorities) -> dict[str, bytes]:
    """Encode CAs as the data of the Secret."""
    state = {
        "format": _FORMAT,
        "promotedAt": authorities.promoted_at.isoformat(),
        "publishedAt": authorities.published_at.isoformat() if authorities.published_at else None,
        "previous": {fingerprint(each.certificate): _until(each) for each in authorities.previous},
        "pressing": authorities.pressing,
        "distrusted": authorities.distrusted,
        "answered": dict(authorities.answered),
    }
    data = {
        _STATE: json.dumps(state, indent=1).encode("ascii"),
        "active.crt": authorities.active.certificate,
        "active.key": authorities.active.key,
        "previous.crt": b"".join(p.certificate for p in authorities.previous),
    }
    if authorities.next is not None:
        data |= {"next.crt": authorities.next.certificate, "next.key": authorities.next.key}
    return data


def read(data: Mapping[str, bytes]) -> Authorities:
    """Decode the data of the Secret; expiry is not checked.

    An unusable next CA is omitted, because another can be created. Unusable previous CAs are omitted too.

    Raises:
        CorruptSecretError: it contains no usable active CA, or gpugate did not write the state.
    """
    active = _pair(data, "active")
    state = _state(data)
    try:
        following: KeyPair | None = _pair(data, "next")
    except CorruptSecretError:
        following = None
    try:
        return Authorities(
            active=active,
            promoted_at=_time(state["promotedAt"]),
            next=following,
            published_at=_time(state["publishedAt"]) if following and state["publishedAt"] else None,
            previous=_previous(data, state["previous"]),
            pressing=bool(state["pressing"]),
            distrusted=bool(state["distrusted"]),
            answered={str(kind): str(value) for kind, value in state["answered"].items()},
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CorruptSecretError(f"{_STATE} has unexpected content ({type(error).__name__})") from None


def _pair(data: Mapping[str, bytes], which: str) -> KeyPair:
    missing = [key for key in (f"{which}.crt", f"{which}.key") if not data.get(key)]
    if missing:
        raise CorruptSecretError(f"{' and '.join(missing)}: missing")
    pair = KeyPair(data[f"{which}.crt"], data[f"{which}.key"])
    try:
        return checked_authority(pair)
    except CertificateError as error:
        raise CorruptSecretError(f"{which}.crt, {which}.key: {error}") from None


def _state(data: Mapping[str, bytes]) -> dict[str, Any]:  # Any: the JSON edge
    try:
        found = json.loads(data.get(_STATE, b""))
    except ValueError:
        raise CorruptSecretError(f"{_STATE} is not valid JSON") from None
    if not isinstance(found, dict) or found.get("format") != _FORMAT:
        raise CorruptSecretError(
            f"{_STATE} has an unsupported format (supported: {_FORMAT}): was it written by a newer gpugate?"
        )
    return found


def _until(previous: Previous) -> dict[str, str]:
    return {"neededUntil": previous.needed_until.isoformat(), "leavesAt": previous.leaves_at.isoformat()}


def _previous(data: Mapping[str, bytes], until: Mapping[str, Mapping[str, str]]) -> tuple[Previous, ...]:
    found = {fingerprint(pem): pem for pem in split(data.get("previous.crt", b""))}
    # The state lists them oldest first.
    return tuple(
        Previous(found[each], _time(times["neededUntil"]), _time(times["leavesAt"]))
        for each, times in until.items()
        if each in found
    )


def _time(text: str) -> dt.datetime:
    found = dt.datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError("the time has no time zone")
    return found
