from __future__ import annotations

from typing import Any

import pytest
from example_laws import for_each_case, for_each_example

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
    result.stdout.fnmatch_lines(["*2 of 3 cases*", *(f"*case: {name}" for name in (FILES[0], FILES[2]))])
    result.stdout.fnmatch_lines(["FAILED *::test_good[[]examples-pods/own/]*"])


def test_no_failure_is_kept_back() -> None:
    seen: list[Any] = []

    @for_each_example(FILES)
    def law(file: str) -> None:
        seen.append(file)
        raise KeyError(file)

    with pytest.raises(BaseExceptionGroup) as raised:
        law(dict(zip(FILES, FILES, strict=True)))
    assert [error.args for error in raised.value.exceptions] == [(file,) for file in FILES] == [(f,) for f in seen]


def test_a_failure_that_pytest_raises_does_not_end_the_cases() -> None:
    @for_each_case({"one": 1, "two": 2, "three": 3})
    def law(number: int) -> None:
        if number < 3:
            pytest.fail(f"{number} is too small")

    with pytest.raises(BaseExceptionGroup) as raised:
        law({"one": 1, "two": 2, "three": 3})
    assert [error.__notes__ for error in raised.value.exceptions] == [["case: one"], ["case: two"]]


def test_a_group_of_cases_is_a_test() -> None:
    @for_each_case({"a/1": 1, "a/2": 2, "b/3": 3}, lambda name: name.partition("/")[0])
    def law(number: int) -> None:
        assert number

    (mark,) = law.pytestmark  # type: ignore[attr-defined] # where pytest looks for them
    assert dict(zip(mark.kwargs["ids"], mark.args[1], strict=True)) == {"a": {"a/1": 1, "a/2": 2}, "b": {"b/3": 3}}
