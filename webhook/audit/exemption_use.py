"""Which exemptions of the configuration are over, and which let nobody off."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Collection, Iterator, Sequence

    from gpugate.policies.engine.config import Exemption


def expired(exemptions: Sequence[Exemption], today: dt.date) -> Iterator[str]:
    """Say which exemptions are over."""
    for exemption in exemptions:
        if exemption.expires < today:
            yield f"{_named(exemption)}: over since {exemption.expires} ({exemption.owner}: {exemption.reason})"


def unused(exemptions: Sequence[Exemption], today: dt.date, used: Collection[int]) -> Iterator[str]:
    """Say which exemptions in force lowered no finding; `used` are the places of those that did.

    Of one that names users or groups nobody can say: who would create an object is not known.
    """
    for place, exemption in enumerate(exemptions):
        by_anybody = exemption.users == ("*",) and exemption.groups == ("*",)
        if place not in used and exemption.expires >= today and by_anybody:
            yield f"{_named(exemption)}: lets nothing off ({exemption.owner}: {exemption.reason})"


def bound_to_people(exemptions: Sequence[Exemption], today: dt.date) -> int:
    """Count the exemptions in force that name users or groups, and are not applied because of that."""
    found = (e for e in exemptions if e.expires >= today and (e.users != ("*",) or e.groups != ("*",)))
    return sum(1 for _ in found)


def _named(exemption: Exemption) -> str:
    """Name an exemption by what it lets off which policies."""
    places = (
        ("kinds", exemption.kinds),
        ("namespaces", exemption.namespaces),
        ("names", exemption.names),
    )
    limits = "; ".join(f"{key} {', '.join(texts)}" for key, texts in places if texts != ("*",))
    return f"{', '.join(exemption.policies)}{f' for {limits}' if limits else ''}"
