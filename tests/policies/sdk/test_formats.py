from __future__ import annotations

import pytest

from gpugate.policies.sdk.formats import fits


@pytest.mark.parametrize(
    ("form", "text", "fit"),
    [
        ("CC-####", "CC-1234", True),
        ("CC-####", "CC-123", False),
        ("#", "X", False),
        ("CC-####", "CC-12345", False),
        ("CC-####", "cc-1234", False),
        ("CC-####", "CC-12a4", False),
        ("CC-####", "CC-١٢٣٤", False),
        ("team-*", "team-", True),
        ("team-*", "team-search", True),
        ("team-*", "a-team-search", False),
        ("*-#", "a-b-7", True),
        ("*-#*", "a-b-7c", True),
        ("*-#", "a-7-b", False),
        ("**", "", True),
        ("", "", True),
        ("", "a", False),
        ("a.c", "abc", False),
        ("*", "x" * 256, True),
        ("*", "x" * 257, False),
        ("#*#", "12", True),
        ("#*#", "1", False),
        ("a*b", "ab", True),
        ("ab*", "ab", True),
        ("a*b*c", "abbcc", True),
        ("a*b*c", "abb", False),
        ("*ab", "aab", True),
    ],
)
def test_a_text_fits_a_form_or_not(form: str, text: str, fit: bool) -> None:  # noqa: FBT001 -- a column of the table
    assert fits(form, text) is fit
