"""All disturbances together, for `--minutes`: no request is lost, and no process grows.

Mixed traffic, policy reloads, rotations of authorities and certificates, a failing API server, and hostile bodies.
"""

from __future__ import annotations

import itertools
import time
from statistics import median
from typing import TYPE_CHECKING, Any

from cluster.fake_api_server import Answer, status
from harness.cases import case, usual
from harness.processes import descriptors, megabytes, wait_until
from harness.refused_bodies import KINDS, sent
from harness.rotation import LONG_LAG
from test_policy_reload import LENIENT, POLICY, STRICT, judged_by_generation, put

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest
    from harness.fleet import Fleet

RATE = 20
# A keeper retries after an error in 5 s; a certificate must outlast several retries, as real ones do.
PERIODS = ("--authority-life=60m", "--authority-rotation=10s", "--certificate-life=45s", "--propagation=7s")
# Calls between two disturbances.
CALLS = 40
# The longest timeout of API servers, so that a lost call is not just slow on a busy machine.
TIMEOUT_SECONDS = 30
# Medians of a quarter of the samples, because the peaks of the allocator vary.
GROWTH_MEGABYTES = 10
FLAPS = ("watch=", "leases", "secrets")


def flap(fleet: Fleet) -> None:
    """Make the API server end every watch, and then return errors for a while."""
    api = fleet.cluster.api
    for text in FLAPS:
        api.answers += [
            status(text, 503, "ServiceUnavailable"),
            Answer(text, cut=True),
            status(text, 500, "InternalError"),
        ]
    api.end_watches()


def test_everything_at_once_loses_nothing(
    fleet: Fleet,
    load: Callable[..., Any],
    show: Callable[..., None],
    tmp_path: Path,
    pytestconfig: pytest.Config,
) -> None:
    seconds = float(pytestconfig.getoption("minutes")) * 60
    file = tmp_path / "policy.yaml"
    put(file, STRICT)
    replicas = fleet.start(2, *PERIODS, "--policy-file", str(file))
    others = tuple(each for each in usual() if each.denied != POLICY)
    cases = (judged_by_generation(), *others, case("nodepool-update.validate", "/validate"))
    for each, kind in itertools.product(replicas, KINDS.values()):
        # Objects that are allocated once exist by then.
        sent(each, kind, kind.warming, busy=True)
    running = load(
        fleet.balancer.address, published=fleet.published(LONG_LAG), cases=cases, rate=RATE, timeout=TIMEOUT_SECONDS
    )
    processes = [pid for each in replicas for pid in (each.pid, *each.workers())]
    samples: dict[int, list[float]] = {pid: [] for pid in processes}
    opened = max(map(descriptors, processes))
    kinds = itertools.cycle(KINDS.values())
    disturbances = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        disturbances += 1
        put(file, LENIENT if disturbances % 2 else STRICT)
        flap(fleet)
        kind = next(kinds)
        for each in replicas:
            sent(each, kind, 1, busy=True)
        running.pass_calls(CALLS)
        for pid in processes:
            samples[pid].append(megabytes(pid))
    report = running.finish()
    promotions = fleet.cluster.promotions()
    quarter = max(1, disturbances // 4)
    grown = {
        pid: median(found[-quarter:]) - median(found[quarter : 2 * quarter] or found) for pid, found in samples.items()
    }
    largest = max(max(found) for found in samples.values())
    show(
        "soak, everything at once",
        {
            **report.figures(),
            "minutes": f"{seconds / 60:g}",
            "reloads, flaps, hostile bodies": disturbances,
            "promotions": promotions,
            "grown": " ".join(f"{size:+.1f}MB" for size in grown.values()),
            "largest": f"{largest:.0f}MB",
            "descriptors": f"{max(map(descriptors, processes)) - opened:+}",
        },
    )
    assert report.faults() == []
    assert (len(report.generations), promotions >= 1) == (2, True)
    assert max(grown.values()) < GROWTH_MEGABYTES
    # No worker died.
    assert [pid for each in replicas for pid in (each.pid, *each.workers())] == processes
    wait_until(lambda: all(each.ready() for each in replicas), "every replica is ready")
