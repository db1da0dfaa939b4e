"""A ServiceAccount that may keep certificates in one namespace, and do nothing else."""

from __future__ import annotations

import time
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from cluster.accounts import account_kubeconfig

from gpugate.webhook.cluster import named_object
from gpugate.webhook.cluster.connection import connect
from gpugate.webhook.cluster.errors import ApiError
from gpugate.webhook.cluster.options import ClusterOptions
from gpugate.webhook.registration.rbac import keeper_rbac

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cluster.api import Api
    from cluster.control_plane import ControlPlane

    from gpugate.webhook.cluster.connection import Connection

SECRET = "certificates"  # noqa: S105 -- its name
LEASE = "leader"
_PATIENCE_SECONDS = 90


@contextmanager
def keeper_connection(api: Api, control_plane: ControlPlane, folder: Path, namespace: str) -> Iterator[Connection]:
    """Connect as that account; the namespace is also the name of both its webhook configurations, and of its roles."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "keeper", "namespace": namespace}}
    roles = [_renamed(each, namespace) for each in keeper_rbac(namespace, "keeper", SECRET, LEASE, namespace)]
    for each in (account, *roles):
        answer = api.apply(each)
        assert answer.ok, answer.message
    kubeconfig = account_kubeconfig(api, control_plane, account, folder / "kubeconfig")
    with closing(connect(ClusterOptions(kubeconfig))) as connection:
        _wait_for_rights(connection, namespace)
        yield connection
    for each in roles:
        api.delete(each)


def _renamed(role: dict[str, Any], name: str) -> dict[str, Any]:
    reference = {"roleRef": {**role["roleRef"], "name": name}} if "roleRef" in role else {}
    return {**role, "metadata": {**role["metadata"], "name": name}, **reference}


def _wait_for_rights(connection: Connection, namespace: str) -> None:
    """Roles and their bindings come into force one by one, soon after they were made."""
    every = (
        named_object.secret(namespace, SECRET),
        *named_object.configurations(namespace).values(),
        named_object.namespace(namespace),
    )
    end = time.monotonic() + _PATIENCE_SECONDS
    while not all(_may_read(connection, each.path) for each in every):
        assert time.monotonic() < end, "the roles did not come into force"
        time.sleep(0.05)


def _may_read(connection: Connection, path: str) -> bool:
    try:
        connection.read(path, {})
    except ApiError as error:
        return error.code != 403
    return True
