from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gpugate.webhook.manifests.load import load

FOLDER = Path(__file__).parents[2] / "fixtures" / "manifests"
FILES = sorted(FOLDER.iterdir())


def objects(path: Path) -> list[Any]:
    return [manifest.request.object for manifest in load([str(path)]).manifests]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_manifest_is_read_without_a_problem(path: Path) -> None:
    loaded = load([str(path)])

    assert (loaded.problems, loaded.passed_over) == ((), ())


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl, which is the judge here, is not installed")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_manifest_is_read_as_kubectl_reads_it(path: Path) -> None:
    command = ["kubectl", "label", "--local", "-f", str(path), "a=b", "-o", "json"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603 -- fixed words

    assert [_without_label(item) for item in _documents(printed)] == objects(path)


def _documents(text: str) -> list[Any]:
    found, position = [], 0
    while text[position:].strip():
        position += len(text[position:]) - len(text[position:].lstrip())
        value, position = json.JSONDecoder().raw_decode(text, position)
        found.append(value)
    return found


def _without_label(item: Any) -> Any:
    labels = item["metadata"]["labels"]
    del labels["a"]
    if not labels:
        del item["metadata"]["labels"]
    return item
