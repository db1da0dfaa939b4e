from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpugate.webhook.manifests import yaml_reader

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.webhook.manifests.problems import ReadError

BOMB = "x: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n" for before, name in zip("abcde", "bcdef", strict=True)
)
HOSTILE = {
    "nested lists": ("[" * 50_000, "more than 128 levels of nesting", (1, 129)),
    "nested objects": ("{a: " * 50_000, "more than 128 levels of nesting", (1, 513)),
    "aliases of aliases": (BOMB, "aliases expand to more than 100,000 values", (5, 36)),
    "an alias of itself": ("a: &a [*a]", "anchor a contains itself", (1, 8)),
    "an alias of itself under a name used before": ("- &a 1\n- &a {b: *a}\n", "anchor a contains itself", (2, 10)),
    "an alias of nothing": ("a: *b", "no anchor &b before this alias", (1, 4)),
    "a question mark within brackets": ("a: [b, c?d]\n", "kubectl does not read `?` within brackets", (1, 8)),
    "a control character": ("a: b\nc: d\x00", "not YAML: the control character U+0000", (2, 5)),
    "half of a surrogate pair": ('a: "\\ud800"', "not YAML: found invalid Unicode character escape code", (1, 7)),
    "a second document": ("a: 1\n...\n--- \nb: 2\n", "kubectl does not read what follows `...`", (3, 1)),
    "a directive": ("%YAML 1.1\n", "not YAML: did not find expected <document start>", (2, 1)),
}


@pytest.mark.parametrize(("text", "message", "place"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_is_refused_with_its_place(
    text: str, message: str, place: tuple[int, int], read_error: Callable[[str], ReadError]
) -> None:
    error = read_error(text)

    assert (error.message, (error.line, error.column)) == (message, place)


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n", "null\n", "--- # Source: a.yaml\n"])
def test_an_empty_document_has_no_value(text: str) -> None:
    assert yaml_reader.read(text).value is None


def test_aliased_values_are_separate() -> None:
    value = yaml_reader.read("a: &a {b: [1]}\nc: *a\n").value

    assert isinstance(value, dict)
    assert value == {"a": {"b": [1]}, "c": {"b": [1]}}
    assert value["a"] is not value["c"]


def test_of_anchors_with_one_name_the_last_to_begin_counts() -> None:
    assert yaml_reader.read("- &a [&a 1]\n- *a\n").value == [[1], 1]


@pytest.mark.parametrize("text", ["a: what?\n", "a: ['what?', \"b?\"]\n", "a: [b]\nc: d?\n"])
def test_a_question_mark_is_text_elsewhere(text: str) -> None:
    assert yaml_reader.read(text).notes == ()


NOTES = {
    "repeated key": ("a: 1\na: 2\n", "the key a occurs twice", (2, 1)),
    "keys that JSON makes one": ("'true': 1\non: 2\n", "the key true occurs twice", (2, 1)),
    "unknown tag": ("a: !secret b\n", "the tag !secret means nothing to Kubernetes", (1, 4)),
    "tag of another program": (
        "a: !!python/name:os.system x\n",
        "the tag !!python/name:os.system means nothing to Kubernetes",
        (1, 4),
    ),
}


@pytest.mark.parametrize(("text", "message", "place"), NOTES.values(), ids=NOTES)
def test_what_is_read_in_another_way_than_it_looks_is_noted(text: str, message: str, place: tuple[int, int]) -> None:
    notes = yaml_reader.read(text).notes

    assert [(note.message, (note.line, note.column)) for note in notes] == [(message, place)]


@pytest.mark.parametrize("text", ["<<: {a: 1}\na: 2\n", "a: 1\n<<: {a: 2}\n", "- {a: 1}\n- {a: 2}\n"])
def test_a_merged_key_and_an_own_one_are_no_repetition(text: str) -> None:
    assert yaml_reader.read(text).notes == ()
