"""Writes which harm of a policy was seen happening, for its page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpugate.policies.data.harms_seen import SeenHarm

HEADING: Final = "Seen happening"
_ROOT: Final = "../../.."


def seen_happening(policy_id: str, harms: Iterable[SeenHarm]) -> Iterator[str]:
    """Yield the lines of the section, in Markdown; none where no harm of this policy was seen."""
    own = [harm for harm in harms if harm.policy == policy_id]
    if own:
        yield from (f"## {HEADING}", "")
        for harm in own:
            yield from (*_told(harm), "")


def _told(harm: SeenHarm) -> Iterator[str]:
    file, _, name = harm.test.partition("::")
    *first, last = harm.controllers
    controllers = f"{', '.join(first)} and {last}" if first else last
    yield f"**Without gpugate:** {harm.happened} (after {harm.seconds} s).{_cost(harm)}\\"
    yield f"**With gpugate:** {harm.prevented}.\\"
    yield f"Seen on {controllers}, on {harm.date}: [{name}]({_ROOT}/{file})."


def _cost(harm: SeenHarm) -> str:
    if not harm.dollars:
        return ""
    gpus = f"{harm.gpu_hours:,} GPU-hours, " if harm.gpu_hours else ""
    return f" A day of it costs {gpus}${harm.dollars:,.2f}."
