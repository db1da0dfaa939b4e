"""Metrics of several processes: the values of real workers, forked from a supervisor, are combined."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

# Workers report their counts and wait for the end; the parent scrapes like any process.
SUPERVISOR = """
import os, sys
import datetime as dt
from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.evaluate import Phase
from gpugate.webhook.admission.review import UnattributableError
from gpugate.webhook.admission.front.limits import FrontEvent
from gpugate.webhook.admission.decisions import Observation
from gpugate.webhook.admission.metrics import Metrics

metrics = Metrics(CATALOG)
metrics.worker_restarted()

class Worker:
    def __init__(self, number):
        said, say = os.pipe()
        wait, self.go = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            os.close(self.go)
            for _ in range(100):
                metrics.observe(Observation(Phase.VALIDATE, 0.25, "f", error=UnattributableError(400, "m")))
            metrics.front(FrontEvent.ACCEPTED)
            metrics.connections(number)
            metrics.body_bytes(1000)
            metrics.reloaded(f"{number:x}", ok=number != 2)
            metrics.built("1.2.3")
            metrics.certificate(dt.datetime.fromtimestamp(1000 + number, dt.UTC))
            metrics.facts("NodePool", None if number == 3 else 7)
            os.write(say, b"x")
            os.read(wait, 1)
            os._exit(0)
        os.close(wait)
        os.read(said, 1)

    def end(self):
        os.close(self.go)
        os.waitpid(self.pid, 0)
        metrics.forget(self.pid)

def show():
    body = metrics.exposition("")[1].decode()
    print(*(line for line in body.splitlines() if line[0] != "#" and float(line.split()[-1])), sep="\\n")
"""


def run(directory: Path, script: str) -> dict[str, float]:
    done = subprocess.run(  # noqa: S603 -- ours
        [sys.executable, "-c", SUPERVISOR + textwrap.dedent(script)],
        env=os.environ | {"PROMETHEUS_MULTIPROC_DIR": str(directory)},
        capture_output=True,
        check=True,
        timeout=60,
        text=True,
    )
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in done.stdout.splitlines())}


REVIEWS = 'gpugate_reviews_total{decision="failed",kind="unread",operation="unread",phase="validate"}'


@pytest.mark.parametrize(
    ("workers", "good", "connections", "expiry", "known"),
    [
        pytest.param(1, 1, 1, 1001, 1, id="one"),
        pytest.param(2, 0, 3, 1001, 1, id="two-of-which-one-failed-to-reload"),
        pytest.param(3, 0, 6, 1001, 0, id="three-of-which-one-knows-no-node-pools"),
    ],
)
def test_workers_together(tmp_path: Path, workers: int, good: int, connections: int, expiry: int, known: int) -> None:
    found = run(
        tmp_path,
        f"""
        for number in range(1, {workers} + 1):
            Worker(number)
        show()
        """,
    )
    assert found[REVIEWS] == 100 * workers
    assert found['gpugate_failed_reviews_total{code="400"}'] == 100 * workers
    assert found['gpugate_review_duration_seconds_count{phase="validate"}'] == 100 * workers
    assert found['gpugate_review_duration_seconds_sum{phase="validate"}'] == 25 * workers
    assert found['gpugate_server_events_total{event="accepted"}'] == workers
    assert found["gpugate_worker_restarts_total"] == 1
    assert found["gpugate_connections"] == connections
    assert found["gpugate_body_bytes"] == 1000 * workers
    assert found["gpugate_config_hash"] == workers
    assert found['gpugate_build_info{version="1.2.3"}'] == 1
    assert found.get("gpugate_config_last_reload_successful", 0) == good
    assert found["gpugate_certificate_expiry_timestamp_seconds"] == expiry
    assert found.get('gpugate_cluster_data_available{kind="NodePool"}', 0) == known
    assert not any("pid" in name for name in found)


def test_a_dead_worker_keeps_its_counters_and_loses_its_gauges(tmp_path: Path) -> None:
    found = run(
        tmp_path,
        """
        first, second = Worker(1), Worker(2)
        second.end()
        show()
        """,
    )
    assert found[REVIEWS] == 200
    assert found["gpugate_connections"] == 1
    assert found["gpugate_config_hash"] == 1
    assert found["gpugate_config_last_reload_successful"] == 1


@pytest.mark.parametrize(("leaves", "good"), [("metrics.leave_to_others()", 1), ("pass", 0)])
def test_a_process_that_does_not_reload_leaves_the_result_to_the_others(tmp_path: Path, leaves: str, good: int) -> None:
    found = run(
        tmp_path,
        f"""
        metrics.reloaded("1", ok=True)
        if not os.fork():
            {leaves}
            metrics.certificate_management(good=True, leads=True)
            os._exit(0)
        os.wait()
        show()
        """,
    )
    assert found.get("gpugate_config_last_reload_successful", 0) == good
    assert found["gpugate_certificate_leader"] == 1


def test_gauges_of_the_last_worker_are_deleted(tmp_path: Path) -> None:
    found = run(tmp_path, "Worker(1).end(); show()")
    assert found[REVIEWS] == 100
    assert not any(name.startswith(("gpugate_config", "gpugate_certificate", "gpugate_connections")) for name in found)


def test_dead_workers_leave_one_file_of_each_type(tmp_path: Path) -> None:
    found = run(
        tmp_path,
        """
        for _ in range(5):
            Worker(1).end()
        show()
        """,
    )
    assert found[REVIEWS] == 500
    assert found['gpugate_review_duration_seconds_count{phase="validate"}'] == 500
    assert found["gpugate_worker_restarts_total"] == 1
    assert len([file for file in tmp_path.iterdir() if "dead" in file.name]) == 2
    assert len(list(tmp_path.iterdir())) == 5


def test_a_worker_killed_while_it_made_a_file_stops_no_scrape(tmp_path: Path) -> None:
    found = run(
        tmp_path,
        """
        Worker(1)
        open(os.path.join(os.environ["PROMETHEUS_MULTIPROC_DIR"], "counter_0.db"), "w").close()
        metrics.forget(0)
        show()
        """,
    )
    assert found[REVIEWS] == 100


def test_the_directory_variable_is_set_too_late(tmp_path: Path) -> None:
    script = """
        import os, sys
        import prometheus_client
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = sys.argv[1]
        from gpugate.webhook.admission.metrics import Metrics
        Metrics(())
    """
    done = subprocess.run(  # noqa: S603 -- ours
        [sys.executable, "-c", textwrap.dedent(script), str(tmp_path)],
        capture_output=True,
        check=False,
        timeout=60,
        text=True,
    )
    assert "RuntimeError: prometheus_client was imported before PROMETHEUS_MULTIPROC_DIR was set" in done.stderr
