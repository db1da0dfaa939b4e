"""The certificate authorities of a webhook, their roles over time, and the Secret that stores them.

A new authority is published long before it signs, and stays published until nothing that it signed is in use, so at no
moment does anything have to propagate quickly:

    next       published in the `caBundle` of the webhook configurations, signs nothing yet
    active     signs the certificates that replicas serve with
    previous   signed before; published until nobody can serve with what it signed; its key is gone
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
# With active and next at most four in a bundle: each handshake of the API server looks through all of them.
MOST_PREVIOUS: Final = 2


@dataclass(frozen=True, slots=True)
class Periods:
    """How long things last.

    Attributes:
        authority: the life of an authority; three times `rotation`, so that it is next, active and previous as long.
        rotation: for how long one is active.
        leaf: the life of a server's certificate; it is made anew after two thirds.
        propagation: how long an authority stands in both configurations before it signs, so that every API server
            trusts it by then; API servers hear of a new configuration by a watch, within seconds.
    """

    authority: dt.timedelta = dt.timedelta(days=90)
    rotation: dt.timedelta = dt.timedelta(days=30)
    leaf: dt.timedelta = dt.timedelta(hours=24)
    propagation: dt.timedelta = dt.timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Previous:
    """An authority that signs no longer.

    Attributes:
        certificate: PEM.
        needed_until: when everything that it signed will have expired; it may leave the bundle then.
        leaves_at: when it leaves the bundle in any case.
    """

    certificate: bytes
    needed_until: dt.datetime
    leaves_at: dt.datetime


@dataclass(frozen=True, slots=True)
class Authorities:
    """What one Secret holds.

    Attributes:
        active: what signs.
        promoted_at: since when it does.
        next: what will sign, where it has been made already.
        published_at: since when `next` has stood in every webhook configuration, as far as it is known to.
        previous: what signed before, oldest first.
        pressing: somebody asked for the next one to be promoted as soon as it may be.
        distrusted: the key of the active one is known to somebody else.
        answered: the kind of a request -> the value that was answered last.
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
        """Every authority that clients are to trust, PEM each."""
        following = () if self.next is None else (self.next.certificate,)
        return (*(each.certificate for each in self.previous), self.active.certificate, *following)

    @property
    def bundle(self) -> bytes:
        """The content of every `caBundle`."""
        return joined(self.certificates)


def first(periods: Periods, now: dt.datetime, trusted: Iterable[bytes] = ()) -> Authorities:
    """Make authorities where there are none to go on with.

    `trusted` are certificates that clients trust already; replicas may serve with what these signed, so they stay for as
    long as that can last.
    """
    started = Authorities(new_authority(periods, now), now)
    return replace(started, previous=_adopted(started, trusted, periods, now))


def adopting(authorities: Authorities, trusted: Iterable[bytes], periods: Periods, now: dt.datetime) -> Authorities:
    """Return the same, with what clients trust besides; for authorities that may have been changed by someone since."""
    return replace(authorities, previous=_adopted(authorities, trusted, periods, now))


def promoted(authorities: Authorities, periods: Periods, now: dt.datetime) -> Authorities:
    """Let the next authority sign from now on.

    Raises:
        ValueError: there is none.
    """
    if authorities.next is None:
        raise ValueError("there is no next authority to promote")
    old = authorities.active.certificate
    if authorities.distrusted:
        # Replicas change within seconds; one that does not is given up.
        retired = Previous(old, now + periods.propagation, now + periods.propagation)
    else:
        # It stays as long as it can, for replicas that have not heard of the Secret for long.
        retired = Previous(old, now + periods.leaf + periods.propagation, expiry(old))
    kept = authorities.previous
    if len(kept) >= MOST_PREVIOUS:
        kept = tuple(each for each in kept if now < each.needed_until)
    return Authorities(authorities.next, now, previous=(*kept, retired), answered=authorities.answered)


def leaving_soon(previous: Iterable[Previous], periods: Periods, now: dt.datetime) -> tuple[Previous, ...]:
    """Return authorities that signed before, none of which stays longer than replicas take to change."""
    soon = now + periods.propagation
    return tuple(Previous(p.certificate, min(p.needed_until, soon), min(p.leaves_at, soon)) for p in previous)


def without_what_left(authorities: Authorities, now: dt.datetime) -> Authorities:
    """Return the same without previous authorities that are to leave by now."""
    staying = tuple(each for each in authorities.previous if now < each.leaves_at)
    return authorities if staying == authorities.previous else replace(authorities, previous=staying)


def new_authority(periods: Periods, now: dt.datetime) -> KeyPair:
    """Make an authority; it is trusted by this webhook's configurations only, so what it may sign needs no constraint."""
    # No two have the same name: a client looks for an issuer by its name first.
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
    """The Secret holds no authority to go on with; the text says which key of it, and what is wrong."""


def written(authorities: Authorities) -> dict[str, bytes]:
    """Return the content of the Secret."""
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
    """Read the content of the Secret; whether an authority expired is not looked at.

    A next authority that cannot be used is left out, because another can be made; so is what signed before.

    Raises:
        CorruptSecretError: there is no active authority in it that can be used, or the state is not ours.
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
        raise CorruptSecretError(f"{_STATE} is not as gpugate writes it ({type(error).__name__})") from None


def _pair(data: Mapping[str, bytes], which: str) -> KeyPair:
    missing = [key for key in (f"{which}.crt", f"{which}.key") if not data.get(key)]
    if missing:
        raise CorruptSecretError(f"{' and '.join(missing)}: not there")
    pair = KeyPair(data[f"{which}.crt"], data[f"{which}.key"])
    try:
        return checked_authority(pair)
    except CertificateError as error:
        raise CorruptSecretError(f"{which}.crt, {which}.key: {error}") from None


def _state(data: Mapping[str, bytes]) -> dict[str, Any]:  # Any: the JSON edge
    try:
        found = json.loads(data.get(_STATE, b""))
    except ValueError:
        raise CorruptSecretError(f"{_STATE} is no JSON") from None
    if not isinstance(found, dict) or found.get("format") != _FORMAT:
        raise CorruptSecretError(f"{_STATE} has another format than {_FORMAT}: was it written by a newer gpugate?")
    return found


def _until(previous: Previous) -> dict[str, str]:
    return {"neededUntil": previous.needed_until.isoformat(), "leavesAt": previous.leaves_at.isoformat()}


def _previous(data: Mapping[str, bytes], until: Mapping[str, Mapping[str, str]]) -> tuple[Previous, ...]:
    found = {fingerprint(pem): pem for pem in split(data.get("previous.crt", b""))}
    # In the order of the state: oldest first.
    return tuple(
        Previous(found[each], _time(times["neededUntil"]), _time(times["leavesAt"]))
        for each, times in until.items()
        if each in found
    )


def _time(text: str) -> dt.datetime:
    found = dt.datetime.fromisoformat(text)
    if found.tzinfo is None:
        raise ValueError("a time without a zone")
    return found
