"""Karpenter with its kwok provider: it makes node objects, which kwok keeps Ready. Flags and variables of v1.14."""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from cluster.accounts import account_kubeconfig
from cluster.custom_resources import install, read_definitions
from cluster.namespaces import namespace_object
from cluster.ports import HOST, free_ports
from cluster.probe import answers
from cluster.process import Process
from cluster.simulated_types import written_types

import tools

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cluster.api import Api
    from cluster.control_plane import ControlPlane

NODE_CLASS: Final = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
_NAMESPACE = "karpenter"
# How long Pods are gathered before nodes are made for them; a second and ten by default.
_BATCH = {"BATCH_IDLE_DURATION": "200ms", "BATCH_MAX_DURATION": "1s"}


def karpenter_kubeconfig(api: Api, control_plane: ControlPlane, folder: Path) -> Path:
    """Create the ServiceAccount that Karpenter's chart installs, with all rights; returns its kubeconfig.

    Policies tell Karpenter from people by this user.
    """
    metadata = {"name": "karpenter", "namespace": _NAMESPACE}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "karpenter"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", **metadata}],
    }
    for obj in (namespace_object(_NAMESPACE), account, binding):
        answer = api.apply(obj, force=True)
        assert answer.ok, answer.message
    return account_kubeconfig(api, control_plane, account, folder / "karpenter.kubeconfig")


@contextmanager
def running_karpenter(api: Api, kubeconfig: Path, folder: Path) -> Iterator[Process]:
    """Install its node class, start it, and stop it at the end. Its servers listen on every address: it has no flag.

    Raises:
        ProcessError: it died, or did not become ready.
        ToolsError: the program is missing; says how to get it.
    """
    definitions = read_definitions(tools.module_folder(*tools.KARPENTER_CORE) / "kwok" / "apis" / "crds")
    install(api, (definition for definition in definitions if not api.get(definition)))
    metrics, health = free_ports(2)
    environment = {
        **os.environ,
        **_BATCH,
        "KUBECONFIG": str(kubeconfig),
        "SYSTEM_NAMESPACE": _NAMESPACE,
        "KUBERNETES_MIN_VERSION": "1.19.0-0",
        "MEMORY_LIMIT": str(2**30),
        "CPU_REQUESTS": "1000",
        "DISABLE_LEADER_ELECTION": "true",
        "METRICS_PORT": str(metrics),
        "HEALTH_PROBE_PORT": str(health),
    }
    command = [str(tools.path("karpenter")), f"--instance-types-file-path={written_types(folder / 'types.json')}"]
    process = Process("karpenter", command, folder / "karpenter.log", environment)
    try:
        process.wait_until(partial(answers, f"http://{HOST}:{health}/readyz"))
        node_class = {"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": NODE_CLASS["kind"]}
        answer = api.apply({**node_class, "metadata": {"name": NODE_CLASS["name"]}, "spec": {}})
        assert answer.ok, answer.message
        yield process
    finally:
        process.stop()
