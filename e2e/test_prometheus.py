"""The use of GPUs, from a real Prometheus with a day of history."""

from __future__ import annotations

import json
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest
from cluster.prometheus import running_prometheus
from gpu_history import CASES, Case, cluster, history
from webhook_process import GPUGATE

import tools

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def end() -> float:
    try:
        tools.path("prometheus")
    except tools.ToolsError as error:
        pytest.skip(f"{error}; `make e2e` does without it, because building it takes minutes")
    return time.time()


@pytest.fixture(scope="module")
def prometheus(end: float, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_prometheus(tmp_path_factory.mktemp("prometheus"), history(end)) as url:
        yield url


@pytest.fixture(scope="module")
def dump(end: float, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("dump") / "cluster.json"
    path.write_text(json.dumps(cluster(end)))
    return path


def audited(dump: Path, url: str, *flags: str) -> dict[str, Any]:
    command = [*GPUGATE, "audit", "--from", str(dump), "--complete-context", "--prometheus", url]
    command += ["--include-passed", "-o", "json", *flags]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)  # noqa: S603 -- our own program
    assert ran.returncode == 0, ran.stderr
    report: dict[str, Any] = json.loads(ran.stdout)
    return report


@pytest.fixture(scope="module")
def report(dump: Path, prometheus: str) -> dict[str, Any]:
    return audited(dump, prometheus)


def of(report: dict[str, Any], name: str) -> dict[str, Any]:
    (owner,) = [
        owner for owner in report["objects"] if owner["object"]["name"] == name and owner["object"]["kind"] == "Pod"
    ]
    return dict(owner)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_each_pod_has_its_use(case: Case, report: dict[str, Any]) -> None:
    owner = of(report, case.name)

    assert [used["use"] for used in owner["gpu_use"]["used"]] == [case.use], owner["gpu_use"]["devices"]


def test_every_query_is_accepted_and_all_answer_at_once(report: dict[str, Any]) -> None:
    assert report["usage"]["problems"] == []
    assert report["usage"]["queries"] <= 12


def test_the_uses_add_up_to_what_is_allocated(report: dict[str, Any]) -> None:
    cost = report["cost"]

    assert sum(used["usd_per_hour"] for used in cost["used"]) == pytest.approx(cost["allocated"])
    assert of(report, "slice-idle")["gpu_use"]["used"][0]["gpus"] == pytest.approx(1 / 7)
    assert of(report, "shared-1")["gpu_use"]["used"][0]["gpus"] == pytest.approx(1 / 2)


def test_the_evidence_is_what_was_measured(report: dict[str, Any]) -> None:
    (device,) = of(report, "server")["gpu_use"]["devices"]

    assert device["watts"] == pytest.approx(112, rel=0.01)
    assert device["memory_max"] == pytest.approx(70_000 / 81_000)
    assert device["reason"].endswith("samples for 100% of 24h, at most 0 requests at a time")


def test_the_query_shows_the_series_of_the_pod(report: dict[str, Any], prometheus: str) -> None:
    from gpugate.webhook.audit.prometheus import Login, connect  # noqa: PLC0415 -- beside its only use

    query = f"last_over_time({of(report, 'trainer')['gpu_use']['query']}[1h])"

    assert [series.value[1] for series in connect(prometheus, Login(), 10).query(query)] == ["0.93"]


def test_a_server_that_refuses_large_queries_is_asked_in_parts(
    end: float, dump: Path, report: dict[str, Any], tmp_path: Path
) -> None:
    with running_prometheus(tmp_path, history(end), ["--query.max-samples=5000"]) as url:
        parted = audited(dump, url)

    assert parted["usage"]["queries"] > 17
    assert parted["usage"]["problems"] == []
    assert parted["cost"]["used"] == report["cost"]["used"]


def test_a_server_without_gpu_series_makes_the_use_unknown(dump: Path, tmp_path: Path) -> None:
    with running_prometheus(tmp_path, ["# TYPE up gauge", f"up 1 {time.time() - 600:.0f}"]) as url:
        empty = audited(dump, url)

    assert [used["use"] for used in empty["cost"]["used"]] == ["unknown"]
    assert empty["usage"]["coverage"] == 0
    assert "has no series of GPUs in the window" in empty["usage"]["problems"][0]
