"""Says what broke, without the text of the exception, which may quote the object, and lets the exception go."""

from __future__ import annotations

import traceback


def described(error: BaseException) -> str:
    """Name an exception and the line of ours that it came from, such as `KeyError at gpu_demand.py:12`."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return type(error).__name__
    return f"{type(error).__name__} at {frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno}"


def release(error: BaseException) -> None:
    """Detach a caught exception, and those it was raised from, from the frames it passed through.

    An exception refers to its frames, and the frames to the request. A frame that keeps the exception in a variable
    closes a cycle, and only a garbage collection frees what is in a cycle. An exception may also hold the input itself:
    `orjson.JSONDecodeError.doc` is a copy of the whole text (orjson 3.13).
    """
    linked: list[BaseException | None] = [error]
    seen: set[int] = set()
    while linked:
        each = linked.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        linked += [each.__cause__, each.__context__]
        traceback.clear_frames(each.__traceback__)
        each.__traceback__ = each.__cause__ = each.__context__ = None
