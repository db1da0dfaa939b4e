"""Events about policies that are switched off; that an API server accepts them is tested end to end."""

from __future__ import annotations

import datetime as dt
import json
import os
import signal
import socket
import time
from typing import TYPE_CHECKING, Any

import pytest
from eventually import eventually

from gpugate.webhook.admission import policy_events
from gpugate.webhook.admission.policy_events import PolicyEvents, event
from gpugate.webhook.cluster import connection
from gpugate.webhook.cluster.options import ClusterOptions

if TYPE_CHECKING:
    from pathlib import Path

NOW = dt.datetime(2027, 1, 31, 12, 0, 1, 250, tzinfo=dt.UTC)


SAID = {"off": ("Warning", "PolicySwitchedOff", "SwitchOff"), "on": ("Normal", "PolicySwitchedOn", "SwitchOn")}


@pytest.mark.parametrize(("switched", "said"), SAID.items(), ids=SAID)
def test_an_event_names_the_policy_and_the_service(switched: str, said: tuple[str, str, str]) -> None:
    found = event("acme/x", "guard", "gate", NOW, is_off=switched == "off")

    assert (found["type"], found["reason"], found["action"]) == said
    assert found["note"].startswith("policy acme/x ")
    assert found["regarding"] == {"apiVersion": "v1", "kind": "Service", "namespace": "guard", "name": "gate"}
    assert found["metadata"] == {"generateName": "gate-policy-", "namespace": "guard"}
    assert (found["apiVersion"], found["kind"]) == ("events.k8s.io/v1", "Event")
    assert (found["eventTime"], found["reportingController"]) == ("2027-01-31T12:00:01.000250Z", "gpugate")


@pytest.mark.parametrize(("host", "instance"), [("pod-1", "pod-1"), ("x" * 200, "x" * 128), ("", "gpugate")])
def test_an_event_names_the_pod_within_the_limit_of_the_api_server(
    monkeypatch: pytest.MonkeyPatch, host: str, instance: str
) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: host)
    assert event("acme/x", "guard", "gate", NOW, is_off=True)["reportingInstance"] == instance


class Api:
    """An API server; each process that creates an Event writes it to a file, or waits for ever."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, *, answers: bool = True) -> None:
        self.created, self.begun = folder / "created", folder / "begun"
        self._answers = answers
        monkeypatch.setattr(connection, "connect", lambda _options, seconds: self if seconds < 10 else None)
        self.events = PolicyEvents(
            ClusterOptions(folder / "kubeconfig"), "guard", "gate", lambda: NOW, self.begun.touch, lambda _: None
        )

    def create(self, path: str, written: dict[str, Any]) -> None:
        while not self._answers:
            time.sleep(60)
        _write(self.created, json.dumps([path, written]))

    @property
    def pids(self) -> list[int | None]:
        return [process.pid for process in self.events._running]


def test_an_event_is_created_in_the_namespace_of_the_webhook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    api = Api(tmp_path, monkeypatch)
    api.events.create("acme/x", is_off=True)
    assert eventually(api.created.exists)
    path, written = json.loads(api.created.read_text().partition(" ")[2])
    assert path == "/apis/events.k8s.io/v1/namespaces/guard/events"
    assert written | {"reportingInstance": ""} == event("acme/x", "guard", "gate", NOW, is_off=True) | {
        "reportingInstance": ""
    }
    api.events.close()


def test_processes_that_have_ended_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    api = Api(tmp_path, monkeypatch)
    for _ in range(2):
        api.events.create("acme/x", is_off=True)
        (first,) = api.pids
        assert eventually(lambda: not any(process.is_alive() for process in api.events._running))
    assert api.pids == [first]


def test_processes_that_wait_for_the_api_server_end_with_the_supervisor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = Api(tmp_path, monkeypatch, answers=False)
    for policy in ("acme/x", "acme/y"):
        api.events.create(policy, is_off=True)
    assert eventually(api.begun.exists)
    api.events.close()
    assert [process.exitcode for process in api.events._running] == [-signal.SIGKILL] * 2


def test_a_process_that_waits_for_the_api_server_ends_after_some_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy_events, "_MOST_SECONDS", 0.05)
    before = signal.signal(signal.SIGALRM, lambda *_: None)
    api = Api(tmp_path, monkeypatch, answers=False)
    try:
        api.events.create("acme/x", is_off=True)
        (process,) = api.events._running
        process.join(60)
        assert process.exitcode == -signal.SIGALRM
    finally:
        signal.signal(signal.SIGALRM, before)
        api.events.close()


def test_an_event_that_cannot_be_created_is_reported_by_the_process_that_creates_it(tmp_path: Path) -> None:
    begun, failed = tmp_path / "begun", tmp_path / "failed"
    missing = ClusterOptions(tmp_path / "kubeconfig")
    events = PolicyEvents(missing, "guard", "gate", lambda: NOW, begun.touch, lambda reason: _write(failed, reason))

    events.create("acme/x", is_off=True)

    assert eventually(failed.exists)
    assert begun.exists()
    pid, _, reason = failed.read_text().partition(" ")
    assert int(pid) != os.getpid()
    assert str(tmp_path / "kubeconfig") in reason
    events.close()


def _write(file: Path, reason: str) -> None:
    new = file.with_suffix(".new")
    new.write_text(f"{os.getpid()} {reason}")
    new.rename(file)
