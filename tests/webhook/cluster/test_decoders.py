"""Test that typed decoders are created at import, before any thread starts."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpugate.webhook import cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

MODULES = sorted(Path(cluster.__file__).parent.glob("*.py"))


def find_typed_decoding(module: ast.Module) -> Iterator[int]:
    for node in ast.walk(module):
        if not (isinstance(node, ast.Call) and ast.unparse(node.func).startswith("msgspec.")):
            continue
        for keyword in node.keywords:
            if keyword.arg == "type" and isinstance(keyword.value, ast.Name):
                yield node.lineno


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.stem)
def test_modules_do_not_decode_into_types_without_a_decoder(module: Path) -> None:
    assert list(find_typed_decoding(ast.parse(module.read_text(encoding="utf-8")))) == []
