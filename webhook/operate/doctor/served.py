"""Which resources a cluster serves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpugate.webhook.operate.installation import Unread

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gpugate.webhook.operate.reading import Reader


def served(reader: Reader, groups: Iterable[str]) -> Mapping[str, frozenset[str]] | Unread:
    """Return group -> its resources in any version; a group that is not served has none."""
    found: dict[str, frozenset[str]] = {}
    for group in groups:
        resources: set[str] = set()
        for path in _versions(reader, group):
            listed = reader.one(path, f"resources of {group or 'the core group'}")
            if isinstance(listed, Unread):
                return listed
            resources |= {each["name"] for each in (listed or {}).get("resources") or ()}
        found[group] = frozenset(resources)
    return found


def _versions(reader: Reader, group: str) -> list[str]:
    if not group:
        return ["/api/v1"]
    described = reader.one(f"/apis/{group}", f"versions of {group}")
    versions = [] if described is None or isinstance(described, Unread) else described.get("versions") or []
    return [f"/apis/{group}/{each['version']}" for each in versions]
