"""The tables that come with gpugate are what the pinned modules make."""

from __future__ import annotations

import pytest

import tools
from gpugate.tools.schema_tables.releases import PROJECTS, Module, folder
from gpugate.tools.schema_tables.tables import make_tables
from gpugate.webhook.schemas import tables


@pytest.fixture(scope="module")
def made_again() -> dict[str, bytes]:
    program = tools.go()
    return make_tables(PROJECTS, lambda module: folder(module, program))


def test_the_same_bytes_are_made_again(made_again: dict[str, bytes]) -> None:
    there = {file.name: file.read_bytes() for file in tables.BUNDLED.glob("*.json")}

    assert {name for name in there.keys() | made_again.keys() if there.get(name) != made_again.get(name)} == set()


def test_what_the_control_plane_runs_is_pinned() -> None:
    newest = [PROJECTS["karpenter"][-1], PROJECTS["keda"][-1]]

    assert [_pinned(module) for module in newest] == [module.version for module in newest]
    assert PROJECTS["kubernetes"][-1].version == tools.KUBERNETES


def _pinned(module: Module) -> str:
    lines = (tools.HERE / "crds" / "go.mod").read_text(encoding="utf-8").splitlines()
    return next(line.split()[1] for line in lines if line.split()[:1] == [module.path])
