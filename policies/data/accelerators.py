"""The resources and device classes that are accelerators, and the taints of their nodes.

Sources: Karpenter AWS provider v1.14.1 (`pkg/apis/v1/labels.go`), NVIDIA k8s-device-plugin v0.20.0, NVIDIA DRA driver
v0.4.1 (`deployments/helm/.../deviceclass-*.yaml`), AMD GPU DRA driver v1.0 (`helm-charts-k8s/templates/deviceclass.yaml`),
AWS Neuron 2.20 release notes, `kubernetes/api` v0.36 (`core/v1/types.go`: implicit names of device classes), GKE
documentation "Deploy TPU workloads in GKE Standard" (resource and taint of TPU nodes), Intel device plugins for Kubernetes
v0.34 (`cmd/gpu_plugin`), HAMi v2.7 (`docs/config.md`: gpumem, gpumem-percentage, gpucores). As of 2026-11-23.

Of GPUs for virtual machines, Kata containers and shared GPUs: NVIDIA GPU Operator documentation, "GPU Operator with
KubeVirt" (`nvidia.com/GRID_P4-1Q`, `nvidia.com/NVIDIA_A10-12Q`, and the device in the database of PCI IDs for a whole GPU, such
as `GA102GL_A10`, `TU104GL_Tesla_T4`, `AD102GL_L40S`) and "Confidential Containers" (`nvidia.com/pgpu`); Volcano
(`pkg/scheduler/api/devices/nvidia`: `vgpu-number`, `vgpu-memory`, `vgpu-cores`, `gpu-number`, `gpu-memory`); AWS virtual GPU
device plugin (`k8s.amazonaws.com/vgpu`); AMD k8s-device-plugin (`resource_naming_strategy` mixed: `cpx_nps4`). As of
2026-11-26.
"""

from __future__ import annotations

# Those of vendors with few resources, which have no shorter patterns.
_OTHERS = (
    "habana.ai/gaudi",
    "aws.amazon.com/neuron",
    "aws.amazon.com/neuroncore",
    "aws.amazon.com/neurondevice",
    "google.com/tpu",
    "gpu.intel.com/*",
)

# Extended resources of accelerators. `*` stands for any run of characters.
RESOURCES = (
    "nvidia.com/gpu",
    "nvidia.com/gpu.shared",
    "nvidia.com/gpucores",
    "nvidia.com/gpumem*",
    "nvidia.com/mig-*",
    "nvidia.com/pgpu",
    # By the code name of the chip (Kepler to Blackwell; Turing and Ada do not begin with G) or by the type of a vGPU.
    "nvidia.com/G*",
    "nvidia.com/TU1*",
    "nvidia.com/AD1*",
    "nvidia.com/NVIDIA_*",
    "volcano.sh/gpu-*",
    "volcano.sh/vgpu-*",
    "k8s.amazonaws.com/vgpu",
    "amd.com/gpu",
    "amd.com/*_nps*",
    *_OTHERS,
)

# Few patterns that cover the resources above. The API server compares every resource of a Pod with each of them, and what that
# costs is limited. They also cover resources of the same vendors that are not accelerators, such as those for RDMA.
COVERING = (
    "nvidia.com/*",
    "volcano.sh/*",
    "k8s.amazonaws.com/vgpu",
    "amd.com/*",
    *_OTHERS,
)

# Amounts of memory or cores of a device, and access for monitoring, which do not count as devices.
AMOUNTS = (
    "nvidia.com/gpucores",
    "nvidia.com/gpumem*",
    "volcano.sh/gpu-memory",
    "volcano.sh/vgpu-memory*",
    "volcano.sh/vgpu-cores",
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

# Virtual GPUs. The name does not tell how many share a GPU.
VIRTUAL = ("nvidia.com/GRID_*", "nvidia.com/NVIDIA_*", "volcano.sh/vgpu-number", "k8s.amazonaws.com/vgpu")

# The resources that are shares of a GPU: MIG slices, GPUs shared by time-slicing or MPS, and virtual GPUs.
SHARES = (
    "nvidia.com/mig-*",
    "nvidia.com/*.shared",
    "mig.nvidia.com",
    "mig-*.nvidia.com",
    "volcano.sh/vgpu-*",
    *VIRTUAL,
)

# The taint key on nodes that offer a resource or a device class. The first matching pattern applies.
TAINT_KEYS = {
    "nvidia.com/*": "nvidia.com/gpu",
    "*.nvidia.com": "nvidia.com/gpu",
    "volcano.sh/*": "nvidia.com/gpu",
    "k8s.amazonaws.com/vgpu": "nvidia.com/gpu",
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
