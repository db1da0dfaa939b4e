"""Objects, and changes to them as policies say them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from gpugate.policies.sdk.findings import Patch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hypothesis.strategies import DrawFn

    from gpugate.policies.sdk.field import Json, Path

# Few, so that patches meet what is there; with what a pointer escapes, and what looks like an index.
KEYS = ("a", "b", "spec", "nvidia.com/gpu", "m~n", "~1", "~01", "", "0", "-", "é😀")

_keys = st.sampled_from(KEYS)
_scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
)
values = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_keys, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(_keys, values, min_size=1, max_size=4)


def paths_in(value: Json, path: Path = ()) -> Iterator[Path]:
    """Yield every path of a value, beginning with its own."""
    yield path
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield from paths_in(member, (*path, key))


@st.composite
def changes(draw: DrawFn, obj: Json) -> Patch:
    """Draw a change to what an object has, or may have."""
    known = draw(st.sampled_from(list(paths_in(obj))))
    more = draw(st.lists(_keys | st.integers(0, 3), min_size=0 if known else 1, max_size=2))
    return Patch(draw(st.sampled_from(["set", "append", "remove"])), (*known, *more), draw(values), "")
