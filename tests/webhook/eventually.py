"""Waiting for what another process does in its own time."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

# A CronJob runs at the next full minute, and a busy machine adds to that.
PATIENCE_SECONDS = 120


def eventually(true: Callable[[], object]) -> bool:
    """Ask again until it is so; False when it never is."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not true():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True
