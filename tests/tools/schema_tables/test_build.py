"""Tables are made of the folders of modules: what is equal is kept once, and what is not known ends it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import yaml

from gpugate.policies.engine.config import GpugateError
from gpugate.tools.schema_tables.releases import Module, ModuleError, folder
from gpugate.tools.schema_tables.tables import OpenApi, make_tables
from gpugate.webhook.schemas.compile import Nodes
from gpugate.webhook.schemas.table import Table

if TYPE_CHECKING:
    from pathlib import Path

RELEASES = tuple(Module("example.com/karpenter", version, "h1:x=", "crds") for version in ("v1.1.0", "v1.2.3"))


def definition(group: str, **spec: Any) -> str:
    schema = {"type": "object", "description": "long", "properties": {"spec": {"type": "object", **spec}}}
    version = {"name": "v1", "served": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "NodePool", "plural": "nodepools"}
    document = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "spec": {"group": group, "names": names, "scope": "Cluster", "versions": [version]},
    }
    return yaml.safe_dump(document)


def tables(tmp_path: Path, *texts: str) -> dict[str, Table]:
    for module, text in zip(RELEASES, texts, strict=True):
        (tmp_path / module.version).mkdir()
        (tmp_path / module.version / "a.yaml").write_text(text, encoding="utf-8")
    files = make_tables({"karpenter": RELEASES}, lambda module: tmp_path / module.version)
    return {name: msgspec.json.decode(content, type=Table) for name, content in files.items()}


def test_what_releases_share_is_kept_once(tmp_path: Path) -> None:
    found = tables(tmp_path, definition("karpenter.sh"), definition("karpenter.sh"))["karpenter.sh.NodePool.json"]

    assert [(release.minor, release.source, release.served["v1"].root) for release in found.releases] == [
        ("1.1", "example.com/karpenter@v1.1.0", 1),
        ("1.2", "example.com/karpenter@v1.2.3", 1),
    ]
    assert (len(found.nodes), found.namespaced) == (2, False)


def test_other_groups_are_left_out(tmp_path: Path) -> None:
    assert tables(tmp_path, definition("example.com"), definition("example.com")) == {}


RULES: dict[str, tuple[dict[str, Any], str]] = {
    "a function": ({"x-kubernetes-validations": [{"rule": "isURL(self)"}]}, "unknown function `isURL` (the rule `isURL(self)`)"),
    "a pattern": ({"type": "string", "pattern": "(?=a)"}, "groups or flags"),
    "a word": ({"maxLenght": 5}, "maxLenght is no part"),
}  # fmt: skip


@pytest.mark.parametrize(("spec", "words"), RULES.values(), ids=RULES)
def test_what_is_not_known_names_its_module(tmp_path: Path, spec: dict[str, Any], words: str) -> None:
    with pytest.raises(GpugateError) as raised:
        tables(tmp_path, definition("karpenter.sh"), definition("karpenter.sh", **spec))

    assert str(raised.value).startswith("example.com/karpenter@v1.2.3: NodePool: ")
    assert words in str(raised.value)


def test_a_word_that_an_api_server_did_not_use_before_ends_it() -> None:
    document = {"components": {"schemas": {"A": {"type": "object", "discriminator": {}}}}}

    with pytest.raises(GpugateError, match="discriminator is not known"):
        OpenApi(document, Nodes()).add("A")


def fake_go(tmp_path: Path, said: dict[str, str], code: int = 0) -> str:
    program = tmp_path / "go"
    program.write_text(f"#!/bin/sh\necho '{json.dumps(said)}'\nexit {code}\n", encoding="utf-8")
    program.chmod(0o755)
    return str(program)


def test_the_folder_of_a_module_is_the_one_that_go_names(tmp_path: Path) -> None:
    go = fake_go(tmp_path, {"Dir": str(tmp_path), "Sum": "h1:x="})

    assert folder(RELEASES[0], go) == tmp_path / "crds"


@pytest.mark.parametrize(
    ("said", "code", "words"),
    [
        ({"Dir": "/a", "Sum": "h1:y="}, 0, "has the hash h1:y=, and h1:x= is pinned"),
        ({"Error": "not found"}, 1, "v1.1.0 failed: not found"),
    ],
)
def test_another_module_than_the_pinned_one_is_refused(
    tmp_path: Path, said: dict[str, str], code: int, words: str
) -> None:
    with pytest.raises(ModuleError, match=words):
        folder(RELEASES[0], fake_go(tmp_path, said, code))
