"""Namespaces that can be worked in: those that are new are not ready yet, and those that are deleted are not gone yet."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from eventually import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.api import Api

# The namespace controller takes five seconds at least for one in which there was something (k8s.io/kubernetes v1.36
# pkg/controller/namespace, namespaceDeletionGracePeriod).
_PATIENCE_SECONDS = 90.0


def namespace_object(name: str) -> dict[str, Any]:
    """Write a Namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def make_namespace(api: Api, name: str) -> dict[str, Any]:
    """Make a namespace that is not there, also where one of that name is still on its way out; ready when it is returned."""
    made = namespace_object(name)
    api.eventually(made, lambda found: not found, _PATIENCE_SECONDS)
    answer = api.create(made)
    assert answer.ok, answer.message
    until_ready(api, name)
    return made


@contextmanager
def made_namespaces(api: Api, *names: str) -> Iterator[None]:
    """Make namespaces, and delete them at the end."""
    made = []
    try:
        made += [make_namespace(api, name) for name in names]
        yield
    finally:
        for each in made:
            api.delete(each)


def until_ready(api: Api, name: str) -> None:
    """Wait for what Kubernetes itself puts into a namespace.

    Pods are refused before its ServiceAccount is there, and a webhook for ConfigMaps would be asked about the other.
    """
    for kind, own in (("ServiceAccount", "default"), ("ConfigMap", "kube-root-ca.crt")):
        api.eventually({"apiVersion": "v1", "kind": kind, "metadata": {"name": own, "namespace": name}}, bool)


def until_none_is_ending(api: Api) -> None:
    """Wait until whatever is being deleted with its namespace is gone."""

    def ending() -> list[str]:
        every = api.list("v1", "Namespace")
        return [each["metadata"]["name"] for each in every if "deletionTimestamp" in each["metadata"]]

    assert eventually(lambda: not ending()), f"still being deleted: {ending()}"
