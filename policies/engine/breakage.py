"""Says what broke, without the text of the exception, which may quote the object."""

from __future__ import annotations

import traceback


def described(error: BaseException) -> str:
    """Name an exception and the line of ours that it came from, such as `KeyError at gpu_demand.py:12`."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return type(error).__name__
    return f"{type(error).__name__} at {frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno}"
