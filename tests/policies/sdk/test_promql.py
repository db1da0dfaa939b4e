from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpugate.policies.sdk.promql import LONGEST, Matcher, read

METRICS = {
    "a name": ("vllm:num_requests_running", ["vllm:num_requests_running"]),
    "in functions": ('sum(rate(x{a="b"}[1m]))', ["x"]),
    "grouped before": ("sum by (pod, ns) (x)", ["x"]),
    "grouped behind": ("sum(x) by (pod)", ["x"]),
    "matched": ("x / on (pod) group_left (node) y", ["x", "y"]),
    "set operators": ("x and y OR z unless w", ["x", "y", "z", "w"]),
    "subquery and offset": ("max_over_time(x[1h:5m] offset -5m)", ["x"]),
    "at a time": ("x @ end() + y @ 1609746000", ["x", "y"]),
    "compared": ("x > bool 1", ["x"]),
    "name in braces": ('{__name__="a:b", pod="p"}', ["a:b"]),
    "quoted name in braces": ('{"a.b", pod="p"}', ["a.b"]),
    "no name": ('{pod="p"}', [""]),
    "in a string": ('x{a="rate(y)"}', ["x"]),
    "in a comment": ("x # y\n+ z", ["x", "z"]),
    "in backticks": ('x{a=`"y`}', ["x"]),
    "with an escaped quote": (r'x{a="\"y"}', ["x"]),
    "constants": ("1 + inf", []),
    "empty": ("", []),
}


@pytest.mark.parametrize(("query", "metrics"), METRICS.values(), ids=METRICS)
def test_metrics(query: str, metrics: list[str]) -> None:
    assert [selector.metric for selector in read(query).selectors] == metrics


def test_matchers() -> None:
    (selector,) = read("""x{a="1", b!='2', c=~`3.*`, d!~"4",}""").selectors
    assert selector.matchers == (
        Matcher("a", "=", "1"),
        Matcher("b", "!=", "2"),
        Matcher("c", "=~", "3.*"),
        Matcher("d", "!~", "4"),
    )


CALLS = {
    "around a metric": ("sum(rate(x[1m])) + y", ["rate", "sum"]),
    "grouping is none": ("SUM by (pod) (x)", ["sum"]),
    "brackets are none": ("sum((x))", ["sum"]),
    "beside a metric": ("vector(0) or x", []),
}


@pytest.mark.parametrize(("query", "calls"), CALLS.values(), ids=CALLS)
def test_calls_around_the_first_metric_from_within(query: str, calls: list[str]) -> None:
    call = read(query).selectors[0].call
    names = []
    while call:
        names.append(call.name)
        call = call.outer
    assert names == calls


@pytest.mark.parametrize(
    ("query", "number"), [("vector(0)", "0"), ("vector( 1.5 )", "1.5"), ("vector(x)", ""), ("vector(0 + 1)", "")]
)
def test_the_one_number_a_call_is_given(query: str, number: str) -> None:
    assert read(query).calls[0].number == number


@pytest.mark.parametrize(
    ("query", "operators"),
    [("x * 100", ["*"]), ("x{a!='1'} == bool 1 or y", ["==", "or"]), ("x offset -5m", []), ("x[5m:1m]", [])],
)
def test_operators(query: str, operators: list[str]) -> None:
    assert [operator for operator, _, _ in read(query).operators] == operators


def test_a_text_that_is_too_long_is_left_unread() -> None:
    assert read("x " * LONGEST).selectors == []


@given(st.text(alphabet="ax:_()[]{}\"'`\\,=~!*@# \n01.", max_size=60))
@example("a{")
@example("sum by (")
@example("x @")
@example("x offset -")
def test_any_text_is_read(text: str) -> None:
    assert all(0 <= selector.start < len(text) for selector in read(text).selectors)
