"""What CEL expressions give: the values and errors are those of the API server, as `e2e/oracle` shows on random input."""

from __future__ import annotations

import math
from typing import Any

import pytest

from gpugate.policies.cel.expressions import Environment, compile_expression
from gpugate.policies.cel.syntax import LONGEST, ExpressionError, Uint
from gpugate.policies.cel.values import (
    ANY,
    BOOL,
    DOUBLE,
    DYN,
    STRING,
    EvaluationError,
    NotKnownError,
    Optional,
    Scope,
    type_of,
)
from gpugate.policies.sdk.field import Unknown, UnknownValueError
from gpugate.policies.sdk.findings import Skip

OBJECT = {
    "metadata": {"name": "a", "labels": {"team": "x", "a.b/c": "d"}},
    "spec": {
        "n": 3,
        "f": 2.5,
        "big": 9007199254740993,
        "t": True,
        "nul": None,
        "l": [1, 2, 3, 2],
        "s": "Hello-World",
        "empty": [],
        "q": "500m",
        "containers": [
            {"name": "c1", "image": "r.io/a:1", "resources": {"limits": {"nvidia.com/gpu": "8", "memory": "1Gi"}}},
            {"name": "c2"},
        ],
    },
}
ENVIRONMENT = Environment(
    {"object": DYN}, {"gpu.pod.gpus": DOUBLE, "gpu.pod.workloadClass": STRING, "request.kind.kind": STRING}
)
VALUES: dict[str, Any] = {
    "!!object.?missing": Optional(present=False),
    "object.?missing[object.missing]": Optional(present=False),
    "object.spec.n == 3": True,
    "object.spec.n == 3.0": True,
    "object.spec.n == 3u": True,
    "object.spec.f > 2": True,
    "object.spec.n < 3.5": True,
    "object.spec.n + 1": 4,
    "object.spec.n * 2": 6,
    "object.spec.big == 9007199254740992.0": True,
    "-7 / 2": -3,
    "-7 % 3": -1,
    "7 % -3": 1,
    "object.spec.t == 1": False,
    "object.spec.nul == null": True,
    "object.spec.nul == 0": False,
    "has(object.spec.missing)": False,
    "has(object.spec.nul)": True,
    "has(object.spec.n.deep)": False,
    "object.spec.missing || true": True,
    "true || object.spec.missing": True,
    "object.spec.missing && false": False,
    "object.spec.n || true": True,
    "object.spec.containers.all(c, has(c.resources))": False,
    "object.spec.containers.exists(c, c.resources.limits['nvidia.com/gpu'] == '8')": True,
    "object.spec.containers.exists_one(c, c.name == 'c1')": True,
    "object.spec.containers.filter(c, !has(c.resources)).map(c, c.name)": ["c2"],
    "object.spec.containers.map(c, has(c.resources), c.name)": ["c1"],
    "object.spec.l.all(x, x > 0)": True,
    "object.metadata.labels['team'] in ['x', 'y']": True,
    "'team' in object.metadata.labels": True,
    "'a.b/c' in object.metadata.labels": True,
    "object.metadata.labels.exists(k, k.startsWith('a'))": True,
    "object.metadata.?labels['team'].orValue('')": "x",
    "object.metadata.?annotations['team'].orValue('none')": "none",
    "object.?spec.?n.orValue(0)": 3,
    "object.spec.?missing.hasValue()": False,
    "object.metadata.labels[?'zz'].orValue('q')": "q",
    "optional.of(1).value()": 1,
    "optional.none().orValue(3)": 3,
    "size(object.spec.l)": 4,
    "object.spec.s.size()": 11,
    "size('é')": 1,
    "object.spec.s.contains('World')": True,
    "object.spec.s.matches('^Hello')": True,
    "object.spec.s.matches('(?i)hello')": True,
    "object.spec.s.find('[A-Z]')": "H",
    "object.spec.s.findAll('[A-Z]')": ["H", "W"],
    "object.spec.s.lowerAscii()": "hello-world",
    "object.spec.s.split('-')": ["Hello", "World"],
    "object.spec.s.replace('l','L')": "HeLLo-WorLd",
    "object.spec.s.substring(1,3)": "el",
    "object.spec.s.charAt(1)": "e",
    "object.spec.s.indexOf('l')": 2,
    "object.spec.s.lastIndexOf('l')": 9,
    "['a','b'].join('/')": "a/b",
    "' x '.trim()": "x",
    "object.spec.l.sum()": 8,
    "object.spec.l.min()": 1,
    "object.spec.l.max()": 3,
    "object.spec.l.isSorted()": False,
    "object.spec.l.indexOf(2)": 1,
    "object.spec.l.lastIndexOf(2)": 3,
    "object.spec.l.distinct()": [1, 2, 3],
    "object.spec.l.sort()": [1, 2, 2, 3],
    "object.spec.l.reverse()": [2, 3, 2, 1],
    "object.spec.l.slice(1,2)": [2],
    "[[1],[2,3]].flatten()": [1, 2, 3],
    "sets.contains(object.spec.l, [1])": True,
    "sets.intersects([1],[2])": False,
    "sets.equivalent([1,1],[1])": True,
    "quantity(object.spec.q).isLessThan(quantity('1'))": True,
    "quantity('1Gi').compareTo(quantity('1024Mi'))": 0,
    "quantity('8').asInteger()": 8,
    "quantity('1.5').asApproximateFloat()": 1.5,
    "quantity('1').add(quantity('2')).asInteger()": 3,
    "isQuantity('abc')": False,
    "quantity('1') == quantity('1000m')": True,
    "int('5') + 1": 6,
    "int(5.9)": 5,
    "string(5)": "5",
    "string(5.5)": "5.5",
    "string(1e21)": "1e+21",
    "string(true)": "true",
    "double('1.5')": 1.5,
    "double(3)": 3.0,
    "uint(3)": Uint(3),
    "bool('true')": True,
    "type(1) == int": True,
    "type(object.spec.n) == int": True,
    "dyn(1) == 1.0": True,
    "'a' < 'b'": True,
    "'é' < 'f'": False,
    "true < false": False,
    "[1] + [2]": [1, 2],
    "b'abc' + b'd'": b"abcd",
    "duration('1h') > duration('30m')": True,
    "duration('1h30m').getMinutes()": 90,
    "1 < 2 ? 'a' : 'b'": "a",
    "-object.spec.n": -3,
    "'\\u00e9' == 'é'": True,
    "r'\\n' == '\\\\n'": True,
    "0x10 == 16": True,
    "1e3 == 1000.0": True,
    "object.metadata['name']": "a",
    "object['metadata'].name": "a",
    "object.metadata.labels.map(k, k)": ["team", "a.b/c"],
    "[1,2,3].map(x, x * 2).filter(x, x > 2)": [4, 6],
    "[dyn(1), dyn('a')]": [1, "a"],
    "true ? object.spec.n : 'a'": 3,
    "[] + [1]": [1],
    "[].size()": 0,
    "[] == [1]": False,
    "{}.size()": 0,
    "{'a': 1}.?b.orValue(2)": 2,
    "[1,2][?5].orValue(9)": 9,
    "[1,2][?0]": Optional(present=True, value=1),
    "object.?spec.n": Optional(present=True, value=3),
    "object.?spec.missing": Optional(present=False, value=None),
    "object.?missing.n": Optional(present=False, value=None),
    "object.?spec.?s.optMap(x, x + 'a')": Optional(present=True, value="Hello-Worlda"),
    "optional.none().optMap(x, x + 'a')": Optional(present=False, value=None),
    "optional.of(5).optMap(x, x + 1).orValue(0)": 6,
    "optional.of(5).optFlatMap(x, optional.none()).orValue(0)": 0,
    "optional.ofNonZeroValue(0)": Optional(present=False, value=None),
    "optional.ofNonZeroValue('a')": Optional(present=True, value="a"),
    "optional.of(1) == optional.of(1)": True,
    "optional.of(1).or(optional.of(2))": Optional(present=True, value=1),
    "object.spec.s.?x": Optional(present=False, value=None),
    "object['spec']['n']": 3,
    "object.spec.l[0]": 1,
    "object.spec.s in ['Hello-World']": True,
    "object.spec.n in [1, 3]": True,
    "object.spec.n in object.spec.l": True,
    "object.spec.n in {3: 1}": True,
    "'n' in object.spec": True,
    "5 in object.spec": False,
    "object in object": False,
    "object == object": True,
    "object.spec == {'a': 1}": False,
    "object.spec.l == [1,2,3,2]": True,
    "object.spec.l == [1.0,2.0,3.0,2.0]": True,
    "object.spec.l != [1,2,3]": True,
    "object.spec.empty == []": True,
    "object.spec.nul == object.spec.nul": True,
    "null == null": True,
    "object.spec.s == 1": False,
    "object.spec.s || true": True,
    "!object.spec.t": False,
    "!!object.spec.t": True,
    "--5": 5,
    "-5": -5,
    "- 5": -5,
    "-(-5)": 5,
    "-object.spec.f": -2.5,
    "1u + 1u": Uint(2),
    "1u < 2": True,
    "1u < 2.5": True,
    "dyn(1u) == 1": True,
    "dyn(1u) == dyn(1.0)": True,
    "0.0 / 0.0 == 0.0 / 0.0": False,
    "7 / -2": -3,
    "-7 / -2": 3,
    "-9223372036854775808": -9223372036854775808,
    "18446744073709551615u": Uint(18446744073709551615),
    "0x1F": 31,
    "0x1Fu": Uint(31),
    "int(1.9)": 1,
    "int(-1.9)": -1,
    "int('-5')": -5,
    "uint('5')": Uint(5),
    "uint(1.5)": Uint(1),
    "dyn(optional.of({'a': 1}))['a']": Optional(present=True, value=1),
    "dyn(optional.none())['a']": Optional(present=False),
    "-1.0 / 0.0": -math.inf,
    "1.0 / -0.0": -math.inf,
    "9223372036854775806 + 1": 9223372036854775807,
    "duration('1h') + duration('30m') == duration('90m')": True,
    "'abca'.lastIndexOf('a', 0)": 0,
    "'a'.lastIndexOf('a')": 0,
    "1 in {1: 'a'}": True,
    "string(1.0)": "1",
    "string(double('-inf'))": "-Inf",
    "string(double('inf'))": "+Inf",
    "string(double('nan'))": "NaN",
    "string(false)": "false",
    "int(1e15)": 10**15,
    "uint(1e15)": Uint(10**15),
    "string(0.1)": "0.1",
    "string(100000.0)": "100000",
    "string(123456789.0)": "1.23456789e+08",
    "string(1e20)": "1e+20",
    "string(1e-4)": "0.0001",
    "string(1e-5)": "1e-05",
    "string(1.25e-10)": "1.25e-10",
    "string(-0.0)": "-0",
    "string(b'abc')": "abc",
    "string(duration('90s'))": "90s",
    "string(duration('1500ms'))": "1.5s",
    "bool('TRUE')": True,
    "bytes('é')": b"\xc3\xa9",
    "duration('1h').getHours()": 1,
    "duration('-90m').getHours()": -1,
    "duration('90m').getMinutes()": 90,
    "duration('1.5s').getMilliseconds()": 1500,
    "duration('1h') < duration('1h1s')": True,
    "'abc'.charAt(3)": "",
    "'abc'.indexOf('')": 0,
    "'abc'.indexOf('c', 2)": 2,
    "'abc'.indexOf('c', 5)": -1,
    "'abcabc'.lastIndexOf('b', 3)": 1,
    "'abcabc'.lastIndexOf('b', 10)": -1,
    "''.lastIndexOf('b')": -1,
    "'abc'.lastIndexOf('')": 3,
    "'ABCé'.lowerAscii()": "abcé",
    "'abcé'.upperAscii()": "ABCé",
    "'  a\\t\\n'.trim()": "a",
    "'aaa'.replace('a', 'b', 2)": "bba",
    "'aaa'.replace('', '-')": "-a-a-a-",
    "'aaa'.replace('a', 'b', 0)": "aaa",
    "'aaa'.replace('a', 'b', -1)": "bbb",
    "'a,b,c'.split(',', 2)": ["a", "b,c"],
    "'a,b,c'.split(',', 0)": [],
    "'a,b,c'.split(',', -1)": ["a", "b", "c"],
    "'a,b,c'.split(',', 1)": ["a,b,c"],
    "'abc'.split('')": ["a", "b", "c"],
    "'abc'.split('', 2)": ["a", "bc"],
    "''.split(',')": [""],
    "''.split('')": [],
    "'abc'.substring(1)": "bc",
    "['a', 'b'].join()": "ab",
    "[].join(',')": "",
    "strings.quote('a\"b\\n')": '"a\\"b\\n"',
    "[1,2,3].reverse()": [3, 2, 1],
    "'abc'.contains('')": True,
    "'abc'.endsWith('bc')": True,
    "'a.b'.matches('a\\\\.b')": True,
    "matches('abc', 'b')": True,
    "'abc'.find('z')": "",
    "'abab'.findAll('b')": ["b", "b"],
    "'abab'.findAll('b', 1)": ["b"],
    "'abab'.findAll('b', 0)": [],
    "'abab'.findAll('b', -1)": ["b", "b"],
    "'aab'.findAll('a*')": ["aa", ""],
    "'baac'.findAll('a*')": ["", "aa", ""],
    "[3,1,2].sort()": [1, 2, 3],
    "['b','a'].sort()": ["a", "b"],
    "[3,1,2].isSorted()": False,
    "[].isSorted()": True,
    "[1.5, 2.5].sum()": 4.0,
    "[1u, 2u].sum()": Uint(3),
    "[].sum()": 0,
    "['b','a'].min()": "a",
    "[true,false].max()": True,
    "[1,2,2].distinct()": [1, 2],
    "[1,2,3].slice(0, 2)": [1, 2],
    "[[1],[2]].flatten(1)": [1, 2],
    "[[[1]]].flatten(2)": [1],
    "lists.range(3)": [0, 1, 2],
    "lists.range(0)": [],
    "lists.range(-1)": [],
    "sets.contains([1], [])": True,
    "sets.contains([dyn(1)], [dyn(1.0)])": True,
    "sets.equivalent([], [])": True,
    "sets.intersects([], [])": False,
    "quantity('1Ki').asInteger()": 1024,
    "quantity('0.5').isInteger()": False,
    "quantity('1').add(1) == quantity('2')": True,
    "quantity('1').sub(quantity('3')).asInteger()": -2,
    "quantity(object.spec.q).asApproximateFloat()": 0.5,
    "type(object.spec) == map": True,
    "type(object.spec.l) == list": True,
    "type(null) == null_type": True,
    "type('a') == string": True,
    "type(1u) == uint": True,
    "type(1) == type(2)": True,
    "type(type(1)) == type": True,
    "type(quantity('1')) == type(1)": False,
    "[1,2,3].all(x, x > 0) && [1,2].exists(x, x == 2)": True,
    "[1,2,3].exists_one(x, x > 2)": True,
    "[0,1].exists(x, 1 / x > 0)": True,
    "[1,2].map(x, x > 1, x * 2)": [4],
    "{'a': 1, 'b': 2}.all(k, k != 'c')": True,
    "{'a': 1, 'b': 2}.filter(k, k != 'b')": ["a"],
    "{'a': 1, 'b': 2}.map(k, k).sort()": ["a", "b"],
    "[1].map(x, [2].map(x, x))": [[2]],
    "[1].map(x, [2].map(y, x + y))": [[3]],
    "[1].map(object, object + 1)": [2],
    "has(object.spec) && has(object.spec.l)": True,
    "has({'a': 1}.a)": True,
    "has({'a': 1}.b)": False,
    "has(object.?spec.n)": True,
    "object.spec.containers[0].name": "c1",
    "object.spec.containers[0].?resources.?limits['nvidia.com/gpu'].orValue('0')": "8",
    "object.spec.containers[1].?resources.?limits['nvidia.com/gpu'].orValue('0')": "0",
    "object.spec.containers[1].?resources.limits['nvidia.com/gpu'].orValue('0')": "0",
    "object.metadata.?labels.?team": Optional(present=True, value="x"),
    "object.metadata.labels.?team": Optional(present=True, value="x"),
    "object.spec.s < 'a'": True,
    "b'a' < b'b'": True,
    "false < true": True,
    "object.spec.t < true": False,
    "1 + object.spec.n": 4,
    "'a' + object.spec.s": "aHello-World",
    "[1] + object.spec.l": [1, 1, 2, 3, 2],
    "object.spec.l + object.spec.l": [1, 2, 3, 2, 1, 2, 3, 2],
    "object.spec.s + object.spec.s": "Hello-WorldHello-World",
    "true && (object.spec.n == 3)": True,
    "1 == 1 == true": True,
    "1 < 2 == true": True,
    "1 + 2 * 3 - 4 / 2": 5,
    "(1 + 2) * 3": 9,
    "true || false && false": True,
    "[1,]": [1],
    "{'a': 1,}": {"a": 1},
    "'\\x41\\u00e9\\101'": "AéA",
    "b'\\xff'": b"\xff",
    "r'\\d'": "\\d",
    "1 // comment": 1,
    "{1: 'a'}[1]": "a",
    "{true: 'a'}[true]": "a",
    "{'a': 1, 'a': 2}": {"a": 2},
    "{'a': {'b': 1}}.a.b": 1,
    "{'a': 1}.a + 1": 2,
}
ERRORS = {
    "object.spec.l[?'a']": "`.?` does not accept a value of this type",
    "object.spec.n + 1.0": "`+` does not accept a value of this type",
    "object.spec.n / 0": "division by zero",
    "9223372036854775807 + 1": "integer overflow",
    "-9223372036854775808 - 1": "integer overflow",
    "1u - 2u": "unsigned integer overflow",
    "object.spec.missing": "`missing` is missing",
    "has(object.spec.missing.deep)": "`missing` is missing",
    "object.spec.missing == null": "`missing` is missing",
    "object.spec.containers.all(c, c.resources.limits['nvidia.com/gpu'] == '8')": "`resources` is missing",
    "object.spec.l.exists(x, x / 0 > 1)": "division by zero",
    "object.spec.s.substring(99)": "index out of range",
    "object.spec.empty.max()": "`max` does not accept an empty list",
    "quantity('abc')": "`quantity` does not accept this string",
    "object.spec.l[4]": "index out of range",
    "object.spec.first || object.spec.second": "`first` is missing",
    "int(9.3e18)": "integer overflow",
    "uint(1.9e19)": "unsigned integer overflow",
    "[dyn(1), dyn('a')].sum()": "`sum` does not accept a value of this type",
    "[dyn('a')].sum()": "`sum` does not accept a value of this type",
    "int('x')": "`int` does not accept this string",
    "{'a': 1}['b']": "missing key",
    "{'a': 1}.b": "`b` is missing",
    "[1,2][5]": "index out of range",
    "[1,2][-1]": "index out of range",
    "!object.spec.n": "`!` does not accept a value of this type",
    "-object.spec.s": "`neg` does not accept a value of this type",
    "{}['a']": "missing key",
    "optional.none().value()": "the optional value is absent",
    "object.spec['missing']": "missing key",
    "object.spec.l[0.5]": "index out of range",
    "object.spec.l['a']": "`[]` does not accept a value of this type",
    "object.spec[0]": "missing key",
    "object.spec.n[0]": "`[]` does not accept a value of this type",
    "object.spec.n.x": "`.x` does not accept a value of this type",
    "size(object.spec.n)": "`size` does not accept a value of this type",
    "object.spec.n.size()": "`size` does not accept a value of this type",
    "object.spec.n.startsWith('a')": "`startsWith` does not accept a value of this type",
    "object.spec.t && object.spec.s": "`&&` does not accept a value of this type",
    "object.spec.s && true": "`&&` does not accept a value of this type",
    "5 % 0": "modulus by zero",
    "0.0 / 0.0 < 1.0": "NaN has no order",
    "-9223372036854775808 / -1": "integer overflow",
    "-9223372036854775808 % -1": "integer overflow",
    "int(1e19)": "integer overflow",
    "int('9223372036854775808')": "integer overflow",
    "int(' 5')": "`int` does not accept this string",
    "uint(-1)": "unsigned integer overflow",
    "uint('-1')": "`uint` does not accept this string",
    "double('abc')": "`double` does not accept this string",
    "double('1e400')": "`double` does not accept this string",
    "double('0x10')": "`double` does not accept this string",
    "string(b'\\xff')": "the bytes are invalid UTF-8",
    "bool('tRue')": "`bool` does not accept this string",
    "bool('yes')": "`bool` does not accept this string",
    "duration('5')": "`duration` does not accept this string",
    "duration('')": "`duration` does not accept this string",
    "duration('1d')": "`duration` does not accept this string",
    "duration(object.spec.s)": "`duration` does not accept this string",
    "'abc'.charAt(4)": "index out of range",
    "'abc'.charAt(-1)": "index out of range",
    "'abc'.indexOf('c', -1)": "index out of range",
    "'abc'.substring(2, 1)": "index out of range",
    "'abc'.substring(-1)": "index out of range",
    "'abc'.substring(0, 4)": "index out of range",
    "object.spec.l.join(',')": "`join` does not accept a value of this type",
    "object.spec.n.matches('a')": "`matches` does not accept a value of this type",
    "[dyn(1), dyn(1.5)].sort()": "`sort` does not accept a value of this type",
    "[].min()": "`min` does not accept an empty list",
    "object.spec.containers.min()": "`min` does not accept a value of this type",
    "[1,2,3].slice(-1, 2)": "index out of range",
    "[1,2,3].slice(2, 1)": "index out of range",
    "[1,2,3].slice(0, 5)": "index out of range",
    "[[1]].flatten(-1)": "the depth of `flatten` is negative",
    "quantity('0.5').asInteger()": "the quantity is not an integer",
    "quantity(object.spec.n)": "`quantity` does not accept a value of this type",
    "isQuantity(object.spec.n)": "`isQuantity` does not accept a value of this type",
    "[1,2,3].exists_one(x, x / 0 > 2)": "division by zero",
    "[1,0].all(x, 1 / x > 0)": "division by zero",
    "[1,2].filter(x, x / 0 > 1)": "division by zero",
    "[1,2].map(x, x / 0)": "division by zero",
    "[dyn(1)].all(x, x)": "`&&` does not accept a value of this type",
    "object.spec.n.all(x, x)": "`all` does not accept a value of this type",
    "object.spec.s.all(x, x)": "`all` does not accept a value of this type",
    "has(object.spec.l.x)": "`has` does not accept a value of this type",
    "object.spec.namespace": "`namespace` is missing",
    "object.if": "`if` is missing",
    "object.spec.n < 'a'": "`<` does not accept a value of this type",
    "object.spec.l < object.spec.l": "`<` does not accept a value of this type",
    "'a' > object.spec.n": "`>` does not accept a value of this type",
    "1 + object.spec.s": "`+` does not accept a value of this type",
    "'a' + object.spec.n": "`+` does not accept a value of this type",
    "object + object": "`+` does not accept a value of this type",
    "object.spec.nul + 1": "`+` does not accept a value of this type",
    "{dyn(1): 'a'}[dyn(true)]": "missing key",
}
REFUSED = {
    "[1, 2] == [1.0, 2.0]": "character 8: `==` cannot compare list(int) with list(double); convert one of them",
    "{'a': 1} == {'a': 1.0}": "character 10: `==` cannot compare map(string, int) with map(string, double); convert one of them",
    "[1,2][1.0]": "character 6: a value of type list(int) has no elements by double",
    "[1, 'a']": "character 5: the elements of a list have types int and string; convert one of them",
    "{1: 'a', 'b': 2}": "character 10: the keys of a map have types int and string; convert one of them",
    "1 in [1.0]": "character 3: `in` cannot look for int in list(double)",
    "'a' in {1: 'b'}": "character 5: `in` cannot look for string in map(int, string)",
    "'a' in 'abc'": "character 5: `in` cannot look for string in string",
    "'a' + 1": "character 5: `+` does not accept (string, int)",
    "[1] < [2]": "character 5: `<` cannot compare list(int) with list(int)",
    "b'abc' == 'abc'": "character 8: `==` cannot compare bytes with string; convert one of them",
    "1 ? 2 : 3": "character 1: `?` does not accept a value of type int",
    "cel.bind(x, 5, x * x)": "character 1: unknown variable `cel`; known: gpu, object, request",
    "foo.bar": "character 1: unknown variable `foo`; known: gpu, object, request",
    "undefined(1)": "character 1: unknown function `undefined`",
    "object.spec.s.undefined()": "character 15: unknown function `undefined`; did you mean `find`?",
    "[object.spec.n, 'b']": "character 17: the elements of a list have types dyn and string; convert one of them",
    "[1, object.spec.n]": "character 17: the elements of a list have types int and dyn; convert one of them",
    "{'a': object.spec.n, 'b': 1}": "character 27: the values of a map have types dyn and int; convert one of them",
    "true ? 1 : 'a'": "character 6: the values after `?` and `:` have types int and string",
    "'abc'.?x": "character 8: a value of type string has no field `x`",
    "'a'.x": "character 5: a value of type string has no field `x`",
    "5.x": "character 3: a value of type int has no field `x`",
    "size(5)": "character 1: `size` does not accept (int)",
    "object.spec.s.startsWith(5)": "character 15: `startsWith` does not accept (dyn, int)",
    "1 in ['a']": "character 3: `in` cannot look for int in list(string)",
    "object.spec.n in 'abc'": "character 15: `in` cannot look for dyn in string",
    "null == 1": "character 6: `==` cannot compare null with int; convert one of them",
    "'a' == 1": "character 5: `==` cannot compare string with int; convert one of them",
    "-1u": "character 1: `-` does not accept (uint)",
    "1u + 1": "character 4: `+` does not accept (uint, int)",
    "1u == 1": "character 4: `==` cannot compare uint with int; convert one of them",
    "5.0 % 2.0": "character 5: `%` does not accept (double, double)",
    "-9223372036854775809": "character 2: the integer does not fit 64 bits",
    "9223372036854775808": "character 1: the integer does not fit 64 bits",
    "18446744073709551616u": "character 1: the integer does not fit 64 bits",
    "int(true)": "character 1: `int` does not accept (bool)",
    "string(null)": "character 1: `string` does not accept (null)",
    "string([1])": "character 1: `string` does not accept (list(int))",
    "-duration('1h')": "character 1: `-` does not accept (duration)",
    "[1].join(',')": "character 5: `join` does not accept (list(int), string)",
    "'abc'.reverse()": "character 7: `reverse` does not accept (string)",
    "'abc'.matches('(')": "character 15: the pattern is not supported: it cannot be read: missing ), unterminated subpattern at position 0",
    "[1, 1.5].sort()": "character 5: the elements of a list have types int and double; convert one of them",
    "[[1],[2]].sort()": "character 11: `sort` does not accept (list(list(int)))",
    "['a'].sum()": "character 7: `sum` does not accept (list(string))",
    "[[1,[2]],[3]].flatten()": "character 5: the elements of a list have types int and list(int); convert one of them",
    "sets.contains([1.0], [1])": "character 6: `sets.contains` does not accept (list(double), list(int))",
    "quantity('1').sign()": "character 15: unknown function `sign`",
    "quantity('-1').sign()": "character 16: unknown function `sign`",
    "quantity('1') < quantity('2')": "character 15: `<` cannot compare quantity with quantity",
    "quantity('1') == 1": "character 15: `==` cannot compare quantity with int; convert one of them",
    "quantity(1)": "character 1: `quantity` does not accept (int)",
    "isQuantity(1)": "character 1: `isQuantity` does not accept (int)",
    "[1].all(x, x)": "character 12: `all` does not accept a value of type int",
    "[1].all(x, 'a')": "character 12: `all` does not accept a value of type string",
    "5.all(x, x)": "character 3: `all` does not accept a value of type int",
    "x": "character 1: unknown variable `x`; known: gpu, object, request",
    "has(object)": "character 1: the argument of `has` is a field, such as `has(object.spec)`",
    "has(object.spec['n'])": "character 1: the argument of `has` is a field, such as `has(object.spec)`",
    "has('a'.b)": "character 1: a value of type string has no field `b`",
    "namespace": "character 1: `namespace` is a reserved word of CEL",
    "1 < 'a'": "character 3: `<` cannot compare int with string",
    "true && 5": "character 9: `&&` does not accept a value of type int",
    "true ? false ? 1 : 2 : 3": "character 14: expected `:`, but found '?'",
    "'a' 'b'": "character 5: expected an operator, but found 'b'",
    "f(1,)": "character 5: expected an argument, but found ')'",
    "size('a',)": "character 10: expected an argument, but found ')'",
    'b"\\u00e9"': "character 1: \\u00e9 is an invalid escape sequence in bytes",
    "'\\q'": "character 1: \\q is an invalid escape sequence",
    "'unterminated": 'character 1: unexpected character "\'"',
    "// comment": "character 11: expected a value, but found the end",
    "object..spec": "character 8: expected the name of a field, but found '.'",
    "object.": "character 8: expected the name of a field, but found the end",
    "(": "character 2: expected a value, but found the end",
    ")": "character 1: expected a value, but found ')'",
    "1 +": "character 4: expected a value, but found the end",
    "{'a'}": "character 5: expected `:`, but found '}'",
    "{1: 'a'}[1.0]": "character 9: a value of type map(int, string) has no elements by double",
    "{1: 'a'}[1u]": "character 9: a value of type map(int, string) has no elements by uint",
    "{1: 'a'}['1']": "character 9: a value of type map(int, string) has no elements by string",
}


def evaluated(expression: str, **variables: Any) -> Any:
    scope = Scope({"object": OBJECT, **variables})
    return compile_expression(expression, ENVIRONMENT, gives=DYN).run(scope)


@pytest.mark.parametrize(("expression", "value"), VALUES.items(), ids=VALUES)
def test_an_expression_has_the_value_that_the_api_server_gives_it(expression: str, value: Any) -> None:
    result = evaluated(expression)

    assert (type_of(result), result) == (type_of(value), value)


@pytest.mark.parametrize(("expression", "message"), ERRORS.items(), ids=ERRORS)
def test_an_expression_without_a_value_is_an_error(expression: str, message: str) -> None:
    with pytest.raises(EvaluationError) as caught:
        evaluated(expression)

    assert str(caught.value) == message


@pytest.mark.parametrize(("expression", "message"), REFUSED.items(), ids=REFUSED)
def test_an_invalid_expression_is_refused_when_it_is_compiled(expression: str, message: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        compile_expression(expression, ENVIRONMENT, gives=DYN)

    assert str(caught.value) == message


WRONG_TYPES = {
    "1": (BOOL, "character 1: the value is of type int; it must be bool"),
    "'a' + 'b'": (BOOL, "character 5: the value is of type string; it must be bool"),
    "true": (STRING, "character 1: the value is of type bool; it must be string"),
    "gpu.pod.gpus": (BOOL, "character 9: the value is of type double; it must be bool"),
}


@pytest.mark.parametrize(("expression", "expected"), WRONG_TYPES.items(), ids=WRONG_TYPES)
def test_an_expression_of_another_type_is_refused(expression: str, expected: tuple[Any, str]) -> None:
    gives, message = expected

    with pytest.raises(ExpressionError) as caught:
        compile_expression(expression, ENVIRONMENT, gives=gives)

    assert str(caught.value) == message


def test_the_type_of_a_dynamic_result_is_checked_when_it_is_evaluated() -> None:
    expression = compile_expression("object.spec.n", ENVIRONMENT, gives=BOOL)

    with pytest.raises(EvaluationError, match="`the result` does not accept a value of this type"):
        expression.run(Scope({"object": OBJECT}))


def test_a_value_beside_one_of_an_unknown_type_is_checked_when_it_is_evaluated() -> None:
    expression = compile_expression("true ? self : 'a'", Environment({"self": ANY}, {}), gives=STRING)

    with pytest.raises(EvaluationError, match="`the result` does not accept a value of this type"):
        expression.run(Scope({"self": {}}))


FIELDS = {
    "gpu.pod.gps > 1": "character 9: unknown field `gpu.pod.gps`; did you mean `gpu.pod.gpus`?",
    "gpu.pod == 1": "character 5: `gpu.pod` is a group of fields; read one of them: gpu.pod.gpus, gpu.pod.workloadClass",
    "gpu": "character 1: `gpu` is a group of fields; read one of them: gpu.pod.gpus, gpu.pod.workloadClass",
    "has(gpu.pol.gpus)": "character 1: unknown field `gpu.pol.gpus`; did you mean `gpu.pod.gpus`?",
    "gpu.pod.workloadClass.x": "character 23: a value of type string has no field `x`",
    "objct.spec": "character 1: unknown variable `objct`; did you mean `object`?",
}


@pytest.mark.parametrize(("expression", "message"), FIELDS.items(), ids=FIELDS)
def test_an_unknown_variable_or_field_is_refused_with_what_was_meant(expression: str, message: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        compile_expression(expression, ENVIRONMENT, gives=DYN)

    assert str(caught.value) == message


def not_known(_: Any) -> Any:
    raise NotKnownError(Skip("the claim is unknown"))


# What is decided without a value that is not known is decided all the same, as cel-go's partial evaluation does.
PARTLY_KNOWN = {
    "gpu.pod.gpus > 1.0": None,
    "gpu.pod.gpus > 1.0 || true": True,
    "true || gpu.pod.gpus > 1.0": True,
    "gpu.pod.gpus > 1.0 && false": False,
    "gpu.pod.gpus > 1.0 || false": None,
    "gpu.pod.gpus > 1.0 || object.spec.missing": None,
    "object.spec.missing || gpu.pod.gpus > 1.0": None,
    "[1, 2].exists(x, x == 2 || gpu.pod.gpus > 1.0)": True,
    "[1, 2].all(x, gpu.pod.gpus > 1.0)": None,
    "has(gpu.pod.gpus)": None,
    "true ? 1 == 1 : gpu.pod.gpus > 1.0": True,
}


@pytest.mark.parametrize(("expression", "value"), PARTLY_KNOWN.items(), ids=PARTLY_KNOWN)
def test_a_value_that_is_not_known_makes_the_result_unknown_where_it_matters(
    expression: str, *, value: bool | None
) -> None:
    compiled = compile_expression(expression, ENVIRONMENT, gives=BOOL)
    scope = Scope({"object": OBJECT}, {"gpu.pod.gpus": not_known})

    if value is None:
        with pytest.raises(NotKnownError, match="the claim is unknown"):
            compiled.run(scope)
    else:
        assert compiled.run(scope) is value


TEMPLATE = {
    "name": Unknown("${NAME}"),
    "labels": {"team": Unknown("${TEAM}"), "app": "a"},
    "list": [Unknown("${X}"), 1],
}
PLACEHOLDERS = {
    "object.name == 'a'": None,
    "has(object.name)": True,
    "object.labels['team'] == 'a'": None,
    "'team' in object.labels": True,
    "object.labels.app == 'a'": True,
    "object.labels == {'team': 'b', 'app': 'a'}": None,
    "object.list == [1, 1]": None,
    "object.list.exists(x, x == 1)": True,
    "object.list.all(x, x == 1)": None,
    "1 in object.list": None,
    "object.list.size() == 2": True,
    "object.?name.orValue('a') == 'a'": None,
}


@pytest.mark.parametrize(("expression", "value"), PLACEHOLDERS.items(), ids=PLACEHOLDERS)
def test_a_placeholder_makes_the_result_unknown_where_it_matters(expression: str, *, value: bool | None) -> None:
    compiled = compile_expression(expression, ENVIRONMENT, gives=BOOL)

    if value is None:
        with pytest.raises(UnknownValueError):
            compiled.run(Scope({"object": TEMPLATE}))
    else:
        assert compiled.run(Scope({"object": TEMPLATE})) is value


TOO_LARGE = {
    "long": ("'" + "a" * LONGEST + "'", "has 10,242 characters (maximum: 10,240)"),
    "brackets": ("(" * 1_000 + "1" + ")" * 1_000, "more than 40 nested expressions"),
    "lists": ("[" * 1_000, "more than 40 nested expressions"),
    "calls": ("size(" * 1_000, "more than 40 nested expressions"),
    "conditionals": ("true ? 1 : " * 500 + "1", "more than 40 nested expressions"),
    "operators": ("1" + "+1" * 2_000, "more than 40 operators in a row"),
    "negations": ("!" * 1_000 + "true", "more than 40 operators in a row"),
    "members": ("object" + ".a" * 1_000, "more than 40 fields and calls in a row"),
    "parts": ("[" + "1," * 3_000 + "]", "the expression has more than 2,000 parts"),
}


@pytest.mark.parametrize(("expression", "message"), TOO_LARGE.values(), ids=TOO_LARGE)
def test_an_expression_that_is_too_large_is_refused(expression: str, message: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        compile_expression(expression, ENVIRONMENT, gives=DYN)

    assert message in str(caught.value)


MANY = list(range(1_000))
EXPENSIVE = {
    "nested loops": "object.all(x, object.all(y, object.all(z, x + y + z >= 0)))",
    "equal lists": "object.map(x, object).all(x, object.map(y, object).all(z, z == x))",
    "distinct": "object.distinct().size() > 0",
    "sets": "sets.contains(object, object)",
    "growing text": "object.map(x, 'abcdefgh').join('').replace('a', object.map(x, 'abcdefgh').join('')) == ''",
    "growing list": "object.map(x, object).flatten().size() > 0",
    "range": "lists.range(1000000000).size() > 0",
    "hidden by an error": "object.exists(x, object.all(y, object.all(z, x + y + z >= 0)) && object[5000] == 1)",
}


@pytest.mark.parametrize("expression", EXPENSIVE.values(), ids=EXPENSIVE)
def test_the_work_of_an_expression_is_bounded(expression: str) -> None:
    compiled = compile_expression(expression, ENVIRONMENT, gives=BOOL)

    with pytest.raises(EvaluationError, match=r"it takes more than 100,000 steps|a value is too large"):
        compiled.run(Scope({"object": MANY}))


@pytest.mark.parametrize(
    ("expression", "gives"),
    [
        ("object.map(x, 'abcdefgh').join('').replace('a', object.map(x, 'abcdefgh').join(''), 0).size() == 8000", True),
        (
            "object.map(x, 'abcdefgh').join('').replace('a', object.map(x, 'abcdefgh').join(''), 1).size() == 15999",
            True,
        ),
    ],
)
def test_replacements_that_are_not_made_cost_nothing(expression: str, gives: object) -> None:
    assert compile_expression(expression, ENVIRONMENT, gives=BOOL).run(Scope({"object": MANY})) is gives


@pytest.mark.parametrize(
    "expression",
    [
        "optional.of(5).optFlatMap(x, [][0]).hasValue()",
        "[][0].optMap(x, x).hasValue()",
        "[][0].optFlatMap(x, x).hasValue()",
    ],
)
def test_an_element_of_an_empty_list_may_be_optional(expression: str) -> None:
    """The element has any type when the expression is compiled."""
    compiled = compile_expression(expression, ENVIRONMENT, gives=BOOL)

    with pytest.raises(EvaluationError):
        compiled.run(Scope({"object": MANY}))
