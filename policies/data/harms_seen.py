"""Harms that policies prevent, as they were seen on real controllers: what happened, what gpugate did, what it would cost.

The facts stand in `harms_seen.json`, written by the end-to-end tests that show them (`make harms RECORD=1`).
"""

from __future__ import annotations

import pkgutil

import msgspec


class SeenHarm(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One harm.

    Attributes:
        policy: the id of the policy that prevents it.
        test: the file that shows it, in this repository, and the name of the test, with `::` between.
        happened: a sentence without its full stop: what happened without gpugate.
        seconds: how long that took.
        prevented: what happened with gpugate instead.
        gpu_hours: GPUs that were paid for in vain, in hours of a day; 0 where none were.
        dollars: what their nodes cost a day, on demand in us-east-1.
        controllers: what it was seen on, by name and version.
        date: when, as in 2026-11-21.
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
    """Read the harms that are part of this package, in the order of the policies' ids."""
    content = pkgutil.get_data(__package__, "harms_seen.json") or b"[]"
    return msgspec.json.decode(content, type=tuple[SeenHarm, ...])
