"""GPU NodePool for more than one class of workload.

## Why is this bad?
The pool's settings for consolidation, expiry, Spot and budgets are wrong for one of its classes. Training runs for
days and must not be moved. Inference scales within minutes and is packed on few nodes. A burst of one class uses up
the limit that the other class needs.

If the labels of a pool name no class, policies for training or inference are not evaluated on it.

## Instead
Create one pool for each class, name the class in the labels of its nodes, and let Pods select it:

```yaml
template:
  metadata:
    labels:
      workload: training
```

The labels are `gpugate.dev/workload-class`, `workload` and `node-type`, or those of the platform's configuration. A
requirement on one of them counts like the label, because Karpenter labels nodes with the values of its requirements.

The policy also reports workloads of another class that select the pool, and weights that make Karpenter try pools in
the wrong order:

- A Spot pool for inference that is not tried before the on-demand pool.
- A training pool that is tried before an inference pool, for Pods that select neither.

## Sources
Karpenter v1.14.1 `pkg/utils/nodepool/nodepool.go` (OrderByWeight), `pkg/scheduling/requirements.go` (labels of a template
and node selectors).
"""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Final

from gpugate.policies.nodepools._gpu_pools import accelerator, if_gpu_pool
from gpugate.policies.nodepools._instance_choice import edited
from gpugate.policies.sdk import node_pools, objects, scheduling
from gpugate.policies.sdk.facts import Known, Need, Unavailable, derived, object_contexts
from gpugate.policies.sdk.findings import Other, Skip, Stance, Violation
from gpugate.policies.sdk.gpu_demand import gpu_demand
from gpugate.policies.sdk.node_pools import INSTANCE_TYPES, NODE_POOL_LABEL, is_gpu_pool, matching_types
from gpugate.policies.sdk.objects import NODE_POOL
from gpugate.policies.sdk.platform import CLASSES_KEY, Taint
from gpugate.policies.sdk.pod_requests import demand
from gpugate.policies.sdk.pod_templates import TEMPLATES
from gpugate.policies.sdk.policy import Params, validates
from gpugate.policies.sdk.queues import QUEUE_NEEDS, admission
from gpugate.policies.sdk.scale_targets import template_contexts
from gpugate.policies.sdk.scheduling import HARD_EFFECTS, tolerated
from gpugate.policies.sdk.structs import Struct, replace
from gpugate.policies.sdk.workload_class import CLASS_LABEL, CLASS_NEEDS, workload_class

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.objects import Kind
    from gpugate.policies.sdk.platform import WorkloadClass
    from gpugate.policies.sdk.pod_requests import Demand
    from gpugate.policies.sdk.policy import AnyContext, Context

# Source: Karpenter v1.14.1 `pkg/utils/nodepool/nodepool.go` (OrderByWeight; a pool without a weight has 0, and equal
# weights go by name).
_KINDS: Final = (objects.DEPLOYMENT, objects.STATEFUL_SET, objects.JOB, objects.CRON_JOB)
_TEMPLATE: Final = (
    "metadata.annotations",
    "metadata.labels",
    "spec.affinity.nodeAffinity",
    "spec.containers.args",
    "spec.containers.command",
    "spec.containers.image",
    "spec.containers.livenessProbe",
    "spec.containers.ports",
    "spec.containers.readinessProbe",
    "spec.containers.resources",
    "spec.containers.startupProbe",
    "spec.initContainers.resources",
    "spec.initContainers.restartPolicy",
    "spec.nodeSelector",
    "spec.overhead",
    "spec.resourceClaims",
    "spec.resources",
    "spec.tolerations",
)
_JOB_FIELDS: Final = {
    "Job": ("spec.completionMode", "spec.parallelism"),
    "CronJob": (
        "spec.jobTemplate.metadata.labels",
        "spec.jobTemplate.spec.completionMode",
        "spec.jobTemplate.spec.parallelism",
    ),
}


def _need(kind: Kind) -> Need:
    paths = (".".join(path) for path in TEMPLATES[kind.group, kind.name])
    fields = tuple(f"{path}.{field}" for path in paths for field in _TEMPLATE)
    return Need(kind, ("metadata.labels", "spec.replicas", *fields, *_JOB_FIELDS.get(kind.name, ())))


# The needs of a policy that reads the workloads of a pool.
WORKLOAD_NEEDS: Final = (*(_need(kind) for kind in _KINDS), *CLASS_NEEDS, *QUEUE_NEEDS)

_OWN_DOMAINS: Final = ("karpenter.sh/", "karpenter.k8s.aws/", "eks.amazonaws.com/", "topology.kubernetes.io/")
_KUBERNETES: Final = ("kubernetes.io/", "node.kubernetes.io/")


class GpuWorkload(Struct, frozen=True):
    """A workload whose Pods request accelerators.

    Attributes:
        display_name: its name in messages.
        name: its class.
        template: its Pod template.
        selector: the labels that its nodes must have.
        has_affinity: whether a node affinity, or one of several flavors of its queue, adds requirements.
        wanted: the demand of each of its Pods.
        pods: the number of its Pods, without scalers.
    """

    display_name: str
    name: WorkloadClass | None
    template: Field
    selector: dict[str, str]
    has_affinity: bool
    wanted: Demand
    pods: int

    @property
    def is_free(self) -> bool:
        """Whether it has neither a node selector nor a node affinity."""
        return not self.selector and not self.has_affinity


def unknown_workloads(ctx: AnyContext) -> Skip | None:
    """Return why workloads are unknown; None if they are known."""
    facts = (ctx.facts.list(kind) for kind in _KINDS)
    return next((Skip(fact.reason) for fact in facts if isinstance(fact, Unavailable)), None)


def gpu_workloads(_pool: Field, ctx: AnyContext) -> tuple[GpuWorkload, ...]:
    """Return the known workloads that request accelerators."""
    known = ((of_kind, ctx.facts.list(kind)) for kind, of_kind in _OF_KIND.items())
    return tuple(chain(*(derived(fact, of_kind, ctx) for of_kind, fact in known if isinstance(fact, Known))))


def _workloads(kind: Kind, known: Known, ctx: AnyContext) -> tuple[GpuWorkload, ...]:
    return tuple(gpu_workload for workload in known.items for gpu_workload in _asking(kind, workload, ctx))


def _asking(kind: Kind, workload: Field, ctx: AnyContext) -> Iterator[GpuWorkload]:
    namespace, name = workload["metadata", "namespace"].text, workload["metadata", "name"].text
    at_home = replace(ctx, request=replace(ctx.request, namespace=namespace))
    for around in template_contexts(kind, workload, at_home):
        if around.derived(gpu_demand):
            queue = admission(around)
            if queue.doubt:
                continue
            display_name = f"{kind.name} {namespace}/{name}" if namespace else f"{kind.name} {name}"
            template = queue.placements[0].pod
            selector = template["spec", "nodeSelector"].labels
            # With several flavors, the nodes of the Pods are unknown.
            bound = bool(template["spec", "affinity", "nodeAffinity"].value) or len(queue.placements) > 1
            wanted = demand(template, queue.placements[0].ctx)
            pods = _pods(kind, workload)
            yield GpuWorkload(
                display_name, around.derived(workload_class).name, template, selector, bound, wanted, pods
            )


def _pods(kind: Kind, workload: Field) -> int:
    """Return the number of Pods of a workload that run at the same time; one by default."""
    if kind is objects.JOB:
        stated = workload["spec", "parallelism"].integer
    elif kind is objects.CRON_JOB:
        stated = workload["spec", "jobTemplate", "spec", "parallelism"].integer
    else:
        stated = workload["spec", "replicas"].integer
    return 1 if stated is None else stated


_OF_KIND: Final = {kind: partial(_workloads, kind) for kind in _KINDS}


def selects(workload: GpuWorkload, pool: Field, ctx: AnyContext) -> bool:
    """Tell whether a workload selects a label of the pool's nodes, and no label that they do not have."""
    selector = workload.selector
    if not selector or workload.has_affinity:
        return False
    own = pool["spec", "template", "metadata", "labels"].labels
    if not ({*own, NODE_POOL_LABEL} & selector.keys()):
        return False
    return _fits(selector, pool, ctx) and tolerates(workload, pool, ctx)


def _fits(selector: dict[str, str], pool: Field, ctx: AnyContext) -> bool:
    required = ctx.derived(node_pools.pool_requirements)
    for key, value in selector.items():
        label = scheduling.normalized(key)
        if label == NODE_POOL_LABEL:
            fits = value == pool["metadata", "name"].text
        elif label in required:
            fits = required[label].allows(value)
        else:
            # Any node may have a label that Karpenter knows; a user's own label exists only on nodes of pools that set
            # it.
            fits = label.startswith((*_OWN_DOMAINS, *_KUBERNETES))
        if not fits:
            return False
    return True


def tolerates(workload: GpuWorkload, pool: Field, ctx: AnyContext) -> bool:
    """Tell whether a workload tolerates the taints of a pool; the mutation adds the tolerations of its accelerators."""
    tolerated_keys = node_pools.accelerator_taint_keys(ctx)
    return all(
        taint["key"].text in tolerated_keys
        or tolerated(workload.template, Taint(key=taint["key"].text, value=taint["value"].text), taint["effect"].text)
        for taint in pool["spec", "template", "spec", "taints"]
        if taint["effect"].text in HARD_EFFECTS
    )


POOL_NEED: Final = Need(NODE_POOL, ("spec.limits", "spec.template", "spec.weight"))


class _Pool(Struct, frozen=True):
    field: Field
    name: WorkloadClass | None
    types: int
    provider: str
    taints: frozenset[tuple[str, str, str]]
    capacity: frozenset[str]
    weight: int
    display_name: str


def misordered(pool: Field, ctx: AnyContext) -> Iterator[Violation]:
    """Yield one violation for each kind of wrong order between this pool and others."""
    own = _described(pool, ctx)
    if own:
        rivals = list(_rivals(own, ctx))
        yield from _one_for_all([violation for rival in rivals for violation in _spot_after_on_demand(own, rival)])
        yield from _one_for_all(
            [violation for rival in rivals for violation in _training_before_inference(own, rival, ctx)]
        )


def _one_for_all(violations: list[Violation]) -> Iterator[Violation]:
    """Yield the first of several violations with all rivals; those that follow only if there are no others."""
    leading = [violation for violation in violations if not violation.follows]
    for first in (leading or violations)[:1]:
        yield replace(
            first, others=tuple(other for violation in (leading or violations[:1]) for other in violation.others)
        )


def _rivals(own: _Pool, ctx: AnyContext) -> Iterator[_Pool]:
    """Yield the other pools that could take the same Pods."""
    for around in object_contexts(ctx.facts.list(NODE_POOL), ctx):
        rival = around.derived(_described)
        if rival is None or rival.provider != own.provider or rival.display_name == ctx.request.name:
            continue
        if own.taints == rival.taints and own.types & rival.types:
            yield rival


def _described(pool: Field, ctx: AnyContext) -> _Pool | None:
    types = ctx.derived(matching_types)
    if types is None or not ctx.derived(is_gpu_pool):
        return None
    taints = frozenset(
        (taint["key"].text, taint["value"].text, taint["effect"].text)
        for taint in pool["spec", "template", "spec", "taints"]
    )
    capacity = node_pools.capacity_types(types.requirements)
    weight, display_name = pool["spec", "weight"].integer or 0, pool["metadata", "name"].text
    group = node_pools.provider(pool, ctx)
    return _Pool(
        pool, node_pools.pool_class(pool, ctx), types.accelerated, group, taints, capacity, weight, display_name
    )


def _spot_after_on_demand(own: _Pool, rival: _Pool) -> Iterator[Violation]:
    if own.name != "inference" or rival.name != "inference":
        return
    for spot, other in ((own, rival), (rival, own)):
        is_order = spot.field["spec", "weight"] or other.field["spec", "weight"]
        only = spot.capacity == {"spot"} and "spot" not in other.capacity
        if only and is_order and spot.weight <= other.weight:
            message = (
                f"weight {spot.weight} of {_this(spot, own)} is not above weight {other.weight} of {_this(other, own)}: "
                "Karpenter does not try Spot first"
            )
            hint = f"give the Spot pool a weight above {other.weight}"
            yield _misordered(own, rival, message, hint, _DEARER, leads=spot is own)


def _training_before_inference(own: _Pool, rival: _Pool, ctx: AnyContext) -> Iterator[Violation]:
    for training, inference in ((own, rival), (rival, own)):
        if (training.name, inference.name) != ("training", "inference") or training.weight <= inference.weight:
            continue
        free = (w for w in ctx.derived(gpu_workloads) if w.name == "inference" and w.is_free)
        first = next((w for w in free if tolerates(w, training.field, ctx)), None)
        if first:
            message = (
                f"weight {training.weight} of {_this(training, own)} is above weight {inference.weight} of "
                f"{_this(inference, own)}: Karpenter tries training nodes first for {first.display_name}"
            )
            hint = (
                f"lower the weight of the training pool to {inference.weight}, or add a node selector to the workload"
            )
            yield _misordered(own, rival, message, hint, _TAKEN, leads=training is own)


_DEARER: Final = (
    "Karpenter tries pools by weight, so it may launch on-demand nodes although Spot capacity is available."
)
_TAKEN: Final = "Karpenter tries pools by weight, so inference uses up nodes and limits of the training pool."
_CLASSIFY: Final = (
    "map a node label of this pool to a class under platform.workload_classes in the policy file; or set the label "
    f"{CLASS_LABEL} in the template of the pool, after which Karpenter replaces the nodes of the pool"
)
_UNREAD: Final = (
    "Policies for training or inference are not evaluated on a pool whose labels name no class of workload."
)


def _misordered(own: _Pool, rival: _Pool, message: str, hint: str, why: str, *, leads: bool) -> Violation:
    """Return the violation for two weights in the wrong order; the pool whose weight has to change leads."""
    others = (Other("NodePool", "", rival.display_name),)
    return Violation(own.field["spec", "weight"].path, message, hint=hint, why=why, others=others, follows=not leads)


def _this(pool: _Pool, own: _Pool) -> str:
    return "this pool" if pool is own else f"NodePool {pool.display_name}"


@validates(
    NODE_POOL,
    mode=Stance.WARN,
    tables=(INSTANCE_TYPES,),
    needs=(*WORKLOAD_NEEDS, POOL_NEED),
    convention=CLASSES_KEY,
)
def check(pool: Field, ctx: Context[Params]) -> Iterator[Violation | Skip]:
    """Report a pool without a class, one that several classes select, and weights against the classes."""
    yield from if_gpu_pool(pool, ctx, _violations(pool, ctx))


def _violations(pool: Field, ctx: Context[Params]) -> Iterator[Violation | Skip]:
    labels = pool["spec", "template", "metadata", "labels"]
    own = node_pools.pool_class(pool, ctx)
    classes = node_pools.pool_classes(pool, ctx)
    if len(classes) > 1:
        yield _several(pool, classes, ctx)
    elif own is None:
        yield _without_class(labels, ctx.derived(accelerator), ctx)
    unknown = unknown_workloads(ctx)
    if unknown:
        yield unknown
    selecting = {w.name: w for w in ctx.derived(gpu_workloads) if w.name != own and selects(w, pool, ctx)}
    others = [selecting[name] for name in ("training", "inference") if name in selecting]
    if len(others) + (own in {"training", "inference"}) > 1:
        by = " and ".join(f"{workload.display_name} ({workload.name})" for workload in others)
        whose = f"a pool for {own} that " if own else "a pool that "
        verb = "selects" if len(others) == 1 else "select"
        yield Violation(labels.path, f"{whose}{by} {verb}", hint="create one pool for each class of workload")
    yield from misordered(pool, ctx)


def _several(pool: Field, classes: frozenset[WorkloadClass], ctx: Context[Params]) -> Violation:
    """Report the requirement that labels nodes with one class or another."""
    entries = tuple(node_pools.requirement_entries(pool, ctx))
    entry = next(
        entry
        for key, names in node_pools.class_labels(ctx)
        for entry in entries
        if entry.key == key and names.keys() & entry.requirement.values
    )
    message = f"the requirement {entry.key} makes this a pool for {' and '.join(sorted(classes))}"
    return Violation(edited(entry.field).path, message, hint="create one pool for each class of workload")


def _without_class(labels: Field, kind: str, ctx: Context[Params]) -> Violation:
    rules = ctx.platform.classes
    hint = _CLASSIFY
    present = (labels[key] for key in (CLASS_LABEL, *rules.labels, *rules.node_selectors) if labels[key])
    misread = next(present, None)
    if misread is not None:
        message = f'the node label {misread.path[-1]} is "{misread.text}", which is not a known class of workload'
        return Violation(misread.path, message, hint=hint, why=_UNREAD, convention=True)
    message = f"missing label for the class of workload of this {kind} pool"
    return Violation(labels.path, message, hint=hint, why=_UNREAD, convention=True)
