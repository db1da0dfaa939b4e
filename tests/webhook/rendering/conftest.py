from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# As much of `helm template` as processes are about: the templates one after the other, with the name of the release.
HELM = """
import pathlib, sys
release, chart = sys.argv[-2:]
values = "".join(pathlib.Path(flag.partition("=")[2]).read_text() for flag in sys.argv if flag.startswith("--values="))
for template in sorted(pathlib.Path(chart, "templates").rglob("*.yaml")):
    text = template.read_text().replace("{{ .Release.Name }}", release).replace("{{ .Values }}", values.strip())
    if "{{ fail }}" in text:
        print(f"Error: execution error at (app/templates/{template.name}:2:3): no good", file=sys.stderr)
        sys.exit(1)
    print(f"---\\n# Source: app/templates/{template.name}\\n{text}", end="")
"""
POD = """apiVersion: v1
kind: Pod
metadata:
  name: {{ .Release.Name }}
spec:
  containers:
    - name: main
      image: a
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], Path]:
    """Put a program on PATH, on which is nothing else."""
    programs = tmp_path / "programs"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))

    def made(name: str, python: str) -> Path:
        path = programs / name
        path.write_text(f"#!{sys.executable} -S\n{python}")
        path.chmod(0o755)
        return path

    return made


@pytest.fixture
def helm(program: Callable[[str, str], Path]) -> Path:
    return program("helm", HELM)


@pytest.fixture
def chart(tree: Callable[..., Path]) -> Path:
    return (
        tree({"app/Chart.yaml": "apiVersion: v2\nname: app\nversion: 1.0.0\n", "app/templates/pod.yaml": POD}) / "app"
    )


@pytest.fixture
def nothing_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.fspath(tmp_path / "nowhere"))
