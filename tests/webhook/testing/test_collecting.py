from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpugate.webhook.manifests.inputs import expand
from gpugate.webhook.testing.collecting import Collector

from .conftest import POD

if TYPE_CHECKING:
    from pathlib import Path

EXPECTING = POD.replace("spec:", "spec:  # expect: pods/missing-gpu-toleration")
CASES = "tests: [{name: a, object: pod.yaml, expect: {}}, {name: b, object: pod.yaml, expect: {}}]\n"


def collected(*paths: str) -> tuple[list[str], list[str]]:
    found = Collector().collect(expand(paths))
    return [f"{case.file}::{case.name}" for case in found.cases], [str(error) for error in found.broken]


def test_case_files_and_manifests_with_expectations_are_tests(folder: Path) -> None:
    (folder / "x.gpugate-test.yaml").write_text(CASES)
    (folder / "expecting.yaml").write_text(EXPECTING)
    (folder / "nothing.yaml").write_text(POD.replace("spec:", "spec:  # expect: nothing"))
    assert collected(".") == (
        [
            "./expecting.yaml::expecting.yaml",
            "./nothing.yaml::nothing.yaml",
            "./x.gpugate-test.yaml::a",
            "./x.gpugate-test.yaml::b",
        ],
        [],
    )


@pytest.mark.parametrize(
    ("first", "codec"),
    [
        ("# expect: nothing\n", "utf-8"),
        ("#expect: nothing\n", "utf-8-sig"),
        ("# expect:\n", "utf-8"),
        ("# expect: a", "utf-16"),
    ],
)
def test_a_manifest_whose_first_line_is_an_expectation_is_a_test(folder: Path, first: str, codec: str) -> None:
    (folder / "first.yaml").write_bytes((first + POD).encode(codec))
    assert collected("first.yaml") == (["first.yaml::first.yaml"], [])


def test_good_and_fixed_manifests_are_tests_beside_bad_ones(folder: Path) -> None:
    for name in ("good-a.yaml", "fixed-a.yaml", "other.yaml"):
        (folder / name).write_text(POD)
    assert collected(".") == ([], [])
    (folder / "bad-a.yaml").write_text(EXPECTING)
    assert collected(".")[0] == [
        "./bad-a.yaml::bad-a.yaml",
        "./fixed-a.yaml::fixed-a.yaml",
        "./good-a.yaml::good-a.yaml",
    ]
    assert collected("good-a.yaml")[0] == ["good-a.yaml::good-a.yaml"]


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("x.gpugate-test.yaml", b"tests: [\n", "x.gpugate-test.yaml:2:1: not YAML"),
        ("big.yaml", b"a:  # expect: pods/x\n" + b"#" * 5 * 2**20, "larger than 4 MiB"),
        ("latin.yaml", b"a: \xe4  # expect: pods/x\n", "not UTF-8 text at byte 3"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_and_the_others_go_on(
    folder: Path, name: str, data: bytes, says: str
) -> None:
    (folder / name).write_bytes(data)
    (folder / "expecting.yaml").write_text(EXPECTING)
    cases, (broken,) = collected(".")
    assert cases == ["./expecting.yaml::expecting.yaml"]
    assert says in broken


def test_a_link_to_a_directory_above_is_named(folder: Path) -> None:
    (folder / "loop").symlink_to(folder)
    (folder / "expecting.yaml").write_text(EXPECTING)
    assert collected(".") == (
        ["./expecting.yaml::expecting.yaml"],
        ["./loop: is a link to a directory above it: remove the link, or name its contents"],
    )


def test_large_files_that_are_no_tests_are_passed_over(folder: Path) -> None:
    (folder / "dump.yaml").write_bytes(b"a: b\n" * 10**7)
    assert collected(".") == ([], [])
