"""ResourceQuota that names GPUs without the prefix `requests.`, and so limits nothing.

## Why is this bad?
The namespace can use any number of GPUs: Kubernetes counts an extended resource in a quota only as
`requests.<resource>`. It accepts `nvidia.com/gpu` and `limits.nvidia.com/gpu` without a warning, and ignores them.

## Instead
Write the prefix `requests.`:

```yaml
apiVersion: v1
kind: ResourceQuota
metadata:
  name: gpus
  namespace: research
spec:
  hard:
    requests.nvidia.com/gpu: "8"
```

GPUs of dynamic resource allocation are counted by device class: `gpu.nvidia.com.deviceclass.resource.k8s.io/devices`.

A name without the prefix is denied. A name with the prefix `limits.` is only a warning, because the scheduler of
HAMi, a project that shares GPUs, reads such names. There are two exceptions:

- If the quota also contains `requests.nvidia.com/gpu`, neither `nvidia.com/gpu` nor `limits.nvidia.com/gpu` is reported.
  The same holds for other resources.
- If the quota also limits `gpumem` or `gpucores`, which are resources of HAMi, the name with `limits.` is not reported.

## Sources
Kubernetes v1.36.3 `pkg/quota/v1/evaluator/core/pods.go` (isExtendedResourceNameForQuota) and "Resource Quotas", section "Quota
for extended resources"; kubeflow/website pull request 2460; NVIDIA/k8s-device-plugin issue 211; HAMi user guide
"Using ResourceQuota" (Project-HAMi/website pull request 104, 2025-09).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.data.accelerators import AMOUNTS
from gpugate.policies.sdk import formats
from gpugate.policies.sdk.findings import Patch, Patches, Stance, Violation
from gpugate.policies.sdk.objects import RESOURCE_QUOTA
from gpugate.policies.sdk.policy import validates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext

_COUNTED: Final = "requests."
_LIMITS: Final = "limits."


@validates(RESOURCE_QUOTA)
def check(quota: Field, ctx: AnyContext) -> Iterator[Violation]:
    """Report each name of an accelerator that Kubernetes does not count."""
    hard = quota["spec", "hard"]
    names = hard.mapping
    of_hami = any(_is_amount(name.removeprefix(_LIMITS)) for name in names)
    for name in names:
        resource = name.removeprefix(_LIMITS)
        if not ctx.platform.is_accelerator(resource) or _COUNTED + resource in names:
            continue
        if of_hami and resource != name:
            continue
        right = _COUNTED + resource
        at_most = Stance.ENFORCE if resource == name else Stance.WARN
        message = f"{name} limits nothing: Kubernetes counts this resource only as {right}"
        fix = Patches(
            (
                Patch("set", hard[right].path, hard[name].value, f"limits the GPUs of the namespace as {right}"),
                Patch("remove", hard[name].path, None, "removes a name that limits nothing"),
            )
        )
        yield Violation(hard[name].path, message, at_most, f"write {right}", fix)


def _is_amount(resource: str) -> bool:
    return any(formats.matches(pattern, resource) for pattern in AMOUNTS)
