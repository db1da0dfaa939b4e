"""Kustomizations that the real kustomize builds: places, overlays, and what is not built."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Json = dict[str, Any]

COSTS = ("--select", "pods/missing-cost-labels", "--no-schemas")
POD = """apiVersion: v1
kind: Pod
metadata:
  name: trainer
  labels: {app: a}
spec:
  containers:
  - name: main
    image: a
    resources: {limits: {nvidia.com/gpu: 1}}
"""
TREE = {
    "base/kustomization.yaml": "resources: [pods/pod.yaml]\nconfigMapGenerator: [{name: cm, literals: [a=b]}]\n",
    "base/pods/pod.yaml": f"# a comment\n---\n{POD}",
    "dev/kustomization.yaml": "namespace: dev\nnamePrefix: dev-\nresources: [../base]\n",
    "prod/kustomization.yaml": "namespace: prod\nresources: [../base]\npatches: [{path: labels.yaml}]\n",
    "prod/labels.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: trainer, labels: {tier: gold}}\n",
}


def found(report: Json) -> list[tuple[str, str, int, int | None]]:
    """Every place that findings name; what has one cause is one finding."""
    places = [place for each in report["findings"] for place in (each, *each["related"])]
    return [(each["object"]["name"], each["file"], each["line"], each["rendered_line"]) for each in places]


def test_overlays_are_judged_and_shown_in_the_files_of_the_base(
    checked: Callable[..., Json], tree: Callable[..., Path]
) -> None:
    report = checked(tree(TREE), ".", *COSTS)

    # What the overlay of prod changed is not said of the base's file.
    assert found(report) == [("trainer", "base/pods/pod.yaml", 1, 12), ("dev-trainer", "base/pods/pod.yaml", 7, None)]
    assert report["summary"]["files"] == 2


def test_a_comment_beside_the_object_lets_a_finding_pass(
    checked: Callable[..., Json], tree: Callable[..., Path]
) -> None:
    comment = "labels: {app: a}  # gpugate: ignore[pods/missing-cost-labels] shared"
    root = tree({**TREE, "base/pods/pod.yaml": TREE["base/pods/pod.yaml"].replace("labels: {app: a}", comment)})

    report = checked(root, "dev", *COSTS)

    assert (report["findings"], len(report["suppressed"])) == ([], 1)


def test_nothing_is_written_into_the_tree(checked: Callable[..., Json], tree: Callable[..., Path]) -> None:
    root = tree(TREE)
    before = sorted(root.rglob("*"))

    checked(root, "-k", "prod")

    assert sorted(root.rglob("*")) == before


def test_an_unknown_field_is_shown_at_its_line(checked: Callable[..., Json], tree: Callable[..., Path]) -> None:
    root = tree({**TREE, "dev/kustomization.yaml": 'resources: [../base]\n"bogus": 1\n'})

    (problem,) = (each for each in checked(root, "dev")["findings"] if each["sort"] == "unreadable")

    assert (problem["file"], problem["line"], problem["sort"]) == ("dev/kustomization.yaml", 2, "unreadable")


def test_a_resource_that_is_missing_is_shown_at_its_line(
    checked: Callable[..., Json], tree: Callable[..., Path]
) -> None:
    root = tree({**TREE, "dev/kustomization.yaml": "resources:\n- ../base\n- gone.yaml\n"})

    (problem,) = (each for each in checked(root, "dev")["findings"] if each["sort"] == "unreadable")

    assert (problem["file"], problem["line"]) == ("dev/kustomization.yaml", 3)


def test_a_kustomization_runs_no_program_of_its_own(checked: Callable[..., Json], tree: Callable[..., Path]) -> None:
    root = tree(TREE)
    program = root / "dev/run.sh"
    program.write_text(f"#!/bin/sh\ntouch {root}/ran\n")
    program.chmod(0o755)
    function = "config.kubernetes.io/function: |\n      exec: {path: ./run.sh}\n"
    (root / "dev/generator.yaml").write_text(
        f"apiVersion: example.com/v1\nkind: Made\nmetadata:\n  name: a\n  annotations:\n    {function}"
    )
    (root / "dev/kustomization.yaml").write_text("resources: [../base]\ngenerators: [generator.yaml]\n")

    report = checked(root, "dev")

    assert report["summary"]["exit_code"] == 4
    assert not (root / "ran").exists()
