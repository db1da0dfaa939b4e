"""Waits for a length of time that goes on while the machine is suspended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.webhook.admission.server_clock import awake_or_asleep

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

# What is waited for in one go stands still with the machine.
_SLICE_SECONDS: Final = 1.0


def wait(
    seconds: float, wake: threading.Event, over: Callable[[], bool], clock: Callable[[], float] = awake_or_asleep
) -> None:
    """Wait for so many seconds, until `wake` is set, or until it is `over`, which is asked once a second."""
    end = clock() + seconds
    while (left := end - clock()) > 0 and not over():
        if wake.wait(min(left, _SLICE_SECONDS)):
            return
