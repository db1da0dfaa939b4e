"""Changes one thing in an object."""

from __future__ import annotations

from typing import Any


def put(obj: dict[str, Any], path: str, value: object) -> None:
    """Write a value at a path such as `spec.taints.0.effect`; `...` removes what is there."""
    at: Any = obj
    *above, last = path.split(".")
    for part in above:
        at = at[int(part)] if isinstance(at, list) else at.setdefault(part, {})
    key = int(last) if isinstance(at, list) else last
    if value is ...:
        del at[key]
    elif isinstance(at, list) and key == len(at):
        at.append(value)
    else:
        at[key] = value
