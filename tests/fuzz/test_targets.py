"""The targets of the fuzzer take their seeds, and what broke them once."""

from __future__ import annotations

from contextlib import closing
from itertools import islice
from pathlib import Path

import pytest
from fuzz_targets import TARGETS

REGRESSIONS = Path(__file__).parent / "regressions"
SEEDS = 20


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_takes_its_seeds(name: str) -> None:
    with closing(TARGETS[name]()) as target:
        for seed in islice(target.seeds(), SEEDS):
            target.run(seed)


@pytest.mark.parametrize("file", sorted(REGRESSIONS.glob("*/*")), ids=lambda file: f"{file.parent.name}-{file.name}")
def test_a_target_takes_what_broke_it(file: Path) -> None:
    with closing(TARGETS[file.parent.name]()) as target:
        target.run(file.read_bytes())
