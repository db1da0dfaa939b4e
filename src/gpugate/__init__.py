"""gpugate: admission webhook and policy checks for GPU platforms on Karpenter, KEDA and DRA."""

__version__ = "0.1.0"
