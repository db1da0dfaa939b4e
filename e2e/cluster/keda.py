"""KEDA's operator and its admission webhook. Flags and variables of v2.21; its metrics server is not needed.

The operator itself moves a target between 0 and 1 and makes the HorizontalPodAutoscalers of ScaledObjects.
"""

from __future__ import annotations

import base64
import datetime as dt
import os
import socket
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import yaml
from cluster.namespaces import namespace_object
from cluster.ports import HOST, free_ports
from cluster.probe import answers
from cluster.process import Process

import tools
from gpugate.certs.pki import certificate_authority, server_certificate

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cluster.api import Api

_NAMESPACE = "keda"
_LIFETIME = dt.timedelta(days=1)


@contextmanager
def running_keda(api: Api, kubeconfig: Path, folder: Path) -> Iterator[tuple[Process, Process]]:
    """Start both, register the webhook, and end all of it. The webhook listens on every address: it has no flag.

    Raises:
        ProcessError: one died, or did not become ready.
        ToolsError: a program is missing; says how to get it.
    """
    answer = api.apply(namespace_object(_NAMESPACE))
    assert answer.ok, answer.message
    certificates = _written_certificates(folder)
    environment = {
        **os.environ,
        "KUBECONFIG": str(kubeconfig),
        "KEDA_CLUSTER_OBJECT_NAMESPACE": _NAMESPACE,
        "POD_NAMESPACE": _NAMESPACE,
        "POD_NAME": "keda-operator",
        "WATCH_NAMESPACE": "",
        "KEDA_HTTP_DEFAULT_TIMEOUT": "3000",
    }
    with ExitStack() as stack:
        operator = _started("keda", ("--enable-cert-rotation=false",), certificates, environment, stack)
        port = free_ports(1)[0]
        webhook = _started("keda-webhooks", (f"--port={port}",), certificates, environment, stack)
        webhook.wait_until(partial(_listens, port))
        registration = _registration(port, (certificates / "ca.crt").read_bytes())
        answer = api.apply(registration)
        assert answer.ok, answer.message
        stack.callback(api.delete, registration)
        yield operator, webhook


def _started(
    name: str, flags: tuple[str, ...], certificates: Path, environment: dict[str, str], stack: ExitStack
) -> Process:
    metrics, health, service = (f"{HOST}:{port}" for port in free_ports(3))
    common = [
        f"--cert-dir={certificates}",
        f"--metrics-bind-address={metrics}",
        f"--health-probe-bind-address={health}",
    ]
    if name == "keda":
        common.append(f"--metrics-service-bind-address={service}")
    command = [str(tools.path(name)), *common, *flags]
    process = Process(name, command, certificates.parent / f"{name}.log", environment)
    stack.callback(process.stop)
    process.wait_until(partial(answers, f"http://{health}/readyz"))
    return process


def _written_certificates(folder: Path) -> Path:
    """Write what both serve with; the operator would otherwise make it, and end when it has."""
    certificates = folder / "certificates"
    certificates.mkdir()
    now = dt.datetime.now(dt.UTC)
    authority = certificate_authority("keda-e2e", now=now, lifetime=_LIFETIME)
    served = server_certificate(authority, (HOST, "localhost"), now=now, lifetime=_LIFETIME)
    (certificates / "ca.crt").write_bytes(authority.certificate)
    (certificates / "tls.crt").write_bytes(served.certificate)
    (certificates / "tls.key").write_bytes(served.key)
    return certificates


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0


def _registration(port: int, authority: bytes) -> dict[str, Any]:
    """Return KEDA's own, reached at a URL; whoever asks is to notice when it does not answer."""
    file = tools.module_folder(*tools.KEDA) / "config" / "webhooks" / "validation_webhooks.yaml"
    found: dict[str, Any] = yaml.load(file.read_text(encoding="utf-8"), yaml.CSafeLoader)
    for entry in found["webhooks"]:
        path = entry["clientConfig"]["service"]["path"]
        url = f"https://{HOST}:{port}{path}"
        entry["clientConfig"] = {"url": url, "caBundle": base64.b64encode(authority).decode()}
        entry["failurePolicy"] = "Fail"
    return found
