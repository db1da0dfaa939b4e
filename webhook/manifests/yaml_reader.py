"""Reads one YAML document as kubectl does, within limits.

The values are built from the parser's events and not from composed nodes: depth, node count and aliases are limited
before anything is built (PyYAML's C composer recurses and overruns the stack on 50,000 nested brackets), and it takes
half the time.

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
import sys
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import yaml

from gpugate.policies.sdk.structs import Struct
from gpugate.webhook.manifests.bounded_file import MAX_ALIASED_NODES, MAX_DEPTH, MAX_NODES
from gpugate.webhook.manifests.problems import ReadError

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Json

Scalar: TypeAlias = str | int | float | bool | None

# The first characters that may begin something else than a string; the empty scalar is null.
HINTS: Final = frozenset("+-0123456789.yYnNtTfFoO~")
# Those of numbers; what begins with another hint is something else than a string only as a whole word.
_NUMERIC: Final = frozenset("+-0123456789.")

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
    return in_json(read_scalar(text))


def read_scalar(text: str) -> Scalar:
    """Read an unquoted scalar as go-yaml does; as a key it means something else than as a value.

    Raises:
        ScalarError: it is an integer beyond all range.
    """
    if text in _WORDS:
        return _WORDS[text]
    if text[:1] not in _NUMERIC:
        return text
    if text in _NOT_FINITE:
        return _NOT_FINITE[text]
    if text[0] == ".":
        return _float(text, text) if _POINTED.fullmatch(text) else text
    plain = text.replace("_", "")
    match = _INTEGER.fullmatch(plain)
    if match and len(plain) <= _MAX_DIGITS:
        sign, hexadecimal, binary, octal, decimal = match.groups()
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
        value = read_scalar(text)
        if name == "float" and type(value) is int and value < 2**63:
            value = float(value)
        if type(value) is not wanted[name]:
            raise ScalarError(f"is tagged !!{name} and is none")
        return value, True
    return text, False


def _from_base64(text: str) -> str:
    try:
        decoded = base64.b64decode(text.replace("\n", "").replace("\r", "").encode(), validate=True)
    except binascii.Error:
        raise ScalarError("is tagged !!binary and is not base64") from None
    # Go writes one replacement for each byte that is no part of a character.
    return _NO_CHARACTER.sub("\ufffd", decoded.decode("utf-8", "surrogateescape"))


def scalar_key(value: Scalar) -> str:
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
        return scalar_key(read_scalar(text))
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


# What the parser says, and what to do about it; the first that fits.
_REMEDIES: Final = (
    ("mapping values are not allowed", "indent this line under its parent, or put a value that holds `: ` in quotes"),
    ("did not find expected key", "begin all keys of one object in the same column"),
    ("could not find expected ':'", "end the key with a colon, or put the text before it in quotes"),
    ("block sequence entries are not allowed", "begin the list on its own line, under its key"),
    ("did not find expected '-' indicator", "begin all items of one list with `-` in the same column"),
    ("did not find expected ',' or", "close the bracket, or put a comma between the members"),
    ("found unexpected end of stream", "close the quote or bracket that is open here"),
    ("found undefined tag handle", "remove the tag"),
    ("did not find expected alphabetic or numeric character", "put a value that begins with * or & in quotes"),
    # Two escapes for one character are JSON's way, which kubectl's parser of YAML refuses too.
    (
        "invalid Unicode character escape code",
        "write the character itself, or remove the --- lines between JSON objects",
    ),
    ("did not find expected <document start>", "indent this line, or begin the document with ---"),
)
_TAB = "indent with spaces, not with tabs"
_QUOTE = "put a value that begins with this character in quotes"
_UNREADABLE = re.compile("[^\t\n\r -~\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def explain(error: yaml.YAMLError, text: str) -> ReadError:
    """Turn an exception of PyYAML into a ReadError with place and remedy."""
    if isinstance(error, yaml.MarkedYAMLError):
        problem = error.problem or error.context or "cannot be read"
        # For an unclosed bracket or quote, the context has its beginning, which helps more than the end of the file.
        unclosed = "end of stream" in problem and error.context_mark
        mark = unclosed or error.problem_mark or error.context_mark
        line, column = (mark.line, mark.column) if mark else (0, 0)
        return ReadError(f"not YAML: {problem}", line + 1, column + 1, _remedy(problem, text, line))
    match = _UNREADABLE.search(text)
    before = text[: match.start()] if match else ""
    character = f"the control character U+{ord(match[0]):04X}" if match else "a character that YAML does not allow"
    line = before.count("\n") + 1
    return ReadError(f"not YAML: {character}", line, len(before) - before.rfind("\n"), "remove it, or write an escape")


def _remedy(problem: str, text: str, line: int) -> str:
    lines = text.splitlines()
    text_of_line = lines[line] if line < len(lines) else ""
    if "cannot start any token" in problem:
        return _TAB if "\t" in text_of_line[: len(text_of_line) - len(text_of_line.lstrip())] else _QUOTE
    fitting = (remedy for part, remedy in _REMEDIES if part in problem)
    return next(fitting, "check quotes, brackets and indentation around this line")


# The C scanner is 6 times as fast; some builds of PyYAML come without it.
Loader: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_LIMITS = "split the file, or write the repeated parts out"


class Note(Struct, frozen=True):
    """Something that Kubernetes reads in another way than it looks; line and column count from 1 in the text."""

    message: str
    remedy: str
    line: int
    column: int


class Parsed(Struct, frozen=True):
    """The value of a document; None when it is empty or null."""

    value: Json
    notes: tuple[Note, ...] = ()


def read(text: str) -> Parsed:
    """Read a text that holds one document, or none.

    Raises:
        ReadError: it is not YAML, is not JSON-like (`.nan`, a list as a key), exceeds a limit, or holds a second
            document.
    """
    loader = None
    try:
        loader = Loader(text)  # the C loader reads the first bytes here, and may refuse them
        builder = _Builder()
        return Parsed(builder.build(loader), tuple(builder.notes))
    except yaml.YAMLError as error:
        raise explain(error, text) from None
    finally:
        if loader is not None:
            loader.dispose()


class _Frame:
    """An object or a list that is not closed yet."""

    __slots__ = ("anchor", "before", "key", "merged", "merging", "value")

    def __init__(self, value: Any, anchor: str | None, before: int) -> None:
        self.value = value
        self.anchor = anchor
        self.before = before  # nodes counted when it was opened
        self.key: str | None = None
        self.merging = False
        self.merged: set[str] | None = None


class _Builder:
    """Builds the value of a document out of events."""

    def __init__(self) -> None:
        self.notes: list[Note] = []
        self._stack: list[_Frame] = []
        self._anchors: dict[str, tuple[Json, int] | _Frame] = {}
        self._flow_from = 0  # how deep the outermost collection in brackets is
        self._nodes = 0
        self._aliased = 0
        self._root: Json = None

    def build(self, loader: Any) -> Json:  # Any: PyYAML's loaders have no common type
        documents = 0
        get_event, scalar = loader.get_event, yaml.ScalarEvent
        while True:
            event = get_event()
            kind = type(event)
            if kind is scalar:
                if not self._text(event):
                    self._scalar(event)
            elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                self._open({} if kind is yaml.MappingStartEvent else [], event)
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                self._close(event)
            elif kind is yaml.AliasEvent:
                self._alias(event)
            elif kind is yaml.DocumentStartEvent:
                documents += 1
                if documents > 1:
                    raise _error(event, "kubectl does not read what follows `...`", "begin each document with ---")
            elif kind is yaml.StreamEndEvent:
                return self._root

    def _text(self, event: Any) -> bool:
        """Add a scalar that is certainly a text, as most are; tell whether it is. What `_scalar` does takes three times as long."""
        text = event.value
        if event.tag is not None or event.anchor is not None or not self._stack or self._nodes >= MAX_NODES:
            return False
        if event.implicit[0]:
            first = text[:1]
            if first in HINTS and (first in _NUMERIC or text in _WORDS):
                return False
            if not text or text == "<<" or (self._flow_from and "?" in text):
                return False
        frame = self._stack[-1]
        value = frame.value
        if type(value) is list:
            value.append(text)
        elif frame.key is None:
            key = sys.intern(text)
            if key in value:  # perhaps twice
                return False
            frame.key = key
        elif frame.merging:
            return False
        else:
            value[frame.key] = text
            if frame.merged:
                frame.merged.discard(frame.key)
            frame.key = None
        self._nodes += 1
        return True

    def _scalar(self, event: Any) -> None:
        value: Scalar = event.value
        frame = self._stack[-1] if self._stack else None
        is_key = frame is not None and frame.key is None and type(frame.value) is dict
        try:
            if is_key and value == "<<" and (event.implicit[0] or event.tag == MERGE_TAG):
                frame.key, frame.merging = "<<", True  # type: ignore[union-attr] # is_key says there is a frame
                return
            if event.tag is not None:
                value, known = tagged(event.value, event.tag)
                if not known:
                    self._unknown_tag(event)
            elif event.implicit[0] and (not value or event.value[0] in HINTS):
                value = read_scalar(event.value)
            if self._flow_from and not event.style and "?" in event.value:
                raise _error(event, "kubectl does not read `?` within brackets", "put the text around it in quotes")
        except ScalarError as error:
            raise _error(event, str(error), "put it in quotes if it is text") from None
        self._count(event)
        if event.anchor:
            self._anchors[event.anchor] = (value, 1)
        self._put(value, event)

    def _open(self, value: Json, event: Any) -> None:
        if event.tag is not None and not is_known(event.tag):
            self._unknown_tag(event)
        if self._stack and self._stack[-1].key is None and type(self._stack[-1].value) is dict:
            raise _error(event, "a key is an object or a list", "write a string")
        if len(self._stack) >= MAX_DEPTH:
            raise _error(event, f"more than {MAX_DEPTH} levels of nesting", "no Kubernetes object is that deep")
        frame = _Frame(value, event.anchor, self._nodes)
        self._stack.append(frame)
        if event.flow_style and not self._flow_from:
            self._flow_from = len(self._stack)
        if event.anchor:
            self._anchors[event.anchor] = frame
        self._count(event)

    def _close(self, event: Any) -> None:
        frame = self._stack.pop()
        if len(self._stack) < self._flow_from:
            self._flow_from = 0
        # Unless an anchor of the same name stands within.
        if frame.anchor and self._anchors[frame.anchor] is frame:
            self._anchors[frame.anchor] = (frame.value, self._nodes - frame.before)
        self._put(frame.value, event)

    def _alias(self, event: Any) -> None:
        anchor = self._anchors.get(event.anchor)
        if anchor is None:
            raise _error(event, f"no anchor &{event.anchor} before this alias", "write the value out")
        if isinstance(anchor, _Frame):
            raise _error(event, f"anchor {event.anchor} contains itself", "write the value out")
        value, nodes = anchor
        self._aliased += nodes
        self._nodes += nodes
        if self._aliased > MAX_ALIASED_NODES:
            raise _error(event, f"aliases expand to more than {MAX_ALIASED_NODES:,} values", _LIMITS)
        self._put(_copy(value), event)

    def _put(self, value: Any, event: Any) -> None:
        frame = self._stack[-1] if self._stack else None
        if frame is not None and frame.key is None and type(frame.value) is dict:
            frame.key = self._key(value, event)
            if frame.key in frame.value and frame.key not in (frame.merged or ()):
                self.notes.append(_note(event, f"the key {frame.key} occurs twice", "kubectl keeps the last one only"))
            return
        if type(value) is float or type(value) is int:
            value = self._number(value, event)
        if frame is None:
            self._root = value
        elif type(frame.value) is list:
            frame.value.append(value)
        elif frame.merging:
            self._merge(frame, value, event)
            frame.key, frame.merging = None, False
        else:
            frame.value[frame.key] = value
            if frame.merged:
                frame.merged.discard(frame.key)
            frame.key = None

    def _number(self, value: float, event: Any) -> Scalar:
        try:
            return in_json(value)
        except ScalarError as error:
            raise _error(event, str(error), "put it in quotes if it is text") from None

    def _key(self, value: Any, event: Any) -> str:
        if isinstance(value, dict | list):
            raise _error(event, "a key is an object or a list", "write a string")
        try:
            # Thousands of objects have the same few keys.
            return sys.intern(scalar_key(value))
        except ScalarError as error:
            raise _error(event, str(error), "put it in quotes") from None

    def _merge(self, frame: _Frame, value: Any, event: Any) -> None:
        """Merge in place, so that a merged key wins over an own one that stands before it, as go-yaml v2 does."""
        parts = value if isinstance(value, list) else [value]
        if not all(isinstance(part, dict) for part in parts):
            raise _error(event, "`<<` merges objects only", "refer to an object, such as <<: *defaults")
        frame.merged = frame.merged or set()
        for part in reversed(parts):
            frame.merged.update(key for key in part if key not in frame.value)
            frame.value.update(part)

    def _count(self, event: Any) -> None:
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise _error(event, f"a document of more than {MAX_NODES:,} values", _LIMITS)

    def _unknown_tag(self, event: Any) -> None:
        tag = event.tag.replace("tag:yaml.org,2002:", "!!")
        self.notes.append(_note(event, f"the tag {tag} means nothing to Kubernetes", "kubectl reads the bare value"))


def _copy(value: Json) -> Json:
    """An aliased value stands in the object more than once, and each may be changed by itself."""
    if isinstance(value, dict):
        return {key: _copy(member) for key, member in value.items()}
    return [_copy(member) for member in value] if isinstance(value, list) else value


def _error(event: Any, message: str, remedy: str) -> ReadError:
    return ReadError(message, event.start_mark.line + 1, event.start_mark.column + 1, remedy)


def _note(event: Any, message: str, remedy: str) -> Note:
    return Note(message, remedy, event.start_mark.line + 1, event.start_mark.column + 1)
