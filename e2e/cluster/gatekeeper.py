"""Gatekeeper outside a cluster, with its CEL engine. Flags and objects of v3.23."""

from __future__ import annotations

import os
import ssl
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from cluster.certificates import Certificates
from cluster.custom_resources import install, read_definitions
from cluster.ports import HOST, free_ports
from cluster.probe import answers
from cluster.process import Process

import tools

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from cluster.api import Api

_NAMESPACE: Final = "gatekeeper-system"
_POD: Final = "gatekeeper"
_TARGET: Final = "admission.k8s.gatekeeper.sh"
_CONSTRAINTS: Final = "constraints.gatekeeper.sh/v1beta1"
# Audit and mutation are not measured, and native policies made from templates would evaluate each object twice.
_OPERATIONS: Final = ("webhook", "generate", "status")


@dataclass(frozen=True)
class Gatekeeper:
    """A Gatekeeper that runs: the URL of its server, whose `/v1/admit` validates, and the file of its authority."""

    process: Process
    url: str
    authority: Path


@contextmanager
def running_gatekeeper(api: Api, kubeconfig: Path, folder: Path, rules: Mapping[str, str]) -> Iterator[Gatekeeper]:
    """Install its definitions, start it with one template and constraint on Pods per rule, and stop it at the end.

    Args:
        api: the API server.
        kubeconfig: a way to it with all rights.
        folder: an empty folder for its certificates and its log.
        rules: CEL expressions that an allowed Pod fulfils, by name; `object` is the Pod.

    Raises:
        ProcessError: it died, or did not become ready.
        ToolsError: the program is missing; says how to get it.
    """
    install(api, read_definitions(tools.module_folder(*tools.GATEKEEPER) / "charts" / "gatekeeper" / "crds"))
    _create_pod(api)
    certificates = Certificates(folder)
    served = folder / "served"
    served.mkdir()
    (served / "tls.crt").symlink_to(certificates.server.certificate)
    (served / "tls.key").symlink_to(certificates.server.key)
    port, health, metrics = free_ports(3)
    flags = (
        f"--kubeconfig={kubeconfig}",
        f"--cert-dir={served}",
        "--disable-cert-rotation",
        f"--host={HOST}",
        f"--port={port}",
        f"--health-addr={HOST}:{health}",
        f"--prometheus-port={metrics}",
        *(f"--operation={operation}" for operation in _OPERATIONS),
        "--log-level=ERROR",
        "--default-create-vap-for-templates=false",
        "--default-create-vap-binding-for-constraints=false",
    )
    environment = {**os.environ, "POD_NAMESPACE": _NAMESPACE, "POD_NAME": _POD}
    process = Process("gatekeeper", [str(tools.path("gatekeeper")), *flags], folder / "log", environment)
    try:
        for name, expression in rules.items():
            _apply(api, _template(name, expression))
        for name in rules:
            process.wait_until(partial(api.served, _CONSTRAINTS, name.capitalize()), f"serving {name}")
            _apply(api, _constraint(name))
        process.wait_until(partial(answers, f"http://{HOST}:{health}/readyz", ssl.create_default_context()))
        yield Gatekeeper(process, f"https://{HOST}:{port}", certificates.authority)
    finally:
        process.stop()


def _create_pod(api: Api) -> None:
    """Create the namespace and the Pod that it runs in: its status objects have the Pod as their owner.

    Without an owner that exists, the garbage collector deletes them, and Gatekeeper writes them again without end.
    """
    _apply(api, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE}})
    account = {"name": "default", "namespace": _NAMESPACE}
    _apply(api, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})
    metadata = {"name": _POD, "namespace": _NAMESPACE}
    container = {"name": "manager", "image": "registry.example/gatekeeper:v3.23.0"}
    _apply(api, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}})


def _template(name: str, expression: str) -> dict[str, Any]:
    # `variables.anyObject` is the object, and on DELETE the old one.
    validation = {"expression": expression.replace("object.", "variables.anyObject."), "message": name}
    engine = {"engine": "K8sNativeValidation", "source": {"validations": [validation]}}
    return {
        "apiVersion": "templates.gatekeeper.sh/v1",
        "kind": "ConstraintTemplate",
        "metadata": {"name": name},
        "spec": {
            "crd": {"spec": {"names": {"kind": name.capitalize()}}},
            "targets": [{"target": _TARGET, "code": [engine]}],
        },
    }


def _constraint(name: str) -> dict[str, Any]:
    return {
        "apiVersion": _CONSTRAINTS,
        "kind": name.capitalize(),
        "metadata": {"name": name},
        "spec": {"match": {"kinds": [{"apiGroups": [""], "kinds": ["Pod"]}]}},
    }


def _apply(api: Api, obj: dict[str, Any]) -> None:
    answer = api.apply(obj, force=True)
    assert answer.ok, answer.message
