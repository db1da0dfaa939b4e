"""What each worker of the webhook knows of the cluster, worker by worker.

`/metrics` shows for a kind the number of the worker that heard last, which does not say that the others have heard. Each
worker keeps its own numbers in a file of the folder that prometheus-client shares between processes.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from prometheus_client.mmap_dict import MmapedDict

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.ruleset import Needs, bind
from gpugate.webhook.admission.metrics import CLUSTER_DATA_OBJECTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from gpugate.policies.engine.config import PolicyConfig

_PATIENCE_SECONDS = 60.0
_PAUSE_SECONDS = 0.002


def looked_up(config: PolicyConfig) -> frozenset[str]:
    """Return the kinds that a worker watches when it judges by this configuration."""
    return frozenset(kind.name for kind in Needs(bind(CATALOG, config).rules).kinds)


class WorkersFacts:
    """Numbers of objects by kind, one mapping for each worker."""

    def __init__(self, folder: Path, workers: int) -> None:
        self._folder = folder
        self._workers = workers

    def wait_for(self, wanted: Mapping[str, int]) -> None:
        """Wait until every worker knows so many objects of each kind.

        Raises:
            AssertionError: one does not after a minute.
        """
        latest = time.monotonic() + _PATIENCE_SECONDS
        while True:
            known = [{kind: numbers.get(kind, 0) for kind in wanted} for numbers in self._numbers()]
            if len(known) == self._workers and all(numbers == dict(wanted) for numbers in known):
                return
            assert time.monotonic() < latest, f"workers know {known}, and not {dict(wanted)}"
            time.sleep(_PAUSE_SECONDS)

    def _numbers(self) -> Iterator[dict[str, int]]:
        # The supervisor has such a file too, and no facts in it.
        files = self._folder.glob(f"gauge_{CLUSTER_DATA_OBJECTS.merge}_*.db")
        return filter(None, map(_numbers_in, files))


def _numbers_in(file: Path) -> dict[str, int]:
    values = MmapedDict.read_all_values_from_file(str(file))  # type: ignore[no-untyped-call] # the library has no types there
    read = ((json.loads(key), value) for key, value, _, _ in values)
    return {labels["kind"]: int(value) for (_, metric, labels, _), value in read if metric == CLUSTER_DATA_OBJECTS.name}
