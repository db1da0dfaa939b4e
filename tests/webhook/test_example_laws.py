from __future__ import annotations

from typing import Any

import pytest
from example_laws import for_each_example

pytest_plugins = ["pytester"]
FILES = [f"pods/examples/own/{name}.yaml" for name in ("bad-a", "good-b", "bad-c")]


def test_every_failure_names_its_example(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        f"""
        import pytest
        from example_laws import for_each_example

        @pytest.fixture
        def beginning():
            return "good-"

        @for_each_example({[*FILES, "pods/examples/other/good-d.yaml"]})
        @pytest.mark.parametrize("word", ["own", "examples"])
        def test_good(file, beginning, word):
            if word == "examples":
                assert beginning in file, word
        """
    )
    result = pytester.runpytest_inprocess("-q", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(["*2 of 3 examples*", *(f"*example: {name}" for name in (FILES[0], FILES[2]))])
    result.stdout.fnmatch_lines(["FAILED *::test_good[[]examples-pods/own/]*"])


def test_no_failure_is_kept_back() -> None:
    seen: list[Any] = []

    @for_each_example(FILES)
    def law(file: str) -> None:
        seen.append(file)
        raise KeyError(file)

    with pytest.raises(ExceptionGroup) as raised:
        law(FILES)
    assert [error.args for error in raised.value.exceptions] == [(file,) for file in FILES] == [(f,) for f in seen]
