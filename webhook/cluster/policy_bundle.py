"""Which policy bundle an installed webhook uses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

_Object: TypeAlias = "Mapping[str, Any]"  # Any: the JSON edge


def bundle_reference(pod_spec: _Object) -> str:
    """Return the reference of the bundle that an init container pulls; empty if there is none.

    The arguments are those of the Helm chart: `bundle pull REFERENCE DIRECTORY`, with flags behind them.
    """
    for container in pod_spec.get("initContainers") or ():
        match container.get("args"):
            case ["bundle", "pull", str(reference), *_]:
                return reference
    return ""
