"""A release of the chart: Helm and the other programs that a reader of the documentation calls, and the Pods that come of it."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chart.installed.requests import eventually
from cluster.local_pods import LocalPods
from cluster.metrics import total
from cluster.ports import free_ports

import tools

if TYPE_CHECKING:
    from collections.abc import Mapping

    from chart.installed.stage import Stage
    from cluster.local_pods import LocalPod
    from harness.running import RunningBalancer

Json = dict[str, Any]
Ran = subprocess.CompletedProcess[str]
ROOT = Path(__file__).parents[3]
NAME = "gpugate"
CHART = "charts/gpugate"
KINDS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
_PATIENCE_SECONDS = 300
_LAST = 4000


class Release:
    """The release `gpugate` in a namespace; nothing is installed yet.

    `pods` runs what its Pods say, and `url` is where the API server reaches those that are ready, as by a Service.
    """

    def __init__(self, stage: Stage, namespace: str, folder: Path, helm: str, balancer: RunningBalancer) -> None:
        self.stage = stage
        self.namespace = namespace
        self.seconds = 0.0
        self._balancer = balancer
        self._folder = folder
        (folder / "charts").symlink_to(ROOT / "charts")
        self.url = "https://{}:{}".format(*balancer.address)
        self.pods = LocalPods(stage.control_plane, namespace, folder / "pods", self._watch)
        self._values = folder / "values.yaml"
        port, health_port = free_ports(2)
        server = {"port": port, "healthPort": health_port, "drainSeconds": 1, "workers": 1}
        # Nothing that begins by itself while a test counts what there is.
        audit = {"schedule": "0 0 29 2 *"}
        values = {"webhooks": {"url": self.url}, "server": server, "audit": audit}
        self._values.write_text(json.dumps(values), encoding="utf-8")
        self._environment = {
            "PATH": f"{_programs(folder / 'bin', helm, self._values)}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(folder),
            "KUBECONFIG": str(stage.control_plane.admin_kubeconfig),
        }

    def run(self, line: str) -> Ran:
        """Run a command as it is written for people, in a folder with the charts and a `values.yaml`.

        That file says where the API server reaches this machine's processes; `helm install` and `upgrade` are always told.
        """
        started = time.monotonic()
        ran = subprocess.run(  # noqa: S603 -- what our documentation says
            ["/bin/sh", "-e", "-c", line],
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE_SECONDS,
        )
        self.seconds = time.monotonic() - started
        return ran

    def add_values(self, values: Mapping[str, Any]) -> None:
        """Add values of a page to `values.yaml`."""
        written = json.loads(self._values.read_text(encoding="utf-8"))
        self._values.write_text(json.dumps({**written, **values}), encoding="utf-8")

    def ran(self, line: str) -> str:
        """Run a command that has to succeed; returns what it printed."""
        ran = self.run(line)
        told = f"$ {line}\n{ran.stdout}{ran.stderr}\n{self.pods.failures}\n{self.pods.logs('')[-_LAST:]}"
        assert ran.returncode == 0, told
        return ran.stdout

    def install(self, *values: Mapping[str, Any] | Path, flags: str = "") -> str:
        """Install with values; waits for the Pods."""
        return self._installed("install", "--create-namespace", flags, *values)

    def install_one(self, values: Mapping[str, Any]) -> None:
        """Install where only one Pod can run, and wait for it."""
        self.pods.most = 1
        self._installed("install", "--create-namespace --wait=hookOnly", values)
        eventually(self.pods.ready)

    def upgrade(self, *values: Mapping[str, Any] | Path, flags: str = "") -> str:
        """Upgrade to these values and no others; waits for the Pods."""
        return self._installed("upgrade", flags, *values)

    def upgrade_without_waiting(self, *values: Mapping[str, Any] | Path) -> str:
        """Upgrade, and leave it to the cluster what becomes of the Pods."""
        return self._installed("upgrade", "--no-hooks --wait=hookOnly", *values)

    def uninstall(self, flags: str = "") -> str:
        """Uninstall."""
        return self.ran(f"helm uninstall {NAME} --namespace {self.namespace} {flags}")

    def configurations(self) -> list[Json]:
        """Return the webhook configurations that there are."""
        refs = (
            {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": NAME}}
            for kind in KINDS
        )
        return [found for found in map(self.stage.api.get, refs) if found]

    def entries(self) -> dict[str, Json]:
        """Return the entries of both configurations by their names, without `.gpugate.dev`."""
        return {
            each["name"].removesuffix(".gpugate.dev"): each
            for configuration in self.configurations()
            for each in configuration["webhooks"]
        }

    def secret(self) -> dict[str, str]:
        """Return the data of the certificate Secret."""
        metadata = {"name": f"{NAME}-certificates", "namespace": self.namespace}
        found = self.stage.api.get({"apiVersion": "v1", "kind": "Secret", "metadata": metadata})
        return dict(found.get("data") or {})

    def metric(self, name: str, **labels: str) -> float:
        """Return a metric, summed over the Pods that are ready and what labels leave open."""
        return sum(total(each.metrics(), name, labels) for each in self.pods.ready())

    def _installed(self, command: str, *rest: Mapping[str, Any] | Path | str) -> str:
        words = [f"helm {command} {NAME} {CHART} --namespace {self.namespace} --wait --timeout 180s"]
        for each in rest:
            if isinstance(each, str):
                words.append(each)
            else:
                words.append(f"--values {shlex.quote(str(self._file(each)))}")
        return self.ran(" ".join(words))

    def _file(self, values: Mapping[str, Any] | Path) -> Path:
        if isinstance(values, Path):
            return values
        file = self._values.with_name("more-values.json")
        file.write_text(json.dumps(values), encoding="utf-8")
        return file

    def _watch(self, pod: LocalPod) -> None:
        self._balancer.watch((pod.address, pod.port["reviews"]), (pod.address, pod.port["health"]))


def _programs(folder: Path, helm: str, values: Path) -> Path:
    """Write what a reader has on the path."""
    folder.mkdir()
    helm_program, kubectl = (shlex.quote(str(tools.path(each))) for each in (helm, "kubectl"))
    here = shlex.quote(str(values))
    scripts = {
        "helm": f'case "$1" in install|upgrade) exec {helm_program} "$@" --values {here};; *) exec {helm_program} "$@";; esac',
        "kubectl": f'exec {kubectl} "$@"',
        "gpugate": f'exec {shlex.quote(sys.executable)} -m gpugate.webhook.cli.main "$@"',
    }
    for name, script in scripts.items():
        file = folder / name
        file.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        file.chmod(0o755)
    return folder
