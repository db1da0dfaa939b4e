"""An installation whose every part is in place, to be looked at by `gpugate doctor`, and broken before that."""

from __future__ import annotations

import base64
import copy
import datetime as dt
import json
import os
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from cluster.process import Process
from cluster.service_account import NAMESPACE

from gpugate.certs.authorities import Authorities, Periods, create_authorities, create_authority, encode
from gpugate.certs.pki import KeyPair, server_certificate
from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.ruleset import bind
from gpugate.webhook.admission.serve import READY
from gpugate.webhook.registration.entries import RiskGroup
from gpugate.webhook.registration.objects import Server, webhook_configurations

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from cluster.api import Api

SECRET = "doctor-certificates"  # noqa: S105 -- the name of an object
SERVICE = "doctor"
MUTATING, VALIDATING = "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"
GROUPS = tuple(group.value for group in RiskGroup if group.may_wait)
_GPUGATE = (sys.executable, "-m", "gpugate.webhook.cli.main")
_RULESET = bind(CATALOG, PolicyConfig())


class Diagnosed(NamedTuple):
    """What `gpugate doctor -o json` said."""

    code: int
    said: dict[str, Any]

    def codes(self, severity: str = "error") -> set[str]:
        return {each["code"] for each in self.said["problems"] if each["severity"] == severity}


class DoctorInstallation:
    """Its server runs with a certificate signed by the authority in the Secret, and is reached by a URL."""

    def __init__(self, api: Api, kubeconfig: Path, folder: Path) -> None:
        self.api = api
        self._kubeconfig = kubeconfig
        self._folder = folder
        self.authorities = _authorities()
        self.url = ""

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Run the server.

        Raises:
            ProcessError: it died, or did not become ready.
        """
        self.show_certificate_for("127.0.0.1")
        files = (f"--tls-cert={self._folder / 'tls.crt'}", f"--tls-key={self._folder / 'tls.key'}")
        ports = ("--host=127.0.0.1", "--port=0", "--health-port=0", "--workers=1", "--drain=0", "--no-cluster")
        output = self._folder / "stdout"
        with ExitStack() as stack:
            self.process = Process("serve", [*_GPUGATE, "serve", *ports, *files], self._folder / "log", None, output)
            stack.callback(self.process.stop)
            self.process.wait_until(lambda: READY in output.read_text(encoding="utf-8"))
            lines = output.read_text(encoding="utf-8").splitlines()
            self.url = next(line.removeprefix(READY) for line in lines if line.startswith(READY))
            yield

    def show_certificate_for(self, name: str) -> None:
        """Write the files of a certificate for a name."""
        self._write(server_certificate(self.authorities.active, [name], now=_now(), lifetime=dt.timedelta(hours=24)))

    def put(self, *objects: dict[str, Any]) -> None:
        """Make objects, in the place of those of their name."""
        for each in objects:
            self.remove(each)
            answer = self.api.create(each)
            assert answer.ok, answer.message

    def remove(self, *objects: dict[str, Any]) -> None:
        for each in objects:
            self.api.delete(each)
            self.api.eventually(each, lambda found: not found)

    def restore(self) -> None:
        """Put every part back."""
        self.put(*self.configurations(), self.secret(), self.lease())

    def configurations(self, *, by_service: bool = False) -> tuple[dict[str, Any], dict[str, Any]]:
        url = "" if by_service else self.url
        server = Server(self.authorities.bundle, NAMESPACE, url, SERVICE)
        every = tuple(RiskGroup)
        made = webhook_configurations(_RULESET, server, fail=every, fail_mutating=every)
        return copy.deepcopy(made[0]), copy.deepcopy(made[1])

    def secret(self) -> dict[str, Any]:
        data = {key: base64.b64encode(content).decode() for key, content in encode(self.authorities).items()}
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": SECRET, "namespace": NAMESPACE},
            "data": data,
        }

    def lease(self) -> dict[str, Any]:
        spec = {
            "holderIdentity": "gpugate-1",
            "leaseDurationSeconds": 15,
            "renewTime": f"{_now():%Y-%m-%dT%H:%M:%S.%fZ}",
        }
        metadata = {"name": "gpugate", "namespace": NAMESPACE}
        return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}

    def rights(self) -> list[dict[str, Any]]:
        """What lets the ServiceAccount keep authorities: a ClusterRole with its binding, as wide as it need not be."""
        api = "rbac.authorization.k8s.io"
        named = {"metadata": {"name": "doctor-e2e"}}
        rules = [
            {"apiGroups": [group], "resources": resources, "verbs": ["*"]}
            for group, resources in {
                "": ["secrets"],
                "coordination.k8s.io": ["leases"],
                "admissionregistration.k8s.io": [f"{each.lower()}s" for each in (MUTATING, VALIDATING)],
            }.items()
        ]
        role = {"apiVersion": f"{api}/v1", "kind": "ClusterRole", **named, "rules": rules}
        subject = {"kind": "ServiceAccount", "namespace": NAMESPACE, "name": "gpugate"}
        reference = {"apiGroup": api, "kind": "ClusterRole", "name": "doctor-e2e"}
        binding = {"apiVersion": f"{api}/v1", "kind": "ClusterRoleBinding", **named}
        return [role, {**binding, "roleRef": reference, "subjects": [subject]}]

    def doctor(self, *flags: str, kubeconfig: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run the command as the administrator, or with another kubeconfig."""
        where = (f"--kubeconfig={kubeconfig or self._kubeconfig}", f"--namespace={NAMESPACE}", f"--service={SERVICE}")
        return subprocess.run(  # noqa: S603 -- ours
            [*_GPUGATE, "doctor", *where, f"--certificate-secret={SECRET}", *flags],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            env={**os.environ, "NO_COLOR": "1"},
        )

    def diagnosed(self, *flags: str) -> Diagnosed:
        ran = self.doctor("-o", "json", *flags)
        assert not ran.stderr, ran.stderr
        return Diagnosed(ran.returncode, json.loads(ran.stdout))

    def lacks_rights(self) -> bool:
        return "right-missing" in self.diagnosed().codes()

    def _write(self, pair: KeyPair) -> None:
        (self._folder / "tls.crt").write_bytes(pair.certificate)
        (self._folder / "tls.key").write_bytes(pair.key)


def failing(groups: Sequence[str] = GROUPS) -> list[str]:
    """Return the flags by which the failure policies of `configurations` are those that are meant."""
    return [f"--{flag}={group}" for flag in ("fail", "fail-mutating") for group in groups]


def expired_authority() -> bytes:
    return create_authority(Periods(), _now() - dt.timedelta(days=120)).certificate


def foreign_authority() -> bytes:
    return create_authority(Periods(), _now()).certificate


def _authorities() -> Authorities:
    begun = create_authorities(Periods(), _now() - dt.timedelta(hours=1))
    return replace(begun, next=create_authority(Periods(), _now()), published_at=_now())


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)
