from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpugate.webhook.admission.response import cut, listed, plain


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
    [(0, ""), (1, "p/a"), (3, "p/a,p/a,p/a"), (9, "p/a,p/a,p/a and 6 more")],
    ids=["none", "one", "all", "some"],
)
def test_listed(count: int, shown: str) -> None:
    assert listed(["p/a"] * count, 28) == shown
