"""Values are named by nouns of the field, such as `finding`, `manifest` and `location`, in the packages that say so already."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
PACKAGES = (
    "certs",
    "policies/cel",
    "policies/claims",
    "policies/data",
    "policies/disruption",
    "policies/engine",
    "policies/monitoring",
    "policies/nodeclasses",
    "policies/nodepools",
    "policies/pods",
    "policies/queues",
    "policies/quotas",
    "policies/scaling",
    "policies/sdk",
    "tools",
    "webhook/admission",
    "webhook/audit",
    "webhook/check",
    "webhook/cli",
    "webhook/cluster",
    "webhook/config",
    "webhook/fleet",
    "webhook/manifests",
    "webhook/operate",
    "webhook/own_policies",
    "webhook/project",
    "webhook/registration",
    "webhook/rendering",
    "webhook/report",
    "webhook/schemas",
    "webhook/simulate",
    "webhook/testing",
)
# A name that tells nothing of its value -> examples of a name that does.
PLAIN = {
    "asked": "request, requested, options",
    "each": "the singular of the list: finding, element, file",
    "found": "match, findings, parts",
    "given": "the kind of value: object, flag, config",
    "held": "the elements: manifests, facts",
    "judged": "evaluated, results",
    "kept": "remaining, the elements that remain",
    "made": "the new value: command, patched, result",
    "one": "left (and right), operand",
    "place": "location, index, position",
    "rest": "remainder, others",
    "said": "message, reasons",
    "seen": "observations, visited, counts",
    "shown": "printable, listed, entries",
    "told": "reported",
    "what": "subject, problem, units",
}
# Fields of the JSON that gpugate publishes have the names of its schema.
PUBLISHED = {("webhook/audit/model.py", "what")}


def bindings(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield the names that a module gives to values, parameters, attributes and functions, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node.lineno


def plain_names(text: str) -> list[str]:
    """Return each plain name that a module uses, as `line: name; write: better names`."""
    return [
        f"{line}: {name}; write: {PLAIN[name.strip('_')]}"
        for name, line in bindings(ast.parse(text))
        if name.strip("_") in PLAIN
    ]


@pytest.mark.parametrize("package", PACKAGES)
def test_values_are_named_by_nouns_of_the_field(package: str) -> None:
    faults = [
        f"{file.relative_to(ROOT)}:{fault}"
        for file in sorted((ROOT / package).rglob("*.py"))
        for fault in plain_names(file.read_text(encoding="utf-8"))
        if (str(file.relative_to(ROOT)), fault.split("; ")[0].split(": ")[1]) not in PUBLISHED
    ]
    assert faults == []


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("found = 1", ["found"]),
        ("for each in findings:\n    pass", ["each"]),
        ("[len(each) for each in files]", ["each"]),
        ("def read(what): ...", ["what"]),
        ("lambda one, other: one", ["one"]),
        ("def _place(): ...", ["_place"]),
        ("class Finding:\n    place: str", ["place"]),
        ("self._seen = set()", ["_seen"]),
        ("if (said := message()):\n    pass", ["said"]),
        ("finding.place", []),
        ("found_in = 1", []),
        ("write(place=location)", []),
    ],
)
def test_a_name_is_found_where_it_is_bound(text: str, names: list[str]) -> None:
    assert [fault.split("; ")[0].split(": ")[1] for fault in plain_names(text)] == names
