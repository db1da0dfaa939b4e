"""A container that serves: started, waited for, and ended."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cluster.health import Health

from gpugate.webhook.admission.serve import HEALTH, READY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cluster.process import Process
    from image.container import Container, Image

_EVERYWHERE = "0.0.0.0"  # noqa: S104 -- what it prints, as a Pod is reached by its address


@dataclass(frozen=True)
class Running:
    """`url` is where it takes reviews; `ready_seconds` are those from its start until `/readyz` said yes."""

    process: Process
    health: Health
    url: str
    ready_seconds: float


@contextmanager
def running(image: Image, container: Container, authority: Path, folder: Path) -> Iterator[Running]:
    """Start a container that serves on ports of its own choice; `authority` is who signed its certificate.

    Raises:
        ProcessError: it died, or did not become ready.
    """
    started = time.monotonic()
    output = folder / "stdout"
    process = image.start(container, folder / "container", output)
    try:
        process.wait_until(lambda: READY in output.read_text(encoding="utf-8"))
        url, health_url = (_said(output, label) for label in (READY, HEALTH))
        health = Health(url, health_url, authority)
        process.wait_until(health.ready)
        yield Running(process, health, url, time.monotonic() - started)
    finally:
        process.stop()


def _said(output: Path, label: str) -> str:
    lines = output.read_text(encoding="utf-8").splitlines()
    said = next(line.removeprefix(label) for line in lines if line.startswith(label))
    return said.replace(_EVERYWHERE, "127.0.0.1")
