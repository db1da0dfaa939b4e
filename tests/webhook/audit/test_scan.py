from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest
from audit.memory_source import TIME, MemorySource, audited, found, gpu_spec, named, pod, policies, workload

from gpugate.policies.engine.config import parse_config
from gpugate.webhook.audit.model import Action
from gpugate.webhook.audit.selection import Selection, parse_selector
from gpugate.webhook.audit.source import NotReadError
from gpugate.webhook.config import starter

if TYPE_CHECKING:
    from gpugate.policies.engine.config import PolicyConfig

TOLERATION = "pods/missing-gpu-toleration"
TEAM = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
TOLERATED = {"tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}]}


def config(**sections: Any) -> PolicyConfig:
    return parse_config({"apiVersion": "gpugate.dev/v1", "kind": "PolicyConfig", **sections})


def deployed(name: str = "web", spec: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """Return a Deployment with its ReplicaSet and a Pod."""
    deployment = workload("Deployment", name, spec)
    replicas = workload("ReplicaSet", f"{name}-1", spec, owner=deployment)
    return [deployment, replicas, pod(f"{name}-1-a", spec, owner=replicas, app=name)]


def test_pods_count_for_the_workload_at_the_top() -> None:
    objects = deployed()

    report = found(audited(*objects, pod("web-1-b", owner=objects[1], app="web")))

    assert set(report) == {"Deployment/team/web"}
    assert report["Deployment/team/web"].pods == 2
    assert report["Deployment/team/web"].uid == "Deployment-team-web"


def test_what_a_template_says_is_told_once() -> None:
    (deployment,) = found(audited(*deployed())).values()

    tolerations = [finding for finding in deployment.findings if finding.policy == TOLERATION]
    assert [(f.action, f.path, f.template_of, f.dependent) for f in tolerations] == [
        (Action.MUTATE, "spec.template.spec.tolerations", "Deployment", None)
    ]


def test_a_pod_that_is_not_as_its_template_is_judged_by_itself() -> None:
    deployment, replicas, _ = deployed(spec=gpu_spec(**TOLERATED))
    older = pod("web-0-a", owner=replicas, app="web")

    (report,) = found(audited(deployment, replicas, older)).values()

    (finding,) = [finding for finding in report.findings if finding.policy == TOLERATION]
    assert (finding.path, finding.template_of, str(finding.dependent)) == ("spec.tolerations", "", "Pod/team/web-0-a")


def test_equal_pods_are_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from gpugate.webhook.audit.verdicts import Judging  # noqa: PLC0415 -- only its calls are counted

    calls: list[str] = []
    judge = Judging.judge
    monkeypatch.setattr(Judging, "judge", lambda self, request: (calls.append(request.name), judge(self, request))[1])

    audited(*(pod(f"p-{number}") for number in range(50)))

    assert calls == ["p-0"]


def test_a_replica_set_of_a_deployment_is_not_judged_again() -> None:
    deployment, replicas, _ = deployed(spec=gpu_spec(**TOLERATED))
    older = workload("ReplicaSet", "web-0", owner=deployment)

    (report,) = found(audited(deployment, replicas, older)).values()

    assert TOLERATION not in policies(report)


def test_what_something_made_is_told_with_its_name() -> None:
    scaler = named("ScaledObject", "web", api_version="keda.sh/v1alpha1")
    scaler["spec"] = {"scaleTargetRef": {"name": "web"}, "maxReplicaCount": 4, "triggers": []}
    hpa = named("HorizontalPodAutoscaler", "keda-hpa-web", api_version="autoscaling/v2", owner=scaler)
    hpa["spec"] = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "maxReplicas": 100}

    report = found(audited(*deployed(), scaler, hpa))

    assert "HorizontalPodAutoscaler/team/keda-hpa-web" not in report
    made = {str(finding.dependent) for finding in report["ScaledObject/team/web"].findings if finding.dependent}
    assert made == {"HorizontalPodAutoscaler/team/keda-hpa-web"}


def test_an_excluded_namespace_is_not_reported_on_and_its_gpus_are_known() -> None:
    scan = audited(pod("a", namespace="kube-system"))

    assert scan.report.audited == ()
    assert [p.name for p in scan.inventory.pods] == ["a"]


@pytest.mark.parametrize(
    ("selection", "names"),
    [
        pytest.param(Selection(namespaces=frozenset({"team"})), {"Deployment/team/web"}, id="namespace"),
        pytest.param(Selection(excluded=frozenset({"team"})), {"Pod/other/alone"}, id="without-a-namespace"),
        pytest.param(Selection(kinds=frozenset({"Pod"})), {"Pod/other/alone"}, id="kind-of-the-top"),
        pytest.param(Selection(without=frozenset({"Pod"})), {"Deployment/team/web"}, id="without-a-kind"),
        pytest.param(Selection(labels=parse_selector("tier=gpu")), {"Pod/other/alone"}, id="labels"),
    ],
)
def test_only_what_was_selected_is_reported_on(selection: Selection, names: set[str]) -> None:
    scan = audited(*deployed(), pod("alone", namespace="other", tier="gpu"), selection=selection)

    assert set(found(scan)) == names


def test_what_was_not_selected_is_a_fact_all_the_same() -> None:
    pdb = named("PodDisruptionBudget", "web", api_version="policy/v1")
    pdb["spec"] = {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "web"}}}
    selection = Selection(kinds=frozenset({"PodDisruptionBudget"}))

    (report,) = found(audited(*deployed(), pdb, selection=selection)).values()

    assert "disruption/blocking-pdb" in policies(report)


def test_findings_are_exempt_until_the_day() -> None:
    exemption = {
        "policies": [TOLERATION],
        "names": ["old-*"],
        "reason": "moves",
        "owner": "team",
        "expires": dt.date(2026, 11, 21),
    }
    pods = [pod("old-1"), pod("new-1")]

    today = audited(*pods, config=config(exemptions=[exemption]))
    tomorrow = audited(*pods, config=config(exemptions=[exemption]), time=TIME + dt.timedelta(days=1))

    def actions(scan: Any) -> dict[str, set[Action]]:
        return {name: {f.action for f in each.findings if f.policy == TOLERATION} for name, each in found(scan).items()}

    assert actions(today) == {"Pod/team/old-1": {Action.RECORD}, "Pod/team/new-1": {Action.MUTATE}}
    assert actions(tomorrow) == {"Pod/team/old-1": {Action.MUTATE}, "Pod/team/new-1": {Action.MUTATE}}
    assert (today.report.expired, today.report.unused) == ((), ())
    assert len(tomorrow.report.expired) == 1


def test_an_exemption_that_lets_nothing_off_is_told() -> None:
    exemption = {"policies": [TOLERATION], "names": ["nobody"], "reason": "r", "owner": "o", "expires": "2027-01-01"}

    report = audited(pod("a"), config=config(exemptions=[exemption])).report

    assert report.unused == (f"{TOLERATION} for names nobody: applies to no finding (o: r)",)


def test_the_worst_come_first() -> None:
    privileged = gpu_spec(**TOLERATED)
    privileged["containers"][0] |= {"resources": {}, "securityContext": {"privileged": True}}
    privileged |= {"volumes": [{"name": "dev", "hostPath": {"path": "/dev/nvidia0"}}]}

    actions = [
        each.action for each in audited(pod("a"), pod("b", privileged), pod("c", {"containers": []})).report.audited
    ]

    assert actions == [Action.DENY, Action.MUTATE, Action.ALLOW]


def test_what_may_not_be_listed_is_stated_and_lowers_the_coverage() -> None:
    refused = MemorySource(deployed(), {"PodDisruptionBudget": NotReadError("forbidden")})

    report = audited(source=refused).report

    assert [(each.what, each.reason) for each in report.not_evaluated] == [("poddisruptionbudgets.policy", "forbidden")]
    assert 0.8 < report.coverage < 1


def test_what_is_not_served_is_stated_and_misses_nothing() -> None:
    absent = MemorySource([TEAM, *deployed()], {"ScaledJob": NotReadError("x", absent=True)})

    report = audited(source=absent).report

    assert [(each.what, each.reason) for each in report.not_evaluated] == [("scaledjobs.keda.sh", "not served")]
    assert report.coverage == 1


def test_a_list_that_breaks_off_counts_what_was_read() -> None:
    pods = [TEAM, *(pod(f"p-{number}") for number in range(3))]

    whole = audited(*pods).report
    broken = audited(source=MemorySource(pods, {"Pod": NotReadError("gone", left=1)}))

    assert broken.report.counts["Pod"] == 3
    assert broken.report.coverage < whole.coverage == 1
    assert not broken.inventory.pods_known


def test_without_a_fact_a_policy_says_why_it_did_not_look() -> None:
    absent = MemorySource([pod("a")], {"Namespace": NotReadError("nobody may list namespaces")})

    (report,) = found(audited(source=absent, config=starter.configuration())).values()

    assert "namespace team" in report.skipped["pods/missing-cost-labels"]


def test_claims_that_a_pod_made_count_for_what_made_the_pod() -> None:
    objects = deployed()
    claim = named("ResourceClaim", "web-gpu", api_version="resource.k8s.io/v1", owner=objects[2])
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com", "allocationMode": "All"}}
    claim["spec"] = {"devices": {"requests": [request]}}

    report = found(audited(*objects, claim))

    assert set(report) == {"Deployment/team/web"}
    assert "claims/whole-node-allocation" in policies(report["Deployment/team/web"])


def test_the_inventory_has_pods_nodes_and_templates() -> None:
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "node-1", "labels": {"karpenter.sh/nodepool": "gpu"}},
        "status": {"allocatable": {"nvidia.com/gpu": "8", "cpu": "8", "memory": "8Gi", "pods": "10"}},
    }
    done = pod("done")
    done["status"]["phase"] = "Succeeded"

    inventory = audited(*deployed(), node, done).inventory

    assert [(str(p.owner), p.node, dict(p.demand.resources)) for p in inventory.pods] == [
        ("Deployment/team/web", "node-1", {"nvidia.com/gpu": 1})
    ]
    assert [(n.name, n.node_pool, dict(n.accelerators)) for n in inventory.nodes] == [
        ("node-1", "gpu", {"nvidia.com/gpu": 8})
    ]
    assert [(str(t.object), t.path) for t in inventory.templates] == [("Deployment/team/web", "spec.template")]
    assert inventory.used["node-1"].pods == 1


def test_a_template_and_a_pool_have_the_team_of_their_cost_labels() -> None:
    labelled = workload("Deployment", "chat")
    labelled["spec"]["template"]["metadata"]["labels"]["team"] = "search"
    namespace = named("Namespace", "team", "")
    namespace["metadata"]["labels"] = {"team": "platform"}
    pools = [named("NodePool", name, "", "karpenter.sh/v1") for name in ("research", "shared")]
    pools[0]["spec"] = {"template": {"metadata": {"labels": {"team": "research"}}, "spec": {}}}
    inventory = audited(namespace, workload("Deployment", "web"), labelled, *pools).inventory

    assert {t.object.name: t.team for t in inventory.templates} == {"web": "platform", "chat": "search"}
    assert inventory.pool_teams == {"research": "research"}


def test_every_kind_is_listed_once() -> None:
    source = MemorySource(deployed())

    audited(source=source)

    assert len(set(source.lists)) == len(source.lists)


TRAIN = {"apiVersion": "example.com/v1", "kind": "Train", "path": "spec.workers[*].template"}


def train(spec: dict[str, Any] | None = None) -> dict[str, Any]:
    workers = [{"template": {"spec": spec or gpu_spec()}}]
    metadata = {"name": "a", "namespace": "team", "uid": "train-a"}
    return {"apiVersion": "example.com/v1", "kind": "Train", "metadata": metadata, "spec": {"workers": workers}}


def test_owners_of_gpu_pods_that_no_policy_knows_are_named() -> None:
    report = audited(train(), pod("a-0", owner=train())).report
    assert "1 object requests GPUs in kinds that no policy knows: Train (example.com/v1) 1" in report.remarks


def test_a_kind_that_the_policy_file_adds_is_audited() -> None:
    scanned = audited(train(), pod("a-0", owner=train()), config=config(pod_templates=[TRAIN]))

    (report,) = found(scanned).values()
    tolerations = [finding for finding in report.findings if finding.policy == TOLERATION]
    assert [(f.path, f.template_of) for f in tolerations] == [("spec.workers[0].template.spec.tolerations", "Train")]
    assert not [remark for remark in scanned.report.remarks if "no policy knows" in remark]
