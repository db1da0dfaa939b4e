"""The fleet report on engines other than DuckDB: `make engines`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

FOLDER = Path(__file__).parent


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    # They need what only `make engines` installs, and run where the command line names this folder.
    named = [config.invocation_params.dir / argument.partition("::")[0] for argument in config.args]
    return None if any(path.resolve().is_relative_to(FOLDER) for path in named) else True


def pytest_report_header() -> str:
    trino = "the one at $TRINO" if os.environ.get("TRINO") else "not run: name a server with TRINO=URL"
    return f"engines: Spark in this process, ClickHouse in this process, Trino {trino}"
