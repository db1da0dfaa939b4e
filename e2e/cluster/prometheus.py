"""A real Prometheus on loopback, with a history that promtool wrote."""

from __future__ import annotations

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
    """Run a Prometheus until the end; return its address.

    Args:
        folder: an empty folder for its data.
        history: lines in the OpenMetrics format, with times, without the last line.
        flags: further flags of the server.
    """
    metrics = folder / "history.om"
    with metrics.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in history)
        file.write("# EOF\n")
    data = folder / "data"
    command = [str(tools.path("promtool")), "tsdb", "create-blocks-from", "openmetrics", str(metrics), str(data)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 -- built by us
    assert not ran.returncode, ran.stderr
    metrics.unlink()
    config = folder / "prometheus.yml"
    config.write_text("{}\n", encoding="utf-8")
    (port,) = free_ports(1)
    url = f"http://{HOST}:{port}"
    command = [str(tools.path("prometheus")), f"--config.file={config}", f"--storage.tsdb.path={data}"]
    command += ["--storage.tsdb.retention.time=30d", f"--web.listen-address={HOST}:{port}", *flags]
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
