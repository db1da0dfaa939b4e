"""Writes which requests a webhook is for: groups, versions, resources, operations and scope, each by its name.

Nothing stands for anything but the versions of workloads that nobody judges otherwise. A rule for `*/*` would send the
API server's own questions, such as token reviews, and hold up nodes, leases and certificates when nobody answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpugate.policies.sdk.objects import Operation

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gpugate.webhook.generate.judged_resources import Judged


def rules(judged: Iterable[Judged]) -> list[dict[str, Any]]:
    """Return the rules of a webhook for some resources; those that differ in their resource alone are one."""
    resources: dict[tuple[str, tuple[str, ...], frozenset[Operation], bool], list[str]] = {}
    for each in judged:
        for (subresource, versions), operations in each.requests.items():
            key = (each.group, versions, operations, each.namespaced)
            resources.setdefault(key, []).append(f"{each.plural}/{subresource}" if subresource else each.plural)
    return [
        {
            "apiGroups": [group],
            "apiVersions": list(versions),
            "resources": names,
            "operations": [operation.value for operation in Operation if operation in operations],
            "scope": "Namespaced" if namespaced else "Cluster",
        }
        for (group, versions, operations, namespaced), names in resources.items()
    ]
