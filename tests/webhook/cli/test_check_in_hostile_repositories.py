"""`gpugate check` in repositories whose settings name programs: none is run, and what is read is as without them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Ran

    Run = Callable[..., Ran]

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not on PATH")

POD = """apiVersion: v1
kind: Pod
metadata: {name: a}
spec:
  containers:
    - {name: main, image: a, resources: {limits: {nvidia.com/gpu: 1}}}
"""
FILES = {
    "clusters/pod.yaml": POD,
    "clusters/out/pod.yaml": POD,
    "clusters/.gitattributes": "*.yaml filter=evil\n",
    "clusters/.gitignore": "out/\n",
}


def git(*arguments: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *who, *arguments], check=True, capture_output=True)  # noqa: S603, S607 -- fixed words


def commit(directory: str = ".") -> None:
    git("-C", directory, "add", ".")
    git("-C", directory, "commit", "--quiet", "--message", "all")


def bare_repository_within(settings: dict[str, str]) -> None:
    git("init", "--quiet", "--bare", "clusters")
    git("-C", "clusters", "--git-dir", ".", "--work-tree", ".", "add", "pod.yaml")
    for name, value in {"core.bare": "false", "core.worktree": ".", **settings}.items():
        git("config", "--file", "clusters/config", name, value)
    git("init", "--quiet")
    commit()


def own_settings(settings: dict[str, str]) -> None:
    git("init", "--quiet")
    commit()
    for name, value in settings.items():
        git("config", name, value)


def included_settings(settings: dict[str, str]) -> None:
    git("init", "--quiet")
    commit()
    for name, value in settings.items():
        git("config", "--file", "settings", name, value)
    git("config", "include.path", "../settings")


def settings_of_a_submodule(settings: dict[str, str]) -> None:
    git("init", "--quiet", "clusters")
    commit("clusters")
    git("init", "--quiet")
    git("submodule", "add", "./clusters", "clusters")
    commit()
    for name, value in settings.items():
        git("-C", "clusters", "config", name, value)


REPOSITORIES = {
    made.__name__: made for made in (bare_repository_within, own_settings, included_settings, settings_of_a_submodule)
}
# Each names programs that touch `{}`.
SETTINGS = {
    "a filter": {"filter.evil.clean": "touch {}; cat"},
    "a filter that is required": {"filter.evil.clean": "touch {}; cat", "filter.evil.required": "true"},
    "a filter for many files": {"filter.evil.process": "touch {}; cat"},
    "a monitor": {"core.fsmonitor": "touch {}; false"},
}
COMMANDS = {
    "a directory": ("clusters",),
    "all": (".",),
    "changed": ("--changed-since", "HEAD", "--allow-empty", "."),
    "changed in a directory": ("--changed-since", "HEAD", "--allow-empty", "clusters"),
}


@pytest.fixture(params=REPOSITORIES.values(), ids=REPOSITORIES)
def hostile(
    request: pytest.FixtureRequest, tree: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], Path]:
    """Makes a repository in the working directory, with settings; returns what its programs would touch."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)

    def made(settings: str) -> Path:
        tree(FILES)
        started = tmp_path / "started"
        request.param({name: value.format(started) for name, value in SETTINGS[settings].items()})
        # Nothing but the time is another one, so that git has to read the file.
        os.utime("clusters/pod.yaml", (1, 1))
        started.unlink(missing_ok=True)
        return started

    return made


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
def test_no_program_is_run(
    arguments: tuple[str, ...], settings: str, gpugate: Run, hostile: Callable[[str], Path]
) -> None:
    started = hostile(settings)

    gpugate("check", "--no-config", *arguments)

    assert not started.exists()


@pytest.mark.parametrize(("arguments", "read"), [(COMMANDS["a directory"], 1), (COMMANDS["changed"], 0)])
def test_what_is_read_is_as_without_settings(
    arguments: tuple[str, ...], read: int, gpugate: Run, hostile: Callable[[str], Path]
) -> None:
    hostile("a filter that is required")

    report = json.loads(gpugate("check", "--no-config", "-o", "json", *arguments).out)

    assert report["summary"]["files"] == read


def test_a_filter_that_cannot_be_kept_from_running_is_refused(
    gpugate: Run, tree: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    tree({**FILES, "clusters/.gitattributes": "*.yaml filter=a=b\n"})
    own_settings({"filter.a=b.clean": f"touch {tmp_path}/started; cat"})
    os.utime("clusters/pod.yaml", (1, 1))

    ran = gpugate("check", "--changed-since", "HEAD", ".")

    assert ran.code == 2
    assert "a filter of git's settings has a name with `=`" in ran.err
    assert not (tmp_path / "started").exists()
