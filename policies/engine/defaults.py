"""Add the defaults of the API server and the CRDs, so that a file is evaluated like its object at admission.

Sources: Karpenter v1.14.1 (`pkg/apis/crds/karpenter.sh_nodepools.yaml`, `karpenter.sh_nodeclaims.yaml`) and its AWS
provider v1.14.1 (`karpenter.k8s.aws_ec2nodeclasses.yaml`), `kubernetes/api` v0.36 (`core/v1`, `apps/v1`, `batch/v1`,
`autoscaling/v2`, `resource/v1` defaults), KEDA v2.20.2 (its CRDs have none).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from gpugate.policies.sdk import quantity
from gpugate.policies.sdk.field import is_unknown
from gpugate.policies.sdk.structs import replace

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.sdk.field import Json
    from gpugate.policies.sdk.objects import Request

_Object = "dict[str, Json]"


def with_defaults(request: Request) -> Request:
    """Return the request with defaults in its objects, which are copied.

    Numbers among a Pod's resources become strings, as the API server returns quantities.
    """
    fill = _DEFAULTS.get((request.kind.group, request.kind.kind))
    if fill is None or (request.kind.group.startswith("karpenter.") and request.kind.version != "v1"):
        return request
    return replace(
        request,
        object=_filled(request.object, fill),
        old_object=_filled(request.old_object, fill),
    )


def _filled(obj: object, fill: Callable[[dict[str, Json]], None]) -> dict[str, Json] | None:
    if not isinstance(obj, dict):
        return None
    copied = cast("dict[str, Json]", _copy(obj))
    fill(copied)
    return copied


def _copy(value: Json) -> Json:
    if isinstance(value, dict):
        # Most members are scalars. Handling them here takes half of the time that a call for each takes.
        return {key: _copy(member) if isinstance(member, dict | list) else member for key, member in value.items()}
    if isinstance(value, list):
        return [_copy(member) for member in value]
    return value


def _at(value: Json, *path: str) -> dict[str, Json] | None:
    """Return the object at a path; None if it is missing or not an object."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else None


def _default(obj: dict[str, Json] | None, **values: Json) -> None:
    for key, value in values.items() if obj is not None else ():
        if obj is not None and obj.get(key) is None:
            obj[key] = value


def _pod(pod: dict[str, Json]) -> None:
    spec = _at(pod, "spec")
    _pod_spec(spec)
    for name in ("containers", "initContainers"):
        containers = spec.get(name) if spec else None
        for container in containers if isinstance(containers, list) else ():
            resources = _at(container, "resources")
            limits = _at(resources, "limits") if resources else None
            # Only of Pods: a template keeps its limits without requests (`pkg/apis/core/v1/defaults.go` SetDefaults_Pod).
            if resources and limits:
                _default(resources, requests={})
                requests = _at(resources, "requests")
                if requests is not None:
                    resources["requests"] = {**_readable(limits), **requests}
            _quantities(resources)


def _readable(amounts: dict[str, Json]) -> dict[str, Json]:
    """Return amounts without invalid quantities, which the API server rejects before it adds defaults."""

    def is_quantity(amount: Json) -> bool:
        return is_unknown(amount) or quantity.parse_or_none(amount) is not None

    return {name: amount for name, amount in amounts.items() if is_quantity(amount)}


def _quantities(resources: dict[str, Json] | None) -> None:
    for block in ("limits", "requests"):
        amounts = _at(resources, block) if resources else None
        for name, amount in (amounts or {}).items():
            if amounts and isinstance(amount, int | float) and not isinstance(amount, bool):
                amounts[name] = str(amount)


def _pod_spec(spec: dict[str, Json] | None) -> None:
    _default(spec, restartPolicy="Always", terminationGracePeriodSeconds=30)


def _workload(**values: Json) -> Callable[[dict[str, Json]], None]:
    def fill(workload: dict[str, Json]) -> None:
        _default(_at(workload, "spec"), **values)
        _pod_spec(_at(workload, "spec", "template", "spec"))

    return fill


def _node_pool(pool: dict[str, Json]) -> None:
    spec = _at(pool, "spec")
    _default(spec, disruption={"consolidateAfter": "0s"})
    disruption = _at(spec, "disruption")
    _default(disruption, consolidationPolicy="WhenEmptyOrUnderutilized", budgets=[{"nodes": "10%"}])
    budgets = disruption.get("budgets") if disruption else None
    for budget in budgets if isinstance(budgets, list) else ():
        _default(_at(budget), nodes="10%")
    _default(_at(spec, "template", "spec"), expireAfter="720h")


def _node_claim(claim: dict[str, Json]) -> None:
    _default(_at(claim, "spec"), expireAfter="720h")


def _ec2_node_class(node_class: dict[str, Json]) -> None:
    spec = _at(node_class, "spec")
    _default(spec, metadataOptions={})
    _default(
        _at(spec, "metadataOptions"),
        httpEndpoint="enabled",
        httpProtocolIPv6="disabled",
        httpPutResponseHopLimit=1,
        httpTokens="required",
    )


def _claim(*path: str) -> Callable[[dict[str, Json]], None]:
    def fill(claim: dict[str, Json]) -> None:
        devices = _at(claim, *path, "devices")
        requests = devices.get("requests") if devices else None
        for request in requests if isinstance(requests, list) else ():
            exactly = _at(request, "exactly")
            alternatives = request.get("firstAvailable") if isinstance(request, dict) else None
            for ask in (exactly, *(alternatives if isinstance(alternatives, list) else ())):
                block = _at(ask)
                _default(block, allocationMode="ExactCount")
                if block and block["allocationMode"] == "ExactCount":
                    _default(block, count=1)

    return fill


_DEFAULTS: dict[tuple[str, str], Callable[[dict[str, Json]], None]] = {
    ("", "Pod"): _pod,
    # Without `replicas`: one policy reads whether the author set it, and all others read a missing one as 1.
    ("apps", "Deployment"): _workload(),
    ("apps", "StatefulSet"): _workload(),
    ("apps", "ReplicaSet"): _workload(),
    ("apps", "DaemonSet"): _workload(),
    ("batch", "Job"): _workload(parallelism=1, completionMode="NonIndexed", backoffLimit=6, suspend=False),
    ("karpenter.sh", "NodePool"): _node_pool,
    ("karpenter.sh", "NodeClaim"): _node_claim,
    ("karpenter.k8s.aws", "EC2NodeClass"): _ec2_node_class,
    ("autoscaling", "HorizontalPodAutoscaler"): _workload(minReplicas=1),
    ("resource.k8s.io", "ResourceClaim"): _claim("spec"),
    ("resource.k8s.io", "ResourceClaimTemplate"): _claim("spec", "spec"),
}
