"""A small language for the form of a value: `#` is a digit, `*` any run of characters, everything else itself.

`CC-####` fits `CC-1234`; `team-*` fits `team-search`. There is nothing to escape and no pattern takes long: the time is
at most that of the text's length times the pattern's.
"""

from __future__ import annotations

LONGEST = 256  # characters of an EC2 tag value, and more than a label value has; a longer text fits no form


def fits(form: str, text: str) -> bool:
    """Tell whether the whole text has this form."""
    if len(text) > LONGEST:
        return False
    at, place = 0, 0
    star, resume = -1, 0
    while place < len(text):
        if at < len(form) and form[at] == "*":
            star, resume = at, place
            at += 1
        elif at < len(form) and _is(form[at], text[place]):
            at, place = at + 1, place + 1
        elif star >= 0:
            # The last `*` takes one character more; earlier ones never need to.
            resume += 1
            at, place = star + 1, resume
        else:
            return False
    return not form[at:].strip("*")


def _is(sign: str, character: str) -> bool:
    return sign == character or (sign == "#" and character in "0123456789")
