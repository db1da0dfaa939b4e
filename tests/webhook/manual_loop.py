"""An event loop whose time a test sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Loop:
    """As much of an event loop as idle work uses."""

    def __init__(self) -> None:
        self.now = 0.0
        self.calls: list[tuple[float, Callable[[], None]]] = []

    def time(self) -> float:
        return self.now

    def call_later(self, seconds: float, call: Callable[[], None]) -> None:
        self.calls.append((self.now + seconds, call))

    def call_soon(self, call: Callable[[], None]) -> None:
        self.call_later(0, call)

    def run(self, seconds: float) -> None:
        """Let time pass."""
        end = self.now + seconds
        while due := min((entry for entry in self.calls if entry[0] <= end), key=lambda entry: entry[0], default=None):
            self.calls.remove(due)
            self.now = max(self.now, due[0])
            due[1]()
        self.now = end
