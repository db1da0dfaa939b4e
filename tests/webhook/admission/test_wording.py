from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpugate.webhook.admission.response import brief, cut, listed, plain, within


@pytest.mark.parametrize(
    ("text", "written"),
    [
        pytest.param("plain ü", "plain ü", id="printable"),
        pytest.param("a\r\nb\0", r"a\r\nb\x00", id="control"),
        pytest.param("\x1b[31m", r"\x1b[31m", id="terminal"),
        pytest.param("a\u202eb", r"a\u202eb", id="bidirectional"),
        pytest.param("a\ud800b", r"a\ud800b", id="lone-surrogate"),
    ],
)
def test_plain(text: str, written: str) -> None:
    assert plain(text) == written


@settings(deadline=None)
@given(st.text())
def test_plain_is_always_printable_utf_8(text: str) -> None:
    assert plain(text).encode().decode().isprintable()


@pytest.mark.parametrize(("text", "shown"), [("abcde", "abcde"), ("abcdef", "ab...")], ids=["fits", "cut"])
def test_cut(text: str, shown: str) -> None:
    assert cut(text, 5) == shown


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, ""), (1, "p/a"), (3, "p/a,p/a,p/a"), (4, "p/a,p/a,p/a and 1 more"), (9, "p/a,p/a,p/a and 6 more")],
    ids=["none", "one", "all", "all but one", "some"],
)
@pytest.mark.parametrize("length", [27, 28, 30])
def test_listed(count: int, shown: str, length: int) -> None:
    assert listed(["p/a"] * count, length) == shown


def test_no_item_is_listed_after_one_that_does_not_fit() -> None:
    assert listed(["p/a", "p/" + "a" * 30, "p/a"], 28) == "p/a and 2 more"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\n" * 4, r"\n\n\n\n"),
        ("\n" * 5, r"\n\n\..."),
        ("a" * 8, "a" * 8),
        ("a" * 9, "a" * 5 + "..."),
    ],
    ids=["escaped, fits", "escaped, cut", "fits", "cut"],
)
def test_brief(text: str, shown: str) -> None:
    assert brief(text, 8) == shown


@pytest.mark.parametrize(("text", "shown"), [("é" * 4, "é" * 4), ("é" * 5, "é" * 2 + "...")], ids=["fits", "cut"])
def test_within_counts_bytes_and_cuts_at_a_character(text: str, shown: str) -> None:
    assert within(text, 8) == shown
