"""What each manifest of `tests/fixtures/manifests` is about: exactly these policies find something, or change it."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.defaults import with_defaults
from gpugate.policies.engine.evaluate import Phase, evaluate
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk.field import render
from gpugate.policies.sdk.findings import Stance
from gpugate.webhook.manifests.load import RunFacts, load

if TYPE_CHECKING:
    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.policies.sdk.objects import Request

MANIFESTS = Path(__file__).parents[2] / "fixtures" / "manifests"
NOTHING: set[str] = set()

# Each object by itself, under the name of its file. A pool's class is read from its labels: a pool without one is for
# no class, so that nothing about training or inference is said of it.
ALONE = {
    "daemonset-dcgm-exporter: DaemonSet dcgm-exporter": NOTHING,
    "deployment-and-hpa-llm-inference: Deployment llm-inference": {
        "pods/missing-cost-labels",
        "pods/repeated-download",
    },
    "deployment-and-hpa-llm-inference: HorizontalPodAutoscaler llm-inference-hpa": NOTHING,
    "deployment-gpu-inference-server: Deployment gpu-inference-server": {"pods/missing-cost-labels"},
    "deployment-model-a-serving-without-selector: Deployment model-a-serving": {
        "pods/missing-cost-labels",
        "pods/missing-gpu-toleration",
    },
    # Tolerates a taint of Spot, not of GPUs, and asks for no GPU.
    "deployment-model-serving-spot-without-selector: Deployment model-serving-spot": NOTHING,
    "ec2nodeclass-gpu-nodeclass: EC2NodeClass gpu-nodeclass": {
        "nodeclasses/missing-cost-tags",
        "nodeclasses/unexpanded-placeholder",
        "nodeclasses/unpinned-ami",
    },
    "ec2nodeclass-gpu-optimized: EC2NodeClass gpu-optimized": {
        "nodeclasses/exposed-metadata",
        "nodeclasses/missing-cost-tags",
        "nodeclasses/unexpanded-placeholder",
        "nodeclasses/unpinned-ami",
    },
    "ec2nodeclass-gpu-training: EC2NodeClass gpu-training": {
        "nodeclasses/missing-cost-tags",
        "nodeclasses/unexpanded-placeholder",
        "nodeclasses/unpinned-ami",
    },
    "hpa-model-a: HorizontalPodAutoscaler model-a-hpa": NOTHING,
    "job-distributed-training: Job distributed-training": {
        "pods/endless-job",
        "pods/missing-cost-labels",
        "pods/unindexed-distributed-job",
    },
    "nodepool-gpu-general: NodePool gpu-general": {
        "nodepools/missing-cost-labels",
        "nodepools/shared-by-classes",
        "nodepools/unpinned-manufacturer",
    },
    "nodepool-gpu-inference-of-eight-gpu-types: NodePool gpu-inference-pool": {
        "nodepools/hasty-consolidation",
        "nodepools/missing-cost-labels",
        "nodepools/single-instance-type",
    },
    "nodepool-gpu-inference-without-node-class-group: NodePool gpu-inference-pool": {
        "nodepools/hasty-consolidation",
        "nodepools/incomplete-node-class-ref",
        "nodepools/missing-cost-labels",
        "nodepools/single-instance-type",
    },
    "nodepool-gpu-inference-without-template: NodePool gpu-inference-pool": {"nodepools/incomplete-node-class-ref"},
    "nodepool-gpu-inference: NodePool gpu-inference": {
        "nodepools/fractional-gpu-types",
        "nodepools/missing-cost-labels",
    },
    "nodepool-gpu-spot-inference: NodePool gpu-spot-inference": {
        "nodepools/fractional-gpu-types",
        "nodepools/missing-cost-labels",
    },
    "nodepool-gpu-spot: NodePool gpu-spot-pool": {
        "nodepools/missing-cost-labels",
        "nodepools/shared-by-classes",
        "nodepools/single-instance-type",
        "nodepools/untolerated-taint",
    },
    "nodepool-gpu-training-protected: NodePool gpu-training-protected": {
        "nodepools/budget-blocks-empty",
        "nodepools/missing-cost-labels",
        "nodepools/missing-gpu-limit",
        "nodepools/shadowed-budget",
        "nodepools/shared-by-classes",
        "nodepools/unpinned-manufacturer",
    },
    "nodepool-gpu-training: NodePool gpu-training": {
        "nodepools/budget-blocks-empty",
        "nodepools/forceful-expiry",
        "nodepools/missing-cost-labels",
    },
    "nodepool-inferentia: NodePool inferentia": {"nodepools/missing-cost-labels", "nodepools/shared-by-classes"},
    "nodepool-multi-arch: NodePool multi-arch": NOTHING,
    "nodepools-gpu-tiers: NodePool gpu-tier1-g5-spot": {
        "nodepools/missing-cost-labels",
        "nodepools/narrow-spot",
        "nodepools/shared-by-classes",
    },
    "nodepools-gpu-tiers: NodePool gpu-tier2-g4dn-spot": {
        "nodepools/missing-cost-labels",
        "nodepools/narrow-spot",
        "nodepools/shared-by-classes",
    },
    "nodepools-gpu-tiers: NodePool gpu-tier3-g5-ondemand": {
        "nodepools/missing-cost-labels",
        "nodepools/shared-by-classes",
    },
    "pod-long-training-job: Pod long-training-job": {"pods/missing-cost-labels"},
    "pod-training-job: Pod training-job": {"pods/missing-cost-labels"},
    "poddisruptionbudget-inference-server: PodDisruptionBudget inference-server-pdb": NOTHING,
    "prometheusrule-gpu-alerts: PrometheusRule gpu-alerts": {"monitoring/wrong-formula"},
    "prometheusrule-karpenter-gpu-alerts: PrometheusRule karpenter-gpu-alerts": {"monitoring/stale-metric"},
    "resourceclaimtemplate-mig-1g10gb: ResourceClaimTemplate mig-1g10gb": {
        "claims/invalid-device-class",
        "claims/removed-api",
    },
    "scaledobject-model-a: ScaledObject model-a-gpu-scaler": {
        "scaling/average-of-average",
        "scaling/empty-result-is-zero",
        "scaling/ignored-field",
    },
    "scaledobject-vllm: ScaledObject vllm-scaler": {
        "scaling/ignored-field",
        "scaling/missing-fallback",
        "scaling/scale-from-zero-deadlock",
        "scaling/wrong-metric",
    },
    "servicemonitor-dcgm-exporter-in-gpu-monitoring: ServiceMonitor dcgm-exporter": NOTHING,
    "servicemonitor-dcgm-exporter-in-gpu-operator: ServiceMonitor dcgm-exporter": NOTHING,
    "servicemonitor-karpenter: ServiceMonitor karpenter": NOTHING,
}
# What more is found when all of them are checked in one run.
TOGETHER = {
    "deployment-and-hpa-llm-inference: Deployment llm-inference": {"scaling/pinned-replicas"},
    "deployment-and-hpa-llm-inference: HorizontalPodAutoscaler llm-inference-hpa": {"scaling/saturating-signal"},
    "hpa-model-a: HorizontalPodAutoscaler model-a-hpa": {"scaling/hpa-conflict"},
    "scaledobject-model-a: ScaledObject model-a-gpu-scaler": {"scaling/hpa-conflict"},
    # Deployment model-a-serving selects no pool, so the weights decide, and that of the training pool is above theirs.
    "nodepool-gpu-inference-without-node-class-group: NodePool gpu-inference-pool": {"nodepools/shared-by-classes"},
    "nodepool-gpu-inference: NodePool gpu-inference": {"nodepools/shared-by-classes"},
    "nodepool-gpu-spot-inference: NodePool gpu-spot-inference": {"nodepools/shared-by-classes"},
    "nodepool-gpu-training: NodePool gpu-training": {"nodepools/shared-by-classes"},
}
# And when they are all there is. The ScaledObject keeps two replicas of model-a-serving.
COMPLETE = {
    "deployment-and-hpa-llm-inference: Deployment llm-inference": {"disruption/missing-inference-pdb"},
    "deployment-model-a-serving-without-selector: Deployment model-a-serving": {"disruption/missing-inference-pdb"},
    "nodepool-gpu-spot: NodePool gpu-spot-pool": {"nodepools/dangling-node-class"},
    "nodepool-inferentia: NodePool inferentia": {"nodepools/dangling-node-class"},
    "nodepool-multi-arch: NodePool multi-arch": {"nodepools/dangling-node-class"},
    "scaledobject-vllm: ScaledObject vllm-scaler": {"scaling/missing-target"},
}

# What the API server itself refuses, as CRDs and validation of Karpenter v1.14.1 and Kubernetes v1.36 have it: the field,
# and whether a policy is about that field too. A linter owes the reader the second kind.
REFUSED = {
    "deployment-model-a-serving-without-selector: Deployment model-a-serving": ("spec.selector", False),
    "deployment-model-serving-spot-without-selector: Deployment model-serving-spot": ("spec.selector", False),
    "nodepool-gpu-inference-without-node-class-group: NodePool gpu-inference-pool": (
        "spec.template.spec.nodeClassRef.group",
        True,
    ),
    "nodepool-gpu-inference-without-template: NodePool gpu-inference-pool": ("spec.template.spec.nodeClassRef", True),
    "resourceclaimtemplate-mig-1g10gb: ResourceClaimTemplate mig-1g10gb": (
        "spec.spec.devices.requests[0].deviceClassName",
        True,
    ),
}


def read() -> dict[str, Request]:
    loaded = load([str(file) for file in sorted(MANIFESTS.iterdir())])
    assert loaded.problems == ()
    return {
        f"{Path(manifest.document.source).stem}: {request.kind.kind} {request.name}": request
        for manifest in loaded.manifests
        for request in [with_defaults(manifest.request)]
    }


REQUESTS = read()
RULESET = bind(CATALOG, PolicyConfig())
every_object = pytest.mark.parametrize("name", REQUESTS)


def found(name: str, facts: RunFacts, ruleset: Ruleset = RULESET) -> set[str]:
    verdict = evaluate(ruleset, REQUESTS[name], facts, today=dt.date(2026, 11, 21), phase=Phase.BOTH)
    assert verdict.malformed == ()
    assert [outcome.error for outcome in verdict.outcomes if outcome.error] == []
    changed = (*verdict.patches, *verdict.template_patches)
    return {finding.policy for finding in verdict.findings} | {policy for policy, _ in changed}


def test_every_manifest_is_in_the_table() -> None:
    assert list(ALONE) == list(REQUESTS)


@every_object
def test_alone(name: str) -> None:
    assert found(name, RunFacts([REQUESTS[name]])) == ALONE[name]


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_api_server_refuses_is_denied_where_a_policy_is_about_the_field(name: str) -> None:
    path, judged = REFUSED[name]
    verdict = evaluate(RULESET, REQUESTS[name], RunFacts([]), today=dt.date(2026, 11, 21), phase=Phase.BOTH)
    denied = {render(finding.path) for finding in verdict.findings if finding.stance is Stance.ENFORCE}
    assert (path in denied) is judged


@every_object
def test_in_one_run(name: str) -> None:
    assert found(name, RunFacts(REQUESTS.values())) == ALONE[name] | TOGETHER.get(name, NOTHING)


@every_object
def test_as_a_complete_bundle(name: str) -> None:
    expected = ALONE[name] | TOGETHER.get(name, NOTHING) | COMPLETE.get(name, NOTHING)
    assert found(name, RunFacts(REQUESTS.values(), complete=True)) == expected


def test_a_daemon_set_is_found_where_its_namespace_is_not_excluded() -> None:
    """The exporter tolerates the first taint of NodePool gpu-spot-pool, and not the second."""
    everywhere = bind(CATALOG, PolicyConfig(excluded_namespaces=()))
    name = "daemonset-dcgm-exporter: DaemonSet dcgm-exporter"
    assert found(name, RunFacts(REQUESTS.values()), everywhere) == {"nodepools/untolerated-taint"}
