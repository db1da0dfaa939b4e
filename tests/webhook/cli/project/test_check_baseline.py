from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., Any]

POOL = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {{name: {name}}}
spec:
  template:
    spec:
      nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: a}}
      requirements:
        - {{key: node.kubernetes.io/instance-type, operator: In, values: [p5.48xlarge]}}
"""
B = "baseline.json"


@pytest.fixture(autouse=True)
def pool(project: Path) -> Path:
    file = project / "manifests" / "pool.yaml"
    file.write_text(POOL.format(name="old"))
    return file


def test_what_is_recorded_is_hidden_and_only_new_findings_count(gpugate: Run, project: Path) -> None:
    before = gpugate("check", "manifests").code
    wrote = gpugate("check", "manifests", "--write-baseline", B)
    same = gpugate("check", "manifests", "--baseline", B)
    (project / "manifests" / "new.yaml").write_text(POOL.format(name="new"))
    more = gpugate("check", "manifests", "--baseline", B, "-o", "json")

    document = json.loads(more.out)
    assert (before, wrote.code, same.code, more.code) == (1, 0, 0, 1)
    assert {finding["object"]["name"] for finding in document["findings"]} == {"new"}
    assert document["baseline"]["hidden"] == len(document["suppressed"]) > 0


def test_the_number_of_hidden_findings_is_told(gpugate: Run) -> None:
    gpugate("check", "manifests", "--write-baseline", B)
    count = len(json.loads(gpugate("check", "manifests", "-o", "json", "--baseline", B).out)["suppressed"])

    assert (
        f"0 errors, 0 warnings, 0 notes, {count} hidden by the baseline"
        in gpugate("check", "manifests", "--baseline", B).out
    )


def test_what_matches_nothing_is_told_and_pruned(gpugate: Run, project: Path, pool: Path) -> None:
    gpugate("check", "manifests", "--write-baseline", B)
    entries = json.loads((project / B).read_text())["findings"]
    pool.unlink()

    told = gpugate("check", "manifests", "--baseline", B)
    pruned = gpugate("check", "manifests", "--baseline", B, "--prune-baseline")
    left = json.loads((project / B).read_text())["findings"]

    assert f"{len(entries) - len(left)} entries of {B} are for objects outside the checked files" in told.out
    assert f"{B}: pruned: {len(left)} of {len(entries)} entries remain" in pruned.out
    assert left == [entry for entry in entries if entry["kind"] == "Pod"]


def test_nothing_is_pruned_when_something_cannot_be_read(gpugate: Run, project: Path, pool: Path) -> None:
    gpugate("check", "manifests", "--write-baseline", B)
    before = (project / B).read_text()
    pool.write_text("apiVersion: v1\nkind: Pod\na: b: c\n")

    ran = gpugate("check", "manifests", "--baseline", B, "--prune-baseline")

    assert (ran.code, (project / B).read_text()) == (4, before)
    assert f"{B}: not pruned, because an input could not be read or evaluated" in ran.out


def test_it_is_the_same_wherever_and_however_often_it_is_written(gpugate: Run, project: Path, pool: Path) -> None:
    gpugate("check", "manifests", "--write-baseline", B)
    pool.rename(project / "manifests" / "moved.yaml")
    gpugate("check", "manifests", "--write-baseline", "again.json", "--jobs", "2")

    assert (project / "again.json").read_text() == (project / B).read_text()


def test_fixes_leave_alone_what_is_hidden(gpugate: Run, project: Path) -> None:
    gpugate("check", "manifests", "--write-baseline", B)
    before = (project / "manifests" / "pod.yaml").read_text()

    ran = gpugate("check", "manifests", "--baseline", B, "--fix")

    assert (ran.code, (project / "manifests" / "pod.yaml").read_text()) == (0, before)


def test_without_ignores_nothing_is_hidden(gpugate: Run) -> None:
    gpugate("check", "manifests", "--write-baseline", B)

    assert gpugate("check", "manifests", "--baseline", B, "--no-ignores").code == 1


def test_what_is_suppressed_is_listed_on_request(gpugate: Run) -> None:
    gpugate("check", "manifests", "--write-baseline", B)

    concise = gpugate("check", "manifests", "--baseline", B, "--show-suppressed", "-o", "concise", "-q").out
    text = gpugate("check", "manifests", "--baseline", B, "--show-suppressed", "-q").out

    assert "suppressed[nodepools/single-instance-type]" in concise
    assert all(line.endswith(f": baseline: in {B}") for line in concise.splitlines())
    assert text.count(f"  = baseline: in {B}") == len(concise.splitlines())


SARIF: dict[str, tuple[list[str], set[tuple[str, int]]]] = {
    "no baseline": ([], {("", 0)}),
    "a baseline": (["--baseline", B], {("new", 0)}),
    "with what it hides": (["--baseline", B, "--show-suppressed"], {("new", 0), ("unchanged", 1)}),
}


@pytest.mark.parametrize(("flags", "expected"), SARIF.values(), ids=SARIF)
def test_sarif_says_what_is_new(flags: list[str], expected: set[tuple[str, int]], gpugate: Run, project: Path) -> None:
    gpugate("check", "manifests", "--write-baseline", B)
    (project / "manifests" / "new.yaml").write_text(POOL.format(name="new"))

    (run,) = json.loads(gpugate("check", "manifests", "-o", "sarif", *flags).out)["runs"]

    found = {(result.get("baselineState", ""), len(result.get("suppressions", ()))) for result in run["results"]}
    assert found == expected
    assert {rule["id"] for rule in run["tool"]["driver"]["rules"]} == {result["ruleId"] for result in run["results"]}


REFUSED = {
    "pruned and written": (["--write-baseline", B, "--prune-baseline"], "--prune-baseline: leave it out; --write-baseline writes"),
    "pruned without a name": (["--prune-baseline"], "--prune-baseline: name the baseline with --baseline FILE"),
    "pruned without being read": (["--baseline", B, "--no-ignores", "--prune-baseline"], "--prune-baseline: leave out"),
    "another format": (["--write-baseline", "b.txt"], "--write-baseline b.txt: end the name in .json, .yaml, .yml"),
    "another directory": (["--write-baseline", "none/b.json"], "none/b.json: no such file or directory"),
}  # fmt: skip


@pytest.mark.parametrize(("flags", "message"), REFUSED.values(), ids=REFUSED)
def test_flags_that_do_not_fit_are_refused(flags: list[str], message: str, gpugate: Run) -> None:
    ran = gpugate("check", "manifests", *flags)

    assert (ran.code, ran.err[: len(message) + 7]) == (2, f"error: {message}")
