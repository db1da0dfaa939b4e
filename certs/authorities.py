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

from gpugate.certs.checks import validate_authority
from gpugate.certs.pki import CertificateError, KeyPair, certificate_authority, expiry, fingerprint, join, split

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

COMMON_NAME: Final = "gpugate-ca-"
# Together with active and next, a bundle has at most four CAs. The API server searches all of them in each handshake.
MAX_PREVIOUS: Final = 2


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
        remove_at: when it is removed from the bundle in any case.
    """

    certificate: bytes
    needed_until: dt.datetime
    remove_at: dt.datetime


@dataclass(frozen=True, slots=True)
class Authorities:
    """The CAs of one Secret.

    Attributes:
        active: the CA that signs.
        promoted_at: when it became active.
        next: the CA that will sign; None before it is created.
        published_at: since when every webhook configuration contains `next`; None while it is not published.
        previous: the CAs that signed earlier, oldest first.
        rotation_requested: whether to promote `next` as soon as it has propagated.
        distrusted: the key of the active CA is compromised.
        answered: the kind of a request -> the last value that was processed.
    """

    active: KeyPair
    promoted_at: dt.datetime
    next: KeyPair | None = None
    published_at: dt.datetime | None = None
    previous: tuple[Previous, ...] = ()
    rotation_requested: bool = False
    distrusted: bool = False
    answered: Mapping[str, str] = field(default_factory=dict)

    @property
    def certificates(self) -> tuple[bytes, ...]:
        """Every CA certificate that clients must trust, each as PEM."""
        next_certificates = () if self.next is None else (self.next.certificate,)
        return (*(previous.certificate for previous in self.previous), self.active.certificate, *next_certificates)

    @property
    def bundle(self) -> bytes:
        """The content of every `caBundle`."""
        return join(self.certificates)


def create_authorities(periods: Periods, now: dt.datetime, trusted: Iterable[bytes] = ()) -> Authorities:
    """Create CAs for a Secret without usable CAs.

    `trusted` are CA certificates that clients trust already. Replicas may serve certificates that these signed, so they
    remain in the bundle until such certificates have expired.
    """
    started = Authorities(create_authority(periods, now), now)
    return replace(started, previous=_adopt(started, trusted, periods, now))


def adopt_trusted(
    authorities: Authorities, trusted: Iterable[bytes], periods: Periods, now: dt.datetime
) -> Authorities:
    """Add the CA certificates that clients trust as previous CAs, because another replica may have created them."""
    return replace(authorities, previous=_adopt(authorities, trusted, periods, now))


def promote_next(authorities: Authorities, periods: Periods, now: dt.datetime) -> Authorities:
    """Make the next CA active, and the active one previous.

    Raises:
        ValueError: no next CA.
    """
    if authorities.next is None:
        raise ValueError("no next CA to promote")
    old = authorities.active.certificate
    if authorities.distrusted:
        # Replicas renew their certificates within seconds. A replica that does not renew becomes untrusted.
        retired = Previous(old, now + periods.propagation, now + periods.propagation)
    else:
        # It remains until it expires, for replicas that could not read the Secret for a long time.
        retired = Previous(old, now + periods.leaf + periods.propagation, expiry(old))
    remaining = authorities.previous
    if len(remaining) >= MAX_PREVIOUS:
        remaining = tuple(previous for previous in remaining if now < previous.needed_until)
    return Authorities(authorities.next, now, previous=(*remaining, retired), answered=authorities.answered)


def shorten_previous(previous: Iterable[Previous], periods: Periods, now: dt.datetime) -> tuple[Previous, ...]:
    """Shorten the time that previous CAs remain trusted to the time that replicas need to renew."""
    soon = now + periods.propagation
    return tuple(Previous(p.certificate, min(p.needed_until, soon), min(p.remove_at, soon)) for p in previous)


def remove_due_previous(authorities: Authorities, now: dt.datetime) -> Authorities:
    """Remove the previous CAs whose time in the bundle is over."""
    remaining = tuple(previous for previous in authorities.previous if now < previous.remove_at)
    return authorities if remaining == authorities.previous else replace(authorities, previous=remaining)


def create_authority(periods: Periods, now: dt.datetime) -> KeyPair:
    """Create a CA without name constraints, because only the configurations of this webhook trust it."""
    # The names are unique, because a client looks up an issuer by name first.
    name = f"{COMMON_NAME}{now:%Y%m%d}-{secrets.token_hex(4)}"
    return certificate_authority(name, now=now, lifetime=periods.authority)


def _adopt(
    authorities: Authorities, trusted: Iterable[bytes], periods: Periods, now: dt.datetime
) -> tuple[Previous, ...]:
    known = set(authorities.certificates)
    needed_until = now + periods.leaf + periods.propagation
    adopted = [Previous(pem, needed_until, expiry(pem)) for pem in trusted if pem not in known and now < expiry(pem)]
    youngest = sorted(adopted, key=lambda previous: previous.remove_at)[-MAX_PREVIOUS:]
    return (*authorities.previous, *youngest)[-MAX_PREVIOUS:]


_FORMAT: Final = 1
_STATE: Final = "state.json"


class CorruptSecretError(ValueError):
    """The Secret contains no usable CA; the text names the key of the Secret and the cause."""


def encode(authorities: Authorities) -> dict[str, bytes]:
    """Encode CAs as the data of the Secret."""
    state = {
        "format": _FORMAT,
        "promotedAt": authorities.promoted_at.isoformat(),
        "publishedAt": authorities.published_at.isoformat() if authorities.published_at else None,
        "previous": {fingerprint(previous.certificate): _encode_times(previous) for previous in authorities.previous},
        "pressing": authorities.rotation_requested,
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


def decode(data: Mapping[str, bytes]) -> Authorities:
    """Decode the data of the Secret; expiry is not checked.

    An unusable next CA is omitted, because another can be created. Unusable previous CAs are omitted too.

    Raises:
        CorruptSecretError: it contains no usable active CA, or gpugate did not write the state.
    """
    active = _decode_pair(data, "active")
    state = _decode_state(data)
    try:
        next_pair: KeyPair | None = _decode_pair(data, "next")
    except CorruptSecretError:
        next_pair = None
    try:
        return Authorities(
            active=active,
            promoted_at=_parse_time(state["promotedAt"]),
            next=next_pair,
            published_at=_parse_time(state["publishedAt"]) if next_pair and state["publishedAt"] else None,
            previous=_decode_previous(data, state["previous"]),
            rotation_requested=bool(state["pressing"]),
            distrusted=bool(state["distrusted"]),
            answered={str(kind): str(value) for kind, value in state["answered"].items()},
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CorruptSecretError(f"{_STATE} has unexpected content ({type(error).__name__})") from None


def _decode_pair(data: Mapping[str, bytes], role: str) -> KeyPair:
    missing = [key for key in (f"{role}.crt", f"{role}.key") if not data.get(key)]
    if missing:
        raise CorruptSecretError(f"{' and '.join(missing)}: missing")
    pair = KeyPair(data[f"{role}.crt"], data[f"{role}.key"])
    try:
        return validate_authority(pair)
    except CertificateError as error:
        raise CorruptSecretError(f"{role}.crt, {role}.key: {error}") from None


def _decode_state(data: Mapping[str, bytes]) -> dict[str, Any]:  # Any: the JSON edge
    try:
        state = json.loads(data.get(_STATE, b""))
    # RecursionError: 1 MiB of brackets in a Secret.
    except (ValueError, RecursionError):
        raise CorruptSecretError(f"{_STATE} is not valid JSON") from None
    if not isinstance(state, dict) or state.get("format") != _FORMAT:
        raise CorruptSecretError(
            f"{_STATE} has an unsupported format (supported: {_FORMAT}): was it written by a newer gpugate?"
        )
    return state


def _encode_times(previous: Previous) -> dict[str, str]:
    return {"neededUntil": previous.needed_until.isoformat(), "leavesAt": previous.remove_at.isoformat()}


def _decode_previous(data: Mapping[str, bytes], until: Mapping[str, Mapping[str, str]]) -> tuple[Previous, ...]:
    certificates = {fingerprint(pem): pem for pem in split(data.get("previous.crt", b""))}
    # The state lists them oldest first.
    return tuple(
        Previous(certificates[digest], _parse_time(times["neededUntil"]), _parse_time(times["leavesAt"]))
        for digest, times in until.items()
        if digest in certificates
    )


def _parse_time(text: str) -> dt.datetime:
    time = dt.datetime.fromisoformat(text)
    if time.tzinfo is None:
        raise ValueError("the time has no time zone")
    return time
