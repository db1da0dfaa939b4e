from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from gpugate.webhook.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Callable

FIXTURES = Path(__file__).parents[2] / "fixtures"


class Ran(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def gpugate(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Run a command in this process."""

    def ran(*arguments: str | Path) -> Ran:
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as exit_:  # argparse leaves this way
            code = int(exit_.code or 0)
        return Ran(code, *capsys.readouterr())

    return ran


@pytest.fixture
def manifests() -> Path:
    return FIXTURES / "manifests"


@pytest.fixture
def reviews() -> Path:
    return FIXTURES / "reviews"


@pytest.fixture
def broken() -> Path:
    return FIXTURES / "broken"
