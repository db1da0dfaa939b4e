"""The labels and tolerations of a ResourceFlavor that Kueue adds to the Pods of an admitted workload.

The label `kueue.x-k8s.io/queue-name` names a LocalQueue in the workload's namespace, which names a ClusterQueue, whose
resource groups name flavors. Of each group that covers a resource of the Pod, Kueue assigns one flavor: one whose
`nodeLabels` do not contradict the Pod's node selector and whose `nodeTaints` the Pod and the flavor tolerate. It adds the
flavor's `nodeLabels` to the node selector and its `tolerations` to the Pod.

Sources: Kueue v0.14 `apis/kueue/v1beta1` and `v1beta2` (`localqueue_types.go`, `clusterqueue_types.go`,
`resourceflavor_types.go`), `pkg/podset/podset.go` (FromAssignment, Merge), `pkg/controller/constants` (QueueLabel).
"""

from __future__ import annotations

from collections import ChainMap
from typing import TYPE_CHECKING, Final, cast

import msgspec

from gpugate.policies.sdk import objects
from gpugate.policies.sdk.facts import Need, named, object_doubt
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.field_views import ListView, ObjectView, Shaped
from gpugate.policies.sdk.findings import Skip
from gpugate.policies.sdk.gpu_demand import gpu_demand
from gpugate.policies.sdk.platform import Taint
from gpugate.policies.sdk.scheduling import HARD_EFFECTS, alternatives, is_only, normalized, tolerated
from gpugate.policies.sdk.structs import Struct, replace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.objects import Kind
    from gpugate.policies.sdk.policy import AnyContext
    from gpugate.policies.sdk.scheduling import Requirement, Requirements

QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"

# The needs of a policy that evaluates Pods as Kueue admits them.
QUEUE_NEEDS: Final = (
    Need(objects.LOCAL_QUEUE, ("spec.clusterQueue",)),
    Need(
        objects.CLUSTER_QUEUE,
        ("spec.resourceGroups.coveredResources", "spec.resourceGroups.flavors.name"),
    ),
    Need(objects.RESOURCE_FLAVOR, ("spec.nodeLabels", "spec.nodeTaints", "spec.tolerations")),
)
# The most flavors with which a Pod is evaluated; a ClusterQueue has at most 256 (Kueue v0.14 `clusterqueue_types.go`).
_MOST_FLAVORS: Final = 8


class Placement(Struct, frozen=True):
    """A Pod with the additions of one flavor.

    Attributes:
        ctx: the context whose subject is that Pod.
        flavor: the name of the flavor; empty if the Pod is in no queue.
        added: the node labels that the flavor adds to the node selector.
    """

    ctx: AnyContext
    flavor: str = ""
    added: frozenset[str] = frozenset()

    @property
    def pod(self) -> Field:
        """The Pod. Additions of the flavor have the path of the list or map to which they are added."""
        return self.ctx.subject


class Admission(Struct, frozen=True):
    """The possible placements of a Pod, at least one; `doubt` says why there may be others."""

    placements: tuple[Placement, ...]
    doubt: Skip | None = None


class _Admitted(Struct, frozen=True):
    """The possible changes of a Pod, at least one, and why there may be others; computed once."""

    changes: tuple[_Change, ...]
    doubt: Skip | None = None


class _Change(Struct, frozen=True):
    """The change of a Pod by a flavor; without `pod`, the Pod is unchanged.

    It does not refer to a context, because the context's memo refers to it, and only the garbage collector would free
    the cycle. `memo` is that of the changed Pod.
    """

    flavor: str = ""
    added: frozenset[str] = frozenset()
    pod: Field | None = None
    memo: dict[object, object] = msgspec.field(default_factory=dict)


def admission(ctx: AnyContext) -> Admission:
    """Return the Pod or Pod template of a context as Kueue may admit it; unchanged if it is in no queue."""
    admitted = ctx.derived(_admitted)
    return Admission(tuple(_placement(change, ctx) for change in admitted.changes), admitted.doubt)


def _placement(change: _Change, ctx: AnyContext) -> Placement:
    placed = replace(ctx, subject=change.pod, memo=change.memo) if change.pod is not None else ctx
    return Placement(placed, change.flavor, change.added)


def _admitted(pod: Field, ctx: AnyContext) -> _Admitted:
    queue = queue_name(pod, ctx)
    if not queue:
        return _Admitted((_Change(),))
    flavors = _flavors(queue, ctx)
    if isinstance(flavors, Skip):
        return _Admitted((_Change(),), flavors)
    own = ctx.derived(alternatives)
    fitting = [
        flavor
        for flavor in flavors
        if any(
            all(normalized(k) not in r or r[normalized(k)].allows(v) for k, v in _labels(flavor).items()) for r in own
        )
    ]
    if not fitting:
        return _Admitted((_Change(),), Skip(f"no flavor of queue {queue} fits the node selector"))
    changes = [(_change(pod, flavor, ctx), flavor) for flavor in fitting]
    # If the Pod tolerates no flavor, it is not admitted before it has the toleration.
    tolerating = [change for change, flavor in changes if change.pod is not None and _is_tolerated(change.pod, flavor)]
    return _Admitted(tuple(tolerating or (change for change, _ in changes)))


def queue_name(pod: Field, ctx: AnyContext, label: str = QUEUE_LABEL) -> str:
    """Return the queue that a label of a Pod or of its workload names; empty if there is none.

    A CronJob has the label on its Jobs, an AppWrapper on itself.
    """
    roots = [Field(ctx.request.object)] if ctx.request.object else []
    if ctx.wrapper:
        roots = [ctx.wrapper.root, *roots]
    labels = [pod["metadata", "labels"]]
    labels += [root[path] for root in roots for path in _LABELS]
    return next((block[label].text for block in labels if block[label].text), "")


_LABELS: Final = (("metadata", "labels"), ("spec", "jobTemplate", "metadata", "labels"))


def _flavors(queue: str, ctx: AnyContext) -> list[Field] | Skip:
    """Return the flavors that a queue may assign to the Pod, or why they are unknown."""
    local = _named(objects.LOCAL_QUEUE, queue, ctx, ctx.request.namespace)
    if isinstance(local, Skip):
        return local
    cluster = _named(objects.CLUSTER_QUEUE, local["spec", "clusterQueue"].text, ctx)
    if isinstance(cluster, Skip):
        return cluster
    names = list(dict.fromkeys(_names(cluster, frozenset(ctx.derived(gpu_demand).resources))))
    if not names or len(names) > _MOST_FLAVORS:
        return Skip(f"ClusterQueue {cluster['metadata', 'name'].text} names {len(names)} flavors for it")
    flavors: list[Field] = []
    for name in names:
        flavor = _named(objects.RESOURCE_FLAVOR, name, ctx)
        if isinstance(flavor, Skip):
            return flavor
        flavors.append(flavor)
    return flavors


def _named(kind: Kind, name: str, ctx: AnyContext, namespace: str | None = None) -> Field | Skip:
    fact = ctx.facts.list(kind, namespace)
    queue_object = named(fact, name)
    if queue_object is not None:
        return queue_object
    return object_doubt(fact, kind, name) or Skip(f"{kind.name} {name} does not exist", coming=True)


def _names(cluster: Field, resources: frozenset[str]) -> Iterator[str]:
    """Yield the flavors of the groups that cover the accelerators of the Pod; of all groups if none does."""
    groups = tuple(cluster["spec", "resourceGroups"])
    covering = tuple(group for group in groups if not resources.isdisjoint(group["coveredResources"].texts))
    for group in covering or groups:
        yield from (flavor["name"].text for flavor in group["flavors"])


def _change(pod: Field, flavor: Field, ctx: AnyContext) -> _Change:
    spec = pod["spec"]
    tolerations, selector = spec["tolerations"], spec["nodeSelector"]
    flavor_tolerations = [Shaped(tolerations, toleration.value) for toleration in flavor["spec", "tolerations"]]
    labels = {key: Shaped(selector, value) for key, value in _labels(flavor).items() if not selector[key]}
    members: dict[str, Field] = {}
    if flavor_tolerations:
        members["tolerations"] = ListView(tolerations, [*tolerations, *flavor_tolerations])
    if labels:
        members["nodeSelector"] = ObjectView(selector, {**labels, **dict(selector.items())})
    name, added = flavor["metadata", "name"].text, frozenset(labels)
    # Computed once for all flavors, because a Pod may have many terms.
    own = {normalized(key): is_only(value.text) for key, value in labels.items()}
    memo: dict[object, object] = {
        alternatives: tuple(_narrowed(required, own) for required in ctx.derived(alternatives)),
        _admitted: _Admitted((_Change(name, added),)),
    }
    return _Change(name, added, ObjectView(pod, {"spec": ObjectView(spec, members)}), memo)


def _narrowed(required: Requirements, own: dict[str, Requirement]) -> Requirements:
    """Return the requirements of a term together with the labels that a flavor adds."""
    shared = own.keys() & required.keys()
    added = own | {key: own[key].intersect(required[key]) for key in shared} if shared else own
    return ChainMap(added, cast("dict[str, Requirement]", required))


def _labels(flavor: Field) -> dict[str, str]:
    return flavor["spec", "nodeLabels"].labels


def _is_tolerated(pod: Field, flavor: Field) -> bool:
    return all(
        tolerated(pod, Taint(key=taint["key"].text, value=taint["value"].text), taint["effect"].text)
        for taint in flavor["spec", "nodeTaints"]
        if taint["effect"].text in HARD_EFFECTS
    )
