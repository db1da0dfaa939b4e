"""Objects of Kubernetes itself: what strict decoding rejects, CEL syntax, and claims that a Pod does not declare."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from gpugate.policies.sdk.field import render
from gpugate.policies.sdk.objects import GroupVersionKind
from gpugate.policies.sdk.platform import Target
from gpugate.webhook.schemas.core import CoreObjects

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Path
    from gpugate.webhook.schemas.wording import SchemaProblem

POD = yaml.safe_load("""
metadata: {name: a, labels: {app: a}}
spec:
  nodeSelector: {zone: a}
  resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]
  tolerations: [{key: nvidia.com/gpu, operator: Exists, tolerationSeconds: 60}]
  volumes: [{name: data, emptyDir: {sizeLimit: 1Gi}}]
  initContainers: [{name: init, image: a}]
  containers:
    - name: main
      image: a
      env: [{name: A, value: "1"}]
      ports: [{containerPort: 80}]
      securityContext: {allowPrivilegeEscalation: false}
      resources: {limits: {nvidia.com/gpu: 1, cpu: "1"}, claims: [{name: gpu}]}
      livenessProbe: {httpGet: {port: http}}
""")
DEPLOYMENT = {"metadata": {"name": "a"}, "spec": {"replicas": 1, "selector": {"matchLabels": {}}, "template": POD}}
OBJECTS: dict[str, dict[str, Any]] = {
    "v1 Pod": POD,
    "apps/v1 Deployment": DEPLOYMENT,
    "batch/v1 CronJob": {"spec": {"schedule": "@daily", "jobTemplate": {"spec": {"template": POD}}}},
    "autoscaling/v2 HorizontalPodAutoscaler": {
        "spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "a", "name": "a"}}
    },
    "policy/v1 PodDisruptionBudget": {"spec": {"maxUnavailable": "10%"}},
    "v1 ResourceQuota": {"spec": {"hard": {"requests.nvidia.com/gpu": 8}}},
    "jobset.x-k8s.io/v1alpha2 JobSet": {"spec": {"replicatedJobs": [{"template": {"spec": {"template": POD}}}]}},
    "ray.io/v1 RayCluster": {"spec": {"headGroupSpec": {"template": POD}}},
}


def found(kind: str, obj: dict[str, Any], target: str = "1.36") -> list[SchemaProblem]:
    api_version, _, name = kind.partition(" ")
    whole = {"apiVersion": api_version, "kind": name, **obj}
    return list(CoreObjects(Target(kubernetes=target)).problems(GroupVersionKind.of(api_version, name), whole))


def changed(kind: str, path: Path, value: Any) -> dict[str, Any]:
    obj = copy.deepcopy(OBJECTS[kind])
    at: Any = obj
    for step in path[:-1]:
        at = at.setdefault(step, {}) if isinstance(at, dict) else at[step]
    at[path[-1]] = value
    return obj


@pytest.mark.parametrize("kind", OBJECTS)
def test_an_object_that_fits_has_no_problem(kind: str) -> None:
    assert found(kind, OBJECTS[kind]) == []


CONTAINER = ("spec", "containers", 0)
TEMPLATE = ("spec", "template")


@pytest.mark.parametrize(
    ("kind", "path", "near"),
    [
        ("v1 Pod", (*CONTAINER, "securityContext", "allowPrivilegedEscalation"), "allowPrivilegeEscalation"),
        ("v1 Pod", ("spec", "nodeselector"), "nodeSelector"),
        ("v1 Pod", ("metadata", "label"), "labels"),
        ("v1 Pod", ("specs",), "spec"),
        ("v1 Pod", ("spec", "resourceClaims", 0, "source"), ""),
        ("apps/v1 Deployment", (*TEMPLATE, *CONTAINER, "ressources"), "resources"),
        ("apps/v1 Deployment", ("spec", "replica"), "replicas"),
        ("batch/v1 CronJob", ("spec", "jobTemplate", *TEMPLATE, "spec", "volumes", 0, "emptydir"), ""),
        ("autoscaling/v2 HorizontalPodAutoscaler", ("spec", "maxReplica"), "maxReplicas"),
        ("policy/v1 PodDisruptionBudget", ("spec", "maxUnavailble"), "maxUnavailable"),
        ("v1 ResourceQuota", ("spec", "hards"), "hard"),
        (
            "jobset.x-k8s.io/v1alpha2 JobSet",
            ("spec", "replicatedJobs", 0, "template", *TEMPLATE, "spec", "toleration"),
            "",
        ),
        ("ray.io/v1 RayCluster", ("spec", "headGroupSpec", "template", *CONTAINER, "comand"), "command"),
    ],
)
def test_an_unknown_field_is_named_by_its_path(kind: str, path: Path, near: str) -> None:
    (problem,) = found(kind, changed(kind, path, 1))
    assert problem.path == path
    assert problem.message.startswith(f'unknown field "{render(path)}": ')
    assert near in problem.remedy


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((*CONTAINER, "env", 0, "value"), 1),
        ((*CONTAINER, "env", 0, "value"), True),
        ((*CONTAINER, "env"), {"A": "b"}),
        ((*CONTAINER, "ports", 0, "containerPort"), "80"),
        ((*CONTAINER, "ports", 0, "containerPort"), 2**31),
        ((*CONTAINER, "args"), "--all"),
        ((*CONTAINER, "resources", "limits", "cpu"), "1 core"),
        ((*CONTAINER, "resources", "limits"), ["cpu"]),
        ((*CONTAINER, "securityContext", "allowPrivilegeEscalation"), "false"),
        ((*CONTAINER, "livenessProbe", "httpGet", "port"), [80]),
        ((*CONTAINER, "livenessProbe", "httpGet", "port"), 2**31),
        (("spec", "nodeSelector", "zone"), 1),
        (("spec", "terminationGracePeriodSeconds"), 1.5),
        (("metadata", "labels", "app"), False),
        (("spec",), "a"),
    ],
)
def test_a_wrong_type_is_a_problem_at_its_field(path: Path, value: Any) -> None:
    problems = found("v1 Pod", changed("v1 Pod", path, value))
    assert [problem.path for problem in problems] == [path]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((*CONTAINER, "env"), None),
        ((*CONTAINER, "ports", 0, "containerPort"), 80.0),
        ((*CONTAINER, "resources", "limits", "cpu"), 0.5),
        ((*CONTAINER, "livenessProbe", "httpGet", "port"), 80),
        (("status",), {"phase": "Running", "unknownField": 1}),
        (("metadata", "managedFields"), [{"fieldsV1": {"f:metadata": {}}}]),
        # Texts that something else replaces first.
        (("spec", "terminationGracePeriodSeconds"), "${SECONDS}"),
        ((*CONTAINER, "resources", "limits", "cpu"), "{{ cpu }}"),
        ((*CONTAINER, "${EXTRA}"), 1),
    ],
)
def test_what_decodes_or_cannot_be_known_is_no_problem(path: Path, value: Any) -> None:
    assert found("v1 Pod", changed("v1 Pod", path, value)) == []


@pytest.mark.parametrize(
    ("target", "count"),
    [("1.33", 1), ("1.34", 0), ("1.36", 0), ("1.99", 0)],
)
def test_a_field_is_known_since_its_release(target: str, count: int) -> None:
    obj = changed("v1 Pod", (*CONTAINER, "env", 0), {"name": "A", "valueFrom": {"fileKeyRef": {"key": "a"}}})
    assert len(found("v1 Pod", obj, target)) == count


def test_of_a_later_release_only_types_are_checked() -> None:
    assert found("v1 Pod", changed("v1 Pod", ("spec", "later"), 1), "1.99") == []
    assert found("v1 Pod", changed("v1 Pod", ("spec", "nodeSelector"), "a"), "1.99")


@pytest.mark.parametrize("version", ["apps/v1beta1 Deployment", "batch/v2 Job", "example.com/v1 Pod"])
def test_of_other_versions_nothing_is_known(version: str) -> None:
    assert found(version, {"spec": {"unknown": 1}}) == []


@pytest.mark.parametrize("kind", ["v1 Pod", "apps/v1 Deployment", "ray.io/v1 RayCluster"])
@pytest.mark.parametrize("block", ["containers", "initContainers"])
def test_a_container_uses_only_claims_that_its_pod_declares(kind: str, block: str) -> None:
    prefix = {
        "v1 Pod": (),
        "apps/v1 Deployment": TEMPLATE,
        "ray.io/v1 RayCluster": ("spec", "headGroupSpec", "template"),
    }
    path = (*prefix[kind], "spec", block, 0, "resources")
    (problem,) = found(kind, changed(kind, path, {"claims": [{"name": "gpu"}, {"name": "gpus"}]}))
    assert problem.path == (*path, "claims", 1, "name")
    assert problem.message == 'claim "gpus" is not declared in spec.resourceClaims of the Pod (gpu)'


def test_a_pod_without_claims_declares_none() -> None:
    (problem,) = found("v1 Pod", changed("v1 Pod", ("spec", "resourceClaims"), None))
    assert "(none)" in problem.message


def claim(expression: str) -> dict[str, Any]:
    selectors = [{"cel": {"expression": expression}}]
    return {
        "spec": {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "a", "selectors": selectors}}]}}
    }


VALID = [
    'device.driver == "gpu.nvidia.com"',
    'device.attributes["gpu.nvidia.com"].type == "mig" && device.attributes["gpu.nvidia.com"].profile == "1g.5gb"',
    'device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("40Gi")) >= 0',
    "device.attributes['gpu.nvidia.com'].productName.lowerAscii().matches('^.*a100.*$')",
    '"dra.example.com" in device.attributes && device.attributes["dra.example.com"].?index.orValue(0) < 2',
    "cel.bind(dra, device.attributes['a'], dra.b == 1)",
    "device.attributes['a'].`b-c` == 1",
    "[?optional.of(1)].size() == 1",
    "Type{field: 1} == null",
    "device.driver ==\n  'a' // a comment",
    "${EXPRESSION}",
    "(" * 60 + "true" + ")" * 60,
    "!" * 60 + "true",
    " == ".join(["true"] * 60),
    "device" + ".a" * 60 + " == 1",
    "1 in [" + ", ".join(["1"] * 2_000) + "]",
]
INVALID = [
    'device.driver == "gpu.nvidia.com',
    "device.driver = 'a'",
    "device.attributes['a'.b == 1",
    "device.driver == 'a' &&",
    "device.driver == 'a' and true",
]


@pytest.mark.parametrize("expression", VALID)
def test_an_expression_that_may_be_valid_is_no_problem(expression: str) -> None:
    assert found("resource.k8s.io/v1 ResourceClaim", claim(expression)) == []


@pytest.mark.parametrize("expression", INVALID)
def test_an_expression_with_a_syntax_error_is_a_problem(expression: str) -> None:
    (problem,) = found("resource.k8s.io/v1 ResourceClaim", claim(expression))
    assert render(problem.path).endswith("exactly.selectors[0].cel.expression")
    assert problem.message.startswith("invalid CEL expression: ")


@pytest.mark.parametrize(
    ("kind", "obj"),
    [
        ("resource.k8s.io/v1 ResourceClaimTemplate", {"spec": claim("a ==")}),
        ("resource.k8s.io/v1beta1 DeviceClass", {"spec": {"selectors": [{"cel": {"expression": "a =="}}]}}),
        (
            "resource.k8s.io/v1beta1 ResourceClaim",
            {"spec": {"devices": {"requests": [{"name": "a", "selectors": [{"cel": {"expression": "a =="}}]}]}}},
        ),
    ],
)
def test_templates_device_classes_and_former_versions_have_expressions_too(kind: str, obj: dict[str, Any]) -> None:
    assert len(found(kind, obj)) == 1


def test_objects_in_an_app_wrapper_are_checked_where_they_are() -> None:
    held = {"apiVersion": "batch/v1", "kind": "Job", "spec": {"backofLimit": 1}}
    problems = found("workload.codeflare.dev/v1beta2 AppWrapper", {"spec": {"components": [{"template": held}]}})
    assert [render(problem.path) for problem in problems] == ["spec.components[0].template.spec.backofLimit"]


def test_of_any_number_of_problems_the_first_are_reported() -> None:
    assert len(found("v1 Pod", {"spec": {f"field{n}": 1 for n in range(10_000)}})) == 100
