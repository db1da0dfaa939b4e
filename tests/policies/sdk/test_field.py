from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpugate.policies.sdk.field import (
    Field,
    TemplateField,
    Unknown,
    UnknownValueError,
    as_written,
    has_unknown,
    render,
)

if TYPE_CHECKING:
    from collections.abc import Callable

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


X = Unknown("${X}")
OPEN = TemplateField(
    {"a": X, "labels": {"team": X, "app": "b"}, "texts": ["p", X], "items": [{"name": "n", "value": X}, {"name": "m"}]}
)

KNOWN: dict[str, tuple[Callable[[], object], object]] = {
    "that it is present": (lambda: bool(OPEN["a"]), True),
    "that another is absent": (lambda: bool(OPEN["b"]), False),
    "which are known": (lambda: (OPEN["a"].known, OPEN["labels"].known), (False, True)),
    "its path": (lambda: OPEN["items", 0, "value"].path, ("items", 0, "value")),
    "the keys beside it": (lambda: list(OPEN["labels"].mapping), ["team", "app"]),
    "that a key is there": (lambda: "team" in OPEN["labels"].labels, True),
    "another label": (lambda: OPEN["labels"].labels.get("app"), "b"),
    "all labels of which each is known": (
        lambda: TemplateField({"team": "a", "n": 1}).labels.items() == {"team": "a"}.items(),
        True,
    ),
    "a label that is absent": (lambda: OPEN["labels"].labels.get("cost-center"), None),
    "the members": (lambda: [key for key, _ in OPEN["labels"].items()], ["team", "app"]),
    "the elements": (lambda: [item["name"].text for item in OPEN["items"]], ["n", "m"]),
    "an element by a member": (lambda: [item.path for item in OPEN["items"].having("name", "m")], [("items", 1)]),
    "the length of a list": (lambda: len(list(OPEN["texts"])), 2),
}
READ: dict[str, Callable[[], object]] = {
    "a text": lambda: OPEN["a"].text,
    "a number": lambda: OPEN["a"].integer,
    "a value": lambda: OPEN["a"].value,
    "a member of it": lambda: OPEN["a", "b"],
    "its elements": lambda: list(OPEN["a"]),
    "its members": lambda: list(OPEN["a"].items()),
    "a label": lambda: OPEN["labels"].labels["team"],
    "a label, perhaps": lambda: OPEN["labels"].labels.get("team"),
    "all labels": lambda: dict(OPEN["labels"].labels.items()),
    "the values of all labels": lambda: list(OPEN["labels"].mapping.values()),
    "whether labels are these": lambda: OPEN["labels"].value == {"team": "a"},
    "the texts of a list": lambda: OPEN["texts"].texts,
    "elements by a member": lambda: list(OPEN["items"].having("value", "v")),
}


@pytest.mark.parametrize(("read", "expected"), KNOWN.values(), ids=KNOWN)
def test_what_does_not_depend_on_an_unknown_value_can_be_read(read: Callable[[], object], expected: object) -> None:
    assert read() == expected


@pytest.mark.parametrize("read", READ.values(), ids=READ)
def test_reading_an_unknown_value_raises(read: Callable[[], object]) -> None:
    with pytest.raises(UnknownValueError, match=r"\$\{X\}"):
        read()


def test_an_object_is_written_with_its_placeholders() -> None:
    assert as_written({"a": X, "b": OPEN["labels"].value, "c": [X, 1]}) == {
        "a": "${X}",
        "b": {"team": "${X}", "app": "b"},
        "c": ["${X}", 1],
    }
    assert (has_unknown({"a": [{"b": X}]}), has_unknown({"a": [{"b": "${X}"}]})) == (True, False)
