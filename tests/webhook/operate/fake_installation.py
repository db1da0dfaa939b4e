"""An installation in a fake API server, and its responses to probes."""

from __future__ import annotations

import base64
import copy
import datetime as dt
import json
from typing import Any

from cluster.fake_api_server import Answer, FakeApiServer

from gpugate.certs.authorities import Periods, create_authorities, encode
from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.ruleset import bind
from gpugate.webhook.registration.objects import Server, webhook_configurations

Json = dict[str, Any]
GROUP = "admissionregistration.k8s.io"
MUTATING, VALIDATING = ((GROUP, f"{phase}webhookconfigurations") for phase in ("mutating", "validating"))
SECRETS = ("", "secrets")
LEASES = ("coordination.k8s.io", "leases")
KINDS = (
    (GROUP, "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", False),
    (GROUP, "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", False),
    ("", "v1", "Secret", "secrets", True),
    ("", "v1", "Namespace", "namespaces", False),
    ("", "v1", "Service", "services", True),
    ("", "v1", "Pod", "pods", True),
    ("", "v1", "ConfigMap", "configmaps", True),
    ("coordination.k8s.io", "v1", "Lease", "leases", True),
    ("apps", "v1", "Deployment", "deployments", True),
    ("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", True),
)


class Cluster(FakeApiServer):
    """Serves the objects of an installation; empty at first."""

    def __init__(self) -> None:
        super().__init__()
        for group, version, kind, plural, namespaced in KINDS:
            self.serve(group, (version,), kind, plural, namespaced=namespaced)

    def install(self) -> None:
        """Store both configurations, as gpugate generates them."""
        mutating, validating = webhook_configurations(bind(CATALOG, PolicyConfig()), Server(b"ca"))
        self.store.put(MUTATING, mutating)
        self.store.put(VALIDATING, validating)

    def configurations(self) -> list[Json]:
        return [*self.store.all(MUTATING), *self.store.all(VALIDATING)]

    def contents(self) -> list[Json]:
        """Return the configurations without their resource version."""
        found = copy.deepcopy(self.configurations())
        for each in found:
            del each["metadata"]["resourceVersion"]
        return found

    def secret(self, **annotations: str) -> None:
        """Store the Secret of the authorities, as the keeper writes it."""
        data = {
            key: base64.b64encode(value).decode()
            for key, value in encode(create_authorities(Periods(), dt.datetime.now(tz=dt.UTC))).items()
        }
        metadata = {"name": "gpugate-certificates", "namespace": "gpugate", "annotations": annotations}
        self.store.put(SECRETS, {"metadata": metadata, "data": data})


def answer(nonce: str, *phases: str) -> Answer:
    """Return the API server's response to an answered probe."""
    warnings = ", ".join(f'299 - "gpugate answered {nonce} at {phase}"' for phase in phases)
    return Answer("configmaps?dryRun=All", 201, b"{}", {"Warning": warnings} if warnings else {})


def failure(message: str, code: int = 500, reason: str = "InternalError") -> Answer:
    """Return the API server's response to a probe that it could not send to the webhook."""
    body = {"kind": "Status", "code": code, "reason": reason, "message": message}
    return Answer("configmaps?dryRun=All", code, json.dumps(body).encode())
