"""Test whether a replica keeps its serving certificate or creates a new one."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpugate.certs.authorities import Authorities, Periods
from gpugate.certs.leaf import UNTRUSTED, Choice, Leaf, choose_leaf
from gpugate.certs.pki import certificate_authority, expiry, fingerprint
from gpugate.certs.protocols import LiveConfiguration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpugate.certs.pki import KeyPair

NOW = dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC)
DAY, HOUR, SECOND = dt.timedelta(days=1), dt.timedelta(hours=1), dt.timedelta(seconds=1)
PERIODS = Periods()
NAMES = ("gpugate.gpugate.svc",)
OLD, NEW = (certificate_authority(f"gpugate-ca-{name}", now=NOW, lifetime=90 * DAY) for name in ("old", "new"))


def trusting(*trusted: KeyPair) -> list[LiveConfiguration]:
    bundle = b"".join(pair.certificate for pair in trusted)
    return [LiveConfiguration("ValidatingWebhookConfiguration", {"pods.validate.gpugate.dev": bundle}, "1")]


def chosen(
    active: KeyPair,
    live: Sequence[LiveConfiguration],
    current: Leaf | None = None,
    now: dt.datetime = NOW,
    jitter: float = 0,
) -> Choice:
    return choose_leaf(current, Authorities(active, NOW), live, NAMES, PERIODS, now, jitter=jitter)


FIRST = chosen(OLD, trusting(OLD)).leaf


@given(st.floats(-1, 1))
def test_a_certificate_is_renewed_after_two_thirds_of_its_lifetime_with_jitter(jitter: float) -> None:
    leaf = chosen(OLD, trusting(OLD), jitter=jitter).leaf
    age = (leaf.renew_at - NOW) / (expiry(leaf.pair.certificate) - NOW)
    assert age == pytest.approx(2 / 3 + jitter / 10)


@pytest.mark.parametrize(
    ("now", "is_kept"),
    [(NOW, True), (FIRST.renew_at - SECOND, True), (FIRST.renew_at, False), (FIRST.renew_at + HOUR, False)],
    ids=["new", "a second before", "at that time", "an hour after"],
)
def test_a_certificate_is_kept_until_its_renewal(now: dt.datetime, is_kept: bool) -> None:  # noqa: FBT001 -- a column
    choice = chosen(OLD, trusting(OLD), FIRST, now)
    assert (choice.leaf is FIRST, choice.trouble) == (is_kept, "")


@pytest.mark.parametrize(
    ("active", "now", "is_kept"),
    [
        (OLD, FIRST.renew_at, True),
        (NEW, NOW, True),
        (NEW, FIRST.renew_at, True),
        (NEW, expiry(FIRST.pair.certificate) - SECOND, True),
        (NEW, expiry(FIRST.pair.certificate), False),
    ],
    ids=["renewal is due", "another authority", "both", "a second before it expires", "when it has expired"],
)
def test_an_untrusted_certificate_never_replaces_a_trusted_one(
    active: KeyPair,
    now: dt.datetime,
    is_kept: bool,  # noqa: FBT001 -- a column of the table
) -> None:
    distrusting = trusting(NEW if active is OLD else OLD)
    choice = chosen(active, distrusting, FIRST, now)
    assert (choice.leaf is FIRST, choice.trouble) == (is_kept, UNTRUSTED)


def test_a_certificate_of_a_previous_authority_is_replaced_if_clients_trust_the_active_one() -> None:
    choice = chosen(NEW, trusting(OLD, NEW), FIRST)
    assert (choice.leaf.authority, choice.trouble) == (fingerprint(NEW.certificate), "")


def test_without_configurations_every_certificate_is_trusted() -> None:
    choice = chosen(NEW, [], FIRST)
    assert (choice.leaf.authority, choice.trouble) == (fingerprint(NEW.certificate), "")


# Its key is that of another authority, so what it signs does not verify.
BROKEN = replace(OLD, key=NEW.key)


@pytest.mark.parametrize("current", [None, FIRST], ids=["the first", "a renewal"])
def test_a_certificate_that_fails_its_self_test_never_replaces_another(current: Leaf | None) -> None:
    choice = chosen(BROKEN, trusting(OLD), current, FIRST.renew_at)
    assert choice.trouble.startswith("the new certificate failed its self-test: a client that trusts the bundle")
    assert (choice.leaf is FIRST) is (current is FIRST)
    assert choice.leaf.authority == fingerprint(OLD.certificate)
