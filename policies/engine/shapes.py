"""Find fields of the wrong type among those that policies read, which the API server would reject.

A policy reads a field of the wrong type as missing. Without this check, an object could pass for that reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from gpugate.policies.sdk import quantity
from gpugate.policies.sdk.field import UnknownValueError, is_unknown
from gpugate.policies.sdk.findings import Violation
from gpugate.policies.sdk.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpugate.policies.sdk.field import Field, Json
    from gpugate.policies.sdk.objects import Subject


class _Shape(Protocol):
    """The expected type of a value. `fits` is fast, because nearly every value has it; `faults` yields the errors."""

    def fits(self, value: Json) -> bool: ...

    def faults(self, field: Field) -> Iterator[Violation]: ...


def _wrong(field: Field, wanted: str) -> Iterator[Violation]:
    if not is_unknown(field.value):
        yield Violation(field.path, f"must be {wanted}, not {quantity.type_name(field.value)}")


class _Scalar(Struct, frozen=True):
    wanted: str
    fits: Callable[[Json], bool]

    def faults(self, field: Field) -> Iterator[Violation]:
        yield from _wrong(field, self.wanted)


class _Quoted(_Scalar, frozen=True):
    """A string in a map of strings, in which an unquoted number or boolean is the usual mistake."""

    def faults(self, field: Field) -> Iterator[Violation]:
        if not is_unknown(field.value):
            yield Violation(field.path, f"must be a string, not {quantity.type_name(field.value)}: put it in quotes")


# Any number with fewer digits is a valid quantity.
_PLAIN_DIGITS = 19


class _Quantity:
    def fits(self, value: Json) -> bool:
        if isinstance(value, str) and len(value) < _PLAIN_DIGITS and value.isascii() and value.isdigit():
            return True
        try:
            quantity.parse(value)
        except quantity.QuantityError:
            return False
        except UnknownValueError:
            return True
        return True

    def faults(self, field: Field) -> Iterator[Violation]:
        if is_unknown(field.value):
            return
        try:
            quantity.parse(field.value)
        except quantity.QuantityError as error:
            yield Violation(field.path, str(error))


class _Map(Struct, frozen=True):
    """An object whose keys are free and whose members all have one shape."""

    wanted: str
    member: _Shape

    def fits(self, value: Json) -> bool:
        if not isinstance(value, dict):
            return False
        fits = self.member.fits
        for member in value.values():  # noqa: SIM110 -- `all` takes twice as long for a few members
            if member is not None and not fits(member):
                return False
        return True

    def faults(self, field: Field) -> Iterator[Violation]:
        if not isinstance(field.value, dict):
            yield from _wrong(field, self.wanted)
        for member in field.members():
            if member and not self.member.fits(member.value):
                yield from self.member.faults(member)


class _Object(Struct, frozen=True):
    """An object of which some members have a shape; any may be absent or null."""

    members: tuple[tuple[str, _Shape], ...]

    def fits(self, value: Json) -> bool:
        if not isinstance(value, dict):
            return False
        for name, shape in self.members:
            member = value.get(name)
            if member is not None and not shape.fits(member):
                return False
        return True

    def faults(self, field: Field) -> Iterator[Violation]:
        if not isinstance(field.value, dict):
            yield from _wrong(field, "an object")
        for name, shape in self.members:
            member = field[name]
            if member and not shape.fits(member.value):
                yield from shape.faults(member)


class _List(Struct, frozen=True):
    element: _Shape

    def fits(self, value: Json) -> bool:
        return isinstance(value, list) and all(map(self.element.fits, value))

    def faults(self, field: Field) -> Iterator[Violation]:
        if not isinstance(field.value, list):
            yield from _wrong(field, "a list")
        for element in field:
            if not self.element.fits(element.value):
                yield from self.element.faults(element)


def _object(**members: _Shape) -> _Object:
    return _Object(tuple(members.items()))


def _is_whole(value: Json) -> bool:
    return (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, float) and value.is_integer())


_STRING: Final = _Scalar("a string", lambda value: isinstance(value, str))
_BOOLEAN: Final = _Scalar("true or false", lambda value: isinstance(value, bool))
_INTEGER: Final = _Scalar("a whole number", _is_whole)
_STRINGS: Final = _Map("an object of strings", _Quoted("a string", _STRING.fits))
_QUANTITIES: Final = _Map("an object of quantities", _Quantity())

_METADATA = _object(name=_STRING, namespace=_STRING, generateName=_STRING, labels=_STRINGS, annotations=_STRINGS)
_REQUIREMENT = _object(key=_STRING, operator=_STRING, values=_List(_STRING))
_TAINT = _object(key=_STRING, value=_STRING, effect=_STRING)
_CONTAINER = _object(
    name=_STRING,
    resources=_object(limits=_QUANTITIES, requests=_QUANTITIES, claims=_List(_object(name=_STRING))),
)
_POD_SPEC = _object(
    containers=_List(_CONTAINER),
    initContainers=_List(_CONTAINER),
    nodeSelector=_STRINGS,
    resourceClaims=_List(_object(name=_STRING, resourceClaimName=_STRING, resourceClaimTemplateName=_STRING)),
    tolerations=_List(_object(key=_STRING, operator=_STRING, value=_STRING, effect=_STRING)),
)
_NODE_CLAIM_SPEC = _object(
    expireAfter=_STRING,
    nodeClassRef=_object(group=_STRING, kind=_STRING, name=_STRING),
    requirements=_List(_REQUIREMENT),
    startupTaints=_List(_TAINT),
    taints=_List(_TAINT),
    terminationGracePeriod=_STRING,
)
_DISRUPTION = _object(
    budgets=_List(_object(duration=_STRING, reasons=_List(_STRING), schedule=_STRING)),
    consolidateAfter=_STRING,
    consolidationPolicy=_STRING,
)
_EC2_NODE_CLASS_SPEC = _object(
    amiFamily=_STRING,
    amiSelectorTerms=_List(_object(alias=_STRING, name=_STRING, owner=_STRING, ssmParameter=_STRING, tags=_STRINGS)),
    blockDeviceMappings=_List(_object(ebs=_object(deleteOnTermination=_BOOLEAN, encrypted=_BOOLEAN))),
    metadataOptions=_object(httpEndpoint=_STRING, httpPutResponseHopLimit=_INTEGER, httpTokens=_STRING),
    tags=_STRINGS,
)
_SCALE_TARGET = _object(apiVersion=_STRING, kind=_STRING, name=_STRING)

_SHAPES: Final = {
    ("", "Pod"): _object(metadata=_METADATA, spec=_POD_SPEC),
    ("", "ResourceQuota"): _object(metadata=_METADATA, spec=_object(hard=_QUANTITIES)),
    ("karpenter.sh", "NodePool"): _object(
        metadata=_METADATA,
        spec=_object(
            disruption=_DISRUPTION,
            limits=_QUANTITIES,
            replicas=_INTEGER,
            template=_object(metadata=_METADATA, spec=_NODE_CLAIM_SPEC),
            weight=_INTEGER,
        ),
    ),
    ("karpenter.sh", "NodeClaim"): _object(metadata=_METADATA, spec=_NODE_CLAIM_SPEC),
    ("karpenter.sh", "NodeOverlay"): _object(
        metadata=_METADATA,
        spec=_object(capacity=_QUANTITIES, price=_STRING, requirements=_List(_REQUIREMENT)),
    ),
    ("karpenter.k8s.aws", "EC2NodeClass"): _object(metadata=_METADATA, spec=_EC2_NODE_CLASS_SPEC),
    ("keda.sh", "ScaledObject"): _object(metadata=_METADATA, spec=_object(scaleTargetRef=_SCALE_TARGET)),
    ("autoscaling", "HorizontalPodAutoscaler"): _object(
        metadata=_METADATA,
        spec=_object(scaleTargetRef=_SCALE_TARGET),
    ),
}
# Only `metadata` has the same shape in every kind; `spec` of an unknown kind may be anything.
_UNKNOWN = _object(metadata=_METADATA)


def malformed(subject: Subject) -> Iterator[Violation]:
    """Yield every field of a wrong type in a subject, with its expected and its actual type."""
    shape = _SHAPES.get((subject.kind.group, subject.kind.kind), _UNKNOWN)
    if not shape.fits(subject.field.value):
        yield from shape.faults(subject.field)
