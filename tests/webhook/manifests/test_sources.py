"""What is told apart from plain files because it is rendered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpugate.webhook.manifests.inputs import Chart, Input, Kustomization, Selection, sources

if TYPE_CHECKING:
    from pathlib import Path

FILES = (
    "app/Chart.yaml",
    "app/values.yaml",
    "app/values-prod.yaml",
    "app/templates/pod.yaml",
    "app/charts/sub/Chart.yaml",
    "app/charts/sub/templates/pod.yaml",
    "app/crds/crd.yaml",
    "over/kustomization.yml",
    "over/patch.yaml",
    "plain/templates/pod.yaml",
)
FOUND = {
    "everything": (
        ["."],
        ["chart ./app", "./app/crds/crd.yaml", "kustomization ./over", "./over/kustomization.yml", "./over/patch.yaml",
         "./plain/templates/pod.yaml"],
    ),
    "a chart": (["app"], ["chart app", "app/crds/crd.yaml"]),
    "a template": (["app/templates/pod.yaml"], ["chart app"]),
    "a template of a subchart": (["app/charts/sub/templates/pod.yaml"], ["chart app"]),
    "values and templates of one chart": (["app/values-prod.yaml", "app/templates/pod.yaml"], ["chart app"]),
    "a subchart": (["app/charts/sub"], ["chart app/charts/sub"]),
    "a kustomization": (["over/kustomization.yml"], ["kustomization over"]),
    "a patch": (["over/patch.yaml"], ["over/patch.yaml"]),
    "a file in a directory of that name": (["plain/templates/pod.yaml"], ["plain/templates/pod.yaml"]),
}  # fmt: skip


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


def shown(part: object) -> str:
    if isinstance(part, Chart):
        return f"chart {part.name}"
    if isinstance(part, Kustomization):
        return f"kustomization {part.name}"
    return part.name if isinstance(part, Input) else repr(part)


@pytest.mark.usefixtures("tree")
@pytest.mark.parametrize(("paths", "found"), FOUND.values(), ids=FOUND)
def test_paths_stand_for_charts_and_kustomizations(paths: list[str], found: list[str]) -> None:
    assert [shown(part) for part in sources(paths)] == found


def test_what_is_left_out_is_not_looked_into(tree: Path) -> None:
    selection = Selection(("over",), ignored=frozenset({str(tree.resolve() / "plain")}))

    assert [shown(part) for part in sources(["."], selection)] == ["chart ./app", "./app/crds/crd.yaml"]


def test_charts_are_found_whatever_has_changed(tree: Path) -> None:
    # Whoever renders them knows of which files they are made.
    selection = Selection(changed=frozenset({str(tree.resolve() / "app/crds/crd.yaml")}))

    assert [shown(part) for part in sources(["app", "over"], selection)] == [
        "chart app",
        "app/crds/crd.yaml",
        "kustomization over",
    ]
