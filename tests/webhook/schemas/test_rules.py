"""Which rules of schemas hold, which are violated, and which cannot be evaluated."""

from __future__ import annotations

from typing import Any

import pytest

from gpugate.policies.cel.syntax import ExpressionError
from gpugate.webhook.schemas import rules
from gpugate.webhook.schemas.rules import Rules, compile_test
from gpugate.webhook.schemas.table import Node, Rule

POOL = {
    "name": "gpu",
    "tags": {"a": "1", "b": ""},
    "terms": [{"id": "x"}, {"id": "y", "tags": {}}],
    "size": 3,
    "namespace": "x",
    "a.b": "y",
    "c-d": "z",
}


def messages(*texts: str, value: Any = POOL, old: Any = None) -> list[str]:
    """Return the messages of the rules that a value violates."""
    written = tuple(Rule(test=text, message=text, transition="oldSelf" in text) for text in texts)
    return [fault.problem.message for fault in Rules([Node(rules=written)]).faults(value, 0, old)]


HOLDS = (
    "self.size + 2 * 3 - 1 == 8",
    "9007199254740993 % 9007199254740994 == 9007199254740993",
    "'aÉ'.upperAscii() == 'AÉ'",
    "string(2.0) == '2'",
    "'a' + \"b\" + r'\\d' + '\\x41\\u00e9\\n' == 'ab\\\\dAé\\n'",
    "'''it's''' == 'it\\'s'",
    "self.size >= 3 && self.size < 4",
    "self.size == 3.0",
    "!(self.name == 'gpu') || true",
    "(self.size > 5 ? 'many' : self.size > 2 ? 'some' : 'few') == 'some'",
    "'a' in self.tags",
    "has(self.tags) && !has(self.nothing)",
    "has(self.terms[1].tags)",
    "self.terms.exists_one(t, has(t.tags))",
    "self.tags.all(k, k != '' && self.tags[k] != 'x')",
    "self.terms.all(t, self.terms.filter(u, u.id == t.id).size() == 1)",
    "[1, 2].all(x, [3].all(x, x == 3) && x < 3)",
    "[1].all(x, [2].all(x, [3].all(y, x == 2 && y == 3)) && x == 1)",
    "'abc'.split('') == ['a', 'b', 'c']",
    "'abcb'.indexOf('b') + 'abcb'.indexOf('b', 2) == 4",
    "self.name.find('^([^/]+)') == 'gpu'",
    "!'a\\n'.matches('^a$')",
    "int('-12') + int(3.7) == -9",
    "quantity('1Gi').isGreaterThan(quantity('1000M'))",
    "self.?nothing.orValue('a') == 'a'",
    "duration('1h') > duration('30m')",
    # The schema gives the parts of these the same type.
    "[self.name, 'b'].exists(x, x == 'gpu')",
    "{'a': self.size, 'b': 1} == {'a': 3, 'b': 1}",
    "self.terms.map(t, [t.id, 'z']).all(l, l[1] == 'z')",
    # A side that decides makes the error of the other one count for nothing.
    "self.nothing == 1 || true",
    "!(false && self.nothing == 1)",
    "[1, 2].exists(x, x == 2 || self.nothing)",
    "self.__namespace__ + self.a__dot__b + self.c__dash__d == 'xyz'",
    "has(self.a__dot__b) && self.?c__dash__d.hasValue()",
    "true // always\n|| false",
)


@pytest.mark.parametrize("text", HOLDS)
def test_a_rule_holds(text: str) -> None:
    assert messages(text) == []


@pytest.mark.parametrize("text", ["self.size > 3", "self.terms.all(t, has(t.tags))", "self.namespace == 'y'"])
def test_a_rule_is_violated(text: str) -> None:
    assert messages(text) == [f"violates a rule of its schema: {text}"]


# Expression -> words of why it has no value.
WITHOUT = {
    "self.nothing": "`nothing` is missing",
    "self.tags['c'] == ''": "missing key",
    "self.terms[5].id == ''": "index out of range",
    "self.terms.nothing": "`.nothing` does not accept",
    "self.name[0] == ''": "`[]` does not accept",
    "self.name > 1": "`>` does not accept",
    "1 / (self.size - 3) > 0": "division by zero",
    "9223372036854775807 + self.size > 0": "integer overflow",
    "int('1.5') > 0": "`int` does not accept",
    "int(' 1') > 0": "`int` does not accept",
    "int('99999999999999999999') > 0": "integer overflow",
    "self.size && true": "`&&` does not accept",
    "self.size.startsWith('a')": "`startsWith` does not accept",
    "self.name.all(x, true)": "`all` does not accept",
    "[1, 2].all(x, x > 0 && self.nothing)": "`nothing` is missing",
    "[0, 1].all(x, 1 / x > 0)": "division by zero",
    "self.name.substring(2, 1) == ''": "index out of range",
    "quantity('1GB') == quantity('1')": "`quantity` does not accept",
    "self.name": "`the result` does not accept",
}


@pytest.mark.parametrize("text", WITHOUT)
def test_a_rule_cannot_be_evaluated(text: str) -> None:
    (message,) = messages(text)

    assert message.startswith(f"cannot be evaluated, and is refused for that: {WITHOUT[text]}")
    assert message.endswith(f"; the rule is: {text}")


UNSUPPORTED = {
    "now == 1": "unknown variable `now`",
    "[1].all(x, y)": "unknown variable `y`",
    "isURL(self)": "unknown function `isURL`",
    "self.ip() == ''": "unknown function `ip`",
    "size(self, self) > 0": "`size` does not accept",
    "has(self)": "the argument of `has` is a field",
    "self.matches(self)": "the pattern of `matches` must be a constant",
    "self.matches('(?=a)')": "the pattern is not supported",
    "self.matches('(a*)*')": "repeats what repeats itself",
    "'a'": "the value is of type string; it must be bool",
}


@pytest.mark.parametrize("text", UNSUPPORTED)
def test_a_rule_that_is_not_supported_is_not_compiled(text: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        compile_test(text)

    assert UNSUPPORTED[text] in caught.value.message


def test_a_transition_rule_compares_with_the_old_value() -> None:
    rule = "self >= oldSelf"

    assert [messages(rule, value=3, old=old) for old in (None, 2, 4)] == [
        [],
        [],
        [f"violates a rule of its schema: {rule}"],
    ]


GROWS = "'a'" + ".replace('a', 'aaaaaaaaaa')" * 12 + " == ''"
UNBOUNDED = {
    "steps": "self.all(a, self.all(b, self.all(c, true)))",
    "a text that grows": GROWS,
    "a text that grows beside an error": f"self[999] == 1 || {GROWS}",
    "a text that grows before an error": f"{GROWS} || self[999] == 1",
    "texts that are joined": "'a'" + ".split('').map(x, 'aaaaaaaaaa').join('')" * 12 + " == ''",
    "lists within each other": "[1]" + ".map(e, [e, e])" * 30 + " == [1]" + ".map(e, [e, e])" * 30,
    "long texts of a pattern": "('a' + self.map(x, 'aaaaaaaaaa').join('') + 'a').matches('b')",
    "beside an error": "self.all(a, self.all(b, self.all(c, true)) && self[999] == 1)",
    "an integer of many digits": "double(self[0]) > 1.0",
}


@pytest.mark.parametrize("text", UNBOUNDED.values(), ids=UNBOUNDED)
def test_a_rule_that_takes_too_much_work_is_not_reported(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "STEPS", 100_000)

    assert messages(text, value=[10**400, *range(250)]) == []


def test_a_pattern_that_tries_every_pair_of_places_is_charged_for_them() -> None:
    linear, square = "self.all(x, !x.matches('^[a-z]*$'))", "self.all(x, !x.matches('[a-z]+[0-9]'))"

    assert messages(linear, square, value=["a" * 2_000] * 100) == [f"violates a rule of its schema: {linear}"]
