"""Runs the tests of what changed: `make quick`, or `python tests/quick/quick.py [--base COMMIT]`.

Changed are the files that differ from the merge base with `main`, committed or not, and the files that git does not track yet. On `main`
itself, these are the changes since `origin/main`, or since the last commit. `choose` says which tests belong to a file.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
SOURCES: Final = ("certs", "image", "policies", "tools", "webhook")
# These run whole servers, a browser or measurements, and have targets of their own.
_SLOW: Final = ("tests/bench/", "tests/browser/", "tests/engines/", "tests/slow/")
# Their tests are named after the policy, such as `pods/wildcard_toleration/`.
_OF_EXAMPLES: Final = ("tests/policies/test_examples.py", "tests/webhook/admission/test_both_entry_points.py")
# Its tests are named after the page and the line.
_OF_PAGES: Final = "tests/docs/test_blocks.py"
_NOTHING_COLLECTED: Final = 5
# From here on a second process saves more than it costs to start.
_FILES_FOR_TWO: Final = 4


@dataclass
class Choice:
    """The tests to run.

    Attributes:
        files: test files to run as a whole.
        named: test file -> beginnings of the names of its tests to run.
        without: changed files that no test here belongs to.
    """

    files: set[str] = field(default_factory=set)
    named: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    without: list[str] = field(default_factory=list)


def main(arguments: list[str]) -> int:
    """Choose the tests and run them; returns the first exit code that is not 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", default="", help="the commit to compare with (default: the merge base with main)")
    args = parser.parse_args(arguments)
    choice = choose(changed(ROOT, args.base), ROOT)
    if choice.without:
        print(f"only make test or make e2e cover: {', '.join(choice.without)}", flush=True)  # noqa: T201 -- says what is left out
    runs: list[list[str]] = []
    if choice.files:
        two = ["-n", "2", "--dist", "loadfile"] if len(choice.files) >= _FILES_FOR_TWO else []
        runs.append([*two, *sorted(choice.files)])
    if choice.named:
        names = sorted({name for each in choice.named.values() for name in each})
        runs.append(["-k", " or ".join(names), *sorted(choice.named)])
    codes = [_pytest(run) for run in runs]
    return next((code for code in codes if code), 0)


def _pytest(arguments: list[str]) -> int:
    command = [sys.executable, "-m", "pytest", "-q", *arguments]
    code = subprocess.run(command, cwd=ROOT, check=False).returncode  # noqa: S603 -- pytest, with arguments of ours
    # A page without a block has no test.
    return 0 if code == _NOTHING_COLLECTED and "-k" in arguments else code


def changed(root: Path, base: str = "") -> list[str]:
    """Return the paths of files that differ from a commit in the working tree, deleted ones left out."""
    since = base or _merge_base(root)
    names = _git(root, "diff", "--name-only", "--diff-filter=d", "-z", since)
    names += _git(root, "ls-files", "--others", "--exclude-standard", "-z")
    return sorted(filter(None, names.split("\0")))


def _merge_base(root: Path) -> str:
    branch = _git(root, "branch", "--show-current").strip()
    # A branch is compared with main, and main with what was last pushed.
    for other in ("origin/main",) if branch == "main" else ("main", "origin/main"):
        if found := _git(root, "merge-base", "HEAD", other, check=False).strip():
            return found
    return "HEAD"


def _git(root: Path, *arguments: str, check: bool = True) -> str:
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(command, check=check, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout  # noqa: S603 -- git, with arguments of ours


def choose(names: list[str], root: Path) -> Choice:
    """Return the tests that belong to files.

    A test file belongs to itself. A module `x/y.py` has `tests/x/test_y.py`, `tests/x/test_y_*.py` and `tests/x/y/`; where none of them is
    there, the tests that import it. A policy has its examples, and what policies import has theirs. A module without any of these has
    all tests of its folder. A helper of tests has the tests that import it, and a page has its blocks.
    """
    choice, tree = Choice(), _Tree(root)
    for name in names:
        examples = _examples(name, tree)
        files = _tests(name, tree) or (set() if examples else tree.nearest(Path(name)))
        choice.files |= files
        for file in _OF_EXAMPLES if examples else ():
            choice.named[file] |= examples
        if name.endswith(".md"):
            choice.named[_OF_PAGES].add(f"{name}:")
        elif not files and not examples:
            choice.without.append(name)
    return choice


def _tests(name: str, tree: _Tree) -> set[str]:
    path = Path(name)
    if path.suffix != ".py" or path.parts[0] not in {*SOURCES, "tests"} or name.startswith(_SLOW):
        return set()
    if path.parts[0] != "tests":
        return tree.mirrored(path) or tree.importing(tree.tests, _import_of(path))
    if path.name == "conftest.py":
        return tree.beside(path.parent)
    return {name} if path.name.startswith("test_") else tree.importing(tree.tests, rf"\b{path.stem}\b")


def _examples(name: str, tree: _Tree) -> set[str]:
    path = Path(name)
    match path.parts:
        case "policies", family, "examples", policy, _:
            return {f"{family}/{policy}/"}
        case "policies", family, *_ if path.suffix == ".py":
            policies = {file for file in tree.policies if Path(file).parts[1] == family}
            found = {name} & policies or tree.importing(dict.fromkeys(policies), _import_of(path))
            return {f"{family}/{Path(each).stem}/" for each in found}
    return set()


def _import_of(module: Path) -> str:
    """Return a pattern for the lines that import a module of the package."""
    package, name = ".".join(("gpugate", *module.parts[:-1])), module.stem
    whole = package if name == "__init__" else f"{package}.{name}"
    return rf"\b{re.escape(package)} import .*\b{name}\b|\b{re.escape(whole)}\b(?!\.)"


@dataclass
class _Tree:
    root: Path

    @cached_property
    def tests(self) -> dict[str, None]:
        """Every test file that may be chosen."""
        names = (file.relative_to(self.root).as_posix() for file in sorted((self.root / "tests").rglob("test_*.py")))
        return dict.fromkeys(name for name in names if not name.startswith(_SLOW))

    @cached_property
    def policies(self) -> list[str]:
        """Every module that has examples."""
        folders = self.root.glob("policies/*/examples/*")
        return [f"policies/{folder.parts[-3]}/{folder.name}.py" for folder in folders]

    @cached_property
    def _texts(self) -> dict[str, str]:
        return {}

    def importing(self, files: dict[str, None], pattern: str) -> set[str]:
        """Return those of some files with a line that imports what a pattern describes."""
        for name in files:
            if name not in self._texts and (self.root / name).is_file():
                self._texts[name] = (self.root / name).read_text(encoding="utf-8")
        line = re.compile(rf"^\s*(?:from|import) .*(?:{pattern})", re.MULTILINE)
        return {name for name in files if line.search(self._texts.get(name, ""))}

    def mirrored(self, module: Path) -> set[str]:
        folder = f"tests/{module.parent.as_posix()}"
        beginnings = (f"{folder}/test_{module.stem}.py", f"{folder}/test_{module.stem}_", f"{folder}/{module.stem}/")
        return {name for name in self.tests if name.startswith(beginnings)}

    def beside(self, folder: Path) -> set[str]:
        return {name for name in self.tests if Path(name).parent == folder}

    def nearest(self, module: Path) -> set[str]:
        """Return the tests of a module's folder, or of the nearest one above it that has some."""
        folders = module.parents if module.suffix == ".py" and module.parts[0] in SOURCES else ()
        return next(filter(None, (self.beside("tests" / folder) for folder in folders)), set())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
