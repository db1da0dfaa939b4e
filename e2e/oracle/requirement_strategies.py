"""What a NodePool may require of its nodes: random entries that Karpenter's CRD lets through.

Source: `pkg/apis/crds/karpenter.sh_nodepools.yaml` of Karpenter v1.14.1. Its pattern for values stands at the list and not
at its items, so that any string is a value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from gpugate.policies.data.instance_types import INSTANCE_TYPE, load_instance_types

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

CATALOGUE = load_instance_types()
# Old names of labels, labels of offerings and of users: none of them narrows instance types but the first two.
OTHER_LABELS = (
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/instance-type",
    "beta.kubernetes.io/os",
    "failure-domain.beta.kubernetes.io/zone",
    "topology.kubernetes.io/zone",
    "karpenter.sh/capacity-type",
    "kubernetes.io/os",
    "example.com/team",
)
ODD_VALUES = ("", "0", "1", "p5.96xlarge", "H100", "amd64 ", "1.0", "1_0", "0x1", "٣", "-1", "+8", "008", "-0")
GREATEST = 2**63 - 1

labels = st.sampled_from([*CATALOGUE.labelled, *OTHER_LABELS])
spellings = st.sampled_from(["{}", "{}", "{}", "+{}", "0{}", "+00{}", "{:0>40}"])


def values_of(label: str) -> SearchStrategy[str]:
    """Draw a value that types have, or one that they do not."""
    usual = CATALOGUE.names if "instance-type" in label else tuple(CATALOGUE.values.get(label, ODD_VALUES))
    numbers = st.builds(str.format, spellings, st.integers(0, 10**20))
    return st.sampled_from(usual) | st.sampled_from(usual) | st.sampled_from(ODD_VALUES) | numbers


def bounds_of(label: str) -> SearchStrategy[str]:
    """Draw a whole number from 0, near one that types have or anywhere."""
    scale = CATALOGUE.scales.get(label)
    near = st.sampled_from(scale.numbers if scale else (0, 1, 8)).flatmap(
        lambda number: st.integers(max(number - 1, 0), number + 1)
    )
    numbers = near | near | st.integers(0, GREATEST) | st.sampled_from([GREATEST, GREATEST - 1])
    return st.builds(str.format, spellings, numbers) | st.just("-0")


@st.composite
def entry(draw: DrawFn, label: str) -> dict[str, Any]:
    """Draw an element of `requirements`."""
    operator = draw(st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Gte", "Lt", "Lte"]))
    if operator in {"In", "NotIn"}:
        values = draw(st.lists(values_of(label), min_size=operator == "In", max_size=6))
    elif operator in {"Exists", "DoesNotExist"}:
        values = draw(st.just([]) | st.lists(values_of(label), max_size=2))
    else:
        values = [draw(bounds_of(label))]
    made: dict[str, Any] = {"key": label, "operator": operator, "values": values}
    most = len(values) if operator == "In" else 50
    least = draw(st.none() | st.integers(1, most))
    return made if least is None else made | {"minValues": least}


@st.composite
def pools(draw: DrawFn) -> dict[str, Any]:
    """Draw the requirements of a pool, several on one label more often than not, and the labels of its template."""
    chosen = draw(st.lists(labels, min_size=1, max_size=4, unique=True))
    entries = draw(st.lists(st.sampled_from(chosen).flatmap(entry), max_size=6))
    stated = draw(st.lists(st.sampled_from(chosen), max_size=2, unique=True))
    return {"requirements": entries, "labels": {label: draw(values_of(label)) for label in stated}}


def type_labels() -> list[dict[str, str]]:
    """Return the labels of every type of the catalogue, by position."""
    types: list[dict[str, str]] = [{INSTANCE_TYPE: name} for name in CATALOGUE.names]
    for label, by_value in CATALOGUE.values.items():
        for value, having in by_value.items():
            for position in CATALOGUE.positions_in(having):
                types[position][label] = value
    return types
