"""Writes values as YAML or JSON, so that kubectl and other readers take them for what they are."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import yaml

from gpugate.webhook.manifests import scalars

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Json

# Texts that need no quotes anywhere, unless a reader takes them for something else than text.
_PLAIN: Final = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./+-]*(?:[ :@=][A-Za-z0-9_./+-]+)*")
_QUOTES: Final = {'"', "'"}
_SHORT: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


@dataclass(frozen=True, slots=True)
class Style:
    """How a document is written: lists begin `dash` columns to the right of their key, lines end with `newline`."""

    dash: int = 2
    newline: str = "\n"
    json: bool = False

    def inline(self, value: Json, like: str = "") -> str:
        """Write a value on one line; a text in the quotes in which `like` is written, if it has some."""
        if self.json:
            return json.dumps(value, ensure_ascii=False)
        if isinstance(value, str) and like[:1] in _QUOTES and value.isprintable():
            return _quoted(value, like[0])
        return _flow(value)

    def member(self, key: str, value: Json, indent: int) -> list[str]:
        """Write a member of an object in block style, line by line."""
        head = f"{' ' * indent}{scalar(key)}:"
        if not _is_block(value):
            return [f"{head} {_flow(value)}"]
        return [head, *self.block(value, indent + (self.dash if isinstance(value, list) else 2))]

    def item(self, value: Json, indent: int) -> list[str]:
        """Write an element of a list in block style, line by line."""
        dash = f"{' ' * indent}- "
        if not _is_block(value):
            return [dash + _flow(value)]
        first, *others = self.block(value, indent + 2)
        return [dash + first[indent + 2 :], *others]

    def block(self, value: Json, indent: int) -> list[str]:
        """Write an object or a list that is not empty in block style, line by line."""
        if isinstance(value, dict):
            return [line for key, member in value.items() for line in self.member(key, member, indent)]
        return [line for member in value for line in self.item(member, indent)] if isinstance(value, list) else []


def scalar(value: Json) -> str:
    """Write a value that is neither an object nor a list, for any place in YAML."""
    if isinstance(value, str):
        return value if _is_plain(value) else _quoted(value, '"')
    return json.dumps(value)


def _flow(value: Json) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{scalar(key)}: {_flow(member)}" for key, member in value.items()) + "}"
    return f"[{', '.join(map(_flow, value))}]" if isinstance(value, list) else scalar(value)


def _is_block(value: Json) -> bool:
    return isinstance(value, dict | list) and bool(value)


def _is_plain(text: str) -> bool:
    if not _PLAIN.fullmatch(text):
        return False
    # YAML 1.1 as PyYAML has it knows dates and base 60, which kubectl does not; others may know them too.
    resolvers = yaml.SafeLoader.yaml_implicit_resolvers.get(text[0], ())
    if any(pattern.match(text) for _, pattern in resolvers):
        return False
    try:
        return scalars.resolve(text) == text
    except scalars.ScalarError:
        return False


def _quoted(text: str, quote: str) -> str:
    inside = text.replace("'", "''") if quote == "'" else "".join(map(_escaped, text))
    return f"{quote}{inside}{quote}"


def _escaped(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
