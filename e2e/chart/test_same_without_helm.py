"""What `gpugate generate manifests` prints is what Helm renders, object by object."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from chart.conftest import CASES, NAMESPACE, RELEASE

if TYPE_CHECKING:
    from pathlib import Path

    from chart.conftest import Helm

Json = dict[str, Any]


def key(obj: Json) -> tuple[str, str, str]:
    return obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def printed(*flags: str | Path) -> list[Json]:
    command = (sys.executable, "-m", "gpugate.webhook.cli.main", "generate", "manifests")
    names = ("--name", RELEASE, "--namespace", NAMESPACE)
    ran = subprocess.run([*command, *names, *map(str, flags)], capture_output=True, text=True, check=False)  # noqa: S603 -- ours
    assert ran.returncode == 0, ran.stderr
    return list(yaml.load_all(ran.stdout, yaml.CSafeLoader))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_every_object_is_the_same(helm: Helm, case: Path) -> None:
    rendered = helm.objects("--values", case)
    applied = {
        key(each): each for each in rendered if "helm.sh/hook" not in (each["metadata"].get("annotations") or {})
    }

    assert {key(each): each for each in printed("--values", case)} == applied


def test_a_later_file_wins_and_null_takes_a_default_away(helm: Helm, tmp_path: Path) -> None:
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    first.write_text("replicaCount: 3\npolicy: {mode: warn}\n")
    second.write_text("policy: {mode: null}\npods: {nodeSelector: {kubernetes.io/os: null, disk: ssd}}\n")
    flags = ("--values", first, "--values", second)

    rendered = {key(each): each for each in helm.objects(*flags)}
    assert all(rendered[key(each)] == each for each in printed(*flags))
