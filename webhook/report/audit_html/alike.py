"""Objects of one kind and namespace in which exactly the same was found, so that it is said once for all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpugate.webhook.report.audited import Audited


def alike(objects: Iterable[Audited]) -> list[list[Audited]]:
    """Group objects; each group stands where its first object does."""
    groups: dict[tuple[str, ...], list[Audited]] = {}
    for audited in objects:
        name = audited.object
        # Patches hold objects, which have no hash; what is written of them does.
        key = (name.api_version, name.kind, name.namespace, repr(audited.findings))
        groups.setdefault(key, []).append(audited)
    return list(groups.values())
