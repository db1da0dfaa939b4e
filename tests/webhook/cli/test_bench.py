"""`gpugate bench`: figures for each policy on a user's own objects, and a comparison that fails on slower policies."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from gpugate.webhook.testing.bench_command import Figure, Figures, slower

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Run = Callable[..., Any]

FEW = ("--repetitions", "1")
POOL = "nodepools/single-instance-type"


def figures(ran: Any) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(ran.out)
    return read


def test_each_policy_is_measured_on_the_objects_of_its_kinds(gpugate: Run, manifests: Path) -> None:
    files = [manifests / name for name in ("nodepool-gpu-training.yaml", "pod-training-job.yaml")]

    found = figures(gpugate("bench", *files, "-o", "json", *FEW))

    assert found["total"]["objects"] == 2
    assert found["policies"][POOL]["objects"] == 1
    assert found["policies"][POOL]["slowest"].startswith(f"{files[0]}:1 NodePool/")
    assert not [policy for policy in found["policies"] if policy.startswith("scaling/")]
    assert all(0 < each["mean"] <= each["most"] for each in found["policies"].values())


def test_a_recorded_review_is_measured_as_its_request(gpugate: Run, reviews: Path) -> None:
    found = figures(gpugate("bench", reviews / "pod-create-gpu-untolerated.mutate.json", "-o", "json", *FEW))

    assert found["policies"]["pods/missing-gpu-toleration"]["slowest"].endswith(" Pod/gpu-pod-untolerated")


def test_the_table_has_a_line_for_each_policy_and_the_total_last(gpugate: Run, manifests: Path) -> None:
    ran = gpugate("bench", manifests / "nodepool-gpu-training.yaml", *FEW)

    heading, *rows, total, note = ran.out.splitlines()
    assert (ran.code, heading.split()) == (0, ["policy", "objects", "mean", "us", "max", "us", "slowest", "object"])
    assert POOL in [row.split()[0] for row in rows]
    assert total.startswith("all policies ")
    assert note == "CPU time for one object, the least of the repetitions"


@pytest.mark.parametrize(
    ("mean_before", "code"),
    [pytest.param(0.001, 1, id="slower"), pytest.param(1e9, 0, id="faster")],
)
def test_a_comparison_fails_on_what_is_slower(
    gpugate: Run, manifests: Path, tmp_path: Path, mean_before: float, code: int
) -> None:
    kept = tmp_path / "before.json"
    pool = manifests / "nodepool-gpu-training.yaml"
    assert gpugate("bench", pool, "--save", kept, *FEW).code == 0
    before = json.loads(kept.read_text())
    before["policies"][POOL]["mean"] = mean_before
    kept.write_text(json.dumps(before))

    ran = gpugate("bench", pool, "--compare", kept, "--threshold", "1000000", *FEW)

    assert (ran.code, ran.err.startswith(f"error: {POOL} is slower: 0 us before, ")) == (code, bool(code))


@pytest.mark.parametrize(
    ("before", "now", "worse"),
    [
        pytest.param(100, 121, True, id="above-the-threshold"),
        pytest.param(100, 120, False, id="at-the-threshold"),
        pytest.param(10, 14, False, id="within-the-noise-of-the-clock"),
    ],
)
def test_what_counts_as_slower(before: float, now: float, worse: bool) -> None:  # noqa: FBT001 -- a column of the table
    def run(mean: float) -> Figures:
        return Figures(Figure(1, 1, 1, ""), {"a/b": Figure(1, mean, mean, "")})

    assert list(slower(run(before), run(now), 20)) == (["a/b"] if worse else [])


@pytest.mark.parametrize(
    ("text", "code", "error"),
    [
        pytest.param(
            "a: 1\n", 3, "error: nothing to measure: no object in the input concerns a policy\n", id="no-object"
        ),
        pytest.param("{", 4, "error: ", id="unreadable"),
        pytest.param('{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}', 4, "error: ", id="no-review"),
    ],
)
def test_an_input_without_objects(gpugate: Run, tmp_path: Path, text: str, code: int, error: str) -> None:
    (tmp_path / "a.yaml").write_text(text)

    ran = gpugate("bench", tmp_path, *FEW)

    assert (ran.code, ran.out, ran.err.startswith(error)) == (code, "", True)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(None, "no such file or directory", id="missing"),
        pytest.param("{}", "has no figures: write them with `gpugate bench --save ", id="of-something-else"),
    ],
)
def test_a_file_of_figures_that_cannot_be_used(
    gpugate: Run, manifests: Path, tmp_path: Path, content: str | None, message: str
) -> None:
    file = tmp_path / "before.json"
    if content is not None:
        file.write_text(content)

    ran = gpugate("bench", manifests / "pod-training-job.yaml", "--compare", file, *FEW)

    assert (ran.code, message in ran.err) == (2, True)


def test_no_repetition_is_refused(gpugate: Run) -> None:
    ran = gpugate("bench", "a.yaml", "--repetitions", "0")

    assert (ran.code, "--repetitions" in ran.err) == (2, True)
