from __future__ import annotations

import pytest

from gpugate.policies.data.instance_types import load_instance_types
from gpugate.policies.nodepools.unknown_requirement_value import in_mebibytes, meant

CATALOGUE = load_instance_types()
AWS = "karpenter.k8s.aws/instance-"


@pytest.mark.parametrize(
    ("label", "written", "right"),
    [
        (f"{AWS}gpu-name", "H100", "h100"),
        (f"{AWS}gpu-name", "NVIDIA-A100", "a100"),
        (f"{AWS}gpu-name", "Tesla T4", "t4"),
        (f"{AWS}gpu-name", "rtx-pro-6000", "rtx-pro-server-6000"),
        (f"{AWS}gpu-name", "mi300x", ""),
        (f"{AWS}gpu-manufacturer", "NVIDIA", "nvidia"),
        (f"{AWS}accelerator-manufacturer", "AWS", "aws"),
        (f"{AWS}family", "G5", "g5"),
        (f"{AWS}size", "48XLARGE", "48xlarge"),
        ("kubernetes.io/arch", "x86_64", "amd64"),
        ("kubernetes.io/arch", "aarch64", "arm64"),
        ("node.kubernetes.io/instance-type", "p5.48xlarge ", "p5.48xlarge"),
        ("node.kubernetes.io/instance-type", "p9.48xlarge", ""),
    ],
)
def test_what_was_meant(label: str, written: str, right: str) -> None:
    assert meant(label, written, CATALOGUE) == right


@pytest.mark.parametrize(
    ("text", "mebibytes"),
    [("80Gi", 81920), ("80 GB", 81920), ("80g", 81920), ("512Mi", 512), ("512MB", 512), ("80", None), ("lots", None)],
)
def test_memory_with_a_unit(text: str, mebibytes: int | None) -> None:
    assert in_mebibytes(text) == mebibytes
