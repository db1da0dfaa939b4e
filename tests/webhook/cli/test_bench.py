"""`gpugate bench`: figures for each policy on a user's own objects, and a comparison that fails on slower policies."""

from __future__ import annotations

import gzip
import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from recorded_reviews import Source, hidden, observed, record

import gpugate.policies.catalog
from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.evaluate import Phase
from gpugate.policies.engine.ruleset import Needs, bind
from gpugate.policies.sdk.facts import Known, NoFacts
from gpugate.policies.sdk.objects import NODE_POOL, GroupVersionKind, Operation, Request
from gpugate.webhook.admission.record_file import record_files
from gpugate.webhook.manifests.load import RunFacts
from gpugate.webhook.testing.bench_command import Figure, Figures, read, slower

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


REVIEWS = 8


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A record of Pods, each received by the webhook that mutates and by the one that validates, with one NodePool."""
    ruleset = bind(gpugate.policies.catalog.CATALOG, PolicyConfig())
    observations = [
        observed(ruleset, hidden(number), NoFacts(), phase)
        for number in range(REVIEWS)
        for phase in (Phase.MUTATE, Phase.VALIDATE)
    ]
    pool = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "pool"}, "spec": {"template": {}}}
    kind = GroupVersionKind("karpenter.sh", "v1", "NodePool")
    facts = RunFacts([Request(kind, Operation.CREATE, pool, name="pool")], complete=True)
    record(tmp_path / "record", ruleset, observations, Source(facts, Needs(ruleset.rules).kinds))
    return tmp_path / "record"


def test_a_record_of_a_server_is_measured_with_the_phase_of_each_review(gpugate: Run, recorded: Path) -> None:
    ran = gpugate("bench", recorded, "-o", "json", *FEW)

    found = figures(ran)
    (file,) = (file for file in record_files(recorded) if "-reviews-" in file.name)
    assert (ran.code, ran.err, found["total"]["objects"]) == (0, "", 2 * REVIEWS)
    assert found["policies"]["pods/hidden-gpu-access"]["objects"] == REVIEWS  # validates only
    assert found["policies"]["pods/missing-gpu-toleration"]["objects"] == REVIEWS  # mutates only
    assert found["policies"]["pods/unprotected-training"]["slowest"].startswith(f"{file}: review ")


def test_recorded_reviews_have_the_cluster_data_of_the_record(recorded: Path, manifests: Path) -> None:
    found = read([str(recorded), str(manifests / "nodepool-gpu-training.yaml")], 100)

    data = [subject.facts for subject in found.measured if subject.facts is not None]
    assert (len(data), len(found.measured), found.problems, found.remarks) == (2 * REVIEWS, 2 * REVIEWS + 1, [], ())
    for facts in data:
        pools = facts.list(NODE_POOL)
        assert isinstance(pools, Known)
        assert [pool["metadata", "name"].text for pool in pools.items] == ["pool"]


def test_a_record_without_cluster_data_is_measured_with_the_other_input(recorded: Path) -> None:
    (file,) = (file for file in record_files(recorded) if "-reviews-" in file.name)

    found = read([str(file)], 100)

    assert {subject.facts for subject in found.measured} == {None}
    assert found.remarks == ("the record contains no cluster data: the other objects of the input replace it",)


@pytest.mark.parametrize(
    ("most", "measured"),
    [pytest.param(16, 16, id="all"), pytest.param(15, 8, id="each-second"), pytest.param(1, 1, id="one")],
)
def test_of_a_long_record_reviews_are_measured_that_are_evenly_spread(recorded: Path, most: int, measured: int) -> None:
    found = read([str(recorded)], most)

    numbers = [int(subject.location.split(": review ")[1].split()[0]) for subject in found.measured]
    assert len(numbers) == measured
    assert len({after - before for before, after in pairwise(numbers)}) <= 1
    said = (f"{measured} of 16 recorded reviews are measured, evenly spread: --max-reviews measures more",)
    assert found.remarks == (() if measured == 16 else said)


def test_damaged_lines_of_a_record_are_an_error_and_the_others_are_measured(gpugate: Run, recorded: Path) -> None:
    (file,) = (file for file in record_files(recorded) if "-reviews-" in file.name)
    lines = gzip.decompress(file.read_bytes()).splitlines(keepends=True)
    file.write_bytes(gzip.compress(b"".join([*lines[:2], b"{\n", *lines[2:]])))

    ran = gpugate("bench", recorded, "-o", "json", *FEW)

    assert (ran.code, figures(ran)["total"]["objects"]) == (4, 2 * REVIEWS)
    assert ran.err == f"error: {file}: 1 line is damaged: record again; the others are measured\n"


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
