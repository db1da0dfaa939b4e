"""Reads JSON and JSON Lines."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Final, NoReturn

from gpugate.policies.sdk.structs import Struct
from gpugate.webhook.manifests.bounded_file import MAX_DEPTH
from gpugate.webhook.manifests.problems import ReadError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Json

_SPACE = re.compile(r"[ \t\r\n]*")  # of JSON; others do not belong there
_NEXT_OBJECT = re.compile(r"^[{\[]", re.MULTILINE)
_MOST_REPEATED: Final = 100  # keys of one document that are reported
_SURROGATE = re.compile("[\ud800-\udfff]")


class _NotANumberError(ValueError):
    """NaN or Infinity, which JavaScript writes and JSON does not have."""


class Part(Struct, frozen=True):
    """One document: its text, the line and offset at which it begins (from 0), its value, and keys it repeats.

    `is_json` is false where the text is not JSON; where it is and has no value, that holds something out of range.
    """

    text: str
    line: int
    start: int
    value: Json | ReadError
    repeated: tuple[str, ...] = ()
    is_json: bool = True


def read(text: str) -> Iterator[Part]:
    """Read the documents of a text; after a bad one, go on at the next line that begins with a bracket."""
    position = line = 0
    while True:
        begin = _SPACE.match(text, position).end()  # type: ignore[union-attr] # matches any text
        line += text.count("\n", position, begin)
        if begin == len(text):
            return
        repeated: list[str] = []
        is_json = True
        try:
            value, end = _decoder(repeated).raw_decode(text, begin)
            _refuse_surrogates(value, text, begin, end)
        except json.JSONDecodeError as error:
            line_before = text.count("\n", begin, error.pos)
            failed = ReadError(f"not JSON: {error.msg}", line_before + 1, error.colno, "check brackets and commas here")
            value, end = failed, _resume(text, max(begin + 1, error.pos))
            is_json = False
        except RecursionError:
            remedy = f"{MAX_DEPTH} levels is more than any Kubernetes object has"
            value, end = ReadError("nested too deeply", 1, 1, remedy), _resume(text, begin + 1)
            is_json = False
        except ValueError as error:
            value, end = ReadError(str(error), 1, 1, "write another value"), _resume(text, begin + 1)
            is_json = not isinstance(error, _NotANumberError)
        yield Part(text[begin:end], line, begin, value, tuple(repeated), is_json)
        line += text.count("\n", begin, end)
        position = end


def _resume(text: str, position: int) -> int:
    match = _NEXT_OBJECT.search(text, position)
    return match.start() if match else len(text)


def _decoder(repeated: list[str]) -> json.JSONDecoder:
    def pairs(members: list[tuple[str, Json]]) -> dict[str, Json]:
        obj = dict(members)
        if len(obj) < len(members):
            times = Counter(key for key, _ in members)
            new = (key for key in obj if times[key] > 1 and key not in repeated[:_MOST_REPEATED])
            repeated.extend(islice(new, _MOST_REPEATED - len(repeated)))
        return obj

    return json.JSONDecoder(object_pairs_hook=pairs, parse_constant=_refuse, parse_float=_number)


def _refuse(name: str) -> NoReturn:
    raise _NotANumberError(f"{name} is not a number in JSON")


def _number(text: str) -> float:
    value = float(text)
    if value in {float("inf"), float("-inf")}:
        raise ValueError(f"the number {text[:20]} is out of range")
    return int(value) if value.is_integer() and abs(value) < 2**63 else value


def _refuse_surrogates(value: Json, text: str, begin: int, end: int) -> None:
    if text.find("\\u", begin, end) >= 0 and _SURROGATE.search(json.dumps(value, ensure_ascii=False)):
        raise ValueError("half of a surrogate pair in a string")
