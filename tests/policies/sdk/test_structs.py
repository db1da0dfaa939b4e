"""Structs behave as the frozen dataclasses of the standard library do."""

from dataclasses import asdict, fields, replace
from pprint import pformat

import pytest

from gpugate.policies.sdk.findings import Other, Patch, Patches, Violation
from gpugate.policies.sdk.structs import Struct

FOUND = Violation(("spec",), "is missing")


class Named(Struct, frozen=True):
    name: str
    namespace: str = "default"


@pytest.mark.parametrize(
    "changes", [{}, {"message": "is empty"}, {"hint": "add it", "others": (Other("Pod", "", "a"),)}]
)
def test_replace_changes_the_fields_given(changes: dict[str, object]) -> None:
    changed = replace(FOUND, **changes)  # type: ignore[arg-type] # the types of the fields differ

    assert type(changed) is Violation
    assert {field.name: getattr(changed, field.name) for field in fields(changed)} == {
        **{name: getattr(FOUND, name) for name in Violation.__struct_fields__},
        **changes,
    }


def test_replace_refuses_an_unknown_field() -> None:
    with pytest.raises(TypeError, match="nmae"):
        replace(Named("a"), nmae="b")  # type: ignore[call-arg] # the mistake


def test_a_struct_within_a_struct_becomes_a_mapping() -> None:
    patch = Patch("set", ("spec", "replicas"), 1, "a reason")

    assert asdict(Patches((patch,))) == {
        "patches": ({"op": "set", "path": ("spec", "replicas"), "value": 1, "reason": "a reason"},),
        "safe": False,
    }


def test_a_struct_is_immutable_and_hashable() -> None:
    with pytest.raises(AttributeError):
        FOUND.message = "another"  # type: ignore[misc] # it is frozen

    assert {Named("a"), Named("a", "default"), Named("b")} == {Named("b"), Named("a")}


def test_a_struct_is_printed_in_its_own_words() -> None:
    assert pformat(Named("a")) == repr(Named("a"))
