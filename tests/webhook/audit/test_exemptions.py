from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest
from dumps import CATALOG, TIME, scanned

from gpugate.policies.engine.config import PolicyConfig, PolicyEntry
from gpugate.policies.engine.ruleset import bind
from gpugate.webhook.audit.exemptions import ExemptionsError, exemptions
from gpugate.webhook.audit.model import Action
from gpugate.webhook.manifests.policy_file import load_policy_file

if TYPE_CHECKING:
    from gpugate.webhook.audit.model import AuditReport
    from gpugate.webhook.audit.scan import Scan

MANIFESTS = Path(__file__).parents[2] / "fixtures" / "manifests"
POD = """
apiVersion: v1
kind: Pod
metadata:
  name: finetune-x2x4z
  namespace: ml
  ownerReferences: [{apiVersion: batch/v1, kind: Job, name: finetune, uid: "1", controller: true}]
spec:
  tolerations: [{operator: Exists}]
  containers: [{name: a, image: a, resources: {limits: {nvidia.com/gpu: 1}}}]
status: {phase: Running}
"""
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: finetune, namespace: ml, uid: "1"}
spec:
  template:
    spec:
      containers: [{name: a, image: a, resources: {requests: {cpu: 1, memory: 1Gi}, limits: {nvidia.com/gpu: 1}}}]
"""
WRONG_TYPE = """
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: broken}
spec: {limits: 3, template: {spec: {requirements: []}}}
"""
# As with --as-mode enforce: every policy that is not off by default blocks.
STRICT = PolicyConfig(policies={each.id: PolicyEntry(mode="enforce") for each in CATALOG if each.mode})
EVERYTHING = "\n---\n".join(path.read_text() for path in sorted(MANIFESTS.glob("*.yaml")))


def config(folder: Path, text: str) -> PolicyConfig:
    path = folder / "policy.yaml"
    path.write_text(text)
    read: list[PolicyConfig] = []
    load_policy_file(path, lambda found: (read.append(found), bind(CATALOG, found)))
    return msgspec.structs.replace(read[0], policies=STRICT.policies)


def written(scan: Scan, days: int = 30, owner: str = "platform") -> str:
    return exemptions(scan.report, scan.covered, CATALOG, days, owner)


def blocked(report: AuditReport) -> set[str]:
    return {str(each.object) for each in report.audited if each.action is Action.DENY}


def test_with_the_exemptions_an_audit_blocks_nothing(tmp_path: Path) -> None:
    before = scanned(tmp_path, f"{EVERYTHING}\n---{JOB}---{POD}", STRICT)
    assert len(blocked(before.report)) > 10

    let_off = config(tmp_path, written(before))

    assert not blocked(scanned(tmp_path, f"{EVERYTHING}\n---{JOB}---{POD}", let_off).report)


def test_after_their_last_day_everything_is_blocked_again(tmp_path: Path) -> None:
    before = scanned(tmp_path, EVERYTHING, STRICT)
    let_off = config(tmp_path, written(before))

    last, over = (scanned(tmp_path, EVERYTHING, let_off, TIME + dt.timedelta(days=n)).report for n in (30, 31))

    assert not blocked(last)
    assert blocked(over) == blocked(before.report)


def test_nothing_else_is_let_off(tmp_path: Path) -> None:
    one, other = EVERYTHING, EVERYTHING.replace("name: gpu-", "name: other-")
    let_off = config(tmp_path, written(scanned(tmp_path, one, STRICT)))

    assert "NodePool/other-training-protected" in blocked(scanned(tmp_path, other, let_off).report)


def test_an_exemption_says_what_for_and_until_when(tmp_path: Path) -> None:
    scan = scanned(tmp_path, f"{JOB}---{POD}", STRICT)

    found = config(tmp_path, written(scan, owner=" platform ")).exemptions

    assert [(e.policies, e.kinds, e.namespaces, e.names, e.owner, e.expires) for e in found] == [
        (
            ("pods/wildcard-toleration",),
            ("Job", "Pod"),
            ("ml",),
            ("finetune", "finetune-*"),
            "platform",
            dt.date(2026, 12, 21),
        )
    ]
    assert found[0].reason == f"found by gpugate audit of {scan.report.cluster.name} on 2026-11-21, to be fixed"


def test_objects_with_the_same_trouble_share_an_exemption(tmp_path: Path) -> None:
    pools = "\n---\n".join(
        (MANIFESTS / "nodepool-gpu-training.yaml").read_text().replace("gpu-training", name) for name in "ab"
    )

    found = config(tmp_path, written(scanned(tmp_path, pools, STRICT))).exemptions

    assert [each.names for each in found] == [("a", "b")]


def test_a_field_of_the_wrong_type_is_not_let_off(tmp_path: Path) -> None:
    text = written(scanned(tmp_path, WRONG_TYPE, STRICT))

    assert "malformed" not in text.partition("exemptions:")[2]
    assert (
        "# Exemptions cannot allow fields of the wrong type, because the API server rejects them: NodePool/broken."
        in text
    )


@pytest.mark.parametrize("days", [0, -1, 367])
def test_exemptions_end_within_a_year(tmp_path: Path, days: int) -> None:
    with pytest.raises(ExemptionsError, match="set 1 to 366 days"):
        written(scanned(tmp_path, JOB, STRICT), days=days)


def test_exemptions_have_an_owner(tmp_path: Path) -> None:
    with pytest.raises(ExemptionsError, match="set one"):
        written(scanned(tmp_path, JOB, STRICT), owner=" ")
