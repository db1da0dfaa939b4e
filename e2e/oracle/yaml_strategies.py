"""YAML documents in every style, whole and with mistakes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

_WORDS = """
y n on off yes NO True FALSE null ~ Null nan .nan .inf -.Inf +.INF << = ! !!str & * - ? : | > % @ ` # , [ ] { } --- ...
0 1 -1 +1 1.0 1. .5 -.5 1e3 1E+3 1e 1.e1 0x1F 0o14 014 08 0b101 0b2 -0b1 +0x1 0x -0o7 1_000 _1 1__0 1_ 0_7 0x_1 1:30
190:20:30 9223372036854775807 9223372036854775808 -9223372036854775808 -9223372036854775809 18446744073709551615
18446744073709551616 1e400 -1e400 12345e6789 1e-400 5e-324 1e21 1e20 123456789.125 0.1 1e-7 16777217.5 2026-11-21
2026-11-21T10:00:00Z 0.0 -0 -0.0 2001-1-1 1.2.3 1.5Gi 100m ab=c a#b a:b what? b?c é ½ 日本 😀
"""
WORDS = tuple(_WORDS.split())
TAGS = (
    "!!str",
    "!!int",
    "!!float",
    "!!bool",
    "!!null",
    "!!binary",
    "!!timestamp",
    "!!map",
    "!!seq",
    "!own",
    "!",
    "!!set",
)
HOSTILE = "\t\n\r \x00\x07\x85\xa0\u2028\ufeff\x1b:-?[]{},#&*!|>'\"%@`\\~<=."

words = st.sampled_from(WORDS)
numbers = st.text("0123456789abcdefxXoObB_+-.eE:", min_size=1, max_size=10)
texts = st.text("ab1 -:#'\"\\\n,[]{}&*!|>%@`~é\t", max_size=8)
plain = words | words | numbers | st.floats().map(repr) | st.integers(-(2**66), 2**66).map(str)
names = st.sampled_from(["a", "b", "c", "metadata", "spec", "1", "y", "null", "1.5", "0x10", "<<", "é"])


def double_quoted(text: str) -> str:
    """Write a text in double quotes."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'


def single_quoted(text: str) -> str:
    """Write a text in single quotes; lines are folded."""
    return "'{}'".format(text.replace("'", "''"))


scalars = (
    plain
    | texts
    | texts.map(double_quoted)
    | texts.map(single_quoted)
    | st.builds("{} {}".format, st.sampled_from(TAGS), plain | texts.map(double_quoted))
    | st.sampled_from(
        ["*a", "*b", "&a 1", "&b x", "&a [1, 2]", "&b {k: 1}", r'"\x41\u00e9\U0001F600\_\N\L\e\0\/"', '"a\\\n  b"']
    )
)


def _flow(inner: SearchStrategy[str]) -> SearchStrategy[str]:
    pair = st.builds("{}: {}".format, names | plain, inner)
    return st.builds("[{}]".format, st.lists(inner, max_size=3).map(", ".join)) | st.builds(
        "{{{}}}".format, st.lists(pair, max_size=3).map(", ".join)
    )


flows = st.recursive(scalars, _flow, max_leaves=5)


@st.composite
def blocks(draw: DrawFn, indent: int = 0, depth: int = 0) -> str:
    """Draw the lines of a value that stands in an indented block."""
    pad = " " * indent
    kind = draw(st.sampled_from(["mapping", "mapping", "sequence", "text", "scalar"])) if depth < 3 else "scalar"
    anchor = draw(st.sampled_from(["", "", "", "&a ", "&b ", "!!map ", "!own "]))
    if kind == "scalar":
        return f" {anchor}{draw(flows)}{draw(st.sampled_from(['', '', ' # comment', '#none']))}\n"
    if kind == "text":
        style = draw(st.sampled_from("|>")) + draw(st.sampled_from(["", "-", "+", "2", "2-", "+1"]))
        lines = draw(st.lists(texts, max_size=3))
        return f" {anchor}{style}\n" + "".join(f"{pad}  {line}\n" for line in lines)
    items = draw(st.lists(st.tuples(names, blocks(indent + draw(st.sampled_from([1, 2, 4])), depth + 1)), max_size=3))
    if kind == "sequence":
        return f" {anchor}\n" + "".join(f"{pad}-{value}" for _, value in items)
    return f" {anchor}\n" + "".join(f"{pad}{name}:{value}" for name, value in items)


@st.composite
def documents(draw: DrawFn) -> str:
    """Draw a whole document."""
    start = draw(st.sampled_from(["", "", "", "---", "--- # c", "%YAML 1.1\n---", "\ufeff", "# c\n", "\n\n"]))
    body = draw(blocks())
    end = draw(st.sampled_from(["", "", "", "...\n", "# end", "\n\n", "...\n# end\n"]))
    return start + (body if start.endswith("---") else body.lstrip(" \n")) + end


@st.composite
def mistaken(draw: DrawFn) -> str:
    """Draw a document in which a few characters were changed."""
    text = draw(documents())
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(text)))
        cut = draw(st.integers(0, 2))
        text = text[:at] + draw(st.text(HOSTILE, max_size=2)) + text[at + cut :]
    return text


def in_place(scalar: str) -> Any:
    """Draw a document that holds a scalar as it is: alone, as an item, a value or a key."""
    return st.sampled_from([scalar, f"- {scalar}\n", f"a: {scalar}\n", f"{scalar}: a\n", f"{{{scalar}: {scalar}}}"])
