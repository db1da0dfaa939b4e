"""What a failing test shows beside its traceback."""

from __future__ import annotations

from typing import Protocol

import pytest


class Shown(Protocol):
    """Something with a title and a report for people."""

    @property
    def title(self) -> str:
        """What was judged."""
        ...

    @property
    def report(self) -> str:
        """What was found, with frames of the file."""
        ...


SHOWN = pytest.StashKey[list[Shown]]()
