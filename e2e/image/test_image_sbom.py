"""The bill of materials: what is installed, all of it, and nothing else."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from image.proof import ROOT, TREE

from gpugate import __version__
from image import tree

if TYPE_CHECKING:
    from image.container import Image

TOOLS = "build/supply-chain"
PINNED = re.compile(r"^([\w.-]+)==(\S+)", re.MULTILINE)


@pytest.fixture(scope="module")
def bill(image: Image, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    subprocess.run(["make", "--silent", "-C", ROOT, f"{TOOLS}/.ready"], check=True)  # noqa: S603, S607 -- our own target
    # The tree as it is, started by a Python that is here.
    started_here, folder = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("bill")
    (started_here / "bin").mkdir()
    (started_here / "bin/python").symlink_to(image.python.resolve())
    (started_here / "lib").symlink_to(image.contents / TREE / "lib")
    written = (image.contents / TREE / "pyvenv.cfg").read_text(encoding="utf-8")
    here = re.sub(r"home = .+", f"home = {image.python.resolve().parent}", written)
    (started_here / "pyvenv.cfg").write_text(here, encoding="utf-8")
    command = [ROOT / TOOLS / "bin/python", "-I", ROOT / "image/bill_of_materials.py", started_here, folder]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 -- our own program
    assert (ran.returncode, ran.stderr) == (0, "")
    return dict(json.loads(Path(ran.stdout.strip()).read_text(encoding="utf-8")))


def test_it_lists_what_is_installed(image: Image, bill: dict[str, Any]) -> None:
    listed = {each["name"]: each["version"] for each in bill["components"]}
    installed = tree.installed(image.contents / TREE)
    assert listed | {"gpugate": __version__} == installed


def test_it_lists_what_is_locked(bill: dict[str, Any]) -> None:
    lock = PINNED.findall((ROOT / "requirements/runtime.txt").read_text(encoding="utf-8"))
    listed = {(_normalized(each["name"]), each["version"]) for each in bill["components"]}
    assert listed == {(_normalized(name), version) for name, version in lock}


def test_it_is_about_gpugate(bill: dict[str, Any]) -> None:
    component = bill["metadata"]["component"]
    assert (component["type"], component["name"], component["version"]) == ("application", "gpugate", __version__)


def test_each_part_can_be_looked_up_and_has_a_licence(bill: dict[str, Any]) -> None:
    assert [each["name"] for each in bill["components"] if not each.get("purl", "").startswith("pkg:pypi/")] == []
    assert [each["name"] for each in bill["components"] if not each.get("licenses")] == []


def test_it_says_what_needs_what(bill: dict[str, Any]) -> None:
    needed = {each["ref"]: set(each.get("dependsOn", ())) for each in bill["dependencies"]}
    ours = needed[bill["metadata"]["component"]["bom-ref"]]
    assert {name.partition("==")[0].lower() for name in ours} >= {"msgspec", "pyyaml", "flask", "kubernetes"}


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
