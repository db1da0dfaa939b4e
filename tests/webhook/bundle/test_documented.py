"""The commands of the page on bundles, as a reader types them, with a registry on a socket."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from documentation.blocks import ROOT, blocks_of
from documentation.console import commands
from documentation.shell import fits, run

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import FakeRegistry

PAGE = ROOT / "docs" / "how-to" / "policy-bundles.md"
POD = (
    "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: web}\nspec: {containers: [{name: web, image: web}]}\n"
)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl")
def test_a_bundle_is_signed_pushed_and_verified(registry: FakeRegistry, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(
        "apiVersion: gpugate.dev/v1\nkind: PolicyConfig\nmode: warn\n", encoding="utf-8"
    )
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "pod.yaml").write_text(POD, encoding="utf-8")
    shown = [each for block in blocks_of(PAGE) if block.language == "console" for each in commands(block.text)]
    typed = [
        replace(
            each, text=each.text.replace("ghcr.io", registry.host), output=each.output.replace("ghcr.io", registry.host)
        )
        for each in shown
        if not each.text.startswith("kubectl")
    ]

    ran = run(typed, tmp_path)

    assert [(each.text, code, text) for each, (text, code) in zip(typed, ran, strict=True) if code] == []
    assert [
        text for each, (text, _) in zip(typed, ran, strict=True) if each.output and not fits(each.output, text)
    ] == []
    assert any(repository == "acme/gpu-policies" for repository, _ in registry.manifests)
