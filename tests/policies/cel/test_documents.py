"""Policies in CEL, through the engine that evaluates the library."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from gpugate.policies.cel.documents import MOST_DOCUMENTS, DocumentError, examples_of, load_documents
from gpugate.policies.engine.config import parse_config
from gpugate.policies.engine.evaluate import evaluate
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk import objects
from gpugate.policies.sdk.concerns import EVERY_OBJECT
from gpugate.policies.sdk.facts import Fact, Known, NoFacts, Unavailable
from gpugate.policies.sdk.field import Field, Unknown
from gpugate.policies.sdk.findings import Stance
from gpugate.policies.sdk.gpu_demand import MAY_DEMAND
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request

if TYPE_CHECKING:
    from gpugate.policies.engine.verdict import Verdict
    from gpugate.policies.sdk.facts import Facts
    from gpugate.policies.sdk.objects import Kind

Json = dict[str, Any]
TODAY = dt.date(2026, 11, 21)
HEADER: Json = {"apiVersion": "gpugate.dev/v1", "kind": "Policy"}
CONFIG: Json = {"apiVersion": "gpugate.dev/v1", "kind": "PolicyConfig"}


def document(*expressions: str, kinds: tuple[Any, ...] = ("Pod",), **more: Any) -> Json:
    """Return a policy with these expressions; `match` of `more` is beside the kinds."""
    match = {"kinds": list(kinds), **more.pop("match", {})}
    validations = [{"expression": expression, "message": "is denied"} for expression in expressions]
    return {
        **HEADER,
        "id": "acme/example",
        "title": "Example",
        "why": "The cluster has rules.",
        "mode": "enforce",
        "match": match,
        "validations": validations,
        **more,
    }


class Cluster:
    """Facts of some objects; kinds without an object are unavailable unless the cluster is complete."""

    def __init__(self, *manifests: Json, complete: bool = False) -> None:
        self._manifests = manifests
        self._complete = complete

    def list(self, kind: Kind, namespace: str | None = None) -> Fact:
        items = [
            Field(manifest)
            for manifest in self._manifests
            if manifest["kind"] == kind.name
            and (not namespace or not kind.namespaced or manifest["metadata"].get("namespace") == namespace)
        ]
        return Known(items, self._complete) if items or self._complete else Unavailable(f"no {kind.plural} to look up")


def request_of(manifest: Json, operation: Operation = Operation.CREATE, **more: Any) -> Request:
    kind = GroupVersionKind.of(manifest["apiVersion"], manifest["kind"])
    name, namespace = manifest["metadata"].get("name", ""), manifest["metadata"].get("namespace", "")
    written = None if operation is Operation.DELETE else manifest
    return Request(kind, operation, written, **{"name": name, "namespace": namespace, **more})


def verdict_of(policy: Json, request: Request, facts: Facts | None = None, config: Json | None = None) -> Verdict:
    ruleset = bind(load_documents([policy], "policies.yaml"), parse_config({**CONFIG, **(config or {})}))
    return evaluate(ruleset, request, facts or NoFacts(), today=TODAY)


def results(verdict: Verdict) -> list[str]:
    """Return the messages of the findings, and why a policy was not evaluated."""
    assert [outcome.error for outcome in verdict.outcomes if outcome.error] == []
    skipped = [f"not evaluated: {reason}" for outcome in verdict.outcomes for reason in outcome.skipped]
    return [*(finding.message for finding in verdict.findings), *skipped]


def pod(gpus: Any = None, namespace: str = "ml", **more: Any) -> Json:
    resources = {} if gpus is None else {"resources": {"limits": {"nvidia.com/gpu": gpus}}}
    metadata = {"name": "a", "namespace": namespace, "labels": more.pop("labels", {})}
    container = {"name": "main", "image": "registry.example.com/app:1", **resources}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container], **more}}


def pool(*types: str, **spec: Any) -> Json:
    requirement = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": list(types)}
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"}
    template = {"spec": {"nodeClassRef": reference, "requirements": [requirement]}}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "gpu"},
        "spec": {"template": template, **spec},
    }


def deployment(gpus: int = 1) -> Json:
    template = {"metadata": {"labels": {"app": "a"}}, "spec": pod(gpus)["spec"]}
    spec = {"selector": {"matchLabels": {"app": "a"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "namespace": "ml"}, "spec": spec}


def scaled_object(**spec: Any) -> Json:
    metadata = {"name": "s", "namespace": "ml"}
    body = {"scaleTargetRef": {"name": "a"}, "triggers": [], **spec}
    return {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": metadata, "spec": body}


def autoscaler(replicas: int) -> Json:
    metadata = {"name": "s", "namespace": "ml"}
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}
    spec = {"scaleTargetRef": target, "maxReplicas": replicas}
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": metadata, "spec": spec}


DENIED = ["is denied"]
CLAIMS = pod(resourceClaims=[{"name": "gpu", "resourceClaimName": "missing"}])
CONFIG_MAP = {"apiVersion": "v1", "kind": "ConfigMap", "plural": "configmaps"}
VLLM = {
    "apiVersion": "production-stack.vllm.ai/v1alpha1",
    "kind": "VLLMRuntime",
    "metadata": {"name": "llama", "namespace": "ml"},
    "spec": {"deploymentConfig": {"resources": {"cpu": "1", "memory": "8Gi", "gpu": "4"}}},
}
SLICE = pod(containers=[{"name": "a", "resources": {"limits": {"nvidia.com/mig-1g.10gb": 1}}}])
NO_CLASS = "not evaluated: nothing shows `gpu.pod.workloadClass` of this object"
JOB_LABELS = {"gpugate.dev/workload-class": "training"}
# name -> expression, kinds, object, cluster, results
CASES: dict[str, tuple[str, tuple[str, ...], Json, Cluster | None, list[str]]] = {
    "a true expression": ("object.metadata.name == 'a'", ("Pod",), pod(), None, []),
    "a false expression": ("object.metadata.name == 'b'", ("Pod",), pod(), None, DENIED),
    "another kind": ("false", ("NodePool",), pod(), None, []),
    "an error": (
        "object.spec.priorityClassName != ''",
        ("Pod",),
        pod(),
        None,
        ["validations[0] cannot be evaluated: `priorityClassName` is missing"],
    ),
    "an error without content": (
        "object.spec.secret[object.metadata.name] == ''",
        ("Pod",),
        pod(secret={"password": "s3cret"}),
        None,
        ["validations[0] cannot be evaluated: missing key"],
    ),
    "a result of another type": (
        "object.metadata.name",
        ("Pod",),
        pod(),
        None,
        ["validations[0] cannot be evaluated: `the result` does not accept a value of this type"],
    ),
    "too much work": (
        "object.spec.many.all(x, object.spec.many.all(y, x == x))",
        ("Pod",),
        pod(many=list(range(1_000))),
        None,
        ["validations[0] cannot be evaluated: it takes more than 100,000 steps"],
    ),
    "GPUs": ("gpu.pod.gpus <= 2", ("Pod",), pod("8"), None, DENIED),
    "few GPUs": ("gpu.pod.gpus <= 2", ("Pod",), pod("2"), None, []),
    "no GPUs": ("gpu.pod.gpus <= 2", ("Pod",), pod(), None, []),
    "a MIG slice": ("gpu.pod.gpus < 1", ("Pod",), pod(gpus=None), None, []),
    "the names of GPUs": ("!('nvidia.com/gpu' in gpu.pod.resources)", ("Pod",), pod(1), None, DENIED),
    "a claim that is unknown": (
        "gpu.pod.gpus <= 2",
        ("Pod",),
        CLAIMS,
        None,
        ["not evaluated: the devices of claim gpu are unknown"],
    ),
    "a claim that does not matter": ("gpu.pod.gpus <= 2 || object.metadata.name == 'a'", ("Pod",), CLAIMS, None, []),
    "GPUs of a template": ("gpu.pod.gpus <= 2", ("Pod",), deployment(8), None, DENIED),
    "the Pod of a template": (
        "object.kind == 'Pod' && object.metadata.namespace == 'ml' && request.operation == 'CREATE' && oldObject == null",
        ("Pod",),
        deployment(),
        None,
        [],
    ),
    "a template whose parts are in several places": ("gpu.pod.gpus <= 2", ("Pod",), VLLM, None, DENIED),
    "the class of a Pod": ("gpu.pod.workloadClass != 'training'", ("Pod",), pod(1, labels=JOB_LABELS), None, DENIED),
    "a class that nothing shows": ("gpu.pod.workloadClass == 'training'", ("Pod",), pod(1), None, [NO_CLASS]),
    "whether there is a class": ("has(gpu.pod.workloadClass)", ("Pod",), pod(1), None, DENIED),
    "instance types": (
        "gpu.pool.instanceTypes.all(name, name.startsWith('g6.'))",
        ("NodePool",),
        pool("g6.xlarge", "p5.48xlarge"),
        None,
        DENIED,
    ),
    "allowed instance types": (
        "gpu.pool.instanceTypes == ['g6.12xlarge', 'g6.xlarge']",
        ("NodePool",),
        pool("g6.xlarge", "g6.12xlarge"),
        None,
        [],
    ),
    "GPUs of a pool": (
        "gpu.pool.maxGpus == 16.0",
        ("NodePool",),
        pool("p5.48xlarge", limits={"nvidia.com/gpu": "16"}),
        None,
        [],
    ),
    "GPUs of a pool by its nodes": (
        "gpu.pool.maxGpus == 24.0",
        ("NodePool",),
        pool("p5.48xlarge", replicas=3),
        None,
        [],
    ),
    "a pool without limits": ("gpu.pool.maxGpus <= 1000000", ("NodePool",), pool("p5.48xlarge"), None, DENIED),
    "a pool without GPUs": ("gpu.pool.maxGpus == 0.0", ("NodePool",), pool("m7i.large"), None, []),
    "the price of a pool": (
        "gpu.pool.usdPerHour > 100 && gpu.pool.usdPerHour < 200",
        ("NodePool",),
        pool("p5.48xlarge", limits={"nvidia.com/gpu": "16"}),
        None,
        [],
    ),
    "a pool of another provider": (
        "gpu.pool.maxGpus <= 8",
        ("NodePool",),
        {
            **pool(),
            "spec": {"template": {"spec": {"nodeClassRef": {"group": "karpenter.azure.com", "kind": "AKSNodeClass"}}}},
        },
        None,
        ["not evaluated: the instance types of karpenter.azure.com are unknown"],
    ),
    "an instance type that is newer than the catalogue": (
        "gpu.pool.maxGpus <= 8",
        ("NodePool",),
        pool("p99.48xlarge"),
        None,
        ["not evaluated: instance type or family p99.48xlarge is unknown"],
    ),
    "GPUs of a scaler": (
        "gpu.scaler.maxGpus <= 16",
        ("ScaledObject",),
        scaled_object(maxReplicaCount=5),
        Cluster(deployment(4)),
        DENIED,
    ),
    "KEDA's default": ("gpu.scaler.maxGpus == 100.0", ("ScaledObject",), scaled_object(), Cluster(deployment(1)), []),
    "GPUs of an autoscaler": (
        "gpu.scaler.maxGpus == 6.0",
        ("HorizontalPodAutoscaler",),
        autoscaler(3),
        Cluster(deployment(2)),
        [],
    ),
    "a scaler of an unknown workload": (
        "gpu.scaler.maxGpus <= 16",
        ("ScaledObject",),
        scaled_object(),
        None,
        ["not evaluated: the Pod template of Deployment a is unknown"],
    ),
    "labels of the namespace": (
        "namespaceObject.metadata.labels['team'] == 'search'",
        ("Pod",),
        pod(),
        Cluster({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ml", "labels": {"team": "search"}}}),
        [],
    ),
    "a namespace that is unknown": (
        "namespaceObject.metadata.labels['team'] == 'search'",
        ("Pod",),
        pod(),
        None,
        ["not evaluated: namespace ml was not found, so its labels are unknown"],
    ),
    "an object without a namespace": ("namespaceObject == null", ("NodePool",), pool("g6.xlarge"), None, []),
    "a file without a namespace": (
        "request.namespace == 'ml'",
        ("Pod",),
        pod(namespace=""),
        None,
        ["not evaluated: the namespace of the object is unknown"],
    ),
    "a file has no user": (
        "request.userInfo.username == 'alice'",
        ("Pod",),
        pod(),
        None,
        ["not evaluated: the user that creates the object is unknown"],
    ),
    "the kind of a request": ("request.kind.kind == 'NodePool'", ("Pod", "NodePool"), pool("g6.xlarge"), None, []),
    "the group of a request": (
        "request.kind.group == 'karpenter.sh' && request.kind.version == 'v1'",
        ("NodePool",),
        pool("g6.xlarge"),
        None,
        [],
    ),
    "quantities as they are stored": (
        "object.spec.containers[0].resources.limits == {'nvidia.com/gpu': '1', 'cpu': '1500m', 'memory': '1536Mi', 'a': '0'}",
        ("Pod",),
        {
            **pod(),
            "spec": {
                "containers": [
                    {"resources": {"limits": {"nvidia.com/gpu": 1, "cpu": 1.5, "memory": "1.5Gi", "a": "0m"}}}
                ]
            },
        },
        None,
        [],
    ),
}


@pytest.mark.parametrize(("expression", "kinds", "manifest", "cluster", "expected"), CASES.values(), ids=CASES)
def test_a_policy_evaluates_an_object(
    expression: str, kinds: tuple[str, ...], manifest: Json, cluster: Cluster | None, expected: list[str]
) -> None:
    assert results(verdict_of(document(expression, kinds=kinds), request_of(manifest), cluster)) == expected


# As `resource.ParseQuantity` and `String` of apimachinery v0.36.3 give them.
STORED: dict[Any, str] = {
    1: "1",
    1.5: "1500m",
    1000: "1k",
    "1000m": "1",
    "1500m": "1500m",
    "0.5": "500m",
    "1.120": "1.120",
    "1000000": "1M",
    "1.5Gi": "1536Mi",
    "1024Ki": "1Mi",
    "1Gi": "1Gi",
    "8Gi": "8Gi",
    "512Ki": "512Ki",
    "0.5Ki": "512",
    "1e3": "1e3",
    "1.5e3": "1500",
    "12e5": "1200e3",
    "1E": "1E",
    "0Gi": "0",
    "-1500m": "-1500m",
    "not a quantity": "not a quantity",
}


@pytest.mark.parametrize(("written", "stored"), STORED.items(), ids=map(str, STORED))
def test_quantities_of_a_pod_are_read_as_the_api_server_stores_them(written: Any, stored: str) -> None:
    policy = document(f"object.spec.containers[0].resources.limits['nvidia.com/gpu'] == '{stored}'")

    assert results(verdict_of(policy, request_of(pod(written)))) == []


def test_a_finding_has_the_words_and_the_path_of_its_validation() -> None:
    policy = document(
        "gpu.pod.gpus <= params.maxGpus",
        params={"maxGpus": 2},
        validations=[
            {
                "expression": "gpu.pod.gpus <= params.maxGpus",
                "message": "requests too many GPUs",
                "messageExpression": "'requests ' + string(gpu.pod.gpus) + ' GPUs (maximum: ' + string(params.maxGpus) + ')'",
                "path": 'spec.containers[0].resources.limits["nvidia.com/gpu"]',
                "why": "GPUs of development are scarce.",
                "fix": "Request 2 GPUs.",
            }
        ],
    )

    (finding,) = verdict_of(policy, request_of(pod(8))).findings

    assert finding.message == "requests 8 GPUs (maximum: 2)"
    assert finding.path == ("spec", "containers", 0, "resources", "limits", "nvidia.com/gpu")
    assert (finding.why, finding.hint) == ("GPUs of development are scarce.", "Request 2 GPUs.")
    assert finding.stance is Stance.ENFORCE


def test_the_message_is_used_where_its_expression_has_no_value() -> None:
    validation = {"expression": "false", "message": "is denied", "messageExpression": "object.spec.missing"}

    assert results(verdict_of(document(validations=[validation]), request_of(pod()))) == DENIED


def test_a_message_is_one_line_of_bounded_length() -> None:
    validation = {"expression": "false", "message": "x", "messageExpression": "object.metadata.text"}
    manifest = pod()
    manifest["metadata"]["text"] = "a\nb" + "c" * 10_000

    (message,) = results(verdict_of(document(validations=[validation]), request_of(manifest)))

    assert message.startswith("a bccc")
    assert len(message) == 500


def test_the_policy_file_sets_parameters_modes_and_exemptions() -> None:
    policy = document("gpu.pod.gpus <= params.maxGpus", params={"maxGpus": 2})
    entry = {"mode": "warn", "params": {"maxGpus": 4}}
    exemption = {"policies": ["acme/*"], "reason": "a test", "owner": "ml", "expires": "2027-01-01", "names": ["a"]}

    def stances(**config: Any) -> list[Stance]:
        return [f.stance for f in verdict_of(policy, request_of(pod(8)), config=config).findings]

    assert stances() == [Stance.ENFORCE]
    assert stances(policies={"acme/example": entry}) == [Stance.WARN]
    assert stances(policies={"acme/example": {"params": {"maxGpus": 8}}}) == []
    assert stances(namespaces={"ml": {"policies": {"acme/example": {"mode": "off"}}}}) == []
    assert stances(exemptions=[exemption]) == [Stance.AUDIT]


NAMESPACES: dict[str, tuple[str, list[str]]] = {
    "a match": ("dev-a", DENIED),
    "no match": ("prod", []),
    "unknown": ("", ["not evaluated: the namespace of the object is unknown"]),
}


@pytest.mark.parametrize(("namespace", "expected"), NAMESPACES.values(), ids=NAMESPACES)
def test_a_policy_matches_namespaces(namespace: str, expected: list[str]) -> None:
    policy = document("false", match={"namespaces": ["dev-*"]})

    assert results(verdict_of(policy, request_of(pod(namespace=namespace)))) == expected


CONDITIONS: dict[str, tuple[tuple[str, ...], list[str]]] = {
    "all true": (("true", "object.metadata.name == 'a'"), DENIED),
    "a false one": (("true", "object.metadata.name == 'b'"), []),
    "a false one wins over an error": (("object.spec.missing == 1", "false"), []),
    "a false one wins over missing data": (("request.userInfo.username == 'a'", "1 == 2"), []),
    "an error": (
        ("object.spec.missing == 1",),
        ["match.conditions[0] cannot be evaluated: `missing` is missing"],
    ),
    "missing data": (
        ("request.userInfo.username == 'a'",),
        ["not evaluated: the user that creates the object is unknown"],
    ),
}


@pytest.mark.parametrize(("conditions", "expected"), CONDITIONS.values(), ids=CONDITIONS)
def test_conditions_decide_whether_a_policy_applies(conditions: tuple[str, ...], expected: list[str]) -> None:
    policy = document("false", match={"conditions": list(conditions)})

    assert results(verdict_of(policy, request_of(pod()))) == expected


def test_an_update_is_compared_with_the_old_object() -> None:
    policy = document(
        "oldObject == null || object.spec.containers[0].image == oldObject.spec.containers[0].image",
        match={"operations": ["CREATE", "UPDATE"]},
    )
    changed = pod()
    changed["spec"]["containers"][0]["image"] = "registry.example.com/app:2"

    def stances(manifest: Json) -> list[Stance]:
        request = request_of(manifest, Operation.UPDATE, old_object=pod())
        return [finding.stance for finding in verdict_of(policy, request).findings]

    assert stances(pod()) == []
    assert stances(changed) == [Stance.ENFORCE]


def test_what_an_object_had_before_an_update_is_a_warning() -> None:
    request = request_of(pod(8), Operation.UPDATE, old_object=pod(8))

    (finding,) = verdict_of(document("gpu.pod.gpus <= 2"), request).findings

    assert finding.stance is Stance.WARN


def test_a_delete_has_an_old_object_only() -> None:
    policy = document("object == null && oldObject.metadata.name == 'b'", match={"operations": ["DELETE"]})

    assert results(verdict_of(policy, request_of(pod(), Operation.DELETE, old_object=pod()))) == DENIED
    assert results(verdict_of(policy, request_of(pod()))) == []


def test_a_placeholder_makes_only_the_validations_that_depend_on_it_unknown() -> None:
    manifest = pod(labels={"team": Unknown("${TEAM}")})
    policy = document("object.metadata.labels['team'] == 'a'", "has(object.spec.priorityClassName)")

    verdict = verdict_of(policy, request_of(manifest, is_template=True))

    assert results(verdict) == ["is denied", "not evaluated: the value of placeholder ${TEAM} is unknown"]


# expressions, conditions -> whether only Pods that may ask for GPUs are sent
CONCERNS: dict[str, tuple[tuple[str, ...], tuple[str, ...], bool]] = {
    "a limit on GPUs": (("gpu.pod.gpus <= 2",), (), True),
    "a rule for GPUs": (("gpu.pod.gpus == 0.0 || has(object.metadata.labels)",), (), True),
    "a negated rule": (("!(gpu.pod.gpus > 0) || has(object.spec.x)",), (), True),
    "a conditional": (("gpu.pod.gpus > 0.5 ? has(object.spec.x) : true",), (), True),
    "a condition": (("has(object.spec.x)",), ("gpu.pod.gpus >= 1",), True),
    "a condition with another": (("has(object.spec.x)",), ("has(object.spec) && gpu.pod.gpus > 0",), True),
    "one rule for all Pods": (("gpu.pod.gpus <= 2", "has(object.spec.x)"), (), False),
    "a rule without GPUs": (("has(object.spec.x)",), (), False),
    "at least one GPU": (("gpu.pod.gpus >= 1",), (), False),
    "a condition that may hold": (("has(object.spec.x)",), ("gpu.pod.gpus > 0 || has(object.spec.y)",), False),
    "no GPUs": (("has(object.spec.x)",), ("gpu.pod.gpus == 0.0",), False),
    "less than no GPUs": (("gpu.pod.gpus < 0.0 || has(object.spec.x)",), (), False),
    "more than no GPUs": (("gpu.pod.gpus > 0.0 || has(object.spec.x)",), (), False),
    "other than no GPUs": (("gpu.pod.gpus != 0.0 || has(object.spec.x)",), (), False),
    "at most no GPUs": (("gpu.pod.gpus <= 0.0 || has(object.spec.x)",), (), True),
    "at least no GPUs": (("gpu.pod.gpus >= 0.0 || has(object.spec.x)",), (), True),
}


@pytest.mark.parametrize(("expressions", "conditions", "narrow"), CONCERNS.values(), ids=CONCERNS)
def test_a_policy_concerns_pods_without_gpus_where_it_may_find_something_in_them(
    expressions: tuple[str, ...], conditions: tuple[str, ...], *, narrow: bool
) -> None:
    (policy,) = load_documents([document(*expressions, match={"conditions": list(conditions)})], "x")

    assert policy.handlers[0].concerns == (MAY_DEMAND if narrow else EVERY_OBJECT)


NEEDS: dict[str, tuple[tuple[str, ...], str, set[str], set[str]]] = {
    "the object": (("Pod",), "object.metadata.name == 'a'", set(), set()),
    "GPUs": (("Pod",), "gpu.pod.gpus <= 2", {"ResourceClaim", "ResourceClaimTemplate", "DeviceClass"}, set()),
    "the class": (
        ("Pod",),
        "has(gpu.pod.workloadClass)",
        {"ResourceClaim", "ResourceClaimTemplate", "DeviceClass", "Namespace", "Job", "RayCluster"},
        set(),
    ),
    "the namespace": (("Pod",), "namespaceObject == null", {"Namespace"}, set()),
    "a pool": (("NodePool",), "gpu.pool.maxGpus <= 8", set(), {"instance-types"}),
    "a scaler": (
        ("ScaledObject",),
        "gpu.scaler.maxGpus <= 8",
        {"Deployment", "StatefulSet", "ReplicaSet", "ResourceClaim", "ResourceClaimTemplate", "DeviceClass"},
        set(),
    ),
}


@pytest.mark.parametrize(("kinds", "expression", "needed", "tables"), NEEDS.values(), ids=NEEDS)
def test_a_policy_needs_what_its_expressions_name(
    kinds: tuple[str, ...], expression: str, needed: set[str], tables: set[str]
) -> None:
    (policy,) = load_documents([document(expression, kinds=kinds)], "x")
    (handler,) = policy.handlers

    assert {need.kind.name for need in handler.needs} == needed
    assert {table.name for table in handler.tables} == tables


def test_a_kind_that_gpugate_does_not_know_has_a_plural() -> None:
    entry = {"apiVersion": "example.com/v1", "kind": "TrainingRun", "plural": "trainingruns"}
    manifest = {"apiVersion": "example.com/v1", "kind": "TrainingRun", "metadata": {"name": "a", "namespace": "ml"}}

    assert results(verdict_of(document("has(object.spec)", kinds=(entry,)), request_of(manifest))) == DENIED


def test_an_object_of_a_kind_without_namespaces_has_none() -> None:
    entry = {"apiVersion": "example.com/v1", "kind": "Tenant", "plural": "tenants", "namespaced": False}
    manifest = {"apiVersion": "example.com/v1", "kind": "Tenant", "metadata": {"name": "a"}}
    policy = document("request.namespace != '' && namespaceObject != null", kinds=(entry,))

    assert results(verdict_of(policy, request_of(manifest))) == DENIED
    assert (
        results(verdict_of({**policy, "match": {"kinds": [entry], "namespaces": ["ml"]}}, request_of(manifest))) == []
    )


def test_a_known_kind_by_its_version_is_the_known_one() -> None:
    entry = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "plural": "nodepools", "namespaced": False}

    (policy,) = load_documents([document("gpu.pool.maxGpus <= 8", kinds=(entry,))], "x")

    assert policy.kinds == (objects.NODE_POOL,)


SENT = (
    "has(object.metadata) && has(object.metadata.labels)",
    "object.metadata.?labels[?'team'].hasValue() || oldObject == null",
    "object.?spec.?containers.hasValue() && object.metadata.name == 'a'",
    "null != object && object.metadata.namespace == request.namespace",
)


@pytest.mark.parametrize("expression", SENT)
def test_a_policy_for_updates_reads_what_is_sent(expression: str) -> None:
    assert load_documents([document(expression)], "x")


def test_a_policy_for_new_objects_reads_every_field() -> None:
    policy = document("object.data.mode == 'a'", kinds=(CONFIG_MAP,), match={"operations": ["CREATE"]})
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "namespace": "ml"},
        "data": {"mode": "b"},
    }

    assert results(verdict_of(policy, request_of(manifest))) == DENIED


REFUSED: dict[str, tuple[Any, str, int | None]] = {
    "a list": ([], "the document is not a YAML mapping; start it with `apiVersion: gpugate.dev/v1`", None),
    "another kind": ({**document("true"), "kind": "Pod"}, "kind: must be Policy", None),
    "another version": ({**document("true"), "apiVersion": "v1"}, "apiVersion: must be gpugate.dev/v1", None),
    "an unknown key": (document("true", validation=[]), "validation: unknown key; did you mean `validations`?", None),
    "an unknown key of a validation": (
        document(validations=[{"expression": "true", "messge": "x"}]),
        "validations[0].messge: unknown key; did you mean `message`?",
        None,
    ),
    "an id without an organisation": (
        document("true", id="example"),
        "id: expected `str` matching regex '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?/[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'",
        None,
    ),
    "no validations": (document(), "validations: expected `array` of length >= 1", None),
    "an unknown kind": (
        document("true", kinds=("NodePol",)),
        "match.kinds[0]: unknown kind `NodePol`; did you mean `NodePool`?",
        None,
    ),
    "a name of several kinds": (
        document("true", kinds=("Provisioner",)),
        "match.kinds[0]: several kinds have the name Provisioner; write apiVersion, kind and plural of the kind",
        None,
    ),
    "a kind without a near one": (
        document("true", kinds=("Xyz",)),
        "match.kinds[0]: unknown kind `Xyz`; write apiVersion, kind and plural of the kind",
        None,
    ),
    "a boolean mode": (document("true", mode=True), "mode: must be off, audit, warn or enforce, not a boolean", None),
    "a syntax error": (
        document("object.spec ="),
        "validations[0].expression: character 13: unexpected character '='",
        12,
    ),
    "an unknown field of gpu": (
        document("gpu.pod.gps <= 2"),
        "validations[0].expression: character 9: unknown field `gpu.pod.gps`; did you mean `gpu.pod.gpus`?",
        8,
    ),
    "an integer beside a double": (
        document("gpu.pod.gpus == 0"),
        "validations[0].expression: character 14: `==` cannot compare double with int; write 0.0",
        13,
    ),
    "a product of an integer and a double": (
        document("gpu.pod.gpus * 2 <= 8"),
        "validations[0].expression: character 14: `*` does not accept (double, int); write 2.0",
        13,
    ),
    "an unknown function": (
        document("true", "object.metadata.name.startWith('a')"),
        "validations[1].expression: character 22: unknown function `startWith`; did you mean `startsWith`?",
        21,
    ),
    "a reserved word": (
        document("namespace.metadata.name == 'a'"),
        "validations[0].expression: character 1: `namespace` is a reserved word of CEL",
        0,
    ),
    "a condition that is not a truth value": (
        document("true", match={"conditions": ["true", "1"]}),
        "match.conditions[1]: character 1: the value is of type int; it must be bool",
        0,
    ),
    "a message that is not a string": (
        document(validations=[{"expression": "true", "message": "x", "messageExpression": "1"}]),
        "validations[0].messageExpression: character 1: the value is of type int; it must be string",
        0,
    ),
    "an invalid path": (
        document(validations=[{"expression": "true", "message": "x", "path": "spec..a"}]),
        'validations[0].path: invalid: write a path such as `spec.containers[0]` or `metadata.labels["team"]`',
        None,
    ),
    "a field that is not sent": (
        document("has(object.spec)", "object.status.phase != 'Failed'"),
        (
            "validations[1].expression: character 8: a change of only `object.status` is not sent to the webhook; "
            "read the spec, labels, annotations or ownerReferences, or match only CREATE"
        ),
        7,
    ),
    "metadata that is not sent": (
        document("true", match={"conditions": ["object.metadata.finalizers.size() == 0"]}),
        (
            "match.conditions[0]: character 17: a change of only `object.metadata.finalizers` is not sent to the webhook; "
            "read the spec, labels, annotations or ownerReferences, or match only CREATE"
        ),
        16,
    ),
    "the whole object": (
        document("object == oldObject"),
        (
            "validations[0].expression: character 1: a change of only `object` is not sent to the webhook; "
            "read the spec, labels, annotations or ownerReferences, or match only CREATE"
        ),
        0,
    ),
    "a word of another kind": (
        document("gpu.pool.maxGpus <= 8", kinds=("Pod", "NodePool")),
        "match.kinds: `gpu.pool` describes only NodePool; write a separate policy for Pod",
        None,
    ),
    "a parameter that is not one": (
        document("params.maxGpu <= 8", params={"maxGpus": 8}),
        "validations[0].expression: character 8: unknown field `params.maxGpu`; did you mean `params.maxGpus`?",
        7,
    ),
    "a name of a parameter": (
        document("true", params={"max-gpus": 8}),
        "params.max-gpus: invalid name: write a letter, then letters and digits, such as maxGpus",
        None,
    ),
    "a pattern that takes long": (
        document("object.metadata.name.matches('(a*)*b')"),
        (
            "validations[0].expression: character 30: the pattern is not supported: "
            "it repeats what repeats itself, or too much, which could take long"
        ),
        29,
    ),
}


@pytest.mark.parametrize(("refused", "message", "at"), REFUSED.values(), ids=REFUSED)
def test_an_invalid_document_is_refused(refused: Any, message: str, at: int | None) -> None:
    with pytest.raises(DocumentError) as caught:
        load_documents([document("true", id="acme/first"), refused], "policies.yaml")

    assert str(caught.value) == message
    assert (caught.value.origin, caught.value.document, caught.value.at) == ("policies.yaml", 1, at)


def test_ids_are_unique_and_documents_are_bounded() -> None:
    with pytest.raises(DocumentError, match="two policies have the id acme/example; rename one of them"):
        load_documents([document("true"), document("false")], "x")
    with pytest.raises(DocumentError, match=f"more than {MOST_DOCUMENTS} policies"):
        load_documents([document("true", id=f"acme/p{n}") for n in range(MOST_DOCUMENTS + 1)], "x")


def test_the_documentation_has_the_sections_of_every_policy() -> None:
    (policy,) = load_documents([document("true", instead="Ask first.", sources=["The handbook."])], "x")

    assert policy.title == "Example"
    assert policy.doc == (
        "Example.\n\n## Why is this bad?\nThe cluster has rules.\n\n## Instead\nAsk first.\n\n## Sources\n- The handbook."
    )


FEW_GPUS = """
apiVersion: gpugate.dev/v1
kind: Policy
id: acme/few-gpus-in-dev
title: Too many GPUs in a dev namespace
why: GPUs of development are scarce.
match: {kinds: [Pod], namespaces: [dev-*], conditions: [gpu.pod.gpus > 0]}
validations:
  - expression: gpu.pod.gpus <= 2
    message: requests more than 2 GPUs
examples:
  allowed:
    - apiVersion: v1
      kind: Pod
      metadata: {name: few, namespace: dev-a}
      spec: {containers: [{name: main, resources: {limits: {nvidia.com/gpu: 2}}}]}
  denied:
    - - {apiVersion: v1, kind: Namespace, metadata: {name: dev-a}}
      - apiVersion: v1
        kind: Pod
        metadata: {name: many, namespace: dev-a}
        spec: {containers: [{name: main, resources: {limits: {nvidia.com/gpu: 8}}}]}
"""


def test_the_examples_of_a_document_are_evaluated() -> None:
    policy = yaml.safe_load(FEW_GPUS)

    for example in examples_of(policy):
        *others, manifest = example.objects
        verdict = verdict_of(policy, request_of(manifest), Cluster(*others))
        assert (results(verdict) == []) is example.allowed
        assert example.policy == "acme/few-gpus-in-dev"
