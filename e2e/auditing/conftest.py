"""A cluster with workloads that gpugate was never asked about, and the chart's CronJob to audit it.

Fixtures: `stored` (nodes and workloads, gpugate being unregistered), `cron_job` (with its ServiceAccount).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from auditing.cron_job import CronJob
from auditing.stored import Stored

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.api import Api
    from cluster.control_plane import ControlPlane
    from cluster.served_webhook import ServedWebhook


@pytest.fixture(scope="package")
def stored(api: Api, webhook: ServedWebhook) -> Iterator[Stored]:
    webhook.unregister()
    filled = Stored(api)
    try:
        filled.fill()
        yield filled
    finally:
        webhook.unregister()
        filled.clear()
        webhook.register()


@pytest.fixture(scope="package")
def cron_job(
    api: Api, control_plane: ControlPlane, stored: Stored, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[CronJob]:
    assert stored.written
    made = CronJob(api, control_plane, tmp_path_factory.mktemp("audit"))
    made.install()
    yield made
    made.remove()
