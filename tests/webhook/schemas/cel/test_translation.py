"""Which texts are no expressions, and which use what is not translated."""

from __future__ import annotations

import pytest

from gpugate.webhook.schemas.cel_parse import CelSyntaxError, CelUnsupportedError
from gpugate.webhook.schemas.compile import reads, translate

WRONG: dict[str, str] = {
    "": "character 1: expected name, but found 'the end'",
    "self.": "expected name",
    "self ==": "expected name",
    "(self": "expected )",
    "[1, 2": "expected ]",
    "{'a': 1": "expected }",
    "{'a' 1}": "expected :",
    "self ? 1": "expected :",
    "self self": "expected end",
    "self # x": "character 6: unexpected '#'",
    "'a": "unexpected",
    "'\\q'": "is not a valid escape sequence",
    "a" * 20_001: "maximum: 20,000",
    "9" * 5_000: "does not fit 64 bits",
    "'\\UFFFFFFFF'": "is not a valid escape sequence",
}  # fmt: skip


@pytest.mark.parametrize("text", WRONG, ids=lambda text: text[:20] or "nothing")
def test_a_text_that_is_no_expression_is_refused(text: str) -> None:
    with pytest.raises(CelSyntaxError) as raised:
        translate(text)

    assert WRONG[text] in str(raised.value)


UNKNOWN: dict[str, str] = {
    "self.?a": "optional members",
    "self[?0]": "optional members",
    "b'a'": "bytes",
    "5u": "an unsigned number",
    "now": "the variable or type `now`",
    "[1].all(x, y)": "the variable or type `y`",
    "[1].all(x, true, true)": "`all` with 3 arguments",
    "isURL(self)": "the function `isURL`",
    "self.ip()": "the function `ip`",
    "size(self, self)": "`size` with 2 arguments",
    "self.startsWith()": "`startsWith` with 0 arguments",
    "has(self)": "`has` of anything but a field",
    "self.matches(self)": "of a pattern that is not written out",
    "self.matches('(?=a)')": "the pattern '(?=a)'",
    "self.matches('(a*)*')": "repeats what repeats itself",
    "(" * 70 + "1" + ")" * 70: "nested expressions",
    "self" + ".a" * 5_000: "nested members or operators",
    "+".join("1" * 5_000): "nested members or operators",
    "!" * 5_000 + "self": "nested members or operators",
}  # fmt: skip


@pytest.mark.parametrize("text", UNKNOWN, ids=lambda text: text[:20])
def test_what_is_not_known_is_named(text: str) -> None:
    with pytest.raises(CelUnsupportedError) as raised:
        translate(text)

    assert UNKNOWN[text] in str(raised.value)


def test_macros_and_names_become_operations() -> None:
    assert translate("self.a__dot__b.all(x, x.matches('a'))") == [
        "all",
        ["get", ["var", "self"], "a.b"],
        "x",
        ["matches", ["var", "x"], "a"],
    ]


def test_a_comment_is_passed_over() -> None:
    assert translate("true // always\n|| false") == ["or", ["const", True], ["const", False]]


@pytest.mark.parametrize(
    ("text", "expected"), [("self == oldSelf", True), ("self.all(x, x == oldSelf)", True), ("self == 'oldSelf'", False)]
)
def test_it_is_known_what_an_expression_reads(text: str, expected: bool) -> None:  # noqa: FBT001 -- a column of the table
    assert reads(translate(text), "oldSelf") is expected
