"""Jobs whose Pods work on one task together: the kinds that have only such Pods, and launchers of several nodes.

Sources: Kubeflow training-operator v1.9.4 `pkg/apis/kubeflow.org/v1` (ElasticPolicy; replicas default to 1), JobSet v0.12.0
`jobset_types.go`, `kubernetes/api` v0.36 `batch/v1` (a Job starts the lesser of parallelism and completions); PyTorch 2.9
`torch/distributed/run.py` (`--nnodes` is a number or `least:most`, 1 by default), accelerate 1.12 `commands/launch.py`
(`--num_machines`), DeepSpeed 0.18 `launcher/runner.py` (`--num_nodes`); GKE "About GPUs" (a2-megagpu-16g has 16).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gpugate.policies.data.instance_types import INSTANCE_TYPE
from gpugate.policies.sdk import objects
from gpugate.policies.sdk.gpu_demand import gpu_demand
from gpugate.policies.sdk.model_servers import Arguments, programs
from gpugate.policies.sdk.node_pools import AWS, INSTANCE_TYPES, is_on_ec2
from gpugate.policies.sdk.scale_targets import template_contexts
from gpugate.policies.sdk.scheduling import alternatives, matching

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.commands import Started
    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.gpu_demand import GpuDemand
    from gpugate.policies.sdk.objects import Kind
    from gpugate.policies.sdk.policy import AnyContext
    from gpugate.policies.sdk.scheduling import Requirements

# Kinds whose Pods always work together, and the fields with their replicas.
_TOGETHER: Final = {
    objects.JAX_JOB: "jaxReplicaSpecs",
    objects.MPI_JOB: "mpiReplicaSpecs",
    objects.PADDLE_JOB: "paddleReplicaSpecs",
    objects.PYTORCH_JOB: "pytorchReplicaSpecs",
    objects.XGBOOST_JOB: "xgbReplicaSpecs",
}
KINDS: Final = (*_TOGETHER, objects.JOB, objects.JOB_SET)
# Launchers that start workers on several nodes, and their options for the number of nodes.
_LAUNCHERS: Final = {"accelerate": "--num-machines", "deepspeed": "--num-nodes", "torchrun": "--nnodes"}
_MODULES: Final = {"torch.distributed.launch": "torchrun", "torch.distributed.run": "torchrun"}
_MOST_DIGITS: Final = 5
# Whole accelerators, which nodes count.
_WHOLE: Final = ("nvidia.com/gpu", "amd.com/gpu", "aws.amazon.com/neuron")
# The maximum on one machine of any cloud.
_MOST_ON_A_NODE: Final = 16


class Workers(NamedTuple):
    """The Pods of one template with accelerators, which work together with those of other templates.

    Attributes:
        ctx: the context whose subject is the template.
        demand: what one Pod requests.
        pods: the smallest number of Pods; more than 0.
        field: the field with this number.
    """

    ctx: AnyContext
    demand: GpuDemand
    pods: int
    field: Field


def workers(job: Field, ctx: AnyContext) -> list[Workers]:
    """Return the Pods with accelerators of a job of `KINDS`; none if they may work alone, or are fewer than two."""
    kind = ctx.request.kind_among(KINDS)
    groups = [group for group in _workers(kind, job, ctx) if group.demand and group.pods > 0]
    if kind not in _TOGETHER and not any(group.ctx.derived(launches_on_nodes) for group in groups):
        return []
    return groups if sum(group.pods for group in groups) > 1 else []


class Spread(NamedTuple):
    """Workers that do not fit on one node together: those that request a resource, and the sum of their requests."""

    name: str
    workers: list[Workers]
    total: int

    @property
    def largest(self) -> Workers:
        """The template with the most Pods."""
        return max(self.workers, key=lambda group: group.pods)

    def __str__(self) -> str:
        return f"{sum(group.pods for group in self.workers)} Pods with {self.total} {self.name} on several nodes"


def spread(groups: list[Workers]) -> Spread | None:
    """Return the workers whose requests together exceed every node on which one of them fits."""
    for name in _WHOLE:
        asking = [group for group in groups if name in group.demand.resources]
        total = sum(group.pods * group.demand.resources[name] for group in asking)
        if asking and total > max(_most_on_a_node(group, name) for group in asking):
            return Spread(name, asking, total)
    return None


def _most_on_a_node(group: Workers, name: str) -> int:
    types = selected_types(group.ctx)
    if types is None:
        return _MOST_ON_A_NODE
    scale = group.ctx.table(INSTANCE_TYPES).allocatable[name]
    types &= scale.at_least(group.demand.resources[name])
    return max((number for number in scale.numbers if scale.at_least(number) & types), default=_MOST_ON_A_NODE)


def selected_types(ctx: AnyContext) -> int | None:
    """Return the EC2 types that a Pod selects, perhaps all of them; None if its nodes may not be EC2 instances."""
    wanted = ctx.derived(alternatives)
    if not ctx.derived(is_on_ec2) and not all(_names_ec2(required, ctx) for required in wanted):
        return None
    types = 0
    for required in wanted:
        types |= matching(required, ctx.table(INSTANCE_TYPES))
    return types


def _names_ec2(required: Requirements, ctx: AnyContext) -> bool:
    """Tell whether a Pod requires a label that only nodes of EC2 have, or a known type of EC2."""
    by_name = required.get(INSTANCE_TYPE)
    known = ctx.table(INSTANCE_TYPES).positions.keys()
    return any(key.startswith(f"{AWS}/") and r.operator in {"In", "Exists"} for key, r in required.items()) or (
        by_name is not None and by_name.operator == "In" and by_name.values <= known
    )


def _workers(kind: Kind, job: Field, ctx: AnyContext) -> Iterator[Workers]:
    for around in template_contexts(kind, job, ctx):
        path = around.subject.path
        if kind is objects.JOB_SET:
            replicated = job[path[:3]]
            pods = _number(replicated["replicas"]) * _of_job(replicated["template", "spec"])
            field = replicated["replicas"]
        elif kind is objects.JOB:
            pods, field = _of_job(job["spec"]), job["spec", "parallelism"]
        else:
            field = job[path[:-1]]["replicas"]
            pods = _number(field)
            least = job["spec", "elasticPolicy", "minReplicas"].integer
            if least is not None and path[2] == "Worker":
                pods = min(pods, least)
        yield Workers(around, around.derived(gpu_demand), pods, field)


def _number(field: Field) -> int:
    return 1 if (number := field.integer) is None else number


def _of_job(spec: Field) -> int:
    """Return the number of Pods of a Job that run at the same time."""
    parallelism, completions = _number(spec["parallelism"]), spec["completions"].integer
    return parallelism if completions is None else min(parallelism, completions)


def launches_on_nodes(_pod: Field, ctx: AnyContext) -> bool:
    """Tell whether a container starts a launcher for several nodes that must all run."""
    return any(_is_for_nodes(started) for every in ctx.derived(programs).values() for started in every)


def _is_for_nodes(started: Started) -> bool:
    program, words = started.program, started.words
    if program.startswith("python") and words[:1] == ("-m",) and len(words) > 1:
        program, words = _MODULES.get(words[1], ""), words[2:]
    option = _LAUNCHERS.get(program)
    nodes = Arguments(words).option((option,)) if option else None
    if not nodes:
        return False
    least = nodes.partition(":")[0]
    # A variable counts as several nodes, because the job has several Pods.
    return not least.isdigit() or (len(least) <= _MOST_DIGITS and int(least) > 1)
