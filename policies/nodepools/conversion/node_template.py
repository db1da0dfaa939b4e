"""Writes an AWSNodeTemplate (`karpenter.k8s.aws/v1alpha1`) or an EC2NodeClass `v1beta1` as an EC2NodeClass `v1`.

Sources: aws/karpenter-provider-aws v0.31 `pkg/apis/v1alpha1`, v1.0 `pkg/apis/v1beta1/ec2nodeclass.go`, v1.14.1
`pkg/apis/v1/ec2nodeclass.go`; Karpenter's "v1 migration" guide, v1.1.
"""

from __future__ import annotations

from itertools import islice, product
from typing import TYPE_CHECKING, Final

from gpugate.policies.data.legacy_apis import NODE_CLASS_MOVES
from gpugate.policies.nodepools.conversion.objects import Converted, left_over, moved, ordered, put
from gpugate.policies.sdk.field import Field

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Json

_SELECTORS: Final = {
    "subnetSelector": "subnetSelectorTerms",
    "securityGroupSelector": "securityGroupSelectorTerms",
    "amiSelector": "amiSelectorTerms",
}
_MAX_TERMS = 30
_IDS = ("aws::ids", "aws-ids")
_OWN_FIELDS = {"aws::name": "name", "aws::owners": "owner"}
# AL2 has no images for Kubernetes 1.33 and later; AL2023 takes its place.
_ALIASES: Final = {
    "AL2": "al2023",
    "AL2023": "al2023",
    "Bottlerocket": "bottlerocket",
    "Windows2019": "windows2019",
    "Windows2022": "windows2022",
}


def from_template(obj: Field, spec: Field) -> Converted:
    """Return the EC2NodeClass for the spec of a node template; `obj` gives its name."""
    whole = Field({"metadata": obj["metadata"].value, "spec": spec.value})
    node_class = moved(whole, NODE_CLASS_MOVES, "karpenter.k8s.aws/v1", "EC2NodeClass")
    handled = (*_SELECTORS, "amiFamily", "apiVersion", "kind")
    open_points = list(left_over(spec, NODE_CLASS_MOVES, *handled))
    for old, new in _SELECTORS.items():
        terms = selector_terms(spec[old])
        if terms:
            put(node_class, f"spec.{new}", terms)
    open_points += _images(node_class, spec)
    body = node_class["spec"]
    written = body if isinstance(body, dict) else {}
    open_points += [f"spec.{new} is required" for new in _SELECTORS.values() if new not in written]
    if "role" not in written and "instanceProfile" not in written:
        open_points.append("spec.role or spec.instanceProfile is required")
    ordered(body, "role", "instanceProfile", "amiFamily", *reversed(_SELECTORS.values()))
    return Converted((node_class,), tuple(open_points))


def selector_terms(selector: Field) -> list[Json]:
    """Turn a map of tags and ids into terms, of which any may fit.

    A value may name several, parted by commas; every combination becomes a term, up to the 30 that v1 takes.
    """
    choices = {key: [v.strip() for v in value.split(",") if v.strip()] for key, value in selector.labels.items()}
    ids = [value for key in _IDS for value in choices.pop(key, ())]
    if ids:
        return [{"id": value} for value in ids[:_MAX_TERMS]]
    if not choices:
        return []
    terms: list[Json] = []
    for combination in islice(product(*choices.values()), _MAX_TERMS):
        term: dict[str, Json] = {}
        tags: dict[str, Json] = {}
        for key, value in zip(choices, combination, strict=True):
            if key in _OWN_FIELDS:
                term[_OWN_FIELDS[key]] = value
            else:
                tags[key] = value
        if tags:
            term["tags"] = tags
        terms.append(term)
    return terms


def _images(node_class: dict[str, Json], spec: Field) -> list[str]:
    family = spec["amiFamily"].text or "AL2"
    if spec["amiSelectorTerms"] or spec["amiSelector"]:
        if family == "Ubuntu":
            return ["spec.amiFamily Ubuntu is gone in v1: write the family whose userData the image reads"]
        if not any(term["alias"] for term in spec["amiSelectorTerms"]) or spec["amiFamily"]:
            put(node_class, "spec.amiFamily", family)
        return []
    if family not in _ALIASES:
        return []
    put(node_class, "spec.amiSelectorTerms", [{"alias": f"{_ALIASES[family]}@latest"}])
    open_points = []
    if family == "AL2" and spec["userData"]:
        open_points.append("userData written for AL2 has to be rewritten for AL2023")
    if not family.startswith("Windows"):
        open_points.append(f"the alias takes the newest image, as before: pin one ({_ALIASES[family]}@VERSION)")
    return open_points
