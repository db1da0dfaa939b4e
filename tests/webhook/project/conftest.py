from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def tree(tmp_path: Path) -> Callable[[dict[str, str]], Path]:
    """Write files, and directories whose names end in a slash; return the directory that holds them."""

    def made(files: dict[str, str]) -> Path:
        for name, text in files.items():
            file = tmp_path / name
            (file if name.endswith("/") else file.parent).mkdir(parents=True, exist_ok=True)
            if not name.endswith("/"):
                file.write_text(text, encoding="utf-8")
        return tmp_path.resolve()

    return made
