"""The functions of CEL expressions, with the types that they take and give.

They are those of the API server for the validations of a ValidatingAdmissionPolicy, except for URLs, IP addresses, CIDRs,
semantic versions, named formats, timestamps, `format`, the authorizer, and macros with two variables or `sortBy`.

Sources: cel-spec v0.24 `doc/langdef.md` (standard definitions); cel-go v0.26 `ext/{strings,lists,sets}.go`,
`cel/library.go`; k8s.io/apiserver v0.36.3 `pkg/cel/library/{regex,lists,quantity}.go`.
"""

from __future__ import annotations

import math
import re
import string as ascii_letters
from functools import cmp_to_key
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

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
    Quantity,
    TypeName,
    as_double,
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
    from collections.abc import Callable

    from gpugate.policies.cel.patterns import Pattern
    from gpugate.policies.cel.values import Scope, Type

Value = Any  # Any: a value of CEL


class Overload(NamedTuple):
    """One signature: the types taken, first that of the value before the dot, the type given, and the function.

    The function gets the scope first, in which it counts what it does beyond reading each argument once.
    """

    takes: tuple[Type, ...]
    gives: Type
    run: Callable[..., Value]


LEAST, MOST, MOST_UINT = -(2**63), 2**63 - 1, 2**64 - 1


def integer(value: int) -> int:
    """Return an int.

    Raises:
        EvaluationError: it does not fit 64 bits.
    """
    if not LEAST <= value <= MOST:
        raise EvaluationError("integer overflow")
    return value


def unsigned(value: int) -> Uint:
    """Return a uint.

    Raises:
        EvaluationError: it does not fit 64 bits.
    """
    if not 0 <= value <= MOST_UINT:
        raise EvaluationError("unsigned integer overflow")
    return Uint(value)


_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,40}")
_DOUBLE: Final = re.compile(
    r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf(?:inity)?|nan)", re.IGNORECASE
)
_TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "false", "FALSE", "False"})
# A double at or above it cannot be converted, because the next smaller one is the greatest that fits.
_INT_DOUBLE, _UINT_DOUBLE = 2.0**63, 2.0**64
_LONGEST_NUMBER: Final = 400


def _int(_: Scope, value: Value) -> int:
    if isinstance(value, str):
        if not _INTEGER.fullmatch(value):
            raise EvaluationError("`int` does not accept this string")
        return integer(int(value))
    if isinstance(value, float):
        if not -_INT_DOUBLE < value < _INT_DOUBLE:
            raise EvaluationError("integer overflow")
        return int(value)
    return integer(int(value))


def _uint(_: Scope, value: Value) -> Uint:
    if isinstance(value, str):
        if not _INTEGER.fullmatch(value) or not value.isdigit():
            raise EvaluationError("`uint` does not accept this string")
        return unsigned(int(value))
    if isinstance(value, float):
        if not 0 <= value < _UINT_DOUBLE:
            raise EvaluationError("unsigned integer overflow")
        return Uint(int(value))
    return unsigned(int(value))


def _double(_: Scope, value: Value) -> float:
    if isinstance(value, str) and not (len(value) <= _LONGEST_NUMBER and _DOUBLE.fullmatch(value)):
        raise EvaluationError("`double` does not accept this string")
    number = as_double(value)
    if isinstance(value, str) and math.isinf(number) and "i" not in value.lower():
        raise EvaluationError("`double` does not accept this string")
    return number


def _bool(_: Scope, value: Value) -> bool:
    if isinstance(value, str):
        if value not in _TRUE | _FALSE:
            raise EvaluationError("`bool` does not accept this string")
        return value in _TRUE
    return bool(value)


_LEAST_EXPONENT, _MOST_EXPONENT = -4, 6


def double_text(value: float) -> str:
    """Write a double as Go does with `strconv.FormatFloat(value, 'g', -1, 64)`."""
    if not math.isfinite(value):
        return {math.inf: "+Inf", -math.inf: "-Inf"}.get(value, "NaN")
    sign = "-" if math.copysign(1, value) < 0 else ""
    mantissa, _, exponent = f"{abs(value)!r}".partition("e")
    whole, _, decimals = mantissa.partition(".")
    digits = (whole + decimals).lstrip("0")
    power = len(whole) - 1 + int(exponent or 0)
    if whole == "0":
        power = -(len(decimals) - len(decimals.lstrip("0")) + 1) + int(exponent or 0)
    digits = digits.rstrip("0") or "0"
    if value == 0:
        return f"{sign}0"
    if _LEAST_EXPONENT <= power < _MOST_EXPONENT:
        if power < 0:
            return f"{sign}0.{'0' * (-power - 1)}{digits}"
        whole = digits[: power + 1].ljust(power + 1, "0")
        return f"{sign}{whole}{'.' + digits[power + 1 :] if digits[power + 1 :] else ''}"
    decimals = f".{digits[1:]}" if digits[1:] else ""
    return f"{sign}{digits[0]}{decimals}e{'-' if power < 0 else '+'}{abs(power):02d}"


def _string(_: Scope, value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return double_text(value)
    if isinstance(value, Duration):
        return f"{double_text(value.nanoseconds / 1e9)}s"
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise EvaluationError("the bytes are invalid UTF-8") from None
    return str(value)


def _same(_: Scope, value: Value) -> Value:
    return value


_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_PART: Final = re.compile(r"([0-9]{0,19})(?:\.([0-9]{0,30}))?(ns|us|µs|μs|ms|s|m|h)")


def _duration(_: Scope, value: str) -> Duration:
    """Read a duration as Go's `time.ParseDuration` does, such as `1h30m`."""
    sign = -1 if value.startswith("-") else 1
    text = value[1:] if value[:1] in {"+", "-"} else value
    total, at = 0, 0
    while match := _PART.match(text, at):
        whole, decimals, unit = match[1], match[2] or "", match[3]
        if not whole + decimals:
            break
        total += int(whole or 0) * _UNITS[unit] + int(decimals or 0) * _UNITS[unit] // 10 ** len(decimals)
        at = match.end()
    if text != "0" and (not text or at != len(text)):
        raise EvaluationError("`duration` does not accept this string")
    return _whole(sign * total)


def _whole(nanoseconds: int) -> Duration:
    if not LEAST <= nanoseconds <= MOST:
        raise EvaluationError("duration overflow")
    return Duration(nanoseconds)


def add_durations(left: Duration, right: Duration) -> Duration:
    """Add two durations."""
    return _whole(left.nanoseconds + right.nanoseconds)


def subtract_durations(left: Duration, right: Duration) -> Duration:
    """Subtract a duration from another one."""
    return _whole(left.nanoseconds - right.nanoseconds)


def _part_of(unit: int) -> Callable[[Scope, Duration], int]:
    def part(_: Scope, duration: Duration) -> int:
        sign = -1 if duration.nanoseconds < 0 else 1
        return sign * (abs(duration.nanoseconds) // unit)

    return part


def _milliseconds(_: Scope, duration: Duration) -> int:
    sign = -1 if duration.nanoseconds < 0 else 1
    return sign * (abs(duration.nanoseconds) // 10**6)


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
        return _whole(sum(value.nanoseconds for value in values))
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
    "size": tuple(Overload((kind,), INT, _size) for kind in (STRING, BYTES, LIST, _MAP)),
    "int": tuple(Overload((kind,), INT, _int) for kind in (INT, UINT, DOUBLE, STRING)),
    "uint": tuple(Overload((kind,), UINT, _uint) for kind in (UINT, INT, DOUBLE, STRING)),
    "double": tuple(Overload((kind,), DOUBLE, _double) for kind in (DOUBLE, INT, UINT, STRING)),
    "bool": tuple(Overload((kind,), BOOL, _bool) for kind in (BOOL, STRING)),
    "string": tuple(Overload((kind,), STRING, _string) for kind in (STRING, BOOL, INT, UINT, DOUBLE, BYTES, DURATION)),
    "bytes": (Overload((BYTES,), BYTES, _same), Overload((STRING,), BYTES, lambda _, text: text.encode())),
    "duration": (Overload((DURATION,), DURATION, _same), Overload((STRING,), DURATION, _duration)),
    "dyn": (Overload((_A,), DYN, _same),),
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
    "getHours": (Overload((DURATION,), INT, _part_of(_UNITS["h"])),),
    "getMinutes": (Overload((DURATION,), INT, _part_of(_UNITS["m"])),),
    "getSeconds": (Overload((DURATION,), INT, _part_of(_UNITS["s"])),),
    "getMilliseconds": (Overload((DURATION,), INT, _milliseconds),),
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
