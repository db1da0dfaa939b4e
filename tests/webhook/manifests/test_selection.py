from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpugate.webhook.manifests.inputs import Selection

if TYPE_CHECKING:
    from pathlib import Path

EXCLUDED = {
    "a name at any depth": ("vendor", "a/vendor/b.yaml", True),
    "a pattern of names": ("*.draft.yaml", "a/b.draft.yaml", True),
    "a part of a name": ("vend", "vendor/b.yaml", False),
    "a directory": ("vendor/", "a/vendor/b.yaml", True),
    "a path": ("a/b.yaml", "a/b.yaml", True),
    "a path elsewhere": ("a/b.yaml", "c/a/b.yaml", False),
    "a directory above": ("a/b", "a/b/c/d.yaml", True),
    "a star is one directory": ("a/*/d.yaml", "a/b/c/d.yaml", False),
    "two stars are any": ("a/**/d.yaml", "a/b/c/d.yaml", True),
    "two stars are none": ("a/**/d.yaml", "a/d.yaml", True),
    "two stars at the beginning": ("**/d.yaml", "a/b/d.yaml", True),
    "two stars at the end": ("a/**", "a/b/d.yaml", True),
    "a path with a dot": ("./a.yaml", "./a.yaml", True),
    "a path with a dot is no name": ("./a.yaml", "b/a.yaml", False),
    "a path above": ("../x/*.yaml", "../x/a.yaml", True),
}


@pytest.mark.parametrize(("pattern", "path", "excluded"), EXCLUDED.values(), ids=EXCLUDED)
def test_a_pattern_is_for_names_or_for_paths(pattern: str, path: str, excluded: bool) -> None:  # noqa: FBT001 -- a column
    assert Selection((pattern,)).excludes(path) is excluded


def test_an_absolute_pattern_is_for_absolute_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert Selection((f"{tmp_path}/a/*",)).excludes("a/b.yaml")


def test_no_pattern_takes_long() -> None:
    pattern = "/".join(["**", "*a*a*a*b"] * 40)

    assert not Selection((pattern,)).excludes("/".join(["a" * 50] * 200))


def test_a_link_to_a_changed_file_is_changed(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").touch()
    (tmp_path / "b.yaml").symlink_to(tmp_path / "a.yaml")
    selection = Selection(changed=frozenset({str((tmp_path / "a.yaml").resolve())}))

    assert not selection.is_unchanged(str(tmp_path / "b.yaml"))
    assert selection.is_unchanged(str(tmp_path / "c.yaml"))


def test_a_pattern_of_very_many_parts_is_no_trouble() -> None:
    assert Selection(exclude=("**/" * 3000 + "a.yaml",)).excludes("x/a.yaml")
