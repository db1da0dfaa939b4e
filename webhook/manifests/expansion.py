"""Make the object whose Pods run from an object that names a base, such as a TrainJob and its training runtime.

The controllers merge both; no file holds the result. Where the base is not among the files of a run, nothing is made, except
of a TrainJob with resources of its own: they replace those of its runtime, and every other value is unknown.

Sources: Kubeflow trainer v2.0.0 to v2.2 (`pkg/runtime/core/trainingruntime.go`, `pkg/runtime/framework/plugins/jobset/builder.go`,
`pkg/apis/trainer/v1alpha1/trainjob_types.go`): `podSpecOverrides` is of v2.0, `podTemplateOverrides` of v2.1, `runtimePatches` later.
KServe v0.15.0 (`pkg/controller/v1beta1/inferenceservice/components/predictor.go` buildPodSpec and buildObjectMeta,
`inferenceservice/utils/utils.go` MergeRuntimeContainers, MergePodSpec, GetServingRuntime) and v0.19.0
(`pkg/controller/v1alpha2/llmisvc/config_merge.go` MergeSpecs). Both use strategic merge patches.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from gpugate.policies.engine.verdict import Verdict
from gpugate.policies.sdk.facts import Need, named
from gpugate.policies.sdk.field import Field, Unknown, UnknownValueError, has_unknown
from gpugate.policies.sdk.objects import CLUSTER_TRAINING_RUNTIME, GroupVersionKind, Kind, Operation, Request
from gpugate.policies.sdk.structs import Struct, replace
from gpugate.policies.sdk.unknown_kinds import training_runtime
from gpugate.webhook.manifests.strategic_merge import Merge, change_at, text_of

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping

    from gpugate.policies.engine.verdict import Outcome
    from gpugate.policies.sdk.facts import Facts
    from gpugate.policies.sdk.field import Json, Path

_TRAINING_RUNTIME: Final = Kind("trainer.kubeflow.org", ("v1alpha1",), "TrainingRuntime", "trainingruntimes")
_SERVING_RUNTIME: Final = Kind("serving.kserve.io", ("v1alpha1",), "ServingRuntime", "servingruntimes")
_CLUSTER_SERVING_RUNTIME: Final = Kind(
    "serving.kserve.io", ("v1alpha1",), "ClusterServingRuntime", "clusterservingruntimes", namespaced=False
)
_LLM_CONFIG: Final = Kind(
    "serving.kserve.io", ("v1alpha1", "v1alpha2"), "LLMInferenceServiceConfig", "llminferenceserviceconfigs"
)
_POD_FIELDS: Final = ("nodeSelector", "affinity", "tolerations", "volumes", "imagePullSecrets")
_POD_METADATA: Final = ("labels", "annotations")
# What of the bases must be known.
BASES: Final = (
    Need(CLUSTER_TRAINING_RUNTIME, ("spec.template",)),
    Need(_TRAINING_RUNTIME, ("spec.template",)),
    Need(_LLM_CONFIG, ("spec",)),
    *(
        Need(kind, tuple(f"spec.{name}" for name in ("containers", "disabled", *_POD_FIELDS, *_POD_METADATA)))
        for kind in (_SERVING_RUNTIME, _CLUSTER_SERVING_RUNTIME)
    ),
)
_TRAIN_JOB: Final = ("trainer.kubeflow.org", "TrainJob")
_SERVICE: Final = ("serving.kserve.io", "InferenceService")
_LLM_SERVICE: Final = ("serving.kserve.io", "LLMInferenceService")
# Values in a base, its Pod templates, and patches of it: more than any real one has, because every object that names it
# costs as much.
_MOST_VALUES: Final = 2_000
_MOST_JOBS: Final = 20
_MOST_PATCHES: Final = 100


class Expanded(Struct, frozen=True):
    """What a controller makes of an object and its base.

    Attributes:
        request: to create what is made.
        base_name: kind and name of the base.
        base: the base as a request, where it is evaluated itself; else None.
        prefix: the path in the base of what the whole object is made of.
        origins: where the object has the values that it adds, by their paths in what is made.
        reference: the path of the base's name in the object.
        is_partial: whether the base is unknown, so that only values of the object are known.
    """

    request: Request
    base_name: str
    base: Request | None
    prefix: Path
    origins: Mapping[Path, Path]
    reference: Path
    is_partial: bool = False

    def written(self, path: Path) -> Path:
        """Return the path in the object of a value that it adds, or of the base's name."""
        for length in range(len(path), 0, -1):
            origin = self.origins.get(path[:length])
            if origin is not None:
                return (*origin, *path[length:])
        return self.reference

    def is_own(self, path: Path) -> bool:
        """Tell whether the object adds the value at a path of what is made."""
        return self.written(path) != self.reference


def names_base(kind: GroupVersionKind) -> bool:
    """Tell whether objects of a type name a base."""
    return (kind.group, kind.kind) in {_TRAIN_JOB, _SERVICE, _LLM_SERVICE}


def needs_bases(request: Request) -> bool:
    """Tell whether an object can only be evaluated with its bases."""
    kind = (request.kind.group, request.kind.kind)
    return kind == _LLM_SERVICE and bool(list(Field(request.object)["spec", "baseRefs"]))


def translated(
    verdict: Verdict, expansion: Expanded, own: Request, stated_of_base: Container[tuple[str, Path]]
) -> Verdict:
    """Return a verdict on what is made as one on the object that it is made of.

    What is found of a value of the base is at the base's name, and is left out where it is `stated_of_base`, by policy
    and path.
    """

    def is_new(policy: str, path: Path) -> bool:
        return expansion.is_own(path) or (policy, (*expansion.prefix, *path)) not in stated_of_base

    def written(outcome: Outcome) -> Outcome:
        findings = tuple(
            replace(finding, path=expansion.written(finding.path))
            for finding in outcome.findings
            if is_new(finding.policy, finding.path)
        )
        patches = tuple(
            replace(group, patch=replace(group.patch, path=expansion.written(group.patch.path)))
            for group in outcome.template_patches
            if is_new(outcome.policy, group.patch.path)
        )
        return replace(outcome, findings=findings, patches=(), template_patches=patches)

    wrong = tuple(replace(finding, path=expansion.written(finding.path)) for finding in verdict.malformed)
    return Verdict(own, tuple(map(written, verdict.outcomes)), wrong)


def stated(verdict: Verdict) -> frozenset[tuple[str, Path]]:
    """Return the policies and paths of what a verdict states of Pod templates."""
    locations = {(finding.policy, finding.path) for finding in verdict.findings}
    return frozenset(
        locations | {(o.policy, group.patch.path) for o in verdict.outcomes for group in o.template_patches}
    )


def expanded(request: Request, facts: Facts) -> Expanded | None:
    """Return what the controller makes of an object; None where it names no base that is known, or cannot be merged."""
    kind = (request.kind.group, request.kind.kind)
    if request.object is None or request.operation is Operation.DELETE:
        return None
    with suppress(UnknownValueError):
        if kind == _TRAIN_JOB:
            return _job_set(request, facts)
        if kind == _SERVICE:
            return _service(request, facts)
        if kind == _LLM_SERVICE:
            return _llm_service(request, facts)
    return None


def _job_set(request: Request, facts: Facts) -> Expanded | None:
    """Return the JobSet of a TrainJob."""
    whole = Field(request.object)
    named_kind, name = training_runtime(request.object)
    group = whole["spec", "runtimeRef", "apiGroup"]
    kind = {known.name: known for known in (_TRAINING_RUNTIME, CLUSTER_TRAINING_RUNTIME)}.get(named_kind)
    if kind is None or not name or (group and group.text != _TRAIN_JOB[0]):
        return None
    runtime = named(facts.list(kind, request.namespace if kind.namespaced else None), name)
    if runtime is None:
        return _trainer_alone(request, whole["spec", "trainer"], f"{kind.name} {name}")
    spec = runtime["spec", "template", "spec"].value
    replicated = spec.get("replicatedJobs") if isinstance(spec, dict) else None
    patches = list(_patches(whole["spec"]))
    if (
        not isinstance(spec, dict)
        or not isinstance(replicated, list)
        or len(replicated) > _MOST_JOBS
        or not _is_small(spec)
        or len(patches) > _MOST_PATCHES
        or not all(_is_small(patch.field.value) for patch in patches)
    ):
        return None
    merge = Merge()
    jobs: list[Json] = list(replicated)
    places = {text_of(job, "name"): index for index, job in enumerate(jobs)}
    for patch in patches:
        if patch.job in places:
            at: Path = ("spec", "replicatedJobs", places[patch.job])
            jobs[places[patch.job]] = patch.applied(merge, jobs[places[patch.job]], at)
    for index, job in enumerate(jobs):
        jobs[index] = _trained(merge, job, whole["spec", "trainer"], ("spec", "replicatedJobs", index))
    owner: Json = {"apiVersion": request.kind.api_version, "kind": request.kind.kind, "name": request.name}
    metadata: dict[str, Json] = {
        **(runtime["spec", "template", "metadata"].mapping),
        "name": request.name,
        "namespace": request.namespace,
        "ownerReferences": [owner],
    }
    for block in _POD_METADATA:
        added = whole["spec", block]
        if added.mapping:
            metadata[block] = merge.patched(metadata.get(block), added.value, ("metadata", block), added.path)
    kind_of_job_set = GroupVersionKind("jobset.x-k8s.io", "v1alpha2", "JobSet")
    obj: dict[str, Json] = {
        "apiVersion": kind_of_job_set.api_version,
        "kind": kind_of_job_set.kind,
        "metadata": metadata,
        "spec": {**spec, "replicatedJobs": jobs},
    }
    return Expanded(
        _request(request, kind_of_job_set, obj),
        f"{kind.name} {name}",
        _base(kind, runtime),
        ("spec", "template"),
        merge.origins,
        ("spec", "runtimeRef", "name"),
    )


def _trainer_alone(request: Request, trainer: Field, base_name: str) -> Expanded | None:
    """Return the JobSet of a TrainJob whose runtime is unknown, where the TrainJob requests extended resources.

    Init containers and claims are left out: the TrainJob has none, and its resources are requested whatever they add.
    """
    amounts = trainer["resourcesPerNode"]
    if not any("/" in name for block in ("limits", "requests") for name in amounts[block].mapping):
        return None
    unknown = Unknown(f"{base_name} (not among the files)")
    merge = Merge()
    at: Path = ("spec", "replicatedJobs", 0)
    container = _container(
        merge,
        {"name": _NODE, **dict.fromkeys(_OF_CONTAINERS, _json(unknown))},
        trainer,
        (*at, *_POD_SPEC, "containers", 0),
    )
    pod_spec: Json = {**dict.fromkeys(_OF_POD_SPECS, _json(unknown)), "containers": [container]}
    metadata: Json = dict.fromkeys(_POD_METADATA, _json(unknown))
    job_spec: Json = {
        **dict.fromkeys(_OF_JOB_SPECS, _json(unknown)),
        "template": {"metadata": metadata, "spec": pod_spec},
    }
    nodes = trainer["numNodes"]
    job: Json = {
        "name": _NODE,
        "replicas": 1,
        "template": {"metadata": metadata, "spec": job_spec},
    }
    if nodes:
        for name in ("parallelism", "completions"):
            merge.origins[*at, "template", "spec", name] = nodes.path
            job = change_at(job, ("template", "spec", name), lambda _: nodes.value)
    owner: Json = {"apiVersion": request.kind.api_version, "kind": request.kind.kind, "name": request.name}
    kind = GroupVersionKind("jobset.x-k8s.io", "v1alpha2", "JobSet")
    obj: dict[str, Json] = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {
            "name": request.name,
            "namespace": request.namespace,
            "labels": _json(unknown),
            "annotations": _json(unknown),
            "ownerReferences": [owner],
        },
        "spec": {**dict.fromkeys(_OF_JOB_SETS, _json(unknown)), "replicatedJobs": [job]},
    }
    made_request = _request(request, kind, obj)
    return Expanded(made_request, base_name, None, (), merge.origins, ("spec", "runtimeRef", "name"), is_partial=True)


def _json(unknown: Unknown) -> Json:
    return unknown  # type: ignore[return-value] # in the place of a JSON value


# Fields that a runtime may give what a TrainJob is made of (`k8s.io/api` v0.36 core/v1 and batch/v1; JobSet v0.12
# `api/jobset/v1alpha2`).
_OF_CONTAINERS: Final = (
    "args",
    "command",
    "env",
    "envFrom",
    "image",
    "imagePullPolicy",
    "lifecycle",
    "livenessProbe",
    "ports",
    "readinessProbe",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "securityContext",
    "startupProbe",
    "stdin",
    "stdinOnce",
    "terminationMessagePath",
    "terminationMessagePolicy",
    "tty",
    "volumeDevices",
    "volumeMounts",
    "workingDir",
)
_OF_POD_SPECS: Final = (
    "activeDeadlineSeconds",
    "affinity",
    "automountServiceAccountToken",
    "dnsConfig",
    "dnsPolicy",
    "enableServiceLinks",
    "evictionResponders",
    "hostAliases",
    "hostIPC",
    "hostNetwork",
    "hostPID",
    "hostUsers",
    "hostname",
    "hostnameOverride",
    "imagePullSecrets",
    "nodeName",
    "nodeSelector",
    "os",
    "overhead",
    "preemptionPolicy",
    "priority",
    "priorityClassName",
    "readinessGates",
    "resources",
    "restartPolicy",
    "runtimeClassName",
    "schedulerName",
    "schedulingGates",
    "schedulingGroup",
    "securityContext",
    "serviceAccount",
    "serviceAccountName",
    "setHostnameAsFQDN",
    "shareProcessNamespace",
    "subdomain",
    "terminationGracePeriodSeconds",
    "tolerations",
    "topologySpreadConstraints",
    "volumes",
    "workloadRef",
)
_OF_JOB_SPECS: Final = (
    "activeDeadlineSeconds",
    "backoffLimit",
    "backoffLimitPerIndex",
    "completionMode",
    "completions",
    "managedBy",
    "manualSelector",
    "maxFailedIndexes",
    "parallelism",
    "podFailurePolicy",
    "podReplacementPolicy",
    "scheduling",
    "selector",
    "successPolicy",
    "suspend",
    "ttlSecondsAfterFinished",
)
_OF_JOB_SETS: Final = (
    "coordinator",
    "failurePolicy",
    "managedBy",
    "network",
    "startupPolicy",
    "successPolicy",
    "suspend",
    "ttlSecondsAfterFinished",
    "volumeClaimPolicies",
)


class _Patch(NamedTuple):
    """A strategic merge patch of a part of a replicated job."""

    job: str
    part: tuple[str, ...]
    field: Field
    keys: tuple[str, ...]  # of the field, that belong to the patch

    def applied(self, merge: Merge, job: Json, at: Path) -> Json:
        def change(value: Json) -> Json:
            for key in self.keys:
                member = self.field[key]
                patch: Json = {key: member.value} if key in self.field.mapping else {}
                value = merge.patched(value, patch, (*at, *self.part), self.field.path)
            return value

        return change_at(job, self.part, change)


_POD_SPEC: Final = ("template", "spec", "template", "spec")


def _patches(spec: Field) -> Iterator[_Patch]:
    """Yield the patches that a TrainJob has for jobs of its runtime, in the order in which they are applied."""
    for override in spec["podSpecOverrides"]:
        keys = tuple(key for key in override.mapping if key != "targetJobs")
        yield from (_Patch(target["name"].text, _POD_SPEC, override, keys) for target in override["targetJobs"])
    for override in spec["podTemplateOverrides"]:
        for target in override["targetJobs"]:
            yield _Patch(target["name"].text, _POD_SPEC[:-1], override, ("metadata", "spec"))
    for override in spec["runtimePatches"]:
        for job in override["trainingRuntimeSpec", "template", "spec", "replicatedJobs"]:
            yield _Patch(job["name"].text, (), job, ("template",))


def _trained(merge: Merge, job: Json, trainer: Field, at: Path) -> Json:
    """Return a replicated job with what the TrainJob says of its trainer, where the job has that."""
    if not trainer.mapping or not Field(job)["template", "metadata", "labels"].mapping:
        return job

    def change(containers: Json) -> Json:
        inside = (*at, *_POD_SPEC, "containers")
        return [
            _container(merge, container, trainer, (*inside, n))
            if isinstance(container, dict) and container.get("name") == _NODE
            else container
            for n, container in enumerate(containers if isinstance(containers, list) else ())
        ]

    changed = change_at(job, (*_POD_SPEC, "containers"), change)
    nodes = trainer["numNodes"]
    if nodes and Field(job)["template", "metadata", "labels", _ANCESTOR].text == "trainer":
        for name in ("parallelism", "completions"):
            path = ("template", "spec", name)
            merge.origins[*at, *path] = nodes.path
            changed = change_at(changed, path, lambda _: nodes.value)
    return changed


_NODE: Final = "node"
_ANCESTOR: Final = "trainer.kubeflow.org/trainjob-ancestor-step"


def _container(merge: Merge, container: dict[str, Json], trainer: Field, at: Path) -> Json:
    changed = dict(container)
    for name in ("image", "command", "args"):
        if trainer[name]:
            merge.origins[*at, name] = trainer[name].path
            changed[name] = trainer[name].value
    amounts = trainer["resourcesPerNode"]
    if amounts["limits"] or amounts["requests"]:
        merge.origins[*at, "resources"] = amounts.path
        changed["resources"] = amounts.value
    if trainer["env"]:
        changed["env"] = merge.patched(changed.get("env"), trainer["env"].value, (*at, "env"), trainer["env"].path)
    return changed


_SERVER: Final = "kserve-container"


def _service(request: Request, facts: Facts) -> Expanded | None:
    """Return an InferenceService whose predictor has what its serving runtime gives the Pods."""
    whole = Field(request.object)
    runtime = whole["spec", "predictor", "model", "runtime"]
    own = named(facts.list(_SERVING_RUNTIME, request.namespace), runtime.text)
    known = own or named(facts.list(_CLUSTER_SERVING_RUNTIME), runtime.text)
    base = dict(known["spec"].mapping) if known and runtime.text else {}
    if not isinstance(base.get("containers"), list) or base.get("disabled") or not _is_small(base):
        return None
    merge = Merge()
    spec = whole["spec"]
    for field in (*whole.members(), *spec.members()):
        merge.origins[field.path] = field.path
    del merge.origins["spec",], merge.origins["spec", "predictor"]
    predictor = _predictor(merge, whole, base)
    obj: dict[str, Json] = {**whole.mapping, "spec": {**spec.mapping, "predictor": predictor}}
    name = f"{(_SERVING_RUNTIME if own else _CLUSTER_SERVING_RUNTIME).name} {runtime.text}"
    return Expanded(_request(request, request.kind, obj), name, None, (), merge.origins, runtime.path)


def _predictor(merge: Merge, whole: Field, base: dict[str, Json]) -> dict[str, Json]:
    own = whole["spec", "predictor"]
    predictor: dict[str, Json] = {key: base[key] for key in _POD_FIELDS if key in base}
    for key, member in own.items():
        if key not in {"model", "containers"}:
            predictor[key] = merge.patched(predictor.get(key), member.value, (*own.path, key), member.path)
    for block in _POD_METADATA:
        # Those of the service itself come before those of its runtime.
        inherited, hidden = Field(base)[block].mapping, whole["metadata", block].mapping
        labels = {key: value for key, value in inherited.items() if key not in hidden} | dict(own[block].mapping)
        predictor |= {block: labels} if labels else {}
    predictor["containers"] = _containers(merge, own, base)
    return predictor


def _containers(merge: Merge, predictor: Field, base: dict[str, Json]) -> list[Json]:
    model, at = predictor["model"], (*predictor.path, "containers")
    server = {key: member for key, member in model.mapping.items() if key not in _MODEL_ONLY}
    listed = list(Field(base)["containers"])
    containers: list[Json] = [container.value for container in listed]
    for index, container in enumerate(listed):
        if container["name"].text == _SERVER:
            merged = merge.patched(container.value, server, (*at, index), model.path)
            if model["args"] and isinstance(merged, dict):
                merged["args"] = _joined(container["args"].value, model["args"].value)
            containers[index] = merged
    for more in predictor["containers"]:
        merge.origins[*at, len(containers)] = more.path
        containers.append(more.value)
    return containers


def _joined(base: Json, other: Json) -> Json:
    """Return both lists together; one that is not known makes the whole unknown."""
    if not isinstance(other, list):
        return other
    return [*base, *other] if isinstance(base, list) else base or other


_MOST_CONFIGS: Final = 10
_KSERVE: Final = "kserve"  # where KServe looks for those that the namespace does not have


def _llm_service(request: Request, facts: Facts) -> Expanded | None:
    """Return an LLMInferenceService with what its base configurations add, of which the later ones come first."""
    whole = Field(request.object)
    references = whole["spec", "baseRefs"]
    names = [reference["name"].text for reference in references]
    known = [facts.list(_LLM_CONFIG, namespace) for namespace in (request.namespace, _KSERVE)]
    either = (named(known[0], name) or named(known[1], name) for name in names[:_MOST_CONFIGS])
    configs = [config for config in either if config]
    bases = [dict(config["spec"].mapping) for config in configs]
    if not names or len(configs) < len(names) or not all(map(_is_small, bases)):
        return None
    merge = Merge()
    spec: dict[str, Json] = {}
    for base in bases:
        merged = Merge().patched(spec, base, ("spec",), ("spec",))
        spec = merged if isinstance(merged, dict) else spec
    own: Json = {key: value for key, value in whole["spec"].mapping.items() if key != "baseRefs"}
    obj: dict[str, Json] = {**whole.mapping, "spec": merge.patched(spec, own, ("spec",), ("spec",))}
    for path in ((key,) for key in whole.mapping if key != "spec"):
        merge.origins[path] = path
    name = f"{_LLM_CONFIG.name} {names[-1]}"
    return Expanded(_request(request, request.kind, obj), name, None, (), merge.origins, references.path)


# What a model says beside its container.
_MODEL_ONLY: Final = frozenset(
    {"modelFormat", "protocolVersion", "runtime", "runtimeVersion", "storage", "storageUri", "args"}
)


def _is_small(value: Json) -> bool:
    pending, count = [value], 0
    while pending and count <= _MOST_VALUES:
        member = pending.pop()
        members = list(member.values()) if isinstance(member, dict) else member if isinstance(member, list) else ()
        count += len(members)
        pending.extend(members)
    return count <= _MOST_VALUES


def _request(request: Request, kind: GroupVersionKind, obj: dict[str, Json]) -> Request:
    is_template = request.is_template or has_unknown(obj)
    return replace(request, kind=kind, object=obj, is_template=is_template)


def _base(kind: Kind, base: Field) -> Request:
    obj = dict(base.mapping)
    name, namespace = base["metadata", "name"].text, base["metadata", "namespace"].text
    own = GroupVersionKind(kind.group, kind.versions[0], kind.name)
    return Request(own, Operation.CREATE, obj, name=name, namespace=namespace, is_template=has_unknown(obj))
