"""Select the cluster to connect to."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

DEFAULT_KUBECONFIG: Final = "~/.kube/config"
_SERVE_WITHOUT: Final = "run without a cluster with --no-cluster"


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """A cluster: the one this process runs in, or a context of a kubeconfig.

    Attributes:
        kubeconfig: the file; default: the file in `KUBECONFIG`, else `~/.kube/config`.
        context: the context in it; default: the current context.
        in_cluster: use the ServiceAccount of the Pod of this process, and no kubeconfig.
        alternative: an imperative for the user without this cluster, for messages; empty: none.
    """

    kubeconfig: Path | None = None
    context: str | None = None
    in_cluster: bool = False
    alternative: str = field(default="", compare=False)


def detect_cluster(kubeconfig: Path | None, context: str | None, environ: Mapping[str, str]) -> ClusterOptions | None:
    """Select the cluster of a server: the given one, else the cluster that this process runs in, else None.

    The default kubeconfig is not used, because a server must not watch whichever cluster is the current context.
    """
    if kubeconfig is not None or context is not None:
        return ClusterOptions(kubeconfig, context, alternative=_SERVE_WITHOUT)
    # Kubernetes sets this variable in every container.
    return (
        ClusterOptions(in_cluster=True, alternative=_SERVE_WITHOUT) if environ.get("KUBERNETES_SERVICE_HOST") else None
    )


def choose_cluster(
    kubeconfig: Path | None, context: str | None, environ: Mapping[str, str], alternative: str = ""
) -> ClusterOptions:
    """Select the cluster of a command: the given one, else the one that it runs in, else the default of kubectl."""
    # A KUBECONFIG that is set in a Pod takes precedence over its ServiceAccount.
    detected = None if environ.get("KUBECONFIG") else detect_cluster(kubeconfig, context, environ)
    return replace(detected or ClusterOptions(kubeconfig, context), alternative=alternative)
