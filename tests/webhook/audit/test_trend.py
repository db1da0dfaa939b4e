"""How figures moved over a history of audits."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from msgspec.structs import replace

from gpugate.webhook.audit.history import Counts, Run
from gpugate.webhook.audit.model import Summary
from gpugate.webhook.audit.trend import POINTS, change, moved_text, sparkline, trend
from gpugate.webhook.audit.words import Amounts

NOW = dt.datetime(2026, 11, 23, 15, tzinfo=dt.UTC)


def run(days: float, idle: float | None = None, **others: Any) -> Run:
    usd = {} if idle is None else {"spend": 100.0, "idle": idle}
    fields = {"use_coverage": None if idle is None else 1.0, "usd_per_hour": usd, "cluster": "prod"} | others
    return Run("0.1.0", NOW - dt.timedelta(days=days), 1.0, others.pop("objects", Summary(3, 0, 0, 0, 9)), **fields)


def test_only_earlier_runs_of_the_cluster_and_selection_are_compared() -> None:
    runs = [run(1), run(2, cluster="test"), run(3, selection="-n ml"), run(-1)]
    found = trend(runs, run(0))

    assert found is not None
    assert found.earlier == (runs[0],)
    assert trend(runs[1:], run(0)) is None


@pytest.mark.parametrize(
    ("ages", "base"),
    [
        pytest.param((30, 8, 7, 6, 1), 7, id="a-week-old"),
        pytest.param((30, 9, 1), 9, id="the-last-one-before-a-week"),
        pytest.param((3, 2, 1), 3, id="a-short-history"),
    ],
)
def test_changes_are_since_a_week(ages: tuple[int, ...], base: int) -> None:
    found = trend([run(age) for age in ages], run(0))

    assert found is not None
    assert found.base == run(base)


def test_a_figure_has_its_values_over_the_runs() -> None:
    found = trend([run(9, 4.0), run(2), run(1, 5.0)], run(0, 8.0))
    assert found is not None
    figures = {figure.name: figure for figure in found.figures}

    assert list(figures) == ["spend", "idle", "would be denied", "coverage"]
    assert [point.value for point in figures["idle"].points] == [4.0, 5.0, 8.0]
    assert (figures["idle"].base, figures["idle"].last) == (4.0, 5.0)
    assert change(figures["idle"], figures["idle"].base, Amounts()) == "+$4.00"
    assert change(figures["spend"], figures["spend"].last, Amounts()) == "="
    assert sparkline(figures["idle"]) == "▅▅█"


def test_a_use_that_no_gpu_has_is_zero_if_uses_are_known() -> None:
    known = replace(run(1), usd_per_hour={"spend": 1.0}, use_coverage=1.0)
    found = trend([known], run(0, 8.0))
    unknown = trend([replace(known, use_coverage=None)], run(0, 8.0))
    assert found
    assert unknown

    assert [figure.base for f in (found, unknown) for figure in f.figures if figure.name == "idle"] == [0.0, None]


def test_a_long_history_has_few_points_and_ends_with_this_audit() -> None:
    found = trend([run(hour / 24, float(hour)) for hour in range(1, 2160)], run(0, 7.0))
    assert found is not None
    idle = next(figure for figure in found.figures if figure.name == "idle")

    assert len(idle.points) == POINTS
    assert idle.points[-1] == (NOW, 7.0)
    assert list(idle.points) == sorted(idle.points)
    assert len(sparkline(idle)) == 24


COUNTS = {"pods/a": Counts(deny=3, warn=1), "pods/b": Counts(deny=1)}


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        pytest.param({"policies": COUNTS}, {"policies": COUNTS}, [], id="equal"),
        pytest.param({}, {"policies": COUNTS},
                     ["new: policy pods/a: 3 denied", "new: policy pods/a: 1 with a warning", "new: policy pods/b: 1 denied"], id="new"),
        pytest.param({"policies": {"pods/b": Counts(deny=1)}}, {}, ["gone: policy pods/b: 1 denied"], id="gone"),
        pytest.param({"policies": COUNTS}, {"policies": COUNTS | {"pods/a": Counts(deny=5, warn=1)}},
                     ["policy pods/a: 3 -> 5 denied"], id="changed"),
        pytest.param({"teams": {"ml": Counts(usd_per_hour=1.0)}}, {"teams": {"ml": Counts(usd_per_hour=1.001)}}, [], id="less-than-a-cent"),
        pytest.param({"teams": {"ml": Counts(usd_per_hour=1.0)}}, {"teams": {"ml": Counts(usd_per_hour=9.5, idle_or_parked_usd_per_hour=9.0)}},
                     ["team ml: $1.00 -> $9.50/h spend"], id="use-was-not-measured-before"),
        pytest.param({"teams": {}}, {"teams": {"ml": Counts(usd_per_hour=9.5, idle_or_parked_usd_per_hour=9.0)}},
                     ["new: team ml: $9.50/h spend", "new: team ml: $9.00/h idle or parked"], id="a-new-team"),
        pytest.param({"namespaces": {"ml": Counts(deny=2)}}, {"namespaces": {"ml": Counts(deny=1)}},
                     ["namespace ml: 2 -> 1 denied"], id="namespace"),
    ],
)  # fmt: skip
def test_groups_are_new_gone_or_changed(before: dict[str, Any], now: dict[str, Any], expected: list[str]) -> None:
    found = trend([run(1, **before)], run(0, **now))

    assert found is not None
    assert [moved_text(moved, Amounts()) for moved in found.moved] == expected


@pytest.mark.parametrize(
    ("now", "caveat"),
    [
        pytest.param({}, "", id="comparable"),
        pytest.param({"coverage": 0.4}, "the coverage fell from 100% to 40%", id="less-was-read"),
        pytest.param({"use_coverage": None}, "whose use is known fell from 100% to 0%", id="no-prometheus"),
        pytest.param({"gpugate": "0.2.0"}, "gpugate 0.1.0 and 0.2.0 have different policies", id="another-version"),
    ],
)
def test_what_makes_figures_incomparable_is_said(now: dict[str, Any], caveat: str) -> None:
    found = trend([run(1, 4.0)], replace(run(0, 4.0), **now))

    assert found is not None
    assert (caveat in "".join(found.caveats)) if caveat else not found.caveats
