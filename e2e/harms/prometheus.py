"""A real Prometheus that scrapes what tests measure."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cluster.ports import HOST
from cluster.prometheus import scraping_prometheus
from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.metrics_core import GaugeMetricFamily

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from prometheus_client.metrics_core import Metric


class Prometheus:
    """A Prometheus, and the exporter that it scrapes each second.

    Attributes:
        url: its address.
    """

    def __init__(self, url: str, series: Series, queries: Path) -> None:
        self.url = url
        self._series = series
        self._queries = queries

    def measure(self, metric: str, labels: Mapping[str, str], values: Callable[[], Sequence[float]]) -> None:
        """Expose what `values` returns at each scrape: a series for each value, with a label `pod` that tells them apart."""
        self._series.add(metric, labels, values)

    def queried(self, query: str) -> int:
        """Return how often a query was evaluated."""
        lines = self._queries.read_text(encoding="utf-8").splitlines() if self._queries.is_file() else []
        # The last line may be half written.
        whole = (json.loads(line) for line in lines if line.endswith("}"))
        return sum(line["params"]["query"] == query for line in whole)


class Series:
    """A collector of prometheus_client."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._measured: list[tuple[str, Mapping[str, str], Callable[[], Sequence[float]]]] = []

    def add(self, metric: str, labels: Mapping[str, str], values: Callable[[], Sequence[float]]) -> None:
        """Measure this at each scrape."""
        with self._lock:
            self._measured.append((metric, labels, values))

    def collect(self) -> Iterator[Metric]:
        """Measure everything once."""
        with self._lock:
            measured = list(self._measured)
        families: dict[str, GaugeMetricFamily] = {}
        for metric, labels, values in measured:
            names = [*labels, "pod"]
            family = families.setdefault(metric, GaugeMetricFamily(metric, "Measured by a test.", labels=names))
            for number, value in enumerate(values()):
                family.add_metric([*labels.values(), str(number)], value)
        yield from families.values()


@contextmanager
def measuring_prometheus(folder: Path) -> Iterator[Prometheus]:
    """Run a Prometheus and an exporter on free ports of loopback until the end."""
    series = Series()
    registry = CollectorRegistry()
    registry.register(series)
    server, thread = start_http_server(0, HOST, registry)
    try:
        with scraping_prometheus(folder, f"{HOST}:{server.server_port}") as url:
            yield Prometheus(url, series, folder / "queries.log")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
