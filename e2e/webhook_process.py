"""`gpugate serve` as a process on loopback, and a client that trusts it."""

from __future__ import annotations

import http.client
import json
import ssl
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from gpugate.webhook.config import starter

if TYPE_CHECKING:
    from collections.abc import Iterator

GPUGATE = (sys.executable, "-m", "gpugate.webhook.cli.main")
PATIENCE_SECONDS = 90


class Webhook:
    def __init__(self, announced: list[str], folder: Path) -> None:
        self.announced = announced
        self._log = folder / "log"
        address = urlsplit(announced[-1].removeprefix("ready: "))
        trust = ssl.create_default_context(cafile=folder / "ca.crt")
        self._connection = http.client.HTTPSConnection(address.hostname or "", address.port, context=trust)

    def send(self, path: str, review: bytes) -> dict[str, Any]:
        """Post a review and return the `response` of the answer."""
        self._connection.request("POST", path, review, {"Content-Type": "application/json"})
        answer: dict[str, Any] = json.loads(self._connection.getresponse().read())
        return dict(answer["response"])

    def last_log_line(self) -> str:
        """Return the last line of the log; a thread of the worker writes it, some time after the response."""
        latest = time.monotonic() + PATIENCE_SECONDS
        while not (lines := self._log.read_text(encoding="utf-8").splitlines()):
            assert time.monotonic() < latest, "the webhook logged nothing"
            time.sleep(0.02)
        return lines[-1]

    def close(self) -> None:
        self._connection.close()


@contextmanager
def running_webhook() -> Iterator[Webhook]:
    """Start the webhook on a free port, and stop it at the end."""
    with TemporaryDirectory(prefix="gpugate-") as name:
        folder = Path(name)
        command = [*GPUGATE, "serve", "--host", "127.0.0.1", "--port", "0", "--health-port", "0", "--drain", "0"]
        policy_file = folder / starter.FILE
        policy_file.write_text(starter.POLICY_FILE, encoding="utf-8")
        command += ["--ca-file", str(folder / "ca.crt"), "--policy-file", str(policy_file)]
        with (
            (folder / "log").open("wb") as log,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process,  # noqa: S603 -- our own program
        ):
            try:
                webhook = Webhook(_until_ready(process), folder)
                yield webhook
                webhook.close()
            finally:
                process.terminate()


def _until_ready(process: subprocess.Popen[str]) -> list[str]:
    lines: list[str] = []
    watchdog = Timer(PATIENCE_SECONDS, process.kill)
    watchdog.start()
    try:
        for line in process.stdout or ():
            lines.append(line.rstrip("\n"))
            if line.startswith("ready: "):
                return lines
    finally:
        watchdog.cancel()
    raise SystemExit("the webhook did not start: run `gpugate serve --port 0` to see why")
