"""Ways around a policy that only looks right, each with what finds it."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest
import yaml
from library_examples import ruleset_of

from gpugate.policies.engine.config import parse_config
from gpugate.policies.engine.defaults import with_defaults
from gpugate.policies.engine.evaluate import evaluate
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request
from gpugate.webhook.config import starter
from gpugate.webhook.manifests.load import RunFacts

FOLDER = Path(__file__).with_name("evasions")
Case = dict[str, Any]
CONVENTIONS: Case = yaml.safe_load(starter.POLICY_FILE)
LABELS = {"team": "search", "cost-center": "cc-1234"}


def cases(name: str) -> list[Case]:
    return list(yaml.safe_load_all((FOLDER / name).read_text()))


def trick(case: Case) -> str:
    return str(case["trick"])


def request(obj: Case, case: Case) -> Request:
    kind = GroupVersionKind.of(obj["apiVersion"], obj["kind"])
    sent_as = case.get("sent_as")
    return with_defaults(
        Request(
            kind=kind,
            requested_kind=GroupVersionKind.of(*sent_as.split(" ")) if sent_as else None,
            operation=Operation.UPDATE if "old" in case else Operation.CREATE,
            object=obj,
            old_object=case.get("old"),
            name=obj["metadata"]["name"],
            namespace=obj["metadata"].get("namespace", ""),
            user=case.get("user", ""),
        ),
    )


def costs(obj: Case, case: Case) -> dict[str, str]:
    """What each policy that finds something makes it cost; `patch` where it fixes it."""
    config = parse_config({**CONVENTIONS, **case.get("config", {})})
    facts = RunFacts(request(each, {}) for each in case.get("context", ()))
    verdict = evaluate(ruleset_of(config), request(obj, case), facts, today=dt.date(2026, 11, 21))
    assert [outcome.error for outcome in verdict.outcomes if outcome.error] == []
    found = {policy: "patch" for policy, _ in (*verdict.patches, *verdict.template_patches)}
    for finding in sorted(verdict.findings, key=lambda each: each.stance):
        found[finding.policy] = finding.stance.word
    return found


def pool(trick: Case) -> Case:
    """A GPU pool that nothing is wrong with, but for the trick."""
    spec = {
        "nodeClassRef": trick.get(
            "nodeClassRef", {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"}
        ),
        "requirements": [
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
            *trick.get(
                "requirements",
                [{"key": "karpenter.k8s.aws/instance-gpu-name", "operator": "In", "values": ["t4", "l40s", "a10g"]}],
            ),
        ],
        "taints": trick.get("taints", [{"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}]),
        "startupTaints": trick.get("startupTaints", []),
    }
    labels = {"workload": "inference", **LABELS, **trick.get("labels", {})}
    disruption = {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "5m"}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "gpu", **trick.get("metadata", {})},
        "spec": {
            "template": {"metadata": {"labels": labels, "annotations": trick.get("annotations", {})}, "spec": spec},
            "limits": trick.get("limits", {"nvidia.com/gpu": "32"}),
            "disruption": trick.get("disruption", disruption),
            **({"replicas": trick["replicas"]} if "replicas" in trick else {}),
        },
    }


def pod(trick: Case, namespace: str = "serving") -> Case:
    """A GPU Pod that nothing is wrong with but that it tolerates nothing, and for the trick."""
    trick = dict(trick)
    metadata = {key: trick.pop(key) for key in ("annotations", "ownerReferences") if key in trick}
    resources = trick.pop("resources", {"limits": {"nvidia.com/gpu": "1"}})
    container = {"name": "c", "image": "registry.example.com/llm:1.4.2", "resources": resources}
    container |= {key: trick.pop(key) for key in ("env",) if key in trick}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": namespace, "labels": LABELS, **metadata},
        "spec": {"containers": [container], **trick},
    }


@pytest.mark.parametrize("case", cases("pools.yaml"), ids=trick)
def test_of_pools(case: Case) -> None:
    assert costs(pool(case["pool"]), case).items() >= case["expect"].items()


@pytest.mark.parametrize("case", cases("pods.yaml"), ids=trick)
def test_of_pods(case: Case) -> None:
    obj = pod(case["pod"], case.get("namespace", "serving"))
    assert costs(obj, case).items() >= case["expect"].items()


@pytest.mark.parametrize("case", cases("objects.yaml"), ids=trick)
def test_of_other_objects(case: Case) -> None:
    found = costs(case["object"], case)
    assert found == case["expect"] if not case["expect"] else found.items() >= case["expect"].items()


@pytest.mark.parametrize("case", cases("templates.yaml"), ids=lambda case: case["kind"])
def test_e_23_a_pod_template_wherever_it_is(case: Case) -> None:
    template: Any = pod({})
    for key in reversed(case["at"]):
        template = [template] if key == 0 else {key: template}
    kind = GroupVersionKind.of(*case["kind"].split(" "))
    obj = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": "w", "namespace": "serving"},
        **template,
    }
    assert costs(obj, case)["pods/missing-gpu-toleration"] == "patch"


def test_the_base_objects_have_nothing_wrong_with_them() -> None:
    assert costs(pool({}), {}) == {}
    assert costs(pod({}), {}) == {"pods/missing-gpu-toleration": "patch"}
