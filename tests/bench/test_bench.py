from __future__ import annotations

from typing import TYPE_CHECKING

import bench
import pytest
from figures import Figure, Measured

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """`run(100, "--save", file)`: measures one figure of 100 us."""

    def main(microseconds: float, *arguments: str, name: str = "a review") -> int:
        found = Measured(Figure(name, "us", microseconds, microseconds, microseconds))
        monkeypatch.setattr(bench, "PARTS", {"reviews": (lambda: iter([found]), "reviews")})
        monkeypatch.setattr("sys.argv", ["bench", "--only", "reviews", *arguments])
        return bench.main()

    return main


@pytest.mark.parametrize(
    ("now", "arguments", "code"),
    [
        pytest.param(110, (), 0, id="within-the-usual-threshold"),
        pytest.param(130, (), 1, id="beyond-it"),
        pytest.param(110, ("--threshold", "5"), 1, id="beyond-a-stricter-one"),
        pytest.param(130, ("--threshold", "50"), 0, id="within-a-laxer-one"),
    ],
)
def test_the_exit_code_says_whether_something_got_worse(
    run: Callable[..., int], tmp_path: Path, now: float, arguments: tuple[str, ...], code: int
) -> None:
    kept = str(tmp_path / "before.json")
    assert run(100, "--save", kept) == 0

    assert run(now, "--compare", kept, *arguments) == code


def test_figures_of_something_else_cannot_be_compared(
    run: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = str(tmp_path / "before.json")
    run(100, "--save", kept)

    assert run(100, "--compare", kept, name="a check") == 2
    assert "none of the figures in the file was measured now" in capsys.readouterr().err


def test_a_file_that_cannot_be_read_is_named(
    run: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(100, "--compare", str(tmp_path / "none.json")) == 2
    assert "none.json: no such file or directory" in capsys.readouterr().err
