from __future__ import annotations

import pytest

from gpugate.webhook.audit.scan import Coverage


def test_nothing_wanted_is_all_that_was_wanted() -> None:
    assert Coverage().share == 1


def test_each_kind_has_the_same_weight() -> None:
    coverage = Coverage()
    for kind in ("a", "b", "c", "d"):
        coverage.wanted(kind)
    coverage.missed("d", 0, None)
    coverage.evaluated("a", 1000, 0)

    assert coverage.share == 0.75


@pytest.mark.parametrize(
    ("called", "skipped", "read", "left", "share"),
    [
        pytest.param(10, 0, 5, 0, 0.0, id="a-list-that-broke-off"),
        pytest.param(10, 0, 5, None, 0.0, id="with-nobody-knowing-how-much-is-left"),
        pytest.param(10, 0, 75, 25, 0.75, id="with-a-known-rest"),
        pytest.param(10, 5, 75, 25, 0.375, id="and-policies-that-could-not-look"),
        pytest.param(0, 0, 0, None, 0.0, id="forbidden"),
    ],
)
def test_what_was_not_read_and_not_judged_is_missing(
    called: int, skipped: int, read: int, left: int | None, share: float
) -> None:
    coverage = Coverage()
    coverage.missed("pods", read, left)
    coverage.evaluated("pods", called, skipped)

    assert coverage.share == share


def test_judgements_that_could_not_be_made_are_missing() -> None:
    coverage = Coverage()
    coverage.wanted("pods")
    coverage.evaluated("pods", 3, 1)
    coverage.evaluated("pods", 1, 0)

    assert coverage.share == 0.75
