"""Replicas of gpugate that keep their certificates, in a namespace of their own, behind a balancer on loopback."""

from __future__ import annotations

import base64
import copy
import json
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from cluster.accounts import account_kubeconfig
from cluster.health import Health
from cluster.namespaces import namespace_object
from cluster.process import Process
from eventually import eventually
from gpu_pods import pod
from harness.running import RunningBalancer

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.ruleset import bind
from gpugate.webhook.admission.serve import HEALTH, READY
from gpugate.webhook.registration.entries import RiskGroup
from gpugate.webhook.registration.objects import Server, webhook_configurations
from gpugate.webhook.registration.rbac import keeper_rbac, rbac

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.api import Api
    from cluster.control_plane import ControlPlane

ACCOUNT: Final = "gpugate"
SECRET: Final = "gpugate-certificates"  # noqa: S105 -- the name of an object
# Each promotion brings new certificates; one that is late by seconds, where much else runs, may not outlive its own.
_PERIODS: Final = ("--authority-life=10m", "--authority-rotation=2s", "--certificate-life=12s", "--propagation=2s")
_RULESET: Final = bind(CATALOG, PolicyConfig())


@dataclass
class KeptWebhook:
    """An installation; `name` is that of its namespace, and of both its configurations, which everything waits for."""

    api: Api
    name: str
    url: str
    replicas: list[Process] = field(default_factory=list)
    health: list[Health] = field(default_factory=list)

    def configurations(self) -> list[dict[str, Any]]:
        """Return both as a release brings them: with empty bundles."""
        server = Server(b"", self.name, self.url)
        every = tuple(RiskGroup)
        made = webhook_configurations(_RULESET, server, fail=every, fail_mutating=every)
        return [{**copy.deepcopy(each), "metadata": {"name": self.name}} for each in made]

    def roles(self) -> list[dict[str, Any]]:
        """Return exactly what is generated for such an installation, under names of its own."""
        keeper = keeper_rbac(self.name, ACCOUNT, SECRET, self.name, self.name)
        return [self._renamed(each) for each in (*rbac(_RULESET, self.name, ACCOUNT), *keeper)]

    def _renamed(self, role: dict[str, Any]) -> dict[str, Any]:
        name = f"{self.name}-{role['metadata']['name']}"
        reference = {"roleRef": {**role["roleRef"], "name": name}} if "roleRef" in role else {}
        return {**role, "metadata": {**role["metadata"], "name": name}, **reference}

    def promoted_at(self) -> str:
        """Return since when the active authority signs; empty where there is none."""
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET, "namespace": self.name}}
        data = self.api.get(secret).get("data") or {}
        return str(json.loads(base64.b64decode(data["state.json"]))["promotedAt"]) if data else ""

    def bundles(self) -> list[str]:
        """Return the bundle of every entry of the configurations that exist, in base64."""
        found = [self.api.get(each) for each in self.configurations()]
        return [hook["clientConfig"].get("caBundle", "") for each in found if each for hook in each["webhooks"]]

    def metric(self, name: str, **labels: str) -> float:
        """Return a metric, summed over the replicas and over what the labels leave open."""
        return sum(each.metric(name, **labels) for each in self.health)


@contextmanager
def kept_webhook(
    api: Api, control_plane: ControlPlane, folder: Path, name: str, replicas: int
) -> Iterator[KeptWebhook]:
    """Install it from nothing, and wait until every replica is ready; everything is gone at the end.

    Raises:
        ProcessError: a replica died, or did not become ready.
    """
    with ExitStack() as stack:
        balancer = RunningBalancer(1)
        stack.callback(balancer.close)
        made = KeptWebhook(api, name, f"https://{balancer.address[0]}:{balancer.address[1]}")
        namespace = namespace_object(name)
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": name}}
        for each in (namespace, account, *made.roles(), *made.configurations()):
            answer = api.apply(each, force=True)
            assert answer.ok, answer.message
            stack.callback(api.delete, each)
        kubeconfig = account_kubeconfig(api, control_plane, account, folder / "kubeconfig")
        for number in range(replicas):
            _start(made, balancer, folder / f"replica-{number}", kubeconfig, stack)
        try:
            yield made
        finally:
            _unregister(made)


def _unregister(made: KeptWebhook) -> None:
    """Delete the configurations, and wait until nobody is asked: else requests after this are refused for a moment."""
    for each in made.configurations():
        made.api.delete(each)
    asking = pod("asks", "default", {"nvidia.com/gpu": "1"})

    def is_left_alone() -> bool:
        before = made.metric("gpugate_reviews_total")
        made.api.create(asking, dry_run=True)
        return made.metric("gpugate_reviews_total") == before

    assert eventually(is_left_alone), "still asked"


def _start(made: KeptWebhook, balancer: RunningBalancer, folder: Path, kubeconfig: Path, stack: ExitStack) -> None:
    folder.mkdir()
    output = folder / "stdout"
    ports = ("--host=127.0.0.1", "--port=0", "--health-port=0", "--workers=1", "--drain=0")
    where = (f"--kubeconfig={kubeconfig}", f"--namespace={made.name}", f"--url={made.url}")
    kept = (f"--certificate-secret={SECRET}", f"--webhook-configuration={made.name}", *_PERIODS)
    command = (sys.executable, "-m", "gpugate.webhook.cli.main", "serve", *ports, *where, *kept)
    process = Process("gpugate serve", command, folder / "log", None, output)
    stack.callback(process.stop)
    process.wait_until(lambda: READY in output.read_text(encoding="utf-8"))
    said = {label: _said(output, label) for label in (READY, HEALTH)}
    health = Health(said[READY], said[HEALTH], Path("none"))
    process.wait_until(health.ready, "ready, with certificates that are trusted")
    made.replicas.append(process)
    made.health.append(health)
    address, probed = (urlsplit(said[label]) for label in (READY, HEALTH))
    balancer.watch((address.hostname or "", address.port or 0), (probed.hostname or "", probed.port or 0))
    process.wait_until(lambda: len(balancer.endpoints()) == len(made.replicas), "an endpoint of the balancer")


def _said(output: Path, label: str) -> str:
    lines = output.read_text(encoding="utf-8").splitlines()
    return next(line.removeprefix(label) for line in lines if line.startswith(label))
