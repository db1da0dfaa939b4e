"""Which cluster to look at, and how to find out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

DEFAULT_KUBECONFIG: Final = "~/.kube/config"


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """A cluster: the one this process runs in, or a context of a kubeconfig.

    Attributes:
        kubeconfig: the file; without one what `KUBECONFIG` names, else `~/.kube/config`.
        context: the context in it; without one the current context.
        in_cluster: use the ServiceAccount of the Pod this runs in, and no kubeconfig.
    """

    kubeconfig: Path | None = None
    context: str | None = None
    in_cluster: bool = False


def detect(kubeconfig: Path | None, context: str | None, environ: Mapping[str, str]) -> ClusterOptions | None:
    """Find the cluster that a server is to look at: the one that is named, else the one that this process runs in.

    None where there is neither: a person's own kubeconfig is no reason to watch the cluster that it leads to today.
    """
    if kubeconfig is not None or context is not None:
        return ClusterOptions(kubeconfig, context)
    # Kubernetes sets it in every container.
    return ClusterOptions(in_cluster=True) if environ.get("KUBERNETES_SERVICE_HOST") else None


def chosen(kubeconfig: Path | None, context: str | None, environ: Mapping[str, str]) -> ClusterOptions:
    """Find the cluster that a command is about: the one that is named, else the one it runs in, else kubectl's."""
    # Who sets KUBECONFIG in a Pod means that one.
    found = None if environ.get("KUBECONFIG") else detect(kubeconfig, context, environ)
    return found or ClusterOptions(kubeconfig, context)
