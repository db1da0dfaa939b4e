"""gpugate built and installed from a clone without symbolic links, as Git on Windows makes it."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from typing import TYPE_CHECKING

import pytest
from integrations.snapshot import ROOT, copy_of_this_repository, git

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Python = Callable[..., subprocess.CompletedProcess[str]]

# The folders of package-dir in pyproject.toml, and where a wheel has what is in them.
FOLDERS = {
    "src/gpugate": "gpugate",
    "certs": "gpugate/certs",
    "policies": "gpugate/policies",
    "webhook": "gpugate/webhook",
}
# Read on the pages of the repository, and not by the program.
PAGES = {"policies/README.md"}
EXAMPLE = "policies/claims/examples/invalid_request/bad-a-shape-of-v1beta1.yaml"
BUILD = ("--no-deps", "--no-build-isolation", "--no-index")


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Python:
    """Run the Python of an environment that has the dependencies and the build tools, but not gpugate."""
    directory = tmp_path_factory.mktemp("environment")

    def run(*arguments: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
        command = [directory / "bin" / "python", "-I", *arguments]
        ran = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)  # noqa: S603 -- fixed words
        if "NewConnectionError" in ran.stderr:
            pytest.skip("pip reaches no package index here")
        assert ran.returncode == code, f"{arguments}: exit code {ran.returncode}\n{ran.stdout}{ran.stderr}"
        return ran

    subprocess.run([sys.executable, "-m", "venv", directory], check=True)  # noqa: S603 -- fixed words
    locks = [option for name in ("check", "build") for option in ("-r", ROOT / "requirements" / f"{name}.txt")]
    run("-m", "pip", "install", "--quiet", "--require-hashes", *locks)
    return run


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_of_this_repository(tmp_path_factory.mktemp("repository"))


@pytest.fixture
def clone(repository: Path, tmp_path: Path) -> Path:
    git(tmp_path, "-c", "core.symlinks=false", "clone", "--quiet", str(repository), "clone")
    return tmp_path / "clone"


@pytest.fixture
def install(python: Python, clone: Path) -> Iterator[Callable[..., None]]:
    """Install gpugate, and remove it again when the test has ended."""
    yield lambda *what: python("-m", "pip", "install", "--quiet", "--no-compile", *BUILD, *what)
    python("-m", "pip", "uninstall", "--quiet", "--yes", "gpugate")
    assert git(clone, "status", "--porcelain", "--untracked-files=no") == ""


@pytest.fixture
def check(python: Python, clone: Path) -> Callable[[], None]:
    """Check an example with the program that was installed; its finding must be reported."""

    def run() -> None:
        ran = python("-m", "gpugate", "check", clone / EXAMPLE, code=1)
        assert "claims/invalid-request" in ran.stdout

    return run


@pytest.fixture
def wheel(python: Python, tmp_path: Path) -> Callable[[Path], Path]:
    """Build a wheel from a directory or an archive of sources."""

    def build(source: Path) -> Path:
        python("-m", "pip", "wheel", "--quiet", *BUILD, "--wheel-dir", tmp_path / "wheels", source)
        (built,) = (tmp_path / "wheels").glob("gpugate-*.whl")
        return built

    return build


@pytest.fixture
def sdist(python: Python, clone: Path, tmp_path: Path) -> Path:
    build = "import os, sys, setuptools.build_meta as b; os.chdir(sys.argv[1]); b.build_sdist(sys.argv[2])"
    python("-c", build, clone, tmp_path)
    (built,) = tmp_path.glob("gpugate-*.tar.gz")
    return built


def packaged(wheel: Path) -> set[str]:
    """Return the files in a wheel that are not about the wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def committed(clone: Path) -> set[str]:
    """Return where a wheel must have each file of the packages."""
    names = set(git(clone, "ls-files", *FOLDERS).splitlines()) - PAGES
    folder = re.compile("|".join(FOLDERS))
    return {folder.sub(lambda found: FOLDERS[found[0]], name, count=1) for name in names}


def test_the_directory(install: Callable[..., None], check: Callable[[], None], clone: Path) -> None:
    install(clone)

    check()


def test_the_wheel(
    install: Callable[..., None], check: Callable[[], None], wheel: Callable[[Path], Path], clone: Path
) -> None:
    built = wheel(clone)
    install(built)

    assert packaged(built) == committed(clone)
    check()


def test_the_source_distribution(
    install: Callable[..., None], check: Callable[[], None], wheel: Callable[[Path], Path], clone: Path, sdist: Path
) -> None:
    built = wheel(sdist)
    install(built)

    with tarfile.open(sdist) as archive:
        assert not [member.name for member in archive if member.issym() or member.islnk()]
    assert packaged(built) == committed(clone)
    check()


EDITABLE = {"as pip does it": (), "as make setup does it": ("--config-settings", "editable_mode=compat")}


@pytest.mark.parametrize("settings", EDITABLE.values(), ids=EDITABLE)
def test_editable(
    install: Callable[..., None], check: Callable[[], None], python: Python, clone: Path, settings: tuple[str, ...]
) -> None:
    if settings:
        linked(clone)
    install(*settings, "--editable", clone)

    check()
    for name in ("added", "added_package/__init__", "report/added"):
        file = clone / "webhook" / f"{name}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text("")
    imported = "gpugate.webhook.added, gpugate.webhook.added_package, gpugate.webhook.report.added"
    python("-c", f"import {imported}")


def linked(clone: Path) -> None:
    makefile = (clone / "Makefile").read_text()
    names = re.search(r"^LINKS := \$\(addprefix (\S+),(.+)\)$", makefile, re.MULTILINE)
    assert names
    links = [f"{names[1]}{name}" for name in names[2].split()]
    subprocess.run(["make", "--no-print-directory", *links], cwd=clone, check=True)  # noqa: S603, S607 -- fixed words
    assert git(clone, "status", "--porcelain") == ""


def test_links_for_editors_change_no_wheel(wheel: Callable[[Path], Path], clone: Path) -> None:
    linked(clone)

    assert packaged(wheel(clone)) == committed(clone)
