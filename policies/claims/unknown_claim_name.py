"""Container that names a claim, or a request of a claim, that does not exist.

## Why is this bad?
The API server rejects a Pod in which a container names a claim that `spec.resourceClaims` does not contain. Of a custom
resource, such as a PyTorchJob, it rejects the Pods only when the controller creates them.

If a container names a request that the claim does not have, the API server accepts the Pod and the finding is a warning: the
container starts without the devices of the claim.

## Instead
Write the same name in both places. Without `request`, a container gets all devices of the claim.

```yaml
spec:
  resourceClaims:
    - name: gpu
      resourceClaimTemplateName: one-h100
  containers:
    - name: train
      resources:
        claims:
          - name: gpu
```

Requests are compared only if the ResourceClaim or ResourceClaimTemplate is known: in `check`, it must be among the files.
Templates in custom resources are evaluated for Kubeflow, JobSet, LeaderWorkerSet and Ray, whose controllers copy them.

## Sources
Kubernetes v1.36 `pkg/apis/core/validation/validation.go` (validateResourceClaimNames), `pkg/kubelet/cm/dra/manager.go`
(GetResources: only the devices of the named request); `kubernetes/api` v0.36 `core/v1/types.go` (ResourceClaim.Request).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk.concerns import EVERY_OBJECT, Each
from gpugate.policies.sdk.findings import Stance, Violation
from gpugate.policies.sdk.gpu_demand import CLAIM_NEEDS, claim_spec, device_requests
from gpugate.policies.sdk.objects import POD
from gpugate.policies.sdk.policy import validates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext

_NAMES_CLAIM: Final = Each("resources.claims", EVERY_OBJECT)
_USES_CLAIM: Final = Each("spec.containers", _NAMES_CLAIM) | Each("spec.initContainers", _NAMES_CLAIM)
# API groups of workloads whose Pod templates become Pods unchanged.
_COPIED: Final = frozenset(
    {
        *("", "apps", "batch", "jobset.x-k8s.io", "kubeflow.org", "leaderworkerset.x-k8s.io", "ray.io"),
        "trainer.kubeflow.org",
    }
)
_BUILT_IN: Final = frozenset({"", "apps", "batch"})
_SHOWN: Final = 3


@validates(POD, needs=CLAIM_NEEDS, concerns=_USES_CLAIM)
def check(pod: Field, ctx: AnyContext) -> Iterator[Violation]:
    """Report names in the resources of containers that no claim of the Pod, or no request of it, has."""
    group = ctx.wrapper.kind.group if ctx.wrapper else ""
    if group not in _COPIED:
        return
    claims = {claim["name"].text: claim for claim in pod["spec", "resourceClaims"]}
    requests: dict[str, frozenset[str] | None] = {}
    for container in (*pod["spec", "initContainers"], *pod["spec", "containers"]):
        for use in container["resources", "claims"]:
            name, request = use["name"].text, use["request"].text
            if name and name not in claims:
                yield _unknown_claim(use["name"], list(claims), group)
            elif name and request:
                if name not in requests:
                    requests[name] = _requests_of(claims[name], ctx)
                known = requests[name]
                if known is not None and request not in known:
                    yield _unknown_request(use["request"], name, sorted(known))


def _unknown_claim(name: Field, claims: list[str], group: str) -> Violation:
    message = f"spec.resourceClaims contains no claim {_shortened(name.text)}"
    hint = f"add the claim to spec.resourceClaims{_or_write(claims)}"
    why = "The API server rejects the Pod."
    if group not in _BUILT_IN:
        why = "The API server rejects the Pods when the controller creates them, so the workload does not start."
    return Violation(name.path, message, hint=hint, why=why)


def _unknown_request(request: Field, claim: str, known: list[str]) -> Violation:
    message = f"claim {_shortened(claim)} has no request {_shortened(request.text)}"
    hint = f"remove the request to get all devices of the claim{_or_write(known)}"
    why = (
        "The devices of the claim are allocated, and kubelet gives a container only those of the request that it names."
    )
    return Violation(request.path, message, Stance.WARN, hint, why=why)


def _or_write(names: list[str]) -> str:
    listed = ", ".join(_shortened(name) for name in names[:_SHOWN] if name)
    return f", or write one of its names: {listed}" if listed else ""


def _requests_of(claim: Field, ctx: AnyContext) -> frozenset[str] | None:
    spec = claim_spec(claim, ctx)
    return None if spec is None else frozenset(request["name"].text for request in device_requests(spec))


def _shortened(name: str) -> str:
    return name if len(name) <= 63 else f"{name[:63]}..."
