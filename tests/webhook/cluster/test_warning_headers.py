from __future__ import annotations

import pytest

from gpugate.webhook.cluster.connection import parse_warnings

HEADERS = {
    "one": (['299 - "use v1"'], ["use v1"]),
    "several headers": (['299 - "a"', '299 - "b"'], ["a", "b"]),
    "several in one": (['299 - "a, b", 299 - "c"'], ["a, b", "c"]),
    "quotes and backslashes": ([r'299 - "say \"no\" to \\"'], ['say "no" to \\']),
    "with a date": (['299 kubernetes "old" "Sat, 21 Nov 2026 10:00:00 GMT"'], ["old"]),
    "another code": (['199 - "miscellaneous"'], []),
    "no warning": (["nonsense", ""], []),
}


@pytest.mark.parametrize(("headers", "texts"), HEADERS.values(), ids=HEADERS)
def test_the_texts_of_warnings(headers: list[str], texts: list[str]) -> None:
    assert parse_warnings(headers) == texts
