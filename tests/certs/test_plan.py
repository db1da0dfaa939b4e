"""One step at a time, from what is stored and what is published to the next write."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import pytest
from keeper_fleet import PERIODS
from memory_cluster import START

from gpugate.certs.authorities import COMMON_NAME, Authorities, Previous
from gpugate.certs.pki import KeyPair, certificate_authority, expiry
from gpugate.certs.plan import DISTRUST, ROTATE, Observed, Publish, Step, Wait, Write, find_trusted, plan
from gpugate.certs.protocols import LiveConfiguration


def at(hours: float) -> dt.datetime:
    return START + dt.timedelta(hours=hours)


def authority(name: str, made: float = 0) -> KeyPair:
    return certificate_authority(f"{COMMON_NAME}{name}", now=at(made), lifetime=PERIODS.authority)


ACTIVE = authority("active")
NEXT = authority("next", made=20)
BEGUN = Authorities(ACTIVE, START, NEXT, published_at=at(20))
OLD = tuple(authority(name).certificate for name in ("oldest", "older"))


def previous(needed: float, leaves: float, certificate: bytes = OLD[0]) -> Previous:
    return Previous(certificate, at(needed), at(leaves))


def published(*bundles: bytes, kind: str = "ValidatingWebhookConfiguration") -> LiveConfiguration:
    return LiveConfiguration(kind, {f"entry-{number}": bundle for number, bundle in enumerate(bundles)}, "1")


def step(authorities: Authorities | None, now: float, *live: LiveConfiguration, **seen: object) -> Step:
    if authorities is not None and not live:
        live = (published(authorities.bundle),)
    return plan(Observed(authorities, live, **{"requests": {}, **seen}), PERIODS, at(now))


WAITS = {
    "until the active authority has signed for its time": (BEGUN, 29, 30),
    "until a third of its life is left": (replace(BEGUN, promoted_at=at(50)), 55, 60),
    "until a previous authority leaves": (replace(BEGUN, previous=(previous(20, 27),)), 25, 27),
    "until the next one is known everywhere": (
        replace(BEGUN, rotation_requested=True, published_at=at(25)),
        25,
        25 + 1 / 6,
    ),
    "until one of two previous authorities is not needed": (
        replace(BEGUN, rotation_requested=True, previous=(previous(40, 50), previous(45, 50, OLD[1]))),
        30,
        40,
    ),
}


@pytest.mark.parametrize(("authorities", "now", "until"), WAITS.values(), ids=WAITS)
def test_it_waits(authorities: Authorities, now: float, until: float) -> None:
    assert step(authorities, now) == Wait(at(until))


@pytest.mark.parametrize(("authorities", "now", "until"), WAITS.values(), ids=WAITS)
def test_it_goes_on_when_the_time_has_come(authorities: Authorities, now: float, until: float) -> None:
    assert now < until
    assert isinstance(step(authorities, until), Write)


UNREGISTERED = {
    "until the active authority expires": (replace(BEGUN, published_at=None), expiry(ACTIVE.certificate)),
    "until a previous authority leaves": (
        replace(BEGUN, published_at=None, previous=(previous(40, 60),)),
        at(60),
    ),
}


@pytest.mark.parametrize(("authorities", "until"), UNREGISTERED.values(), ids=UNREGISTERED)
def test_without_configurations_it_waits(authorities: Authorities, until: dt.datetime) -> None:
    assert step(authorities, 25, published(kind="MutatingWebhookConfiguration")) == Wait(until)


def test_a_configuration_without_entries_holds_nothing_up() -> None:
    waiting = replace(BEGUN, published_at=None)
    live = (published(kind="MutatingWebhookConfiguration"), published(BEGUN.bundle))
    taken = step(waiting, 25, *live)
    assert isinstance(taken, Write)
    assert taken.authorities == replace(BEGUN, published_at=at(25))


@pytest.mark.parametrize("now", [90, 95], ids=["at its last moment", "after it"])
def test_when_the_active_authority_expires_the_next_one_signs(now: float) -> None:
    taken = step(BEGUN, now)
    assert isinstance(taken, Write)
    assert taken.authorities.active == NEXT


@pytest.mark.parametrize("following", [None, NEXT], ids=["no next", "an expired next"])
def test_when_every_authority_has_expired_it_begins_anew(following: KeyPair | None) -> None:
    taken = step(replace(BEGUN, next=following), 120)
    assert isinstance(taken, Write)
    assert taken.authorities.active not in {ACTIVE, NEXT}
    assert taken.authorities.promoted_at == at(120)


def test_what_was_asked_for_before_the_first_authority_is_answered_by_it() -> None:
    taken = step(None, 0, requests={ROTATE: "1"})
    assert isinstance(taken, Write)
    assert (taken.authorities.answered, taken.authorities.rotation_requested) == ({ROTATE: "1"}, False)


def test_a_request_is_added_to_those_that_were_answered() -> None:
    taken = step(replace(BEGUN, answered={ROTATE: "1"}), 25, requests={ROTATE: "1", DISTRUST: "2"})
    assert isinstance(taken, Write)
    assert taken.authorities.answered == {ROTATE: "1", DISTRUST: "2"}


def test_the_authority_that_replaces_a_leaked_one_is_not_published_yet() -> None:
    taken = step(replace(BEGUN, previous=(previous(40, 60),)), 25, requests={DISTRUST: "1"})
    assert isinstance(taken, Write)
    assert taken.authorities.next not in {None, NEXT}
    assert (taken.authorities.published_at, taken.authorities.rotation_requested) == (None, True)
    soon = at(25) + PERIODS.propagation
    assert taken.authorities.previous == (Previous(OLD[0], soon, soon),)


@pytest.mark.parametrize(
    ("authorities", "live", "expected"),
    [
        pytest.param(BEGUN, (published(BEGUN.bundle, b""),), Write, id="one entry lacks the next authority"),
        pytest.param(BEGUN, (published(BEGUN.bundle, BEGUN.bundle + OLD[0]),), Publish, id="one entry has another"),
        pytest.param(replace(BEGUN, next=None), (published(b""),), Publish, id="there is no next authority"),
    ],
)
def test_a_bundle_that_was_changed(
    authorities: Authorities, live: tuple[LiveConfiguration, ...], expected: type[Step]
) -> None:
    taken = step(authorities, 25, *live)
    assert isinstance(taken, expected)
    if isinstance(taken, Publish):
        assert taken == Publish(live, authorities.bundle)
    elif isinstance(taken, Write):
        assert taken.authorities == replace(authorities, published_at=None)


def test_only_authorities_of_ours_that_are_in_every_entry_are_trusted_everywhere() -> None:
    foreign = certificate_authority(f"not-{COMMON_NAME}", now=START, lifetime=PERIODS.authority).certificate
    live = (
        published(ACTIVE.certificate + foreign, ACTIVE.certificate + foreign + OLD[0]),
        published(ACTIVE.certificate + foreign + OLD[0]),
    )
    assert find_trusted(live) == (ACTIVE.certificate,)
