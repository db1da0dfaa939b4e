"""What `check` says of manifests with placeholders, with every policy as shipped."""

from __future__ import annotations

import copy
import datetime as dt
import json as decoder
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.ruleset import bind
from gpugate.webhook.check.options import FailOn, Options
from gpugate.webhook.check.run import check
from gpugate.webhook.config import starter
from gpugate.webhook.manifests.documents import Document, read_text
from gpugate.webhook.manifests.inputs import Input
from gpugate.webhook.manifests.placeholders import TOOLS, Declared
from gpugate.webhook.project.read import Template
from gpugate.webhook.report import json
from gpugate.webhook.report.located import Severity, Sort

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Json
    from gpugate.policies.sdk.field import Path as FieldPath
    from gpugate.webhook.report.located import Located, Report

POLICY = "nodeclasses/unexpanded-placeholder"


def run(text: str, name: str = "f.yaml", **options: object) -> Report:
    how = Options(dt.date(2026, 1, 1), known=frozenset(policy.id for policy in CATALOG), **options)  # type: ignore[arg-type] # a test's
    return check([Input(name, explicit=True, data=text.encode())], bind(CATALOG, starter.configuration()), how).report


def about(report: Report) -> list[Located]:
    return [finding for finding in report.findings if finding.policy == POLICY]


NODE_CLASS = """\
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata:
  name: gpu
spec:
  role: {role}
  amiSelectorTerms: [{{alias: bottlerocket@v1.49.0}}]
  subnetSelectorTerms: [{{tags: {{karpenter.sh/discovery: {cluster}}}}}]
  securityGroupSelectorTerms: [{{tags: {{karpenter.sh/discovery: {cluster}}}}}]
  tags: {{Team: ml, CostCenter: cc-1, Environment: prod, {tag}: owned}}
  blockDeviceMappings:
  - {{deviceName: /dev/xvda, ebs: {{volumeSize: 100Gi, encrypted: true}}}}
"""
ONE_FINDING = {
    "envsubst": (
        NODE_CLASS.format(role='"role-${CLUSTER}"', cluster='"$CLUSTER"', tag='"kubernetes.io/cluster/${CLUSTER}"'),
        Severity.NOTE,
        "contains placeholders of envsubst: ${CLUSTER} (lines 6, 10), $CLUSTER (lines 8, 9)",
    ),
    "Terraform": (
        NODE_CLASS.format(role="${role}", cluster='"${cluster}"', tag="x"),
        Severity.NOTE,
        "contains placeholders of Terraform: ${role} (line 6), ${cluster} (lines 8, 9)",
    ),
    "Go templates": (
        NODE_CLASS.format(role="{{ .Role }}", cluster='"{{ .Cluster }}"', tag="x"),
        Severity.NOTE,
        "contains placeholders of Go templates or Jinja: {{ .Role }} (line 6), {{ .Cluster }} (lines 8, 9)",
    ),
    "a manual": (
        NODE_CLASS.format(role="<ROLE>", cluster="<<CLUSTER_NAME>>", tag="x"),
        Severity.NOTE,
        "contains placeholders to replace by hand: <ROLE> (line 6), <<CLUSTER_NAME>> (lines 8, 9)",
    ),
    "both": (
        NODE_CLASS.format(role="${ROLE}", cluster="<CLUSTER>", tag="x"),
        Severity.NOTE,
        "contains placeholders to replace by hand: <CLUSTER> (lines 8, 9), ${ROLE} (line 6)",
    ),
    "a node class of Auto Mode": (
        "apiVersion: eks.amazonaws.com/v1\nkind: NodeClass\nmetadata: {name: a}\nspec: {role: <ROLE>}\n",
        Severity.NOTE,
        "contains placeholders to replace by hand: <ROLE> (line 4)",
    ),
    "an image": (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n  - {name: a, image: IMG_PLACEHOLDER}\n",
        Severity.NOTE,
        "contains placeholders to replace by hand: IMG_PLACEHOLDER (line 6)",
    ),
    "a kind without policies": (
        "apiVersion: example.com/v1\nkind: Bucket\nmetadata: {name: a}\nspec: {name: <BUCKET>}\n",
        Severity.NOTE,
        "contains placeholders to replace by hand: <BUCKET> (line 4)",
    ),
    "several documents": (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: $NAME}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: $NAME}\n",
        Severity.NOTE,
        "contains placeholders of envsubst: $NAME (lines 3, 7)",
    ),
    "items of a list": (
        "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: $NAME}\n",
        Severity.NOTE,
        "contains placeholders of envsubst: $NAME (line 6)",
    ),
}


@pytest.mark.parametrize(("text", "severity", "message"), ONE_FINDING.values(), ids=ONE_FINDING)
def test_one_finding_names_all_placeholders_of_a_file(text: str, severity: Severity, message: str) -> None:
    report = run(text)

    assert [(finding.severity, finding.message) for finding in about(report)] == [(severity, message)]
    assert not [finding for finding in report.findings if finding.sort is not Sort.VIOLATION]


def test_files_for_one_tool_are_one_finding() -> None:
    tool, other = "metadata: {name: a}\nspec: {role: '${ROLE}'}\n", "metadata: {name: b}\nspec: {role: '${NAME}'}\n"
    manual = "metadata: {name: c}\nspec: {role: <ROLE>}\n"
    head = "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\n"
    files = [
        Input(f"{number}.yaml", explicit=True, data=(head + text).encode())
        for number, text in enumerate((tool, manual, other))
    ]

    found = about(check(files, bind(CATALOG, starter.configuration()), Options(dt.date(2026, 11, 21))).report)

    assert [(each.message, each.location.file, [more.location.file for more in each.related]) for each in found] == [
        ("contains placeholders of envsubst: ${ROLE} (line 4)", "0.yaml", ["2.yaml"]),
        ("contains placeholders to replace by hand: <ROLE> (line 4)", "1.yaml", []),
    ]


def test_that_a_file_is_a_template_never_counts() -> None:
    manual, tool = ONE_FINDING["an image"][0], ONE_FINDING["several documents"][0]

    assert [run(text, schemas=False, fail_on=FailOn.WARN).exit_code for text in (manual, tool)] == [0, 0]


NONE = {
    "a template of a kind without policies": "apiVersion: example.com/v1\nkind: App\nmetadata: {name: a}\nspec: {x: '${y}'}\n",
    "the syntax of a workflow": "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {name: a}\nspec:\n  templates:\n  - {name: a, container: {image: '{{inputs.parameters.image}}'}}\n",
    "scripts": "apiVersion: v1\nkind: Pod\nmetadata: {name: a, annotations: {x: '{{ $y }}'}}\nspec:\n  containers:\n  - name: a\n    command: [sh, -c, 'echo ${HOME} <FILE']\n    args: ['$(NODE)', $HOME]\n    env: [{name: A, value: '${B}'}]\n",
    "what a shell of KubeRay expands": "apiVersion: ray.io/v1\nkind: RayJob\nmetadata: {name: a}\nspec:\n  entrypoint: python main.py --out $OUT_DIR\n  rayClusterSpec:\n    headGroupSpec: {rayStartParams: {redis-password: '$REDIS_PASSWORD'}}\n",
    "the data of a ConfigMap": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: '${sys:y}', z: <B>}\n",
    "a schema": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a}\nspec: {x: <NAME>}\n",
    "user data": "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: a}\nspec: {userData: 'echo ${A}'}\n",
}


@pytest.mark.parametrize("text", NONE.values(), ids=NONE)
def test_signs_that_mean_something_there_are_no_placeholders(text: str) -> None:
    assert about(run(text)) == []


WORKLOAD = """\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: a, labels: {{team: {team}, cost-center: cc-1}}}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: a}}}}
  template:
    metadata: {{labels: {{app: a, team: {team}, cost-center: cc-1}}}}
    spec:
      containers:
      - name: a
        image: a
        resources: {{limits: {{nvidia.com/gpu: {gpus}}}}}
"""
VALUES = ("${N}", "$N", "${n}", "{{ .n }}", "{{ .n | default 1 }}", "<N>", "N_PLACEHOLDER", "%{ if x }1%{ endif }")


@pytest.mark.parametrize("value", VALUES)
def test_a_value_that_is_not_known_has_no_wrong_type(value: str) -> None:
    # A Terraform directive begins with a character that YAML reserves.
    written = f"'{value}'" if value.startswith("%") else value
    report = run(WORKLOAD.format(team="ml", replicas=written, gpus=written))

    assert {finding.sort for finding in report.findings} <= {Sort.VIOLATION}
    assert report.exit_code == 0


def test_a_policy_that_needs_an_unknown_value_is_not_evaluated() -> None:
    report = run(WORKLOAD.format(team="ml", replicas=1, gpus="${GPUS}"))

    assert {finding.policy for finding in report.findings} == {POLICY}
    skipped = {each.policy for each in report.skipped if each.reason == "the value of placeholder ${GPUS} is unknown"}
    assert "pods/missing-gpu-toleration" in skipped


def test_a_policy_that_does_not_need_it_is() -> None:
    report = run(WORKLOAD.format(team="ml", replicas="${N}", gpus=1))

    assert "pods/missing-gpu-toleration" in {finding.policy for finding in report.findings}


def test_a_label_whose_value_is_not_known_is_not_missing() -> None:
    report = run(WORKLOAD.format(team="${TEAM}", replicas=1, gpus=1))

    assert "pods/missing-cost-labels" not in {finding.policy for finding in report.findings}


CLAIMED = """\
apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  tolerations: [{key: nvidia.com/gpu, operator: Exists}]
  resourceClaims: [{name: gpu, resourceClaimName: gpu}]
  containers: [{name: a, image: a, resources: {claims: [{name: '%s'}]}}]
"""


def test_a_container_whose_claim_is_not_known_may_use_a_gpu() -> None:
    policy = "pods/gpu-node-squatter"
    report = run(CLAIMED % "${CLAIM}")

    assert policy not in {finding.policy for finding in report.findings}
    assert policy in {each.policy for each in report.skipped}


def test_what_may_be_a_password_is_not_quoted() -> None:
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n  - name: a\n    image: a\n    env: [{name: NVIDIA_VISIBLE_DEVICES, value: $ecret}]\n    resources: {limits: {nvidia.com/gpu: 1}}\n"
    report = run(pod)

    assert any(each.reason == "the value of placeholder under env is unknown" for each in report.skipped)
    assert "$ecret" not in json.write(report)


def test_zones_that_are_not_known_hide_nothing_else_of_a_pool() -> None:
    pool = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: gpu}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: gpu}
      requirements:
      - {key: node.kubernetes.io/instance-type, operator: In, values: [p5.48xlarge]}
      - {key: topology.kubernetes.io/zone, operator: In, values: [%s]}
"""
    open_zone, known = (run(pool % zone) for zone in ("<AZ>", "us-east-1a, us-east-1b"))

    expected = {finding.policy for finding in known.findings}
    assert "nodepools/missing-gpu-limit" in expected
    assert {finding.policy for finding in open_zone.findings} == {*expected, POLICY}


DECLARED = {
    "a folder": ("infra/**", "envsubst", 0),
    "a name at any depth": ("*.yaml", "terraform", 0),
    "another folder": ("apps/**", "envsubst", 1),
    "a tool that does not fill these in": ("infra/**", "jinja", 1),
    "any tool": ("infra/**", "sed", 0),
}


@pytest.mark.parametrize(("pattern", "tool", "count"), DECLARED.values(), ids=DECLARED)
def test_a_declared_template_has_no_finding(pattern: str, tool: str, count: int) -> None:
    text = ONE_FINDING["envsubst"][0]

    report = run(text, "infra/a/f.yaml", templates=(Declared(pattern, tool),))

    assert len(about(report)) == count
    assert not [finding for finding in report.findings if finding.sort is not Sort.VIOLATION]


def test_every_tool_of_a_project_is_known() -> None:
    tools = msgspec.json.schema(Template)["$defs"]["Template"]["properties"]["tool"]["enum"]

    assert set(tools) == set(TOOLS)


def test_a_placeholder_that_the_tool_does_not_know_stays_one() -> None:
    text = ONE_FINDING["both"][0]

    (finding,) = about(run(text, templates=(Declared("*.yaml", "envsubst"),)))

    assert finding.message == "contains placeholders to replace by hand: <CLUSTER> (lines 8, 9)"


def test_a_comment_lets_the_finding_pass() -> None:
    text = ONE_FINDING["an image"][0].replace(
        "IMG_PLACEHOLDER}", f"IMG_PLACEHOLDER}}  # gpugate: ignore[{POLICY}] later"
    )

    report = run(text)

    assert (about(report), [each.finding.policy for each in report.suppressed]) == ([], [POLICY])


def test_a_comment_lets_it_pass_in_a_template_that_is_not_yaml() -> None:
    text = f"apiVersion: v1\nkind: Pod\nmetadata:\n  name: {{{{ .N }}}}  # gpugate: ignore[{POLICY}] rendered by Go\n"

    assert about(run(text)) == []


def test_no_fix_is_made_of_an_unknown_value() -> None:
    old = """\
apiVersion: karpenter.sh/v1beta1
kind: NodePool
metadata: {name: ${NAME}, labels: {a: ${A}}}
spec: {template: {spec: {nodeClassRef: {name: ${CLASS}}, requirements: []}}}
"""
    report = run(old)

    assert "${NAME}" in json.write(report)


BLOCKS = {
    "metadata": "apiVersion: v1\nkind: Pod\nmetadata: {{ toYaml .Meta }}\n",
    "items": "apiVersion: v1\nkind: PodList\nmetadata: {name: a}\nitems: {{ toYaml .Items }}\n",
    "a Pod template": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {selector: {}, template: '{{ .T }}'}\n",
    "a spec": "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: a}\nspec: ${SPEC}\n",
    "containers": "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: '{{ .C }}'}\n",
    "labels": "apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: '{{ .L }}', annotations: '{{ .A }}'}\n",
    "an environment": "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, env: '{{ .E }}'}]}\n",
    "a claim of devices": "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: a}\nspec: {devices: {requests: '{{ .R }}'}}\n",
    "a template of a workflow": "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {name: a}\nspec: {templates: [{name: a, container: '{{ .C }}'}]}\n",
    "triggers": "apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: a}\nspec: {scaleTargetRef: {name: a}, triggers: '{{ .T }}'}\n",
}


@pytest.mark.parametrize("text", BLOCKS.values(), ids=BLOCKS)
def test_a_block_that_is_not_known_is_neither_wrong_nor_an_error(text: str) -> None:
    report = run(text)

    assert {finding.sort for finding in report.findings} <= {Sort.VIOLATION}
    assert report.objects == 1


def test_a_comment_at_another_placeholder_is_not_of_no_use() -> None:
    text = ONE_FINDING["a manual"][0].replace(
        "<<CLUSTER_NAME>>}}]", f"<<CLUSTER_NAME>>}}}}]  # gpugate: ignore[{POLICY}] ours"
    )

    assert [finding.sort for finding in run(text).findings if finding.sort is Sort.IGNORE] == []


def test_many_placeholders_are_counted() -> None:
    labels = "".join(f"    l{i}: $VALUE_{i}\n" for i in range(13))
    image = "".join("  - {name: a, image: $IMAGE}\n" for _ in range(7))
    (finding,) = about(
        run(f"apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  labels:\n{labels}spec:\n  containers:\n{image}")
    )

    assert finding.message.endswith("$VALUE_9 (line 15) and 4 more")


def test_an_object_with_an_unknown_kind_is_passed_over() -> None:
    report = run("apiVersion: v1\nkind: ${KIND}\nmetadata: {name: a}\n")

    assert ([part.reason.value for part in report.passed], report.findings) == (["template"], ())


def test_what_is_looked_up_is_not_taken_from_unknown_values() -> None:
    claim = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: ml\n  labels: {team: %s, cost-center: cc}\n"
    pod = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: ml}\nspec:\n  containers:\n  - name: a\n    image: a\n    resources: {limits: {nvidia.com/gpu: 1}}\n"
    known, unknown = (run(claim % value + pod, complete_context=True) for value in ("search", "${TEAM}"))

    patched = "gpugate adds the label team: search of namespace ml"
    assert any(finding.message.startswith(patched) for finding in known.findings)
    assert not any("${TEAM}" in f.message for f in unknown.findings if f.policy != POLICY)
    assert any(each.policy == "pods/missing-cost-labels" for each in unknown.skipped)


EXAMPLES = sorted((Path(__file__).parents[3] / "policies").glob("*/examples/*/*.yaml"))[::9]


def places(value: Json, path: FieldPath = ()) -> Iterator[FieldPath]:
    """Yield the path of each value below the head of an object."""
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        if path or key not in {"apiVersion", "kind"}:
            yield (*path, key)
            yield from places(member, (*path, key))


def with_placeholder(values: list[Any], path: FieldPath) -> str:
    changed = copy.deepcopy(values)
    parent = changed[-1]
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = "${X}"
    return "\n---\n".join(map(decoder.dumps, changed))


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_a_value_that_is_not_known_makes_no_finding(file: Path) -> None:
    values: list[Any] = [part.value for part in read_text("f", file.read_text()) if isinstance(part, Document)]
    paths = list(places(values[-1]))
    if values[-1]["kind"] == "PolicyConfig" or not paths:
        pytest.skip("has no object to change")
    before = {(f.policy, f.path) for f in run("\n---\n".join(map(decoder.dumps, values)), schemas=False).findings}

    for path in random.Random(file.stem).sample(paths, min(2, len(paths))):  # noqa: S311 -- which values, not a secret
        report = run(with_placeholder(values, path), schemas=False)
        # A NodePool with an unknown value is not looked up, and a node class without a known NodePool gets warnings.
        of_classes = "nodeclasses/" if values[-1]["kind"] == "NodePool" else POLICY
        found = (f for f in report.findings if f.policy != POLICY and not f.policy.startswith(of_classes))
        assert {(f.policy, f.path) for f in found} - before == set(), path


def test_findings_show_names_with_placeholders_as_they_are_written() -> None:
    text = "apiVersion: v1\nkind: Pod\nmetadata: {name: '${A}-x', namespace: '${B}'}\nspec: {containers: [{name: a, image: a:1, resources: {limits: {nvidia.com/gpu: 1}}}]}\n"

    report = run(f"{text}---\n{text}")

    (first, _) = (each for each in report.findings if each.policy == "pods/missing-cost-labels")
    assert first.hint == "add the labels to the Pod or to namespace ${B}"
    assert {(each.object.namespace, each.object.name) for each in report.findings if each.object} == {
        ("${B}", "${A}-x")
    }
    assert report.remarks == ()  # the two Pods may become different ones
