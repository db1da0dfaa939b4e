"""Any text is refused or evaluated, and any document is refused or loaded: there is no other exception."""

from __future__ import annotations

import contextlib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gpugate.policies.cel.documents import DocumentError, load_documents
from gpugate.policies.cel.expressions import Environment, compile_expression
from gpugate.policies.cel.functions import GLOBAL, MEMBER
from gpugate.policies.cel.syntax import ExpressionError
from gpugate.policies.cel.values import DYN, EvaluationError, Scope

ENVIRONMENT = Environment({"object": DYN}, {})
SIGNS = (
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ".",
    ".?",
    "[?",
    ",",
    ":",
    "?",
    "!",
    "-",
    "+",
    "*",
    "/",
    "%",
    "<",
    ">=",
    "==",
    "in",
    "&&",
    "||",
)
WORDS = (
    "object",
    "x",
    "a",
    "has",
    "all",
    "exists",
    "map",
    "filter",
    "optMap",
    "true",
    "null",
    "namespace",
    "int",
    "sets",
)
CONSTANTS = (
    "1",
    "-1",
    "1u",
    "0.5",
    "1e400",
    "99999999999999999999",
    "'a'",
    "r'\\'",
    "b'\\xff'",
    '"',
    "'''",
    "'(a*)*'",
    "\\",
    "#",
)
TOKENS = st.sampled_from((*SIGNS, *WORDS, *CONSTANTS, *GLOBAL, *MEMBER))
LEAVES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5))
JSON = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.sampled_from("abx"), inner)),
    max_leaves=10,
)


@given(
    st.one_of(st.lists(TOKENS, max_size=12).map(" ".join), st.lists(TOKENS, max_size=12).map("".join), st.text()), JSON
)
def test_any_text_is_refused_or_evaluated(text: str, value: Any) -> None:
    with contextlib.suppress(ExpressionError, EvaluationError):
        compile_expression(text, ENVIRONMENT, gives=DYN).run(Scope({"object": value}))


KEYS = st.sampled_from(
    [
        "apiVersion",
        "kind",
        "id",
        "title",
        "why",
        "mode",
        "match",
        "kinds",
        "conditions",
        "params",
        "validations",
        "expression",
    ]
)
TEXTS = st.sampled_from(
    ["gpugate.dev/v1", "Policy", "acme/a", "Pod", "warn", "true", "gpu.pod.gpus > 1", "message", ""]
)
DOCUMENTS = st.recursive(
    st.one_of(LEAVES, TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=12)),
    max_leaves=12,
)
VALID = {
    "apiVersion": "gpugate.dev/v1",
    "kind": "Policy",
    "id": "acme/a",
    "title": "a",
    "why": "b",
    "match": {"kinds": ["Pod"]},
    "validations": [{"expression": "true", "message": "m"}],
}


@given(DOCUMENTS, st.dictionaries(KEYS, DOCUMENTS, max_size=2))
def test_any_document_is_refused_or_loaded(document: Any, changed: dict[str, Any]) -> None:
    for candidate in (document, {**VALID, **changed}):
        with contextlib.suppress(DocumentError):
            load_documents([candidate], "x")
