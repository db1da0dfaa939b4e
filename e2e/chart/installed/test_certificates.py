"""Certificates that others make: what the chart asks for, and the webhook with what it is given."""

from __future__ import annotations

import base64
import datetime as dt
from typing import TYPE_CHECKING, Any

from chart.conftest import CHART
from chart.installed.release import NAME
from chart.installed.requests import HIDDEN_ACCESS, seeing_pod

from gpugate.certs.pki import certificate_authority, server_certificate

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from chart.installed.release import Release
    from chart.installed.stage import Stage

    from gpugate.certs.pki import KeyPair

    Prepare = Callable[[], AbstractContextManager[Release]]

NOW = dt.datetime.now(dt.UTC)
LIFE = dt.timedelta(days=365)
AUTHORITY = certificate_authority("platform", now=NOW, lifetime=LIFE)
ENFORCED: dict[str, Any] = {
    "replicaCount": 1,
    "policy": {"policies": {HIDDEN_ACCESS: {"mode": "enforce"}}},
}


def tls_secret(name: str, namespace: str, pair: KeyPair) -> dict[str, Any]:
    data = {"tls.crt": pair.certificate, "tls.key": pair.key}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/tls",
        "metadata": {"name": name, "namespace": namespace},
        "data": {key: base64.b64encode(value).decode() for key, value in data.items()},
    }


def test_provided(stage: Stage, prepare: Prepare, tenant: str) -> None:
    with prepare() as release:
        release.ran(f"kubectl create namespace {release.namespace}")
        pair = server_certificate(AUTHORITY, ["127.0.0.1"], now=NOW, lifetime=LIFE)
        secret = tls_secret("platform-tls", release.namespace, pair)
        assert stage.api.create(secret).ok
        provided = {"mode": "provided", "secretName": "platform-tls", "caBundle": AUTHORITY.certificate.decode()}

        release.install(ENFORCED | {"certificates": provided})

        assert HIDDEN_ACCESS in stage.api.create(seeing_pod(tenant), dry_run=True).message
        ran = release.run(f"gpugate doctor --namespace {release.namespace} --probe")
        assert (ran.returncode, "0 errors, 0 warnings" in ran.stdout) == (0, True), ran.stdout
        assert release.secret() == {}
        release.uninstall()
        stage.api.delete(secret)


def test_of_cert_manager(stage: Stage, prepare: Prepare) -> None:
    with prepare() as release:
        release.pods.pulls = False
        release.ran(
            f"helm install {NAME} charts/gpugate -n {release.namespace} --create-namespace --no-hooks "
            # Such a certificate is for the Service's names, by which nobody comes here.
            f"--values {CHART / 'ci' / 'cert-manager-values.yaml'} --set webhooks.url="
        )
        made = {
            each["metadata"]["name"]: each["spec"]
            for kind in ("Issuer", "Certificate")
            for each in stage.api.list("cert-manager.io/v1", kind, release.namespace)
        }
        pods = stage.api.list("v1", "Pod", release.namespace)

        assert made[NAME]["secretName"] == f"{NAME}-tls"
        assert {f"{NAME}.{release.namespace}.svc"} <= set(made[NAME]["dnsNames"])
        assert pods
        release.uninstall()
