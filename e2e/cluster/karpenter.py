"""Karpenter with its kwok provider: it makes node objects, which kwok keeps Ready. Flags and variables of v1.14."""

from __future__ import annotations

import os
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from cluster.custom_resources import install, read_definitions
from cluster.ports import HOST, free_ports
from cluster.probe import answers
from cluster.process import Process
from cluster.simulated_types import written_types

import tools

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cluster.api import Api

NODE_CLASS: Final = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
_NAMESPACE = "karpenter"
# How long Pods are gathered before nodes are made for them; a second and ten by default.
_BATCH = {"BATCH_IDLE_DURATION": "200ms", "BATCH_MAX_DURATION": "1s"}


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
