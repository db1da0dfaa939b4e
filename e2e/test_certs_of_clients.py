"""Whom the webhook lets in when it wants certificates: an API server that shows one, and what it says when it is not."""

from __future__ import annotations

import base64
import contextlib
import datetime as dt
import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from client_certificates import client_certificate
from cluster.api import Api
from cluster.connections import Connections
from cluster.control_plane import running_control_plane
from cluster.process import Process
from stub_webhook.registration import Registrar
from stub_webhook.server import Stub

from gpugate.certs.pki import certificate_authority

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

NOW = dt.datetime.now(tz=dt.UTC)
CLIENTS = certificate_authority("clients", now=NOW, lifetime=dt.timedelta(days=1))
OTHERS = certificate_authority("others", now=NOW, lifetime=dt.timedelta(days=1))
# The two plugins that call webhooks, and what each reads its credentials from (kube-apiserver v1.36.3).
_PLUGINS = ("MutatingAdmissionWebhook", "ValidatingAdmissionWebhook")

# How often an API server is asked before it has told what it read.
_ASKED = 10


def _shows(folder: Path) -> str:
    """Return the flag that makes an API server show a client certificate to every webhook."""
    pair = client_certificate(CLIENTS, now=NOW)
    (folder / "client.crt").write_bytes(pair.certificate)
    (folder / "client.key").write_bytes(pair.key)
    user = {"client-certificate": str(folder / "client.crt"), "client-key": str(folder / "client.key")}
    kubeconfig = {"apiVersion": "v1", "kind": "Config", "users": [{"name": "*", "user": user}]}
    (folder / "webhooks.kubeconfig").write_text(json.dumps(kubeconfig), encoding="utf-8")
    reads = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "WebhookAdmissionConfiguration",
        "kubeConfigFile": str(folder / "webhooks.kubeconfig"),
    }
    configuration = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AdmissionConfiguration",
        "plugins": [{"name": plugin, "configuration": reads} for plugin in _PLUGINS],
    }
    (folder / "admission.json").write_text(json.dumps(configuration), encoding="utf-8")
    return f"--admission-control-config-file={folder / 'admission.json'}"


@pytest.fixture(scope="module")
def showing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """An API server with a client certificate for `kube-apiserver`."""
    folder = tmp_path_factory.mktemp("credentials")
    with (
        running_control_plane(tmp_path_factory.mktemp("control-plane"), _shows(folder)) as started,
        contextlib.closing(Connections(started.url, started.ca_file, started.admin)) as connections,
    ):
        yield Api(connections)


@dataclass(frozen=True)
class Asking:
    """gpugate, and the means to make an API server ask it about ConfigMaps."""

    url: str
    ca_bundle: str

    def answer(self, api: Api, folder: Path) -> Any:
        """Return what becomes of a ConfigMap that is created."""
        with Stub(folder) as prober:
            registrar = Registrar(api, "default", prober)
            asks = {"url": f"{self.url}/validate", "caBundle": self.ca_bundle}
            with registrar.registered("validating", registrar.hook(clientConfig=asks)):
                return registrar.try_create()


@pytest.fixture
def gpugate(tmp_path: Path) -> Iterator[Callable[..., Asking]]:
    with contextlib.ExitStack() as stack:

        def start(authority: bytes, *flags: str) -> Asking:
            (tmp_path / "clients.crt").write_bytes(authority)
            output, ca_file = tmp_path / "stdout", tmp_path / "ca.crt"
            command = [sys.executable, "-m", "gpugate.webhook.cli.main", "serve", "--host=127.0.0.1", "--port=0"]
            command += ["--health-port=0", "--workers=1", "--drain=0", "--no-cluster", f"--ca-file={ca_file}"]
            command += ["--client-ca", str(tmp_path / "clients.crt"), *flags]
            process = Process("gpugate serve", command, tmp_path / "log", output=output)
            stack.callback(process.stop)
            process.wait_until(lambda: "ready: " in output.read_text(encoding="utf-8"))
            url = next(
                line.removeprefix("ready: ")
                for line in output.read_text(encoding="utf-8").splitlines()
                if line.startswith("ready: ")
            )
            return Asking(url, base64.b64encode(ca_file.read_bytes()).decode())

        yield start


def test_the_api_server_is_let_in_by_its_certificate(
    showing: Api, gpugate: Callable[..., Asking], tmp_path: Path
) -> None:
    answer = gpugate(CLIENTS.certificate).answer(showing, tmp_path)
    assert answer.ok, answer.message


def test_another_name_is_refused_in_words(showing: Api, gpugate: Callable[..., Asking], tmp_path: Path) -> None:
    answer = gpugate(CLIENTS.certificate, "--client-name", "front-proxy-client").answer(showing, tmp_path)
    assert "the client certificate has no allowed name (--client-name)" in answer.message


@pytest.mark.parametrize(
    ("authority", "shows", "alert"),
    [
        pytest.param(OTHERS.certificate, True, "remote error: tls: unknown certificate authority", id="unknown"),
        pytest.param(CLIENTS.certificate, False, "remote error: tls: certificate required", id="none"),
    ],
)
def test_an_alert_is_what_others_get(
    request: pytest.FixtureRequest,
    gpugate: Callable[..., Asking],
    tmp_path: Path,
    authority: bytes,
    shows: bool,  # noqa: FBT001 -- a table's column
    alert: str,
) -> None:
    api = request.getfixturevalue("showing" if shows else "api")
    asking = gpugate(authority)
    # Go tells what failed first: reading the alert, or writing the request to a connection that ended with it.
    messages = []
    for _ in range(_ASKED):
        messages.append(asking.answer(api, tmp_path).message)
        if alert in messages[-1]:
            return
    pytest.fail(f"{alert!r} is in none of {messages}")
