"""What pages, templates, hooks, the Dockerfile and messages tell people and programs to install: nothing by a bare name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("docs", "integrations", "image", "webhook", "charts", "e2e")
FILES = (
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "action.yml",
    ".pre-commit-hooks.yaml",
    "Dockerfile",
    "Makefile",
)
SUFFIXES = (".md", ".py", ".sh", ".yml", ".yaml", ".txt", ".tpl")
# A program that installs, its command, and what it is told to install, up to the end of the command or of the sentence.
COMMAND = re.compile(
    r"\b(?:pip3?|pipx|uv|uvx|npm|npx|cargo)(?:(?: pip| tool)? (?:install|run|add|download|exec)(?=\s)| +(?=gpugate))(?P<words>[^\n;|&`#]*)"
)
WORD = re.compile(r"""'[^'\n]*'|"[^"\n]*"|[^\s'"]+""")
# Paths, URLs, names with a URL behind them, files of the lock, variables that are checked before they are used.
ALLOWED = re.compile(
    r"""-.*|[./].*|[a-z+]+://.*|[\w-]+(?:\[[\w,]+\])? @ [a-z+]+://.*|requirements/.*|\$.*|\\.*|\{.*|.*\}"""
)


def sources() -> list[Path]:
    found = [ROOT / name for name in FILES]
    for folder in FOLDERS:
        found += [file for file in sorted((ROOT / folder).rglob("*")) if file.suffix in SUFFIXES and file.is_file()]
    return found


def named(text: str) -> list[str]:
    """Return what commands in a text install by a name."""
    words = [word.strip("'\"") for found in COMMAND.finditer(text) for word in WORD.findall(found["words"])]
    return [word for word in words if word and not ALLOWED.fullmatch(word)]


def test_nothing_is_installed_by_a_name_of_the_index() -> None:
    found = {str(file.relative_to(ROOT)): named(file.read_text(encoding="utf-8")) for file in sources()}

    assert {file: names for file, names in found.items() if names} == {}


WORDS = {
    "a name": ("$ pip install gpugate\n", ["gpugate"]),
    "a name with an extra": ("pip install 'gpugate[webhook]'", ["gpugate[webhook]"]),
    "a name with a version": ("python -m pip install --quiet gpugate==0.1.0", ["gpugate==0.1.0"]),
    "a name that is run": ("uvx gpugate check .", ["gpugate", "check"]),
    "a path": ("pip install '.[webhook]'", []),
    "a commit": ("pip install 'gpugate @ git+https://example.com/gpugate@0123'", []),
    "a lock": ("pip install --require-hashes -r requirements/check.txt", []),
    "a variable": ('pip install --quiet "$GPUGATE_PACKAGE"', []),
}


@pytest.mark.parametrize(("text", "found"), WORDS.values(), ids=WORDS)
def test_names_are_found(text: str, found: list[str]) -> None:
    assert named(text) == found
