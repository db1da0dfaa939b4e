"""What an unquoted YAML scalar means to kubectl.

kubectl reads YAML with go-yaml v2 and turns it into JSON; the rules here are those of `resolve.go` in
`go.yaml.in/yaml/v2` v2.4.3 and of `sigs.k8s.io/yaml` v1.6.0 (as in kubectl v1.36) and of the JSON that comes out: a
number without a fraction is an integer where it fits into 64 bits.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
import struct
from decimal import Decimal
from typing import Final, TypeAlias

Scalar: TypeAlias = str | int | float | bool | None

# The first characters that may begin something else than a string; the empty scalar is null.
HINTS: Final = frozenset("+-0123456789.yYnNtTfFoO~")

_TRUE = ("y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE")
_FALSE = ("n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE")
_WORDS: Final[dict[str, bool | None]] = {
    **dict.fromkeys(_TRUE, True),
    **dict.fromkeys(_FALSE, False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
}
_NOT_FINITE: Final[dict[str, float]] = {
    **dict.fromkeys((sign + word for sign in ("", "+") for word in (".inf", ".Inf", ".INF")), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
}
_INTEGER = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
# With a point first go-yaml wants digits around each underscore, elsewhere it takes them all away.
_POINTED = re.compile(r"\.[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+(?:_[0-9]+)*)?")
_NO_CHARACTER = re.compile("[\udc80-\udcff]")
_MAX_DIGITS = 400  # a double ends at 309

_YAML = "tag:yaml.org,2002:"
MERGE_TAG: Final = _YAML + "merge"
_COLLECTION_TAGS = frozenset({_YAML + name for name in ("map", "seq", "set", "omap", "pairs")})


class ScalarError(ValueError):
    """The scalar has no meaning in JSON."""


def resolve(text: str) -> Scalar:
    """Give an unquoted scalar the meaning it has as a value.

    Raises:
        ScalarError: it is `.nan`, `.inf` or an integer beyond all range.
    """
    return in_json(read(text))


def read(text: str) -> Scalar:
    """Read an unquoted scalar as go-yaml does; as a key it means something else than as a value.

    Raises:
        ScalarError: it is an integer beyond all range.
    """
    if text in _WORDS:
        return _WORDS[text]
    if text[:1] not in HINTS:
        return text
    if text in _NOT_FINITE:
        return _NOT_FINITE[text]
    if text[0] == ".":
        return _float(text, text) if _POINTED.fullmatch(text) else text
    plain = text.replace("_", "")
    found = _INTEGER.fullmatch(plain)
    if found and len(plain) <= _MAX_DIGITS:
        sign, hexadecimal, binary, octal, decimal = found.groups()
        for digits, base in ((decimal, 10), (octal, 8), (hexadecimal, 16), (binary, 2)):
            if digits:
                value = int(digits, base) * (-1 if sign == "-" else 1)
                if -(2**63) <= value < 2**64:
                    return value
                break
    return _float(plain, text) if _FLOAT.fullmatch(plain) else text


def in_json(value: Scalar) -> Scalar:
    """Return what is left of a scalar in JSON, as the API server reads it: a number is an integer where it can be one.

    Raises:
        ScalarError: it is not a number in JSON.
    """
    if type(value) is int:
        return value if value < 2**63 else float(value)
    if type(value) is not float:
        return value
    if not math.isfinite(value):
        raise ScalarError(f"{_float_key(value)} is not a number in JSON")
    if not value.is_integer() or abs(value) >= 2**63:
        return value
    # Go writes the fewest digits that tell a number from its neighbours, and zeros after them.
    digits = int(value) if abs(value) < 2**53 else int(Decimal(repr(value)))
    return digits if -(2**63) <= digits < 2**63 else value


def _float(plain: str, text: str) -> float | str:
    value = float(plain)
    if math.isfinite(value):
        return value
    if len(plain) > _MAX_DIGITS:
        raise ScalarError(f"a number of {len(plain)} digits is out of range")
    return text  # such as the commit hash 12345e6789


def is_known(tag: str) -> bool:
    """Tell whether kubectl knows a tag of a collection, or reads any value with it as a plain string."""
    return tag in {"!", *_COLLECTION_TAGS}


def tagged(text: str, tag: str) -> tuple[Scalar, bool]:
    """Read a scalar with an explicit tag, as `read` does; the second value tells whether kubectl knows the tag.

    Raises:
        ScalarError: the text is not what the tag says.
    """
    name = tag.removeprefix(_YAML) if tag.startswith(_YAML) else ""
    if tag == "!" or name in {"str", "timestamp"}:
        return text, True
    if name == "binary":
        return _from_base64(text), True
    wanted = {"int": int, "float": float, "bool": bool, "null": type(None)}
    if name in wanted:
        value = read(text)
        if name == "float" and type(value) is int and value < 2**63:
            value = float(value)
        if type(value) is not wanted[name]:
            raise ScalarError(f"is tagged !!{name} and is none")
        return value, True
    return text, False


def _from_base64(text: str) -> str:
    try:
        found = base64.b64decode(text.replace("\n", "").replace("\r", "").encode(), validate=True)
    except binascii.Error:
        raise ScalarError("is tagged !!binary and is not base64") from None
    # Go writes one replacement for each byte that is no part of a character.
    return _NO_CHARACTER.sub("\ufffd", found.decode("utf-8", "surrogateescape"))


def key(value: Scalar) -> str:
    """Write a scalar, as go-yaml reads it, as the key of a JSON object.

    Raises:
        ScalarError: the key is null, or an integer that needs all 64 bits, which kubectl refuses.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        raise ScalarError("a key is null")
    if isinstance(value, float):
        return _float_key(value)
    if value >= 2**63:
        raise ScalarError(f"a key is the number {value}")
    return str(value)


def key_text(text: str, *, quoted: bool) -> str:
    """Write a key as it stands in a text as the key of a JSON object; one that kubectl refuses stays as it is."""
    if quoted or (text and text[0] not in HINTS):
        return text
    try:
        return key(read(text))
    except ScalarError:
        return text


def _float_key(value: float) -> str:
    """The shortest text that reads as the same 32-bit number, as Go's `FormatFloat(value, 'g', -1, 32)`."""
    short = _in_32_bits(value)
    if not math.isfinite(short):
        return ".nan" if math.isnan(short) else ".inf" if short > 0 else "-.inf"
    digits = next((n for n in range(1, 9) if _in_32_bits(float(f"{short:.{n}g}")) == short), 9)
    exponent = int(f"{short:.{digits - 1}e}".partition("e")[2])
    return f"{short:.{digits - 1}e}" if not -5 < exponent < 6 else f"{short:.{max(0, digits - 1 - exponent)}f}"


def _in_32_bits(value: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)
