"""Karpenter requirements, node affinity, tolerations and label selectors, evaluated as schedulers do.

Source: `k8s.io/apimachinery/pkg/apis/meta/v1/helpers.go` (LabelSelectorAsSelector), `pkg/labels/selector.go`, v0.36.

Sources: Karpenter v1.14.1 (`pkg/scheduling/requirement.go`, `requirements.go`; `pkg/apis/v1/labels.go`: aliases of keys;
`pkg/apis/crds/karpenter.sh_nodepools.yaml`: what an entry may hold).

Source: `k8s.io/component-helpers/scheduling/corev1/nodeaffinity`, v0.36: the node selector and one of the terms of the
required node affinity hold; a term that says nothing holds nowhere.

Source: `k8s.io/api/core/v1/toleration.go` (`ToleratesTaint`), v0.36.
"""

from __future__ import annotations

import re
from collections import ChainMap
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from gpugate.policies.sdk.concerns import Each, Key, Text
from gpugate.policies.sdk.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from gpugate.policies.data.instance_types import InstanceTypes
    from gpugate.policies.sdk.concerns import Concern
    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.platform import Taint
    from gpugate.policies.sdk.policy import AnyContext

Operator: TypeAlias = Literal["In", "NotIn", "Exists", "DoesNotExist"]

_ALIASES: Final = {
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
}
# Integers as the CRD's int() and Go's strconv.Atoi read them: 64 bits, in any spelling.
_NUMBER = re.compile(r"([+-]?)0*([0-9]{1,19})")
_GREATEST = 2**63 - 1


class Requirement(Struct, frozen=True):
    """The values that one label may have.

    Attributes:
        complement: whether the label may have any value except `values`, and not only those.
        values: the values that the requirement names.
        gte: the least whole number the value may be, or None.
        lte: the greatest, or None.
        min_values: the least number of different values among the instance types to choose from, or None.
    """

    complement: bool
    values: frozenset[str] = frozenset()
    gte: int | None = None
    lte: int | None = None
    min_values: int | None = None

    @property
    def operator(self) -> Operator:
        """The operator as which Karpenter treats the requirement, apart from its bounds."""
        if self.complement:
            return "NotIn" if self.values else "Exists"
        return "In" if self.values else "DoesNotExist"

    def allows(self, value: str) -> bool:
        """Tell whether the label may have this value."""
        return (value in self.values) != self.complement and _within(value, self.gte, self.lte)

    def intersect(self, other: Requirement) -> Requirement:
        """Return the intersection of both requirements."""
        gte, lte = _tighter(max, self.gte, other.gte), _tighter(min, self.lte, other.lte)
        least = _tighter(max, self.min_values, other.min_values)
        if gte is not None and lte is not None and gte > lte:
            return Requirement(complement=False, min_values=least)
        if self.complement and other.complement:
            values = self.values | other.values
        elif self.complement:
            values = other.values - self.values
        elif other.complement:
            values = self.values - other.values
        else:
            values = self.values & other.values
        values = frozenset(v for v in values if _within(v, gte, lte))
        if self.complement and other.complement:
            return Requirement(True, values, gte, lte, least)  # noqa: FBT003 -- `complement`
        return Requirement(complement=False, values=values, min_values=least)


Requirements: TypeAlias = "Mapping[str, Requirement]"


HOSTNAME_LABEL: Final = "kubernetes.io/hostname"
# The labels of a node's zone: its name in the account, and its ID.
ZONES: Final = ("topology.kubernetes.io/zone", "topology.k8s.aws/zone-id")


def normalized(key: str) -> str:
    """Return the label of which a key is an old alias, or else the key."""
    return _ALIASES.get(key, key)


def read_requirement(entry: Field) -> tuple[str, Requirement] | None:
    """Read an element of `requirements`.

    Return None for an element that the CRD rejects: without a key, with an unknown operator, `In` without a value, or a
    bound that is not one whole number from 0. Values that are not strings are ignored. Unknown zones are treated as any
    zone, because they do not restrict instance types.
    """
    key, operator = normalized(entry["key"].text), entry["operator"].text
    least = entry["minValues"].integer
    if not key:
        return None
    if operator in {"Exists", "DoesNotExist"} or (key in ZONES and not _are_known(entry["values"])):
        return key, Requirement(operator != "DoesNotExist", min_values=least)
    values = entry["values"].texts
    if operator in {"In", "NotIn"}:
        excluded = operator == "NotIn"
        return (key, Requirement(excluded, frozenset(values), min_values=least)) if values or excluded else None
    number = _number(values[0]) if len(values) == 1 else None
    if operator not in {"Gt", "Gte", "Lt", "Lte"} or number is None or number < 0:
        return None
    if operator == "Gt" and number == _GREATEST:
        return key, Requirement(complement=False)
    bounds = {"Gt": (number + 1, None), "Gte": (number, None), "Lt": (None, number - 1), "Lte": (None, number)}
    gte, lte = bounds[operator]
    return key, Requirement(complement=True, gte=gte, lte=lte, min_values=least)


def _are_known(values: Field) -> bool:
    return values.known and all(value.known for value in values)


def add_requirement(requirements: dict[str, Requirement], key: str, requirement: Requirement) -> None:
    """Intersect the requirement of a label with another one."""
    present = requirements.get(key)
    requirements[key] = requirement.intersect(present) if present else requirement


def intersect(requirements: Sequence[Requirement]) -> Requirement:
    """Return the intersection of one or more requirements; linear in their values, which a fold is not."""
    if len(requirements) == 1:
        return requirements[0]
    gte = max((r.gte for r in requirements if r.gte is not None), default=None)
    lte = min((r.lte for r in requirements if r.lte is not None), default=None)
    least = max((r.min_values for r in requirements if r.min_values is not None), default=None)
    if gte is not None and lte is not None and gte > lte:
        return Requirement(complement=False, min_values=least)
    excluded = frozenset().union(*(r.values for r in requirements if r.complement))
    named = sorted((r.values for r in requirements if not r.complement), key=len)
    values = named[0].intersection(*named[1:]) - excluded if named else excluded
    values = frozenset(v for v in values if _within(v, gte, lte))
    if named:
        return Requirement(complement=False, values=values, min_values=least)
    return Requirement(True, values, gte, lte, least)  # noqa: FBT003 -- `complement`


def combine(requirements: Iterable[tuple[str, Requirement]]) -> dict[str, Requirement]:
    """Return the intersection of the requirements of each label."""
    by_key: dict[str, list[Requirement]] = {}
    for key, requirement in requirements:
        by_key.setdefault(key, []).append(requirement)
    return {key: intersect(of_key) for key, of_key in by_key.items()}


def is_only(value: str) -> Requirement:
    """Return the requirement of a label of the node template: exactly this value."""
    return Requirement(complement=False, values=frozenset((value,)))


def matching(requirements: Requirements, catalogue: InstanceTypes) -> int:
    """Return the types that meet all requirements, apart from labels that instance types do not have."""
    types = catalogue.everything
    # A loop over the labels of the catalogue, which are few.
    for key in catalogue.labelled:
        requirement = requirements.get(key)
        if requirement is not None:
            types &= meeting(key, requirement, catalogue)
    return types


def meeting(key: str, requirement: Requirement, catalogue: InstanceTypes) -> int:
    """Return the types that meet one requirement.

    A type without the label meets `NotIn` and `DoesNotExist`. This includes `NotIn` with a bound, which Karpenter
    treats as `NotIn`.
    """
    named = 0
    for value in requirement.values:
        named |= catalogue.of(key, value)
    if requirement.operator == "In":
        return named
    carrying = catalogue.having(key)
    without = catalogue.everything & ~carrying
    if requirement.operator == "DoesNotExist":
        return without
    gte, lte = requirement.gte, requirement.lte
    if gte is not None or lte is not None:
        scale = catalogue.scales.get(key)
        carrying = scale.at_least(gte or 0) if scale else 0
        if scale and lte is not None:
            carrying &= ~scale.at_least(lte + 1)
    return carrying & ~named | (without if requirement.values else 0)


def _number(text: str) -> int | None:
    match = _NUMBER.fullmatch(text)
    number = int(match[1] + match[2]) if match else None
    return number if number is not None and -_GREATEST - 1 <= number <= _GREATEST else None


def _within(value: str, gte: int | None, lte: int | None) -> bool:
    if gte is None and lte is None:
        return True
    number = _number(value)
    return number is not None and (gte is None or number >= gte) and (lte is None or number <= lte)


def _tighter(choose: Callable[[int, int], int], left: int | None, right: int | None) -> int | None:
    if left is None or right is None:
        return left if right is None else right
    return choose(left, right)


# The path of the terms of the required node affinity.
REQUIRED: Final = (
    "spec",
    "affinity",
    "nodeAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "nodeSelectorTerms",
)


def alternatives(pod: Field, _ctx: AnyContext) -> tuple[Requirements, ...]:
    """Return the alternative requirements of a Pod or Pod template for labels, one of which must hold."""
    selector = {normalized(k): is_only(v) for k, v in _selector(pod).items()}
    terms = [term for term in pod[REQUIRED] if term.mapping]
    return tuple(_narrowed(selector, term) for term in terms) if terms else (selector,)


_PREFERRED: Final = (*REQUIRED[:3], "preferredDuringSchedulingIgnoredDuringExecution")


def heaviest_preference(pod: Field) -> Requirements:
    """Return the first preference of a Pod for labels with the greatest weight; empty if it has none."""
    terms = list(pod[_PREFERRED])
    if not terms:
        return {}
    heaviest = max(terms, key=lambda term: term["weight"].integer or 0)
    read = (read_requirement(entry) for entry in heaviest["preference", "matchExpressions"])
    return combine(pair for pair in read if pair)


def may_have(key: str, value: str, ctx: AnyContext) -> bool:
    """Tell whether the Pod's requirements for a label allow this value."""
    return any(key not in required or required[key].allows(value) for required in ctx.derived(alternatives))


def selected(key: str, ctx: AnyContext) -> frozenset[str]:
    """Return the values of which the label of the Pod's node must have one; empty if it may have others."""
    named: list[frozenset[str]] = []
    for required in ctx.derived(alternatives):
        requirement = required.get(key)
        if requirement is None or requirement.operator != "In":
            return frozenset()
        named.append(requirement.values)
    return frozenset().union(*named)


def selecting_by(*keys: str) -> Concern:
    """Return a concern for the Pods that have a requirement for one of these labels."""
    in_terms = Each(".".join(REQUIRED), Each("matchExpressions", Text("key", keys)))
    return Key("spec.nodeSelector", keys) | in_terms


def _selector(pod: Field) -> dict[str, str]:
    return pod["spec", "nodeSelector"].labels


def _narrowed(selector: dict[str, Requirement], term: Field) -> Requirements:
    """Return the requirements of a term, chained to those of the selector, which all terms share."""
    read = (read_requirement(entry) for entry in term["matchExpressions"])
    combined = combine(requirement for requirement in read if requirement)
    if not selector:
        return combined
    for key in combined:
        if key in selector:
            combined[key] = combined[key].intersect(selector[key])
    return ChainMap(combined, selector)


# A decimal integer as the API server reads it (`k8s.io/apimachinery/pkg/api/validate/content`, IsDecimalInteger).
_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]{0,18}")


def tolerates(toleration: Field, taint: Taint, effect: str = "NoSchedule") -> bool:
    """Tell whether one toleration covers a taint with this effect."""
    key, operator = toleration["key"].text, toleration["operator"].text or "Equal"
    if toleration["effect"].text not in {"", effect}:
        return False
    if not key:
        return operator == "Exists"
    return key == taint.key and _covers(operator, toleration["value"].text, taint.value)


def _covers(operator: str, value: str, taint: str) -> bool:
    """Compare the value of a toleration with that of a taint. `Lt` and `Gt` compare numbers (alpha since v1.35)."""
    if operator in {"Lt", "Gt"}:
        if not (_INTEGER.fullmatch(value) and _INTEGER.fullmatch(taint)):
            return False
        return int(taint) < int(value) if operator == "Lt" else int(taint) > int(value)
    return operator == "Exists" or (operator == "Equal" and value == taint)


# Effects of taints that exclude Pods without a toleration. PreferNoSchedule only makes a node the last choice.
HARD_EFFECTS: Final = frozenset({"NoSchedule", "NoExecute"})


def tolerated(pod: Field, taint: Taint, effect: str = "NoSchedule") -> bool:
    """Tell whether any toleration of a Pod or Pod template covers a taint with this effect."""
    return any(tolerates(t, taint, effect) for t in pod["spec", "tolerations"])


def selects(selector: Field, labels: Mapping[str, str]) -> bool:
    """Tell whether a LabelSelector selects an object with these labels.

    A missing selector selects nothing, an empty one everything. `NotIn` and `DoesNotExist` select objects without the
    label. An unknown operator, which the API server rejects, selects nothing.
    """
    return (
        isinstance(selector.value, dict)
        and all(labels.get(key) == value for key, value in selector["matchLabels"].mapping.items())
        and all(_meets(expression, labels) for expression in selector["matchExpressions"])
    )


def _meets(expression: Field, labels: Mapping[str, str]) -> bool:
    key, values = expression["key"].text, expression["values"].texts
    match expression["operator"].text:
        case "In":
            return key in labels and labels[key] in values
        case "NotIn":
            return key not in labels or labels[key] not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
    return False
