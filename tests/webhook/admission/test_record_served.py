"""`gpugate serve --record` as real processes: the answers stay the same, and the files survive what happens to their writers."""

from __future__ import annotations

import json
import os
import shutil
import signal
import ssl
import sys
import urllib.request
from http.client import HTTPSConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from eventually import eventually
from pod_reviews import pod_review
from recorded_pods import Secrets

from gpugate.webhook.admission.record_file import Damaged, Recorded, Repeated, read_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Served:
    """A server that records into a directory."""

    def __init__(self, process: Any, folder: Path) -> None:
        self.process = process
        self.folder = folder

    def send(self, bodies: list[bytes], path: str = "/validate") -> list[bytes]:
        address = urlsplit(self.process.url)
        trust = ssl.create_default_context(cafile=self.process.ca_file)
        connection = HTTPSConnection(address.hostname or "", address.port, context=trust, timeout=60)
        answers = []
        for body in bodies:
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            assert response.status == 200
            answers.append(response.read())
        connection.close()
        return answers

    def results(self) -> dict[str, float]:
        with urllib.request.urlopen(f"{self.process.health_url}/metrics") as answer:  # noqa: S310 -- on loopback
            lines = answer.read().decode().splitlines()
        start = "gpugate_record_reviews_total{"
        return {line.split('"')[1]: float(line.rpartition(" ")[2]) for line in lines if line.startswith(start)}

    def lines(self, kind: type[Any] = Recorded) -> list[Any]:
        return [line for file in self.folder.glob("*") for line in read_lines(file) if isinstance(line, kind)]

    def workers(self) -> list[int]:
        pid = self.process.process.pid
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.fixture
def serve(start_process: Callable[..., Any], tmp_path: Path) -> Iterator[Callable[..., Served]]:
    started = []

    def start(*flags: str, folder: Path | None = None) -> Served:
        folder = folder or tmp_path / "record"
        command = [sys.executable, "-m", "gpugate.webhook.cli.main", "serve", "--host", "127.0.0.1", "--no-cluster"]
        command += ["--port", "0", "--health-port", "0", "--drain", "0", "--ca-file", str(tmp_path / "ca.crt")]
        started.append(start_process([*command, "--record", str(folder), *flags], tmp_path / "ca.crt"))
        return Served(started[-1], folder)

    yield start
    for process in started:
        process.stop()


def bodies(seed: int, pods: int) -> list[bytes]:
    secrets = Secrets(seed)
    return [pod_review(secrets.pod(number), "ml") for number in range(pods)]


def test_reviews_of_both_webhooks_are_recorded_with_what_the_answers_decided(serve: Callable[..., Served]) -> None:
    served = serve()
    sent = bodies(1, 30)
    served.send(sent, "/mutate")
    answers = served.send(sent)
    assert eventually(lambda: sum(served.results().values()) == 60)
    served.process.stop()
    lines = served.lines()
    assert sum(1 for _ in lines) + sum(line.count for line in served.lines(Repeated)) == 60
    denied = {json.loads(body)["request"]["object"]["metadata"]["name"] for body, answer in zip(sent, answers, strict=True)
              if not json.loads(answer)["response"]["allowed"]}  # fmt: skip
    recorded = {line.object["metadata"]["name"] for line in lines if "deny" in line.decisions.values()}
    assert recorded == denied
    assert denied


def test_a_killed_worker_leaves_a_file_that_can_be_read(serve: Callable[..., Served]) -> None:
    served = serve("--workers", "1")
    served.send(bodies(2, 20))
    assert eventually(lambda: served.results().get("recorded") == 20)
    os.kill(served.workers()[0], signal.SIGKILL)
    assert eventually(lambda: len(served.lines()) == 20)
    assert served.lines(Damaged) == []


def test_without_its_directory_every_review_is_answered(serve: Callable[..., Served], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    served = serve("--workers", "1", folder=tmp_path / "file" / "record")
    plain = served.send(bodies(3, 5))
    assert eventually(lambda: served.results().get("failed") == 5)
    assert served.send(bodies(3, 5)) == plain
    assert "reviews cannot be recorded" in served.process.log_file.read_text()


def test_a_directory_that_is_removed_meanwhile_fails_no_review(serve: Callable[..., Served]) -> None:
    served = serve("--workers", "1")
    served.send(bodies(4, 3))
    assert eventually(lambda: served.results().get("recorded") == 3)
    shutil.rmtree(served.folder)
    answers = served.send(bodies(5, 3))
    assert len(answers) == 3
    assert eventually(lambda: served.results().get("failed") == 3)
