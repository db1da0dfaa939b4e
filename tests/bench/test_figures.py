from __future__ import annotations

from typing import TYPE_CHECKING

import figures
import pytest
from figures import Figure, FiguresError, Measured, figure, line

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("measured", "unit", "summed_up"),
    [
        pytest.param([0.003, 0.001, 0.002], "ms", (2.0, 1.0, 3.0), id="seconds-shown-as-ms"),
        pytest.param([0.0005], "us", (500.0, 500.0, 500.0), id="one-run"),
        pytest.param([80.0, 90.0], "MB", (85.0, 80.0, 90.0), id="no-time"),
    ],
)
def test_runs_are_summed_up_in_the_unit(
    measured: list[float], unit: str, summed_up: tuple[float, float, float]
) -> None:
    found = figure("x", measured, unit)

    assert (found.median, found.least, found.most) == pytest.approx(summed_up)


@pytest.mark.parametrize(
    ("unit", "best"), [pytest.param("us", 1.0, id="the-shortest-time"), pytest.param("/s", 3.0, id="the-highest-rate")]
)
def test_the_best_run_is(unit: str, best: float) -> None:
    assert Figure("x", unit, 2.0, 1.0, 3.0).best == best


@pytest.mark.parametrize(
    ("found", "aim", "ending"),
    [
        pytest.param(Figure("x", "us", 400, 300, 600), 500.0, "aim 500)", id="within"),
        pytest.param(Figure("x", "us", 501, 300, 600), 500.0, "aim 500)   above the aim", id="too-slow"),
        pytest.param(Figure("x", "/s", 2100, 1, 3000), 2000.0, "aim 2000)", id="enough"),
        pytest.param(Figure("x", "/s", 1900, 1, 3000), 2000.0, "aim 2000)   below the aim", id="too-few"),
        pytest.param(Figure("x", "us", 501, 300, 600), None, "600.0)", id="no-aim"),
    ],
)
def test_a_figure_is_shown_against_its_aim(found: Figure, aim: float | None, ending: str) -> None:
    assert line(Measured(found, aim)).endswith(ending)


def test_kept_figures_are_read_back_as_they_were(tmp_path: Path) -> None:
    kept = [Figure("/validate, CPU", "us", 400.5, 300.0, 600.25), Figure("/validate", "/s", 2100.0, 1.0, 3000.0)]

    figures.save(tmp_path / "figures.json", kept)

    assert figures.load(tmp_path / "figures.json") == kept


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"figures": []}', '{"figures": {"x": {"unit": "us"}}}', '{"figures": {"x": 1}}']
)
def test_a_file_that_holds_no_figures_says_so(tmp_path: Path, content: str) -> None:
    file = tmp_path / "other.json"
    file.write_text(content)

    with pytest.raises(FiguresError, match=r"other\.json holds no figures: write it with --save"):
        figures.load(file)


def test_a_file_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(FiguresError, match=r"none\.json: no such file or directory"):
        figures.load(tmp_path / "none.json")
