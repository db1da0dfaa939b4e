"""Files of manifests: documents and lists in every form, and what may stand between them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st
from oracle.yaml_strategies import HOSTILE

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

# What kubectl takes for a separator, what it takes for a mistake, and what only looks like one.
SEPARATORS = """---|--- |---\t|--- # c|---#x|---#x: ||---#|---\xa0#x|---\n---|---\n---#x|---\n\n---#x: ||# c\n---|---\n# c\n---
--- a|--- {a: 1}|---a|----|--- |\n  a|--- !x|%YAML 1.1\n---| ---|\ufeff---|...|...\n---|---\n...|"""
_KINDS = (
    ("example.org/v1", "Example"),
    ("v1", "ConfigMap"),
    ("v1", "Pod"),
    ("karpenter.sh/v1", "NodePool"),
    ("v1", "Config"),
    ("kustomize.config.k8s.io/v1beta1", "Kustomization"),
    ("gpugate.dev/v1", "PolicyConfig"),
    ("v1", "List"),
    ("v1", "PodList"),
    ("example.org/v1", "ExampleList"),
)
_NAMES = st.sampled_from(["a", "b", "c", "web-0"])
_OTHERS = st.sampled_from([None, "text", 3, [], [{"a": 1}], {}, {"a": 1}, {"items": []}, {"items": [{"a": 1}]}])
_ENDINGS = st.sampled_from(["\n"] * 8 + ["\r\n"] * 3 + ["\r", "\x85", "\u2028"])
_separators = st.sampled_from(["---"] * 12 + SEPARATORS.replace("||", "|\x00").split("|")).map(
    lambda written: written.replace("\x00", "|")
)


def _object(items: SearchStrategy[Any]) -> SearchStrategy[Any]:
    def made(kind: tuple[str, str], name: str, extra: dict[str, Any], missing: str, listed: Any) -> Any:
        whole = {"apiVersion": kind[0], "kind": kind[1], "metadata": {"name": name}, **extra}
        if listed is not ...:
            whole["items"] = listed
        return {key: value for key, value in whole.items() if key not in missing.split()}

    extra = st.sampled_from(
        [{}, {}, {"data": {"a": "b"}}, {"spec": {"n": 1.0, "s": "x\ny"}}, {"kind": 5}, {"apiVersion": ""}]
    )
    missing = st.sampled_from(
        ["", "", "", "", "metadata", "apiVersion", "kind", "apiVersion kind", "apiVersion metadata"]
    )
    return st.builds(made, st.sampled_from(_KINDS), _NAMES, extra, missing, items)


_plain = _object(st.just(...))
_items = st.lists(_plain | _plain | _object(st.none() | st.lists(_plain, max_size=1)) | _OTHERS, max_size=3)
_values = _plain | _plain | _object(_items | _items | st.sampled_from([None, {}, "a", 1])) | _OTHERS


def _block(value: Any, indent: str) -> str:
    if isinstance(value, dict) and value:
        return "".join(f"{indent}{key}:{_nested(member, indent)}" for key, member in value.items())
    if isinstance(value, list) and value:
        return "".join(f"{indent}-{_nested(member, indent)}" for member in value)
    return f"{indent}{json.dumps(value)}\n"


def _nested(value: Any, indent: str) -> str:
    return (
        f"\n{_block(value, indent + '  ')}" if isinstance(value, dict | list) and value else f" {json.dumps(value)}\n"
    )


def _flow(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_flow(member)}' for key, member in value.items())}}}"
    return f"[{', '.join(map(_flow, value))}]" if isinstance(value, list) else json.dumps(value)


@st.composite
def _written(draw: DrawFn) -> str:
    """Draw a document in some style."""
    style = draw(st.sampled_from(["block"] * 4 + ["flow", "json", "json", "lines", "mistaken", "empty"]))
    if style == "empty":
        return draw(st.sampled_from(["", "\n", "# c\n", "null\n", "~\n", " \t\n"]))
    value = draw(_values)
    if style == "block":
        return _block(value, draw(st.sampled_from(["", "", "", "  "])))
    if style == "flow":
        return f"{_flow(value)}\n"
    written = json.dumps(value, indent=2 if style == "lines" else None)
    if style == "mistaken":
        return draw(st.sampled_from([f"{written[:-1]},}}", f"{written[:-1]}", f"{written} # c", f" {written}x"])) + "\n"
    return written + draw(st.sampled_from(["\n", "\n", "", " ", "\n\n", "\n  "]))


@st.composite
def streams(draw: DrawFn) -> bytes:
    """Draw the bytes of a file."""
    text = draw(st.sampled_from(["", "", "", "", "\n", "# c\n", " \n", "\x0b"]))
    for _ in range(draw(st.integers(1, 5))):
        if draw(st.integers(0, 3)):
            text += (
                ("\n" if text and not text.endswith("\n") and draw(st.integers(0, 5)) else "")
                + draw(_separators)
                + "\n"
            )
        text += draw(_written())
    if draw(st.integers(0, 9)) == 0:
        at = draw(st.integers(0, len(text)))
        text = text[:at] + draw(st.text(HOSTILE, max_size=2)) + text[at + draw(st.integers(0, 2)) :]
    ending = draw(_ENDINGS)
    text = text.replace("\n", ending) if draw(st.booleans()) else text.replace("\n", ending, 1)
    if draw(st.integers(0, 5)) == 0:
        text = text.removesuffix("\n")
    codec = draw(st.sampled_from(["utf-8"] * 6 + ["utf-8-sig", "utf-16"]))
    return text.encode(codec)
