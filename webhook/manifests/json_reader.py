"""Reads JSON and JSON Lines."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from gpugate.webhook.manifests.limits import MAX_DEPTH
from gpugate.webhook.manifests.problems import ReadError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpugate.policies.sdk.field import Json

_SPACE = re.compile(r"\s*")
_NEXT_OBJECT = re.compile(r"^[{\[]", re.MULTILINE)
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Part:
    """One document: its text, the line and offset at which it begins (from 0), its value, and keys it repeats."""

    text: str
    line: int
    start: int
    value: Json | ReadError
    repeated: tuple[str, ...] = ()


def read(text: str) -> Iterator[Part]:
    """Read the documents of a text; after a bad one, go on at the next line that begins with a bracket."""
    position = line = 0
    while True:
        begin = _SPACE.match(text, position).end()  # type: ignore[union-attr] # matches any text
        line += text.count("\n", position, begin)
        if begin == len(text):
            return
        repeated: list[str] = []
        try:
            value, end = _decoder(repeated).raw_decode(text, begin)
            _refuse_surrogates(value, text, begin)
        except json.JSONDecodeError as error:
            line_before = text.count("\n", begin, error.pos)
            failed = ReadError(f"not JSON: {error.msg}", line_before + 1, error.colno, "check brackets and commas here")
            value, end = failed, _resume(text, max(begin + 1, error.pos))
        except (RecursionError, ValueError) as error:
            deep = isinstance(error, RecursionError)
            message = "nested too deeply" if deep else str(error)
            remedy = f"{MAX_DEPTH} levels is more than any Kubernetes object has" if deep else "write another value"
            value, end = ReadError(message, 1, 1, remedy), _resume(text, begin + 1)
        yield Part(text[begin:end], line, begin, value, tuple(dict.fromkeys(repeated)))
        line += text.count("\n", begin, end)
        position = end


def _resume(text: str, position: int) -> int:
    found = _NEXT_OBJECT.search(text, position)
    return found.start() if found else len(text)


def _decoder(repeated: list[str]) -> json.JSONDecoder:
    def pairs(members: list[tuple[str, Json]]) -> dict[str, Json]:
        made = dict(members)
        if len(made) < len(members):
            keys = [key for key, _ in members]
            repeated.extend(key for key in made if keys.count(key) > 1)
        return made

    return json.JSONDecoder(object_pairs_hook=pairs, parse_constant=_refuse, parse_float=_number)


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number in JSON")


def _number(text: str) -> float:
    value = float(text)
    if value in {float("inf"), float("-inf")}:
        raise ValueError(f"the number {text[:20]} is out of range")
    return int(value) if value.is_integer() and abs(value) < 2**63 else value


def _refuse_surrogates(value: Json, text: str, begin: int) -> None:
    if "\\u" in text and _SURROGATE.search(json.dumps(value, ensure_ascii=False)):
        raise json.JSONDecodeError("half of a surrogate pair", text, begin)
