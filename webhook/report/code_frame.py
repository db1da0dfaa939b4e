"""A place in a file for a terminal: its lines with their numbers, and a caret below what is meant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.webhook.report.colour import BLUE, Paint
from gpugate.webhook.report.plain import plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.webhook.report.located import Place

# A line of minified JSON is not shown whole.
_WIDTH: Final = 240


def where(place: Place) -> str:
    """Write file, line and column as compilers do."""
    return place.where


def margin(place: Place) -> str:
    """Return as many spaces as the line numbers are wide."""
    return " " * len(str(place.first_line + len(place.excerpt) - 1)) if place.excerpt else " "


def frame(place: Place, colour: int, paint: Paint) -> Iterator[str]:
    """Yield the lines of a frame; none where no line is known."""
    if not place.excerpt:
        return
    bar, left = paint("|", BLUE), margin(place)
    yield f"{left} {bar}"
    for number, line in enumerate(place.excerpt, place.first_line):
        cut = line if len(line) <= _WIDTH else f"{line[: _WIDTH - 3]}..."
        yield f"{paint(f'{number:>{len(left)}}', BLUE)} {bar} {plain(cut)}".rstrip()
        if number == (place.rendered or place.line) and place.end <= _WIDTH:
            start, end = (
                (len(cut) - len(cut.lstrip()), len(cut)) if place.rendered else (place.column - 1, place.end - 1)
            )
            yield f"{left} {bar} {' ' * start}{paint('^' * max(1, end - start), colour)}"
    yield f"{left} {bar}"
