from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpugate.webhook.manifests.problems import Problem
from gpugate.webhook.rendering.kustomization_files import KustomizationFile, read_kustomization
from gpugate.webhook.rendering.kustomizations import obstacles

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WHOLE = """resources: [pod.yaml, ../base, https://example.com/x.yaml]
components: [../part]
patches:
  - path: patch.yaml
  - patch: |
      a: b
patchesStrategicMerge: ["a: 1\\nb: 2", old.yaml]
replacements: [{path: swap.yaml}]
openapi: {path: schema.json}
configMapGenerator: [{name: a, files: [data.txt, as=other.txt], envs: [a.env]}]
sortOptions: {order: legacy}
"""


def test_a_kustomization_says_what_it_uses(tree: Callable[..., Path]) -> None:
    used = ("pod.yaml", "old.yaml", "patch.yaml", "swap.yaml", "schema.json", "data.txt", "other.txt", "a.env")
    files = {f"over/{name}": "" for name in used}
    root = tree({"over/kustomization.yaml": WHOLE, "base/x": "", "part/x": "", **files})

    read = read_kustomization("over")

    assert isinstance(read, KustomizationFile)
    assert read.directories == (str(root / "base"), str(root / "part"))
    assert read.files == tuple(str(root / "over" / name) for name in used)
    (refused,) = read.refused
    assert (refused.message, refused.line, refused.column) == (
        "resources[2]: https://example.com/x.yaml is remote, and gpugate uses no network",
        1,
        32,
    )
    assert read.sort_options == {"order": "legacy"}
    assert (read.resources, read.alters) == ((str(root / "over/pod.yaml"),), True)


MISSING = {
    "a patch": "patches: [{path: gone}]\n",
    "a patch by its name": "patchesStrategicMerge: [gone]\n",
    "a file of a generator": "configMapGenerator: [{name: a, files: [as=gone]}]\n",
    "an environment": "secretGenerator: [{name: a, envs: [gone]}]\n",
}


@pytest.mark.parametrize("text", MISSING.values(), ids=MISSING)
def test_a_file_that_is_missing_is_told_at_its_line(text: str, tree: Callable[..., Path]) -> None:
    tree({"over/kustomization.yaml": f"# a\n{text}"})

    read = read_kustomization("over")

    assert isinstance(read, KustomizationFile)
    assert [(each.message.partition(": ")[2], each.line) for each in read.refused] == [("gone does not exist", 2)]


INLINE = {
    "JSON": "patchesStrategicMerge: ['{kind: Pod, metadata: {name: a}}']\n",
    "YAML": 'patchesStrategicMerge: ["kind: Pod\\nmetadata: {name: a}"]\n',
}


@pytest.mark.parametrize("text", INLINE.values(), ids=INLINE)
def test_a_patch_in_the_place_of_its_name_is_no_missing_file(text: str, tree: Callable[..., Path]) -> None:
    tree({"over/kustomization.yaml": text})

    read = read_kustomization("over")

    assert isinstance(read, KustomizationFile)
    assert read.refused == ()


REMOTE = ("github.com/a/b//base?ref=v1", "git@example.com:a/b", "ssh://git@example.com/a", "http://example.com/a")


@pytest.mark.parametrize("name", REMOTE)
def test_what_is_fetched_is_told_from_files(name: str, tree: Callable[..., Path]) -> None:
    tree({"over/kustomization.yaml": f"resources: ['{name}']\n"})

    read = read_kustomization("over")

    assert isinstance(read, KustomizationFile)
    assert [each.message.partition(" is remote")[0] for each in read.refused] == [f"resources[0]: {name}"]


GITS = {
    "a generated file": "configMapGenerator: [{name: a, files: [stolen=.git/config]}]\n",
    "a link to it": "configMapGenerator: [{name: a, envs: [link]}]\n",
    "a patch": "patches: [{path: .git/config}]\n",
}


@pytest.mark.parametrize("text", GITS.values(), ids=GITS)
def test_what_git_keeps_is_not_built(text: str, tree: Callable[..., Path]) -> None:
    root = tree({"kustomization.yaml": text, ".git/config": ""})
    (root / "link").symlink_to(".git/config")

    read = read_kustomization(".")

    assert isinstance(read, KustomizationFile)
    (problem,) = (each.problem for each in obstacles(".", [read], inflate=False))
    assert (problem.line, "is in .git" in problem.message, read.files) == (1, True, ())


OTHERS = {
    "of flux": "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: a}\n",
    "a list": "- a\n",
}


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
def test_a_file_of_the_same_name_may_be_something_else(text: str, tree: Callable[..., Path]) -> None:
    tree({"a/kustomization.yaml": text})

    assert read_kustomization("a") is None


def test_a_kustomization_that_is_no_yaml_is_a_problem(tree: Callable[..., Path]) -> None:
    tree({"a/kustomization.yaml": "resources: [\n"})

    read = read_kustomization("a")

    assert isinstance(read, Problem)
    assert (read.source, read.line) == ("a/kustomization.yaml", 2)


# A patch on one line is longer than any name; YAML has characters that no name has.
NO_NAMES = {"a long patch": "a" * 5000, "a NUL": "a\\0b"}


@pytest.mark.parametrize("name", NO_NAMES.values(), ids=NO_NAMES)
def test_what_cannot_be_a_name_is_left_to_kustomize(name: str, tree: Callable[..., Path]) -> None:
    tree({"over/kustomization.yaml": f'patchesStrategicMerge: ["{name}"]\n'})

    read = read_kustomization("over")

    assert isinstance(read, KustomizationFile)
    assert read.refused == ()


def test_a_url_is_fetched_also_where_a_file_has_its_name(tree: Callable[..., Path]) -> None:
    tree({"over/kustomization.yaml": "resources: ['http://localhost/x']\n", "over/http:/localhost/x": "a: 1\n"})

    read = read_kustomization("over")

    assert isinstance(read, KustomizationFile)
    assert [each.message.split()[1] for each in read.refused] == ["http://localhost/x"]


@pytest.mark.parametrize("value", ["", '""', "null"])
def test_a_kustomization_may_leave_its_version_empty(value: str, tree: Callable[..., Path]) -> None:
    tree({"over/kustomization.yaml": f"apiVersion: {value}\nresources: [a.yaml]\n"})

    assert isinstance(read_kustomization("over"), KustomizationFile)


# Every field of a kustomization, and of the plugins that kustomize has built in, that names a file or directory. Source:
# sigs.k8s.io/kustomize/api v0.21.1, types.Kustomization and what its types hold, internal/builtins.
NAMES = {
    **{key: f"{key}: [NAME]" for key in ("resources", "bases", "components", "crds", "configurations", "generators", "transformers", "validators", "patchesStrategicMerge")},
    **{f"{key}.path": f"{key}: [{{path: NAME}}]" for key in ("patches", "patchesJson6902", "replacements")},
    "openapi.path": "openapi: {path: NAME}",
    **{f"{key}.{source}": f"{key}: [{{name: a, {source}: [NAME]}}]" for key in ("configMapGenerator", "secretGenerator") for source in ("files", "envs")},
    **{f"{key}.env": f"{key}: [{{name: a, env: NAME}}]" for key in ("configMapGenerator", "secretGenerator")},
    "a key of a generator's file": "configMapGenerator: [{name: a, files: ['key=NAME']}]",
}  # fmt: skip
INFLATING = {
    "helmCharts.name": "helmCharts: [{name: NAME}]",
    "helmCharts.valuesFile": "helmCharts: [{name: c, valuesFile: NAME}]",
    "helmCharts.additionalValuesFiles": "helmCharts: [{name: c, additionalValuesFiles: [NAME]}]",
    "helmGlobals.chartHome": "{helmGlobals: {chartHome: NAME}, helmCharts: [{name: c}]}",
    "helmGlobals.configHome": "{helmGlobals: {configHome: NAME}, helmCharts: [{name: c}]}",
    "helmChartInflationGenerator.chartHome": "helmChartInflationGenerator: [{chartName: c, chartHome: NAME}]",
    "helmChartInflationGenerator.values": "helmChartInflationGenerator: [{chartName: c, values: NAME}]",
    "helmChartInflationGenerator.helmHome": "helmChartInflationGenerator: [{chartName: c, helmHome: NAME}]",
}
CONFIGURED = {
    "ConfigMapGenerator": "files: [NAME]",
    "SecretGenerator": "envs: [NAME]",
    "PatchTransformer": "path: NAME",
    "PatchJson6902Transformer": "path: NAME",
    "PatchStrategicMergeTransformer": "paths: [NAME]",
    "ReplacementTransformer": "replacements: [{path: NAME}]",
    "ValueAddTransformer": "targetFilePath: NAME",
    "of tomorrow": "deep: [{er: {still: NAME}}]",
}
STOLEN = ("../secret", "/proc/self/environ", ".git/config", "link", "links/config")


@pytest.fixture
def hostile(tree: Callable[..., Path], tmp_path: Path) -> Callable[[str], KustomizationFile]:
    """Makes a repository whose kustomization is at its top, and reads it."""

    def read(text: str) -> KustomizationFile:
        (tmp_path / "secret").touch()
        root = tree({".git/config": "", "kustomization.yaml": text, "charts/c/Chart.yaml": ""})
        (root / "link").symlink_to("../secret")
        (root / "links").symlink_to(".git")
        found = read_kustomization(".")
        assert isinstance(found, KustomizationFile)
        return found

    return read


@pytest.mark.parametrize("stolen", STOLEN)
@pytest.mark.parametrize("text", NAMES.values(), ids=NAMES)
def test_no_field_names_what_is_not_of_the_repository(
    text: str, stolen: str, hostile: Callable[[str], KustomizationFile]
) -> None:
    found = hostile(text.replace("NAME", stolen))

    assert [each.message.partition("[")[0].partition(".")[0] for each in found.refused] == [text.partition(":")[0]]
    assert (found.files, found.directories) == ((), ())


@pytest.mark.parametrize("name", ["upper", "title"])
@pytest.mark.parametrize("text", NAMES.values(), ids=NAMES)
def test_nor_does_one_in_another_case(text: str, name: str, hostile: Callable[[str], KustomizationFile]) -> None:
    key, _, rest = text.partition(":")

    assert hostile(f"{getattr(key, name)()}:{rest.replace('NAME', '.git/config')}").refused


@pytest.mark.parametrize("stolen", STOLEN)
@pytest.mark.parametrize("text", INFLATING.values(), ids=INFLATING)
def test_nor_does_one_of_a_helm_chart(text: str, stolen: str, hostile: Callable[[str], KustomizationFile]) -> None:
    found = hostile(text.replace("NAME", stolen))

    assert found.refused + found.refused_inflating
    assert found.inflates is not None


@pytest.mark.parametrize("field", ["generators", "transformers", "validators"])
@pytest.mark.parametrize(("kind", "said"), CONFIGURED.items(), ids=CONFIGURED)
def test_nor_does_the_configuration_of_a_plugin(
    kind: str, said: str, field: str, hostile: Callable[[str], KustomizationFile]
) -> None:
    config = f"{{apiVersion: builtin, kind: {kind}, metadata: {{name: a}}, {said.replace('NAME', 'links/config')}}}"

    (refused,) = hostile(f'{field}: ["{config}"]').refused

    assert refused.message.startswith(f"{field}[0]: ")


LOCAL = {
    "a directory with a version": "app@v1/base",
    "a directory called like a user": "me@home",
    "a name with a colon": "a:b",
    "a file": "pod.yaml",
}


@pytest.mark.parametrize("name", LOCAL.values(), ids=LOCAL)
def test_what_is_here_is_not_remote(name: str, tree: Callable[..., Path]) -> None:
    tree({"over/kustomization.yaml": f"resources: ['{name}']\n", f"over/{name}{'' if '.yaml' in name else '/x'}": ""})

    read = read_kustomization("over")

    assert isinstance(read, KustomizationFile)
    assert read.refused == ()


def test_a_patch_on_one_line_may_say_anything(tree: Callable[..., Path]) -> None:
    patch = '{"metadata": {"annotations": {"see": "https://github.com/o/r/.git"}}}'
    tree({"over/kustomization.yaml": f"patchesStrategicMerge: ['{patch}']\n"})

    read = read_kustomization("over")

    assert isinstance(read, KustomizationFile)
    assert read.refused == ()
