"""What a release leaves behind in a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cluster.everything import everything

if TYPE_CHECKING:
    from cluster.api import Api

# What every namespace has from Kubernetes itself, soon after it was made.
_OF_KUBERNETES = ("/kube-root-ca.crt", "/default")


class Leftovers:
    """Compares with what there was when it last found nothing, to begin with when it was made."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._before = everything(api)
        self._namespaces: set[str] = set()

    def of(self, namespace: str) -> list[str]:
        """Return what is new, but for the namespaces of releases, which Helm does not delete."""
        now = everything(self._api)
        self._namespaces.add(f"namespaces {namespace}")
        new = now - self._before - self._namespaces
        left = sorted(each for each in new if not each.endswith(_OF_KUBERNETES))
        if not left:
            self._before = now
        return left
