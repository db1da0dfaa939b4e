"""The targets of the fuzzer take their seeds, and what broke them once."""

from __future__ import annotations

from contextlib import closing
from itertools import islice
from pathlib import Path

import pytest
from fuzz import mutator
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


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"5",
        b"null",
        b'"text"',
        b"[]",
        b"{}",
        b"{",
        b'{"a": [1, {"b": []}]}',
        b"[" * 5_000 + b"]" * 5_000,
        b"9" * 5_000,
    ],
    ids=lambda data: data[:20].decode(),
)
def test_any_input_is_changed(data: bytes) -> None:
    with closing(TARGETS["reviews"]()) as target:
        changed = mutator(target)
        for seed in range(200):
            assert len(changed(data, 1_000, seed)) <= 1_000
