from __future__ import annotations

import pytest

from gpugate.policies.sdk.unknown_kinds import UnknownKind
from gpugate.webhook.report.summary import unknown_kinds

REMEDY = "  to evaluate their Pod templates, add a kind and its path to pod_templates of the policy file"


def of(kind: str, objects: int, gpu_objects: int) -> UnknownKind:
    return UnknownKind("example.com/v1", kind, objects, gpu_objects)


@pytest.mark.parametrize(
    ("kinds", "lines"),
    [
        ([], []),
        (
            [of("Train", 5, 5), of("Serve", 2, 2)],
            [
                (
                    "7 objects request GPUs in kinds that no policy knows: "
                    "Train (example.com/v1) 5, Serve (example.com/v1) 2"
                ),
                REMEDY,
            ],
        ),
        (
            [of("Web", 1, 0), of("Train", 2, 1)],
            [
                "1 object requests GPUs in kinds that no policy knows: Train (example.com/v1) 1",
                "2 objects hold Pods in kinds that no policy knows: Train (example.com/v1) 1, Web (example.com/v1) 1",
                REMEDY,
            ],
        ),
    ],
)
def test_the_summary_counts_and_names_them(kinds: list[UnknownKind], lines: list[str]) -> None:
    assert list(unknown_kinds(kinds)) == lines


def test_it_names_the_most_frequent() -> None:
    line, _ = unknown_kinds([of(f"Kind{n}", n, n) for n in range(1, 12)])
    assert "Kind11 (example.com/v1) 11, Kind10" in line
    assert line.endswith("Kind4 (example.com/v1) 4 and 3 other kinds")


def test_a_name_cannot_change_the_terminal() -> None:
    line, _ = unknown_kinds([of("Train\x1b[31m", 1, 1)])
    assert "\x1b" not in line
