"""`gpugate check` in repositories of strangers: nothing of the machine is in what it writes.

Each repository names a file beside it, which holds a canary; a program that would render it does not start, or it prints
what it can reach. The error names the file and the setting.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import tarfile
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import pytest

from gpugate.webhook.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Written: TypeAlias = Callable[[Path, Path, tuple[str, ...]], str]

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git is not on PATH")

CANARY = "c4n4ry-0f-the-runner"
# Read as YAML, JSON, a kustomization, a policy file or a list of lines it is wrong in some way that shows its text.
SECRET = f'apiVersion: {CANARY}\nkind: "{CANARY}\n{CANARY}: [\n'
POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, image: a}]}\n"
CHART = "apiVersion: v2\nname: app\nversion: 0.1.0\n"
# Stands for helm, kustomize and kubectl: says that it was started.
PROGRAM = "#!/bin/sh\ntouch {started}\n"
FORMATS = ("concise", "text=out.text", "json=out.json", "sarif=out.sarif", "github=out.github", "gitlab=out.gitlab")


class Hostile(NamedTuple):
    """A repository: its files, its links, and parts of the line that names the file and the key, or the link."""

    files: dict[str, str]
    names: str
    links: dict[str, str] = {}  # noqa: RUF012 -- never changed
    arguments: tuple[str, ...] = (".",)


def archive(files: dict[str, str]) -> bytes:
    """Return a .tgz with some files."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as opened:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            opened.addfile(member, io.BytesIO(text.encode()))
    return packed.getvalue()


def kustomization(text: str, names: str, **links: str) -> Hostile:
    return Hostile(
        {"app/kustomization.yaml": f"{text}\n", "app/pod.yaml": POD}, f"app/kustomization.yaml:1 ... {names}", links
    )


def inflated(text: str, names: str) -> Hostile:
    files = {"app/kustomization.yaml": f"{text}\n", "app/charts/c/Chart.yaml": CHART}
    return Hostile(files, f"app/kustomization.yaml:1 ... {names}", {}, ("--enable-helm", "-k", "app"))


PROJECTS = {
    "a policy file": Hostile({".gpugate.yaml": "policy_file: ../secret\n"}, ".gpugate.yaml:1:14: policy_file"),
    "a baseline": Hostile({".gpugate.yaml": "baseline: /proc/self/environ\n"}, ".gpugate.yaml:1:11: baseline"),
    "values of a chart": Hostile(
        {".gpugate.yaml": "charts: [{path: app, values: [../secret]}]\n", "app/Chart.yaml": CHART},
        ".gpugate.yaml:1:31: charts[0].values[0]",
    ),
    "what is checked": Hostile(
        {".gpugate.yaml": "paths: [pod.yaml, ../secret]\n"}, ".gpugate.yaml:1:19: paths[1]", {}, ()
    ),
    "a pattern": Hostile({".gpugate.yaml": "paths: ['../s*']\n"}, ".gpugate.yaml:1:9: paths[0]", {}, ()),
    "a context": Hostile({".gpugate.yaml": "context_from: [../secret]\n"}, ".gpugate.yaml:1:16: context_from[0]"),
    "schemas": Hostile({".gpugate.yaml": "schemas: ../\n"}, ".gpugate.yaml:1:10: schemas"),
    "git's own": Hostile({".gpugate.yaml": "policy_file: .git/config\n"}, ".gpugate.yaml:1:14: policy_file"),
    "a device": Hostile({".gpugate.yaml": "baseline: ptmx\n"}, ".gpugate.yaml:1:11: baseline", {"ptmx": "/dev/ptmx"}),
    "the project file itself": Hostile({}, ".gpugate.yaml is a link out", {".gpugate.yaml": "../secret"}),
    "a project file that is named": Hostile(
        {}, "conf.yaml is a link out", {"conf.yaml": "../secret"}, ("-c", "conf.yaml")
    ),
    "a policy file that is named": Hostile(
        {}, "--policy-file policy.yaml", {"policy.yaml": "../secret"}, ("-p", "policy.yaml")
    ),
    "a baseline that is named": Hostile({}, "--baseline b.json", {"b.json": "../secret"}, ("--baseline", "b.json")),
    "a file that is named": Hostile({}, "a link out of the repository", {"pod.yaml": "../secret"}, ("pod.yaml",)),
    "a file that a pattern finds": Hostile({}, "a link out of the repository", {"pod.yaml": "../secret"}, ("p*.yaml",)),
    "below a directory that is named": Hostile(
        {}, "a link out of the repository", {"all": "/"}, ("all/proc/self/environ",)
    ),
    "the usual folder of schemas": Hostile(
        {".gpugate/schemas/a": "", "pod.yaml": "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\n"},
        ".gpugate/schemas/example.com.Thing.json is a link out",
        {".gpugate/schemas/example.com.Thing.json": "../../../secret"},
    ),
}
CHARTS = {
    "a file that a template prints": Hostile(
        {"app/Chart.yaml": CHART}, "app/stolen", {"app/stolen": "../../secret"}
    ),
    "values that are named": Hostile(
        {"app/Chart.yaml": CHART}, "v.yaml", {"v.yaml": "../secret"}, ("--helm", "app", "--values", "v.yaml")
    ),
    "a chart that is named": Hostile({}, "app", {"app": "../"}, ("--helm", "app/chart")),
    "a schema of values": Hostile(
        {"app/Chart.yaml": CHART, "app/values.schema.json": '{"properties": {"a": {"$ref": "file:///proc/self/environ"}}}'},
        "app/values.schema.json ... $ref: 'file:///proc/self/environ' is another document",
    ),
    "a schema that is hidden in depth": Hostile(
        {"app/Chart.yaml": CHART, "app/values.schema.json": '{"a":' * 5000 + '{"$ref": "file:///x"}' + "}" * 5000},
        "app/values.schema.json",
    ),
    "a repository within": Hostile(
        {"app/Chart.yaml": CHART, "app/sub/.git/config": CANARY}, "app/sub/.git"
    ),
}  # fmt: skip
KUSTOMIZATIONS = {
    "the kustomization itself": Hostile({}, "app/kustomization.yaml", {"app/kustomization.yaml": "../../secret"}),
    "a kustomization that is a device": Hostile({}, "app/kustomization.yaml", {"app/kustomization.yaml": "/dev/ptmx"}),
    "a directory outside": kustomization("resources: [../../outside]", "resources[0]"),
    "a resource outside": kustomization("resources: [../../secret]", "resources[0]"),
    "a key in another case": kustomization("Resources: ['https://127.0.0.1:9/a']", "Resources[0]"),
    "a key in another script": kustomization("re\u017fources: ['https://127.0.0.1:9/a']", "is remote"),
    "an old form of a repository": kustomization("resources: ['github.com:o/r']", "resources[0]"),
    "a repository of somebody": kustomization("resources: ['x@host:o/r']", "resources[0]"),
    "a repository in a text of two lines": kustomization('resources: ["github.com/o/r\\n"]', "resources[0]"),
    "a resource that is not there": kustomization("resources: [gone.yaml]", "resources[0]: gone.yaml does not exist"),
    "a patch elsewhere": kustomization("patches: [{path: 'http:127.0.0.1/a'}]", "patches[0].path"),
    "variables of a generator": kustomization("configMapGenerator: [{name: a, env: ../.git/config}]", "configMapGenerator[0].env"),
    "a file of a generator": kustomization("secretGenerator: [{name: a, files: [a=../../secret]}]", "secretGenerator[0].files[0]"),
    "a generator beside": Hostile(
        {"app/kustomization.yaml": "generators: [g.yaml]\n", "app/g.yaml": "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: a}\nfiles: [link/config]\n"},
        "app/kustomization.yaml:1 ... generators[0]",
        {"app/link": "../.git"},
    ),
    "a generator within": kustomization(
        'transformers: ["{apiVersion: builtin, kind: PatchTransformer, metadata: {name: a}, path: ../.git/config}"]',
        "transformers[0]",
    ),
    "a generator that is built": Hostile(
        {"kustomization.yaml": "generators: [made]\n", "made/kustomization.yaml": "resources: [pod.yaml]\n", "made/pod.yaml": POD},
        "kustomization.yaml:1 ... generators[0]",
        {},
        ("-k", "."),
    ),
    "a base that is something else": Hostile(
        {"app/kustomization.yaml": "resources: [../b]\n", "b/kustomization.yaml": "apiVersion: x/v1\napiversion: kustomize.config.k8s.io/v1beta1\nresources: ['github.com:o/r']\n"},
        "b/kustomization.yaml",
    ),
    "a base that gpugate cannot read": Hostile(
        {"app/kustomization.yaml": "resources: [../b]\n", "b/kustomization.yaml": "resources: ['github.com:o/r']\nresources: [\n"},
        "b/kustomization.yaml",
    ),
    "a field of tomorrow": kustomization("tomorrow: {file: ../.git/config}", "tomorrow.file"),
}  # fmt: skip
INFLATED = {
    "plugins of Helm": inflated("{helmGlobals: {configHome: evil}, helmCharts: [{name: c}]}", "helmGlobals.configHome"),
    "old plugins of Helm": inflated("helmChartInflationGenerator: [{chartName: c, helmHome: evil}]", "helmChartInflationGenerator[0].helmHome"),
    "a flag of Helm": inflated("helmCharts: [{name: c, releaseName: --post-renderer=./evil}]", "helmCharts[0].releaseName"),
    "a chart outside": inflated("helmCharts: [{name: ../../../outside}]", "helmCharts[0].name"),
    "charts outside": inflated("{helmGlobals: {chartHome: /}, helmCharts: [{name: proc}]}", "helmCharts[0].name"),
    "a chart to fetch": inflated("helmCharts: [{name: d, repo: 'https://127.0.0.1:9'}]", "helmCharts[0].name"),
    "values outside": inflated("helmCharts: [{name: c, valuesFile: ../../secret}]", "helmCharts[0].valuesFile"),
    "two files in one name": inflated("helmCharts: [{name: c, additionalValuesFiles: ['a,/proc/self/environ']}]", "helmCharts[0].additionalValuesFiles[0]"),
    "a plugin that inflates": inflated(
        'generators: ["{apiVersion: builtin, kind: HelmChartInflationGenerator, metadata: {name: a}, name: c, releaseName: --x}"]',
        "generators[0]: releaseName",
    ),
}  # fmt: skip
HOSTILE = {**PROJECTS, **CHARTS, **KUSTOMIZATIONS, **INFLATED}


@pytest.fixture
def written(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Written:
    """Check a repository and return all that the run and its programs write; the exit code says that something is wrong."""

    def check(top: Path, programs: Path, arguments: tuple[str, ...]) -> str:
        monkeypatch.chdir(top)
        monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.setenv("TOKEN", CANARY)
        code = main(["check", *(f"--output={each}" for each in FORMATS), *arguments])
        ran = capfd.readouterr()
        assert code != 0, ran.err
        return ran.out + ran.err + "".join(file.read_text() for file in sorted(top.glob("out.*")))

    return check


@pytest.fixture
def run(tmp_path: Path, written: Written) -> Callable[[Hostile], tuple[str, bool]]:
    """Make a repository, check it, and return all that it wrote and whether a program was started."""

    def checked(hostile: Hostile) -> tuple[str, bool]:
        top, programs, started = tmp_path / "repo", tmp_path / "programs", tmp_path / "started"
        files = {f"repo/{name}": text for name, text in hostile.files.items()}
        files |= {"secret": SECRET, "outside/kustomization.yaml": SECRET, "repo/pods/pod.yaml": POD}
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        for name, to in hostile.links.items():
            (top / name).parent.mkdir(parents=True, exist_ok=True)
            (top / name).symlink_to(to)
        subprocess.run(["git", "init", "--quiet", top], check=True)  # noqa: S603, S607 -- fixed words
        (top / ".git/config").write_text(f"[http]\n\textraheader = {CANARY}\n")
        programs.mkdir()
        for name in ("helm", "kustomize", "kubectl"):
            (programs / name).write_text(PROGRAM.format(started=started))
            (programs / name).chmod(0o755)
        said = written(top, programs, hostile.arguments)
        return said, started.exists()

    return checked


@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE)
def test_the_secret_stays_and_the_error_names_the_setting(
    hostile: Hostile, run: Callable[[Hostile], tuple[str, bool]]
) -> None:
    said, started = run(hostile)

    assert CANARY not in said
    assert any(all(part in line for part in hostile.names.split(" ... ")) for line in said.splitlines())
    assert not started


def test_a_schema_in_an_archive_of_a_chart(tmp_path: Path, run: Callable[[Hostile], tuple[str, bool]]) -> None:
    (tmp_path / "repo/app/charts").mkdir(parents=True)
    inner = {"sub/Chart.yaml": CHART, "sub/values.schema.json": json.dumps({"$ref": "file:///etc/passwd"})}
    (tmp_path / "repo/app/charts/sub.tgz").write_bytes(archive(inner))

    said, started = run(Hostile({"app/Chart.yaml": CHART}, ""))

    assert "app/charts/sub.tgz!sub/values.schema.json" in said
    assert not started


# What programs say and write is text of strangers too: none of it chooses a file to show.
MANY = "resources: {limits: {nvidia.com/gpu: many}}"
FORGED = {
    "an error of Helm": (
        "helm",
        "#!/bin/sh\necho 'Error: (app/templates/a.yaml:1:3): failed to parse {secret}: line 1' >&2\nexit 1\n",
        {"Chart.yaml": CHART, "templates/a.yaml": ""},
    ),
    "the origin of an object": (
        "kustomize",
        """#!/bin/sh
cat <<'END'
apiVersion: v1
kind: Pod
metadata:
  annotations:
    config.kubernetes.io/origin: |
      path: {twin}
  name: a
spec: {{containers: [{{name: a, image: a, resources: {{limits: {{nvidia.com/gpu: many}}}}}}]}}
END
""",
        {"kustomization.yaml": "namePrefix: x\n"},
    ),
}


@pytest.mark.parametrize(("name", "program", "files"), FORGED.values(), ids=FORGED)
def test_what_a_program_says_chooses_no_file(
    name: str, program: str, files: dict[str, str], tmp_path: Path, written: Written
) -> None:
    twin, programs = tmp_path / "twin.yaml", tmp_path / "programs"
    programs.mkdir()
    (tmp_path / "repo/.git").mkdir(parents=True)
    (tmp_path / "repo/app/templates").mkdir(parents=True)
    for file, text in files.items():
        (tmp_path / "repo/app" / file).write_text(text)
    (tmp_path / "secret").write_text(SECRET)
    twin.write_text(f"# {CANARY}\n{POD.replace('image: a', f'image: a, {MANY}')}# {CANARY}\n")
    (programs / name).write_text(program.format(secret=tmp_path / "secret", twin=twin))
    (programs / name).chmod(0o755)

    said = written(tmp_path / "repo", programs, ("app",))

    assert "app" in said
    assert CANARY not in said


OUTPUTS = {"a directory": ("reports", "..", "reports/gpugate.json"), "a device": ("out", "/dev/null", "out")}


@pytest.mark.parametrize(("link", "to", "output"), OUTPUTS.values(), ids=OUTPUTS)
def test_no_report_is_written_through_a_link_of_the_tree(
    link: str, to: str, output: str, tmp_path: Path, run: Callable[[Hostile], tuple[str, bool]]
) -> None:
    said, _ = run(Hostile({}, "", {link: to}, (f"--output=sarif={output}", ".")))

    assert f"{link} is a link out of the repository" in said
    assert not (tmp_path / "gpugate.json").exists()
