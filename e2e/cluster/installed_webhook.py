"""gpugate inside a cluster, by the chart and the image: what `ServedWebhook` is beside one, with its methods."""

from __future__ import annotations

import json
import os
import re
import subprocess
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
import yaml
from cluster.health import Health
from cluster.kind import IMAGE, ROOT, KindError
from cluster.ports import HOST, free_ports
from cluster.process import Process
from cluster.service_account import NAMESPACE

import tools
from gpugate.webhook.config import starter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cluster.api import Api
    from cluster.control_plane import ControlPlane

RELEASE = "gpugate"
_CONFIGURATIONS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
_HEALTH_PORT = 8081
# Judged by shipped policies, whatever is in it.
_PROBE = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "probe"}, "spec": {}}
_SHIPPED: dict[str, Any] = {
    key: value for key, value in yaml.safe_load(starter.POLICY_FILE).items() if key not in {"apiVersion", "kind"}
}


class InstalledWebhook:
    """One Pod, so that its numbers are all there are; each change is a `helm upgrade`, whose Job waits until it is in force."""

    def __init__(self, api: Api, control_plane: ControlPlane, folder: Path, stack: ExitStack) -> None:
        self._api = api
        self._folder = folder
        self._stack = stack
        self._kubeconfig = str(control_plane.admin_kubeconfig)
        self._policy = _SHIPPED
        self._forwarded: Process | None = None
        self.health = Health("", "", folder / "ca.crt")

    def install(self) -> None:
        """Install or upgrade the release, and wait until the API server asks it.

        Raises:
            KindError: Helm says why not.
        """
        file = self._folder / "values.json"
        file.write_text(json.dumps(values(self._policy)), encoding="utf-8")
        chart = ("--install", RELEASE, str(ROOT / "charts/gpugate"), "--values", str(file))
        self._helm("upgrade", *chart, "--create-namespace", "--wait", "--timeout", "180s")
        self._forward()

    def uninstall(self) -> None:
        """Remove the release with everything it made."""
        self._helm("uninstall", RELEASE, "--ignore-not-found", "--wait", "--timeout", "180s")

    def use(self, policy_yaml: str) -> None:
        """Judge by another policy file.

        Raises:
            KindError: the chart or the new Pod refuses it.
        """
        read = yaml.safe_load(policy_yaml)
        self._policy = {key: value for key, value in read.items() if key not in {"apiVersion", "kind"}}
        self.install()

    def reset(self) -> None:
        """Go back to shipped modes."""
        self._policy = _SHIPPED
        self.install()

    def register(self) -> None:
        """Make the API server ask it again."""
        self.install()

    def unregister(self) -> None:
        """Make the API server ask it no more, and wait until it does not."""
        for kind in _CONFIGURATIONS:
            found = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": RELEASE}}
            self._api.delete(found)
        assert self._forwarded is not None
        self._forwarded.wait_until(lambda: not self._asked(), "left alone by the API server")

    def metric(self, name: str, **labels: str) -> float:
        """Return a metric, summed over what the labels leave open."""
        return self.health.metric(name, **labels)

    def log(self) -> list[dict[str, Any]]:
        """Return what it has logged so far."""
        said = _run(self._kubectl("logs", f"deployment/{RELEASE}", "--namespace", NAMESPACE)).splitlines()
        return [json.loads(line) for line in said if line.startswith("{")]

    def __getattr__(self, name: str) -> NoReturn:
        # What is left is about a process on this machine, and an address that this machine's API server reaches.
        if re.fullmatch(r"process|url|authority|policy_file|workers|metrics_folder|configurations", name):
            pytest.skip(f"CLUSTER=kind: `{name}` is of a webhook that runs beside the cluster; leave CLUSTER out")
        raise AttributeError(name)

    def _asked(self) -> bool:
        before = self.metric("gpugate_reviews_total")
        self._api.create(_PROBE, dry_run=True)
        return self.metric("gpugate_reviews_total") > before

    def _forward(self) -> None:
        """Let this machine reach the Pod that has come."""
        if self._forwarded is not None:
            self._forwarded.stop()
        (port,) = free_ports(1)
        where = (f"deployment/{RELEASE}", f"{port}:{_HEALTH_PORT}", "--address", HOST, "--namespace", NAMESPACE)
        command = self._kubectl("port-forward", *where)
        self._forwarded = Process("kubectl port-forward", command, self._folder / "port-forward.log")
        self._stack.callback(self._forwarded.stop)
        self.health = Health("", f"http://{HOST}:{port}", self._folder / "ca.crt")
        self._forwarded.wait_until(self._ready)

    def _ready(self) -> bool:
        try:
            return self.health.ready()
        except OSError:
            # Nobody listens on this side yet.
            return False

    def _helm(self, *arguments: str) -> None:
        helm = str(tools.path("helm"))
        environment = {**os.environ, "HOME": str(self._folder)}
        _run([helm, *arguments, "--namespace", NAMESPACE, "--kubeconfig", self._kubeconfig], environment)

    def _kubectl(self, *arguments: str) -> list[str]:
        return [str(tools.path("kubectl")), f"--kubeconfig={self._kubeconfig}", *arguments]


def values(policy: dict[str, Any]) -> dict[str, Any]:
    """Return what the chart is told: our image, one Pod on whatever node there is, and no ceiling but the policy's own."""
    repository, _, tag = IMAGE.partition(":")
    return {
        "image": {"repository": repository, "tag": tag, "pullPolicy": "Never"},
        "replicaCount": 1,
        "podDisruptionBudget": {"enabled": False},
        "server": {"drainSeconds": 1},
        "policy": {"mode": None, **policy},
    }


@contextmanager
def installed_webhook(api: Api, control_plane: ControlPlane, folder: Path) -> Iterator[InstalledWebhook]:
    """Install gpugate by its chart, and uninstall it at the end.

    Raises:
        KindError: Helm or kubectl says why it cannot be.
        ProcessError: it cannot be reached, or is not ready.
        ToolsError: Helm or kubectl has not been built.
    """
    with ExitStack() as stack:
        webhook = InstalledWebhook(api, control_plane, folder, stack)
        stack.callback(webhook.uninstall)
        webhook.install()
        yield webhook


def _run(command: list[str], environment: dict[str, str] | None = None) -> str:
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603 -- helm and kubectl
    if ran.returncode:
        raise KindError(f"{' '.join(command)} failed:\n{ran.stderr}")
    return ran.stdout
