from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpugate import __version__

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from subprocess import CompletedProcess

    Run = Callable[..., CompletedProcess[str]]

# Writes down how it was called, and answers as its exit code says.
ENGINE = '#!/bin/sh\necho "{name} $*" >> "{folder}/calls"\n[ "$1" = build ] || exit {works}\nexit {builds}\n'

BASE = f"base@sha256:{'0' * 64}"
PINNED = (f"BUILD_IMAGE={BASE}", f"RUNTIME_IMAGE={BASE}")


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / "calls").touch()
    return folder


def put(programs: Path, name: str, *, works: int = 0, builds: int = 0) -> None:
    (programs / name).write_text(ENGINE.format(name=name, folder=programs, works=works, builds=builds))
    (programs / name).chmod(0o755)


def built_by(programs: Path) -> list[str]:
    return [line for line in (programs / "calls").read_text().splitlines() if " build " in line]


@pytest.mark.parametrize(
    ("here", "taken"),
    [
        (["docker", "buildah", "podman"], "docker build"),
        (["buildah", "podman"], "buildah build --format oci"),
        (["podman"], "podman build --format oci"),
    ],
)
def test_the_first_engine_that_is_here_builds(run: Run, programs: Path, here: list[str], taken: str) -> None:
    for name in here:
        put(programs, name)
    assert run("build.py", *PINNED, PATH=str(programs)).returncode == 0
    (call,) = built_by(programs)
    assert call.startswith(f"{taken} --tag gpugate:{__version__} --build-arg VERSION={__version__} ")


def test_an_engine_that_does_not_answer_is_passed_over(run: Run, programs: Path) -> None:
    put(programs, "docker", works=1)
    put(programs, "podman")
    assert run("build.py", *PINNED, PATH=str(programs)).returncode == 0
    assert [call.split()[0] for call in built_by(programs)] == ["podman"]


def test_no_engine(run: Run, programs: Path) -> None:
    put(programs, "docker", works=1)
    ran = run("build.py", *PINNED, PATH=str(programs))
    assert ran.returncode == 1
    assert "docker does not answer" in ran.stderr
    assert "buildah is not installed" in ran.stderr
    assert "make e2e K=image" in ran.stderr


def test_the_exit_code_is_the_engines(run: Run, programs: Path) -> None:
    put(programs, "docker", builds=3)
    assert run("build.py", *PINNED, PATH=str(programs)).returncode == 3


def test_arguments_of_the_dockerfile_and_a_name(run: Run, programs: Path) -> None:
    put(programs, "docker")
    run("build.py", "--tag", "mine:1", *PINNED, PATH=str(programs))
    (call,) = built_by(programs)
    assert "--tag mine:1 " in call
    assert f"--build-arg RUNTIME_IMAGE={BASE} " in call


LOOSE = {
    "both": ((), ["BUILD_IMAGE", "RUNTIME_IMAGE"]),
    "one": (PINNED[:1], ["RUNTIME_IMAGE"]),
    "one by a digest that is none": ((PINNED[0], "RUNTIME_IMAGE=base@sha256:0"), ["RUNTIME_IMAGE"]),
}


@pytest.mark.parametrize(("arguments", "names"), LOOSE.values(), ids=LOOSE)
def test_a_base_image_without_a_digest_is_refused(
    run: Run, programs: Path, arguments: tuple[str, ...], names: list[str]
) -> None:
    put(programs, "docker")
    ran = run("build.py", *arguments, PATH=str(programs))
    assert (ran.returncode, built_by(programs)) == (1, [])
    assert [name for name in ("BUILD_IMAGE", "RUNTIME_IMAGE") if f"{name}=" in ran.stderr] == names


def test_unless_it_is_allowed(run: Run, programs: Path) -> None:
    put(programs, "docker")
    assert run("build.py", "--allow-unpinned", PATH=str(programs)).returncode == 0
