"""Which image a name, an SSM parameter or an alias means."""

from __future__ import annotations

import pytest

from gpugate.policies.data.image_drivers import published, unsupported

X86, ARM = {"amd64"}, {"arm64"}
EKS = "/aws/service/eks/optimized-ami/1.35"


@pytest.mark.parametrize(
    ("text", "architectures", "drivers"),
    [
        ("amazon-eks-node-al2023-x86_64-standard-1.35-v20261015", X86, set()),
        ("amazon-eks-node-al2023-x86_64-standard-1.35-*", X86, set()),
        ("amazon-eks-node-al2023-arm64-nvidia-1.35-v20261015", ARM, {"nvidia"}),
        ("amazon-eks-node-al2023-x86_64-neuron-1.35-v20261015", X86, {"aws"}),
        ("amazon-eks-node-1.32-v20250610", X86, set()),
        ("amazon-eks-arm64-node-1.32-v20250610", ARM, set()),
        ("amazon-eks-gpu-node-1.32-v20250610", X86, {"nvidia", "aws"}),
        ("bottlerocket-aws-k8s-1.35-x86_64-v1.63.0-0123abcd", X86, {"aws"}),
        ("bottlerocket-aws-k8s-1.35-nvidia-aarch64-v1.63.0-0123abcd", ARM, {"nvidia"}),
        (f"{EKS}/amazon-linux-2023/x86_64/standard/recommended/image_id", X86, set()),
        (f"{EKS}/amazon-linux-2023/arm64/nvidia/recommended/image_id", ARM, {"nvidia"}),
        (f"{EKS}/amazon-linux-2-gpu/recommended/image_id", X86, {"nvidia", "aws"}),
        (f"{EKS}/amazon-linux-2/recommended/image_id", X86, set()),
        ("/aws/service/bottlerocket/aws-k8s-1.35-nvidia/x86_64/latest/image_id", X86, {"nvidia"}),
        ("/aws/service/bottlerocket/aws-k8s-1.35/x86_64/latest/image_id", X86, {"aws"}),
    ],
)
def test_a_published_image_has_the_drivers_of_its_variant(
    text: str, architectures: set[str], drivers: set[str]
) -> None:
    image = published(text)

    assert image is not None
    assert (image.architectures, image.drivers) == (architectures, drivers)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "*",
        "amazon-eks-node-*",
        "amazon-eks-node-al2023-x86_64-*",
        "bottlerocket-aws-k8s-*",
        "ml-gpu-image-v3",
        "my-amazon-eks-node-al2023-x86_64-standard-1.35-v20261015",
        "/platform/images/gpu/latest",
        "amazon-eks-node-al2023-x86_64-standard-" + "1" * 300,
    ],
)
def test_other_images_are_unknown(text: str) -> None:
    assert published(text) is None


@pytest.mark.parametrize(
    ("alias", "families"),
    [
        ("al2023@v20260916", ["g7"]),
        ("al2023@v20260917", []),
        ("al2023@latest", []),
        ("al2023@v2026", []),
        ("bottlerocket@v1.62.1", ["g7"]),
        ("bottlerocket@1.9.0", ["g7"]),
        ("bottlerocket@v1.62.2", []),
        ("bottlerocket@latest", []),
        ("windows2022@latest", []),
    ],
)
def test_a_version_before_the_driver_of_a_family_does_not_support_it(alias: str, families: list[str]) -> None:
    assert [family.instance_family for family in unsupported(alias)] == families
