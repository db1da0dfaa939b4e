"""The rule for modules in CONTRIBUTING.md, as far as a program can check it."""

from __future__ import annotations

import ast
from collections import defaultdict
from itertools import groupby
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("certs", "policies", "tools", "webhook")
LINES = 600
FAMILY = 5
# Modules that have one importer, beside them, and are modules all the same.
KEPT = {
    "webhook.admission.shadow": "when reviews are evaluated again; the worker connects it with its files and its cluster data",
    "webhook.admission.policy_events": "runs in a process of its own, which `serve` starts",
    "webhook.admission.tracing": "imported only with `--trace`, because its package is an extra",
    "webhook.audit.facts": "the implementation of `Facts` for audits; the scan fills it",
    "webhook.fleet.engine": "the only one that knows engines; the report knows their tables",
    "webhook.audit.cost.waste": "one of the subjects of a cost report",
    "tools.command_reference": "one of the generators",
    "tools.policy_page": "one of the generators",
    "tools.sdk_page": "one of the generators",
    "webhook.bundle.archive": "reads hostile bytes, without files and connections",
    "webhook.own_policies.load": "imported only if there are policies outside the library",
    "webhook.testing.pytest_plugin.builders": "fixtures for users, with an API of their own",
    "webhook.testing.pytest_plugin.fixtures": "fixtures for users, without what they import on first use",
    "webhook.testing.pytest_plugin.items": "collection, which pytest calls through hooks",
    "webhook.simulate.page": "an output format, with a design of its own",
    "webhook.rendering.chart_places": "Helm's half of the mapping",
    "webhook.rendering.isolate": "a script that runs without the package",
    "webhook.rendering.kustomization_places": "kustomize's half of the mapping",
    "webhook.rendering.process": "bounds of any program, `render` chooses the program",
    "webhook.audit.formats.html.closing": "a section of the page",
    "webhook.audit.formats.html.overview": "a section of the page",
    "webhook.audit.formats.html.page": "an output format, found by its name",
    "webhook.audit.formats.text": "an output format, found by its name",
    "webhook.report.concise": "an output format, found by its name",
    "tools.schema_tables.tables": "a step of the build",
    "webhook.schemas.metadata": "its own part of the API conventions",
    "webhook.schemas.values": "its own package of the API server, kube-openapi",
}


@pytest.fixture(scope="module")
def modules() -> dict[str, ast.Module]:
    """Read every module of the program, by name."""
    files = (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py")))
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): ast.parse(path.read_text(encoding="utf-8"))
        for path in files
    }


@pytest.fixture(scope="module")
def importers(modules: dict[str, ast.Module]) -> dict[str, set[str]]:
    """Return the modules that import each module."""
    found = defaultdict(set)
    for name, tree in modules.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                module = node.module.removeprefix("gpugate.")
                for imported in (module, *(f"{module}.{alias.name}" for alias in node.names)):
                    if imported in modules and imported != name:
                        found[imported].add(name)
    return found


def lines(module: str) -> int:
    return (ROOT / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8").count("\n")


def test_a_module_with_one_importer_beside_it_is_a_section_of_it(importers: dict[str, set[str]]) -> None:
    single = {module: next(iter(by)) for module, by in importers.items() if len(by) == 1}
    sections = {
        module
        for module, by in single.items()
        if module.rpartition(".")[0] == by.rpartition(".")[0]
        and lines(module) + lines(by) <= LINES
        # A command is how a feature is called. What it calls is the feature.
        and not by.endswith("command")
    }
    assert sections - KEPT.keys() == set()
    assert KEPT.keys() - sections == set()


def test_no_five_modules_of_a_package_differ_only_in_a_suffix(modules: dict[str, ast.Module]) -> None:
    by_folder = defaultdict(list)
    for module in modules:
        folder, _, name = module.replace(".", "/").rpartition("/")
        if folder.startswith(("certs", "webhook")) and name.strip("_") != "init":
            by_folder[folder].append(name.strip("_").partition("_")[0])
    families = {
        (folder, word)
        for folder, words in by_folder.items()
        for word, names in groupby(sorted(words))
        if len(list(names)) >= FAMILY
    }
    assert families == set()
