"""Objects of one kind in which the same was found, so that it is said once for all of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpugate.webhook.report.audited import Audited


@dataclass(frozen=True, slots=True)
class Likeness:
    """When objects are alike, beside their kind.

    Attributes:
        messages: whether findings must say the same, or only be of the same policies, places and remedies. Messages may name
            figures of their object.
        namespaces: whether they must be in one namespace.
    """

    messages: bool = True
    namespaces: bool = True


def alike(objects: Iterable[Audited], likeness: Likeness) -> list[list[Audited]]:
    """Group objects; each group stands where its first object does."""
    groups: dict[tuple[str, ...], list[Audited]] = {}
    for audited in objects:
        name, found = audited.object, audited.findings
        if not likeness.messages:
            found = tuple(replace(finding, message="") for finding in found)
        # Patches hold objects, which have no hash; what is written of them does.
        key = (name.api_version, name.kind, name.namespace if likeness.namespaces else "", repr(found))
        groups.setdefault(key, []).append(audited)
    return list(groups.values())
