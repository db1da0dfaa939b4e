from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gpugate.webhook.manifests.inputs import Chart, Input, Passed, sources
from gpugate.webhook.manifests.problems import Problem
from gpugate.webhook.rendering.options import ChartValues, Limits, RenderOptions
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
    return [(part.source, part.line, part.message) for part in made.parts if isinstance(part, Problem)]


def inputs(made: Rendered) -> dict[str, str]:
    """Return what is read, and what it is a part of that was not rendered."""
    return {part.name: part.unrendered for part in made.parts if isinstance(part, Input)}


@pytest.mark.usefixtures("helm", "chart")
def test_a_chart_stands_in_the_place_of_its_files() -> None:
    made = render()

    assert [part.name for part in made.parts if isinstance(part, Input)] == ["./app (rendered)"]
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
def test_without_helm_one_note_names_the_charts_and_plain_templates_are_read(tree: Callable[..., Path]) -> None:
    tree({f"{name}/Chart.yaml": CHART for name in ("b", "c", "d")})
    tree({"b/templates/plain.yaml": POD, "plain/pod.yaml": POD})

    made = render()

    (note,) = (part for part in made.parts if isinstance(part, Problem))
    assert (note.source, note.message) == (
        "./app/Chart.yaml",
        "helm is not on PATH (not rendered: ./app, ./b, ./c and 1 more)",
    )
    assert (note.note, note.of_rendering) == (True, True)
    assert inputs(made) == {"./plain/pod.yaml": "", "./b/templates/plain.yaml": "./b"}
    assert sorted((each.name, each.files) for each in made.not_rendered) == [
        ("./app", 0),
        ("./b", 1),
        ("./c", 0),
        ("./d", 0),
    ]


@pytest.mark.usefixtures("nothing_on_path")
@pytest.mark.parametrize("linked", ["app", "app/templates", "app/templates/pod.yaml"])
def test_templates_behind_a_link_out_of_the_tree_are_not_read(linked: str, tree: Callable[..., Path]) -> None:
    root = tree({"outside/app/Chart.yaml": CHART, "outside/app/templates/pod.yaml": POD, "tree/.git/x": ""})
    link = root / "tree" / linked
    link.parent.mkdir(parents=True, exist_ok=True)
    if linked != "app":
        (root / "tree/app/Chart.yaml").write_text(CHART)
    link.symlink_to(root / "outside" / linked)

    made = rendered([Chart(str(root / "tree/app"))], OPTIONS)

    assert inputs(made) == {}
    assert problems(made)


@pytest.mark.usefixtures("helm")
def test_a_library_chart_is_passed_over(chart: Path) -> None:
    (chart / "Chart.yaml").write_text(f"{CHART}type: library\n")

    assert [part.name for part in render().parts if isinstance(part, Passed)] == ["./app"]


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

    names = [part.name for part in made.parts if isinstance(part, Input)]
    assert names == ["./base/beside.yaml", "./dev (rendered)", "./dev/pod.yaml", "./prod (rendered)"]


def test_an_object_of_a_kustomization_knows_its_file(overlays: Path) -> None:
    made = render(["prod"])

    text = made.texts["prod (rendered)"]
    assert text.text == POD
    assert [origin.file for origin in text.origins] == [str(overlays / "prod/pod.yaml")]


@pytest.mark.usefixtures("overlays")
def test_a_file_that_is_named_is_judged_though_a_kustomization_uses_it() -> None:
    assert [part.name for part in render(["prod", "base/pod.yaml"]).parts if isinstance(part, Input)] == [
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
        "resources[0]: https://example.com/a.yaml is remote",
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
def test_without_kustomize_one_note_names_the_kustomizations_and_their_resources_are_read_as_they_are(
    tree: Callable[..., Path],
) -> None:
    tree({f"{name}/kustomization.yaml": "resources: [pod.yaml]\n" for name in ("a", "c")})
    tree({f"{name}/pod.yaml": POD for name in ("a", "b", "c")})

    made = render()

    (note,) = (part for part in made.parts if isinstance(part, Problem))
    assert note.message == "neither kustomize nor kubectl is on PATH (not rendered: ./a, ./c)"
    assert note.note
    assert inputs(made) == {"./a/pod.yaml": "./a", "./b/pod.yaml": "", "./c/pod.yaml": "./c"}


BROKEN = {
    "a missing file of the base": {
        "base/kustomization.yaml": "resources: [pod.yaml]\nconfigMapGenerator: [{name: a, envs: [.env]}]\n"
    },
    "a remote resource of the base": {
        "base/kustomization.yaml": "resources: [pod.yaml, 'https://example.com/a.yaml']\n"
    },
    "a remote resource of each": {
        "dev/kustomization.yaml": "resources: [../base, 'https://example.com/a.yaml']\n",
        "prod/kustomization.yaml": "resources: ['https://example.com/a.yaml', pod.yaml, ../base]\n",
    },
    "charts in each": {
        "dev/kustomization.yaml": "resources: [../base]\nhelmCharts: [{name: a}]\n",
        "prod/kustomization.yaml": "resources: [pod.yaml, ../base]\nhelmCharts: [{name: b}]\n",
    },
}


@pytest.mark.parametrize("files", BROKEN.values(), ids=BROKEN)
@pytest.mark.usefixtures("overlays")
def test_a_cause_is_told_once_and_what_can_be_read_is_read(files: dict[str, str], tree: Callable[..., Path]) -> None:
    tree({"prod/kustomization.yaml": "resources: [../base, pod.yaml]\n", **files})

    made = render()

    (cause,) = problems(made)
    assert cause[2].endswith("(not rendered: ./dev, ./prod)")
    assert inputs(made) == {
        "./base/beside.yaml": "",
        "./base/pod.yaml": "./dev",
        "./dev/pod.yaml": "",
        "./prod/pod.yaml": "./prod",
    }
    assert [(each.name, each.files) for each in made.not_rendered] == [("./dev", 1), ("./prod", 1)]


@pytest.mark.usefixtures("overlays")
def test_what_another_overlay_builds_is_not_read_as_it_is(tree: Callable[..., Path]) -> None:
    tree({"prod/kustomization.yaml": "resources: [../base, pod.yaml, gone.yaml]\npatches: [{patch: '{}'}]\n"})

    made = render()

    assert inputs(made) == {
        "./base/beside.yaml": "",
        "./dev (rendered)": "",
        "./dev/pod.yaml": "",
        "./prod/pod.yaml": "./prod",
    }
    assert [part.altered for part in made.parts if isinstance(part, Input)] == [False, False, False, True]


@pytest.mark.usefixtures("overlays")
def test_a_resource_outside_of_the_paths_is_read_too(tree: Callable[..., Path]) -> None:
    tree({"dev/kustomization.yaml": "resources: [../base, gone.yaml]\n"})

    assert inputs(render(["dev"])) == {"dev/pod.yaml": "", "base/pod.yaml": "dev"}


@pytest.mark.usefixtures("overlays")
def test_the_resources_of_a_component_that_nothing_uses_are_read(tree: Callable[..., Path]) -> None:
    tree({"part/kustomization.yaml": "kind: Component\nresources: [pod.yaml]\n", "part/pod.yaml": POD})

    assert inputs(render(["part"])) == {"part/pod.yaml": "part"}


# As much of `helm template` as the ways are about: it misses a dependency, or refuses a namespace.
PICKY_HELM = """
import pathlib, sys
about = pathlib.Path(sys.argv[-1], "Chart.yaml").read_text()
if "absent" in about:
    print("Error: found in Chart.yaml, but missing in charts/ directory: absent", file=sys.stderr)
    sys.exit(1)
if "picky" in about and "--namespace=default" in sys.argv:
    print("Error: execution error at (app/templates/a.yaml:1:1): not in namespace default", file=sys.stderr)
    sys.exit(1)
if "broken" in about:
    print("Error: execution error at (app/templates/a.yaml:2:1): no x", file=sys.stderr)
    sys.exit(1)
print("a: 1  # " + " ".join(sys.argv[2:]) + about.replace("\\n", " "))
"""


def test_a_chart_is_rendered_without_the_dependencies_that_are_not_there(
    program: Callable[[str, str], Path], chart: Path
) -> None:
    program("helm", PICKY_HELM)
    (chart / "Chart.yaml").write_text(f"{CHART}dependencies: [{{name: absent}}, {{name: held}}]\n")

    made = render()

    (text,) = made.texts.values()
    assert '"dependencies": [{"name": "held"}]' in text.text
    wrong = "rendered without its dependencies absent, which are not in charts/"
    assert problems(made) == [("./app/Chart.yaml", 0, wrong)]
    assert [(part.note, part.of_rendering) for part in made.parts if isinstance(part, Problem)] == [(True, False)]
    assert made.not_rendered == ()


@pytest.mark.parametrize(("namespace", "wanted"), [("default", "app"), ("other", "other")])
def test_a_chart_that_refuses_the_namespace_default_gets_one_of_its_own(
    namespace: str, wanted: str, program: Callable[[str, str], Path], chart: Path
) -> None:
    program("helm", PICKY_HELM)
    (chart / "Chart.yaml").write_text(f"{CHART}description: picky\n")

    (text,) = render(options=replace(OPTIONS, namespace=namespace)).texts.values()

    assert f"--namespace={wanted}" in text.text


NAMED = {"a namespace of the project file": ("default", 0), "none": ("", 2)}


@pytest.mark.parametrize(("namespace", "line"), NAMED.values(), ids=NAMED)
def test_of_two_ways_that_fail_the_one_that_got_further_is_told(
    namespace: str, line: int, program: Callable[[str, str], Path], chart: Path
) -> None:
    program("helm", PICKY_HELM)
    (chart / "Chart.yaml").write_text(f"{CHART}description: picky and broken\n")
    (chart / "templates/a.yaml").write_text("a: 1\nb: 1\n")
    values = ChartValues("app", namespace=namespace)

    made = render(options=replace(OPTIONS, charts=(values,)))

    assert [found[1] for found in problems(made)] == [line or 1]


@pytest.mark.usefixtures("helm")
def test_a_cause_that_several_values_share_is_told_once(chart: Path) -> None:
    (chart / "templates/pod.yaml").write_text("a: 1\n{{ fail }}\n")
    for name in ("a.yaml", "b.yaml"):
        (chart.parent / name).touch()
    values = ChartValues("app", (("a.yaml",), ("b.yaml",)))

    made = render(options=replace(OPTIONS, charts=(values,)))

    ((file, line, message),) = problems(made)
    assert (file, line) == ("./app/templates/pod.yaml", 2)
    assert message.endswith("(not rendered: ./app with a.yaml, ./app with b.yaml)")


@pytest.mark.usefixtures("overlays")
def test_a_component_that_nothing_uses_is_passed_over(tree: Callable[..., Path]) -> None:
    tree({"part/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"})

    assert [part.name for part in render(["part"]).parts if isinstance(part, Passed)] == ["part"]


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
