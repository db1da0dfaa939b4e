from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., Any]


def test_it_prints_what_kubectl_applies(gpugate: Run, tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    values.write_text("replicaCount: 3\npolicy: {mode: warn}\n")

    ran = gpugate("generate", "manifests", "--values", values, "--namespace", "guard", "--name", "gate")

    objects = {each["kind"]: each for each in yaml.safe_load_all(ran.out)}
    assert (ran.code, ran.err) == (0, "")
    assert objects["Deployment"]["spec"]["replicas"] == 3
    assert objects["Deployment"]["metadata"] | {"labels": {}} == {
        "name": "gate-gpugate",
        "namespace": "guard",
        "labels": {},
    }


def test_a_later_file_wins(gpugate: Run, tmp_path: Path) -> None:
    first, second = tmp_path / "a.yaml", tmp_path / "b.yaml"
    first.write_text("replicaCount: 3\nserver: {workers: 4}\n")
    second.write_text("replicaCount: 5\n")

    ran = gpugate("generate", "manifests", "-f", first, "-f", second)

    deployment = next(each for each in yaml.safe_load_all(ran.out) if each["kind"] == "Deployment")
    args = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    assert (deployment["spec"]["replicas"], "--workers=4" in args) == (5, True)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        pytest.param("a: 1\nreplicaCoun: 2\n", "values.yaml:", id="unknown-key"),
        pytest.param("image:\n  tg: x\n", "values.yaml:2:7: image.tg: unknown key; did you mean `tag`?", id="misspelt"),
        pytest.param("- a\n", "is no file of values", id="a-list"),
        pytest.param("a: {\n", "values.yaml:", id="no-yaml"),
        pytest.param(
            "server: {port: 9000, healthPort: 9000}\n", "server.port and server.healthPort are the same", id="harmful"
        ),
    ],
)
def test_a_mistake_is_named(gpugate: Run, tmp_path: Path, content: str, says: str) -> None:
    values = tmp_path / "values.yaml"
    values.write_text(content)

    ran = gpugate("generate", "manifests", "--values", values)

    assert (ran.code, says in ran.err, ran.out) == (2, True, ""), ran.err


def test_a_file_that_is_not_there_is_named(gpugate: Run) -> None:
    ran = gpugate("generate", "manifests", "--values", "nowhere.yaml")

    assert (ran.code, ran.err) == (2, "error: nowhere.yaml: no such file or directory\n")
