from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gpugate.webhook.manifests.inputs import Input, Passed, sources
from gpugate.webhook.manifests.problems import Problem
from gpugate.webhook.rendering.charts import ChartValues
from gpugate.webhook.rendering.options import Limits, RenderOptions
from gpugate.webhook.rendering.render import rendered

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from gpugate.webhook.rendering.render import Rendered

OPTIONS = RenderOptions("1.35", jobs=4)
CHART = "apiVersion: v2\nname: app\nversion: 1.0.0\n"
# As much of `kustomize build` as processes are about: the first resource of the first resource, with its origin.
KUBECTL = """
import json, os, pathlib, sys
overlay = pathlib.Path(sys.argv[-1])
directory = json.loads((overlay / "kustomization.yaml").read_text())["resources"][0]
base = overlay / directory
if (base / "broken").exists():
    print('E1121 20:30:28.8 6893 run.go:72] "command failed" err="no such \\\\"pod.yaml\\\\" here"', file=sys.stderr)
    sys.exit(1)
head, name, rest = (base / "pod.yaml").read_text().partition("metadata:\\n")
said = f"  annotations:\\n    config.kubernetes.io/origin: |\\n      path: {directory}/pod.yaml\\n"
print(head + name + said + rest, end="")
"""
POD = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n"


def render(paths: Sequence[str] = (".",), options: RenderOptions = OPTIONS) -> Rendered:
    return rendered(list(sources(paths)), options)


def problems(made: Rendered) -> list[tuple[str, int, str]]:
    return [(part.source, part.line, part.message) for part in made.found if isinstance(part, Problem)]


@pytest.mark.usefixtures("helm", "chart")
def test_a_chart_stands_in_the_place_of_its_files() -> None:
    made = render()

    assert [part.name for part in made.found if isinstance(part, Input)] == ["./app (rendered)"]
    assert "  name: app\n" in made.texts["./app (rendered)"].text


@pytest.mark.usefixtures("helm")
def test_a_chart_is_rendered_for_each_of_its_values(chart: Path) -> None:
    (chart / "templates/pod.yaml").write_text("a: {{ .Values }}\n")
    files = [f"{number}.yaml" for number in range(5)]
    for file in files:
        (chart.parent / file).write_text(file)
    values = ChartValues("app", tuple((file,) for file in files), release="r")

    made = render(["app"], replace(OPTIONS, charts=(values,)))

    assert [(text.job.label, text.text.splitlines()[-1]) for text in made.texts.values()] == [
        (f"app (rendered with {file})", f"a: {file}") for file in files
    ]


@pytest.mark.usefixtures("helm")
def test_a_broken_template_is_told_once_and_other_charts_are_rendered(chart: Path) -> None:
    (chart / "templates/pod.yaml").write_text("a: 1\n{{ fail }}\n")
    (chart.parent / "other/templates").mkdir(parents=True)
    (chart.parent / "other/Chart.yaml").write_text(CHART)
    (chart.parent / "other/templates/a.yaml").write_text("a: 1\n")

    made = render()

    assert [(file, line) for file, line, _ in problems(made)] == [("./app/templates/pod.yaml", 2)]
    assert list(made.texts) == ["./other (rendered)"]


@pytest.mark.usefixtures("helm", "chart")
def test_a_values_file_that_is_missing_is_a_problem_and_the_others_are_taken() -> None:
    values = ChartValues("app", (("gone.yaml",), ()))

    made = render(options=replace(OPTIONS, charts=(values,)))

    assert problems(made) == [("gone.yaml", 0, "no such values file")]
    assert len(made.texts) == 1


@pytest.mark.usefixtures("nothing_on_path", "chart")
def test_without_helm_each_chart_is_a_problem_with_a_remedy(tree: Callable[..., Path]) -> None:
    tree({"plain/pod.yaml": POD})

    made = render()

    assert problems(made) == [("./app/Chart.yaml", 0, "a Helm chart, and helm is not on PATH")]
    assert [part.name for part in made.found if isinstance(part, Input)] == ["./plain/pod.yaml"]


@pytest.mark.usefixtures("helm")
def test_a_library_chart_is_passed_over(chart: Path) -> None:
    (chart / "Chart.yaml").write_text(f"{CHART}type: library\n")

    assert [part.name for part in render().found if isinstance(part, Passed)] == ["./app"]


def test_a_helm_that_hangs_is_ended(program: Callable[[str, str], Path], chart: Path) -> None:
    program("helm", "import time\ntime.sleep(600)")

    made = render([str(chart)], replace(OPTIONS, limits=Limits(seconds=0.5)))

    assert problems(made) == [(f"{chart}/Chart.yaml", 0, "helm did not end within 0.5 s")]


@pytest.fixture
def overlays(tree: Callable[..., Path], program: Callable[[str, str], Path]) -> Path:
    program("kubectl", KUBECTL)
    return tree(
        {
            "base/kustomization.yaml": "resources: [pod.yaml]\n",
            "base/pod.yaml": POD,
            "base/beside.yaml": POD,
            "dev/kustomization.yaml": "resources: [../base]\n",
            "dev/pod.yaml": POD,
            "prod/kustomization.yaml": "resources: [../base, pod.yaml]\n",
            "prod/pod.yaml": POD,
        }
    )


@pytest.mark.usefixtures("overlays")
def test_what_nothing_builds_on_is_built_and_what_is_used_is_not_judged_by_itself() -> None:
    made = render()

    names = [part.name for part in made.found if isinstance(part, Input)]
    assert names == ["./base/beside.yaml", "./dev (rendered)", "./dev/pod.yaml", "./prod (rendered)"]


def test_an_object_of_a_kustomization_knows_its_file(overlays: Path) -> None:
    made = render(["prod"])

    text = made.texts["prod (rendered)"]
    assert text.text == POD
    assert [origin.file for origin in text.origins] == [str(overlays / "prod/pod.yaml")]


@pytest.mark.usefixtures("overlays")
def test_a_file_that_is_named_is_judged_though_a_kustomization_uses_it() -> None:
    assert [part.name for part in render(["prod", "base/pod.yaml"]).found if isinstance(part, Input)] == [
        "prod (rendered)",
        "base/pod.yaml",
    ]


def test_what_kustomize_says_is_shown_where_it_is_about(overlays: Path) -> None:
    (overlays / "prod/broken").touch()

    made = render(["prod"])

    assert problems(made) == [("prod/kustomization.yaml", 1, 'cannot be built: no such "pod.yaml" here')]


REFUSED = {
    "a remote base": (
        "resources: [https://example.com/a.yaml]",
        "resources[0]: https://example.com/a.yaml is somewhere else",
    ),
    "a Helm chart": ("helmCharts: [{name: a}]", "inflates Helm charts"),
}


@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=REFUSED)
def test_what_would_need_a_network_is_not_built_and_says_so_at_its_line(
    text: str, message: str, overlays: Path
) -> None:
    (overlays / "base/kustomization.yaml").write_text(f"# a\n{text}\n")

    (problem,) = problems(render(["dev"]))

    assert problem[:2] == ("base/kustomization.yaml", 2)
    assert problem[2].startswith(message)


@pytest.mark.usefixtures("nothing_on_path")
def test_without_kustomize_each_kustomization_is_a_problem_and_plain_files_are_read(tree: Callable[..., Path]) -> None:
    tree({"a/kustomization.yaml": "resources: [pod.yaml]\n", "a/pod.yaml": POD, "b/pod.yaml": POD})

    made = render()

    assert [message for _, _, message in problems(made)] == [
        "a kustomization, and neither kustomize nor kubectl is on PATH"
    ]
    assert [part.name for part in made.found if isinstance(part, Input)] == ["./b/pod.yaml"]


@pytest.mark.usefixtures("overlays")
def test_a_component_that_nothing_uses_is_passed_over(tree: Callable[..., Path]) -> None:
    tree({"part/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"})

    assert [part.name for part in render(["part"]).found if isinstance(part, Passed)] == ["part"]


CHANGED = {
    "a file of the base": ("base/pod.yaml", ["./dev (rendered)", "./prod (rendered)"]),
    "a file of an overlay": ("prod/pod.yaml", ["./prod (rendered)"]),
    "a kustomization": ("dev/kustomization.yaml", ["./dev (rendered)"]),
    "a file that nothing uses": ("base/beside.yaml", []),
}


@pytest.mark.parametrize(("file", "labels"), CHANGED.values(), ids=CHANGED)
def test_only_what_a_changed_file_is_part_of_is_built(file: str, labels: list[str], overlays: Path) -> None:
    made = render(options=replace(OPTIONS, changed=frozenset({str(overlays / file)})))

    assert list(made.texts) == labels


@pytest.mark.usefixtures("helm")
@pytest.mark.parametrize(("file", "count"), [("app/templates/gone.yaml", 1), ("prod.yaml", 1), ("apple/a.yaml", 0)])
def test_only_a_chart_with_a_changed_file_is_rendered(file: str, count: int, chart: Path) -> None:
    (chart.parent / "prod.yaml").touch()
    values = ChartValues("app", (("prod.yaml",),))
    changed = frozenset({str(chart.parent / file)})

    assert len(render(options=replace(OPTIONS, charts=(values,), changed=changed)).texts) == count
