from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpugate.webhook.project.find import ProjectFileError, find

if TYPE_CHECKING:
    from collections.abc import Callable

    Tree = Callable[[dict[str, str]], Path]

OURS = "[tool.gpugate]\n"
OTHERS = "[project]\ndependencies = ['gpugate']\n"

# What there is, the working directory, and the file that holds there.
FOUND: dict[str, tuple[dict[str, str], str, str | None]] = {
    "in the directory": ({".gpugate.yaml": ""}, "", ".gpugate.yaml"),
    "above, up to the root of the repository": ({".git/": "", ".gpugate.yaml": "", "a/b/": ""}, "a/b", "../../.gpugate.yaml"),
    "in a work tree, where .git is a file": ({".git": "", ".gpugate.yaml": "", "a/": ""}, "a", "../.gpugate.yaml"),
    "the nearest": ({".git/": "", ".gpugate.yaml": "", "a/.gpugate.yaml": "", "a/b/": ""}, "a/b", "../.gpugate.yaml"),
    "not above the repository": ({".gpugate.yaml": "", "a/.git/": "", "a/b/": ""}, "a/b", None),
    "above, up to $HOME": ({"home/.gpugate.yaml": "", "home/a/": ""}, "home/a", "../.gpugate.yaml"),
    "not above $HOME": ({".gpugate.yaml": "", "home/a/": ""}, "home/a", None),
    "not above where there is neither": ({"x/.gpugate.yaml": "", "x/a/": ""}, "x/a", None),
    "pyproject.toml": ({"pyproject.toml": OURS}, "", "pyproject.toml"),
    "not pyproject.toml of others": ({".git/": "", "a/pyproject.toml": OTHERS, "pyproject.toml": OURS}, "a", "../pyproject.toml"),
    "not pyproject.toml that is not TOML, without our name": ({"pyproject.toml": "a = ["}, "", None),
    "nothing": ({"a/": ""}, "a", None),
}  # fmt: skip


@pytest.mark.parametrize(("files", "directory", "expected"), FOUND.values(), ids=FOUND)
def test_the_nearest_file_holds(files: dict[str, str], directory: str, expected: str | None, tree: Tree) -> None:
    root = tree(files)

    found = find(root / directory, {"HOME": str(root / "home")})

    assert (str(found.file) if found else None) == expected


def test_the_variable_names_another(tree: Tree) -> None:
    found = find(tree({".gpugate.yaml": ""}), {"GPUGATE_CONFIG": "other/gpugate.yaml"})

    assert found is not None
    assert found.file == Path("other/gpugate.yaml")


def test_of_both_beside_each_other_one_wins_and_the_other_is_told(tree: Tree) -> None:
    found = find(tree({".gpugate.yaml": "", "pyproject.toml": OURS}), {})

    assert found is not None
    assert (found.file, found.remarks) == (
        Path(".gpugate.yaml"),
        ("pyproject.toml: [tool.gpugate] is not read, because .gpugate.yaml in the same directory takes precedence",),
    )


REFUSED = {
    "another suffix": (".gpugate.yml", "", r"^\.gpugate\.yml: gpugate does not read a file with this name: rename it to \.gpugate\.yaml$"),
    "without the dot": ("gpugate.yaml", "", r"^gpugate\.yaml: gpugate does not read a file with this name"),
    "not TOML": ("pyproject.toml", "[tool.gpugate]\nselect = [\n", r"^pyproject\.toml:2:1: not TOML: invalid value$"),
    "no table": ("pyproject.toml", "[tool]\ngpugate = 1\n", r"^pyproject\.toml: tool\.gpugate must be a table: write \["),
}  # fmt: skip


@pytest.mark.parametrize(("name", "text", "message"), REFUSED.values(), ids=REFUSED)
def test_a_file_that_would_not_be_read_as_meant_is_refused(name: str, text: str, message: str, tree: Tree) -> None:
    with pytest.raises(ProjectFileError, match=message):
        find(tree({name: text}), {})


def test_what_is_no_regular_file_is_not_read(tree: Tree) -> None:
    root = tree({"a/": ""})
    (root / "a/pyproject.toml").symlink_to("/dev/zero")

    assert find(root / "a", {}) is None
