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
    MAX_PREVIOUS,
    Authorities,
    adopt_trusted,
    create_authorities,
    create_authority,
    promote_next,
    remove_due_previous,
    shorten_previous,
)
from gpugate.certs.pki import common_name, expiry, split

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Mapping, Sequence

    from gpugate.certs.authorities import Periods
    from gpugate.certs.pki import KeyPair
    from gpugate.certs.protocols import LiveConfiguration

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

    configurations: tuple[LiveConfiguration, ...]
    bundle: bytes


@dataclass(frozen=True, slots=True)
class Wait:
    """Make no write before this time."""

    until: dt.datetime


Step: TypeAlias = Write | Publish | Wait


@dataclass(frozen=True, slots=True)
class Observed:
    """The state of the cluster, as one replica read it.

    Attributes:
        authorities: the CAs of the Secret; None if it contains no usable CA.
        live: the webhook configurations that exist.
        requests: the annotations of the Secret that request a rotation.
        remembered: the CAs that this replica read last; used only if the Secret contains no usable CA.
    """

    authorities: Authorities | None
    live: Sequence[LiveConfiguration]
    requests: Mapping[str, str]
    remembered: Authorities | None = None


def plan(observed: Observed, periods: Periods, now: dt.datetime) -> Step:
    """Return the next step; after taking it, read the state again and call this again."""
    authorities = observed.authorities
    if authorities is None or _is_expired(authorities.active, now):
        return _plan_restart(observed, periods, now)
    return _plan_repair(observed, authorities, periods, now) or _plan_rotation(authorities, observed.live, periods, now)


def _plan_repair(observed: Observed, authorities: Authorities, periods: Periods, now: dt.datetime) -> Step | None:
    """Return the step that restores the intended state or starts a requested rotation; None if neither is needed."""
    remaining = remove_due_previous(authorities, now)
    if remaining is not authorities:
        return Write(remaining, "removed a previous CA from the bundle")
    requested = _plan_request(authorities, observed.requests, periods, now)
    if requested is not None:
        return requested
    bundle = authorities.bundle
    unpublished = find_outdated(observed.live, bundle)
    if not unpublished:
        return None
    if authorities.published_at and _is_next_missing(authorities, unpublished):
        # The propagation time starts again when the next CA is published again.
        return Write(replace(authorities, published_at=None), "the next CA is no longer published")
    return Publish(unpublished, bundle)


def _plan_rotation(
    authorities: Authorities, live: Sequence[LiveConfiguration], periods: Periods, now: dt.datetime
) -> Step:
    if authorities.next is None:
        return Write(replace(authorities, next=create_authority(periods, now)), "created the next CA")
    if authorities.published_at is None:
        if any(configuration.bundles for configuration in live):
            return Write(replace(authorities, published_at=now), "the next CA is published")
        # Without configurations no client trusts a CA yet. A watch triggers the next step when one is created.
        return Wait(min((expiry(authorities.active.certificate), *_removal_times(authorities))))
    due = _promotion_due(authorities, authorities.published_at, periods)
    if due <= now:
        return Write(promote_next(authorities, periods, now), "promoted the next CA to active")
    return Wait(min((due, *_removal_times(authorities))))


def find_outdated(live: Sequence[LiveConfiguration], bundle: bytes) -> tuple[LiveConfiguration, ...]:
    """Return the configurations that have an entry with a different bundle."""
    return tuple(
        configuration
        for configuration in live
        if any(published != bundle for published in configuration.bundles.values())
    )


def find_trusted(live: Sequence[LiveConfiguration]) -> tuple[bytes, ...]:
    """Return gpugate's CAs (PEM) that every entry of every configuration contains.

    A CA in only some of the entries was written by another client, or is about to be replaced.
    """
    bundles = [set(_own_certificates(bundle)) for configuration in live for bundle in configuration.bundles.values()]
    return tuple(sorted(set.intersection(*bundles))) if bundles else ()


def _plan_restart(observed: Observed, periods: Periods, now: dt.datetime) -> Step:
    trusted = find_trusted(observed.live)
    if observed.authorities is None and observed.remembered and not _is_expired(observed.remembered.active, now):
        if not observed.live:
            # The webhook is being uninstalled: Secret and configurations are deleted.
            return Wait(expiry(observed.remembered.active.certificate))
        return Write(
            adopt_trusted(observed.remembered, trusted, periods, now), "restored the CAs that the Secret had lost"
        )
    authorities = observed.authorities
    if authorities is not None and authorities.next is not None and not _is_expired(authorities.next, now):
        return Write(
            promote_next(remove_due_previous(authorities, now), periods, now),
            "promoted the next CA because the active CA expired",
        )
    created = create_authorities(periods, now, trusted)
    # The new CA also fulfils earlier requests.
    return Write(
        replace(created, answered=dict(observed.requests)), "created the active CA: the Secret contained no usable CA"
    )


def _plan_request(
    authorities: Authorities, requests: Mapping[str, str], periods: Periods, now: dt.datetime
) -> Step | None:
    new = {kind: value for kind, value in requests.items() if authorities.answered.get(kind) != value}
    if not new:
        return None
    requested = replace(authorities, rotation_requested=True, answered={**authorities.answered, **new})
    if DISTRUST not in new:
        return Write(requested, "a rotation was requested")
    # If the Secret leaked, the key of the next CA leaked too. It did not sign yet, so it can be replaced at once.
    replacement = create_authority(periods, now)
    # Keys of previous CAs may have leaked while those were active.
    previous = shorten_previous(requested.previous, periods, now)
    distrusted = replace(requested, distrusted=True, next=replacement, published_at=None, previous=previous)
    return Write(distrusted, "replacing all CAs because their keys are distrusted")


def _promotion_due(authorities: Authorities, published_at: dt.datetime, periods: Periods) -> dt.datetime:
    end = expiry(authorities.active.certificate)
    due = min(authorities.promoted_at + periods.rotation, end - periods.authority / 3)
    if authorities.rotation_requested:
        due = authorities.promoted_at
    earliest = published_at + periods.propagation
    if len(authorities.previous) >= MAX_PREVIOUS:
        # Another previous CA fits in the bundle only when one of the others is no longer needed.
        earliest = max(earliest, min(previous.needed_until for previous in authorities.previous))
    return max(due, earliest)


def _is_expired(pair: KeyPair, now: dt.datetime) -> bool:
    return now >= expiry(pair.certificate)


def _removal_times(authorities: Authorities) -> tuple[dt.datetime, ...]:
    return tuple(previous.remove_at for previous in authorities.previous)


def _is_next_missing(authorities: Authorities, configurations: Sequence[LiveConfiguration]) -> bool:
    if authorities.next is None:
        return False
    certificate = authorities.next.certificate
    return any(
        certificate not in _own_certificates(bundle)
        for configuration in configurations
        for bundle in configuration.bundles.values()
    )


def _own_certificates(bundle: bytes) -> tuple[bytes, ...]:
    return tuple(pem for pem in split(bundle) if common_name(pem).startswith(COMMON_NAME))
