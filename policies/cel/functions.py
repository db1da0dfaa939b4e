"""The functions of CEL expressions, with the types that they take and give.

They are those of the API server for the validations of a ValidatingAdmissionPolicy, except for URLs, IP addresses, CIDRs,
semantic versions, named formats, timestamps, `format`, the authorizer, and macros with two variables or `sortBy`.

Sources: cel-spec v0.24 `doc/langdef.md` (standard definitions); cel-go v0.26 `ext/{strings,lists,sets}.go`,
`cel/library.go`; k8s.io/apiserver v0.36.3 `pkg/cel/library/{regex,lists,quantity}.go`.
"""

from __future__ import annotations

import string as ascii_letters
from functools import cmp_to_key
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from gpugate.policies.cel.numbers import CONVERSIONS, DURATION_PARTS, LEAST, MOST, duration_of, integer, unsigned
from gpugate.policies.cel.patterns import LONGEST
from gpugate.policies.cel.syntax import Uint
from gpugate.policies.cel.values import (
    ABSENT,
    ANY,
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    LIST,
    QUANTITY,
    STRING,
    STRINGS,
    TYPE,
    UINT,
    BoundError,
    Duration,
    EvaluationError,
    Optional,
    Overload,
    Quantity,
    TypeName,
    compare,
    is_equal,
    known,
    list_of,
    map_of,
    no_overload,
    optional_of,
    type_of,
)
from gpugate.policies.sdk import quantity

if TYPE_CHECKING:
    import re
    from collections.abc import Callable

    from gpugate.policies.cel.patterns import Pattern
    from gpugate.policies.cel.values import Scope, Type

Value = Any  # Any: a value of CEL


def _size(_: Scope, value: Value) -> int:
    return len(value)


_LOWER: Final = str.maketrans(ascii_letters.ascii_uppercase, ascii_letters.ascii_lowercase)
_UPPER: Final = str.maketrans(ascii_letters.ascii_lowercase, ascii_letters.ascii_uppercase)
# What Go's `unicode.IsSpace` holds.
_SPACES: Final = "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"


def _out_of_range() -> EvaluationError:
    return EvaluationError("index out of range")


def _char_at(_: Scope, text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise _out_of_range()
    return text[index : index + 1]


def _index_of(scope: Scope, text: str, part: str, start: int = 0) -> int:
    if not part:
        return start
    if start < 0:
        raise _out_of_range()
    scope.charge_new(len(text))
    return text.find(part, start)


def _last_index_of(scope: Scope, text: str, part: str, start: int | None = None) -> int:
    if not part:
        return len(text) if start is None else start
    if start is None:
        start = len(text) - 1
        if start < 0:
            return -1
    if start < 0:
        raise _out_of_range()
    scope.charge_new(len(text))
    return -1 if start >= len(text) else text.rfind(part, 0, start + len(part))


def _substring(_: Scope, text: str, start: int, end: int | None = None) -> str:
    end = len(text) if end is None else end
    if not 0 <= start <= end <= len(text):
        raise _out_of_range()
    return text[start:end]


def _replace(scope: Scope, text: str, old: str, new: str, most: int = -1) -> str:
    count = text.count(old) if most < 0 else min(most, text.count(old))
    scope.charge_new(len(text) + count * len(new))
    return text.replace(old, new, most)


def _split(scope: Scope, text: str, separator: str, most: int = -1) -> list[str]:
    if most == 0:
        return []
    parts = text.split(separator, most - 1 if most > 0 else -1) if separator else _characters(text, most)
    scope.charge(len(parts))
    return parts


def _characters(text: str, most: int) -> list[str]:
    return [*text[: most - 1], text[most - 1 :]] if 0 < most < len(text) else list(text)


def _join(scope: Scope, parts: list[Value], separator: str = "") -> str:
    if not all(type(known(part)) is str for part in parts):
        raise no_overload("join")
    scope.charge_new(sum(map(len, parts)) + len(separator) * len(parts))
    return separator.join(parts)


def _reversed(_: Scope, value: Value) -> Value:
    return value[::-1]


def _quote(scope: Scope, text: str) -> str:
    scope.charge_new(2 * len(text))
    return '"' + "".join(_QUOTED.get(sign, sign) for sign in text) + '"'


_QUOTED: Final = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}


_SQUARE: Final = 128  # characters of a text by characters of it that a pattern tries in about the time of a step


def _charged(scope: Scope, text: str, pattern: Pattern) -> re.Pattern[str]:
    """Return what matches a text, which is charged for."""
    size = len(text)
    if size > LONGEST:
        raise BoundError(f"the text has more than {LONGEST:,} characters, the limit for patterns")
    scope.charge(1 + size if pattern.is_linear else 1 + size + size * size // _SQUARE)
    return pattern.regex


def _matches(scope: Scope, text: str, pattern: Pattern) -> bool:
    return _charged(scope, text, pattern).search(text) is not None


def _find(scope: Scope, text: str, pattern: Pattern) -> str:
    match = _charged(scope, text, pattern).search(text)
    return match[0] if match else ""


def _find_all(scope: Scope, text: str, pattern: Pattern, most: int = -1) -> list[str]:
    """Find all matches as Go does: an empty one right behind another match does not count."""
    compiled = _charged(scope, text, pattern)
    matches: list[str] = []
    end = -1
    for match in compiled.finditer(text) if most else ():
        if match.start() == match.end() == end:
            continue
        end = match.end()
        matches.append(match[0])
        scope.charge(1)
        if len(matches) == most:
            break
    return matches


def _is_sorted(scope: Scope, values: list[Value]) -> bool:
    scope.charge(len(values))
    pairs = pairwise(values)
    return all(compare(known(left), known(right), scope, "isSorted") <= 0 for left, right in pairs)


def _sum(scope: Scope, values: list[Value]) -> Value:
    scope.charge(len(values))
    if not values:
        return 0
    if len({type_of(known(value)) for value in values}) > 1:
        raise no_overload("sum")
    first = values[0]
    if isinstance(first, Duration):
        return duration_of(sum(value.nanoseconds for value in values))
    if isinstance(first, Uint):
        return unsigned(sum(values))
    if isinstance(first, bool) or not isinstance(first, int | float):
        raise no_overload("sum")
    if isinstance(first, float):
        return sum(values, 0.0)
    total = 0
    for value in values:
        total = integer(total + value)
    return total


def _extreme(name: str, wanted: int) -> Callable[[Scope, list[Value]], Value]:
    def extreme(scope: Scope, values: list[Value]) -> Value:
        if not values:
            raise EvaluationError(f"`{name}` does not accept an empty list")
        best = known(values[0])
        for value in values[1:]:
            if compare(known(value), best, scope, name) == wanted:
                best = value
        return best

    return extreme


def _position(scope: Scope, values: list[Value], value: Value) -> int:
    return next((at for at, other in enumerate(values) if is_equal(known(other), value, scope)), -1)


def _last_position(scope: Scope, values: list[Value], value: Value) -> int:
    positions = (at for at in reversed(range(len(values))) if is_equal(known(values[at]), value, scope))
    return next(positions, -1)


def _slice(_: Scope, values: list[Value], start: int, end: int) -> list[Value]:
    if not 0 <= start <= end <= len(values):
        raise _out_of_range()
    return values[start:end]


def _flatten(scope: Scope, values: list[Value], depth: int = 1) -> list[Value]:
    if depth < 0:
        raise EvaluationError("the depth of `flatten` is negative")
    flat: list[Value] = []
    for value in values:
        flat += _flatten(scope, value, depth - 1) if depth and type(known(value)) is list else [value]
    scope.charge(len(flat))
    return flat


def _sorted(scope: Scope, values: list[Value]) -> list[Value]:
    if values and len({type_of(known(value)) for value in values}) > 1:
        raise no_overload("sort")
    scope.charge(len(values) * max(1, len(values).bit_length()))
    return sorted(values, key=cmp_to_key(lambda left, right: compare(left, right, scope, "sort")))


def _distinct(scope: Scope, values: list[Value]) -> list[Value]:
    if all(type(known(value)) is str for value in values):
        scope.charge(len(values))
        return list(dict.fromkeys(values))
    distinct: list[Value] = []
    for value in values:
        if not any(is_equal(known(value), other, scope) for other in distinct):
            distinct.append(value)
    return distinct


def _range(scope: Scope, end: int) -> list[int]:
    scope.charge(max(0, end))
    return list(range(end))


def _contains(scope: Scope, values: list[Value], value: Value) -> bool:
    return any(is_equal(known(other), known(value), scope) for other in values)


def _contains_all(scope: Scope, values: list[Value], part: list[Value]) -> bool:
    return all(_contains(scope, values, value) for value in part)


def _intersects(scope: Scope, values: list[Value], others: list[Value]) -> bool:
    return any(_contains(scope, others, value) for value in values)


def _equivalent(scope: Scope, values: list[Value], others: list[Value]) -> bool:
    return _contains_all(scope, values, others) and _contains_all(scope, others, values)


def _quantity(_: Scope, value: str) -> Quantity:
    try:
        return Quantity(quantity.parse(value))
    except quantity.QuantityError:
        raise EvaluationError("`quantity` does not accept this string") from None


def _is_quantity(_: Scope, value: str) -> bool:
    try:
        quantity.parse(value)
    except quantity.QuantityError:
        return False
    return True


def _as_integer(_: Scope, value: Quantity) -> int:
    if not _is_integer(_, value):
        raise EvaluationError("the quantity is not an integer")
    return int(value.amount)


def _is_integer(_: Scope, value: Quantity) -> bool:
    return value.amount.denominator == 1 and LEAST <= value.amount <= MOST


def _compared(_: Scope, left: Quantity, right: Quantity) -> int:
    return (left.amount > right.amount) - (left.amount < right.amount)


def _amount(value: Quantity | int) -> Value:
    return value.amount if isinstance(value, Quantity) else value


def _of_nonzero(_: Scope, value: Value) -> Optional:
    empty = value is None or (not isinstance(value, Duration | Quantity | Optional | TypeName) and not value)
    return ABSENT if empty or value == Duration(0) or value == ABSENT else Optional(present=True, value=value)


def _value(_: Scope, optional: Optional) -> Value:
    if not optional.present:
        raise EvaluationError("the optional value is absent")
    return optional.value


_A, _OPTIONAL = ANY, optional_of(ANY)
_MAP: Final = map_of(DYN, DYN)
_COMPARABLE: Final = (INT, UINT, DOUBLE, BOOL, DURATION, STRING, BYTES)
_SUMMABLE: Final = (INT, UINT, DOUBLE, DURATION)


def _lists(types: tuple[Type, ...], run: Callable[..., Value], gives: Type | None = None) -> tuple[Overload, ...]:
    return tuple(Overload((list_of(element),), gives or element, run) for element in types)


# `int(5)`: name -> signatures.
GLOBAL: Final[dict[str, tuple[Overload, ...]]] = {
    **CONVERSIONS,
    "size": tuple(Overload((kind,), INT, _size) for kind in (STRING, BYTES, LIST, _MAP)),
    "dyn": (Overload((_A,), DYN, lambda _, value: value),),
    "type": (Overload((_A,), TYPE, lambda _, value: TypeName(type_of(value))),),
    "matches": (Overload((STRING, STRING), BOOL, _matches),),
    "quantity": (Overload((STRING,), QUANTITY, _quantity),),
    "isQuantity": (Overload((STRING,), BOOL, _is_quantity),),
    "sign": (Overload((QUANTITY,), INT, lambda _, value: (value.amount > 0) - (value.amount < 0)),),
    "sets.contains": (Overload((LIST, LIST), BOOL, _contains_all),),
    "sets.intersects": (Overload((LIST, LIST), BOOL, _intersects),),
    "sets.equivalent": (Overload((LIST, LIST), BOOL, _equivalent),),
    "lists.range": (Overload((INT,), list_of(INT), _range),),
    "strings.quote": (Overload((STRING,), STRING, _quote),),
    "optional.of": (Overload((_A,), _OPTIONAL, lambda _, value: Optional(present=True, value=value)),),
    "optional.ofNonZeroValue": (Overload((_A,), _OPTIONAL, _of_nonzero),),
    "optional.none": (Overload((), _OPTIONAL, lambda _: ABSENT),),
}
# `text.size()`: name -> signatures, whose first type is that of the value before the dot.
MEMBER: Final[dict[str, tuple[Overload, ...]]] = {
    **DURATION_PARTS,
    "size": GLOBAL["size"],
    "contains": (Overload((STRING, STRING), BOOL, lambda _, text, part: part in text),),
    "startsWith": (Overload((STRING, STRING), BOOL, lambda _, text, part: text.startswith(part)),),
    "endsWith": (Overload((STRING, STRING), BOOL, lambda _, text, part: text.endswith(part)),),
    "matches": GLOBAL["matches"],
    "find": (Overload((STRING, STRING), STRING, _find),),
    "findAll": (Overload((STRING, STRING), STRINGS, _find_all), Overload((STRING, STRING, INT), STRINGS, _find_all)),
    "charAt": (Overload((STRING, INT), STRING, _char_at),),
    "indexOf": (
        Overload((STRING, STRING), INT, _index_of),
        Overload((STRING, STRING, INT), INT, _index_of),
        Overload((LIST, _A), INT, _position),
    ),
    "lastIndexOf": (
        Overload((STRING, STRING), INT, _last_index_of),
        Overload((STRING, STRING, INT), INT, _last_index_of),
        Overload((LIST, _A), INT, _last_position),
    ),
    "lowerAscii": (Overload((STRING,), STRING, lambda _, text: text.translate(_LOWER)),),
    "upperAscii": (Overload((STRING,), STRING, lambda _, text: text.translate(_UPPER)),),
    "trim": (Overload((STRING,), STRING, lambda _, text: text.strip(_SPACES)),),
    "replace": (
        Overload((STRING, STRING, STRING), STRING, _replace),
        Overload((STRING, STRING, STRING, INT), STRING, _replace),
    ),
    "split": (Overload((STRING, STRING), STRINGS, _split), Overload((STRING, STRING, INT), STRINGS, _split)),
    "substring": (Overload((STRING, INT), STRING, _substring), Overload((STRING, INT, INT), STRING, _substring)),
    "join": (Overload((STRINGS,), STRING, _join), Overload((STRINGS, STRING), STRING, _join)),
    "reverse": (Overload((LIST,), LIST, _reversed),),
    "isSorted": _lists(_COMPARABLE, _is_sorted, BOOL),
    "sum": _lists(_SUMMABLE, _sum),
    "min": _lists(_COMPARABLE, _extreme("min", -1)),
    "max": _lists(_COMPARABLE, _extreme("max", 1)),
    "slice": (Overload((LIST, INT, INT), LIST, _slice),),
    "flatten": (Overload((LIST,), list_of(DYN), _flatten), Overload((LIST, INT), list_of(DYN), _flatten)),
    "sort": tuple(Overload((list_of(kind),), list_of(kind), _sorted) for kind in _COMPARABLE),
    "distinct": (Overload((LIST,), LIST, _distinct),),
    "isGreaterThan": (Overload((QUANTITY, QUANTITY), BOOL, lambda _, left, right: left.amount > right.amount),),
    "isLessThan": (Overload((QUANTITY, QUANTITY), BOOL, lambda _, left, right: left.amount < right.amount),),
    "compareTo": (Overload((QUANTITY, QUANTITY), INT, _compared),),
    "asApproximateFloat": (Overload((QUANTITY,), DOUBLE, lambda _, value: float(value.amount)),),
    "asInteger": (Overload((QUANTITY,), INT, _as_integer),),
    "isInteger": (Overload((QUANTITY,), BOOL, _is_integer),),
    "add": tuple(
        Overload((QUANTITY, kind), QUANTITY, lambda _, left, right: Quantity(left.amount + _amount(right)))
        for kind in (QUANTITY, INT)
    ),
    "sub": tuple(
        Overload((QUANTITY, kind), QUANTITY, lambda _, left, right: Quantity(left.amount - _amount(right)))
        for kind in (QUANTITY, INT)
    ),
    "hasValue": (Overload((_OPTIONAL,), BOOL, lambda _, optional: optional.present),),
    "value": (Overload((_OPTIONAL,), _A, _value),),
    "or": (
        Overload((_OPTIONAL, _OPTIONAL), _OPTIONAL, lambda _, optional, other: optional if optional.present else other),
    ),
    "orValue": (
        Overload((_OPTIONAL, _A), _A, lambda _, optional, other: optional.value if optional.present else other),
    ),
}
# Functions whose second argument is a pattern.
PATTERNS: Final = frozenset({"matches", "find", "findAll"})
