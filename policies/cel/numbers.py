"""Numbers and durations of CEL: their bounds, how they are written, and the conversions between types.

Sources: cel-spec v0.24 `doc/langdef.md` (standard definitions); cel-go v0.26 `common/types/{int,uint,double,duration}.go`; Go
1.26 `strconv` and `time.ParseDuration`.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Final

from gpugate.policies.cel.syntax import Uint
from gpugate.policies.cel.values import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    INT,
    STRING,
    UINT,
    Duration,
    EvaluationError,
    Overload,
    as_double,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.cel.values import Scope

Value = Any  # Any: a value of CEL

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
    return duration_of(sign * total)


def duration_of(nanoseconds: int) -> Duration:
    """Return a duration.

    Raises:
        EvaluationError: it does not fit 64 bits.
    """
    if not LEAST <= nanoseconds <= MOST:
        raise EvaluationError("duration overflow")
    return Duration(nanoseconds)


def add_durations(left: Duration, right: Duration) -> Duration:
    """Add two durations."""
    return duration_of(left.nanoseconds + right.nanoseconds)


def subtract_durations(left: Duration, right: Duration) -> Duration:
    """Subtract a duration from another one."""
    return duration_of(left.nanoseconds - right.nanoseconds)


def _part_of(unit: int) -> Callable[[Scope, Duration], int]:
    def part(_: Scope, duration: Duration) -> int:
        sign = -1 if duration.nanoseconds < 0 else 1
        return sign * (abs(duration.nanoseconds) // unit)

    return part


def _milliseconds(_: Scope, duration: Duration) -> int:
    sign = -1 if duration.nanoseconds < 0 else 1
    return sign * (abs(duration.nanoseconds) // 10**6)


# The functions that convert: name -> signatures.
CONVERSIONS: Final[dict[str, tuple[Overload, ...]]] = {
    "int": tuple(Overload((kind,), INT, _int) for kind in (INT, UINT, DOUBLE, STRING)),
    "uint": tuple(Overload((kind,), UINT, _uint) for kind in (UINT, INT, DOUBLE, STRING)),
    "double": tuple(Overload((kind,), DOUBLE, _double) for kind in (DOUBLE, INT, UINT, STRING)),
    "bool": tuple(Overload((kind,), BOOL, _bool) for kind in (BOOL, STRING)),
    "string": tuple(Overload((kind,), STRING, _string) for kind in (STRING, BOOL, INT, UINT, DOUBLE, BYTES, DURATION)),
    "bytes": (Overload((BYTES,), BYTES, _same), Overload((STRING,), BYTES, lambda _, text: text.encode())),
    "duration": (Overload((DURATION,), DURATION, _same), Overload((STRING,), DURATION, _duration)),
}
# The parts of a duration: name -> signatures.
DURATION_PARTS: Final[dict[str, tuple[Overload, ...]]] = {
    "getHours": (Overload((DURATION,), INT, _part_of(_UNITS["h"])),),
    "getMinutes": (Overload((DURATION,), INT, _part_of(_UNITS["m"])),),
    "getSeconds": (Overload((DURATION,), INT, _part_of(_UNITS["s"])),),
    "getMilliseconds": (Overload((DURATION,), INT, _milliseconds),),
}
