from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpugate.policies.data.instance_types import InstanceTypes, load_instance_types
from gpugate.policies.sdk import scheduling
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.scheduling import Requirement

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Json

TYPE = "node.kubernetes.io/instance-type"
ARCH = "kubernetes.io/arch"
AWS = "karpenter.k8s.aws/instance-"
FAMILY, SIZE, CATEGORY, GENERATION = f"{AWS}family", f"{AWS}size", f"{AWS}category", f"{AWS}generation"
GPU, COUNT, MEMORY = f"{AWS}gpu-name", f"{AWS}gpu-count", f"{AWS}gpu-memory"
ACCELERATOR, MAKER = f"{AWS}accelerator-name", f"{AWS}accelerator-manufacturer"
CAPACITY = "karpenter.sh/capacity-type"

Row = tuple[str, str, list[str]]


@pytest.fixture(scope="module")
def catalogue() -> InstanceTypes:
    return load_instance_types()


def read(*rows: Row) -> dict[str, Requirement]:
    found: dict[str, Requirement] = {}
    for key, operator, values in rows:
        entry: Json = {"key": key, "operator": operator, "values": [*values]}
        pair = scheduling.read_requirement(Field(entry))
        assert pair
        scheduling.add_requirement(found, *pair)
    return found


# Types and families of the catalogue that meet each set of requirements. Every row with requirements was confirmed with
# Karpenter v1.14.1's own pkg/scheduling.
TABLE = {
    "inference pool of three types": (
        3,
        2,
        [
            (ARCH, "In", ["amd64"]),
            (CAPACITY, "In", ["on-demand", "spot"]),
            (TYPE, "In", ["p5.48xlarge", "g6e.12xlarge", "g6e.48xlarge"]),
        ],
    ),
    "inference pool of three families": (
        3,
        3,
        [
            (ARCH, "In", ["amd64"]),
            (TYPE, "In", ["p4d.24xlarge", "p5.48xlarge", "g5.48xlarge"]),
            (COUNT, "Gt", ["0"]),
        ],
    ),
    "multi-arch pool": (
        835,
        78,
        [(ARCH, "In", ["amd64", "arm64"]), (CATEGORY, "In", ["c", "m", "r"]), (GENERATION, "Gt", ["5"])],
    ),
    "diverse spot pool": (
        21,
        6,
        [
            (GPU, "In", ["t4", "a10g", "l4"]),
            (SIZE, "In", ["xlarge", "2xlarge", "4xlarge", "8xlarge", "12xlarge"]),
            ("topology.kubernetes.io/zone", "In", ["us-east-1a", "us-east-1b"]),
        ],
    ),
    "general GPU pool": (
        57,
        15,
        [(COUNT, "Gt", ["0"]), (CATEGORY, "In", ["g", "p"]), (ARCH, "In", ["amd64"])],
    ),
    "inference pool by GPU and size": (
        14,
        6,
        [(GPU, "In", ["t4", "a10g", "l4"]), (SIZE, "In", ["xlarge", "2xlarge", "4xlarge"])],
    ),
    "training pool by GPU": (12, 4, [(GPU, "In", ["a100", "h100", "a10g"]), (COUNT, "Gt", ["0"])]),
    "any GPU": (65, 17, [(COUNT, "Gt", ["0"])]),
    "inferentia by type": (
        4,
        1,
        [(TYPE, "In", ["inf2.xlarge", "inf2.8xlarge", "inf2.24xlarge", "inf2.48xlarge"])],
    ),
    "a10g of category g": (8, 1, [(GPU, "In", ["a10g"]), (CATEGORY, "In", ["g"])]),
    "t4 of category g": (7, 1, [(GPU, "In", ["t4"]), (CATEGORY, "In", ["g"])]),
    "three g5 types": (3, 1, [(TYPE, "In", ["g5.12xlarge", "g5.24xlarge", "g5.48xlarge"])]),
    "family p4d": (1, 1, [(FAMILY, "In", ["p4d"])]),
    "family p4de": (1, 1, [(FAMILY, "In", ["p4de"])]),
    "family p5e": (1, 1, [(FAMILY, "In", ["p5e"])]),
    "family p5en": (1, 1, [(FAMILY, "In", ["p5en"])]),
    "family p6-b200": (1, 1, [(FAMILY, "In", ["p6-b200"])]),
    "family p6-b300": (1, 1, [(FAMILY, "In", ["p6-b300"])]),
    "family p5": (2, 1, [(FAMILY, "In", ["p5"])]),
    "h100": (2, 1, [(GPU, "In", ["h100"])]),
    "a100": (2, 2, [(GPU, "In", ["a100"])]),
    "h200": (2, 2, [(GPU, "In", ["h200"])]),
    "b200": (1, 1, [(GPU, "In", ["b200"])]),
    "b300": (1, 1, [(GPU, "In", ["b300"])]),
    "trainium2": (1, 1, [(ACCELERATOR, "In", ["trainium2"])]),
    "several h100": (1, 1, [(GPU, "In", ["h100"]), (COUNT, "Gt", ["1"])]),
    "a100 of 80 GB": (1, 1, [(GPU, "In", ["a100"]), (MEMORY, "Gt", ["40960"])]),
    "one size of g5": (1, 1, [(FAMILY, "In", ["g5"]), (SIZE, "In", ["48xlarge"])]),
    "a type allowed and another excluded": (
        1,
        1,
        [(TYPE, "In", ["g5.xlarge", "g5.2xlarge"]), (TYPE, "NotIn", ["g5.2xlarge"])],
    ),
    "the same type twice": (1, 1, [(TYPE, "In", ["p5.48xlarge", "p5.48xlarge"])]),
    "two lists with one in common": (
        1,
        1,
        [(TYPE, "In", ["p5.48xlarge", "p4d.24xlarge"]), (TYPE, "In", ["p5.48xlarge", "g5.48xlarge"])],
    ),
    "a known and an unknown type": (1, 1, [(TYPE, "In", ["p5.48xlarge", "p5.96xlarge"])]),
    "retired types": (0, 0, [(TYPE, "In", ["p3.2xlarge", "p3.8xlarge"])]),
    "two types, one of the architecture": (
        1,
        1,
        [(TYPE, "In", ["g5g.xlarge", "g5.xlarge"]), (ARCH, "In", ["arm64"])],
    ),
    "an old alias": (1, 1, [("beta.kubernetes.io/instance-type", "In", ["p5.48xlarge"])]),
    "H100 in upper case": (0, 0, [(GPU, "In", ["H100"])]),
    "A10G in upper case": (0, 0, [(GPU, "In", ["A10G"])]),
    "total GPU memory": (0, 0, [(MEMORY, "In", ["655360"])]),
    "GPU memory in GB": (70, 19, [(MEMORY, "Gt", ["79"])]),
    "GPU memory from 80 GB": (13, 7, [(MEMORY, "Gte", ["81920"])]),
    "NotIn beside a bound": (1344, 168, [(COUNT, "Gt", ["0"]), (COUNT, "NotIn", ["8"])]),
    "bounds alone": (51, 10, [(COUNT, "Gt", ["0"]), (COUNT, "Lt", ["8"])]),
    "any GPU but t4": (1356, 176, [(GPU, "NotIn", ["t4"])]),
    "largest sizes with GPUs": (10, 10, [(SIZE, "In", ["48xlarge"]), (COUNT, "Gt", ["0"])]),
    "category trn": (4, 3, [(CATEGORY, "In", ["trn"])]),
    "accelerators of AWS": (12, 5, [(MAKER, "In", ["aws"])]),
    "a label that Karpenter does not know": (1363, 177, [("node.kubernetes.io/instance-family", "In", ["p5"])]),
    "nothing": (1363, 177, []),
    "without a GPU": (1293, 158, [(COUNT, "DoesNotExist", [])]),
    "with a GPU": (70, 19, [(COUNT, "Exists", [])]),
    "a bound above all": (0, 0, [(COUNT, "Gt", ["9223372036854775806"])]),
    "a bound above the greatest number, which Karpenter takes for DoesNotExist": (
        1293,
        158,
        [(COUNT, "Gt", ["9223372036854775807"])],
    ),
    "a bound with zeros before it": (65, 17, [(COUNT, "Gt", ["+0" + "0" * 30])]),
    "bounds that exclude each other": (0, 0, [(GPU, "Exists", []), (COUNT, "Gt", ["4"]), (COUNT, "Lt", ["2"])]),
    "a bound on a label that is no number": (0, 0, [(GPU, "Gt", ["1"])]),
    "a bound of a list": (1, 1, [(COUNT, "In", ["4", "8"]), (COUNT, "Gt", ["4"]), (GPU, "In", ["b200"])]),
}


@pytest.mark.parametrize("name", TABLE)
def test_requirements_match_as_karpenter_matches_them(name: str, catalogue: InstanceTypes) -> None:
    types, families, rows = TABLE[name]
    matched = scheduling.matching(read(*rows), catalogue)
    found = {catalogue.label(FAMILY, position) for position in catalogue.positions_in(matched)}
    assert (matched.bit_count(), len(found)) == (types, families)


@pytest.mark.parametrize(
    ("rows", "accelerated"),
    [
        ([(COUNT, "Gt", ["0"]), (COUNT, "NotIn", ["8"])], 64),
        ([(GPU, "NotIn", ["t4"])], 76),
        ([], 83),
        ([(ARCH, "In", ["amd64", "arm64"]), (CATEGORY, "In", ["c", "m", "r"]), (GENERATION, "Gt", ["5"])], 0),
    ],
    ids=["NotIn beside a bound", "any GPU but t4", "nothing", "multi-arch"],
)
def test_some_of_them_have_an_accelerator(rows: list[Row], accelerated: int, catalogue: InstanceTypes) -> None:
    assert (scheduling.matching(read(*rows), catalogue) & catalogue.accelerated).bit_count() == accelerated


REFUSED: dict[str, Json] = {
    "no key": {"operator": "In", "values": ["a"]},
    "key of another type": {"key": 7, "operator": "In", "values": ["a"]},
    "no operator": {"key": "a", "values": ["a"]},
    "unknown operator": {"key": "a", "operator": "Like", "values": ["a"]},
    "In without values": {"key": "a", "operator": "In", "values": []},
    "In with numbers alone": {"key": "a", "operator": "In", "values": [1, 2]},
    "values of another type": {"key": "a", "operator": "In", "values": "a"},
    "a bound that is no number": {"key": "a", "operator": "Gt", "values": ["many"]},
    "a bound below 0": {"key": "a", "operator": "Gt", "values": ["-1"]},
    "a bound with digits of another script": {"key": "a", "operator": "Gt", "values": ["٣"]},
    "a bound of 5,000 digits": {"key": "a", "operator": "Gt", "values": ["9" * 5000]},
    "a bound beyond 64 bits": {"key": "a", "operator": "Lt", "values": ["9223372036854775808"]},
    "two bounds": {"key": "a", "operator": "Gt", "values": ["1", "2"]},
    "no bound": {"key": "a", "operator": "Lte"},
    "not an object": ["a"],
    "null": None,
}


@pytest.mark.parametrize("entry", REFUSED.values(), ids=REFUSED)
def test_an_entry_that_the_crd_refuses_is_left_out(entry: Json) -> None:
    assert scheduling.read_requirement(Field(entry)) is None


def test_values_that_are_no_strings_are_left_out() -> None:
    entry: Json = {"key": "a", "operator": "In", "values": ["x", 8, None, ["y"]]}
    assert scheduling.read_requirement(Field(entry)) == ("a", Requirement(complement=False, values=frozenset({"x"})))


def in_(*values: str) -> Requirement:
    return Requirement(complement=False, values=frozenset(values))


def not_in(*values: str, gte: int | None = None, lte: int | None = None) -> Requirement:
    return Requirement(complement=True, values=frozenset(values), gte=gte, lte=lte)


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (in_("a", "b"), in_("b", "c"), in_("b")),
        (in_("a", "b"), not_in("b"), in_("a")),
        (not_in("a"), not_in("b"), not_in("a", "b")),
        (in_("1", "8", "x"), not_in(gte=4), in_("8")),
        (not_in("1", "8"), not_in(gte=4), not_in("8", gte=4)),
        (not_in(gte=2), not_in(gte=4, lte=8), not_in(gte=4, lte=8)),
        (not_in(gte=5), not_in(lte=4), in_()),
        (in_("a"), in_("b"), in_()),
    ],
    ids=["In In", "In NotIn", "NotIn NotIn", "In Gte", "NotIn Gte", "bounds", "empty bounds", "nothing in common"],
)
def test_two_requirements_on_a_label_allow_what_both_allow(
    one: Requirement, other: Requirement, both: Requirement
) -> None:
    assert one.intersect(other) == other.intersect(one) == both


@pytest.mark.parametrize(
    ("requirement", "operator"),
    [
        (in_("a"), "In"),
        (in_(), "DoesNotExist"),
        (not_in("a"), "NotIn"),
        (not_in(), "Exists"),
        (not_in(gte=1), "Exists"),
    ],
)
def test_the_operator_is_what_is_left(requirement: Requirement, operator: str) -> None:
    assert requirement.operator == operator


NUMBERS = st.none() | st.integers(0, 5)


@st.composite
def anything_required(draw: st.DrawFn) -> Requirement:
    values = draw(st.frozensets(st.sampled_from(("0", "1", "2", "3", "4", "5", "a", "b"))))
    least = draw(NUMBERS)
    if draw(st.booleans()):
        return Requirement(complement=False, values=values, min_values=least)
    return Requirement(complement=True, values=values, gte=draw(NUMBERS), lte=draw(NUMBERS), min_values=least)


@given(st.lists(anything_required(), min_size=1, max_size=6))
def test_many_at_once_allow_what_one_after_the_other_allows(required: list[Requirement]) -> None:
    # One that names values has no bounds of its own, as `read` and `intersect` make them.
    folded = reduce(Requirement.intersect, required)
    assert scheduling.intersect(required) == folded


def test_the_greatest_min_values_counts() -> None:
    one, other = Requirement(complement=True, min_values=2), Requirement(complement=True, min_values=5)
    assert one.intersect(other).min_values == 5


def some(*values: str, least: int | None = None) -> Requirement:
    return Requirement(complement=False, values=frozenset(values), min_values=least)


def bounded(gte: int | None = None, lte: int | None = None, *but: str, least: int | None = None) -> Requirement:
    return Requirement(complement=True, values=frozenset(but), gte=gte, lte=lte, min_values=least)


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (bounded(3), bounded(None, 3), bounded(3, 3)),
        (bounded(4, least=2), bounded(None, 3, least=1), some(least=2)),
        (bounded(1, 9), bounded(2, 8), bounded(2, 8)),
        (bounded(2, None, "1", "5", "x"), bounded(None, 4, "2", "3"), bounded(2, 4, "2", "3")),
        (some("1", "2", "x", least=3), bounded(2), some("2", least=3)),
        (bounded(None, 2), some("1", "2", "3", least=1), some("1", "2", least=1)),
        (bounded(1, None, "2"), some("2", "3"), some("3")),
        (some("1", "2"), some("2", "3", least=4), some("2", least=4)),
    ],
)
def test_two_requirements_are_one(one: Requirement, other: Requirement, both: Requirement) -> None:
    assert (one.intersect(other), other.intersect(one)) == (both, both)


@pytest.mark.parametrize(
    ("requirement", "allowed"),
    [
        (bounded(2, 3), {"2", "3"}),
        (bounded(2), {"2", "3", "4"}),
        (bounded(None, 3), {"1", "2", "3"}),
        (bounded(None, None, "1", "x"), {"2", "3", "4"}),
        (some("1", "x"), {"1", "x"}),
    ],
)
def test_a_value_is_allowed(requirement: Requirement, allowed: set[str]) -> None:
    assert {value for value in ("1", "2", "3", "4", "x") if requirement.allows(value)} == allowed


@pytest.mark.parametrize(
    ("operator", "value", "expected"),
    [
        ("Gt", "3", bounded(4, least=2)),
        ("Gte", "3", bounded(3, least=2)),
        ("Lt", "3", bounded(None, 2, least=2)),
        ("Lte", "3", bounded(None, 3, least=2)),
        ("Gte", "0", bounded(0, least=2)),
        ("Gte", "9223372036854775807", bounded(2**63 - 1, least=2)),
        ("Gt", "9223372036854775807", some()),
        ("Gt", "9223372036854775806", bounded(2**63 - 1, least=2)),
        ("Gt", "9223372036854775808", None),
        ("Lt", "-1", None),
        ("Lte", "1.5", None),
        ("Le", "1", None),
    ],
)
def test_a_bound_is_read(operator: str, value: str, expected: Requirement | None) -> None:
    entry: Json = {"key": COUNT, "operator": operator, "values": [value], "minValues": 2}
    assert scheduling.read_requirement(Field(entry)) == (None if expected is None else (COUNT, expected))


@pytest.mark.parametrize(
    ("operator", "values", "expected"),
    [
        ("In", ["a"], some("a", least=2)),
        ("NotIn", ["a"], bounded(None, None, "a", least=2)),
        ("NotIn", [], bounded(least=2)),
        ("Exists", [], bounded(least=2)),
        ("DoesNotExist", [], some(least=2)),
    ],
)
def test_other_operators_are_read(operator: str, values: list[Json], expected: Requirement) -> None:
    entry: Json = {"key": "beta.kubernetes.io/arch", "operator": operator, "values": values, "minValues": 2}
    assert scheduling.read_requirement(Field(entry)) == (ARCH, expected)


@pytest.mark.parametrize(("gte", "lte"), [(None, 4), (2, None), (2, 4), (3, 3), (1, 1), (9, None)])
def test_a_bound_is_met_by_the_types_whose_value_is_within(
    gte: int | None, lte: int | None, catalogue: InstanceTypes
) -> None:
    numbers = range(gte or 0, (lte or 16) + 1)
    within = 0
    for number in numbers:
        within |= catalogue.of(COUNT, str(number))
    assert scheduling.meeting(COUNT, bounded(gte, lte), catalogue) == within


def test_numbers_are_of_64_bits() -> None:
    below = bounded(None, 0)
    assert [below.allows(text) for text in ("-9223372036854775808", "-9223372036854775809", "+0", "x")] == [
        True,
        False,
        True,
        False,
    ]
