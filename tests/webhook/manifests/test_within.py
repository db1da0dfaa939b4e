from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpugate.webhook.manifests.within import LinkError, Wanted, link_out, pattern_refusal, refusal, refuse_link, tree_of

OUT = "leads out of the repository"
OF_GIT = "is in .git, which can hold credentials"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A work tree in the working directory, beside a file that is not of it."""
    top = tmp_path / "repo"
    (top / ".git").mkdir(parents=True)
    (top / "apps").mkdir()
    (top / "apps/pod.yaml").touch()
    (top / ".git/config").touch()
    (tmp_path / "secret").touch()
    os.mkfifo(top / "pipe")
    for name, to in {
        "out": "../secret",
        "all": "/",
        "up": "..",
        "git": ".git",
        "in": "apps/pod.yaml",
        "gone": "../gone",
        "ptmx": "/dev/ptmx",
        "chain": "out",
    }.items():
        (top / name).symlink_to(to)
    monkeypatch.chdir(top)
    return top


PATHS = {
    "a file": ("apps/pod.yaml", ""),
    "a directory": ("apps", ""),
    "the work tree": (".", ""),
    "up and down again": ("apps/../apps/pod.yaml", ""),
    "a link within": ("in", ""),
    "what is missing": ("gone.yaml", ""),
    "a file outside": ("../secret", OUT),
    "a whole path": ("/etc/passwd", OUT),
    "a link out": ("out", OUT),
    "a link to a link out": ("chain", OUT),
    "below a link out": ("all/etc/passwd", OUT),
    "a link out to nothing": ("gone", OUT),
    "what is missing outside": ("../nothing", OUT),
    "a device": ("ptmx", OUT),
    "a process": ("/proc/self/environ", OUT),
    "git's own": (".git/config", OF_GIT),
    "git's own, through a link": ("git/config", OF_GIT),
    "git's own, where case does not matter": (".GIT/config", OF_GIT),
    "git's own directory": (".git", OF_GIT),
    "a pipe": ("pipe", "is not a regular file or a directory"),
    "no name": ("a\0b", "is not a valid file name: it contains a character that no file name can have"),
}


@pytest.mark.parametrize(("path", "wrong"), PATHS.values(), ids=PATHS)
def test_what_a_repository_may_name(path: str, wrong: str, repository: Path) -> None:
    assert refusal(path, str(repository)) == wrong


def test_a_file_is_told_from_a_directory(repository: Path) -> None:
    assert refusal("apps", str(repository), Wanted.FILE) == "is not a regular file"
    assert refusal("apps/pod.yaml", str(repository), Wanted.DIRECTORY) == "is not a directory"


PATTERNS = {
    "below": ("apps/*.yaml", ""),
    "any depth": ("**/*.yaml", ""),
    "outside": ("../*", OUT),
    "below a link out": ("all/*", OUT),
    "git's own": (".git/*", OF_GIT),
    "up behind a wildcard": ("a*/../../secret", "has `..` behind a wildcard"),
}


@pytest.mark.parametrize(("pattern", "wrong"), PATTERNS.values(), ids=PATTERNS)
def test_which_patterns_a_repository_may_name(pattern: str, wrong: str, repository: Path) -> None:
    assert pattern_refusal(pattern, str(repository)) == wrong


LINKS = {
    "a file": ("apps/pod.yaml", None),
    "a link within": ("in", None),
    "a link out": ("out", "out"),
    "a link to git's own": ("git/config", "git"),
    "below a link out": ("all/etc/passwd", "all"),
    "what the user names outside": ("../secret", None),
    "what is missing": ("nothing", None),
}


@pytest.mark.parametrize(("path", "link"), LINKS.values(), ids=LINKS)
def test_a_link_of_the_tree_that_leads_out_is_found(path: str, link: str | None, repository: Path) -> None:  # noqa: ARG001 -- the working directory
    assert link_out(path) == link


def test_a_link_outside_of_any_work_tree_is_the_machines_own(repository: Path) -> None:
    (repository.parent / "mounted").symlink_to("secret")

    assert link_out("../mounted") is None


@pytest.mark.usefixtures("repository")
def test_the_message_names_the_flag_and_the_link() -> None:
    with pytest.raises(LinkError, match=r"^--policy-file all/x: all is a link out of the repository: name what it le"):
        refuse_link(Path("all/x"), "--policy-file")


@pytest.mark.usefixtures("repository")
def test_without_git_the_working_directory_is_the_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plain/apps").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "plain")

    assert tree_of("apps") == str(tmp_path / "plain")
    assert tree_of("/usr") is None
    assert tree_of("a\0b") is None
