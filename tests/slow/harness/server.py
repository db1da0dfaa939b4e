"""`gpugate serve` as a process: a supervisor and its workers."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from typing import IO, TYPE_CHECKING
from urllib.parse import urlsplit

from harness.processes import PATIENCE_SECONDS, alive, children, wait_until

from gpugate.webhook.config import starter

if TYPE_CHECKING:
    from pathlib import Path

WORKERS = 2


class Server:
    """A server that is started and ready after its creation.

    Args:
        folder: the folder for its authority and its log.
        flags: flags of `gpugate serve`, besides the address and the workers.
        stderr: the destination of its log; None is a file in the folder.
        before: a command that runs the server.
        program: Python code to run first.
    """

    def __init__(
        self,
        folder: Path,
        *flags: str,
        stderr: int | None = None,
        before: tuple[str, ...] = (),
        workers: int = WORKERS,
        program: str = "",
    ) -> None:
        self.ca_file = folder / "ca.crt"
        self.log_file = folder / "stderr"
        run = f"{program}from gpugate.webhook.cli.main import run; raise SystemExit(run())"
        command = [*before, sys.executable, "-c", run, "serve", "--host", "127.0.0.1"]
        command += ["--port", "0", "--health-port", "0", "--workers", str(workers)]
        if "--kubeconfig" not in flags:
            command += ["--no-cluster"]
        if "--policy-file" not in flags:
            policy_file = folder / starter.FILE
            policy_file.write_text(starter.POLICY_FILE)
            command += ["--policy-file", str(policy_file)]
        if "--tls-cert" not in flags:
            command += ["--ca-file", str(self.ca_file)]
        with self.log_file.open("wb") as log:
            self.process = subprocess.Popen(  # noqa: S603 -- ours
                [*command, *flags],
                stdout=subprocess.PIPE,
                stderr=log if stderr is None else stderr,
                text=True,
                start_new_session=True,
            )
        self.address, self.health = self._announced()

    def _announced(self) -> tuple[tuple[str, int], tuple[str, int]]:
        assert self.process.stdout is not None
        urls: dict[str, tuple[str, int]] = {}
        watchdog = threading.Timer(PATIENCE_SECONDS, self.process.kill)
        watchdog.start()
        for line in self.process.stdout:
            name, _, url = line.strip().partition(": ")
            if name in {"health", "ready"}:
                urls[name] = (urlsplit(url).hostname or "", urlsplit(url).port or 0)
            if name == "ready":
                watchdog.cancel()
                return urls["ready"], urls["health"]
        watchdog.cancel()
        self.stop()
        raise AssertionError(f"the webhook did not start:\n{self.log_file.read_text()}")

    @property
    def pid(self) -> int:
        return self.process.pid

    def workers(self) -> list[int]:
        return children(self.pid)

    def get(self, path: str) -> tuple[int, str]:
        """Send a request to the health port; the status is 0 without a response."""
        host, port = self.health
        try:
            with urllib.request.urlopen(f"http://{host}:{port}{path}", timeout=PATIENCE_SECONDS) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def ready(self) -> bool:
        return self.get("/readyz")[0] == 200

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait(self) -> int:
        """Wait for the server to exit; return its exit code."""
        return self.process.wait(PATIENCE_SECONDS)

    def stop(self) -> None:
        """Kill the server and its children, also if it hangs or is suspended."""
        pids = [self.pid, *self.workers()]
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.process.wait()
        for stream in (self.process.stdout, self.process.stderr):
            _close(stream)
        wait_until(lambda: not any(map(alive, pids[1:])), "its workers have ended")


def _close(stream: IO[str] | None) -> None:
    if stream is not None:
        stream.close()
