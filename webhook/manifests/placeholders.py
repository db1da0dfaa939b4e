"""Placeholders in the texts of manifests: values that a tool or a person fills in before the API server gets the object.

Sources: gettext 0.22 `envsubst` (`$NAME`, `${NAME}`); Terraform v1.9 "Strings and Templates" (`${...}`, `%{...}`); Go 1.22
`text/template` and Jinja 3.1 (`{{ ... }}`, `{% ... %}`); Flux v2.4 "Post build variable substitution" (`${NAME:-default}`).
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpugate.policies.sdk.field import Json

_LONGEST: Final = 200  # characters of one placeholder; a longer one is a text


class Form(StrEnum):
    """How a placeholder is written, by the name of what usually fills it in."""

    SHELL = "envsubst"
    """`$NAME`, `${NAME}` and `${NAME:-default}`."""
    TERRAFORM = "Terraform"
    """`${name}`, `${a.b}`, `${x ? y : z}` and `%{ if x }`."""
    BRACES = "Go templates or Jinja"
    """`{{ .name }}`."""
    MANUAL = "hand"
    """`<NAME>`, `REPLACE_ME` and the like, which no tool knows."""


class Declared(Struct, frozen=True):
    """Files that a project declares as templates: a pattern, relative to the working directory, and the tool's name."""

    pattern: str
    tool: str


# The tools that a project may name, and what each fills in.
TOOLS: Final[Mapping[str, frozenset[Form]]] = {
    "envsubst": frozenset({Form.SHELL, Form.TERRAFORM}),
    "terraform": frozenset({Form.SHELL, Form.TERRAFORM}),
    "go-template": frozenset({Form.BRACES}),
    "jinja": frozenset({Form.BRACES}),
    "sed": frozenset(Form),
}

_SHELL: Final = r"\$\{[A-Z_][A-Z0-9_]{0,100}(?::?[-=?+][^{}\n]{0,100})?\}|\$[A-Z][A-Z0-9_]{2,100}(?![A-Za-z0-9_(])"
_TERRAFORM: Final = rf"\$\{{[^{{}}\n]{{1,{_LONGEST}}}\}}|%\{{[^{{}}\n]{{1,{_LONGEST}}}\}}"
_BRACES: Final = rf"\{{\{{[^\n]{{0,{_LONGEST}}}?\}}\}}"
_MANUAL: Final = (
    r"<{1,2}[A-Z][A-Z0-9_ .-]{0,100}>{1,2}"
    r"|<{1,2}[a-z][a-z0-9]{0,30}(?:[-_ .][a-z0-9]{1,30}){1,8}>{1,2}"
    r"|(?<![A-Za-z0-9_])(?:[A-Z0-9_]{0,100}PLACEHOLDER[A-Z0-9_]{0,100}|REPLACE_ME|REPLACE_WITH_[A-Z0-9_]{1,100}|CHANGE_?ME)"
    r"(?![A-Za-z0-9_])"
)
_PLACEHOLDER: Final = re.compile(
    f"(?P<SHELL>{_SHELL})|(?P<TERRAFORM>{_TERRAFORM})|(?P<BRACES>{_BRACES})|(?P<MANUAL>{_MANUAL})"
)
# What is a placeholder only where the whole text is one: `$name` is part of expressions, and `<name>` of prose.
_WHOLE: Final = re.compile(r"(?P<SHELL>\$[A-Za-z_][A-Za-z0-9_]{0,100})|(?P<MANUAL><{1,2}[a-z][a-z0-9]{0,60}>{1,2})")
_SIGNS: Final = ("$", "{{", "%{", "<", "PLACEHOLDER", "REPLACE_", "CHANGEME", "CHANGE_ME")
_SIGN: Final = re.compile("|".join(map(re.escape, _SIGNS)))  # in short texts, of which there are many, this is quicker
_MOST_CHARACTERS: Final = 2_000  # of a text that is looked through; what is longer is a script or a document


def found_in(text: str) -> list[tuple[str, Form]]:
    """Return the placeholders in a text of one line, with the form of each; none in a longer text, such as a script."""
    if len(text) > _MOST_CHARACTERS or _SIGN.search(text) is None or "\n" in text.rstrip("\n"):
        return []
    whole = _WHOLE.fullmatch(text.strip())
    return [
        (match[0], Form[match.lastgroup or "SHELL"]) for match in ([whole] if whole else _PLACEHOLDER.finditer(text))
    ]


def has_signs(text: str) -> bool:
    """Tell whether a text has a sign that every placeholder has, or an escape that JSON may have in its place."""
    return any(sign in text for sign in (*_SIGNS, "\\u00"))


# A line with nothing but instructions of a template, such as `{{- range .Pools }}`, `{% if x %}` or `%{ if enabled ~}`.
_CONTROL: Final = re.compile(
    rf"^[ \t]*(?:\{{\{{(?:(?!\}}\}})[^\n]){{0,{_LONGEST}}}\}}\}}|\{{%[^\n]{{0,{_LONGEST}}}%\}}|%\{{[^\n]{{0,{_LONGEST}}}\}})[ \t]*(?:#[^\n]*)?$",
    re.MULTILINE,
)
_OPENS: Final = ("{{", "{%", "%{", "${")


def has_control_lines(text: str) -> bool:
    """Tell whether a text has lines that are instructions of a template, so that only its tool can say what it becomes."""
    return any(sign in text for sign in _OPENS) and _CONTROL.search(text) is not None


def opens_template(line: str) -> bool:
    """Tell whether a line has a sign that begins a placeholder or an instruction of a template."""
    return any(sign in line for sign in _OPENS)


_ENCODED: Final = re.compile(f"{_BRACES}|{_TERRAFORM}")
# Characters for private use stand for those of ASCII, so that lines and columns stay the same.
_TO_PRIVATE: Final = {code: 0xE000 + code for code in range(0x80)}
_FROM_PRIVATE: Final = {private: code for code, private in _TO_PRIVATE.items()}
_PRIVATE: Final = re.compile("[\ue000-\ue07f]")


def encoded(text: str) -> str | None:
    """Return a text in which placeholders without quotes are plain YAML, of the same length; None where there are none.

    YAML reads `{{ .Name }}` as an object with an object as its key.
    """
    if not any(sign in text for sign in _OPENS) or _PRIVATE.search(text) or has_control_lines(text):
        return None
    translated = _ENCODED.sub(lambda match: match[0].translate(_TO_PRIVATE), text)
    return translated if translated != text else None


def sealed(name: str) -> str:
    """Return a name in which the characters of placeholders are such that only `*` of a pattern matches them.

    `*gpu*` says nothing about `${gpu_cluster}-pool`, and `*-pool` holds for all that it becomes. `decoded` is the inverse.
    """
    for placeholder, _ in found_in(name):
        name = name.replace(placeholder, placeholder.translate(_TO_PRIVATE))
    return name


def is_sealed(name: str) -> bool:
    """Tell whether a name has a placeholder and was sealed."""
    return _PRIVATE.search(name) is not None


def decoded(value: Json) -> Json:
    """Return the value of an encoded text, or a text with sealed names, with its placeholders as they are written."""
    if isinstance(value, str):
        return value.translate(_FROM_PRIVATE) if _PRIVATE.search(value) else value
    if isinstance(value, dict):
        return {str(decoded(key)): decoded(member) for key, member in value.items()}
    return [decoded(member) for member in value] if isinstance(value, list) else value
