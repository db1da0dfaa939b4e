"""The image with the chart's command, arguments, environment and volumes, and the rights of its ServiceAccount."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import socket
import ssl
import subprocess
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from cluster.namespaces import namespace_object
from cluster.ports import free_ports
from image.pod import container_of
from image.proof import ROOT
from image.running import running

import tools

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cluster.api import Api
    from cluster.control_plane import ControlPlane
    from image.container import Image
    from image.running import Running

RELEASE = "image"
REVIEW = ROOT / "tests/fixtures/reviews/nodepool-create.validate.json"


@pytest.fixture(scope="module")
def deployment(
    api: Api, control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Any]]:
    """The chart installed on the control plane, where nothing runs Pods, in a namespace of its own."""
    home = tmp_path_factory.mktemp("helm")
    environment = {**os.environ, "HOME": str(home), "KUBECONFIG": str(control_plane.admin_kubeconfig)}
    helm = str(tools.path("helm"))
    port, health_port = free_ports(2)
    values = (f"server.port={port}", f"server.healthPort={health_port}", "server.drainSeconds=1", "policy.mode=enforce")
    flags = [f"--set={value}" for value in values]
    where = ["--namespace", RELEASE, "--no-hooks"]
    chart = str(ROOT / "charts/gpugate")
    command = [helm, "install", RELEASE, chart, *where, "--create-namespace", *flags]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603 -- helm
    assert ran.returncode == 0, ran.stderr
    (made,) = api.list("apps/v1", "Deployment", RELEASE)
    yield made
    subprocess.run([helm, "uninstall", RELEASE, *where], env=environment, capture_output=True, check=True)  # noqa: S603 -- helm
    api.delete(namespace_object(RELEASE))


@pytest.fixture
def started(
    image: Image,
    deployment: dict[str, Any],
    api: Api,
    control_plane: ControlPlane,
    tmp_path: Path,
    figures: list[str],
) -> Iterator[Running]:
    container = container_of(deployment, api, control_plane, tmp_path / "volumes")
    with running(image, container, tmp_path / "ca.crt", tmp_path) as each:
        figures.append(f"image: ready {each.ready_seconds:.1f} s after its process was started, as the chart says")
        yield each


def test_the_pod_may_do_as_little_as_the_proof_lets_it(image: Image, deployment: dict[str, Any]) -> None:
    pod = deployment["spec"]["template"]["spec"]
    container = pod["containers"][0]["securityContext"]
    user = f"{pod['securityContext']['runAsUser']}:{pod['securityContext']['runAsGroup']}"
    assert (user,) == image.stage.last("USER")
    assert container["readOnlyRootFilesystem"]
    assert container["capabilities"] == {"drop": ["ALL"]}
    assert container["allowPrivilegeEscalation"] is False


def test_it_answers_with_a_certificate_that_the_configuration_trusts(
    started: Running, deployment: dict[str, Any], api: Api
) -> None:
    name = {"name": deployment["metadata"]["name"]}
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration"}
    configuration = api.eventually({**kind, "metadata": name}, _trusts_somebody)
    client = configuration["webhooks"][0]["clientConfig"]
    trust = ssl.create_default_context(cadata=base64.b64decode(client["caBundle"]).decode())
    review = json.loads(REVIEW.read_bytes())
    # What the API server expects in the certificate, wherever the Service leads.
    service = f"{client['service']['name']}.{client['service']['namespace']}.svc"
    assert _asked(started.url, trust, service, review)["response"]["uid"] == review["request"]["uid"]


def test_it_leaves_when_it_is_asked_to(started: Running) -> None:
    assert started.process.stop() == 0


def _trusts_somebody(configuration: dict[str, Any]) -> bool:
    return all(each["clientConfig"].get("caBundle") for each in configuration.get("webhooks", [{"clientConfig": {}}]))


def _asked(url: str, trust: ssl.SSLContext, name: str, review: dict[str, Any]) -> dict[str, Any]:
    address = urlsplit(url).hostname, urlsplit(url).port
    with (
        socket.create_connection(address, timeout=30) as plain,
        trust.wrap_socket(plain, server_hostname=name) as secured,
        contextlib.closing(http.client.HTTPConnection(name)) as connection,
    ):
        connection.sock = secured
        connection.request("POST", "/validate", json.dumps(review), {"Content-Type": "application/json"})
        answer: dict[str, Any] = json.loads(connection.getresponse().read())
    return answer
