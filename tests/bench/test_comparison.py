from __future__ import annotations

import pytest
from comparison import changes, table
from figures import Figure


def took(median: float, least: float, unit: str = "us", name: str = "/validate, CPU") -> Figure:
    return Figure(name, unit, median, least, 2 * median)


def rate(median: float, most: float) -> Figure:
    return Figure("/validate", "/s", median, median / 2, most)


@pytest.mark.parametrize(
    ("before", "now", "threshold", "worse"),
    [
        pytest.param(took(100, 90), took(100, 90), 0, False, id="the-same"),
        pytest.param(took(100, 90), took(119, 107), 20, False, id="slower-within-the-threshold"),
        pytest.param(took(100, 90), took(121, 109), 20, True, id="slower-beyond-the-threshold"),
        pytest.param(took(100, 90), took(200, 91), 20, False, id="a-neighbour-on-the-machine-moves-the-median-only"),
        pytest.param(took(100, 50), took(101, 100), 20, False, id="one-lucky-run-before"),
        pytest.param(took(100, 90), took(50, 45), 20, False, id="faster"),
        pytest.param(rate(2000, 2200), rate(1500, 1700), 20, True, id="fewer-in-a-second"),
        pytest.param(rate(2000, 2200), rate(1500, 2200), 20, False, id="fewer-in-a-second-but-not-at-best"),
        pytest.param(rate(2000, 2200), rate(4000, 4400), 20, False, id="more-in-a-second"),
        pytest.param(rate(2000, 2200), rate(0, 0), 20, True, id="none-in-a-second"),
        pytest.param(took(0, 0), took(0, 0), 20, False, id="nothing-and-nothing"),
        pytest.param(took(0, 0), took(1, 1), 20, True, id="something-instead-of-nothing"),
    ],
)
def test_worse_is_what_lost_more_than_the_threshold_usually_and_at_best(
    before: Figure, now: Figure, threshold: float, *, worse: bool
) -> None:
    (change,) = changes([before], [now])

    assert change.is_worse(threshold) is worse


@pytest.mark.parametrize(
    ("before", "now", "paired"),
    [
        pytest.param([], [took(1, 1)], [], id="new-figure"),
        pytest.param([took(1, 1)], [], [], id="figure-not-measured-now"),
        pytest.param([took(1, 1)], [took(1, 1, unit="ms")], [], id="another-unit"),
        pytest.param([took(1, 1, unit="%")], [took(9, 9, unit="%")], [], id="how-busy-the-machine-was"),
        pytest.param(
            [took(1, 1, name="a"), took(1, 1, name="b")],
            [took(2, 2, name="b"), took(2, 2, name="a")],
            ["b", "a"],
            id="in-the-order-of-now",
        ),
    ],
)
def test_only_the_same_figures_are_compared(before: list[Figure], now: list[Figure], paired: list[str]) -> None:
    assert [change.now.name for change in changes(before, now)] == paired


def test_the_table_marks_what_is_worse() -> None:
    found = changes([took(100, 90), rate(2000, 2200)], [took(150, 135), rate(2000, 2200)])

    _, slower, same = table(found, threshold=20).splitlines()

    assert slower.split() == ["/validate,", "CPU", "100.00", "150.00", "us", "1.50", "1.50", "WORSE"]
    assert same.split() == ["/validate", "2000.00", "2000.00", "/s", "1.00", "1.00"]
