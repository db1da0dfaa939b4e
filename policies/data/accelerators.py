"""The resources and device classes that are accelerators, and the taints of their nodes.

Sources: Karpenter AWS provider v1.14.1 (`pkg/apis/v1/labels.go`), NVIDIA k8s-device-plugin v0.20.0, NVIDIA DRA driver
v0.4.1 (`deployments/helm/.../deviceclass-*.yaml`), AMD GPU DRA driver v1.0 (`helm-charts-k8s/templates/deviceclass.yaml`),
AWS Neuron 2.20 release notes, `kubernetes/api` v0.36 (`core/v1/types.go`: implicit names of device classes), GKE
documentation "Deploy TPU workloads in GKE Standard" (resource and taint of TPU nodes), Intel device plugins for Kubernetes
v0.34 (`cmd/gpu_plugin`), HAMi v2.7 (`docs/config.md`: gpumem, gpumem-percentage, gpucores). As of 2026-11-23.
"""

from __future__ import annotations

# Extended resources of accelerators. `*` stands for any run of characters.
RESOURCES = (
    "nvidia.com/gpu",
    "nvidia.com/gpu.shared",
    "nvidia.com/gpucores",
    "nvidia.com/gpumem*",
    "nvidia.com/mig-*",
    "amd.com/gpu",
    "habana.ai/gaudi",
    "aws.amazon.com/neuron",
    "aws.amazon.com/neuroncore",
    "aws.amazon.com/neurondevice",
    "google.com/tpu",
    "gpu.intel.com/*",
)

# Amounts of memory or cores of a device, and access for monitoring, which do not count as devices.
AMOUNTS = (
    "nvidia.com/gpucores",
    "nvidia.com/gpumem*",
    "gpu.intel.com/*_monitoring",
    "gpu.intel.com/memory.max",
    "gpu.intel.com/millicores",
    "gpu.intel.com/tiles",
)

# A container may name a device class like a resource (Kubernetes 1.36, DRAExtendedResource).
IMPLICIT_CLASS_PREFIX = "deviceclass.resource.kubernetes.io/"

DEVICE_CLASSES = (
    "gpu.nvidia.com",
    "mig.nvidia.com",
    "mig-*.nvidia.com",
    "vfio.gpu.nvidia.com",
    "gpu.amd.com",
    # Whole GPUs, where the driver also offers partitions.
    "gpu.amd.com-spx",
    "neuron.aws.com",
)

# The resources that are shares of a GPU: MIG slices, and GPUs shared by time-slicing or MPS.
SHARES = ("nvidia.com/mig-*", "nvidia.com/*.shared", "mig.nvidia.com", "mig-*.nvidia.com")

# The taint key on nodes that offer a resource or a device class. The first matching pattern applies.
TAINT_KEYS = {
    "nvidia.com/*": "nvidia.com/gpu",
    "*.nvidia.com": "nvidia.com/gpu",
    "aws.amazon.com/*": "aws.amazon.com/neuron",
    "neuron.aws.com": "aws.amazon.com/neuron",
    "habana.ai/*": "habana.ai/gaudi",
    "amd.com/*": "amd.com/gpu",
    "gpu.amd.com*": "amd.com/gpu",
    "google.com/tpu": "google.com/tpu",
}

# Capacity that Karpenter knows before a node exists (core and AWS provider v1.14.1). A Pod that requests only other
# accelerators (MIG slices, shared GPUs) gets no node, unless a NodeOverlay or an existing node offers them.
PROVISIONED_BY_KARPENTER = frozenset(
    {
        "nvidia.com/gpu",
        "amd.com/gpu",
        "aws.amazon.com/neuron",
        "aws.amazon.com/neuroncore",
        "habana.ai/gaudi",
    }
)
