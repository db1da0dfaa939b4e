"""No policy costs more than in proportion to the object: sizes at which work inside C functions shows, and pairs of lists."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from growth import Case, superlinear
from library_examples import read_example

import gpugate.policies
from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine import bounds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(gpugate.policies.__file__).parent
FAMILIES = sorted({file.parts[-4] for file in ROOT.glob("*/examples/*/*.yaml")})
FLOOR = 0.03


@pytest.fixture(autouse=True)
def unbounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "too_large", lambda *_: ())
    monkeypatch.setattr(bounds, "too_many_templates", lambda *_: ())


def examples(family: str) -> Iterator[Case]:
    for file in sorted((ROOT / family / "examples").glob("*/*.yaml")):
        example = read_example(file.name, file.read_text())
        config = example.config if "PolicyConfig" in file.read_text() else None
        yield Case(f"{file.parent.name}/{file.name}", example.request, example.context, example.complete, config)


@pytest.mark.parametrize("pairs", [False, True], ids=["each-list", "each-pair"])
@pytest.mark.parametrize("family", FAMILIES)
def test_the_library_is_linear(family: str, pairs: bool, counts: Callable[[int, int], int]) -> None:  # noqa: FBT001 -- a table's column
    count = counts(200, 400) if pairs else counts(400, 800)
    found = superlinear(CATALOG, examples(family), count=count, floor=FLOOR, pairs=pairs)
    assert list(map(str, found)) == []
