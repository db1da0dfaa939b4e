from __future__ import annotations

import tomllib
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

pytest_plugins = ["pytester"]
PLUGIN = "gpugate.webhook.testing.pytest_plugin"
SHOW = "import sys\ndef pytest_unconfigure():\n    print('MODULES', *sys.modules)\n"
TEST = "def test_one(): pass\n"


def modules(project: pytest.Pytester, *arguments: str) -> set[str]:
    ran = project.runpytest_subprocess("-p", f"{PLUGIN}.plugin", "-s", *arguments)
    (line,) = [line for line in ran.outlines if line.startswith("MODULES ")]
    return set(line.split()[1:])


def test_without_being_asked_it_imports_nothing_but_itself(project: pytest.Pytester) -> None:
    project.makeconftest(SHOW)
    project.makepyfile(TEST)

    found = modules(project)

    ours = {f"{PLUGIN}{name}" for name in ("", ".plugin", ".fixtures", ".builders")}
    assert {name for name in found if name.startswith("gpugate")} == {
        "gpugate",
        "gpugate.webhook",
        "gpugate.webhook.testing",
    } | ours
    assert found & {"msgspec", "yaml", "kubernetes"} == set()


def test_without_being_asked_it_collects_nothing(project: pytest.Pytester) -> None:
    project.makepyfile(TEST)

    ran = project.runpytest_subprocess("-p", f"{PLUGIN}.plugin")

    ran.assert_outcomes(passed=1)


def test_asked_it_imports_the_rest(project: pytest.Pytester) -> None:
    project.makeconftest(SHOW)

    assert "gpugate.webhook.testing.run" in modules(project, "--gpugate")


def test_the_package_names_the_plugin_to_pytest() -> None:
    project = tomllib.loads((Path(__file__).parents[4] / "pyproject.toml").read_text())["project"]

    name = project["entry-points"]["pytest11"]["gpugate"]

    assert hasattr(import_module(name), "pytest_addoption")
