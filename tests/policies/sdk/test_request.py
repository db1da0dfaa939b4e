"""What is evaluated of a request."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gpugate.policies.sdk import objects
from gpugate.policies.sdk.objects import (
    POD,
    POD_EPHEMERAL_CONTAINERS,
    GroupVersionKind,
    Kind,
    Operation,
    Request,
    is_known,
)

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Json

DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
TEMPLATE: dict[str, Json] = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": []}}
NEW: dict[str, Json] = {"metadata": {"name": "new"}, "spec": {"template": TEMPLATE}}
OLD: dict[str, Json] = {"metadata": {"name": "old"}, "spec": {}}
POD_KIND = GroupVersionKind("", "v1", "Pod")


@pytest.mark.parametrize(
    ("operation", "obj", "old", "values", "old_values"),
    [
        (Operation.CREATE, NEW, None, [NEW, TEMPLATE], []),
        (Operation.UPDATE, NEW, OLD, [NEW, TEMPLATE], [OLD]),
        (Operation.UPDATE, OLD, NEW, [OLD], [NEW, TEMPLATE]),
        (Operation.DELETE, None, NEW, [NEW, TEMPLATE], []),
        (Operation.DELETE, None, None, [], []),
        (Operation.CONNECT, None, None, [], []),
    ],
)
def test_the_object_and_its_templates_are_evaluated(
    operation: Operation,
    obj: dict[str, Json] | None,
    old: dict[str, Json] | None,
    values: list[Json],
    old_values: list[Json],
) -> None:
    request = Request(DEPLOYMENT, operation, obj, old)
    assert [subject.field.value for subject in request.subjects] == values
    assert [subject.field.value for subject in request.old_subjects] == old_values


def test_a_template_is_a_pod_in_its_workload() -> None:
    whole, template = Request(DEPLOYMENT, Operation.CREATE, NEW).subjects
    assert (whole.kind, whole.wrapper, whole.field.path) == (DEPLOYMENT, None, ())
    assert (template.kind, template.field.path) == (POD_KIND, ("spec", "template"))
    assert template.wrapper is not None
    assert (template.wrapper.kind, template.wrapper.root.value) == (DEPLOYMENT, NEW)


@pytest.mark.parametrize(
    ("name", "generate_name", "shown"), [("a", "", "a"), ("a", "b-", "a"), ("", "b-", "b-*"), ("", "", "")]
)
def test_a_request_is_shown_by_its_name_or_what_it_will_be_made_from(name: str, generate_name: str, shown: str) -> None:
    request = Request(DEPLOYMENT, Operation.CREATE, NEW)
    assert replace(request, name=name, generate_name=generate_name).shown_name == shown


@pytest.mark.parametrize(
    ("api_version", "kind", "gvk", "shown"),
    [
        ("apps/v1", "Deployment", DEPLOYMENT, "apps/v1 Deployment"),
        ("v1", "Pod", POD_KIND, "v1 Pod"),
        ("a/b/v1", "X", GroupVersionKind("a/b", "v1", "X"), "a/b/v1 X"),
    ],
)
def test_a_type_is_read_from_the_words_of_a_manifest(
    api_version: str, kind: str, gvk: GroupVersionKind, shown: str
) -> None:
    assert (GroupVersionKind.of(api_version, kind), str(gvk), gvk.api_version) == (gvk, shown, api_version)


@pytest.mark.parametrize(
    ("gvk", "covered"),
    [
        (POD_KIND, True),
        (GroupVersionKind("", "v2", "Pod"), False),
        (GroupVersionKind("apps", "v1", "Pod"), False),
        (GroupVersionKind("", "v1", "PodTemplate"), False),
    ],
    ids=str,
)
def test_a_kind_covers_types(gvk: GroupVersionKind, covered: bool) -> None:  # noqa: FBT001 -- a column of the table
    assert POD.covers(gvk) is covered
    assert POD_EPHEMERAL_CONTAINERS.covers(gvk) is covered


# As `kubectl api-resources` prints them: name, apiVersion, whether it has namespaces, kind.
RESOURCES = """
awsnodetemplates         karpenter.k8s.aws/v1alpha1         false AWSNodeTemplate
clusterpolicies          nvidia.com/v1                      false ClusterPolicy
clusterqueues            kueue.x-k8s.io/v1beta1             false ClusterQueue
clusterqueues            kueue.x-k8s.io/v1beta2             false ClusterQueue
clustertrainingruntimes  trainer.kubeflow.org/v1alpha1      false ClusterTrainingRuntime
clusterworkflowtemplates argoproj.io/v1alpha1               false ClusterWorkflowTemplate
cronjobs                 batch/v1                           true  CronJob
daemonsets               apps/v1                            true  DaemonSet
deployments              apps/v1                            true  Deployment
deviceclasses            resource.k8s.io/v1                 false DeviceClass
deviceclasses            resource.k8s.io/v1alpha3           false DeviceClass
deviceclasses            resource.k8s.io/v1beta1            false DeviceClass
deviceclasses            resource.k8s.io/v1beta2            false DeviceClass
ec2nodeclasses           karpenter.k8s.aws/v1               false EC2NodeClass
ec2nodeclasses           karpenter.k8s.aws/v1beta1          false EC2NodeClass
horizontalautoscalers    karpenter.sh/v1alpha1              true  HorizontalAutoscaler
horizontalpodautoscalers autoscaling/v1                     true  HorizontalPodAutoscaler
horizontalpodautoscalers autoscaling/v2                     true  HorizontalPodAutoscaler
jobs                     batch/v1                           true  Job
localqueues              kueue.x-k8s.io/v1beta1             true  LocalQueue
localqueues              kueue.x-k8s.io/v1beta2             true  LocalQueue
machines                 karpenter.sh/v1alpha5              false Machine
metricsproducers         karpenter.sh/v1alpha1              true  MetricsProducer
namespaces               v1                                 false Namespace
nodeclaims               karpenter.sh/v1                    false NodeClaim
nodeclaims               karpenter.sh/v1beta1               false NodeClaim
nodeclasses              eks.amazonaws.com/v1               false NodeClass
nodepools                karpenter.sh/v1                    false NodePool
nodepools                karpenter.sh/v1beta1               false NodePool
nodes                    v1                                 false Node
poddisruptionbudgets     policy/v1                          true  PodDisruptionBudget
pods                     v1                                 true  Pod
pods/ephemeralcontainers v1                                 true  Pod
provisioners             karpenter.sh/v1alpha3              false Provisioner
provisioners             karpenter.sh/v1alpha4              false Provisioner
provisioners             karpenter.sh/v1alpha5              false Provisioner
provisioners             provisioning.karpenter.sh/v1alpha1 true  Provisioner
rayclusters              ray.io/v1                          true  RayCluster
replicasets              apps/v1                            true  ReplicaSet
resourceclaims           resource.k8s.io/v1                 true  ResourceClaim
resourceclaims           resource.k8s.io/v1alpha1           true  ResourceClaim
resourceclaims           resource.k8s.io/v1alpha2           true  ResourceClaim
resourceclaims           resource.k8s.io/v1alpha3           true  ResourceClaim
resourceclaims           resource.k8s.io/v1beta1            true  ResourceClaim
resourceclaims           resource.k8s.io/v1beta2            true  ResourceClaim
resourceclaimtemplates   resource.k8s.io/v1                 true  ResourceClaimTemplate
resourceclaimtemplates   resource.k8s.io/v1alpha1           true  ResourceClaimTemplate
resourceclaimtemplates   resource.k8s.io/v1alpha2           true  ResourceClaimTemplate
resourceclaimtemplates   resource.k8s.io/v1alpha3           true  ResourceClaimTemplate
resourceclaimtemplates   resource.k8s.io/v1beta1            true  ResourceClaimTemplate
resourceclaimtemplates   resource.k8s.io/v1beta2            true  ResourceClaimTemplate
resourceclasses          resource.k8s.io/v1alpha1           false ResourceClass
resourceclasses          resource.k8s.io/v1alpha2           false ResourceClass
resourceflavors          kueue.x-k8s.io/v1beta1             false ResourceFlavor
resourceflavors          kueue.x-k8s.io/v1beta2             false ResourceFlavor
resourcequotas           v1                                 true  ResourceQuota
scalablenodegroups       karpenter.sh/v1alpha1              true  ScalableNodeGroup
scaledjobs               keda.sh/v1alpha1                   true  ScaledJob
scaledobjects            keda.sh/v1alpha1                   true  ScaledObject
statefulsets             apps/v1                            true  StatefulSet
"""


def test_each_kind_has_the_names_of_the_api_server() -> None:
    kinds = [kind for kind in vars(objects).values() if isinstance(kind, Kind)]
    found = {
        (
            f"{kind.plural}/{kind.subresource}".rstrip("/"),
            f"{kind.group}/{version}".lstrip("/"),
            str(kind.namespaced).lower(),
            kind.name,
        )
        for kind in kinds
        for version in kind.versions
    }
    assert found == {tuple(line.split()) for line in RESOURCES.strip().splitlines()}


@pytest.mark.parametrize(
    ("group", "kind", "known"),
    [
        ("apps", "Deployment", True),
        ("kubeflow.org", "PyTorchJob", True),
        ("karpenter.sh", "NodePool", True),
        ("apps", "NodePool", False),
        ("", "ConfigMap", False),
        *(
            (group, "Anything", True)
            for group in (
                "admissionregistration.k8s.io",
                "apiextensions.k8s.io",
                "constraints.gatekeeper.sh",
                "gpugate.dev",
                "kyverno.io",
                "mutations.gatekeeper.sh",
                "policies.kyverno.io",
                "templates.gatekeeper.sh",
            )
        ),
    ],
)
def test_kinds_that_policies_know_and_kinds_without_pods_are_known(group: str, kind: str, known: bool) -> None:  # noqa: FBT001 -- a table's column
    assert is_known(group, kind) is known
