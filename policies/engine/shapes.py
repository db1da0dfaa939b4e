"""Finds fields of the wrong type among those that policies read, which the API server would refuse.

A policy reads a field of the wrong type as absent; without this check it could pass for that reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from gpugate.policies.sdk import quantity
from gpugate.policies.sdk.findings import Violation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.request import Subject

_Shape: TypeAlias = "Callable[[Field], Iterator[Violation]]"


def _wrong(field: Field, wanted: str) -> Iterator[Violation]:
    yield Violation(field.path, f"must be {wanted}, not {quantity.type_name(field.value)}")


def _strings(field: Field) -> Iterator[Violation]:
    if not isinstance(field.value, dict):
        yield from _wrong(field, "an object of strings")
        return
    for member in field.members():
        if member and not isinstance(member.value, str):
            yield Violation(member.path, f"must be a string, not {quantity.type_name(member.value)}: put it in quotes")


def _quantities(field: Field) -> Iterator[Violation]:
    if not isinstance(field.value, dict):
        yield from _wrong(field, "an object of quantities")
        return
    for member in field.members():
        if isinstance(member.value, str) and member.value.isascii() and member.value.isdigit():
            continue
        try:
            quantity.parse(member.value if member else 0)
        except quantity.QuantityError as error:
            yield Violation(member.path, str(error))


def _string(field: Field) -> Iterator[Violation]:
    if not isinstance(field.value, str):
        yield from _wrong(field, "a string")


def _boolean(field: Field) -> Iterator[Violation]:
    if not isinstance(field.value, bool):
        yield from _wrong(field, "true or false")


def _integer(field: Field) -> Iterator[Violation]:
    whole = isinstance(field.value, float) and field.value.is_integer()
    if field.integer is None and not whole:
        yield from _wrong(field, "a whole number")


def _object(**members: _Shape) -> _Shape:
    def check(field: Field) -> Iterator[Violation]:
        if not isinstance(field.value, dict):
            yield from _wrong(field, "an object")
            return
        for name, shape in members.items():
            member = field[name]
            if member:
                yield from shape(member)

    return check


def _list(element: _Shape) -> _Shape:
    def check(field: Field) -> Iterator[Violation]:
        if not isinstance(field.value, list):
            yield from _wrong(field, "a list")
            return
        for member in field:
            yield from element(member)

    return check


_METADATA = _object(name=_string, namespace=_string, generateName=_string, labels=_strings, annotations=_strings)
_REQUIREMENT = _object(key=_string, operator=_string, values=_list(_string))
_TAINT = _object(key=_string, value=_string, effect=_string)
_CONTAINER = _object(
    name=_string,
    resources=_object(limits=_quantities, requests=_quantities, claims=_list(_object(name=_string))),
)
_POD_SPEC = _object(
    containers=_list(_CONTAINER),
    initContainers=_list(_CONTAINER),
    nodeSelector=_strings,
    resourceClaims=_list(_object(name=_string, resourceClaimName=_string, resourceClaimTemplateName=_string)),
    tolerations=_list(_object(key=_string, operator=_string, value=_string, effect=_string)),
)
_NODE_CLAIM_SPEC = _object(
    expireAfter=_string,
    nodeClassRef=_object(group=_string, kind=_string, name=_string),
    requirements=_list(_REQUIREMENT),
    startupTaints=_list(_TAINT),
    taints=_list(_TAINT),
    terminationGracePeriod=_string,
)
_DISRUPTION = _object(
    budgets=_list(_object(duration=_string, reasons=_list(_string), schedule=_string)),
    consolidateAfter=_string,
    consolidationPolicy=_string,
)
_EC2_NODE_CLASS_SPEC = _object(
    amiFamily=_string,
    amiSelectorTerms=_list(_object(alias=_string, name=_string, owner=_string, ssmParameter=_string, tags=_strings)),
    blockDeviceMappings=_list(_object(ebs=_object(deleteOnTermination=_boolean, encrypted=_boolean))),
    metadataOptions=_object(httpEndpoint=_string, httpPutResponseHopLimit=_integer, httpTokens=_string),
    tags=_strings,
)
_SCALE_TARGET = _object(apiVersion=_string, kind=_string, name=_string)

_SHAPES: Final = {
    ("", "Pod"): _object(metadata=_METADATA, spec=_POD_SPEC),
    ("karpenter.sh", "NodePool"): _object(
        metadata=_METADATA,
        spec=_object(
            disruption=_DISRUPTION,
            limits=_quantities,
            replicas=_integer,
            template=_object(metadata=_METADATA, spec=_NODE_CLAIM_SPEC),
            weight=_integer,
        ),
    ),
    ("karpenter.sh", "NodeClaim"): _object(metadata=_METADATA, spec=_NODE_CLAIM_SPEC),
    ("karpenter.k8s.aws", "EC2NodeClass"): _object(metadata=_METADATA, spec=_EC2_NODE_CLASS_SPEC),
    ("keda.sh", "ScaledObject"): _object(metadata=_METADATA, spec=_object(scaleTargetRef=_SCALE_TARGET)),
    ("autoscaling", "HorizontalPodAutoscaler"): _object(
        metadata=_METADATA,
        spec=_object(scaleTargetRef=_SCALE_TARGET),
    ),
}
_ANY_OBJECT = _object(metadata=_METADATA, spec=_object())
# Only `metadata` has one shape in every kind; `spec` may be anything in a kind we do not know.
_UNKNOWN = _object(metadata=_METADATA)


def malformed(subject: Subject) -> Iterator[Violation]:
    """Yield every field of a wrong type in a subject: where, what it must be, and what it is."""
    yield from _SHAPES.get((subject.kind.group, subject.kind.kind), _UNKNOWN)(subject.field)
