"""Starts what is measured: `gpugate serve`, and the bare handler on the same front."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from load_generator import Target

if TYPE_CHECKING:
    from collections.abc import Iterator

_READY: Final = "ready: "
_HEALTH: Final = "health: "
_BARE: Final = Path(__file__).with_name("bare_server.py")
_PATIENCE_SECONDS: Final = 60


class ServerError(Exception):
    """A server that did not start."""


@dataclass(frozen=True, slots=True)
class Server:
    """A running server, how long it took from exec until it was ready, in seconds, and the URL of its health port, if any."""

    pid: int
    target: Target
    ready_after: float
    health: str = ""


@contextmanager
def gpugate(folder: Path, workers: int, *flags: str) -> Iterator[Server]:
    """Run `gpugate serve` with the policies as shipped and no cluster, and further flags."""
    ca_file = folder / f"gpugate-{workers}.crt"
    program = str(Path(sys.executable).with_name("gpugate"))
    command = [program, "serve", "--host", "127.0.0.1", "--port", "0", "--health-port", "0", "--workers", str(workers)]
    with _running([*command, "--no-cluster", "--drain", "0", "--ca-file", str(ca_file), *flags], ca_file) as server:
        yield server


@contextmanager
def bare(folder: Path, workers: int) -> Iterator[Server]:
    """Run the handler that does nothing."""
    ca_file = folder / f"bare-{workers}.crt"
    with _running([sys.executable, str(_BARE), str(workers), str(ca_file)], ca_file) as server:
        yield server


@contextmanager
def _running(command: list[str], ca_file: Path) -> Iterator[Server]:
    errors = ca_file.with_suffix(".log")
    started = time.perf_counter()
    with errors.open("wb") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)  # noqa: S603 -- ours
    try:
        announced = _announced(process)
        url = announced.get(_READY, "")
        if not url:
            raise ServerError(f"{' '.join(command)} did not start:\n{errors.read_text()}")
        ready_after = time.perf_counter() - started
        yield Server(process.pid, Target(url, ca_file), ready_after, announced.get(_HEALTH, ""))
    finally:
        _stop(process)


def _announced(process: subprocess.Popen[str]) -> dict[str, str]:
    """Read what a server prints until it is ready: prefix of the line -> URL."""
    assert process.stdout is not None
    urls: dict[str, str] = {}
    for line in process.stdout:
        urls |= {prefix: line.removeprefix(prefix).strip() for prefix in (_READY, _HEALTH) if line.startswith(prefix)}
        if _READY in urls:
            break
    return urls


def _stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(_PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
