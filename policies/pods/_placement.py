"""The NodePools and nodes that a Pod can be scheduled to, as Karpenter decides it.

Source: Karpenter v1.14.1 `pkg/controllers/provisioning/scheduling/nodeclaim.go`, `pkg/scheduling/requirements.go`
(Compatible: a label that the pool does not define must be one that Karpenter knows), `taints.go`.

A Pod with a `nodeName` is bound without the scheduler, and the kubelet of that node checks its selectors, but of its
taints only those with the effect NoExecute (Kubernetes v1.36, `pkg/kubelet/lifecycle/predicate.go`). The scheduler
writes the field too, so it counts only in a Pod that has not started: the API server empties the status of a Pod that
is created (`pkg/registry/core/pod/strategy.go`, PrepareForCreate).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from gpugate.policies.data import accelerators
from gpugate.policies.data.instance_types import INSTANCE_TYPE
from gpugate.policies.sdk import scheduling
from gpugate.policies.sdk.concerns import EVERY_OBJECT, Each, Flag, Key, Listed, SentBy, Text
from gpugate.policies.sdk.facts import Known, Need, derived, named, object_contexts
from gpugate.policies.sdk.field import UnknownValueError
from gpugate.policies.sdk.findings import Stance
from gpugate.policies.sdk.gpu_demand import gpu_demand
from gpugate.policies.sdk.node_pools import (
    INSTANCE_TYPES,
    NODE_POOL_LABEL,
    catalogue_of,
    catalogues,
    is_for_accelerators,
    meeting,
    pool_requirements,
    provider,
)
from gpugate.policies.sdk.objects import NODE, NODE_POOL
from gpugate.policies.sdk.platform import Taint
from gpugate.policies.sdk.scheduling import HARD_EFFECTS, REQUIRED, alternatives, tolerated, tolerates
from gpugate.policies.sdk.structs import Struct
from gpugate.policies.sdk.workload_class import CONTROLLER_MANAGER, DAEMON_SET_CONTROLLER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpugate.policies.data.instance_types import InstanceTypes
    from gpugate.policies.sdk.field import Field, Json
    from gpugate.policies.sdk.gpu_demand import GpuDemand
    from gpugate.policies.sdk.policy import AnyContext
    from gpugate.policies.sdk.scheduling import Requirements

# Holds for Pods of a DaemonSet at admission.
OF_DAEMON_SET: Final = (SentBy(DAEMON_SET_CONTROLLER) | SentBy(CONTROLLER_MANAGER)) & Each(
    "metadata.ownerReferences", Text("kind", ("DaemonSet",)) & Flag("controller")
)


def is_of_daemon_set(pod: Field, ctx: AnyContext) -> bool:
    """Tell whether a Pod or Pod template belongs to a DaemonSet, by its owner and its sender."""
    if ctx.wrapper:
        return ctx.wrapper.kind.kind == "DaemonSet"
    return any(
        owner["kind"].text == "DaemonSet"
        and owner["controller"].value is True
        and ctx.request.user in {"", CONTROLLER_MANAGER, DAEMON_SET_CONTROLLER}
        for owner in pod["metadata", "ownerReferences"]
    )


# Labels of nodes with accelerators in addition to those of EC2 instance types: NVIDIA's and AMD's feature discovery,
# EKS Auto Mode, Karpenter on Azure.
_LABELS: Final = ("nvidia.com/", "amd.com/gpu", "eks.amazonaws.com/instance-gpu-", "karpenter.azure.com/sku-gpu-")

# The needs of a policy that reads where a Pod may run.
REACH_NEEDS: Final = (
    Need(NODE, ("metadata.labels", "status.capacity")),
    Need(NODE_POOL, ("spec.template", "spec.limits")),
)

_TOLERATIONS: Final = "spec.tolerations"
# Hold for Pods that tolerate a taint of GPU nodes by its key, and for Pods that tolerate every taint.
NAMES_GPU_TAINT: Final = Each(_TOLERATIONS, Text("key", Listed.GPU_TAINTS))
TOLERATES_EVERYTHING: Final = Each(_TOLERATIONS, Text("key", ("",)) & Text("operator", ("Exists",)))
# Pods that their creator binds to a node.
NAMES_NODE: Final = ~Text("spec.nodeName", ("",)) & ~Each("status.conditions", EVERY_OBJECT)
# Holds for Pods that may tolerate a taint of GPU nodes, select such nodes, or name one.
MAY_REACH_GPU_NODES: Final = (
    NAMES_GPU_TAINT
    | TOLERATES_EVERYTHING
    | Key("spec.nodeSelector")
    | Each(".".join(REQUIRED), EVERY_OBJECT)
    | NAMES_NODE
)
# Values of the taints on nodes with accelerators in addition to those of the platform: GKE and the documentation of
# NVIDIA's GPU operator use "present", and a taint may have no value.
_TAINT_VALUES: Final = ("true", "present", "")


@lru_cache(maxsize=16)
def _gpu_taints(own: tuple[Taint, ...]) -> Mapping[str, tuple[Taint, ...]]:
    """Return the taints that keep other Pods off nodes with accelerators, by key; `own` are those of the platform.

    The empty key has one of them, because a toleration without a key covers all of them or none.
    """
    known = (Taint(key=key, value=value) for key in accelerators.TAINT_KEYS.values() for value in _TAINT_VALUES)
    by_key: dict[str, tuple[Taint, ...]] = {}
    for taint in dict.fromkeys((*own, *known)):
        by_key[taint.key] = (*by_key.get(taint.key, ()), taint)
        by_key.setdefault("", (taint,))
    return by_key


def gpu_tolerations(pod: Field, ctx: AnyContext) -> tuple[Field, ...]:
    """Return the tolerations of a taint of GPU nodes, including those of every taint."""
    taints = _gpu_taints(tuple(taint for taints in ctx.platform.taints.values() for taint in taints))
    return tuple(
        t for t in pod["spec", "tolerations"] if any(tolerates(t, taint) for taint in taints.get(t["key"].text, ()))
    )


class MissingToleration(Struct, frozen=True):
    """A missing toleration of a taint on nodes with the accelerators that a Pod requests.

    Attributes:
        name: the resource or device class that the Pod requests.
        value: the toleration as a Pod writes it.
        pool: a NodePool with the taint; empty if no known one has it, or the configuration sets the taint.
    """

    name: str
    value: dict[str, Json]
    pool: str = ""

    def __str__(self) -> str:
        value, effect = self.value.get("value"), self.value.get("effect")
        return f"{self.value['key']}{f'={value}' if value else ''}{f':{effect}' if effect else ''}"


def missing_tolerations(
    tolerations: Sequence[Field], pod: Field, demand: GpuDemand, ctx: AnyContext
) -> Iterator[MissingToleration]:
    """Yield the missing tolerations of taints on nodes with the accelerators that a Pod requests, once for each key.

    If the configuration sets the taints, the Pod has to tolerate all of them. Otherwise it has to tolerate the taints
    of one of the known NodePools that may take it. If none of these has the taint, it has to tolerate the key that such
    nodes usually have, with any value, because the value is unknown. A Pod that selects known NodePools by name needs
    no such toleration.
    """
    visited: set[str] = set()
    for name in demand.names:
        configured = ctx.platform.configured_taints_of(name)
        for taint in ctx.platform.taints_of(name) if configured is None else configured:
            if taint.key not in visited:
                visited.add(taint.key)
                relevant = [t for t in tolerations if t["key"].text in {"", taint.key}]
                yield from _missing(relevant, pod, name, taint, ctx)


def _missing(
    tolerations: Sequence[Field], pod: Field, name: str, taint: Taint, ctx: AnyContext
) -> Iterator[MissingToleration]:
    usual: dict[str, Json] = {"key": taint.key, "operator": "Exists", "effect": "NoSchedule"}
    if ctx.platform.configured_taints_of(name) is not None:
        if not any(tolerates(t, taint) for t in tolerations):
            yield MissingToleration(name, usual)
        return
    pools: list[tuple[str, list[tuple[Taint, str]]]] = []
    # Most Pods tolerate the first pool, so the other pools are rarely read.
    for name_of_pool, on in _tainted_pools(pod, taint.key, ctx):
        if all(any(tolerates(t, own, effect) for t in tolerations) for own, effect in on):
            return
        pools.append((name_of_pool, on))
    if pools:
        yield MissingToleration(
            name, _tolerating([taint_and_effect for _, on in pools for taint_and_effect in on]), pools[0][0]
        )
    elif not any(_tolerates_key(t, taint) for t in tolerations) and not _selects_known_pools(ctx):
        yield MissingToleration(name, usual)


def _selects_known_pools(ctx: AnyContext) -> bool:
    """Tell whether a Pod selects only known NodePools by name."""
    pools = ctx.facts.list(NODE_POOL)
    by_name = derived(pools, _pools_by_name, ctx) if isinstance(pools, Known) else {}
    requirements = [required.get(NODE_POOL_LABEL) for required in ctx.derived(alternatives)]
    return all(r is not None and r.operator == "In" and r.values <= by_name.keys() for r in requirements)


def _tolerates_key(toleration: Field, taint: Taint) -> bool:
    """Tell whether a toleration covers a taint, or one of its key with another value."""
    return tolerates(toleration, taint) or tolerates(toleration, replace(taint, value=toleration["value"].text))


def _tolerating(taints: list[tuple[Taint, str]]) -> dict[str, Json]:
    """Return one toleration of all taints with one key; for the usual value "true" or several values with `Exists`."""
    (key,) = {taint.key for taint, _ in taints}
    values, effects = {taint.value for taint, _ in taints}, {effect for _, effect in taints}
    toleration: dict[str, Json] = {"key": key, "operator": "Exists"}
    if len(values) == 1 and not values & {"", "true"}:
        toleration |= {"operator": "Equal", "value": values.pop()}
    return toleration | ({"effect": effects.pop()} if len(effects) == 1 else {})


def _tainted_pools(pod: Field, key: str, ctx: AnyContext) -> Iterator[tuple[str, list[tuple[Taint, str]]]]:
    """Yield the known NodePools with taints of this key that could otherwise take the Pod, with these taints.

    Of pools with the same taints, the first.
    """
    pools = ctx.facts.list(NODE_POOL)
    for group in derived(pools, _by_taints, ctx) if isinstance(pools, Known) else ():
        # Where a value of them is unknown, it is read again, and the policy is not evaluated.
        taints = group[0].derived(_keeping_off)
        with_key = [(taint, effect) for taint, effect in taints if taint.key == key]
        if not with_key or not all(tolerated(pod, taint, effect) for taint, effect in taints if taint.key != key):
            continue
        for around in group:
            own = around.derived(_own_requirements)
            if any(_both(own, required) is not None for required in ctx.derived(alternatives)):
                yield around.subject["metadata", "name"].text, with_key
                break


def _by_taints(pools: Known, ctx: AnyContext) -> tuple[tuple[AnyContext, ...], ...]:
    """Group NodePools by the taints that keep Pods off: a cluster has many pools, and few different taints."""
    groups: dict[object, list[AnyContext]] = {}
    for around in object_contexts(pools, ctx):
        try:
            taints: object = around.derived(_keeping_off)
        except UnknownValueError:
            taints = id(around)
        groups.setdefault(taints, []).append(around)
    return tuple(map(tuple, groups.values()))


def _keeping_off(pool: Field, _: AnyContext) -> tuple[tuple[Taint, str], ...]:
    """Return the taints of a NodePool that exclude Pods, with their effects."""
    taints = pool["spec", "template", "spec", "taints"]
    return tuple(
        (Taint(key=taint["key"].text, value=taint["value"].text), taint["effect"].text)
        for taint in taints
        if taint["effect"].text in HARD_EFFECTS
    )


def _own_requirements(pool: Field, ctx: AnyContext) -> Requirements:
    """Return the requirements of a NodePool, with the label of its name."""
    return {**ctx.derived(pool_requirements), NODE_POOL_LABEL: scheduling.is_only(pool["metadata", "name"].text)}


def named_node(pod: Field) -> Field | None:
    """Return the `nodeName` of a Pod that has not started; None if it is missing, or the scheduler may have set it."""
    name = pod["spec", "nodeName"]
    return name if name.text and not any(pod["status", "conditions"]) else None


_MIRROR: Final = "kubernetes.io/config.mirror"


def is_of_kubelet(pod: Field, ctx: AnyContext) -> bool:
    """Tell whether a Pod mirrors a static Pod. At admission, only a kubelet may declare that.

    Source: Kubernetes v1.36 `plugin/pkg/admission/noderestriction` (kubelets create mirror Pods only).
    """
    request = ctx.request
    return bool(pod["metadata", "annotations", _MIRROR]) and (not request.user or request.is_from_kubelet)


def reach(pod: Field, ctx: AnyContext) -> Stance:
    """Return the highest stance of a finding that holds only on GPU nodes. Reads the table of instance types.

    OFF if the Pod names a node without accelerators. Otherwise ENFORCE if it tolerates a taint of GPU nodes, selects
    such nodes or names one; WARN if it names a node that may be one; OFF in all other cases.
    """
    by_name = reach_by_name(pod, ctx)
    if by_name is not Stance.OFF and (
        ctx.derived(gpu_tolerations) or all(_selects(r, ctx) for r in ctx.derived(alternatives))
    ):
        return Stance.ENFORCE
    return by_name or Stance.OFF


def reach_by_name(pod: Field, ctx: AnyContext) -> Stance | None:
    """Return the same only by the Pod's `nodeName`; None if it has none that counts."""
    name = named_node(pod)
    if name is None:
        return None
    node = named(ctx.facts.list(NODE), name.text)
    if node is not None:
        return Stance.ENFORCE if has_accelerators(node, ctx) else Stance.OFF
    return Stance.OFF if _selects_others(ctx) else Stance.WARN


def _selects_pools(required: Requirements, ctx: AnyContext) -> bool:
    """Tell whether a Pod selects only known NodePools for accelerators whose taints do not exclude it."""
    requirement = required.get(NODE_POOL_LABEL)
    if requirement is None or requirement.operator != "In":
        return False
    pools = ctx.facts.list(NODE_POOL)
    by_name = derived(pools, _pools_by_name, ctx) if isinstance(pools, Known) else {}
    chosen = [by_name[name] for name in requirement.values if name in by_name]
    return len(chosen) == len(requirement.values) and all(
        around.derived(is_for_accelerators)
        and all(
            tolerates_pool_taint(ctx.subject, taint) for taint in around.subject["spec", "template", "spec", "taints"]
        )
        for around in chosen
    )


def _pools_by_name(pools: Known, ctx: AnyContext) -> dict[str, AnyContext]:
    return {around.subject["metadata", "name"].text: around for around in object_contexts(pools, ctx)}


def tolerates_pool_taint(pod: Field, taint: Field) -> bool:
    """Tell whether a Pod may run on nodes with a taint of a NodePool."""
    effect = taint["effect"].text
    wanted = Taint(key=taint["key"].text, value=taint["value"].text)
    return effect not in HARD_EFFECTS or tolerated(pod, wanted, effect)


def has_accelerators(node: Field, ctx: AnyContext) -> bool:
    """Tell whether a node has accelerators, by its labels or its resources."""
    catalogue = ctx.table(INSTANCE_TYPES)
    labels = node["metadata", "labels"].labels
    return (
        any(key.startswith(_LABELS) and value != "false" for key, value in labels.items())
        or bool(catalogue.of(INSTANCE_TYPE, labels.get(INSTANCE_TYPE, "")) & catalogue.accelerated)
        or any(ctx.platform.is_accelerator(name) for name in node["status", "capacity"].mapping)
    )


def _selects_others(ctx: AnyContext) -> bool:
    """Tell whether a Pod selects only known instance types without accelerators."""
    catalogue = ctx.table(INSTANCE_TYPES)
    selected = [scheduling.matching(required, catalogue) for required in ctx.derived(alternatives)]
    return all(types and not types & catalogue.accelerated for types in selected)


def _selects(required: Requirements, ctx: AnyContext) -> bool:
    for key, requirement in required.items():
        classes = ctx.platform.classes.node_selectors.get(key, {})
        labelled = key.startswith(_LABELS) and requirement.values != {"false"}
        if requirement.operator in {"In", "Exists"} and (labelled or requirement.values & classes.keys()):
            return True
    if _selects_pools(required, ctx):
        return True
    catalogue = ctx.table(INSTANCE_TYPES)
    types = scheduling.matching(required, catalogue)
    return bool(types) and types & catalogue.accelerated == types


# Prefixes of labels that feature discovery adds to a running node.
LATE_LABELS: Final = ("nvidia.com/gpu.", "nvidia.com/cuda.", "feature.node.kubernetes.io/")
POOL_NEED: Final = Need(NODE_POOL, ("spec.template",))
# Labels of a pool's nodes that the pool does not have to define.
_KNOWN: Final = ("karpenter.sh/", "karpenter.k8s.aws/", "node.kubernetes.io/", "kubernetes.io/", "topology.")


class SomeTypes(Struct, frozen=True):
    """Some instance types, as a set of positions in a catalogue."""

    catalogue: InstanceTypes
    types: int


class PoolMatch(Struct, frozen=True):
    """NodePools that may launch the same nodes for a Pod.

    Attributes:
        pools: the NodePools; they differ only in their names, as far as Pods are concerned.
        requirements: the intersection of the requirements of these pools and the Pod.
        types: the instance types that meet the requirements; None if the types of the provider are unknown.
    """

    pools: tuple[Field, ...]
    requirements: Requirements
    types: SomeTypes | None


def gpu_pools(pod: Field, ctx: AnyContext) -> tuple[PoolMatch, ...]:
    """Return the known NodePools that may launch a node for the Pod with its GPUs."""
    return tuple(pools_for(pod, ctx.derived(gpu_demand), ctx))


def pools_for(pod: Field, demand: GpuDemand, ctx: AnyContext) -> Iterator[PoolMatch]:
    """Yield the known NodePools that may launch a node for the Pod.

    A pool with unknown types may launch one.
    """
    pools = ctx.facts.list(NODE_POOL)
    wanted = ctx.derived(alternatives)
    offering: dict[int, int] = {}
    # Computed once for equal taints: a cluster has many pools and few different taints.
    keep_off: dict[tuple[tuple[Taint, str], ...], bool] = {}
    for group in derived(pools, _alike, ctx) if isinstance(pools, Known) else ():
        first = group.pools[0]
        taints = first.derived(_keeping_off) if group.taints is None else group.taints
        if taints not in keep_off:
            keep_off[taints] = not all(tolerated(pod, taint, effect) for taint, effect in taints)
        if keep_off[taints]:
            continue
        for required in wanted:
            match = group.alone if group.alone and not required else _match(group.pools, required)
            if match is None:
                continue
            if match.types is not None:
                catalogue = match.types.catalogue
                key = id(catalogue)
                if key not in offering:
                    offering[key] = _offering(demand, catalogue)
                if not match.types.types & offering[key]:
                    continue
            yield match


def _match(group: tuple[AnyContext, ...], required: Requirements) -> PoolMatch | None:
    """Return what pools that are alike launch for a Pod with these requirements; None where they launch nothing."""
    first = group[0]
    own = first.derived(pool_requirements)
    both = _both(own, required)
    chosen = _with_allowed_name(group, required)
    if both is None or not chosen:
        return None
    return PoolMatch(chosen, both, first.derived(_own_types) if both is own else _types(both, first))


def all_types(matches: Sequence[PoolMatch]) -> SomeTypes | None:
    """Return the instance types of all matches; None if those of one are unknown, or of another catalogue."""
    combined: SomeTypes | None = None
    for match in matches:
        some = match.types
        if some is None or (combined is not None and some.catalogue is not combined.catalogue):
            return None
        combined = SomeTypes(some.catalogue, some.types | (combined.types if combined else 0))
    return combined


def selected_by_name(ctx: AnyContext) -> SomeTypes | None:
    """Return the instance types that a Pod selects, whatever NodePools there are; None where no catalogue has them."""
    wanted = ctx.derived(alternatives)
    for catalogue in catalogues(ctx):
        by_alternative = [meeting(required, catalogue) for required in wanted]
        if any(by_alternative) and None not in by_alternative:
            types = 0
            for some in by_alternative:
                types |= some or 0
            return SomeTypes(catalogue, types)
    return None


class _Alike(Struct, frozen=True):
    """NodePools with the same taints, requirements and provider. The pools of many teams differ only in their names.

    Attributes:
        pools: the NodePools.
        taints: the taints that keep Pods off; None where they hold an unknown value.
        alone: what the pools launch for a Pod without requirements, which most Pods are; None where it is not known.
    """

    pools: tuple[AnyContext, ...]
    taints: tuple[tuple[Taint, str], ...] | None = None
    alone: PoolMatch | None = None


def _alike(pools: Known, ctx: AnyContext) -> tuple[_Alike, ...]:
    """Group pools that decide alike where Pods run."""
    groups: dict[object, list[AnyContext]] = {}
    unknown: list[_Alike] = []
    for around in object_contexts(pools, ctx):
        try:
            constraints = (
                around.derived(_keeping_off),
                frozenset(around.derived(pool_requirements).items()),
                catalogue_of(provider(around.subject, around), around) is around.table(INSTANCE_TYPES),
            )
        except UnknownValueError:
            unknown.append(_Alike((around,)))
        else:
            groups.setdefault(constraints, []).append(around)
    known = (
        _Alike(tuple(group), group[0].derived(_keeping_off), _match(tuple(group), {})) for group in groups.values()
    )
    return (*known, *unknown)


def _with_allowed_name(group: tuple[AnyContext, ...], required: Requirements) -> tuple[Field, ...]:
    requirement = required.get(NODE_POOL_LABEL)
    return tuple(
        around.subject
        for around in group
        if requirement is None or requirement.allows(around.subject["metadata", "name"].text)
    )


def _both(own: Requirements, required: Requirements) -> Requirements | None:
    """Return the intersection of both; None if no node meets it."""
    if not required:
        return own
    combined = dict(own)
    for key, requirement in required.items():
        if key not in own and requirement.operator in {"In", "Exists"} and not key.startswith(_KNOWN):
            return None
        scheduling.add_requirement(combined, key, requirement)
        empty = combined[key].operator == "DoesNotExist" and requirement.operator != "DoesNotExist"
        if empty and key in own:
            return None
    return combined


def _own_types(_pool: Field, ctx: AnyContext) -> SomeTypes | None:
    """Return the types that a pool allows for any Pod."""
    return _types(ctx.derived(pool_requirements), ctx)


def _types(required: Requirements, pool: AnyContext) -> SomeTypes | None:
    catalogue = catalogue_of(provider(pool.subject, pool), pool)
    types = None if catalogue is None else meeting(required, catalogue)
    return None if catalogue is None or types is None else SomeTypes(catalogue, types)


def _offering(demand: GpuDemand, catalogue: InstanceTypes) -> int:
    """Return the types with the accelerators that a Pod requests."""
    types = catalogue.accelerated if demand else catalogue.everything
    for name, count in demand.resources.items():
        scale = catalogue.allocatable.get(name)
        types &= scale.at_least(count) if scale else catalogue.accelerated
    return types


def given_labels(pools: Known, ctx: AnyContext) -> frozenset[str]:
    """Return the labels of the template and the requirements of any NodePool."""
    return frozenset(key for pool in object_contexts(pools, ctx) for key in pool.derived(pool_requirements))
