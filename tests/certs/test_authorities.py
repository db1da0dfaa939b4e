"""Test the roles of CAs over time, and their removal from the bundle."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import replace

import pytest
from keeper_fleet import PERIODS
from memory_cluster import START

from gpugate.certs.authorities import (
    COMMON_NAME,
    Authorities,
    Periods,
    Previous,
    adopt_trusted,
    create_authorities,
    create_authority,
    promote_next,
    remove_due_previous,
    shorten_previous,
)
from gpugate.certs.pki import KeyPair, certificate_authority, common_name, expiry

MINUTE = dt.timedelta(minutes=1)
SOON = START + PERIODS.propagation
AFTER_A_LEAF = START + PERIODS.leaf + PERIODS.propagation


def authority(name: str, lifetime: dt.timedelta = PERIODS.authority) -> KeyPair:
    return certificate_authority(f"{COMMON_NAME}{name}", now=START - lifetime / 2, lifetime=lifetime)


ACTIVE, NEXT = authority("active"), authority("next")
OLD = tuple(authority(f"old-{days}", dt.timedelta(days=days)).certificate for days in (10, 20, 30))
BOTH = Authorities(ACTIVE, START, NEXT, answered={"a": "1"})


def previous(pem: bytes, needed_until: dt.datetime, remove_at: dt.datetime | None = None) -> Previous:
    return Previous(pem, needed_until, remove_at or expiry(pem))


def test_promotion_requires_a_next_authority() -> None:
    with pytest.raises(ValueError, match="no next CA"):
        promote_next(replace(BOTH, next=None), PERIODS, START)


@pytest.mark.parametrize(
    ("distrusted", "retired"),
    [
        (False, previous(ACTIVE.certificate, AFTER_A_LEAF)),
        (True, Previous(ACTIVE.certificate, SOON, SOON)),
    ],
    ids=["rotation", "distrusted"],
)
def test_promotion_keeps_the_active_authority_as_previous(
    distrusted: bool,  # noqa: FBT001 -- a column of the table
    retired: Previous,
) -> None:
    before = replace(BOTH, distrusted=distrusted, rotation_requested=True, published_at=START)
    assert promote_next(before, PERIODS, START) == Authorities(NEXT, START, previous=(retired,), answered={"a": "1"})


@pytest.mark.parametrize(
    ("needed", "remaining"),
    [
        pytest.param((START + MINUTE,), 1, id="one, needed"),
        pytest.param((START - MINUTE,), 1, id="one, not needed"),
        pytest.param((START, START + MINUTE), 1, id="two, one needed"),
        pytest.param((START - MINUTE, START), 0, id="two, none needed"),
    ],
)
def test_at_most_two_previous_authorities_remain(needed: tuple[dt.datetime, ...], remaining: int) -> None:
    signed = tuple(previous(pem, until) for pem, until in zip(OLD, needed, strict=False))
    after = promote_next(replace(BOTH, previous=signed), PERIODS, START).previous
    assert after == (*signed[len(signed) - remaining :], previous(ACTIVE.certificate, AFTER_A_LEAF))


def test_previous_authorities_are_removed_on_time() -> None:
    leaving, staying = previous(OLD[0], START, START), previous(OLD[1], START, START + MINUTE)
    assert remove_due_previous(replace(BOTH, previous=(leaving, staying)), START).previous == (staying,)


def test_nothing_changes_if_no_authority_is_due() -> None:
    authorities = replace(BOTH, previous=(previous(OLD[0], START),))
    assert remove_due_previous(authorities, START) is authorities


def test_shortening_never_extends_the_trust_in_an_authority() -> None:
    late = previous(OLD[0], START + 2 * PERIODS.propagation)
    early = Previous(OLD[1], START, START + MINUTE)
    assert shorten_previous((late, early), PERIODS, START) == (Previous(OLD[0], SOON, SOON), early)


EXPIRED = certificate_authority("expired", now=START - PERIODS.authority, lifetime=PERIODS.authority).certificate


@pytest.mark.parametrize(
    ("trusted", "expected"),
    [
        ((), ()),
        ((OLD[0],), (OLD[0],)),
        ((OLD[2], OLD[0], OLD[1]), (OLD[1], OLD[2])),
        ((EXPIRED, OLD[0]), (OLD[0],)),
        ((ACTIVE.certificate, NEXT.certificate, OLD[0]), (OLD[0],)),
    ],
    ids=["none", "one", "the two that last longest", "an expired one is skipped", "known ones are skipped"],
)
def test_trusted_authorities_are_adopted(trusted: tuple[bytes, ...], expected: tuple[bytes, ...]) -> None:
    adopted = tuple(previous(pem, AFTER_A_LEAF) for pem in expected)
    assert adopt_trusted(BOTH, trusted, PERIODS, START) == replace(BOTH, previous=adopted)


def test_adopted_authorities_replace_the_oldest() -> None:
    before = replace(BOTH, previous=(previous(OLD[0], START), previous(OLD[1], START)))
    after = adopt_trusted(before, (OLD[2],), PERIODS, START)
    assert after.previous == (before.previous[1], previous(OLD[2], AFTER_A_LEAF))


def test_initial_authorities_include_the_trusted_ones() -> None:
    begun = create_authorities(PERIODS, START, (OLD[0],))
    assert begun == Authorities(begun.active, START, previous=(previous(OLD[0], AFTER_A_LEAF),))


def test_authorities_have_unique_names() -> None:
    names = [common_name(create_authority(PERIODS, START).certificate) for _ in range(2)]
    assert names[0] != names[1]
    assert all(re.fullmatch(r"gpugate-ca-20260301-[0-9a-f]{8}", name) for name in names)


def test_an_authority_expires_after_its_period() -> None:
    assert expiry(create_authority(PERIODS, START).certificate) == START + PERIODS.authority


def test_the_defaults_are_those_of_the_documentation() -> None:
    # docs/server.md, "Certificates".
    days, hours, minutes = (dt.timedelta(**{unit: 1}) for unit in ("days", "hours", "minutes"))
    assert Periods() == Periods(authority=90 * days, rotation=30 * days, leaf=24 * hours, propagation=10 * minutes)
