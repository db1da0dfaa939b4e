"""GPU Pod without cost labels.

## Why is this bad?
Kubecost and OpenCost read the labels of Pods and namespaces, so the cost of these GPUs appears under no team. An
empty label, or one with the value `tbd`, counts as missing.

## Instead
Label the namespace: GPU Pods get their missing labels from it.

```yaml
apiVersion: v1
kind: Namespace
metadata:
  name: ml-serving
  labels:
    team: search
    cost-center: cc-1234
```

Existing labels of a Pod are never changed, and Pods without a GPU are not evaluated. Check Services and
NetworkPolicies that select Pods by `team`: they also select a Pod that got the label. With `as_annotation` the Pods
get annotations.

A namespace is evaluated if Deployments, StatefulSets, Jobs or CronJobs in it request GPUs.

## Sources
- Label values: `k8s.io/apimachinery/pkg/util/validation` IsValidLabelValue, v0.36.
- Cost by label: Kubecost and OpenCost documentation, "Allocation".
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import msgspec

from gpugate.policies.sdk import objects
from gpugate.policies.sdk.cost_labels import fault, lookalike
from gpugate.policies.sdk.facts import Known, Need
from gpugate.policies.sdk.findings import Other, Patch, Skip, Stance, Violation
from gpugate.policies.sdk.gpu_demand import CLAIM_NEEDS, MAY_DEMAND, gpu_demand
from gpugate.policies.sdk.policy import PARAMETERS_KEY, Context, mutates, validates
from gpugate.policies.sdk.policy import Params as PolicyParams
from gpugate.policies.sdk.scale_targets import TEMPLATE_FIELDS, workload_demand
from gpugate.policies.sdk.workload_class import namespace_doubt, namespace_labels

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field

_WORKLOADS: Final = (objects.DEPLOYMENT, objects.STATEFUL_SET, objects.JOB, objects.CRON_JOB)
_CRON_JOB_FIELDS: Final = tuple(field.replace("spec.", "spec.jobTemplate.spec.", 1) for field in TEMPLATE_FIELDS)


class Params(PolicyParams, frozen=True, kw_only=True):
    """Which labels are required, and their forms.

    Attributes:
        required: the labels that every GPU Pod and its namespace have.
        formats: the valid forms of values, by label: `#` is a digit, `*` any characters. A label without an entry may have
            any value.
        placeholders: values that count as missing, in any case.
        as_annotation: give Pods annotations instead of labels, and accept either.
    """

    required: tuple[str, ...] = ("team", "cost-center")
    formats: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    placeholders: tuple[str, ...] = ("TBD", "none", "unknown", "changeme", "-", "todo", "n/a")
    as_annotation: bool = False


@mutates(
    objects.POD,
    params=Params,
    needs=(*CLAIM_NEEDS, Need(objects.NAMESPACE, ("metadata.labels",))),
    concerns=MAY_DEMAND,
    convention=PARAMETERS_KEY,
)
def inherit(pod: Field, ctx: Context[Params]) -> Iterator[Patch | Skip]:
    """Add the missing labels that the namespace has."""
    if not ctx.derived(gpu_demand):
        return
    missing = [key for key in ctx.params.required if not _label(pod, key, ctx.params)]
    if not missing:
        return
    doubt = namespace_doubt(ctx)
    if doubt:
        yield doubt
        return
    labels = namespace_labels(ctx)
    block = "annotations" if ctx.params.as_annotation else "labels"
    for key in missing:
        if key in labels and not _fault(key, labels[key], ctx.params):
            reason = (
                f"adds the {block[:-1]} {key}: {labels[key]} of namespace {ctx.request.namespace}, for cost reports"
            )
            yield Patch("set", pod["metadata", block, key].path, labels[key], reason)


@validates(objects.POD, params=Params, needs=CLAIM_NEEDS, concerns=MAY_DEMAND, convention=PARAMETERS_KEY)
def check_pod(pod: Field, ctx: Context[Params]) -> Iterator[Violation | Skip]:
    """Report missing labels and invalid values."""
    demand = ctx.derived(gpu_demand)
    if demand:
        hint = f"add the labels to the Pod or to namespace {ctx.request.namespace or 'default'}"
        namespace = ctx.request.namespace or "default"
        yield from _faulty(pod, "its GPUs", hint, ctx.params, Other("Namespace", namespace, namespace))
    elif demand.doubt:
        yield demand.doubt


@validates(
    objects.NAMESPACE,
    params=Params,
    needs=(
        *CLAIM_NEEDS,
        *(Need(kind, TEMPLATE_FIELDS) for kind in _WORKLOADS if kind is not objects.CRON_JOB),
        Need(objects.CRON_JOB, _CRON_JOB_FIELDS),
    ),
    at_most=Stance.WARN,
    convention=PARAMETERS_KEY,
)
def check_namespace(namespace: Field, ctx: Context[Params]) -> Iterator[Violation | Skip]:
    """Report the same for a namespace with GPU workloads."""
    faulty = tuple(
        _faulty(namespace, "its GPU Pods", "add the labels to the namespace; its GPU Pods inherit them", ctx.params)
    )
    if not faulty:
        return
    holds = _holds_gpu_workloads(ctx.request.name or ctx.request.generate_name, ctx)
    if holds:
        yield from faulty
    elif holds is None:
        yield Skip("it is unknown whether the namespace contains GPU workloads")


def _faulty(
    obj: Field, whose: str, hint: str, params: Params, inherits_from: Other | None = None
) -> Iterator[Violation]:
    missing = []
    labels = obj["metadata", "labels"]
    for key in params.required:
        field = _label(obj, key, params)
        if field:
            wrong = _fault(key, field.text, params)
            if wrong:
                why = "Cost reports show this value, so the cost is attributed to no team."
                yield Violation(
                    field.path,
                    f"label {key} {wrong}",
                    Stance.WARN,
                    "write the real value, such as the name of the team",
                    why=why,
                    convention=True,
                )
            continue
        near = lookalike(key, labels.mapping)
        if near:
            message = f"label {near} is not {key}: cost reports read exact keys"
            why = f"Cost reports read exact keys, so the cost does not appear under {key}."
            yield Violation(labels[near].path, message, Stance.WARN, f"rename it to {key}", why=why, convention=True)
        else:
            missing.append(key)
    if missing:
        message = f"missing labels {', '.join(missing)}: the cost of {whose} cannot be attributed"
        # The namespace does not have the label either.
        others = (inherits_from,) if inherits_from else ()
        yield Violation(labels.path, message, Stance.WARN, hint, convention=True, others=others, follows=bool(others))


def _label(obj: Field, key: str, params: Params) -> Field:
    label = obj["metadata", "labels", key]
    annotation = obj["metadata", "annotations", key]
    return annotation if params.as_annotation and annotation and not label else label


def _fault(key: str, value: str, params: Params) -> str:
    return fault(value, params.placeholders, params.formats.get(key, ()))


def _holds_gpu_workloads(name: str, ctx: Context[Params]) -> bool | None:
    """Tell whether a workload in the namespace requests GPUs; None if not all of them are known."""
    inside = replace(ctx, request=replace(ctx.request, namespace=name))
    complete = True
    for kind in _WORKLOADS:
        fact = ctx.facts.list(kind, name)
        complete = complete and isinstance(fact, Known) and fact.complete
        for workload in fact.items if isinstance(fact, Known) else ():
            demand = workload_demand(kind, workload, inside)
            if demand:
                return True
            complete = complete and not demand.unresolved
    return False if complete else None
