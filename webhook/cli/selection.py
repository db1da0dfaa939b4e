"""Which policies `--select` and `--ignore` leave in force."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.policies.engine.config import near_misses
from gpugate.policies.sdk import formats
from gpugate.webhook.cli.options import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence


def selected(known: Sequence[str], select: Sequence[str], ignore: Sequence[str]) -> frozenset[str] | None:
    """Return the ids that remain; None when nothing was said, so that all do.

    Args:
        known: the id of every policy.
        select: ids or patterns such as `pods/*`, several in one text with commas; all where there is none.
        ignore: the same, for what is left out again.

    Raises:
        UsageError: an id or a pattern names no policy.
    """
    if not select and not ignore:
        return None
    chosen = _named(known, select, "--select") if select else frozenset(known)
    return chosen - _named(known, ignore, "--ignore")


def _named(known: Sequence[str], values: Sequence[str], flag: str) -> frozenset[str]:
    selected_ids: set[str] = set()
    for name in (part.strip() for value in values for part in value.split(",")):
        fitting = {policy for policy in known if formats.matches(name, policy)}
        if not fitting:
            near = near_misses(name, known)
            meant = f"did you mean {near[0]}?" if near else "`gpugate policies` lists them"
            raise UsageError(f"{flag} {name}: unknown policy; {meant}")
        selected_ids |= fitting
    return frozenset(selected_ids)
