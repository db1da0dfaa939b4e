"""Owners that an object names count for nothing where somebody else than their controller sends it."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from example_laws import for_each_case, of_policy
from library_examples import Example, library_example, ruleset_of

import gpugate.policies
from gpugate.policies.engine.evaluate import evaluate
from gpugate.policies.sdk.findings import Stance
from gpugate.policies.sdk.objects import Operation
from gpugate.policies.sdk.workload_class import owner_kind
from gpugate.webhook.manifests.load import RunFacts

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.sdk.policy import Context

Json = dict[str, Any]
ROOT = Path(gpugate.policies.__file__).parent
FILES = sorted(ROOT.glob("*/examples/*/*.yaml"))
OWNED = {"Pod", "NodeClaim", "Machine", "HorizontalPodAutoscaler"}
# By its name it is the one that KEDA writes to, whoever made it.
OF_KEDA = "good-autoscaler-made-by-keda.yaml"
EXAMPLES = {
    str(file): example
    for file in FILES
    if file.name != OF_KEDA
    and (example := library_example(file)).request.kind.kind in OWNED
    and example.request.operation is Operation.CREATE
}
OWNERS = [
    ("apps/v1", "DaemonSet"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
    ("batch/v1", "Job"),
    ("kubeflow.org/v1", "PyTorchJob"),
    ("karpenter.sh/v1", "NodePool"),
    ("karpenter.sh/v1alpha5", "Provisioner"),
    ("keda.sh/v1alpha1", "ScaledObject"),
]


def findings(example: Example, metadata: Json) -> dict[str, Stance]:
    """Policy -> the most that a finding costs in a request by a person."""
    obj = {**(example.request.object or {}), "metadata": metadata}
    request = replace(example.request, object=obj, user="alice")
    facts = RunFacts(example.context, complete=example.complete)
    verdict = evaluate(ruleset_of(example.config), request, facts, today=dt.date(2026, 11, 21))
    found: dict[str, Stance] = {}
    for finding in verdict.findings:
        found[finding.policy] = max(finding.stance, found.get(finding.policy, Stance.OFF))
    return found


@for_each_case(EXAMPLES, of_policy)
def test_a_written_owner_lowers_no_finding(example: Example) -> None:
    metadata: Json = dict((example.request.object or {})["metadata"])
    name = metadata.get("name", "")
    without = findings(example, {key: value for key, value in metadata.items() if key != "ownerReferences"})
    for api_version, kind in OWNERS:
        for owner in {name, name.rpartition("-")[0], name.removeprefix("keda-hpa-")}:
            reference = {"apiVersion": api_version, "kind": kind, "name": owner, "uid": "1", "controller": True}
            owned = findings(example, {**metadata, "ownerReferences": [reference]})
            lowered = {policy: cost for policy, cost in without.items() if owned.get(policy, Stance.OFF) < cost}
            assert lowered == {}, f"{kind} {owner}"


CLAIM: Json = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodeClaim",
    "metadata": {
        "name": "gpu-x7k2p",
        "labels": {"karpenter.sh/nodepool": "gpu"},
        "ownerReferences": [{"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "name": "gpu", "uid": "1"}],
    },
    "spec": {
        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"},
        "requirements": [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["g5.xlarge"]}],
    },
}
CLAIM_EXAMPLE = next(
    example for name, example in EXAMPLES.items() if name.endswith("good-claim-made-by-karpenter.yaml")
)


DENIED = {"nodepools/hand-made-nodeclaim": Stance.ENFORCE, "nodepools/single-instance-type": Stance.ENFORCE}
WARNED = {"nodepools/hand-made-nodeclaim": Stance.WARN}


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ("alice", DENIED),
        ("karpenter", DENIED),
        ("system:serviceaccount:kube-system:karpenter", {}),
        ("system:serviceaccount:platform:karpenter", {}),
        # A Karpenter that is installed under another name would launch no node any more.
        ("system:serviceaccount:platform:karpenter-controller", WARNED),
        ("", {}),
    ],
)
def test_the_sender_of_a_node_claim_decides_whether_karpenter_made_it(user: str, expected: dict[str, Stance]) -> None:
    request = replace(CLAIM_EXAMPLE.request, object=CLAIM, user=user)
    verdict = evaluate(ruleset_of(CLAIM_EXAMPLE.config), request, RunFacts(()), today=dt.date(2026, 11, 21))

    assert {finding.policy: finding.stance for finding in verdict.findings} == expected


KAITO: Json = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodeClaim",
    "metadata": {
        "name": "ws1a2b3c4d5",
        "labels": {"karpenter.sh/nodepool": "kaito", "kaito.sh/workspace": "llama"},
    },
    "spec": {
        "nodeClassRef": {"group": "karpenter.azure.com", "kind": "AKSNodeClass", "name": "gpu"},
        "requirements": [{"key": "karpenter.azure.com/sku-name", "operator": "Exists"}],
        "resources": {"requests": {"nvidia.com/gpu": "1"}},
    },
}


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ("", {}),
        ("alice", {"nodepools/hand-made-nodeclaim": Stance.ENFORCE}),
        ("system:serviceaccount:kaito-workspace:kaito-workspace-sa", {"nodepools/hand-made-nodeclaim": Stance.WARN}),
        ("system:serviceaccount:kube-system:karpenter", {}),
    ],
)
def test_the_label_of_kaito_counts_for_no_person(user: str, expected: dict[str, Stance]) -> None:
    request = replace(CLAIM_EXAMPLE.request, object=KAITO, user=user)
    verdict = evaluate(ruleset_of(CLAIM_EXAMPLE.config), request, RunFacts(()), today=dt.date(2026, 11, 21))

    assert {finding.policy: finding.stance for finding in verdict.findings} == expected


def test_metadata_of_karpenters_own_can_be_changed_by_anyone() -> None:
    new = {**CLAIM, "metadata": {**CLAIM["metadata"], "annotations": {"karpenter.sh/do-not-disrupt": "true"}}}
    request = replace(
        CLAIM_EXAMPLE.request, object=new, old_object=CLAIM, operation=Operation.UPDATE, name="gpu-x7k2p", user="alice"
    )
    verdict = evaluate(ruleset_of(CLAIM_EXAMPLE.config), request, RunFacts(()), today=dt.date(2026, 11, 21))

    assert [*verdict.findings] == []


INCONSISTENT: dict[str, Json] = {
    "another label": {"labels": {"karpenter.sh/nodepool": ""}},
    "no label": {"labels": {}},
    "another name": {"name": "mine"},
    "no version of Karpenter": {
        "ownerReferences": [{"apiVersion": "karpenter.sh/anything", "kind": "NodePool", "name": "gpu"}]
    },
}


@pytest.mark.parametrize("user", ["", "system:serviceaccount:ml:train"])
@pytest.mark.parametrize("change", INCONSISTENT.values(), ids=INCONSISTENT)
def test_where_the_sender_may_be_karpenter_everything_has_to_be_as_karpenter_writes_it(change: Json, user: str) -> None:
    changed = {**CLAIM, "metadata": {**CLAIM["metadata"], **change}}
    request = replace(CLAIM_EXAMPLE.request, object=changed, name=changed["metadata"]["name"], user=user)
    verdict = evaluate(ruleset_of(CLAIM_EXAMPLE.config), request, RunFacts(()), today=dt.date(2026, 11, 21))

    assert [finding.policy for finding in verdict.findings] == [
        "nodepools/hand-made-nodeclaim",
        "nodepools/single-instance-type",
    ]


OF_SYSTEM = "system:serviceaccount:kube-system:"


@pytest.mark.parametrize(
    ("kind", "api_version", "user", "made"),
    [
        ("DaemonSet", "apps/v1", f"{OF_SYSTEM}daemon-set-controller", True),
        ("DaemonSet", "apps/v1", f"{OF_SYSTEM}replicaset-controller", False),
        ("DaemonSet", "apps/v1", "alice", False),
        ("DaemonSet", "apps.kruise.io/v1alpha1", "system:serviceaccount:kruise-system:kruise-manager", True),
        ("DaemonSet", "apps.kruise.io/v1alpha1", "alice", False),
        ("Job", "batch/v1", f"{OF_SYSTEM}job-controller", True),
        ("Job", "batch/v1", "system:serviceaccount:ml:train", False),
        ("StatefulSet", "apps/v1", f"{OF_SYSTEM}statefulset-controller", True),
        ("ReplicaSet", "apps/v1", f"{OF_SYSTEM}replicaset-controller", True),
        ("ReplicationController", "v1", f"{OF_SYSTEM}replication-controller", True),
        ("ReplicaSet", "apps/v1", "system:kube-controller-manager", True),
        ("PyTorchJob", "kubeflow.org/v1", "system:serviceaccount:kubeflow:training-operator", True),
        ("PyTorchJob", "kubeflow.org/v1", "alice", False),
        ("Job", "batch/v1", "", True),
    ],
)
def test_the_sender_of_a_pod_decides_whether_a_workload_made_it(
    context: Callable[..., Context[Any]], kind: str, api_version: str, user: str, *, made: bool
) -> None:
    owner = {"apiVersion": api_version, "kind": kind, "name": "a", "controller": True}
    ctx = context({"metadata": {"ownerReferences": [owner]}, "spec": {}})
    sent = replace(ctx, request=replace(ctx.request, user=user))

    assert owner_kind(sent.subject, sent) == (kind if made else "")
