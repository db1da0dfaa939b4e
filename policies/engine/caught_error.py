"""What remains of a caught exception: a line for logs, without references to the request."""

from __future__ import annotations

import traceback


def described(error: BaseException) -> str:
    """Return the name of an exception and its line in gpugate's code, such as `KeyError at gpu_demand.py:12`."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return type(error).__name__
    return f"{type(error).__name__} at {frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno}"


def release(error: BaseException) -> None:
    """Detach a caught exception and its causes from their frames.

    An exception refers to its frames, and the frames to the request. A frame that keeps the exception in a variable
    closes a cycle, which only a garbage collection frees. An exception may also contain the input itself:
    `orjson.JSONDecodeError.doc` is a copy of the whole text (orjson 3.13).
    """
    linked: list[BaseException | None] = [error]
    visited: set[int] = set()
    while linked:
        exception = linked.pop()
        if exception is None or id(exception) in visited:
            continue
        visited.add(id(exception))
        linked += [exception.__cause__, exception.__context__]
        traceback.clear_frames(exception.__traceback__)
        exception.__traceback__ = exception.__cause__ = exception.__context__ = None
