"""The table of harms that is printed at the end of a run."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from harms.harm import Seen

_HEAD = ("policy", "harm seen", "with gpugate", "cost a day")
_WIDTHS = (38, 52, 52, 26)


def table(seen: Iterable[Seen]) -> Iterator[str]:
    """Yield its lines, in the order of the policies."""
    yield from _lines(_HEAD)
    yield "  ".join("-" * width for width in _WIDTHS)
    for each in sorted(seen, key=lambda one: (one.policy, one.test)):
        happened = f"{each.happened} (after {each.seconds:.0f} s)"
        yield from _lines((each.policy, happened, each.prevented, cost(each.gpu_hours, each.dollars)))


def cost(gpu_hours: int, dollars: float) -> str:
    """Say what a day costs; a dash where nothing is wasted."""
    if not dollars:
        return "-"
    gpus = f"{gpu_hours:,} GPU-hours, " if gpu_hours else ""
    return f"{gpus}${dollars:,.2f}"


def _lines(cells: Sequence[str]) -> Iterator[str]:
    wrapped = [textwrap.wrap(cell, width) or [""] for cell, width in zip(cells, _WIDTHS, strict=True)]
    for number in range(max(map(len, wrapped))):
        parts = (lines[number] if number < len(lines) else "" for lines in wrapped)
        padded = (part.ljust(width) for part, width in zip(parts, _WIDTHS, strict=True))
        yield "  ".join(padded).rstrip()
