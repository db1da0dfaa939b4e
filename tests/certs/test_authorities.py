"""What each authority is for at a time, and when it leaves."""

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


def test_without_a_next_authority_none_is_promoted() -> None:
    with pytest.raises(ValueError, match="no next CA"):
        promote_next(replace(BOTH, next=None), PERIODS, START)


@pytest.mark.parametrize(
    ("distrusted", "retired"),
    [
        (False, previous(ACTIVE.certificate, AFTER_A_LEAF)),
        (True, Previous(ACTIVE.certificate, SOON, SOON)),
    ],
    ids=["its turn is over", "its key leaked"],
)
def test_the_next_authority_signs_and_the_active_one_stays_for_what_it_signed(
    distrusted: bool,  # noqa: FBT001 -- a column of the table
    retired: Previous,
) -> None:
    before = replace(BOTH, distrusted=distrusted, rotation_requested=True, published_at=START)
    assert promote_next(before, PERIODS, START) == Authorities(NEXT, START, previous=(retired,), answered={"a": "1"})


@pytest.mark.parametrize(
    ("needed", "kept"),
    [
        pytest.param((START + MINUTE,), 1, id="one of them"),
        pytest.param((START - MINUTE,), 1, id="one that is not needed stays while there is room"),
        pytest.param((START, START + MINUTE), 1, id="of two only what is needed"),
        pytest.param((START - MINUTE, START), 0, id="of two that are not needed none"),
    ],
)
def test_at_most_two_authorities_stay_that_signed_before(needed: tuple[dt.datetime, ...], kept: int) -> None:
    signed = tuple(previous(pem, until) for pem, until in zip(OLD, needed, strict=False))
    after = promote_next(replace(BOTH, previous=signed), PERIODS, START).previous
    assert after == (*signed[len(signed) - kept :], previous(ACTIVE.certificate, AFTER_A_LEAF))


def test_an_authority_that_signed_before_leaves_on_time() -> None:
    leaving, staying = previous(OLD[0], START, START), previous(OLD[1], START, START + MINUTE)
    assert remove_due_previous(replace(BOTH, previous=(leaving, staying)), START).previous == (staying,)


def test_where_none_leaves_nothing_changes() -> None:
    authorities = replace(BOTH, previous=(previous(OLD[0], START),))
    assert remove_due_previous(authorities, START) is authorities


def test_what_is_to_leave_soon_leaves_no_later_than_it_would_have() -> None:
    late = previous(OLD[0], START + 2 * PERIODS.propagation)
    early = Previous(OLD[1], START, START + MINUTE)
    assert shorten_previous((late, early), PERIODS, START) == (Previous(OLD[0], SOON, SOON), early)


EXPIRED = certificate_authority("expired", now=START - PERIODS.authority, lifetime=PERIODS.authority).certificate


@pytest.mark.parametrize(
    ("trusted", "kept"),
    [
        ((), ()),
        ((OLD[0],), (OLD[0],)),
        ((OLD[2], OLD[0], OLD[1]), (OLD[1], OLD[2])),
        ((EXPIRED, OLD[0]), (OLD[0],)),
        ((ACTIVE.certificate, NEXT.certificate, OLD[0]), (OLD[0],)),
    ],
    ids=["none", "one", "the two that last longest", "not what has expired", "not those that are known"],
)
def test_what_clients_trust_is_adopted(trusted: tuple[bytes, ...], kept: tuple[bytes, ...]) -> None:
    adopted = tuple(previous(pem, AFTER_A_LEAF) for pem in kept)
    assert adopt_trusted(BOTH, trusted, PERIODS, START) == replace(BOTH, previous=adopted)


def test_what_is_adopted_takes_the_place_of_the_oldest() -> None:
    before = replace(BOTH, previous=(previous(OLD[0], START), previous(OLD[1], START)))
    after = adopt_trusted(before, (OLD[2],), PERIODS, START)
    assert after.previous == (before.previous[1], previous(OLD[2], AFTER_A_LEAF))


def test_the_first_authorities_keep_what_clients_trust() -> None:
    begun = create_authorities(PERIODS, START, (OLD[0],))
    assert begun == Authorities(begun.active, START, previous=(previous(OLD[0], AFTER_A_LEAF),))


def test_no_two_authorities_have_one_name() -> None:
    names = [common_name(create_authority(PERIODS, START).certificate) for _ in range(2)]
    assert names[0] != names[1]
    assert all(re.fullmatch(r"gpugate-ca-20260301-[0-9a-f]{8}", name) for name in names)


def test_an_authority_lasts_as_long_as_its_period() -> None:
    assert expiry(create_authority(PERIODS, START).certificate) == START + PERIODS.authority
