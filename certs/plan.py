"""Plan the next write of a CA rotation, one write at a time, so that a crash between two writes is harmless.

Invariants:

    I1  The active CA was in the bundle of every webhook configuration for the propagation time before it became active,
        except at the first start, when clients do not trust any CA.
    I2  A CA is removed from the bundle after it expired, or after all certificates that it signed expired.
    I3  Every bundle contains previous, active and next in a fixed order, at most four certificates.
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

# Annotations of the Secret that request a rotation; each new value is a new request.
ROTATE: Final = "gpugate.dev/rotate"
DISTRUST: Final = "gpugate.dev/distrust"


@dataclass(frozen=True, slots=True)
class Write:
    """Store these CAs in the Secret."""

    authorities: Authorities
    reason: str


@dataclass(frozen=True, slots=True)
class Publish:
    """Write the bundle to these configurations."""

    configurations: tuple[Registered, ...]
    bundle: bytes


@dataclass(frozen=True, slots=True)
class Rest:
    """Make no write before this time."""

    until: dt.datetime


Step: TypeAlias = Write | Publish | Rest


@dataclass(frozen=True, slots=True)
class Seen:
    """The state of the cluster, as one replica read it.

    Attributes:
        authorities: the CAs of the Secret; None if it contains no usable CA.
        live: the webhook configurations that exist.
        requests: the annotations of the Secret that request a rotation.
        remembered: the CAs that this replica read last; used only if the Secret contains no usable CA.
    """

    authorities: Authorities | None
    live: Sequence[Registered]
    requests: Mapping[str, str]
    remembered: Authorities | None = None


def plan(seen: Seen, periods: Periods, now: dt.datetime) -> Step:
    """Return the next step; after taking it, read the state again and call this again."""
    authorities = seen.authorities
    if authorities is None or _expired(authorities.active, now):
        return _begun_anew(seen, periods, now)
    return _mended(seen, authorities, periods, now) or _brought_on(authorities, seen.live, periods, now)


def _mended(seen: Seen, authorities: Authorities, periods: Periods, now: dt.datetime) -> Step | None:
    """Return the step that restores the intended state or starts a requested rotation; None if neither is needed."""
    kept = without_what_left(authorities, now)
    if kept is not authorities:
        return Write(kept, "removed a previous CA from the bundle")
    asked = _asked(authorities, seen.requests, periods, now)
    if asked is not None:
        return asked
    bundle = authorities.bundle
    unpublished = lacking(seen.live, bundle)
    if not unpublished:
        return None
    if authorities.published_at and _lacks_next(authorities, unpublished):
        # The propagation time starts again when the next CA is published again.
        return Write(replace(authorities, published_at=None), "the next CA is no longer published")
    return Publish(unpublished, bundle)


def _brought_on(authorities: Authorities, live: Sequence[Registered], periods: Periods, now: dt.datetime) -> Step:
    if authorities.next is None:
        return Write(replace(authorities, next=new_authority(periods, now)), "created the next CA")
    if authorities.published_at is None:
        if any(each.bundles for each in live):
            return Write(replace(authorities, published_at=now), "the next CA is published")
        # Without configurations no client trusts a CA yet. A watch triggers the next step when one is created.
        return Rest(min((expiry(authorities.active.certificate), *_departures(authorities))))
    due = _promotion_due(authorities, authorities.published_at, periods)
    if due <= now:
        return Write(promoted(authorities, periods, now), "promoted the next CA to active")
    return Rest(min((due, *_departures(authorities))))


def lacking(live: Sequence[Registered], bundle: bytes) -> tuple[Registered, ...]:
    """Return the configurations that have an entry with a different bundle."""
    return tuple(each for each in live if any(found != bundle for found in each.bundles.values()))


def trusted_everywhere(live: Sequence[Registered]) -> tuple[bytes, ...]:
    """Return gpugate's CAs (PEM) that every entry of every configuration contains.

    A CA in only some of the entries was written by another client, or is about to be replaced.
    """
    bundles = [set(_ours(bundle)) for each in live for bundle in each.bundles.values()]
    return tuple(sorted(set.intersection(*bundles))) if bundles else ()


def _begun_anew(seen: Seen, periods: Periods, now: dt.datetime) -> Step:
    trusted = trusted_everywhere(seen.live)
    if seen.authorities is None and seen.remembered and not _expired(seen.remembered.active, now):
        if not seen.live:
            # The webhook is being uninstalled: Secret and configurations are deleted.
            return Rest(expiry(seen.remembered.active.certificate))
        return Write(adopting(seen.remembered, trusted, periods, now), "restored the CAs that the Secret had lost")
    found = seen.authorities
    if found is not None and found.next is not None and not _expired(found.next, now):
        return Write(promoted(without_what_left(found, now), periods, now), "the active CA expired")
    begun = first(periods, now, trusted)
    # The new CA also fulfils earlier requests.
    return Write(
        replace(begun, answered=dict(seen.requests)), "created the active CA: the Secret contained no usable CA"
    )


def _asked(authorities: Authorities, requests: Mapping[str, str], periods: Periods, now: dt.datetime) -> Step | None:
    new = {kind: value for kind, value in requests.items() if authorities.answered.get(kind) != value}
    if not new:
        return None
    asked = replace(authorities, pressing=True, answered={**authorities.answered, **new})
    if DISTRUST not in new:
        return Write(asked, "a rotation was requested")
    # If the Secret leaked, the key of the next CA leaked too. It did not sign yet, so it can be replaced at once.
    fresh = new_authority(periods, now)
    # Keys of previous CAs may have leaked while those were active.
    previous = leaving_soon(asked.previous, periods, now)
    replaced = replace(asked, distrusted=True, next=fresh, published_at=None, previous=previous)
    return Write(replaced, "replacing all CAs because their keys are distrusted")


def _promotion_due(authorities: Authorities, published_at: dt.datetime, periods: Periods) -> dt.datetime:
    end = expiry(authorities.active.certificate)
    due = min(authorities.promoted_at + periods.rotation, end - periods.authority / 3)
    if authorities.pressing:
        due = authorities.promoted_at
    earliest = published_at + periods.propagation
    if len(authorities.previous) >= MOST_PREVIOUS:
        # Another previous CA fits in the bundle only when one of the others is no longer needed.
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
