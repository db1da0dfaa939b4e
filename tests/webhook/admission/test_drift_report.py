from __future__ import annotations

import copy
import datetime as dt
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from admission.logged import FakeLog, Scraped

from gpugate.certs.authorities import Periods, create_authorities
from gpugate.certs.protocols import ClusterFailure
from gpugate.webhook.admission.keeper import DriftReport
from gpugate.webhook.admission.options import Keeping, ServeOptions
from gpugate.webhook.admission.policy_reload import load_rules
from gpugate.webhook.generate.drift_reasons import Reason
from gpugate.webhook.generate.registration import Server, webhook_configurations

if TYPE_CHECKING:
    from pathlib import Path

    from gpugate.webhook.admission.shared import Shared
    from gpugate.webhook.cluster.live_registration import LiveRegistration

NOW = dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC)
AUTHORITIES = create_authorities(Periods(), NOW)
KEEPING = Keeping("certificates", "gpugate")
AUDIT = "apiVersion: gpugate.dev/v1\nkind: PolicyConfig\n"
FEWER = AUDIT + 'policies:\n  "*/*": {mode: "off"}\n  nodepools/single-instance-type: {mode: enforce}\n'


class Live:
    """The configurations of a cluster; reading them fails with `failure` where there is one."""

    def __init__(self, policy_file: Path) -> None:
        made = webhook_configurations(load_rules(policy_file).ruleset, Server(AUTHORITIES.bundle))
        self.objects: list[dict[str, Any]] = copy.deepcopy(list(made))
        self.failure: ClusterFailure | None = None

    def read_objects(self) -> list[dict[str, Any]]:
        if self.failure:
            raise self.failure
        return self.objects


class Told:
    def __init__(self, policy_file: Path) -> None:
        self.log, self.metrics, self.live, self.policy_file = FakeLog(), Scraped(), Live(policy_file), policy_file
        options = ServeOptions("127.0.0.1", 0, policy_file=policy_file)
        rules = load_rules(policy_file)
        shared = SimpleNamespace(options=options, rules=rules, metrics=self.metrics, log=self.log)
        live = cast("LiveRegistration", self.live)
        self.seconds = 0.0
        self.report = DriftReport(cast("Shared", shared), KEEPING, live, lambda: NOW, lambda: self.seconds)

    def tell(self, after: float = 60) -> dict[str, float]:
        """Return how many differences there are so many seconds later, by reason."""
        self.seconds += after
        self.report.tell(AUTHORITIES)
        counts = {each.value: self.metrics.value("gpugate_webhook_config_drift", reason=each.value) for each in Reason}
        return {reason: count for reason, count in counts.items() if count}


@pytest.fixture
def told(tmp_path: Path) -> Told:
    file = tmp_path / "policy.yaml"
    file.write_text(AUDIT)
    return Told(file)


def test_no_drift_is_zero(told: Told) -> None:
    assert (told.tell(), told.log.lines) == ({}, [])
    assert told.metrics.value("gpugate_webhook_config_drift", reason="missing") == 0


def test_differences_are_counted_by_their_reason(told: Told) -> None:
    told.live.objects.pop()
    for hook in told.live.objects[0]["webhooks"]:
        hook["clientConfig"]["caBundle"] = ""
    assert told.tell() == {"missing": 1, "ca-bundle-empty": len(told.live.objects[0]["webhooks"])}


def test_a_lasting_difference_is_logged_once_for_each_occurrence(told: Told) -> None:
    removed = told.live.objects.pop()
    written = []
    for live in ([], [], [], [removed], [], []):
        told.live.objects[1:] = live
        told.tell()
        written.append(told.log.reasons())
    assert written == [[], ["missing"], ["missing"], ["missing"], ["missing"], ["missing"] * 2]


def test_a_brief_difference_is_not_logged(told: Told) -> None:
    removed = told.live.objects.pop()
    counts = [told.tell(), told.tell(after=1)]
    told.live.objects.append(removed)
    assert (counts, told.tell(), told.log.lines) == ([{"missing": 1}, {"missing": 1}], {}, [])


def test_unreadable_configurations_report_no_drift(told: Told) -> None:
    told.live.objects.pop()
    before = told.tell()
    told.live.failure = ClusterFailure("the API server cannot be reached")
    assert told.tell() == before == {"missing": 1}


def test_a_changed_policy_file_is_in_force(told: Told) -> None:
    before = told.tell()
    told.policy_file.write_text(FEWER)
    assert (before, bool(told.tell())) == ({}, True)


def test_nothing_of_a_certificate_is_written(told: Told) -> None:
    for hook in told.live.objects[0]["webhooks"]:
        hook["clientConfig"]["caBundle"] = "anVuaw=="
    told.tell()
    told.tell()
    assert told.log.lines
    assert "BEGIN" not in str(told.log.lines)
    assert "anVuaw==" not in str(told.log.lines)
