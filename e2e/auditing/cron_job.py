"""The chart's CronJob, run as a process of this machine: its arguments, its policy file, and its ServiceAccount's rights."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from cluster.kubeconfig import write_kubeconfig
from cluster.namespaces import namespace_object
from cluster.service_account import NAMESPACE

import tools

if TYPE_CHECKING:
    from cluster.api import Api
    from cluster.control_plane import ControlPlane

Json = dict[str, Any]

_CHART = Path(__file__).parents[2] / "charts" / "gpugate"
_POLICY_FILE = "--policy-file="
_PATIENCE_SECONDS = 90
_TIMEOUT_SECONDS = 120


@dataclass(frozen=True)
class Ran:
    """How a run ended: what it printed, its log line, and its document."""

    code: int
    metrics: str
    errors: str
    document: Json

    @property
    def line(self) -> Json:
        """The last line of its log."""
        found: Json = json.loads(self.errors.splitlines()[-1])
        return found

    def actions(self) -> dict[str, str]:
        """What would become of each object, by uid."""
        return {each["uid"]: each["action"] for each in self.document["objects"]}


def _rendered() -> list[Json]:
    command = [str(tools.path("helm")), "template", "gpugate", str(_CHART), "--namespace", NAMESPACE]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_TIMEOUT_SECONDS)  # noqa: S603 -- helm, with arguments of ours
    return [each for each in yaml.load_all(ran.stdout, yaml.CSafeLoader) if each]


class CronJob:
    """What the chart makes of it; `objects` are its objects by kind and name."""

    def __init__(self, api: Api, control_plane: ControlPlane, folder: Path) -> None:
        self._api = api
        self.objects = {(each["kind"], each["metadata"]["name"]): each for each in _rendered()}
        self.account = self.objects["ServiceAccount", "gpugate-audit"]
        self._policy_file = folder / "policy.yaml"
        self._policy_file.write_text(self.objects["ConfigMap", "gpugate-policy"]["data"]["policy.yaml"])
        self._document = folder / "audit.json"
        self._kubeconfig = folder / "kubeconfig"
        self._control_plane = control_plane

    def install(self) -> None:
        """Make its ServiceAccount with its rights, and get a token for it."""
        namespace: Json = namespace_object(NAMESPACE)
        for each in (namespace, self.account, *self.rights()):
            answer = self._api.apply(each, force=True)
            assert answer.ok, answer.message
        request = {**self.account, "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        answer = self._api.create_subresource(self.account, "token", request)
        assert answer.ok, answer.message
        plane, token = self._control_plane, str(answer.body["status"]["token"])
        write_kubeconfig(self._kubeconfig, plane.url, plane.ca_file, token)
        self.wait_for_rights(allowed=True)

    def rights(self) -> list[Json]:
        """Return its roles and their bindings."""
        return [each for (kind, name), each in self.objects.items() if kind.startswith("Cluster") and "-audit" in name]

    def wait_for_rights(self, *, allowed: bool, verb: str = "update", resource: str = "reports") -> None:
        """Wait until it may, or may not; rights come into force soon after they are made."""
        end = time.monotonic() + _PATIENCE_SECONDS
        while self._may(verb, resource) != allowed:
            assert time.monotonic() < end, f"whether {resource} may be {verb}d did not change"
            time.sleep(0.05)

    def run(self, *more: str) -> Ran:
        """Run it to its end, as its Pod would be, with more flags."""
        (container,) = self._pod()["containers"]
        arguments = [
            f"{_POLICY_FILE}{self._policy_file}" if each.startswith(_POLICY_FILE) else each
            for each in container["args"]
        ]
        command = [sys.executable, "-m", "gpugate.webhook.cli.main", *arguments, *self.document_flags(), *more]
        environment = {**os.environ, "GPUGATE_KUBECONFIG": str(self._kubeconfig)}
        self._document.unlink(missing_ok=True)
        ran = subprocess.run(  # noqa: S603 -- ours
            command, env=environment, capture_output=True, text=True, check=False, timeout=_TIMEOUT_SECONDS
        )
        document = json.loads(self._document.read_text()) if self._document.exists() else {}
        return Ran(ran.returncode, ran.stdout, ran.stderr, document)

    def document_flags(self) -> list[str]:
        """Return the flags by which a test learns what was found."""
        return [f"--output=json={self._document}", "--include-passed"]

    def policy(self) -> Json:
        """Return what its policy file says."""
        found: Json = json.loads(self._policy_file.read_text())
        return found

    def remove(self) -> None:
        """Delete its ServiceAccount and its rights."""
        for each in (*self.rights(), self.account):
            self._api.delete(each)

    def _pod(self) -> Json:
        spec: Json = self.objects["CronJob", "gpugate-audit"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
        return spec

    def _may(self, verb: str, resource: str) -> bool:
        group = {"reports": "openreports.io"}.get(resource, "")
        asked = {
            "user": f"system:serviceaccount:{NAMESPACE}:gpugate-audit",
            "resourceAttributes": {"verb": verb, "group": group, "resource": resource},
        }
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "metadata": {}, "spec": asked}
        return bool(self._api.create(review).body["status"]["allowed"])
