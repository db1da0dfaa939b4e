"""Harms that policies prevent, observed on real controllers: what happened, what gpugate did, and the cost.

The end-to-end tests that show the harms write `harms_seen.json` (`make harms RECORD=1`).
"""

from __future__ import annotations

import pkgutil

import msgspec


class SeenHarm(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A harm.

    Attributes:
        policy: the id of the policy that prevents it.
        test: the file in this repository and the name of the test that shows it, separated by `::`.
        happened: what happened without gpugate, a sentence without its full stop.
        seconds: the duration.
        prevented: what happened with gpugate instead.
        gpu_hours: GPU hours per day that were paid but not used; 0 if there were none.
        dollars: the cost of their nodes per day, on demand in us-east-1.
        controllers: the controllers on which it was observed, by name and version.
        date: the date of the observation, such as 2026-11-21.
    """

    policy: str
    test: str
    happened: str
    seconds: int
    prevented: str
    gpu_hours: int
    dollars: float
    controllers: tuple[str, ...]
    date: str


def load_harms_seen() -> tuple[SeenHarm, ...]:
    """Return the harms of this package, sorted by policy."""
    content = pkgutil.get_data(__package__, "harms_seen.json") or b"[]"
    return msgspec.json.decode(content, type=tuple[SeenHarm, ...])
