"""What descriptions become, without Helm and as a template; that both mean the same is tried with the real Helm."""

from __future__ import annotations

import pytest

from gpugate.webhook.generate.chart.evaluation import Scope, evaluate
from gpugate.webhook.generate.chart.go_template import expression, template
from gpugate.webhook.generate.chart.terms import ABSENT, Each, If, Named, Node, Release, Value, Variable, call, text

VALUES = {"a": {"b": 2, "none": []}, "list": ["x", "y"], "map": {"k": ["1", "2"], "j": ["3"]}, "on": True}
SCOPE = Scope(VALUES, {"Name": "r"}, {"full": text(Release("Name"), "-x")}, {})

MEANT: dict[str, tuple[Node, object]] = {
    "a value": (Value("a.b"), 2),
    "a value that is not there": (Value("a.c"), None),
    "what Helm knows": (Release("Name"), "r"),
    "a text by its name": (Named("full"), "r-x"),
    "a choice": (If(Value("on"), 1, 2), 1),
    "another choice": (If(Value("a.none"), 1, 2), 2),
    "a member that is not written": ({"k": If(Value("a.none"), 1), "l": 2}, {"l": 2}),
    "an element that is not written": ([If(Value("a.none"), 1), 2], [2]),
    "an element for each": ([0, Each(("e",), Value("list"), {"n": Variable("e")})], [0, {"n": "x"}, {"n": "y"}]),
    "elements on a condition": ([If(Value("on"), Each(("e",), Value("list"), Variable("e")))], ["x", "y"]),
    "members in the order of their keys": (
        text(Each(("k", "v"), Value("map"), text(Variable("k"), Each(("e",), Variable("v"), Variable("e"))))),
        "j3k12",
    ),
    "nothing": (If(Value("a.none"), 1), ABSENT),
}


@pytest.mark.parametrize(("node", "meant"), MEANT.values(), ids=MEANT)
def test_a_description_becomes(node: Node, meant: object) -> None:
    assert evaluate(node, SCOPE) == meant


WRITTEN: dict[str, tuple[Node, str]] = {
    "a member": ({"k": Value("a.b")}, "k: {{ toJson $.Values.a.b }}\n"),
    "members": ({"k": {"l": [1, "1"]}}, 'k:\n  l:\n    - 1\n    - "1"\n'),
    "a member on a condition": (
        {"k": If(Value("on"), Release("Name"))},
        "{{- if $.Values.on }}\nk: {{ toJson $.Release.Name }}\n{{- end }}\n",
    ),
    "an element of members": ([{"k": 1, "l": []}], "- k: 1\n  l: []\n"),
    "an element for each": (
        {"k": [Each(("e",), Value("list"), {"n": Variable("e")})]},
        "k:\n  {{- range $_, $e := $.Values.list }}\n  - n: {{ toJson $e }}\n  {{- end }}\n",
    ),
    "lines": ({"k": text("a\nb ", Value("on"))}, "k: |-\n  a\n  b {{ $.Values.on }}\n"),
    "what looks like a template": ({"k": "{{ x }}"}, 'k: {{ toJson "{{ x }}" }}\n'),
    "a key with a colon": ({"a: b": 1}, '"a: b": 1\n'),
}


@pytest.mark.parametrize(("node", "written"), WRITTEN.values(), ids=WRITTEN)
def test_a_template_is_written(node: Node, written: str) -> None:
    assert template([node]) == f"---\n{written}"


def test_an_object_on_a_condition_is_there_or_not() -> None:
    assert template([If(Value("on"), {"k": 1})]) == "{{- if $.Values.on }}\n---\nk: 1\n{{- end }}\n"


EXPRESSIONS: dict[str, tuple[Node, str]] = {
    "quotes": ('a"b', r'"a\"b"'),
    "a call": (call("eq", Value("a"), None), "(eq $.Values.a nil)"),
    "an object": ({"a": [1, True]}, '(dict "a" (list 1 true))'),
    "a choice": (If(Value("on"), "a", "b"), '(ternary "b" "a" (empty $.Values.on))'),
    "a text": (text("a", Named("full")), '(print "a" (include "gpugate.full" $))'),
}


@pytest.mark.parametrize(("node", "written"), EXPRESSIONS.values(), ids=EXPRESSIONS)
def test_an_expression_is_written(node: Node, written: str) -> None:
    assert expression(node) == written


def test_an_element_whose_first_member_may_be_missing_is_a_mistake() -> None:
    with pytest.raises(TypeError, match="the first member of an element must always be there"):
        template([[{"k": If(Value("on"), 1)}]])
