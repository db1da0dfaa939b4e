"""Finds the conversion for an object of a removed API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.nodepools.conversion.node_template import from_template
from gpugate.policies.nodepools.conversion.objects import Converted, metadata
from gpugate.policies.nodepools.conversion.provisioner import from_provisioner
from gpugate.policies.nodepools.conversion.v1beta1 import from_node_claim, from_node_pool

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.objects import GroupVersionKind


def converted(obj: Field, gvk: GroupVersionKind) -> Converted | None:
    """Return what to write instead of an object of this type; None where nothing can be computed.

    Provisioners before v1alpha5 and the kinds of Karpenter v0.1 had other fields, which nothing maps to.
    """
    convert = _CONVERSIONS.get((gvk.version, gvk.kind))
    return convert(obj) if convert else None


def as_received(obj: Field) -> Converted:
    """Return an object that the API server has already converted, without what only the server writes."""
    kept = {"apiVersion": obj["apiVersion"].value, "kind": obj["kind"].value, "metadata": metadata(obj)}
    return Converted(({**kept, "spec": obj["spec"].value},))


def _node_template(obj: Field) -> Converted:
    return from_template(obj, obj["spec"])


_CONVERSIONS: Final[dict[tuple[str, str], Callable[[Field], Converted]]] = {
    ("v1alpha5", "Provisioner"): from_provisioner,
    ("v1alpha5", "Machine"): from_node_claim,
    ("v1alpha1", "AWSNodeTemplate"): _node_template,
    ("v1beta1", "NodePool"): from_node_pool,
    ("v1beta1", "NodeClaim"): from_node_claim,
    ("v1beta1", "EC2NodeClass"): _node_template,
}
