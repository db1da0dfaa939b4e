from __future__ import annotations

from gpugate.webhook.admission.front.bodies import Bodies, Body
from gpugate.webhook.admission.front.limits import Limits


class Account:
    """An account of 100 bytes, in which a body cannot be evicted for 1 s."""

    def __init__(self) -> None:
        self.now = 0.0
        self.bodies = Bodies(Limits(in_flight=100, body_grace=1), lambda: self.now)

    def began(self, source: str, size: int) -> Body:
        body = self.bodies.begin(source)
        assert self.bodies.take(body, b"x" * size)
        return body

    def fits(self, source: str, size: int) -> bool:
        body = self.bodies.begin(source)
        fits = self.bodies.take(body, b"x" * size)
        self.bodies.end(body)
        return fits


def test_bodies_use_all_free_memory() -> None:
    account = Account()
    account.began("a", 60)
    assert (account.fits("a", 41), account.fits("a", 40), account.bodies.bytes) == (False, True, 60)


def test_an_ended_body_frees_its_memory() -> None:
    account = Account()
    account.bodies.end(account.began("a", 100))
    assert (account.bodies.bytes, account.fits("b", 100)) == (0, True)


def test_a_finished_body_is_complete_and_still_counts() -> None:
    account = Account()
    body = account.began("a", 1)
    account.bodies.take(body, b"yz")
    assert (account.bodies.finish(body), account.bodies.bytes) == (b"xyz", 3)


def test_a_source_with_more_than_half_of_the_memory_is_evicted_at_once() -> None:
    account = Account()
    first, second = account.began("attacker", 40), account.began("attacker", 60)
    assert account.fits("api-server", 50)
    assert (first.evicted, second.evicted, account.bodies.bytes) == (True, True, 0)


def test_only_the_needed_memory_is_evicted() -> None:
    account = Account()
    first, second = account.began("attacker", 40), account.began("attacker", 60)
    assert account.fits("api-server", 40)
    assert (first.evicted, first.content, second.evicted, account.bodies.bytes) == (True, b"", False, 60)


def test_a_source_with_half_of_the_memory_is_not_evicted() -> None:
    account = Account()
    account.began("a", 50)
    account.began("b", 50)
    assert (account.fits("a", 1), account.fits("b", 1), account.fits("c", 1)) == (False, False, False)


def test_an_old_unfinished_body_is_evicted_for_a_newer_one() -> None:
    account = Account()
    old = account.began("a", 50)
    account.now = 0.5
    young = account.began("b", 50)
    account.now = 0.9
    assert not account.fits("a", 50)
    account.now = 1.0
    assert account.fits("a", 50)
    assert (old.evicted, young.evicted) == (True, False)


def test_an_older_body_does_not_evict_a_newer_one() -> None:
    account = Account()
    old = account.began("a", 50)
    account.began("a", 50)
    account.now = 60.0
    assert not account.bodies.take(old, b"x")


def test_a_finished_body_is_never_evicted() -> None:
    account = Account()
    body = account.began("attacker", 100)
    account.bodies.finish(body)
    account.now = 60.0
    assert (account.fits("api-server", 1), body.evicted) == (False, False)


def test_an_evicted_body_takes_no_more_parts() -> None:
    account = Account()
    body = account.began("attacker", 100)
    account.fits("api-server", 100)
    assert (account.bodies.take(body, b"x"), account.bodies.bytes) == (False, 0)


def test_sources_without_bodies_are_deleted() -> None:
    account = Account()
    for number in range(100):
        account.fits(str(number), number)
    account.began("attacker", 100)
    account.fits("api-server", 100)
    assert len(account.bodies._by_source) == 0


def test_the_end_of_an_evicted_body_frees_nothing_again() -> None:
    account = Account()
    evicted = account.began("attacker", 60)
    account.began("api-server", 50)
    account.bodies.end(evicted)
    assert (evicted.evicted, account.bodies.bytes) == (True, 50)
