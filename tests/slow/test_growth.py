"""No policy costs more than in proportion to the object: sizes at which work inside C functions shows, and pairs of lists."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from growth import Case, superlinear
from library_examples import library_example, read_example

import gpugate.policies
from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine import bounds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(gpugate.policies.__file__).parent
FLOOR = 0.03


def files_by_kind() -> dict[str, list[Path]]:
    """Return family and kind -> the examples that grow together: a part that they share is grown in the first of them.

    The kinds of a family can be measured by several processes, which the examples of most families cannot: most of their
    time is that of one family.
    """
    kinds: dict[str, list[Path]] = {}
    for file in sorted(ROOT.glob("*/examples/*/*.yaml")):
        kinds.setdefault(f"{file.parts[-4]}/{library_example(file).request.kind.kind}", []).append(file)
    return kinds


FILES = files_by_kind()


@pytest.fixture(autouse=True)
def unbounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "too_large", lambda *_: ())
    monkeypatch.setattr(bounds, "too_many_templates", lambda *_: ())


def examples(files: list[Path]) -> Iterator[Case]:
    for file in files:
        example = read_example(file.name, file.read_text())
        config = example.config if "PolicyConfig" in file.read_text() else None
        yield Case(f"{file.parent.name}/{file.name}", example.request, example.context, example.complete, config)


# The pairs take longest, so they start first.
@pytest.mark.parametrize("files", FILES.values(), ids=FILES)
@pytest.mark.parametrize("pairs", [True, False], ids=["each-pair", "each-list"])
def test_the_library_is_linear(files: list[Path], pairs: bool, counts: Callable[[int, int], int]) -> None:  # noqa: FBT001 -- a table's column
    count = counts(200, 400) if pairs else counts(400, 800)
    found = superlinear(CATALOG, examples(files), count=count, floor=FLOOR, pairs=pairs)
    assert list(map(str, found)) == []
