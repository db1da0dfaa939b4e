from __future__ import annotations

from gpugate.webhook.admission.front.bodies import Bodies, Body
from gpugate.webhook.admission.front.limits import Limits


class Account:
    """An account of 100 bytes, in which a body is safe for 1 s."""

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


def test_bodies_take_what_room_there_is() -> None:
    account = Account()
    account.began("a", 60)
    assert (account.fits("a", 41), account.fits("a", 40), account.bodies.bytes) == (False, True, 60)


def test_a_body_that_ended_leaves_its_room() -> None:
    account = Account()
    account.bodies.end(account.began("a", 100))
    assert (account.bodies.bytes, account.fits("b", 100)) == (0, True)


def test_a_finished_body_is_whole_and_still_counts() -> None:
    account = Account()
    body = account.began("a", 1)
    account.bodies.take(body, b"yz")
    assert (account.bodies.finish(body), account.bodies.bytes) == (b"xyz", 3)


def test_a_source_with_more_than_half_gives_way_to_another_at_once() -> None:
    account = Account()
    first, second = account.began("attacker", 40), account.began("attacker", 60)
    assert account.fits("api-server", 50)
    assert (first.evicted, second.evicted, account.bodies.bytes) == (True, True, 0)


def test_no_more_of_it_gives_way_than_is_needed() -> None:
    account = Account()
    first, second = account.began("attacker", 40), account.began("attacker", 60)
    assert account.fits("api-server", 40)
    assert (first.evicted, first.content, second.evicted, account.bodies.bytes) == (True, b"", False, 60)


def test_a_source_with_half_is_safe_from_another() -> None:
    account = Account()
    account.began("a", 50)
    account.began("b", 50)
    assert (account.fits("a", 1), account.fits("b", 1), account.fits("c", 1)) == (False, False, False)


def test_what_has_been_coming_for_long_gives_way_to_what_is_newer() -> None:
    account = Account()
    old = account.began("a", 50)
    account.now = 0.5
    young = account.began("b", 50)
    account.now = 0.9
    assert not account.fits("a", 50)
    account.now = 1.0
    assert account.fits("a", 50)
    assert (old.evicted, young.evicted) == (True, False)


def test_what_is_older_takes_no_room_from_what_is_newer() -> None:
    account = Account()
    old = account.began("a", 50)
    account.began("a", 50)
    account.now = 60.0
    assert not account.bodies.take(old, b"x")


def test_a_finished_body_never_gives_way() -> None:
    account = Account()
    body = account.began("attacker", 100)
    account.bodies.finish(body)
    account.now = 60.0
    assert (account.fits("api-server", 1), body.evicted) == (False, False)


def test_a_body_that_gave_way_takes_nothing_more() -> None:
    account = Account()
    body = account.began("attacker", 100)
    account.fits("api-server", 100)
    assert (account.bodies.take(body, b"x"), account.bodies.bytes) == (False, 0)


def test_sources_without_bodies_are_forgotten() -> None:
    account = Account()
    for number in range(100):
        account.fits(str(number), number)
    account.began("attacker", 100)
    account.fits("api-server", 100)
    assert len(account.bodies._by_source) == 0
