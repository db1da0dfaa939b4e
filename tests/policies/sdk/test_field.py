from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpugate.policies.sdk.field import Field, render

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Json, Path

POD: Json = {
    "metadata": {"labels": {"team": "search", "odd": 3}, "annotations": None},
    "spec": {"containers": [{"name": "a", "args": ["x", 1, "y"], "tty": True, "uid": 0}]},
}
CONTAINER: Path = ("spec", "containers", 0)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("metadata", "labels", "team"), "search"),
        ((*CONTAINER, "name"), "a"),
        ((*CONTAINER, "args", 2), "y"),
        (("metadata", "annotations", "x"), None),
        (("metadata", "labels", "team", "x"), None),
        (("spec", "containers", 7, "name"), None),
        (("spec", "containers", -1), None),
        (("spec", "containers", 1), None),
        (("spec", "containers", "name"), None),
        (("spec", 0), None),
        ((), POD),
    ],
)
def test_a_lookup_finds_the_value_or_nothing_and_knows_its_path(path: Path, value: Json) -> None:
    found = Field(POD)[path]
    assert (found.value, found.path) == (value, path)


@pytest.mark.parametrize(("value", "present"), [(None, False), (0, True), ("", True), ({}, True), (False, True)])
def test_a_field_is_true_when_it_is_present(value: Json, *, present: bool) -> None:
    assert bool(Field(value)) is present


def test_the_elements_of_a_list_and_of_nothing_else_can_be_walked() -> None:
    assert [c.path for c in Field(POD)["spec", "containers"]] == [CONTAINER]
    assert list(Field(POD)["spec"]) == []


@pytest.mark.parametrize(
    ("value", "paths"),
    [
        ([{"name": "a"}, {"name": "b"}, "a", None, {"name": "a", "value": "1"}], [("env", 0), ("env", 4)]),
        ([{"name": 1}, {}], []),
        ({"name": "a"}, []),
        (None, []),
    ],
    ids=["some-elements", "none", "an-object", "absent"],
)
def test_the_elements_of_a_list_that_have_a_member(value: Json, paths: list[Path]) -> None:
    assert [element.path for element in Field({"env": value})["env"].having("name", "a")] == paths


def test_the_members_of_an_object_and_of_nothing_else_can_be_walked() -> None:
    assert [key for key, _ in Field(POD).items()] == ["metadata", "spec"]
    assert [member.path for member in Field(POD).members()] == [("metadata",), ("spec",)]
    assert list(Field(POD)["spec", "containers"].items()) == []


def test_a_value_is_read_only_as_the_type_that_it_is() -> None:
    container = Field(POD)[CONTAINER]
    assert (container["name"].text, container["uid"].text) == ("a", "")
    assert (container["uid"].integer, container["tty"].integer, container["name"].integer) == (0, None, None)
    assert container["args"].texts == ("x", "y")
    assert Field(POD)["metadata", "labels"].labels == {"team": "search"}


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        (("spec", "containers", 0, "image"), "spec.containers[0].image"),
        (("limits", "nvidia.com/gpu"), 'limits["nvidia.com/gpu"]'),
        (("items", 2, "spec"), "items[2].spec"),
        ((), ""),
    ],
)
def test_a_path_is_written_as_people_write_it(path: Path, shown: str) -> None:
    assert render(path) == shown


def test_a_field_shows_its_path_and_not_its_value() -> None:
    assert repr(Field(POD)[CONTAINER]["name"]) == "Field(spec.containers[0].name)"
