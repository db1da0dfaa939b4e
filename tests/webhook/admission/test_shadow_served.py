"""`gpugate serve --shadow-policy-file` as real processes: the answers stay the same, and what would differ is shown."""

from __future__ import annotations

import json
import os
import signal
import ssl
import sys
import threading
import urllib.error
import urllib.request
from http.client import HTTPSConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from eventually import eventually
from pod_reviews import pod_review

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HEAD = "apiVersion: gpugate.dev/v1\nkind: PolicyConfig\n"
CURRENT = f"{HEAD}policies:\n  pods/hidden-gpu-access: {{mode: warn}}\n"
CANDIDATE = f"{HEAD}policies:\n  pods/hidden-gpu-access: {{mode: enforce}}\n"
SAME = f"{CURRENT}# the same\n"
POLICY = "pods/hidden-gpu-access"
REVIEWS = Path(__file__).parents[2] / "fixtures" / "reviews"


def hidden(size: int = 0) -> bytes:
    container = {"name": "c", "image": "i:1", "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]}
    metadata = {"name": "p", "namespace": "team", "annotations": {"long": "x" * size}}
    return pod_review({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}})


class Served:
    """A server, and what it shows of its shadow policy file."""

    def __init__(self, process: Any, candidate: Path) -> None:
        self.process = process
        self.candidate = candidate

    def connect(self) -> HTTPSConnection:
        """Open a connection, which any of the workers accepts."""
        address = urlsplit(self.process.url)
        trust = ssl.create_default_context(cafile=self.process.ca_file)
        return HTTPSConnection(address.hostname or "", address.port, context=trust, timeout=60)

    def send(self, bodies: list[bytes], path: str = "/validate") -> list[bytes]:
        connection = self.connect()
        answers = []
        for body in bodies:
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            assert response.status == 200
            answers.append(response.read())
        connection.close()
        return answers

    def document(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self.process.health_url}/shadow") as answer:  # noqa: S310 -- on loopback
            document: dict[str, Any] = json.load(answer)
        return document

    def metric(self, start: str) -> float:
        with urllib.request.urlopen(f"{self.process.health_url}/metrics") as answer:  # noqa: S310 -- on loopback
            lines = answer.read().decode().splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(start))

    def requests(self) -> int:
        """Return how many requests all pairs count."""
        return sum(pair["requests"] for owner in self.document()["owners"] for pair in owner["pairs"])

    def write(self, text: str) -> None:
        new = self.candidate.with_name("new")
        new.write_text(text)
        new.replace(self.candidate)

    def tables(self) -> str:
        """Return the folder in which the workers show each other their tables."""
        maps = Path(f"/proc/{self.workers()[0]}/maps").read_text()
        return next(line.split()[-1].rpartition("/")[0] for line in maps.splitlines() if line.endswith(".db"))

    @property
    def log(self) -> str:
        log: str = self.process.log_file.read_text()
        return log

    def workers(self) -> list[int]:
        pid = self.process.process.pid
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.fixture
def serve(start_process: Callable[..., Any], tmp_path: Path) -> Iterator[Callable[..., Served]]:
    started = []

    def start(candidate: str | None, *flags: str, current: str = CURRENT) -> Served:
        folder = tmp_path / str(len(started))
        folder.mkdir()
        (folder / "current.yaml").write_text(current)
        file = folder / "candidate.yaml"
        command = [sys.executable, "-m", "gpugate.webhook.cli.main", "serve", "--host", "127.0.0.1", "--no-cluster"]
        command += ["--port", "0", "--health-port", "0", "--drain", "0", "--ca-file", str(folder / "ca.crt")]
        command += ["--policy-file", str(folder / "current.yaml"), *flags]
        if candidate is not None:
            file.write_text(candidate)
            command += ["--shadow-policy-file", str(file)]
        started.append(start_process(command, folder / "ca.crt"))
        return Served(started[-1], file)

    yield start
    for process in started:
        process.stop()


def test_answers_are_those_without_a_shadow(serve: Callable[..., Served]) -> None:
    shadowed, plain = serve(CANDIDATE, "--workers", "1"), serve(None, "--workers", "1")
    for path in ("mutate", "validate"):
        bodies = [file.read_bytes() for file in sorted(REVIEWS.glob(f"*.{path}.json"))]
        assert len(bodies) > 5
        assert shadowed.send([*bodies, hidden()], f"/{path}") == plain.send([*bodies, hidden()], f"/{path}")
    assert eventually(lambda: shadowed.metric('gpugate_shadow_reviews_total{result="evaluated"}') > 20)
    with pytest.raises(urllib.error.HTTPError, match="404"):
        plain.document()


def test_all_workers_show_one_table(serve: Callable[..., Served]) -> None:
    served = serve(CANDIDATE, "--workers", "3")
    for _ in range(24):
        served.send([hidden()])
    # A large review is evaluated in the process for expensive reviews, and so is its shadow.
    served.send([hidden(size=300_000)])
    assert eventually(lambda: served.requests() == 25)
    (owner,) = served.document()["owners"]
    (pair,) = owner["pairs"]
    assert (owner["object"]["kind"], owner["object"]["name"]) == ("Pod", "p")
    assert (pair["policy"], pair["current"], pair["candidate"], pair["requester"]) == (POLICY, "warn", "deny", "person")
    outcome = f'gpugate_shadow_outcomes_total{{from="warn",kind="Pod",operation="CREATE",policy="{POLICY}",to="deny"}}'
    assert served.metric(outcome) == 25
    assert eventually(lambda: "the shadow policy file decides differently" in served.log)


def test_a_worker_that_dies_loses_no_table(serve: Callable[..., Served]) -> None:
    served = serve(CANDIDATE, "--workers", "1")
    served.send([hidden()] * 5)
    assert eventually(lambda: served.requests() == 5)
    # A worker shows its table once a second. Its successor, and so the only worker, has what was shown last.
    shown = Path(served.tables()) / "0.shadow"
    assert eventually(lambda: b'"evaluated":5' in shown.read_bytes())
    worker = served.workers()[0]
    os.kill(worker, signal.SIGKILL)
    assert eventually(
        lambda: served.workers() and served.workers()[0] != worker and served.process.readiness() == "ok\n"
    )
    served.send([hidden()])
    assert eventually(lambda: served.requests() == 6)


@pytest.mark.parametrize("broken", ["mode: nonsense", "policies: {pods/hidden-gpu-acces: {mode: warn}}", "\t"])
def test_an_invalid_shadow_policy_file_touches_no_review(serve: Callable[..., Served], broken: str) -> None:
    served = serve(HEAD + broken, "--workers", "1")
    assert json.loads(served.send([hidden()])[0])["response"]["allowed"]
    assert served.process.readiness() == "ok\n"
    assert served.metric("gpugate_shadow_config_last_reload_successful") == 0
    assert served.document()["error"]
    served.write(CANDIDATE)
    assert eventually(lambda: served.metric("gpugate_shadow_config_last_reload_successful") == 1)
    served.send([hidden()])
    assert eventually(lambda: served.requests() == 1)
    served.write(HEAD + broken)
    assert eventually(lambda: served.document()["error"])
    served.send([hidden()])
    assert eventually(lambda: served.requests() == 2)


def test_a_changed_shadow_policy_file_begins_another_table(serve: Callable[..., Served]) -> None:
    served = serve(CANDIDATE, "--workers", "1")
    served.send([hidden()])
    assert eventually(lambda: served.requests() == 1)
    before = served.document()["candidate"]
    served.write(SAME)
    assert eventually(lambda: served.document()["candidate"] != before)
    served.send([hidden()])
    assert eventually(lambda: served.requests() == 1)
    assert [pair["candidate"] for owner in served.document()["owners"] for pair in owner["pairs"]] == ["warn"]


FAILS = '''"""Pod that this policy cannot evaluate."""
from gpugate.policies.sdk.objects import POD
from gpugate.policies.sdk.policy import validates


@validates(POD)
def check(pod, ctx):
    raise ValueError("a secret")
    yield
'''


def test_a_policy_that_fails_only_in_the_shadow_is_not_switched_off(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    """The failures of a policy of one's own are those of its answers; in force it is off here."""
    (tmp_path / "own" / "acme").mkdir(parents=True)
    (tmp_path / "own" / "acme" / "fails.py").write_text(FAILS)
    own = "policies:\n  acme/fails: {mode: %s}\n"
    served = serve(
        HEAD + own % "enforce", "--workers", "1", "--policy-path", str(tmp_path / "own"), current=HEAD + own % "off"
    )
    for _ in range(15):
        served.send([hidden()])
    decided = 'gpugate_shadow_outcomes_total{from="allow",kind="Pod",operation="CREATE",policy="acme/fails",to="deny"}'
    assert eventually(lambda: served.metric(decided) == 15)
    assert served.metric("gpugate_policy_switched_off") == 0
    assert "a secret" not in json.dumps(served.document()) + served.log


def test_other_policies_of_ones_own_are_refused(serve: Callable[..., Served], tmp_path: Path) -> None:
    (tmp_path / "own" / "acme").mkdir(parents=True)
    (tmp_path / "own" / "acme" / "fails.py").write_text(FAILS)
    served = serve(f"{HEAD}policy_paths: [{tmp_path / 'own'}]\n", "--workers", "1")
    assert "name the same policy_paths in both" in served.document()["error"]
    assert json.loads(served.send([hidden()])[0])["response"]["allowed"]


def test_under_load_every_review_is_answered_and_the_shadow_drops(serve: Callable[..., Served]) -> None:
    served = serve(CANDIDATE, "--workers", "1")
    answers: list[list[bytes]] = []

    def load() -> None:
        answers.append(served.send([hidden()] * 150))

    threads = [threading.Thread(target=load) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(each) for each in answers] == [150] * 16
    assert {answer for each in answers for answer in each} == set(answers[0])
    assert eventually(lambda: sum(served.document()["reviews"].values()) == 16 * 150)
    reviews = served.document()["reviews"]
    assert reviews["dropped"] > 0
    assert served.requests() == reviews["evaluated"]
