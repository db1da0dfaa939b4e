"""The processes that audit clusters: one hangs, one crashes, and the others are not affected."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import pytest
from audit.cluster_audit import audit
from eventually import eventually

from gpugate.webhook.audit.contexts import Job, run_all

if TYPE_CHECKING:
    from pathlib import Path


def jobs(folder: Path, *contexts: str) -> list[Job]:
    return [Job(name, argparse.Namespace(context=name, code=0), folder / f"{name}.ending") for name in contexts]


@pytest.mark.parametrize("parallel", [1, 3])
def test_each_process_ends_on_its_own(tmp_path: Path, parallel: int) -> None:
    ended = run_all(jobs(tmp_path, "a", "crashes", "refused"), audit, parallel, 600)

    assert {name: ending.code for name, ending in ended.items()} == {"a": 0, "crashes": -1, "refused": 2}
    assert ended["crashes"].log == "the audit ended unexpectedly (exit code 7)"
    assert ended["refused"].log == "error: the policy file is invalid\n"


def test_a_process_that_hangs_is_stopped_and_the_others_are_kept(tmp_path: Path) -> None:
    hangs, healthy = jobs(tmp_path, "hangs", "a")

    def now() -> float:
        # The time passes when the other process has ended.
        return 1000.0 if healthy.ending.exists() else 0.0

    ended = run_all([hangs, healthy], audit, 2, 600, now)

    assert {name: ending.code for name, ending in ended.items()} == {"a": 0}


def test_a_process_that_has_ended_but_not_exited_at_its_time_limit_counts(tmp_path: Path) -> None:
    (lingers,) = jobs(tmp_path, "lingers")
    start = iter([0.0])

    def now() -> float:
        # The time passes when the process has written how it ended.
        if (first := next(start, None)) is not None:
            return first
        assert eventually(lingers.ending.exists)
        return 1000.0

    ended = run_all([lingers], audit, 1, 600, now)

    assert {name: ending.code for name, ending in ended.items()} == {"lingers": 0}
