"""Names all there is in a cluster, whatever it is of, so that what something left behind is seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.api import Api

# They tell of what was, and go by themselves.
_TOLD = {"events"}


def everything(api: Api) -> frozenset[str]:
    """Return each object as `RESOURCE.GROUP NAMESPACE/NAME`, by the version that the API server prefers."""
    return frozenset(
        f"{resource}{'.' if group else ''}{group} {_named(item)}"
        for group, path, resource in _resources(api)
        for item in api.request("GET", f"{path}/{resource}").body.get("items") or ()
    )


def _resources(api: Api) -> Iterator[tuple[str, str, str]]:
    groups = {"": "/api/v1"}
    for group in api.request("GET", "/apis").body["groups"]:
        groups[group["name"]] = f"/apis/{group['preferredVersion']['groupVersion']}"
    for group, path in groups.items():
        for resource in api.request("GET", path).body["resources"]:
            if "list" in resource["verbs"] and resource["name"] not in _TOLD:
                yield group, path, resource["name"]


def _named(item: dict[str, Any]) -> str:
    return "/".join(filter(None, (item["metadata"].get("namespace"), item["metadata"]["name"])))
