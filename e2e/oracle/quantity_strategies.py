"""Quantities as people write them, and as nobody should."""

from __future__ import annotations

import re

from hypothesis import strategies as st

SUFFIXES = ("", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
# What ends Go's strings.TrimSpace, and what JSON does not escape.
SPACES = " \x85\xa0\u1680\u2003\u202f\u205f\u3000"

_digits = st.text("0123456789", max_size=5) | st.text("0123456789", max_size=30) | st.text("0", max_size=70)
_exponents = (
    st.integers(-100, 100)
    | st.integers(-400, 400)
    | st.builds(
        # Only the lowest 32 bits of an exponent count.
        lambda wraps, low: wraps * 2**32 + low,
        st.integers(-(2**31), 2**31),
        st.integers(-40, 40),
    )
)
_powers = st.builds("{}{}{}{}".format, st.sampled_from("eE"), st.sampled_from(["", "+", "0"]), st.just(""), _exponents)
_numbers = st.builds("{}{}{}".format, _digits, st.sampled_from(["", "", "."]), _digits)
_spelled = st.builds(
    "{}{}{}".format, st.sampled_from(["", "", "+", "-"]), _numbers, st.sampled_from(SUFFIXES) | _powers
)
_padded = st.builds("{}{}{}".format, st.text(SPACES, max_size=2), _spelled, st.text(SPACES, max_size=2))
_anything = st.text("0123456789.+-eEinumkKMGTP ", max_size=12) | st.text(
    "1.eEkKi_,'\"\\/٣½１\t\n\x00\u200b", max_size=6
)

texts = _spelled | _spelled | _padded | _anything
numbers = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)

_EXPONENT = re.compile(r"[eE]([+-]?[0-9]+)\s*$")


def is_endless(text: str) -> bool:
    """Tell whether the original would write a number of thousands, or of billions, of digits."""
    found = _EXPONENT.search(text)
    return found is not None and abs((int(found[1]) + 2**31) % 2**32 - 2**31) > 400
