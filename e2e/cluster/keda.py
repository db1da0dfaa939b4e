"""KEDA's operator, metrics server and admission webhook. Flags and variables of v2.21.

The operator itself moves a target between 0 and 1 and makes the HorizontalPodAutoscalers of ScaledObjects. Their controller
asks the API server for the metrics of triggers, this one the metrics server, and that one the operator.
"""

from __future__ import annotations

import base64
import datetime as dt
import os
import socket
import ssl
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import yaml
from cluster.certificates import client_certificate
from cluster.namespaces import namespace_object
from cluster.ports import HOST, free_ports
from cluster.probe import answers
from cluster.process import Process

import tools
from gpugate.certs.pki import certificate_authority, server_certificate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cluster.api import Api

_NAMESPACE = "keda"
_METRICS = "keda-metrics-apiserver"
_LIFETIME = dt.timedelta(days=1)


@contextmanager
def running_keda(api: Api, kubeconfig: Path, folder: Path) -> Iterator[tuple[Process, ...]]:
    """Start all three, register the two that the API server asks, and end all of it.

    The webhook, and the metrics of the metrics server about itself, listen on every address: there is no flag.

    Raises:
        ProcessError: one died, or did not become ready.
        ToolsError: a program is missing; says how to get it.
    """
    answer = api.apply(namespace_object(_NAMESPACE))
    assert answer.ok, answer.message
    certificates, of_adapter = _written_certificates(folder)
    authority = certificates / "ca.crt"
    environment = {
        **os.environ,
        "KUBECONFIG": str(kubeconfig),
        "KEDA_CLUSTER_OBJECT_NAMESPACE": _NAMESPACE,
        "POD_NAMESPACE": _NAMESPACE,
        "POD_NAME": "keda-operator",
        "WATCH_NAMESPACE": "",
        "KEDA_HTTP_DEFAULT_TIMEOUT": "3000",
    }
    service, port, adapter_port, adapter_metrics = free_ports(4)
    with ExitStack() as stack:

        def started(name: str, *flags: str) -> Process:
            process = Process(name, [str(tools.path(name)), *flags], folder / f"{name}.log", environment)
            stack.callback(process.stop)
            return process

        operator, is_ready = _manager(certificates)
        keda = started("keda", *operator, f"--metrics-service-bind-address={HOST}:{service}")
        keda.wait_until(is_ready)
        adapter = started(
            "keda-adapter",
            f"--lister-kubeconfig={kubeconfig}",
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
            f"--bind-address={HOST}",
            f"--secure-port={adapter_port}",
            f"--port={adapter_metrics}",
            f"--tls-cert-file={certificates / 'tls.crt'}",
            f"--tls-private-key-file={certificates / 'tls.key'}",
            f"--cert-dir={of_adapter}",
            f"--metrics-service-address={HOST}:{service}",
        )
        manager, is_ready = _manager(certificates)
        webhook = started("keda-webhooks", *manager, f"--port={port}")
        webhook.wait_until(is_ready)
        webhook.wait_until(partial(_listens, port))
        trust = ssl.create_default_context(cafile=authority)
        adapter.wait_until(partial(answers, f"https://{HOST}:{adapter_port}/readyz", trust))
        ca_bundle = base64.b64encode(authority.read_bytes()).decode()
        for registration in (_registration(port, ca_bundle), *_metrics_api(adapter_port, ca_bundle)):
            answer = api.apply(registration)
            assert answer.ok, answer.message
            # An API that nobody serves would keep namespaces from being deleted.
            stack.callback(api.delete, registration)
        api.eventually(_metrics_api(adapter_port, ca_bundle)[-1], _is_available)
        yield keda, adapter, webhook


def _manager(certificates: Path) -> tuple[list[str], Callable[[], bool]]:
    """Return flags that the operator and the webhook have in common, and what tells whether it is ready."""
    metrics, health = (f"{HOST}:{port}" for port in free_ports(2))
    flags = [
        f"--cert-dir={certificates}",
        f"--metrics-bind-address={metrics}",
        f"--health-probe-bind-address={health}",
    ]
    return flags, partial(answers, f"http://{health}/readyz")


def _written_certificates(folder: Path) -> tuple[Path, Path]:
    """Write what all serve with, and what the metrics server asks the operator with; KEDA has one for both.

    The operator would otherwise make it, and end when it has.
    """
    now = dt.datetime.now(dt.UTC)
    authority = certificate_authority("keda-e2e", now=now, lifetime=_LIFETIME)
    # What the API server calls the server of an APIService.
    names = (HOST, "localhost", f"{_METRICS}.{_NAMESPACE}.svc")
    served = server_certificate(authority, names, now=now, lifetime=_LIFETIME)
    client = client_certificate(authority, _METRICS, now=now)
    folders = folder / "certificates", folder / "adapter-certificates"
    for made, pair in zip(folders, (served, client), strict=True):
        made.mkdir()
        (made / "ca.crt").write_bytes(authority.certificate)
        (made / "tls.crt").write_bytes(pair.certificate)
        (made / "tls.key").write_bytes(pair.key)
    return folders


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0


def _registration(port: int, ca_bundle: str) -> dict[str, Any]:
    """Return KEDA's own, reached at a URL; whoever asks is to notice when it does not answer."""
    file = tools.module_folder(*tools.KEDA) / "config" / "webhooks" / "validation_webhooks.yaml"
    found: dict[str, Any] = yaml.load(file.read_text(encoding="utf-8"), yaml.CSafeLoader)
    for entry in found["webhooks"]:
        path = entry["clientConfig"]["service"]["path"]
        url = f"https://{HOST}:{port}{path}"
        entry["clientConfig"] = {"url": url, "caBundle": ca_bundle}
        entry["failurePolicy"] = "Fail"
    return found


def _metrics_api(port: int, ca_bundle: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return KEDA's own APIService, and a Service that leads the API server to this machine."""
    file = tools.module_folder(*tools.KEDA) / "config" / "metrics-server" / "api_service.yaml"
    found: dict[str, Any] = yaml.load(file.read_text(encoding="utf-8"), yaml.CSafeLoader)
    found["spec"] |= {"service": {"name": _METRICS, "namespace": _NAMESPACE, "port": port}, "caBundle": ca_bundle}
    # Endpoints may not be on loopback.
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": _METRICS, "namespace": _NAMESPACE},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    }
    return service, found


def _is_available(api_service: dict[str, Any]) -> bool:
    conditions = api_service.get("status", {}).get("conditions", ())
    return any(one["type"] == "Available" and one["status"] == "True" for one in conditions)
