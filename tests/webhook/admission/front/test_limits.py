from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path

import pytest

from gpugate.webhook.admission.front.limits import Limits
from gpugate.webhook.admission.review import MAX_BODY

PAGE = Path(__file__).parents[4] / "docs" / "reference" / "server-limits.md"
KIB = 1024
# The limits of each row of the page, in the order of its numbers, and the unit of these.
ROWS = {
    "handshake, head, body, reading a response": (("handshake", "header", "body", "write"), 1),
    "keep-alive": (("keep_alive",), 1),
    "bodies in memory": (("in_flight",), KIB * KIB),
    "an unfinished body that newer ones cannot evict": (("body_grace",), 1),
    "queued work": (("waiting",), 1),
    "connections": (("connections", "per_source"), 1),
    "URL, header, head": (("url", "header_line", "head", "headers"), KIB),
    "requests of a connection that wait for the response to an earlier one": (("pipelined",), 1),
    "waiting for missing cluster data": (("late_facts", "awaiting_facts"), 1),
}


def numbers(row: str) -> list[float]:
    """Return the numbers in the second column of a row of the page."""
    (value,) = re.findall(rf"^\| {re.escape(row)} \| ([^|]*) \|", PAGE.read_text(), re.MULTILINE)
    return [float(number.replace(",", "")) for number in re.findall(r"[0-9][0-9,.]*", value.replace(", ", " "))]


@pytest.mark.parametrize(("row", "names", "unit"), [(row, *found) for row, found in ROWS.items()], ids=list(ROWS))
def test_the_page_states_the_limits(row: str, names: tuple[str, ...], unit: int) -> None:
    limits = asdict(Limits())
    assert numbers(row) == [limits[name] / (1 if name == "headers" else unit) for name in names]


def test_the_page_states_the_largest_body() -> None:
    assert numbers("body") == [MAX_BODY / KIB / KIB]
