"""What `gpugate check` reads, renders and leaves out, and where it shows what it finds."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import Ran

    Run = Callable[..., Ran]

POD = """apiVersion: v1
kind: Pod
metadata:
  name: {name}
spec:
  containers:
    - name: main
      image: a
      resources:
        limits:
          nvidia.com/gpu: 1
"""
CHART = {
    "app/Chart.yaml": "apiVersion: v2\nname: app\nversion: 1.0.0\n",
    "app/values.yaml": "a: 1\n",
    "app/templates/pod.yaml": "# a comment\n" + POD.format(name="{{ .Release.Name }}"),
}
# Writes the templates as they are, but for the name of the release; a second time, with marks, as long as asked to.
HELM = """
import pathlib, sys
release, chart = sys.argv[-2:]
for template in sorted(pathlib.Path(chart, "templates").rglob("*.yaml")):
    text = template.read_text().replace("{{ .Release.Name }}", release)
    if "UNCERTAIN" in text and "gpugate-line" in text:
        sys.exit(1)
    print(f"---\\n# Source: app/templates/{template.name}\\n{text}", end="")
"""
COSTS = "pods/missing-cost-labels"


@pytest.fixture
def helm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "programs/helm"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable} -S\n{HELM}")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))


def checked(gpugate: Run, *arguments: str | Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gpugate("check", "-o", "json", "--select", COSTS, *arguments).out)
    return found


def places(report: dict[str, Any]) -> list[tuple[str, int, int | None]]:
    """File, line and rendered line of each place that findings name; what has one cause is one finding."""
    found = (place for finding in report["findings"] for place in (finding, *finding["related"]))
    return [(each["file"], each["line"], each["rendered_line"]) for each in found]


@pytest.mark.usefixtures("helm")
def test_a_finding_in_a_chart_is_shown_in_its_template(gpugate: Run, tree: Callable[..., Path]) -> None:
    tree(CHART)

    assert places(checked(gpugate, "app")) == [("app/templates/pod.yaml", 4, None)]


@pytest.mark.usefixtures("helm")
def test_a_line_that_is_not_certain_is_one_of_the_rendered_text_and_says_so(
    gpugate: Run, tree: Callable[..., Path]
) -> None:
    tree({**CHART, "app/templates/pod.yaml": "# UNCERTAIN\n" + CHART["app/templates/pod.yaml"]})

    text = gpugate("check", "--select", COSTS, "app").out
    github = gpugate("check", "--select", COSTS, "app", "-o", "github").out

    assert "app/templates/pod.yaml (rendered:7)" in text
    assert "7 | metadata:" in text
    assert "file=app/templates/pod.yaml,line=1," in github
    assert "(line 7 of what this renders to)" in github


@pytest.mark.usefixtures("helm")
def test_a_line_is_not_certain_where_lines_can_be_counted_in_two_ways(gpugate: Run, tree: Callable[..., Path]) -> None:
    separated = CHART["app/templates/pod.yaml"].replace("# a comment", "# a\u2028comment")
    tree({**CHART, "app/templates/pod.yaml": separated})

    ((file, line, rendered),) = places(checked(gpugate, "app"))

    assert (file, line) == ("app/templates/pod.yaml", 1)
    assert rendered is not None


@pytest.mark.usefixtures("helm")
def test_a_form_feed_ends_no_line(gpugate: Run, tree: Callable[..., Path], tmp_path: Path) -> None:
    comment = "{{/* a\\x0cb */}}\\n"
    tree({**CHART, "app/templates/pod.yaml": "{{/* a\x0cb */}}\n" + POD.format(name="{{ .Release.Name }}")})
    program = tmp_path / "programs/helm"
    program.write_text(program.read_text().replace(", release)", f', release).replace("{comment}", "")'))

    text = gpugate("check", "--select", COSTS, "app").out

    assert "4 | metadata:" in text


@pytest.mark.usefixtures("helm")
def test_values_with_the_same_finding_are_told_together(gpugate: Run, tree: Callable[..., Path]) -> None:
    charts = "charts: [{path: app, values: [a.yaml, [a.yaml, b.yaml]]}]\n"
    tree({**CHART, "a.yaml": "a: 1\n", "b.yaml": "b: 1\n", ".gpugate.yaml": charts})

    report = checked(gpugate, "app")

    assert [each["rendered_with"] for each in report["findings"]] == [["a.yaml", "a.yaml, b.yaml"]]
    assert report["summary"]["objects"] == 2


@pytest.mark.usefixtures("helm")
def test_flags_name_a_chart_and_its_values(gpugate: Run, tree: Callable[..., Path]) -> None:
    tree({**CHART, "prod.yaml": "a: 2\n"})

    report = checked(gpugate, "--helm", "app", "--values", "prod.yaml", "--set", "b=1", "--release", "mine")

    assert [(each["object"]["name"], each["rendered_with"]) for each in report["findings"]] == [
        ("mine", ["prod.yaml, --set b=..."])
    ]


@pytest.mark.usefixtures("helm")
def test_flags_replace_what_the_project_file_says_of_a_chart(gpugate: Run, tree: Callable[..., Path]) -> None:
    charts = "charts:\n  - path: app\n    values: [staging.yaml]\n"
    tree({**CHART, "prod.yaml": "a: 2\n", "staging.yaml": "a: 3\n", ".gpugate.yaml": charts})

    report = checked(gpugate, "--helm", "app", "--values", "prod.yaml")

    assert [each["rendered_with"] for each in report["findings"]] == [["prod.yaml"]]


@pytest.mark.usefixtures("helm")
def test_a_chart_of_the_project_file_that_is_not_there_is_told(gpugate: Run, tree: Callable[..., Path]) -> None:
    tree({**CHART, ".gpugate.yaml": "charts:\n  - path: ap\n    values: [staging.yaml]\n"})

    ran = gpugate("check", "app")

    assert (ran.code, "no such chart" in ran.out + ran.err) == (4, True)


@pytest.mark.usefixtures("helm")
def test_a_comment_in_a_template_lets_a_finding_pass(gpugate: Run, tree: Callable[..., Path]) -> None:
    template = CHART["app/templates/pod.yaml"].replace("metadata:", f"metadata:  # gpugate: ignore[{COSTS}] shared")
    tree({**CHART, "app/templates/pod.yaml": template})

    report = checked(gpugate, "app")

    assert (report["findings"], len(report["suppressed"])) == ([], 1)
    assert report["suppressed"][0]["file"] == "app/templates/pod.yaml"


@pytest.mark.usefixtures("helm")
def test_fixes_leave_a_template_alone_and_say_so(gpugate: Run, tree: Callable[..., Path]) -> None:
    root = tree(CHART)

    ran = gpugate("check", "--fix", "--select", "pods/missing-gpu-toleration", "app")

    assert (root / "app/templates/pod.yaml").read_text() == CHART["app/templates/pod.yaml"]
    assert "was not fixed: the evaluated object is rendered from this file" in ran.out
    assert "can be fixed with --fix" not in ran.out


@pytest.mark.usefixtures("helm")
def test_without_rendering_files_are_read_as_they_are(gpugate: Run, tree: Callable[..., Path]) -> None:
    tree({**CHART, "plain/pod.yaml": POD.format(name="a"), "plain/kustomization.yaml": "resources: [pod.yaml]\n"})

    assert places(checked(gpugate, "--no-render", ".")) == [("./plain/pod.yaml", 3, None)]


USAGE = {
    "values without a chart": (["--values", "a.yaml", "plain"], "the input contains 0"),
    "values for several charts": (["--set", "a=b", "--helm", "app", "--helm", "plain"], "the input contains 2"),
    "values and no rendering": (["--no-render", "--values", "a.yaml"], "--no-render excludes --helm"),
    "no history": (["--changed-since", "main"], "is not in a git work tree"),
    "a time that is none": (["--render-timeout", "soon"], "invalid duration 'soon': write 90s, 5m or 1h"),
}


@pytest.mark.usefixtures("helm")
@pytest.mark.parametrize(("arguments", "message"), USAGE.values(), ids=USAGE)
def test_flags_that_do_not_fit_together_are_refused(
    arguments: list[str], message: str, gpugate: Run, tree: Callable[..., Path]
) -> None:
    tree({**CHART, "plain/pod.yaml": POD.format(name="a")})

    ran = gpugate("check", *arguments)

    assert ran.code == 2
    assert message in ran.err


def test_without_helm_the_run_is_incomplete_and_plain_files_are_judged(
    gpugate: Run, tree: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    tree({**CHART, "plain/pod.yaml": POD.format(name="a")})

    ran = gpugate("check", "--select", COSTS, ".")

    assert ran.code == 4
    assert "note[unreadable]: helm is not on PATH (not rendered: ./app)" in ran.out
    assert "./plain/pod.yaml:3" in ran.out
    # The chart counts once: as not rendered, and not as a part that could not be read.
    assert "1 chart or kustomization was not rendered" in ran.out
    assert "could not be read" not in ran.out


SINGLE = """apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: gpu}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: gpu}
      requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [g5.xlarge]}]
"""
# What an overlay is besides its resources, with the exit code, and what its objects are then.
AS_THEY_ARE = {
    "nothing": ("", 1, "error", "would be DENIED (enforce)"),
    "a name prefix": ("namePrefix: a-\n", 1, "error", "would be DENIED (enforce)"),
    "patches": ("patches: [{patch: '{}'}]\n", 4, "warning", "depends on what over changes, which was not built"),
}


@pytest.mark.parametrize("case", AS_THEY_ARE.values(), ids=AS_THEY_ARE)
def test_the_objects_of_what_is_not_built_are_evaluated_as_they_are(
    case: tuple[str, int, str, str], gpugate: Run, tree: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    text, code, severity, at_admission = case
    monkeypatch.setenv("PATH", "/nowhere")
    tree({"base/kustomization.yaml": "resources: [pool.yaml]\n", "base/pool.yaml": SINGLE})
    tree({"over/kustomization.yaml": f"resources: [../base]\n{text}"})

    ran = gpugate("check", "--select", "nodepools/single-instance-type", "-o", "json", "over")

    report = json.loads(ran.out)
    finding = next(each for each in report["findings"] if each["policy"])
    assert (ran.code, finding["severity"], finding["at_admission"]) == (code, severity, at_admission)
    assert (finding["file"], finding["line"]) == ("base/pool.yaml", 8)
    assert (finding["unrendered"], finding["without_patches"]) == ("over", "patches" in text)
    assert report["not_rendered"] == [{"name": "over", "files": 1}]
    assert gpugate("check", "--fix", "over").code == code
    assert (tree({}) / "base/pool.yaml").read_text() == SINGLE


IN_TERRAFORM = {
    "a heredoc": f"x = <<E\n{SINGLE}E\n",
    "an object": """x = {
  apiVersion = "karpenter.sh/v1"
  kind = "NodePool"
  metadata = { name = "gpu" }
  spec = { template = { spec = {
      nodeClassRef = { group = "karpenter.k8s.aws", kind = "EC2NodeClass", name = "gpu" }

      requirements = [

        { key = "node.kubernetes.io/instance-type", operator = "In", values = ["g5.xlarge"] }] } } }
}
""",
}


@pytest.mark.parametrize("text", IN_TERRAFORM.values(), ids=IN_TERRAFORM)
def test_a_finding_in_terraform_is_at_its_line_and_is_not_fixed(
    text: str, gpugate: Run, tree: Callable[..., Path]
) -> None:
    root = tree({"main.tf": text})

    ran = gpugate("check", "--select", "nodepools/single-instance-type", "-o", "json", ".")

    (finding,) = json.loads(ran.out)["findings"]
    assert (ran.code, finding["file"]) == (1, "./main.tf")
    assert "g5.xlarge" in text.splitlines()[finding["line"] - 1]
    assert "was not fixed: gpugate does not edit Terraform" in gpugate("check", "--fix", "--unsafe-fixes", ".").out
    assert (root / "main.tf").read_text() == text
    lines = text.splitlines()
    lines[finding["line"] - 1] += "  # gpugate: ignore[nodepools/single-instance-type] one is enough"
    tree({"main.tf": "\n".join(lines) + "\n"})
    assert gpugate("check", "--select", "nodepools/single-instance-type", ".").code == 0


NODE_CLASS = """resource "kubectl_manifest" "gpu" {
  yaml_body = <<-YAML
    apiVersion: karpenter.k8s.aws/v1
    kind: EC2NodeClass
    metadata: {name: gpu}
    spec:
      role: ${module.karpenter.role}
      amiSelectorTerms: ${jsonencode([{ alias = var.alias }])}
      subnetSelectorTerms: [{tags: {"karpenter.sh/discovery": ${var.name}}}]
      securityGroupSelectorTerms: [{tags: {"karpenter.sh/discovery": ${var.name}}}]
  YAML
}
resource "kubernetes_manifest" "pod" {
  manifest = {
    apiVersion = "v1"
    kind       = "Pod"
    metadata   = { name = var.name, labels = merge(var.labels, { a = "b" }) }
    spec       = { containers = [{ name = "a", image = "${var.image}:1", resources = { limits = { "nvidia.com/gpu" = var.gpus } } }] }
  }
}
"""


def test_values_that_only_terraform_knows_are_no_findings(gpugate: Run, tree: Callable[..., Path]) -> None:
    tree({"main.tf": NODE_CLASS})

    report = json.loads(gpugate("check", "-o", "json", ".").out)

    assert report["summary"]["objects"] == 2
    assert [each for each in report["findings"] if "${" in each["message"] or each["sort"] == "schema"] == []
    assert [each for each in report["findings"] if each["policy"] == "nodeclasses/unexpanded-placeholder"] == []


VALUES = """nodePools:
  gpu:
    template:
      spec:
        requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [g5.xlarge]}]
"""


@pytest.mark.parametrize(("files", "lines"), [("values/*.yaml", [5]), ("other.yaml", [])])
def test_objects_in_values_are_evaluated_where_the_project_file_says_so(
    files: str, lines: list[int], gpugate: Run, tree: Callable[..., Path]
) -> None:
    how = f"{{files: ['{files}'], path: nodePools.*, api_version: karpenter.sh/v1, kind: NodePool}}"
    tree({".gpugate.yaml": f"objects_in_values: [{how}]\n", "values/a.yaml": VALUES})

    report = json.loads(gpugate("check", "--select", "nodepools/single-instance-type", "-o", "json", ".").out)

    assert [(each["file"], each["line"]) for each in report["findings"]] == [("./values/a.yaml", n) for n in lines]


def test_a_resource_that_cannot_be_read_is_told_once(
    gpugate: Run, tree: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "Error: accumulating resources: accumulating resources from 'bad.yaml': MalformedYAMLError: yaml: line 1"
    program = tmp_path / "programs/kustomize"
    program.parent.mkdir()
    program.write_text(f'#!{sys.executable} -S\nimport sys\nsys.exit("{said}")\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    tree(
        {
            "a/kustomization.yaml": "resources: [bad.yaml, pod.yaml]\n",
            "a/bad.yaml": "apiVersion: v1\nkind: Pod\nmetadata: [\n",
        }
    )
    tree({"a/pod.yaml": POD.format(name="a")})

    report = checked(gpugate, "a")

    assert places(report) == [("a/bad.yaml", 4, None), ("a/pod.yaml", 3, None)]
    assert report["summary"]["exit_code"] == 4


def test_excluded_files_are_not_read_unless_they_are_named(gpugate: Run, tree: Callable[..., Path]) -> None:
    tree({f"{name}.yaml": POD.format(name=name) for name in ("a", "b")})

    assert places(checked(gpugate, "--exclude", "b.*", ".")) == [("./a.yaml", 3, None)]
    assert places(checked(gpugate, "--exclude", "b.*", "b.yaml")) == [("b.yaml", 3, None)]
    assert gpugate("check", "--exclude", "b.*", "--force-exclude", "b.yaml").code == 3


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not on PATH")
def test_what_git_ignores_is_not_read_unless_it_is_asked_for(gpugate: Run, tree: Callable[..., Path]) -> None:
    tree({"a.yaml": POD.format(name="a"), "out/b.yaml": POD.format(name="b"), ".gitignore": "out/\n"})
    subprocess.run(["git", "init", "--quiet"], check=True)  # noqa: S607 -- git, wherever it is

    assert places(checked(gpugate, ".")) == [("./a.yaml", 3, None)]
    assert len(places(checked(gpugate, "--no-respect-gitignore", "."))) == 2


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not on PATH")
def test_only_changed_files_are_read(gpugate: Run, tree: Callable[..., Path]) -> None:
    root = tree({f"{name}.yaml": POD.format(name=name) for name in ("a", "b")})
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    for arguments in (["init", "-q"], ["add", "."], [*who, "commit", "-q", "-m", "first"]):
        subprocess.run(["git", *arguments], check=True)  # noqa: S603, S607 -- fixed words
    (root / "b.yaml").write_text("# changed\n" + POD.format(name="b"))

    report = checked(gpugate, "--changed-since", "HEAD", ".")

    assert places(report) == [("./b.yaml", 4, None)]
    assert report["summary"]["files"] == 1


def test_standard_input_has_the_name_that_is_given(
    gpugate: Run, tree: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    tree({})
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(POD.format(name="a").encode())))

    assert places(checked(gpugate, "--stdin-filename", "app.yaml", "-")) == [("app.yaml", 3, None)]


NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: default, labels: {team: a, cost-center: b}}\n"


def test_context_is_looked_up_and_not_judged(gpugate: Run, tree: Callable[..., Path], configured: Path) -> None:
    listed = {"apiVersion": "v1", "kind": "PodList", "items": [{"metadata": {"name": "other"}, "spec": {}}]}
    tree({"a.yaml": POD.format(name="a"), "dump/namespaces.yaml": NAMESPACE, "dump/pods.json": json.dumps(listed)})

    with_it = checked(gpugate, "--policy-file", configured, "--context-from", "dump", "a.yaml")
    without = checked(gpugate, "a.yaml")

    assert [each["sort"] for each in without["findings"]] == ["violation"]
    assert {each["message"] for each in with_it["findings"]} == {
        "gpugate adds the label team: a of namespace default, for cost reports",
        "gpugate adds the label cost-center: b of namespace default, for cost reports",
    }
    assert (with_it["summary"]["objects"], with_it["summary"]["files"]) == (1, 1)


POOL = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: gpu}
spec: {template: {spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: gpu}, requirements: []}}}
"""
APPLICATION = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: karpenter-resources}
spec: {source: {repoURL: https://charts.example.com, chart: node-classes}}
"""


@pytest.mark.parametrize(
    ("flags", "found"),
    [
        pytest.param(["pool.yaml"], 1, id="no chart"),
        pytest.param(["pool.yaml", "application.yaml"], 0, id="a chart that may contain the node class"),
        pytest.param(["pool.yaml", "application.yaml", "--context-from", "dump"], 1, id="all objects of the cluster"),
    ],
)
def test_what_a_chart_may_contain_is_not_missing(
    flags: list[str], found: int, gpugate: Run, tree: Callable[..., Path]
) -> None:
    tree({"pool.yaml": POOL, "application.yaml": APPLICATION, "dump/namespaces.yaml": NAMESPACE})

    ran = checked(gpugate, "--complete-context", "--select", "nodepools/dangling-node-class", *flags)

    assert [each["policy"] for each in ran["findings"]] == ["nodepools/dangling-node-class"] * found


def test_context_that_cannot_be_read_leaves_the_run_incomplete(gpugate: Run, tree: Callable[..., Path]) -> None:
    tree({"a.yaml": POD.format(name="a"), "dump.yaml": "a: [\n"})

    ran = gpugate("check", "--context-from", "dump.yaml", "--context-from", "gone.yaml", "a.yaml")

    assert ran.code == 4
    assert "dump.yaml:2" in ran.out
    assert "gone.yaml" in ran.out
