"""Text that is safe on the wire and in a log: no control characters, and no longer than it may be."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

ELLIPSIS = "..."


def plain(text: str) -> str:
    """Write control, bidirectional and other unprintable characters as Python's escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode("ascii") for c in text)


def cut(text: str, length: int) -> str:
    """Shorten a text to at most `length` characters; what was cut shows as an ellipsis."""
    return text if len(text) <= length else text[: length - len(ELLIPSIS)] + ELLIPSIS


def brief(text: str, length: int) -> str:
    """Write a text plainly in at most `length` characters; looks at no more of it than that."""
    return cut(plain(text[: length + 1]), length)


def within(text: str, size: int) -> str:
    """Shorten a text to at most `size` bytes of UTF-8; what was cut shows as an ellipsis."""
    data = text.encode()
    return text if len(data) <= size else data[: size - len(ELLIPSIS)].decode(errors="ignore") + ELLIPSIS


def listed(items: Iterable[str], length: int) -> str:
    """Join items with commas as far as they fit; what did not fit shows as a count."""
    shown, rest, used = [], 0, 0
    for item in items:
        used += len(item) + 1
        if used > length - len(" and 10000 more"):
            rest += 1
        else:
            shown.append(item)
    return ",".join(shown) + (f" and {rest} more" if rest else "")
