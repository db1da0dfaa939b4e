"""Aligns the cells of a table for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.webhook.report.colour import DIM, Paint
from gpugate.webhook.report.plain import plain

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    Codes = tuple[int, ...]


def aligned(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    paint: Paint,
    *,
    right: Collection[int] = (),
    colours: Mapping[int, Codes] | None = None,
) -> Iterator[str]:
    """Yield the lines of a table; `right` are columns of numbers, `colours` those of columns, but for zeros and `-`."""
    cells = [list(map(plain, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)]
    yield paint(_line(header, widths, right).rstrip(), DIM)
    for row in cells:
        padded = [
            _pad(cell, width, index in right) for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        painted = [
            paint(text, *(colours or {}).get(index, ())) if row[index] not in {"0", "-"} else text
            for index, text in enumerate(padded[:-1])
        ]
        last = len(padded) - 1
        painted.append(paint(padded[last].rstrip(), *(colours or {}).get(last, ())))
        yield "  ".join(painted).rstrip()


def _line(row: Sequence[str], widths: Sequence[int], right: Collection[int]) -> str:
    return "  ".join(
        _pad(cell, width, index in right) for index, (cell, width) in enumerate(zip(row, widths, strict=True))
    )


def _pad(cell: str, width: int, is_right: bool) -> str:  # noqa: FBT001 -- a cell's side
    return cell.rjust(width) if is_right else cell.ljust(width)
