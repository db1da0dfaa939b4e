from __future__ import annotations

import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpugate.policies.catalog import IDS
from gpugate.webhook.admission.log import LONGEST_LINE, line

ESCAPED = set(string.printable) - set("\t\n\r\x0b\x0c")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("plain", "plain", id="ASCII"),
        pytest.param("a\nb\r\n", r"a\nb\r\n", id="line-feed"),
        pytest.param("\x1b[2J", r"\x1b[2J", id="escape-sequence"),
        pytest.param("\x9b31m", r"\x9b31m", id="C1-control"),
        pytest.param("\x7f", r"\x7f", id="delete"),
        pytest.param("\u202egpj.exe", r"\u202egpj.exe", id="right-to-left"),
        pytest.param("a\u2028b\u2029", r"a\u2028b\u2029", id="line-separators"),
        pytest.param("\ud800", r"\ud800", id="lone-surrogate"),
        pytest.param("\x00", r"\x00", id="null"),
        pytest.param('"}', '"}', id="quote"),
        pytest.param("größe", "größe", id="letters"),
        pytest.param("x" * 254, "x" * 250 + "...", id="too-long"),
    ],
)
def test_the_parsed_line(text: str, shown: str) -> None:
    assert json.loads(line({"name": text})) == {"name": shown}


@given(st.dictionaries(st.sampled_from(["name", "namespace", "user", "kind", "error", "uid"]), st.text(max_size=400)))
def test_any_text_is_one_line_of_printable_ascii(fields: dict[str, str]) -> None:
    written = line(fields).decode("ascii")
    assert written.endswith("\n")
    assert set(written[:-1]) <= ESCAPED


@pytest.mark.parametrize("worst", ["\U0001f600", "\u202e", '"', "\x00"], ids=["astral", "bidi", "quote", "null"])
def test_the_longest_line_is_written_at_once_to_a_pipe(worst: str) -> None:
    names = ("time", "uid", "kind", "namespace", "name", "user", "error", "generation", "mode", "phase")
    written = line({**dict.fromkeys(names, worst * 10_000), "policies": list(IDS), "milliseconds": 10_000.123})
    assert len(written) <= LONGEST_LINE
    assert set(json.loads(written)) == {*names, "policies", "milliseconds"}


def test_many_items_are_counted() -> None:
    assert json.loads(line({"policies": ["p"] * 40}))["policies"] == ["p"] * 31 + ["and 9 more"]


@pytest.mark.parametrize("name", ["plain", "größe"])
def test_a_line_has_no_spaces_between_its_fields(name: str) -> None:
    assert b" " not in line({"name": name, "policies": ["p", "q"], "code": 200})
