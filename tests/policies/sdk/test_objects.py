"""The kinds that policies know."""

from __future__ import annotations

import pytest

from gpugate.policies.sdk import objects
from gpugate.policies.sdk.objects import GroupVersionKind, Kind, is_known

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
jaxjobs                  kubeflow.org/v1                    true  JAXJob
jobs                     batch/v1                           true  Job
jobsets                  jobset.x-k8s.io/v1alpha2           true  JobSet
limitranges              v1                                 true  LimitRange
localqueues              kueue.x-k8s.io/v1beta1             true  LocalQueue
localqueues              kueue.x-k8s.io/v1beta2             true  LocalQueue
machines                 karpenter.sh/v1alpha5              false Machine
metricsproducers         karpenter.sh/v1alpha1              true  MetricsProducer
mpijobs                  kubeflow.org/v1                    true  MPIJob
mpijobs                  kubeflow.org/v2beta1               true  MPIJob
namespaces               v1                                 false Namespace
nodeclaims               karpenter.sh/v1                    false NodeClaim
nodeclaims               karpenter.sh/v1beta1               false NodeClaim
nodeclasses              eks.amazonaws.com/v1               false NodeClass
nodeoverlays             karpenter.sh/v1alpha1              false NodeOverlay
nodepools                karpenter.sh/v1                    false NodePool
nodepools/scale          karpenter.sh/v1                    false NodePool
nodepools                karpenter.sh/v1beta1               false NodePool
nodes                    v1                                 false Node
paddlejobs               kubeflow.org/v1                    true  PaddleJob
persistentvolumeclaims   v1                                 true  PersistentVolumeClaim
persistentvolumes        v1                                 false PersistentVolume
poddisruptionbudgets     policy/v1                          true  PodDisruptionBudget
pods                     v1                                 true  Pod
pods/ephemeralcontainers v1                                 true  Pod
prometheusrules          monitoring.coreos.com/v1           true  PrometheusRule
provisioners             karpenter.sh/v1alpha3              false Provisioner
provisioners             karpenter.sh/v1alpha4              false Provisioner
provisioners             karpenter.sh/v1alpha5              false Provisioner
provisioners             provisioning.karpenter.sh/v1alpha1 true  Provisioner
pytorchjobs              kubeflow.org/v1                    true  PyTorchJob
rayclusters              ray.io/v1                          true  RayCluster
raycronjobs              ray.io/v1                          true  RayCronJob
rayjobs                  ray.io/v1                          true  RayJob
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
resourceslices           resource.k8s.io/v1                 false ResourceSlice
resourceslices           resource.k8s.io/v1alpha3           false ResourceSlice
resourceslices           resource.k8s.io/v1beta1            false ResourceSlice
resourceslices           resource.k8s.io/v1beta2            false ResourceSlice
scalablenodegroups       karpenter.sh/v1alpha1              true  ScalableNodeGroup
scaledjobs               keda.sh/v1alpha1                   true  ScaledJob
scaledobjects            keda.sh/v1alpha1                   true  ScaledObject
servicemonitors          monitoring.coreos.com/v1           true  ServiceMonitor
services                 v1                                 true  Service
statefulsets             apps/v1                            true  StatefulSet
storageclasses           storage.k8s.io/v1                  false StorageClass
tfjobs                   kubeflow.org/v1                    true  TFJob
xgboostjobs              kubeflow.org/v1                    true  XGBoostJob
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
        if kind.covers(GroupVersionKind(kind.group, version, kind.name))
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
