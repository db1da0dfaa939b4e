"""What expressions are worth, and which have no value."""

from __future__ import annotations

from typing import Any

import pytest

from gpugate.webhook.schemas import cel_functions
from gpugate.webhook.schemas.cel_evaluate import function_of
from gpugate.webhook.schemas.cel_functions import STEPS, Budget, Scope
from gpugate.webhook.schemas.cel_parse import CelCostError, CelEvaluationError
from gpugate.webhook.schemas.compile import translate


def value(text: str, self: Any = None, old: Any = None, budget: Budget | None = None) -> Any:
    return function_of(translate(text))(Scope({"self": self, "oldSelf": old}, budget))


POOL = {"name": "gpu", "tags": {"a": "1", "b": ""}, "terms": [{"id": "x"}, {"id": "y", "tags": {}}], "size": 3}
# Expression -> its value for POOL.
CASES: dict[str, Any] = {
    "self.size + 2 * 3 - 1": 8,
    "-7 / 2": -3,
    "-7 % 2": -1,
    "9007199254740993 % 9007199254740994": 9007199254740993,
    "['x', 'y'].indexOf('y')": 1,
    "[1].indexOf(2)": -1,
    "'aÉ'.upperAscii()": "AÉ",
    "string(2.0)": "2",
    "7.0 / 2.0": 3.5,
    "'a' + \"b\" + r'\\d' + '\\x41\\u00e9\\n'": "ab\\dAé\n",
    "'''it's'''": "it's",
    "[1, 2] + [3]": [1, 2, 3],
    "{'a': 1, 'b': 2}['b']": 2,
    "0x1F": 31,
    "1e3": 1000.0,
    "1 == 1.0": True,
    "true == 1": False,
    "'a' != 1": True,
    "[1, 'a'] == [1.0, 'a']": True,
    "{'a': [1]} == {'a': [2]}": False,
    "self.size >= 3 && self.size < 4": True,
    "'b' > 'a'": True,
    "!(self.name == 'gpu') || true": True,
    "self.size > 5 ? 'many' : self.size > 2 ? 'some' : 'few'": "some",
    "'a' in self.tags": True,
    "'c' in ['a', 'b', 1]": False,
    "1.0 in ['a', 1]": True,
    "size(self.terms) == self.terms.size()": True,
    "self.name.size()": 3,
    "has(self.tags) && !has(self.nothing)": True,
    "has(self.terms[1].tags)": True,
    "self.terms[0].id": "x",
    "self.tags['a']": "1",
    "self.terms.all(t, has(t.id))": True,
    "self.terms.exists(t, t.id == 'y')": True,
    "self.terms.exists_one(t, has(t.tags))": True,
    "self.terms.filter(t, has(t.tags)).size()": 1,
    "self.terms.map(t, t.id)": ["x", "y"],
    "self.terms.map(t, t.id != 'x', t.id)": ["y"],
    "self.tags.all(k, k != '' && self.tags[k] != 'x')": True,
    "self.terms.all(t, self.terms.filter(u, u.id == t.id).size() == 1)": True,
    "[1, 2].all(x, [3].all(x, x == 3) && x < 3)": True,
    "self.name.startsWith('g') && self.name.endsWith('u') && self.name.contains('p')": True,
    "'a@b'.split('@')[1]": "b",
    "'a,b,c'.split(',', 2)": ["a", "b,c"],
    "'abc'.split('')": ["a", "b", "c"],
    "['a', 'b'].join('-')": "a-b",
    "'a.b'.replace('.', '-').upperAscii()": "A-B",
    "' A '.trim().lowerAscii()": "a",
    "'abcd'.substring(1, 3) + 'abcd'.substring(3)": "bcd",
    "'abcb'.indexOf('b') + 'abcb'.indexOf('b', 2)": 4,
    "'karpenter.sh/x'.find('^([^/]+)')": "karpenter.sh",
    "'x'.find('[0-9]+')": "",
    "'al2@v1'.matches('^[a-z0-9]+@.+$')": True,
    "'a\\n'.matches('^a$')": False,
    "int('-12') + int(3.7)": -9,
    "double('1.5')": 1.5,
    "string(5) + string(true)": "5true",
    "quantity('1Gi').isGreaterThan(quantity('1000M'))": True,
    "isQuantity('1Gi') && !isQuantity('1GB')": True,
    # What decides makes the error beside it count for nothing.
    "self.nothing == 1 || true": True,
    "false && self.nothing == 1": False,
    "[1, 2].exists(x, x == 2 || self.nothing)": True,
    "[0, 1].all(x, 1 / x > 5)": False,
    "self.terms[0].__namespace__ == 1 || true": True,
}


@pytest.mark.parametrize("text", CASES)
def test_an_expression_has_a_value(text: str) -> None:
    found = value(text, POOL)

    assert (type(found), found) == (type(CASES[text]), CASES[text])


# Expression -> words of why it has no value.
WITHOUT: dict[str, str] = {
    "self.nothing": "`nothing` is missing",
    "self.tags['c']": "`c` is missing",
    "self.terms[5]": "element 5 does not exist",
    "self.terms.nothing": "`nothing` is missing",
    "has(self.name.length)": "`has` does not accept",
    "self.name[0]": "`[]` does not accept",
    "'a' < 1": "`<` does not accept",
    "1 + 'a'": "`+` does not accept",
    "1 + 1.5": "`+` does not accept",
    "1 / 0": "division by zero",
    "9223372036854775807 + 1": "overflow",
    "int('1.5')": "is no whole number",
    "int(' 1')": "is no whole number",
    "int('99999999999999999999')": "overflow",
    "int(true)": "`int` does not accept",
    "1 && true": "&& and ||",
    "!1": "`!` does not accept",
    "-'a'": "`-` does not accept",
    "'x' ? 1 : 2": "? :",
    "'a' in 'abc'": "`in` does not accept",
    "self.size.startsWith('a')": "does not accept",
    "'a'.startsWith(1)": "does not accept",
    "self.name.all(x, true)": "a quantifier",
    "[1].filter(x, x)": "a quantifier",
    "[1, 2].all(x, x > 0 && self.nothing)": "`nothing` is missing",
    "'a'.substring(2, 1)": "index out of range",
    "size(5)": "`size` does not accept",
    "[1].join()": "`join` does not accept",
    "quantity('1GB')": "is not a quantity",
}  # fmt: skip


@pytest.mark.parametrize("text", WITHOUT)
def test_an_expression_has_no_value(text: str) -> None:
    with pytest.raises(CelEvaluationError) as raised:
        value(text, POOL)

    assert WITHOUT[text] in str(raised.value)


def test_an_escaped_name_is_read() -> None:
    assert (
        value("self.__namespace__ + self.a__dot__b + self.c__dash__d", {"namespace": "x", "a.b": "y", "c-d": "z"})
        == "xyz"
    )


def test_old_values_are_read() -> None:
    assert value("self >= oldSelf", 5, 3) is True


def test_too_many_steps_end_it() -> None:
    with pytest.raises(CelCostError):
        value("self.all(a, self.all(b, self.all(c, true)))", list(range(200)))


DEAR = {
    "a text that grows": "'a'" + ".replace('a', 'aaaaaaaaaa')" * 12 + " == ''",
    "texts that are joined": "'a'" + ".split('').map(x, 'aaaaaaaaaa').join('')" * 12 + " == ''",
    "lists within each other": "[1]" + ".map(e, [e, e])" * 40 + " == [1]" + ".map(e, [e, e])" * 40,
}  # fmt: skip


@pytest.mark.parametrize("text", DEAR.values(), ids=DEAR)
def test_what_grows_without_end_costs_too_much(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cel_functions, "LARGEST", 10_000)

    with pytest.raises(CelCostError):
        value(text, budget=Budget(100_000))


NUMBERS, WORDS = list(range(100)), [f"w{number:03}" for number in range(100)]
LONG = "ab" * 50_000
# Expression -> `self`, and the least number of steps that it must count.
CHARGED: dict[str, tuple[Any, int]] = {
    "self.all(x, !(x + 100 in self))": (NUMBERS, 10_000),
    "self.all(x, !(x + 'y' in self))": (WORDS, 10_000),
    "self.all(x, self.indexOf(x + 100) < 0)": (NUMBERS, 10_000),
    "self.all(x, self.indexOf(x) >= 0)": (NUMBERS, 4_000),
    "self.all(x, self == self)": (NUMBERS, 10_000),
    "self.all(x, self != [x])": (NUMBERS, 100),
    "self.all(x, {'a': self} == {'a': self})": (NUMBERS, 10_000),
    "self.all(x, (self + self).size() > 0)": (NUMBERS, 20_000),
    "self.all(x, self.join(',') != '')": (WORDS, 10_000),
    "self.all(x, !(x in [1, 2.5, 'a', true]))": ([-each - 1 for each in NUMBERS], 400),
    "self == self + ''": (LONG, 6_000),
    "self < self + ''": (LONG, 6_000),
    "self.contains('c')": (LONG, 6_000),
    "self.replace('a', 'b') == ''": (LONG, 6_000),
    "self.split('').size() > 0": (LONG, 100_000),
    "self.upperAscii() == ''": (LONG, 6_000),
    "self.matches('^(ab)+$')": ("ab" * 1_000, 100_000),
}  # fmt: skip


@pytest.mark.parametrize("text", CHARGED)
def test_what_looks_at_much_is_charged_for_it(text: str) -> None:
    self, least = CHARGED[text]
    budget = Budget()

    value(text, self, budget=budget)

    assert STEPS - budget.left >= least


def test_an_expression_is_charged_by_its_length() -> None:
    budgets = [Budget(), Budget()]

    value("true && true", budget=budgets[0])
    value(" && ".join(["true"] * 100), budget=budgets[1])

    assert budgets[0].left - budgets[1].left >= 98
