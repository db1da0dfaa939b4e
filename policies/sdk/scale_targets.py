"""The workload that a ScaledObject or HorizontalPodAutoscaler scales, and the accelerators that a replica requests."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from gpugate.policies.data import accelerators, mig_profiles
from gpugate.policies.sdk import objects
from gpugate.policies.sdk.facts import Need, named
from gpugate.policies.sdk.findings import Stance
from gpugate.policies.sdk.gpu_demand import CLAIM_NEEDS, GpuDemand, gpu_demand, is_amount, is_virtual
from gpugate.policies.sdk.objects import GroupVersionKind, Kind, Wrapper
from gpugate.policies.sdk.pod_templates import pod_templates
from gpugate.policies.sdk.structs import Struct, replace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.facts import Known
    from gpugate.policies.sdk.field import Field, Path
    from gpugate.policies.sdk.policy import AnyContext

TARGET_KINDS: Final = (objects.DEPLOYMENT, objects.STATEFUL_SET, objects.REPLICA_SET)
# The fields from which the demand of a Pod template is computed.
TEMPLATE_FIELDS: Final = (
    "spec.template.spec.containers.resources",
    "spec.template.spec.initContainers.resources",
    "spec.template.spec.initContainers.restartPolicy",
    "spec.template.spec.resourceClaims",
)
# The needs of a policy that reads the demand of a target.
TARGET_NEEDS: Final = (*(Need(kind, TEMPLATE_FIELDS) for kind in TARGET_KINDS), *CLAIM_NEEDS)


class ScaleTarget(Struct, frozen=True):
    """A workload that a scaler names, by group, kind and name. Its API version does not matter."""

    group: str
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def scale_target(scaler: Field) -> ScaleTarget | None:
    """Return the target in `spec.scaleTargetRef`; None if it has no name.

    The defaults of apiVersion and kind are `apps/v1` and Deployment, as KEDA reads both its own references and those of
    autoscalers (KEDA v2.20.2 `pkg/util/k8s.go` ParseGVKR).
    """
    reference = scaler["spec", "scaleTargetRef"]
    name = reference["name"].text
    group, _, _ = (reference["apiVersion"].text or "apps/v1").rpartition("/")
    return ScaleTarget(group, reference["kind"].text or "Deployment", name) if name else None


def by_target(known: Known, _ctx: AnyContext) -> dict[ScaleTarget, list[Field]]:
    """Return known scalers by their target."""
    scalers: dict[ScaleTarget, list[Field]] = {}
    for scaler in known.items:
        target = scale_target(scaler)
        if target:
            scalers.setdefault(target, []).append(scaler)
    return scalers


def target_demand(target: ScaleTarget, ctx: AnyContext) -> GpuDemand | None:
    """Return the demand of one replica of a target; None if the target is unknown."""
    workload = target_workload(target, ctx)
    return workload_demand(*workload, ctx) if workload else None


def target_workload(target: ScaleTarget, ctx: AnyContext) -> tuple[Kind, Field] | None:
    """Return the kind and the object of a target in the request's namespace; None if it is unknown."""
    for kind in TARGET_KINDS:
        if (kind.group, kind.name) == (target.group, target.kind):
            workload = named(ctx.facts.list(kind, ctx.request.namespace), target.name)
            return (kind, workload) if workload else None
    return None


def workload_demand(kind: Kind, workload: Field, ctx: AnyContext) -> GpuDemand:
    """Return the demand of one Pod of a workload in the request's namespace: that of the first template with any."""
    demand = GpuDemand()
    for around in template_contexts(kind, workload, ctx):
        demand = around.derived(gpu_demand)
        if demand:
            break
    return demand


def template_contexts(kind: Kind, workload: Field, ctx: AnyContext) -> Iterator[AnyContext]:
    """Yield a context for each Pod template of a workload in the request's namespace.

    With these contexts, a policy for another object or for the whole workload can call functions for Pods.
    """
    gvk = GroupVersionKind(kind.group, kind.versions[-1], kind.name)
    # Many policies evaluate the same workload, and derive the same of its templates.
    memos = ctx.derived(_memos_of_templates) if workload is ctx.subject else {}
    for template in pod_templates(kind.group, kind.name, workload):
        memo = memos.setdefault((kind.name, template.path), {})
        yield replace(ctx, subject=template, wrapper=Wrapper(gvk, workload), memo=memo)


def _memos_of_templates(_workload: Field, _: AnyContext) -> dict[tuple[str, Path], dict[object, object]]:
    return {}


def most_for(demand: GpuDemand | None) -> Stance:
    """Return the highest stance of a finding about the scaling of a workload.

    The request is denied only if the workload requests accelerators, and nothing is reported if it certainly requests
    none.
    """
    if demand:
        return Stance.ENFORCE
    return Stance.WARN if demand is None or demand.unresolved else Stance.OFF


_CORES_PER_NEURON_DEVICE: Final = 2  # of Inferentia2 and Trainium1; other devices have more
_MOST_SLICES_PER_GPU: Final = 7


def whole_gpus(demand: GpuDemand) -> Fraction:
    """Return the smallest number of accelerators that a Pod occupies. Slices and cores count as parts of a device.

    A time-sliced device (`.shared`) or a virtual GPU does not count, because the number of its users is unknown. An amount of memory or
    cores of a device does not count, because the device itself does.
    """
    whole, parts = 0, Fraction(0)
    for name, count in {**demand.resources, **demand.device_classes}.items():
        part = _known_part(name) if len(name) <= _LONGEST_CACHED else _part(name)
        # Fractions are slow, and most devices are whole.
        if part.denominator == 1:
            whole += count * part.numerator
        else:
            parts += count * part
    return parts + whole if parts else Fraction(whole)


def _part(name: str) -> Fraction:
    name = name.removeprefix(accelerators.IMPLICIT_CLASS_PREFIX)
    profile = mig_profiles.profile_of(name)
    if name.endswith(mig_profiles.SHARED_SUFFIX) or is_amount(name) or is_virtual(name):
        return Fraction(0)
    if profile is not None or name.startswith("mig"):
        return Fraction(1, mig_profiles.most_per_gpu(profile or "") or _MOST_SLICES_PER_GPU)
    return Fraction(1, _CORES_PER_NEURON_DEVICE) if name == "aws.amazon.com/neuroncore" else Fraction(1)


_LONGEST_CACHED: Final = 64  # characters, so that the cache is small whatever names objects contain
_known_part = lru_cache(maxsize=256)(_part)
