"""Where YAML is read otherwise than kubectl reads it, and why that is left so."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# libyaml skips a byte order mark at the beginning of any line, go-yaml that of the text only. go-yaml takes commas and
# brackets into a tag, libyaml ends it there. Neither is met in a manifest, and no reading is the right one.
_OTHERWISE = re.compile(r".+\ufeff|![^\s]*[,\[\]{}]", re.DOTALL)

_ESCAPE = "found unknown escape character"
_WE_REFUSE = (
    # libyaml wants a space after a colon within brackets.
    "not YAML: found unexpected ':'",
    # kubectl makes JSON of what is left when repeated keys have overwritten each other, and misses these there.
    "a key is null",
    "a key is the number",
    "is not a number in JSON",
)


def is_read_otherwise(text: str) -> bool:
    """Tell whether a text holds characters that the two scanners take for different things."""
    return _OTHERWISE.search(text) is not None


def may_refuse(text: str, message: str) -> bool:
    r"""Tell whether we may refuse, with this message, what kubectl reads; `\'` is an escape for go-yaml only."""
    return any(part in message for part in _WE_REFUSE) or (_ESCAPE in message and r"\'" in text)


def may_read(text: str, refusal: str) -> bool:
    r"""Tell whether we may read what kubectl refuses: JSON's `\/`, and a tag that dates need not have."""
    return "as a !!timestamp" in refusal or (_ESCAPE in refusal and r"\/" in text)


def first_documents(text: str) -> Iterator[str]:
    """Yield what may be the first document of a text: kubectl leaves unread what follows, however little it is YAML.

    We refuse it, because it would never reach the cluster. Blank lines and comments are nothing that follows.
    """
    for end in range(len(text)):
        if not re.fullmatch(r"([ \t\r\n]|#.*\n?)*", text[end:]):
            yield text[:end]
