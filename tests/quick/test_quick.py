from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from quick import changed, choose

if TYPE_CHECKING:
    from pathlib import Path

POLICY = "from gpugate.policies.sdk.field import Field\n"
FILES = {
    "policies/pods/own.py": POLICY + "from gpugate.policies.pods.helper import find\n",
    "policies/pods/other.py": POLICY,
    "policies/pods/helper.py": "",
    "policies/pods/examples/own/bad-pod.yaml": "",
    "policies/pods/examples/other/bad-pod.yaml": "",
    "tests/policies/test_examples.py": "",
    "tests/webhook/admission/test_both_entry_points.py": "",
    "tests/webhook/report/test_text.py": "import layout\n",
    "tests/webhook/report/test_text_colour.py": "",
    "tests/webhook/report/json/test_keys.py": "from gpugate.webhook.report import places, quoting\n",
    "tests/webhook/report/layout.py": "",
    "tests/webhook/report/conftest.py": "",
    "tests/webhook/test_others.py": "    from gpugate.webhook.report.places import Place\n",
    "tests/slow/test_load.py": "import gpugate.webhook.report.places\n",
}
EXAMPLES = {"tests/policies/test_examples.py", "tests/webhook/admission/test_both_entry_points.py"}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


TESTS = {
    "a test": ("tests/webhook/test_others.py", ["tests/webhook/test_others.py"]),
    "a slow test": ("tests/slow/test_load.py", []),
    "a module with tests of its name": (
        "webhook/report/text.py",
        ["tests/webhook/report/test_text.py", "tests/webhook/report/test_text_colour.py"],
    ),
    "a module with a folder of tests": ("webhook/report/json.py", ["tests/webhook/report/json/test_keys.py"]),
    "a module that tests import": (
        "webhook/report/places.py",
        ["tests/webhook/report/json/test_keys.py", "tests/webhook/test_others.py"],
    ),
    "a module whose package has tests": (
        "webhook/report/html/page.py",
        ["tests/webhook/report/test_text.py", "tests/webhook/report/test_text_colour.py"],
    ),
    "a helper of tests": ("tests/webhook/report/layout.py", ["tests/webhook/report/test_text.py"]),
    "fixtures of a folder": (
        "tests/webhook/report/conftest.py",
        ["tests/webhook/report/test_text.py", "tests/webhook/report/test_text_colour.py"],
    ),
    "what is no module": ("Makefile", []),
}


@pytest.mark.parametrize(("name", "chosen"), TESTS.values(), ids=TESTS)
def test_the_tests_of_a_file(tree: Path, name: str, chosen: list[str]) -> None:
    choice = choose([name], tree)

    assert sorted(choice.files) == chosen
    assert choice.without == ([] if chosen else [name])


NAMED = {
    "a policy": ("policies/pods/own.py", {file: {"pods/own/"} for file in EXAMPLES}),
    "an example": ("policies/pods/examples/other/bad-pod.yaml", {file: {"pods/other/"} for file in EXAMPLES}),
    "what a policy imports": ("policies/pods/helper.py", {file: {"pods/own/"} for file in EXAMPLES}),
    "a page": ("docs/install.md", {"tests/docs/test_blocks.py": {"docs/install.md:"}}),
}


@pytest.mark.parametrize(("name", "named"), NAMED.values(), ids=NAMED)
def test_examples_and_pages_are_chosen_by_name(tree: Path, name: str, named: dict[str, set[str]]) -> None:
    choice = choose([name], tree)

    assert (choice.named, choice.files, choice.without) == (named, set(), [])


def git(directory: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=tests", "-c", "user.email=tests@example.com", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", directory, *identity, *arguments], check=True, capture_output=True)  # noqa: S603, S607 -- fixed words


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--initial-branch", "main")
    for name in ("kept.py", "deleted.py", "changed.py"):
        (tmp_path / name).write_text("")
    (tmp_path / ".gitignore").write_text("ignored.py\n")
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--message", "first")
    return tmp_path


def test_on_main_what_is_not_committed_has_changed(repository: Path) -> None:
    (repository / "changed.py").write_text("1\n")
    (repository / "deleted.py").unlink()
    (repository / "new.py").touch()
    (repository / "ignored.py").touch()

    assert changed(repository) == ["changed.py", "new.py"]


def test_on_a_branch_its_commits_have_changed_and_those_of_main_have_not(repository: Path) -> None:
    git(repository, "switch", "--create", "branch")
    (repository / "of the branch.py").touch()
    git(repository, "add", "--all")
    git(repository, "commit", "--message", "second")
    git(repository, "switch", "main")
    git(repository, "commit", "--allow-empty", "--message", "third")
    git(repository, "switch", "branch")
    (repository / "changed.py").write_text("1\n")

    assert changed(repository) == ["changed.py", "of the branch.py"]
    assert changed(repository, "HEAD") == ["changed.py"]
