"""What the policy library and its fixes write uses the words of Kubernetes and of its documentation, one for each concept."""

from __future__ import annotations

import ast
import datetime as dt
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from library_examples import library_example, ruleset_of

import gpugate.policies
import gpugate.webhook
from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.defaults import with_defaults
from gpugate.policies.engine.evaluate import evaluate
from gpugate.webhook.manifests.load import RunFacts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpugate.policies.sdk.policy import Policy

ROOT = Path(gpugate.policies.__file__).parent
TODAY = dt.date(2026, 11, 22)

# What a reader has to read twice -> what to write instead. Whole words, in any case.
WORDS = {
    "nobody|no one": "what is missing: the cost cannot be attributed",
    "(who|what)ever": "who does it; regardless of",
    "(every|any|some)(body|one)": "who does it, or the passive",
    "told|tells? apart": "given, configured, reported; distinguishes",
    "judg(e|es|ed|ing|ement)": "evaluate",
    "mend(s|ed|ing)?": "fix, correct",
    "lack(s|ed|ing)?": "does not have; missing",
    # "is no longer served" is ordinary English.
    "(is|are|was) no(?! longer| more)": "is not a, invalid, unknown",
    "there (is|are) (no|none|nothing)": "subject and verb: no node has the label",
    "(is|are) (called|named) so": "unknown",
    "of (its|their|your|his|ours?|one's)( own)?(?= *([.,;:)]|$))|of (its|their|your) own": "its own, your",
    "(is|are|be) (gone|away)|go(es)? away": "is removed, is unavailable",
    "for ever": "indefinitely, forever",
    "(let|lets|left) (pass|alone|off|through)|lets? [a-z]+ (off|pass)": "is not reported, is exempt, allows",
    "stand(s|ing)? (here|there|at|in|under|behind|between|against|for)": "is in, is at, means",
    "hand(s|ed|ing)? (out|on)": "allocates, exposes, passes",
    "(is|nothing is|nothing) (said|says)|says? so|be it": "is reported, states",
    "dear(er|est)": "more expensive, most expensive",
    "look(s|ed|ing)? at": "evaluate, read, check",
    "beside": "in addition to, next to, besides",
    "as good as": "the same as",
    "(no|a|its) nodes? comes?": "Karpenter launches no node",
    "(is|are) fine|all the same|as ever|as it were|at rest": "is allowed",
    "takes? .{1,40} for (one|none|a|an)\\b|takes? the place": "treats as; replaces",
    "business of|matter of|see to": "is reported by",
    "speaks? of|the way down": "the name of the thing",
}
PATTERNS = tuple((re.compile(rf"\b(?:{words})\b", re.IGNORECASE), use) for words, use in WORDS.items())

# The modules whose strings become messages: of the library, and of the edits that a fix refuses.
EDITS = (
    Path(gpugate.webhook.__file__).parent / "manifests/edit.py",
    Path(gpugate.webhook.__file__).parent / "check/fix.py",
)
MODULES = (*sorted(file for file in ROOT.glob("*/*.py") if file.parent.name != "data"), *EDITS)


def faults(texts: Iterable[str]) -> list[str]:
    """Return each word that is not to be used, with its text and what to write instead."""
    return [
        f"{' '.join(text.split())[:200]!r} has {found[0]!r}; write: {use}"
        for text in texts
        for pattern, use in PATTERNS
        for found in pattern.finditer(" ".join(text.split()))
    ]


@cache
def findings_of_examples() -> dict[str, frozenset[str]]:
    """Return policy id -> every message, reason, fix, patch and skip that its examples give."""
    texts: dict[str, set[str]] = {policy.id: set() for policy in CATALOG}
    for file in ROOT.glob("*/examples/*/*.yaml"):
        example = library_example(file)
        request = with_defaults(example.request)
        facts = RunFacts((*example.context, request), complete=example.complete)
        verdict = evaluate(ruleset_of(example.config), request, facts, today=TODAY)
        for finding in verdict.findings:
            texts[finding.policy] |= {finding.message, finding.why, finding.hint}
        for outcome in verdict.outcomes:
            texts[outcome.policy] |= {patch.reason for patch in outcome.patches} | set(outcome.skipped)
    return {policy: frozenset(found) for policy, found in texts.items()}


def documentation_of(policy: Policy) -> Iterator[str]:
    """Yield the documentation of a policy without its sources, whose titles are quoted, and that of its parameters."""
    yield policy.doc.partition("\n## Sources")[0]
    yield from {handler.params.__doc__ or "" for handler in policy.handlers}


def strings_of(file: Path) -> Iterator[str]:
    """Yield the strings that a module may write, with `x` for what is filled in, but no documentation."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    documentation = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "x" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield node.value


def comments_of(file: Path) -> Iterator[str]:
    """Yield the comments of an example."""
    for line in file.read_text(encoding="utf-8").splitlines():
        yield line.partition("# ")[2]


@pytest.mark.parametrize("policy", CATALOG, ids=lambda policy: policy.id)
def test_findings_use_the_words_of_the_field(policy: Policy) -> None:
    assert faults(findings_of_examples()[policy.id]) == []


@pytest.mark.parametrize("policy", CATALOG, ids=lambda policy: policy.id)
def test_documentation_uses_the_words_of_the_field(policy: Policy) -> None:
    assert faults(documentation_of(policy)) == []


@pytest.mark.parametrize("file", MODULES, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_strings_use_the_words_of_the_field(file: Path) -> None:
    assert faults(strings_of(file)) == []


@pytest.mark.parametrize("policy", CATALOG, ids=lambda policy: policy.id)
def test_comments_of_examples_use_the_words_of_the_field(policy: Policy) -> None:
    family, _, name = policy.id.partition("/")
    files = sorted((ROOT / family / "examples" / name.replace("-", "_")).glob("*.yaml"))
    assert faults(comment for file in files for comment in comments_of(file)) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("missing labels team, cost-center: nobody can be charged", "nobody"),
        ("template is no object", "is no"),
        ("v1beta1 is no longer served", ""),
        ("make a pool of their own for these types", "of their own"),
        ("the DaemonSet of their namespace", ""),
    ],
)
def test_a_word_is_found_where_it_is_written(text: str, found: str) -> None:
    assert [fault.split(" has ")[1].split("; ")[0] for fault in faults([text])] == ([repr(found)] if found else [])
