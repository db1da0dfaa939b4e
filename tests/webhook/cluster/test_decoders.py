"""Threads read at once from the moment they start, so that what they decode with is made before."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpugate.webhook import cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

MODULES = sorted(Path(cluster.__file__).parent.glob("*.py"))


def typed_decoding(module: ast.Module) -> Iterator[int]:
    for node in ast.walk(module):
        if not (isinstance(node, ast.Call) and ast.unparse(node.func).startswith("msgspec.")):
            continue
        for keyword in node.keywords:
            if keyword.arg == "type" and isinstance(keyword.value, ast.Name):
                yield node.lineno


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.stem)
def test_no_type_is_worked_out_by_the_first_who_decodes_it(module: Path) -> None:
    assert list(typed_decoding(ast.parse(module.read_text(encoding="utf-8")))) == []
