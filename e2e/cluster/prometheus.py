"""A real Prometheus on loopback: with a history that promtool wrote, with what it scrapes, or with a configuration."""

from __future__ import annotations

import json
import subprocess
import urllib.error
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cluster.ports import HOST, free_ports
from cluster.process import Process

import tools

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path


@contextmanager
def running_prometheus(folder: Path, history: Iterable[str], flags: Sequence[str] = ()) -> Iterator[str]:
    """Run a Prometheus with a history until the end; return its address.

    Args:
        folder: an empty folder for its data.
        history: lines in the OpenMetrics format, with times, without the last line.
        flags: further flags of the server.
    """
    metrics = folder / "history.om"
    with metrics.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in history)
        file.write("# EOF\n")
    command = [
        str(tools.path("promtool")),
        "tsdb",
        "create-blocks-from",
        "openmetrics",
        str(metrics),
        str(folder / "data"),
    ]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 -- built by us
    assert not ran.returncode, ran.stderr
    metrics.unlink()
    with configured_prometheus(folder, {}, flags) as url:
        yield url


@contextmanager
def scraping_prometheus(folder: Path, target: str) -> Iterator[str]:
    """Run a Prometheus that scrapes a target each second until the end; return its address.

    Args:
        folder: an empty folder for its data, and for `queries.log`, a line of JSON for each query that it has evaluated.
        target: host and port, which answer at `/metrics`; the target's own labels hold.
    """
    scraped = {"job_name": "target", "honor_labels": True, "static_configs": [{"targets": [target]}]}
    config = {
        "global": {"scrape_interval": "1s", "query_log_file": str(folder / "queries.log")},
        "scrape_configs": [scraped],
    }
    with configured_prometheus(folder, config, ()) as url:
        yield url


@contextmanager
def configured_prometheus(folder: Path, config: object, flags: Sequence[str] = ()) -> Iterator[str]:
    """Run a Prometheus with a configuration until the end; return its address.

    Args:
        folder: an empty folder for its data.
        config: the content of its configuration file.
        flags: further flags of the server.
    """
    # JSON is YAML.
    (folder / "prometheus.yml").write_text(json.dumps(config), encoding="utf-8")
    (port,) = free_ports(1)
    url = f"http://{HOST}:{port}"
    command = [str(tools.path("prometheus")), f"--config.file={folder / 'prometheus.yml'}"]
    command += [f"--storage.tsdb.path={folder / 'data'}", "--storage.tsdb.retention.time=30d"]
    command += [f"--web.listen-address={HOST}:{port}", *flags]
    process = Process("prometheus", command, folder / "prometheus.log")
    try:
        process.wait_until(lambda: _is_ready(url))
        yield url
    finally:
        process.stop()


def _is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/-/ready", timeout=1) as response:  # noqa: S310 -- http on loopback
            return bool(response.status == 200)
    except (urllib.error.URLError, OSError):
        return False
