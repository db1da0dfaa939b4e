"""What the steps of the Dockerfile put into the image, carried out without a container engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from image.proof import TREE

from gpugate import __version__
from image import tree

if TYPE_CHECKING:
    from pathlib import Path

    from image.container import Image

# Compressed, so that with its base the image stays below 150 MB.
LARGEST_BYTES = 40_000_000
GPUGATE = "/opt/gpugate/bin/gpugate"


@pytest.fixture
def installed(image: Image) -> Path:
    return image.contents / TREE


def test_what_the_last_stage_runs_succeeds(image: Image, tmp_path: Path) -> None:
    for number, step in enumerate(image.stage.each("RUN")):
        assert not step.shell, "the base has no shell"
        ran = image.run(step.words, tmp_path / str(number))
        assert (ran.returncode, ran.stderr) == (0, "")


def test_it_is_the_version_of_the_sources(image: Image, tmp_path: Path) -> None:
    assert image.run([GPUGATE, "--version"], tmp_path / "version").stdout == f"gpugate {__version__}\n"


def test_policies_can_be_explained(image: Image, tmp_path: Path) -> None:
    ran = image.run([GPUGATE, "explain", "nodepools/single-instance-type"], tmp_path / "explain")
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize(
    "found",
    [tree.set_user_or_group, tree.writable_by_others, tree.shell_scripts, tree.runnable, tree.without_bytecode],
    ids=lambda function: function.__name__,
)
def test_there_are_none(installed: Path, found: Any) -> None:
    assert found(installed) == []


def test_its_programs_are_ours_and_the_link_to_python(installed: Path) -> None:
    assert {path.name for path in (installed / "bin").iterdir()} == {"python", "gpugate"}


def test_nothing_is_installed_that_installs_builds_or_tests(installed: Path) -> None:
    assert tree.UNWANTED.isdisjoint(tree.installed(installed))


def test_nothing_says_where_it_was_built(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    place = str(tmp_path_factory.getbasetemp()).encode()
    assert [path for path in tree.files(installed) if place in path.read_bytes()] == []


def test_it_is_small(installed: Path, figures: list[str]) -> None:
    size = tree.compressed_bytes(installed)
    figures.append(f"image: {size / 1e6:.1f} MB are installed, compressed")
    assert size <= LARGEST_BYTES
