"""Test the next write for each state of the Secret and the configurations."""

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


def authority(name: str, created: float = 0) -> KeyPair:
    return certificate_authority(f"{COMMON_NAME}{name}", now=at(created), lifetime=PERIODS.authority)


ACTIVE = authority("active")
NEXT = authority("next", created=20)
ROTATING = Authorities(ACTIVE, START, NEXT, published_at=at(20))
OLD = tuple(authority(name).certificate for name in ("oldest", "older"))


def previous(needed: float, removed: float, certificate: bytes = OLD[0]) -> Previous:
    return Previous(certificate, at(needed), at(removed))


def published(*bundles: bytes, kind: str = "ValidatingWebhookConfiguration") -> LiveConfiguration:
    return LiveConfiguration(kind, {f"entry-{number}": bundle for number, bundle in enumerate(bundles)}, "1")


def step(authorities: Authorities | None, now: float, *live: LiveConfiguration, **state: object) -> Step:
    if authorities is not None and not live:
        live = (published(authorities.bundle),)
    return plan(Observed(authorities, live, **{"requests": {}, **state}), PERIODS, at(now))


WAITS = {
    "until the rotation period ends": (ROTATING, 29, 30),
    "until a third of the lifetime is left": (replace(ROTATING, promoted_at=at(50)), 55, 60),
    "until a previous authority is removed": (replace(ROTATING, previous=(previous(20, 27),)), 25, 27),
    "until the next authority has propagated": (
        replace(ROTATING, rotation_requested=True, published_at=at(25)),
        25,
        25 + 1 / 6,
    ),
    "until one of two previous authorities is no longer needed": (
        replace(ROTATING, rotation_requested=True, previous=(previous(40, 50), previous(45, 50, OLD[1]))),
        30,
        40,
    ),
}


@pytest.mark.parametrize(("authorities", "now", "until"), WAITS.values(), ids=WAITS)
def test_no_write_before_the_due_time(authorities: Authorities, now: float, until: float) -> None:
    assert step(authorities, now) == Wait(at(until))


@pytest.mark.parametrize(("authorities", "now", "until"), WAITS.values(), ids=WAITS)
def test_a_write_at_the_due_time(authorities: Authorities, now: float, until: float) -> None:
    assert now < until
    assert isinstance(step(authorities, until), Write)


UNREGISTERED = {
    "until the active authority expires": (replace(ROTATING, published_at=None), expiry(ACTIVE.certificate)),
    "until a previous authority is removed": (
        replace(ROTATING, published_at=None, previous=(previous(40, 60),)),
        at(60),
    ),
}


@pytest.mark.parametrize(("authorities", "until"), UNREGISTERED.values(), ids=UNREGISTERED)
def test_no_write_without_configurations(authorities: Authorities, until: dt.datetime) -> None:
    assert step(authorities, 25, published(kind="MutatingWebhookConfiguration")) == Wait(until)


def test_a_configuration_without_entries_does_not_delay() -> None:
    waiting = replace(ROTATING, published_at=None)
    live = (published(kind="MutatingWebhookConfiguration"), published(ROTATING.bundle))
    next_step = step(waiting, 25, *live)
    assert isinstance(next_step, Write)
    assert next_step.authorities == replace(ROTATING, published_at=at(25))


@pytest.mark.parametrize("now", [90, 95], ids=["at expiry", "after expiry"])
def test_the_next_authority_is_promoted_when_the_active_one_expires(now: float) -> None:
    next_step = step(ROTATING, now)
    assert isinstance(next_step, Write)
    assert next_step.authorities.active == NEXT


@pytest.mark.parametrize(
    ("following", "now"),
    [(None, 90), (None, 120), (NEXT, 110), (NEXT, 120)],
    ids=["no next, at expiry", "no next", "a next, at its expiry", "an expired next"],
)
def test_new_authorities_are_created_when_all_expired(following: KeyPair | None, now: float) -> None:
    next_step = step(replace(ROTATING, next=following), now)
    assert isinstance(next_step, Write)
    assert next_step.authorities.active not in {ACTIVE, NEXT}
    assert next_step.authorities.promoted_at == at(now)


def test_initial_authorities_fulfil_earlier_requests() -> None:
    next_step = step(None, 0, requests={ROTATE: "1"})
    assert isinstance(next_step, Write)
    assert (next_step.authorities.answered, next_step.authorities.rotation_requested) == ({ROTATE: "1"}, False)


def test_a_request_is_recorded_beside_earlier_ones() -> None:
    next_step = step(replace(ROTATING, answered={ROTATE: "1"}), 25, requests={ROTATE: "1", DISTRUST: "2"})
    assert isinstance(next_step, Write)
    assert next_step.authorities.answered == {ROTATE: "1", DISTRUST: "2"}


def test_the_replacement_of_a_distrusted_authority_is_unpublished() -> None:
    next_step = step(replace(ROTATING, previous=(previous(40, 60),)), 25, requests={DISTRUST: "1"})
    assert isinstance(next_step, Write)
    assert next_step.authorities.next not in {None, NEXT}
    assert (next_step.authorities.published_at, next_step.authorities.rotation_requested) == (None, True)
    soon = at(25) + PERIODS.propagation
    assert next_step.authorities.previous == (Previous(OLD[0], soon, soon),)


@pytest.mark.parametrize(
    ("authorities", "live", "expected"),
    [
        pytest.param(
            ROTATING, (published(ROTATING.bundle, b""),), Write, id="the next authority is missing in one entry"
        ),
        pytest.param(
            ROTATING,
            (published(ROTATING.bundle, ROTATING.bundle + OLD[0]),),
            Publish,
            id="one entry has an additional one",
        ),
        pytest.param(replace(ROTATING, next=None), (published(b""),), Publish, id="there is no next authority"),
    ],
)
def test_a_changed_bundle(authorities: Authorities, live: tuple[LiveConfiguration, ...], expected: type[Step]) -> None:
    next_step = step(authorities, 25, *live)
    assert isinstance(next_step, expected)
    if isinstance(next_step, Publish):
        assert next_step == Publish(live, authorities.bundle)
    elif isinstance(next_step, Write):
        assert next_step.authorities == replace(authorities, published_at=None)


def test_only_own_authorities_in_every_entry_are_trusted() -> None:
    foreign = certificate_authority(f"not-{COMMON_NAME}", now=START, lifetime=PERIODS.authority).certificate
    live = (
        published(ACTIVE.certificate + foreign, ACTIVE.certificate + foreign + OLD[0]),
        published(ACTIVE.certificate + foreign + OLD[0]),
    )
    assert find_trusted(live) == (ACTIVE.certificate,)
