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
    root = tree({"over/kustomization.yaml": WHOLE, "base/x": "", "part/x": "", "over/pod.yaml": ""})

    read = read_kustomization("over")

    assert isinstance(read, KustomizationFile)
    assert read.directories == (str(root / "base"), str(root / "part"))
    used = ("pod.yaml", "old.yaml", "patch.yaml", "swap.yaml", "schema.json", "data.txt", "other.txt", "a.env")
    assert read.files == tuple(str(root / "over" / name) for name in used)
    assert read.remote == (("https://example.com/x.yaml", 1, 32),)
    assert read.sort_options == {"order": "legacy"}


REMOTE = ("github.com/a/b//base?ref=v1", "git@example.com:a/b", "ssh://git@example.com/a", "http://example.com/a")


@pytest.mark.parametrize("name", REMOTE)
def test_what_is_fetched_is_told_from_files(name: str, tree: Callable[..., Path]) -> None:
    tree({"over/kustomization.yaml": f"resources: ['{name}']\n"})

    read = read_kustomization("over")

    assert isinstance(read, KustomizationFile)
    assert [what for what, _, _ in read.remote] == [name]


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
    (problem,) = (each for each in obstacles(".", [read], inflate=False) if each.line)
    assert (problem.line, "git's own" in problem.message, read.files) == (1, True, ())


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
    assert read.remote == ()


def test_a_url_is_fetched_also_where_a_file_has_its_name(tree: Callable[..., Path]) -> None:
    tree({"over/kustomization.yaml": "resources: ['http://localhost/x']\n", "over/http:/localhost/x": "a: 1\n"})

    read = read_kustomization("over")

    assert isinstance(read, KustomizationFile)
    assert [what for what, _, _ in read.remote] == ["http://localhost/x"]


@pytest.mark.parametrize("value", ["", '""', "null"])
def test_a_kustomization_may_leave_its_version_empty(value: str, tree: Callable[..., Path]) -> None:
    tree({"over/kustomization.yaml": f"apiVersion: {value}\nresources: [a.yaml]\n"})

    assert isinstance(read_kustomization("over"), KustomizationFile)
