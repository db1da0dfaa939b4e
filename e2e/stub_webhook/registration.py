"""Registers stub webhooks with the API server, for the objects of one namespace only."""

from __future__ import annotations

import itertools
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stub_webhook.server import PROBE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.api import Answer, Api
    from stub_webhook.server import Stub

Json = dict[str, Any]
API_VERSION = "admissionregistration.k8s.io/v1"
KINDS = {"mutating": "MutatingWebhookConfiguration", "validating": "ValidatingWebhookConfiguration"}
_PATIENCE_SECONDS = 90
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Registrar:
    """Makes webhook configurations that ask a stub about the ConfigMaps of a namespace.

    Attributes:
        api: where they are stored.
        namespace: whose objects the stub is asked about.
        stub: whom the hooks name.
        prober: another stub that is asked whether a configuration is in force, where that one cannot answer.
    """

    api: Api
    namespace: str
    stub: Stub
    prober: Stub | None = None

    @contextmanager
    def registered(self, phase: str, *hooks: Json, name: str = "answers.e2e.gpugate.dev") -> Iterator[None]:
        """Register hooks (see `hook`), wait until the API server asks them, and take them away at the end."""
        try:
            self.register(phase, *hooks, name=name)
            yield
        finally:
            self.api.delete({"apiVersion": API_VERSION, "kind": KINDS[phase], "metadata": {"name": name}})

    def register(self, phase: str, *hooks: Json, name: str = "answers.e2e.gpugate.dev") -> None:
        """Register or change hooks, and wait until the API server asks them."""
        webhooks = [
            {key: value for key, value in ({"name": f"hook-{number}.{name}"} | hook).items() if value is not None}
            for number, hook in enumerate(hooks or (self.hook(),), 1)
        ]
        register(self.api, self.prober or self.stub, self.namespace, configuration(phase, name, webhooks))

    def hook(self, path: str = "/", **members: Any) -> Json:
        """Describe a hook at a path of the stub; members replace ours, and None leaves one out."""
        plain = {
            "clientConfig": {"url": self.stub.url + path, "caBundle": self.stub.authority.bundle},
            "rules": [rule("configmaps", "CREATE")],
            "namespaceSelector": in_namespace(self.namespace),
            "timeoutSeconds": 5,
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        return plain | members

    def try_create(self, **members: Any) -> Answer:
        """Ask the API server to create a ConfigMap, which is then not stored."""
        return self.api.create(config_map(self.namespace, **members), dry_run=True)


def config_map(namespace: str, **metadata: Any) -> Json:
    """A ConfigMap, with its own name unless the metadata say otherwise."""
    name = {} if "generateName" in metadata else {"name": f"asked-{next(_numbers)}"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": namespace, **name, **metadata}}


def configuration(phase: str, name: str, webhooks: list[Json]) -> Json:
    """A webhook configuration, `mutating` or `validating`."""
    return {"apiVersion": API_VERSION, "kind": KINDS[phase], "metadata": {"name": name}, "webhooks": webhooks}


def in_namespace(namespace: str) -> Json:
    """A namespaceSelector for one namespace."""
    return {"matchLabels": {"kubernetes.io/metadata.name": namespace}}


def rule(resource: str, *operations: str, group: str = "", version: str = "v1") -> Json:
    return {"apiGroups": [group], "apiVersions": [version], "operations": list(operations), "resources": [resource]}


def register(api: Api, stub: Stub, namespace: str, wanted: Json) -> None:
    """Store a webhook configuration, and wait until the API server works by it.

    It gets one more hook, which the API server asks about Secrets of the namespace; all hooks of a configuration come
    into force together.
    """
    path = f"{PROBE}{next(_numbers)}"
    probe = {
        "name": "in-force.e2e.gpugate.dev",
        "clientConfig": {"url": stub.url + path, "caBundle": stub.authority.bundle},
        "rules": [rule("secrets", "CREATE")],
        "namespaceSelector": in_namespace(namespace),
        "failurePolicy": "Ignore",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    stored = api.apply(wanted | {"webhooks": [*wanted["webhooks"], probe]}, force=True)
    assert stored.ok, stored.message
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "probe", "namespace": namespace}}
    end = time.monotonic() + _PATIENCE_SECONDS
    while path not in stub.probes:
        assert time.monotonic() < end, f"{wanted['metadata']['name']} did not come into force: {stored.body}"
        api.create(secret, dry_run=True)
        time.sleep(0.02)
