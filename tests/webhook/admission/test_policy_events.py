"""Events about policies that are switched off; that an API server accepts them is tested end to end."""

from __future__ import annotations

import datetime as dt
import os
from typing import TYPE_CHECKING

import pytest
from eventually import eventually

from gpugate.webhook.admission.policy_events import PolicyEvents, event
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
    assert (found["metadata"]["namespace"], found["eventTime"]) == ("guard", "2027-01-31T12:00:01.000250Z")


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
