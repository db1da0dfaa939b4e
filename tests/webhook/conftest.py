"""The webhook as a real process, for tests of what comes over the socket.

`webhook` is a server with the shipped modes, one for the whole run: `webhook.mutate(review)` and
`webhook.validate(review)` send an AdmissionReview (an object, or bytes as they are) and return the `response` of the
answer; `webhook.request(...)` returns status, headers and body of anything. `start_webhook(policy_file)` gives a server
with another configuration; it is started once for each file. `start_process(command, ca_file)` gives whatever else
prints `ready: URL` and writes its authority to that file. All are stopped when the run ends. `tree(files)` writes files.
"""

from __future__ import annotations

import functools
import http.client
import json
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

import pytest

from gpugate.webhook.config import starter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Json: TypeAlias = dict[str, Any]
REVIEWS = Path(__file__).parents[1] / "fixtures" / "reviews"
PATIENCE_SECONDS = 60
# The server closes a connection that is idle for 120 seconds, such as between two files of tests.
IDLE_SECONDS = 60


class Webhook:
    def __init__(self, command: list[str], ca_file: Path) -> None:
        self.ca_file = ca_file
        self.log_file = ca_file.with_name("stderr")
        with self.log_file.open("wb") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)  # noqa: S603 -- ours
        self.announced = self._until_ready()
        self.url = self.announced[-1].removeprefix("ready: ")
        self.health_url = next((line[8:] for line in self.announced if line.startswith("health: ")), "")
        self._connection = self.connect()
        self._used = time.monotonic()

    def _until_ready(self) -> list[str]:
        lines: list[str] = []
        assert self.process.stdout is not None
        watchdog = threading.Timer(PATIENCE_SECONDS, self.process.kill)
        watchdog.start()
        for line in self.process.stdout:
            lines.append(line.rstrip("\n"))
            if line.startswith("ready: "):
                watchdog.cancel()
                return lines
        watchdog.cancel()
        self.stop()
        raise AssertionError(f"the webhook did not start:\n{self.log_file.read_text()}")

    def connect(self) -> http.client.HTTPSConnection:
        address = urlsplit(self.url)
        trust = ssl.create_default_context(cafile=self.ca_file)
        return http.client.HTTPSConnection(
            address.hostname or "", address.port, context=trust, timeout=PATIENCE_SECONDS
        )

    def request(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        if time.monotonic() - self._used > IDLE_SECONDS:
            # The next request opens a new one.
            self._connection.close()
        self._connection.request(method, path, body, {"Content-Type": "application/json"} | (headers or {}))
        response = self._connection.getresponse()
        content = response.read()
        self._used = time.monotonic()
        return response.status, response.headers, content

    def mutate(self, review: Json | bytes) -> Json:
        return self._review("/mutate", review)

    def validate(self, review: Json | bytes) -> Json:
        return self._review("/validate", review)

    def _review(self, path: str, review: Json | bytes) -> Json:
        body = review if isinstance(review, bytes) else json.dumps(review).encode()
        status, _, answer = self.request("POST", path, body)
        assert status == 200, answer
        response: Json = json.loads(answer)["response"]
        return response

    def readiness(self) -> str:
        """What `/readyz` says, ready or not."""
        try:
            with urllib.request.urlopen(self.health_url + "/readyz") as answer:  # noqa: S310 -- on loopback, our own URL
                return str(answer.read().decode())
        except urllib.error.HTTPError as error:
            return error.read().decode()

    def disconnect(self) -> None:
        if hasattr(self, "_connection"):
            self._connection.close()

    def stop(self) -> int:
        self.disconnect()
        self.process.terminate()
        if self.process.stdout is not None:
            self.process.stdout.close()
        return self.process.wait(PATIENCE_SECONDS)


@pytest.fixture(scope="session")
def start_process() -> Iterator[Callable[[list[str], Path], Webhook]]:
    running: list[Webhook] = []

    def start(command: list[str], ca_file: Path) -> Webhook:
        running.append(Webhook(command, ca_file))
        return running[-1]

    yield start
    for webhook in running:
        webhook.stop()


@pytest.fixture(scope="session")
def start_webhook(
    start_process: Callable[[list[str], Path], Webhook], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Path | None], Webhook]:
    @functools.cache
    def start(policy_file: Path | None = None) -> Webhook:
        ca_file = tmp_path_factory.mktemp("webhook") / "ca.crt"
        command = [sys.executable, "-m", "gpugate.webhook.cli.main", "serve", "--host", "127.0.0.1"]
        command += ["--port", "0", "--health-port", "0", "--drain", "0"]
        command += ["--ca-file", str(ca_file)]
        command += ["--policy-file", str(policy_file)] if policy_file else []
        return start_process(command, ca_file)

    return start


@pytest.fixture(scope="session")
def configured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A policy file that sets the conventions of a platform."""
    file = tmp_path_factory.mktemp("platform") / starter.FILE
    file.write_text(starter.POLICY_FILE)
    return file


@pytest.fixture(scope="session")
def webhook(start_webhook: Callable[[Path | None], Webhook], configured: Path) -> Webhook:
    return start_webhook(configured)


@pytest.fixture(scope="session")
def captured() -> Callable[[str], bytes]:
    """Read a captured review by its name, such as `pod-delete.validate`."""
    return lambda name: (REVIEWS / f"{name}.json").read_bytes()


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Write files below what becomes the working directory: `tree({"a/b.yaml": text})`."""
    root = tmp_path / "tree"
    root.mkdir()
    monkeypatch.chdir(root)

    def written(files: dict[str, str]) -> Path:
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        return root

    return written
