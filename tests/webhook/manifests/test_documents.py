from __future__ import annotations

import pytest

from gpugate.webhook.manifests.bounded_file import MAX_BYTES
from gpugate.webhook.manifests.documents import Document, has_head, read_bytes, read_text
from gpugate.webhook.manifests.problems import Problem


def values(data: bytes) -> list[object]:
    return [part.value if isinstance(part, Document) else part for part in read_bytes("f", data)]


READABLE = {
    "several documents": (b"a: 1\n---\nb: 2\n", [{"a": 1}, {"b": 2}]),
    "a marker at the start": (b"---\na: 1\n", [{"a": 1}]),
    "a comment before the marker": (b"# c\n---\na: 1\n", [{"a": 1}]),
    "a comment behind the marker": (b"--- # Source: x.yaml\na: 1\n", [{"a": 1}]),
    "a comment behind the marker, without a space": (b"a: 1\n---#x: |\n  b: 2\n", [{"a": 1}, {"b": 2}]),
    "such a comment behind a marker of no document": (b"---\n---#x\nb: 2\n", [{"b": 2}]),
    "a first line that is a marker only behind others": (b"---#x: 1\n", [{"---#x": 1}]),
    "dashes in a block": (b"a: |\n  ---\n  b\n", [{"a": "---\nb\n"}]),
    "more dashes": (b"a: >-\n ----\n", [{"a": "----"}]),
    "empty documents": (b"---\n---\n# c\n---\n", []),
    "nothing": (b"", []),
    "a byte order mark": (b"\xef\xbb\xbfa: 1\n", [{"a": 1}]),
    "CRLF": (b"a: 1\r\n---\r\nb: 2\r\n", [{"a": 1}, {"b": 2}]),
    "UTF-16": ("a: ü\n".encode("utf-16"), [{"a": "ü"}]),
    "JSON": (b'{"a": [1.0, 1e3]}', [{"a": [1, 1000]}]),
    "JSON Lines": (b'{"a": 1}\n{"a": 2}\n', [{"a": 1}, {"a": 2}]),
    "JSON between markers": (b'{"a": 1}\n---\n{"a": 2}\n---\n{"a": 3}\n', [{"a": 1}, {"a": 2}, {"a": 3}]),
    "JSON before YAML": (b'{"a": 1}\nb: 2\n---\nc: 3\n', [{"a": 1}, {"b": 2}, {"c": 3}]),
    "JSON before indented YAML": (b'{"a": 1}\n  b: 2\n  c: 3\n', [{"a": 1}, {"b": 2, "c": 3}]),
    "YAML that begins with a brace": (b"{a: 1}\n---\nb: 2\n", [{"a": 1}, {"b": 2}]),
}


@pytest.mark.parametrize(("data", "expected"), READABLE.values(), ids=READABLE)
def test_documents_are_read(data: bytes, expected: list[object]) -> None:
    assert values(data) == expected


def test_a_document_knows_the_line_it_begins_on() -> None:
    lines = [part.first_line for part in read_text("f", "a: 1\n\n---\nb: 2\n---\nc: 3\n") if isinstance(part, Document)]

    assert lines == [1, 3, 5]


def test_a_bad_document_leaves_the_others_readable() -> None:
    first, bad, last = read_text("f.yaml", "a: 1\n---\nb: c: d\n---\ne: 2\n")

    assert isinstance(first, Document)
    assert isinstance(bad, Problem)
    assert isinstance(last, Document)
    assert (bad.line, bad.column, bad.excerpt.lines) == (3, 5, ("---", "b: c: d"))


def test_a_bad_line_leaves_the_other_lines_of_json_readable() -> None:
    first, bad, last = read_text("f.jsonl", '{"a": 1}\n{"b": }\n{"c": 3}\n')

    assert isinstance(first, Document)
    assert isinstance(bad, Problem)
    assert isinstance(last, Document)
    assert (bad.line, bad.column) == (2, 7)


SEPARATOR = "text behind a `---` at the beginning of a line, where kubectl stops reading"
MIXED = "a `---` after JSON objects that no `---` separates, where kubectl stops reading"
UNREADABLE = {
    "Latin-1": ("f.yaml", b"a: b\nc: \xe9", "not UTF-8 text at byte 8", (2, 4)),
    "nested YAML": ("f.yaml", b'{"a":' * 100_000, "more than 128 levels of nesting", (1, 641)),
    "nested JSON": ("f.json", b'{"a":' * 100_000, "nested too deeply", (1, 1)),
    "JSON that ends early": (
        "f.json",
        b'{"a":\n{',
        "not JSON: Expecting property name enclosed in double quotes",
        (2, 2),
    ),
    "a number beyond range": ("f.json", b'{"a": 1e999}', "the number 1e999 is out of range", (1, 1)),
    "half of a surrogate pair": ("f.json", b'{"a": "\\ud800"}', "half of a surrogate pair in a string", (1, 1)),
    "a value behind a marker": ("f.yaml", b"a: 1\n--- {b: 2}\n", SEPARATOR, (2, 4)),
    "dashes behind a marker": ("f.yaml", b"a: 'b\n\n----'\n", "not YAML: found unexpected end of stream", (1, 4)),
    "a marker behind JSON objects without one": ("f.json", b'{"a": 1}{"b": 2}\n---\n{"c": 3}', MIXED, (2, 1)),
    "too large": ("f.yaml", b" " * (MAX_BYTES + 1), "larger than 64 MiB", (0, 0)),
}


@pytest.mark.parametrize(("name", "data", "message", "place"), UNREADABLE.values(), ids=UNREADABLE)
def test_what_cannot_be_read_is_named_with_its_place(
    name: str, data: bytes, message: str, place: tuple[int, int]
) -> None:
    problem = next(part for part in read_bytes(name, data) if isinstance(part, Problem))

    assert (problem.message, (problem.line, problem.column)) == (message, place)


JSON_AS_YAML = {"a trailing comma": (b'{"a": 1,}', {"a": 1}), "NaN": (b'{"a": NaN}', {"a": "NaN"})}


@pytest.mark.parametrize(("data", "value"), JSON_AS_YAML.values(), ids=JSON_AS_YAML)
def test_a_json_file_that_kubectl_reads_as_yaml_is_a_warning(data: bytes, value: object) -> None:
    problem, document = read_bytes("f.json", data)

    assert isinstance(problem, Problem)
    assert problem.warning
    assert isinstance(document, Document)
    assert document.value == value


def test_what_follows_a_separator_that_kubectl_stops_at_is_read() -> None:
    found = list(read_text("f", '{"a": 1}{"b": 2}\n---\n{"c": 3}\n--- x\nd: 4\n---\ne: 5\n'))

    assert [part.value for part in found if isinstance(part, Document)] == [
        {letter: number} for number, letter in enumerate("abcde", 1)
    ]
    assert [part.line for part in found if isinstance(part, Problem)] == [2, 4]


def test_very_many_separators_take_time_in_proportion_to_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []
    monkeypatch.setattr("gpugate.webhook.manifests.documents._lines", lambda text: counted.append(len(text)) or 0)

    text = "--- x\n" * 500 + "---\na: 1\n" * 500
    list(read_text("f", text))

    assert sum(counted) <= 2 * len(text)


def test_very_many_values_that_are_not_json_end_the_file() -> None:
    found = [part for part in read_text("f.json", '{"a": 1}\n' * 2 + "{\n" * 5_000) if isinstance(part, Problem)]

    assert len(found) == 101
    assert found[-1].message == "more than 100 values that are not JSON"


def test_a_repeated_key_of_json_is_a_warning() -> None:
    problem, document = read_text("f.json", '\n{"a": 1, "a": 2}')

    assert isinstance(problem, Problem)
    assert (problem.warning, problem.line, problem.message) == (True, 2, "the key a occurs twice in an object")
    assert isinstance(document, Document)


def test_of_very_many_notes_on_one_document_the_first_are_told_and_the_others_counted() -> None:
    found = [part for part in read_text("a.yaml", "a: 1\n" * 5_000) if isinstance(part, Problem)]

    assert len(found) == 101
    assert found[-1].message == "4,899 more of the same kind in this document"


POD = "apiVersion: v1\nkind: Pod\n"
# kubectl reads each of these as a Pod; gpugate reports that it cannot read what follows, and must not pass the file over.
HEADS = {
    "plain": POD,
    "carriage returns": POD.replace("\n", "\r"),
    "next lines": POD.replace("\n", "\x85"),
    "line separators": POD.replace("\n", "\u2028"),
    "a byte order mark": f"\ufeff{POD}",
    "a byte order mark behind a separator": f"---\n\ufeff{POD}",
    "escapes": '"\\x6bind": Pod\n"api\\u0056ersion": v1\n',
    "keys on lines of their own": "? kind\n: Pod\n? apiVersion\n: v1\n",
    "tags and anchors": "!!str kind: Pod\n&a apiVersion: v1\n",
    "an alias": "x: &k kind\n*k : Pod\napiVersion: v1\n",
    "a merge": "x: &m {kind: Pod, apiVersion: v1}\n<<: *m\n",
    "braces": '{"\\u006bind": Pod, apiVersion: v1}\n',
    "behind collections": "metadata: {a: [b, {c: d}]}\n? [x]\n: [y]\nkind: Pod\napiVersion: v1\n",
    "very long": "x: [" + "a, " * 100_000 + "]\n" + '"\\x6bind": Pod\n"api\\u0056ersion": v1\n',
}
NO_HEADS = {
    "nothing": "",
    "text": "kind and apiVersion",
    "one key": "kind: x\n",
    "inside another object": "a: {kind: x, apiVersion: y}\n",
    "inside a list": "- kind: x\n  apiVersion: y\n",
    "as values": "a: kind\nb: apiVersion\n",
    "one of them inside": "apiVersion: v1\na: {kind: b}\n",
}


@pytest.mark.parametrize("head", HEADS.values(), ids=HEADS)
@pytest.mark.parametrize("rest", ["", "...\nx", "a: [\n", "a: 'b\n"], ids=["whole", "ended", "open", "quoted"])
def test_a_head_is_found_in_any_spelling_before_the_place_that_cannot_be_read(head: str, rest: str) -> None:
    assert has_head(head + rest)


@pytest.mark.parametrize("text", NO_HEADS.values(), ids=NO_HEADS)
def test_other_texts_have_no_head(text: str) -> None:
    assert not has_head(text)
