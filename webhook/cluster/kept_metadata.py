"""What describes an object that we make: also one that was there before, and that somebody deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpugate.webhook.cluster.place import Place

_LABELS: Final = {"app.kubernetes.io/name": "gpugate"}
# What people ask of us; it was asked of the one that is gone.
_REQUESTS: Final = "gpugate.dev/"


def made_metadata(place: Place, before: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the metadata of an object to create, with labels and annotations as the one before had them, if there was one.

    Helm tells by a label and two annotations what belongs to a release, and deletes nothing else (v4.3 pkg/action/validate.go).
    Without one before there is no `managed-by`: server-side apply by Helm would be a conflict.
    """
    annotations = {k: v for k, v in ((before or {}).get("annotations") or {}).items() if not k.startswith(_REQUESTS)}
    return {
        "name": place.name,
        "namespace": place.namespace,
        "labels": (before or {}).get("labels") or _LABELS,
        **({"annotations": annotations} if annotations else {}),
    }
