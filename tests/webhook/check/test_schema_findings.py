"""What API servers refuse, among the findings of a run."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pytest

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import parse_config
from gpugate.policies.engine.ruleset import bind
from gpugate.webhook.check import baseline
from gpugate.webhook.check.options import Options
from gpugate.webhook.check.run import CheckResult, check
from gpugate.webhook.manifests.inputs import expand
from gpugate.webhook.report.located import Located, Severity, Sort

if TYPE_CHECKING:
    from pathlib import Path

POOL = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: cpu
spec:
  disruption:
    consolidateAfter: 30m
    budgets:
      - nodes: "1"
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: cpu}
      requirements:
        - {key: karpenter.k8s.aws/instance-category, operator: In, values: [c, m]}
"""


def run(tmp_path: Path, text: str, config: dict[str, object] | None = None, **options: object) -> CheckResult:
    (tmp_path / "a.yaml").write_text(text, encoding="utf-8")
    head = {"apiVersion": "gpugate.dev/v1", "kind": "PolicyConfig"}
    ruleset = bind(CATALOG, parse_config({**head, **(config or {})}))
    how = Options(today=dt.date(2026, 1, 1), known=[policy.id for policy in CATALOG], **options)  # type: ignore[arg-type] # as given
    return check(list(expand([str(tmp_path / "a.yaml")])), ruleset, how)


def told(result: CheckResult) -> list[tuple[str, str, int, int]]:
    return [(_code(f), f.path, f.location.line, f.location.column) for f in result.report.findings if _counts(f)]


def _counts(finding: Located) -> bool:
    return finding.severity is Severity.ERROR


def _code(finding: Located) -> str:
    return finding.policy or finding.sort.value


def test_an_object_that_fits_its_schema_has_no_finding(tmp_path: Path) -> None:
    result = run(tmp_path, POOL)

    assert (told(result), result.exit_code) == ([], 0)


def test_what_is_refused_is_an_error_at_its_place(tmp_path: Path) -> None:
    result = run(tmp_path, POOL.replace("consolidateAfter: 30m", "consolidateAfter: 1d"))
    found = result.report.findings[0]

    assert (told(result), result.exit_code) == ([("schema", "spec.disruption.consolidateAfter", 7, 23)], 1)
    assert (found.sort, str(found.object), found.stance) == (Sort.SCHEMA, "NodePool/cpu", None)
    assert "    consolidateAfter: 1d" in found.location.excerpt
    assert found.hint == "write a duration in hours, minutes and seconds, such as 720h or 1h30m, or Never"


def test_what_a_policy_denies_at_the_same_field_is_told_once(tmp_path: Path) -> None:
    result = run(tmp_path, POOL.replace(", name: cpu}", ', name: ""}'))

    assert told(result) == [("nodepools/incomplete-node-class-ref", "spec.template.spec.nodeClassRef.name", 12, 68)]


def test_what_a_policy_denies_within_a_rules_value_is_told_once(tmp_path: Path) -> None:
    text = POOL.replace('nodes: "1"', '{nodes: "1", schedule: "@daily"}')
    codes = [[code for code, *_ in told(run(tmp_path, pool))] for pool in (text, text.replace("[c, m]", "[p, g]"))]

    assert [("schema" in found, "nodepools/invalid-budget" in found) for found in codes] == [
        (True, False),
        (False, True),
    ]


CLASS = """\
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata:
  name: gpu
spec:
  role: KarpenterNodeRole-prod
  amiSelectorTerms: [{alias: al2023@v20261015}]
  subnetSelectorTerms: [{tags: {karpenter.sh/discovery: prod}}]
  securityGroupSelectorTerms: [{tags: {karpenter.sh/discovery: prod}}]
  tags:
    Environment: production
    CostCenter: CC-1234
    Team: search
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: gpu
spec:
  disruption: {consolidateAfter: 30m}
  limits: {nvidia.com/gpu: "8"}
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: gpu}
      requirements:
        - {key: karpenter.k8s.aws/instance-family, operator: In, values: [g5, g6]}
      taints: [{key: nvidia.com/gpu, effect: NoSchedule}]
"""
BUDGETS = """\
  disruption:
    consolidateAfter: 30m
    budgets:
      - {nodes: "1", schedule: "@daily", duration: 8h}
      - {nodes: "1", schedule: "@weekly", duration: 8h}
"""
TAGS: dict[str, object] = {"policies": {"nodeclasses/missing-cost-tags": {"mode": "enforce"}}}
OTHER_FIELDS = {
    "a denial of the field that a rule refuses": (
        CLASS.replace("Team: search", "Team: search\n    karpenter.sh/nodepool: gpu"),
        {"nodeclasses/invalid-tag"},
    ),
    "a denial of another field in the value of a rule": (
        CLASS.replace("Team: search", "Team: TBD\n    karpenter.sh/nodepool: gpu").replace("CC-1234", '""'),
        {"nodeclasses/invalid-tag", "nodeclasses/missing-cost-tags"},
    ),
    "a denial of the whole value of a rule": (
        CLASS.replace("    Team: search\n", "    karpenter.sh/nodepool: gpu\n"),
        {"nodeclasses/invalid-tag", "nodeclasses/missing-cost-tags"},
    ),
    "a denial of another field only": (
        CLASS.replace("Team: search", "Team: TBD").replace(
            "alias: al2023@v20261015", "alias: al2023@v20261015, id: ami-1"
        ),
        {"nodeclasses/missing-cost-tags", "schema"},
    ),
    "two denials of the fields that one rule refuses": (
        CLASS.replace("  disruption: {consolidateAfter: 30m}\n", BUDGETS).replace(", duration: 8h}", "}"),
        {"nodepools/invalid-budget"},
    ),
}


@pytest.mark.parametrize(("text", "codes"), OTHER_FIELDS.values(), ids=OTHER_FIELDS)
def test_no_denial_of_another_field_hides_a_rule(text: str, codes: set[str], tmp_path: Path) -> None:
    assert {code for code, *_ in told(run(tmp_path, text, TAGS))} == codes


def test_a_denial_that_a_comment_suppresses_hides_no_rule(tmp_path: Path) -> None:
    comment = "    karpenter.sh/nodepool: gpu  # gpugate: ignore[nodeclasses/invalid-tag] for the bill\n"
    text = CLASS.replace("    Team: search\n", f"    Team: TBD\n{comment}")

    assert {code for code, *_ in told(run(tmp_path, text, TAGS))} == {"nodeclasses/missing-cost-tags", "schema"}


def test_a_field_of_a_wrong_type_that_policies_read_is_told_once(tmp_path: Path) -> None:
    result = run(tmp_path, POOL.replace("30m", "30"))

    assert told(result) == [("malformed", "spec.disruption.consolidateAfter", 7, 23)]


@pytest.mark.parametrize("mode", ["warn", "audit", "off"])
def test_a_policy_that_does_not_deny_hides_nothing(tmp_path: Path, mode: str) -> None:
    config: dict[str, object] = {"policies": {"nodepools/incomplete-node-class-ref": {"mode": mode}}}
    result = run(tmp_path, POOL.replace(", name: cpu}", ', name: ""}'), config)

    assert told(result) == [("schema", "spec.template.spec.nodeClassRef.name", 12, 68)]


def test_a_comment_lets_the_policy_pass_and_not_the_api_server(tmp_path: Path) -> None:
    comment = "  # gpugate: ignore[nodepools/incomplete-node-class-ref] the name comes later"
    result = run(tmp_path, POOL.replace(", name: cpu}", f', name: ""}}{comment}'))

    assert told(result) == [("schema", "spec.template.spec.nodeClassRef.name", 12, 68)]


def test_schemas_can_be_left_out(tmp_path: Path) -> None:
    result = run(tmp_path, POOL.replace("consolidateAfter: 30m", "consolidateAfter: 1d"), schemas=False)

    assert (told(result), result.exit_code) == ([], 0)


def test_the_target_of_the_policy_file_decides(tmp_path: Path) -> None:
    text = POOL.replace("spec:\n", "spec:\n  replicas: 3\n", 1)

    assert told(run(tmp_path, text)) == []
    assert told(run(tmp_path, text, {"target": {"karpenter": "1.3"}})) == [("schema", "spec.replicas", 6, 13)]


def test_a_kind_that_no_policy_judges_is_held_against_its_schema(tmp_path: Path) -> None:
    text = "apiVersion: keda.sh/v1alpha1\nkind: TriggerAuthentication\nmetadata:\n  name: a\nspec:\n  secretTargetRefs: []\n"

    assert told(run(tmp_path, text)) == [("schema", "spec.secretTargetRefs", 6, 21)]


def test_an_object_in_a_list_is_found_at_its_place(tmp_path: Path) -> None:
    items = "\n".join(f"    {line}" if line else "" for line in POOL.splitlines()).replace("    api", "  - api", 1)
    result = run(tmp_path, f"apiVersion: v1\nkind: List\nitems:\n{items.replace('30m', '1d')}\n")

    assert told(result) == [("schema", "spec.disruption.consolidateAfter", 10, 27)]


DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: web
spec:
  template:
    spec:
      containers:
        - name: web
          securityContext:
            allowPrivilegedEscalation: false
"""


def test_a_typo_in_a_workload_is_named_as_kubectl_names_it(tmp_path: Path) -> None:
    (finding,) = run(tmp_path, DEPLOYMENT).report.findings

    path = "spec.template.spec.containers[0].securityContext.allowPrivilegedEscalation"
    assert (finding.sort, finding.path, finding.location.line) == (Sort.SCHEMA, path, 12)
    assert finding.message.startswith(f'unknown field "{path}": ')
    assert finding.hint == "did you mean allowPrivilegeEscalation?"


def test_schema_checks_of_workloads_can_be_skipped(tmp_path: Path) -> None:
    assert run(tmp_path, DEPLOYMENT, schemas=False).report.findings == ()


def test_a_wrong_type_that_policies_read_is_reported_once(tmp_path: Path) -> None:
    text = DEPLOYMENT.replace("      containers:", "      tolerations: {key: a}\n      containers:").replace(
        "allowPrivilegedEs", "allowPrivilegeEs"
    )
    (finding,) = run(tmp_path, text).report.findings
    assert finding.path == "spec.template.spec.tolerations"


DURATION = POOL.replace("consolidateAfter: 30m", "consolidateAfter: 1d{}")
WRONG_TYPE = POOL.replace("consolidateAfter: 30m", "consolidateAfter: 30{}")


@pytest.mark.parametrize(
    ("text", "code"), [(DURATION, "schema"), (WRONG_TYPE, "malformed")], ids=["schema", "malformed"]
)
def test_it_is_suppressed_in_its_line_like_any_other_finding(text: str, code: str, tmp_path: Path) -> None:
    result = run(tmp_path, text.replace("{}", f"  # gpugate: ignore[{code}] rendered later", 1))

    assert (told(result), result.exit_code) == ([], 0)
    assert [(_code(each.finding), each.reason) for each in result.report.suppressed] == [(code, "rendered later")]


def test_a_comment_that_suppresses_no_schema_finding_is_of_no_use(tmp_path: Path) -> None:
    (finding,) = run(tmp_path, DURATION.replace("1d{}", "30m  # gpugate: ignore[schema] once")).report.findings

    assert (finding.sort, finding.message) == (Sort.IGNORE, "schema finds nothing on line 7")


@pytest.mark.parametrize("text", [DURATION, WRONG_TYPE], ids=["schema", "malformed"])
def test_it_can_be_in_a_baseline(text: str, tmp_path: Path) -> None:
    result = run(tmp_path, text.replace("{}", "", 1))
    known = baseline.made_of("b.json", result.report.findings)
    left = baseline.hidden(result.report, known, result.coverage)

    assert [finding for finding in left.findings if _counts(finding)] == []
    assert baseline.hidden(run(tmp_path, POOL).report, known, result.coverage).baseline.stale  # type: ignore[union-attr] # given


EXEMPT = {"reason": "moves next week", "owner": "platform", "expires": "2026-02-01"}


@pytest.mark.parametrize(
    ("text", "code"), [(DURATION, "schema"), (WRONG_TYPE, "malformed")], ids=["schema", "malformed"]
)
@pytest.mark.parametrize(("policies", "is_exempt"), [(None, True), (["*"], False), (["nodepools/*"], False)])
def test_only_its_name_exempts_it(
    text: str,
    code: str,
    policies: list[str] | None,
    is_exempt: bool,  # noqa: FBT001 -- a column of the table
    tmp_path: Path,
) -> None:
    config: dict[str, object] = {"exemptions": [{"policies": policies or [code], "kinds": ["NodePool"], **EXEMPT}]}
    result = run(tmp_path, text.replace("{}", "", 1), config)

    (finding,) = (each for each in result.report.findings if _code(each) == code)
    assert (finding.exempt, result.exit_code) == (is_exempt, 0 if is_exempt else 1)
    assert finding.note == ("exempt until 2026-02-01: moves next week" if is_exempt else "")
    assert (result.report.unused == ()) is is_exempt


def test_an_exemption_of_schema_findings_that_there_are_not_is_of_no_use(tmp_path: Path) -> None:
    config: dict[str, object] = {"exemptions": [{"policies": ["schema"], "kinds": ["NodePool"], **EXEMPT}]}

    assert len(run(tmp_path, POOL, config, whole=True).report.unused) == 1
