"""What zizmor, which looks for injection and unpinned actions, says of the GitHub Action."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from integrations.snapshot import ROOT

if TYPE_CHECKING:
    from pathlib import Path


def test_zizmor_finds_nothing(integrations: Path) -> None:
    command = [integrations / "bin" / "zizmor", "--offline", "--no-progress", "--persona=pedantic", ROOT / "action.yml"]

    ran = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 -- fixed words

    assert ran.returncode == 0, ran.stdout
