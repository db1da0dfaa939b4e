"""GPU Job whose Pods read a completion index that they do not have.

## Why is this bad?
The Pods have no index, so none knows its rank or its part of the work. They fail at their start, wait for a Pod with rank 0, or
all do the same work, and their GPUs are paid for all the while.

## Instead
Make the Job Indexed, which needs `completions`:

```yaml
apiVersion: batch/v1
kind: Job
metadata:
  name: pretrain
spec:
  completionMode: Indexed
  completions: 4
  parallelism: 4
```

Kubernetes gives only the Pods of such a Job the variable `JOB_COMPLETION_INDEX`, and the annotation and label
`batch.kubernetes.io/job-completion-index`. In other Pods a variable that reads the annotation is empty, and
`$(JOB_COMPLETION_INDEX)` in a command stays as it is written.

Jobs, CronJobs and ScaledJobs with GPUs and more than one Pod are evaluated. A command with a default for the variable, such as
`${JOB_COMPLETION_INDEX:-0}`, is not reported, and neither is a container that sets the variable to something else.

## Sources
Kubernetes v1.36 "Jobs" (completion mode), `pkg/controller/job/indexed_job_utils.go` (the annotation, the label and the variable are
added to Pods of Indexed Jobs only), `pkg/fieldpath/fieldpath.go` (a missing annotation is empty), `pkg/apis/batch/validation` (Indexed
needs completions), "Define Dependent Environment Variables" (unresolved references).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk import objects
from gpugate.policies.sdk.findings import Patch, Patches, Skip, Stance, Violation
from gpugate.policies.sdk.gpu_demand import CLAIM_NEEDS, gpu_demand
from gpugate.policies.sdk.policy import AnyContext, validates
from gpugate.policies.sdk.scale_targets import template_contexts
from gpugate.policies.sdk.workload_class import owner_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.objects import Kind

# The path of the spec of the Jobs, by kind.
_SPECS: Final[dict[Kind, tuple[str, ...]]] = {
    objects.JOB: ("spec",),
    objects.CRON_JOB: ("spec", "jobTemplate", "spec"),
    objects.SCALED_JOB: ("spec", "jobTargetRef"),
}
_VARIABLE: Final = "JOB_COMPLETION_INDEX"
_FIELDS: Final = frozenset(
    f"metadata.{block}['batch.kubernetes.io/job-completion-index']" for block in ("annotations", "labels")
)
# The most characters of a word of a command that is searched.
_LONGEST_WORD: Final = 16 * 1024
# A reference of Kubernetes or a shell to the variable, without a default.
_REFERENCE: Final = re.compile(
    rf"\$\({_VARIABLE}\)|\$\{{{_VARIABLE}\}}|\${_VARIABLE}(?![A-Za-z0-9_])|environ\[['\"]{_VARIABLE}['\"]\]"
)


@validates(*_SPECS, mode=Stance.WARN, at_most=Stance.WARN, needs=CLAIM_NEEDS)
def check(job: Field, ctx: AnyContext) -> Iterator[Violation | Skip]:
    """Report the first field with which the Pods of a Job read their index, if the Job sets none."""
    kind = ctx.request.kind_among(_SPECS)
    spec = job[_SPECS[kind]]
    pods = max(spec["parallelism"].integer or 1, spec["completions"].integer or 1)
    if pods < 2 or spec["completionMode"].text == "Indexed" or owner_kind(job, ctx):
        return
    for around in template_contexts(kind, job, ctx):
        read = next(_reads(around.subject), None)
        demand = around.derived(gpu_demand)
        if read is None:
            continue
        if demand:
            where = ".".join(map(str, (*_SPECS[kind], "completionMode")))
            message = f"reads the completion index, but {where} is not Indexed: the Pods have no index"
            yield Violation(read.path, message, hint=f"set {where} to Indexed", fix=_fix(spec, pods))
        elif demand.doubt:
            yield demand.doubt


def _reads(pod: Field) -> Iterator[Field]:
    """Yield the fields of a Pod that read its index."""
    for container in (*pod["spec", "initContainers"], *pod["spec", "containers"]):
        is_set = False
        for variable in container["env"]:
            source = variable["valueFrom", "fieldRef", "fieldPath"]
            if source.text in _FIELDS:
                yield source
            is_set = is_set or variable["name"].text == _VARIABLE
            if _refers(variable["value"]):
                yield variable["value"]
        if not is_set:
            yield from (word for part in ("command", "args") for word in container[part] if _refers(word))


def _refers(word: Field) -> bool:
    return len(word.text) <= _LONGEST_WORD and _REFERENCE.search(word.text) is not None


def _fix(spec: Field, pods: int) -> Patches:
    patches = [Patch("set", spec["completionMode"].path, "Indexed", "gives each Pod an index")]
    if not spec["completions"]:
        patches.append(Patch("set", spec["completions"].path, pods, "an Indexed Job needs the number of its indexes"))
    return Patches(tuple(patches))
