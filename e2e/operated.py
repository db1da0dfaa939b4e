"""An installation that `gpugate webhook` is tried on: both configurations under a name of their own, and the command."""

from __future__ import annotations

import copy
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cluster.service_account import NAMESPACE

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig, PolicyEntry
from gpugate.policies.engine.ruleset import bind
from gpugate.webhook.registration.entries import RiskGroup
from gpugate.webhook.registration.objects import Server, webhook_configurations

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cluster.api import Api

Json = dict[str, Any]
NAME = "operated.e2e.gpugate.dev"
KINDS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
_API_VERSION = "admissionregistration.k8s.io/v1"
_RULESET = bind(CATALOG, PolicyConfig(policies={"*/*": PolicyEntry(mode="enforce")}))
_PATIENCE_SECONDS = 120


class Operated:
    """Runs `gpugate webhook` on the installation, as the administrator."""

    def __init__(self, api: Api, kubeconfig: Path) -> None:
        self._api = api
        self._kubeconfig = kubeconfig

    def webhook(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a subcommand."""
        command = [sys.executable, "-m", "gpugate.webhook.cli.main", "webhook", *arguments]
        flags = ["--kubeconfig", str(self._kubeconfig), "--name", NAME]
        return subprocess.run(  # noqa: S603 -- ours
            [*command, *flags],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE_SECONDS,
        )

    def live(self) -> list[Json]:
        """Return the configurations that exist."""
        refs = [{"apiVersion": _API_VERSION, "kind": kind, "metadata": {"name": NAME}} for kind in KINDS]
        return [found for found in map(self._api.get, refs) if found]

    @contextmanager
    def registered(self, url: str, authority: bytes) -> Iterator[list[Json]]:
        """Register a server at a URL as long as the context lasts; gives what was applied."""
        made = configurations(Server(authority, namespace=NAMESPACE, url=url))
        try:
            for each in made:
                self.apply(each)
            yield made
        finally:
            for each in made:
                self._api.delete(each)

    def apply(self, configuration: Json, manager: str = "helm") -> None:
        """Apply one, as Helm 4 does."""
        answer = self._api.apply(configuration, manager, force=True)
        assert answer.ok, answer.message


def configurations(server: Server) -> list[Json]:
    """Return what is generated with every policy enforced, under this name."""
    made = []
    # Fail everywhere, so that nothing gets past it unless it is turned off.
    for each in webhook_configurations(_RULESET, server, fail=tuple(RiskGroup), fail_mutating=tuple(RiskGroup)):
        found = copy.deepcopy(each)
        found["metadata"]["name"] = NAME
        made.append(found)
    return made
