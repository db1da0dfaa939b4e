from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

PROGRAMS = Path(__file__).parents[2] / "image"


@pytest.fixture
def run() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a program of `image/` with arguments, and with what is to be set in its environment."""

    def ran(name: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(PROGRAMS / name), *arguments]
        surroundings = {**os.environ, **environment}
        return subprocess.run(command, env=surroundings, capture_output=True, text=True, check=False)  # noqa: S603 -- ours

    return ran
