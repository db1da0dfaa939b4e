from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpugate.webhook.manifests.git import GitError, changed_since, ignored

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not on PATH")


@pytest.fixture
def git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A repository in the working directory, with two commits; runs git in it."""
    root = tmp_path / "repository"
    root.mkdir()
    monkeypatch.chdir(root)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")

    def run(*arguments: str) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
        subprocess.run(["git", *who, *arguments], check=True, capture_output=True)  # noqa: S603, S607 -- fixed words

    run("init", "--quiet", "--initial-branch", "main")
    for name in ("kept.yaml", "gone.yaml", "old.yaml"):
        Path(name).write_text(f"a: {name}\n")
    Path(".gitignore").write_text("out/\n*.tmp.yaml\n")
    run("add", ".")
    run("commit", "--quiet", "--message", "first")
    run("tag", "first")
    Path("new.yaml").touch()
    run("add", ".")
    run("commit", "--quiet", "--message", "second")
    return run


def names(paths: frozenset[str]) -> list[str]:
    return sorted(str(Path(path).relative_to(Path.cwd().resolve())) for path in paths)


def test_what_git_ignores_is_named_by_whole_directories(git: Callable[..., None]) -> None:
    Path("deep/out").mkdir(parents=True)
    for name in ("deep/out/a.yaml", "deep/b.tmp.yaml", "deep/c.yaml", "tracked.tmp.yaml"):
        Path(name).touch()
    git("add", "--force", "tracked.tmp.yaml")

    assert names(ignored(["."])) == ["deep/b.tmp.yaml", "deep/out"]


@pytest.mark.usefixtures("git")
@pytest.mark.parametrize("directories", [["out/deep"], ["out/deep", "kept"], ["kept", "."]])
def test_an_ignored_directory_that_is_named_is_no_matter(directories: list[str]) -> None:
    for name in ("out/deep/a.yaml", "kept/a.tmp.yaml", "kept/b.yaml"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).touch()

    found = names(ignored(directories))

    assert "out/deep/a.yaml" not in found
    assert ("kept/a.tmp.yaml" in found) == ("kept" in directories)


@pytest.mark.usefixtures("git")
def test_a_name_that_looks_like_a_pattern_is_none() -> None:
    for directory in ("*", ":(top)"):
        Path(directory).mkdir()
    for name in ("*/a.tmp.yaml", "*/read.yaml", ":(top)/b.tmp.yaml", ":(top)/read.yaml", "c.tmp.yaml"):
        Path(name).touch()

    assert names(ignored(["*"])) == ["*/a.tmp.yaml"]
    assert names(ignored([":(top)"])) == [":(top)/b.tmp.yaml"]


@pytest.mark.usefixtures("git")
def test_a_repository_above_does_not_stand_in_for_one_that_is_broken() -> None:
    Path("broken/.git").mkdir(parents=True)

    with pytest.raises(GitError, match="not a git repository"):
        ignored(["broken"])


def test_outside_of_a_work_tree_nothing_is_ignored(tmp_path: Path) -> None:
    assert ignored([str(tmp_path)]) == frozenset()


@pytest.mark.usefixtures("git")
def test_what_differs_is_changed_whether_it_is_committed_or_not(git: Callable[..., None]) -> None:
    Path("kept.yaml").write_text("a: changed\n")
    Path("gone.yaml").unlink()
    git("mv", "old.yaml", "moved.yaml")
    Path("unknown.yaml").touch()
    Path("ignored.tmp.yaml").touch()

    changed = ["gone.yaml", "kept.yaml", "moved.yaml", "new.yaml", "old.yaml", "unknown.yaml"]
    assert names(changed_since("first", ["."])) == changed


def test_what_the_other_side_changed_meanwhile_is_not(git: Callable[..., None]) -> None:
    git("checkout", "--quiet", "-b", "other", "first")
    Path("theirs.yaml").touch()
    git("add", ".")
    git("commit", "--quiet", "--message", "theirs")
    git("checkout", "--quiet", "main")

    assert names(changed_since("other", ["."])) == ["new.yaml"]


@pytest.mark.usefixtures("git")
@pytest.mark.parametrize("reference", ["origin/main", "--output=x", "", "a\0b"])
def test_an_unknown_commit_is_refused_with_what_to_fetch(reference: str) -> None:
    with pytest.raises(GitError, match="unknown commit; fetch it"):
        changed_since(reference, ["."])


def test_a_shallow_clone_is_refused_with_a_remedy(
    git: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = tmp_path / "clone"
    git("clone", "--quiet", "--depth", "1", f"file://{Path.cwd()}", str(clone))
    monkeypatch.chdir(clone)
    git("fetch", "--quiet", "--depth", "1", "origin", "first:first")

    with pytest.raises(GitError, match=r"this clone is shallow; fetch the history: .*unshallow.*fetch-depth: 0"):
        changed_since("first", ["."])


def test_outside_of_a_work_tree_nothing_can_be_changed(tmp_path: Path) -> None:
    with pytest.raises(GitError, match="is not in a git work tree"):
        changed_since("main", [str(tmp_path)])


@pytest.mark.usefixtures("git")
def test_without_git_the_remedy_is_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")

    with pytest.raises(GitError, match="git is not on PATH: install it"):
        changed_since("first", ["."])


def test_a_repository_starts_no_program_of_its_own(git: Callable[..., None], tmp_path: Path) -> None:
    monitor = tmp_path / "monitor"
    monitor.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    monitor.chmod(0o755)
    git("config", "core.fsmonitor", str(monitor))
    git("config", "diff.external", str(monitor))

    changed_since("first", ["."])

    assert ignored(["."]) == frozenset()
    assert not (tmp_path / "started").exists()


@pytest.fixture
def submodule(git: Callable[..., None], tmp_path: Path) -> Path:
    """A submodule that .gitmodules says never differs."""
    git("clone", "--quiet", ".", str(tmp_path / "other"))
    git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(tmp_path / "other"), "sub")
    git("config", "--file", ".gitmodules", "submodule.sub.ignore", "all")
    git("add", ".")
    git("commit", "--quiet", "--message", "third")
    return Path("sub")


def no_matter(_: Path) -> None:
    Path("sub/kept.yaml").touch()


def changed_file(submodule: Path) -> None:
    (submodule / "new.yaml").write_text("a: changed\n")


def unknown_file(submodule: Path) -> None:
    (submodule / "unknown.yaml").touch()


def other_commit(submodule: Path) -> None:
    subprocess.run(["git", "checkout", "--quiet", "first"], cwd=submodule, check=True)  # noqa: S607 -- fixed words


def settings_that_cannot_be_read(submodule: Path) -> None:
    (submodule / ".git").write_text("gitdir: nowhere\n")


CHANGES = {
    no_matter: False,
    changed_file: True,
    unknown_file: True,
    other_commit: True,
    settings_that_cannot_be_read: True,
}


@pytest.mark.parametrize(("change", "differs"), CHANGES.items(), ids=[change.__name__ for change in CHANGES])
def test_all_files_of_a_submodule_that_differs_are_changed(
    change: Callable[[Path], None], submodule: Path, *, differs: bool
) -> None:
    change(submodule)

    assert ("sub/kept.yaml" in names(changed_since("HEAD", ["."]))) == differs


def test_files_of_a_repository_within_are_changed(git: Callable[..., None]) -> None:
    git("init", "--quiet", "within")
    Path("within/a.yaml").touch()

    assert "within/a.yaml" in names(changed_since("HEAD", ["."]))


def test_each_work_tree_that_a_path_is_in_is_looked_at(git: Callable[..., None], tmp_path: Path) -> None:
    other = tmp_path / "other"
    git("clone", "--quiet", ".", str(other))
    (other / "theirs.yaml").touch()

    changed = changed_since("HEAD", [".", str(other)])

    assert changed == {str(other / "theirs.yaml")}
    with pytest.raises(GitError, match="is not in a git work tree"):
        changed_since("HEAD", [".", str(tmp_path)])


def test_a_partial_clone_fetches_nothing(
    git: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone = tmp_path / "clone"
    git("config", "uploadpack.allowFilter", "true")
    git("clone", "--quiet", "--filter=tree:0", "--no-checkout", f"file://{Path.cwd()}", str(clone))
    monkeypatch.chdir(clone)

    # It lacks the trees that are to be compared.
    with pytest.raises(GitError, match="git refuses"):
        changed_since("HEAD~1", ["."])
