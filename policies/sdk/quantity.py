"""Kubernetes quantities: every spelling that the API server accepts, as exact numbers.

Source: `k8s.io/apimachinery/pkg/api/resource/quantity.go`, v0.36.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from gpugate.policies.sdk.field import refuse_unknown

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Json

Amount: TypeAlias = int | Fraction

_NUMBER = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(.*)", re.DOTALL)
_EXPONENT = re.compile(r"[eE]([+-]?)0*([0-9]{1,19})")
_SCALES: dict[str, Amount] = {
    "": 1,
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "P": 10**15,
    "E": 10**18,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
    "Pi": 2**50,
    "Ei": 2**60,
}
_MAX = 2**63 - 1
# Limits far above the digits of the largest valid value, and far below those that take noticeable time. With as many
# digits as are read, a greater exponent gives the same amount.
_MAX_DIGITS = 64
_MAX_EXPONENT = 96
# A limit far above a number with sign, point, suffix and spaces, so that a text of megabytes is not read several times.
_MAX_LENGTH = 1024
# The white space that Go's strings.TrimSpace removes; JSON escapes other white space.
_SPACES = " \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_NANO = Fraction(1, 10**9)
# Longer texts are not cached, so that hostile input cannot fill the cache.
_USUAL_LENGTH = 24


class QuantityError(ValueError):
    """The text is not a quantity; the message says why."""


def parse(value: Json) -> Amount:
    """Return a quantity: `1`, `"1"`, `"1000m"`, `"1e0"`, `"1k"`, `"2Gi"`, `"+1"`, `".5"`.

    The result is exact, and rounded away from zero to a billionth as by the API server. As there, surrounding spaces
    are ignored, and a text without digits such as `"."` or `"m"` is 0. The result is capped at 2**63 - 1, which the API
    server does only for `Ki` to `Ei`.

    Raises:
        UnknownValueError: the value is a placeholder.
        QuantityError: the value is of another type, is not a number with one of the known suffixes, or has more than
            64 digits or 1,024 characters.
    """
    if isinstance(value, str):
        if len(value) < 19 and value.isascii() and value.isdigit():
            return int(value)
        if len(value) > _MAX_LENGTH:
            _parse_text(value[:_MAX_LENGTH])  # the beginning shows the fault of nearly all such texts
            raise QuantityError(f"{_printable(value)} has {len(value)} characters: write a shorter number")
        return _parse_usual(value) if len(value) <= _USUAL_LENGTH else _parse_text(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        refuse_unknown(value)
        raise QuantityError(f"{type_name(value)} is not a quantity: write a number such as 1 or 16Gi")
    return max(-_MAX, min(_MAX, value)) if isinstance(value, int) else _parse_text(repr(value))


def parse_or_none(value: Json) -> Amount | None:
    """Return a quantity as `parse` does; None if it is missing or invalid.

    Raises:
        UnknownValueError: the value is a placeholder.
    """
    try:
        return parse(value)
    except QuantityError:
        return None


@lru_cache(maxsize=1024)
def _parse_usual(text: str) -> Amount:
    """Read a short text. It is cached, because a cluster writes `500m` and `2Gi` in every other Pod."""
    return _parse_text(text)


def _parse_text(text: str) -> Amount:
    text = text.strip(_SPACES)
    sign, whole, decimals, suffix = _NUMBER.fullmatch(text).groups("")  # type: ignore[union-attr] # matches any text
    if len(whole) + len(decimals) > _MAX_DIGITS:
        raise QuantityError(f"{_printable(text)} has more than {_MAX_DIGITS} digits: write a shorter number")
    scale = _scale(suffix)
    if scale is None and whole + decimals:
        raise QuantityError(
            f"{_printable(text)} is not a quantity: {_printable(suffix)} after the number is not a known suffix; "
            f"write {sign}{whole or '0'}{'.' + decimals if decimals else ''} alone, or one of "
            "m, k, M, G, T, Ki, Mi, Gi, Ti",
        )
    # Without digits the API server accepts only suffixes that its fast path handles.
    if not text or scale is None or (not whole + decimals and (suffix in {"Pi", "Ei"} or scale < _NANO)):
        raise QuantityError(f"{_printable(text)} is not a quantity: write a number such as 1 or 16Gi")
    amount = Fraction(int(whole or "0") * 10 ** len(decimals) + int(decimals or "0"), 10 ** len(decimals)) * scale
    nano = -((-amount * 10**9) // 1)
    amount = min(Fraction(nano, 10**9), Fraction(_MAX))
    signed = -amount if sign == "-" else amount
    return int(signed) if signed.denominator == 1 else signed


def _scale(suffix: str) -> Amount | None:
    """Return the factor of a suffix, or None. The API server keeps only the lowest 32 bits of an exponent."""
    exponent = _EXPONENT.fullmatch(suffix)
    if exponent is None:
        return _SCALES.get(suffix)
    stated = int(exponent[1] + exponent[2])
    if not -(2**63) <= stated < 2**63:
        return None
    power = max(-_MAX_EXPONENT, min(_MAX_EXPONENT, (stated + 2**31) % 2**32 - 2**31))
    return 10**power if power >= 0 else Fraction(1, 10**-power)


def type_name(value: Json) -> str:
    """Return the name of a JSON type for messages."""
    if isinstance(value, bool):
        return "a boolean"
    names: dict[type, str] = {dict: "an object", list: "a list", str: "a string", int: "a number", float: "a number"}
    return names.get(type(value), "null")


def _printable(text: str) -> str:
    return f'"{text}"' if len(text) <= 40 else f'"{text[:37]}..."'
