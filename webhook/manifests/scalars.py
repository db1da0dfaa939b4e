"""What an unquoted YAML scalar means to kubectl.

kubectl reads YAML with go-yaml v2 and turns it into JSON; the rules here are those of `resolve.go` in
`sigs.k8s.io/yaml/goyaml.v2` (v1.4, as in kubectl v1.32) and of the JSON that comes out: a number without a fraction is
an integer where it fits into 64 bits.
"""

from __future__ import annotations

import base64
import binascii
import re
import struct
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
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_INTEGER = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_MAX_DIGITS = 400  # a double ends at 309

_YAML = "tag:yaml.org,2002:"
_COLLECTION_TAGS = frozenset({_YAML + name for name in ("map", "seq", "set", "omap", "pairs")})


class ScalarError(ValueError):
    """The scalar has no meaning in JSON."""


def resolve(text: str) -> Scalar:
    """Give an unquoted scalar its meaning.

    Raises:
        ScalarError: it is `.nan`, `.inf` or an integer beyond all range.
    """
    if text in _WORDS:
        return _WORDS[text]
    if text[:1] not in HINTS:
        return text
    if _NOT_FINITE.fullmatch(text):
        raise ScalarError(f"{text} is not a number in JSON")
    plain = text if text[0] == "." else text.replace("_", "")
    found = _INTEGER.fullmatch(plain)
    if found and len(plain) <= _MAX_DIGITS:
        sign, hexadecimal, binary, octal, decimal = found.groups()
        for digits, base in ((decimal, 10), (octal, 8), (hexadecimal, 16), (binary, 2)):
            if digits:
                value = int(digits, base) * (-1 if sign == "-" else 1)
                if -(2**63) <= value < 2**64:
                    return value if value < 2**63 else float(value)
                break
    return _float(plain, text) if _FLOAT.fullmatch(plain) else text


def _float(plain: str, text: str) -> Scalar:
    value = float(plain)
    if value in {float("inf"), float("-inf")}:
        if len(plain) > _MAX_DIGITS:
            raise ScalarError(f"a number of {len(plain)} digits is out of range")
        return text  # such as the commit hash 12345e6789
    return int(value) if value.is_integer() and abs(value) < 2**63 else value


def is_known(tag: str) -> bool:
    """Tell whether kubectl knows a tag of a collection, or reads any value with it as a plain string."""
    return tag in {"!", *_COLLECTION_TAGS}


def tagged(text: str, tag: str) -> tuple[Scalar, bool]:
    """Read a scalar with an explicit tag; the second value tells whether kubectl knows the tag.

    Raises:
        ScalarError: the text is not what the tag says.
    """
    name = tag.removeprefix(_YAML) if tag.startswith(_YAML) else ""
    if tag == "!" or name in {"str", "timestamp"}:
        return text, True
    if name == "binary":
        try:
            return base64.b64decode(text, validate=False).decode("utf-8", "replace"), True
        except binascii.Error:
            raise ScalarError("is tagged !!binary and is not base64") from None
    wanted: dict[str, tuple[type, ...]] = {
        "int": (int,),
        "float": (int, float),
        "bool": (bool,),
        "null": (type(None),),
    }
    if name in wanted:
        value = resolve(text)
        if type(value) not in wanted[name]:
            raise ScalarError(f"is tagged !!{name} and is none")
        return value, True
    return text, False


def key(value: Scalar) -> str:
    """Write a scalar as the key of a JSON object.

    Raises:
        ScalarError: the key is null, which kubectl refuses.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        raise ScalarError("a key is null")
    return str(value) if isinstance(value, int) else _float_key(value)


def key_text(text: str, *, quoted: bool) -> str:
    """Write a key as it stands in a text as the key of a JSON object; one that kubectl refuses stays as it is."""
    if quoted or (text and text[0] not in HINTS):
        return text
    try:
        return key(resolve(text))
    except ScalarError:
        return text


def _float_key(value: float) -> str:
    """The shortest text that reads as the same 32-bit number, as Go's `FormatFloat(value, 'g', -1, 32)`."""

    def rounded(number: float) -> bytes:
        try:
            return struct.pack("f", number)
        except OverflowError:
            return b""

    digits = next((n for n in range(1, 9) if rounded(float(f"{value:.{n}g}")) == rounded(value)), 9)
    exponent = int(f"{value:.{digits - 1}e}".partition("e")[2])
    return f"{value:.{digits - 1}e}" if not -5 < exponent < 6 else f"{value:.{max(0, digits - 1 - exponent)}f}"
