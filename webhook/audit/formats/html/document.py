"""The frame of an HTML report that loads no external resources.

Its content security policy allows only its own script and style.
"""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import TYPE_CHECKING

from gpugate.webhook.audit.formats.html.markup import Html, tag

if TYPE_CHECKING:
    from collections.abc import Mapping


def document(title: str, body: Html, style: str, script: str = "") -> str:
    """Return a document with the element `body`; a document without a script can run none."""
    head = tag(
        "head",
        Html('<meta charset="utf-8">'),
        tag("meta", http_equiv="Content-Security-Policy", content=_security_policy(style, script)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("meta", name="robots", content="noindex"),
        tag("title", title),
        Html(f"<style>{style}</style>"),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def contents(main: str, sections: Mapping[str, str]) -> Html:
    """Return links to the sections (id -> text) that the document has."""
    links = [tag("a", text, href=f"#{name}") for name, text in sections.items() if f" id={name}>" in main]
    return tag("nav", *links, aria_label="Sections")


def asset(name: str) -> str:
    """Return a file beside this module, such as the style sheet."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _security_policy(style: str, script: str) -> str:
    """Allow only this style and this script, by their hashes (CSP level 3, 2.3.1)."""
    scripts = f"script-src '{_hash(script)}'; " if script else ""
    return f"default-src 'none'; style-src '{_hash(style)}'; {scripts}base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
