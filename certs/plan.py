"""Decides what is to be done next about a webhook's authorities: one write at a time, so that a crash between two is harmless.

What holds at every moment:

    I1  Whatever signs has stood in the bundle of every webhook configuration for the time of propagation, except at the
        very beginning, when there is nothing that anybody trusts.
    I2  An authority leaves the bundle after it expired, or after everything that it signed did.
    I3  Every bundle holds previous, active and next, in one order, four certificates at most.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from gpugate.certs.authorities import (
    COMMON_NAME,
    MOST_PREVIOUS,
    Authorities,
    adopting,
    first,
    leaving_soon,
    new_authority,
    promoted,
    without_what_left,
)
from gpugate.certs.pki import common_name, expiry, split

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Mapping, Sequence

    from gpugate.certs.authorities import Periods
    from gpugate.certs.pki import KeyPair
    from gpugate.certs.protocols import Registered

# Annotations of the Secret by which people ask; each new value is a new request.
ROTATE: Final = "gpugate.dev/rotate"
DISTRUST: Final = "gpugate.dev/distrust"


@dataclass(frozen=True, slots=True)
class Write:
    """Store these authorities."""

    authorities: Authorities
    reason: str


@dataclass(frozen=True, slots=True)
class Publish:
    """Give these configurations the bundle."""

    configurations: tuple[Registered, ...]
    bundle: bytes


@dataclass(frozen=True, slots=True)
class Rest:
    """Nothing is to be done before then."""

    until: dt.datetime


Step: TypeAlias = Write | Publish | Rest


@dataclass(frozen=True, slots=True)
class Seen:
    """What there is.

    Attributes:
        authorities: what the Secret holds, None if there is nothing in it to go on with.
        live: the configurations that exist.
        requests: the annotations by which people ask for something.
        remembered: what this replica read last; only looked at where the Secret holds nothing.
    """

    authorities: Authorities | None
    live: Sequence[Registered]
    requests: Mapping[str, str]
    remembered: Authorities | None = None


def plan(seen: Seen, periods: Periods, now: dt.datetime) -> Step:
    """Return the next step; after it was taken, look again and ask again."""
    authorities = seen.authorities
    if authorities is None or _expired(authorities.active, now):
        return _begun_anew(seen, periods, now)
    return _mended(seen, authorities, periods, now) or _brought_on(authorities, seen.live, periods, now)


def _mended(seen: Seen, authorities: Authorities, periods: Periods, now: dt.datetime) -> Step | None:
    """Return what brings back what should be so already, or answers a request; None if there is nothing."""
    kept = without_what_left(authorities, now)
    if kept is not authorities:
        return Write(kept, "an authority left the bundle")
    asked = _asked(authorities, seen.requests, periods, now)
    if asked is not None:
        return asked
    bundle = authorities.bundle
    unpublished = lacking(seen.live, bundle)
    if not unpublished:
        return None
    if authorities.published_at and _lacks_next(authorities, unpublished):
        # It has to be trusted for long enough once more, counted from when it is there again.
        return Write(replace(authorities, published_at=None), "the next authority is not published any more")
    return Publish(unpublished, bundle)


def _brought_on(authorities: Authorities, live: Sequence[Registered], periods: Periods, now: dt.datetime) -> Step:
    if authorities.next is None:
        return Write(replace(authorities, next=new_authority(periods, now)), "the next authority was made")
    if authorities.published_at is None:
        if any(each.bundles for each in live):
            return Write(replace(authorities, published_at=now), "the next authority is published")
        # No configuration was made yet, so nobody trusts anything. Looked at again when one appears.
        return Rest(min((expiry(authorities.active.certificate), *_departures(authorities))))
    due = _promotion_due(authorities, authorities.published_at, periods)
    if due <= now:
        return Write(promoted(authorities, periods, now), "the next authority signs from now on")
    return Rest(min((due, *_departures(authorities))))


def lacking(live: Sequence[Registered], bundle: bytes) -> tuple[Registered, ...]:
    """Return the configurations of which an entry has another bundle."""
    return tuple(each for each in live if any(found != bundle for found in each.bundles.values()))


def trusted_everywhere(live: Sequence[Registered]) -> tuple[bytes, ...]:
    """Return the authorities of ours (PEM) that every entry of every configuration trusts.

    One that stands in some entries only was put there by somebody else, or is about to be replaced anyway.
    """
    bundles = [set(_ours(bundle)) for each in live for bundle in each.bundles.values()]
    return tuple(sorted(set.intersection(*bundles))) if bundles else ()


def _begun_anew(seen: Seen, periods: Periods, now: dt.datetime) -> Step:
    trusted = trusted_everywhere(seen.live)
    if seen.authorities is None and seen.remembered and not _expired(seen.remembered.active, now):
        if not seen.live:
            # The webhook is being removed, and its Secret was too.
            return Rest(expiry(seen.remembered.active.certificate))
        return Write(adopting(seen.remembered, trusted, periods, now), "the Secret held no authority any more")
    found = seen.authorities
    if found is not None and found.next is not None and not _expired(found.next, now):
        return Write(promoted(without_what_left(found, now), periods, now), "the active authority expired")
    begun = first(periods, now, trusted)
    # What was asked for before is answered by this.
    return Write(replace(begun, answered=dict(seen.requests)), "there was no authority to go on with")


def _asked(authorities: Authorities, requests: Mapping[str, str], periods: Periods, now: dt.datetime) -> Step | None:
    new = {kind: value for kind, value in requests.items() if authorities.answered.get(kind) != value}
    if not new:
        return None
    asked = replace(authorities, pressing=True, answered={**authorities.answered, **new})
    if DISTRUST not in new:
        return Write(asked, "a rotation was asked for")
    # Whoever has read the Secret has the key of the next one too; it signed nothing, so nobody misses it.
    fresh = new_authority(periods, now)
    # Nor is it known since when somebody reads along.
    previous = leaving_soon(asked.previous, periods, now)
    replaced = replace(asked, distrusted=True, next=fresh, published_at=None, previous=previous)
    return Write(replaced, "every authority is to be replaced")


def _promotion_due(authorities: Authorities, published_at: dt.datetime, periods: Periods) -> dt.datetime:
    end = expiry(authorities.active.certificate)
    due = min(authorities.promoted_at + periods.rotation, end - periods.authority / 3)
    if authorities.pressing:
        due = authorities.promoted_at
    earliest = published_at + periods.propagation
    if len(authorities.previous) >= MOST_PREVIOUS:
        # There is room for another one once the first of them is needed no more.
        earliest = max(earliest, min(each.needed_until for each in authorities.previous))
    return max(due, earliest)


def _expired(pair: KeyPair, now: dt.datetime) -> bool:
    return now >= expiry(pair.certificate)


def _departures(authorities: Authorities) -> tuple[dt.datetime, ...]:
    return tuple(each.leaves_at for each in authorities.previous)


def _lacks_next(authorities: Authorities, configurations: Sequence[Registered]) -> bool:
    if authorities.next is None:
        return False
    wanted = authorities.next.certificate
    return any(wanted not in _ours(bundle) for each in configurations for bundle in each.bundles.values())


def _ours(bundle: bytes) -> tuple[bytes, ...]:
    return tuple(pem for pem in split(bundle) if common_name(pem).startswith(COMMON_NAME))
