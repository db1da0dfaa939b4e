"""A healthy installation in memory, for tests that change one part."""

from __future__ import annotations

import base64
import datetime as dt
from dataclasses import replace
from typing import Any

from gpugate.certs.authorities import Authorities, Periods, create_authorities, create_authority, encode
from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.ruleset import bind
from gpugate.webhook.operate.doctor_case import Case
from gpugate.webhook.operate.installation import Installation, Names, public_parts
from gpugate.webhook.registration.meant import Meant
from gpugate.webhook.registration.objects import Server, webhook_configurations

NOW = dt.datetime(2027, 1, 31, 12, tzinfo=dt.UTC)
RULESET = bind(CATALOG, PolicyConfig())
LABELS = {"app": "gpugate"}


def authorities(now: dt.datetime = NOW) -> Authorities:
    return replace(create_authorities(Periods(), now), next=create_authority(Periods(), now), published_at=now)


AUTHORITIES = authorities()


def secret(held: Authorities = AUTHORITIES, **annotations: str) -> dict[str, Any]:
    data = {key: base64.b64encode(content).decode() for key, content in encode(held).items()}
    named = {key.replace("_", "/", 1).replace("gpugate", "gpugate.dev"): value for key, value in annotations.items()}
    return {"metadata": {"resourceVersion": "1", "annotations": named}, "data": data}


def pod(**status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "gpugate-1", "labels": LABELS}, "status": {"phase": "Running", **status}}


def endpoint_slice(*, ready: bool = True, ports: tuple[int, ...] = (8443,)) -> dict[str, Any]:
    return {
        "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": ready}}],
        "ports": [{"port": port} for port in ports],
    }


def installation(**parts: Any) -> Installation:
    configurations = webhook_configurations(RULESET, Server(AUTHORITIES.bundle))
    healthy: dict[str, Any] = {
        "names": Names(),
        "now": NOW,
        "server": "v1.36.3",
        "configurations": {each["kind"]: each for each in configurations},
        "others": (),
        "namespace": {"metadata": {"name": "gpugate"}},
        "secret": public_parts(secret()),
        "service_account": {"metadata": {"name": "gpugate"}},
        "lease": {"spec": {"holderIdentity": "gpugate-1", "leaseDurationSeconds": 15, "renewTime": NOW.isoformat()}},
        "service": {"spec": {"selector": LABELS, "ports": [{"port": 443}]}},
        "endpoint_slices": (endpoint_slice(),),
        "deployments": (),
        "pods": (pod(),),
    }
    return Installation(**{**healthy, **parts})


def case(**parts: Any) -> Case:
    """Return a case whose installation differs from a healthy one in some parts."""
    return Case(installation(**parts), RULESET, rules_from="57 policies (as shipped)", meant=Meant())
