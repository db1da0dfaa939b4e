"""EC2NodeClass whose image has no driver for the accelerators of its NodePools.

## Why is this bad?
The nodes start, cost money and offer no GPUs. Karpenter waits for the GPUs and does not consolidate such nodes, and the
Pods stay Pending.

With an alias, Karpenter selects the image with the NVIDIA or Neuron driver for each instance type, but not one for AMD
GPUs or on Windows. With a name or an SSM parameter, every instance type gets the image that is named, such as the
standard variant without a driver. A version of an image may also be older than the driver that a new instance family
needs.

## Instead
Use an alias, which selects the variant by the type:

```yaml
amiSelectorTerms:
  - alias: al2023@v20261015
```

A class is evaluated only if a known NodePool for GPUs uses it, and only if gpugate knows all of its images: your own
images and names with a wildcard before the variant are not reported. Neither is a class with `userData`, which can install a
driver (except for Bottlerocket), nor one in a cluster whose GPU operator installs the driver. AMD GPUs that a pool allows
only because of a broad requirement, such as the category `g`, are left to `nodepools/missing-gpu-taint` and
`nodepools/missing-gpu-limit`.

## Sources
aws/karpenter-provider-aws v1.14.1 `pkg/providers/amifamily/*.go` (the variants of an alias); Karpenter v1.14.1
`pkg/controllers/nodeclaim/lifecycle/initialization.go` (a node is initialized when it offers the requested resources);
amazon-eks-ami issues #2768, #1817; bottlerocket issues #4889, #3916. The table with dates is in
`policies/data/image_drivers.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.data.image_drivers import ALIASES, Image, Unsupported, published, unsupported
from gpugate.policies.nodeclasses._gpu_classes import POOL_NEEDS, gpu_pools, pools_doubt
from gpugate.policies.sdk.facts import Known, Need
from gpugate.policies.sdk.findings import Skip, Stance, Violation
from gpugate.policies.sdk.node_pools import AWS, INSTANCE_TYPES, MatchingTypes, matching_types, names_one_of
from gpugate.policies.sdk.objects import CLUSTER_POLICY, EC2_NODE_CLASS
from gpugate.policies.sdk.policy import AnyContext, validates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Field

_ACCELERATORS: Final = {"nvidia": "NVIDIA GPUs", "amd": "AMD GPUs", "aws": "Neuron devices"}
_MANUFACTURERS: Final = (f"{AWS}/instance-gpu-manufacturer", f"{AWS}/instance-accelerator-manufacturer")
_NO_IMAGE: Final = "Karpenter finds no image for these instance types, so it launches no node and Pods stay Pending."
_NO_SUPPORT: Final = "Nodes of this instance family cost money and offer no GPUs, and the Pods stay Pending."
_NEEDS: Final = (*POOL_NEEDS, Need(CLUSTER_POLICY, ("spec.driver.enabled",)))
_OF_AMAZON: Final = frozenset({"", "amazon", "602401143452"})
_SHOWN: Final = 3


@validates(EC2_NODE_CLASS, mode=Stance.WARN, needs=_NEEDS, tables=(INSTANCE_TYPES,))
def check(node_class: Field, ctx: AnyContext) -> Iterator[Violation | Skip]:
    """Report accelerators of the class's pools for which its images have no driver, or one that is too old."""
    terms = [term for term in node_class["spec", "amiSelectorTerms"] if term.mapping]
    alias = next((term["alias"] for term in terms if term["alias"]), None)
    images = _images(terms, alias)
    if images is None:
        return
    pools = gpu_pools(node_class, ctx)
    if not pools:
        doubt = pools_doubt(ctx)
        if doubt is not None:
            yield doubt
        return
    field = alias or terms[0]["name"] or terms[0]["ssmParameter"]
    if not _installs_drivers(node_class, alias):
        for manufacturer in _ACCELERATORS:
            if manufacturer != "nvidia" or not _operator_installs_driver(ctx):
                yield from _without_driver(manufacturer, images, field, pools)
    if alias is not None:
        for family in unsupported(alias.text):
            yield from _too_old(family, alias, pools)


def _images(terms: list[Field], alias: Field | None) -> tuple[Image, ...] | None:
    """Return the images of a class; None where some are unknown."""
    if alias is not None:
        return ALIASES.get(alias.text.partition("@")[0])
    images = [
        published(term["name"].text or term["ssmParameter"].text)
        if not term["id"] and not term["tags"] and term["owner"].text in _OF_AMAZON
        else None
        for term in terms
    ]
    known = tuple(image for image in images if image is not None)
    return known if known and len(known) == len(images) else None


def _installs_drivers(node_class: Field, alias: Field | None) -> bool:
    """Tell whether user data may install a driver: that of Bottlerocket consists of settings."""
    is_bottlerocket = alias is not None and alias.text.startswith("bottlerocket@")
    return bool(node_class["spec", "userData"].text.strip()) and not is_bottlerocket


def _operator_installs_driver(ctx: AnyContext) -> bool:
    policies = ctx.facts.list(CLUSTER_POLICY)
    return isinstance(policies, Known) and any(
        policy["spec", "driver", "enabled"].value is not False for policy in policies.items
    )


def _without_driver(
    manufacturer: str, images: tuple[Image, ...], field: Field, pools: tuple[AnyContext, ...]
) -> Iterator[Violation]:
    having = [image for image in images if manufacturer in image.drivers]
    concerned: dict[str, int] = {}
    for around in pools:
        types = around.derived(matching_types)
        of_make = _made_by(manufacturer, types) if types else 0
        if types and of_make and not _is_minor(of_make, types) and not of_make & _of_architectures(having, types):
            concerned[around.subject["metadata", "name"].text] = of_make
    if not concerned:
        return
    catalogue = next(types.catalogue for around in pools if (types := around.derived(matching_types)))
    of_pools, names = _pools(concerned), _some(catalogue.decode(next(iter(concerned.values()))))
    accelerators = _ACCELERATORS[manufacturer]
    message = f"no image with a driver for the {accelerators} of {of_pools} ({names})"
    if having:
        hint = "select images for the architecture of these instance types, or use an alias of al2023"
        yield Violation(field.path, message, hint=hint, why=_NO_IMAGE)
    else:
        is_windows = field.text.startswith("windows")
        by_alias = not is_windows and any(manufacturer in image.drivers for image in ALIASES["al2023"])
        hint = (
            "use an alias of al2023 or bottlerocket, which selects the image with the driver for each instance type"
            if by_alias
            else f"name an image with a driver for {accelerators}, or exclude these instance types in the NodePool"
        )
        yield Violation(field.path, message, hint=hint)


def _too_old(family: Unsupported, alias: Field, pools: tuple[AnyContext, ...]) -> Iterator[Violation]:
    concerned: dict[str, int] = {}
    for around in pools:
        types = around.derived(matching_types)
        of_family = types.known & types.catalogue.of(f"{AWS}/instance-family", family.instance_family) if types else 0
        if of_family:
            concerned[around.subject["metadata", "name"].text] = of_family
    if concerned:
        message = (
            f"the driver of {alias.text} does not support the instance family {family.instance_family} of "
            f"{_pools(concerned)}"
        )
        newer = f"use version {family.since} or later" if family.since else "use an alias of al2023"
        hint = (
            f"{newer}, or exclude {family.instance_family} with {AWS}/instance-family NotIn [{family.instance_family}]"
        )
        yield Violation(alias.path, message, hint=hint, why=_NO_SUPPORT)


def _made_by(manufacturer: str, types: MatchingTypes) -> int:
    catalogue = types.catalogue
    return types.known & (catalogue.of(_MANUFACTURERS[0], manufacturer) | catalogue.of(_MANUFACTURERS[1], manufacturer))


def _is_minor(of_make: int, types: MatchingTypes) -> bool:
    """Tell whether a pool has these types only next to others, because of a broad requirement."""
    return 2 * of_make.bit_count() < types.accelerated.bit_count() and not names_one_of(types, of_make)


def _of_architectures(images: list[Image], types: MatchingTypes) -> int:
    architectures = frozenset[str]().union(*(image.architectures for image in images))
    matching = 0
    for architecture in architectures:
        matching |= types.catalogue.of("kubernetes.io/arch", architecture)
    return matching


def _pools(concerned: dict[str, int]) -> str:
    return f"NodePool{'s' if len(concerned) > 1 else ''} {_some(iter(concerned))}"


def _some(names: Iterator[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    return ", ".join(name[:63] for name in listed[:_SHOWN]) + more
