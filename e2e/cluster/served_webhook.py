"""The real `gpugate serve` as a process, with a ServiceAccount of its own, registered with the API server."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from cluster.beacon import Beacon
from cluster.health import Health
from cluster.kubeconfig import write_kubeconfig
from cluster.process import Process
from cluster.service_account import NAMESPACE, grant, made_account

from gpugate.webhook.admission.policy_reload import load_rules
from gpugate.webhook.admission.serve import HEALTH, READY
from gpugate.webhook.config import starter
from gpugate.webhook.registration.entries import RiskGroup
from gpugate.webhook.registration.objects import Server, webhook_configurations

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cluster.api import Api
    from cluster.control_plane import ControlPlane

# Sets the conventions of a platform and no mode, so that every policy has its shipped mode.
SHIPPED = starter.POLICY_FILE
# Each comes over a connection of its own, which any of the workers may accept.
_ANSWERS = 8
_WORKERS = 2
# A kind that no policy judges: only beacons are.
_BEACONS = {"kind": "other"}


class ServedWebhook:
    """gpugate, and what it is registered by.

    `url` and `authority` (a file, PEM) are where and how the API server reaches it; `workers` is the number of its workers,
    and `metrics_folder` where each of them keeps the numbers that `/metrics` shows as one.
    """

    def __init__(self, api: Api, process: Process, folder: Path, announced: str) -> None:
        self.process = process
        self.url = _said(announced, READY)
        self.authority = folder / "ca.crt"
        self.health = Health(self.url, _said(announced, HEALTH), self.authority)
        self.policy_file = folder / "policy.yaml"
        # With the process for expensive reviews.
        self.workers = _WORKERS + 1
        self.metrics_folder = next(_temporary(folder).iterdir())
        self._registered: tuple[dict[str, Any], ...] = ()
        self._unless = ""
        self._beacon = Beacon()
        self._api = api

    def use(self, policy_yaml: str) -> None:
        """Put a policy file in the place of the last one, and wait until every worker judges by it.

        Rights and registration become those that are generated for it.

        Raises:
            PolicyFileError: the file is refused; nothing has changed.
        """
        new = self.policy_file.with_suffix(".new")
        new.write_text(policy_yaml, encoding="utf-8")
        rules = load_rules(new)
        grant(self._api, rules.ruleset)
        new.rename(self.policy_file)
        before = time.time()
        self.process.signal(signal.SIGHUP)

        def in_force() -> bool:
            # Facts that the rules need may still be read then, and the rules before them hold for as long.
            taken_up = self.metric("gpugate_config_last_reload_success_timestamp_seconds") >= before
            return taken_up and all(self.health.generation() == rules.generation for _ in range(_ANSWERS))

        self.process.wait_until(in_force, "judging by the new policy file")
        if self._registered:
            self.register()

    def reset(self) -> None:
        """Go back to shipped modes."""
        self.use(SHIPPED)

    def log(self) -> list[dict[str, Any]]:
        """Return what it has logged so far."""
        lines = self.process.log().splitlines(keepends=True)
        # The last one may be half written.
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}\n")]

    def metric(self, name: str, **labels: str) -> float:
        """Return a metric, summed over what the labels leave open."""
        return self.health.metric(name, **labels)

    def configurations(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what is generated for the policy file in force: the mutating one, the validating one."""
        server = Server(ca_bundle=self.authority.read_bytes(), namespace=NAMESPACE, url=self.url)
        return webhook_configurations(
            load_rules(self.policy_file).ruleset,
            server,
            fail=tuple(RiskGroup),
            fail_mutating=tuple(RiskGroup),
        )

    def leave_out(self, unless: str) -> None:
        """Register it for all but what a CEL expression is true for."""
        self._unless = unless
        self.register()

    def register(self) -> None:
        """Make the API server ask it what is generated for the policy file, and wait until it does."""
        self._beacon = Beacon()
        self._registered = tuple(_narrowed(configuration, self._unless) for configuration in self.configurations())
        for configuration, path in zip(self._registered, ("mutate", "validate"), strict=True):
            answer = self._api.apply(
                self._beacon.marked(configuration, f"{self.url}/{path}", self.authority.read_bytes()), force=True
            )
            assert answer.ok, answer.message
        self.process.wait_until(lambda: self._asked() == (True, True), "asked by the API server")

    def unregister(self) -> None:
        """Make the API server ask it no more, and wait until it does not."""
        for configuration in self._registered:
            self._api.delete(configuration)
        self._registered = ()
        self.process.wait_until(lambda: self._asked() == (False, False), "left alone by the API server")

    def _asked(self) -> tuple[bool, ...]:
        """Tell for each phase whether the API server asks by the configurations registered last."""
        phases = ("mutate", "validate")
        before = [self.metric("gpugate_reviews_total", phase=phase, **_BEACONS) for phase in phases]
        self._api.create(self._beacon.object, dry_run=True)
        after = [self.metric("gpugate_reviews_total", phase=phase, **_BEACONS) for phase in phases]
        return tuple(now > then for now, then in zip(after, before, strict=True))


@contextmanager
def served_webhook(
    api: Api, control_plane: ControlPlane, folder: Path, shadow_policy_yaml: str = "", record: Path | None = None
) -> Iterator[ServedWebhook]:
    """Start gpugate, with a shadow policy file and a folder for its record if given, register it, and end both at the end.

    Raises:
        ProcessError: it died, or did not become ready, or the API server does not ask it.
    """
    policy_file = folder / "policy.yaml"
    policy_file.write_text(SHIPPED, encoding="utf-8")
    kubeconfig = write_kubeconfig(folder / "kubeconfig", control_plane.url, control_plane.ca_file, made_account(api))
    grant(api, load_rules(policy_file).ruleset)
    output = folder / "stdout"
    files = (f"--policy-file={policy_file}", f"--kubeconfig={kubeconfig}", f"--ca-file={folder / 'ca.crt'}")
    command = (sys.executable, "-m", "gpugate.webhook.cli.main", "serve", "--host=127.0.0.1", "--port=0")
    flags: tuple[str, ...] = ("--health-port=0", f"--workers={_WORKERS}", "--drain=0", *files)
    if shadow_policy_yaml:
        shadow = folder / "shadow.yaml"
        shadow.write_text(shadow_policy_yaml, encoding="utf-8")
        flags = (*flags, f"--shadow-policy-file={shadow}")
    if record is not None:
        flags = (*flags, f"--record={record}")
    temporary = _temporary(folder)
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary)}
    with ExitStack() as stack:
        process = Process("gpugate serve", [*command, *flags], folder / "log", environment, output)
        stack.callback(process.stop)
        process.wait_until(lambda: READY in output.read_text(encoding="utf-8"))
        webhook = ServedWebhook(api, process, folder, output.read_text(encoding="utf-8"))
        process.wait_until(webhook.health.ready, "ready, with everything looked up")
        webhook.register()
        yield webhook


def _narrowed(configuration: dict[str, Any], unless: str) -> dict[str, Any]:
    if not unless:
        return configuration
    condition = {"name": "left-out", "expression": f"!({unless})"}
    entries = [
        {**entry, "matchConditions": [*entry.get("matchConditions", ()), condition]}
        for entry in configuration["webhooks"]
    ]
    return {**configuration, "webhooks": entries}


def _temporary(folder: Path) -> Path:
    """Return what is its folder for temporary files, in which it makes one."""
    return folder / "tmp"


def _said(announced: str, label: str) -> str:
    return next(line.removeprefix(label) for line in announced.splitlines() if line.startswith(label))
