"""The templates that `pods/mig-without-claim` gives Pods claims of, for the namespaces that want them."""

from __future__ import annotations

from gpugate.policies.pods._mig_claims import ClaimParams
from gpugate.webhook.generate.chart.names import metadata
from gpugate.webhook.generate.chart.terms import Each, Node, Value, Variable, call, text


def mig_claims() -> Node:
    """Return a ResourceClaimTemplate for each namespace and profile, as NVIDIA's DRA driver reads it (v0.4.1)."""
    profile = Variable("profile")
    dashed = call("replace", "+", "-", call("replace", ".", "-", profile))
    chosen = text("device.attributes['gpu.nvidia.com'].profile == '", profile, "'")
    request: Node = {
        "name": "mig",
        "exactly": {
            "deviceClassName": "mig.nvidia.com",
            "allocationMode": "ExactCount",
            "count": 1,
            "selectors": [{"cel": {"expression": chosen}}],
        },
    }
    made: Node = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {
            **metadata(text(ClaimParams().template_prefix, dashed)),
            "namespace": Variable("namespace"),
        },
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }
    return Each(
        ("namespace", "profiles"), Value("migNamespaces"), Each(("profile",), call("uniq", Variable("profiles")), made)
    )
