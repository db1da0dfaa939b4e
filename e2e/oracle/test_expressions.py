"""CEL expressions on random objects, compared with the API server's own evaluation of validations.

Both refuse an expression when it is compiled, or both find no value for an object, or both give the same value of the same
type. The API server also evaluates calls of constants when it compiles an expression, so an expression that it refuses may
be an error here, and vice versa; neither lets an object pass.
"""

from __future__ import annotations

import contextlib
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle.process import Oracle, Refused

import tools
from gpugate.policies.cel.expressions import Environment, compile_expression
from gpugate.policies.cel.functions import GLOBAL, MEMBER
from gpugate.policies.cel.numbers import double_text
from gpugate.policies.cel.syntax import ExpressionError
from gpugate.policies.cel.values import DYN, EvaluationError, Scope, type_of

if TYPE_CHECKING:
    from collections.abc import Iterator

ENVIRONMENT = Environment({"object": DYN, "oldObject": DYN}, {})
NO_VALUE = ["no value"]


@pytest.fixture(scope="module")
def expressions() -> Iterator[Oracle]:
    with contextlib.closing(Oracle(tools.path("expressions"))) as process:
        yield process


def plain(value: Any) -> list[Any]:
    """Return a value as the oracle writes it: its type and what tells it from others of the type."""
    kind = type_of(value)
    plains: dict[str, Any] = {
        "int": lambda: str(int(value)),
        "uint": lambda: str(int(value)),
        "double": lambda: double_text(value),
        "bytes": value.hex if kind == "bytes" else None,
        "duration": lambda: value.nanoseconds,
        "quantity": lambda: Fraction(value.amount),
        "optional": lambda: plain(value.value) if value.present else None,
        "list": lambda: sorted((plain(element) for element in value), key=repr),
        "map": lambda: sorted(([plain(key), plain(member)] for key, member in value.items()), key=repr),
        "type": lambda: None,
    }
    return [kind, plains[kind]() if kind in plains else value]


def normalized(answer: list[Any]) -> list[Any]:
    """Return what the oracle wrote, in one order: Go visits the members of a map in a random one."""
    kind, value = answer
    if kind == "list":
        return [kind, sorted(map(normalized, value), key=repr)]
    if kind == "map":
        return [kind, sorted(([normalized(key), normalized(member)] for key, member in value), key=repr)]
    if kind == "optional":
        return [kind, value and normalized(value)]
    return [kind, Fraction(value)] if kind == "quantity" else [kind, value]


def ours(expression: str, variables: dict[str, Any]) -> list[Any]:
    try:
        return plain(compile_expression(expression, ENVIRONMENT, gives=DYN).run(Scope(dict(variables))))
    except (ExpressionError, EvaluationError):
        return NO_VALUE


def theirs(oracle: Oracle, expression: str, variables: dict[str, Any]) -> list[Any]:
    try:
        answer = oracle.ask("expression", {"expression": expression, "variables": variables})
    except Refused:
        return NO_VALUE
    return NO_VALUE if "error" in answer else normalized(answer["value"])


KEYS = ("a", "b", "name", "labels", "items")
TEXTS = st.sampled_from(
    ["", "a", "b", "ab", "A-b", "1", "500m", "1Gi", "2", "true", "1h", "é", "a,b", "nvidia.com/gpu"]
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([2**53 + 1, 2**63 - 1, -(2**63), 0.5, -1.5, 1e300, 2.0]),
    TEXTS,
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(KEYS), inner, max_size=3)),
    max_leaves=8,
)
OBJECTS = st.fixed_dictionaries({}, optional=dict.fromkeys(KEYS, VALUES))


def literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


CONSTANTS = st.one_of(
    st.sampled_from(
        ["true", "false", "null", "0", "1", "2", "-1", "1u", "2.0", "0.5", "9223372036854775807", "[]", "{}"]
    ),
    TEXTS.map(literal),
)
LEAVES = st.one_of(
    CONSTANTS,
    st.just("object"),
    st.sampled_from(KEYS).map(lambda key: f"object.{key}"),
    st.sampled_from(KEYS).map(lambda key: f"object.?{key}"),
    st.just("x"),
)
BINARY = ("==", "!=", "<", "<=", ">", ">=", "in", "+", "-", "*", "/", "%", "&&", "||")
# Functions whose second argument is a constant pattern have their own form below.
METHODS = tuple(sorted(MEMBER.keys() - {"matches", "find", "findAll", "or"}))
FUNCTIONS = tuple(sorted(GLOBAL.keys() - {"matches", "lists.range"}))
MACROS = ("all", "exists", "exists_one", "filter", "map")
PATTERNS = st.sampled_from(["a", "^a", "[a-z]+", "b$", "a*", "(a|b)", ""])


def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    key = st.sampled_from(KEYS)
    return st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from(BINARY), inner),
        st.builds("{}.{}".format, inner, key),
        st.builds("{}.?{}".format, inner, key),
        st.builds("has({}.{})".format, inner, key),
        st.builds("{}[{}]".format, inner, inner),
        st.builds("{}[?{}]".format, inner, inner),
        st.builds("!{}".format, inner),
        st.builds("-({})".format, inner),
        st.builds("({} ? {} : {})".format, inner, inner, inner),
        st.builds("[{}, {}]".format, inner, inner),
        st.builds("{{'a': {}, 'b': {}}}".format, inner, inner),
        st.builds("{}.{}(x, {})".format, inner, st.sampled_from(MACROS), inner),
        st.builds("{}.map(x, {}, {})".format, inner, inner, inner),
        st.builds("{}.optMap(x, {})".format, inner, inner),
        st.builds("{}.{}()".format, inner, st.sampled_from(METHODS)),
        st.builds("{}.{}({})".format, inner, st.sampled_from(METHODS), inner),
        st.builds("{}.{}({}, {})".format, inner, st.sampled_from(METHODS), inner, inner),
        st.builds("{}({})".format, st.sampled_from(FUNCTIONS), inner),
        st.builds("{}({}, {})".format, st.sampled_from(FUNCTIONS), inner, inner),
        st.builds("{}.{}('{}')".format, inner, st.sampled_from(["matches", "find", "findAll"]), PATTERNS),
    )


EXPRESSIONS = st.recursive(LEAVES, larger, max_leaves=6).filter(lambda text: len(text) < 400)


@given(EXPRESSIONS, OBJECTS)
def test_an_expression_gives_what_the_api_server_gives(
    expressions: Oracle, expression: str, manifest: dict[str, Any]
) -> None:
    variables = {"object": manifest, "oldObject": None}

    assert ours(expression, variables) == theirs(expressions, expression, variables), (expression, manifest)


TYPED = st.sampled_from(
    (
        "object.items.{macro}(x, {test})",
        "object.?items.orValue([]).{macro}(x, {test})",
        "has(object.items) && object.items.exists(x, {test})",
        "object.labels.{macro}(x, object.labels[x] == {value})",
        "object.?labels.?a.orValue('') == {value}",
        "quantity(object.name).compareTo(quantity({text})) >= 0",
        "isQuantity(object.name) && quantity(object.name).isLessThan(quantity('2'))",
        "object.name.startsWith({text}) || object.name.endsWith({text})",
        "object.a + object.b",
        "object.a < object.b || object.a == object.b",
        "object.items.size() > {number} ? object.items[{number}] : {value}",
        "{text}.split(',').map(x, x + {text})",
        "type(object.items) == map ? '' : object.items.map(x, string(x)).join(',')",
        "duration({text}) <= duration('1h30m')",
        "int(object.a) + {number}",
        "double(object.a) * 2.0",
        "sets.contains(object.items, [{value}])",
        "object.items.sum() + {number}",
        "type(object.a) == type({value})",
        "object.items == [{value}, {number}]",
    )
)


@given(
    TYPED,
    st.fixed_dictionaries(
        {
            "macro": st.sampled_from(MACROS),
            "test": st.sampled_from(["x == 1", "x > 0", "x", "x.a == 1", "has(x.a)", "size(x) > 0", "x in [1, 2]"]),
            "value": CONSTANTS,
            "text": TEXTS.map(literal),
            "number": st.integers(0, 3).map(str),
        }
    ),
    OBJECTS,
)
def test_a_usual_validation_gives_what_the_api_server_gives(
    expressions: Oracle, form: str, parts: dict[str, str], manifest: dict[str, Any]
) -> None:
    expression = form
    for name, part in parts.items():
        expression = expression.replace("{" + name + "}", part)
    variables = {"object": manifest, "oldObject": None}

    assert ours(expression, variables) == theirs(expressions, expression, variables), (expression, manifest)
