"""Charts that the real Helm renders: places, values, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    Json = dict[str, Any]

REPOSITORY = Path(__file__).parents[2]
COSTS = ("--select", "pods/missing-cost-labels", "--no-schemas")
CHART = {
    "app/Chart.yaml": "apiVersion: v2\nname: vllm\nversion: 0.1.0\n",
    "app/values.yaml": "gpus: 1\nresources: {limits: {nvidia.com/gpu: 1}}\nsides: 2\n",
    "app/templates/_helpers.tpl": '{{- define "vllm.labels" -}}\napp: {{ .Chart.Name }}\ntier: x\n{{- end }}\n',
    "app/templates/deploy.yaml": """{{- if .Values.resources }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
spec:
  selector: {matchLabels: {app: vllm}}
  template:
    metadata:
      labels:
        {{- include "vllm.labels" . | nindent 8 }}
    spec:
      containers:
        - name: main
          image: "x:latest"
          resources:
            {{- toYaml .Values.resources | nindent 12 }}
        {{- range $side := until (int .Values.sides) }}
        - name: side{{ $side }}
          image: y
          resources:
            limits: {nvidia.com/gpu: {{ $.Values.gpus }}}
        {{- end }}
{{- end }}
""",
}


def places(report: Json) -> list[tuple[str, int, int | None]]:
    """Every place that findings name; what has one cause is one finding."""
    found = (place for finding in report["findings"] for place in (finding, *finding["related"]))
    return sorted({(each["file"], each["line"], each["rendered_line"]) for each in found})


def test_our_own_chart_is_clean(ran: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = ran(REPOSITORY, "check", "--no-config", "charts/gpugate")

    assert (done.returncode, done.stderr) == (0, "")
    assert "0 errors, 0 warnings, 0 notes" in done.stdout


def test_findings_are_shown_in_the_templates(checked: Callable[..., Json], tree: Callable[..., Path]) -> None:
    assert places(checked(tree(CHART), "app", *COSTS)) == [("app/templates/deploy.yaml", 10, None)]


LINES = {
    "text": ("metadata:\n  name: a", 4),
    "a value": ("metadata:\n  name: {{ .Release.Name }}", 4),
    "behind a condition": ("{{- if true }}\nmetadata:\n  name: a\n{{- end }}", 5),
    "in a loop": ("{{- range list 1 }}\nmetadata:\n  name: a\n{{- end }}", 5),
    "by an action": ('{{- toYaml (dict "metadata" (dict "name" "a")) | nindent 0 }}', 4),
}


@pytest.mark.parametrize(("written", "line"), LINES.values(), ids=LINES)
def test_a_line_is_certain_however_it_is_written(
    written: str, line: int, checked: Callable[..., Json], tree: Callable[..., Path]
) -> None:
    spec = "spec:\n  containers:\n  - {name: a, image: b, resources: {limits: {nvidia.com/gpu: 1}}}\n"
    text = f"# a comment\napiVersion: v1\nkind: Pod\n{written}\n{spec}"
    root = tree({"app/Chart.yaml": CHART["app/Chart.yaml"], "app/templates/pod.yaml": text})

    assert places(checked(root, "app", *COSTS)) == [("app/templates/pod.yaml", line, None)]


def test_a_chart_that_is_the_repository_cannot_print_what_is_gits(
    checked: Callable[..., Json], tree: Callable[..., Path]
) -> None:
    expires = 'expireAfter: {{ (.Files.Get ".git/config" | default "never") | quote }}'
    pool = f"apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {{name: a}}\nspec:\n  template:\n    spec:\n      {expires}\n"
    root = tree(
        {
            "Chart.yaml": CHART["app/Chart.yaml"],
            "templates/pool.yaml": pool,
            ".git/HEAD": "ref: refs/heads/main\n",
            ".git/config": "[http]\n  extraheader = secret\n",
        }
    )

    (found,) = (each for each in checked(root, ".")["findings"] if each["path"].endswith("expireAfter"))

    assert (found["file"], found["line"], "never" in found["message"]) == ("./templates/pool.yaml", 7, True)


def test_a_line_of_two_possible_actions_is_one_of_the_rendered_text(
    checked: Callable[..., Json], tree: Callable[..., Path]
) -> None:
    text = (
        'apiVersion: v1\nkind: Pod\n{{- include "a" . | nindent 0 }}\n{{- include "b" . | nindent 0 }}\n'
        '{{- define "a" }}metadata: {name: a}{{ end }}\n'
        '{{- define "b" }}spec: {containers: [{name: a, image: b, resources: {limits: {nvidia.com/gpu: 1}}}]}{{ end }}\n'
    )
    root = tree({"app/Chart.yaml": CHART["app/Chart.yaml"], "app/templates/pod.yaml": text})

    assert places(checked(root, "app", *COSTS)) == [("app/templates/pod.yaml", 1, 5)]


def test_a_subchart_under_another_name_has_its_own_files(
    checked: Callable[..., Json], tree: Callable[..., Path]
) -> None:
    spec = "spec: {containers: [{name: a, image: b, resources: {limits: {nvidia.com/gpu: 1}}}]}\n"
    root = tree(
        {
            "app/Chart.yaml": CHART["app/Chart.yaml"] + "dependencies: [{name: sub, version: 0.1.0, alias: second}]\n",
            "app/charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 0.1.0\n",
            "app/charts/sub/templates/pod.yaml": f"apiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\n{spec}",
        }
    )

    assert places(checked(root, ".", *COSTS)) == [("./app/charts/sub/templates/pod.yaml", 3, None)]


def test_values_are_rendered_each_by_itself(checked: Callable[..., Json], tree: Callable[..., Path]) -> None:
    files = {f"{name}.yaml": f"sides: {number}\n" for number, name in enumerate(("a", "b", "c", "d", "e"))}
    charts = f"charts: [{{path: app, values: [{', '.join(files)}]}}]\n"
    root = tree({**CHART, **files, ".gpugate.yaml": charts})

    report = checked(root, ".", *COSTS)

    assert report["summary"]["objects"] == 5
    assert [each["rendered_with"] for each in report["findings"]] == [sorted(files)]


REFUSED = {
    "a value that is required": ({"app/templates/x.yaml": '\n{{ required "need x" .Values.x }}\n'}, "app/templates/x.yaml", 2),
    "a template that is none": ({"app/templates/x.yaml": "a: 1\n{{ if }}\n"}, "app/templates/x.yaml", 2),
    "a definition": (
        {"app/templates/x.yaml": '{{ include "x" . }}', "app/templates/_x.tpl": '{{ define "x" }}\n{{ .Values.a.b.c }}{{ end }}'},
        "app/templates/_x.tpl",
        2,
    ),
    "what is no YAML": ({"app/templates/x.yaml": "a: b\n  c: d\n"}, "app/templates/x.yaml", 0),
    "values that are no YAML": ({"app/values.yaml": "a: [\n"}, "app/values.yaml", 1),
    "a dependency that was not fetched": (
        {"app/Chart.yaml": CHART["app/Chart.yaml"] + "dependencies: [{name: b, version: 1.0.0, repository: https://x}]\n"},
        "app/Chart.yaml",
        0,
    ),
    "a version of Kubernetes": ({"app/Chart.yaml": CHART["app/Chart.yaml"] + 'kubeVersion: ">=1.99"\n'}, "app/Chart.yaml", 0),
}  # fmt: skip


@pytest.mark.parametrize(("files", "file", "line"), REFUSED.values(), ids=REFUSED)
def test_what_helm_refuses_is_shown_at_its_place(
    files: dict[str, str], file: str, line: int, checked: Callable[..., Json], tree: Callable[..., Path]
) -> None:
    root = tree({**CHART, **files})

    report = checked(root, "app", *COSTS)

    # What can be rendered or read without it is evaluated all the same.
    refused = [finding for finding in report["findings"] if finding["sort"] == "unreadable"]
    assert places({"findings": refused}) == [(file, line, None)]
    assert report["summary"]["exit_code"] == 4


def test_a_chart_that_links_to_itself_ends(checked: Callable[..., Json], tree: Callable[..., Path]) -> None:
    root = tree(CHART)
    (root / "app/files").mkdir()
    (root / "app/files/loop").symlink_to(root / "app")

    report = checked(root, ".", "--render-timeout", "20s", *COSTS)

    assert report["summary"]["exit_code"] == 4
