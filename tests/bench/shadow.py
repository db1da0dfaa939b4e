"""What a shadow policy file costs the reviews, and how many of them it evaluates at full load."""

from __future__ import annotations

import json
import tempfile
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Final

from figures import Measured, figure
from in_turns import compare

if TYPE_CHECKING:
    from collections.abc import Iterator

_CANDIDATE: Final = "apiVersion: gpugate.dev/v1\nkind: PolicyConfig\npolicies:\n  pods/*: {mode: enforce}\n"


def measure() -> Iterator[Measured]:
    """Measure rates and CPU time in pairs, and how many reviews the shadow evaluated."""
    with tempfile.TemporaryDirectory() as name:
        candidate = Path(name) / "candidate.yaml"
        candidate.write_text(_CANDIDATE)
        measured, reviews = compare(Path(name), ["--shadow-policy-file", str(candidate)], _reviews)
    yield from measured
    evaluated = 100 * reviews.get("evaluated", 0) / sum(reviews.values())
    yield Measured(figure("share of the reviews that the shadow evaluated", [evaluated], "%"))


def _reviews(health: str) -> dict[str, int]:
    """Return result -> the reviews that the shadow was given."""
    document = json.loads(urllib.request.urlopen(f"{health}/shadow").read())  # noqa: S310 -- on loopback
    reviews: dict[str, int] = document["reviews"]
    return reviews
